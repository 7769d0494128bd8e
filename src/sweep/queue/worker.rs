//! A queue → its results: takes items until none is left, one at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::claim::Claimer;
use super::folder::{Queue, Standing};
use super::journal::Journal;
use super::patience::{Pace, Patience};
use super::pulse::Pulse;
use super::token::Token;
use super::watch::Watch;

/// How an attempt at an item ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended<R> {
    /// With this result.
    Done(R),
    /// It will never work, as this result says.
    Failed(R),
    /// It was told to stop, and may go on elsewhere.
    Stopped,
}

/// An attempt at an item.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// The item, and the number of this attempt.
    pub token: &'a Token,
    pulse: &'a Pulse,
}

impl Attempt<'_> {
    /// Who makes it.
    pub fn worker(&self) -> &str {
        &self.pulse.worker
    }

    /// Says how far it is, for others to see.
    pub fn epoch(&self, epoch: usize, value: Option<f64>) {
        self.pulse.epoch(epoch, value);
    }
}

/// What a worker did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Items that it acknowledged.
    pub acknowledged: usize,
    /// Items whose lease it had lost when it wanted to.
    pub late: usize,
    /// Whether it was told to stop.
    pub stopped: bool,
}

/// Takes items from `queue` and does each with `attempt` until all have ended or `stop` is set. While nothing is ready it
/// watches the leases of others. An attempt that takes longer than `limit` must come back by itself; should it not, its
/// lease is lost. `acknowledged` hears of each item after its result is on disk and its lease has ended in time.
///
/// # Errors
/// An error of `attempt` is one that can pass: the item is given back, and does not count as tried. The worker waits and
/// goes on; when nothing else has happened for as long as a lease lasts, it fails with that error.
pub fn work<R: Serialize>(
    queue: &Queue,
    limit: Duration,
    stop: &AtomicBool,
    mut attempt: impl FnMut(&Attempt<'_>) -> Result<Ended<R>>,
    mut acknowledged: impl FnMut(&Token, &R),
) -> Result<Tally> {
    let mut worker = Worker::new(queue, limit)?;
    let mut tally = Tally::default();
    let (mut pace, mut patience) = (Pace::new(queue.settings.lease_s / 8.0), Patience::new(&queue.settings));
    loop {
        tally.stopped = stop.load(Ordering::Relaxed);
        if tally.stopped || !queue.exists() {
            return Ok(tally);
        }
        match worker.step(&mut attempt, &mut acknowledged, &mut tally) {
            Ok(Step::Over) => return Ok(tally),
            Ok(Step::Worked) => {
                patience.reset();
                pace.reset();
            }
            Ok(Step::Idle) => pace.wait(stop),
            Err(_) if !queue.exists() => return Ok(tally),
            Err(error) => patience.bear(error, stop)?,
        }
    }
}

enum Step {
    Worked,
    Idle,
    Over,
}

struct Worker<'a> {
    queue: &'a Queue,
    limit: Duration,
    claimer: Claimer<'a>,
    watch: Watch<'a>,
    journal: Journal,
    pulse: Pulse,
}

