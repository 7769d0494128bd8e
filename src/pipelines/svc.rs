//! Support vector machines with class probabilities.
//!
//! Each pair of classes has a machine, and a sigmoid over its decision values. The sigmoid is
//! learnt from rows held out in five folds, as in scikit-learn's `SVC(probability=True)` and
//! libsvm's `svm_binary_svc_probability`.

use anyhow::{Context as _, Result, ensure};
use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};

use super::classifier::{Classifier, FitRun, TrainingSet};
use super::importances::ColumnImportances;
use super::solvers::coupling::couple_pairs;
use super::solvers::kernel::KernelFunction;
use super::solvers::matrix::{ColumnMatrix, add_scaled};
use super::solvers::platt::{PlattSigmoid, fit_sigmoid};
use super::solvers::smo::{SmoSettings, SmoSolution, TwoClassRows, solve_dual};
use super::solvers::stop::StopSignal;
use super::statistics::MeanSpread;
use poolcast_base::output::counted;
use poolcast_base::stats::stable_sigmoid;
use poolcast_tables::CrossValidationFold;

/// Number of folds to learn the sigmoid from, as in libsvm.
const SIGMOID_FOLDS: usize = 5;
/// Minimum distance of a pair's probability from 0 and 1, as coupling would otherwise divide by 0:
/// libsvm's `min_prob`.
const MIN_PROBABILITY: f64 = 1e-7;

/// Hyper-parameters of the pipeline `svc`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct SvcSettings {
    #[serde(rename = "C")]
    c: f64,
    #[serde(flatten)]
    kernel: KernelChoice,
    shrinking: bool,
}

/// Requested kernel.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(tag = "kernel", rename_all = "lowercase")]
enum KernelChoice {
    Linear,
    Rbf { gamma: GammaChoice },
}

/// Parameter `gamma` of the radial basis function.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum GammaChoice {
    Value(f64),
    Rule(GammaRule),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum GammaRule {
    /// One over the number of columns times the variance of all numbers.
    Scale,
}

impl KernelChoice {
    /// Returns the kernel for the columns `x`.
    fn kernel(self, x: &ColumnMatrix) -> KernelFunction {
        match self {
            KernelChoice::Linear => KernelFunction::Linear,
            KernelChoice::Rbf {
                gamma: GammaChoice::Value(gamma),
            } => KernelFunction::Rbf { gamma },
            KernelChoice::Rbf {
                gamma: GammaChoice::Rule(GammaRule::Scale),
            } => KernelFunction::Rbf {
                gamma: scaled_gamma(x),
            },
        }
    }
}

/// Returns scikit-learn's `gamma="scale"`.
fn scaled_gamma(x: &ColumnMatrix) -> f64 {
    let variance = MeanSpread::new(&x.values).variance;
    if variance > 0.0 {
        1.0 / (x.f as f64 * variance)
    } else {
        1.0
    }
}

/// A support vector machine for each pair of classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SupportVectorClassifier {
    kernel: KernelFunction,
    /// Machines of classes 0 and 1, 0 and 2, ... 1 and 2, ...
    machines: Vec<PairMachine>,
}

/// The machine of one pair of classes. Its decision is above 0 for the second class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PairMachine {
    /// Support vectors, `[s, f]`. A linear machine only has their weighted sum.
    vectors: Vec<f64>,
    /// Weights of the support vectors, `[s]`.
    weights: Vec<f64>,
    rho: f64,
    /// Slope of the logit `slope * decision + offset`.
    slope: f64,
    offset: f64,
}

impl SupportVectorClassifier {
    /// Fits a machine for each pair of classes.
    pub(super) fn fit(
        settings: SvcSettings,
        training: TrainingSet<'_>,
        run: FitRun<'_>,
    ) -> Result<SupportVectorClassifier> {
        let kernel = settings.kernel.kernel(training.x);
        let smo = SmoSettings {
            kernel,
            c: settings.c,
            shrinking: settings.shrinking,
        };
        let rows = training.x.to_rows();

        let mut machines = Vec::new();
        for (first, second) in class_pairs(training.labels.class_count) {
            let classes = PairClasses {
                first: first as u32,
                second: second as u32,
            };
            let pair = PairRows::new(&rows, training, classes);
            machines.push(pair.fit(smo, run)?);
        }
        Ok(SupportVectorClassifier { kernel, machines })
    }

