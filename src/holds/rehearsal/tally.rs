//! Counts settled answers: the right ones of each kind, the successes kept, and the runs wasted.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::member_tally::MemberTally;
use super::rehearsed_answer::RehearsedAnswer;
use super::schedule::RehearsalSettings;
use super::settled::SettledAnswers;
use crate::answers::GroupShares;
use crate::decision::{AnswerFirmness, HoldAction, answer_rank, answer_words};

/// Number of holds below which a usual `periodic_release` expression releases a job.
const PERIODIC_RELEASE_HOLDS: u32 = 4;

/// A count of cases, and of those among them to which something applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Proportion {
    /// Cases to which it applies.
    pub count: usize,
    /// All cases.
    pub of: usize,
}

impl Proportion {
    fn add(&mut self, applies: bool) {
        self.count += usize::from(applies);
        self.of += 1;
    }

    /// The share; `None` without cases.
    pub fn share(self) -> Option<f64> {
        (self.of > 0).then(|| self.count as f64 / self.of as f64)
    }
}

/// One kind of answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KindTally {
    /// The action.
    pub action: HoldAction,
    /// The certainty of the action.
    pub firmness: Option<AnswerFirmness>,
    /// True if the rule for the hold code decided.
    pub is_by_rule: bool,
    /// Answers given.
    pub given: usize,
    /// Right answers among those whose outcome is known.
    pub right: Proportion,
    /// Lower bound of the share of right answers, at a confidence of 90 %, where answers of one
    /// moment share what happened; `None` without outcomes.
    pub lower: Option<f64>,
}

/// The successes that a strategy keeps, the runs that it wastes, and what it says about faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StrategyTally {
    /// Jobs that are released, of those that would succeed now.
    pub kept: Proportion,
    /// Jobs that are released, of those that would fail now.
    pub wasted: Proportion,
    /// Jobs whose kind of fault is right, of those with a known one: the strategy repairs or removes
    /// a job with a permanent fault, and releases one with a passing fault, now or later.
    pub kind_right: Proportion,
}

/// The counts of a rehearsal.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RehearsalTally {
    /// Answers given, without the holds on purpose.
    pub answers: usize,
    /// Kinds of answers, in display order.
    pub kinds: Vec<KindTally>,
    /// Firm answers that were right.
    pub firm_right: Proportion,
    /// Firm answers, of all.
    pub firm: Proportion,
    /// The answers, with each probe followed by what it shows: if one succeeds, the other jobs of
    /// its cause are released.
    pub advice: StrategyTally,
    /// Jobs with the answer release or probe, of those that would succeed now.
    pub told: Proportion,
    /// Mean probability of success that the page states for jobs with the answer release; `None`
    /// without such answers. Counted are those with a stated probability and a known outcome.
    pub stated_for_release: Option<f64>,
    /// Jobs among the same that would succeed now.
    pub succeeding_release: Proportion,
    /// Jobs with the answer release, of those with a permanent fault.
    pub permanent_released: Proportion,
    /// Jobs released as a probe, of those with a permanent fault.
    pub permanent_probed: Proportion,
    /// A usual `periodic_release` expression: `NumHolds < 4`.
    pub periodic_release: StrategyTally,
    /// The release of all held jobs.
    pub release_all: StrategyTally,
    /// The rules for hold codes alone, without an answer where there is no rule.
    pub rules: StrategyTally,
    /// The best possible answers: a release for each job that would succeed now, and for no other.
    pub best_possible: StrategyTally,
    /// Each member of the answers alone, and all together (docs/features.md); empty if the base is
    /// the only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberTally>,
}

/// A probed cause: the moment, and the index of its first hold.
type ProbedCause = (u32, usize);

impl RehearsalTally {
    /// Counts `settled` answers of a rehearsal with `settings`, and scores the members that gave them.
    pub fn of_rehearsal(
        settled: &SettledAnswers<'_>,
        settings: &RehearsalSettings<'_>,
    ) -> RehearsalTally {
        RehearsalTally {
            members: MemberTally::of_rehearsal(settled, settings),
            ..RehearsalTally::new(settled)
        }
    }

