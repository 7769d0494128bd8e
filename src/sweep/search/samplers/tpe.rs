//! Tree-structured Parzen estimator: earlier trials → the most promising point, over all parameters
//! at once.
//!
//! The trials are divided into the best and the others, with a density for each group: the mean of
//! one kernel per trial and of a flat kernel. Candidates are drawn from the density of the best
//! trials. The sampler picks the candidate with the highest ratio of this density to the density of
//! the others (Bergstra et al. 2011; group sizes and widths as in Watanabe 2023). All densities are
//! over the quantiles of the parameters, so logarithmic or quantised parameters need no special
//! treatment.

use rand::Rng;
use statrs::function::erf::{erfc, erfc_inv};

use super::random;
use crate::search::observed_trial::ObservedTrial;
use crate::search::space::{SearchPoint, SearchSpace};
use poolcast_config::Goal;

/// Minimum number of finished trials to learn from. Before that, points are random.
const STARTUP_TRIALS: usize = 10;

/// Candidates per trial. The most promising one is tried.
const CANDIDATES_PER_TRIAL: usize = 24;

/// Maximum number of trials that count as the best.
const MAX_BEST_TRIALS: usize = 25;

/// Returns the point of trial `trial`, given the trials in `history`. A trial that still runs or
/// that failed counts as a bad one, so trials that are suggested at the same time differ.
pub(in crate::search) fn point(
    space: &SearchSpace,
    goal: Goal,
    seed: u64,
    trial: usize,
    history: &[ObservedTrial],
) -> SearchPoint {
    let mut known: Vec<(f64, Vec<f64>)> = history
        .iter()
        .filter_map(|one| Some((trial_loss(one, goal), space.quantiles(&one.point)?)))
        .collect();
    let finished = known.iter().filter(|(loss, _)| loss.is_finite()).count();
    if finished < STARTUP_TRIALS || space.parameters().is_empty() {
        return space.point_at(&random::quantiles(space, seed, trial));
    }

    // Trials without a value have an infinite loss and sort last, so they are never among the best.
    known.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let best_count = finished.div_ceil(10).min(MAX_BEST_TRIALS);
    let ordered: Vec<Vec<f64>> = known.into_iter().map(|(_, quantiles)| quantiles).collect();
    let best = ParzenEstimator::new(space, &ordered[..best_count]);
    let others = ParzenEstimator::new(space, &ordered[best_count..]);

    let mut generator = poolcast_base::seed::generator(seed, "bayes", &[trial as i64]);
    let candidates: Vec<SearchPoint> = (0..CANDIDATES_PER_TRIAL)
        .map(|_| space.point_at(&best.draw_quantiles(&mut generator)))
        .collect();

    // The expected improvement grows with the ratio of the two densities.
    let gain = |point: &SearchPoint| {
        space.quantiles(point).map_or(f64::NEG_INFINITY, |at| {
            best.log_density(&at) - others.log_density(&at)
        })
    };
    candidates
        .into_iter()
        .map(|point| (gain(&point), point))
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map_or_else(
            || space.point_at(&random::quantiles(space, seed, trial)),
            |(_, point)| point,
        )
}

/// Returns the loss to minimise; infinite if there is no value.
fn trial_loss(observed: &ObservedTrial, goal: Goal) -> f64 {
    observed
        .value
        .filter(|value| value.is_finite())
        .map_or(f64::INFINITY, |value| goal.loss(value))
}

/// A density over the quantiles: the mean of a kernel around each centre and of a flat kernel.
struct ParzenEstimator<'a> {
    centres: &'a [Vec<f64>],
    kernels: Vec<ParameterKernel>,
}

/// Kernel along one parameter.
enum ParameterKernel {
    /// Normal distribution of this width, truncated at 0 and 1.
    Scale(f64),
    /// The centre's own category with the probability `own`, otherwise any of `count` categories.
    Categories { count: usize, own: f64 },
}

