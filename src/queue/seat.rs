//! The manager's seat: one item that is never done, leased as items are, so that of several managers one works.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

use super::folder::{Queue, Standing, standings};
use super::patience::Pace;
use super::pulse::Pulse;
use super::token::{State, Token};
use super::watch::{Verdict, Watch};

/// Who has the seat.
#[derive(Debug)]
pub(super) enum Seated {
    /// This process; `Some` names the dead manager that it was taken from.
    Here(Seat, Option<String>),
    /// Another manager, which lives.
    Elsewhere(String),
    /// Nobody that we waited for: we were told to stop.
    Stopped,
}

/// The manager's seat. It is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    lease: Standing,
    _pulse: Pulse,
}

impl Seat {
    /// Takes the seat, if need be from a manager whose heart does not beat while we watch.
    pub(super) fn take(queue: &Queue, stop: &AtomicBool) -> Result<Seated> {
        let pulse = Pulse::start(queue)?;
        let mut watch = Watch::new(queue);
        let mut pace = Pace::new(queue.settings.heartbeat_s / 4.0);
        while !stop.load(Ordering::Relaxed) {
            let watched = watch.watched();
            for seat in standings(&dir(queue))? {
                let State::Leased(other) = &seat.token.state else {
                    if let Some(lease) = seat.claim(&pulse.worker)? {
                        return Ok(Seated::Here(
                            Seat {
                                lease,
                                _pulse: pulse,
                            },
                            None,
                        ));
                    }
                    continue;
                };
                match watch.judge(other, watched) {
                    Verdict::Lives => return Ok(Seated::Elsewhere(other.clone())),
                    Verdict::Silent if watch.is_running_here(other) => {
                        return Ok(Seated::Elsewhere(other.clone()));
                    }
                    Verdict::Silent => {}
                    Verdict::Dead => {
                        let next = Token {
                            attempt: seat.token.attempt.saturating_add(1),
                            ..seat.token.with(State::Ready)
                        };
                        if seat.turn_into(&next)?
                            && let Some(lease) = (Standing {
                                token: next,
                                ..seat.clone()
                            })
                            .claim(&pulse.worker)?
                        {
                            return Ok(Seated::Here(
                                Seat {
                                    lease,
                                    _pulse: pulse,
                                },
                                Some(other.clone()),
                            ));
                        }
                    }
                }
            }
            pace.wait(stop);
        }
        Ok(Seated::Stopped)
    }

    /// Whether it is still ours: another manager may have taken it while this process was stopped.
    pub(super) fn is_ours(&self) -> bool {
        self.lease.dir.join(self.lease.token.name()).exists()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let _ = self.lease.give_back();
    }
}

fn dir(queue: &Queue) -> PathBuf {
    queue.path("seat")
}

impl Queue {
    /// The manager in the seat, dead or alive.
    pub fn manager(&self) -> Option<String> {
        standings(&dir(self))
            .ok()?
            .into_iter()
            .find_map(|seat| match seat.token.state {
                State::Leased(worker) => Some(worker),
                _ => None,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Settings;

    #[test]
    fn one_manager_sits_and_a_dead_one_is_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let settings = Settings {
            heartbeat_s: 0.02,
            lease_s: 0.2,
            tries: 3,
        };
        let queue = Queue::create(&dir.path().join("queue"), settings).expect("made");
        let stop = AtomicBool::new(false);
        let take = || Seat::take(&queue, &stop).expect("asked");
        let Seated::Here(first, None) = take() else {
            panic!("the seat was free")
        };
        let Seated::Elsewhere(name) = take() else {
            panic!("the seat was taken")
        };
        assert_eq!(
            (name.as_str(), queue.manager().as_deref()),
            (
                first._pulse.worker.as_str(),
                Some(first._pulse.worker.as_str())
            )
        );
        // Its file stands still and says nothing of its process, as with a host that has lost its power.
        let file = queue.path("workers").join(first._pulse.worker.as_str());
        let lost = first.lease.clone();
        drop(first);
        assert!(!file.exists() && queue.manager().is_none());
        let again = standings(&super::dir(&queue)).expect("listed")[0]
            .claim(lost.token.state.worker().expect("leased"))
            .expect("claimed");
        let old = Seat {
            lease: again.expect("ready"),
            _pulse: Pulse::start(&queue).expect("a heart"),
        };
        let Seated::Here(second, Some(dead)) = take() else {
            panic!("the seat is free again")
        };
        assert!(State::Leased(dead) == lost.token.state && second.is_ours() && !old.is_ours());
        drop(old);
        assert!(second.is_ours(), "who lost the seat cannot give it away");
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(take(), Seated::Stopped));
    }
}
