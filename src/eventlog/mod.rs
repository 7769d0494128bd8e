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

pub use body::{Body, Exit, Header, HoldCode, JobAd, Slot, Usage};
pub use collect::{Archive, Archived, Collected, Lost, collect};
pub use dump::dump;
pub use event::{
    ABORTED, AD_INFORMATION, Ad, EXECUTE, Event, FILE_TRANSFER, GENERIC, HELD, RELEASED, RemovedBy,
    Request, SUBMIT, TERMINATED, event_name,
};
pub use generations::{access_point, generations, sequence};
pub use reader::{
    Anomalies, Batch, Generation, Log, Options, Place, Resume, can_read_on, first_places, read,
    read_on, scan,
};
pub use reason::Reasons;
pub use record::Anomaly;
pub use source::{is_read_once, open};
pub use text::Text;