    /// Counts `settled` answers.
    pub(super) fn new(settled: &SettledAnswers<'_>) -> RehearsalTally {
        let mut tally = RehearsalTally::default();
        let probes = successful_probes(settled);
        let mut kinds: BTreeMap<u8, (KindTally, GroupShares)> = BTreeMap::new();
        let mut stated = 0.0;
        for (answer, truth) in &settled.answers {
            if answer.action == HoldAction::Leave {
                continue;
            }
            tally.answers += 1;
            let is_right = truth.is_right(answer.action);
            add_kind(&mut kinds, answer, is_right);
            tally.add_kind_of_fault(answer, truth.is_passing);
            tally.add_firm(answer, is_right);
            if let Some(succeeds) = truth.succeeds_now {
                tally.add_strategies(
                    answer,
                    succeeds,
                    probes.get(&answer.probed_cause()) == Some(&true),
                );
                let is_release = answer.action == HoldAction::Release;
                if let Some(probability) = answer.stated.filter(|_| is_release) {
                    stated += probability;
                    tally.succeeding_release.add(succeeds);
                }
            }
        }
        let released = tally.succeeding_release.of;
        tally.stated_for_release = (released > 0).then(|| stated / released as f64);
        tally.kinds = kinds
            .into_values()
            .map(|(kind, shares)| KindTally {
                lower: (kind.right.of > 0).then(|| shares.lower_bound()),
                ..kind
            })
            .collect();
        tally
    }

    /// Returns true if the answers said more often than the rules for hold codes alone whether a fault
    /// passes or stays. Rules alone release nothing, so the successes that are kept and the runs that
    /// are wasted say nothing about them.
    pub fn beats_rules(&self) -> bool {
        self.advice.kind_right.count > self.rules.kind_right.count
    }

    /// Returns the strategies with their names, in display order.
    pub fn strategies(&self) -> impl Iterator<Item = (&'static str, StrategyTally)> {
        [
            ("this advice, after its probes", self.advice),
            ("periodic_release, NumHolds < 4", self.periodic_release),
            ("release all", self.release_all),
            ("rules for hold codes alone", self.rules),
            ("best possible", self.best_possible),
        ]
        .into_iter()
    }

    fn add_kind_of_fault(&mut self, answer: &RehearsedAnswer, is_passing: Option<bool>) {
        let Some(is_passing) = is_passing else {
            return;
        };
        let is_below_limit = answer.holds < PERIODIC_RELEASE_HOLDS;
        for (strategy, says_passing) in [
            (&mut self.advice, says_passing(answer.action)),
            (&mut self.periodic_release, Some(is_below_limit)),
            (&mut self.release_all, Some(true)),
            (&mut self.rules, answer.rule.and_then(says_passing)),
            (&mut self.best_possible, Some(is_passing)),
        ] {
            strategy.kind_right.add(says_passing == Some(is_passing));
        }
        if !is_passing {
            self.permanent_released
                .add(answer.action == HoldAction::Release);
            self.permanent_probed.add(answer.releases_as_probe());
        }
    }

    fn add_firm(&mut self, answer: &RehearsedAnswer, is_right: Option<bool>) {
        let is_firm = answer.firmness == Some(AnswerFirmness::Firm);
        self.firm.add(is_firm);
        if let Some(is_right) = is_right.filter(|_| is_firm) {
            self.firm_right.add(is_right);
        }
    }

    fn add_strategies(&mut self, answer: &RehearsedAnswer, succeeds: bool, probe_succeeds: bool) {
        let is_probe_cause = answer.action == HoldAction::Probe;
        let is_released = answer.action == HoldAction::Release
            || answer.releases_as_probe()
            || is_probe_cause && probe_succeeds;
        self.advice.add(is_released, succeeds);
        self.periodic_release
            .add(answer.holds < PERIODIC_RELEASE_HOLDS, succeeds);
        self.release_all.add(true, succeeds);
        self.rules
            .add(answer.rule == Some(HoldAction::Release), succeeds);
        self.best_possible.add(succeeds, succeeds);
        if succeeds {
            self.told
                .add(is_probe_cause || answer.action == HoldAction::Release);
        }
    }
}

impl KindTally {
    /// Returns the answer in capitals, and if a rule decided.
    pub fn words(&self) -> String {
        let by_rule = if self.is_by_rule { " (by rule)" } else { "" };
        format!("{}{by_rule}", answer_words(self.action, self.firmness))
    }
}

