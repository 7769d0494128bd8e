//! A multilayer perceptron for classes or numbers, trained with candle.
//!
//! Training follows scikit-learn's `MLPClassifier` and `MLPRegressor`. It minimises the mean log
//! loss or half the mean squared error, plus `alpha / 2` times the squared weights divided by the
//! rows of the batch. The initial weights have Glorot's uniform distribution. The steps are Adam's,
//! or have Nesterov's momentum. Training stops after `max_iter` epochs, or once the loss has not
//! fallen by 1e-4 for ten epochs. The learning rate schedules apply to both solvers, whereas
//! scikit-learn applies them to `sgd` only. Numbers are first scaled to mean 0 and standard
//! deviation 1.

mod activation;
mod dense_layer;
mod optimizer;
mod trainable;

use anyhow::{Context as _, Result, ensure};
use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};

use self::activation::ActivationFunction;
use self::dense_layer::DenseLayer;
use self::optimizer::{NetworkOptimizer, OptimizerSettings};
use self::trainable::{NetworkLoss, TrainableNetwork, TrainingRows};
use super::classifier::{Classifier, FitRun, TrainingSet};
use super::importances::ColumnImportances;
use super::regressor::{NumberTrainingSet, Regressor};
use super::scaler::{ColumnScaling, ScalerKind};
use super::solvers::labels::{ClassLabels, output_classes, output_count};
use super::solvers::logits::class_probabilities;
use super::solvers::matrix::ColumnMatrix;
use poolcast_base::output::counted;
use poolcast_tables::NumberLoss;

/// Epochs without improvement before training stops: scikit-learn's default `n_iter_no_change`.
const PATIENCE: usize = 10;
/// Minimum improvement of the loss: scikit-learn's default `tol`.
const MIN_GAIN: f64 = 1e-4;

/// Hyper-parameters of the pipeline `nn`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct PerceptronSettings {
    hidden_layer_sizes: Vec<usize>,
    activation: ActivationFunction,
    alpha: f64,
    #[serde(flatten)]
    optimizer: OptimizerSettings,
    batch_size: usize,
    max_iter: usize,
}

/// A fitted network, with one output for a number or two classes, otherwise one per class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct MultilayerPerceptron {
    activation: ActivationFunction,
    layers: Vec<DenseLayer>,
}

impl MultilayerPerceptron {
    /// Trains a network that predicts classes.
    pub(super) fn fit_classes(
        settings: &PerceptronSettings,
        training: TrainingSet<'_>,
        run: FitRun<'_>,
    ) -> Result<MultilayerPerceptron> {
        let TrainingSet { x, labels } = training;
        let rows = TrainingRows {
            rows: single_precision(&x.to_rows()),
            f: x.f,
            truth: one_hot(labels),
            outputs: output_count(labels.class_count),
            weights: labels.weights,
            loss: NetworkLoss::Log,
        };
        MultilayerPerceptron::train(settings, &rows, run)
    }

    /// Trains a network until its loss no longer falls, for `max_iter` epochs at most.
    fn train(
        settings: &PerceptronSettings,
        rows: &TrainingRows<'_>,
        run: FitRun<'_>,
    ) -> Result<MultilayerPerceptron> {
        let mut widths = vec![rows.f];
        widths.extend(&settings.hidden_layer_sizes);
        widths.push(rows.outputs);

        let network = TrainableNetwork::new(settings.activation, &widths, run.seed)?;
        let mut optimizer = NetworkOptimizer::new(settings.optimizer, network.parameters())?;

        let mut plateau = LossPlateau::new();
        for epoch in 0..settings.max_iter {
            let loss = train_epoch(settings, &network, &mut optimizer, rows, epoch, run)?;
            ensure!(
                loss.is_finite(),
                "the loss is not finite in epoch {}; a smaller `learning_rate_init` may help",
                epoch + 1
            );

            plateau.observe(loss);
            optimizer.end_epoch(rows.count());
            if plateau.is_reached() {
                // An adaptive schedule continues at a smaller rate before training stops.
                if !optimizer.lower_rate() {
                    break;
                }
                plateau.restart();
            }
        }

        Ok(MultilayerPerceptron {
            activation: settings.activation,
            layers: network.trained_layers()?,
        })
    }

    /// Computes the outputs of the last layer, `[o, n]`.
    fn outputs(&self, x: &ColumnMatrix) -> ColumnMatrix {
        let mut values = x.clone();
        for (at, layer) in self.layers.iter().enumerate() {
            values = layer.apply(&values);
            if at + 1 < self.layers.len() {
                for value in &mut values.values {
                    *value = self.activation.apply(*value);
                }
            }
        }
        values
    }

    /// Rejects layers that do not map `f` columns to `outputs` numbers.
    fn check_shape(&self, f: usize, outputs: usize) -> Result<()> {
        let last = self.layers.last().context("a network has no layers")?;
        let found = last.biases.len();
        ensure!(
            found == outputs,
            "{} instead of {outputs}",
            counted(found, "output")
        );

        let mut inputs = f;
        for layer in &self.layers {
            ensure!(
                layer.weights.len() == inputs * layer.biases.len(),
                "a layer does not have one weight per input and output"
            );
            inputs = layer.biases.len();
        }
        Ok(())
    }
}

