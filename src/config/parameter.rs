//! A hyper-parameter as it is written → a value, or what a sweep draws it from.

use anyhow::Result;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::distribution::Distribution;
use poolcast_base::error::hinted;

/// A hyper-parameter of a search: a number or a word; or what a sweep draws it from.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// The same for every trial.
    Constant(Value),
    /// What to draw from.
    Drawn(Distribution),
}

impl Parameter {
    /// Reads what is `written` of a hyper-parameter, whose values are of the kind that `check_kind`
    /// accepts.
    ///
    /// # Errors
    /// Fails for a value of another kind, also where a distribution has one, and for what is no
    /// distribution.
    pub(super) fn from_written(
        written: Value,
        check_kind: impl Fn(&Value) -> Result<(), String>,
    ) -> Result<Parameter, String> {
        if !written.is_object() {
            check_kind(&written)
                .map_err(|error| error + "; or a distribution such as `{values: [...]}`")?;
            return Ok(Parameter::Constant(written));
        }

        let distribution: Distribution =
            serde_json::from_value(written).map_err(|error| error.to_string())?;
        for example in distribution.examples() {
            check_kind(&example)?;
        }
        Ok(Parameter::Drawn(distribution))
    }

    /// Its one value.
    ///
    /// # Errors
    /// Fails for a distribution, which only a sweep draws from; `name` is the key.
    pub fn constant(&self, name: &str) -> Result<&Value> {
        match self {
            Parameter::Constant(value) => Ok(value),
            Parameter::Drawn(_) => Err(hinted(
                format!("`{name}` is a distribution, which only a sweep draws from"),
                format!("give one value with `--{}`", name.replace('_', "-")),
            )
            .into()),
        }
    }
}

impl Serialize for Parameter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Parameter::Constant(value) => whole(value.clone()).serialize(serializer),
            Parameter::Drawn(distribution) => distribution.serialize(serializer),
        }
    }
}

/// One of a pipeline, whose values are of any kind as long as its pipeline is not known.
impl<'de> Deserialize<'de> for Parameter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Parameter, D::Error> {
        let written = Value::deserialize(deserializer)?;
        Parameter::from_written(written, |_| Ok(())).map_err(D::Error::custom)
    }
}

/// A whole number whole, as people write it: `64`, not `64.0`.
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
