//! The listing of all jobs by `squeue`.

use anyhow::Result;

use super::listed_job::ListedJob;
use super::queue_json::read_queue_json;
use super::queue_text::{is_queue_text, read_queue_text};
use super::slurm_state::QueueState;

/// All jobs that Slurm knows at one time, including jobs that ended recently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueListing {
    /// The jobs.
    pub jobs: Vec<ListedJob>,
    /// Slurm's last update of the jobs, in epoch seconds; older versions do not report it.
    pub last_update_s: Option<i64>,
    /// Number of invalid rows, which are ignored.
    pub left_out: usize,
}

impl QueueListing {
    /// Parses the output of `squeue`, as JSON or as text with the expected columns.
    ///
    /// # Errors
    /// Fails for invalid output; the error names the line and the field. Also fails if Slurm reports
    /// errors, because the listing may then lack jobs.
    pub fn parse(text: &[u8]) -> Result<QueueListing> {
        let read = if is_queue_text(text) {
            read_queue_text(text)?
        } else {
            read_queue_json(text)?
        };
        Ok(QueueListing {
            jobs: read.jobs,
            last_update_s: read.last_update_s,
            left_out: read.left_out,
        })
    }

    /// Finds the job `name`: `12`, or `12_3` for an array element.
    pub fn find(&self, name: &str) -> Option<&ListedJob> {
        self.jobs.iter().find(|job| job.has_id(name))
    }

