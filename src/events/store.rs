//! The event store: shards of columns that are written once and memory-mapped to read. Jobs and
//! their histories are slices.

use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::{channel, sync_channel};

use anyhow::{Context as _, Result, ensure};

use super::format::EVENTS_FORMAT;
use super::job_history::{JobHistory, StoredJob};
use super::shard_columns::{ShardColumns, ShardCounts, ShardSlices};
use super::shard_sequence::{KeptShard, NextShard, TakeShard};
use super::store_summary::{ListedEventShard, LogGap, StoreSummary};
use htcondor_eventlog::{HELD, InputFile};
use poolcast_base::error::hinted;
use poolcast_base::files::{self, StagedDirectory};
use poolcast_base::manifest::{self, Checksum};
use poolcast_base::parallel::{map_items, map_ranges};
use poolcast_base::shard::Shard;

/// Jobs that one parallel task reads.
const JOBS_PER_TASK: usize = 4096;

impl ListedEventShard {
    /// Opens and checks the shard in `dir`. `access_points` is their number in the whole store.
    pub(super) fn open(&self, dir: &Path, access_points: usize) -> Result<Shard> {
        let shard = manifest::open_shard(dir, &self.file, &self.xxh3, EVENTS_FORMAT)?;
        let listed = ShardCounts {
            jobs: self.jobs,
            events: self.events,
            access_points,
            last_job: self.last_job,
        };
        let checked = ShardSlices::from_shard(&shard).and_then(|slices| slices.check(listed));
        checked.with_context(|| {
            hinted(
                format!("`{}` does not match its manifest", shard.path().display()),
                format!("build it again with `{}`", EVENTS_FORMAT.rebuild),
            )
        })?;
        Ok(shard)
    }
}

/// A shard on its way to the disk.
enum ShardToStore {
    New(Box<ShardColumns>),
    Kept(KeptShard),
}

/// Writes a store to disk: shards first, the manifest last.
#[derive(Debug)]
pub(super) struct StoreWriter {
    staging: StagedDirectory,
    shards: Vec<ListedEventShard>,
}

impl StoreWriter {
    pub(super) fn new(staging: StagedDirectory) -> StoreWriter {
        StoreWriter {
            staging,
            shards: Vec::new(),
        }
    }

