//! A user and a hold → who decides about it, and how long a release takes: as draws, and as a known
//! distribution.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::settings::DAY_MS;

const MINUTE_MS: i64 = 60_000;
/// The slowest release by hand takes so many times as long as the fastest, office hours aside.
const HAND_SPREAD: f64 = 10.0;
/// The working day, in hours UTC.
const OFFICE_FROM_H: i64 = 13;
const OFFICE_TO_H: i64 = 24;
/// `PeriodicRelease` stops here: its rule is `NumHolds <= 4`.
pub(super) const MAX_AUTOMATIC_RELEASES: u32 = 4;

/// Belief in a job turns into a release within so much of probability.
const BELIEF_SPREAD: f64 = 0.08;

/// How a user releases held jobs.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReleaseHabit {
    /// Which of them, by hand.
    pub(super) choice: ReleaseChoice,
    /// `PeriodicRelease` waits so long, if there is one.
    pub(super) automatic_s: Option<u32>,
    /// By hand it takes at most so long, office hours aside.
    pub(super) slowest_s: f64,
}

/// Which held jobs a user releases by hand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ReleaseChoice {
    /// All that are not removed or forgotten.
    All,
    /// Those that the user, who knows why a job is held, believes to succeed at least so probably.
    Believed(f64),
    /// None but those that the user held.
    Never,
}

/// What becomes of a held job next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReleaseWay {
    /// `PeriodicRelease` frees it.
    Automatic,
    /// Its owner decides.
    ByHand,
}

impl ReleaseHabit {
    pub(super) fn new(rng: &mut ChaCha8Rng) -> ReleaseHabit {
        let automatic_s = (rng.random::<f64>() < 0.3).then(|| 300 * rng.random_range(1..=6));
        let threshold = rng.random_range(0.25..0.7);
        let choice = match rng.random_range(0..100) {
            0..45 => ReleaseChoice::All,
            45..94 => ReleaseChoice::Believed(threshold),
            _ => ReleaseChoice::Never,
        };
        ReleaseHabit {
            choice,
            automatic_s,
            slowest_s: 1800.0 * 36f64.powf(rng.random()),
        }
    }

    /// How probably the user takes a job for worth a release by hand, where success after one has the
    /// probability `p_hold`.
    pub(super) fn belief(&self, p_hold: f64, is_own_hold: bool) -> f64 {
        match self.choice {
            _ if is_own_hold => 1.0,
            ReleaseChoice::All => 1.0,
            ReleaseChoice::Believed(threshold) => {
                1.0 / (1.0 + ((threshold - p_hold) / BELIEF_SPREAD).exp())
            }
            ReleaseChoice::Never => 0.0,
        }
    }

    /// Who decides about a job at its hold number `holds`, for hold reason code `code`.
    pub(super) fn release_way(&self, holds: u32, code: i32) -> ReleaseWay {
        let frees = self.automatic_s.is_some()
            && holds <= MAX_AUTOMATIC_RELEASES
            && ![1, 46, 47].contains(&code);
        if frees {
            ReleaseWay::Automatic
        } else {
            ReleaseWay::ByHand
        }
    }

    /// The `quantile` of the time between a hold and its release, in ms.
    pub(super) fn delay_ms(&self, way: ReleaseWay, hold_ms: i64, quantile: f64) -> i64 {
        match (way, self.automatic_s) {
            // Periodic expressions are evaluated every few minutes.
            (ReleaseWay::Automatic, Some(after_s)) => {
                i64::from(after_s) * 1000 + (quantile * 300_000.0) as i64
            }
            _ => {
                let waited_s = self.slowest_s * HAND_SPREAD.powf(quantile - 1.0);
                let release_ms = hold_ms + (waited_s * 1000.0) as i64;
                in_office_hours(release_ms, quantile) - hold_ms
            }
        }
    }
}

/// `time_ms`, or the begin of the next working day, when it is done within two hours.
fn in_office_hours(time_ms: i64, quantile: f64) -> i64 {
    let is_weekend = |day: i64| (day + 3).rem_euclid(7) >= 5;
    let (mut day, hour) = (
        time_ms.div_euclid(DAY_MS),
        time_ms.rem_euclid(DAY_MS) / (60 * MINUTE_MS),
    );
    if !is_weekend(day) && (OFFICE_FROM_H..OFFICE_TO_H).contains(&hour) {
        return time_ms;
    }
    if hour >= OFFICE_TO_H {
        day += 1;
    }
    while is_weekend(day) {
        day += 1;
    }
    day * DAY_MS + OFFICE_FROM_H * 60 * MINUTE_MS + (quantile * 120.0 * MINUTE_MS as f64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_releases_by_hand_at_night() {
        let by_hand = ReleaseHabit {
            choice: ReleaseChoice::All,
            automatic_s: None,
            slowest_s: 7200.0,
        };
        // Friday 2026-01-09 22:30 UTC, then Saturday.
        let friday_ms = 1_767_997_800_000;
        assert_eq!(
            by_hand.delay_ms(ReleaseWay::ByHand, friday_ms, 0.0),
            720_000
        );
        let late_ms = friday_ms + by_hand.delay_ms(ReleaseWay::ByHand, friday_ms, 1.0);
        assert_eq!(
            late_ms,
            1_768_222_800_000 + 120 * MINUTE_MS,
            "on Monday, at the end of the first two hours"
        );
    }

    #[test]
    fn periodic_release_ends_after_four_holds() {
        let automatic = ReleaseHabit {
            choice: ReleaseChoice::Never,
            automatic_s: Some(600),
            slowest_s: 7200.0,
        };
        assert_eq!(automatic.release_way(4, 13), ReleaseWay::Automatic);
        assert_eq!(
            [
                automatic.release_way(5, 13),
                automatic.release_way(1, 1),
                automatic.release_way(1, 47)
            ],
            [ReleaseWay::ByHand; 3]
        );
        assert_eq!(automatic.delay_ms(ReleaseWay::Automatic, 0, 0.5), 750_000);
    }

    #[test]
    fn who_releases_only_the_believed_tells_them_apart() {
        let habit = |choice| ReleaseHabit {
            choice,
            automatic_s: None,
            slowest_s: 7200.0,
        };
        let believed = habit(ReleaseChoice::Believed(0.5));
        assert!(believed.belief(0.1, false) < 0.05);
        assert!(believed.belief(0.9, false) > 0.9);
        let never = habit(ReleaseChoice::Never);
        assert_eq!(never.belief(1.0, false), 0.0);
        assert_eq!(never.belief(0.5, true), 1.0, "what one held oneself");
        assert_eq!(habit(ReleaseChoice::All).belief(0.0, false), 1.0);
    }
}
