//! Compares two reports on held jobs, the later one of a longer log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use poolcast_advice::{JobEnd, JobId, find_ends};
use poolcast_base::{escape, output};
use poolcast_events::EventStore;

/// A job, by its access point and its number there.
type JobAtAccessPoint = (String, JobId);

/// What a report says about held jobs.
#[derive(Debug)]
pub(in crate::cmd) struct HeldReport {
    /// End of its log, or else its prediction time, epoch ms.
    log_end_ms: i64,
    holds: i64,
    /// The best model, if there were trials.
    best: Option<BestScore>,
    jobs: BTreeMap<JobAtAccessPoint, ReportedJob>,
    /// Number of jobs by the name of what failed.
    things: BTreeMap<String, u64>,
}

/// The keys of a document with advice that are compared.
#[derive(Deserialize)]
struct ListedAdvice {
    log_end_ms: Option<i64>,
    asked_ms: i64,
    holds: i64,
    held: usize,
    things: Vec<ChangedThing>,
    advice: Vec<ReportedJob>,
}

/// A held job with its answer.
#[derive(Debug, Deserialize)]
struct ReportedJob {
    ap: String,
    job: JobId,
    action: String,
    held_since_ms: i64,
}

/// Changes since an earlier report on the same access points.
#[derive(Debug, PartialEq, Serialize)]
pub(in crate::cmd) struct RunChanges {
    /// Last event of the log in the earlier report, or else its prediction time, epoch ms.
    earlier_log_end_ms: i64,
    /// Holds that the earlier report did not have; negative if it is on another log.
    new_holds: i64,
    /// The best model of the earlier report; absent if it had no trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier_best: Option<BestScore>,
    /// The best model now; absent if there are no trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<BestScore>,
    /// Number of jobs that were held in the earlier report and still are.
    still_held: usize,
    /// Number of jobs among them that were released or started in between, and are held again.
    held_again: usize,
    /// Jobs among them whose answer has changed.
    other_answers: Vec<OtherAnswer>,
    /// Jobs that are held now, and were not.
    new_jobs: Vec<NewJob>,
    /// Jobs that were held, and are not any more.
    gone_jobs: Vec<GoneJob>,
    /// Things that jobs are held for now, and were not.
    new_things: Vec<ChangedThing>,
    /// Things that jobs were held for, and are not any more.
    gone_things: Vec<ChangedThing>,
}

/// A best model and its score on later holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct BestScore {
    /// Its trial, counted from 1.
    trial: u64,
    /// Its pipeline or architecture.
    model: String,
    /// Its ROC-AUC on the test split.
    roc_auc: Option<f64>,
}

/// A held job whose answer has changed.
#[derive(Debug, PartialEq, Serialize)]
struct OtherAnswer {
    /// The job's access point.
    ap: String,
    /// The job, as `cluster.proc`.
    job: JobId,
    /// The answer of the earlier report.
    was: String,
    /// The answer now.
    is: String,
}

/// A job that was not held in the earlier report.
#[derive(Debug, PartialEq, Serialize)]
struct NewJob {
    /// The job's access point.
    ap: String,
    /// The job, as `cluster.proc`.
    job: JobId,
    /// The answer.
    is: String,
}

/// A job that is not held any more.
#[derive(Debug, PartialEq, Serialize)]
struct GoneJob {
    /// The job's access point.
    ap: String,
    /// The job, as `cluster.proc`.
    job: JobId,
    /// The answer of the earlier report.
    was: String,
    /// What the log shows of it.
    state: GoneState,
}

/// What the log shows of a job that is not held any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
enum GoneState {
    /// It exited with code 0.
    Succeeded,
    /// It exited with another code, or by a signal.
    Failed,
    /// It was removed from the queue.
    Removed,
    /// It was released, and has not ended.
    Released,
    /// The log does not have the job.
    Unknown,
}

/// A thing that jobs are held for in one of two reports.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct ChangedThing {
    /// Its name.
    thing: String,
    /// Number of jobs that are held for it in this report.
    jobs: u64,
}

