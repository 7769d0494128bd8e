//! Optimizers of the network, and the schedule of the learning rate.

use anyhow::Result;
use candle_core::{Device, Tensor, Var};
use serde::Deserialize;

use poolcast_models::optim::{Adam, AdamSettings};

/// Momentum of `sgd`: scikit-learn's default `momentum`.
const MOMENTUM: f64 = 0.9;
/// Learning rate up to which an adaptive schedule does not divide it again, as in scikit-learn.
const MIN_RATE: f64 = 1e-6;

/// Hyper-parameters of the optimizer.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct OptimizerSettings {
    solver: SolverKind,
    #[serde(rename = "learning_rate")]
    schedule: LearningRateSchedule,
    learning_rate_init: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SolverKind {
    Adam,
    Sgd,
}

/// Schedule of the learning rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LearningRateSchedule {
    Constant,
    /// Initial rate divided by the square root of one plus the number of rows seen.
    InvScaling,
    /// A fifth of the previous rate, whenever the loss no longer falls.
    Adaptive,
}

/// Rule that turns a gradient into a step.
enum UpdateRule {
    Adam(Adam),
    /// Previous step of each weight.
    NesterovMomentum(Vec<f32>),
}

/// Optimizer that steps at the learning rate of a schedule.
pub(super) struct NetworkOptimizer {
    parameters: Vec<Var>,
    /// Elements of all parameters, one parameter after another.
    weights: Vec<f32>,
    rule: UpdateRule,
    schedule: LearningRateSchedule,
    first_rate: f64,
    rate: f64,
    rows_seen: usize,
}

impl NetworkOptimizer {
    pub(super) fn new(
        settings: OptimizerSettings,
        parameters: Vec<Var>,
    ) -> Result<NetworkOptimizer> {
        let mut weights = Vec::new();
        for parameter in &parameters {
            weights.extend(elements(parameter)?);
        }
        let rule = match settings.solver {
            SolverKind::Adam => UpdateRule::Adam(Adam::new(weights.len())),
            SolverKind::Sgd => UpdateRule::NesterovMomentum(vec![0.0; weights.len()]),
        };
        let rate = settings.learning_rate_init;
        Ok(NetworkOptimizer {
            parameters,
            weights,
            rule,
            schedule: settings.schedule,
            first_rate: rate,
            rate,
            rows_seen: 0,
        })
    }

    /// Takes one step down the gradient of `loss`.
    pub(super) fn step(&mut self, loss: &Tensor) -> Result<()> {
        let gradients = loss.backward()?;
        let mut gradient = Vec::with_capacity(self.weights.len());
        for parameter in &self.parameters {
            match gradients.get(parameter) {
                Some(slopes) => gradient.extend(elements(slopes)?),
                None => gradient.resize(gradient.len() + parameter.elem_count(), 0.0),
            }
        }
        self.move_weights(&gradient);

        let mut rest = &self.weights[..];
        for parameter in &self.parameters {
            let (own, others) = rest.split_at(parameter.elem_count());
            parameter.set(&Tensor::from_slice(own, parameter.shape(), &Device::Cpu)?)?;
            rest = others;
        }
        Ok(())
    }

    fn move_weights(&mut self, gradient: &[f32]) {
        let last_steps = match &mut self.rule {
            UpdateRule::Adam(adam) => {
                let settings = AdamSettings {
                    learning_rate: self.rate,
                    weight_decay: 0.0,
                    clip_grad_norm: 0.0,
                };
                return adam.step(&mut self.weights, gradient, &settings);
            }
            UpdateRule::NesterovMomentum(last_steps) => last_steps,
        };

        let (rate, momentum) = (self.rate as f32, MOMENTUM as f32);
        let moved = self.weights.iter_mut().zip(last_steps);
        for ((weight, last_step), slope) in moved.zip(gradient) {
            let down = rate * slope;
            *last_step = momentum * *last_step - down;
            // Nesterov's step starts from the point that the momentum leads to.
            *weight = *weight + momentum * *last_step - down;
        }
    }

    /// Informs the schedule that an epoch of `rows` rows has ended.
    pub(super) fn end_epoch(&mut self, rows: usize) {
        self.rows_seen += rows;
        if self.schedule == LearningRateSchedule::InvScaling {
            self.rate = self.first_rate / (self.rows_seen as f64 + 1.0).sqrt();
        }
    }

    /// Lowers the learning rate once the loss no longer falls; returns false if the schedule has no
    /// lower one.
    pub(super) fn lower_rate(&mut self) -> bool {
        if self.schedule != LearningRateSchedule::Adaptive || self.rate <= MIN_RATE {
            return false;
        }
        self.rate /= 5.0;
        true
    }
}

/// Copies the elements of `tensor`, in row-major order.
fn elements(tensor: &Tensor) -> Result<Vec<f32>> {
    Ok(tensor.flatten_all()?.to_vec1()?)
}