    /// Stores the shards that `make` passes on, each while the next one is made, because writing
    /// mostly waits for the disk. The memory of written shards is reused.
    pub(super) fn write_shards<T>(
        &mut self,
        make: impl FnOnce(&mut TakeShard<'_>) -> Result<T>,
    ) -> Result<T> {
        std::thread::scope(|scope| {
            // The channel has no buffer, so memory holds at most two shards.
            let (next, to_store) = sync_channel::<ShardToStore>(0);
            let (written, spare) = channel();
            let storing = scope.spawn(move || -> Result<()> {
                for shard in to_store {
                    match shard {
                        ShardToStore::New(mut columns) => {
                            self.write_shard(&columns)?;
                            columns.clear();
                            // Ignore the error: after the last shard, no receiver waits for its
                            // memory.
                            let _ = written.send(columns);
                        }
                        ShardToStore::Kept(kept) => self.keep_shard(kept)?,
                    }
                }
                Ok(())
            });

            let send = |shard| next.send(shard).ok().context("cannot store a shard");
            let made = make(&mut |shard| {
                let columns = match shard {
                    NextShard::New(columns) => columns,
                    NextShard::Kept(kept) => return send(ShardToStore::Kept(kept)),
                };
                let empty = ShardColumns::with_capacity(columns.event_count());
                let full = std::mem::replace(columns, empty);
                send(ShardToStore::New(Box::new(full)))?;
                if let Ok(memory) = spare.try_recv() {
                    *columns = *memory;
                }
                Ok(())
            });
            drop(next);
            storing
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            made
        })
    }

    fn write_shard(&mut self, columns: &ShardColumns) -> Result<()> {
        let file = self.next_file();
        let layout = columns.layout()?;
        layout.write(&self.staging.path().join(&file))?;
        self.shards.push(ListedEventShard {
            file,
            jobs: columns.job_count(),
            events: columns.event_count(),
            last_job: columns.last_job(),
            xxh3: Checksum::of(layout.parts()),
        });
        Ok(())
    }

    /// Adds a shard of an earlier store under its new number.
    fn keep_shard(&mut self, kept: KeptShard) -> Result<()> {
        let file = self.next_file();
        files::link_or_copy(&kept.path, &self.staging.path().join(&file))?;
        self.shards.push(ListedEventShard {
            file,
            ..kept.listed
        });
        Ok(())
    }

    fn next_file(&self) -> String {
        format!("events-{:05}.safetensors", self.shards.len())
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
    /// The content of the manifest.
    pub summary: StoreSummary,
    shards: Vec<Shard>,
    /// Index of the first job of each shard, and the total number of jobs.
    first_jobs: Vec<usize>,
    /// The gaps of each access point.
    gaps_by_ap: Vec<Vec<LogGap>>,
}

impl EventStore {
    /// Creates a store of `shards`, which have `job_counts` jobs.
    fn new(shards: Vec<Shard>, job_counts: &[usize], summary: StoreSummary) -> EventStore {
        let mut first_jobs = vec![0];
        let mut jobs = 0;
        for count in job_counts {
            jobs += count;
            first_jobs.push(jobs);
        }

        let mut gaps_by_ap = vec![Vec::new(); summary.aps.len()];
        for gap in &summary.gaps {
            gaps_by_ap[gap.ap as usize].push(gap.clone());
        }

        EventStore {
            summary,
            shards,
            first_jobs,
            gaps_by_ap,
        }
    }

    pub(super) fn in_memory(shards: Vec<Shard>, summary: StoreSummary) -> Result<EventStore> {
        let mut job_counts = Vec::new();
        for shard in &shards {
            job_counts.push(ShardSlices::from_shard(shard)?.job_count());
        }
        Ok(EventStore::new(shards, &job_counts, summary))
    }

    /// Maps the store in `dir`, and checks that its shards are byte-identical to the files in its
    /// manifest.
    pub fn open(dir: &Path) -> Result<EventStore> {
        let mut summary: StoreSummary = manifest::read(dir, EVENTS_FORMAT)?.body;
        let listing = std::mem::take(&mut summary.shards);
        let access_points = summary.aps.len();
        ensure!(
            summary
                .gaps
                .iter()
                .all(|gap| (gap.ap as usize) < access_points),
            "`{}` has a gap of an unknown access point",
            dir.display()
        );

        let opened = map_items(&listing, |listed| listed.open(dir, access_points));
        let shards = opened.into_iter().collect::<Result<_>>()?;
        let job_counts: Vec<usize> = listing.iter().map(|listed| listed.jobs).collect();
        let store = EventStore::new(shards, &job_counts, summary);

        let found = store.jobs().len();
        ensure!(
            found == store.summary.jobs,
            "`{}` lists {}, but its summary has {}",
            dir.display(),
            poolcast_base::output::counted(found, "job"),
            store.summary.jobs
        );
        Ok(store)
    }

    /// Returns the jobs.
    pub fn jobs(&self) -> StoredJobs<'_> {
        let slices = |shard| {
            ShardSlices::from_shard(shard)
                .expect("every column was checked when the shard was opened")
        };
        StoredJobs {
            first_jobs: &self.first_jobs,
            shards: self.shards.iter().map(slices).collect(),
        }
    }

    /// The time ranges without events of the access point `ap`.
    pub fn gaps(&self, ap: u32) -> &[LogGap] {
        self.gaps_by_ap.get(ap as usize).map_or(&[], Vec::as_slice)
    }
}

/// All jobs of a store. The columns are looked up once.
#[derive(Debug, Clone)]
pub struct StoredJobs<'a> {
    /// Index of the first job of each shard, and the total number of jobs.
    first_jobs: &'a [usize],
    shards: Vec<ShardSlices<'a>>,
}

impl<'a> StoredJobs<'a> {
    /// The number of jobs.
    pub fn len(&self) -> usize {
        self.first_jobs[self.first_jobs.len() - 1]
    }

    /// Returns true if there are no jobs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `map` on all threads with consecutive ranges of the jobs, and returns the results in
    /// order.
    pub fn map_ranges<T: Send>(&self, map: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
        map_ranges(self.len(), JOBS_PER_TASK, map)
    }

