//! Tensor shards: written once per side, mapped to read; `codes` U8 `[n, m, j]` with what each sample is beside it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::cycles::LeftOutReason;
use super::facts::HoldFacts;
use super::record::{HoldHistory, OutcomeCounts};
use super::settings::TensorSettings;
use super::window::EMPTY_CELL;
use crate::error::hinted;
use crate::eventlog::ResourceRequest;
use crate::events::TIMESTAMPS_MS;
use crate::manifest::{self, Checksum};
use crate::shard::{ArtefactFormat, Shard, ShardColumn, ShardLayout};

/// Tensor shards.
pub const TENSORS_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "tensors",
    version: 4,
    rebuild: "poolcast tensors EVENTS -o DIR",
};

/// A side of the split.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum SplitSide {
    Train,
    Validate,
    Test,
}

impl SplitSide {
    /// All sides, earliest first.
    pub const ALL: [SplitSide; 3] = [SplitSide::Train, SplitSide::Validate, SplitSide::Test];

    /// The word in file names and reports.
    pub fn name(self) -> &'static str {
        match self {
            SplitSide::Train => "train",
            SplitSide::Validate => "validate",
            SplitSide::Test => "test",
        }
    }
}

/// What a directory of tensors says of itself in its manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TensorSummary {
    /// How the samples were made.
    #[serde(flatten)]
    pub settings: TensorSettings,
    /// Event types, with the place for unknown ones.
    pub e: usize,
    /// Hold cycles in the log.
    pub cycles_total: usize,
    /// Cycles that are no sample, by reason.
    pub left_out: BTreeMap<LeftOutReason, usize>,
    /// The samples of each side.
    pub splits: BTreeMap<SplitSide, SideSummary>,
}

/// The samples of one side.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SideSummary {
    /// How many.
    pub samples: usize,
    /// How many with label 1.
    pub successes: usize,
    /// The first hold, epoch ms.
    pub from_ms: i64,
    /// The last hold, epoch ms.
    pub to_ms: i64,
    /// The side's shards.
    pub shards: Vec<ListedTensorShard>,
}

/// A shard of one side.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListedTensorShard {
    /// Its file.
    pub file: String,
    /// The digest of that file, a [`Checksum`].
    pub xxh3: String,
}

/// What a sample takes in a shard besides its codes.
pub(super) const ROW_BYTES: usize = 80;

/// What a shard takes besides its samples, about.
pub(super) const HEADER_BYTES: usize = 2048;

/// What a sample is, apart from its codes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) label: bool,
    pub(super) hold_ms: i64,
    pub(super) outcome_ms: i64,
    pub(super) cluster: i32,
    pub(super) proc: i32,
    pub(super) group: u32,
    pub(super) facts: HoldFacts,
}

