//! Outages of shared resources, as two-state Markov chains with a closed form.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

/// The random process of outages: the mean durations of the up and down states of a resource.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutageLaw {
    up_mean_ms: f64,
    down_mean_ms: f64,
}

impl OutageLaw {
    pub(super) const fn hours(up_mean_h: f64, down_mean_h: f64) -> OutageLaw {
        OutageLaw {
            up_mean_ms: up_mean_h * 3_600_000.0,
            down_mean_ms: down_mean_h * 3_600_000.0,
        }
    }

    /// Returns the probability of being down `later_ms` after a time with state `is_down`.
    pub(super) fn down_probability(&self, is_down: bool, later_ms: i64) -> f64 {
        let share = self.down_mean_ms / (self.up_mean_ms + self.down_mean_ms);
        let rate = 1.0 / self.up_mean_ms + 1.0 / self.down_mean_ms;
        let decay = (-(later_ms as f64) * rate).exp();
        share + (f64::from(u8::from(is_down)) - share) * decay
    }
}

/// The outages of one resource.
#[derive(Debug)]
pub(super) struct OutageTimes {
    /// Times of the state changes, epoch ms: down, up, down, and so on.
    switches_ms: Vec<i64>,
}

impl OutageTimes {
    /// Draws the outages of a resource that is up at `from_ms`, up to `to_ms`.
    pub(super) fn draw(
        law: OutageLaw,
        from_ms: i64,
        to_ms: i64,
        rng: &mut ChaCha8Rng,
    ) -> OutageTimes {
        let mut switches_ms = Vec::new();
        let mut now_ms = from_ms;
        while now_ms < to_ms {
            let mean_ms = if switches_ms.len() % 2 == 0 {
                law.up_mean_ms
            } else {
                law.down_mean_ms
            };
            now_ms += draw_exponential(rng, mean_ms) as i64 + 1;
            switches_ms.push(now_ms);
        }
        OutageTimes { switches_ms }
    }

    /// Returns true if the resource is down at `time_ms`.
    pub(super) fn is_down(&self, time_ms: i64) -> bool {
        self.count_until(time_ms) % 2 == 1
    }

    /// Times of the state changes after `after_ms` and up to `until_ms`.
    pub(super) fn switches_between(&self, after_ms: i64, until_ms: i64) -> &[i64] {
        let later = &self.switches_ms[self.count_until(after_ms)..];
        &later[..later.partition_point(|switch_ms| *switch_ms <= until_ms)]
    }

    /// Returns the number of state changes up to `time_ms`.
    fn count_until(&self, time_ms: i64) -> usize {
        self.switches_ms
            .partition_point(|switch_ms| *switch_ms <= time_ms)
    }

    /// Times of the state changes, epoch ms. The first change is to down.
    pub(super) fn switches_ms(&self) -> &[i64] {
        &self.switches_ms
    }
}

/// Draws from the exponential distribution with mean `mean`.
pub(super) fn draw_exponential(rng: &mut ChaCha8Rng, mean: f64) -> f64 {
    -mean * (1.0 - rng.random::<f64>()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_base::seed::generator;

    #[test]
    fn closed_form_agrees_with_the_simulated_chain() {
        const HOUR_MS: i64 = 3_600_000;
        let hours = 2_000_000;
        let law = OutageLaw::hours(84.0, 3.0);
        let mut rng = generator(1, "outages", &[]);
        let times = OutageTimes::draw(law, 0, hours * HOUR_MS, &mut rng);
        for (lag, state) in [(0, true), (3, true), (3, false), (48, true)] {
            let seen: Vec<bool> = (0..hours - lag)
                .filter(|hour| times.is_down(hour * HOUR_MS) == state)
                .map(|hour| times.is_down((hour + lag) * HOUR_MS))
                .collect();
            let share = seen.iter().filter(|down| **down).count() as f64 / seen.len() as f64;
            let expected = law.down_probability(state, lag * HOUR_MS);
            assert!(
                (share - expected).abs() < 0.01,
                "lag {lag}, down {state}: {share} instead of {expected}"
            );
        }
    }
}
