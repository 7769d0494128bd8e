//! Code deltas: the rows of the first layer's weights that enter or leave the sum from frame to
//! frame.
//!
//! A job's code stays the same for many frames. The sum of a frame's rows is therefore the sum of
//! the previous frame, plus and minus a few rows. Sums restart every [`FRAMES_TO_RESUM`] frames, so
//! that rounding errors cannot pile up, and wherever a restart takes fewer rows.

use crate::EMPTY_CELL;
use crate::{ModelShape, SampleBatch};

/// Frames after which a sum restarts.
pub(super) const FRAMES_TO_RESUM: usize = 32;

/// Position of one frame's delta among the rows of all deltas.
#[derive(Debug, Clone, Copy)]
struct DeltaRange {
    /// True if the sum restarts.
    is_fresh: bool,
    /// End index of its rows. They begin at the end of the previous frame's rows.
    end: u32,
}

/// A weight row that is added to a sum or subtracted from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SignedRow {
    /// Row index: `job * e + code`, or a row after these for something that a job shares.
    pub(super) row: u32,
    /// Sign, 1 or -1.
    pub(super) sign: f32,
}

/// The deltas of the samples of a chunk.
#[derive(Debug, Default)]
pub(super) struct CodeDeltas {
    /// Deltas by sample, then by frame.
    frames: Vec<DeltaRange>,
    rows: Vec<SignedRow>,
    /// Rows of what the jobs of the current sample share. They are part of every sum.
    shared: Vec<SignedRow>,
    m: usize,
}

/// The rows that turn the sum of the previous frame into the sum of this frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameDelta<'a> {
    /// True if the sum restarts.
    pub(super) is_fresh: bool,
    pub(super) rows: &'a [SignedRow],
}

impl CodeDeltas {
    /// Computes the deltas of the samples of `batch`. Replaces earlier ones.
    pub(super) fn find(&mut self, shape: &ModelShape, batch: &SampleBatch<'_>) {
        self.frames.clear();
        self.rows.clear();
        self.m = shape.m;

        let shared = shape.shared_bytes();
        for (at, sample) in (batch.codes.chunks_exact(shape.m * shape.j)).enumerate() {
            self.shared.clear();
            shape.for_each_shared(&batch.shared[at * shared..][..shared], |row| {
                let (row, sign) = (row as u32, 1.0);
                self.shared.push(SignedRow { row, sign });
            });
            let mut before: &[u8] = &[];
            // Number of jobs with a code. A sum that restarts takes as many rows.
            let mut present = 0;

            for (index, now) in sample.chunks_exact(shape.j).enumerate() {
                let start = self.rows.len();
                if index % FRAMES_TO_RESUM != 0 {
                    present = self.push_difference(shape.e, before, now, present);
                }
                let is_fresh = index % FRAMES_TO_RESUM == 0
                    || self.rows.len() - start > present + self.shared.len();
                if is_fresh {
                    self.rows.truncate(start);
                    present = self.push_all(shape.e, now);
                    self.rows.extend_from_slice(&self.shared);
                }

                self.frames.push(DeltaRange {
                    is_fresh,
                    end: self.rows.len() as u32,
                });
                before = now;
            }
        }
    }

    /// Appends the rows that lead from frame `before`, in which `present` jobs have a code, to
    /// `now`. Returns the number of jobs with a code in `now`.
    fn push_difference(
        &mut self,
        e: usize,
        before: &[u8],
        now: &[u8],
        mut present: usize,
    ) -> usize {
        for_each_difference(before, now, |job| {
            if before[job] != EMPTY_CELL {
                self.rows.push(SignedRow::new(e, job, before[job], -1.0));
                present -= 1;
            }
            if now[job] != EMPTY_CELL {
                self.rows.push(SignedRow::new(e, job, now[job], 1.0));
                present += 1;
            }
        });
        present
    }

    /// Appends the rows of a sum that restarts. Returns the number of jobs with a code.
    fn push_all(&mut self, e: usize, now: &[u8]) -> usize {
        let start = self.rows.len();
        for (job, &code) in now.iter().enumerate() {
            if code != EMPTY_CELL {
                self.rows.push(SignedRow::new(e, job, code, 1.0));
            }
        }
        self.rows.len() - start
    }

    /// The delta of frame `frame` of sample `sample`.
    #[inline(always)]
    pub(super) fn get(&self, sample: usize, frame: usize) -> FrameDelta<'_> {
        let at = sample * self.m + frame;
        let start = if at == 0 { 0 } else { self.frames[at - 1].end };
        let DeltaRange { is_fresh, end } = self.frames[at];
        FrameDelta {
            is_fresh,
            rows: &self.rows[start as usize..end as usize],
        }
    }
}