/// Writes one shard of samples; returns its digest.
pub(super) fn write_shard(
    path: &Path,
    codes: &[u8],
    rows: &[Row],
    m: usize,
    j: usize,
) -> Result<String> {
    let label: Vec<u8> = rows.iter().map(|row| u8::from(row.label)).collect();
    let hold_time_ms: Vec<i64> = rows.iter().map(|row| row.hold_ms).collect();
    let outcome_time_ms: Vec<i64> = rows.iter().map(|row| row.outcome_ms).collect();
    let ints = |field: fn(&Row) -> i32| rows.iter().map(field).collect::<Vec<i32>>();
    let (cluster, proc) = (ints(|row| row.cluster), ints(|row| row.proc));
    let (hold_code, hold_subcode) = (
        ints(|row| row.facts.hold_code),
        ints(|row| row.facts.hold_subcode),
    );
    let words = |field: fn(&Row) -> u32| rows.iter().map(field).collect::<Vec<u32>>();
    let bytes = |field: fn(&Row) -> u8| rows.iter().map(field).collect::<Vec<u8>>();
    let (earlier_holds, group) = (words(|row| row.facts.earlier_holds), words(|row| row.group));
    let subcode_family = bytes(|row| row.facts.subcode_family());
    let since_submit_s = words(|row| row.facts.since_submit_s);
    let (cpus, gpus) = (
        bytes(|row| row.facts.request.cpus),
        bytes(|row| row.facts.request.gpus),
    );
    let (memory_mb, disk_mb) = (
        words(|row| row.facts.request.memory_mb),
        words(|row| row.facts.request.disk_mb),
    );
    let [
        cluster_successes,
        cluster_failures,
        owner_successes,
        owner_failures,
        ended_well,
        ended_badly,
    ] = [
        words(|row| row.facts.record.cluster.successes),
        words(|row| row.facts.record.cluster.failures),
        words(|row| row.facts.record.owner.successes),
        words(|row| row.facts.record.owner.failures),
        words(|row| row.facts.record.ends.successes),
        words(|row| row.facts.record.ends.failures),
    ];
    let columns = [
        ("codes", ShardColumn::new(codes, &[rows.len(), m, j])),
        ("label", ShardColumn::vector(&label)),
        ("hold_time_ms", ShardColumn::vector(&hold_time_ms)),
        ("outcome_time_ms", ShardColumn::vector(&outcome_time_ms)),
        ("cluster", ShardColumn::vector(&cluster)),
        ("proc", ShardColumn::vector(&proc)),
        ("hold_code", ShardColumn::vector(&hold_code)),
        ("hold_subcode", ShardColumn::vector(&hold_subcode)),
        ("earlier_holds", ShardColumn::vector(&earlier_holds)),
        ("group", ShardColumn::vector(&group)),
        ("subcode_family", ShardColumn::vector(&subcode_family)),
        ("since_submit_s", ShardColumn::vector(&since_submit_s)),
        ("request_cpus", ShardColumn::vector(&cpus)),
        ("request_gpus", ShardColumn::vector(&gpus)),
        ("request_memory_mb", ShardColumn::vector(&memory_mb)),
        ("request_disk_mb", ShardColumn::vector(&disk_mb)),
        ("cluster_successes", ShardColumn::vector(&cluster_successes)),
        ("cluster_failures", ShardColumn::vector(&cluster_failures)),
        ("owner_successes", ShardColumn::vector(&owner_successes)),
        ("owner_failures", ShardColumn::vector(&owner_failures)),
        ("cluster_ended_well", ShardColumn::vector(&ended_well)),
        ("cluster_ended_badly", ShardColumn::vector(&ended_badly)),
    ];
    let columns = columns
        .map(|(name, column)| (name.to_owned(), column))
        .to_vec();
    let layout = ShardLayout::new(TENSORS_FORMAT, &serde_json::json!({}), columns)?;
    layout.write(path)?;
    Ok(Checksum::of(layout.parts()))
}

/// A directory of tensors, mapped.
#[derive(Debug)]
pub struct Dataset {
    /// What the manifest says.
    pub summary: TensorSummary,
    /// The digest of what the tensors were made from.
    pub key: String,
    sides: BTreeMap<SplitSide, Shards>,
}

/// The shards of one side.
#[derive(Debug)]
struct Shards {
    shards: Vec<Shard>,
    /// The first sample of each, and the number of all.
    starts: Vec<usize>,
}

impl Dataset {
    /// Maps the tensors in `dir` and checks that they are what the manifest lists, byte for byte.
    pub fn open(dir: &Path) -> Result<Dataset> {
        Dataset::open_sides(dir, &SplitSide::ALL)
    }

    /// The same of `side` alone: the shards of the others need not be there, and have no samples to read.
    pub fn open_side(dir: &Path, side: SplitSide) -> Result<Dataset> {
        Dataset::open_sides(dir, &[side])
    }

