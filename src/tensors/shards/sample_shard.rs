//! Shards of samples: `codes` U8 `[n, m, j]`, `statics` `[n, s]`, with related context jobs `shared` U8
//! `[n, j]`, and columns `[n]` with the label, times and ids. Samples may also have outcome tokens.

use std::path::Path;

use anyhow::{Result, ensure};

use super::format::TENSORS_FORMAT;
use crate::tokens::{StoredTokens, TokenRows};
use poolcast_base::column_table;
use poolcast_base::manifest::Checksum;
use poolcast_base::shard::{Shard, ShardColumn, ShardLayout};
use poolcast_events::TIMESTAMPS_MS;
use poolcast_models::EMPTY_CELL;

/// Column name of the codes, `[n, m, j]`.
const CODES: &str = "codes";

/// Column name of the static features, `[n, s]`.
const STATICS: &str = "statics";

/// Column name of what each job shares with the held one, `[n, j]`.
const SHARED: &str = "shared";

/// Bytes per sample in a shard, without its codes and static features.
pub(crate) const ROW_BYTES: usize = 53;

/// Approximate size of the header of a shard, in bytes.
pub(crate) const HEADER_BYTES: usize = 2048;

/// The columns of a sample, without its codes and static features.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleRow {
    pub(crate) label: bool,
    pub(crate) hold_ms: i64,
    pub(crate) asked_ms: i64,
    pub(crate) outcome_ms: i64,
    pub(crate) cluster: i32,
    pub(crate) proc: i32,
    pub(crate) group: u32,
    pub(crate) hold_code: i32,
    pub(crate) hold_subcode: i32,
    pub(crate) earlier_holds: u32,
    /// Time from the submission to prediction time, in seconds.
    pub(crate) since_submit_s: u32,
}

column_table! {
    /// Samples to write, without their codes.
    struct SampleColumns from |row: &SampleRow|;

    /// Samples to read, without their codes.
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

/// The shape of every sample in a directory of tensors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleShape {
    /// Number of states.
    pub(crate) e: usize,
    /// Number of frames.
    pub(crate) m: usize,
    /// Number of jobs.
    pub(crate) j: usize,
    /// Number of static features.
    pub(crate) s: usize,
    /// Bits for each job that say what it shares with the held one.
    pub(crate) shared_bits: usize,
    /// True if samples have outcome tokens.
    pub(crate) has_tokens: bool,
}

/// The samples of one shard, before it is written.
#[derive(Debug, Default)]
pub(crate) struct ShardSamples {
    /// Codes, `[n, m, j]`. The memory is reused for later shards.
    pub(crate) codes: Vec<u8>,
    /// Bits for what each job shares, `[n, j]`; empty without shared bits.
    pub(crate) shared: Vec<u8>,
    /// Static features, `[n, s]`.
    pub(crate) statics: Vec<f32>,
    /// Outcome tokens, if the samples have any.
    pub(crate) tokens: TokenRows,
    /// Other columns, `[n]`.
    pub(crate) rows: Vec<SampleRow>,
}

impl ShardSamples {
    /// Writes the shard to `path`; returns its digest.
    pub(crate) fn write(&self, path: &Path, shape: SampleShape) -> Result<String> {
        let mut columns = SampleColumns::with_capacity(self.rows.len());
        columns.extend(&self.rows);

        let mut named = columns.named();
        let codes = ShardColumn::new(&self.codes, &[self.rows.len(), shape.m, shape.j]);
        named.push((CODES.to_owned(), codes));
        let statics = ShardColumn::new(&self.statics, &[self.rows.len(), shape.s]);
        named.push((STATICS.to_owned(), statics));
        if shape.shared_bits > 0 {
            let shared = ShardColumn::new(&self.shared, &[self.rows.len(), shape.j]);
            named.push((SHARED.to_owned(), shared));
        }
        if shape.has_tokens {
            named.extend(self.tokens.named());
        }
        let layout = ShardLayout::new(TENSORS_FORMAT, &serde_json::json!({}), named)?;
        layout.write(path)?;
        Ok(Checksum::of(layout.parts()))
    }
}

