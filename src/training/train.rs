//! Tensors → a trained model: the visible loop, checkpoints on the way.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};

use super::adam::{Adam, AdamSettings};
use super::calibration::Calibration;
use super::checkpoint::{self, Checkpoint, Keeper};
use super::early_stopping;
use super::metrics::{Scores, cross_entropy, probability};
use super::outcome::{Metrics, Status};
use super::run::{RUN, Run, read_history, write_history};
use super::samples::Samples;
use crate::config::{Config, Metric, MetricName, Threshold};
use crate::error::hinted;
use crate::manifest;
use crate::models::{self, Architecture, Device, Gradient, Model, ModelShape, Targets};
use crate::tensors::{Dataset, STATIC_FEATURES, SplitSide};

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
    /// What a success counts in the loss, where a failure counts 1.
    pub pos_weight: f64,
    /// The most epochs.
    pub epochs: usize,
    /// Epochs without improvement after which training stops.
    pub earlystop_threshold: usize,
    /// What does not improve the metric by more than this is no improvement.
    pub earlystop_min_delta: f64,
    /// What early stopping watches on the validation side.
    pub metric: Metric,
    /// From which probability on success is predicted.
    pub threshold: Threshold,
    /// The root seed.
    pub seed: u64,
}

impl Settings {
    /// The settings in `config`, whose training parameters must be numbers and not distributions.
    pub fn of(config: &Config) -> Result<Settings> {
        let parameters = &config.training.parameters;
        let model = parameters.model.constant("model")?;
        Ok(Settings {
            model: models::find_architecture(&model)?.name().to_owned(),
            lstm_layers: parameters.lstm_layers.whole("lstm_layers", 1..=16)?,
            hidden_size: parameters.hidden_size.whole("hidden_size", 1..=4096)?,
            learning_rate: parameters.learning_rate.real("learning_rate", 0.0..=10.0)?,
            weight_decay: parameters.weight_decay.real("weight_decay", 0.0..=1000.0)?,
            clip_grad_norm: parameters
                .clip_grad_norm
                .real("clip_grad_norm", 0.0..=1e9)?,
            batch_size: parameters.batch_size.whole("batch_size", 1..=1_000_000)?,
            pos_weight: parameters.pos_weight.real("pos_weight", 1e-6..=1e6)?,
            epochs: config.epochs,
            earlystop_threshold: config.earlystop_threshold,
            earlystop_min_delta: config.earlystop_min_delta,
            metric: config.earlystop_metric.clone(),
            threshold: config.training.threshold,
            seed: config.seed,
        })
    }

    /// What is trained.
    pub(super) fn architecture(&self) -> Result<&'static dyn Architecture> {
        models::find_architecture(&self.model)
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
    /// Mean cross-entropy over the training samples, each scored before the step that learns from it, and weighted by
    /// `pos_weight`: what the training minimises.
    pub train_loss: f64,
    /// Mean cross-entropy over the validation samples, after the epoch; without weights, so that trainings compare.
    pub validation_loss: f64,
    /// The scores on the validation samples, after the epoch, before any calibration: success is predicted from 0.5 on.
    pub validation: Scores,
    /// Whether the watched metric was the best so far.
    pub is_best: bool,
}

