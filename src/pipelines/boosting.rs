//! Columns and classes → gradient boosted trees.
//!
//! Rounds are those of xgboost: a tree a round on the gradient of the log loss. More than two
//! classes have a tree for each class a round, on the gradient of the softmax, as in xgboost's
//! `multi:softprob`.

use anyhow::{Result, ensure};
use rand::seq::index::sample;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::classifier::{Classifier, FitRun, TrainingSet};
use super::importances::ColumnImportances;
use super::solvers::labels::{ClassLabels, output_classes, output_count};
use super::solvers::logits::{sigmoid, softmax_in_place};
use super::solvers::matrix::{ColumnMatrix, add_scaled};
use super::trees::bins::{BinnedColumn, bin_columns};
use super::trees::grow::{GrowSettings, GrownTree, SplitColumns, grow_tree};
use super::trees::histogram::SampledRow;
use super::trees::split::SplitRule;
use super::trees::tree::DecisionTree;
use crate::output::counted;

/// What derivatives are multiples of, by the largest weight of a row. Of a row that counts once none is
/// larger than 1.
const GRADIENT_UNIT: f64 = 1.0 / (1 << 30) as f64;
/// A split that gains less does so by rounding: xgboost's `kRtEps`.
const MIN_GAIN: f64 = 1e-6;
/// How many rows are scored in one go.
const ROWS_AT_ONCE: usize = 1024;

/// The hyper-parameters of the pipeline `xgb`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct BoostingSettings {
    n_estimators: usize,
    max_depth: Option<usize>,
    learning_rate: f64,
    reg_lambda: f64,
    reg_alpha: f64,
    gamma: f64,
    min_child_weight: f64,
    subsample: f64,
    colsample_bytree: f64,
}

/// Boosted trees of `o` outputs, of one for two classes, else one for each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BoostedTrees {
    /// The logits without trees, `[o]`: xgboost's `base_score`.
    base: Vec<f64>,
    /// Round by round, one for each output.
    trees: Vec<DecisionTree>,
    /// What the splits at each column gained in all, `[f]`.
    gains: Vec<f64>,
}

impl BoostedTrees {
    /// Fits round after round, each on the gradient that the rounds before it leave. What is
    /// missing is NaN.
    pub(super) fn fit(
        settings: &BoostingSettings,
        training: TrainingSet<'_>,
        run: FitRun<'_>,
    ) -> Result<BoostedTrees> {
        let TrainingSet { x, labels } = training;
        let grower = RoundGrower::new(settings, training);
        let mut boosted = BoostedTrees {
            base: base_logits(labels),
            trees: Vec::new(),
            gains: vec![0.0; x.f],
        };

        let outputs = boosted.base.len();
        let mut logits = boosted.base.repeat(x.n);
        for round in 0..settings.n_estimators {
            run.stop.check()?;
            let sample = grower.sample_round(run.seed, round);
            // All trees of a round are grown on the probabilities before it, as in xgboost.
            let probabilities = output_probabilities(&logits, outputs);
            for (output, class) in output_classes(labels.class_count).into_iter().enumerate() {
                let of_output = probabilities.iter().copied().skip(output).step_by(outputs);
                let p: Vec<f64> = of_output.collect();
                let grown = grower.grow_tree(&sample, &p, labels, class);

                add_scores(&mut logits, &grown.tree, x, output, outputs);
                add_scaled(&mut boosted.gains, 1.0, &grown.gains);
                boosted.trees.push(grown.tree);
            }
        }
        Ok(boosted)
    }

    /// The logits of one row, `[o]`.
    fn row_logits(&self, row: &[f64]) -> Vec<f64> {
        let outputs = self.base.len();
        let mut logits = self.base.clone();
        for (at, tree) in self.trees.iter().enumerate() {
            logits[at % outputs] += tree.score_row(|column| row[column]);
        }
        logits
    }
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

/// The probability of each output's class, `[n, o]`, from logits `[n, o]`.
fn output_probabilities(logits: &[f64], outputs: usize) -> Vec<f64> {
    let mut values = logits.to_vec();
    if outputs == 1 {
        values.iter_mut().for_each(|value| *value = sigmoid(*value));
    } else {
        values.chunks_exact_mut(outputs).for_each(softmax_in_place);
    }
    values
}

/// The rows and the columns that a round looks at, each ascending.
struct RoundSample {
    rows: Vec<usize>,
    columns: Vec<usize>,
}

/// What all rounds share.
struct RoundGrower {
    columns: Vec<BinnedColumn>,
    settings: GrowSettings,
    n: usize,
    rows_a_round: usize,
    columns_a_round: usize,
}

impl RoundGrower {
    fn new(settings: &BoostingSettings, training: TrainingSet<'_>) -> RoundGrower {
        let x = training.x;
        let rule = SplitRule {
            reg_lambda: settings.reg_lambda,
            reg_alpha: settings.reg_alpha,
            min_gain: settings.gamma.max(MIN_GAIN),
            min_child_weight: settings.min_child_weight,
            unit: GRADIENT_UNIT * training.labels.largest_weight(),
        };
        RoundGrower {
            columns: bin_columns(x),
            settings: GrowSettings {
                max_depth: settings.max_depth.unwrap_or(usize::MAX),
                rule,
                learning_rate: settings.learning_rate,
            },
            n: x.n,
            rows_a_round: share_of(settings.subsample, x.n),
            columns_a_round: share_of(settings.colsample_bytree, x.f),
        }
    }