/// A network that predicts a number, in scaled form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct NumberNetwork {
    network: MultilayerPerceptron,
    /// Number that corresponds to an output of 0.
    shift: f64,
    /// Increase of the number when the output grows by 1.
    scale: f64,
}

impl NumberNetwork {
    /// Trains a network that predicts numbers.
    pub(super) fn fit(
        settings: &PerceptronSettings,
        training: NumberTrainingSet<'_>,
        run: FitRun<'_>,
    ) -> Result<NumberNetwork> {
        let NumberTrainingSet { x, labels } = training;
        let ColumnScaling { shift, scale } = ScalerKind::Standard.learn(labels.y);
        let scaled = labels.y.iter().map(|number| (number - shift) / scale);
        let rows = TrainingRows {
            rows: single_precision(&x.to_rows()),
            f: x.f,
            truth: single_precision(&scaled.collect::<Vec<f64>>()),
            outputs: 1,
            weights: labels.weights,
            loss: match labels.loss {
                NumberLoss::Squared => NetworkLoss::Squared,
                NumberLoss::Pinball { quantile } => NetworkLoss::Pinball { quantile },
            },
        };
        Ok(NumberNetwork {
            network: MultilayerPerceptron::train(settings, &rows, run)?,
            shift,
            scale,
        })
    }
}

fn single_precision(values: &[f64]) -> Vec<f32> {
    values.iter().map(|value| *value as f32).collect()
}

/// Returns 1 for the class of each row and 0 for the others, `[n, o]`, over the classes that have
/// an output.
fn one_hot(labels: ClassLabels<'_>) -> Vec<f32> {
    let classes = output_classes(labels.class_count);
    let of_row = |own: &u32| {
        let of_class = |class: &u32| if class == own { 1.0 } else { 0.0 };
        classes.iter().map(of_class).collect::<Vec<f32>>()
    };
    labels.y.iter().flat_map(of_row).collect()
}

/// Trains on all rows once, in a random order that depends on the epoch; returns the mean loss of a
/// row.
fn train_epoch(
    settings: &PerceptronSettings,
    network: &TrainableNetwork,
    optimizer: &mut NetworkOptimizer,
    rows: &TrainingRows<'_>,
    epoch: usize,
    run: FitRun<'_>,
) -> Result<f64> {
    let n = rows.count();
    // Each epoch has its own generator, so its order does not depend on earlier epochs.
    let mut order: Vec<usize> = (0..n).collect();
    let mut generator =
        poolcast_base::seed::generator(run.seed, "network batches", &[epoch as i64]);
    order.shuffle(&mut generator);

    // The last batch may be smaller, so each loss is weighted by its rows.
    let mut sum = 0.0;
    for batch in order.chunks(settings.batch_size.min(n)) {
        run.stop.check()?;
        let loss = network.loss(&rows.batch(batch)?, rows.loss, settings.alpha)?;
        optimizer.step(&loss)?;
        sum += f64::from(loss.to_scalar::<f32>()?) * batch.len() as f64;
    }
    Ok(sum / n as f64)
}

/// Detects when the loss no longer falls.
struct LossPlateau {
    best_loss: f64,
    /// Consecutive epochs without a sufficient improvement.
    waited: usize,
}

impl LossPlateau {
    fn new() -> LossPlateau {
        LossPlateau {
            best_loss: f64::INFINITY,
            waited: 0,
        }
    }

    fn observe(&mut self, loss: f64) {
        if loss > self.best_loss - MIN_GAIN {
            self.waited += 1;
        } else {
            self.waited = 0;
        }
        self.best_loss = self.best_loss.min(loss);
    }

    fn is_reached(&self) -> bool {
        self.waited > PATIENCE
    }

    /// Restarts the count of epochs, after the learning rate has changed.
    fn restart(&mut self) {
        self.waited = 0;
    }
}

impl Classifier for MultilayerPerceptron {
    fn probabilities(&self, x: &ColumnMatrix) -> Vec<f64> {
        class_probabilities(&self.outputs(x))
    }

    fn importances(&self, _f: usize) -> Option<ColumnImportances> {
        None
    }

    fn check(&self, f: usize, k: usize) -> Result<()> {
        self.check_shape(f, output_count(k))
    }
}

impl Regressor for NumberNetwork {
    fn numbers(&self, x: &ColumnMatrix) -> Vec<f64> {
        let outputs = self.network.outputs(x).values;
        outputs
            .into_iter()
            .map(|output| self.shift + self.scale * output)
            .collect()
    }

    fn importances(&self) -> Option<ColumnImportances> {
        None
    }

    fn check(&self, f: usize) -> Result<()> {
        ensure!(
            self.shift.is_finite() && self.scale.is_finite(),
            "the scale of the numbers is not finite"
        );
        self.network.check_shape(f, 1)
    }
}
