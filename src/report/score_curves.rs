//! Points of score curves from probabilities, labels and weights: ROC, precision and recall,
//! coverage and risk. Also the success shares in bins.

/// The weights of all samples with at least one probability, as in scikit-learn's curves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CurveStep {
    /// Success is predicted for probabilities of at least this value.
    pub(super) threshold: f64,
    /// Weight of the predicted successes that did succeed.
    pub(super) right: f64,
    /// Weight of the predicted successes that did not.
    pub(super) wrong: f64,
}

/// Samples by decreasing probability, sorted once for many sets of weights.
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

    /// Returns one step for each distinct probability of samples with a weight above 0.
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

/// Returns the points (false positive rate, true positive rate) from (0, 0) on; empty if a class is
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

/// Returns the points (recall, precision) by ascending recall; empty if no sample succeeded.
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

/// Returns the y of a rising curve at each x of `grid`, interpolated linearly. Where the curve is
/// vertical, its largest y counts.
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

/// Returns the y of the first point whose x is not below each x of `grid`.
pub(super) fn from_grid(points: &[(f64, f64)], grid: &[f64]) -> Vec<f64> {
    let mut values = Vec::with_capacity(grid.len());
    for &x in grid {
        let at = points.partition_point(|point| point.0 < x - 1e-12);
        values.push(points.get(at).map_or(f64::NAN, |point| point.1));
    }
    values
}

/// Returns the points (share of samples with an answer, share of wrong answers among them), if the
/// most certain answers are given first. Success is predicted from a probability of one half on,
/// failure below.
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

/// Computes the mean predicted probability and the share of successes in each of `bins` bins; NaN
/// for an empty bin.
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

/// Selects at most `most` of `points`, with the first and the last among them.
pub(super) fn thin_points(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most {
        return points.to_vec();
    }
    let last = points.len() - 1;
    let point = |at: usize| points[at * last / (most - 1)];
    (0..most).map(point).collect()
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
    fn roc_curve_matches_scikit_learn() {
        let points = [(0.0, 0.0), (0.0, 0.5), (0.5, 0.5), (0.5, 1.0), (1.0, 1.0)];
        assert_eq!(roc_points(&steps()), points);
        assert!(roc_points(&[]).is_empty());
        let of_one_class = RankedSamples::new(&[0.1, 0.2], &[true, true]).steps(&[1.0; 2]);
        assert!(roc_points(&of_one_class).is_empty());
    }

    /// scikit-learn's example of `precision_recall_curve`, without its last point.
    #[test]
    fn precision_and_recall_match_scikit_learn() {
        let points = [(0.5, 1.0), (0.5, 0.5), (1.0, 2.0 / 3.0), (1.0, 0.5)];
        assert_eq!(recall_points(&steps()), points);
    }

    #[test]
    fn equal_probabilities_share_a_step() {
        let ranked = RankedSamples::new(&[0.5, 0.5, 0.2], &[true, false, true]);
        let steps = ranked.steps(&[1.0, 2.0, 0.0]);
        assert_eq!(steps.len(), 1);
        assert_eq!((steps[0].right, steps[0].wrong), (1.0, 2.0));
    }

    #[test]
    fn curves_are_interpolated_between_points() {
        let points = [(0.0, 0.0), (0.0, 0.5), (1.0, 1.0)];
        assert_eq!(at_grid(&points, &[0.0, 0.5, 1.0]), [0.5, 0.75, 1.0]);
        assert_eq!(from_grid(&points, &[0.0, 0.5]), [0.0, 1.0]);
        assert!(at_grid(&[], &[0.5])[0].is_nan());
    }

    #[test]
    fn most_certain_answers_come_first() {
        let points = coverage_points(&[0.9, 0.4, 0.05], &[true, true, false], &[1.0; 3]);
        assert_eq!(
            points,
            [(1.0 / 3.0, 0.0), (2.0 / 3.0, 0.0), (1.0, 1.0 / 3.0)]
        );
    }

    #[test]
    fn thinned_curves_keep_their_ends() {
        let points: Vec<(f64, f64)> = (0..1000).map(|at| (f64::from(at), 0.0)).collect();
        let few = thin_points(&points, 101);
        assert_eq!((few.len(), few[0].0, few[100].0), (101, 0.0, 999.0));
    }
}
