//! Event logs: bytes → records → events. Reads every event number; never stops at a bad record, but counts it.
//!
//! The format is that of HTCondor's user logs and global event log, which share one record grammar: a header line
//! `NNN (cluster.proc.subproc) stamp text`, body lines, and a line `...`.

mod assembly;
mod blocks;
mod body;
mod classad;
mod collect;
mod dump;
mod event;
mod generations;
mod header;
mod information;
mod known;
mod marks;
mod piece;
mod reader;
mod reason;
mod record;
mod source;
mod stamp;
mod text;

pub use body::{
    DynamicSlot, EventBody, HoldCode, JobDescription, JobExit, LogHeader, ResourceUsage,
};
pub use collect::{ArchivedGeneration, CollectOutcome, LogArchive, LostEvents, collect};
pub use dump::dump;
pub use event::{
    ABORTED, AD_INFORMATION, EXECUTE, FILE_TRANSFER, GENERIC, HELD, JobAd, JobEvent, RELEASED,
    RemovedBy, ResourceRequest, SUBMIT, TERMINATED, event_name,
};
pub use generations::{find_generations, likely_access_point, sequence_number};
pub use reader::{
    AnomalyCounts, AnomalyPlace, EventBatch, LogGeneration, LogSummary, ReadOptions, ResumePoint,
    can_read_on, first_places, read, read_on, scan,
};
pub use reason::ReasonTemplates;
pub use record::Anomaly;
pub use source::{is_read_once, open};
pub use text::LogBuffer;
