//! Leases → which of them are lost: those of workers whose heart did not beat while this process watched.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::folder::{Queue, size};
use super::pulse::read_beat;
use super::token::{Item, State, Token};
use crate::process::{Fate, Process};

/// How many trials stand where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Census {
    /// Trials that nobody is at.
    pub ready: usize,
    /// Trials of chunks that a worker has: the one it is at, and those it does next.
    pub leased: usize,
    /// Trials whose results are on disk.
    pub done: usize,
    /// Trials that too many workers died of.
    pub quarantined: usize,
    /// How many there are, once no more will come.
    pub sealed: Option<usize>,
}

impl Census {
    /// Counts the trials of `tokens`.
    pub fn of<'a>(tokens: impl Iterator<Item = &'a Token>) -> Census {
        tokens.fold(Census::default(), |census, token| {
            census.plus(Census::one(token))
        })
    }

    fn one(token: &Token) -> Census {
        let quarantined = token.lost.count_ones() as usize;
        let open = token.chunk.count - token.ended;
        let mut census = Census {
            done: token.ended - quarantined,
            quarantined,
            ..Census::default()
        };
        match token.state {
            State::Ready => census.ready = open,
            State::Leased(_) => census.leased = open,
            State::Done(_) => {}
        }
        census
    }

    fn plus(self, other: Census) -> Census {
        Census {
            ready: self.ready + other.ready,
            leased: self.leased + other.leased,
            done: self.done + other.done,
            quarantined: self.quarantined + other.quarantined,
            sealed: self.sealed,
        }
    }

    /// Trials to which nothing more will happen.
    pub fn ended(&self) -> usize {
        self.done + self.quarantined
    }

    /// All trials.
    pub fn all(&self) -> usize {
        self.ready + self.leased + self.ended()
    }

    /// Whether all trials have ended, and no more will come. What others put there may count as ended, too, so that it takes
    /// more than enough of them.
    pub fn is_over(&self) -> bool {
        self.sealed.is_some_and(|sealed| self.ended() >= sealed) && self.ended() == self.all()
    }
}

/// A lease that was taken from its worker.
#[derive(Debug, Clone)]
pub struct Lost {
    /// The trial that its worker was at, or one it had ended a moment before.
    pub item: Item,
    /// Which attempt at it failed.
    pub attempt: u32,
    /// Who had it.
    pub worker: String,
    /// Whether it was the last attempt.
    pub quarantined: bool,
}

#[derive(Debug, Default)]
struct Seen {
    beat: Option<Vec<u8>>,
    /// For how long this process has watched without seeing a change.
    unchanged: Duration,
}

/// What became of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Lives,
    /// Nobody can say yet.
    Silent,
    Dead,
}

/// Watches the leases of a queue.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    queue: &'a Queue,
    process: Process,
    seen: HashMap<String, Seen>,
    /// Directories in which nothing more will happen.
    closed: HashMap<String, Census>,
    looked: Option<Instant>,
}

impl<'a> Watch<'a> {
    /// Begins to watch.
    pub(super) fn new(queue: &'a Queue) -> Watch<'a> {
        let (seen, closed) = (HashMap::new(), HashMap::new());
        Watch {
            queue,
            process: Process::current(),
            seen,
            closed,
            looked: None,
        }
    }

    /// Looks at every item that has not ended, and takes the leases of the dead from them. `idle` is the name of a worker
    /// that works at nothing: a lease of its own is one whose granting it never heard of, and is given back.
    pub(super) fn look(&mut self, idle: Option<&str>) -> Result<(Census, Vec<Lost>)> {
        let watched = self.watched();
        // Before the items: whoever seals has added all items before.
        let mut all = Census {
            sealed: self.queue.sealed()?,
            ..Census::default()
        };
        let (mut lost, mut verdicts) = (Vec::new(), HashMap::new());
        for name in self.queue.segments()? {
            all = all.plus(match self.closed.get(&name) {
                Some(census) => *census,
                None => self.look_into(&name, idle, watched, &mut verdicts, &mut lost)?,
            });
        }
        self.seen.retain(|worker, _| verdicts.contains_key(worker));
        Ok((all, lost))
    }

    fn look_into(
        &mut self,
        name: &str,
        idle: Option<&str>,
        watched: Duration,
        verdicts: &mut HashMap<String, Verdict>,
        lost: &mut Vec<Lost>,
    ) -> Result<Census> {
        let found = self.queue.segment(name)?;
        for standing in &found {
            let State::Leased(worker) = &standing.token.state else {
                continue;
            };
            if idle == Some(worker) {
                standing.give_back()?;
                continue;
            }
            let verdict = *verdicts
                .entry(worker.clone())
                .or_insert_with(|| self.judge(worker, watched));
            if verdict == Verdict::Dead
                && let Some(next) = standing.lose(self.queue.settings.tries)?
            {
                let (item, attempt, worker) = (
                    standing.token.item(),
                    standing.token.attempt,
                    worker.clone(),
                );
                lost.push(Lost {
                    item,
                    attempt,
                    worker,
                    quarantined: next.ended > standing.token.ended,
                });
            }
        }
        let census = Census::of(found.iter().map(|standing| &standing.token));
        let is_over = found.iter().all(|standing| standing.token.has_ended());
        if is_over && size(name).is_some_and(|size| found.len() >= size) {
            self.closed.insert(name.to_owned(), census);
        }
        Ok(census)
    }

    /// For how long this process has watched since it looked last. It may itself have been stopped or starved, and what it
    /// did not see then counts for little.
    pub(super) fn watched(&mut self) -> Duration {
        let most = Duration::from_secs_f64(self.queue.settings.lease_s / 4.0);
        self.looked
            .replace(Instant::now())
            .map_or(Duration::ZERO, |looked| looked.elapsed().min(most))
    }

    /// What became of `worker`, after `watched` more.
    pub(super) fn judge(&mut self, worker: &str, watched: Duration) -> Verdict {
        let beat = self.queue.heard(worker);
        let fate = beat
            .as_deref()
            .and_then(read_beat)
            .map_or(Fate::Unknown, |beat| beat.process.fate(&self.process));
        let is_new = !self.seen.contains_key(worker);
        let seen = self.seen.entry(worker.to_owned()).or_default();
        if fate == Fate::Gone {
            return Verdict::Dead;
        }
        if is_new || seen.beat != beat {
            *seen = Seen {
                beat,
                unchanged: Duration::ZERO,
            };
            return if is_new {
                Verdict::Silent
            } else {
                Verdict::Lives
            };
        }
        seen.unchanged += watched;
        let is_over = seen.unchanged.as_secs_f64() >= self.queue.settings.lease_s;
        if is_over {
            Verdict::Dead
        } else {
            Verdict::Silent
        }
    }

    /// Whether `worker` is of this host, and at work.
    pub(super) fn is_running_here(&self, worker: &str) -> bool {
        let beat = self.queue.heard(worker).as_deref().and_then(read_beat);
        beat.is_some_and(|beat| beat.process.fate(&self.process) == Fate::Runs)
    }
}
