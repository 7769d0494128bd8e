//! Parser of `squeue --json`. Slurm 22.05 writes plain numbers; later versions write objects, and a
//! state as a list of words.

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::job_resources::ResourceValues;
use super::listed_job::{ListedJob, ParsedJobs, array_limit, checked_time_s};
use super::slurm_state::{QueueState, read_state};
use poolcast_base::error::hinted;
use poolcast_provision::slurm_number::{SlurmError, SlurmNumber, SlurmWords, reject_errors};
use poolcast_provision::trace::elements_of_array;

#[derive(Deserialize)]
struct QueueDocument {
    jobs: Vec<SlurmJob>,
    #[serde(default)]
    last_update: SlurmNumber,
    #[serde(default)]
    errors: Option<Vec<SlurmError>>,
}

/// A job of the document, with the fields that this program uses.
#[derive(Deserialize)]
struct SlurmJob {
    job_id: u64,
    #[serde(default)]
    array_job_id: SlurmNumber,
    #[serde(default)]
    array_task_id: SlurmNumber,
    /// The pending elements, such as `1-10%2`.
    #[serde(default)]
    array_task_string: Option<String>,
    job_state: SlurmWords,
    #[serde(default)]
    state_reason: Option<String>,
    #[serde(default)]
    user_name: Option<String>,
    #[serde(default)]
    user_id: Option<Value>,
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
    #[serde(flatten)]
    resources: ResourceValues,
}

/// Parses the output of `squeue --json`.
pub(super) fn read_queue_json(text: &[u8]) -> Result<ParsedJobs> {
    let document: QueueDocument = serde_json::from_slice(text).with_context(|| {
        hinted(
            "this is not the JSON of a known version of `squeue`",
            "write it with `squeue --all --states=all --json`",
        )
    })?;
    reject_errors("squeue", document.errors.as_deref().unwrap_or_default())?;
    let mut read = ParsedJobs {
        last_update_s: document.last_update.positive(),
        ..ParsedJobs::default()
    };
    for job in document.jobs {
        let id = job.job_id;
        read.jobs.push(
            job.listed()
                .with_context(|| format!("cannot use job {id} of `squeue`"))?,
        );
    }
    Ok(read)
}

impl SlurmJob {
    fn listed(self) -> Result<ListedJob> {
        let (state, outcome) = read_state(self.job_state.all());
        let array = self.array_job_id.positive();
        let task = self.array_task_id.known();
        let waiting = self.array_task_string.filter(|tasks| !tasks.is_empty());
        let jobs = match (&waiting, state) {
            (Some(tasks), QueueState::Pending) => elements_of_array(self.job_id, tasks)
                .with_context(|| {
                    format!("`array_task_string` is `{tasks}`, which is not a list of tasks")
                })?,
            _ => 1,
        };
        let nodes = self.node_count.known().unwrap_or(0);
        let nodes = u32::try_from(nodes)
            .with_context(|| format!("`node_count` is {nodes}, which is not a number of nodes"))?;
        let limit = self.time_limit.minutes();
        ensure!(
            limit.is_none_or(|minutes| (0..1 << 32).contains(&minutes)),
            "`time_limit` is not a valid time"
        );
        let submit_s = self.submit_time.positive();
        Ok(ListedJob {
            id: self.job_id,
            array_task: array.zip(task),
            jobs: jobs as u32,
            array_limit: waiting.as_deref().and_then(array_limit),
            state,
            outcome,
            reason: self.state_reason.unwrap_or_default(),
            user: self.user_name.unwrap_or_default(),
            user_id: self.user_id.as_ref().and_then(user_number),
            partitions: self.partition.split(',').map(str::to_owned).collect(),
            account: self.account.filter(|account| !account.is_empty()),
            qos: self.qos.filter(|qos| !qos.is_empty()),
            nodes,
            limit_s: limit.map(|minutes| minutes * 60),
            submit_s: checked_time_s("submit_time", submit_s)?.unwrap_or(0),
            eligible_s: checked_time_s("eligible_time", self.eligible_time.positive())?,
            start_s: checked_time_s("start_time", self.start_time.positive())?,
            end_s: checked_time_s("end_time", self.end_time.positive())?,
            priority: self.priority.known(),
            node_list: self.nodes.unwrap_or_default(),
            comment: self.comment.unwrap_or_default(),
            resources: self.resources.resources(),
        })
    }
}

/// Parses the number of a user, which may be a JSON number or a text.
fn user_number(value: &Value) -> Option<u32> {
    match value {
        Value::String(text) => text.parse().ok(),
        _ => value.as_u64()?.try_into().ok(),
    }
}