impl StrategyTally {
    fn add(&mut self, is_released: bool, succeeds: bool) {
        let jobs = if succeeds {
            &mut self.kept
        } else {
            &mut self.wasted
        };
        jobs.add(is_released);
    }
}

impl RehearsedAnswer {
    /// Returns true if the job itself is released as a probe.
    fn releases_as_probe(&self) -> bool {
        self.action == HoldAction::Probe && self.is_probe
    }

    fn probed_cause(&self) -> ProbedCause {
        (self.moment, self.first_of_cause)
    }
}

/// Returns true if `action` says that the fault passes, and false if it says that the fault stays.
fn says_passing(action: HoldAction) -> Option<bool> {
    match action {
        HoldAction::Release | HoldAction::Probe | HoldAction::Later => Some(true),
        HoldAction::Fix | HoldAction::Remove => Some(false),
        HoldAction::Leave | HoldAction::None => None,
    }
}

/// Returns the probed causes, and for each if one of its probes would succeed.
fn successful_probes(settled: &SettledAnswers<'_>) -> HashMap<ProbedCause, bool> {
    let mut probes: HashMap<ProbedCause, bool> = HashMap::new();
    for (answer, truth) in &settled.answers {
        if answer.releases_as_probe() {
            let succeeds = truth.succeeds_now == Some(true);
            *probes.entry(answer.probed_cause()).or_default() |= succeeds;
        }
    }
    probes
}

fn add_kind(
    kinds: &mut BTreeMap<u8, (KindTally, GroupShares)>,
    answer: &RehearsedAnswer,
    is_right: Option<bool>,
) {
    let rank = 2 * answer_rank(answer.action, answer.firmness) + u8::from(answer.is_by_rule);
    let (kind, shares) = kinds.entry(rank).or_insert_with(|| {
        let kind = KindTally {
            action: answer.action,
            firmness: answer.firmness,
            is_by_rule: answer.is_by_rule,
            given: 0,
            right: Proportion::default(),
            lower: None,
        };
        (kind, GroupShares::default())
    });
    kind.given += 1;
    if let Some(is_right) = is_right {
        kind.right.add(is_right);
        shares.add(answer.moment, is_right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rehearsal::KnownOutcome;
    use crate::rehearsal::rehearsed_answer::test_answer;

    /// Returns the counts of one answer about a fault that passes, for which the rule says FIX.
    fn tally_of(action: HoldAction) -> RehearsalTally {
        let answer = RehearsedAnswer {
            rule: Some(HoldAction::Fix),
            ..test_answer(action, None)
        };
        let truth = |is_passing| KnownOutcome {
            succeeds_now: None,
            is_passing,
            is_perhaps_repaired: false,
        };
        let answers = vec![(&answer, truth(Some(true))), (&answer, truth(None))];
        RehearsalTally::new(&SettledAnswers { answers })
    }

    #[test]
    fn answers_beat_rules_if_they_know_more_faults() {
        assert!(tally_of(HoldAction::Later).beats_rules());
        assert!(!tally_of(HoldAction::Fix).beats_rules(), "as good as rules");
        assert!(!RehearsalTally::default().beats_rules(), "nothing is known");
    }

    #[test]
    fn stated_probabilities_of_releases_are_compared_with_their_outcomes() {
        let answers = [
            (test_answer(HoldAction::Release, Some(0.9)), Some(true)),
            (test_answer(HoldAction::Release, Some(0.7)), Some(false)),
            (test_answer(HoldAction::Release, Some(0.1)), None),
            (test_answer(HoldAction::Release, None), Some(true)),
            (test_answer(HoldAction::Fix, Some(0.2)), Some(true)),
        ];
        let known = |succeeds_now| KnownOutcome {
            succeeds_now,
            ..KnownOutcome::default()
        };
        let settled = SettledAnswers {
            answers: answers
                .iter()
                .map(|(answer, succeeds)| (answer, known(*succeeds)))
                .collect(),
        };
        let tally = RehearsalTally::new(&settled);
        assert_eq!(tally.stated_for_release, Some(0.8));
        assert_eq!(tally.succeeding_release, Proportion { count: 1, of: 2 });
        assert_eq!(tally.kinds.iter().map(|kind| kind.given).sum::<usize>(), 5);
    }
}
