//! The ends of jobs that were held and have left the queue, from the output of `condor_history`.

use std::collections::HashMap;
use std::io::BufRead;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::action::{AnswerFirmness, HoldAction};
use super::cause_words::cause_words;
use super::job_advice::{AdviceGround, JobAdvice};
use super::job_command::{CommandTask, JobCommand};
use super::log_words::one_line;
use super::shared_text::SharedText;
use crate::job_ads::{ListedAd, for_each_history_ad};
use crate::training::wilson_lower;
use poolcast_base::error::hinted;
use poolcast_base::output;

/// The job attributes that this program requests from `condor_history`.
pub const HISTORY_ATTRIBUTES: &str = "JobStatus,ExitCode,ExitBySignal,NumHolds,LastHoldReasonCode,LastHoldReasonSubCode,\
    LastHoldReason,HoldReasonCode,HoldReasonSubCode,HoldReason";

/// HTCondor's `JobStatus` of a removed job.
const REMOVED_STATUS: i64 = 3;

/// HTCondor's `JobStatus` of a completed job.
const COMPLETED_STATUS: i64 = 4;

/// Maximum number of causes whose outcomes are counted apart.
const MAX_CAUSES: usize = 100_000;

/// Number of jobs with a cause from which on other causes with its code do not count.
const MIN_JOBS_OF_CAUSE: usize = 5;

/// Known outcomes from which on they decide where nothing else does.
const MIN_OUTCOMES: usize = 10;

/// Lower bound of a share of outcomes from which on it decides.
const MIN_SHARE: f64 = 0.5;

/// The jobs that were held and have left the queue, by the cause of their last hold.
#[derive(Debug, Default)]
pub struct JobHistory {
    by_cause: HashMap<HoldCause, HistoryOutcomes>,
    by_code: HashMap<(i32, i32), HistoryOutcomes>,
    jobs: usize,
}

/// A hold code and subcode, and the words of the reason that identify the cause.
type HoldCause = (i32, i32, String);

/// Outcomes of the holds of some jobs that have left the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct HistoryOutcomes {
    /// Jobs that succeeded after their last hold.
    succeeded: usize,
    /// Jobs that failed after their last hold.
    failed: usize,
    /// Jobs that were removed. Nothing shows if they could have succeeded.
    removed: usize,
    /// Earlier holds of these jobs, for any reason. Each was followed by another hold.
    held_again: usize,
}

impl JobHistory {
    /// Reads the output of `condor_history`, with `-json` or `-l`, from `input`. Jobs that were never
    /// held do not count, and neither do ads that cannot be read.
    ///
    /// # Errors
    /// Fails if `input` cannot be read, or if it is neither a complete JSON list nor has ads.
    pub fn read(input: impl BufRead) -> Result<JobHistory> {
        let mut history = JobHistory::default();
        history.read_more(input)?;
        Ok(history)
    }

    /// Like [`JobHistory::read`], but adds the jobs to this history.
    ///
    /// # Errors
    /// As [`JobHistory::read`].
    pub fn read_more(&mut self, input: impl BufRead) -> Result<()> {
        for_each_history_ad(input, |ad| self.add(&ad)).with_context(|| {
            hinted(
                "cannot parse the text as output of `condor_history`",
                format!("condor_history -json -attributes {HISTORY_ATTRIBUTES}"),
            )
        })
    }

    fn add(&mut self, ad: &ListedAd) {
        let Some((outcome, prefix)) = HistoryOutcomes::of_job(ad) else {
            return;
        };
        let code = |name: &str| {
            let code = ad.get(&format!("{prefix}{name}")).and_then(Value::as_i64);
            code.and_then(|code| i32::try_from(code).ok())
        };
        let Some(hold_code) = code("HoldReasonCode") else {
            return;
        };
        let hold_subcode = code("HoldReasonSubCode").unwrap_or(0);
        self.jobs += 1;
        self.by_code
            .entry((hold_code, hold_subcode))
            .or_default()
            .add(outcome);
        let reason = ad
            .get(&format!("{prefix}HoldReason"))
            .and_then(Value::as_str);
        let Some(reason) = reason.filter(|_| self.by_cause.len() < MAX_CAUSES) else {
            return;
        };
        let cause = (hold_code, hold_subcode, cause_words(&one_line(reason)));
        self.by_cause.entry(cause).or_default().add(outcome);
    }

