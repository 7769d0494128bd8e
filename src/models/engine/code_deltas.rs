//! Codes → the rows of the first layer's weights that come and go from frame to frame.
//!
//! A job's code stays the same for many frames, so the sum of a frame's rows is that of the frame
//! before, plus and minus a few rows. Sums begin anew every [`FRAMES_TO_RESUM`] frames, and where
//! that takes fewer rows, so that rounding errors cannot pile up.

use crate::{ModelShape, SampleBatch};
use crate::EMPTY_CELL;

/// Frames after which a sum begins anew.
pub(super) const FRAMES_TO_RESUM: usize = 32;

/// Where the delta of a frame of a sample is.
#[derive(Debug, Clone, Copy)]
struct DeltaRange {
    /// Whether the sum begins anew.
    is_fresh: bool,
    /// Where its rows end; they begin where those of the frame before end.
    end: u32,
}

/// A row that is added to a sum, or taken away from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SignedRow {
    /// `job * e + code`.
    pub(super) row: u32,
    /// 1 or -1.
    pub(super) sign: f32,
}

/// The deltas of the samples of a chunk.
#[derive(Debug, Default)]
pub(super) struct CodeDeltas {
    /// Of each sample, and in it of each frame.
    frames: Vec<DeltaRange>,
    rows: Vec<SignedRow>,
    m: usize,
}

/// What makes the sum of a frame out of that of the frame before.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameDelta<'a> {
    /// Whether the sum begins anew.
    pub(super) is_fresh: bool,
    pub(super) rows: &'a [SignedRow],
}

impl CodeDeltas {
    /// Finds the deltas of the samples of `batch`, in place of those found before.
    pub(super) fn find(&mut self, shape: &ModelShape, batch: &SampleBatch<'_>) {
        self.frames.clear();
        self.rows.clear();
        self.m = shape.m;

        for sample in batch.codes.chunks_exact(shape.m * shape.j) {
            let mut before: &[u8] = &[];
            // How many jobs have a code: as many rows are what a sum takes that begins anew.
            let mut present = 0;

            for (index, now) in sample.chunks_exact(shape.j).enumerate() {
                let start = self.rows.len();
                if index % FRAMES_TO_RESUM != 0 {
                    present = self.push_difference(shape.e, before, now, present);
                }
                let is_fresh = index % FRAMES_TO_RESUM == 0 || self.rows.len() - start > present;
                if is_fresh {
                    self.rows.truncate(start);
                    present = self.push_all(shape.e, now);
                }

                self.frames.push(DeltaRange {
                    is_fresh,
                    end: self.rows.len() as u32,
                });
                before = now;
            }
        }
    }

    /// The rows that lead from frame `before`, in which `present` jobs have a code, to `now`;
    /// returns how many jobs have one then.
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

    /// The rows of a sum that begins anew; returns how many jobs have a code.
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

/// Calls `found` with each position at which two slices of one length differ, 64 positions at a time:
/// how often a loop over the positions found ends is what a processor cannot foresee.
fn for_each_difference(a: &[u8], b: &[u8], mut found: impl FnMut(usize)) {
    for (part, (a, b)) in a.chunks(64).zip(b.chunks(64)).enumerate() {
        let mut differing = 0;
        let (a_words, a_rest) = a.as_chunks::<8>();
        let (b_words, b_rest) = b.as_chunks::<8>();
        for (index, (x, y)) in a_words.iter().zip(b_words).enumerate() {
            let word = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
            differing |= set_bytes(word) << (8 * index);
        }
        if !a_rest.is_empty() {
            let word = padded_word(a_rest) ^ padded_word(b_rest);
            differing |= set_bytes(word) << (8 * a_words.len());
        }

        while differing != 0 {
            found(64 * part + differing.trailing_zeros() as usize);
            differing &= differing - 1;
        }
    }
}

/// Up to eight bytes as a number, and zeros after them.
#[inline]
fn padded_word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// One bit for each byte of `word`, which is set where the byte is not zero.
#[inline]
fn set_bytes(word: u64) -> u64 {
    const LOW_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;

    // The highest bit of a byte is set where any bit of it is.
    let highest = (((word & LOW_BITS) + LOW_BITS) | word) & !LOW_BITS;
    // The product has each of them in the highest byte, at its place.
    (highest >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of each frame, by adding up its deltas.
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
            hidden_size: 1,
            lstm_layers: 1,
        };
        let code = |at: usize| match at * 2_654_435_761 % 97 {
            small @ 0..4 => small as u8,
            _ => EMPTY_CELL,
        };
        // Sticky codes, then quick ones, then nothing at all.
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