    /// Computes the probability of each of `k` classes for one row, `[k]`.
    fn row_probabilities(&self, row: &[f64], k: usize) -> Vec<f64> {
        if k == 2 {
            let p = self.machines[0].probability(self.kernel, row);
            return vec![1.0 - p, p];
        }

        // The diagonal belongs to no pair and is never read.
        let mut pairs = vec![0.5; k * k];
        for ((first, second), machine) in class_pairs(k).zip(&self.machines) {
            let p = machine
                .probability(self.kernel, row)
                .clamp(MIN_PROBABILITY, 1.0 - MIN_PROBABILITY);
            pairs[second * k + first] = p;
            pairs[first * k + second] = 1.0 - p;
        }
        couple_pairs(&pairs, k)
    }
}

impl Classifier for SupportVectorClassifier {
    fn probabilities(&self, x: &ColumnMatrix) -> Vec<f64> {
        let k = class_count(self.machines.len());
        x.to_rows()
            .chunks_exact(x.f)
            .flat_map(|row| self.row_probabilities(row, k))
            .collect()
    }

    fn importances(&self, f: usize) -> Option<ColumnImportances> {
        if self.kernel != KernelFunction::Linear {
            return None;
        }
        let coefficients: Vec<f64> = self
            .machines
            .iter()
            .flat_map(|machine| machine.coefficients(f))
            .collect();
        Some(ColumnImportances::from_coefficients(&coefficients, f))
    }

    fn check(&self, f: usize, k: usize) -> Result<()> {
        ensure!(
            self.machines.len() == k * (k - 1) / 2,
            "{} for {k} classes",
            counted(self.machines.len(), "machine")
        );
        ensure!(
            self.machines
                .iter()
                .all(|machine| machine.vectors.len() == machine.weights.len() * f),
            "a machine has different numbers of support vectors and weights"
        );
        Ok(())
    }
}

impl PairMachine {
    /// Returns the decision value, which is above 0 for the second class.
    fn decision(&self, kernel: KernelFunction, row: &[f64]) -> f64 {
        self.vectors
            .chunks_exact(row.len())
            .zip(&self.weights)
            .map(|(vector, weight)| weight * kernel.evaluate(vector, row))
            .sum::<f64>()
            - self.rho
    }

    /// Returns the probability of the second class.
    fn probability(&self, kernel: KernelFunction, row: &[f64]) -> f64 {
        stable_sigmoid(self.slope * self.decision(kernel, row) + self.offset)
    }

    /// Returns the coefficients of a linear machine, from its only vector. Without a vector, they
    /// are 0.
    fn coefficients(&self, f: usize) -> Vec<f64> {
        if self.vectors.is_empty() {
            return vec![0.0; f];
        }
        self.vectors
            .iter()
            .map(|value| value * self.weights[0])
            .collect()
    }
}

/// Iterates over all pairs of classes below `k`.
fn class_pairs(k: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..k).flat_map(move |first| (first + 1..k).map(move |second| (first, second)))
}

/// Returns the number of classes that have `pairs` pairs.
fn class_count(pairs: usize) -> usize {
    (2..).find(|k| k * (k - 1) / 2 >= pairs).unwrap_or(2)
}

/// The two classes of a pair.
#[derive(Debug, Clone, Copy)]
struct PairClasses {
    first: u32,
    second: u32,
}

impl PairClasses {
    fn contains(self, class: u32) -> bool {
        class == self.first || class == self.second
    }
}

/// Training rows of two classes.
struct PairRows {
    /// Rows, `[n, f]`.
    rows: Vec<f64>,
    f: usize,
    /// Side of each row, `[n]`: -1 for the first class, 1 for the second.
    signs: Vec<f64>,
    /// Weight of each row, `[n]`.
    weights: Vec<f64>,
    classes: PairClasses,
}

impl PairRows {
    /// Selects the training rows of the two classes from all training rows `rows` `[n, f]`.
    fn new(rows: &[f64], training: TrainingSet<'_>, classes: PairClasses) -> PairRows {
        let f = training.x.f;
        let mut pair = PairRows {
            rows: Vec::new(),
            f,
            signs: Vec::new(),
            weights: Vec::new(),
            classes,
        };
        let labels = training.labels;
        for (at, (row, y)) in rows.chunks_exact(f).zip(labels.y).enumerate() {
            if classes.contains(*y) {
                pair.rows.extend_from_slice(row);
                pair.weights.push(labels.weights[at]);
                pair.signs
                    .push(if *y == classes.second { 1.0 } else { -1.0 });
            }
        }
        pair
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.rows[i * self.f..][..self.f]
    }

