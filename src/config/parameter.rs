//! A hyper-parameter as it is written → a value, or what a sweep draws it from.

use anyhow::{Result, ensure};
use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::distribution::Distribution;
use super::range::check_range;
use crate::error::hinted;

/// A hyper-parameter: a number, or one word of a few; or what a sweep draws it from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged, bound(serialize = "T: Serialize"))]
pub enum Parameter<T = f64> {
    /// The same for every trial.
    #[serde(serialize_with = "serialize_whole")]
    Constant(T),
    /// What to draw from.
    Drawn(Distribution),
}

/// Writes a value as people do: `64`, not `64.0`.
fn serialize_whole<T: Serialize, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    whole(serde_json::to_value(value).map_err(S::Error::custom)?).serialize(serializer)
}

/// A whole number whole: `64`, not `64.0`.
pub fn whole(value: Value) -> Value {
    // Those that double precision tells apart.
    const MOST: f64 = 9_007_199_254_740_992.0;
    match value
        .as_f64()
        .filter(|number| value.is_f64() && number.fract() == 0.0 && number.abs() < MOST)
    {
        Some(number) => Value::from(number as i64),
        None => value,
    }
}

/// By hand, because what serde derives for untagged enums does not say what is wrong.
impl<'de, T: DeserializeOwned> Deserialize<'de> for Parameter<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Parameter<T>, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let constant = |value: Value| {
            // A user's word for the only type that is not one of a few words.
            T::deserialize(value).map_err(|error| {
                error
                    .to_string()
                    .replace("expected f64", "expected a number")
            })
        };
        if !value.is_object() {
            let or = "; or a distribution such as `{values: [...]}`";
            return constant(value)
                .map(Parameter::Constant)
                .map_err(|error| D::Error::custom(error + or));
        }
        let distribution = Distribution::deserialize(value).map_err(D::Error::custom)?;
        distribution
            .examples()
            .into_iter()
            .try_for_each(|example| constant(example).map(drop))
            .map_err(D::Error::custom)?;
        Ok(Parameter::Drawn(distribution))
    }
}

impl<T: Clone> Parameter<T> {
    /// The one value this parameter stands for.
    ///
    /// # Errors
    /// Fails for a distribution, which only a sweep can draw from; `name` is the key.
    pub fn constant(&self, name: &str) -> Result<T> {
        match self {
            Parameter::Constant(value) => Ok(value.clone()),
            Parameter::Drawn(_) => Err(only_a_sweep_draws(name)),
        }
    }
}

fn only_a_sweep_draws(name: &str) -> anyhow::Error {
    let flag = format!("give one value with `--{}`", name.replace('_', "-"));
    hinted(
        format!("`{name}` is a distribution, which only a sweep draws from"),
        flag,
    )
    .into()
}

impl Parameter<f64> {
    /// The one number this parameter stands for.
    ///
    /// # Errors
    /// Fails for a distribution, which only a sweep can draw from, and for a number outside
    /// `range`; `name` is the key.
    pub fn real(&self, name: &str, range: std::ops::RangeInclusive<f64>) -> Result<f64> {
        let value = self.constant(name)?;
        check_range(name, value, range)?;
        Ok(value)
    }

    /// [`Parameter::real`] for a whole number.
    pub fn whole(&self, name: &str, range: std::ops::RangeInclusive<usize>) -> Result<usize> {
        let value = self.real(name, *range.start() as f64..=*range.end() as f64)?;
        ensure!(
            value.fract() == 0.0,
            "`{name}` must be a whole number, got {value}"
        );
        Ok(value as usize)
    }
}
