//! `squeue --json`, of Slurm 22.05 with plain numbers to later ones, in which a state is a list of
//! words.

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::slurm_state::{JobOutcome, QueueState, read_state};
use crate::error::hinted;
use crate::provision::slurm_number::{SlurmNumber, SlurmWords};
use crate::provision::trace::elements_of_array;

#[derive(Deserialize)]
struct QueueDocument {
    jobs: Vec<SlurmJob>,
    #[serde(default)]
    last_update: SlurmNumber,
}

/// A job, with what is used of it.
#[derive(Deserialize)]
struct SlurmJob {
    job_id: u64,
    #[serde(default)]
    array_job_id: SlurmNumber,
    #[serde(default)]
    array_task_id: SlurmNumber,
    /// The elements that wait, as `1-10%2`.
    #[serde(default)]
    array_task_string: Option<String>,
    job_state: SlurmWords,
    #[serde(default)]
    state_reason: Option<String>,
    #[serde(default)]
    user_name: Option<String>,
    partition: String,
    #[serde(default)]
    account: Option<String>,
    #[serde(default)]
    qos: Option<String>,
    node_count: SlurmNumber,
    time_limit: SlurmNumber,
    submit_time: SlurmNumber,
    #[serde(default)]
    eligible_time: SlurmNumber,
    #[serde(default)]
    start_time: SlurmNumber,
    #[serde(default)]
    end_time: SlurmNumber,
    #[serde(default)]
    priority: SlurmNumber,
    #[serde(default)]
    nodes: Option<String>,
    #[serde(default)]
    comment: Option<String>,
}

/// A job that Slurm knows, or the elements of an array that wait together. Moments are epoch seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedJob {
    /// Its number.
    pub id: u64,
    /// Of an element of an array: the number of the array, and its own in it.
    pub array_task: Option<(i64, i64)>,
    /// How many jobs it stands for: elements of an array that wait share a row.
    pub jobs: u32,
    /// How far it got.
    pub state: QueueState,
    /// How it ended, if it has and Slurm says how.
    pub outcome: Option<JobOutcome>,
    /// Why it waits, in Slurm's word.
    pub reason: String,
    /// Whose it is, by name.
    pub user: String,
    /// The partitions it may run in.
    pub partitions: Vec<String>,
    /// On whose account it runs.
    pub account: Option<String>,
    /// Its quality of service.
    pub qos: Option<String>,
    /// How many nodes it has, or asks for.
    pub nodes: u32,
    /// How long it may run, seconds; `None` without a limit.
    pub limit_s: Option<i64>,
    /// When it was submitted.
    pub submit_s: i64,
    /// From when on it could start; `None` where it depends on another job or is held.
    pub eligible_s: Option<i64>,
    /// When it started, or is planned to.
    pub start_s: Option<i64>,
    /// When it ended, or will at its limit.
    pub end_s: Option<i64>,
    /// Its priority.
    pub priority: Option<i64>,
    /// The names of its nodes, as Slurm abbreviates them.
    pub node_list: String,
    /// What was said of it when it was submitted.
    pub comment: String,
}

/// All jobs that Slurm knows at a moment, those of late that have ended included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueListing {
    /// The jobs.
    pub jobs: Vec<ListedJob>,
    /// When Slurm last changed something in them, epoch seconds; older Slurms do not say it.
    pub last_update_s: Option<i64>,
    /// Jobs in a state that is not known, which are left out.
    pub unknown_states: usize,
}

impl QueueListing {
    /// Reads what `squeue --json` prints.
    ///
    /// # Errors
    /// Fails for what is no such document, and names the line and the field.
    pub fn parse(text: &[u8]) -> Result<QueueListing> {
        let document: QueueDocument = serde_json::from_slice(text).with_context(|| {
            hinted(
                "this is no JSON of a `squeue` that is known",
                "`squeue --all --states=all --json` writes it",
            )
        })?;
        let mut jobs = Vec::with_capacity(document.jobs.len());
        let mut unknown_states = 0;
        for job in document.jobs {
            let Some(state) = read_state(job.job_state.all()) else {
                unknown_states += 1;
                continue;
            };
            let id = job.job_id;
            let listed = job.listed(state);
            jobs.push(listed.with_context(|| format!("cannot use job {id} of `squeue`"))?);
        }
        ensure!(
            unknown_states == 0 || !jobs.is_empty(),
            hinted(
                "every job of `squeue` is in a state that is not known",
                "this Slurm is newer than this program"
            )
        );
        Ok(QueueListing {
            jobs,
            last_update_s: document.last_update.positive(),
            unknown_states,
        })
    }

    /// The job that `name` means: `12`, or the element `12_3` of an array.
    pub fn find(&self, name: &str) -> Option<&ListedJob> {
        self.jobs.iter().find(|job| job.is_called(name))
    }

    /// The last moment that has been at which something happened to a job.
    pub fn last_event_s(&self) -> i64 {
        let mut last_s = self.last_update_s.unwrap_or(0);
        for job in &self.jobs {
            let event_s = match job.state {
                QueueState::Pending => None,
                QueueState::Running => job.start_s,
                QueueState::Completing | QueueState::Ended => job.end_s,
            };
            last_s = last_s.max(job.submit_s).max(event_s.unwrap_or(0));
        }
        last_s
    }
}