    /// Fits the machine on all rows, with its sigmoid.
    fn fit(&self, smo: SmoSettings, run: FitRun<'_>) -> Result<PairMachine> {
        let PlattSigmoid { slope, offset } = self.fit_sigmoid(smo, run)?;
        let all: Vec<usize> = (0..self.signs.len()).collect();
        Ok(PairMachine {
            slope,
            offset,
            ..self.fit_machine(smo, &all, run.stop)?
        })
    }

    /// Fits the machine on the rows at the indices `places`, without a sigmoid. If these are all of
    /// one class, the machine predicts that class for every row.
    fn fit_machine(
        &self,
        smo: SmoSettings,
        places: &[usize],
        stop: StopSignal<'_>,
    ) -> Result<PairMachine> {
        let rows: Vec<f64> = places.iter().flat_map(|i| self.row(*i)).copied().collect();
        let signs: Vec<f64> = places.iter().map(|i| self.signs[*i]).collect();
        let weights: Vec<f64> = places.iter().map(|i| self.weights[*i]).collect();
        let first_sign = *signs.first().context("no rows to fit")?;

        let solution = if signs.iter().all(|sign| *sign == first_sign) {
            SmoSolution {
                weights: Vec::new(),
                rho: -first_sign,
            }
        } else {
            let two_classes = TwoClassRows {
                rows: &rows,
                f: self.f,
                signs: &signs,
                weights: &weights,
            };
            solve_dual(two_classes, smo, stop)?
        };

        let mut machine = PairMachine {
            vectors: Vec::new(),
            weights: Vec::new(),
            rho: solution.rho,
            slope: 1.0,
            offset: 0.0,
        };
        // Only rows with a nonzero weight, the support vectors, enter the decision.
        for (row, weight) in rows.chunks_exact(self.f).zip(solution.weights) {
            if weight != 0.0 {
                machine.vectors.extend_from_slice(row);
                machine.weights.push(weight);
            }
        }
        if smo.kernel == KernelFunction::Linear {
            machine.merge_vectors(self.f);
        }
        Ok(machine)
    }

    /// Fits the sigmoid to decision values from machines that were not trained on the row.
    fn fit_sigmoid(&self, smo: SmoSettings, run: FitRun<'_>) -> Result<PlattSigmoid> {
        let mut decisions = vec![0.0; self.signs.len()];
        for fold in self.stratified_folds(run.seed) {
            // With fewer rows than folds, some folds have no rows to test or to learn from.
            if fold.test.is_empty() || fold.train.is_empty() {
                continue;
            }
            let machine = self.fit_machine(smo, &fold.train, run.stop)?;
            for i in fold.test {
                decisions[i] = machine.decision(smo.kernel, self.row(i));
            }
        }
        Ok(fit_sigmoid(&decisions, &self.signs))
    }

    /// Returns folds with equal shares of both classes.
    fn stratified_folds(&self, seed: u64) -> Vec<CrossValidationFold> {
        let parts = [
            i64::from(self.classes.first),
            i64::from(self.classes.second),
        ];
        let mut generator = poolcast_base::seed::generator(seed, "svc folds", &parts);
        let mut fold_of_row = vec![0; self.signs.len()];
        for sign in [-1.0, 1.0] {
            let mut rows: Vec<usize> = (0..fold_of_row.len())
                .filter(|i| self.signs[*i] == sign)
                .collect();
            rows.shuffle(&mut generator);
            for (at, row) in rows.into_iter().enumerate() {
                fold_of_row[row] = at % SIGMOID_FOLDS;
            }
        }
        CrossValidationFold::from_assignment(&fold_of_row, SIGMOID_FOLDS)
    }
}

impl PairMachine {
    /// Replaces the support vectors `[s, f]` by their weighted sum, which has the same product with
    /// a row.
    fn merge_vectors(&mut self, f: usize) {
        let mut sum = vec![0.0; f];
        for (vector, weight) in self.vectors.chunks_exact(f).zip(&self.weights) {
            add_scaled(&mut sum, *weight, vector);
        }
        self.vectors = sum;
        self.weights = vec![1.0];
    }
}