impl<'a> Worker<'a> {
    fn new(queue: &'a Queue, limit: Duration) -> Result<Worker<'a>> {
        let pulse = Pulse::start(queue)?;
        let (claimer, watch) = (Claimer::new(queue, &pulse.worker), Watch::new(queue));
        let journal = Journal::new(&queue.path("results"), &pulse.worker);
        Ok(Worker { queue, limit, claimer, watch, journal, pulse })
    }

    fn step<R: Serialize>(
        &mut self,
        attempt: &mut impl FnMut(&Attempt<'_>) -> Result<Ended<R>>,
        acknowledged: &mut impl FnMut(&Token, &R),
        tally: &mut Tally,
    ) -> Result<Step> {
        let Some(lease) = self.claimer.claim()? else {
            let (census, _) = self.watch.look(Some(&self.pulse.worker))?;
            return Ok(if census.is_over() { Step::Over } else { Step::Idle });
        };
        self.pulse.begin(lease.token.item, self.limit);
        let ended = catch_unwind(AssertUnwindSafe(|| attempt(&Attempt { token: &lease.token, pulse: &self.pulse })));
        self.pulse.end();
        let Ok(ended) = ended else {
            // It panicked, and said so on stderr: as bad as a worker that died.
            let tries = self.queue.settings.tries;
            self.insist(|| lease.lose(tries).map(drop))?;
            return Ok(Step::Worked);
        };
        let kept = ended.and_then(|ended| self.keep(&lease, ended));
        let Some((result, failed)) = self.or_give_back(&lease, kept)? else { return Ok(Step::Worked) };
        let mut in_time = false;
        self.insist(|| lease.acknowledge(failed).map(|done| in_time = done))?;
        if in_time {
            tally.acknowledged += 1;
            acknowledged(&lease.token, &result);
        } else {
            tally.late += 1;
        }
        Ok(Step::Worked)
    }

    /// Writes the result to disk; `None` for an attempt that was stopped.
    fn keep<R: Serialize>(&mut self, lease: &Standing, ended: Ended<R>) -> Result<Option<(R, bool)>> {
        let (result, failed) = match ended {
            Ended::Done(result) => (result, false),
            Ended::Failed(result) => (result, true),
            Ended::Stopped => return Ok(None),
        };
        self.journal.append(lease.token.item, lease.token.attempt, &result)?;
        Ok(Some((result, failed)))
    }

    /// Gives the item back where there is no result.
    fn or_give_back<T>(&self, lease: &Standing, kept: Result<Option<T>>) -> Result<Option<T>> {
        if !matches!(kept, Ok(Some(_))) {
            self.insist(|| lease.give_back().map(drop))?;
        }
        kept
    }

    /// Does what must be done while this worker's heart beats, as nobody else will: again and again, as long as a lease
    /// lasts. Who gives up leaves, and its leases are lost.
    fn insist(&self, mut change: impl FnMut() -> Result<()>) -> Result<()> {
        let since = Instant::now();
        let (mut pace, never) = (Pace::new(1.0), AtomicBool::new(false));
        loop {
            match change() {
                Err(_) if since.elapsed().as_secs_f64() < self.queue.settings.lease_s && self.queue.exists() => {
                    pace.wait(&never);
                }
                changed => return changed,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::queue::{Census, Item, Settings, State};

    const FAST: Settings = Settings { heartbeat_s: 0.02, lease_s: 0.3, tries: 3 };
    const HOUR: Duration = Duration::from_secs(3600);

    fn queue(dir: &tempfile::TempDir, count: usize) -> Queue {
        let queue = Queue::create(&dir.path().join("queue"), FAST).expect("made");
        let items: Vec<Item> = (1..=count).map(|trial| Item { trial, budget: 1 }).collect();
        queue.add(0, 100, &items).expect("added");
        queue.seal(count).expect("sealed");
        queue
    }

    fn census(queue: &Queue) -> Census {
        Census::of(queue.items().expect("listed").iter())
    }

    #[test]
    fn items_end_each_in_its_way() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue(&dir, 4);
        let mut heard = Vec::new();
        let (mut passing, stop) = (true, AtomicBool::new(false));
        let attempt = |attempt: &Attempt<'_>| {
            let trial = attempt.token.item.trial;
            match trial {
                1 => Ok(Ended::Done(trial)),
                2 => Ok(Ended::Failed(trial)),
                3 if std::mem::take(&mut passing) => Err(std::io::Error::other("it passes").into()),
                3 => Ok(Ended::Done(trial)),
                _ => panic!("on purpose"),
            }
        };
        let tally =
            work(&queue, HOUR, &stop, attempt, |token, result| heard.push((token.item.trial, token.attempt, *result)));
        assert_eq!(tally.expect("worked"), Tally { acknowledged: 3, late: 0, stopped: false });
        heard.sort();
        assert_eq!(heard, [(1, 1, 1), (2, 1, 2), (3, 1, 3)], "an error that passes is no attempt");
        assert_eq!(census(&queue), Census { done: 2, failed: 1, quarantined: 1, ..Census::default() });
        let results = queue.results::<usize>(&queue.items().expect("listed")).expect("read");
        assert_eq!(results.len(), 3);
        assert_eq!(fs_err::read_dir(queue.path("workers")).expect("listed").count(), 0, "it has left");
    }

    #[test]
    fn a_silent_worker_loses_its_lease_and_cannot_acknowledge() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue(&dir, 1);
        let stop = AtomicBool::new(false);
        // Its heart stops, as it comes back neither at its limit nor a lease later, but when another has the item done.
        let hung = |_: &Attempt<'_>| {
            let mut pace = Pace::new(0.02);
            while census(&queue).done == 0 {
                pace.wait(&AtomicBool::new(false));
            }
            Ok(Ended::Done("late"))
        };
        std::thread::scope(|scope| {
            let hung = scope.spawn(|| work(&queue, Duration::ZERO, &stop, hung, |_, _| ()).expect("worked"));
            while census(&queue).leased == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            let other = work(&queue, HOUR, &stop, |_| Ok(Ended::Done("in time")), |_, _| ()).expect("worked");
            assert_eq!((other.acknowledged, hung.join().expect("it ended").late), (1, 1));
        });
        let token = &queue.items().expect("listed")[0];
        assert!(matches!(token.state, State::Done(_)) && token.attempt == 2);
        let results = queue.results::<String>(std::slice::from_ref(token)).expect("read");
        assert_eq!(results[&token.item], "in time");
    }

    #[test]
    fn who_is_told_to_stop_gives_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue(&dir, 2);
        let stop = AtomicBool::new(false);
        let attempt = |_: &Attempt<'_>| -> Result<Ended<()>> {
            stop.store(true, Ordering::Relaxed);
            Ok(Ended::Stopped)
        };
        assert!(work(&queue, HOUR, &stop, attempt, |_, _| ()).expect("worked").stopped);
        assert_eq!(census(&queue), Census { ready: 2, ..Census::default() });
        assert!(queue.items().expect("listed").iter().all(|token| token.attempt == 1));
    }

    #[test]
    fn an_error_that_stays_ends_the_worker() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue(&dir, 2);
        let stop = AtomicBool::new(false);
        let began = Instant::now();
        let attempt = |_: &Attempt<'_>| -> Result<Ended<()>> {
            Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into())
        };
        let error = work(&queue, HOUR, &stop, attempt, |_, _| ()).expect_err("it leaves");
        assert!(
            began.elapsed().as_secs_f64() >= FAST.lease_s
                && crate::error::exit_code(&error) == crate::error::EXIT_RETRY
        );
        assert_eq!(census(&queue).ready, 2, "nothing is lost, and nothing quarantined");
    }
}
