//! Writers: events → the text of a log, and a log → JSON lines.

mod body;
mod buffer;
mod dump;
mod job_ad;
mod text;

pub use body::{
    DagNode, DynamicSlot, EventBody, HoldCode, JobDescription, JobExit, LogHeader, ResourceUsage,
};
pub use buffer::LogBuffer;
pub use dump::dump;
