//! Lays out a status for a window of any size, or as one line if there is no window.

use poolcast_base::live_screen::ScreenLine;
use poolcast_base::output::{LineColour, PageLine};

/// Characters of a bar. Colours also separate its parts, but not every output has colours.
const DONE_MARK: char = '#';
const AT_WORK_MARK: char = '=';
const WAITING_MARK: char = '.';
const FAILED_MARK: char = 'x';

/// Levels of a spark line, lowest first.
const SPARK_STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_SPARK_STEPS: [char; 8] = ['_', '.', '-', '~', '=', '+', '*', '#'];

/// A rendered status.
pub(super) struct StatusPage {
    /// The whole status, for output that is printed once.
    pub(super) text: String,
    /// The state in one line. It changes only when a count changes.
    pub(super) state: String,
    /// Remaining time, printed after the state.
    pub(super) remaining: String,
    /// True if nothing more will change.
    pub(super) is_over: bool,
    /// First lines of a window.
    pub(super) head: Vec<ScreenLine>,
    /// Lines below the head, shown if there is room.
    pub(super) rows: Vec<ScreenLine>,
}

impl StatusPage {
    /// The lines for a window with `lines` lines. If some do not fit, the last line has their
    /// number.
    pub(super) fn screen(&self, lines: usize) -> Vec<ScreenLine> {
        let mut screen = self.head.clone();
        let room = lines.saturating_sub(screen.len());
        if self.rows.len() <= room {
            screen.extend(self.rows.iter().cloned());
            return screen;
        }

        let shown = room.saturating_sub(1);
        screen.extend(self.rows.iter().take(shown).cloned());
        let more = format!("... {} more lines", self.rows.len() - shown);
        screen.push(vec![PageLine::of(LineColour::Dim, more)]);
        screen
    }
}

/// Number of items in each state.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StateCounts {
    pub(super) done: usize,
    pub(super) at_work: usize,
    pub(super) waiting: usize,
    pub(super) failed: usize,
}

/// A bar over all of `counts` in brackets, `width` characters wide. Each state that occurs gets at
/// least one character.
pub(super) fn bar(counts: StateCounts, width: usize) -> ScreenLine {
    let parts = [
        (counts.done, DONE_MARK, LineColour::Green),
        (counts.failed, FAILED_MARK, LineColour::Red),
        (counts.at_work, AT_WORK_MARK, LineColour::Yellow),
        (counts.waiting, WAITING_MARK, LineColour::Dim),
    ];
    let room = width.saturating_sub(2).max(parts.len());
    let all: usize = parts.iter().map(|part| part.0).sum();
    let mut line = vec![PageLine::plain("[")];
    let mut used = 0;
    let mut shares: Vec<usize> = Vec::new();
    for (count, ..) in parts {
        let share = (count * room).checked_div(all).unwrap_or(0);
        shares.push(share.max(usize::from(count > 0)));
    }

    // The largest part absorbs the rounding error.
    let sum: usize = shares.iter().sum();
    if let Some(largest) = (0..shares.len()).max_by_key(|at| shares[*at]) {
        shares[largest] = (shares[largest] + room).saturating_sub(sum);
    }
    for ((_, mark, colour), share) in parts.into_iter().zip(shares) {
        let share = if all == 0 { 0 } else { share };
        used += share;
        line.push(PageLine::of(colour, mark.to_string().repeat(share)));
    }
    line.push(PageLine::plain(" ".repeat(room.saturating_sub(used))));
    line.push(PageLine::plain("]"));
    line
}

/// Draws `values` in at most `width` characters. A value that is not finite becomes a blank.
pub(super) fn spark_line(values: &[f64], width: usize, is_utf8: bool) -> String {
    let steps = if is_utf8 {
        SPARK_STEPS
    } else {
        ASCII_SPARK_STEPS
    };
    let shown = values.len().min(width);
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let low = finite().fold(f64::INFINITY, f64::min);
    let high = finite().fold(f64::NEG_INFINITY, f64::max);

    let mut line = String::new();
    for at in 0..shown {
        // The last character always shows the last value.
        let value = values[(at + 1) * values.len() / shown - 1];
        let share = (value - low) / (high - low);
        line.push(if !value.is_finite() {
            ' '
        } else if share.is_finite() {
            steps[(share * 7.0).round() as usize]
        } else {
            steps[0]
        });
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &ScreenLine) -> String {
        line.iter().map(|piece| piece.text.as_str()).collect()
    }

    fn counts(done: usize, at_work: usize, waiting: usize, failed: usize) -> StateCounts {
        StateCounts {
            done,
            at_work,
            waiting,
            failed,
        }
    }

    #[test]
    fn a_bar_shows_each_state_and_is_never_longer() {
        assert_eq!(text(&bar(counts(5, 1, 3, 1), 12)), "[#####x=...]");
        assert_eq!(text(&bar(counts(1000, 1, 0, 1), 12)), "[########x=]");
        assert_eq!(text(&bar(counts(0, 0, 0, 0), 8)), "[      ]");
        for width in 0..40 {
            for counts in [counts(1, 1, 1, 1), counts(7, 0, 500, 3), counts(0, 0, 9, 0)] {
                assert_eq!(text(&bar(counts, width)).len(), width.max(6));
            }
        }
    }

    #[test]
    fn a_spark_line_fits_and_ends_with_the_last_value() {
        assert_eq!(spark_line(&[1.0, 0.5, 0.0], 8, true), "█▅▁");
        assert_eq!(spark_line(&[1.0, f64::NAN, 0.0], 8, false), "# _");
        assert_eq!(spark_line(&[2.0, 2.0], 8, false), "__");
        assert_eq!(spark_line(&[], 8, true), "");
        let falling: Vec<f64> = (0..200).map(|at| -f64::from(at)).collect();
        let line = spark_line(&falling, 10, true);
        assert_eq!(line.chars().count(), 10);
        assert!(line.ends_with('▁'));
        let huge = spark_line(&[f64::MIN, f64::MAX, 0.0], 3, false);
        assert_eq!(huge.chars().count(), 3);
    }

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        let line = |text: &str| vec![PageLine::plain(text)];
        let page = StatusPage {
            text: String::new(),
            state: String::new(),
            remaining: String::new(),
            is_over: false,
            head: vec![line("head")],
            rows: ["a", "b", "c"].map(line).to_vec(),
        };
        let shown = |lines| {
            let screen = page.screen(lines);
            screen.iter().map(text).collect::<Vec<_>>()
        };
        assert_eq!(shown(4), ["head", "a", "b", "c"]);
        assert_eq!(shown(3), ["head", "a", "... 2 more lines"]);
    }
}
