//! Event logs: bytes → records → events. Reads every event number; never stops at a bad record, but counts it.
//!
//! The format is that of HTCondor's user logs and global event log, which share one record grammar: a header line
//! `NNN (cluster.proc.subproc) stamp text`, body lines, and a line `...`.

mod event;
mod reader;
mod record;
mod source;
mod stamp;

pub use event::{
    ABORTED, AD_INFORMATION, Ad, Event, GENERIC, HELD, RELEASED, RemovedBy, SUBMIT, TERMINATED, event_name,
};
pub use reader::{Log, Options, read};
pub use record::{Anomalies, Anomaly};
pub use source::open;
