//! Parses Slurm's job states.

use serde::{Deserialize, Serialize};

/// The state of a job in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueState {
    /// The job is pending, for any reason.
    Pending,
    /// The job holds its nodes.
    Running,
    /// The job's work has ended, but it still holds its nodes.
    Completing,
    /// The job has left the queue.
    Ended,
    /// The state is not known to this program. The job is alive.
    Unknown,
}

/// The outcome of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobOutcome {
    /// The script exited with code 0.
    Completed,
    /// The time limit ended the job.
    Timeout,
    /// The job lost its nodes: a node failed, or another job preempted it.
    Lost,
    /// The script failed, or ran out of memory.
    Failed,
    /// A user or an administrator cancelled the job.
    Cancelled,
}

impl JobOutcome {
    /// Returns a predicate for messages, such as "has failed".
    pub fn describe(self) -> &'static str {
        match self {
            JobOutcome::Completed => "has completed",
            JobOutcome::Timeout => "has reached its time limit",
            JobOutcome::Lost => "has lost its nodes",
            JobOutcome::Failed => "has failed",
            JobOutcome::Cancelled => "was cancelled",
        }
    }
}

/// Parses the words of `job_state`. The first word is the state, the others are flags. Up to Slurm
/// 22.05 a flag replaces the state.
pub(super) fn read_state(words: &[String]) -> (QueueState, Option<JobOutcome>) {
    let is = |flag: &str| words.iter().any(|word| word == flag);
    if is("REQUEUED") || is("REQUEUE_HOLD") || is("REQUEUE_FED") || is("SPECIAL_EXIT") {
        return (QueueState::Pending, None);
    }
    // `sacct` writes `CANCELLED by 0`.
    let word = words.first().and_then(|word| word.split(' ').next());
    let (state, outcome) = match word.unwrap_or_default() {
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
        _ => (QueueState::Unknown, None),
    };
    if state == QueueState::Ended && is("COMPLETING") {
        return (QueueState::Completing, outcome);
    }
    (state, outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_old_and_new_slurm_are_parsed() {
        let read = |words: &str| {
            let words: Vec<String> = words.split('+').map(str::to_owned).collect();
            read_state(&words)
        };
        for (words, expected) in [
            ("PENDING", (QueueState::Pending, None)),
            ("COMPLETING", (QueueState::Completing, None)),
            ("RUNNING+CONFIGURING", (QueueState::Running, None)),
            (
                "COMPLETED+COMPLETING",
                (QueueState::Completing, Some(JobOutcome::Completed)),
            ),
            ("PREEMPTED+REQUEUED", (QueueState::Pending, None)),
            (
                "CANCELLED by 0",
                (QueueState::Ended, Some(JobOutcome::Cancelled)),
            ),
            ("DREAMING", (QueueState::Unknown, None)),
            ("", (QueueState::Unknown, None)),
        ] {
            assert_eq!(read(words), expected, "{words}");
        }
    }
}
