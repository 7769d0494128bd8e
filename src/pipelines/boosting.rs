//! Columns and classes → gradient boosted trees.
//!
//! The trees are forust's, on columns in at most 256 bins; the rounds are our own, so that they can be stopped, and have more
//! than two classes: a tree for each class a round, on the gradient of the softmax, as xgboost's `multi:softprob`.

use anyhow::{Context as _, Result, ensure};
use forust_ml::Matrix as Columns;
use forust_ml::binning::{BinnedData, bin_matrix};
use forust_ml::constraints::ConstraintMap;
use forust_ml::gradientbooster::GrowPolicy;
use forust_ml::sampler::SampleMethod;
use forust_ml::splitter::MissingImputerSplitter;
use forust_ml::tree::Tree as Grown;
use rand::seq::index::sample;
use serde::{Deserialize, Serialize};

use super::importances::ColumnImportances;
use super::matrix::{Matrix, sigmoid, softmax};
use super::model::{Fitting, Model};
use super::parameters::Settings;
use super::stop::ask;
use super::tree::{Node, Tree};

const BINS: u16 = 256;
/// A row that is certain still weighs something: xgboost's own bound.
const LEAST_HESSIAN: f64 = 1e-16;

/// Boosted trees of `o` outputs, of one for two classes, else one for each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Boosted {
    /// The logits without trees, `[o]`.
    base: Vec<f64>,
    /// Round by round, one for each output.
    trees: Vec<Tree>,
    /// What the splits at each column gained in all, `[f]`.
    gains: Vec<f64>,
}

impl Boosted {
    /// Fits on `x`, where what is missing is NaN, with classes `y` below `k`.
    pub(super) fn fit(x: &Matrix, fitting: Fitting<'_>) -> Result<Boosted> {
        let Fitting {
            settings,
            y,
            k,
            seed,
            stop,
        } = fitting;
        let rounds = Rounds::new(settings, x)?;
        let rows = x.by_rows();
        let mut boosted = Boosted {
            base: base(y, k),
            trees: Vec::new(),
            gains: vec![0.0; x.f],
        };
        let outputs = boosted.base.len();
        let mut logits: Vec<f64> = y.iter().flat_map(|_| boosted.base.clone()).collect();
        for round in 0..settings.whole("n_estimators")? {
            ask(stop)?;
            let (chosen, columns) = rounds.choose(seed, round);
            let probabilities = probabilities_of(&logits, outputs);
            for output in 0..outputs {
                let (gradient, hessian) = slopes(&probabilities, y, output, outputs);
                let tree =
                    rounds.grow(&chosen, &columns, (&gradient, &hessian), &mut boosted.gains);
                let leaves = rows.chunks_exact(x.f).map(|row| tree.score(row));
                logits
                    .iter_mut()
                    .skip(output)
                    .step_by(outputs)
                    .zip(leaves)
                    .for_each(|(logit, leaf)| *logit += leaf);
                boosted.trees.push(tree);
            }
        }
        Ok(boosted)
    }
}

/// The logits that give every row the shares of the classes, `[o]`.
fn base(y: &[u32], k: usize) -> Vec<f64> {
    let count = |class: usize| y.iter().filter(|y| **y as usize == class).count() as f64;
    if k == 2 {
        vec![(count(1) / count(0)).ln()]
    } else {
        (0..k).map(|c| (count(c) / y.len() as f64).ln()).collect()
    }
}

/// The probability of each output's class, `[n, o]`.
fn probabilities_of(logits: &[f64], outputs: usize) -> Vec<f64> {
    let mut values = logits.to_vec();
    if outputs == 1 {
        values.iter_mut().for_each(|value| *value = sigmoid(*value));
    } else {
        values.chunks_exact_mut(outputs).for_each(softmax);
    }
    values
}

/// The first and second derivatives of each row's loss by one logit, `[n]` each; the second is xgboost's bound for softmax.
fn slopes(probabilities: &[f64], y: &[u32], output: usize, outputs: usize) -> (Vec<f32>, Vec<f32>) {
    let (class, factor) = if outputs == 1 {
        (1, 1.0)
    } else {
        (output as u32, 2.0)
    };
    let own = probabilities.iter().skip(output).step_by(outputs);
    let slope = |(p, y): (&f64, &u32)| {
        let truth = f64::from(*y == class);
        (
            (p - truth) as f32,
            (factor * p * (1.0 - p)).max(LEAST_HESSIAN) as f32,
        )
    };
    own.zip(y).map(slope).unzip()
}

/// What all rounds share.
struct Rounds {
    binned: BinnedData<f64>,
    splitter: MissingImputerSplitter,
    n: usize,
    f: usize,
    max_depth: usize,
    /// Rows and columns of a round.
    sizes: (usize, usize),
}

