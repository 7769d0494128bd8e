//! Columns and classes → a multilayer perceptron, trained in candle.
//!
//! scikit-learn's `MLPClassifier` in what it minimises (the mean log loss, and `alpha / 2` times the squared weights by the rows
//! of the batch), how it begins (Glorot's uniform), how it goes (Adam, or steps with Nesterov's momentum) and when it ends:
//! after `max_iter` epochs, or once the loss has not fallen by 1e-4 for ten of them. Its schedules of the learning rate hold for
//! both solvers, where scikit-learn heeds them under `sgd` alone.

use anyhow::{Context as _, Result, ensure};
use candle_core::{D, Device, Tensor, Var};
use candle_nn::optim::{AdamW, Optimizer as _, ParamsAdamW};
use rand::Rng as _;
use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};

use super::importances::ColumnImportances;
use super::matrix::{Matrix, add, sigmoid, softmax};
use super::model::{Fitting, Model};
use super::parameters::Settings;
use super::stop::ask;

const PATIENCE: usize = 10;
const LEAST_GAIN: f64 = 1e-4;
const MOMENTUM: f64 = 0.9;
/// An adaptive rate that is no larger is not divided again.
const LEAST_RATE: f64 = 1e-6;

/// What follows each hidden layer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Activation {
    Relu,
    Tanh,
    Logistic,
}

impl Activation {
    fn named(name: &str) -> Activation {
        match name {
            "tanh" => Activation::Tanh,
            "logistic" => Activation::Logistic,
            _ => Activation::Relu,
        }
    }

    fn of(self, value: f64) -> f64 {
        match self {
            Activation::Relu => value.max(0.0),
            Activation::Tanh => value.tanh(),
            Activation::Logistic => sigmoid(value),
        }
    }

    fn of_tensor(self, values: &Tensor) -> candle_core::Result<Tensor> {
        match self {
            Activation::Relu => values.relu(),
            Activation::Tanh => values.tanh(),
            // By the function that has a gradient.
            Activation::Logistic => ((values * 0.5)?.tanh()? + 1.0)? * 0.5,
        }
    }
}

/// A fitted network: one output for two classes, else one for each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Network {
    activation: Activation,
    layers: Vec<Layer>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Layer {
    /// `[outputs, inputs]`.
    weights: Vec<f32>,
    /// `[outputs]`.
    biases: Vec<f32>,
}

impl Network {
    /// Fits on `x` with classes `y` below `k`.
    pub(super) fn fit(x: &Matrix, fitting: Fitting<'_>) -> Result<Network> {
        let Fitting {
            settings,
            y,
            k,
            seed,
            stop,
        } = fitting;
        let activation = Activation::named(settings.word("activation")?);
        let outputs = if k == 2 { 1 } else { k };
        let widths: Vec<usize> = [
            vec![x.f],
            settings.sizes("hidden_layer_sizes")?,
            vec![outputs],
        ]
        .concat();
        let trained = Trained::new(activation, &widths, seed)?;
        let mut solver = Solver::new(trained.parameters(), settings)?;
        let (alpha, size) = (
            settings.real("alpha")?,
            settings.whole("batch_size")?.min(x.n),
        );
        let rows: Vec<f32> = x.by_rows().iter().map(|value| *value as f32).collect();
        let (mut best, mut waited) = (f64::INFINITY, 0);
        for epoch in 0..settings.whole("max_iter")? {
            let mut order: Vec<usize> = (0..x.n).collect();
            order.shuffle(&mut crate::seed::generator(
                seed,
                "network batches",
                &[epoch as i64],
            ));
            let mut sum = 0.0;
            for batch in order.chunks(size) {
                ask(stop)?;
                let loss = trained.loss(&Batch::new(&rows, x.f, y, outputs, batch)?, alpha)?;
                solver.step(&loss)?;
                sum += f64::from(loss.to_scalar::<f32>()?) * batch.len() as f64;
            }
            let loss = sum / x.n as f64;
            ensure!(
                loss.is_finite(),
                "the loss is not finite in epoch {}; a smaller `learning_rate_init` may help",
                epoch + 1
            );
            waited = if loss > best - LEAST_GAIN {
                waited + 1
            } else {
                0
            };
            best = best.min(loss);
            solver.next_epoch(x.n);
            if waited > PATIENCE {
                if !solver.goes_on() {
                    break;
                }
                waited = 0;
            }
        }
        trained.network()
    }
}

/// How the learning rate goes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Schedule {
    Constant,
    /// By the square root of the rows seen.
    InverseScaling,
    /// A fifth of what it was, once the loss no longer falls.
    Adaptive,
}

