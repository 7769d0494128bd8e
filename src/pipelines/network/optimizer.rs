//! Optimizers of the network, and the schedule of the learning rate.

use anyhow::Result;
use candle_core::{Tensor, Var};
use candle_nn::optim::{AdamW, Optimizer as _, ParamsAdamW};
use serde::Deserialize;

/// Momentum of `sgd`: scikit-learn's default `momentum`.
const MOMENTUM: f64 = 0.9;
/// Learning rate up to which an adaptive schedule does not divide it again, as in scikit-learn.
const MIN_RATE: f64 = 1e-6;

/// Hyper-parameters of the optimizer.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct OptimizerSettings {
    solver: SolverKind,
    #[serde(rename = "learning_rate")]
    schedule: RateSchedule,
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
enum RateSchedule {
    Constant,
    /// Initial rate divided by the square root of one plus the number of rows seen.
    InvScaling,
    /// A fifth of the previous rate, whenever the loss no longer falls.
    Adaptive,
}

/// A parameter and its previous step.
struct MomentumParameter {
    parameter: Var,
    last_step: Tensor,
}

/// Rule that turns a gradient into a step.
enum UpdateRule {
    Adam(Box<AdamW>),
    NesterovMomentum(Vec<MomentumParameter>),
}

/// Optimizer that steps at the learning rate of a schedule.
pub(super) struct NetworkOptimizer {
    rule: UpdateRule,
    schedule: RateSchedule,
    first_rate: f64,
    rate: f64,
    rows_seen: usize,
}

impl NetworkOptimizer {
    pub(super) fn new(
        settings: OptimizerSettings,
        parameters: Vec<Var>,
    ) -> Result<NetworkOptimizer> {
        let rate = settings.learning_rate_init;
        let rule = match settings.solver {
            SolverKind::Adam => {
                let adam = ParamsAdamW {
                    lr: rate,
                    weight_decay: 0.0,
                    ..ParamsAdamW::default()
                };
                UpdateRule::Adam(Box::new(AdamW::new(parameters, adam)?))
            }
            SolverKind::Sgd => {
                let mut at_rest = Vec::new();
                for parameter in parameters {
                    let last_step = parameter.zeros_like()?;
                    at_rest.push(MomentumParameter {
                        parameter,
                        last_step,
                    });
                }
                UpdateRule::NesterovMomentum(at_rest)
            }
        };
        Ok(NetworkOptimizer {
            rule,
            schedule: settings.schedule,
            first_rate: rate,
            rate,
            rows_seen: 0,
        })
    }

    /// Takes one step down the gradient of `loss`.
    pub(super) fn step(&mut self, loss: &Tensor) -> Result<()> {
        let parameters = match &mut self.rule {
            UpdateRule::Adam(adam) => return Ok(adam.backward_step(loss)?),
            UpdateRule::NesterovMomentum(parameters) => parameters,
        };

        let gradients = loss.backward()?;
        for moved in parameters {
            let Some(gradient) = gradients.get(&moved.parameter) else {
                continue;
            };
            let down = (gradient * self.rate)?;
            moved.last_step = ((&moved.last_step * MOMENTUM)? - &down)?.detach();
            // Nesterov's step starts from the point that the momentum leads to.
            let ahead = (moved.parameter.as_tensor() + (&moved.last_step * MOMENTUM)?)?;
            moved.parameter.set(&(ahead - down)?)?;
        }
        Ok(())
    }

    /// Informs the schedule that an epoch of `rows` rows has ended.
    pub(super) fn end_epoch(&mut self, rows: usize) {
        self.rows_seen += rows;
        if self.schedule == RateSchedule::InvScaling {
            self.set_rate(self.first_rate / (self.rows_seen as f64 + 1.0).sqrt());
        }
    }

    /// Lowers the learning rate once the loss no longer falls; returns false if the schedule has no
    /// lower one.
    pub(super) fn lower_rate(&mut self) -> bool {
        if self.schedule != RateSchedule::Adaptive || self.rate <= MIN_RATE {
            return false;
        }
        self.set_rate(self.rate / 5.0);
        true
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
        if let UpdateRule::Adam(adam) = &mut self.rule {
            adam.set_learning_rate(rate);
        }
    }
}