impl HeldReport {
    /// Reads the report of a run, or what `poolcast advise --json` prints of all held jobs; `None`
    /// for any other document.
    pub(in crate::cmd) fn read(report: &Value) -> Option<HeldReport> {
        let advice = match is_run_report(report) {
            true => &report["advice"],
            false => report,
        };
        let advice = ListedAdvice::deserialize(advice).ok()?;
        if advice.held != advice.advice.len() {
            return None;
        }
        let things = advice.things.into_iter();
        Some(HeldReport {
            log_end_ms: advice.log_end_ms.unwrap_or(advice.asked_ms),
            holds: advice.holds,
            best: BestScore::of(report),
            jobs: advice
                .advice
                .into_iter()
                .map(|listed| ((listed.ap.clone(), listed.job), listed))
                .collect(),
            things: things.map(|one| (one.thing, one.jobs)).collect(),
        })
    }

    /// The things that `other` does not have.
    fn things_without(&self, other: &HeldReport) -> Vec<ChangedThing> {
        let things = self.things.iter();
        let things = things.filter(|(thing, _)| !other.things.contains_key(*thing));
        let changed = |(thing, jobs): (&String, &u64)| ChangedThing {
            thing: thing.clone(),
            jobs: *jobs,
        };
        things.map(changed).collect()
    }
}

/// Returns true if `report` is the report of a run, which has advice as one of several parts.
pub(in crate::cmd) fn is_run_report(report: &Value) -> bool {
    report["advice"].is_object()
}

impl RunChanges {
    /// Compares two reports. `store` has the events behind the later one, and shows what became of
    /// the jobs that are not held any more.
    pub(in crate::cmd) fn between(
        before: &HeldReport,
        after: &HeldReport,
        store: Option<&EventStore>,
    ) -> RunChanges {
        let mut changes = RunChanges {
            earlier_log_end_ms: before.log_end_ms,
            new_holds: after.holds - before.holds,
            earlier_best: before.best.clone(),
            best: after.best.clone(),
            still_held: 0,
            held_again: 0,
            other_answers: Vec::new(),
            new_jobs: Vec::new(),
            gone_jobs: gone_jobs(before, after, store),
            new_things: after.things_without(before),
            gone_things: before.things_without(after),
        };
        for (key, now) in &after.jobs {
            let (ap, job, is) = (now.ap.clone(), now.job, now.action.clone());
            let Some(then) = before.jobs.get(key) else {
                changes.new_jobs.push(NewJob { ap, job, is });
                continue;
            };
            changes.still_held += 1;
            changes.held_again += usize::from(now.held_since_ms != then.held_since_ms);
            if then.action != is {
                let was = then.action.clone();
                changes.other_answers.push(OtherAnswer { ap, job, was, is });
            }
        }
        changes
    }

    /// Describes the changes in several lines of text, which name at most `most` jobs or things of a kind.
    pub(in crate::cmd) fn text(&self, most: usize) -> String {
        let mut text = format!(
            "Since the previous report, whose log ended {}\n  {}\n",
            output::utc_time(self.earlier_log_end_ms),
            self.holds_text(),
        );
        for (when, best) in [("before", &self.earlier_best), ("now", &self.best)] {
            let best = best.iter();
            text.extend(best.map(|best| format!("  best {when}: {}\n", best.text())));
        }
        text += &format!(
            "  {} still held, {} of them in another hold, {} with a new answer\n",
            output::counted(self.still_held, "job"),
            self.held_again,
            self.other_answers.len()
        );
        let others = self.other_answers.iter();
        let others = others.map(|other| (other.job, format!("{}, was {}", other.is, other.was)));
        text += &named("    ", most, others);
        text += &counted_line(self.new_jobs.len(), "new held job", "");
        text += &named(
            "    ",
            most,
            self.new_jobs.iter().map(|new| (new.job, new.is.clone())),
        );
        text += &self.gone_text(most);
        for (things, what) in [(&self.new_things, "new"), (&self.gone_things, "gone")] {
            let of_thing = |one: &ChangedThing| output::counted(one.jobs as usize, "job");
            text += &counted_line(things.len(), &format!("{what} thing"), "");
            text += &named(
                "    ",
                most,
                things.iter().map(|one| (&one.thing, of_thing(one))),
            );
        }
        text
    }