    fn open_sides(dir: &Path, wanted: &[SplitSide]) -> Result<Dataset> {
        let manifest = manifest::read::<TensorSummary>(dir, TENSORS_FORMAT)?;
        let summary = manifest.body;
        let TensorSettings { m, j, .. } = summary.settings;
        summary
            .settings
            .check()
            .with_context(|| format!("`{}` has strange settings", dir.display()))?;
        let e = summary.settings.e();
        ensure!(
            summary.e == e,
            hinted(
                format!(
                    "`{}` has e = {}, and this program uses {e}",
                    dir.display(),
                    summary.e
                ),
                format!("make it anew with `{}`", TENSORS_FORMAT.rebuild)
            )
        );
        let mut sides = BTreeMap::new();
        for &side in wanted {
            let listed = summary.splits.get(&side);
            let listed = listed
                .with_context(|| format!("`{}` has no {} side", dir.display(), side.name()))?;
            let opened = listed
                .shards
                .par_iter()
                .map(|shard| shard.open(dir, e, (m, j)));
            let opened: Vec<(Shard, Counts)> = opened.collect::<Result<_>>()?;
            let (mut shards, mut starts, mut successes) = (Vec::new(), vec![0], 0);
            for (shard, counts) in opened {
                starts.push(starts[shards.len()] + counts.samples);
                successes += counts.successes;
                shards.push(shard);
            }
            let found = starts[shards.len()];
            ensure!(
                (found, successes) == (listed.samples, listed.successes),
                "`{}` lists {}, {} of them with label 1, and holds {found}, {successes} of them with label 1",
                dir.display(),
                crate::output::counted(listed.samples, &format!("{} sample", side.name())),
                listed.successes
            );
            sides.insert(side, Shards { shards, starts });
        }
        Ok(Dataset {
            summary,
            key: manifest.key,
            sides,
        })
    }

    /// How many samples `side` has.
    pub fn len(&self, side: SplitSide) -> usize {
        self.summary
            .splits
            .get(&side)
            .map_or(0, |listed| listed.samples)
    }

    /// Whether `side` has no sample.
    pub fn is_empty(&self, side: SplitSide) -> bool {
        self.len(side) == 0
    }

    /// The codes `[m * j]` of sample `index` of `side`.
    ///
    /// # Panics
    /// Panics when there is no such sample.
    pub fn codes(&self, side: SplitSide, index: usize) -> &[u8] {
        let size = self.summary.settings.m * self.summary.settings.j;
        let Shards { shards, starts } = &self.sides[&side];
        let at = starts.partition_point(|&start| start <= index) - 1;
        let codes: &[u8] = shards[at]
            .column("codes")
            .expect("checked when the shard was opened");
        &codes[(index - starts[at]) * size..][..size]
    }

    fn shards(&self, side: SplitSide) -> &[Shard] {
        self.sides.get(&side).map_or(&[], |side| &side.shards)
    }

    /// The facts of every sample of `side`, `[n]`.
    pub fn facts(&self, side: SplitSide) -> Result<Vec<HoldFacts>> {
        let mut all = Vec::with_capacity(self.len(side));
        for shard in self.shards(side) {
            let (hold_code, hold_subcode) =
                (shard.column("hold_code")?, shard.column("hold_subcode")?);
            let (earlier_holds, since_submit_s) = (
                shard.column("earlier_holds")?,
                shard.column("since_submit_s")?,
            );
            let (cpus, gpus) = (shard.column("request_cpus")?, shard.column("request_gpus")?);
            let (memory_mb, disk_mb) = (
                shard.column("request_memory_mb")?,
                shard.column("request_disk_mb")?,
            );
            let cluster = tallies(shard, "cluster_successes", "cluster_failures")?;
            let owner = tallies(shard, "owner_successes", "owner_failures")?;
            let ends = tallies(shard, "cluster_ended_well", "cluster_ended_badly")?;
            all.extend((0..hold_code.len()).map(|sample| HoldFacts {
                hold_code: hold_code[sample],
                hold_subcode: hold_subcode[sample],
                earlier_holds: earlier_holds[sample],
                since_submit_s: since_submit_s[sample],
                request: ResourceRequest {
                    cpus: cpus[sample],
                    gpus: gpus[sample],
                    memory_mb: memory_mb[sample],
                    disk_mb: disk_mb[sample],
                },
                record: HoldHistory {
                    cluster: cluster[sample],
                    owner: owner[sample],
                    ends: ends[sample],
                },
            }));
        }
        Ok(all)
    }

    /// A column of `side` over all its shards, `[n]`.
    pub fn column<T: crate::shard::ShardElement>(
        &self,
        side: SplitSide,
        name: &str,
    ) -> Result<Vec<T>> {
        let mut all = Vec::with_capacity(self.len(side));
        for shard in self.shards(side) {
            all.extend_from_slice(shard.column(name)?);
        }
        Ok(all)
    }
}

