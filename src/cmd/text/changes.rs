//! Compares two reports of `poolcast run` in one directory, before and after the log has grown.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use poolcast_base::output;

/// Maximum number of jobs with a changed answer that are listed.
const MAX_NAMED: usize = 10;

/// Changes since the previous run.
#[derive(Debug, PartialEq, Serialize)]
pub(in crate::cmd) struct RunChanges {
    /// Last event of the log in the previous run, epoch ms.
    earlier_log_end_ms: i64,
    /// Holds that the previous run did not have; negative if it read another log.
    new_holds: i64,
    /// The best model of the previous run.
    earlier_best: BestScore,
    /// The best model now.
    best: BestScore,
    /// Number of jobs that were held in the previous run and still are.
    still_held: usize,
    /// Jobs among them whose answer has changed.
    other_answers: Vec<OtherAnswer>,
}

/// A best model and its score on later holds.
#[derive(Debug, PartialEq, Serialize)]
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
    /// The job, as `cluster.proc`.
    job: String,
    /// The answer of the previous run.
    was: String,
    /// The answer now.
    is: String,
}

impl RunChanges {
    /// Compares the reports of two runs. Returns `None` if both have read the same logs, or if the
    /// previous report has another format, which an earlier build may have written.
    pub(in crate::cmd) fn between(before: &Value, after: &Value) -> Option<RunChanges> {
        if before["events"]["sources"] == after["events"]["sources"] {
            return None;
        }
        let earlier_log_end_ms = before["events"]["end_ms"].as_i64()?;
        let earlier_best = BestScore::of(before)?;
        let best = BestScore::of(after)?;
        let holds = |report: &Value| report["events"]["events_by_number"]["12"].as_i64();
        let earlier_answers = answers(before);
        let mut still_held = 0;
        let mut other_answers = Vec::new();
        for (job, is) in answers(after) {
            let Some(was) = earlier_answers.get(&job) else {
                continue;
            };
            still_held += 1;
            if *was != is {
                other_answers.push(OtherAnswer {
                    job: job.1,
                    was: was.clone(),
                    is,
                });
            }
        }

        Some(RunChanges {
            earlier_log_end_ms,
            new_holds: holds(after).unwrap_or(0) - holds(before).unwrap_or(0),
            earlier_best,
            best,
            still_held,
            other_answers,
        })
    }

    /// Describes the changes in several lines of text.
    pub(in crate::cmd) fn text(&self) -> String {
        let mut text = format!(
            "Since the previous run, whose log ended {}\n  {}\n  best before: {}\n  best now: {}\n",
            output::utc_time(self.earlier_log_end_ms),
            self.holds_text(),
            self.earlier_best.text(),
            self.best.text()
        );
        text.push_str(&format!(
            "  {} still held, {} of them with a new answer\n",
            output::counted(self.still_held, "job"),
            self.other_answers.len()
        ));
        for other in self.other_answers.iter().take(MAX_NAMED) {
            text.push_str(&format!(
                "    {}: {}, was {}\n",
                other.job, other.is, other.was
            ));
        }
        if self.other_answers.len() > MAX_NAMED {
            text.push_str("    ...\n");
        }
        text
    }

    fn holds_text(&self) -> String {
        let count = usize::try_from(self.new_holds.unsigned_abs()).unwrap_or(usize::MAX);
        let more = if self.new_holds < 0 { "fewer" } else { "more" };
        output::counted(count, &format!("{more} hold"))
    }
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

/// The action for each held job of a report, by access point and job.
fn answers(report: &Value) -> BTreeMap<(String, String), String> {
    let mut answers = BTreeMap::new();
    for advice in report["advice"]["advice"].as_array().into_iter().flatten() {
        let word = |key: &str| advice[key].as_str().unwrap_or_default().to_owned();
        answers.insert((word("ap"), word("job")), word("action"));
    }
    answers
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(holds: i64, trial: u64, advice: &[(&str, &str)]) -> Value {
        let advice: Vec<Value> = advice
            .iter()
            .map(|(job, action)| json!({"ap": "ap", "job": job, "action": action}))
            .collect();
        json!({
            "events": {
                "end_ms": 1000 * holds,
                "events_by_number": {"12": holds},
                "sources": [{"name": "EventLog", "bytes": 10_000 * holds}],
            },
            "best": {"trial": trial},
            "evaluation": {"methods": [
                {"name": "xgb", "scores": [{"name": "roc_auc", "value": 0.5 + 0.01 * trial as f64}]},
            ]},
            "advice": {"advice": advice},
        })
    }

    #[test]
    fn jobs_with_another_answer_are_named() {
        let before = report(
            10,
            3,
            &[("1.0", "release"), ("2.0", "fix"), ("3.0", "none")],
        );
        let after = report(
            14,
            7,
            &[("2.0", "release"), ("3.0", "none"), ("4.0", "fix")],
        );
        let changes = RunChanges::between(&before, &after).expect("two reports");
        insta::assert_snapshot!(changes.text(), @"
        Since the previous run, whose log ended 1970-01-01 00:00:10 UTC
          4 more holds
          best before: trial 3, xgb, ROC-AUC on later holds 0.530
          best now: trial 7, xgb, ROC-AUC on later holds 0.570
          2 jobs still held, 1 of them with a new answer
            2.0: release, was fix
        ");
    }

    #[test]
    fn reports_of_other_formats_are_not_compared() {
        let after = report(2, 1, &[("1.0", "fix")]);
        for before in [
            json!({"other": []}),
            Value::Null,
            json!({"events": {"end_ms": 5}}),
        ] {
            assert_eq!(RunChanges::between(&before, &after), None);
        }
        let other_settings = report(2, 5, &[("1.0", "release")]);
        assert_eq!(RunChanges::between(&other_settings, &after), None);
    }
}
