//! How far a job got, in Slurm's words.

use serde::{Deserialize, Serialize};

/// How far a job got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueState {
    /// It waits, for whatever.
    Pending,
    /// It has its nodes.
    Running,
    /// Its work has ended, but it has its nodes still.
    Completing,
    /// It has left.
    Ended,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobOutcome {
    /// Its script ended with 0.
    Completed,
    /// Its time limit ended it.
    Timeout,
    /// It lost its nodes: they failed, or another job was preferred.
    Lost,
    /// Its script failed, or it had too little memory.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}

impl JobOutcome {
    /// In words, of a job.
    pub fn describe(self) -> &'static str {
        match self {
            JobOutcome::Completed => "has completed",
            JobOutcome::Timeout => "has reached its time limit",
            JobOutcome::Lost => "has lost its nodes",
            JobOutcome::Failed => "has failed",
            JobOutcome::Cancelled => "was cancelled",
        }
    }

    /// Whether a job like it may do better.
    pub fn is_worth_another(self) -> bool {
        match self {
            JobOutcome::Completed | JobOutcome::Timeout | JobOutcome::Lost => true,
            JobOutcome::Failed | JobOutcome::Cancelled => false,
        }
    }
}

/// What the words of `job_state` say. The first is the state, the others are flags; up to 22.05 a
/// flag takes the place of the state. `None` for words of a Slurm that is not known.
pub(super) fn read_state(words: &[String]) -> Option<(QueueState, Option<JobOutcome>)> {
    let is = |flag: &str| words.iter().any(|word| word == flag);
    if is("REQUEUED") || is("REQUEUE_HOLD") || is("REQUEUE_FED") || is("SPECIAL_EXIT") {
        return Some((QueueState::Pending, None));
    }
    // `CANCELLED by 0` is how sacct writes it.
    let word = words.first()?.split(' ').next()?;
    let (state, outcome) = match word {
        "PENDING" | "RESV_DEL_HOLD" => (QueueState::Pending, None),
        "RUNNING" | "SUSPENDED" | "CONFIGURING" | "RESIZING" | "SIGNALING" | "STAGE_OUT"
        | "STOPPED" | "POWER_UP_NODE" => (QueueState::Running, None),
        "COMPLETING" | "LAUNCH_FAILED" | "UPDATE_DB" => (QueueState::Completing, None),
        "COMPLETED" => (QueueState::Ended, Some(JobOutcome::Completed)),
        "TIMEOUT" | "DEADLINE" => (QueueState::Ended, Some(JobOutcome::Timeout)),
        "NODE_FAIL" | "BOOT_FAIL" | "PREEMPTED" | "RECONFIG_FAIL" => {
            (QueueState::Ended, Some(JobOutcome::Lost))
        }
        "FAILED" | "OUT_OF_MEMORY" => (QueueState::Ended, Some(JobOutcome::Failed)),
        "CANCELLED" | "REVOKED" => (QueueState::Ended, Some(JobOutcome::Cancelled)),
        _ => return None,
    };
    if state == QueueState::Ended && is("COMPLETING") {
        return Some((QueueState::Completing, outcome));
    }
    Some((state, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_older_and_newer_slurms_are_known() {
        let read = |words: &str| {
            let words: Vec<String> = words.split('+').map(str::to_owned).collect();
            read_state(&words)
        };
        for (words, expected) in [
            ("PENDING", Some((QueueState::Pending, None))),
            ("COMPLETING", Some((QueueState::Completing, None))),
            ("RUNNING+CONFIGURING", Some((QueueState::Running, None))),
            (
                "COMPLETED+COMPLETING",
                Some((QueueState::Completing, Some(JobOutcome::Completed))),
            ),
            ("PREEMPTED+REQUEUED", Some((QueueState::Pending, None))),
            (
                "CANCELLED by 0",
                Some((QueueState::Ended, Some(JobOutcome::Cancelled))),
            ),
            ("DREAMING", None),
        ] {
            assert_eq!(read(words), expected, "{words}");
        }
    }
}