/// What a shard holds.
#[derive(Debug, Clone, Copy)]
struct Counts {
    samples: usize,
    /// Those with label 1.
    successes: usize,
}

impl ListedTensorShard {
    /// Opens the shard, which is in `dir` and has samples of `m` frames and `j` jobs.
    fn open(&self, dir: &Path, e: usize, (m, j): (usize, usize)) -> Result<(Shard, Counts)> {
        let shard = manifest::open_shard(dir, &self.file, &self.xxh3, TENSORS_FORMAT)?;
        let counts = check(&shard, e, m, j).with_context(|| {
            hinted(
                format!("`{}` does not hold sound samples", shard.path().display()),
                format!("make it anew with `{}`", TENSORS_FORMAT.rebuild),
            )
        })?;
        Ok((shard, counts))
    }
}

/// The tally of each sample, from two columns.
fn tallies(shard: &Shard, successes: &str, failures: &str) -> Result<Vec<OutcomeCounts>> {
    let (successes, failures): (&[u32], &[u32]) =
        (shard.column(successes)?, shard.column(failures)?);
    let both = successes.iter().zip(failures);
    Ok(both
        .map(|(&successes, &failures)| OutcomeCounts {
            successes,
            failures,
        })
        .collect())
}

/// Checks everything that readers rely on, so that no file can make them panic.
fn check(shard: &Shard, e: usize, m: usize, j: usize) -> Result<Counts> {
    let shape = shard.shape("codes")?;
    ensure!(
        shape.len() == 3 && shape[1..] == [m, j],
        "`codes` has shape {shape:?}, expected [n, {m}, {j}]"
    );
    let n = shape[0];
    let codes: &[u8] = shard.column("codes")?;
    let known = |&cell: &u8| usize::from(cell) < e || cell == EMPTY_CELL;
    ensure!(
        codes.iter().all(known),
        "`codes` holds an event type that is not below {e}"
    );
    let lengths = [
        shard.column::<u8>("label")?.len(),
        shard.column::<i64>("hold_time_ms")?.len(),
        shard.column::<i64>("outcome_time_ms")?.len(),
        shard.column::<i32>("cluster")?.len(),
        shard.column::<i32>("proc")?.len(),
        shard.column::<i32>("hold_code")?.len(),
        shard.column::<i32>("hold_subcode")?.len(),
        shard.column::<u32>("earlier_holds")?.len(),
        shard.column::<u32>("group")?.len(),
        shard.column::<u8>("subcode_family")?.len(),
        shard.column::<u32>("since_submit_s")?.len(),
        shard.column::<u8>("request_cpus")?.len(),
        shard.column::<u8>("request_gpus")?.len(),
        shard.column::<u32>("request_memory_mb")?.len(),
        shard.column::<u32>("request_disk_mb")?.len(),
        shard.column::<u32>("cluster_successes")?.len(),
        shard.column::<u32>("cluster_failures")?.len(),
        shard.column::<u32>("owner_successes")?.len(),
        shard.column::<u32>("owner_failures")?.len(),
        shard.column::<u32>("cluster_ended_well")?.len(),
        shard.column::<u32>("cluster_ended_badly")?.len(),
    ];
    ensure!(
        lengths.iter().all(|&length| length == n),
        "its columns have other lengths than its {}",
        crate::output::counted(n, "sample")
    );
    let label: &[u8] = shard.column("label")?;
    ensure!(
        label.iter().all(|&label| label <= 1),
        "a label is neither 0 nor 1"
    );
    let times_ms = shard
        .column::<i64>("hold_time_ms")?
        .iter()
        .chain(shard.column::<i64>("outcome_time_ms")?);
    ensure!(
        times_ms
            .into_iter()
            .all(|time_ms| TIMESTAMPS_MS.contains(time_ms)),
        "it has a time that no calendar has"
    );
    Ok(Counts {
        samples: n,
        successes: label.iter().filter(|&&label| label == 1).count(),
    })
}
