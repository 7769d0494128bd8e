//! Columns and classes → a multilayer perceptron, trained in candle.
//!
//! It follows scikit-learn's `MLPClassifier` in what it minimises (the mean log loss, and `alpha /
//! 2` times the squared weights by the rows of the batch), how it begins (Glorot's uniform), how it
//! goes on (Adam, or steps with Nesterov's momentum) and when it ends: after `max_iter` epochs, or
//! once the loss has not fallen by 1e-4 for ten of them. The schedules of the learning rate hold
//! for both solvers, where scikit-learn heeds them under `sgd` alone.

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
use self::trainable::{TrainableNetwork, TrainingRows};
use super::classifier::{Classifier, FitRun, TrainingSet};
use super::importances::ColumnImportances;
use super::solvers::labels::output_count;
use super::solvers::logits::class_probabilities;
use super::solvers::matrix::ColumnMatrix;
use crate::output::counted;

/// scikit-learn's default `n_iter_no_change`.
const PATIENCE: usize = 10;
/// scikit-learn's default `tol`: the loss must fall by more.
const MIN_GAIN: f64 = 1e-4;

/// The hyper-parameters of the pipeline `nn`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct NetworkSettings {
    hidden_layer_sizes: Vec<usize>,
    activation: ActivationFunction,
    alpha: f64,
    #[serde(flatten)]
    optimizer: OptimizerSettings,
    batch_size: usize,
    max_iter: usize,
}

/// A fitted network: one output for two classes, else one for each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct MultilayerPerceptron {
    activation: ActivationFunction,
    layers: Vec<DenseLayer>,
}

impl MultilayerPerceptron {
    /// Trains a network until its loss no longer falls.
    pub(super) fn fit(
        settings: &NetworkSettings,
        training: TrainingSet<'_>,
        run: FitRun<'_>,
    ) -> Result<MultilayerPerceptron> {
        let TrainingSet { x, labels } = training;
        let mut widths = vec![x.f];
        widths.extend(&settings.hidden_layer_sizes);
        widths.push(output_count(labels.class_count));

        let network = TrainableNetwork::new(settings.activation, &widths, run.seed)?;
        let mut optimizer = NetworkOptimizer::new(settings.optimizer, network.parameters())?;
        let rows = TrainingRows {
            rows: x.to_rows().iter().map(|value| *value as f32).collect(),
            f: x.f,
            labels,
        };

        let mut stopping = EarlyStopping::new();
        for epoch in 0..settings.max_iter {
            let loss = train_epoch(settings, &network, &mut optimizer, &rows, epoch, run)?;
            ensure!(
                loss.is_finite(),
                "the loss is not finite in epoch {}; a smaller `learning_rate_init` may help",
                epoch + 1
            );

            stopping.observe(loss);
            optimizer.end_epoch(x.n);
            if stopping.is_due() {
                // An adaptive schedule goes on with a smaller rate before it gives up.
                if !optimizer.lower_rate() {
                    break;
                }
                stopping.restart();
            }
        }

        Ok(MultilayerPerceptron {
            activation: settings.activation,
            layers: network.trained_layers()?,
        })
    }
}

/// Goes through all rows once, in an order of the epoch's own; returns the mean loss of a row.
fn train_epoch(
    settings: &NetworkSettings,
    network: &TrainableNetwork,
    optimizer: &mut NetworkOptimizer,
    rows: &TrainingRows<'_>,
    epoch: usize,
    run: FitRun<'_>,
) -> Result<f64> {
    let n = rows.labels.y.len();
    let mut order: Vec<usize> = (0..n).collect();
    let mut generator = crate::seed::generator(run.seed, "network batches", &[epoch as i64]);
    order.shuffle(&mut generator);

    // The last batch may be smaller, so each loss counts by its rows.
    let mut sum = 0.0;
    for batch in order.chunks(settings.batch_size.min(n)) {
        run.stop.check()?;
        let loss = network.loss(&rows.batch(batch)?, settings.alpha)?;
        optimizer.step(&loss)?;
        sum += f64::from(loss.to_scalar::<f32>()?) * batch.len() as f64;
    }
    Ok(sum / n as f64)
}

/// Decides when the loss no longer falls.
struct EarlyStopping {
    best_loss: f64,
    /// Epochs in a row without a sufficient gain.
    waited: usize,
}

impl EarlyStopping {
    fn new() -> EarlyStopping {
        EarlyStopping {
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

    fn is_due(&self) -> bool {
        self.waited > PATIENCE
    }

    /// Counts anew, after the learning rate has changed.
    fn restart(&mut self) {
        self.waited = 0;
    }
}

impl Classifier for MultilayerPerceptron {
    fn probabilities(&self, x: &ColumnMatrix) -> Vec<f64> {
        let mut values = x.clone();
        for (at, layer) in self.layers.iter().enumerate() {
            values = layer.apply(&values);
            if at + 1 < self.layers.len() {
                for value in &mut values.values {
                    *value = self.activation.apply(*value);
                }
            }
        }
        class_probabilities(&values)
    }

    fn importances(&self, _f: usize) -> Option<ColumnImportances> {
        None
    }

    fn check(&self, f: usize, k: usize) -> Result<()> {
        let last = self.layers.last().context("a network has no layers")?;
        let outputs = last.biases.len();
        ensure!(
            outputs == output_count(k),
            "{} for {k} classes",
            counted(outputs, "output")
        );

        let mut inputs = f;
        for layer in &self.layers {
            ensure!(
                layer.weights.len() == inputs * layer.biases.len(),
                "a layer has not a weight for each pair"
            );
            inputs = layer.biases.len();
        }
        Ok(())
    }
}