impl SlurmJob {
    fn listed(self, (state, outcome): (QueueState, Option<JobOutcome>)) -> Result<ListedJob> {
        let array = self.array_job_id.positive();
        let task = self.array_task_id.known();
        let waiting = self.array_task_string.filter(|tasks| !tasks.is_empty());
        let jobs = match (&waiting, state) {
            (Some(tasks), QueueState::Pending) => elements_of_array(self.job_id, tasks)
                .with_context(|| format!("`array_task_string` is `{tasks}`"))?,
            _ => 1,
        };
        let nodes = self.node_count.known().unwrap_or(0);
        let nodes = u32::try_from(nodes)
            .with_context(|| format!("`node_count` is {nodes}, which is no number of nodes"))?;
        let limit = self.time_limit.minutes();
        ensure!(
            limit.is_none_or(|minutes| (0..1 << 32).contains(&minutes)),
            "`time_limit` is no time"
        );
        let submit_s = self.submit_time.positive();
        Ok(ListedJob {
            id: self.job_id,
            array_task: array.zip(task),
            jobs: jobs as u32,
            state,
            outcome,
            reason: self.state_reason.unwrap_or_default(),
            user: self.user_name.unwrap_or_default(),
            partitions: self.partition.split(',').map(str::to_owned).collect(),
            account: self.account.filter(|account| !account.is_empty()),
            qos: self.qos.filter(|qos| !qos.is_empty()),
            nodes,
            limit_s: limit.map(|minutes| minutes * 60),
            submit_s: moment("submit_time", submit_s)?.unwrap_or(0),
            eligible_s: moment("eligible_time", self.eligible_time.positive())?,
            start_s: moment("start_time", self.start_time.positive())?,
            end_s: moment("end_time", self.end_time.positive())?,
            priority: self.priority.known(),
            node_list: self.nodes.unwrap_or_default(),
            comment: self.comment.unwrap_or_default(),
        })
    }
}

/// A moment that a calendar knows.
fn moment(field: &str, moment_s: Option<i64>) -> Result<Option<i64>> {
    // Sums of two such moments do not overflow either.
    ensure!(
        moment_s.is_none_or(|moment_s| moment_s < 1 << 38),
        "`{field}` is no moment"
    );
    Ok(moment_s)
}

impl ListedJob {
    /// What it is called: `12`, or `12_3` in an array.
    pub fn name(&self) -> String {
        match self.array_task {
            Some((array, task)) => format!("{array}_{task}"),
            None => self.id.to_string(),
        }
    }

    /// Whether it is what `name` means.
    pub fn is_called(&self, name: &str) -> bool {
        match name.split_once('_') {
            None => self.array_task.is_none() && name.parse() == Ok(self.id),
            Some((array, task)) => {
                let named = array.parse().ok().zip(task.parse().ok());
                named.is_some() && self.array_task == named
            }
        }
    }

    /// Why it does not wait for its turn though it is pending at `now_s`.
    pub fn idle_reason(&self, now_s: i64) -> Option<IdleReason> {
        match self.reason.as_str() {
            "Dependency" | "DependencyNeverSatisfied" => return Some(IdleReason::Depends),
            "JobHeldUser" | "JobHeldAdmin" | "JobHoldMaxRequeue" => return Some(IdleReason::Held),
            "BeginTime" => return Some(IdleReason::Later),
            _ => {}
        }
        if self.priority == Some(0) {
            return Some(IdleReason::Held);
        }
        let begins_later = self.eligible_s.is_some_and(|eligible_s| eligible_s > now_s);
        begins_later.then_some(IdleReason::Later)
    }
}

/// Why a pending job does not wait for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleReason {
    /// It depends on another job.
    Depends,
    /// It is held.
    Held,
    /// It is not to begin yet.
    Later,
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_is_no_listing_names_the_field() {
        let refusal = |text: &str| {
            let error = QueueListing::parse(text.as_bytes()).expect_err("refused");
            crate::error::render(&error)
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
                "`end_time` is no moment",
            ),
            (
                &PLAIN.replace("2-4%1", "4-2"),
                "`array_task_string` is `4-2`",
            ),
            (
                &PLAIN
                    .replace("RUNNING", "DREAMING")
                    .replace("PENDING", "DREAMING"),
                "not known",
            ),
            ("[]", "squeue"),
        ] {
            assert!(refusal(text).contains(named), "{named}: {}", refusal(text));
        }
    }

    #[test]
    fn who_depends_is_held_or_begins_later_does_not_wait() {
        let listing = QueueListing::parse(PLAIN.as_bytes()).expect("read");
        let mut job = listing.jobs[1].clone();
        assert_eq!(job.idle_reason(2000), None);
        for (reason, idle) in [
            ("Dependency", IdleReason::Depends),
            ("JobHeldUser", IdleReason::Held),
            ("BeginTime", IdleReason::Later),
        ] {
            job.reason = reason.to_owned();
            assert_eq!(job.idle_reason(2000), Some(idle));
        }
        job.reason = "None".to_owned();
        job.eligible_s = Some(2001);
        assert_eq!(job.idle_reason(2000), Some(IdleReason::Later));
        job.priority = Some(0);
        assert_eq!(job.idle_reason(3000), Some(IdleReason::Held));
    }
}
