//! Stores models on disk: the learned files first, the manifest last.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::feature_pipelines::{FeaturePipelines, pipeline_dir};
use super::held_back_scores::HeldBackScores;
use super::learned_model::{LearnedModel, ModelAnswer};
use super::learning_state::LearningEpoch;
use super::training_checkpoint::{checkpoint_key, checkpoint_paths};
use super::wait_estimator::{EstimatorParts, TimeInputs, WaitEstimator};
use poolcast_base::error::hinted;
use poolcast_base::files;
use poolcast_base::manifest;
use poolcast_base::shard::ArtefactFormat;
use poolcast_base::temporary;
use poolcast_config::{WaitModelName, WaitModelTarget};
use poolcast_published::{ActionValues, NETWORK_FILE, PolicyHead, ScaledNetwork};

/// Format of a model directory.
pub const WAIT_MODEL_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "wait model",
    version: 1,
    rebuild: "poolcast provision train SAMPLES -o MODEL",
};

/// Properties of a model, and the inputs it accepts. Times are epoch seconds, durations seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitModelDescription {
    /// Kind of the model: its name in the configuration.
    pub kind: WaitModelName,
    /// Kind of the base model, if there is one.
    pub base: Option<WaitModelName>,
    /// Quantity that the model, or its base, learned to predict.
    pub target: WaitModelTarget,
    /// Nodes per chained job.
    pub job_nodes: u32,
    /// Time limit of a chained job, in seconds.
    pub limit_s: i64,
    /// Names of the features, in order.
    pub feature_names: Vec<String>,
    /// Cost of an hour of interruption, in hours of overlap, for each answer.
    pub cost_ratios: Vec<f64>,
    /// True if the model reads snapshots of the last day.
    pub takes_snapshots: bool,
    /// Latest time on which the model depends, epoch seconds. Includes the data that chose its
    /// epoch, and its base model.
    pub learned_until_s: i64,
    /// Digest of all inputs of the training.
    #[serde(skip)]
    pub key: String,
}

/// Result of a training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitModelSummary {
    /// The model.
    #[serde(flatten)]
    pub description: WaitModelDescription,
    /// Parameter count of a network or a head.
    pub parameters: Option<usize>,
    /// Number of windows learned from.
    pub learned_windows: usize,
    /// Number of skipped windows between the learned and the held-back ones.
    pub left_out_windows: usize,
    /// Number of windows held back for the evaluation.
    pub held_back_windows: usize,
    /// Epochs of the training; empty for pipelines.
    pub epochs: Vec<LearningEpoch>,
    /// Scores on the held-back windows.
    pub held_back: HeldBackScores,
}

/// A trained model that answers queries.
#[derive(Debug)]
pub struct WaitModel {
    description: WaitModelDescription,
    pub(super) learned: LearnedModel,
}

/// Contents of the manifest.
#[derive(Serialize, Deserialize)]
struct WaitModelManifest {
    #[serde(flatten)]
    summary: WaitModelSummary,
    files: ModelFiles,
}

/// Learned files and values of a model.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ModelFiles {
    /// Digest of the network's file.
    network_xxh3: Option<String>,
    /// Digests of the pipelines' files.
    pipelines_xxh3: Vec<String>,
    head: Option<PolicyHead>,
}

/// State of a directory before a training writes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DirectoryState {
    /// The finished model is already there.
    Done,
    /// The training must run. The directory may hold a checkpoint, from which it resumes.
    Open,
}

impl WaitModel {
    /// Opens the model in `dir`.
    ///
    /// # Errors
    /// Fails if there is no model, or one of another version.
    pub fn open(dir: &Path) -> Result<WaitModel> {
        let found = manifest::read::<WaitModelManifest>(dir, WAIT_MODEL_FORMAT)?;
        let WaitModelManifest { summary, files } = found.body;
        let learned = read_learned(dir, &summary.description, files).with_context(|| {
            hinted(
                format!("`{}` is not usable", dir.display()),
                format!("recreate it with `{}`", WAIT_MODEL_FORMAT.rebuild),
            )
        })?;
        let description = WaitModelDescription {
            key: found.key,
            ..summary.description
        };
        Ok(WaitModel {
            description,
            learned,
        })
    }

    /// Returns the properties of the model.
    pub fn description(&self) -> &WaitModelDescription {
        &self.description
    }

    /// Returns true if the model answers with a decision, not with a wait.
    pub fn decides(&self) -> bool {
        self.learned.decides()
    }

    /// Answers for one decision time. `features` `[f]` and `snapshots` `[144, 42]` describe the
    /// queue, and the predecessor runs for another `left_s` seconds. For a model that takes no
    /// snapshots, `snapshots` may be empty.
    ///
    /// # Panics
    /// Panics if the inputs do not have the shape that the description states.
    pub fn answer(&self, features: &[f32], snapshots: &[f32], left_s: i64) -> ModelAnswer {
        assert_eq!(
            features.len(),
            self.description.feature_names.len(),
            "the features must be those of the description"
        );
        let inputs = TimeInputs {
            features,
            snapshots,
            left_s,
        };
        let answer = self.learned.answer(inputs, &self.description.cost_ratios);
        answer.expect("the inputs have the shape that the description states")
    }
}

