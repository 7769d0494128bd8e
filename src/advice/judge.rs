//! Which jobs are held, and the judgement on each: by rule where the code decides, else by the model where it may.

use anyhow::{Context as _, Result, bail, ensure};
use serde::Serialize;

use super::codes::{meaning, rule};
use crate::config;
use crate::error::hinted;
use crate::eventlog::{ABORTED, HELD, TERMINATED};
use crate::events::{EventStore, StoredJob};
use crate::tensors::{HoldCycle, HoldOutcome, LeftOutReason, hold_cycles};
use crate::training::{HoldModel, SuccessRates, TrainingRun};

/// What to do with a held job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Release it as it is.
    Release,
    /// Fix its fault, then release it.
    Fix,
    /// Remove it.
    Remove,
    /// Wait: it will be released, or its owner holds it on purpose.
    Wait,
    /// Nothing that would be honest to say.
    None,
}

impl Action {
    /// The exit code of `advise` that stands for this action.
    pub fn exit_code(self) -> u8 {
        match self {
            Action::Release => 0,
            Action::Fix => 10,
            Action::Remove => 20,
            Action::Wait => 30,
            Action::None => 40,
        }
    }
}

/// What an action rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ground {
    /// The hold code alone.
    Rule,
    /// The model's probability.
    Model,
    /// Nothing: no advice.
    Nothing,
}

/// Labelled holds with the same code and subcode in training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cases {
    /// How many.
    pub holds: usize,
    /// How many were followed by success.
    pub successes: usize,
    /// The share of successes: the base rate.
    pub rate: f64,
    /// The first of them at the earliest, epoch ms.
    pub from_ms: i64,
    /// The last of them at the latest, epoch ms.
    pub to_ms: i64,
}

/// How well the model told success from failure on holds that came after its training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Skill {
    /// ROC-AUC on the test side.
    pub roc_auc: f64,
    /// Its 95 % interval.
    pub interval: (f64, f64),
}

/// The advice on one job.
#[derive(Debug, Clone, Serialize)]
pub struct Advice {
    /// `cluster.proc`.
    pub job: String,
    /// The access point.
    pub ap: String,
    /// What to do.
    pub action: Action,
    /// What that rests on.
    pub ground: Ground,
    /// Why, in sentences.
    pub reasons: Vec<String>,
    /// What to type now; nothing where there is no advice.
    pub command: Option<String>,
    /// What to type once the fault is fixed.
    pub then: Option<String>,
    /// The hold code.
    pub hold_code: i32,
    /// The hold subcode.
    pub hold_subcode: i32,
    /// What they mean.
    pub meaning: String,
    /// Since when it is held, epoch ms.
    pub held_since_ms: i64,
    /// For how long, up to the end of the log, ms.
    pub held_for_ms: i64,
    /// Its holds so far, this one included.
    pub holds: u32,
    /// Those with this code and subcode, this one included.
    pub holds_for_this_reason: usize,
    /// Other jobs of its cluster that are held for the same reason now.
    pub siblings_held: usize,
    /// The model's probability of success if released unchanged; absent where a rule decides.
    pub probability: Option<f64>,
    /// What training saw of such holds; absent where a rule decides or nothing was seen.
    pub like_cases: Option<Cases>,
    /// How good the model is; absent where a rule decides, or if it was never evaluated.
    pub skill: Option<Skill>,
}

/// Which held jobs to advise on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// One job.
    Job(i32, i32),
    /// The held jobs of a cluster.
    Cluster(i32),
}

impl std::str::FromStr for Selection {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Selection> {
        let number = |part: &str| part.parse::<i32>().ok().filter(|n| *n >= 0);
        let parsed = match text.split_once('.') {
            Some((cluster, proc)) => number(cluster)
                .zip(number(proc))
                .map(|(c, p)| Selection::Job(c, p)),
            None => number(text).map(Selection::Cluster),
        };
        parsed.with_context(|| {
            hinted(
                format!("`{text}` is no job id"),
                "write `123.0` for a job, or `123` for a cluster",
            )
        })
    }
}

