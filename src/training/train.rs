//! Tensors → a trained model: the visible loop, early stopping, a checkpoint after each epoch.

use std::path::Path;

use anyhow::{Result, ensure};
use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};

use super::adam::{Adam, Rule};
use super::checkpoint::{self, Checkpoint};
use super::metrics::{Scores, cross_entropy, probability};
use super::run::{RUN, Run};
use super::samples::Samples;
use crate::config::{Config, Goal, Metric};
use crate::error::hinted;
use crate::manifest;
use crate::models::{self, Architecture, Device, Gradient, Model, Shape};
use crate::tensors::{Dataset, STATICS, Side};

/// Samples scored at once; has no influence on the scores.
const SCORED_AT_ONCE: usize = 256;

/// Everything that decides what a training gives, apart from its tensors.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Settings {
    /// The name of the architecture that is trained.
    pub model: String,
    /// Layers.
    pub lstm_layers: usize,
    /// Width of each layer.
    pub hidden_size: usize,
    /// Adam's learning rate.
    pub learning_rate: f64,
    /// The share of the learning rate by which every weight shrinks at each step.
    pub weight_decay: f64,
    /// The largest norm of a gradient; 0 is no limit.
    pub clip_grad_norm: f64,
    /// Samples a step.
    pub batch_size: usize,
    /// The most epochs.
    pub epochs: usize,
    /// Epochs without improvement after which training stops.
    pub earlystop_threshold: usize,
    /// What is watched on the validation side.
    pub metric: Metric,
    /// The root seed.
    pub seed: u64,
}

impl Settings {
    /// The settings in `config`, whose training parameters must be numbers and not distributions.
    pub fn of(config: &Config) -> Result<Settings> {
        let parameters = &config.training.parameters;
        let model = parameters.model.constant("model")?;
        Ok(Settings {
            model: models::architecture(&model)?.name().to_owned(),
            lstm_layers: parameters.lstm_layers.whole("lstm_layers", 1..=16)?,
            hidden_size: parameters.hidden_size.whole("hidden_size", 1..=4096)?,
            learning_rate: parameters.learning_rate.constant("learning_rate", 0.0..=10.0)?,
            weight_decay: parameters.weight_decay.constant("weight_decay", 0.0..=1000.0)?,
            clip_grad_norm: parameters.clip_grad_norm.constant("clip_grad_norm", 0.0..=1e9)?,
            batch_size: parameters.batch_size.whole("batch_size", 1..=1_000_000)?,
            epochs: config.epochs,
            earlystop_threshold: config.earlystop_threshold,
            metric: config.wandb.sweep.metric.clone(),
            seed: config.seed,
        })
    }

    /// What is trained.
    pub(super) fn architecture(&self) -> Result<&'static dyn Architecture> {
        models::architecture(&self.model)
    }

    /// The digest of everything that a training on the tensors `tensors_key` depends on.
    pub fn key(&self, tensors_key: &str) -> Result<String> {
        manifest::key(&(RUN.version, self, tensors_key))
    }
}

/// One epoch of a training's history.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Epoch {
    /// Counted from 1.
    pub epoch: usize,
    /// Mean cross-entropy over the training samples, each scored before the step that learns from it.
    pub train_loss: f64,
    /// Mean cross-entropy over the validation samples, after the epoch.
    pub validation_loss: f64,
    /// The scores on the validation samples, after the epoch.
    pub validation: Scores,
    /// Whether the watched metric was the best so far.
    pub is_best: bool,
}

/// What to do with what an earlier training left in the run's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Refuse to touch it.
    New,
    /// Go on from its last checkpoint; a finished training is left as it is.
    Resume,
    /// Start anew.
    Overwrite,
}

/// The loss was no longer a number: the trial failed, and will fail again with the same settings.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the loss is not finite in epoch {epoch}; a smaller learning rate may help")]
pub struct NonFinite {
    /// The epoch, counted from 1.
    pub epoch: usize,
}

/// Trains on `dataset`, on `device`, and leaves the run in `dir`: its configuration, history, checkpoint, and the weights of the best
/// epoch; the manifest comes last. `progress` hears of each epoch once its checkpoint is on disk.
///
/// The result depends on the tensors, the settings and the kind of device alone. A training that was killed at any moment and resumed gives
/// the same bytes as one that was not.
///
/// # Errors
/// Fails when a side has no samples, when `dir` holds another training, and with [`NonFinite`].
pub fn train(
    dataset: &Dataset,
    config: &Config,
    dir: &Path,
    mode: Mode,
    device: &Device,
    progress: impl Fn(&Epoch),
) -> Result<Run> {
    let settings = Settings::of(config)?;
    for side in [Side::Train, Side::Validate] {
        ensure!(
            !dataset.is_empty(side),
            hinted(
                format!("there are no {} samples", side.name()),
                "parse a longer log, or change `preprocessing.fractions`"
            )
        );
    }
    let key = settings.key(&dataset.key)?;
    if mode == Mode::Resume && manifest::finished_key(dir, RUN).as_ref() == Some(&key) {
        return Run::open(dir);
    }
    let mut state = begin(dataset, &settings, &key, dir, mode, device)?;
    let samples = |side| Samples::new(dataset, side, state.model.shape);
    let (to_learn, to_watch) = (samples(Side::Train)?, samples(Side::Validate)?);
    let mut gradient = Gradient::default();
    config.write(dir)?;
    while !is_over(&state.history, &settings) {
        let epoch = next_epoch(&mut state, &mut gradient, (&to_learn, &to_watch), &settings)?;
        if epoch.is_best {
            state.best = state.model.weights();
        }
        state.history.push(epoch.clone());
        state.write(dir, &key)?;
        progress(&epoch);
    }
    Run::finish(dir, &key, dataset, &settings, &state)
}

