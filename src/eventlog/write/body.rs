//! Data of a simulated job and of its events, from which the log writer makes records.

/// Data that all records of a job share.
#[derive(Debug, Clone, Copy)]
pub struct JobDescription<'a> {
    /// Cluster of the job.
    pub cluster: u32,
    /// Proc of the job.
    pub proc: u32,
    /// Submit time, epoch seconds.
    pub submit_s: i64,
    /// Name of the schedd.
    pub schedd: &'a str,
    /// User who submitted the job.
    pub owner: &'a str,
    /// Name of the batch, if it has one.
    pub batch: Option<&'a str>,
    /// DAG node of the job, if it belongs to one.
    pub dag_node: Option<DagNode<'a>>,
    /// Slot of the last run that has ended.
    pub last_slot: Option<DynamicSlot<'a>>,
    /// Requested cores.
    pub request_cpus: u32,
    /// Requested disk, in KiB.
    pub request_disk_kb: u64,
    /// Requested memory, in MiB.
    pub request_memory_mb: u32,
    /// Input files, as in `TransferInput`; `None` if the log does not have them.
    pub transfer_input: Option<&'a str>,
    /// Directory in which the job starts; `None` if the log does not have it.
    pub iwd: Option<&'a str>,
    /// True if the job occupies a slot.
    pub runs: bool,
    /// Number of holds so far.
    pub holds: u32,
}

/// DAGMan's data about a job that it submits.
#[derive(Debug, Clone, Copy)]
pub struct DagNode<'a> {
    /// Cluster of DAGMan's own job.
    pub dagman_cluster: u32,
    /// Name of the node.
    pub name: &'a str,
}

/// A slot of an execution point.
#[derive(Debug, Clone, Copy)]
pub struct DynamicSlot<'a> {
    /// Number of the dynamic slot.
    pub number: u32,
    /// Name of the execution point.
    pub host: &'a str,
    /// Address of its startd, without `<` and `>`.
    pub address: &'a str,
}

/// Resource usage of a run. Sent bytes are sent from the execution point to the access point.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResourceUsage {
    /// User time of this run, in seconds.
    pub user_s: u32,
    /// System time of this run, in seconds.
    pub system_s: u32,
    /// User time of all runs, in seconds.
    pub total_user_s: u32,
    /// Bytes sent.
    pub sent_bytes: u32,
    /// Bytes received.
    pub received_bytes: u32,
    /// Maximum memory, in MiB.
    pub memory_mb: u32,
    /// Maximum disk, in KiB.
    pub disk_kb: u32,
    /// Run time of the job itself, in seconds.
    pub execute_s: u32,
    /// Time in the slot, in seconds.
    pub busy_s: u32,
}

/// End of a job that was neither evicted nor removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobExit {
    /// The job returned a value.
    Value(u8),
    /// A signal killed the job.
    Signal(u8),
}

/// Contents of the header of a global event log.
#[derive(Debug, Clone, Copy)]
pub struct LogHeader<'a> {
    /// Schedd that writes the log.
    pub creator: &'a str,
    /// Creation time of the first file of the log, epoch seconds.
    pub began_s: i64,
    /// Creation time of this file, epoch seconds.
    pub created_s: i64,
    /// Sequence number from 1; grows by one with each rotation.
    pub sequence: u64,
    /// Size of the file after rotation, in bytes; 0 before.
    pub size_bytes: u64,
    /// Total size of all previous files, in bytes.
    pub offset_bytes: u64,
}

/// A hold reason code and subcode.
pub type HoldCode = (i32, i32);

/// Contents of an event, besides its job and its time.
#[derive(Debug, Clone, Copy)]
pub enum EventBody<'a> {
    /// 000, from the schedd at this address, without `<` and `>`.
    Submit(&'a str),
    /// 001, in this slot.
    Execute(DynamicSlot<'a>),
    /// 001 of a job that runs on the schedd's host. The schedd has this address, without `<` and
    /// `>`.
    ExecuteAtSchedd(&'a str),
    /// 004. If a hold ended the run, the event has the codes of the hold.
    Evicted(&'a ResourceUsage, HoldCode, &'a str),
    /// 005, with the usage of the run and the exit.
    Terminated(&'a ResourceUsage, JobExit),
    /// 006, with the memory in MiB.
    ImageSize(u32),
    /// 009, with the reason.
    Aborted(&'a str),
    /// 012, with the codes and the reason.
    Held(HoldCode, &'a str),
    /// 013, with the reason.
    Released(&'a str),
    /// 021, from the starter in this slot, with the hold codes and the message.
    RemoteError(DynamicSlot<'a>, HoldCode, &'a str),
    /// 040: the transfer of input has started.
    InputStarted(DynamicSlot<'a>),
    /// 040: the transfer of input has finished.
    InputFinished,
    /// 040: the transfer of output has started.
    OutputStarted,
    /// 040: the transfer of output has finished.
    OutputFinished,
}

impl EventBody<'_> {
    pub(super) fn number(&self) -> u32 {
        match self {
            EventBody::Submit(_) => 0,
            EventBody::Execute(_) | EventBody::ExecuteAtSchedd(_) => 1,
            EventBody::Evicted(..) => 4,
            EventBody::Terminated(..) => 5,
            EventBody::ImageSize(_) => 6,
            EventBody::Aborted(_) => 9,
            EventBody::Held(..) => 12,
            EventBody::Released(_) => 13,
            EventBody::RemoteError(..) => 21,
            EventBody::InputStarted(_)
            | EventBody::InputFinished
            | EventBody::OutputStarted
            | EventBody::OutputFinished => 40,
        }
    }
}

/// Returns the memory of the job's slot, in MiB. Slots are allocated in steps of 128 MiB.
pub(super) fn allocated_mb(job: &JobDescription<'_>) -> u32 {
    job.request_memory_mb.div_ceil(128) * 128
}

/// Returns the image size, in KiB, of a job that uses `memory_mb` MiB.
pub(super) fn image_kb(memory_mb: u32) -> u64 {
    u64::from(memory_mb) * 1240 + 2048
}

/// Returns the average number of busy cores, in hundredths.
pub(super) fn cpus_hundredths(usage: &ResourceUsage) -> u32 {
    let busy_s = u64::from(usage.user_s) + u64::from(usage.system_s);
    // The table column cannot hold more than 9.99.
    (busy_s * 100)
        .checked_div(u64::from(usage.execute_s))
        .unwrap_or(0)
        .min(999) as u32
}
