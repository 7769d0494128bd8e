//! The section `pipelines`: the search spaces of the classical pipelines.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::conditions::{check_conditions, drawn_and_constants};
use super::init_points::{InitPoints, check_no_grid};
use super::sweep::Method;
use poolcast_base::error::hinted;
use poolcast_config::{Parameter, check_range};

/// Maximum number of trials in a sweep.
pub const MAX_TRIALS: u64 = 1_000_000;

/// One search space of a classical pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PipelineSpace {
    /// Method by which trials are drawn: `grid`, `random` or `sobol`.
    #[serde(default = "default_method")]
    pub method: Method,
    /// Number of trials; a grid ignores it and tries all combinations.
    #[serde(default = "default_runs")]
    pub runs: usize,
    /// Hyper-parameters by name: values or distributions.
    #[serde(default)]
    pub parameters: BTreeMap<String, Parameter>,
    /// Points that are tried first; not for a grid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub init_points: InitPoints,
}

fn default_method() -> Method {
    Method::Random
}

fn default_runs() -> usize {
    1
}

/// The search spaces of a classical pipeline; a sweep tries all of them. A configuration has one
/// space or a list of spaces. With a list, each alternative has only its own hyper-parameters, so
/// the numbers of trials are added, not multiplied.
#[derive(Debug, Clone, PartialEq)]
pub struct PipelineSpaces(Vec<PipelineSpace>);

impl PipelineSpaces {
    /// The search spaces, in order; at least one.
    pub fn all(&self) -> &[PipelineSpace] {
        &self.0
    }
}

impl From<PipelineSpace> for PipelineSpaces {
    fn from(space: PipelineSpace) -> PipelineSpaces {
        PipelineSpaces(vec![space])
    }
}

impl Serialize for PipelineSpaces {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [space] => space.serialize(serializer),
            spaces => spaces.serialize(serializer),
        }
    }
}

/// Implemented by hand, so that an error names the key within the space.
impl<'de> Deserialize<'de> for PipelineSpaces {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PipelineSpaces, D::Error> {
        struct SpacesVisitor;

        impl<'de> Visitor<'de> for SpacesVisitor {
            type Value = PipelineSpaces;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a search space (`method`, `runs`, `parameters`, `init_points`) or a list of them")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PipelineSpaces, A::Error> {
                PipelineSpace::deserialize(MapAccessDeserializer::new(map))
                    .map(PipelineSpaces::from)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<PipelineSpaces, A::Error> {
                let spaces = Vec::deserialize(SeqAccessDeserializer::new(seq))?;
                if spaces.is_empty() {
                    return Err(A::Error::custom(
                        "a pipeline needs a search space, but the list is empty",
                    ));
                }
                Ok(PipelineSpaces(spaces))
            }
        }

        deserializer.deserialize_any(SpacesVisitor)
    }
}

/// The order in which trials start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrialOrder {
    /// Shuffled by the seed, over all pipelines and splits.
    #[default]
    Shuffled,
    /// One split after another, and within a split one trial of each pipeline in turn, as
    /// published.
    Interleaved,
}

impl PipelineSpaces {
    pub(super) fn check(&self, name: &str) -> Result<()> {
        for space in &self.0 {
            check_range(
                &format!("pipelines.{name}.runs"),
                space.runs as f64,
                1.0..=MAX_TRIALS as f64,
            )?;
            let key = format!("pipelines.{name}.init_points");
            check_no_grid(&key, &space.init_points, space.method == Method::Grid)?;
            let parameters = space.parameters.iter();
            let named = parameters.map(|(name, parameter)| (name.as_str(), parameter));
            let (drawn, constants) = drawn_and_constants(named);
            check_conditions(&drawn, &constants)
                .with_context(|| format!("cannot use `pipelines.{name}`"))?;
            ensure!(
                space.method != Method::Bayes,
                hinted(
                    format!(
                        "`pipelines.{name}.method` is `bayes`, which is for the trials of a network"
                    ),
                    "use `grid`, `random` or `sobol`"
                )
            );
        }
        Ok(())
    }
}
