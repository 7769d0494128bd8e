//! Columns and classes → gradient boosted trees.
//!
//! The trees are forust's, on columns in at most 256 bins. The rounds are our own: they can be
//! stopped, and they serve more than two classes with a tree for each class a round, on the
//! gradient of the softmax, as xgboost's `multi:softprob`.

use anyhow::{Context as _, Result, ensure};
use forust_ml::Matrix as ForustMatrix;
use forust_ml::binning::{BinnedData, bin_matrix};
use forust_ml::constraints::ConstraintMap;
use forust_ml::gradientbooster::GrowPolicy;
use forust_ml::sampler::SampleMethod;
use forust_ml::splitter::MissingImputerSplitter;
use forust_ml::tree::Tree as ForustTree;
use rand::seq::index::sample;
use serde::{Deserialize, Serialize};

use super::classifier::{Classifier, FitRun, TrainingSet};
use super::importances::ColumnImportances;
use super::solvers::labels::{ClassLabels, output_classes, output_count};
use super::solvers::logits::{sigmoid, softmax_in_place};
use super::solvers::matrix::ColumnMatrix;
use super::tree::{DecisionTree, TreeNode};
use crate::output::counted;

/// xgboost's default `max_bin`.
const MAX_BINS: u16 = 256;
/// The least second derivative of a row's loss, xgboost's own bound: a row that is certain still
/// weighs something.
const MIN_HESSIAN: f64 = 1e-16;

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
        let grower = RoundGrower::new(settings, x)?;
        let rows = x.to_rows();
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
                let of_output = probabilities.iter().skip(output).step_by(outputs);
                let gradients = BoostingGradients::new(of_output, labels.y, class, outputs);
                let tree = grower.grow_tree(&sample, &gradients, &mut boosted.gains);

                let of_output = logits.iter_mut().skip(output).step_by(outputs);
                for (logit, row) in of_output.zip(rows.chunks_exact(x.f)) {
                    *logit += tree.score_row(row);
                }
                boosted.trees.push(tree);
            }
        }
        Ok(boosted)
    }

    /// The logits of one row, `[o]`.
    fn row_logits(&self, row: &[f64]) -> Vec<f64> {
        let outputs = self.base.len();
        let mut logits = self.base.clone();
        for (at, tree) in self.trees.iter().enumerate() {
            logits[at % outputs] += tree.score_row(row);
        }
        logits
    }
}

/// The logits that give every row the shares of the classes, `[o]`.
fn base_logits(labels: ClassLabels<'_>) -> Vec<f64> {
    let mut counts = vec![0.0; labels.class_count];
    for class in labels.y {
        counts[*class as usize] += 1.0;
    }

    // One logit stands for the second class alone: its odds.
    if let [first, second] = counts[..] {
        return vec![f64::ln(second / first)];
    }
    let rows = labels.y.len() as f64;
    counts.iter().map(|count| f64::ln(count / rows)).collect()
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

/// The derivatives of each row's loss by one logit, `[n]` each.
struct BoostingGradients {
    gradient: Vec<f32>,
    hessian: Vec<f32>,
}

impl BoostingGradients {
    /// The derivatives by the logit of `class`, whose probabilities are `probabilities` `[n]`: the
    /// gradient is `p - y` and the second derivative `p * (1 - p)`. Of a softmax xgboost takes
    /// twice that, a bound of what all logits together do.
    fn new<'a>(
        probabilities: impl Iterator<Item = &'a f64>,
        y: &[u32],
        class: u32,
        outputs: usize,
    ) -> BoostingGradients {
        let factor = if outputs == 1 { 1.0 } else { 2.0 };
        let mut gradients = BoostingGradients {
            gradient: Vec::with_capacity(y.len()),
            hessian: Vec::with_capacity(y.len()),
        };
        for (p, y) in probabilities.zip(y) {
            let truth = f64::from(*y == class);
            gradients.gradient.push((p - truth) as f32);
            let hessian = (factor * p * (1.0 - p)).max(MIN_HESSIAN);
            gradients.hessian.push(hessian as f32);
        }
        gradients
    }
}

/// The rows and the columns that a round looks at, each ascending.
struct RoundSample {
    rows: Vec<usize>,
    columns: Vec<usize>,
}

/// What all rounds share.
struct RoundGrower {
    binned: BinnedData<f64>,
    splitter: MissingImputerSplitter,
    n: usize,
    f: usize,
    max_depth: usize,
    rows_a_round: usize,
    columns_a_round: usize,
}

impl RoundGrower {
    fn new(settings: &BoostingSettings, x: &ColumnMatrix) -> Result<RoundGrower> {
        let columns = ForustMatrix::new(&x.values, x.n, x.f);
        let binned = bin_matrix(&columns, &vec![1.0; x.n], MAX_BINS, f64::NAN, false)
            .context("cannot bin the columns")?;
        let splitter = MissingImputerSplitter {
            l1: settings.reg_alpha as f32,
            l2: settings.reg_lambda as f32,
            max_delta_step: 0.0,
            gamma: settings.gamma as f32,
            min_leaf_weight: settings.min_child_weight as f32,
            learning_rate: settings.learning_rate as f32,
            allow_missing_splits: true,
            constraints_map: ConstraintMap::new(),
        };
        Ok(RoundGrower {
            binned,
            splitter,
            n: x.n,
            f: x.f,
            max_depth: settings.max_depth.unwrap_or(usize::MAX),
            rows_a_round: share_of(settings.subsample, x.n),
            columns_a_round: share_of(settings.colsample_bytree, x.f),
        })
    }

    fn sample_round(&self, seed: u64, round: usize) -> RoundSample {
        RoundSample {
            rows: sample_places(self.n, self.rows_a_round, seed, "boosted rows", round),
            columns: sample_places(self.f, self.columns_a_round, seed, "boosted columns", round),
        }
    }

    /// A tree on a round's rows and columns; adds what its splits gain to `gains` `[f]`.
    fn grow_tree(
        &self,
        sample: &RoundSample,
        gradients: &BoostingGradients,
        gains: &mut [f64],
    ) -> DecisionTree {
        let mut grown = ForustTree::new();
        let method = if sample.rows.len() == self.n {
            SampleMethod::None
        } else {
            SampleMethod::Random
        };
        grown.fit(
            &ForustMatrix::new(&self.binned.binned_data, self.n, self.f),
            sample.rows.clone(),
            &sample.columns,
            &self.binned.cuts,
            &gradients.gradient,
            &gradients.hessian,
            &self.splitter,
            usize::MAX,
            self.max_depth,
            false,
            &method,
            &GrowPolicy::DepthWise,
        );

        DecisionTree::new(|number| {
            let node = &grown.nodes[number];
            if node.is_leaf {
                return TreeNode::Leaf(f64::from(node.weight_value));
            }
            // Rounding can make the gain of a useless split slightly negative.
            gains[node.split_feature] += f64::from(node.split_gain).max(0.0);
            TreeNode::Split {
                feature: node.split_feature,
                below: node.split_value,
                yes: node.left_child,
                no: node.right_child,
                missing: node.missing_node == node.left_child,
            }
        })
    }
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