    fn sample_round(&self, seed: u64, round: usize) -> RoundSample {
        let f = self.columns.len();
        RoundSample {
            rows: sample_places(self.n, self.rows_a_round, seed, "boosted rows", round),
            columns: sample_places(f, self.columns_a_round, seed, "boosted columns", round),
        }
    }

    /// A tree on a round's rows and columns, where the rows have the probabilities `p` `[n]` of
    /// `class`.
    ///
    /// The derivatives by the logit of `class` are `p - y` and `p * (1 - p)`. Of a softmax xgboost
    /// takes twice the second, a bound of what all logits together do.
    fn grow_tree(
        &self,
        sample: &RoundSample,
        p: &[f64],
        labels: ClassLabels<'_>,
        class: u32,
    ) -> GrownTree {
        let factor = if output_count(labels.class_count) == 1 {
            1.0
        } else {
            2.0
        };
        let unit = self.settings.rule.unit;
        let mut rows = Vec::with_capacity(sample.rows.len());
        for row in sample.rows.iter().copied() {
            let p = p[row];
            let weight = labels.weights[row];
            let gradient = weight * (p - f64::from(labels.y[row] == class));
            let hessian = weight * factor * p * (1.0 - p);
            rows.push(SampledRow::new(row, gradient, hessian, unit));
        }
        let choice = SplitColumns::Fixed(&sample.columns);
        grow_tree(&self.settings, &self.columns, choice, rows)
    }
}

/// Adds what a tree says of each row of `x` to one of its `outputs` logits, `[n, o]`.
fn add_scores(
    logits: &mut [f64],
    tree: &DecisionTree,
    x: &ColumnMatrix,
    output: usize,
    outputs: usize,
) {
    let chunks = logits.par_chunks_mut(ROWS_AT_ONCE * outputs);
    chunks.enumerate().for_each(|(chunk, logits)| {
        let of_output = logits.iter_mut().skip(output).step_by(outputs);
        for (at, logit) in of_output.enumerate() {
            let row = chunk * ROWS_AT_ONCE + at;
            *logit += tree.score_row(|column| x.values[column * x.n + row]);
        }
    });
}

/// How many of `count` a share is; one at least.
fn share_of(share: f64, count: usize) -> usize {
    ((share * count as f64) as usize).max(1)
}

/// The places below `count` that are drawn for a round, ascending.
fn sample_places(count: usize, drawn: usize, seed: u64, name: &str, round: usize) -> Vec<usize> {
    if drawn == count {
        return (0..count).collect();
    }
    let mut generator = crate::seed::generator(seed, name, &[round as i64]);
    let mut places = sample(&mut generator, count, drawn).into_vec();
    places.sort_unstable();
    places
}

impl Classifier for BoostedTrees {
    fn probabilities(&self, x: &ColumnMatrix) -> Vec<f64> {
        let outputs = self.base.len();
        let logits: Vec<f64> = x
            .to_rows()
            .chunks_exact(x.f)
            .flat_map(|row| self.row_logits(row))
            .collect();
        let values = output_probabilities(&logits, outputs);
        if outputs == 1 {
            values.iter().flat_map(|p| [1.0 - p, *p]).collect()
        } else {
            values
        }
    }

    fn importances(&self, _f: usize) -> Option<ColumnImportances> {
        Some(ColumnImportances::from_gains(&self.gains))
    }

    fn check(&self, f: usize, k: usize) -> Result<()> {
        let outputs = output_count(k);
        ensure!(
            self.base.len() == outputs,
            "{} for {k} classes",
            counted(self.base.len(), "output")
        );
        ensure!(
            self.trees.len().is_multiple_of(outputs),
            "a round has not a tree for each of {}",
            counted(outputs, "output")
        );
        ensure!(
            self.gains.len() == f,
            "{} for {}",
            counted(self.gains.len(), "gain"),
            counted(f, "column")
        );
        self.trees.iter().try_for_each(|tree| tree.check(f))
    }
}