/// The jobs that are held when the log ends, with the hold they are in.
struct Held<'a> {
    index: usize,
    job: StoredJob<'a>,
    cycle: HoldCycle,
}

impl Held<'_> {
    fn reason(&self) -> (i32, i32) {
        (
            self.job.history.hold_code[self.cycle.hold],
            self.job.history.hold_subcode[self.cycle.hold],
        )
    }
}

fn held_jobs(store: &EventStore) -> Vec<Held<'_>> {
    let held = |(index, job): (usize, StoredJob<'_>)| {
        let cycle = hold_cycles(job.history, config::LabelKind::Next, store.gaps(job.ap)).pop()?;
        (cycle.outcome == HoldOutcome::LeftOut(LeftOutReason::StillHeld)).then_some((index, cycle))
    };
    let jobs = store.jobs();
    let found = jobs.iter().enumerate().filter_map(held);
    found
        .map(|(index, cycle)| Held {
            index,
            job: jobs.get(index),
            cycle,
        })
        .collect()
}

/// Judges the held jobs of `store` that `selections` name, or all of them if it is empty.
///
/// # Errors
/// Fails for a job that is not in the log, or is not held when the log ends.
pub fn advise(
    store: &EventStore,
    run: &TrainingRun,
    skill: Option<Skill>,
    settings: &config::AdviceConfig,
    selections: &[Selection],
) -> Result<Vec<Advice>> {
    let held = held_jobs(store);
    for selection in selections {
        ensure!(
            held.iter().any(|h| matches(&h.job, selection)),
            why_not_held(store, selection)?
        );
    }
    let chosen =
        |h: &&Held<'_>| selections.is_empty() || selections.iter().any(|s| matches(&h.job, s));
    let judge = Judge {
        store,
        run,
        skill,
        settings,
        model: HoldModel::new(store, run),
        held: &held,
    };
    held.iter()
        .filter(chosen)
        .map(|held| judge.advice(held))
        .collect()
}

fn matches(job: &StoredJob<'_>, selection: &Selection) -> bool {
    match *selection {
        Selection::Job(cluster, proc) => (job.cluster, job.proc) == (cluster, proc),
        Selection::Cluster(cluster) => job.cluster == cluster,
    }
}

/// What is known of jobs that are not held: whether they are in the log, and how they ended.
fn why_not_held(store: &EventStore, selection: &Selection) -> Result<crate::error::HintedError> {
    let jobs: Vec<StoredJob<'_>> = store
        .jobs()
        .iter()
        .filter(|job| matches(job, selection))
        .collect();
    let hint = "leave out the job ids to get advice on every held job";
    let last = match (selection, jobs.last()) {
        (Selection::Job(cluster, proc), None) => bail!(hinted(
            format!("job {cluster}.{proc} is not in the log"),
            hint
        )),
        (Selection::Cluster(cluster), None) => {
            bail!(hinted(format!("cluster {cluster} is not in the log"), hint))
        }
        (Selection::Cluster(cluster), Some(_)) => {
            return Ok(hinted(
                format!(
                    "cluster {cluster} has {}, and none is held",
                    crate::output::counted(jobs.len(), "job")
                ),
                hint,
            ));
        }
        (Selection::Job(..), Some(last)) => last,
    };
    let history = last.history;
    let end =
        (0..history.number.len()).rfind(|&at| matches!(history.number[at], TERMINATED | ABORTED));
    let state = match end {
        Some(at) if history.number[at] == ABORTED => {
            format!(
                "it was removed at {}",
                crate::output::utc_time(history.time_ms[at])
            )
        }
        Some(at) => format!(
            "it terminated at {}",
            crate::output::utc_time(history.time_ms[at])
        ),
        None => "it is queued or running".to_owned(),
    };
    Ok(hinted(
        format!("job {} is not held when the log ends: {state}", last.id()),
        hint,
    ))
}

