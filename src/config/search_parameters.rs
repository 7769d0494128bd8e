//! The hyper-parameters of samples, networks or wait models in a configuration: constants and
//! distributions, from which the values of a trial are drawn.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use anyhow::{Context as _, Result};
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::distribution::Distribution;
use super::parameter::Parameter;
use super::parameters::{HyperParameter, TrialParameters};

/// The hyper-parameters of a search: each is a constant or a distribution. `P` is the type of the
/// values of one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchParameters<P> {
    /// Hyper-parameters, in the order of [`TrialParameters::TABLE`].
    parameters: Vec<Parameter>,
    /// Hyper-parameters of a pipeline, in the map [`TrialParameters::PIPELINE`].
    of_pipeline: BTreeMap<String, Parameter>,
    of_trial: PhantomData<P>,
}

impl<P: TrialParameters> SearchParameters<P> {
    /// Iterates over all hyper-parameters, with their names. The name of a pipeline's
    /// hyper-parameter is dotted, as in `parameters.max_depth`.
    pub fn all(&self) -> impl Iterator<Item = (Cow<'static, str>, &Parameter)> {
        let of_pipeline = self.of_pipeline.iter();
        own_names::<P>()
            .zip(&self.parameters)
            .chain(of_pipeline.map(|(name, parameter)| (dotted_name::<P>(name), parameter)))
    }

    fn all_mut(&mut self) -> impl Iterator<Item = (Cow<'static, str>, &mut Parameter)> {
        let of_pipeline = self.of_pipeline.iter_mut();
        own_names::<P>()
            .zip(&mut self.parameters)
            .chain(of_pipeline.map(|(name, parameter)| (dotted_name::<P>(name), parameter)))
    }

    /// The hyper-parameters of a pipeline, by their names in the pipeline's table.
    pub fn of_pipeline(&self) -> &BTreeMap<String, Parameter> {
        &self.of_pipeline
    }

    /// Returns the constant `name`, or examples of the values that it is drawn from; nothing if
    /// there is no hyper-parameter `name`.
    pub fn written_values(&self, name: &str) -> Vec<Value> {
        match self.all().find(|(known, _)| known == name) {
            Some((_, Parameter::Constant(value))) => vec![value.clone()],
            Some((_, Parameter::Drawn(distribution))) => distribution.examples(),
            None => Vec::new(),
        }
    }

    /// Iterates over the hyper-parameters that a sweep draws, with their names.
    pub fn drawn(&self) -> impl Iterator<Item = (Cow<'static, str>, &Distribution)> {
        self.all().filter_map(|(name, parameter)| match parameter {
            Parameter::Constant(_) => None,
            Parameter::Drawn(distribution) => Some((name, distribution)),
        })
    }

    /// Replaces distributions with the values of `point`.
    pub fn with_point(mut self, point: &BTreeMap<String, Value>) -> SearchParameters<P> {
        for (name, parameter) in self.all_mut() {
            if let Parameter::Drawn(_) = parameter
                && let Some(value) = point.get(&*name)
            {
                *parameter = Parameter::Constant(value.clone());
            }
        }
        self
    }

    /// Replaces the distributions of parameters that a trial does not have, because their condition
    /// does not hold: by the constants of `defaults`, and in a pipeline by nothing.
    pub fn without_conditional(mut self, defaults: &SearchParameters<P>) -> SearchParameters<P> {
        let is_conditional = |parameter: &Parameter| matches!(parameter, Parameter::Drawn(drawn) if drawn.condition().is_some());
        for (parameter, default) in self.parameters.iter_mut().zip(&defaults.parameters) {
            if is_conditional(parameter) {
                parameter.clone_from(default);
            }
        }
        self.of_pipeline
            .retain(|_, parameter| !is_conditional(parameter));
        self
    }

