//! The event store: shards of columns, written once, mapped to read; jobs and their histories as slices.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::columns::{Columns, JobHistory, Part, StoredJob};
use crate::error::hinted;
use crate::eventlog::{
    AnomalyCounts, AnomalyPlace, HELD, LogGeneration, ReasonTemplates, ResumePoint,
};
use crate::files::StagedDirectory;
use crate::manifest::{self, Checksum};
use crate::shard::{ArtefactFormat, Shard};

/// Event shards.
pub const EVENTS_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "events",
    version: 4,
    rebuild: "poolcast parse LOG... -o DIR",
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
    /// The hosts that its jobs were submitted from, if these are several and it is taken for that of one access point.
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
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ListedEventShard {
    file: String,
    jobs: usize,
    events: usize,
    xxh3: String,
}

impl ListedEventShard {
    /// Opens the shard, which is in `dir`; `aps` is the number of access points.
    fn open(&self, dir: &Path, aps: usize) -> Result<Shard> {
        let shard = manifest::open_shard(dir, &self.file, &self.xxh3, EVENTS_FORMAT)?;
        let checked = Part::of(&shard).and_then(|part| part.check(self.jobs, self.events, aps));
        checked.with_context(|| {
            hinted(
                format!(
                    "`{}` does not hold what its manifest says",
                    shard.path().display()
                ),
                format!("make it anew with `{}`", EVENTS_FORMAT.rebuild),
            )
        })?;
        Ok(shard)
    }
}

/// A store on its way to the disk: shards first, the manifest last.
#[derive(Debug)]
pub(super) struct Writer {
    staging: StagedDirectory,
    shards: Vec<ListedEventShard>,
}

impl Writer {
    pub(super) fn new(staging: StagedDirectory) -> Writer {
        Writer {
            staging,
            shards: Vec::new(),
        }
    }

    pub(super) fn shard(&mut self, columns: &Columns) -> Result<()> {
        let file = format!("events-{:05}.safetensors", self.shards.len());
        let layout = columns.layout()?;
        layout.write(&self.staging.path().join(&file))?;
        let (jobs, events) = (columns.jobs(), columns.events());
        self.shards.push(ListedEventShard {
            file,
            jobs,
            events,
            xxh3: Checksum::of(layout.parts()),
        });
        Ok(())
    }

    pub(super) fn commit(self, key: &str, summary: &mut StoreSummary) -> Result<()> {
        summary.shards = self.shards;
        manifest::write(self.staging.path(), EVENTS_FORMAT, key, summary)?;
        self.staging.commit()
    }
}

/// All jobs of some logs, sorted by access point, cluster, proc and submit time.
#[derive(Debug)]
pub struct EventStore {
    /// What the manifest says.
    pub summary: StoreSummary,
    shards: Vec<Shard>,
    /// The first job of each shard, and the number of all jobs.
    starts: Vec<usize>,
    /// The gaps of each access point.
    gaps: Vec<Vec<(i64, i64)>>,
}

impl EventStore {
    fn empty(summary: StoreSummary) -> EventStore {
        let own = |ap: usize| summary.gaps.iter().filter(move |gap| gap.ap as usize == ap);
        let times = |ap: usize| own(ap).map(|gap| (gap.from_ms, gap.to_ms)).collect();
        let gaps = (0..summary.aps.len()).map(times).collect();
        EventStore {
            summary,
            shards: Vec::new(),
            starts: vec![0],
            gaps,
        }
    }

    pub(super) fn in_memory(shards: Vec<Shard>, summary: StoreSummary) -> Result<EventStore> {
        let mut store = EventStore::empty(summary);
        for shard in &shards {
            store
                .starts
                .push(store.starts[store.starts.len() - 1] + Part::of(shard)?.jobs());
        }
        Ok(EventStore { shards, ..store })
    }

    /// Maps the store in `dir` and checks that its shards are those its manifest lists, byte for byte.
    pub fn open(dir: &Path) -> Result<EventStore> {
        let mut summary: StoreSummary = manifest::read(dir, EVENTS_FORMAT)?.body;
        let listing = std::mem::take(&mut summary.shards);
        let aps = summary.aps.len();
        ensure!(
            summary.gaps.iter().all(|gap| (gap.ap as usize) < aps),
            "`{}` names an unknown access point in a gap",
            dir.display()
        );
        let mut store = EventStore::empty(summary);
        store.shards = listing
            .par_iter()
            .map(|listed| listed.open(dir, aps))
            .collect::<Result<_>>()?;
        for listed in &listing {
            store
                .starts
                .push(store.starts[store.starts.len() - 1] + listed.jobs);
        }
        let found = store.starts[store.starts.len() - 1];
        ensure!(
            found == store.summary.jobs,
            "`{}` lists {} and says {}",
            dir.display(),
            crate::output::counted(found, "job"),
            store.summary.jobs
        );
        Ok(store)
    }

