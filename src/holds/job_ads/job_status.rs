//! HTCondor's numbers of the states of a job, in its attributes `JobStatus` and `LastJobStatus`.

/// The job waits for a machine.
pub const IDLE: i64 = 1;
/// The job runs.
pub const RUNNING: i64 = 2;
/// The job was removed.
pub const REMOVED: i64 = 3;
/// The job has ended.
pub const COMPLETED: i64 = 4;
/// The job is held.
pub const HELD: i64 = 5;
