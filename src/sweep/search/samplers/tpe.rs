//! Tree-structured Parzen estimator: earlier trials → the most promising point, over all parameters
//! at once.
//!
//! The trials are divided into the best and the others, with a density for each group: the mean of
//! one kernel per trial and of a flat kernel. Candidates are drawn from the density of the best
//! trials. The sampler picks the candidate with the highest ratio of this density to the density of
//! the others (Bergstra et al. 2011; group sizes as in Watanabe 2023). A kernel is as wide as its
//! distance to the neighbours, along each parameter: narrow where trials are dense. All densities are
//! over the quantiles of the parameters, so logarithmic or quantised parameters need no special
//! treatment.

use std::collections::BTreeSet;
use std::f64::consts::{SQRT_2, TAU};

use rand::Rng;
use statrs::function::erf::{erfc, erfc_inv};

use super::random;
use crate::search::observed_trial::ObservedTrial;
use crate::search::space::{SearchPoint, SearchSpace};
use poolcast_config::Goal;

/// Minimum number of finished trials to learn from. Before that, points are random.
const STARTUP_TRIALS: usize = 10;

/// Candidates per trial. The most promising one is tried.
const CANDIDATES_PER_TRIAL: usize = 48;

/// Maximum number of trials that count as the best.
const MAX_BEST_TRIALS: usize = 25;

/// The minimum width of a kernel is the range of quantiles, divided by the number of kernels, but by
/// no more than this.
const MAX_KERNELS_PER_RANGE: f64 = 100.0;

