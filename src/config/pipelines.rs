//! `pipelines` as it is written → the search spaces of each classical pipeline.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::range::check_range;
use super::{Method, Parameter};
use poolcast_base::error::hinted;

/// The most that a sweep tries.
pub const MOST_TRIALS: u64 = 1_000_000;

/// One search space of a classical pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PipelineSpace {
    /// How its trials are drawn: `grid`, `random` or `sobol`.
    #[serde(default = "default_method")]
    pub method: Method,
    /// How many; a grid is made whole.
    #[serde(default = "default_runs")]
    pub runs: usize,
    /// Its hyper-parameters.
    #[serde(default)]
    pub parameters: BTreeMap<String, Parameter>,
}

fn default_method() -> Method {
    Method::Random
}

fn default_runs() -> usize {
    1
}

/// The search spaces of a classical pipeline, of which it tries all: written as one space, or as a
/// list of them where a choice has hyper-parameters of its own, so that alternatives are a sum and
/// no product.
#[derive(Debug, Clone, PartialEq)]
pub struct PipelineSpaces(Vec<PipelineSpace>);

impl PipelineSpaces {
    /// The spaces, in order; at least one.
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

/// By hand, so that a message names the key within the space.
impl<'de> Deserialize<'de> for PipelineSpaces {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PipelineSpaces, D::Error> {
        struct OneOrMore;

        impl<'de> Visitor<'de> for OneOrMore {
            type Value = PipelineSpaces;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a search space (`method`, `runs`, `parameters`) or a list of them")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PipelineSpaces, A::Error> {
                PipelineSpace::deserialize(MapAccessDeserializer::new(map))
                    .map(PipelineSpaces::from)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<PipelineSpaces, A::Error> {
                let spaces = Vec::deserialize(SeqAccessDeserializer::new(seq))?;
                if spaces.is_empty() {
                    return Err(A::Error::custom(
                        "a pipeline needs a search space, and the list is empty",
                    ));
                }
                Ok(PipelineSpaces(spaces))
            }
        }

        deserializer.deserialize_any(OneOrMore)
    }
}

/// In which order trials are begun.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrialOrder {
    /// By the seed, over pipelines and splits.
    #[default]
    Shuffled,
    /// Split by split, and within one a trial of each pipeline in turn, as published.
    Interleaved,
}

impl PipelineSpaces {
    pub(super) fn check(&self, name: &str) -> Result<()> {
        for space in &self.0 {
            check_range(
                &format!("pipelines.{name}.runs"),
                space.runs as f64,
                1.0..=MOST_TRIALS as f64,
            )?;
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
