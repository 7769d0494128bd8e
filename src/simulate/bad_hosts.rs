//! Execution points and when each is out of order → how many runs meet such a one, at any moment and
//! in the closed form.

use super::outages::{OutageLaw, OutageTimes};

/// An execution point spoils runs for hours, once in months.
pub(super) const BAD_HOST: OutageLaw = OutageLaw::hours(2000.0, 4.0);
/// Runs fail there at once, so it takes so many times as many as others do.
const EXTRA_RUNS: f64 = 4.0;
/// So many runs on it fail.
pub(super) const BAD_HOST_FAILS: f64 = 0.9;

/// The share of the pool that is out of order, over time.
#[derive(Debug)]
pub(super) struct BadHosts {
    /// From when on, epoch ms, which share of all runs would be drawn to hosts that are down.
    shares: Vec<(i64, f64)>,
}

impl BadHosts {
    /// The share over time of hosts with these outages; each has its part of all runs.
    pub(super) fn new<'a>(hosts: impl Iterator<Item = (f64, &'a OutageTimes)>) -> BadHosts {
        let mut changes = Vec::new();
        for (part, times) in hosts {
            for (number, switch_ms) in times.switches_ms().iter().enumerate() {
                let goes_down = number % 2 == 0;
                changes.push((*switch_ms, if goes_down { part } else { -part }));
            }
        }
        changes.sort_by_key(|(switch_ms, _)| *switch_ms);

        let mut share = 0.0;
        let mut shares = Vec::with_capacity(changes.len());
        for (switch_ms, change) in changes {
            share += change;
            shares.push((switch_ms, f64::max(share, 0.0)));
        }
        BadHosts { shares }
    }

    /// The share at `time_ms`.
    pub(super) fn share(&self, time_ms: i64) -> f64 {
        let after = self
            .shares
            .partition_point(|(from_ms, _)| *from_ms <= time_ms);
        after
            .checked_sub(1)
            .map_or(0.0, |place| self.shares[place].1)
    }
}

/// The mean share `later_ms` after a moment at which it was `share`.
pub(super) fn later_share(share: f64, later_ms: i64) -> f64 {
    share * BAD_HOST.down_probability(true, later_ms)
        + (1.0 - share) * BAD_HOST.down_probability(false, later_ms)
}

/// The chance that a bad host spoils a run while this share is bad. It is linear in the share, and
/// so its mean is that of the mean share; shares at which it would reach 1 do not come about.
pub(super) fn spoiling_chance(share: f64) -> f64 {
    (EXTRA_RUNS * share * BAD_HOST_FAILS).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_base::seed::generator;

    const HOUR_MS: i64 = 3_600_000;

    #[test]
    fn the_share_is_that_of_the_hosts_that_are_down() {
        let mut rng = generator(1, "hosts", &[]);
        let until_ms = 2_000_000 * HOUR_MS;
        let times: Vec<OutageTimes> = (0..4)
            .map(|_| OutageTimes::draw(BAD_HOST, 0, until_ms, &mut rng))
            .collect();
        let hosts = BadHosts::new(times.iter().map(|times| (0.25, times)));
        let down = |time_ms| times.iter().filter(|times| times.is_down(time_ms)).count();

        let (mut met, mut sum) = (0, 0.0);
        for hour in 0..1_999_990 {
            let share = hosts.share(hour * HOUR_MS);
            assert!((share - 0.25 * down(hour * HOUR_MS) as f64).abs() < 1e-9);
            if share > 0.2 && share < 0.3 {
                met += 1;
                sum += hosts.share((hour + 4) * HOUR_MS);
            }
        }
        let (mean, expected) = (sum / f64::from(met), later_share(0.25, 4 * HOUR_MS));
        assert!(
            (mean - expected).abs() < 0.01,
            "{mean} instead of {expected} after {met} hours"
        );
    }
}