    /// The jobs.
    pub fn jobs(&self) -> StoredJobs<'_> {
        let part =
            |shard| Part::of(shard).expect("every column was checked when the shard was opened");
        StoredJobs {
            starts: &self.starts,
            parts: self.shards.iter().map(part).collect(),
        }
    }

    /// Where events of the access point `ap` are missing: from and to, epoch ms.
    pub fn gaps(&self, ap: u32) -> &[(i64, i64)] {
        self.gaps.get(ap as usize).map_or(&[], Vec::as_slice)
    }
}

/// All jobs of a store; their columns are looked up once.
#[derive(Debug, Clone)]
pub struct StoredJobs<'a> {
    starts: &'a [usize],
    parts: Vec<Part<'a>>,
}

impl<'a> StoredJobs<'a> {
    /// How many.
    pub fn len(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Job `index`, counted from 0.
    ///
    /// # Panics
    /// Panics when there is no such job.
    #[inline]
    pub fn get(&self, index: usize) -> StoredJob<'a> {
        let part = self.starts.partition_point(|&start| start <= index) - 1;
        self.parts[part].job(index - self.starts[part])
    }

    /// The events of job `index`: as [`StoredJobs::get`], without looking at anything else.
    #[inline]
    pub fn history(&self, index: usize) -> JobHistory<'a> {
        let part = self.starts.partition_point(|&start| start <= index) - 1;
        self.parts[part].history(index - self.starts[part])
    }

    /// Where the events of job `index` begin in its shard: the first thing that [`StoredJobs::history`] looks up.
    #[inline]
    pub(crate) fn begin(&self, index: usize) -> u64 {
        let part = self.starts.partition_point(|&start| start <= index) - 1;
        self.parts[part].begin(index - self.starts[part])
    }

    /// Every job, in order.
    pub fn iter(&self) -> impl Iterator<Item = StoredJob<'a>> {
        self.parts
            .iter()
            .flat_map(|part| (0..part.jobs()).map(|at| part.job(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Row;
    use super::*;
    use crate::eventlog::{JobEvent, ResourceRequest};

    fn columns(jobs: usize) -> Columns {
        let mut columns = Columns::new(0);
        for cluster in 0..jobs as i32 {
            let row = |number| {
                Row::event(
                    0,
                    0,
                    &JobEvent {
                        cluster,
                        number,
                        time_ms: i64::from(number),
                        ..JobEvent::default()
                    },
                )
            };
            let events: Vec<Row> = (0..=cluster as u16 % 3).map(row).collect();
            let ad = Row::ad(0, (cluster, 0), 5000, 7, ResourceRequest::default());
            columns.push_job(&events, i64::from(cluster), Some(&ad));
        }
        columns
    }

    fn summary(jobs: usize) -> StoreSummary {
        StoreSummary {
            aps: vec!["ap".into()],
            events_by_number: [(12, 3)].into(),
            jobs,
            ..StoreSummary::default()
        }
    }

    fn write(path: &Path, parts: &[Columns]) {
        let mut writer = Writer::new(StagedDirectory::new(path, false).expect("staged"));
        parts
            .iter()
            .for_each(|part| writer.shard(part).expect("written"));
        let jobs = parts.iter().map(|part| part.jobs()).sum();
        writer.commit("key", &mut summary(jobs)).expect("committed");
    }

    fn shard(columns: Columns) -> Shard {
        Shard::from_bytes(&columns.layout().expect("laid out").bytes(), EVENTS_FORMAT)
            .expect("sound")
    }

    #[test]
    fn a_written_store_is_the_one_in_memory() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("events");
        let parts = [columns(10), columns(4)];
        write(&path, &parts);
        let (mapped, store) = (
            EventStore::open(&path).expect("opened"),
            EventStore::in_memory(parts.map(shard).into(), summary(14)).expect("made"),
        );
        assert_eq!(
            (
                mapped.jobs().len(),
                mapped.jobs().get(12).cluster,
                mapped.jobs().get(12).owner
            ),
            (14, 2, 7)
        );
        for (a, b) in store.jobs().iter().zip(mapped.jobs().iter()) {
            assert_eq!(format!("{a:?}"), format!("{b:?}"));
        }
    }

    #[test]
    fn foreign_and_corrupt_stores_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(EventStore::open(dir.path()).is_err(), "no manifest");
        let path = dir.path().join("events");
        write(&path, &[columns(10)]);
        let shard = path.join("events-00000.safetensors");
        fs_err::write(&shard, columns(9).layout().expect("laid out").bytes()).expect("written");
        let error = EventStore::open(&path).expect_err("other columns");
        assert!(
            crate::error::render(&error).contains("poolcast parse"),
            "{error:?}"
        );
        let text = fs_err::read_to_string(path.join("manifest.json")).expect("read");
        fs_err::write(
            path.join("manifest.json"),
            text.replace("events-00000", "../events-00000"),
        )
        .expect("written");
        assert!(
            EventStore::open(&path)
                .expect_err("outside")
                .to_string()
                .contains("outside it")
        );
    }
}
