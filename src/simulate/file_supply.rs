//! Supplies a file that every job of a cluster misses: once it is there, it is there for all of them.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::pool_user::PoolUser;
use super::release_habit::{DELAY_QUANTILES, ReleaseChoice, ReleaseDecider};

/// Time from the submission of a cluster until its owner learns that a file is missing, ms.
const NOTICE_MS: i64 = 600_000;
/// Time from the supply of a file to the releases by hand of the jobs that missed it, ms.
pub(super) const RELEASE_AFTER_SUPPLY_MS: i64 = 300_000;

/// The time at which the owner of a cluster supplies a file that all of its jobs miss.
#[derive(Debug)]
pub(super) struct FileSupply {
    /// Probability that the owner ever supplies the file.
    probability: f64,
    /// The possible times, epoch ms, each as probable as the others.
    times_ms: [i64; DELAY_QUANTILES],
    /// The time, epoch ms; `None` if the owner never supplies the file.
    pub(super) supplied_ms: Option<i64>,
}

impl FileSupply {
    /// Draws the supply of a file for a cluster that `user` submits at `submit_ms`. It takes as long as a
    /// release by hand. A user who releases nothing supplies nothing.
    pub(super) fn draw(user: &PoolUser, submit_ms: i64, rng: &mut ChaCha8Rng) -> FileSupply {
        let probability = match user.release.choice {
            ReleaseChoice::Never => 0.0,
            _ => user.repair.files,
        };
        let noticed_ms = submit_ms + NOTICE_MS;
        let delays_ms = user.release.delays_ms(ReleaseDecider::ByHand, noticed_ms);
        let times_ms = delays_ms.map(|delay_ms| noticed_ms + delay_ms);
        let is_supplied = rng.random::<f64>() < probability;
        let drawn_ms = times_ms[rng.random_range(0..DELAY_QUANTILES)];
        FileSupply {
            probability,
            times_ms,
            supplied_ms: is_supplied.then_some(drawn_ms),
        }
    }

    /// Returns the possible times after `from_ms`, epoch ms, and the probability of each, given that the
    /// file was not supplied up to then.
    pub(super) fn times_after(&self, from_ms: i64) -> (impl Iterator<Item = i64> + '_, f64) {
        let of_one = self.probability / DELAY_QUANTILES as f64;
        let past = self.times_ms.iter().filter(|time_ms| **time_ms <= from_ms);
        let left = 1.0 - of_one * past.count() as f64;
        let later = self.times_ms.iter().copied();
        (
            later.filter(move |time_ms| *time_ms > from_ms),
            of_one / left,
        )
    }

    /// Returns the probability that the file is supplied up to `until_ms`, given that it was not up to
    /// `from_ms`.
    pub(super) fn chance(&self, from_ms: i64, until_ms: i64) -> f64 {
        let (times_ms, of_one) = self.times_after(from_ms);
        of_one * times_ms.filter(|time_ms| *time_ms <= until_ms).count() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_that_of_the_times_left() {
        let supply = FileSupply {
            probability: 0.5,
            times_ms: std::array::from_fn(|at| 100 + at as i64),
            supplied_ms: None,
        };
        assert_eq!(supply.chance(0, 99), 0.0);
        assert_eq!(supply.chance(0, 115), 0.25, "half of the times");
        assert_eq!(supply.chance(0, 1000), 0.5);
        assert_eq!(supply.chance(115, 1000), 0.25 / 0.75);
        assert_eq!(supply.chance(1000, 2000), 0.0, "it would have come before");
        assert_eq!(supply.chance(1000, 100), 0.0);
    }
}