/// What makes a step of a gradient.
enum Rule {
    Adam(Box<AdamW>),
    /// The parameters, and the last step of each.
    Momentum(Vec<(Var, Tensor)>),
}

/// Steps, and the rate at which they are made.
struct Solver {
    rule: Rule,
    schedule: Schedule,
    first_rate: f64,
    rate: f64,
    rows_seen: usize,
}

impl Solver {
    fn new(parameters: Vec<Var>, settings: Settings<'_>) -> Result<Solver> {
        let rate = settings.real("learning_rate_init")?;
        let rule = match settings.word("solver")? {
            "sgd" => {
                let still =
                    |parameter: Var| anyhow::Ok((parameter.clone(), parameter.zeros_like()?));
                Rule::Momentum(parameters.into_iter().map(still).collect::<Result<_>>()?)
            }
            _ => {
                let adam = ParamsAdamW {
                    lr: rate,
                    weight_decay: 0.0,
                    ..ParamsAdamW::default()
                };
                Rule::Adam(Box::new(AdamW::new(parameters, adam)?))
            }
        };
        let schedule = match settings.word("learning_rate")? {
            "invscaling" => Schedule::InverseScaling,
            "adaptive" => Schedule::Adaptive,
            _ => Schedule::Constant,
        };
        Ok(Solver {
            rule,
            schedule,
            first_rate: rate,
            rate,
            rows_seen: 0,
        })
    }

    fn step(&mut self, loss: &Tensor) -> Result<()> {
        let parameters = match &mut self.rule {
            Rule::Adam(adam) => return Ok(adam.backward_step(loss)?),
            Rule::Momentum(parameters) => parameters,
        };
        let gradients = loss.backward()?;
        for (parameter, last) in parameters {
            let Some(gradient) = gradients.get(parameter) else {
                continue;
            };
            let down = (gradient * self.rate)?;
            *last = ((&*last * MOMENTUM)? - &down)?.detach();
            // Nesterov's: from where the momentum leads.
            parameter.set(&((parameter.as_tensor() + (&*last * MOMENTUM)?)? - down)?)?;
        }
        Ok(())
    }

    fn next_epoch(&mut self, rows: usize) {
        self.rows_seen += rows;
        if self.schedule == Schedule::InverseScaling {
            self.set_rate(self.first_rate / (self.rows_seen as f64 + 1.0).sqrt());
        }
    }

    /// Whether there is a smaller rate to go on with, once the loss no longer falls.
    fn goes_on(&mut self) -> bool {
        let is_left = self.schedule == Schedule::Adaptive && self.rate > LEAST_RATE;
        if is_left {
            self.set_rate(self.rate / 5.0);
        }
        is_left
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
        if let Rule::Adam(adam) = &mut self.rule {
            adam.set_learning_rate(rate);
        }
    }
}

/// Rows of one step, as tensors.
struct Batch {
    /// `[b, f]`.
    rows: Tensor,
    /// 1 for the class of each output, `[b, o]`.
    truth: Tensor,
}

impl Batch {
    fn new(rows: &[f32], f: usize, y: &[u32], outputs: usize, places: &[usize]) -> Result<Batch> {
        let values: Vec<f32> = places
            .iter()
            .flat_map(|place| &rows[place * f..][..f])
            .copied()
            .collect();
        let first = u32::from(outputs == 1);
        let own = |class: u32| {
            (first..first + outputs as u32).map(move |own| f32::from(u8::from(own == class)))
        };
        let truth: Vec<f32> = places.iter().flat_map(|place| own(y[*place])).collect();
        Ok(Batch {
            rows: Tensor::from_vec(values, (places.len(), f), &Device::Cpu)?,
            truth: Tensor::from_vec(truth, (places.len(), outputs), &Device::Cpu)?,
        })
    }
}

/// A network in training.
struct Trained {
    activation: Activation,
    /// The weights `[outputs, inputs]` and biases `[outputs]` of each layer.
    layers: Vec<(Var, Var)>,
}