impl ParzenEstimator<'_> {
    fn new<'a>(space: &SearchSpace, centres: &'a [Vec<f64>]) -> ParzenEstimator<'a> {
        let n = centres.len() as f64;
        let d = space.parameters().len() as f64;
        let least = 1.0 / (n + 1.0).min(100.0);
        let width = (0.2 * n.max(1.0).powf(-1.0 / (d + 4.0))).max(least);
        let kernel = |categories: Option<usize>| match categories {
            None => ParameterKernel::Scale(width),
            // One flat observation is shared among all kernels.
            Some(count) => ParameterKernel::Categories {
                count,
                own: 1.0 / (1.0 + 1.0 / (n + 1.0)),
            },
        };
        ParzenEstimator {
            centres,
            kernels: space
                .parameters()
                .iter()
                .map(|(_, distribution)| kernel(distribution.categories()))
                .collect(),
        }
    }

    fn draw_quantiles(&self, generator: &mut impl Rng) -> Vec<f64> {
        // The flat kernel counts as one more centre, which has no quantiles.
        let centre = self
            .centres
            .get(generator.random_range(0..=self.centres.len()));
        self.kernels
            .iter()
            .enumerate()
            .map(|(at, kernel)| {
                let share: f64 = generator.random();
                centre.map_or(share, |centre| {
                    kernel.draw_quantile(centre[at], share, generator)
                })
            })
            .collect()
    }

    fn log_density(&self, quantiles: &[f64]) -> f64 {
        let density_around = |centre: &Vec<f64>| -> f64 {
            let parameters = self.kernels.iter().zip(centre).zip(quantiles);
            parameters
                .map(|((kernel, centre), quantile)| kernel.density(*centre, *quantile))
                .product()
        };
        let sum: f64 = 1.0 + self.centres.iter().map(density_around).sum::<f64>();
        (sum / (self.centres.len() + 1) as f64).ln()
    }
}

impl ParameterKernel {
    /// Returns the quantile below which a kernel around `centre` has the share `share`. For
    /// categories, it draws one.
    fn draw_quantile(&self, centre: f64, share: f64, generator: &mut impl Rng) -> f64 {
        match self {
            ParameterKernel::Scale(width) => {
                let (low, high) = shares_below_bounds(centre, *width);
                normal_quantile(low + share * (high - low))
                    .mul_add(*width, centre)
                    .clamp(0.0, 1.0)
            }
            ParameterKernel::Categories { own, .. } => {
                if share < *own {
                    centre
                } else {
                    generator.random()
                }
            }
        }
    }

    /// Returns the density of a kernel around `centre` at `quantile`. A flat kernel has density 1.
    fn density(&self, centre: f64, quantile: f64) -> f64 {
        match self {
            ParameterKernel::Scale(width) => {
                let (low, high) = shares_below_bounds(centre, *width);
                let off = (quantile - centre) / width;
                (-off * off / 2.0).exp()
                    / (width * (2.0 * std::f64::consts::PI).sqrt() * (high - low))
            }
            ParameterKernel::Categories { count, own } => {
                let is_own = (quantile - centre).abs() < 1e-9;
                (1.0 - own) + if is_own { own * *count as f64 } else { 0.0 }
            }
        }
    }
}

/// Returns the shares of a normal distribution below 0 and below 1.
fn shares_below_bounds(centre: f64, width: f64) -> (f64, f64) {
    let below = |bound: f64| erfc((centre - bound) / (width * std::f64::consts::SQRT_2)) / 2.0;
    (below(0.0), below(1.0))
}

