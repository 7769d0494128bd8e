//! Shards of samples: `codes` U8 `[n, m, j]`, and columns `[n]` with what each sample is beside it.

use std::path::Path;

use anyhow::{Result, ensure};

use super::format::TENSORS_FORMAT;
use super::hold_facts::HoldFacts;
use super::hold_history::{HoldHistory, OutcomeCounts};
use super::state_codes::EMPTY_CELL;
use crate::column_table::column_table;
use crate::eventlog::ResourceRequest;
use crate::events::TIMESTAMPS_MS;
use crate::manifest::Checksum;
use crate::shard::{Shard, ShardColumn, ShardLayout};

/// The codes of a shard's samples, `[n, m, j]`.
const CODES: &str = "codes";

/// What a sample takes in a shard besides its codes.
pub(super) const ROW_BYTES: usize = 92;

/// What a shard takes besides its samples, about.
pub(super) const HEADER_BYTES: usize = 2048;

/// What a sample is, apart from its codes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampleRow {
    pub(super) label: bool,
    pub(super) hold_ms: i64,
    pub(super) asked_ms: i64,
    pub(super) outcome_ms: i64,
    pub(super) cluster: i32,
    pub(super) proc: i32,
    pub(super) group: u32,
    pub(super) facts: HoldFacts,
}

column_table! {
    /// Samples as they are written, without their codes.
    struct SampleColumns from |row: &SampleRow|;

    /// Samples as they are read, without their codes.
    struct SampleSlices<'a>;

    label: u8 = u8::from(row.label),
    hold_time_ms: i64 = row.hold_ms,
    asked_time_ms: i64 = row.asked_ms,
    outcome_time_ms: i64 = row.outcome_ms,
    cluster: i32 = row.cluster,
    proc: i32 = row.proc,
    hold_code: i32 = row.facts.hold_code,
    hold_subcode: i32 = row.facts.hold_subcode,
    earlier_holds: u32 = row.facts.earlier_holds,
    group: u32 = row.group,
    subcode_family: u8 = row.facts.subcode_family(),
    since_submit_s: u32 = row.facts.since_submit_s,
    held_for_s: u32 = row.facts.held_for_s,
    request_cpus: u8 = row.facts.request.cpus,
    request_gpus: u8 = row.facts.request.gpus,
    request_memory_mb: u32 = row.facts.request.memory_mb,
    request_disk_mb: u32 = row.facts.request.disk_mb,
    cluster_successes: u32 = row.facts.history.cluster.successes,
    cluster_failures: u32 = row.facts.history.cluster.failures,
    owner_successes: u32 = row.facts.history.owner.successes,
    owner_failures: u32 = row.facts.history.owner.failures,
    cluster_ended_well: u32 = row.facts.history.ends.successes,
    cluster_ended_badly: u32 = row.facts.history.ends.failures,
}

/// The size of every sample in a directory of tensors.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampleShape {
    /// States.
    pub(super) e: usize,
    /// Frames.
    pub(super) m: usize,
    /// Jobs.
    pub(super) j: usize,
}

/// Samples on their way into one shard.
#[derive(Debug, Default)]
pub(super) struct ShardSamples {
    /// `[n, m, j]`; its memory serves one shard after another.
    pub(super) codes: Vec<u8>,
    /// `[n]`.
    pub(super) rows: Vec<SampleRow>,
}

impl ShardSamples {
    /// Writes the shard to `path`; returns its digest.
    pub(super) fn write(&self, path: &Path, shape: SampleShape) -> Result<String> {
        let mut columns = SampleColumns::with_capacity(self.rows.len());
        columns.extend(&self.rows);

        let mut named = columns.named();
        let codes = ShardColumn::new(&self.codes, &[self.rows.len(), shape.m, shape.j]);
        named.push((CODES.to_owned(), codes));
        let layout = ShardLayout::new(TENSORS_FORMAT, &serde_json::json!({}), named)?;
        layout.write(path)?;
        Ok(Checksum::of(layout.parts()))
    }
}

/// The codes `[m * j]` of sample `index` of a shard that was checked.
///
/// # Panics
/// Panics when there is no such sample.
pub(super) fn codes_of_sample(shard: &Shard, index: usize, cells: usize) -> &[u8] {
    let codes: &[u8] = shard
        .column(CODES)
        .expect("checked when the shard was opened");
    &codes[index * cells..][..cells]
}

/// The facts of every sample of a shard, `[n]`.
pub(super) fn read_facts(shard: &Shard) -> Result<Vec<HoldFacts>> {
    let samples = SampleSlices::from_shard(shard)?;
    let facts = |at: usize| HoldFacts {
        hold_code: samples.hold_code[at],
        hold_subcode: samples.hold_subcode[at],
        earlier_holds: samples.earlier_holds[at],
        since_submit_s: samples.since_submit_s[at],
        held_for_s: samples.held_for_s[at],
        request: ResourceRequest {
            cpus: samples.request_cpus[at],
            gpus: samples.request_gpus[at],
            memory_mb: samples.request_memory_mb[at],
            disk_mb: samples.request_disk_mb[at],
        },
        history: HoldHistory {
            cluster: OutcomeCounts {
                successes: samples.cluster_successes[at],
                failures: samples.cluster_failures[at],
            },
            owner: OutcomeCounts {
                successes: samples.owner_successes[at],
                failures: samples.owner_failures[at],
            },
            ends: OutcomeCounts {
                successes: samples.cluster_ended_well[at],
                failures: samples.cluster_ended_badly[at],
            },
        },
    };
    Ok((0..samples.label.len()).map(facts).collect())
}

/// What a shard holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampleCounts {
    pub(super) samples: usize,
    /// Those with label 1.
    pub(super) successes: usize,
}

/// Checks everything that readers rely on, so that no file can make them panic.
pub(super) fn check(shard: &Shard, expected: SampleShape) -> Result<SampleCounts> {
    let SampleShape { e, m, j } = expected;
    let shape = shard.shape(CODES)?;
    ensure!(
        shape.len() == 3 && shape[1..] == [m, j],
        "`codes` has shape {shape:?}, expected [n, {m}, {j}]"
    );
    let n = shape[0];

    let codes: &[u8] = shard.column(CODES)?;
    let is_known = |&cell: &u8| usize::from(cell) < e || cell == EMPTY_CELL;
    ensure!(
        codes.iter().all(is_known),
        "`codes` holds an event type that is not below {e}"
    );

    let samples = SampleSlices::from_shard(shard)?;
    ensure!(
        samples.have_length(n),
        "its columns have other lengths than its {n} samples"
    );
    ensure!(
        samples.label.iter().all(|&label| label <= 1),
        "a label is neither 0 nor 1"
    );
    let mut times_ms = [
        samples.hold_time_ms,
        samples.asked_time_ms,
        samples.outcome_time_ms,
    ]
    .into_iter()
    .flatten();
    ensure!(
        times_ms.all(|time_ms| TIMESTAMPS_MS.contains(time_ms)),
        "it has a time that no calendar has"
    );

    Ok(SampleCounts {
        samples: n,
        successes: samples.label.iter().filter(|&&label| label == 1).count(),
    })
}