struct Judge<'a> {
    store: &'a EventStore,
    run: &'a TrainingRun,
    skill: Option<Skill>,
    settings: &'a config::AdviceConfig,
    model: HoldModel<'a>,
    held: &'a [Held<'a>],
}

/// A judgement, before it is put beside what is known of the job.
struct Verdict {
    action: Action,
    ground: Ground,
    reasons: Vec<String>,
    command: Option<String>,
    probability: Option<f64>,
    like_cases: Option<Cases>,
}

impl Judge<'_> {
    fn advice(&self, held: &Held<'_>) -> Result<Advice> {
        let (hold_code, hold_subcode) = held.reason();
        let history = held.job.history;
        let same_reason = (0..=held.cycle.hold).filter(|&at| {
            (
                history.number[at],
                history.hold_code[at],
                history.hold_subcode[at],
            ) == (HELD, hold_code, hold_subcode)
        });
        let holds_for_this_reason = same_reason.count();
        let is_sibling = |other: &&Held<'_>| {
            (other.job.ap, other.job.cluster) == (held.job.ap, held.job.cluster)
                && other.index != held.index
                && other.reason() == held.reason()
        };
        let verdict = match rule(hold_code, hold_subcode) {
            Some(rule) => Verdict {
                action: rule.action,
                ground: Ground::Rule,
                reasons: vec![rule.why.to_owned()],
                command: Some(rule.command.replace("JOB", &held.job.id())),
                probability: None,
                like_cases: None,
            },
            None => self.by_model(held, holds_for_this_reason)?,
        };
        let held_since_ms = history.time_ms[held.cycle.hold];
        Ok(Advice {
            job: held.job.id(),
            ap: self.store.summary.aps[held.job.ap as usize].clone(),
            action: verdict.action,
            ground: verdict.ground,
            reasons: verdict.reasons,
            command: verdict.command,
            then: (verdict.action == Action::Fix)
                .then(|| format!("condor_release {}", held.job.id())),
            hold_code,
            hold_subcode,
            meaning: meaning(hold_code, hold_subcode),
            held_since_ms,
            held_for_ms: self.store.summary.end_ms - held_since_ms,
            holds: held.cycle.earlier_holds + 1,
            holds_for_this_reason,
            siblings_held: self.held.iter().filter(is_sibling).count(),
            probability: verdict.probability,
            like_cases: verdict.like_cases,
            skill: self.skill.filter(|_| verdict.probability.is_some()),
        })
    }

    fn by_model(&self, held: &Held<'_>, holds_for_this_reason: usize) -> Result<Verdict> {
        let probability = self.probability(held)?;
        let like_cases = cases(&self.run.summary.rates, held.reason());
        let (action, reason) = decide(
            self.settings,
            self.skill,
            probability,
            like_cases,
            holds_for_this_reason,
        );
        let id = held.job.id();
        let command = match action {
            Action::Release => Some(format!("condor_release {id}")),
            Action::Fix => Some(format!("condor_q -hold {id}")),
            Action::Remove => Some(format!("condor_rm {id}")),
            Action::Wait | Action::None => None,
        };
        let ground = if action == Action::None {
            Ground::Nothing
        } else {
            Ground::Model
        };
        Ok(Verdict {
            action,
            ground,
            reasons: vec![reason],
            command,
            probability: Some(probability),
            like_cases,
        })
    }

    fn probability(&self, held: &Held<'_>) -> Result<f64> {
        Ok(self.model.probabilities(&[(held.index, held.cycle)])?[0])
    }
}

