//! The files of the members of an answer model, and what the manifest says about each.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::learned_member::{LearnedMember, MemberNetwork};
use crate::config::NetworkSettings;
use crate::training::{LearnedNetwork, StaticRange, model_shape, open_model, write_model};
use poolcast_base::error::unavailable;
use poolcast_base::{files, manifest};
use poolcast_pipelines::{FittedPipeline, PIPELINE_FILE};

/// Maximum size of the file of a pipeline, in bytes.
const MAX_PIPELINE_BYTES: u64 = 1 << 32;

/// Hint for a member that is not the one of the manifest.
const COPY_AGAIN: &str = "copy the model again, or learn again";

/// A member in the manifest.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MemberSummary {
    /// The digest of the file of a pipeline.
    Pipeline(String),
    Network(Box<NetworkSummary>),
    /// The success rate in place of a network that could not be trained.
    Untrained {
        /// The name of the architecture.
        name: String,
        rate: f64,
    },
}

/// A network in the manifest.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NetworkSummary {
    #[serde(flatten)]
    settings: NetworkSettings,
    static_range: StaticRange,
    temperature: f64,
    /// The digest of the file of its weights.
    model_sha256: String,
}

impl MemberSummary {
    /// Writes the files of `member` to its directory `dir`.
    pub(super) fn write(member: &LearnedMember, dir: &Path) -> Result<MemberSummary> {
        fs_err::create_dir_all(dir)?;
        Ok(match member {
            LearnedMember::Pipeline(fitted) => {
                fitted.write(dir)?;
                let bytes = files::read_artefact(&dir.join(PIPELINE_FILE), MAX_PIPELINE_BYTES)?;
                MemberSummary::Pipeline(manifest::sha256(&bytes))
            }
            LearnedMember::Network(member) => MemberSummary::Network(Box::new(NetworkSummary {
                settings: member.settings.clone(),
                static_range: member.network.static_range.clone(),
                temperature: member.temperature,
                model_sha256: write_model(dir, &member.network.model)?,
            })),
            LearnedMember::Untrained { name, rate } => MemberSummary::Untrained {
                name: name.clone(),
                rate: *rate,
            },
        })
    }

    /// Opens the member in `dir`.
    ///
    /// # Errors
    /// Fails if a file is damaged, or not the one of the manifest.
    pub(super) fn open(&self, dir: &Path) -> Result<LearnedMember> {
        match self {
            MemberSummary::Pipeline(sha256) => open_pipeline(dir, sha256),
            MemberSummary::Network(summary) => summary.open(dir),
            MemberSummary::Untrained { name, rate } => Ok(LearnedMember::Untrained {
                name: name.clone(),
                rate: rate.clamp(0.0, 1.0),
            }),
        }
    }
}

fn open_pipeline(dir: &Path, sha256: &str) -> Result<LearnedMember> {
    let path = dir.join(PIPELINE_FILE);
    let bytes = files::read_artefact(&path, MAX_PIPELINE_BYTES)?;
    ensure!(
        manifest::sha256(&bytes) == sha256,
        unavailable(
            format!("`{}` is not the file of its manifest", path.display()),
            COPY_AGAIN
        )
    );
    FittedPipeline::from_bytes(&bytes, &path).map(LearnedMember::Pipeline)
}

impl NetworkSummary {
    fn open(&self, dir: &Path) -> Result<LearnedMember> {
        let NetworkSettings { training, tensors } = &self.settings;
        let architecture = training.architecture()?;
        tensors.check()?;
        let shape = model_shape(tensors, training, architecture);
        ensure!(
            self.temperature >= 1.0
                && self.temperature.is_finite()
                && self.static_range.is_of(shape.s),
            unavailable("the manifest has numbers that no network has", COPY_AGAIN)
        );
        let model = open_model(dir, architecture, shape, &self.model_sha256, COPY_AGAIN)?;
        Ok(LearnedMember::Network(MemberNetwork {
            settings: self.settings.clone(),
            network: Arc::new(LearnedNetwork {
                model,
                static_range: self.static_range.clone(),
            }),
            temperature: self.temperature,
        }))
    }
}
