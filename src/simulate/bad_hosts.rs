//! The share of the pool that is faulty: its value at any time, and its expected value in closed
//! form.

use super::outages::{OutageLaw, OutageTimes};

/// Outages of an execution point: a few hours long, and months apart.
pub(super) const BAD_HOST_OUTAGES: OutageLaw = OutageLaw::hours(2000.0, 4.0);
/// Number of runs that a faulty host takes, relative to a good one. It takes more because runs fail
/// there at once.
const BAD_HOST_RUN_RATIO: f64 = 4.0;
/// Share of runs on a faulty host that fail.
pub(super) const BAD_HOST_FAILURE_RATE: f64 = 0.9;

/// The share of the pool that is faulty, over time.
#[derive(Debug)]
pub(super) struct BadHosts {
    /// Times in epoch ms at which the share changes, with the new share. The share is the fraction
    /// of all runs that a random draw would place on faulty hosts.
    shares: Vec<(i64, f64)>,
}

impl BadHosts {
    /// Computes the share over time. `hosts` has the outages of each host, with the host's fraction
    /// of all runs.
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

    /// Times at which the share changes, after `after_ms` and up to `until_ms`.
    pub(super) fn changes_between(
        &self,
        after_ms: i64,
        until_ms: i64,
    ) -> impl Iterator<Item = i64> {
        let later = &self.shares[self.count_until(after_ms)..];
        later
            .iter()
            .map(|(change_ms, _)| *change_ms)
            .take_while(move |change_ms| *change_ms <= until_ms)
    }

    /// Returns the number of changes up to `time_ms`.
    fn count_until(&self, time_ms: i64) -> usize {
        self.shares
            .partition_point(|(from_ms, _)| *from_ms <= time_ms)
    }

    /// Returns the share at `time_ms`.
    pub(super) fn share(&self, time_ms: i64) -> f64 {
        self.count_until(time_ms)
            .checked_sub(1)
            .map_or(0.0, |place| self.shares[place].1)
    }
}

/// Returns the mean share `later_ms` after a time at which the share was `share`.
pub(super) fn expected_share_after(share: f64, later_ms: i64) -> f64 {
    share * BAD_HOST_OUTAGES.down_probability(true, later_ms)
        + (1.0 - share) * BAD_HOST_OUTAGES.down_probability(false, later_ms)
}

/// Returns the probability that a faulty host makes a run fail, given the faulty share of the pool.
/// It is linear in the share, so its mean is the value at the mean share. The limit of 1 is never
/// reached in practice.
pub(super) fn bad_host_failure_probability(share: f64) -> f64 {
    (BAD_HOST_RUN_RATIO * share * BAD_HOST_FAILURE_RATE).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_base::seed::generator;

    const HOUR_MS: i64 = 3_600_000;

    #[test]
    fn share_equals_the_share_of_hosts_that_are_down() {
        let mut rng = generator(1, "hosts", &[]);
        let until_ms = 2_000_000 * HOUR_MS;
        let times: Vec<OutageTimes> = (0..4)
            .map(|_| OutageTimes::draw(BAD_HOST_OUTAGES, 0, until_ms, &mut rng))
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
        let (mean, expected) = (
            sum / f64::from(met),
            expected_share_after(0.25, 4 * HOUR_MS),
        );
        assert!(
            (mean - expected).abs() < 0.01,
            "{mean} instead of {expected} after {met} hours"
        );
    }
}
