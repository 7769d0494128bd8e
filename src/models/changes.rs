//! Codes → the rows of the first layer's weights that come and go from frame to frame.
//!
//! A job's code stays the same for many frames, so the sum of a frame's rows is that of the frame before, plus and minus
//! a few rows. Sums begin anew every [`RESUMMED`] frames, and where that takes fewer rows, so rounding cannot pile up.

use super::{Batch, Shape};
use crate::tensors::EMPTY;

/// Frames after which a sum begins anew.
pub(super) const RESUMMED: usize = 32;

/// What makes the sum of a frame of a sample out of the one before.
#[derive(Debug, Clone, Copy)]
struct Frame {
    /// Whether the sum begins anew.
    is_fresh: bool,
    /// Where the rows to add begin, those to take away begin, and these end.
    bounds: [u32; 3],
}

/// The changes of the samples of a chunk. Row `job * e + code` stands for a job with a code.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Of each sample, and in it of each frame.
    frames: Vec<Frame>,
    rows: Vec<u32>,
    m: usize,
    /// Reused from frame to frame.
    gone: Vec<u32>,
}

/// The change of one frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) is_fresh: bool,
    pub(super) added: &'a [u32],
    pub(super) removed: &'a [u32],
}

impl Changes {
    /// Finds the changes in the samples of `batch`, in place of those found before.
    pub(super) fn find(&mut self, shape: &Shape, batch: &Batch<'_>) {
        self.frames.clear();
        self.rows.clear();
        self.m = shape.m;
        for sample in batch.codes.chunks_exact(shape.m * shape.j) {
            let mut before: &[u8] = &[];
            for (index, frame) in sample.chunks_exact(shape.j).enumerate() {
                self.push(shape.e, before, frame);
                before = if (index + 1) % RESUMMED == 0 { &[] } else { frame };
            }
        }
    }

    /// Adds the frame `now` that follows on `before`, which is empty where the sum has to begin anew.
    fn push(&mut self, e: usize, before: &[u8], now: &[u8]) {
        let row = |job: usize, code: u8| (job * e + usize::from(code)) as u32;
        let start = self.rows.len();
        self.gone.clear();
        for_each_difference(before, now, |job| {
            if before[job] != EMPTY {
                self.gone.push(row(job, before[job]));
            }
            if now[job] != EMPTY {
                self.rows.push(row(job, now[job]));
            }
        });
        let active = now.iter().filter(|&&code| code != EMPTY).count();
        let is_fresh = before.is_empty() || self.rows.len() - start + self.gone.len() > active;
        if is_fresh {
            self.rows.truncate(start);
            self.gone.clear();
            let present = now.iter().enumerate().filter(|(_, code)| **code != EMPTY);
            self.rows.extend(present.map(|(job, &code)| row(job, code)));
        }
        let middle = self.rows.len();
        self.rows.extend_from_slice(&self.gone);
        self.frames.push(Frame { is_fresh, bounds: [start, middle, self.rows.len()].map(|at| at as u32) });
    }

    /// The change of frame `frame` of sample `sample`.
    #[inline(always)]
    pub(super) fn get(&self, sample: usize, frame: usize) -> Change<'_> {
        let Frame { is_fresh, bounds } = self.frames[sample * self.m + frame];
        let [start, middle, end] = bounds.map(|at| at as usize);
        Change { is_fresh, added: &self.rows[start..middle], removed: &self.rows[middle..end] }
    }
}

/// Calls `found` with each position at which two slices differ, as far as the shorter goes, eight positions at a time.
fn for_each_difference(a: &[u8], b: &[u8], mut found: impl FnMut(usize)) {
    let (a_words, a_rest) = a.as_chunks::<8>();
    let (b_words, b_rest) = b.as_chunks::<8>();
    for (word, (x, y)) in a_words.iter().zip(b_words).enumerate() {
        let mut differing = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        while differing != 0 {
            let byte = differing.trailing_zeros() / 8;
            found(8 * word + byte as usize);
            differing &= !(0xff << (8 * byte));
        }
    }
    let done = 8 * a_words.len();
    a_rest.iter().zip(b_rest).enumerate().filter(|(_, (x, y))| x != y).for_each(|(at, _)| found(done + at));
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
            present.extend_from_slice(change.added);
            for gone in change.removed {
                let at = present.iter().position(|row| row == gone).expect("it was there");
                present.remove(at);
            }
        }
        present.sort_unstable();
        present
    }

    #[test]
    fn changes_add_up_to_the_codes() {
        let shape = Shape { e: 4, m: 70, j: 11, s: 0, hidden_size: 1, lstm_layers: 1 };
        let code = |at: usize| match at * 2_654_435_761 % 97 {
            small @ 0..4 => small as u8,
            _ => EMPTY,
        };
        // Sticky codes, then quick ones, then nothing at all.
        let mut codes: Vec<u8> =
            (0..3 * 770).map(|at| if at < 770 { code(at % 11 + at / 99) } else { code(at) }).collect();
        codes[1540..].fill(EMPTY);
        let mut changes = Changes::default();
        changes.find(&shape, &Batch::new(&shape, &codes, &[]).expect("a batch"));
        for (sample, codes) in codes.chunks(770).enumerate() {
            for (frame, codes) in codes.chunks(11).enumerate() {
                let present = codes.iter().enumerate().filter(|(_, code)| **code != EMPTY);
                let expected: Vec<u32> = present.map(|(job, &code)| (job * 4) as u32 + u32::from(code)).collect();
                assert_eq!(rows(&changes, sample, frame), expected);
                assert!(changes.get(sample, frame).is_fresh || frame % RESUMMED != 0);
            }
        }
    }

    #[test]
    fn a_frame_never_takes_more_rows_than_it_has() {
        let shape = Shape { e: 3, m: 2, j: 9, s: 0, hidden_size: 1, lstm_layers: 1 };
        let mut codes = vec![0u8; 18];
        codes[9..].fill(1);
        codes[17] = 0;
        let mut changes = Changes::default();
        changes.find(&shape, &Batch::new(&shape, &codes, &[]).expect("a batch"));
        let change = changes.get(0, 1);
        assert_eq!((change.is_fresh, change.added.len(), change.removed.len()), (true, 9, 0));
    }
}
