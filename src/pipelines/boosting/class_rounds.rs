//! Columns and classes → rounds of boosting on the log loss.

use anyhow::Result;

use super::boosted_trees::{BoostedTrees, add_scores, output_probabilities};
use super::rounds::{BoostingSettings, DERIVATIVE_UNIT, RoundGrower, RowDerivatives};
use crate::classifier::{FitRun, TrainingSet};
use crate::solvers::labels::{ClassLabels, output_classes, output_count};
use crate::trees::histogram::DerivativeUnits;

/// Fits round after round, each on the gradient that the rounds before it leave. What is missing is
/// NaN.
pub(in crate) fn fit_classes(
    settings: &BoostingSettings,
    training: TrainingSet<'_>,
    run: FitRun<'_>,
) -> Result<BoostedTrees> {
    let TrainingSet { x, labels } = training;
    let grower = RoundGrower::new(settings, x);
    let base = base_logits(labels);
    // Of a row that counts once no derivative is larger than 1.
    let units = DerivativeUnits::same(DERIVATIVE_UNIT * labels.largest_weight());

    let outputs = base.len();
    let mut logits = base.repeat(x.n);
    let mut boosted = BoostedTrees::new(base, x.f);
    for round in 0..settings.n_estimators {
        run.stop.check()?;
        let sample = grower.sample_round(run.seed, round);
        // All trees of a round are grown on the probabilities before it, as in xgboost.
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

/// The logits that give every row the shares of the classes, `[o]`.
fn base_logits(labels: ClassLabels<'_>) -> Vec<f64> {
    let mut counts = vec![0.0; labels.class_count];
    for (class, weight) in labels.y.iter().zip(labels.weights) {
        counts[*class as usize] += weight;
    }

    // One logit stands for the second class alone: its odds.
    if let [first, second] = counts[..] {
        return vec![f64::ln(second / first)];
    }
    let all: f64 = counts.iter().sum();
    counts.iter().map(|count| f64::ln(count / all)).collect()
}

/// The derivatives of the log loss of a row by the logit of `class`, which has the probability `p`:
/// `p - y` and `p * (1 - p)`. Of a softmax xgboost takes twice the second, a bound of what all
/// logits together do.
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
