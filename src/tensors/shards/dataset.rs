//! A memory-mapped directory of tensors.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::format::TENSORS_FORMAT;
use super::sample_shard::{
    SampleCounts, SampleShape, check, codes_of_sample, shared_of_sample, statics_of_sample,
};
use super::tensor_summary::{ListedTensorShard, SplitSummary, TensorSummary};
use crate::cycles::Split;
use crate::tokens::StoredTokens;
use poolcast_base::error::{hinted, unavailable};
use poolcast_base::manifest;
use poolcast_base::parallel::map_items;
use poolcast_base::shard::Shard;

/// A memory-mapped directory of tensors.
#[derive(Debug)]
pub struct Dataset {
    /// The content of the manifest.
    pub summary: TensorSummary,
    /// Digest of the inputs of the tensors.
    pub key: String,
    shape: SampleShape,
    splits: BTreeMap<Split, SplitShards>,
}

/// The shards of one split.
#[derive(Debug)]
struct SplitShards {
    shards: Vec<Shard>,
    /// The index of the first sample of each shard, and the total number of samples.
    first_samples: Vec<usize>,
}

impl SplitShards {
    /// Maps the shards of `split` in `dir`, and checks them against `summary`.
    fn open(
        dir: &Path,
        split: Split,
        summary: &SplitSummary,
        shape: SampleShape,
    ) -> Result<SplitShards> {
        let opened = map_items(&summary.shards, |listed| open_shard(dir, listed, shape));

        let mut shards = Vec::new();
        let mut first_samples = vec![0];
        let mut samples = 0;
        let mut successes = 0;
        for opened in opened {
            let (shard, counts): (Shard, SampleCounts) = opened?;
            samples += counts.samples;
            successes += counts.successes;
            first_samples.push(samples);
            shards.push(shard);
        }

        ensure!(
            (samples, successes) == (summary.samples, summary.successes),
            "`{}` lists {}, {} of them with label 1, but contains {samples}, {successes} of them with label 1",
            dir.display(),
            poolcast_base::output::counted(summary.samples, &format!("{} sample", split.name())),
            summary.successes
        );
        Ok(SplitShards {
            shards,
            first_samples,
        })
    }

    /// Returns the shard with sample `index` of the split, and the index of the sample in it.
    fn find(&self, index: usize) -> (&Shard, usize) {
        let first_samples = &self.first_samples;
        let at = first_samples.partition_point(|&first| first <= index) - 1;
        (&self.shards[at], index - first_samples[at])
    }
}

/// Opens a shard in `dir`, and counts its samples.
fn open_shard(
    dir: &Path,
    listed: &ListedTensorShard,
    shape: SampleShape,
) -> Result<(Shard, SampleCounts)> {
    let shard = manifest::open_shard(dir, &listed.file, &listed.xxh3, TENSORS_FORMAT)?;
    let counts = check(&shard, shape).with_context(|| {
        hinted(
            format!("`{}` has invalid samples", shard.path().display()),
            format!("build it again with `{}`", TENSORS_FORMAT.rebuild),
        )
    })?;
    Ok((shard, counts))
}

impl Dataset {
    /// Maps the tensors in `dir`, and checks that they are byte-identical to the files in the
    /// manifest.
    pub fn open(dir: &Path) -> Result<Dataset> {
        Dataset::open_splits(dir, &Split::ALL)
    }

    /// Like [`Dataset::open`], but for `split` alone. The shards of the other splits may be missing,
    /// and have no samples to read.
    pub fn open_split(dir: &Path, split: Split) -> Result<Dataset> {
        Dataset::open_splits(dir, &[split])
    }

    fn open_splits(dir: &Path, wanted: &[Split]) -> Result<Dataset> {
        let manifest = manifest::read::<TensorSummary>(dir, TENSORS_FORMAT)?;
        let summary = manifest.body;
        summary
            .settings
            .check()
            .with_context(|| format!("`{}` has invalid settings", dir.display()))?;
        let shape = SampleShape {
            e: summary.settings.e(),
            m: summary.settings.m,
            j: summary.settings.j,
            s: summary.settings.s(),
            shared_bits: summary.settings.shared_bits(),
            has_tokens: summary.settings.outcomes,
        };
        ensure!(
            summary.e == shape.e,
            unavailable(
                format!(
                    "`{}` has e = {}, but this version uses {}",
                    dir.display(),
                    summary.e,
                    shape.e
                ),
                format!("build it again with `{}`", TENSORS_FORMAT.rebuild)
            )
        );

        let mut splits = BTreeMap::new();
        for &split in wanted {
            let listed = summary.splits.get(&split);
            let listed = listed
                .with_context(|| format!("`{}` has no {} split", dir.display(), split.name()))?;
            splits.insert(split, SplitShards::open(dir, split, listed, shape)?);
        }
        Ok(Dataset {
            summary,
            key: manifest.key,
            shape,
            splits,
        })
    }

    /// The number of samples in `split`.
    pub fn len(&self, split: Split) -> usize {
        let listed = self.summary.splits.get(&split);
        listed.map_or(0, |listed| listed.samples)
    }

    /// Returns true if `split` has no samples.
    pub fn is_empty(&self, split: Split) -> bool {
        self.len(split) == 0
    }

    /// Returns the codes `[m * j]` of sample `index` of `split`.
    ///
    /// # Panics
    /// Panics if the sample does not exist.
    pub fn codes(&self, split: Split, index: usize) -> &[u8] {
        let (shard, at) = self.splits[&split].find(index);
        codes_of_sample(shard, at, self.shape.m * self.shape.j)
    }

    /// Returns the static features `[s]` of sample `index` of `split`.
    ///
    /// # Panics
    /// Panics if the sample does not exist.
    pub fn statics(&self, split: Split, index: usize) -> &[f32] {
        let (shard, at) = self.splits[&split].find(index);
        statics_of_sample(shard, at, self.shape.s)
    }

    /// Returns what each job of sample `index` of `split` shares with the held one, as bits `[j]`; empty
    /// unless the context jobs are related ones.
    ///
    /// # Panics
    /// Panics if the sample does not exist.
    pub fn shared(&self, split: Split, index: usize) -> &[u8] {
        let j = self.summary.settings.shared_bytes();
        if j == 0 {
            return &[];
        }
        let (shard, at) = self.splits[&split].find(index);
        shared_of_sample(shard, at, j)
    }

    /// Returns the outcome tokens of sample `index` of `split`.
    ///
    /// # Errors
    /// Fails if the samples have none.
    ///
    /// # Panics
    /// Panics if the sample does not exist.
    pub fn tokens(&self, split: Split, index: usize) -> Result<StoredTokens<'_>> {
        ensure!(
            self.summary.settings.outcomes,
            hinted(
                "the tensors have no outcome tokens, which the model reads",
                "set `preprocessing.outcomes: true`, and build them again"
            )
        );
        let (shard, at) = self.splits[&split].find(index);
        Ok(StoredTokens::of_sample(shard, at))
    }

    fn shards(&self, split: Split) -> &[Shard] {
        self.splits.get(&split).map_or(&[], |split| &split.shards)
    }

    /// Returns a column of `split`, `[n]`, concatenated over all its shards.
    pub fn column<T: poolcast_base::shard::ShardElement>(
        &self,
        split: Split,
        name: &str,
    ) -> Result<Vec<T>> {
        let mut all = Vec::with_capacity(self.len(split));
        for shard in self.shards(split) {
            all.extend_from_slice(shard.column(name)?);
        }
        Ok(all)
    }
}
