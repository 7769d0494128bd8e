//! A worker of a queue. It claims one chunk at a time until none is left, and runs the chunk's
//! trials one after another.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::backoff::{Backoff, ErrorBackoff};
use super::chunk_entry::ChunkEntry;
use super::chunk_file::ChunkFile;
use super::claim::ChunkClaimer;
use super::heartbeat::Heartbeat;
use super::item_store::Queue;
use super::journal::ResultJournal;
use super::lease_monitor::LeaseMonitor;
use super::proposal::read_proposal;

/// Maximum time that the results of short trials wait for more results, before they are fsynced
/// together.
const SYNC_INTERVAL: Duration = Duration::from_millis(500);

/// The outcome of an attempt at a trial.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptOutcome<R> {
    /// The trial ended with this result. The result may be a permanent failure.
    Done(R),
    /// The attempt was asked to stop. Another worker may continue it.
    Stopped,
}

/// An attempt at a trial.
#[derive(Debug)]
pub struct TrialAttempt<'a> {
    /// The trial as a chunk of its own, with the number of this attempt.
    pub entry: &'a ChunkEntry,
    /// The directory of its segment.
    segment: &'a Path,
    heartbeat: &'a Heartbeat,
}

impl TrialAttempt<'_> {
    /// The name of the worker that runs it.
    pub fn worker(&self) -> &str {
        &self.heartbeat.worker
    }

    /// Reads the document of the trial's proposal; `None` for a trial that was not proposed.
    ///
    /// # Errors
    /// Fails for a document that is damaged.
    pub fn proposal<P: DeserializeOwned>(&self) -> Result<Option<P>> {
        read_proposal(self.segment)
    }

    /// Returns true if it must stop because the queue is paused.
    pub fn is_paused(&self) -> bool {
        self.heartbeat.is_paused()
    }

    /// Reports its progress, for display.
    pub fn report_epoch(&self, epoch: usize, value: Option<f64>) {
        self.heartbeat.report_epoch(epoch, value);
    }
}

/// The counts of a worker's trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkerTally {
    /// Number of trials that it acknowledged.
    pub acknowledged: usize,
    /// Number of trials that it ended after it had lost their lease.
    pub late: usize,
    /// True if it was asked to stop.
    pub stopped: bool,
}

/// Claims chunks from `queue` and runs each of their trials with `attempt` until all have ended or
/// `stop` is set. While no chunk is ready or handed out, it monitors the leases of other workers.
/// An attempt that takes longer than `limit` must return on its own; otherwise the worker loses its
/// lease. Calls `acknowledged` for each trial once its result is on disk and its chunk's file has
/// been renamed.
///
/// # Errors
/// An error of `attempt` counts as temporary: the chunk is given back, and the attempt does not
/// count. The worker backs off and continues. It fails with the error if there was no success for
/// the duration of a lease.
pub fn run_worker<R: Serialize>(
    queue: &Queue,
    limit: Duration,
    stop: &AtomicBool,
    mut attempt: impl FnMut(&TrialAttempt<'_>) -> Result<AttemptOutcome<R>>,
    mut acknowledged: impl FnMut(&ChunkEntry, &R),
) -> Result<WorkerTally> {
    let mut worker = QueueWorker::new(queue, limit)?;
    let mut backoff = Backoff::new(max_idle_s(queue));
    let mut error_backoff = ErrorBackoff::new(&queue.settings);
    loop {
        worker.tally.stopped = stop.load(Ordering::Relaxed);
        if worker.tally.stopped || !queue.exists() {
            return Ok(worker.tally);
        }

        match worker.step(stop, &mut attempt, &mut acknowledged) {
            Ok(WorkerStep::AllEnded) => return Ok(worker.tally),
            Ok(WorkerStep::Worked) => {
                error_backoff.reset();
                backoff.reset();
            }
            Ok(WorkerStep::Idle) => {
                backoff.set_max_wait(max_idle_s(queue));
                backoff.wait(stop);
            }
            // The manager removes the queue when all trials have ended.
            Err(_) if !queue.exists() => return Ok(worker.tally),
            Err(error) => error_backoff.wait_or_fail(error, stop)?,
        }
    }
}

/// Maximum idle time of a worker, in seconds. It is shorter while trials may still be added.
fn max_idle_s(queue: &Queue) -> f64 {
    match queue.sealed_trials() {
        Ok(None) => queue.settings.heartbeat_s / 2.0,
        _ => queue.settings.lease_s / 8.0,
    }
}

/// A chunk that the worker has leased.
struct ChunkInProgress<R> {
    lease: ChunkFile,
    /// The results of its next trials, which are not on disk yet.
    results: Vec<(ChunkEntry, R)>,
    last_sync: Instant,
}

impl<R> ChunkInProgress<R> {
    fn new(lease: ChunkFile) -> ChunkInProgress<R> {
        ChunkInProgress {
            lease,
            results: Vec::new(),
            last_sync: Instant::now(),
        }
    }
}

/// The result of one step of a worker.
enum WorkerStep {
    Worked,
    /// No chunk was ready.
    Idle,
    AllEnded,
}

/// The reason why a worker stops work on a chunk.
enum ChunkEnd {
    Stopped,
    Failed(anyhow::Error),
    /// The attempt panicked, and printed the reason to stderr.
    Panicked,
}

struct QueueWorker<'a> {
    queue: &'a Queue,
    /// Maximum duration of an attempt.
    limit: Duration,
    claimer: ChunkClaimer<'a>,
    monitor: LeaseMonitor<'a>,
    journal: ResultJournal,
    heartbeat: Heartbeat,
    tally: WorkerTally,
}