/// Reads the files that the manifest lists, and checks their digests.
fn read_learned(
    dir: &Path,
    description: &WaitModelDescription,
    files: ModelFiles,
) -> Result<LearnedModel> {
    if description.kind == WaitModelName::Dqn {
        let network = read_network(dir, &files)?;
        return Ok(LearnedModel::Values(ActionValues { network }));
    }
    // A reward depends on the predecessor's remaining time; a wait does not.
    let has_left_column = description.target == WaitModelTarget::Reward;
    let parts = if description.takes_snapshots {
        EstimatorParts::Snapshots(read_network(dir, &files)?)
    } else {
        let digests = &files.pipelines_xxh3;
        EstimatorParts::Features(FeaturePipelines::read(dir, digests, has_left_column)?)
    };
    let estimator = Arc::new(WaitEstimator {
        target: description.target,
        learned: parts,
    });
    Ok(match files.head {
        Some(head) => {
            head.check(estimator.head_inputs())?;
            LearnedModel::Head {
                base: estimator,
                head,
            }
        }
        None => LearnedModel::Estimator(estimator),
    })
}

fn read_network(dir: &Path, files: &ModelFiles) -> Result<ScaledNetwork> {
    let xxh3 = files.network_xxh3.as_deref();
    let xxh3 = xxh3.context("its manifest lists no network")?;
    ScaledNetwork::read(dir, xxh3, WAIT_MODEL_FORMAT)
}

/// Writes the learned files into `dir`, then the manifest. Removes the checkpoint afterwards.
pub(super) fn write_model(
    dir: &Path,
    key: &str,
    learned: &LearnedModel,
    summary: WaitModelSummary,
) -> Result<()> {
    let mut files = ModelFiles::default();
    let estimator = match learned {
        LearnedModel::Values(values) => {
            files.network_xxh3 = Some(values.network.write(dir, WAIT_MODEL_FORMAT)?);
            None
        }
        LearnedModel::Estimator(estimator) => Some(estimator),
        LearnedModel::Head { base, head } => {
            files.head = Some(head.clone());
            Some(base)
        }
    };
    if let Some(estimator) = estimator {
        match &estimator.learned {
            EstimatorParts::Features(pipelines) => {
                files.pipelines_xxh3 = pipelines.write(dir)?;
            }
            EstimatorParts::Snapshots(network) => {
                files.network_xxh3 = Some(network.write(dir, WAIT_MODEL_FORMAT)?);
            }
        }
    }
    let body = WaitModelManifest { summary, files };
    manifest::write(dir, WAIT_MODEL_FORMAT, key, &body)?;
    remove_checkpoint(dir)
}

/// Returns the summary of the training `key` if it has finished in `dir`.
pub fn finished_summary(dir: &Path, key: &str) -> Option<WaitModelSummary> {
    let found = manifest::finished_key(dir, WAIT_MODEL_FORMAT);
    if found.as_deref() == Some(key) {
        read_summary(dir).ok()
    } else {
        None
    }
}

/// Reads the training summary from the manifest of the model in `dir`.
///
/// # Errors
/// Fails like [`WaitModel::open`].
pub(super) fn read_summary(dir: &Path) -> Result<WaitModelSummary> {
    Ok(manifest::read::<WaitModelManifest>(dir, WAIT_MODEL_FORMAT)?
        .body
        .summary)
}

/// Prepares `dir` for the training `key`: removes leftovers, and with `overwrite` also another
/// model or checkpoint.
///
/// # Errors
/// Fails if something else is there and `overwrite` is false, or if it is not a wait model.
pub(super) fn prepare_directory(dir: &Path, key: &str, overwrite: bool) -> Result<DirectoryState> {
    temporary::remove_leftovers(dir);
    let has_manifest = dir.join(manifest::FILE).is_file();
    if has_manifest && !overwrite {
        let found = manifest::finished_key(dir, WAIT_MODEL_FORMAT);
        ensure!(
            found.as_deref() == Some(key),
            hinted(
                format!("`{}` already holds something else", dir.display()),
                "name another directory"
            )
        );
        remove_checkpoint(dir)?;
        return Ok(DirectoryState::Done);
    }
    if has_manifest {
        // Never remove anything but a wait model.
        let name = manifest::format_name(dir)?;
        if name.as_deref() != Some(WAIT_MODEL_FORMAT.name) {
            bail!(hinted(
                format!(
                    "`{}` is not a wait model, so it is not replaced",
                    dir.display()
                ),
                "name another directory"
            ));
        }
        files::remove_all([manifest::FILE, NETWORK_FILE].map(|file| dir.join(file)))?;
        let pipelines = (0..).map(|number| pipeline_dir(dir, number));
        files::remove_all(pipelines.take_while(|pipeline| pipeline.is_dir()))?;
    }

    let mut checkpoints = checkpoint_paths(dir).into_iter();
    let is_ours = checkpoints.all(|path| checkpoint_key(&path).as_deref() == Some(key));
    if !is_ours && overwrite {
        remove_checkpoint(dir)?;
    }
    Ok(DirectoryState::Open)
}

fn remove_checkpoint(dir: &Path) -> Result<()> {
    files::remove_all(checkpoint_paths(dir))
}
