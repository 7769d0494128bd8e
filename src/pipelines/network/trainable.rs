//! A network in training, as candle tensors.

use anyhow::{Result, ensure};
use candle_core::{D, Device, Tensor, Var};
use rand::Rng as _;

use super::activation::ActivationFunction;
use super::dense_layer::DenseLayer;

/// Loss that training minimises, besides the penalty on the weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NetworkLoss {
    /// Log loss of the true class, from one logit for two classes, otherwise from one per class.
    Log,
    /// Half the squared error.
    Squared,
    /// Pinball loss of a quantile.
    Pinball { quantile: f64 },
}

/// All training rows, from which batches are taken.
pub(super) struct TrainingRows<'a> {
    /// Inputs, `[n, f]`.
    pub(super) rows: Vec<f32>,
    pub(super) f: usize,
    /// Target of each output, `[n, o]`: a number, or 1 for the class of a row and 0 for others.
    pub(super) truth: Vec<f32>,
    pub(super) outputs: usize,
    /// Weight of each row, `[n]`.
    pub(super) weights: &'a [f64],
    pub(super) loss: NetworkLoss,
}

/// Rows of one training step, as tensors.
pub(super) struct TrainingBatch {
    /// Inputs, `[b, f]`.
    rows: Tensor,
    /// Target of each output, `[b, o]`.
    truth: Tensor,
    /// Weight of each row, `[b, 1]`.
    weights: Tensor,
}

impl TrainingRows<'_> {
    /// Number of rows, `n`.
    pub(super) fn count(&self) -> usize {
        self.weights.len()
    }

    /// Returns the rows at the indices `places` `[b]`.
    pub(super) fn batch(&self, places: &[usize]) -> Result<TrainingBatch> {
        let outputs = self.outputs;
        let mut values = Vec::with_capacity(places.len() * self.f);
        let mut truth = Vec::with_capacity(places.len() * outputs);
        let mut weights = Vec::with_capacity(places.len());
        for place in places {
            values.extend_from_slice(&self.rows[place * self.f..][..self.f]);
            truth.extend_from_slice(&self.truth[place * outputs..][..outputs]);
            weights.push(self.weights[*place] as f32);
        }

        let shape_of_truth = (places.len(), outputs);
        Ok(TrainingBatch {
            rows: Tensor::from_vec(values, (places.len(), self.f), &Device::Cpu)?,
            truth: Tensor::from_vec(truth, shape_of_truth, &Device::Cpu)?,
            weights: Tensor::from_vec(weights, (places.len(), 1), &Device::Cpu)?,
        })
    }
}

/// Parameters of one layer.
struct TrainableLayer {
    /// Weights, `[outputs, inputs]`.
    weights: Var,
    /// Biases, `[outputs]`.
    biases: Var,
}

/// A network in training.
pub(super) struct TrainableNetwork {
    activation: ActivationFunction,
    layers: Vec<TrainableLayer>,
}

impl TrainableNetwork {
    /// Creates a network with random parameters. `widths` has the layers' widths, including inputs
    /// and outputs.
    pub(super) fn new(
        activation: ActivationFunction,
        widths: &[usize],
        seed: u64,
    ) -> Result<TrainableNetwork> {
        let mut layers = Vec::new();
        for (at, widths) in widths.windows(2).enumerate() {
            let inputs = widths[0];
            let outputs = widths[1];
            // scikit-learn draws weights and biases within this bound (Glorot and Bengio, AISTATS
            // 2010).
            let bound = (activation.glorot_factor() / (inputs + outputs) as f32).sqrt();
            let mut generator =
                poolcast_base::seed::generator(seed, "network weights", &[at as i64]);
            let mut draw = |count: usize| -> Vec<f32> {
                (0..count)
                    .map(|_| generator.random_range(-bound..bound))
                    .collect()
            };

            let shape = (outputs, inputs);
            let weights = Tensor::from_vec(draw(inputs * outputs), shape, &Device::Cpu)?;
            let biases = Tensor::from_vec(draw(outputs), outputs, &Device::Cpu)?;
            layers.push(TrainableLayer {
                weights: Var::from_tensor(&weights)?,
                biases: Var::from_tensor(&biases)?,
            });
        }
        Ok(TrainableNetwork { activation, layers })
    }

