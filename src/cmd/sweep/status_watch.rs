//! A status that is read again and again → a terminal, or lines elsewhere, until all is over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::status_page::StatusPage;
use crate::cli::SweepStatusArgs;
use crate::cmd::signals::stop_signal;
use poolcast_base::error::EXIT_DONE;
use poolcast_base::live_screen::{LOOK_EVERY, LiveScreen};
use poolcast_base::output;

/// How often a status is read, at most; of a large sweep the reading takes no more than a part of the
/// time.
const READ_EVERY: Duration = Duration::from_secs(2);
const READING_SHARE: u32 = 20;

/// How often a line says that nothing has changed.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// Columns where there is no window.
const COLUMNS: usize = 80;

/// Shows what `read` says, given the columns of the window, once or until all is over.
pub(super) fn show(
    args: &SweepStatusArgs,
    read: impl Fn(usize) -> Result<StatusPage>,
) -> Result<u8> {
    let stop = stop_signal()?;
    let page = if !args.once && output::can_draw() {
        draw_to_end(&read, &stop)?
    } else if args.watch {
        say_to_end(&read, &stop)?
    } else {
        read(COLUMNS)?
    };
    output::print(&page.text)?;
    Ok(EXIT_DONE)
}

/// Draws on the terminal until all is over; the last page is left to be printed.
fn draw_to_end(
    read: &impl Fn(usize) -> Result<StatusPage>,
    stop: &AtomicBool,
) -> Result<StatusPage> {
    let mut size = window_size();
    let (mut page, mut next_read) = read_once(read, size.0)?;
    if page.is_over {
        return Ok(page);
    }

    let mut screen = LiveScreen::begin()?;
    loop {
        screen.draw(&page.screen(size.1), size)?;
        if page.is_over || stop.load(Ordering::Relaxed) {
            return Ok(page);
        }

        let is_resized = wait(next_read, stop, || window_size() != size);
        if is_resized {
            size = window_size();
            screen.forget();
        }
        (page, next_read) = read_once(read, size.0)?;
    }
}

/// Says the state in a line at each change, and once a minute.
fn say_to_end(
    read: &impl Fn(usize) -> Result<StatusPage>,
    stop: &AtomicBool,
) -> Result<StatusPage> {
    let mut said = String::new();
    let mut said_at = Instant::now();
    loop {
        let (page, next_read) = read_once(read, COLUMNS)?;
        if page.is_over || stop.load(Ordering::Relaxed) {
            return Ok(page);
        }
        if page.state != said || said_at.elapsed() >= SAY_EVERY {
            output::print(&format!("{}{}\n", page.state, page.remaining))?;
            said = page.state;
            said_at = Instant::now();
        }
        wait(next_read, stop, || false);
    }
}

/// Reads, and says when to read again.
fn read_once(
    read: &impl Fn(usize) -> Result<StatusPage>,
    columns: usize,
) -> Result<(StatusPage, Instant)> {
    let began = Instant::now();
    let page = read(columns)?;
    let pause = READ_EVERY.max(began.elapsed() * READING_SHARE);
    Ok((page, Instant::now() + pause))
}

fn window_size() -> (usize, usize) {
    output::terminal_size().unwrap_or((COLUMNS, 24))
}

/// Waits until `until`, or until a signal or `is_changed`, which it returns.
fn wait(until: Instant, stop: &AtomicBool, is_changed: impl Fn() -> bool) -> bool {
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        if is_changed() {
            return true;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    false
}
