//! What a store of events says of itself in its manifest: its logs, its access points, its counts
//! and its shards.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use htcondor_eventlog::{
    AnomalyCounts, AnomalyPlace, HELD, LogGeneration, ReasonTemplates, ResumePoint,
};

/// A log that went into a store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLog {
    /// Its file name, without the directory.
    pub name: String,
    /// Its size on disk.
    pub bytes: u64,
    /// XXH3 of the file.
    pub xxh3: String,
    /// The first time stamp of an event, epoch ms.
    pub begin_ms: Option<i64>,
    /// The last one.
    pub end_ms: Option<i64>,
    /// The first anomalies of each kind, with their places.
    pub places: Vec<AnomalyPlace>,
    /// The hosts that its jobs were submitted from, if these are several and it is taken for that
    /// of one access point.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub hosts: BTreeSet<String>,
    /// Its place among the generations of a global event log.
    pub generation: Option<LogGeneration>,
    /// Where it can be read on when it has grown.
    pub resume: Option<ResumePoint>,
}

/// A time in which events of an access point are missing: a generation of its log was not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogGap {
    /// The index of the access point.
    pub ap: u32,
    /// The last event before, epoch ms.
    pub from_ms: i64,
    /// When the generation after was created, epoch ms.
    pub to_ms: i64,
}

impl LogGap {
    /// Whether events may be missing between two moments that the log tells of, epoch ms.
    pub fn is_between(&self, begin_ms: i64, end_ms: i64) -> bool {
        self.from_ms < end_ms && begin_ms < self.to_ms
    }
}

/// What a store says of itself in its manifest.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StoreSummary {
    /// The digest of the options they were read with.
    pub options_key: String,
    /// The digest of the salt that owners are hashed with.
    pub owner_salt_digest: String,
    /// The logs, in the order they were read.
    pub sources: Vec<SourceLog>,
    /// The access points; jobs refer to them by index.
    pub aps: Vec<String>,
    /// Records of each event number, 008 and 028 included, which are not kept as events.
    pub events_by_number: BTreeMap<u16, u64>,
    /// What a sound log would not hold.
    pub anomalies: AnomalyCounts,
    /// The templates of hold reasons.
    pub reasons: ReasonTemplates,
    /// The first time stamp, epoch ms.
    pub begin_ms: i64,
    /// The last time stamp, epoch ms: what is not known by then is not known.
    pub end_ms: i64,
    /// How many jobs.
    pub jobs: usize,
    /// Events that were there twice, and are kept once.
    pub doubles: u64,
    /// Where events are missing.
    pub gaps: Vec<LogGap>,
    /// The shards; none in memory.
    #[serde(default)]
    pub(super) shards: Vec<ListedEventShard>,
}

impl StoreSummary {
    /// Records of every number.
    pub fn record_count(&self) -> u64 {
        self.events_by_number.values().sum()
    }

    /// Holds, whatever followed them.
    pub fn hold_count(&self) -> u64 {
        self.events_by_number.get(&HELD).copied().unwrap_or(0)
    }

    /// The index of the access point `name`, which is added if it is new.
    pub(super) fn access_point_index(&mut self, name: &str) -> u32 {
        let known = self.aps.iter().position(|known| known == name);
        let index = known.unwrap_or_else(|| {
            self.aps.push(name.to_owned());
            self.aps.len() - 1
        });
        index as u32
    }
}

/// A shard of a store.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ListedEventShard {
    pub(super) file: String,
    pub(super) jobs: usize,
    pub(super) events: usize,
    /// The digest of the file.
    pub(super) xxh3: String,
}