impl SignedRow {
    fn new(e: usize, job: usize, code: u8, sign: f32) -> SignedRow {
        SignedRow {
            row: (job * e + usize::from(code)) as u32,
            sign,
        }
    }
}

/// Calls `found` with each position at which two slices of equal length differ. The differences of
/// 64 positions are first collected in a bit mask. A processor cannot predict the end of a loop
/// over differences, and the mask needs only one such loop per 64 positions.
fn for_each_difference(a: &[u8], b: &[u8], mut found: impl FnMut(usize)) {
    for (part, (a, b)) in a.chunks(64).zip(b.chunks(64)).enumerate() {
        let mut differing = 0;
        let (a_words, a_rest) = a.as_chunks::<8>();
        let (b_words, b_rest) = b.as_chunks::<8>();
        for (index, (x, y)) in a_words.iter().zip(b_words).enumerate() {
            let word = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
            differing |= nonzero_byte_mask(word) << (8 * index);
        }
        if !a_rest.is_empty() {
            let word = padded_word(a_rest) ^ padded_word(b_rest);
            differing |= nonzero_byte_mask(word) << (8 * a_words.len());
        }

        while differing != 0 {
            found(64 * part + differing.trailing_zeros() as usize);
            differing &= differing - 1;
        }
    }
}

/// Reads up to eight bytes as a number, padded with zeros.
#[inline]
fn padded_word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// Returns a bit mask of the nonzero bytes of `word`.
#[inline]
fn nonzero_byte_mask(word: u64) -> u64 {
    const LOW_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;

    // Sets the highest bit of each nonzero byte.
    let highest = (((word & LOW_BITS) + LOW_BITS) | word) & !LOW_BITS;
    // The product moves each of these bits to its place in the highest byte.
    (highest >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of a frame, computed by adding up the deltas.
    fn sum_deltas(deltas: &CodeDeltas, sample: usize, frame: usize) -> Vec<u32> {
        let mut present = Vec::new();
        for frame in 0..=frame {
            let delta = deltas.get(sample, frame);
            if delta.is_fresh {
                present.clear();
            }
            for signed in delta.rows {
                match present.iter().position(|row| *row == signed.row) {
                    Some(at) if signed.sign == -1.0 => drop(present.remove(at)),
                    None if signed.sign == 1.0 => present.push(signed.row),
                    _ => panic!("{signed:?} among {present:?}"),
                }
            }
        }
        present.sort_unstable();
        present
    }

    #[test]
    fn deltas_add_up_to_the_codes() {
        let shape = ModelShape {
            e: 4,
            m: 70,
            j: 11,
            s: 0,
            shared_bits: 0,
            hidden_size: 1,
            lstm_layers: 1,
        };
        let code = |at: usize| match at * 2_654_435_761 % 97 {
            small @ 0..4 => small as u8,
            _ => EMPTY_CELL,
        };
        // Three samples: codes that rarely change, codes that frequently change, and no codes.
        let mut codes: Vec<u8> = (0..3 * 770)
            .map(|at| {
                if at < 770 {
                    code(at % 11 + at / 99)
                } else {
                    code(at)
                }
            })
            .collect();
        codes[1540..].fill(EMPTY_CELL);
        let mut deltas = CodeDeltas::default();
        deltas.find(
            &shape,
            &SampleBatch::new(&shape, &codes, &[]).expect("a batch"),
        );
        for (sample, codes) in codes.chunks(770).enumerate() {
            for (frame, codes) in codes.chunks(11).enumerate() {
                let present = codes
                    .iter()
                    .enumerate()
                    .filter(|(_, code)| **code != EMPTY_CELL);
                let expected: Vec<u32> = present
                    .map(|(job, &code)| (job * 4) as u32 + u32::from(code))
                    .collect();
                assert_eq!(sum_deltas(&deltas, sample, frame), expected);
                assert!(deltas.get(sample, frame).is_fresh || frame % FRAMES_TO_RESUM != 0);
            }
        }
    }

    #[test]
    fn a_frame_never_takes_more_rows_than_it_has() {
        let shape = ModelShape {
            e: 3,
            m: 2,
            j: 9,
            s: 0,
            shared_bits: 0,
            hidden_size: 1,
            lstm_layers: 1,
        };
        let mut codes = vec![0u8; 18];
        codes[9..].fill(1);
        codes[17] = 0;
        let mut deltas = CodeDeltas::default();
        deltas.find(
            &shape,
            &SampleBatch::new(&shape, &codes, &[]).expect("a batch"),
        );
        let delta = deltas.get(0, 1);
        assert!(delta.is_fresh && delta.rows.len() == 9);
    }
}
