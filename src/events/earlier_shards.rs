//! The shards of an earlier store of the same logs, between which new rows are merged. Shards that
//! no new row belongs to stay as they are, and are not read.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::job_row::{AdRow, EventRow, InputRow, LogStretch, SameIdRows, StoredId};
use super::shard_columns::ShardSlices;
use super::shard_sequence::{KeptShard, ShardSequence};
use super::store_summary::{ListedEventShard, StoreSummary};
use poolcast_base::manifest;
use poolcast_base::shard::Shard;

/// The jobs of an earlier store that are not in the new one yet.
#[derive(Debug, Default)]
pub(super) struct EarlierShards {
    dir: PathBuf,
    /// Number of access points of the earlier store.
    access_points: usize,
    /// The shards without a job in the new store.
    next: VecDeque<ListedEventShard>,
    /// A shard whose jobs are being merged.
    open: Option<OpenShard>,
    /// Time after which events belong to the last log, which has grown; epoch ms.
    last_log_after_ms: i64,
}

#[derive(Debug)]
struct OpenShard {
    shard: Shard,
    next_job: usize,
}

impl EarlierShards {
    /// All shards of the store in `dir`.
    ///
    /// A store does not record the log of an event. Events after the ends of all other logs belong
    /// to the last log, which continues in order. They get stretch 1, which the rest of that log
    /// continues. All other events get stretch 0.
    pub(super) fn new(dir: &Path, store: &StoreSummary, last_has_grown: bool) -> EarlierShards {
        let other_sources = store.sources.iter().rev().skip(1);
        let others_end_ms = other_sources.filter_map(|source| source.end_ms).max();
        let last_log_after_ms = match last_has_grown {
            true => others_end_ms.unwrap_or(i64::MIN),
            false => i64::MAX,
        };
        EarlierShards {
            dir: dir.to_owned(),
            access_points: store.aps.len(),
            next: store.shards.iter().cloned().collect(),
            open: None,
            last_log_after_ms,
        }
    }

    /// Adds to `shards` all jobs before `id`, or all that are left without it. Whole shards are kept
    /// where one begins in the new store, too.
    pub(super) fn add_jobs_before(
        &mut self,
        id: Option<StoredId>,
        shards: &mut ShardSequence<'_, '_>,
    ) -> Result<()> {
        loop {
            if !self.merge_before(id, shards)? {
                return Ok(());
            }
            let Some(listed) = self.next.pop_front() else {
                return Ok(());
            };

            // The last shard ended with the store, so that jobs after it belong to it.
            let is_last = self.next.is_empty();
            let ends_before = id.is_none_or(|id| !is_last && listed.last_job < Some(id));
            if ends_before && shards.is_between_shards() {
                let path = manifest::listed_path(&self.dir, &listed.file)?;
                shards.keep(KeptShard { path, listed })?;
            } else {
                self.open = Some(OpenShard {
                    shard: listed.open(&self.dir, self.access_points)?,
                    next_job: 0,
                });
            }
        }
    }

    /// Adds the jobs of the open shard before `id`. Returns true if none of them is left.
    fn merge_before(
        &mut self,
        id: Option<StoredId>,
        shards: &mut ShardSequence<'_, '_>,
    ) -> Result<bool> {
        let Some(open) = &mut self.open else {
            return Ok(true);
        };
        let slices = ShardSlices::from_shard(&open.shard)?;
        while open.next_job < slices.job_count() {
            let next = slices.id(open.next_job);
            if id.is_some_and(|id| next >= id) {
                return Ok(false);
            }
            let mut rows = SameIdRows::default();
            open.next_job = read_id(&slices, open.next_job, self.last_log_after_ms, &mut rows);
            shards.push(&mut rows)?;
        }
        self.open = None;
        Ok(true)
    }

    /// Adds the rows of the id of `rows` before them, once all earlier ids were added.
    pub(super) fn prepend_rows(&mut self, rows: &mut SameIdRows) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let slices = ShardSlices::from_shard(&open.shard)?;
        if open.next_job < slices.job_count() && Some(slices.id(open.next_job)) == rows.id() {
            let mut earlier = SameIdRows::default();
            open.next_job = read_id(&slices, open.next_job, self.last_log_after_ms, &mut earlier);
            rows.prepend(earlier);
        }
        Ok(())
    }
}

/// Adds to `rows` the rows of all jobs with the id of job `first`; returns the job after them.
fn read_id(
    shard: &ShardSlices<'_>,
    first: usize,
    last_log_after_ms: i64,
    rows: &mut SameIdRows,
) -> usize {
    let id = shard.id(first);
    let mut at = first;
    while at < shard.job_count() && shard.id(at) == id {
        let job = shard.job(at);
        if job.owner != 0 || job.global_submit_s != 0 {
            let submit_ms = job.global_submit_s * 1000;
            let ad = AdRow::new(id, submit_ms, job.owner, job.request, job.names);
            rows.ads.push(ad);
            let input_row = |input| InputRow {
                id,
                submit_ms,
                input,
            };
            rows.inputs.extend(shard.inputs(at).map(input_row));
        }
        for event in (0..job.history.number.len()).map(|event| job.event(event)) {
            let is_of_last = event.time_ms > last_log_after_ms;
            let stretch = LogStretch::numbered(u32::from(is_of_last));
            rows.events.push(EventRow::new(job.ap, stretch, &event));
        }
        at += 1;
    }
    at
}