/// Returns the codes `[m * j]` of sample `index` of a checked shard.
///
/// # Panics
/// Panics if the sample does not exist.
pub(crate) fn codes_of_sample(shard: &Shard, index: usize, cells: usize) -> &[u8] {
    let codes: &[u8] = shard
        .column(CODES)
        .expect("checked when the shard was opened");
    &codes[index * cells..][..cells]
}

/// Returns the static features `[s]` of sample `index` of a checked shard.
///
/// # Panics
/// Panics if the sample does not exist.
pub(crate) fn statics_of_sample(shard: &Shard, index: usize, s: usize) -> &[f32] {
    let statics: &[f32] = shard
        .column(STATICS)
        .expect("checked when the shard was opened");
    &statics[index * s..][..s]
}

/// Returns what each job of sample `index` of a checked shard shares, `[j]`.
///
/// # Panics
/// Panics if the sample does not exist.
pub(crate) fn shared_of_sample(shard: &Shard, index: usize, j: usize) -> &[u8] {
    let shared: &[u8] = shard
        .column(SHARED)
        .expect("checked when the shard was opened");
    &shared[index * j..][..j]
}

/// Counts of the samples in a shard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleCounts {
    pub(crate) samples: usize,
    /// Samples with label 1.
    pub(crate) successes: usize,
}

/// Checks everything that readers rely on, so that no file can make them panic.
pub(crate) fn check(shard: &Shard, expected: SampleShape) -> Result<SampleCounts> {
    let n = check_codes(shard, expected)?;
    check_statics(shard, [n, expected.s])?;
    if expected.shared_bits > 0 {
        check_shared(shard, [n, expected.j], expected.shared_bits)?;
    }
    if expected.has_tokens {
        StoredTokens::check(shard, n)?;
    }
    check_samples(shard, n)
}

/// Checks the codes `[n, m, j]`; returns n.
fn check_codes(shard: &Shard, expected: SampleShape) -> Result<usize> {
    let SampleShape { e, m, j, .. } = expected;
    let shape = shard.shape(CODES)?;
    ensure!(
        shape.len() == 3 && shape[1..] == [m, j],
        "`codes` has shape {shape:?}, expected [n, {m}, {j}]"
    );
    let codes: &[u8] = shard.column(CODES)?;
    let is_known = |&cell: &u8| usize::from(cell) < e || cell == EMPTY_CELL;
    ensure!(
        codes.iter().all(is_known),
        "`codes` has an event type that is not below {e}"
    );
    Ok(shape[0])
}

/// Checks the static features, of shape `expected`: `[n, s]`.
fn check_statics(shard: &Shard, expected: [usize; 2]) -> Result<()> {
    let shape = shard.shape(STATICS)?;
    ensure!(
        shape == expected,
        "`statics` has shape {shape:?}, expected {expected:?}"
    );
    let statics: &[f32] = shard.column(STATICS)?;
    ensure!(
        statics.iter().all(|number| number.is_finite()),
        "`statics` has a value that is not a number"
    );
    Ok(())
}

/// Checks what each context job shares with the held one, of shape `expected`: `[n, j]`.
fn check_shared(shard: &Shard, expected: [usize; 2], bits: usize) -> Result<()> {
    let shape = shard.shape(SHARED)?;
    ensure!(
        shape == expected,
        "`shared` has shape {shape:?}, expected {expected:?}"
    );
    let shared: &[u8] = shard.column(SHARED)?;
    ensure!(
        shared.iter().all(|known| known >> bits == 0),
        "`shared` has more than {bits} bits"
    );
    Ok(())
}

/// Checks the columns with one entry for each of the `n` samples, and counts the successes.
fn check_samples(shard: &Shard, n: usize) -> Result<SampleCounts> {
    let samples = SampleSlices::from_shard(shard)?;
    ensure!(
        samples.have_length(n),
        "its columns do not match its {n} samples in length"
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
        "it has a time out of range"
    );

    Ok(SampleCounts {
        samples: n,
        successes: samples.label.iter().filter(|&&label| label == 1).count(),
    })
}
