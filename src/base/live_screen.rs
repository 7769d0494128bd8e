//! A full-screen terminal display that redraws a frame of lines in place. An unchanged frame is not
//! written again. The terminal is restored at the end.

use std::time::Duration;

use anyhow::Result;

use crate::output::{self, PageLine};

/// A line of a screen: pieces of text, each with its colour.
pub type ScreenLine = Vec<PageLine>;

/// Interval between checks of the window size.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Escape codes that switch to the terminal's alternate screen, hide the cursor and clear the
/// screen.
const BEGIN: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
const END: &str = "\x1b[?25h\x1b[?1049l";

/// Escape codes for synchronized output, which show a frame at once. Terminals without it ignore
/// them.
const FRAME_BEGIN: &str = "\x1b[?2026h\x1b[H";
const FRAME_END: &str = "\x1b[J\x1b[?2026l";

/// A terminal in full-screen mode. Dropping this restores the terminal.
#[derive(Debug)]
pub struct LiveScreen {
    shown: String,
}

impl LiveScreen {
    /// Switches the terminal on stdout to full-screen mode.
    ///
    /// # Errors
    /// Fails if stdout cannot be written.
    pub fn begin() -> Result<LiveScreen> {
        output::write(BEGIN)?;
        Ok(LiveScreen {
            shown: String::new(),
        })
    }

    /// Shows the part of `lines` that fits into a window of `columns` and `rows`.
    ///
    /// # Errors
    /// Fails if stdout cannot be written.
    pub fn draw(&mut self, lines: &[ScreenLine], (columns, rows): (usize, usize)) -> Result<()> {
        let frame = frame_text(lines, columns, rows, output::has_colours());
        if frame != self.shown {
            output::write(&frame)?;
            self.shown = frame;
        }
        Ok(())
    }

    /// Forgets the last frame, so that the next one is drawn even if it is equal. Needed after the
    /// window size has changed, because the window no longer shows that frame.
    pub fn forget(&mut self) {
        self.shown.clear();
    }
}

impl Drop for LiveScreen {
    fn drop(&mut self) {
        let _ = output::write(END);
    }
}

fn frame_text(lines: &[ScreenLine], columns: usize, rows: usize, has_colours: bool) -> String {
    let mut text = FRAME_BEGIN.to_owned();
    for (at, line) in lines.iter().take(rows).enumerate() {
        if at > 0 {
            text.push_str("\r\n");
        }
        let mut room = columns;
        for piece in line {
            // `cut` needs room for its dots, so in a narrower window the piece is shortened again.
            let shown = output::cut(&piece.text, room.max(3));
            let shown = output::clipped(&shown, room);
            room = room.saturating_sub(output::columns_of(shown));
            text.push_str(&output::coloured(shown, piece.colour, has_colours));
        }
        text.push_str("\x1b[K");
    }
    text.push_str(FRAME_END);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::LineColour;

    #[test]
    fn frames_are_clipped_and_control_sequences_escaped() {
        let lines = vec![
            vec![
                PageLine::of(LineColour::Green, "go"),
                PageLine::plain("\u{1b}[31mon and on"),
            ],
            vec![PageLine::plain("second")],
            vec![PageLine::plain("third")],
        ];
        assert_eq!(
            frame_text(&lines, 12, 2, false),
            "\u{1b}[?2026h\u{1b}[Hgo\\u{1b}[...\u{1b}[K\r\nsecond\u{1b}[K\u{1b}[J\u{1b}[?2026l"
        );
        let coloured = frame_text(&lines[..1], 2, 1, true);
        assert!(coloured.contains("\u{1b}[32mgo\u{1b}[0m"), "{coloured:?}");
    }
}
