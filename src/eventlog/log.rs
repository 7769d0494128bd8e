//! Options and results of reading a log.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::anomaly::{Anomaly, AnomalyCounts, AnomalyPosition};
use super::calendar::CalendarState;
use super::event::JobEvent;
use super::event_text::EventText;
use super::global_header::GenerationMark;
use super::job_ad::JobAd;
use super::read_error::SinkError;

/// Options for data that the log itself may lack.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ReadOptions {
    /// Name of the access point. By default it is taken from the log.
    pub ap: Option<String>,
    /// Year of the first event, for stamps without a year if nothing in the log gives one. From
    /// 1970 to 2100. By default the newest year in which the last stamp is not after the last change
    /// of the file.
    pub year: Option<i16>,
    /// Access point according to other generations ([`super::likely_access_point`]), for a
    /// generation that does not name it.
    #[serde(skip)]
    pub likely_ap: Option<String>,
    /// Local time minus UTC, in ms, for stamps without a zone if nothing in the log gives it;
    /// [`super::WrittenLog`] is one way to know it.
    #[serde(skip)]
    pub utc_offset_ms: i64,
    /// True if batches include texts of events, which may contain names and paths.
    #[serde(skip)]
    pub has_texts: bool,
}

/// Events of one access point, in file order, without events 008 and 028.
#[derive(Debug)]
pub struct EventBatch<'a> {
    /// Access point.
    pub ap: &'a str,
    /// Events.
    pub events: &'a [JobEvent],
    /// Job ads from events 028: the first one of each job, and perhaps later ones.
    pub ads: &'a [JobAd],
    /// Texts of events, in file order for each kind, if [`ReadOptions::has_texts`] is set. They may precede
    /// their events.
    pub texts: &'a [EventText],
    /// Number of the log segment that contains the events, counted from 0. Within one segment,
    /// events are in the order in which they happened, whatever their stamps. A new segment begins
    /// with each header of a global event log, and where stamps go back.
    pub stretch: u32,
}

/// Callback that receives the events of a log. It may run on another thread than the caller's, but
/// never on two at a time. If it fails, the reader stops and returns its error.
pub type EventSink<'a> = dyn FnMut(EventBatch<'_>) -> Result<(), SinkError> + Send + 'a;

/// Identity of a log among the generations of an access point's global event log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogGeneration {
    /// Access point.
    pub ap: String,
    /// Sequence number; grows by one with each rotation.
    pub sequence: u64,
    /// Creation time of the file, epoch ms.
    pub created_ms: i64,
    /// Total size of all previous generations, in bytes, as counted by the writer; 0 if not
    /// counted.
    #[serde(default)]
    pub offset: u64,
    /// Decompressed size of this generation, in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// Number of holds that the log lacks, if it was made from a history of jobs; `None` for a log of
    /// HTCondor, which has all holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_holds: Option<u64>,
}

/// Position in a growing log from which a later read can continue, with the state there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumePoint {
    /// Byte offset of the end of the last whole record.
    pub offset: u64,
    /// Access point of the events there.
    pub(super) ap: Option<String>,
    /// State of the calendar there.
    #[serde(flatten)]
    pub(super) clock: CalendarState,
    /// Last header of a global event log before the offset.
    #[serde(default)]
    pub(super) header: Option<GenerationMark>,
    /// Host from which the first job was submitted.
    #[serde(default)]
    pub(super) host: Option<String>,
    /// Anomalies after the offset. A read from here finds them again.
    pub tail: Vec<Anomaly>,
}

/// Summary of a whole log, without its events.
#[derive(Debug, Clone, Default)]
pub struct LogSummary {
    /// Number of records of each event number.
    pub records_by_number: BTreeMap<u16, u64>,
    /// Number of anomalies of each kind.
    pub anomalies: AnomalyCounts,
    /// Positions of the first anomalies of each kind.
    pub places: Vec<AnomalyPosition>,
    /// Submit hosts, if there are several although the header or the caller assigns the log to one
    /// access point.
    pub hosts: BTreeSet<String>,
    /// Earliest time of an event, epoch ms.
    pub begin_ms: Option<i64>,
    /// Latest time of an event, epoch ms.
    pub end_ms: Option<i64>,
    /// Year of the first event if only the file's change time gives it.
    pub assumed_year: Option<i64>,
    /// Decompressed size, in bytes.
    pub bytes: u64,
    /// Size of the file, in bytes.
    pub file_bytes: u64,
    /// Generation, according to the first header of a global event log.
    pub generation: Option<LogGeneration>,
    /// Point from which a later read can continue, if there is one.
    pub resume: Option<ResumePoint>,
}
