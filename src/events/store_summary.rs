//! The manifest of an event store: its logs, access points, counts and shards.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::job_row::StoredId;
use htcondor_eventlog::{AnomalyCounts, AnomalyPosition, HELD, LogGeneration, ResumePoint};
use poolcast_base::error::hinted;
use poolcast_base::output;

/// A log that was read into a store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLog {
    /// File name, without the directory.
    pub name: String,
    /// Size on disk, in bytes.
    pub bytes: u64,
    /// XXH3 of the file.
    pub xxh3: String,
    /// The first time stamp of an event, in epoch ms.
    pub begin_ms: Option<i64>,
    /// The last time stamp of an event, in epoch ms.
    pub end_ms: Option<i64>,
    /// The first anomalies of each kind, with their positions.
    pub places: Vec<AnomalyPosition>,
    /// Hosts from which its jobs were submitted, if there are several and the log is treated as the
    /// log of one access point.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub hosts: BTreeSet<String>,
    /// Generation of a global event log that this file is.
    pub generation: Option<LogGeneration>,
    /// Resume point, from which the log can be read when it has grown.
    pub resume: Option<ResumePoint>,
}

/// A time range without events of an access point, because a generation of its log is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogGap {
    /// Index of the access point.
    pub ap: u32,
    /// Time of the last event before the gap, in epoch ms.
    pub from_ms: i64,
    /// Creation time of the generation after the gap, in epoch ms.
    pub to_ms: i64,
}

impl LogGap {
    /// Returns true if events may be missing between two known times, in epoch ms.
    pub fn is_between(&self, begin_ms: i64, end_ms: i64) -> bool {
        self.from_ms < end_ms && begin_ms < self.to_ms
    }
}

/// Number of known holds for each missing one, from which on shares of outcomes are about right.
const MIN_HOLDS_PER_MISSING: u64 = 20;

/// What the holds of a store come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HoldSource {
    /// Event logs, which have every hold.
    #[default]
    Log,
    /// A history of jobs, in which holds can be missing.
    History,
}

impl HoldSource {
    /// Returns true for event logs.
    pub fn is_log(&self) -> bool {
        *self == HoldSource::Log
    }

    /// Describes a source that is not an event log; `None` for an event log.
    pub fn words(&self) -> Option<&'static str> {
        match self {
            HoldSource::Log => None,
            HoldSource::History => Some(
                "learned from the history: the last hold of each job and its end, and the holds that ended runs where it has them; \
                 its scores are not those of a log",
            ),
        }
    }

    /// Returns [`HoldSource::words`] as a sentence.
    pub fn sentence(&self) -> Option<String> {
        let words = self.words()?;
        let (first, rest) = words.split_at_checked(1)?;
        Some(format!("{}{rest}.", first.to_uppercase()))
    }
}

/// The content of the manifest of a store.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StoreSummary {
    /// Digest of the options with which the logs were read.
    pub options_key: String,
    /// Digest of the salt with which owners are hashed.
    pub owner_salt_digest: String,
    /// The logs, in the order in which they were read.
    pub sources: Vec<SourceLog>,
    /// Names of the access points; jobs refer to them by index.
    pub aps: Vec<String>,
    /// Records by event number. 008 and 028 are included, although they are not stored as events.
    pub events_by_number: BTreeMap<u16, u64>,
    /// Anomalies: records that a valid log does not contain.
    pub anomalies: AnomalyCounts,
    /// The first time stamp, in epoch ms.
    pub begin_ms: i64,
    /// The last time stamp, in epoch ms: the end of the known time range. Later facts are unknown.
    pub end_ms: i64,
    /// Number of jobs.
    pub jobs: usize,
    /// Duplicates of events, which are stored once.
    pub doubles: u64,
    /// Time ranges without events, because a generation of the log is missing.
    pub gaps: Vec<LogGap>,
    /// The files with the events; empty for a store in memory.
    #[serde(default)]
    pub(super) shards: Vec<ListedEventShard>,
}

impl StoreSummary {
    /// The number of records of all event numbers.
    pub fn record_count(&self) -> u64 {
        self.events_by_number.values().sum()
    }

    /// Forgets the gaps that nobody knew of at `until_ms`, epoch ms: a gap shows when the log goes on after it.
    ///
    /// # Errors
    /// Fails if `until_ms` is before the first time stamp, or after the last one.
    pub(super) fn forget_gaps_after(&mut self, until_ms: i64) -> Result<()> {
        let StoreSummary {
            begin_ms, end_ms, ..
        } = *self;
        ensure!(
            (begin_ms..=end_ms).contains(&until_ms),
            hinted(
                format!("the log does not cover {}", output::utc_time(until_ms)),
                format!(
                    "choose a time from {} to {}",
                    output::utc_time(begin_ms),
                    output::utc_time(end_ms)
                )
            )
        );
        self.gaps.retain(|gap| gap.to_ms <= until_ms);
        Ok(())
    }

    /// Returns what the holds come from: a history if any of the logs was made from one.
    pub fn source(&self) -> HoldSource {
        match self.missing_holds() {
            Some(_) => HoldSource::History,
            None => HoldSource::Log,
        }
    }

    /// Returns true if any of the logs is one of HTCondor.
    pub fn has_log(&self) -> bool {
        let is_log = |source: &SourceLog| {
            let generation = source.generation.as_ref();
            generation.is_none_or(|generation| generation.missing_holds.is_none())
        };
        self.sources.iter().any(is_log)
    }

    /// Returns true if so many holds are missing that shares of successful releases mislead: each of
    /// these holds was followed by another one.
    pub fn lacks_holds(&self) -> bool {
        let missing = self.missing_holds().unwrap_or(0);
        missing.saturating_mul(MIN_HOLDS_PER_MISSING) > self.hold_count()
    }

    /// The number of holds that logs made from a history lack; `None` without such a log.
    pub fn missing_holds(&self) -> Option<u64> {
        (self.sources.iter())
            .filter_map(|source| source.generation.as_ref()?.missing_holds)
            .reduce(u64::saturating_add)
    }

    /// The number of holds, with any outcome.
    pub fn hold_count(&self) -> u64 {
        self.events_by_number.get(&HELD).copied().unwrap_or(0)
    }
}

/// A shard of a store.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ListedEventShard {
    /// Name of the file.
    pub(super) file: String,
    /// Number of its jobs.
    pub(super) jobs: usize,
    /// Number of its events.
    pub(super) events: usize,
    /// Id of the last job; `None` without jobs.
    pub(super) last_job: Option<StoredId>,
    /// Digest of the file.
    pub(super) xxh3: String,
}