    /// Replaces constants and distributions with `values`.
    pub fn with_values(mut self, values: &BTreeMap<String, Value>) -> SearchParameters<P> {
        for (name, parameter) in self.all_mut() {
            if let Some(value) = values.get(&*name) {
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
        for (known, parameter) in P::TABLE.iter().zip(&self.parameters) {
            let key = key_of::<P>(known.name);
            let value = known.accept(&key, parameter.constant(&key)?)?;
            values.push((known.name, value));
        }
        if let Some(pipeline) = P::PIPELINE {
            let mut of_pipeline = Map::new();
            for (name, parameter) in &self.of_pipeline {
                let value = parameter.constant(&key_of::<P>(&dotted_name::<P>(name)))?;
                of_pipeline.insert(name.clone(), value.clone());
            }
            values.push((pipeline, Value::Object(of_pipeline)));
        }
        let read: Result<P, serde_json::Error> =
            P::deserialize(MapDeserializer::new(values.into_iter()));
        read.context("the hyper-parameters are not those of the table")
    }

    /// Rejects constants out of range, except those that are still to be derived from the log.
    pub fn check(&self) -> Result<()> {
        for (known, parameter) in P::TABLE.iter().zip(&self.parameters) {
            if let Parameter::Constant(value) = parameter
                && !known.is_open(parameter)
            {
                known.accept(&key_of::<P>(known.name), value)?;
            }
        }
        Ok(())
    }

    /// Like [`SearchParameters::check`], but also rejects distributions with examples out of range.
    pub fn check_examples(&self) -> Result<()> {
        self.check()?;
        for (known, parameter) in P::TABLE.iter().zip(&self.parameters) {
            if let Parameter::Drawn(distribution) = parameter {
                for example in distribution.examples() {
                    known.accept(&key_of::<P>(known.name), &example)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the names of the hyper-parameters in the table.
fn own_names<P: TrialParameters>() -> impl Iterator<Item = Cow<'static, str>> {
    P::TABLE.iter().map(|known| Cow::Borrowed(known.name))
}

/// Returns the name among all hyper-parameters of the pipeline's hyper-parameter `name`.
fn dotted_name<P: TrialParameters>(name: &str) -> Cow<'static, str> {
    Cow::Owned(format!("{}.{name}", P::PIPELINE.unwrap_or_default()))
}

/// Returns the key of the hyper-parameter `name`, for a message.
fn key_of<P: TrialParameters>(name: &str) -> String {
    format!("{}{name}", P::KEY_PREFIX)
}

impl<P: TrialParameters> Serialize for SearchParameters<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (known, parameter) in P::TABLE.iter().zip(&self.parameters) {
            map.serialize_entry(known.name, parameter)?;
        }
        if let Some(pipeline) = P::PIPELINE {
            map.serialize_entry(pipeline, &self.of_pipeline)?;
        }
        map.end()
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
        let mut of_pipeline = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            if P::PIPELINE == Some(name.as_str()) {
                of_pipeline = map.next_value()?;
                continue;
            }
            let Some(known) = P::TABLE.iter().find(|known| known.name == name) else {
                return Err(A::Error::unknown_field(&name, P::NAMES));
            };
            found.insert(known.name, map.next_value_seed(known)?);
        }

        // Bring the parameters into the order of the table.
        let mut parameters = Vec::new();
        for known in P::TABLE {
            let parameter = found.remove(known.name).or_else(|| known.unset());
            parameters.push(parameter.ok_or_else(|| A::Error::missing_field(known.name))?);
        }
        Ok(SearchParameters {
            parameters,
            of_pipeline,
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

    /// Returns the value of a missing key; `None` if it may not be missing. Configurations that
    /// were written before a key existed do not have it.
    fn unset(&self) -> Option<Parameter> {
        self.is_optional.then_some(Parameter::Constant(Value::Null))
    }
}

impl<'de> DeserializeSeed<'de> for &HyperParameter {
    type Value = Parameter;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Parameter, D::Error> {
        let written = Value::deserialize(deserializer)?;
        Parameter::from_written(written, |value| self.check_kind(value)).map_err(D::Error::custom)
    }
}
