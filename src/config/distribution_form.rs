//! The three forms that all distributions come down to, with the quantiles of the real ones.

use serde_json::Value;
use statrs::function::{beta, erf};

/// The three forms that the distributions come down to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum DistributionForm {
    /// One of some values, each with the share of what is drawn up to it.
    Values {
        values: Vec<Value>,
        shares: Option<Vec<f64>>,
    },
    /// A whole number, both ends included.
    IntUniform { min: i64, max: i64 },
    /// A real number from `base`, of which the exponential is taken and which is rounded to a
    /// multiple of `q`, if so.
    Real {
        base: RealDistribution,
        exp: bool,
        q: Option<Quantum>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RealDistribution {
    Uniform { min: f64, max: f64 },
    Normal { mu: f64, sigma: f64 },
    Beta { a: f64, b: f64 },
}

/// What values are multiples of; the multiples of a whole number are whole numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Quantum {
    pub(super) size: f64,
    pub(super) is_whole: bool,
}

impl Quantum {
    pub(super) fn multiple(self, times: f64) -> Value {
        let value = times * self.size;
        if self.is_whole {
            (value as i64).into()
        } else {
            value.into()
        }
    }
}

impl RealDistribution {
    pub(super) fn quantile(self, unit: f64) -> f64 {
        match self {
            RealDistribution::Uniform { min, max } => min + unit * (max - min),
            RealDistribution::Normal { mu, sigma } => {
                mu - sigma * std::f64::consts::SQRT_2 * erf::erfc_inv(2.0 * unit)
            }
            RealDistribution::Beta { a, b } => beta::inv_beta_reg(a, b, unit),
        }
    }

    /// The share of the distribution that lies below `value`.
    pub(super) fn share(self, value: f64) -> f64 {
        match self {
            RealDistribution::Uniform { min, max } => ((value - min) / (max - min)).clamp(0.0, 1.0),
            RealDistribution::Normal { sigma: 0.0, .. } => 0.5,
            RealDistribution::Normal { mu, sigma } => {
                erf::erfc((mu - value) / (sigma * std::f64::consts::SQRT_2)) / 2.0
            }
            RealDistribution::Beta { a, b } => beta::beta_reg(a, b, value.clamp(0.0, 1.0)),
        }
    }
}
