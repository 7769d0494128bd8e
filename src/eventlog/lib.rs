#![doc = include_str!("README.md")]
//!
//! ## Where to begin
//!
//! | item | for |
//! | --- | --- |
//! | [`EventReader`] | pulls the events of one log |
//! | [`read`], [`read_on`] | push the events of one log, in parallel, with job ads and hold reasons |
//! | [`find_generations`], [`likely_access_point`] | the files of a global event log, in order |
//! | [`is_event_log`] | distinguishes event logs from other files |
//! | [`JobEvent`], [`LogSummary`], [`Anomaly`] | events, and what is known of the whole log |
//! | [`ReadError`] | the reasons why a log cannot be read |
//! | [`LogBuffer`], [`dump`] | write events as a log, and a log as JSON |
//! | [`GlobalHeader`], [`rotated_paths`], [`whole_records_end`] | copy a log while HTCondor writes and rotates it |

mod anomaly;
mod anomaly_positions;
mod assembly;
mod block_parser;
mod blocks;
mod calendar;
mod classad;
mod dates;
mod event;
mod event_facts;
mod event_number;
mod event_text;
mod event_reader;
mod execution_place;
mod generations;
mod global_header;
mod input_files;
mod job_ad;
mod log;
mod log_order;
mod marks;
mod other_access_points;
mod piece;
mod plain_stream;
mod read_error;
mod reader;
mod reason_identity;
mod recent_keys;
mod record;
mod record_cuts;
mod record_header;
mod record_scan;
mod run_messages;
mod run_usage;
mod source;
mod stamp;
mod submission_names;
mod whole_records;
mod write;
mod written_zone;

pub use anomaly::{Anomaly, AnomalyCounts, AnomalyPosition, first_positions};
pub use event::{DecidedBy, JobEvent};
pub use event_facts::{EventFacts, ExecutionHost, HoldFacts, RunUsage, SubmissionNames, ends_run};
pub use event_number::{
    ABORTED, AD_INFORMATION, ATTRIBUTE_UPDATE, DISCONNECTED, EVICTED, EXECUTE, FILE_TRANSFER,
    GENERIC, HELD, IMAGE_SIZE, RECONNECT_FAILED, RECONNECTED, RELEASED, REMOTE_ERROR,
    SHADOW_EXCEPTION, SUBMIT, TERMINATED, event_name,
};
pub use event_reader::{EventReader, LogEvent};
pub use event_text::{EventText, EventTextKind};
pub use generations::{
    find_generations, is_event_log, likely_access_point, rotated_paths, sequence_number,
};
pub use global_header::{GlobalHeader, HEADER_BYTES, HISTORY_ORIGIN};
pub use htcondor_holdreasons::ReasonKind;
pub use input_files::{InputFile, MAX_INPUT_FILES};
pub use job_ad::{JobAd, ResourceRequest};
pub use log::{EventBatch, EventSink, LogGeneration, LogSummary, ReadOptions, ResumePoint};
pub use plain_stream::{PlainStream, decompress};
pub use read_error::{ReadError, SinkError};
pub use reader::{can_read_on, read, read_on, scan};
pub use reason_identity::{NamedFile, file_origin, named_file};
pub use record_cuts::last_record_start;
pub use source::{is_read_once, open};
pub use whole_records::whole_records_end;
pub use write::{
    DagNode, DynamicSlot, EventBody, HoldCode, JobDescription, JobExit, LogBuffer, LogHeader,
    ResourceUsage, dump,
};
pub use written_zone::WrittenLog;