    /// Returns job `index`, counted from 0.
    ///
    /// # Panics
    /// Panics if the job does not exist.
    #[inline]
    pub fn get(&self, index: usize) -> StoredJob<'a> {
        let (shard, at) = self.locate(index);
        shard.job(at)
    }

    /// Returns the events of job `index`. Like [`StoredJobs::get`], but reads only the columns of
    /// events.
    #[inline]
    pub fn history(&self, index: usize) -> JobHistory<'a> {
        let (shard, at) = self.locate(index);
        shard.history(at)
    }

    /// Returns the event numbers of job `index`. Like [`StoredJobs::history`], but reads no other
    /// columns.
    #[inline]
    pub fn numbers(&self, index: usize) -> &'a [u16] {
        let (shard, at) = self.locate(index);
        shard.numbers(at)
    }

    /// Returns true if job `index` was held.
    #[inline]
    pub fn was_held(&self, index: usize) -> bool {
        // A fold over all events, without an early exit, is vectorized and faster than a search.
        (self.numbers(index).iter()).fold(false, |held, &number| held | (number == HELD))
    }

    /// Returns the cluster of job `index`, with the index of its access point in
    /// [`StoreSummary::aps`] first.
    #[inline]
    pub fn cluster(&self, index: usize) -> (u32, i32) {
        let (shard, at) = self.locate(index);
        shard.cluster(at)
    }

    /// Returns the index of the first event of job `index` in its shard: the first value that
    /// [`StoredJobs::history`] looks up.
    #[inline]
    pub fn first_event(&self, index: usize) -> u64 {
        let (shard, at) = self.locate(index);
        shard.first_event(at)
    }

    /// Returns the salted hashes of the input files that the ad of job `index` names; none without an ad.
    pub fn inputs(&self, index: usize) -> impl Iterator<Item = InputFile> + use<'a> {
        let (shard, at) = self.locate(index);
        shard.inputs(at)
    }

    /// Returns the shard of job `index`, and the index of the job in it.
    #[inline]
    fn locate(&self, index: usize) -> (&ShardSlices<'a>, usize) {
        let shard = self.first_jobs.partition_point(|&first| first <= index) - 1;
        (&self.shards[shard], index - self.first_jobs[shard])
    }

    /// Iterates over all jobs, in order.
    pub fn iter(&self) -> impl Iterator<Item = StoredJob<'a>> {
        self.shards
            .iter()
            .flat_map(|shard| (0..shard.job_count()).map(|at| shard.job(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::job_row::{AdRow, EventRow, LogStretch, StoredId};
    use super::*;
    use htcondor_eventlog::{JobEvent, ResourceRequest, SubmissionNames};

    fn columns(jobs: usize) -> ShardColumns {
        let mut columns = ShardColumns::with_capacity(0);
        for cluster in 0..jobs as i32 {
            let row = |number| {
                let event = JobEvent {
                    cluster,
                    number,
                    time_ms: i64::from(number),
                    ..JobEvent::default()
                };
                EventRow::new(0, LogStretch::numbered(0), &event)
            };
            let events: Vec<EventRow> = (0..=cluster as u16 % 3).map(row).collect();
            let id = StoredId {
                cluster,
                ..StoredId::default()
            };
            let ad = AdRow::new(
                id,
                5000,
                7,
                ResourceRequest::default(),
                SubmissionNames::default(),
            );
            columns.push_job(&events, i64::from(cluster), Some(&ad), &[]);
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

    fn write(path: &Path, parts: &[ShardColumns]) {
        let mut writer = StoreWriter::new(StagedDirectory::new(path, false).expect("staged"));
        parts
            .iter()
            .for_each(|part| writer.write_shard(part).expect("written"));
        let jobs = parts.iter().map(|part| part.job_count()).sum();
        writer.commit("key", &mut summary(jobs)).expect("committed");
    }

    fn shard(columns: ShardColumns) -> Shard {
        Shard::from_bytes(&columns.layout().expect("laid out").bytes(), EVENTS_FORMAT)
            .expect("sound")
    }

    #[test]
    fn written_store_equals_store_in_memory() {
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
    fn foreign_and_corrupt_stores_are_rejected() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(EventStore::open(dir.path()).is_err(), "no manifest");
        let path = dir.path().join("events");
        write(&path, &[columns(10)]);
        let shard = path.join("events-00000.safetensors");
        fs_err::write(&shard, columns(9).layout().expect("laid out").bytes()).expect("written");
        let error = EventStore::open(&path).expect_err("other columns");
        assert!(
            poolcast_base::error::render(&error).contains("poolcast parse"),
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
