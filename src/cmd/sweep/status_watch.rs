//! Watches a status until everything is over: draws it on a terminal, and prints lines elsewhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::status_page::StatusPage;
use crate::cmd::signals::stop_signal;
use poolcast_base::error::EXIT_DONE;
use poolcast_base::live_screen::{LiveScreen, POLL_INTERVAL};
use poolcast_base::output;
use poolcast_cli::SweepStatusArgs;

/// Minimum interval between two reads of a status.
const MIN_READ_INTERVAL: Duration = Duration::from_secs(2);
/// Minimum pause after a read, as a multiple of the time that the read took. It bounds the load
/// that watching a large sweep causes.
const PAUSE_PER_READ: u32 = 20;

/// Interval between lines while nothing changes.
const PRINT_INTERVAL: Duration = Duration::from_secs(60);

/// Line width if there is no window.
const COLUMNS: usize = 80;

/// Shows the status once, or until everything is over. `read` gets the width of the window.
pub(super) fn show(
    args: &SweepStatusArgs,
    read: impl Fn(usize) -> Result<StatusPage>,
) -> Result<u8> {
    let stop = stop_signal()?;
    let page = if !args.once && output::can_draw() {
        draw_to_end(&read, &stop)?
    } else if args.watch {
        print_to_end(&read, &stop)?
    } else {
        read(COLUMNS)?
    };
    output::print(&page.text)?;
    Ok(EXIT_DONE)
}

/// Draws on the terminal until everything is over. Returns the last page, which the caller prints.
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

/// Prints the state in one line at each change, and otherwise once a minute.
fn print_to_end(
    read: &impl Fn(usize) -> Result<StatusPage>,
    stop: &AtomicBool,
) -> Result<StatusPage> {
    let mut printed_state = String::new();
    let mut printed_at = Instant::now();
    loop {
        let (page, next_read) = read_once(read, COLUMNS)?;
        if page.is_over || stop.load(Ordering::Relaxed) {
            return Ok(page);
        }
        if page.state != printed_state || printed_at.elapsed() >= PRINT_INTERVAL {
            output::print(&format!("{}{}\n", page.state, page.remaining))?;
            printed_state = page.state;
            printed_at = Instant::now();
        }
        wait(next_read, stop, || false);
    }
}

/// Reads the status; also returns the time of the next read.
fn read_once(
    read: &impl Fn(usize) -> Result<StatusPage>,
    columns: usize,
) -> Result<(StatusPage, Instant)> {
    let began = Instant::now();
    let page = read(columns)?;
    let pause = MIN_READ_INTERVAL.max(began.elapsed() * PAUSE_PER_READ);
    Ok((page, Instant::now() + pause))
}

fn window_size() -> (usize, usize) {
    output::terminal_size().unwrap_or((COLUMNS, 24))
}

/// Waits until `until` or a signal. Returns true as soon as `is_changed` does.
fn wait(until: Instant, stop: &AtomicBool, is_changed: impl Fn() -> bool) -> bool {
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        if is_changed() {
            return true;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    false
}
