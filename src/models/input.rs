//! Input of a model in candle's operations: sums of weight rows by code, static features, and plain
//! codes.
//!
//! One-hot inputs are never built. The rows that they would select are gathered and summed.

use std::ops::Range;

use anyhow::Result;
use candle_core::{CpuStorage, CustomOp1, Device, Layout, Tensor};

use super::{ModelShape, SampleBatch, TokenBatch};
use crate::EMPTY_CELL;

/// The samples of a batch, on a device.
#[derive(Debug)]
pub struct ModelInput<'a> {
    /// Shape of the model.
    pub shape: &'a ModelShape,
    pub(super) batch: &'a SampleBatch<'a>,
    pub(super) device: &'a Device,
}

impl ModelInput<'_> {
    /// The number of samples, `b`.
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Returns true if there are no samples.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// The codes `[m, j]` of each sample. Column 0 is the held job. Code 255 means no state.
    pub fn samples(&self) -> impl Iterator<Item = &[u8]> {
        self.batch.codes.chunks_exact(self.shape.m * self.shape.j)
    }

    /// The static features `[b, s]`.
    pub fn statics(&self) -> Result<Tensor> {
        self.tensor(self.batch.statics.to_vec(), self.shape.s)
    }

    /// The outcome tokens.
    ///
    /// # Errors
    /// Fails when the samples have none.
    pub fn tokens(&self) -> Result<&TokenBatch<'_>> {
        self.batch.tokens()
    }

    /// Builds a tensor `[b, n]` on the device from `n` numbers per sample.
    pub fn tensor(&self, numbers: Vec<f32>, n: usize) -> Result<Tensor> {
        Ok(Tensor::from_vec(numbers, (self.len(), n), self.device)?)
    }

    /// Sums, at each of some frames, the rows of `table` that the jobs' codes and what they share
    /// select, `[j * (e + shared bits), k]`. A job without a state adds nothing. The result is `[frames * b, k]`, one frame after another.
    pub fn gather_rows(&self, table: &Tensor, frames: Range<usize>) -> Result<Tensor> {
        let rows = self.row_indexes(frames);
        match self.device {
            Device::Cpu => Ok(table.apply_op1(SumRows {
                rows,
                per_sum: self.rows_per_sum(),
            })?),
            _ => sum_by_index(table, &rows, self.rows_per_sum()),
        }
    }

    /// The maximum number of table rows that a frame selects.
    fn rows_per_sum(&self) -> usize {
        self.shape.j * (1 + self.shape.shared_bits)
    }

    /// The table rows that each frame selects, `[frames, b, rows per sum]`. The rest are the number
    /// of rows of the table.
    fn row_indexes(&self, frames: Range<usize>) -> Vec<u32> {
        let ModelShape { e, j, .. } = *self.shape;
        let per_sum = self.rows_per_sum();
        let mut rows = vec![self.shape.frame_inputs() as u32; frames.len() * self.len() * per_sum];
        let mut sums = rows.chunks_exact_mut(per_sum);

        for frame in frames {
            for (sample, codes) in self.samples().enumerate() {
                let mut free = sums.next().into_iter().flatten();
                let mut select = |row: usize| {
                    if let Some(free) = free.next() {
                        *free = row as u32;
                    }
                };
                let states = codes[frame * j..][..j].iter().enumerate();
                for (job, &code) in states.filter(|(_, code)| **code != EMPTY_CELL) {
                    select(job * e + usize::from(code));
                }
                let shared = self.shape.shared_bytes();
                let shared = &self.batch.shared[sample * shared..][..shared];
                self.shape.for_each_shared(shared, select);
            }
        }
        rows
    }
}