    /// Adds what the history shows to each of `advice`. A job that nothing else decides on gets an
    /// answer if the outcomes are clear; no rehearsal has tried such answers.
    pub fn add_to(&self, advice: &mut [JobAdvice]) {
        for one in advice {
            let Some((outcomes, kind)) = self.outcomes(one) else {
                continue;
            };
            if one.action == HoldAction::None
                && let Some(action) = outcomes.clear_action()
            {
                decide(one, action);
            }
            let words = SharedText::from(outcomes.words(kind));
            one.reasons = one.reasons.iter().cloned().chain([words]).collect();
        }
    }

    /// The outcomes of the cause of the hold, or, if there are few, of its code.
    fn outcomes(&self, advice: &JobAdvice) -> Option<(HistoryOutcomes, &'static str)> {
        let code = (advice.hold_code, advice.hold_subcode);
        let reason = advice.reason.as_ref().map(ToString::to_string);
        let of_cause = reason.and_then(|reason| {
            let cause = (code.0, code.1, cause_words(&one_line(&reason)));
            self.by_cause.get(&cause)
        });
        let enough = of_cause.filter(|outcomes| outcomes.jobs() >= MIN_JOBS_OF_CAUSE);
        match enough {
            Some(outcomes) => Some((*outcomes, "cause")),
            None => Some((*self.by_code.get(&code)?, "code")),
        }
    }

    /// Describes the history.
    pub fn words(&self) -> String {
        format!(
            "the history has {} that left the queue after a hold; each shows its last hold and its end",
            output::counted(self.jobs, "job")
        )
    }
}

impl HistoryOutcomes {
    /// Returns the outcome of a job, and the prefix of the attributes of its last hold. Returns
    /// `None` for a job that was never held or has not ended.
    fn of_job(ad: &ListedAd) -> Option<(HistoryOutcomes, &'static str)> {
        let number = |name| ad.get(name).and_then(Value::as_i64);
        let prefix = if ad.contains_key("LastHoldReasonCode") {
            "Last"
        } else {
            // The job left the queue without a release.
            ""
        };
        let mut outcome = HistoryOutcomes {
            held_again: usize::try_from(number("NumHolds").unwrap_or(1).saturating_sub(1)).ok()?,
            ..HistoryOutcomes::default()
        };
        let has_signal = ad.get("ExitBySignal").and_then(Value::as_bool) == Some(true);
        match number("JobStatus")? {
            REMOVED_STATUS => outcome.removed = 1,
            COMPLETED_STATUS if !has_signal && number("ExitCode") == Some(0) => {
                outcome.succeeded = 1;
            }
            COMPLETED_STATUS => outcome.failed = 1,
            _ => return None,
        }
        Some((outcome, prefix))
    }

    fn add(&mut self, other: HistoryOutcomes) {
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.removed += other.removed;
        self.held_again = self.held_again.saturating_add(other.held_again);
    }

    fn jobs(&self) -> usize {
        self.succeeded + self.failed + self.removed
    }

    /// Returns the action if most of the releases with a known outcome ended alike.
    fn clear_action(&self) -> Option<HoldAction> {
        let known = (self.succeeded + self.failed).saturating_add(self.held_again);
        if known < MIN_OUTCOMES {
            return None;
        }
        let share = self.succeeded as f64 / known as f64;
        if wilson_lower(share, known) >= MIN_SHARE {
            Some(HoldAction::Release)
        } else if wilson_lower(1.0 - share, known) >= MIN_SHARE {
            Some(HoldAction::Fix)
        } else {
            None
        }
    }

