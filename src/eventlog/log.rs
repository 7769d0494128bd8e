//! What a read of a log is asked, and what it returns.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::anomaly::{Anomaly, AnomalyCounts, AnomalyPlace};
use super::calendar::CalendarState;
use super::event::JobEvent;
use super::global_header::GenerationMark;
use super::job_ad::JobAd;
use super::reason::ReasonTemplates;

/// What the log itself does not say.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ReadOptions {
    /// The name of the access point; without it the log is asked.
    pub ap: Option<String>,
    /// The year of the first event, for legacy stamps in a log that says nothing of its year. From
    /// 1970 to 2100.
    pub year: Option<i16>,
    /// What other generations say of the access point ([`super::likely_access_point`]), for one
    /// that does not.
    #[serde(skip)]
    pub likely_ap: Option<String>,
    /// Whether batches have the texts of hold reasons, which no store keeps.
    #[serde(skip)]
    pub has_hold_texts: bool,
}

/// Why a job was held, in the words of its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldText {
    /// The job's cluster.
    pub cluster: i32,
    /// The job's proc.
    pub proc: i32,
    /// As in [`JobEvent`]: tells which hold it is of.
    pub text_hash: u32,
    /// The reason, which may have any bytes in it that a log can have.
    pub reason: String,
}

/// Events of one access point, in file order; events 008 and 028 are not among them.
#[derive(Debug)]
pub struct EventBatch<'a> {
    /// The access point.
    pub ap: &'a str,
    /// The events.
    pub events: &'a [JobEvent],
    /// What 028 records say of their jobs: the first of a job, and perhaps later ones.
    pub ads: &'a [JobAd],
    /// The reasons of holds, in file order, where [`ReadOptions::has_hold_texts`] asks for them;
    /// they may come before their events.
    pub hold_texts: &'a [HoldText],
    /// The stretch of its log that the events are of, counted from 0. Within one, they are in the
    /// order in which they happened, whatever their stamps. Another begins with each header of a
    /// global event log, and where stamps go back.
    pub stretch: u32,
}

/// Where the events of a log go.
pub(super) type EventSink<'a> = dyn FnMut(EventBatch<'_>) -> Result<()> + Send + 'a;

/// The place of a log among the generations of an access point's global event log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogGeneration {
    /// The access point.
    pub ap: String,
    /// Grows by one with each rotation.
    pub sequence: u64,
    /// When the file was created, epoch ms.
    pub created_ms: i64,
    /// The bytes of all generations before it, as the writer counted them; 0 if it did not.
    #[serde(default)]
    pub offset: u64,
    /// Its own bytes, decompressed.
    #[serde(default)]
    pub bytes: u64,
}

/// Where a log that grows can be read on, and what is known there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumePoint {
    /// The end of the last whole record.
    pub offset: u64,
    /// The access point of the events there.
    pub(super) ap: Option<String>,
    /// What is known of time there.
    #[serde(flatten)]
    pub(super) clock: CalendarState,
    /// The last header of a global event log before it.
    #[serde(default)]
    pub(super) header: Option<GenerationMark>,
    /// The host that the first job was submitted from.
    #[serde(default)]
    pub(super) host: Option<String>,
    /// What was met after the last whole record, and is met again.
    pub tail: Vec<Anomaly>,
}

/// What is said of a whole log that was read, apart from its events.
#[derive(Debug, Clone, Default)]
pub struct LogSummary {
    /// How many records of each event number.
    pub records_by_number: BTreeMap<u16, u64>,
    /// What a sound log would not hold.
    pub anomalies: AnomalyCounts,
    /// The first of each kind, with their places.
    pub places: Vec<AnomalyPlace>,
    /// The hosts that jobs were submitted from, if these are several, and yet the log is of one
    /// access point, as its header or the caller says.
    pub hosts: BTreeSet<String>,
    /// The templates of hold reasons.
    pub reasons: ReasonTemplates,
    /// The earliest time stamp of an event.
    pub begin_ms: Option<i64>,
    /// The latest one.
    pub end_ms: Option<i64>,
    /// The decompressed size.
    pub bytes: u64,
    /// The size of the file.
    pub file_bytes: u64,
    /// The checksum of the file.
    pub file_xxh3: String,
    /// What its first header says, if that numbers generations.
    pub generation: Option<LogGeneration>,
    /// Where it can be read on, if it can.
    pub resume: Option<ResumePoint>,
}
