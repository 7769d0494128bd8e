//! Writes shards of samples from labelled holds. Each shard is written while the next one is made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rayon::prelude::*;

use super::build_progress::BuildProgress;
use super::sample_shard::{SampleRow, SampleShape, ShardSamples};
use super::tensor_summary::ListedTensorShard;
use crate::codes::RecentActivity;
use crate::codes::SampleEncoder;
use crate::cycles::LabelledHold;
use crate::cycles::QueriedHold;
use crate::cycles::Split;
use crate::history::PoolHistory;
use crate::history::seconds_between;
use crate::tokens::TokenHistory;
use poolcast_config::FeatureGroup;
use poolcast_events::StoredJobs;
use poolcast_models::EMPTY_CELL;

/// Maximum number of samples per parallel task.
const MAX_SAMPLES_PER_TASK: usize = 256;

/// The inputs of samples.
pub(crate) struct SampleSources<'a> {
    pub(crate) jobs: StoredJobs<'a>,
    pub(crate) history: PoolHistory,
    pub(crate) features: Vec<FeatureGroup>,
    pub(crate) encoder: SampleEncoder<'a>,
    /// History of outcome tokens; `None` for samples without tokens.
    pub(crate) tokens: Option<TokenHistory<'a>>,
}

impl SampleSources<'_> {
    /// Makes the samples of `holds` in the memory of `made`. `activity` must cover their windows.
    pub(crate) fn make_samples(
        &self,
        holds: &[LabelledHold],
        activity: &RecentActivity,
        shape: SampleShape,
        made: &mut ShardSamples,
        progress: &(impl Fn(BuildProgress) + Sync),
    ) {
        let cells = shape.m * shape.j;
        made.codes.resize(holds.len() * cells, EMPTY_CELL);
        made.statics.resize(holds.len() * shape.s, 0.0);
        let shared_bytes = if shape.shared_bits > 0 { shape.j } else { 0 };
        made.shared.resize(holds.len() * shared_bytes, 0);
        let at_once = holds
            .len()
            .div_ceil(rayon::current_num_threads())
            .clamp(1, MAX_SAMPLES_PER_TASK);
        // Without shared bits, there is an empty slice for each task.
        let tasks = holds.len().div_ceil(at_once);
        let mut shared: Vec<&mut [u8]> = made
            .shared
            .chunks_mut((at_once * shared_bytes).max(1))
            .collect();
        shared.resize_with(tasks, Default::default);
        let batches = made
            .codes
            .par_chunks_mut(at_once * cells)
            .zip(made.statics.par_chunks_mut(at_once * shape.s))
            .zip(shared)
            .zip(holds.par_chunks(at_once));
        batches.for_each(|(((codes, statics), shared), batch)| {
            let asked: Vec<QueriedHold> = batch.iter().map(|hold| hold.asked).collect();
            self.encoder.encode_batch(&asked, activity, codes, shared);
            self.write_statics(&asked, statics);
            progress(BuildProgress::Made {
                samples: batch.len() as u64,
            });
        });

        if let Some(tokens) = &self.tokens {
            let asked: Vec<QueriedHold> = holds.iter().map(|hold| hold.asked).collect();
            tokens.write_rows(&asked, &mut made.tokens);
        }
        holds
            .par_iter()
            .map(|hold| self.row(hold))
            .collect_into_vec(&mut made.rows);
    }

    /// Writes the static features `[n, s]` of several holds.
    fn write_statics(&self, holds: &[QueriedHold], statics: &mut [f32]) {
        let mut from_hold = Vec::with_capacity(statics.len() / holds.len().max(1));
        let mut last = None;
        for (asked, statics) in holds
            .iter()
            .zip(statics.chunks_exact_mut(from_hold.capacity()))
        {
            let job = self.jobs.get(asked.job as usize);
            let facts = self.history.facts_with_previous(&job, asked, &mut last);
            from_hold.clear();
            facts.add_static_features(&self.features, &mut from_hold);
            statics.copy_from_slice(&from_hold);
        }
    }

    fn row(&self, hold: &LabelledHold) -> SampleRow {
        let job = self.jobs.get(hold.asked.job as usize);
        SampleRow {
            label: hold.is_success(),
            hold_ms: hold.hold_ms,
            asked_ms: hold.asked.asked_ms,
            outcome_ms: hold.decided_ms,
            cluster: job.cluster,
            proc: job.proc,
            group: hold.group,
            hold_code: job.history.hold_code[hold.asked.cycle.hold],
            hold_subcode: job.history.hold_subcode[hold.asked.cycle.hold],
            earlier_holds: hold.asked.cycle.earlier_holds,
            since_submit_s: seconds_between(job.submit_ms, hold.asked.asked_ms),
        }
    }
}

/// The destination of a shard.
#[derive(Debug)]
struct ShardDestination {
    split: Split,
    file: String,
}

/// Writes one shard while the next one is made. Writing mostly waits for the disk.
pub(crate) struct ShardWriter {
    shape: SampleShape,
    dir: PathBuf,
    /// The shards written so far, by split.
    written: BTreeMap<Split, Vec<ListedTensorShard>>,
    /// The destination of the samples in `made`; `None` if there are none.
    place: Option<ShardDestination>,
    made: ShardSamples,
    /// Reused memory for the next samples.
    spare: ShardSamples,
}

impl ShardWriter {
    pub(crate) fn new(shape: SampleShape, dir: &Path) -> ShardWriter {
        ShardWriter {
            shape,
            dir: dir.to_owned(),
            written: BTreeMap::new(),
            place: None,
            made: ShardSamples::default(),
            spare: ShardSamples::default(),
        }
    }

    /// Makes shard number `index` of `split`, while the previous shard is written.
    pub(crate) fn add_shard(
        &mut self,
        split: Split,
        index: usize,
        make: impl FnOnce(&mut ShardSamples),
    ) -> Result<()> {
        let mut next = std::mem::take(&mut self.spare);
        std::thread::scope(|scope| {
            let written = scope.spawn(|| self.write_made());
            make(&mut next);
            written
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;

        self.spare = std::mem::replace(&mut self.made, next);
        self.place = Some(ShardDestination {
            split,
            file: format!("{}-{index:05}.safetensors", split.name()),
        });
        Ok(())
    }

    /// Writes the shard that was made last.
    fn write_made(&mut self) -> Result<()> {
        let Some(ShardDestination { split, file }) = self.place.take() else {
            return Ok(());
        };
        let xxh3 = self.made.write(&self.dir.join(&file), self.shape)?;
        let listed = ListedTensorShard { file, xxh3 };
        self.written.entry(split).or_default().push(listed);
        Ok(())
    }

    /// Writes the last shard; returns all shards by split.
    pub(crate) fn finish(mut self) -> Result<BTreeMap<Split, Vec<ListedTensorShard>>> {
        self.write_made()?;
        Ok(self.written)
    }
}
