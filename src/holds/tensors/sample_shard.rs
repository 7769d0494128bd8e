//! Shards of samples: `codes` U8 `[n, m, j]`, and columns `[n]` with what each sample is beside it.

use std::path::Path;

use anyhow::{Result, ensure};

use super::format::TENSORS_FORMAT;
use poolcast_models::EMPTY_CELL;
use poolcast_base::column_table;
use crate::events::TIMESTAMPS_MS;
use poolcast_base::manifest::Checksum;
use poolcast_base::shard::{Shard, ShardColumn, ShardLayout};

/// The codes of a shard's samples, `[n, m, j]`.
const CODES: &str = "codes";

/// What stands beside the codes of each sample, `[n, s]`.
const STATICS: &str = "statics";

/// What a sample takes in a shard besides its codes and static features.
pub(super) const ROW_BYTES: usize = 53;

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
    pub(super) hold_code: i32,
    pub(super) hold_subcode: i32,
    pub(super) earlier_holds: u32,
    /// From the submission to the moment of asking.
    pub(super) since_submit_s: u32,
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
    hold_code: i32 = row.hold_code,
    hold_subcode: i32 = row.hold_subcode,
    earlier_holds: u32 = row.earlier_holds,
    group: u32 = row.group,
    since_submit_s: u32 = row.since_submit_s,
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
    /// Static features.
    pub(super) s: usize,
}

/// Samples on their way into one shard.
#[derive(Debug, Default)]
pub(super) struct ShardSamples {
    /// `[n, m, j]`; its memory serves one shard after another.
    pub(super) codes: Vec<u8>,
    /// `[n, s]`.
    pub(super) statics: Vec<f32>,
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
        let statics = ShardColumn::new(&self.statics, &[self.rows.len(), shape.s]);
        named.push((STATICS.to_owned(), statics));
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

/// The static features `[s]` of sample `index` of a shard that was checked.
///
/// # Panics
/// Panics when there is no such sample.
pub(super) fn statics_of_sample(shard: &Shard, index: usize, s: usize) -> &[f32] {
    let statics: &[f32] = shard
        .column(STATICS)
        .expect("checked when the shard was opened");
    &statics[index * s..][..s]
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
    let SampleShape { e, m, j, s } = expected;
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

    let shape = shard.shape(STATICS)?;
    ensure!(
        shape == [n, s],
        "`statics` has shape {shape:?}, expected [{n}, {s}]"
    );
    let statics: &[f32] = shard.column(STATICS)?;
    ensure!(
        statics.iter().all(|number| number.is_finite()),
        "`statics` holds something that is no number"
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
