//! A hyper-parameter in a configuration: a value, or a distribution that a sweep draws it from.

use anyhow::Result;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::distribution::Distribution;
use poolcast_base::error::hinted;

/// A hyper-parameter of a search: a constant value or a distribution.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// The same value for every trial.
    Constant(Value),
    /// The distribution that the value of a trial is drawn from.
    Drawn(Distribution),
}

impl Parameter {
    /// Reads a hyper-parameter from `written`. `check_kind` checks the type of its values.
    ///
    /// # Errors
    /// Fails if a value, or an example of the distribution, has the wrong type, and for an invalid
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

    /// Returns the constant value.
    ///
    /// # Errors
    /// Fails for a distribution, because only a sweep draws from it. `key` names the
    /// hyper-parameter in the message: without a dot it is a flag, too.
    pub fn constant(&self, key: &str) -> Result<&Value> {
        match self {
            Parameter::Constant(value) => Ok(value),
            Parameter::Drawn(_) => Err(hinted(
                format!("`{key}` is a distribution, which only a sweep draws from"),
                if key.contains('.') {
                    "write one value, or try several with `poolcast sweep init CONFIG -o DIR`"
                        .to_owned()
                } else {
                    format!("give one value with `--{}`", key.replace('_', "-"))
                },
            )
            .into()),
        }
    }
}

impl Serialize for Parameter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Parameter::Constant(value) => value.serialize(serializer),
            Parameter::Drawn(distribution) => distribution.serialize(serializer),
        }
    }
}

/// For a hyper-parameter of a pipeline. Values of any type are accepted, because the pipeline is
/// not known here.
impl<'de> Deserialize<'de> for Parameter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Parameter, D::Error> {
        let written = Value::deserialize(deserializer)?;
        Parameter::from_written(written, |_| Ok(())).map_err(D::Error::custom)
    }
}
