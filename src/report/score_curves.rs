//! Probabilities, labels and weights → the points of curves: ROC, precision and recall, coverage and
//! risk, and the shares of success in bins.

/// Samples of one probability and those above it, as scikit-learn's curves count them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CurveStep {
    /// Success is predicted from this probability on.
    pub(super) threshold: f64,
    /// The weight of the samples so predicted that succeeded.
    pub(super) right: f64,
    /// That of those that did not.
    pub(super) wrong: f64,
}

/// Samples from the highest probability down, sorted once for any number of weights.
#[derive(Debug)]
pub(super) struct RankedSamples<'a> {
    probabilities: &'a [f64],
    labels: &'a [bool],
    order: Vec<usize>,
}

impl RankedSamples<'_> {
    pub(super) fn new<'a>(probabilities: &'a [f64], labels: &'a [bool]) -> RankedSamples<'a> {
        let mut order: Vec<usize> = (0..probabilities.len()).collect();
        order.sort_by(|a, b| probabilities[*b].total_cmp(&probabilities[*a]));
        RankedSamples {
            probabilities,
            labels,
            order,
        }
    }

    /// A step for each distinct probability of samples that weigh something.
    pub(super) fn steps(&self, weights: &[f64]) -> Vec<CurveStep> {
        let mut steps: Vec<CurveStep> = Vec::new();
        let (mut right, mut wrong) = (0.0, 0.0);
        for &sample in &self.order {
            if weights[sample] == 0.0 {
                continue;
            }
            if self.labels[sample] {
                right += weights[sample];
            } else {
                wrong += weights[sample];
            }
            let step = CurveStep {
                threshold: self.probabilities[sample],
                right,
                wrong,
            };
            match steps.last_mut() {
                Some(last) if last.threshold == step.threshold => *last = step,
                _ => steps.push(step),
            }
        }
        steps
    }
}

/// The false positive rate and the true positive rate from (0, 0) on; empty where one class is
/// missing.
pub(super) fn roc_points(steps: &[CurveStep]) -> Vec<(f64, f64)> {
    let Some(last) = steps
        .last()
        .filter(|last| last.right > 0.0 && last.wrong > 0.0)
    else {
        return Vec::new();
    };
    let mut points = vec![(0.0, 0.0)];
    for step in steps {
        points.push((step.wrong / last.wrong, step.right / last.right));
    }
    points
}

/// Recall and precision, from the lowest recall on; empty where nothing succeeded.
pub(super) fn recall_points(steps: &[CurveStep]) -> Vec<(f64, f64)> {
    let Some(last) = steps.last().filter(|last| last.right > 0.0) else {
        return Vec::new();
    };
    let point = |step: &CurveStep| {
        let precision = step.right / (step.right + step.wrong);
        (step.right / last.right, precision)
    };
    steps.iter().map(point).collect()
}

/// The largest y of a rising curve at each x of `grid`: between two points on the line that joins
/// them.
pub(super) fn at_grid(points: &[(f64, f64)], grid: &[f64]) -> Vec<f64> {
    let mut values = Vec::with_capacity(grid.len());
    for &x in grid {
        let after = points.partition_point(|point| point.0 <= x);
        let value = match (after.checked_sub(1).map(|at| points[at]), points.get(after)) {
            (Some(before), Some(next)) => {
                before.1 + (next.1 - before.1) * (x - before.0) / (next.0 - before.0)
            }
            (Some(before), None) => before.1,
            (None, _) => f64::NAN,
        };
        values.push(value);
    }
    values
}

/// The y of the first point whose x is not below each of `grid`.
pub(super) fn from_grid(points: &[(f64, f64)], grid: &[f64]) -> Vec<f64> {
    let mut values = Vec::with_capacity(grid.len());
    for &x in grid {
        let at = points.partition_point(|point| point.0 < x - 1e-12);
        values.push(points.get(at).map_or(f64::NAN, |point| point.1));
    }
    values
}

