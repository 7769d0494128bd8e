//! A seed → when each shared data origin is down: a two-state Markov chain, and its closed form.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

/// How long an origin stays up, on average.
const UP_MEAN_MS: f64 = 84.0 * 3_600_000.0;
/// How long an outage lasts, on average.
const DOWN_MEAN_MS: f64 = 3.0 * 3_600_000.0;

/// A server that many users' files come from or go to.
#[derive(Debug)]
pub(super) struct DataOrigin {
    /// Its part of the name space.
    pub(super) name: &'static str,
    /// When it changes state, epoch ms: down, up, down ...
    switches_ms: Vec<i64>,
}

impl DataOrigin {
    /// An origin that is up at `from_ms`, followed until `to_ms`.
    pub(super) fn new(
        name: &'static str,
        from_ms: i64,
        to_ms: i64,
        rng: &mut ChaCha8Rng,
    ) -> DataOrigin {
        let (mut switches_ms, mut now_ms) = (Vec::new(), from_ms);
        while now_ms < to_ms {
            let mean_ms = if switches_ms.len() % 2 == 0 {
                UP_MEAN_MS
            } else {
                DOWN_MEAN_MS
            };
            now_ms += draw_exponential(rng, mean_ms) as i64 + 1;
            switches_ms.push(now_ms);
        }
        DataOrigin { name, switches_ms }
    }

    /// Whether it is down at `time_ms`.
    pub(super) fn is_down(&self, time_ms: i64) -> bool {
        self.switches_ms
            .partition_point(|switch_ms| *switch_ms <= time_ms)
            % 2
            == 1
    }
}

/// The chance that an origin is down `later_ms` after a moment at which it was down or not.
pub(super) fn down_probability(is_down: bool, later_ms: i64) -> f64 {
    let share = DOWN_MEAN_MS / (UP_MEAN_MS + DOWN_MEAN_MS);
    let decay = (-(later_ms as f64) * (1.0 / UP_MEAN_MS + 1.0 / DOWN_MEAN_MS)).exp();
    share + (f64::from(u8::from(is_down)) - share) * decay
}

/// A draw from the draw_exponential distribution with this mean.
pub(super) fn draw_exponential(rng: &mut ChaCha8Rng, mean: f64) -> f64 {
    -mean * (1.0 - rng.random::<f64>()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::generator;

    #[test]
    fn the_closed_form_is_that_of_the_chain() {
        const HOUR_MS: i64 = 3_600_000;
        let hours = 2_000_000;
        let origin = DataOrigin::new("o", 0, hours * HOUR_MS, &mut generator(1, "outages", &[]));
        for (lag, state) in [(0, true), (3, true), (3, false), (48, true)] {
            let seen: Vec<bool> = (0..hours - lag)
                .filter(|hour| origin.is_down(hour * HOUR_MS) == state)
                .map(|hour| origin.is_down((hour + lag) * HOUR_MS))
                .collect();
            let share = seen.iter().filter(|down| **down).count() as f64 / seen.len() as f64;
            let expected = down_probability(state, lag * HOUR_MS);
            assert!(
                (share - expected).abs() < 0.01,
                "lag {lag}, down {state}: {share} instead of {expected}"
            );
        }
    }
}
