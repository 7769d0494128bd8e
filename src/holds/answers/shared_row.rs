//! Rows that an access point gives to others: columns and outcomes in half precision, without names
//! and times.

use anyhow::{Result, ensure};
use half::f16;
use htcondor_eventlog::ReasonKind;
use twox_hash::XxHash3_64;

use poolcast_base::shard::{Shard, ShardColumn};

/// A moment of a hold with its label, without what identifies the hold.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SharedRow {
    /// What the reason of the hold states, packed.
    pub(crate) stated: u32,
    /// Columns, `[f]`.
    pub(crate) values: Vec<f16>,
    pub(crate) is_success: bool,
    pub(crate) weight: f16,
}

impl SharedRow {
    /// Returns the digest of the columns.
    pub(crate) fn digest(&self) -> u64 {
        digest(&self.values)
    }

    /// Returns what the reason of the hold states.
    pub(crate) fn stated(&self) -> ReasonKind {
        ReasonKind::from_packed(self.stated)
    }

    /// Returns the key of an order that depends on nothing but the row.
    pub(crate) fn order(&self) -> (u32, u64, bool, u16) {
        let is_success = self.is_success;
        (
            self.stated,
            self.digest(),
            is_success,
            self.weight.to_bits(),
        )
    }
}

/// Returns the digest of the columns of a row.
pub(crate) fn digest(values: &[f16]) -> u64 {
    XxHash3_64::oneshot(bytemuck::cast_slice(values))
}

/// Returns `values` in half precision. Those beyond its range become its largest ones.
pub(crate) fn halved(values: &[f32]) -> Vec<f16> {
    let (min, max) = (f16::MIN.to_f32(), f16::MAX.to_f32());
    let half = |value: &f32| f16::from_f32(value.clamp(min, max));
    values.iter().map(half).collect()
}

/// The rows of one question as tensors.
#[derive(Debug)]
pub(crate) struct RowTensors {
    /// Number of rows, `n`, and of columns, `f`.
    shape: (usize, usize),
    /// Columns, `[f, n]`: values of one column are alike, and compress well side by side.
    values: Vec<f16>,
    /// What the reasons state, packed, `[n]`.
    stated: Vec<u32>,
    /// Outcomes, `[n]`: 1 for a success.
    outcomes: Vec<u8>,
    /// Weights, `[n]`.
    weights: Vec<f16>,
}

impl RowTensors {
    /// Transposes `rows`, which have `columns` columns.
    pub(crate) fn new(rows: &[SharedRow], columns: usize) -> RowTensors {
        let mut values = Vec::with_capacity(rows.len() * columns);
        for column in 0..columns {
            values.extend(rows.iter().map(|row| row.values[column]));
        }
        RowTensors {
            shape: (rows.len(), columns),
            values,
            stated: rows.iter().map(|row| row.stated).collect(),
            outcomes: rows.iter().map(|row| u8::from(row.is_success)).collect(),
            weights: rows.iter().map(|row| row.weight).collect(),
        }
    }

    /// Returns the tensors, with names that begin with `name`.
    pub(crate) fn named(&self, name: &str) -> Vec<(String, ShardColumn<'_>)> {
        let (rows, columns) = self.shape;
        vec![
            (
                format!("{name}.columns"),
                ShardColumn::new(&self.values, &[columns, rows]),
            ),
            (format!("{name}.stated"), ShardColumn::vector(&self.stated)),
            (
                format!("{name}.is_success"),
                ShardColumn::vector(&self.outcomes),
            ),
            (format!("{name}.weight"), ShardColumn::vector(&self.weights)),
        ]
    }
}

/// Reads the rows with `columns` columns whose tensors have names that begin with `name`.
///
/// # Errors
/// Fails if a tensor is missing or damaged.
pub(crate) fn read_rows(shard: &Shard, name: &str, columns: usize) -> Result<Vec<SharedRow>> {
    let values: &[f16] = shard.column(&format!("{name}.columns"))?;
    let stated: &[u32] = shard.column(&format!("{name}.stated"))?;
    let outcomes: &[u8] = shard.column(&format!("{name}.is_success"))?;
    let weights: &[f16] = shard.column(&format!("{name}.weight"))?;
    let rows = outcomes.len();
    ensure!(
        weights.len() == rows && stated.len() == rows && values.len() == columns * rows,
        "the tensors of `{name}` have different numbers of rows"
    );
    let is_weight = |weight: &f16| weight.is_finite() && *weight >= f16::ZERO;
    ensure!(
        values.iter().all(|value| value.is_finite()) && weights.iter().all(is_weight),
        "a tensor of `{name}` has values that are no numbers"
    );
    let row = |at: usize| SharedRow {
        stated: stated[at],
        values: (0..columns)
            .map(|column| values[column * rows + at])
            .collect(),
        is_success: outcomes[at] != 0,
        weight: weights[at],
    };
    Ok((0..rows).map(row).collect())
}
