//! Commands on single jobs. They are stored in a few bytes and formatted where they are shown, as
//! there may be very many.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::held_ids::{HeldCommand, HeldId};

/// The number of a job within its access point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    /// The job's cluster.
    pub cluster: i32,
    /// The job's proc.
    pub proc: i32,
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.cluster, self.proc)
    }
}

impl Serialize for JobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for JobId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JobId, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = |part: &str| part.parse::<i32>().ok();
        let parts = text.split_once('.');
        let id = parts.and_then(|(cluster, proc)| {
            Some(JobId {
                cluster: number(cluster)?,
                proc: number(proc)?,
            })
        });
        id.ok_or_else(|| D::Error::custom("expected a job id such as 123.0"))
    }
}

/// A job attribute that says how much the job needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of HTCondor's attributes")]
pub enum RequestAttribute {
    RequestMemory,
    RequestDisk,
    RequestCpus,
    RequestGPUs,
}

/// A job attribute, and the number to set it to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RaisedRequest {
    /// The attribute.
    pub attribute: RequestAttribute,
    /// The new value, in the attribute's own unit.
    pub number: u64,
}

impl RaisedRequest {
    /// Formats the arguments of `condor_qedit` after the jobs.
    pub(super) fn arguments(&self) -> String {
        format!(" {:?} {}", self.attribute, self.number)
    }
}

/// A command to type for one job. It does nothing once the job has left its present hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCommand {
    task: CommandTask,
    job: HeldId,
}

/// The task of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandTask {
    /// Show why the job is held.
    Look,
    /// Release the job.
    Release,
    /// Remove the job.
    Remove,
    /// Set a higher request.
    Raise(RaisedRequest),
}

impl JobCommand {
    /// Creates the command that performs `task` on `job`. Returns `None` if the task changes the
    /// job, and its hold time is unknown, or if the name of its owner or access point is no plain one.
    pub(super) fn new(task: CommandTask, job: &HeldId) -> Option<JobCommand> {
        let command = JobCommand {
            task,
            job: job.clone(),
        };
        command.as_typed().is_some().then_some(command)
    }

    /// Returns the same command for `job` with more known facts.
    pub(super) fn of_job(&self, job: &HeldId) -> Option<JobCommand> {
        JobCommand::new(self.task, job)
    }

    /// Returns false if the command only shows the job.
    pub(super) fn changes_job(&self) -> bool {
        self.task != CommandTask::Look
    }

    fn as_typed(&self) -> Option<HeldCommand> {
        let job = std::slice::from_ref(&self.job);
        let (program, arguments) = match self.task {
            CommandTask::Look => return HeldCommand::look(job),
            CommandTask::Release => ("condor_release", String::new()),
            CommandTask::Remove => ("condor_rm", String::new()),
            CommandTask::Raise(raised) => ("condor_qedit", raised.arguments()),
        };
        HeldCommand::new(program, job, &arguments)
    }
}

impl fmt::Display for JobCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A command without a text is never created.
        let typed = self.as_typed().ok_or(fmt::Error)?;
        typed.fmt(f)
    }
}

impl Serialize for JobCommand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_change_a_job_are_limited_to_its_present_hold() {
        let job = HeldId {
            cluster: 12,
            proc: 1,
            since_s: 100,
            owner: Some("ada".into()),
            schedd: None,
        };
        let raised = RaisedRequest {
            attribute: RequestAttribute::RequestCpus,
            number: 2,
        };
        let guard = "-constraint 'JobStatus==5 && EnteredCurrentStatus<=102 && Owner==\"ada\" && ClusterId==12 && ProcId==1'";
        for (task, expected) in [
            (CommandTask::Look, "condor_q -hold 12.1".to_owned()),
            (CommandTask::Release, format!("condor_release {guard}")),
            (CommandTask::Remove, format!("condor_rm {guard}")),
            (
                CommandTask::Raise(raised),
                format!("condor_qedit {guard} RequestCpus 2"),
            ),
        ] {
            let command = JobCommand::new(task, &job).expect("a command");
            assert_eq!(command.to_string(), expected);
            let unknown = HeldId {
                since_s: 0,
                ..job.clone()
            };
            let is_harmless = task == CommandTask::Look;
            assert_eq!(JobCommand::new(task, &unknown).is_some(), is_harmless);
        }
    }
}