impl Epoch {
    /// The score that early stopping watches, or a sweep chooses by.
    pub fn watched(&self, name: MetricName) -> Option<f64> {
        self.validation.watched(name, self.validation_loss)
    }
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

/// How far a training is.
#[derive(Debug)]
pub enum Progress<'a> {
    /// It has learned from a batch.
    Batch {
        /// The epoch at work, counted from 1.
        epoch: usize,
        /// Batches of this epoch so far.
        batch: usize,
        /// Batches in an epoch.
        batches: usize,
        /// The mean loss over the epoch so far.
        loss: f64,
    },
    /// An epoch has ended, and its checkpoint is on disk.
    Epoch(&'a Epoch),
}

/// The training was asked to stop, and its checkpoint is on disk.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the training was stopped in epoch {epoch} after batch {batch} of {batches}")]
pub struct Stopped {
    /// The epoch at work, counted from 1.
    pub epoch: usize,
    /// Batches of this epoch so far.
    pub batch: usize,
    /// Batches in an epoch.
    pub batches: usize,
}

/// The loss was no longer a number: the trial failed, and will fail again with the same settings.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the loss is not finite in epoch {epoch}; a smaller learning rate may help")]
pub struct NonFinite {
    /// The epoch, counted from 1.
    pub epoch: usize,
}

/// Trains on `dataset`, on `device`, and leaves the run in `dir`: its configuration, history, checkpoint, and the weights of
/// the best epoch; the manifest comes last. `hear` hears of each batch and each epoch; where it breaks off after a batch,
/// the training leaves a checkpoint there and stops.
///
/// The result depends on the tensors, the settings and the kind of device alone. A training that was stopped or killed at
/// any moment and resumed gives the same bytes as one that was not.
///
/// # Errors
/// Fails when a side has no samples, when `dir` holds another training, with [`Stopped`] and with [`NonFinite`].
pub fn train(
    dataset: &Dataset,
    config: &Config,
    dir: &Path,
    mode: Mode,
    device: &Device,
    hear: impl Fn(Progress<'_>) -> ControlFlow<()> + Sync,
) -> Result<Run> {
    train_until(dataset, config, dir, mode, device, |_| false, hear)
}

/// [`train`] for a trial of a sweep, which may also end after an epoch for which `ends`, given all epochs so far, says so.
/// Such a run goes on from there when it is resumed and `ends` no longer says so, to the same bytes as if it never had.
pub fn train_until(
    dataset: &Dataset,
    config: &Config,
    dir: &Path,
    mode: Mode,
    device: &Device,
    ends: impl Fn(&[Epoch]) -> bool,
    hear: impl Fn(Progress<'_>) -> ControlFlow<()> + Sync,
) -> Result<Run> {
    let settings = Settings::of(config)?;
    check_sides(dataset)?;
    let key = settings.key(&dataset.key)?;
    if mode != Mode::Overwrite && manifest::finished_key(dir, RUN).as_ref() == Some(&key) {
        let run = Run::open(dir)?;
        if run.metrics.status != Status::TerminatedEarly || ends(&read_history(dir)?) {
            return Ok(run);
        }
        if mode == Mode::Resume {
            Run::reopen(dir)?;
        }
    }
    let mut state = begin(dataset, &settings, &key, dir, mode, device)?;
    let samples = |side| Samples::new(dataset, side, state.model.shape);
    let (to_learn, to_watch) = (samples(SplitSide::Train)?, samples(SplitSide::Validate)?);
    config.write(dir)?;
    write_history(dir, &state.history)?;
    let mut keeper = Keeper::new(
        dir,
        &key,
        Duration::from_secs_f64(60.0 * config.training.checkpoint_minutes),
        &hear,
    );
    let trained = epochs(
        &mut state,
        (&to_learn, &to_watch),
        &settings,
        &ends,
        &mut keeper,
    );
    if trained.as_ref().is_err_and(|error| error.is::<NonFinite>()) {
        Metrics::of(Status::NonFinite, &settings, &state, None).write(dir)?;
    }
    trained?;
    state.model.set_weights(&state.best);
    let calibration = Calibration::fit(
        &score(&state.model, &to_watch)?,
        &to_watch.labels,
        settings.threshold,
    );
    Run::finish(dir, &key, dataset, &settings, &state, calibration)
}

fn check_sides(dataset: &Dataset) -> Result<()> {
    for side in [SplitSide::Train, SplitSide::Validate] {
        ensure!(
            !dataset.is_empty(side),
            hinted(
                format!("there are no {} samples", side.name()),
                "parse a longer log, or change `preprocessing.fractions`"
            )
        );
    }
    Ok(())
}

/// The visible loop: one epoch after the other until it is over.
fn epochs(
    state: &mut Checkpoint,
    (to_learn, to_watch): (&Samples<'_>, &Samples<'_>),
    settings: &Settings,
    ends: &dyn Fn(&[Epoch]) -> bool,
    keeper: &mut Keeper<'_>,
) -> Result<()> {
    let mut gradient = Gradient::default();
    while !early_stopping::is_over(&state.history, settings) && !ends(&state.history) {
        // A thread outside the pool would hand each batch over to it, and sleep until it is done.
        let logits = rayon::scope(|_| -> Result<_> {
            learn(state, &mut gradient, to_learn, settings, keeper)?;
            score(&state.model, to_watch)
        })?;
        state.end(ended(state, &logits, (to_learn, to_watch), settings)?);
        keeper.after_epoch(state)?;
    }
    Ok(())
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
            "continue it with `--resume`, or name another directory"
        )
    );
    fs_err::create_dir_all(dir)?;
    let architecture = settings.architecture()?;
    let model = Model::new(
        architecture,
        shape(dataset, settings, architecture),
        settings.seed,
    )?
    .on_device(device);
    if started && mode == Mode::Resume {
        return Checkpoint::read(dir, key, model);
    }
    Run::clear(dir)?;
    let (adam, best) = (Adam::new(model.flat_weights().len()), model.weights());
    Ok(Checkpoint {
        adam,
        best,
        model,
        history: Vec::new(),
        batch: 0,
        loss_sum: 0.0,
    })
}

/// How many static features a model of this program takes.
pub(super) fn statics(architecture: &dyn Architecture) -> usize {
    if architecture.takes_statics() {
        STATIC_FEATURES
    } else {
        0
    }
}

fn shape(dataset: &Dataset, settings: &Settings, architecture: &dyn Architecture) -> ModelShape {
    let tensors = &dataset.summary.settings;
    let (hidden_size, lstm_layers) = (settings.hidden_size, settings.lstm_layers);
    let s = statics(architecture);
    ModelShape {
        e: dataset.summary.e,
        m: tensors.m,
        j: tensors.j,
        s,
        hidden_size,
        lstm_layers,
    }
}

/// What came of the epoch at work, after which the samples to watch have these `logits`.
fn ended(
    state: &Checkpoint,
    logits: &[f32],
    (to_learn, to_watch): (&Samples<'_>, &Samples<'_>),
    settings: &Settings,
) -> Result<Epoch> {
    let (epoch, labels) = (state.epoch(), &to_watch.labels);
    let train_loss = state.loss_sum / to_learn.labels.len() as f64;
    let validation_loss = cross_entropy(logits, labels);
    let probabilities: Vec<f64> = logits
        .iter()
        .map(|&logit| probability(f64::from(logit)))
        .collect();
    let validation = Scores::of(&probabilities, labels, 0.5);
    ensure!(validation_loss.is_finite(), NonFinite { epoch });
    let value = validation.watched(settings.metric.name, validation_loss);
    let is_best = early_stopping::is_best(&state.history, value, &settings.metric);
    Ok(Epoch {
        epoch,
        train_loss,
        validation_loss,
        validation,
        is_best,
    })
}

/// What is left of one pass over the training samples, in an order that follows from seed and epoch.
fn learn(
    state: &mut Checkpoint,
    gradient: &mut Gradient,
    samples: &Samples<'_>,
    settings: &Settings,
    keeper: &mut Keeper<'_>,
) -> Result<()> {
    let epoch = state.epoch();
    let Settings {
        learning_rate,
        weight_decay,
        clip_grad_norm,
        ..
    } = *settings;
    let rule = AdamSettings {
        learning_rate,
        weight_decay,
        clip_grad_norm,
    };
    let (labels, pos_weight) = (&samples.labels, settings.pos_weight as f32);
    let mut order: Vec<usize> = (0..labels.len()).collect();
    order.shuffle(&mut crate::seed::generator(
        settings.seed,
        "shuffle",
        &[epoch as i64],
    ));
    let batches = order.chunks(settings.batch_size);
    let (count, mut seen) = (
        batches.len(),
        labels
            .len()
            .min(state.batch.saturating_mul(settings.batch_size)),
    );
    for batch in batches.skip(state.batch) {
        let targets: Vec<f32> = batch
            .iter()
            .map(|&i| f32::from(u8::from(labels[i])))
            .collect();
        let loss = samples.batch(batch, |batch| {
            let targets = Targets {
                labels: &targets,
                pos_weight,
            };
            gradient.compute(&state.model, batch, &targets)
        })??;
        state
            .adam
            .step(state.model.flat_weights_mut(), gradient.values(), &rule);
        state.batch += 1;
        state.loss_sum += loss * batch.len() as f64;
        ensure!(state.loss_sum.is_finite(), NonFinite { epoch });
        seen += batch.len();
        keeper.after_batch(state, count, state.loss_sum / seen as f64)?;
    }
    Ok(())
}

/// The logit of every sample.
pub(super) fn score(model: &Model, samples: &Samples<'_>) -> Result<Vec<f32>> {
    let places: Vec<usize> = (0..samples.labels.len()).collect();
    let scored = places
        .chunks(SCORED_AT_ONCE)
        .map(|places| samples.batch(places, |batch| model.logits(batch))?);
    Ok(scored.collect::<Result<Vec<Vec<f32>>>>()?.concat())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;
    use crate::eventlog::JobEvent;
    use crate::{events, tensors};

    /// 60 jobs, each held once and released; two of three then succeed, the others are held again.
    fn dataset(dir: &Path) -> Dataset {
        let event = |cluster: i32, s: i64, number: u16| JobEvent {
            cluster,
            time_ms: 1000 * (100 * i64::from(cluster) + s),
            number,
            normal: u8::from(number == 5),
            hold_code: if number == 12 { 13 } else { 0 },
            ..JobEvent::default()
        };
        let life = |job: i32| {
            let last = if job % 3 == 0 { 12 } else { 5 };
            [
                (0, 0),
                (i64::from(job % 7), 1),
                (20, 12),
                (30, 13),
                (40, last),
            ]
            .map(|(s, number)| event(job, s, number))
        };
        let store = events::store_of(&(1..=60).flat_map(life).collect::<Vec<JobEvent>>());
        let settings = tensors::TensorSettings::from_config(&config(&[])).expect("settings");
        tensors::build(
            &store,
            &settings,
            "events",
            &dir.join("tensors"),
            false,
            |_| {},
        )
        .expect("built");
        Dataset::open(&dir.join("tensors")).expect("opened")
    }

    fn config(changes: &[(&'static str, serde_json::Value)]) -> Config {
        let mut keys = BTreeMap::from([
            ("preprocessing.parameters.j", json!(2)),
            ("preprocessing.parameters.m", json!(3)),
            ("preprocessing.parameters.timeframe_len", json!(5)),
            ("training.parameters.hidden_size", json!(3)),
            ("training.parameters.batch_size", json!(8)),
            ("epochs", json!(3)),
        ]);
        keys.extend(changes.iter().cloned());
        Config::load(None, &keys).expect("a configuration")
    }

    fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
        let files = fs_err::read_dir(dir)
            .expect("listed")
            .map(|file| file.expect("a file"));
        files
            .map(|file| {
                (
                    file.file_name().to_string_lossy().into(),
                    fs_err::read(file.path()).expect("read"),
                )
            })
            .collect()
    }

    /// Listens until so many batches have been learned from.
    fn for_batches(count: usize) -> impl Fn(Progress<'_>) -> ControlFlow<()> + Sync {
        let heard = AtomicUsize::new(0);
        move |progress| match progress {
            Progress::Batch { .. } if heard.fetch_add(1, Ordering::Relaxed) + 1 == count => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    #[test]
    fn a_training_stopped_after_any_batch_goes_on_to_the_same_bytes() {
        let dir = tempfile::tempdir().expect("a directory");
        let (dataset, config) = (dataset(dir.path()), config(&[]));
        let run = |name: &str, mode, batches| {
            train(
                &dataset,
                &config,
                &dir.path().join(name),
                mode,
                &Device::Cpu,
                for_batches(batches),
            )
        };
        run("whole", Mode::New, 0).expect("trained");
        let whole = files(&dir.path().join("whole"));
        let batches = 3 * dataset.len(SplitSide::Train).div_ceil(8);
        for stop in 1..=batches {
            let name = format!("stopped-{stop}");
            let error = run(&name, Mode::New, stop).expect_err("stopped");
            let at = error.downcast_ref::<Stopped>().expect("a stop");
            assert_eq!((at.epoch - 1) * at.batches + at.batch, stop);
            run(&name, Mode::Resume, 0).expect("trained");
            assert!(
                files(&dir.path().join(&name)) == whole,
                "stopped after batch {stop}"
            );
        }
        // Again and again, with a single batch each time.
        let mut stops = 0;
        while let Err(error) = run("often", Mode::Resume, 1) {
            assert!(error.is::<Stopped>(), "{error}");
            stops += 1;
        }
        assert_eq!(
            (stops, files(&dir.path().join("often")) == whole),
            (batches, true)
        );
    }

    #[test]
    fn a_training_that_ended_early_goes_on_to_the_same_bytes() {
        let dir = tempfile::tempdir().expect("a directory");
        let (dataset, config) = (dataset(dir.path()), config(&[]));
        let run = |name: &str, epochs: usize| {
            let dir = dir.path().join(name);
            let ends = |history: &[Epoch]| history.len() >= epochs;
            let run = train_until(
                &dataset,
                &config,
                &dir,
                Mode::Resume,
                &Device::Cpu,
                ends,
                for_batches(0),
            )
            .expect("trained");
            (run.metrics.status, run.metrics.epochs, files(&dir))
        };
        let whole = run("whole", 9);
        assert_eq!((whole.0, whole.1), (Status::Finished, 3));
        let ended = run("ended", 1);
        assert_eq!((ended.0, ended.1), (Status::TerminatedEarly, 1));
        assert!(
            ended.2.contains_key("model.safetensors"),
            "its best weights remain"
        );
        assert!(run("ended", 1) == ended, "nothing is done twice");
        assert_eq!(run("ended", 2).1, 2);
        assert!(run("ended", 9) == whole);
        assert!(run("whole", 1) == whole, "what has finished stays so");
    }

    #[test]
    fn how_often_checkpoints_are_written_does_not_show() {
        let dir = tempfile::tempdir().expect("a directory");
        let dataset = dataset(dir.path());
        let run = |name: &str, minutes: f64| {
            let config = config(&[("training.checkpoint_minutes", json!(minutes))]);
            train(
                &dataset,
                &config,
                &dir.path().join(name),
                Mode::New,
                &Device::Cpu,
                for_batches(0),
            )
            .expect("trained");
            let mut files = files(&dir.path().join(name));
            files.remove("config.yaml");
            files
        };
        assert!(run("always", 0.0) == run("never", 1e6));
    }
}
