//! A hyper-parameter as it is written → a value, or what a sweep draws it from.

use anyhow::{Result, ensure};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::hinted;

/// A hyper-parameter: a number, or what a sweep draws it from, in W&B's words.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Parameter {
    /// One number for every trial.
    Constant(f64),
    /// What to draw from.
    Drawn(Distribution),
}

/// By hand, because what serde derives for untagged enums does not say what is wrong.
impl<'de> Deserialize<'de> for Parameter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Parameter, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        if let Some(number) = value.as_f64() {
            return Ok(Parameter::Constant(number));
        }
        if !value.is_object() {
            let message = format!("expected a number or a distribution such as `{{values: [1, 2]}}`, got {value}");
            return Err(D::Error::custom(message));
        }
        Distribution::deserialize(value).map(Parameter::Drawn).map_err(D::Error::custom)
    }
}

/// What a sweep draws a parameter from; the names are W&B's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawDistribution", into = "RawDistribution")]
#[expect(missing_docs, reason = "the fields are W&B's")]
pub enum Distribution {
    /// One of some values, each as likely.
    Values { values: Vec<f64> },
    /// A whole number, both ends included.
    IntUniform { min: f64, max: f64 },
    /// A real number.
    Uniform { min: f64, max: f64 },
    /// A real number whose logarithm is uniform.
    LogUniformValues { min: f64, max: f64 },
    /// The same, rounded to a multiple of `q`.
    QLogUniformValues { min: f64, max: f64, q: f64 },
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDistribution {
    #[serde(skip_serializing_if = "Option::is_none")]
    distribution: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    q: Option<f64>,
}

const DISTRIBUTIONS: [&str; 6] =
    ["constant", "categorical", "int_uniform", "uniform", "log_uniform_values", "q_log_uniform_values"];

impl TryFrom<RawDistribution> for Distribution {
    type Error = String;

    fn try_from(raw: RawDistribution) -> Result<Distribution, String> {
        let guessed = match (&raw.value, &raw.values, raw.min) {
            (Some(_), ..) => "constant",
            (_, Some(_), _) => "categorical",
            (.., Some(min)) if min.fract() == 0.0 && raw.max.is_some_and(|max| max.fract() == 0.0) => "int_uniform",
            _ => "uniform",
        };
        let name = raw.distribution.as_deref().unwrap_or(guessed);
        let range = || match (raw.min, raw.max) {
            (Some(min), Some(max)) if min <= max => Ok((min, max)),
            (Some(min), Some(max)) => Err(format!("`{name}` needs min <= max, got {min} and {max}")),
            _ => Err(format!("`{name}` needs min and max")),
        };
        let positive = |(min, max): (f64, f64)| match min > 0.0 {
            true => Ok((min, max)),
            false => Err(format!("`{name}` needs min > 0, got {min}")),
        };
        match name {
            "constant" => {
                let value = raw.value.ok_or("`constant` needs a value")?;
                Ok(Distribution::Values { values: vec![value] })
            }
            "categorical" => {
                let values = raw.values.filter(|values| !values.is_empty());
                Ok(Distribution::Values { values: values.ok_or("`categorical` needs values")? })
            }
            "int_uniform" => range().map(|(min, max)| Distribution::IntUniform { min, max }),
            "uniform" => range().map(|(min, max)| Distribution::Uniform { min, max }),
            "log_uniform_values" => {
                range().and_then(positive).map(|(min, max)| Distribution::LogUniformValues { min, max })
            }
            "q_log_uniform_values" => {
                let q = raw.q.unwrap_or(1.0);
                range().and_then(positive).map(|(min, max)| Distribution::QLogUniformValues { min, max, q })
            }
            other => Err(format!("unknown distribution `{other}`; known are {}", DISTRIBUTIONS.join(", "))),
        }
    }
}

impl From<Distribution> for RawDistribution {
    fn from(distribution: Distribution) -> RawDistribution {
        let named = |name: &str, min, max| RawDistribution {
            distribution: Some(name.to_owned()),
            min: Some(min),
            max: Some(max),
            ..RawDistribution::default()
        };
        match distribution {
            Distribution::Values { values } => RawDistribution { values: Some(values), ..RawDistribution::default() },
            Distribution::IntUniform { min, max } => named("int_uniform", min, max),
            Distribution::Uniform { min, max } => named("uniform", min, max),
            Distribution::LogUniformValues { min, max } => named("log_uniform_values", min, max),
            Distribution::QLogUniformValues { min, max, q } => {
                RawDistribution { q: Some(q), ..named("q_log_uniform_values", min, max) }
            }
        }
    }
}

/// One word of a few, or those that a sweep draws from, each as likely.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Choice<T> {
    /// One word for every trial.
    Constant(T),
    /// The words to draw from.
    Drawn {
        /// At least one.
        values: Vec<T>,
    },
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Choice<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Choice<T>, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Drawn<T> {
            values: Vec<T>,
        }
        let value = serde_json::Value::deserialize(deserializer)?;
        if !value.is_object() {
            return T::deserialize(value).map(Choice::Constant).map_err(D::Error::custom);
        }
        let Drawn { values } = Drawn::deserialize(value).map_err(D::Error::custom)?;
        if values.is_empty() { Err(D::Error::custom("`values` is empty")) } else { Ok(Choice::Drawn { values }) }
    }
}

impl<T: Clone> Choice<T> {
    /// The one word this choice stands for.
    ///
    /// # Errors
    /// Fails for several words, which only a sweep can draw from; `name` is the key.
    pub fn constant(&self, name: &str) -> Result<T> {
        match self {
            Choice::Constant(word) => Ok(word.clone()),
            Choice::Drawn { .. } => Err(only_a_sweep_draws(name)),
        }
    }
}

fn only_a_sweep_draws(name: &str) -> anyhow::Error {
    let flag = format!("give one value with `--{}`", name.replace('_', "-"));
    hinted(format!("`{name}` is a distribution, which only a sweep draws from"), flag).into()
}

impl Parameter {
    /// The one number this parameter stands for.
    ///
    /// # Errors
    /// Fails for a distribution, which only a sweep can draw from, and for a number outside `range`; `name` is the key.
    pub fn constant(&self, name: &str, range: std::ops::RangeInclusive<f64>) -> Result<f64> {
        let value = match self {
            Parameter::Constant(value) => *value,
            Parameter::Drawn(_) => return Err(only_a_sweep_draws(name)),
        };
        check_range(name, value, range)?;
        Ok(value)
    }

    /// [`Parameter::constant`] for a whole number.
    pub fn whole(&self, name: &str, range: std::ops::RangeInclusive<usize>) -> Result<usize> {
        let value = self.constant(name, *range.start() as f64..=*range.end() as f64)?;
        ensure!(value.fract() == 0.0, "`{name}` must be a whole number, got {value}");
        Ok(value as usize)
    }
}

/// Refuses a number outside `range`; `name` is the key.
pub(super) fn check_range(name: &str, value: f64, range: std::ops::RangeInclusive<f64>) -> Result<()> {
    let (low, high) = (range.start(), range.end());
    ensure!(
        range.contains(&value),
        hinted(
            format!("`{name}` must be between {low} and {high}, got {value}"),
            "`poolcast config` explains every key"
        )
    );
    Ok(())
}
