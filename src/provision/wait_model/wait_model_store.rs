//! A model on disk: what was learned, and the manifest last.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::action_values::ActionValues;
use super::feature_pipelines::{FeaturePipelines, pipeline_dir};
use super::held_back_scores::HeldBackScores;
use super::learned_model::{LearnedModel, ModelAnswer};
use super::learning_state::LearningEpoch;
use super::policy_head::PolicyHead;
use super::scaled_network::{NETWORK_FILE, ScaledNetwork};
use super::training_checkpoint::{checkpoint_key, checkpoint_paths};
use super::wait_estimator::{EstimatorParts, MomentInputs, WaitEstimator};
use poolcast_config::{WaitModelName, WaitModelTarget};
use poolcast_base::error::hinted;
use poolcast_base::files;
use poolcast_base::manifest;
use poolcast_base::shard::ArtefactFormat;
use poolcast_base::temporary;

/// Models of waits.
pub const WAIT_MODEL_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "wait model",
    version: 1,
    rebuild: "poolcast provision train SAMPLES -o MODEL",
};

/// What a model is, and what it may be asked. Moments are epoch seconds, spans seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitModelDescription {
    /// Its kind: the name in the configuration.
    pub kind: WaitModelName,
    /// The kind of what it stands on, if it does.
    pub base: Option<WaitModelName>,
    /// What it, or its base, learned to say.
    pub target: WaitModelTarget,
    /// How many nodes the chained jobs have.
    pub job_nodes: u32,
    /// How long they may run.
    pub limit_s: i64,
    /// What its features are, in order.
    pub feature_names: Vec<String>,
    /// What an hour of interruption costs in hours of overlap, for each of its answers.
    pub cost_ratios: Vec<f64>,
    /// Whether it reads snapshots of the last day.
    pub takes_snapshots: bool,
    /// The last moment that anything depends on that it was made from, the choice of its epoch and
    /// its base included.
    pub learned_until_s: i64,
    /// The digest of everything it was made from.
    #[serde(skip)]
    pub key: String,
}

/// What came of a training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitModelSummary {
    /// The model.
    #[serde(flatten)]
    pub description: WaitModelDescription,
    /// How many parameters a network or a head has.
    pub parameters: Option<usize>,
    /// How many windows were learned from.
    pub learned_windows: usize,
    /// How many, between them and the others, were left out.
    pub left_out_windows: usize,
    /// How many were held back to judge by.
    pub held_back_windows: usize,
    /// The epochs, if there were some.
    pub epochs: Vec<LearningEpoch>,
    /// What it comes to on the windows that were held back.
    pub held_back: HeldBackScores,
}

/// A model that answers.
#[derive(Debug)]
pub struct WaitModel {
    description: WaitModelDescription,
    pub(super) learned: LearnedModel,
}

/// What the manifest says beside the summary.
#[derive(Serialize, Deserialize)]
struct WaitModelManifest {
    #[serde(flatten)]
    summary: WaitModelSummary,
    files: ModelFiles,
}

/// What a model is made of.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ModelFiles {
    /// The digest of the file of its network.
    network_xxh3: Option<String>,
    /// Those of its pipelines.
    pipelines_xxh3: Vec<String>,
    head: Option<PolicyHead>,
}

/// What is in a directory that a training is to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceState {
    /// The model itself.
    Done,
    /// Nothing, or what the same training has left when it was stopped.
    Open,
}

impl WaitModel {
    /// Opens the model in `dir`.
    ///
    /// # Errors
    /// Fails where there is none, or one of another version.
    pub fn open(dir: &Path) -> Result<WaitModel> {
        let found = manifest::read::<WaitModelManifest>(dir, WAIT_MODEL_FORMAT)?;
        let WaitModelManifest { summary, files } = found.body;
        let learned = read_learned(dir, &summary.description, files).with_context(|| {
            hinted(
                format!("`{}` is not usable", dir.display()),
                format!("make it anew with `{}`", WAIT_MODEL_FORMAT.rebuild),
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

    /// What it is.
    pub fn description(&self) -> &WaitModelDescription {
        &self.description
    }

    /// Whether it says whether to submit, in place of how long a successor waits.
    pub fn decides(&self) -> bool {
        self.learned.decides()
    }

    /// What it says of a moment at which the queue is as `features` `[f]` and `snapshots` `[144, 42]`
    /// have it, and the predecessor runs on for `left_s` seconds. A model that takes no snapshots may
    /// be given none.
    ///
    /// # Panics
    /// Panics where the inputs are not those that the description names.
    pub fn answer(&self, features: &[f32], snapshots: &[f32], left_s: i64) -> ModelAnswer {
        assert_eq!(
            features.len(),
            self.description.feature_names.len(),
            "the features are those of the description"
        );
        let inputs = MomentInputs {
            features,
            snapshots,
            left_s,
        };
        let answer = self.learned.answer(inputs, &self.description.cost_ratios);
        answer.expect("inputs have the shape that the description names")
    }
}

fn read_learned(
    dir: &Path,
    description: &WaitModelDescription,
    files: ModelFiles,
) -> Result<LearnedModel> {
    if description.kind == WaitModelName::Dqn {
        let network = read_network(dir, &files)?;
        return Ok(LearnedModel::Values(ActionValues { network }));
    }
    let takes_left = description.target == WaitModelTarget::Reward;
    let parts = if description.takes_snapshots {
        EstimatorParts::Snapshots(read_network(dir, &files)?)
    } else {
        let digests = &files.pipelines_xxh3;
        EstimatorParts::Features(FeaturePipelines::read(dir, digests, takes_left)?)
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

/// Writes what was learned, the manifest last, into `dir`; then removes the checkpoint.
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

/// The training called `key`, if it has ended in `dir`.
pub fn finished_summary(dir: &Path, key: &str) -> Option<WaitModelSummary> {
    let found = manifest::finished_key(dir, WAIT_MODEL_FORMAT);
    if found.as_deref() == Some(key) {
        read_summary(dir).ok()
    } else {
        None
    }
}

/// Reads what the manifest of the model in `dir` says of its training.
///
/// # Errors
/// Fails as [`WaitModel::open`] does.
pub(super) fn read_summary(dir: &Path) -> Result<WaitModelSummary> {
    Ok(manifest::read::<WaitModelManifest>(dir, WAIT_MODEL_FORMAT)?
        .body
        .summary)
}

/// Looks what is in `dir`, where the training called `key` is to write; removes what it may replace.
///
/// # Errors
/// Fails where something else is there, and `overwrite` does not say that it is to go.
pub(super) fn prepare_place(dir: &Path, key: &str, overwrite: bool) -> Result<PlaceState> {
    temporary::remove_leftovers(dir);
    let has_manifest = dir.join(manifest::FILE).is_file();
    if has_manifest && !overwrite {
        let found = manifest::finished_key(dir, WAIT_MODEL_FORMAT);
        ensure!(
            found.as_deref() == Some(key),
            hinted(
                format!("`{}` holds something else already", dir.display()),
                "name another directory; `--help` says how one is replaced"
            )
        );
        remove_checkpoint(dir)?;
        return Ok(PlaceState::Done);
    }
    if has_manifest {
        // Refuses to remove what is no model.
        let name = manifest::format_name(dir)?;
        if name.as_deref() != Some(WAIT_MODEL_FORMAT.name) {
            bail!(hinted(
                format!(
                    "`{}` holds no model of waits, so it is not replaced",
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
    Ok(PlaceState::Open)
}

fn remove_checkpoint(dir: &Path) -> Result<()> {
    files::remove_all(checkpoint_paths(dir))
}