    fn words(&self, kind: &str) -> String {
        let mut words = format!(
            "of {} in the history whose last hold had this {kind}, {} succeeded after it, {} failed, and {} removed",
            output::counted(self.jobs(), "job"),
            self.succeeded,
            self.failed,
            match self.removed {
                1 => "1 was".to_owned(),
                removed => format!("{removed} were"),
            }
        );
        if self.held_again > 0 {
            let earlier = output::counted(self.held_again, "earlier hold");
            words.push_str(&format!("; {earlier} of these jobs led to another hold"));
        }
        words
    }
}

/// Gives a job without advice the answer `action`.
fn decide(advice: &mut JobAdvice, action: HoldAction) {
    let release = JobCommand::new(CommandTask::Release, &advice.held_id());
    advice.action = action;
    advice.ground = AdviceGround::Record;
    advice.firmness = Some(AnswerFirmness::Possible);
    match action {
        HoldAction::Release => advice.command = release,
        _ => advice.then = release,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history of jobs with the fault of the test job: the status, the exit code and the holds.
    fn history(jobs: &[(i64, i64, i64)]) -> JobHistory {
        let ads: Vec<Value> = (jobs.iter())
            .map(|(status, code, holds)| {
                serde_json::json!({"JobStatus": status, "ExitCode": code, "ExitBySignal": false, "NumHolds": holds,
                    "LastHoldReasonCode": 12, "LastHoldReasonSubCode": 2, "LastHoldReason": "no space on /data"})
            })
            .collect();
        JobHistory::read(serde_json::to_string(&ads).expect("JSON").as_bytes()).expect("read")
    }

    fn undecided() -> JobAdvice {
        JobAdvice {
            action: HoldAction::None,
            hold_code: 12,
            hold_subcode: 2,
            reasons: [].into(),
            ..JobAdvice::of_test_job()
        }
    }

    #[test]
    fn clear_outcomes_decide_where_nothing_else_does() {
        for (jobs, action) in [
            (vec![(4, 0, 1); 12], HoldAction::Release),
            (vec![(4, 1, 1); 12], HoldAction::Fix),
            (vec![(4, 0, 3); 12], HoldAction::Fix),
            (vec![(3, 0, 1); 12], HoldAction::None),
            (vec![(4, 0, 1); 9], HoldAction::None),
            (vec![(4, 0, 2); 12], HoldAction::None),
        ] {
            let mut advice = [undecided()];
            history(&jobs).add_to(&mut advice);
            assert_eq!(advice[0].action, action, "{jobs:?}");
            assert_eq!(advice[0].reasons.len(), 1);
        }
        let mut ruled = [JobAdvice::of_test_job()];
        let before = ruled[0].action;
        history(&[(4, 0, 1); 12]).add_to(&mut ruled);
        assert_eq!(ruled[0].action, before);
    }

    #[test]
    fn the_outcomes_are_put_into_words() {
        let mut advice = [undecided()];
        history(&[(4, 0, 1), (4, 0, 2), (4, 3, 1), (3, 0, 1)]).add_to(&mut advice);
        assert_eq!(
            advice[0].reasons[0].as_str(),
            "of 4 jobs in the history whose last hold had this code, 2 succeeded after it, 1 failed, and 1 was removed; \
             1 earlier hold of these jobs led to another hold"
        );
    }

    #[test]
    fn hostile_ads_do_not_count() {
        let ads = br#"[{"JobStatus": 4}, {"JobStatus": "4", "LastHoldReasonCode": 12}, 7, {"JobStatus": 4, "LastHoldReasonCode": 99999999999},
            {"JobStatus": 4, "NumHolds": -9223372036854775807, "LastHoldReasonCode": 12},
            {"JobStatus": 4, "NumHolds": 9223372036854775807, "LastHoldReasonCode": 12},
            {"JobStatus": 4, "NumHolds": 9223372036854775807, "LastHoldReasonCode": 12},
            {"JobStatus": 4, "NumHolds": 9223372036854775807, "LastHoldReasonCode": 12},
            {"JobStatus": 3, "HoldReasonCode": 12, "HoldReasonSubCode": 2}]"#;
        let history = JobHistory::read(&ads[..]).expect("read");
        assert_eq!(history.jobs, 4);
        history.add_to(&mut [undecided()]);
        assert!(JobHistory::read(&b"{}"[..]).is_err());
    }
}
