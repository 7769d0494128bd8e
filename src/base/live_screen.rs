//! Lines → a terminal, on which each frame takes the place of the one before. What has not changed is
//! not written again, and at the end the terminal is as it was.

use std::time::Duration;

use anyhow::Result;

use crate::output::{self, PageLine};

/// A line of a screen: pieces of text, each in its colour.
pub type ScreenLine = Vec<PageLine>;

/// How often a screen looks whether its window has another size.
pub const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The other screen of a terminal, which it has for programs that draw; the cursor is hidden.
const BEGIN: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
const END: &str = "\x1b[?25h\x1b[?1049l";

/// Terminals that know these show a frame at once; the others ignore them.
const FRAME_BEGIN: &str = "\x1b[?2026h\x1b[H";
const FRAME_END: &str = "\x1b[J\x1b[?2026l";

/// A terminal that is drawn on; once this is dropped, it is as it was.
#[derive(Debug)]
pub struct LiveScreen {
    shown: String,
}

impl LiveScreen {
    /// Takes the terminal that stdout is.
    ///
    /// # Errors
    /// Fails where nothing can be written.
    pub fn begin() -> Result<LiveScreen> {
        output::write(BEGIN)?;
        Ok(LiveScreen {
            shown: String::new(),
        })
    }

    /// Shows `lines`, as far as a window of so many columns and lines has room.
    ///
    /// # Errors
    /// Fails where nothing can be written.
    pub fn draw(&mut self, lines: &[ScreenLine], (columns, rows): (usize, usize)) -> Result<()> {
        let frame = frame_text(lines, columns, rows, output::has_colours());
        if frame != self.shown {
            output::write(&frame)?;
            self.shown = frame;
        }
        Ok(())
    }

    /// Draws the next frame whole, as a window of another size does not show what it did.
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
            let shown = output::cut(&piece.text, room.max(3));
            let shown: String = shown.chars().take(room).collect();
            room -= shown.chars().count();
            text.push_str(&output::coloured(&shown, piece.colour, has_colours));
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
    fn a_frame_fits_its_window_and_commands_in_it_are_text() {
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
