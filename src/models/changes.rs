//! Codes → the rows of the first layer's weights that come and go from frame to frame.
//!
//! A job's code stays the same for many frames, so the sum of a frame's rows is that of the frame before, plus and minus
//! a few rows. Sums begin anew every [`RESUMMED`] frames, and where that takes fewer rows, so rounding cannot pile up.

use super::{Batch, Shape};
use crate::tensors::EMPTY_CELL;

/// Frames after which a sum begins anew.
pub(super) const RESUMMED: usize = 32;

/// What makes the sum of a frame of a sample out of the one before.
#[derive(Debug, Clone, Copy)]
struct Frame {
    /// Whether the sum begins anew.
    is_fresh: bool,
    /// Where its terms end; they begin where those of the frame before end.
    end: u32,
}

/// A row that is added, or taken away.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Term {
    /// `job * e + code`.
    pub(super) row: u32,
    /// 1 or -1.
    pub(super) sign: f32,
}

/// The changes of the samples of a chunk.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Of each sample, and in it of each frame.
    frames: Vec<Frame>,
    terms: Vec<Term>,
    m: usize,
}

/// The change of one frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) is_fresh: bool,
    pub(super) terms: &'a [Term],
}

impl Changes {
    /// Finds the changes in the samples of `batch`, in place of those found before.
    pub(super) fn find(&mut self, shape: &Shape, batch: &Batch<'_>) {
        self.frames.clear();
        self.terms.clear();
        self.m = shape.m;
        for sample in batch.codes.chunks_exact(shape.m * shape.j) {
            let (mut before, mut present): (&[u8], usize) = (&[], 0);
            for (index, now) in sample.chunks_exact(shape.j).enumerate() {
                let start = self.terms.len();
                if index % RESUMMED != 0 {
                    present = self.change(shape.e, before, now, present);
                }
                let is_fresh = index % RESUMMED == 0 || self.terms.len() - start > present;
                if is_fresh {
                    self.terms.truncate(start);
                    present = self.begin(shape.e, now);
                }
                self.frames.push(Frame {
                    is_fresh,
                    end: self.terms.len() as u32,
                });
                before = now;
            }
        }
    }

    /// The terms that lead from frame `before`, in which `present` jobs have a code, to `now`; returns how many have one
    /// then.
    fn change(&mut self, e: usize, before: &[u8], now: &[u8], mut present: usize) -> usize {
        for_each_difference(before, now, |job| {
            if before[job] != EMPTY_CELL {
                self.terms.push(term(e, job, before[job], -1.0));
                present -= 1;
            }
            if now[job] != EMPTY_CELL {
                self.terms.push(term(e, job, now[job], 1.0));
                present += 1;
            }
        });
        present
    }

    /// The terms of a sum that begins anew; returns how many jobs have a code.
    fn begin(&mut self, e: usize, now: &[u8]) -> usize {
        let start = self.terms.len();
        let with_code = now
            .iter()
            .enumerate()
            .filter(|(_, code)| **code != EMPTY_CELL);
        self.terms
            .extend(with_code.map(|(job, &code)| term(e, job, code, 1.0)));
        self.terms.len() - start
    }

    /// The change of frame `frame` of sample `sample`.
    #[inline(always)]
    pub(super) fn get(&self, sample: usize, frame: usize) -> Change<'_> {
        let at = sample * self.m + frame;
        let start = if at == 0 { 0 } else { self.frames[at - 1].end };
        let Frame { is_fresh, end } = self.frames[at];
        Change {
            is_fresh,
            terms: &self.terms[start as usize..end as usize],
        }
    }
}

fn term(e: usize, job: usize, code: u8, sign: f32) -> Term {
    Term {
        row: (job * e + usize::from(code)) as u32,
        sign,
    }
}

/// Calls `found` with each position at which two slices of one length differ, eight positions at a time.
fn for_each_difference(a: &[u8], b: &[u8], mut found: impl FnMut(usize)) {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let mut compare = |first: usize, mut differing: u64| {
        while differing != 0 {
            let byte = differing.trailing_zeros() / 8;
            found(first + byte as usize);
            differing &= !(0xff << (8 * byte));
        }
    };
    let (a_words, a_rest) = a.as_chunks::<8>();
    let (b_words, b_rest) = b.as_chunks::<8>();
    for (index, (x, y)) in a_words.iter().zip(b_words).enumerate() {
        compare(8 * index, u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y));
    }
    compare(8 * a_words.len(), word(a_rest) ^ word(b_rest));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of each frame, by adding up its changes.
    fn rows(changes: &Changes, sample: usize, frame: usize) -> Vec<u32> {
        let mut present = Vec::new();
        for frame in 0..=frame {
            let change = changes.get(sample, frame);
            if change.is_fresh {
                present.clear();
            }
            for term in change.terms {
                match present.iter().position(|row| *row == term.row) {
                    Some(at) if term.sign == -1.0 => drop(present.remove(at)),
                    None if term.sign == 1.0 => present.push(term.row),
                    _ => panic!("{term:?} among {present:?}"),
                }
            }
        }
        present.sort_unstable();
        present
    }

    #[test]
    fn changes_add_up_to_the_codes() {
        let shape = Shape {
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
        let mut changes = Changes::default();
        changes.find(&shape, &Batch::new(&shape, &codes, &[]).expect("a batch"));
        for (sample, codes) in codes.chunks(770).enumerate() {
            for (frame, codes) in codes.chunks(11).enumerate() {
                let present = codes
                    .iter()
                    .enumerate()
                    .filter(|(_, code)| **code != EMPTY_CELL);
                let expected: Vec<u32> = present
                    .map(|(job, &code)| (job * 4) as u32 + u32::from(code))
                    .collect();
                assert_eq!(rows(&changes, sample, frame), expected);
                assert!(changes.get(sample, frame).is_fresh || frame % RESUMMED != 0);
            }
        }
    }

    #[test]
    fn a_frame_never_takes_more_rows_than_it_has() {
        let shape = Shape {
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
        let mut changes = Changes::default();
        changes.find(&shape, &Batch::new(&shape, &codes, &[]).expect("a batch"));
        let change = changes.get(0, 1);
        assert!(change.is_fresh && change.terms.len() == 9);
    }
}