/// Which share of the samples gets an answer, and which share of these answers is wrong, where the
/// surest answer is given first. Success is said above one half, failure below.
pub(super) fn coverage_points(
    probabilities: &[f64],
    labels: &[bool],
    weights: &[f64],
) -> Vec<(f64, f64)> {
    let sureness = |sample: &usize| (probabilities[*sample] - 0.5).abs();
    let mut order: Vec<usize> = (0..labels.len()).filter(|at| weights[*at] > 0.0).collect();
    order.sort_by(|a, b| sureness(b).total_cmp(&sureness(a)));
    let all: f64 = weights.iter().sum();

    let mut points = Vec::new();
    let (mut answered, mut wrong) = (0.0, 0.0);
    for alike in order.chunk_by(|a, b| sureness(a) == sureness(b)) {
        for &sample in alike {
            answered += weights[sample];
            if (probabilities[sample] >= 0.5) != labels[sample] {
                wrong += weights[sample];
            }
        }
        points.push((answered / all, wrong / answered));
    }
    points
}

/// What was predicted on the mean, and what share succeeded, in each of `bins` bins; NaN where one is
/// empty.
pub(super) fn bin_shares(
    bin_of_sample: &[usize],
    bins: usize,
    probabilities: &[f64],
    labels: &[bool],
    weights: &[f64],
) -> Vec<(f64, f64)> {
    let mut sums = vec![(0.0, 0.0, 0.0); bins];
    for (sample, &bin) in bin_of_sample.iter().enumerate() {
        let weight = weights[sample];
        let sum = &mut sums[bin];
        sum.0 += weight;
        sum.1 += weight * probabilities[sample];
        sum.2 += weight * f64::from(u8::from(labels[sample]));
    }
    let means = |&(weight, predicted, succeeded): &(f64, f64, f64)| {
        (predicted / weight, succeeded / weight)
    };
    sums.iter().map(means).collect()
}

/// At most so many of `points`, the first and the last among them.
pub(super) fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most {
        return points.to_vec();
    }
    let last = points.len() - 1;
    let place = |at: usize| points[at * last / (most - 1)];
    (0..most).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBABILITIES: [f64; 4] = [0.1, 0.4, 0.35, 0.8];
    const LABELS: [bool; 4] = [false, false, true, true];

    fn steps() -> Vec<CurveStep> {
        RankedSamples::new(&PROBABILITIES, &LABELS).steps(&[1.0; 4])
    }

    /// scikit-learn's example of `roc_curve`.
    #[test]
    fn a_roc_curve_as_scikit_learn_has_it() {
        let points = [(0.0, 0.0), (0.0, 0.5), (0.5, 0.5), (0.5, 1.0), (1.0, 1.0)];
        assert_eq!(roc_points(&steps()), points);
        assert!(roc_points(&[]).is_empty());
        let of_one_class = RankedSamples::new(&[0.1, 0.2], &[true, true]).steps(&[1.0; 2]);
        assert!(roc_points(&of_one_class).is_empty());
    }

    /// scikit-learn's example of `precision_recall_curve`, without its last point.
    #[test]
    fn precision_and_recall_as_scikit_learn_has_them() {
        let points = [(0.5, 1.0), (0.5, 0.5), (1.0, 2.0 / 3.0), (1.0, 0.5)];
        assert_eq!(recall_points(&steps()), points);
    }

    #[test]
    fn equal_probabilities_are_one_step_and_weights_count() {
        let ranked = RankedSamples::new(&[0.5, 0.5, 0.2], &[true, false, true]);
        let steps = ranked.steps(&[1.0, 2.0, 0.0]);
        assert_eq!(steps.len(), 1);
        assert_eq!((steps[0].right, steps[0].wrong), (1.0, 2.0));
    }

    #[test]
    fn values_between_points() {
        let points = [(0.0, 0.0), (0.0, 0.5), (1.0, 1.0)];
        assert_eq!(at_grid(&points, &[0.0, 0.5, 1.0]), [0.5, 0.75, 1.0]);
        assert_eq!(from_grid(&points, &[0.0, 0.5]), [0.0, 1.0]);
        assert!(at_grid(&[], &[0.5])[0].is_nan());
    }

    #[test]
    fn the_surest_answers_come_first() {
        let points = coverage_points(&[0.9, 0.4, 0.05], &[true, true, false], &[1.0; 3]);
        assert_eq!(
            points,
            [(1.0 / 3.0, 0.0), (2.0 / 3.0, 0.0), (1.0, 1.0 / 3.0)]
        );
    }

    #[test]
    fn thinned_curves_keep_their_ends() {
        let points: Vec<(f64, f64)> = (0..1000).map(|at| (f64::from(at), 0.0)).collect();
        let few = thinned(&points, 101);
        assert_eq!((few.len(), few[0].0, few[100].0), (101, 0.0, 999.0));
    }
}