    /// The jobs that are not held any more, by what the log shows of them.
    fn gone_text(&self, most: usize) -> String {
        let mut text = counted_line(self.gone_jobs.len(), "job", " no longer held");
        let mut by_state: BTreeMap<GoneState, Vec<&GoneJob>> = BTreeMap::new();
        for gone in &self.gone_jobs {
            by_state.entry(gone.state).or_default().push(gone);
        }
        for (state, jobs) in by_state {
            let count = output::with_commas(jobs.len() as u64);
            text += &format!("    {count} {}\n", state.words());
            let jobs = jobs.iter();
            text += &named(
                "      ",
                most,
                jobs.map(|gone| (gone.job, format!("was {}", gone.was))),
            );
        }
        text
    }

    fn holds_text(&self) -> String {
        let count = usize::try_from(self.new_holds.unsigned_abs()).unwrap_or(usize::MAX);
        let more = if self.new_holds < 0 { "fewer" } else { "more" };
        output::counted(count, &format!("{more} hold"))
    }
}

impl GoneState {
    fn words(self) -> &'static str {
        match self {
            GoneState::Succeeded => "succeeded",
            GoneState::Failed => "failed",
            GoneState::Removed => "removed",
            GoneState::Released => "released, and not ended yet",
            GoneState::Unknown => "not in the log",
        }
    }
}

/// Returns the jobs of `before` that `after` does not have.
fn gone_jobs(before: &HeldReport, after: &HeldReport, store: Option<&EventStore>) -> Vec<GoneJob> {
    let jobs = before.jobs.iter();
    let gone: BTreeMap<&JobAtAccessPoint, &ReportedJob> = jobs
        .filter(|(job, _)| !after.jobs.contains_key(*job))
        .collect();
    let ends = store.map(|store| find_ends(store, gone.keys().copied()));
    let ends = ends.unwrap_or_default();
    let state = |key: &JobAtAccessPoint| match ends.get(key) {
        None => GoneState::Unknown,
        Some(None) => GoneState::Released,
        Some(Some(JobEnd::Exited(0))) => GoneState::Succeeded,
        Some(Some(JobEnd::Removed)) => GoneState::Removed,
        Some(Some(_)) => GoneState::Failed,
    };
    let gone_job = |(key, then): (&JobAtAccessPoint, &ReportedJob)| GoneJob {
        ap: then.ap.clone(),
        job: then.job,
        was: then.action.clone(),
        state: state(key),
    };
    gone.into_iter().map(gone_job).collect()
}

/// A line with the number of these; empty if there are none.
fn counted_line(count: usize, what: &str, state: &str) -> String {
    match count {
        0 => String::new(),
        _ => format!("  {}{state}\n", output::counted(count, what)),
    }
}

/// A line for each of the first `most` names with its words, and the number of the others.
fn named(
    indent: &str,
    most: usize,
    all: impl ExactSizeIterator<Item = (impl ToString, String)>,
) -> String {
    let more = all.len().saturating_sub(most);
    let mut text = String::new();
    for (name, words) in all.take(most) {
        let line = format!("{}: {words}", name.to_string());
        text += &format!("{indent}{}\n", escape::value(&line));
    }
    if more > 0 {
        text += &format!("{indent}and {} more\n", output::with_commas(more as u64));
    }
    text
}

impl BestScore {
    fn of(report: &Value) -> Option<BestScore> {
        let method = &report["evaluation"]["methods"][0];
        let scores = method["scores"].as_array().map(Vec::as_slice);
        let roc_auc = scores
            .unwrap_or_default()
            .iter()
            .find(|score| score["name"] == "roc_auc");
        Some(BestScore {
            trial: report["best"]["trial"].as_u64()?,
            model: method["name"].as_str()?.to_owned(),
            roc_auc: roc_auc.and_then(|score| score["value"].as_f64()),
        })
    }