    /// Returns the weights and the biases of each layer in turn.
    pub(super) fn parameters(&self) -> Vec<Var> {
        self.layers
            .iter()
            .flat_map(|layer| [layer.weights.clone(), layer.biases.clone()])
            .collect()
    }

    /// Computes the weighted mean loss of a batch, plus `alpha / 2` times the squared weights
    /// divided by the rows of the batch. scikit-learn's `MLPClassifier` and `MLPRegressor` minimise
    /// the same.
    pub(super) fn loss(
        &self,
        batch: &TrainingBatch,
        loss: NetworkLoss,
        alpha: f64,
    ) -> Result<Tensor> {
        let outputs = self.outputs(batch)?;
        let losses = match loss {
            NetworkLoss::Log if batch.truth.dim(1)? == 1 => {
                binary_log_losses(&outputs, &batch.truth)?
            }
            NetworkLoss::Log => softmax_log_losses(&outputs, &batch.truth)?,
            NetworkLoss::Squared => ((&batch.truth - outputs)?.sqr()? * 0.5)?,
            NetworkLoss::Pinball { quantile } => {
                pinball_losses(&(&batch.truth - outputs)?, quantile)?
            }
        };
        let losses = losses.mul(&batch.weights)?.sum_all()?;
        let penalty = (self.squared_weights()? * (alpha / 2.0))?;
        let n = batch.truth.dim(0)? as f64;
        Ok(((losses + penalty)? / n)?)
    }

    /// Computes the outputs of the last layer, `[b, o]`.
    fn outputs(&self, batch: &TrainingBatch) -> Result<Tensor> {
        let mut values = batch.rows.clone();
        for (at, layer) in self.layers.iter().enumerate() {
            values = values
                .matmul(&layer.weights.t()?)?
                .broadcast_add(&layer.biases)?;
            if at + 1 < self.layers.len() {
                values = self.activation.apply_to_tensor(&values)?;
            }
        }
        Ok(values)
    }

    fn squared_weights(&self) -> Result<Tensor> {
        let mut squares = self.layers[0].weights.sqr()?.sum_all()?;
        for layer in &self.layers[1..] {
            squares = (squares + layer.weights.sqr()?.sum_all()?)?;
        }
        Ok(squares)
    }

    /// Returns the layers with their current parameters.
    ///
    /// # Errors
    /// Fails if a parameter is no longer finite.
    pub(super) fn trained_layers(&self) -> Result<Vec<DenseLayer>> {
        let mut layers = Vec::new();
        for layer in &self.layers {
            layers.push(DenseLayer {
                weights: layer.weights.flatten_all()?.to_vec1()?,
                biases: layer.biases.to_vec1()?,
            });
        }

        let mut parameters = layers
            .iter()
            .flat_map(|layer| layer.weights.iter().chain(&layer.biases));
        ensure!(
            parameters.all(|parameter| parameter.is_finite()),
            "the weights are no longer finite; a smaller `learning_rate_init` may help"
        );
        Ok(layers)
    }
}

/// Computes `ln(1 + exp(logit)) - truth * logit` of each row, `[b, 1]`. The first term is written
/// so that no exponential overflows.
fn binary_log_losses(logits: &Tensor, truth: &Tensor) -> Result<Tensor> {
    let correction = (logits.abs()?.neg()?.exp()? + 1.0)?.log()?;
    let softplus = (logits.relu()? + correction)?;
    Ok((softplus - (logits * truth)?)?)
}

/// Computes `quantile * error` of each error above 0, and `(quantile - 1) * error` of each below,
/// `[b, 1]`.
fn pinball_losses(errors: &Tensor, quantile: f64) -> Result<Tensor> {
    Ok(((errors.relu()? * quantile)? + (errors.neg()?.relu()? * (1.0 - quantile))?)?)
}

/// Computes the negative log probability of the true class of each row, `[b, 1]`.
fn softmax_log_losses(logits: &Tensor, truth: &Tensor) -> Result<Tensor> {
    let log_probabilities = candle_nn::ops::log_softmax(logits, D::Minus1)?;
    Ok((log_probabilities * truth)?.sum_keepdim(D::Minus1)?.neg()?)
}
