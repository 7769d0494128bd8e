//! Frames: at each of `m` moments, the last event of a job at or before it.

use crate::config::Window;
use crate::events::History;

/// `e`: the event numbers 0 to 47 of the current HTCondor, and one place for all others.
pub const VOCABULARY: usize = 49;
/// The cell of a frame before a job's first event.
pub const EMPTY: u8 = 255;
/// The cell of an event whose number is not one of 0 to 47.
const OTHER: u8 = 48;

/// The `m` moments of a sample, epoch ms, forward in time.
///
/// `window = hold`: `t_k = t_hold - (m-1-k) * timeframe_len`; `window = life`: `t_k = t_submit + k * timeframe_len`.
pub(super) fn frames(window: Window, hold_ms: i64, submit_ms: i64, m: usize, timeframe_len_s: u32) -> Vec<i64> {
    let length_ms = i64::from(timeframe_len_s) * 1000;
    let start_ms = match window {
        Window::Hold => hold_ms - (m as i64 - 1) * length_ms,
        Window::Life => submit_ms,
    };
    (0..m as i64).map(|k| start_ms + k * length_ms).collect()
}

/// Writes the states of one job into column `column` of `codes` `[m, j]`: at each frame its last event at or before it,
/// among the first `visible` of its events that are not in `ignore`; [`EMPTY`] where there is none.
pub(super) fn fill(
    codes: &mut [u8],
    (column, j): (usize, usize),
    history: History<'_>,
    visible: usize,
    frames: &[i64],
    ignore: &[u16],
) {
    let mut events = history.time_ms[..visible]
        .iter()
        .zip(&history.number[..visible])
        .filter(|(_, number)| !ignore.contains(number))
        .peekable();
    let mut state = EMPTY;
    for (row, &frame_ms) in codes.chunks_exact_mut(j).zip(frames) {
        while let Some((_, &number)) = events.next_if(|(time_ms, _)| **time_ms <= frame_ms) {
            state = u8::try_from(number).unwrap_or(OTHER).min(OTHER);
        }
        row[column] = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(events: &[(i64, u16)], visible: usize, frames: &[i64]) -> Vec<u8> {
        let time_ms: Vec<i64> = events.iter().map(|event| event.0 * 60_000).collect();
        let number: Vec<u16> = events.iter().map(|event| event.1).collect();
        let (zeros, bytes) = (vec![0; events.len()], vec![0; events.len()]);
        let history = History {
            time_ms: &time_ms,
            number: &number,
            hold_code: &zeros,
            hold_subcode: &zeros,
            value: &zeros,
            normal: &bytes,
            text_hash: &vec![0; events.len()],
        };
        let mut codes = vec![77; frames.len() * 2];
        fill(&mut codes, (1, 2), history, visible, frames, &[28]);
        assert!(codes.iter().step_by(2).all(|&cell| cell == 77), "other columns are untouched");
        codes.into_iter().skip(1).step_by(2).collect()
    }

    /// The published worked example.
    #[test]
    fn the_worked_example() {
        let events = [(1, 0), (3, 1), (4, 2), (5, 3), (7, 4), (10, 2), (13, 5)];
        let frames = frames(Window::Life, 0, 60_000, 14, 60);
        assert_eq!(column(&events, 7, &frames), [0, 0, 1, 2, 3, 3, 4, 4, 4, 2, 2, 2, 5, 5]);
    }

    #[test]
    fn hold_windows_end_at_the_hold() {
        // Submitted at 1, held at 5 and released in the same minute: the release comes after the hold and is not seen.
        let events = [(1, 0), (3, 1), (3, 28), (5, 12), (5, 13), (6, 5)];
        let frames = frames(Window::Hold, 300_000, 60_000, 7, 60);
        assert_eq!(frames, [-60_000, 0, 60_000, 120_000, 180_000, 240_000, 300_000]);
        assert_eq!(column(&events, 4, &frames), [EMPTY, EMPTY, 0, 0, 1, 1, 12]);
    }

    #[test]
    fn unknown_numbers_share_one_place() {
        assert_eq!(column(&[(0, 47), (1, 48), (2, 300)], 3, &[0, 60_000, 120_000]), [47, OTHER, OTHER]);
        assert!(usize::from(OTHER) < VOCABULARY);
    }
}
