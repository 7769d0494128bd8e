//! The members of an answer model after they have learned, and their probabilities.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::columns::column_names;
use super::hold_history::HoldHistory;
use crate::config::NetworkSettings;
use crate::training::{Calibration, HoldEncoder, LearnedNetwork, TrainedNetwork};
use poolcast_base::stats::sigmoid;
use poolcast_pipelines::FittedPipeline;
use poolcast_tables::FeatureTable;
use poolcast_tensors::QueriedHold;

/// A model for one question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum LearnedQuestion {
    /// The members; the base is the first.
    Members(Vec<LearnedMember>),
    /// The success rate, where too few outcomes of one kind are known to fit anything.
    Rate(f64),
}

/// A member that has learned for one question. The model that ships with the program has pipelines only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, from = "FittedPipeline")]
pub(super) enum LearnedMember {
    /// A pipeline, whose second class is success.
    Pipeline(FittedPipeline),
    /// A network.
    #[serde(skip)]
    Network(MemberNetwork),
    /// A network that could not be trained. The success rate answers for it.
    #[serde(skip)]
    Untrained {
        /// The name of the architecture.
        name: String,
        rate: f64,
    },
}

impl From<FittedPipeline> for LearnedMember {
    fn from(fitted: FittedPipeline) -> LearnedMember {
        LearnedMember::Pipeline(fitted)
    }
}

/// A network with what its inputs and its answers need.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MemberNetwork {
    pub(super) settings: NetworkSettings,
    pub(super) network: Arc<LearnedNetwork>,
    /// Divisor of every logit, at least 1.
    pub(super) temperature: f64,
}

/// Holds, each asked at some time, as the inputs of the members.
pub(super) struct AskedRows<'a> {
    pub(super) history: &'a HoldHistory<'a>,
    /// Columns for pipelines.
    pub(super) table: FeatureTable,
    /// The holds themselves, from which networks get samples.
    pub(super) asked: Vec<QueriedHold>,
}

impl MemberNetwork {
    pub(super) fn new(settings: &NetworkSettings, trained: TrainedNetwork) -> MemberNetwork {
        let threshold = settings.training.threshold;
        MemberNetwork {
            settings: settings.clone(),
            temperature: Calibration::fit(&trained.predictions, threshold).temperature,
            network: Arc::new(trained.network),
        }
    }

    /// Returns the probability of success of each of the holds, `[n]`.
    fn probabilities(&self, rows: &AskedRows<'_>) -> Result<Vec<f64>> {
        let encoder = HoldEncoder::of_network(rows.history.store, &self.settings)?;
        let logits = self.network.hold_logits(&encoder.encode(&rows.asked))?;
        let probability = |logit: f32| sigmoid(f64::from(logit) / self.temperature);
        Ok(logits.into_iter().map(probability).collect())
    }
}

impl LearnedMember {
    /// Returns the probability of success of each row, `[n]`.
    fn probabilities(&self, rows: &AskedRows<'_>) -> Result<Vec<f64>> {
        let fitted = match self {
            LearnedMember::Pipeline(fitted) => fitted,
            LearnedMember::Network(network) => return network.probabilities(rows),
            LearnedMember::Untrained { rate, .. } => return Ok(vec![*rate; rows.asked.len()]),
        };
        let both = fitted.predict(&rows.table)?;
        // Rounding leaves some means of trees just outside of the range.
        let success = both.chunks_exact(2).map(|pair| pair[1].clamp(0.0, 1.0));
        Ok(success.map(|p| if p == 0.0 { 0.0 } else { p }).collect())
    }

    /// Returns the name of the pipeline or of the architecture.
    fn name(&self) -> &str {
        match self {
            LearnedMember::Pipeline(fitted) => &fitted.pipeline,
            LearnedMember::Network(network) => network.settings.name(),
            LearnedMember::Untrained { name, .. } => name,
        }
    }

    /// Returns true if a pipeline has learned from the columns that this program computes.
    fn is_current(&self) -> bool {
        match self {
            LearnedMember::Pipeline(fitted) => {
                fitted.features == column_names() && fitted.classes().len() == 2
            }
            // Its samples are checked when it is opened.
            LearnedMember::Network(_) | LearnedMember::Untrained { .. } => true,
        }
    }
}

impl LearnedQuestion {
    /// Returns the probability of success of each row, `[n]`, by the member with this index.
    pub(super) fn probabilities(&self, member: usize, rows: &AskedRows<'_>) -> Result<Vec<f64>> {
        match self {
            LearnedQuestion::Rate(rate) => Ok(vec![*rate; rows.asked.len()]),
            LearnedQuestion::Members(_) if rows.asked.is_empty() => Ok(Vec::new()),
            LearnedQuestion::Members(members) => {
                let member = members.get(member).context("a member is missing")?;
                member.probabilities(rows)
            }
        }
    }

    /// Returns the names of the members; nothing for a rate.
    pub(super) fn names(&self) -> Vec<&str> {
        match self {
            LearnedQuestion::Rate(_) => Vec::new(),
            LearnedQuestion::Members(members) => members.iter().map(LearnedMember::name).collect(),
        }
    }

    /// Returns true if the base answers, and not the same for every cause.
    pub(super) fn tells_causes_apart(&self) -> bool {
        match self {
            LearnedQuestion::Rate(_) => false,
            LearnedQuestion::Members(members) => {
                !matches!(members.first(), Some(LearnedMember::Untrained { .. }))
            }
        }
    }

    /// Returns true if the members with the indices `answering` are there, and all have learned from the columns
    /// that this program computes.
    pub(super) fn is_current(&self, answering: &[usize]) -> bool {
        match self {
            LearnedQuestion::Rate(_) => true,
            LearnedQuestion::Members(members) => {
                let are_there = answering.iter().all(|&index| index < members.len());
                are_there && !members.is_empty() && members.iter().all(LearnedMember::is_current)
            }
        }
    }
}