    fn text(&self) -> String {
        let roc_auc = self
            .roc_auc
            .map_or("undefined".to_owned(), |value| format!("{value:.3}"));
        format!(
            "trial {}, {}, ROC-AUC on later holds {roc_auc}",
            self.trial, self.model
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The report of a run with `holds` holds and these held jobs: each with its answer.
    fn report(holds: i64, trial: Option<u64>, advice: &[(&str, &str)]) -> Value {
        let jobs: Vec<Value> = advice
            .iter()
            .map(|(job, action)| json!({"ap": "ap", "job": job, "action": action, "held_since_ms": holds}))
            .collect();
        let things: Vec<Value> = advice
            .iter()
            .map(|(_, action)| json!({"thing": format!("{action} it"), "jobs": 1}))
            .collect();
        let mut report = json!({
            "advice": {
                "log_end_ms": 1000 * holds,
                "asked_ms": 1000 * holds,
                "holds": holds,
                "held": jobs.len(),
                "advice": jobs,
                "things": things,
            },
        });
        if let Some(trial) = trial {
            report["best"] = json!({"trial": trial});
            let score = json!({"name": "roc_auc", "value": 0.5 + 0.01 * trial as f64});
            report["evaluation"] = json!({"methods": [{"name": "xgb", "scores": [score]}]});
        }
        report
    }

    fn changes(before: &Value, after: &Value) -> RunChanges {
        let read = |report| HeldReport::read(report).expect("a report");
        RunChanges::between(&read(before), &read(after), None)
    }

    #[test]
    fn changed_new_and_gone_jobs_are_named() {
        let before = [("1.0", "release"), ("2.0", "fix"), ("3.0", "none")];
        let after = [("2.0", "release"), ("3.0", "none"), ("4.0", "later")];
        let changes = changes(&report(10, Some(3), &before), &report(14, Some(7), &after));
        insta::assert_snapshot!(changes.text(10), @"
        Since the previous report, whose log ended 1970-01-01 00:00:10 UTC
          4 more holds
          best before: trial 3, xgb, ROC-AUC on later holds 0.530
          best now: trial 7, xgb, ROC-AUC on later holds 0.570
          2 jobs still held, 2 of them in another hold, 1 with a new answer
            2.0: release, was fix
          1 new held job
            4.0: later
          1 job no longer held
            1 not in the log
              1.0: was release
          1 new thing
            later it: 1 job
          1 gone thing
            fix it: 1 job
        ");
    }

    #[test]
    fn runs_without_trials_are_compared() {
        let jobs: Vec<String> = (1..=12).map(|cluster| format!("{cluster}.0")).collect();
        let held: Vec<(&str, &str)> = jobs.iter().map(|job| (job.as_str(), "fix")).collect();
        let before = report(10, None, &[("99.0", "\u{1b}[2J")]);
        let text = changes(&before, &report(8, None, &held)).text(10);
        insta::assert_snapshot!(text, @r"
        Since the previous report, whose log ended 1970-01-01 00:00:10 UTC
          2 fewer holds
          0 jobs still held, 0 of them in another hold, 0 with a new answer
          12 new held jobs
            1.0: fix
            2.0: fix
            3.0: fix
            4.0: fix
            5.0: fix
            6.0: fix
            7.0: fix
            8.0: fix
            9.0: fix
            10.0: fix
            and 2 more
          1 job no longer held
            1 not in the log
              99.0: was \u{1b}[2J
          1 new thing
            fix it: 1 job
          1 gone thing
            \u{1b}[2J it: 1 job
        ");
    }

    #[test]
    fn other_documents_are_no_reports_on_held_jobs() {
        let whole = report(2, None, &[("1.0", "fix")]);
        assert!(HeldReport::read(&whole["advice"]).is_some());
        let mut of_some = whole.clone();
        of_some["advice"]["held"] = 2.into();
        let mut without_action = whole.clone();
        without_action["advice"]["advice"][0]["action"] = Value::Null;
        let mut of_no_job = whole.clone();
        of_no_job["advice"]["advice"][0]["job"] = "1".into();
        for other in [
            of_some,
            without_action,
            of_no_job,
            json!({"other": []}),
            Value::Null,
            json!([1]),
        ] {
            assert!(HeldReport::read(&other).is_none(), "{other}");
        }
    }
}