impl Rounds {
    fn new(settings: Settings<'_>, x: &Matrix) -> Result<Rounds> {
        let real = |name: &str| settings.real(name).map(|value| value as f32);
        let columns = Columns::new(&x.x, x.n, x.f);
        let binned = bin_matrix(&columns, &vec![1.0; x.n], BINS, f64::NAN, false)
            .context("cannot bin the columns")?;
        let splitter = MissingImputerSplitter {
            l1: real("reg_alpha")?,
            l2: real("reg_lambda")?,
            max_delta_step: 0.0,
            gamma: real("gamma")?,
            min_leaf_weight: real("min_child_weight")?,
            learning_rate: real("learning_rate")?,
            allow_missing_splits: true,
            constraints_map: ConstraintMap::new(),
        };
        let share = |name: &str, of: usize| {
            settings
                .real(name)
                .map(|share| ((share * of as f64) as usize).max(1))
        };
        let sizes = (share("subsample", x.n)?, share("colsample_bytree", x.f)?);
        let max_depth = settings
            .number("max_depth")
            .map_or(usize::MAX, |depth| depth as usize);
        Ok(Rounds {
            binned,
            splitter,
            n: x.n,
            f: x.f,
            max_depth,
            sizes,
        })
    }

    /// The rows and the columns of a round, ascending.
    fn choose(&self, seed: u64, round: usize) -> (Vec<usize>, Vec<usize>) {
        let choose = |name: &str, of: usize, amount: usize| {
            if amount == of {
                return (0..of).collect();
            }
            let mut generator = crate::seed::generator(seed, name, &[round as i64]);
            let mut chosen = sample(&mut generator, of, amount).into_vec();
            chosen.sort_unstable();
            chosen
        };
        (
            choose("boosted rows", self.n, self.sizes.0),
            choose("boosted columns", self.f, self.sizes.1),
        )
    }

    /// A tree on some rows and columns by the derivatives of each row's loss; adds what its splits gain to `gains` `[f]`.
    fn grow(
        &self,
        rows: &[usize],
        columns: &[usize],
        (gradient, hessian): (&[f32], &[f32]),
        gains: &mut [f64],
    ) -> Tree {
        let mut grown = Grown::new();
        let method = if rows.len() == self.n {
            SampleMethod::None
        } else {
            SampleMethod::Random
        };
        grown.fit(
            &Columns::new(&self.binned.binned_data, self.n, self.f),
            rows.to_vec(),
            columns,
            &self.binned.cuts,
            gradient,
            hessian,
            &self.splitter,
            usize::MAX,
            self.max_depth,
            false,
            &method,
            &GrowPolicy::DepthWise,
        );
        Tree::new(|at| {
            let node = &grown.nodes[at];
            if node.is_leaf {
                return Node::Leaf(f64::from(node.weight_value));
            }
            gains[node.split_feature] += f64::from(node.split_gain).max(0.0);
            let (yes, no) = (node.left_child, node.right_child);
            let missing = node.missing_node == yes;
            Node::Split {
                feature: node.split_feature,
                below: node.split_value,
                yes,
                no,
                missing,
            }
        })
    }
}

impl Model for Boosted {
    fn probabilities(&self, x: &Matrix) -> Vec<f64> {
        let outputs = self.base.len();
        let of_row = |row: &[f64]| {
            let mut logits = self.base.clone();
            self.trees
                .iter()
                .enumerate()
                .for_each(|(at, tree)| logits[at % outputs] += tree.score(row));
            logits
        };
        let logits: Vec<f64> = x.by_rows().chunks_exact(x.f).flat_map(of_row).collect();
        let values = probabilities_of(&logits, outputs);
        if outputs == 1 {
            values.iter().flat_map(|p| [1.0 - p, *p]).collect()
        } else {
            values
        }
    }

    fn importances(&self, _f: usize) -> Option<ColumnImportances> {
        Some(ColumnImportances::of_gains(&self.gains))
    }

    fn check(&self, f: usize, k: usize) -> Result<()> {
        let outputs = if k == 2 { 1 } else { k };
        ensure!(
            self.base.len() == outputs,
            "{} for {k} classes",
            crate::output::counted(self.base.len(), "output")
        );
        ensure!(
            self.trees.len().is_multiple_of(outputs),
            "a round has not a tree for each of {}",
            crate::output::counted(outputs, "output")
        );
        ensure!(
            self.gains.len() == f,
            "{} for {}",
            crate::output::counted(self.gains.len(), "gain"),
            crate::output::counted(f, "column")
        );
        self.trees.iter().try_for_each(|tree| tree.check(f))
    }
}