/// Returns the point of trial `trial`, given the trials in `history`. A trial that still runs or
/// that failed counts as a bad one, so trials that are suggested at the same time differ.
pub(in crate::search) fn point(
    space: &SearchSpace,
    goal: Goal,
    seed: u64,
    trial: usize,
    history: &[ObservedTrial],
) -> SearchPoint {
    let known: Vec<(f64, Vec<Option<f64>>)> = history
        .iter()
        .filter_map(|one| {
            let ranges = space.quantile_ranges(&one.point)?.into_iter();
            let middles = ranges.map(|range| range.map(|[low, high]| (low + high) / 2.0));
            Some((trial_loss(one, goal), middles.collect()))
        })
        .collect();
    let finished = known.iter().filter(|(loss, _)| loss.is_finite()).count();
    if finished < STARTUP_TRIALS || space.parameters().is_empty() {
        return space.point_at(&random::quantiles(space, seed, trial));
    }

    // Trials without a value have an infinite loss and sort last, so they are never among the best.
    let mut ranked: Vec<usize> = (0..known.len()).collect();
    ranked.sort_by(|a, b| known[*a].0.total_cmp(&known[*b].0));
    let (best, others) = ranked.split_at(finished.div_ceil(10).min(MAX_BEST_TRIALS));
    // Of equal quantiles only the first and the last one have a distant neighbour. In the order of
    // trials, these are not the best ones.
    let estimate = |group: &[usize]| {
        let numbers: BTreeSet<usize> = group.iter().copied().collect();
        let points = numbers.into_iter().map(|number| &known[number].1[..]);
        ParzenEstimator::new(space, &points.collect::<Vec<&[Option<f64>]>>())
    };
    let (best, others) = (estimate(best), estimate(others));

    let mut generator = poolcast_base::seed::generator(seed, "bayes", &[trial as i64]);
    let candidates: Vec<SearchPoint> = (0..CANDIDATES_PER_TRIAL)
        .map(|_| space.point_at(&best.draw_quantiles(&mut generator)))
        .collect();

    // The expected improvement grows with the ratio of the two densities.
    let gain = |point: &SearchPoint| {
        space
            .quantile_ranges(point)
            .map_or(f64::NEG_INFINITY, |ranges| {
                best.log_density(&ranges) - others.log_density(&ranges)
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

/// A density over the quantiles: the mean of one kernel per trial and of a flat kernel.
struct ParzenEstimator {
    /// Number of trials.
    count: usize,
    /// The kernels of all trials along each parameter.
    parameters: Vec<ParameterKernels>,
}

/// The kernels of all trials along one parameter. A trial without the parameter has none, and counts as
/// flat.
enum ParameterKernels {
    /// Kernels on a scale.
    Scale(Vec<Option<TruncatedNormal>>),
    /// The trial's own category, which is one of `centres`, with the probability `own`; otherwise any
    /// of `count` categories.
    Categories {
        centres: Vec<Option<f64>>,
        count: usize,
        own: f64,
    },
}

impl ParzenEstimator {
    /// Estimates the density of `trials`, in order. They are points of `space`.
    fn new(space: &SearchSpace, trials: &[&[Option<f64>]]) -> ParzenEstimator {
        let kernels = |at: usize, categories: Option<usize>| {
            let centres: Vec<Option<f64>> = trials.iter().map(|trial| trial[at]).collect();
            let known: Vec<f64> = centres.iter().copied().flatten().collect();
            match categories {
                None => {
                    let mut kernels = neighbour_kernels(&known).into_iter();
                    let of_trial = |centre: &Option<f64>| centre.and_then(|_| kernels.next());
                    ParameterKernels::Scale(centres.iter().map(of_trial).collect())
                }
                // One observation of each category is shared among all kernels, so that a category
                // with few trials is not given up early.
                Some(count) => ParameterKernels::Categories {
                    own: 1.0 / (1.0 + count as f64 / (known.len() as f64 + 1.0)),
                    centres,
                    count,
                },
            }
        };
        let parameters = space.parameters().iter().enumerate();
        ParzenEstimator {
            count: trials.len(),
            parameters: parameters
                .map(|(at, (_, distribution))| kernels(at, distribution.categories()))
                .collect(),
        }
    }

    fn draw_quantiles(&self, generator: &mut impl Rng) -> Vec<f64> {
        let number = generator.random_range(0..=self.count);
        self.parameters
            .iter()
            .map(|kernels| {
                let share: f64 = generator.random();
                // The flat kernel is the last one.
                if number == self.count {
                    return share;
                }
                kernels.draw_quantile(number, share, generator)
            })
            .collect()
    }

    /// Returns the logarithm of the mean density over the values of a point with these `ranges` of
    /// quantiles.
    fn log_density(&self, ranges: &[Option<[f64; 2]>]) -> f64 {
        let density_around = |number: usize| -> f64 {
            let parameters = self.parameters.iter().zip(ranges);
            parameters
                .map(|(kernels, range)| match range {
                    Some(range) => kernels.density(number, *range),
                    None => 1.0,
                })
                .product()
        };
        let sum: f64 = 1.0 + (0..self.count).map(density_around).sum::<f64>();
        (sum / (self.count + 1) as f64).ln()
    }
}

impl ParameterKernels {
    /// Returns the quantile below which the kernel `number` has the share `share`. For categories, it
    /// draws one.
    fn draw_quantile(&self, number: usize, share: f64, generator: &mut impl Rng) -> f64 {
        match self {
            ParameterKernels::Scale(kernels) => kernels[number]
                .as_ref()
                .map_or(share, |kernel| kernel.quantile(share)),
            ParameterKernels::Categories { centres, own, .. } => match centres[number] {
                Some(centre) if share < *own => centre,
                _ => generator.random(),
            },
        }
    }

    /// Returns the mean density of the kernel `number` over `range`. A flat kernel has density 1.
    fn density(&self, number: usize, range: [f64; 2]) -> f64 {
        match self {
            ParameterKernels::Scale(kernels) => match &kernels[number] {
                Some(kernel) => kernel.density(range),
                None => 1.0,
            },
            ParameterKernels::Categories {
                centres,
                count,
                own,
            } => {
                let Some(centre) = centres[number] else {
                    return 1.0;
                };
                let [low, high] = range;
                let is_own = (low..=high).contains(&centre);
                (1.0 - own) + if is_own { own * *count as f64 } else { 0.0 }
            }
        }
    }
}

/// A normal distribution, truncated at 0 and 1.
struct TruncatedNormal {
    centre: f64,
    width: f64,
    /// The shares below 0 and below 1 before it is truncated.
    bounds: [f64; 2],
}

impl TruncatedNormal {
    fn new(centre: f64, width: f64) -> TruncatedNormal {
        let bounds = [0.0, 1.0].map(|bound| normal_share(centre, width, bound));
        TruncatedNormal {
            centre,
            width,
            bounds,
        }
    }

    fn quantile(&self, share: f64) -> f64 {
        let [low, high] = self.bounds;
        let normal_quantile = -SQRT_2 * erfc_inv(2.0 * (low + share * (high - low)));
        normal_quantile
            .mul_add(self.width, self.centre)
            .clamp(0.0, 1.0)
    }

    /// Returns the mean density over a range. A value of a continuous distribution has an empty range.
    fn density(&self, [from, to]: [f64; 2]) -> f64 {
        let [low, high] = self.bounds;
        if to - from > 1e-9 {
            let share = |at| normal_share(self.centre, self.width, at);
            return (share(to) - share(from)) / ((to - from) * (high - low));
        }
        let off = (from - self.centre) / self.width;
        (-off * off / 2.0).exp() / (self.width * TAU.sqrt() * (high - low))
    }
}

/// Returns the share of a normal distribution below `at`.
fn normal_share(centre: f64, width: f64, at: f64) -> f64 {
    erfc((centre - at) / (width * SQRT_2)) / 2.0
}

/// Returns a kernel around each of `centres`, which are quantiles. Its width is the distance to the
/// farther one of its two neighbours. The first and the last centre have one neighbour, and a lone
/// centre has the bounds. There is a minimum width, so that a density is not a row of spikes.
fn neighbour_kernels(centres: &[f64]) -> Vec<TruncatedNormal> {
    let min_width = 1.0 / (centres.len() as f64 + 2.0).min(MAX_KERNELS_PER_RANGE);
    let mut order: Vec<usize> = (0..centres.len()).collect();
    order.sort_by(|a, b| centres[*a].total_cmp(&centres[*b]));

    let mut widths = vec![min_width; centres.len()];
    for pair in order.windows(2) {
        let distance = centres[pair[1]] - centres[pair[0]];
        for at in pair {
            widths[*at] = widths[*at].max(distance);
        }
    }
    if let [centre] = centres {
        widths = vec![centre.max(1.0 - centre)];
    }
    let kernels = centres.iter().zip(widths);
    kernels
        .map(|(centre, width)| TruncatedNormal::new(*centre, width))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Method;
    use crate::search::Sampler;
    use crate::search::samplers::test_functions::{FUNCTIONS, TestFunction};
    use crate::search::space::space_of;
    use serde_json::json;

    const SEEDS: u64 = 20;
    const TRIALS: usize = 100;

    /// Returns the median over all seeds of the smallest value in a hundred trials. `at_once` trials
    /// are suggested before their values are known.
    fn median_best(function: &TestFunction, method: Method, at_once: usize) -> f64 {
        let space = &space_of(&serde_json::from_str(function.space).expect("JSON"));
        let best = |seed| {
            let mut history: Vec<ObservedTrial> = Vec::new();
            while history.len() < TRIALS {
                let before = history.len();
                for trial in before + 1..=before + at_once {
                    let sampler = Sampler {
                        space,
                        method,
                        goal: Goal::Minimize,
                        seed,
                    };
                    let point = sampler.suggest(trial, &history).expect("a point");
                    history.push(ObservedTrial { point, value: None });
                }
                history[before..]
                    .iter_mut()
                    .for_each(|one| one.value = Some((function.value)(&one.point)));
            }
            history
                .iter()
                .filter_map(|one| one.value)
                .fold(f64::INFINITY, f64::min)
        };
        let mut best_values: Vec<f64> = (0..SEEDS).map(best).collect();
        best_values.sort_by(f64::total_cmp);
        let middle = best_values.len() / 2;
        (best_values[middle - 1] + best_values[middle]) / 2.0
    }

    /// `ci/bench/search` prints these medians beside Optuna's. Random and Sobol points do not find the minima.
    #[test]
    #[expect(clippy::print_stdout, reason = "the lines are for `ci/bench/search`")]
    fn bayes_finds_known_minima() {
        for function in &FUNCTIONS {
            let of_bayes = median_best(function, Method::Bayes, 1);
            println!("{}: median {of_bayes:.4}", function.name);
            let others = [Method::Random, Method::Sobol];
            let of_others = others.map(|method| median_best(function, method, 1));
            let is_found = |median: &f64| *median <= function.largest_median;
            assert!(is_found(&of_bayes), "{}: {of_bayes}", function.name);
            assert!(
                !of_others.iter().any(is_found),
                "{}: {of_others:?}",
                function.name
            );
        }
    }

    #[test]
    fn trials_that_are_suggested_at_once_find_the_minimum_too() {
        let is_small = |function: &&TestFunction| function.name == "branin";
        let function = FUNCTIONS.iter().find(is_small).expect("known");
        let median = median_best(function, Method::Bayes, 4);
        assert!(median <= function.largest_median, "{median}");
    }

    #[test]
    fn parameter_is_learned_from_the_trials_that_have_it() {
        let space = space_of(&json!({
            "kind": {"values": ["a", "b"]},
            "rate": {"min": 0.0, "max": 1.0, "when": {"kind": "a"}},
        }));
        let sampler = Sampler {
            space: &space,
            method: Method::Bayes,
            goal: Goal::Minimize,
            seed: 1,
        };
        let mut history: Vec<ObservedTrial> = Vec::new();
        for trial in 1..=60 {
            let point = sampler.suggest(trial, &history).expect("a point");
            let rate = point.get("rate").and_then(serde_json::Value::as_f64);
            assert_eq!(rate.is_some(), point["kind"] == json!("a"), "{point:?}");
            let value = rate.map_or(1.0, |rate| (rate - 0.7).abs());
            history.push(ObservedTrial {
                point,
                value: Some(value),
            });
        }
        let best = history.iter().filter_map(|one| one.value);
        assert!(best.fold(f64::INFINITY, f64::min) < 0.02);
        let late = history[40..].iter().filter(|one| one.value < Some(0.3));
        assert!(
            late.count() > 12,
            "most of them have the parameter, near the best value"
        );
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
