//! The three forms that represent all distributions, with the quantile functions of the continuous
//! ones.

use serde_json::Value;
use statrs::function::{beta, erf};

/// The form of a distribution.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum DistributionForm {
    /// One of several values. `shares`, if any, are the cumulative probabilities of the values.
    Values {
        values: Vec<Value>,
        shares: Option<Vec<f64>>,
    },
    /// An integer from `min` to `max`, both included.
    IntUniform { min: i64, max: i64 },
    /// A real number from `base`. If `exp` is true, its exponential is taken. If there is a `q`,
    /// the result is rounded to a multiple of it.
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

/// The unit of rounding. Multiples of a whole number are whole numbers.
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

    /// Returns the smallest and the largest factor whose multiple a distribution may draw. It is `base`,
    /// or its exponential if `exp` is true.
    pub(super) fn multiples_within(self, base: RealDistribution, exp: bool) -> [f64; 2] {
        let RealDistribution::Uniform { min, max } = base else {
            let low = if exp { 1.0 } else { f64::NEG_INFINITY };
            return [low, f64::INFINITY];
        };
        let [min, max] = [min, max].map(|bound| if exp { bound.exp() } else { bound } / self.size);
        // A bound that is itself a multiple may have lost its last bits.
        let low = (min - 1e-9 * min.abs()).ceil();
        let high = (max + 1e-9 * max.abs()).floor();
        [if exp { low.max(1.0) } else { low }, high]
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

    /// Returns true if `value` is within its bounds. A bound may have lost its last bits.
    pub(super) fn contains(self, value: f64) -> bool {
        match self {
            RealDistribution::Uniform { min, max } => {
                let slack = 1e-9 * min.abs().max(max.abs());
                (min - slack..=max + slack).contains(&value)
            }
            RealDistribution::Normal { .. } => value.is_finite(),
            RealDistribution::Beta { .. } => (0.0..=1.0).contains(&value),
        }
    }

    /// Returns the cumulative probability of `value`, from 0 to 1.
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