impl Trained {
    fn new(activation: Activation, widths: &[usize], seed: u64) -> Result<Trained> {
        // Glorot's bound is for tanh; a logistic is four times as flat.
        let factor: f32 = if activation == Activation::Logistic {
            2.0
        } else {
            6.0
        };
        let layer = |(at, widths): (usize, &[usize])| {
            let [inputs, outputs] = [widths[0], widths[1]];
            let bound = (factor / (inputs + outputs) as f32).sqrt();
            let mut generator = crate::seed::generator(seed, "network weights", &[at as i64]);
            let mut draw = |n: usize| {
                (0..n)
                    .map(|_| generator.random_range(-bound..bound))
                    .collect::<Vec<f32>>()
            };
            let weights =
                Tensor::from_vec(draw(inputs * outputs), (outputs, inputs), &Device::Cpu)?;
            let biases = Tensor::from_vec(draw(outputs), outputs, &Device::Cpu)?;
            Ok((Var::from_tensor(&weights)?, Var::from_tensor(&biases)?))
        };
        let layers = widths
            .windows(2)
            .enumerate()
            .map(layer)
            .collect::<Result<_>>()?;
        Ok(Trained { activation, layers })
    }

    fn parameters(&self) -> Vec<Var> {
        self.layers
            .iter()
            .flat_map(|(weights, biases)| [weights.clone(), biases.clone()])
            .collect()
    }

    /// The mean log loss of a batch and the penalty of the weights.
    fn loss(&self, batch: &Batch, alpha: f64) -> Result<Tensor> {
        let mut values = batch.rows.clone();
        for (at, (weights, biases)) in self.layers.iter().enumerate() {
            values = values.matmul(&weights.t()?)?.broadcast_add(biases)?;
            if at + 1 < self.layers.len() {
                values = self.activation.of_tensor(&values)?;
            }
        }
        let n = batch.truth.dim(0)? as f64;
        let losses = if batch.truth.dim(1)? == 1 {
            let softplus = (values.relu()? + (values.abs()?.neg()?.exp()? + 1.0)?.log()?)?;
            (softplus - (values * &batch.truth)?)?.sum_all()?
        } else {
            (candle_nn::ops::log_softmax(&values, D::Minus1)? * &batch.truth)?
                .sum_all()?
                .neg()?
        };
        let mut squares = self.layers[0].0.sqr()?.sum_all()?;
        for (weights, _) in &self.layers[1..] {
            squares = (squares + weights.sqr()?.sum_all()?)?;
        }
        Ok(((losses + (squares * (alpha / 2.0))?)? / n)?)
    }

    fn network(&self) -> Result<Network> {
        let layer = |(weights, biases): &(Var, Var)| {
            Ok(Layer {
                weights: weights.flatten_all()?.to_vec1()?,
                biases: biases.to_vec1()?,
            })
        };
        let layers = self
            .layers
            .iter()
            .map(layer)
            .collect::<Result<Vec<Layer>>>()?;
        let finite = layers
            .iter()
            .flat_map(|layer| layer.weights.iter().chain(&layer.biases))
            .all(|w| w.is_finite());
        ensure!(
            finite,
            "the weights are no longer finite; a smaller `learning_rate_init` may help"
        );
        Ok(Network {
            activation: self.activation,
            layers,
        })
    }
}

impl Model for Network {
    fn probabilities(&self, x: &Matrix) -> Vec<f64> {
        let mut values = x.clone();
        for (at, layer) in self.layers.iter().enumerate() {
            values = layer.apply(&values);
            if at + 1 < self.layers.len() {
                values
                    .x
                    .iter_mut()
                    .for_each(|value| *value = self.activation.of(*value));
            }
        }
        if values.f == 1 {
            return values
                .x
                .iter()
                .flat_map(|logit| [sigmoid(-logit), sigmoid(*logit)])
                .collect();
        }
        let mut rows = values.by_rows();
        rows.chunks_exact_mut(values.f).for_each(softmax);
        rows
    }

    fn importances(&self, _f: usize) -> Option<ColumnImportances> {
        None
    }

    fn check(&self, f: usize, k: usize) -> Result<()> {
        let outputs = self
            .layers
            .last()
            .context("a network has no layers")?
            .biases
            .len();
        ensure!(
            outputs == if k == 2 { 1 } else { k },
            "{} for {k} classes",
            crate::output::counted(outputs, "output")
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

impl Layer {
    /// Columns `[inputs, n]` to columns `[outputs, n]`.
    fn apply(&self, x: &Matrix) -> Matrix {
        let outputs = self.biases.len();
        let mut values = vec![0.0; outputs * x.n];
        for (o, column) in values.chunks_exact_mut(x.n.max(1)).enumerate() {
            column.fill(f64::from(self.biases[o]));
            (0..x.f).for_each(|j| add(column, f64::from(self.weights[o * x.f + j]), x.column(j)));
        }
        Matrix {
            n: x.n,
            f: outputs,
            x: values,
        }
    }
}
