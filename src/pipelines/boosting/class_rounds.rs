//! Boosting on the log loss: columns and classes → boosted trees.

use anyhow::Result;

use super::boosted_trees::{BoostedTrees, add_scores, output_probabilities};
use super::rounds::{BoostingSettings, DERIVATIVE_UNIT, RoundGrower, RowDerivatives};
use crate::classifier::{FitRun, TrainingSet};
use crate::solvers::labels::{ClassLabels, output_classes, output_count};
use crate::trees::sampled_rows::DerivativeUnits;

/// Fits the rounds in turn, each on the gradient that the previous rounds leave. NaN marks a
/// missing value.
pub(crate) fn fit_classes(
    settings: &BoostingSettings,
    training: TrainingSet<'_>,
    run: FitRun<'_>,
) -> Result<BoostedTrees> {
    let TrainingSet { x, labels } = training;
    let grower = RoundGrower::new(settings, x);
    let base = base_logits(labels);
    // For a row of weight 1, derivatives do not exceed 1.
    let units = DerivativeUnits::same(DERIVATIVE_UNIT * labels.largest_weight());

    let outputs = base.len();
    let mut logits = base.repeat(x.n);
    let mut boosted = BoostedTrees::new(base, x.f);
    for round in 0..settings.n_estimators {
        run.stop.check()?;
        let sample = grower.sample_round(run.seed, round);
        // All trees of a round use the probabilities from before the round, as in xgboost.
        let probabilities = output_probabilities(&logits, outputs);
        for (output, class) in output_classes(labels.class_count).into_iter().enumerate() {
            let grown = grower.grow_tree(&sample, units, |row| {
                log_loss_derivatives(probabilities[row * outputs + output], labels, row, class)
            });
            add_scores(&mut logits, &grown.tree, x, output, outputs);
            boosted.push(grown);
        }
    }
    Ok(boosted)
}

/// Returns the logits that give every row the shares of the classes, `[o]`.
fn base_logits(labels: ClassLabels<'_>) -> Vec<f64> {
    let mut counts = vec![0.0; labels.class_count];
    for (class, weight) in labels.y.iter().zip(labels.weights) {
        counts[*class as usize] += weight;
    }

    // One logit stands for the second class alone: the logarithm of its odds.
    if let [first, second] = counts[..] {
        return vec![f64::ln(second / first)];
    }
    let all: f64 = counts.iter().sum();
    counts.iter().map(|count| f64::ln(count / all)).collect()
}

/// Returns the derivatives of a row's log loss with respect to the logit of `class`: `p - y` and
/// `p * (1 - p)`, both multiplied by the row's weight. `p` is the probability of `class`. For a
/// softmax, the second derivative is doubled, as in xgboost: a bound on the joint effect of all
/// logits.
fn log_loss_derivatives(p: f64, labels: ClassLabels<'_>, row: usize, class: u32) -> RowDerivatives {
    let factor = if output_count(labels.class_count) == 1 {
        1.0
    } else {
        2.0
    };
    let weight = labels.weights[row];
    RowDerivatives {
        gradient: weight * (p - f64::from(labels.y[row] == class)),
        hessian: weight * factor * p * (1.0 - p),
    }
}
