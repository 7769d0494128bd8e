//! What a simulation knows of a job and of an event → what their records say.

/// What all records of a job share.
#[derive(Debug, Clone, Copy)]
pub struct JobDescription<'a> {
    /// The job's cluster.
    pub cluster: u32,
    /// The job's proc.
    pub proc: u32,
    /// When it was submitted, epoch seconds.
    pub submit_s: i64,
    /// The name of the schedd.
    pub schedd: &'a str,
    /// Who submitted it.
    pub owner: &'a str,
    /// The name of its batch, if it has one.
    pub batch: Option<&'a str>,
    /// The node of a DAG that it belongs to.
    pub dag_node: Option<DagNode<'a>>,
    /// The slot of its last run that has ended.
    pub last_slot: Option<DynamicSlot<'a>>,
    /// Cores asked for.
    pub request_cpus: u32,
    /// Disk asked for, in KiB.
    pub request_disk_kb: u64,
    /// Memory asked for, in MiB.
    pub request_memory_mb: u32,
    /// Whether it occupies a slot.
    pub runs: bool,
    /// How often it was held so far.
    pub holds: u32,
}

/// What DAGMan says of the jobs that it submits.
#[derive(Debug, Clone, Copy)]
pub struct DagNode<'a> {
    /// The cluster of DAGMan's own job.
    pub dagman_cluster: u32,
    /// The name of the node.
    pub name: &'a str,
}

/// A slot of an execution point.
#[derive(Debug, Clone, Copy)]
pub struct DynamicSlot<'a> {
    /// The number of the dynamic slot.
    pub number: u32,
    /// The name of the execution point.
    pub host: &'a str,
    /// The address of its startd, without `<` and `>`.
    pub address: &'a str,
}

/// What a run used. Bytes sent are those from the execution point to the access point.
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
    /// The most memory, in MiB.
    pub memory_mb: u32,
    /// The most disk, in KiB.
    pub disk_kb: u32,
    /// How long the job itself ran, in seconds.
    pub execute_s: u32,
    /// How long it occupied the slot, in seconds.
    pub busy_s: u32,
}

/// How a job ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobExit {
    /// It returned a value.
    Value(u8),
    /// A signal killed it.
    Signal(u8),
}

/// What the header of a global event log says of its file.
#[derive(Debug, Clone, Copy)]
pub struct LogHeader<'a> {
    /// The schedd that writes the log.
    pub creator: &'a str,
    /// When the first of its files was created, epoch seconds.
    pub began_s: i64,
    /// When this file was created, epoch seconds.
    pub created_s: i64,
    /// Grows by one with each rotation, from 1.
    pub sequence: u64,
    /// The size of the file once it is rotated, and 0 before.
    pub size_bytes: u64,
    /// The sizes of all files before it.
    pub offset_bytes: u64,
}

/// A hold reason code and subcode.
pub type HoldCode = (i32, i32);

/// What an event says beyond whose it is and when it was.
#[derive(Debug, Clone, Copy)]
pub enum EventBody<'a> {
    /// 000, from the schedd at this address, without `<` and `>`.
    Submit(&'a str),
    /// 001.
    Execute(DynamicSlot<'a>),
    /// 001 of a job that runs beside the schedd at this address, without `<` and `>`.
    ExecuteAtSchedd(&'a str),
    /// 004; a job that is held out of a run has the codes of the hold.
    Evicted(&'a ResourceUsage, HoldCode, &'a str),
    /// 005.
    Terminated(&'a ResourceUsage, JobExit),
    /// 006: the memory in MiB.
    ImageSize(u32),
    /// 009, and why.
    Aborted(&'a str),
    /// 012.
    Held(HoldCode, &'a str),
    /// 013, and how.
    Released(&'a str),
    /// 021, from the starter.
    RemoteError(DynamicSlot<'a>, HoldCode, &'a str),
    /// 040: input starts to be transferred.
    InputStarted(DynamicSlot<'a>),
    /// 040: input is there.
    InputFinished,
    /// 040: output starts to be transferred.
    OutputStarted,
    /// 040: output is back.
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

/// The memory of the slot that a job gets: slots are cut in steps of 128 MiB.
pub(super) fn allocated_mb(job: &JobDescription<'_>) -> u32 {
    job.request_memory_mb.div_ceil(128) * 128
}

/// The size of the image of a job that uses so much memory.
pub(super) fn image_kb(memory_mb: u32) -> u64 {
    u64::from(memory_mb) * 1240 + 2048
}

/// The cores that were busy on average, in hundredths.
pub(super) fn cpus_hundredths(usage: &ResourceUsage) -> u32 {
    let busy_s = u64::from(usage.user_s) + u64::from(usage.system_s);
    // Nothing beyond 9.99 fits its column.
    (busy_s * 100)
        .checked_div(u64::from(usage.execute_s))
        .unwrap_or(0)
        .min(999) as u32
}