/// The action for a hold that no rule decides, and why. Abstains where there is too little to go by.
fn decide(
    settings: &config::AdviceConfig,
    skill: Option<Skill>,
    probability: f64,
    cases: Option<Cases>,
    holds_for_this_reason: usize,
) -> (Action, String) {
    let config::AdviceConfig {
        release_from,
        fix_below,
        remove_from_holds,
        min_like_cases,
    } = *settings;
    let like = cases.map_or(0, |cases| cases.holds);
    if like < min_like_cases {
        let reason = format!(
            "the model learned from only {} like this one; {min_like_cases} are needed",
            crate::output::counted(like, "hold")
        );
        return (Action::None, reason);
    }
    if skill.is_some_and(|skill| skill.interval.0 <= 0.5) {
        return (
            Action::None,
            "on later holds this model did no better than chance".to_owned(),
        );
    }
    if probability >= release_from {
        return (
            Action::Release,
            "holds like this one more often than not ended well after a release".to_owned(),
        );
    }
    if probability >= fix_below {
        return (Action::None, "the odds are too even to say".to_owned());
    }
    if holds_for_this_reason >= remove_from_holds {
        let times = format!("it was held {holds_for_this_reason} times for this one reason");
        return (
            Action::Remove,
            format!("{times}, and another release will hardly help"),
        );
    }
    (
        Action::Fix,
        "released unchanged it will probably be held again or fail".to_owned(),
    )
}

fn cases(rates: &SuccessRates, (hold_code, hold_subcode): (i32, i32)) -> Option<Cases> {
    let rate = rates.get(hold_code, hold_subcode)?;
    let (from_ms, to_ms) = (rates.from_ms, rates.to_ms);
    Some(Cases {
        holds: rate.holds,
        successes: rate.successes,
        rate: rate.share(),
        from_ms,
        to_ms,
    })
}

/// The exit code for several pieces of advice: what they agree on, else that of no advice.
pub fn exit_code(advice: &[Advice]) -> u8 {
    let first = advice.first().map_or(Action::None, |advice| advice.action);
    let agreed = advice.iter().all(|advice| advice.action == first);
    if agreed {
        first.exit_code()
    } else {
        Action::None.exit_code()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: config::AdviceConfig = config::AdviceConfig {
        release_from: 0.5,
        fix_below: 0.3,
        remove_from_holds: 5,
        min_like_cases: 20,
    };

    fn action(skill_low: f64, probability: f64, like: usize, holds: usize) -> Action {
        let skill = Skill {
            roc_auc: 0.7,
            interval: (skill_low, 0.8),
        };
        let cases = Cases {
            holds: like,
            successes: 0,
            rate: 0.0,
            from_ms: 0,
            to_ms: 0,
        };
        decide(&SETTINGS, Some(skill), probability, Some(cases), holds).0
    }

    #[test]
    fn odds_decide_only_where_there_is_something_to_go_by() {
        assert_eq!(action(0.6, 0.5, 20, 1), Action::Release);
        assert_eq!(action(0.6, 0.49, 20, 1), Action::None, "too even");
        assert_eq!(action(0.6, 0.3, 20, 9), Action::None, "too even");
        assert_eq!(action(0.6, 0.29, 20, 4), Action::Fix);
        assert_eq!(action(0.6, 0.29, 20, 5), Action::Remove);
        assert_eq!(action(0.6, 0.9, 19, 1), Action::None, "too few like cases");
        assert_eq!(
            action(0.5, 0.9, 20, 1),
            Action::None,
            "no better than chance"
        );
        assert_eq!(
            decide(&SETTINGS, None, 0.9, None, 1).0,
            Action::None,
            "no like case at all"
        );
    }

    #[test]
    fn ids_are_jobs_or_clusters() {
        assert_eq!(
            "12.3".parse::<Selection>().expect("a job"),
            Selection::Job(12, 3)
        );
        assert_eq!(
            "12".parse::<Selection>().expect("a cluster"),
            Selection::Cluster(12)
        );
        for text in [
            "",
            "12.",
            ".3",
            "12.3.4",
            "-1",
            "twelve",
            "1.-1",
            "99999999999",
        ] {
            assert!(text.parse::<Selection>().is_err(), "{text}");
        }
    }
}