impl<'a> QueueWorker<'a> {
    fn new(queue: &'a Queue, limit: Duration) -> Result<QueueWorker<'a>> {
        let heartbeat = Heartbeat::start(queue)?;
        Ok(QueueWorker {
            queue,
            limit,
            claimer: ChunkClaimer::new(queue, &heartbeat.worker),
            monitor: LeaseMonitor::new(queue),
            journal: ResultJournal::new(&queue.path("results"), &heartbeat.worker),
            heartbeat,
            tally: WorkerTally::default(),
        })
    }

    /// Claims a chunk and runs its trials. If no chunk is ready, monitors the leases of other
    /// workers.
    fn step<R: Serialize>(
        &mut self,
        stop: &AtomicBool,
        attempt: &mut impl FnMut(&TrialAttempt<'_>) -> Result<AttemptOutcome<R>>,
        acknowledged: &mut impl FnMut(&ChunkEntry, &R),
    ) -> Result<WorkerStep> {
        let Some(lease) = self.claimer.claim()? else {
            let report = self.monitor.check_leases(Some(&self.heartbeat.worker))?;
            return Ok(if report.counts.is_over() {
                WorkerStep::AllEnded
            } else {
                WorkerStep::Idle
            });
        };

        // The chunk was just claimed, so the queue hands out trials, even if the last heartbeat saw
        // otherwise.
        self.heartbeat.resume();
        let mut in_progress = Some(ChunkInProgress::new(lease));
        while let Some(chunk) = in_progress.take() {
            let may_go_on = !stop.load(Ordering::Relaxed) && !self.heartbeat.is_held_back();
            in_progress = self.do_next_trial(chunk, may_go_on, attempt, acknowledged)?;
        }
        Ok(WorkerStep::Worked)
    }

    /// Runs the next trial of a chunk, or gives the rest of the chunk back. Returns the chunk if
    /// the worker still has the lease and there are trials left.
    fn do_next_trial<R: Serialize>(
        &mut self,
        mut chunk: ChunkInProgress<R>,
        may_go_on: bool,
        attempt: &mut impl FnMut(&TrialAttempt<'_>) -> Result<AttemptOutcome<R>>,
        acknowledged: &mut impl FnMut(&ChunkEntry, &R),
    ) -> Result<Option<ChunkInProgress<R>>> {
        let position = chunk.lease.entry.ended + chunk.results.len();
        let entry = chunk.lease.entry.single_item(position);

        let outcome = if may_go_on {
            self.attempt_trial(&entry, &chunk.lease.dir, attempt)
        } else {
            Err(ChunkEnd::Stopped)
        };
        let recorded = outcome.and_then(|result| self.record(&chunk.lease, &entry, result));

        match recorded {
            Ok(result) => {
                chunk.results.push((entry, result));
                let is_last = position + 1 == chunk.lease.entry.chunk.count;
                // After a lost lease the trials are acknowledged one at a time, so that the next
                // loss counts against the right trial.
                let was_lost = chunk.lease.entry.attempt > 1;
                if !is_last && !was_lost && chunk.last_sync.elapsed() < SYNC_INTERVAL {
                    return Ok(Some(chunk));
                }
                self.acknowledge(chunk, acknowledged)
            }
            Err(end) => {
                // The ended trials of the chunk still count.
                if let Some(chunk) = self.acknowledge(chunk, acknowledged)? {
                    self.leave_chunk(&chunk.lease, end)?;
                }
                Ok(None)
            }
        }
    }

    /// Makes an attempt at the trial of `entry`, in the directory `segment`.
    fn attempt_trial<R>(
        &self,
        entry: &ChunkEntry,
        segment: &Path,
        attempt: &mut impl FnMut(&TrialAttempt<'_>) -> Result<AttemptOutcome<R>>,
    ) -> Result<R, ChunkEnd> {
        self.heartbeat.begin_item(entry.next_item(), self.limit);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            attempt(&TrialAttempt {
                entry,
                segment,
                heartbeat: &self.heartbeat,
            })
        }));
        self.heartbeat.end_item();

        match outcome {
            Ok(Ok(AttemptOutcome::Done(result))) => Ok(result),
            Ok(Ok(AttemptOutcome::Stopped)) => Err(ChunkEnd::Stopped),
            Ok(Err(error)) => Err(ChunkEnd::Failed(error)),
            Err(_) => Err(ChunkEnd::Panicked),
        }
    }

    /// Adds the result of the trial of `entry` to the journal, and returns the result.
    fn record<R: Serialize>(
        &mut self,
        lease: &ChunkFile,
        entry: &ChunkEntry,
        result: R,
    ) -> Result<R, ChunkEnd> {
        let added = self.journal.add(
            entry.next_item(),
            lease.entry.ended,
            lease.entry.attempt,
            &result,
        );
        match added {
            Ok(()) => Ok(result),
            Err(error) => Err(ChunkEnd::Failed(error)),
        }
    }

    /// Gives up the lease of a chunk that has trials left.
    ///
    /// # Errors
    /// Fails with the error that ended the work on the chunk, after the lease was given back.
    fn leave_chunk(&self, lease: &ChunkFile, end: ChunkEnd) -> Result<()> {
        match end {
            ChunkEnd::Stopped => self.retry_change(|| lease.give_back().map(drop)),
            ChunkEnd::Failed(error) => {
                self.retry_change(|| lease.give_back().map(drop))?;
                Err(error)
            }
            // A panic counts like the death of a worker, because the trial may also kill the next
            // worker.
            ChunkEnd::Panicked => {
                self.retry_change(|| lease.revoke(self.queue.settings.tries).map(drop))
            }
        }
    }

    /// Writes the results so far to disk, and then renames the chunk's file. Returns the chunk if
    /// it has trials left and its lease was not lost.
    fn acknowledge<R: Serialize>(
        &mut self,
        chunk: ChunkInProgress<R>,
        acknowledged: &mut impl FnMut(&ChunkEntry, &R),
    ) -> Result<Option<ChunkInProgress<R>>> {
        let ChunkInProgress { lease, results, .. } = chunk;
        if results.is_empty() {
            return Ok(Some(ChunkInProgress::new(lease)));
        }

        if let Err(error) = self.journal.sync() {
            self.retry_change(|| lease.give_back().map(drop))?;
            return Err(error);
        }

        let ended = lease.entry.ended + results.len();
        let mut next = None;
        self.retry_change(|| {
            next = lease.acknowledge(ended)?;
            Ok(())
        })?;
        let Some(lease) = next else {
            self.tally.late += results.len();
            return Ok(None);
        };

        self.tally.acknowledged += results.len();
        for (entry, result) in &results {
            acknowledged(entry, result);
        }
        let is_left = !lease.entry.has_ended();
        Ok(is_left.then(|| ChunkInProgress::new(lease)))
    }

    /// Retries a change for up to the duration of a lease. While this worker's heartbeat continues,
    /// no other process makes the change instead. If the worker fails, its heartbeat ends, and its
    /// leases are lost.
    fn retry_change(&self, mut change: impl FnMut() -> Result<()>) -> Result<()> {
        let began = Instant::now();
        let mut backoff = Backoff::new(1.0);
        let never = AtomicBool::new(false);
        loop {
            let changed = change();
            let may_retry = began.elapsed().as_secs_f64() < self.queue.settings.lease_s;
            if changed.is_ok() || !may_retry || !self.queue.exists() {
                return changed;
            }
            backoff.wait(&never);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChunkState, ItemStateCounts, QueueSettings, TrialChunk, WorkItem};

    const FAST: QueueSettings = QueueSettings {
        heartbeat_s: 0.02,
        lease_s: 0.3,
        tries: 3,
    };
    const HOUR: Duration = Duration::from_secs(3600);

    fn queue(dir: &tempfile::TempDir, count: usize) -> Queue {
        queue_with(FAST, dir, count)
    }

    fn queue_with(settings: QueueSettings, dir: &tempfile::TempDir, count: usize) -> Queue {
        let queue = Queue::create(&dir.path().join("queue"), settings).expect("made");
        let chunks: Vec<TrialChunk> = (1..=count)
            .map(|trial| WorkItem { trial, budget: 1 }.into())
            .collect();
        queue.add_chunks(0, 100, &chunks).expect("added");
        queue.seal(count).expect("sealed");
        queue
    }

    fn counts(queue: &Queue) -> ItemStateCounts {
        ItemStateCounts::from_entries(queue.chunk_entries().expect("listed").iter())
    }

    #[test]
    fn idle_time_is_shorter_until_the_queue_is_sealed() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = Queue::create(&dir.path().join("queue"), QueueSettings::default());
        let queue = queue.expect("made");
        let open_s = max_idle_s(&queue);
        queue.seal(0).expect("sealed");
        assert_eq!((open_s, max_idle_s(&queue)), (5.0, 15.0));
    }

    #[test]
    fn results_errors_and_panics_end_items_differently() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue(&dir, 4);
        let mut heard = Vec::new();
        let (mut passing, stop) = (true, AtomicBool::new(false));
        let attempt = |attempt: &TrialAttempt<'_>| {
            let trial = attempt.entry.next_item().trial;
            match trial {
                1 => Ok(AttemptOutcome::Done(trial)),
                2 => Ok(AttemptOutcome::Done(trial)),
                3 if std::mem::take(&mut passing) => Err(std::io::Error::other("it passes").into()),
                3 => Ok(AttemptOutcome::Done(trial)),
                _ => panic!("on purpose"),
            }
        };
        let tally = run_worker(&queue, HOUR, &stop, attempt, |entry, result| {
            heard.push((entry.next_item().trial, entry.attempt, *result))
        });
        assert_eq!(
            tally.expect("worked"),
            WorkerTally {
                acknowledged: 3,
                late: 0,
                stopped: false
            }
        );
        heard.sort();
        assert_eq!(
            heard,
            [(1, 1, 1), (2, 1, 2), (3, 1, 3)],
            "an error that passes is no attempt"
        );
        assert_eq!(
            counts(&queue),
            ItemStateCounts {
                done: 3,
                quarantined: 1,
                ..ItemStateCounts::default()
            }
        );
        let results = queue
            .results::<usize>(&queue.chunk_entries().expect("listed"))
            .expect("read");
        assert_eq!(results.len(), 3);
        assert_eq!(
            fs_err::read_dir(queue.path("workers"))
                .expect("listed")
                .count(),
            0,
            "it has left"
        );
    }

    #[test]
    fn chunk_continues_after_panics_errors_and_stops() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = Queue::create(&dir.path().join("queue"), FAST).expect("made");
        let first = WorkItem {
            trial: 11,
            budget: 1,
        };
        queue
            .add_chunks(0, 100, &[TrialChunk { first, count: 6 }])
            .expect("added");
        queue.seal(6).expect("sealed");
        let stop = AtomicBool::new(false);
        let (mut begun, mut passing, mut heard) = (Vec::new(), true, Vec::new());
        let mut attempt = |attempt: &TrialAttempt<'_>| {
            let (trial, number) = (attempt.entry.next_item().trial, attempt.entry.attempt);
            begun.push((trial, number));
            match trial {
                12 => panic!("on purpose"),
                13 if std::mem::take(&mut passing) => {
                    Err(std::io::Error::other("it passes").into())
                }
                15 => {
                    stop.store(true, Ordering::Relaxed);
                    Ok(AttemptOutcome::Done(trial))
                }
                _ => Ok(AttemptOutcome::Done(trial)),
            }
        };
        let mut acknowledged =
            |entry: &ChunkEntry, result: &usize| heard.push((entry.next_item().trial, *result));
        let tally =
            run_worker(&queue, HOUR, &stop, &mut attempt, &mut acknowledged).expect("worked");
        assert_eq!(
            tally,
            WorkerTally {
                acknowledged: 4,
                late: 0,
                stopped: true
            }
        );
        let one = |queue: &Queue| queue.chunk_entries().expect("listed").remove(0);
        let entry = one(&queue);
        assert_eq!(
            (
                entry.ended,
                entry.given_up_items().next().map(|item| item.trial)
            ),
            (5, Some(12)),
            "{entry:?}"
        );
        assert_eq!(
            counts(&queue),
            ItemStateCounts {
                ready: 1,
                done: 4,
                quarantined: 1,
                ..ItemStateCounts::default()
            }
        );
        stop.store(false, Ordering::Relaxed);
        run_worker(&queue, HOUR, &stop, &mut attempt, &mut acknowledged).expect("worked");
        assert_eq!(
            begun,
            [
                (11, 1),
                (12, 1),
                (12, 2),
                (12, 3),
                (13, 1),
                (13, 1),
                (14, 1),
                (15, 1),
                (16, 1)
            ]
        );
        assert_eq!(heard, [11, 13, 14, 15, 16].map(|trial| (trial, trial)));
        let results = queue.results::<usize>(&[one(&queue)]).expect("read");
        assert_eq!(
            results
                .into_values()
                .collect::<std::collections::BTreeSet<_>>(),
            [11, 13, 14, 15, 16].into()
        );
        let lines = queue
            .path("results")
            .read_dir()
            .expect("listed")
            .map(|entry| entry.expect("an entry").path());
        let lines: usize = lines
            .map(|path| fs_err::read_to_string(path).expect("read").lines().count())
            .sum();
        assert_eq!(lines, 5, "nothing is done twice");
    }

    #[test]
    fn paused_queue_hands_out_no_trials() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue(&dir, 2);
        assert!(queue.pause().expect("paused") && !queue.pause().expect("again"));
        let stop = AtomicBool::new(false);
        let begun = std::sync::atomic::AtomicUsize::new(0);
        let attempt = |attempt: &TrialAttempt<'_>| {
            begun.fetch_add(1, Ordering::Relaxed);
            while attempt.entry.next_item().trial == 1 && !attempt.is_paused() {
                queue.pause()?;
                std::thread::sleep(Duration::from_millis(1));
            }
            let is_stopped =
                attempt.entry.next_item().trial == 1 && begun.load(Ordering::Relaxed) < 3;
            Ok(if is_stopped {
                AttemptOutcome::Stopped
            } else {
                AttemptOutcome::Done(0)
            })
        };
        std::thread::scope(|scope| {
            let worker = scope
                .spawn(|| run_worker(&queue, HOUR, &stop, attempt, |_, _| ()).expect("worked"));
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(
                (begun.load(Ordering::Relaxed), counts(&queue).ready),
                (0, 2)
            );
            // Each attempt at the first trial pauses the queue again, and gives the trial back.
            while counts(&queue).ended() < 2 {
                queue.resume().expect("resumed");
                std::thread::sleep(Duration::from_millis(5));
            }
            assert_eq!(worker.join().expect("it ended").acknowledged, 2);
        });
        assert!(
            queue
                .chunk_entries()
                .expect("listed")
                .iter()
                .all(|entry| entry.attempt == 1)
        );
    }

    #[test]
    fn a_silent_worker_loses_its_lease_and_cannot_acknowledge() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue(&dir, 1);
        let stop = AtomicBool::new(false);
        // Its heartbeat stops, because it does not return within its limit and one more lease. It
        // returns once another worker has done the item.
        let hung = |_: &TrialAttempt<'_>| {
            let mut pace = Backoff::new(0.02);
            while counts(&queue).done == 0 {
                pace.wait(&AtomicBool::new(false));
            }
            Ok(AttemptOutcome::Done("late"))
        };
        std::thread::scope(|scope| {
            let hung = scope.spawn(|| {
                run_worker(&queue, Duration::ZERO, &stop, hung, |_, _| ()).expect("worked")
            });
            while counts(&queue).leased == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            let other = run_worker(
                &queue,
                HOUR,
                &stop,
                |_| Ok(AttemptOutcome::Done("in time")),
                |_, _| (),
            )
            .expect("worked");
            assert_eq!(
                (other.acknowledged, hung.join().expect("it ended").late),
                (1, 1)
            );
        });
        let entry = &queue.chunk_entries().expect("listed")[0];
        assert!(matches!(entry.state, ChunkState::Done(_)) && entry.attempt == 2);
        let results = queue
            .results::<String>(std::slice::from_ref(entry))
            .expect("read");
        assert_eq!(results[&entry.chunk.first], "in time");
    }

    #[test]
    fn stopped_worker_gives_its_chunk_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue(&dir, 2);
        let stop = AtomicBool::new(false);
        let attempt = |_: &TrialAttempt<'_>| -> Result<AttemptOutcome<()>> {
            stop.store(true, Ordering::Relaxed);
            Ok(AttemptOutcome::Stopped)
        };
        assert!(
            run_worker(&queue, HOUR, &stop, attempt, |_, _| ())
                .expect("worked")
                .stopped
        );
        assert_eq!(
            counts(&queue),
            ItemStateCounts {
                ready: 2,
                ..ItemStateCounts::default()
            }
        );
        assert!(
            queue
                .chunk_entries()
                .expect("listed")
                .iter()
                .all(|entry| entry.attempt == 1)
        );
    }

    #[test]
    fn passing_error_is_retried() {
        let dir = tempfile::tempdir().expect("a directory");
        let patient = QueueSettings {
            lease_s: HOUR.as_secs_f64(),
            ..FAST
        };
        let queue = queue_with(patient, &dir, 2);
        let stop = AtomicBool::new(false);
        let mut failures = 0;
        let attempt = |_: &TrialAttempt<'_>| -> Result<AttemptOutcome<()>> {
            failures += 1;
            if failures < 4 {
                return Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into());
            }
            Ok(AttemptOutcome::Done(()))
        };
        let tally = run_worker(&queue, HOUR, &stop, attempt, |_, _| ()).expect("worked");
        assert_eq!(tally.acknowledged, 2);
    }

    #[test]
    fn lasting_error_ends_the_worker() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue(&dir, 2);
        let stop = AtomicBool::new(false);
        let attempt = |_: &TrialAttempt<'_>| -> Result<AttemptOutcome<()>> {
            Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into())
        };
        let error = run_worker(&queue, HOUR, &stop, attempt, |_, _| ()).expect_err("it leaves");
        assert_eq!(
            poolcast_base::error::exit_code(&error),
            poolcast_base::error::EXIT_RETRY
        );
        assert_eq!(
            counts(&queue).ready,
            2,
            "nothing is lost, and nothing quarantined"
        );
    }
}
