//! A user's habit of releasing held jobs: the release policy, and the distribution of the delay.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use poolcast_base::moment::DAY_MS;
use poolcast_base::stats::sigmoid;

const MINUTE_MS: i64 = 60_000;
/// Ratio of the slowest to the fastest delay of a release by hand, before the shift to working
/// hours.
const HAND_DELAY_RATIO: f64 = 10.0;
/// Working hours, UTC.
const OFFICE_FROM_H: i64 = 13;
const OFFICE_TO_H: i64 = 24;
/// Number of quantiles over which the distribution of the delay is averaged.
pub(super) const DELAY_QUANTILES: usize = 32;
/// `NumHolds` up to which `PeriodicRelease` releases a job. Its rule is `NumHolds <= 4`.
pub(super) const MAX_AUTOMATIC_RELEASES: u32 = 4;

/// Scale of the logistic function that turns a probability of success into a probability of
/// release.
const BELIEF_SPREAD: f64 = 0.08;

/// A user's habit of releasing held jobs.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReleaseHabit {
    /// Selection of the jobs that the user releases by hand.
    pub(super) choice: ReleaseChoice,
    /// Wait of `PeriodicRelease`, s; `None` if the user has no such expression.
    pub(super) automatic_s: Option<u32>,
    /// Maximum delay of a release by hand, s, before the shift to working hours.
    pub(super) slowest_s: f64,
}

/// A user's selection of held jobs to release by hand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ReleaseChoice {
    /// All jobs that are not removed or forgotten.
    All,
    /// Jobs whose probability of success reaches this threshold. The user knows the causes of
    /// holds, and judges this probability well.
    Believed(f64),
    /// No jobs, except those that the user held.
    Never,
}

/// The next decision on a held job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReleaseDecider {
    /// `PeriodicRelease` releases the job.
    Automatic,
    /// The job's owner decides.
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

    /// Returns the probability that the user considers a job worth a release by hand. `p_hold` is
    /// the probability of success after a release.
    pub(super) fn belief(&self, p_hold: f64, is_own_hold: bool) -> f64 {
        match self.choice {
            _ if is_own_hold => 1.0,
            ReleaseChoice::All => 1.0,
            ReleaseChoice::Believed(threshold) => sigmoid((p_hold - threshold) / BELIEF_SPREAD),
            ReleaseChoice::Never => 0.0,
        }
    }

    /// Returns the kind of decision on a job that is held for the `holds`th time, with the hold
    /// reason code `code`.
    pub(super) fn release_decider(&self, holds: u32, code: i32) -> ReleaseDecider {
        let is_automatic = self.automatic_s.is_some()
            && holds <= MAX_AUTOMATIC_RELEASES
            && ![1, 46, 47].contains(&code);
        if is_automatic {
            ReleaseDecider::Automatic
        } else {
            ReleaseDecider::ByHand
        }
    }

    /// Returns equally probable delays between a hold and its release, ms.
    pub(super) fn delays_ms(
        &self,
        decider: ReleaseDecider,
        hold_ms: i64,
    ) -> [i64; DELAY_QUANTILES] {
        std::array::from_fn(|at| {
            let quantile = (at as f64 + 0.5) / DELAY_QUANTILES as f64;
            self.delay_ms(decider, hold_ms, quantile)
        })
    }

    /// Returns the `quantile` of the delay between a hold and its release, ms.
    pub(super) fn delay_ms(&self, decider: ReleaseDecider, hold_ms: i64, quantile: f64) -> i64 {
        match (decider, self.automatic_s) {
            // Periodic expressions are evaluated every few minutes.
            (ReleaseDecider::Automatic, Some(after_s)) => {
                i64::from(after_s) * 1000 + (quantile * 300_000.0) as i64
            }
            _ => {
                let waited_s = self.slowest_s * HAND_DELAY_RATIO.powf(quantile - 1.0);
                let release_ms = hold_ms + (waited_s * 1000.0) as i64;
                in_office_hours(release_ms, quantile) - hold_ms
            }
        }
    }
}

/// Moves `time_ms` to the first two hours of the next working day, unless it is in working hours.
/// `quantile` selects the time within these two hours.
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
    fn releases_by_hand_happen_in_working_hours() {
        let by_hand = ReleaseHabit {
            choice: ReleaseChoice::All,
            automatic_s: None,
            slowest_s: 7200.0,
        };
        // Friday 2026-01-09 22:30 UTC, then Saturday.
        let friday_ms = 1_767_997_800_000;
        assert_eq!(
            by_hand.delay_ms(ReleaseDecider::ByHand, friday_ms, 0.0),
            720_000
        );
        let late_ms = friday_ms + by_hand.delay_ms(ReleaseDecider::ByHand, friday_ms, 1.0);
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
        assert_eq!(automatic.release_decider(4, 13), ReleaseDecider::Automatic);
        assert_eq!(
            [
                automatic.release_decider(5, 13),
                automatic.release_decider(1, 1),
                automatic.release_decider(1, 47)
            ],
            [ReleaseDecider::ByHand; 3]
        );
        assert_eq!(
            automatic.delay_ms(ReleaseDecider::Automatic, 0, 0.5),
            750_000
        );
    }

    #[test]
    fn belief_depends_on_choice_and_probability() {
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
