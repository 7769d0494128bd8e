//! A manager of a queue. It fills the queue, revokes the leases of dead workers, and ends once all
//! items have ended.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

use super::backoff::{Backoff, ErrorBackoff};
use super::item_store::Queue;
use super::leader::{LeaderElection, Leadership};
use super::lease_monitor::{LeaseMonitor, LostLease, MonitorReport};
use super::state_counts::ItemStateCounts;

/// An event that a manager reports.
#[derive(Debug)]
pub enum ManagerEvent<'a> {
    /// The manager became the leader; with the name of a dead leader that it replaced.
    BecameLeader(Option<&'a str>),
    /// A worker lost its lease.
    LeaseLost(&'a LostLease),
    /// More items have ended.
    ItemsEnded(&'a ItemStateCounts),
}

/// The outcome of a manager.
#[derive(Debug)]
pub enum ManagerOutcome {
    /// All items have ended.
    AllEnded(ItemStateCounts),
    /// Another manager leads, and is alive.
    OtherManager(String),
    /// The manager was asked to stop; another may continue at any time.
    Stopped,
}

/// Manages `queue` until all items have ended or `stop` is set. `look_again` ends a wait once, for
/// a caller who knows that something has changed. After the last hand-out it still waits for the
/// running items. `fill` adds items and finally seals the queue. It is called repeatedly until
/// then. `on_event` receives the events. `finish` is called at the end, while this manager still
/// leads.
///
/// # Errors
/// Fails with a permanent error, or with a temporary one that has lasted for the duration of a
/// lease.
pub fn run_manager(
    queue: &Queue,
    stop: &AtomicBool,
    look_again: &AtomicBool,
    mut fill: impl FnMut(&Queue) -> Result<()>,
    mut on_event: impl FnMut(ManagerEvent<'_>),
    finish: impl FnOnce(&ItemStateCounts) -> Result<()>,
) -> Result<ManagerOutcome> {
    let (leadership, dead_leader) = match Leadership::take(queue, stop)? {
        LeaderElection::Won {
            leadership,
            dead_leader,
        } => (leadership, dead_leader),
        LeaderElection::OtherLeader(other) => return Ok(ManagerOutcome::OtherManager(other)),
        LeaderElection::Stopped => return Ok(ManagerOutcome::Stopped),
    };
    on_event(ManagerEvent::BecameLeader(dead_leader.as_deref()));

    let mut monitor = LeaseMonitor::new(queue);
    let mut backoff = Backoff::new(queue.settings.heartbeat_s / 2.0);
    let mut error_backoff = ErrorBackoff::new(&queue.settings);
    let mut ended = 0;
    loop {
        if !leadership.is_ours() {
            let other = queue.leader_name().unwrap_or_default();
            return Ok(ManagerOutcome::OtherManager(other));
        }

        // This is read before the check of the items. If the last item ends before `stop` is set,
        // this returns that all have ended.
        let is_last_look = stop.load(Ordering::Relaxed);
        match fill_and_check(queue, &mut fill, &mut monitor) {
            Err(error) => error_backoff.wait_or_fail(error, stop)?,
            Ok(report) => {
                error_backoff.reset();
                if report_changes(&report, &mut ended, &mut on_event) {
                    backoff.reset();
                }

                let counts = report.counts;
                // Until the queue is sealed, new items may become available at any time.
                let looks_per_heartbeat = if counts.sealed.is_some() { 2.0 } else { 4.0 };
                backoff.set_max_wait(queue.settings.heartbeat_s / looks_per_heartbeat);
                let is_ended_by_request = counts.leased == 0 && queue.hand_out().is_final();
                if counts.is_over() || is_ended_by_request {
                    finish(&counts)?;
                    return Ok(ManagerOutcome::AllEnded(counts));
                }
            }
        }

        if is_last_look {
            return Ok(ManagerOutcome::Stopped);
        }
        backoff
            .wait_for(|| stop.load(Ordering::Relaxed) || look_again.swap(false, Ordering::Relaxed));
    }
}

/// Fills the queue until it is sealed, and revokes the leases of dead workers.
fn fill_and_check(
    queue: &Queue,
    fill: &mut impl FnMut(&Queue) -> Result<()>,
    monitor: &mut LeaseMonitor<'_>,
) -> Result<MonitorReport> {
    let is_filled = queue.sealed_trials()?.is_some();
    if !is_filled && !queue.hand_out().is_final() {
        fill(queue)?;
    }
    monitor.check_leases(None)
}

/// Reports to `on_event` the leases that were lost, and the items if more than `ended` have ended.
/// Returns whether more have ended, and counts them in `ended`.
fn report_changes(
    report: &MonitorReport,
    ended: &mut usize,
    mut on_event: impl FnMut(ManagerEvent<'_>),
) -> bool {
    for lost in &report.lost_leases {
        on_event(ManagerEvent::LeaseLost(lost));
    }

    let have_more_ended = report.counts.ended() > *ended;
    if have_more_ended {
        *ended = report.counts.ended();
        on_event(ManagerEvent::ItemsEnded(&report.counts));
    }
    have_more_ended
}