fn begin(
    dataset: &Dataset,
    settings: &Settings,
    key: &str,
    dir: &Path,
    mode: Mode,
    device: &Device,
) -> Result<Checkpoint> {
    let started = dir.join(checkpoint::FILE).exists();
    let occupied = started || dir.join(manifest::FILE).exists();
    ensure!(
        !occupied || mode != Mode::New,
        hinted(
            format!("`{}` holds a training already", dir.display()),
            "continue it with `--resume`, start anew with `--overwrite`, or name another directory"
        )
    );
    fs_err::create_dir_all(dir)?;
    let architecture = settings.architecture()?;
    let model = Model::new(architecture, shape(dataset, settings, architecture), settings.seed)?.on(device);
    if started && mode == Mode::Resume {
        return Checkpoint::read(dir, key, model);
    }
    Run::clear(dir)?;
    Ok(Checkpoint { adam: Adam::new(model.flat().len()), best: model.weights(), model, history: Vec::new() })
}

fn shape(dataset: &Dataset, settings: &Settings, architecture: &dyn Architecture) -> Shape {
    let tensors = &dataset.summary.settings;
    let (hidden_size, lstm_layers) = (settings.hidden_size, settings.lstm_layers);
    let s = if architecture.takes_statics() { STATICS } else { 0 };
    Shape { e: dataset.summary.e, m: tensors.m, j: tensors.j, s, hidden_size, lstm_layers }
}

/// Early stopping: over after `epochs`, or once the watched metric has not improved for `earlystop_threshold` of them.
fn is_over(history: &[Epoch], settings: &Settings) -> bool {
    let best = history.iter().rposition(|epoch| epoch.is_best);
    let without_gain = best.map_or(history.len(), |at| history.len() - 1 - at);
    history.len() >= settings.epochs || without_gain >= settings.earlystop_threshold
}

fn next_epoch(
    state: &mut Checkpoint,
    gradient: &mut Gradient,
    (to_learn, to_watch): (&Samples<'_>, &Samples<'_>),
    settings: &Settings,
) -> Result<Epoch> {
    let epoch = state.history.len() + 1;
    // A thread outside the pool would hand each batch over to it, and sleep until it is done.
    let (train_loss, logits) = rayon::scope(|_| -> Result<_> {
        Ok((learn(state, gradient, to_learn, settings, epoch)?, score(&state.model, to_watch)?))
    })?;
    let labels = &to_watch.labels;
    let validation_loss = cross_entropy(&logits, labels);
    let probabilities: Vec<f64> = logits.iter().map(|&logit| probability(logit)).collect();
    let validation = Scores::of(&probabilities, labels);
    ensure!(train_loss.is_finite() && validation_loss.is_finite(), NonFinite { epoch });
    let is_best = match validation.watched(settings.metric.name, validation_loss) {
        Some(watched) => is_best(&state.history, watched, settings),
        None => false,
    };
    Ok(Epoch { epoch, train_loss, validation_loss, validation, is_best })
}

fn is_best(history: &[Epoch], watched: f64, settings: &Settings) -> bool {
    let Metric { name, goal } = settings.metric;
    let earlier = history.iter().filter_map(|epoch| epoch.validation.watched(name, epoch.validation_loss));
    let best = earlier.fold(None, |best: Option<f64>, value| match best {
        Some(best) if !Goal::is_better(goal, value, best) => Some(best),
        _ => Some(value),
    });
    best.is_none_or(|best| goal.is_better(watched, best))
}

/// One pass over the training samples in an order that follows from seed and epoch; returns the mean loss.
fn learn(
    state: &mut Checkpoint,
    gradient: &mut Gradient,
    samples: &Samples<'_>,
    settings: &Settings,
    epoch: usize,
) -> Result<f64> {
    let Settings { learning_rate, weight_decay, clip_grad_norm, .. } = *settings;
    let rule = Rule { learning_rate, weight_decay, clip_grad_norm };
    let labels = &samples.labels;
    let mut order: Vec<usize> = (0..labels.len()).collect();
    order.shuffle(&mut crate::seed::generator(settings.seed, "shuffle", &[epoch as i64]));
    let mut total = 0.0;
    for batch in order.chunks(settings.batch_size) {
        let targets: Vec<f32> = batch.iter().map(|&i| f32::from(u8::from(labels[i]))).collect();
        let loss = samples.batch(batch, |batch| gradient.find(&state.model, batch, &targets))??;
        total += loss * batch.len() as f64;
        state.adam.step(state.model.flat_mut(), gradient.values(), &rule);
    }
    Ok(total / labels.len() as f64)
}

/// The logit of every sample.
pub(super) fn score(model: &Model, samples: &Samples<'_>) -> Result<Vec<f32>> {
    let places: Vec<usize> = (0..samples.labels.len()).collect();
    let scored = places.chunks(SCORED_AT_ONCE).map(|places| samples.batch(places, |batch| model.logits(batch))?);
    Ok(scored.collect::<Result<Vec<Vec<f32>>>>()?.concat())
}