/// Like [`SumRows`], but in candle's own operations, for devices that `SumRows` does not support.
fn sum_by_index(table: &Tensor, rows: &[u32], per_sum: usize) -> Result<Tensor> {
    let device = table.device();
    let k = table.dim(1)?;

    // Append a row of zeros, whose index stands for jobs without a state.
    let zeros = Tensor::zeros((1, k), table.dtype(), device)?;
    let with_zeros = Tensor::cat(&[table, &zeros], 0)?;
    let indexes = Tensor::from_slice(rows, rows.len(), device)?;
    Ok(with_zeros
        .index_select(&indexes, 0)?
        .reshape((rows.len() / per_sum, per_sum, k))?
        .sum(1)?)
}

/// Operation `table [n, k] → [rows / per_sum, k]`: sums of `per_sum` rows each. A row index beyond the table
/// adds nothing.
struct SumRows {
    rows: Vec<u32>,
    per_sum: usize,
}

impl SumRows {
    /// Calls `with` with the index of each sum and of each table row in that sum.
    fn for_each_row(&self, n: usize, mut with: impl FnMut(usize, usize)) {
        for (sum, rows) in self.rows.chunks_exact(self.per_sum).enumerate() {
            for &row in rows {
                let row = row as usize;
                if row < n {
                    with(sum, row);
                }
            }
        }
    }
}

fn add_row(out: &mut [f32], numbers: &[f32]) {
    for (out, number) in out.iter_mut().zip(numbers) {
        *out += number;
    }
}

impl CustomOp1 for SumRows {
    fn name(&self) -> &'static str {
        "sum-rows"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
    ) -> candle_core::Result<(CpuStorage, candle_core::Shape)> {
        let (n, k) = layout.shape().dims2()?;
        let Some((start, end)) = layout.contiguous_offsets() else {
            candle_core::bail!("the table is not contiguous")
        };
        let table = &storage.as_slice::<f32>()?[start..end];
        let mut sums = vec![0f32; self.rows.len() / self.per_sum * k];
        self.for_each_row(n, |sum, row| {
            add_row(&mut sums[sum * k..][..k], &table[row * k..][..k])
        });
        Ok((
            CpuStorage::F32(sums),
            (self.rows.len() / self.per_sum, k).into(),
        ))
    }

    fn bwd(
        &self,
        table: &Tensor,
        _sums: &Tensor,
        d_sums: &Tensor,
    ) -> candle_core::Result<Option<Tensor>> {
        let (n, k) = table.dims2()?;
        let d_sums = d_sums.flatten_all()?.to_vec1::<f32>()?;
        let mut d_table = vec![0f32; n * k];
        self.for_each_row(n, |sum, row| {
            add_row(&mut d_table[row * k..][..k], &d_sums[sum * k..][..k])
        });
        Tensor::from_vec(d_table, (n, k), table.device()).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Var;

    use super::*;

    #[test]
    fn row_sums_agree_with_index_select() {
        let table = Var::from_slice(
            &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
            (4, 2),
            &Device::Cpu,
        )
        .expect("a table");
        let rows = [0, 3, 4, 4, 1, 1, 2, 4];
        let factors = Tensor::from_slice(
            &[1f32, -1.0, 2.0, 0.5, 3.0, 1.0, -2.0, 4.0],
            (4, 2),
            &Device::Cpu,
        );
        let factors = factors.expect("factors");
        let way = |sums: Tensor| {
            let store = (&sums * &factors)
                .expect("a product")
                .sum_all()
                .expect("a sum")
                .backward()
                .expect("a gradient");
            let d_table = store
                .get(table.as_tensor())
                .expect("of the table")
                .to_vec2::<f32>()
                .expect("numbers");
            (sums.to_vec2::<f32>().expect("numbers"), d_table)
        };
        let own = way(table
            .apply_op1(SumRows {
                rows: rows.to_vec(),
                per_sum: 2,
            })
            .expect("sums"));
        assert_eq!(own, way(sum_by_index(&table, &rows, 2).expect("sums")));
        assert_eq!(own.0, [[8.0, 10.0], [0.0, 0.0], [6.0, 8.0], [5.0, 6.0]]);
    }
}