fn normal_quantile(share: f64) -> f64 {
    -std::f64::consts::SQRT_2 * erfc_inv(2.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Method;
    use crate::search::Sampler;
    use crate::search::space::space_of;
    use poolcast_base::stats::upper_median;
    use serde_json::{Value, json};

    const SEEDS: u64 = 20;
    const TRIALS: usize = 100;

    /// Returns the best value of a hundred trials for each seed, ascending. `at_once` trials are
    /// suggested before their values are known.
    fn best_values(
        space: &SearchSpace,
        method: Method,
        at_once: usize,
        value: fn(&SearchPoint) -> f64,
    ) -> Vec<f64> {
        let best = |seed| {
            let mut history: Vec<ObservedTrial> = Vec::new();
            while history.len() < TRIALS {
                let before = history.len();
                for trial in before + 1..=before + at_once {
                    let sampler = Sampler {
                        space,
                        method,
                        goal: Goal::Maximize,
                        seed,
                    };
                    let point = sampler.suggest(trial, &history).expect("a point");
                    history.push(ObservedTrial { point, value: None });
                }
                history[before..]
                    .iter_mut()
                    .for_each(|one| one.value = Some(-value(&one.point)));
            }
            history
                .iter()
                .filter_map(|one| one.value)
                .fold(f64::NEG_INFINITY, f64::max)
        };
        let mut best_values: Vec<f64> = (0..SEEDS).map(|seed| -best(seed)).collect();
        best_values.sort_by(f64::total_cmp);
        best_values
    }

    fn median(sorted: &[f64]) -> f64 {
        upper_median(sorted).expect("there are seeds")
    }

    /// Hartmann's function in six dimensions, whose minimum is -3.322.
    fn hartmann(point: &SearchPoint) -> f64 {
        const ALPHA: [f64; 4] = [1.0, 1.2, 3.0, 3.2];
        const A: [[f64; 6]; 4] = [
            [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
            [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
            [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
            [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
        ];
        const P: [[f64; 6]; 4] = [
            [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
            [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
            [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
            [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
        ];
        let x: Vec<f64> = point.values().filter_map(Value::as_f64).collect();
        let term = |i: usize| {
            ALPHA[i]
                * (-(0..6)
                    .map(|j| A[i][j] * (x[j] - P[i][j]).powi(2))
                    .sum::<f64>())
                .exp()
        };
        -(0..4).map(term).sum::<f64>()
    }

    /// A function of a category, which decides the best rate, a rate and a number of layers. Its
    /// minimum is 0.
    fn mixed(point: &SearchPoint) -> f64 {
        let number = |name: &str| point[name].as_f64().expect("a number");
        let (cost, rate) = match point["kind"].as_str() {
            Some("a") => (0.0, -3.0),
            Some("b") => (0.3, -2.0),
            Some("c") => (0.6, -4.0),
            Some("d") => (0.9, -1.5),
            _ => (1.2, -4.5),
        };
        cost + (number("rate").log10() - rate).powi(2) + ((number("layers") - 7.0) / 4.0).powi(2)
    }

    /// Bayes wins by a wide margin, even if four trials are suggested at once. Measured medians,
    /// for random, Sobol, Bayes and Bayes in fours: -1.96, -2.09, -2.97, -2.96 (Hartmann) and
    /// 0.132, 0.229, 0.001, 0.001 (mixed).
    #[test]
    fn bayes_is_better_than_random_and_sobol() {
        let unit = json!({"min": 0.0, "max": 1.0});
        let six =
            space_of(&json!({"a": unit, "b": unit, "c": unit, "d": unit, "e": unit, "f": unit}));
        let mixture = space_of(&json!({
            "kind": {"values": ["a", "b", "c", "d", "e"]},
            "rate": {"distribution": "log_uniform_values", "min": 1e-5, "max": 1e-1},
            "layers": {"min": 1, "max": 16},
        }));
        let medians = |space: &SearchSpace, value| {
            let runs = [
                (Method::Random, 1),
                (Method::Sobol, 1),
                (Method::Bayes, 1),
                (Method::Bayes, 4),
            ];
            runs.map(|(method, at_once)| median(&best_values(space, method, at_once, value)))
        };
        let (hartmann, mixed) = (medians(&six, hartmann), medians(&mixture, mixed));
        for at in [2, 3] {
            assert!(
                hartmann[at] < hartmann[0] - 0.5 && hartmann[at] < hartmann[1] - 0.5,
                "{hartmann:?}"
            );
            assert!(
                mixed[at] < mixed[0] / 3.0 && mixed[at] < mixed[1] / 3.0,
                "{mixed:?}"
            );
        }
    }

    #[test]
    fn trials_of_other_spaces_and_failed_trials_are_ignored() {
        let space = space_of(&json!({"a": {"values": [1, 2]}}));
        let other = ObservedTrial {
            point: SearchPoint::from([("b".to_owned(), json!(1))]),
            value: Some(1.0),
        };
        let history = vec![other; 50];
        assert_eq!(
            point(&space, Goal::Minimize, 1, 3, &history),
            space.point_at(&random::quantiles(&space, 1, 3)),
            "as if nothing was known"
        );
        let failed = vec![
            ObservedTrial {
                point: space.point_at(&[0.1]),
                value: Some(f64::NAN)
            };
            50
        ];
        assert_eq!(
            point(&space, Goal::Maximize, 1, 3, &failed),
            space.point_at(&random::quantiles(&space, 1, 3))
        );
    }
}
