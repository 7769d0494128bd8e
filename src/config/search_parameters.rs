//! The hyper-parameters of samples or networks in a configuration: constants and distributions,
//! from which the values of a trial are drawn.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use anyhow::{Context as _, Result};
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::distribution::Distribution;
use super::parameter::Parameter;
use super::parameters::{HyperParameter, TrialParameters};

/// The hyper-parameters of a search: each is a constant or a distribution. `P` is the type of the
/// values of one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchParameters<P> {
    /// Hyper-parameters, in the order of [`TrialParameters::TABLE`].
    parameters: Vec<Parameter>,
    of_trial: PhantomData<P>,
}

impl<P: TrialParameters> SearchParameters<P> {
    /// Iterates over all hyper-parameters, with their names.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Parameter)> {
        P::NAMES.iter().copied().zip(&self.parameters)
    }

    /// Iterates over the hyper-parameters that a sweep draws, with their names.
    pub fn drawn(&self) -> impl Iterator<Item = (&'static str, &Distribution)> {
        self.all().filter_map(|(name, parameter)| match parameter {
            Parameter::Constant(_) => None,
            Parameter::Drawn(distribution) => Some((name, distribution)),
        })
    }

    /// Replaces distributions with the values of `point`.
    pub fn with_point(mut self, point: &BTreeMap<String, Value>) -> SearchParameters<P> {
        for (name, parameter) in P::NAMES.iter().zip(&mut self.parameters) {
            if let Parameter::Drawn(_) = parameter
                && let Some(value) = point.get(*name)
            {
                *parameter = Parameter::Constant(value.clone());
            }
        }
        self
    }

    /// Replaces constants and distributions with `values`.
    pub fn with_values(mut self, values: &BTreeMap<String, Value>) -> SearchParameters<P> {
        for (name, parameter) in P::NAMES.iter().zip(&mut self.parameters) {
            if let Some(value) = values.get(*name) {
                *parameter = Parameter::Constant(value.clone());
            }
        }
        self
    }

    /// Returns true if `name` is still to be derived from the log.
    pub fn is_open(&self, name: &str) -> bool {
        let mut all = P::TABLE.iter().zip(&self.parameters);
        all.any(|(known, parameter)| known.name == name && known.is_open(parameter))
    }

    /// Sets `name` to `value` if it is still to be derived from the log.
    pub fn with_chosen(mut self, name: &str, value: &Value) -> SearchParameters<P> {
        for (known, parameter) in P::TABLE.iter().zip(&mut self.parameters) {
            if known.name == name && known.is_open(parameter) {
                *parameter = Parameter::Constant(value.clone());
            }
        }
        self
    }

    /// Returns the plain values of one trial. There must be nothing left to draw.
    ///
    /// # Errors
    /// Fails for a distribution, because only a sweep draws from it, and for a value out of range.
    pub fn trial(&self) -> Result<P> {
        let mut values = Vec::new();
        for (range, parameter) in P::TABLE.iter().zip(&self.parameters) {
            let value = parameter.constant(range.name)?;
            values.push((range.name, range.accept(value)?));
        }
        let read: Result<P, serde_json::Error> =
            P::deserialize(MapDeserializer::new(values.into_iter()));
        read.context("the hyper-parameters are not those of the table")
    }

    /// Rejects constants out of range, except those that are still to be derived from the log.
    pub fn check(&self) -> Result<()> {
        for (range, parameter) in P::TABLE.iter().zip(&self.parameters) {
            if let Parameter::Constant(value) = parameter
                && !range.is_open(parameter)
            {
                range.accept(value)?;
            }
        }
        Ok(())
    }
}

impl<P: TrialParameters> Serialize for SearchParameters<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.all())
    }
}

impl<'de, P: TrialParameters> Deserialize<'de> for SearchParameters<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SearchParameters<P>, D::Error> {
        deserializer.deserialize_map(ParametersVisitor(PhantomData))
    }
}

struct ParametersVisitor<P>(PhantomData<P>);

impl<'de, P: TrialParameters> Visitor<'de> for ParametersVisitor<P> {
    type Value = SearchParameters<P>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hyper-parameters by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SearchParameters<P>, A::Error> {
        let mut found: BTreeMap<&str, Parameter> = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            let Some(known) = P::TABLE.iter().find(|known| known.name == name) else {
                return Err(A::Error::unknown_field(&name, P::NAMES));
            };
            found.insert(known.name, map.next_value_seed(known)?);
        }

        // Bring the parameters into the order of the table.
        let mut parameters = Vec::new();
        for &name in P::NAMES {
            let parameter = found.remove(name);
            parameters.push(parameter.ok_or_else(|| A::Error::missing_field(name))?);
        }
        Ok(SearchParameters {
            parameters,
            of_trial: PhantomData,
        })
    }
}

impl HyperParameter {
    /// Returns true if `parameter`, a value of this hyper-parameter, is still to be derived from
    /// the log.
    fn is_open(&self, parameter: &Parameter) -> bool {
        matches!(parameter, Parameter::Constant(value) if self.range.is_open(value))
    }
}

impl<'de> DeserializeSeed<'de> for &HyperParameter {
    type Value = Parameter;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Parameter, D::Error> {
        let written = Value::deserialize(deserializer)?;
        Parameter::from_written(written, |value| self.range.check_kind(value))
            .map_err(D::Error::custom)
    }
}