    /// Returns the time of the last event of any job, in epoch seconds.
    pub fn last_event_s(&self) -> i64 {
        let mut last_s = self.last_update_s.unwrap_or(0);
        for job in &self.jobs {
            let event_s = match job.state {
                QueueState::Pending | QueueState::Unknown => None,
                QueueState::Running => job.start_s,
                QueueState::Completing | QueueState::Ended => job.end_s,
            };
            last_s = last_s.max(job.submit_s).max(event_s.unwrap_or(0));
        }
        last_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{IdleReason, PendingRole};

    const PLAIN: &str = r#"{"meta": {}, "jobs": [
        {"job_id": 7, "array_job_id": 5, "array_task_id": 1, "array_task_string": "", "job_state": "RUNNING", "state_reason": "None",
         "user_name": "a", "partition": "all", "node_count": 2, "time_limit": 3, "submit_time": 1000, "eligible_time": 1001,
         "start_time": 1002, "end_time": 1182, "priority": 42, "nodes": "n[1-2]", "comment": "x"},
        {"job_id": 5, "array_job_id": 5, "array_task_id": null, "array_task_string": "2-4%1", "job_state": "PENDING",
         "state_reason": "JobArrayTaskLimit", "user_name": "a", "partition": "all,other", "node_count": 2, "time_limit": null,
         "submit_time": 1000, "eligible_time": 0, "start_time": 0, "end_time": 0, "priority": 41, "nodes": "", "comment": ""}]}"#;

    const LATER: &str = r#"{"jobs": [
        {"job_id": 7, "array_job_id": {"set": true, "infinite": false, "number": 5}, "array_task_id": {"set": true, "infinite": false, "number": 1},
         "array_task_string": "", "job_state": ["RUNNING"], "state_reason": "None", "user_name": "a", "partition": "all",
         "node_count": {"set": true, "infinite": false, "number": 2}, "time_limit": {"set": true, "infinite": false, "number": 3},
         "submit_time": {"set": true, "infinite": false, "number": 1000}, "eligible_time": {"set": true, "infinite": false, "number": 1001},
         "start_time": {"set": true, "infinite": false, "number": 1002}, "end_time": {"set": true, "infinite": false, "number": 1182},
         "priority": {"set": true, "infinite": false, "number": 42}, "nodes": "n[1-2]", "comment": "x"},
        {"job_id": 5, "array_job_id": {"set": true, "infinite": false, "number": 5}, "array_task_id": {"set": false, "infinite": false, "number": 0},
         "array_task_string": "2-4%1", "job_state": ["PENDING"], "state_reason": "JobArrayTaskLimit", "user_name": "a", "partition": "all,other",
         "node_count": {"set": true, "infinite": false, "number": 2}, "time_limit": {"set": false, "infinite": true, "number": 0},
         "submit_time": {"set": true, "infinite": false, "number": 1000}, "eligible_time": {"set": true, "infinite": false, "number": 0},
         "start_time": {"set": true, "infinite": false, "number": 0}, "end_time": {"set": true, "infinite": false, "number": 0},
         "priority": {"set": true, "infinite": false, "number": 41}, "nodes": "", "comment": ""}],
        "last_update": {"set": true, "infinite": false, "number": 1005}}"#;

    #[test]
    fn both_forms_say_the_same() {
        let plain = QueueListing::parse(PLAIN.as_bytes()).expect("read");
        let later = QueueListing::parse(LATER.as_bytes()).expect("read");
        assert_eq!(plain.jobs, later.jobs);
        assert_eq!(
            (plain.last_update_s, later.last_update_s),
            (None, Some(1005))
        );
        assert_eq!((plain.last_event_s(), later.last_event_s()), (1002, 1005));
        assert_eq!(plain.jobs[1].jobs, 3);
        assert_eq!(plain.jobs[1].limit_s, None);
        assert_eq!(plain.find("5_1").map(|job| job.id), Some(7));
        assert_eq!(plain.find("5").map(|job| job.jobs), Some(3));
        assert_eq!(
            plain.find("7"),
            None,
            "an element has the name of its array"
        );
    }

    #[test]
    fn invalid_listings_are_rejected_with_the_field() {
        let refusal = |text: &str| {
            let error = QueueListing::parse(text.as_bytes()).expect_err("refused");
            poolcast_base::error::render(&error)
        };
        let cut = &PLAIN[..PLAIN.len() - 100];
        for (text, named) in [
            (cut, "EOF while parsing"),
            (
                &PLAIN.replace("\"node_count\": 2", "\"nodecount\": 2"),
                "missing field `node_count`",
            ),
            (
                &PLAIN.replace("\"time_limit\": 3", "\"time_limit\": \"3\""),
                "a number, null, or an object",
            ),
            (
                &PLAIN.replace("\"node_count\": 2", "\"node_count\": -2"),
                "`node_count` is -2",
            ),
            (
                &PLAIN.replace("1182", "9182736455463728"),
                "`end_time` is not a valid time",
            ),
            (
                &PLAIN.replace("2-4%1", "4-2"),
                "`array_task_string` is `4-2`",
            ),
            (
                r#"{"errors": [{"error": "Zero Bytes were transmitted", "error_number": 1010}], "jobs": []}"#,
                "Zero Bytes were transmitted",
            ),
            ("[]", "squeue"),
        ] {
            assert!(refusal(text).contains(named), "{named}: {}", refusal(text));
        }
    }

    #[test]
    fn jobs_in_unknown_states_are_listed() {
        let text = PLAIN
            .replace("RUNNING", "DREAMING")
            .replace("PENDING", "DREAMING");
        let listing = QueueListing::parse(text.as_bytes()).expect("read");
        let states: Vec<QueueState> = listing.jobs.iter().map(|job| job.state).collect();
        assert_eq!(states, [QueueState::Unknown, QueueState::Unknown]);
        assert_eq!(listing.left_out, 0);
    }

    #[test]
    fn dependent_held_and_later_jobs_are_idle() {
        let listing = QueueListing::parse(PLAIN.as_bytes()).expect("read");
        let mut job = listing.jobs[1].clone();
        let idle = |idle| Some(PendingRole::Idle(idle));
        assert_eq!(job.pending_role(2000), idle(IdleReason::OwnLimit));
        for (reason, why) in [
            ("Dependency", IdleReason::Depends),
            ("JobHeldUser", IdleReason::Held),
            ("BeginTime", IdleReason::Later),
        ] {
            job.reason = reason.to_owned();
            assert_eq!(job.pending_role(2000), idle(why));
        }
        job.reason = "None".to_owned();
        assert_eq!(job.pending_role(2000), Some(PendingRole::Turn));
        job.eligible_s = Some(2001);
        assert_eq!(job.pending_role(2000), idle(IdleReason::Later));
        job.priority = Some(0);
        assert_eq!(job.pending_role(3000), idle(IdleReason::Held));
        job.reason = "MoonPhase".to_owned();
        assert_eq!(job.pending_role(3000), None);
    }
}
