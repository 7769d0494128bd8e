//! A queue without items → a queue whose items have all ended: fills it, and takes leases from the dead.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

use super::folder::Queue;
use super::patience::{Pace, Patience};
use super::seat::{Seat, Seated};
use super::watch::{Census, Lost, Watch};

/// What a manager sees.
#[derive(Debug)]
pub enum News<'a> {
    /// It took the seat; a dead manager's name, if it had it.
    Seated(Option<&'a str>),
    /// A worker lost its lease.
    Lost(&'a Lost),
    /// More items have ended.
    Ended(&'a Census),
}

/// How managing ended.
#[derive(Debug)]
pub enum Managed {
    /// All items have ended.
    Over(Census),
    /// Another manager lives.
    Elsewhere(String),
    /// It was told to stop; another may go on at any time.
    Stopped,
}

/// Manages `queue` until all items have ended or `stop` is set. `fill` is called until it has sealed the queue, and does
/// nothing twice. `finish` is called at the end, while this manager still has the seat.
///
/// # Errors
/// Errors that can pass are borne for as long as a lease lasts.
pub fn manage(
    queue: &Queue,
    stop: &AtomicBool,
    fill: impl Fn(&Queue) -> Result<()>,
    mut hear: impl FnMut(News<'_>),
    finish: impl FnOnce(&Census) -> Result<()>,
) -> Result<Managed> {
    let (seat, dead) = match Seat::take(queue, stop)? {
        Seated::Here(seat, dead) => (seat, dead),
        Seated::Elsewhere(other) => return Ok(Managed::Elsewhere(other)),
        Seated::Stopped => return Ok(Managed::Stopped),
    };
    hear(News::Seated(dead.as_deref()));
    let mut watch = Watch::new(queue);
    let (mut pace, mut patience) = (
        Pace::new(queue.settings.heartbeat_s / 2.0),
        Patience::new(&queue.settings),
    );
    let mut ended = 0;
    loop {
        if !seat.is_ours() {
            return Ok(Managed::Elsewhere(queue.manager().unwrap_or_default()));
        }
        // Asked before it looks: who sets it after the last item has ended is told that all is over.
        let is_last = stop.load(Ordering::Relaxed);
        match round(queue, &fill, &mut watch) {
            Err(error) => patience.bear(error, stop)?,
            Ok((census, lost)) => {
                patience.reset();
                lost.iter().for_each(|lost| hear(News::Lost(lost)));
                if census.ended() > ended {
                    ended = census.ended();
                    hear(News::Ended(&census));
                    pace.reset();
                }
                if census.is_over() {
                    finish(&census)?;
                    return Ok(Managed::Over(census));
                }
            }
        }
        if is_last {
            return Ok(Managed::Stopped);
        }
        pace.wait(stop);
    }
}

fn round(
    queue: &Queue,
    fill: &impl Fn(&Queue) -> Result<()>,
    watch: &mut Watch<'_>,
) -> Result<(Census, Vec<Lost>)> {
    if queue.sealed()?.is_none() {
        fill(queue)?;
    }
    watch.look(None)
}
