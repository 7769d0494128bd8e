//! A queue without items → a queue whose items have all ended: fills it, and takes leases from the dead.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

use super::backoff::{Backoff, RetryBackoff};
use super::item_store::Queue;
use super::leader::{LeaderElection, Leadership};
use super::lease_monitor::{ItemStateCounts, LeaseMonitor, LostLease};

/// What a manager sees.
#[derive(Debug)]
pub enum ManagerEvent<'a> {
    /// It took the seat; a dead manager's name, if it had it.
    BecameLeader(Option<&'a str>),
    /// A worker lost its lease.
    LeaseLost(&'a LostLease),
    /// More items have ended.
    ItemsEnded(&'a ItemStateCounts),
}

/// How managing ended.
#[derive(Debug)]
pub enum ManagerOutcome {
    /// All items have ended.
    AllEnded(ItemStateCounts),
    /// Another manager lives.
    OtherManager(String),
    /// It was told to stop; another may go on at any time.
    Stopped,
}

/// Manages `queue` until all items have ended or `stop` is set. `fill` is called until it has sealed the queue, and does
/// nothing twice. `finish` is called at the end, while this manager still has the seat.
///
/// # Errors
/// Errors that can pass are borne for as long as a lease lasts.
pub fn run_manager(
    queue: &Queue,
    stop: &AtomicBool,
    fill: impl Fn(&Queue) -> Result<()>,
    mut hear: impl FnMut(ManagerEvent<'_>),
    finish: impl FnOnce(&ItemStateCounts) -> Result<()>,
) -> Result<ManagerOutcome> {
    let (seat, dead) = match Leadership::take(queue, stop)? {
        LeaderElection::Here(seat, dead) => (seat, dead),
        LeaderElection::Elsewhere(other) => return Ok(ManagerOutcome::OtherManager(other)),
        LeaderElection::Stopped => return Ok(ManagerOutcome::Stopped),
    };
    hear(ManagerEvent::BecameLeader(dead.as_deref()));
    let mut watch = LeaseMonitor::new(queue);
    let (mut pace, mut patience) = (
        Backoff::new(queue.settings.heartbeat_s / 2.0),
        RetryBackoff::new(&queue.settings),
    );
    let mut ended = 0;
    loop {
        if !seat.is_ours() {
            return Ok(ManagerOutcome::OtherManager(
                queue.leader_name().unwrap_or_default(),
            ));
        }
        // Asked before it looks: who sets it after the last item has ended is told that all is over.
        let is_last = stop.load(Ordering::Relaxed);
        match round(queue, &fill, &mut watch) {
            Err(error) => patience.bear(error, stop)?,
            Ok((counts, lost)) => {
                patience.reset();
                lost.iter()
                    .for_each(|lost| hear(ManagerEvent::LeaseLost(lost)));
                if counts.ended() > ended {
                    ended = counts.ended();
                    hear(ManagerEvent::ItemsEnded(&counts));
                    pace.reset();
                }
                if counts.is_over() {
                    finish(&counts)?;
                    return Ok(ManagerOutcome::AllEnded(counts));
                }
            }
        }
        if is_last {
            return Ok(ManagerOutcome::Stopped);
        }
        pace.wait(stop);
    }
}

fn round(
    queue: &Queue,
    fill: &impl Fn(&Queue) -> Result<()>,
    watch: &mut LeaseMonitor<'_>,
) -> Result<(ItemStateCounts, Vec<LostLease>)> {
    if queue.sealed_trials()?.is_none() {
        fill(queue)?;
    }
    watch.look(None)
}
