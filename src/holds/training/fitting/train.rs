//! Training: tensors → a trained model, with checkpoints on the way.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::cut_choice::CutChoice;
use super::epoch::{Epoch, read_history, write_history};
use super::epoch_times::EpochClock;
use super::hold_learner::{HoldLearner, RunFiles};
use super::progress::{ProgressListener, TrainingUpdate};
use super::samples::{SampleSet, shared_bit_count, static_feature_count};
use super::state::{CutChoices, HoldTrainingState};
use super::time_cuts::{LEARNED_SPLITS, TimeCut, learned_splits, time_cuts};
use crate::config::TrainingSettings;
use crate::training::runs::LearnedHolds;
use crate::training::runs::{
    CHECKPOINT_FILE, CHECKPOINT_FORMAT, RUN_FORMAT, remove_training, reopen_training, training_key,
};
use crate::training::runs::{FinishedTraining, TrainingRun};
use crate::training::runs::{TrainingMetrics, TrainingStatus};
use poolcast_base::error::hinted;
use poolcast_base::manifest;
use poolcast_config::ResolvedConfig;
use poolcast_models::optim::{Checkpoint, TrainError};
use poolcast_models::{Architecture, Device, Model, ModelShape};
use poolcast_tensors::{Dataset, TensorSettings};

/// Treatment of a run directory in which an earlier training left files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartMode {
    /// Fail, unless the directory holds this same training, finished. That run is returned.
    New,
    /// Continue from the last checkpoint. A finished training with the same key is returned
    /// unchanged.
    Resume,
    /// Remove the earlier training and start from scratch.
    Overwrite,
}

/// The output directory of a training, and the settings that do not affect its result.
#[derive(Debug, Clone, Copy)]
pub struct RunLocation<'a> {
    /// The run's directory.
    pub dir: &'a Path,
    /// The configuration of the settings. It is written beside the model as it is.
    pub config: &'a ResolvedConfig,
    /// Interval between checkpoints within an epoch, in minutes.
    pub checkpoint_minutes: f64,
}

/// Trains on `dataset`, on `device`, and writes the run to `place`: its configuration, history,
/// checkpoint, and the weights of the best epoch. The manifest is written last. `listener` is
/// called after each batch and each epoch. If it breaks after a batch, the training writes a
/// checkpoint and stops.
///
/// The result depends only on the tensors, the settings and the kind of device. A training that was
/// stopped or killed at any time and then resumed is byte-identical to an uninterrupted one.
///
/// # Errors
/// Fails when a split has no samples, when `place` holds another training, when the listener stops
/// it, and when the loss is NaN or infinite.
pub fn train(
    dataset: &Dataset,
    settings: &TrainingSettings,
    place: RunLocation<'_>,
    mode: StartMode,
    device: &Device,
    listener: impl Fn(TrainingUpdate<'_>) -> ControlFlow<()> + Sync,
) -> Result<TrainingRun, TrainError> {
    train_until(dataset, settings, place, mode, device, |_| false, listener)
}

/// Like [`train`], but for a trial of a sweep: also ends after an epoch for which `ends` returns
/// true. `ends` receives all epochs so far. If the run is resumed and `ends` then returns false,
/// the training continues from there, and its result is byte-identical to a run that never ended
/// early.
pub fn train_until(
    dataset: &Dataset,
    settings: &TrainingSettings,
    place: RunLocation<'_>,
    mode: StartMode,
    device: &Device,
    ends: impl Fn(&[Epoch]) -> bool + Sync,
    listener: impl Fn(TrainingUpdate<'_>) -> ControlFlow<()> + Sync,
) -> Result<TrainingRun, TrainError> {
    let key = training_key(settings, &dataset.key)?;
    if let Some(run) = reuse_finished(place.dir, &key, mode, &ends)? {
        return Ok(run);
    }

    let task = TrainingTask {
        dataset,
        settings,
        key: &key,
        cuts: time_cuts(dataset, settings.time_cuts)?,
        learned: LearnedHolds {
            splits: learned_splits(dataset, settings.time_cuts).to_vec(),
        },
    };
    task.train(place, mode, device, &ends, &listener)
}

/// A training to run: the samples that its models learn from, and the samples that judge them.
pub(crate) struct TrainingTask<'a> {
    pub(crate) dataset: &'a Dataset,
    pub(crate) settings: &'a TrainingSettings,
    /// Digest of everything that determines the result.
    pub(crate) key: &'a str,
    /// For each model, the samples that it learns from and those that it predicts.
    pub(crate) cuts: Vec<TimeCut>,
    /// The holds that the final model learns from.
    pub(crate) learned: LearnedHolds,
}

impl TrainingTask<'_> {
    /// Trains the models and writes the run to `place`.
    pub(crate) fn train(
        self,
        place: RunLocation<'_>,
        mode: StartMode,
        device: &Device,
        ends: &(dyn Fn(&[Epoch]) -> bool + Sync),
        listener: &ProgressListener<'_>,
    ) -> Result<TrainingRun, TrainError> {
        let RunLocation {
            dir,
            config,
            checkpoint_minutes,
        } = place;
        let (settings, key) = (self.settings, self.key);
        let checkpoint = Checkpoint {
            path: &dir.join(CHECKPOINT_FILE),
            key,
            format: &CHECKPOINT_FORMAT,
        };
        let mut state = self.start_or_resume(dir, checkpoint, mode, device)?;
        let clock = EpochClock::resume(dir, state.history.len(), device);
        let architecture = settings.architecture()?;
        let shape = model_shape(&self.dataset.summary.settings, settings, architecture);
        let samples = SampleSet::of_splits(self.dataset, &LEARNED_SPLITS, shape, architecture)?;
        let mut learner = HoldLearner::new(settings, samples, self.cuts, ends, listener)?;
        learner.record = Some(RunFiles { dir, clock });
        config.write(dir)?;
        write_history(dir, &state.history)?;

        let interval = Duration::from_secs_f64(60.0 * checkpoint_minutes);
        let trained = learner.train(&mut state, Some(checkpoint), interval);
        // A training that failed has no model, but its metrics file still explains why it ended.
        if let Err(TrainError::NonFinite(_)) = trained {
            let status = TrainingStatus::NonFinite;
            TrainingMetrics::new(status, &settings.metric, &state.history).write(dir)?;
        }
        let finished = FinishedTraining {
            key,
            dataset: self.dataset,
            settings,
            trained: trained?,
            learned: self.learned,
            history: state.history,
        };
        Ok(finished.write(dir)?)
    }
}

/// Returns the finished training in `dir` if its key is `key` and it needs no further epochs. If a
/// sweep ended the training early and it must continue, `StartMode::Resume` reopens it and the
/// result is `None`.
fn reuse_finished(
    dir: &Path,
    key: &str,
    mode: StartMode,
    ends: &dyn Fn(&[Epoch]) -> bool,
) -> Result<Option<TrainingRun>> {
    let is_finished = manifest::finished_key(dir, RUN_FORMAT).as_deref() == Some(key);
    if mode == StartMode::Overwrite || !is_finished {
        return Ok(None);
    }

    let run = TrainingRun::open(dir)?;
    if run.metrics.status != TrainingStatus::TerminatedEarly || ends(&read_history(dir)?) {
        return Ok(Some(run));
    }
    if mode == StartMode::Resume {
        reopen_training(dir)?;
    }
    Ok(None)
}

impl TrainingTask<'_> {
    /// Returns the state from the checkpoint in `dir`, or the initial state if there is none to
    /// resume.
    fn start_or_resume(
        &self,
        dir: &Path,
        checkpoint: Checkpoint<'_>,
        mode: StartMode,
        device: &Device,
    ) -> Result<HoldTrainingState> {
        let has_checkpoint = checkpoint.path.exists();
        let is_occupied = has_checkpoint || dir.join(manifest::FILE).exists();
        ensure!(
            !is_occupied || mode != StartMode::New,
            hinted(
                format!("`{}` already contains a training", dir.display()),
                "continue it with `--resume`, or name another directory"
            )
        );
        fs_err::create_dir_all(dir)?;

        let tensors = &self.dataset.summary.settings;
        let state = initial_state(self.settings, tensors, self.cuts.len(), device)?;
        if has_checkpoint && mode == StartMode::Resume {
            let networks = state.networks.into_iter().map(|state| state.network);
            return checkpoint.read(networks.collect());
        }
        remove_training(dir)?;
        Ok(state)
    }
}

/// Creates the state before the first batch, with a network for each of a number of `cuts`. All start with the same weights.
pub(crate) fn initial_state(
    settings: &TrainingSettings,
    tensors: &TensorSettings,
    cuts: usize,
    device: &Device,
) -> Result<HoldTrainingState> {
    let architecture = settings.architecture()?;
    let shape = model_shape(tensors, settings, architecture);
    let mut models = Vec::with_capacity(cuts);
    for _ in 0..cuts {
        let model = Model::new(architecture, shape, settings.seed)?;
        models.push(model.computed_by(settings.engine, device)?);
    }
    let choices = CutChoices(vec![CutChoice::default(); cuts]);
    Ok(HoldTrainingState::new(models, choices))
}

/// The shape of the network of a training with `settings` on samples with the settings `tensors`.
pub(crate) fn model_shape(
    tensors: &TensorSettings,
    settings: &TrainingSettings,
    architecture: &dyn Architecture,
) -> ModelShape {
    ModelShape {
        e: tensors.e(),
        m: tensors.m,
        j: tensors.j,
        s: static_feature_count(architecture, tensors),
        shared_bits: shared_bit_count(architecture, tensors),
        hidden_size: settings.parameters.hidden_size,
        lstm_layers: settings.parameters.lstm_layers,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;
    use crate::test_config::TestConfig;
    use crate::training::read_epoch_times;
    use crate::training::runs::TIMES_FILE;
    use poolcast_tensors as tensors;
    use test_stores::store_of_held_jobs;

    fn dataset(dir: &Path) -> Dataset {
        let store = store_of_held_jobs(|job| i64::from(job % 7));
        let settings = config(&[]).tensor_settings();
        tensors::build(
            &store,
            &settings,
            "events",
            &dir.join("tensors"),
            false,
            None,
            |_| {},
        )
        .expect("built");
        Dataset::open(&dir.join("tensors")).expect("opened")
    }

    fn config(changes: &[(&'static str, serde_json::Value)]) -> TestConfig {
        let mut keys = vec![
            ("preprocessing.parameters.j", json!(2)),
            ("preprocessing.parameters.m", json!(3)),
            ("preprocessing.parameters.timeframe_len", json!(5)),
            ("preprocessing.outcomes", json!(true)),
            ("training.parameters.hidden_size", json!(3)),
            ("training.parameters.batch_size", json!(8)),
            ("epochs", json!(3)),
        ];
        keys.extend(changes.iter().cloned());
        TestConfig::load(&keys)
    }

    /// The files in `dir` except the epoch times, which differ between runs.
    fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
        let files = fs_err::read_dir(dir)
            .expect("listed")
            .map(|file| file.expect("a file"));
        files
            .filter(|file| file.file_name() != TIMES_FILE)
            .map(|file| {
                (
                    file.file_name().to_string_lossy().into(),
                    fs_err::read(file.path()).expect("read"),
                )
            })
            .collect()
    }

    /// Returns a listener that stops the training after `count` batches. 0 never stops it.
    fn stop_after_batches(count: usize) -> impl Fn(TrainingUpdate<'_>) -> ControlFlow<()> + Sync {
        let heard = AtomicUsize::new(0);
        move |progress| match progress {
            TrainingUpdate::Batch { .. } if heard.fetch_add(1, Ordering::Relaxed) + 1 == count => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    #[test]
    fn a_training_stopped_after_any_batch_resumes_byte_identically() {
        stop_and_resume("lstm");
    }

    /// Its dropout depends on the batch alone, and it keeps the last weights.
    #[test]
    fn a_training_with_dropout_resumes_byte_identically() {
        stop_and_resume("outcomes");
    }

    fn stop_and_resume(model: &'static str) {
        let dir = tempfile::tempdir().expect("a directory");
        let config = config(&[("training.parameters.model", json!(model))]);
        let dataset = dataset(dir.path());
        let run = |name: &str, mode, batches| {
            train(
                &dataset,
                &config.training_settings(),
                RunLocation {
                    dir: &dir.path().join(name),
                    config: &config.resolved(),
                    checkpoint_minutes: config.training.checkpoint_minutes,
                },
                mode,
                &Device::Cpu,
                stop_after_batches(batches),
            )
        };
        run("whole", StartMode::New, 0).expect("trained");
        let whole = files(&dir.path().join("whole"));
        let cuts = time_cuts(&dataset, 3).expect("cut");
        assert_eq!(cuts.len(), 4, "three cuts, and the model that remains");
        let an_epoch: usize = cuts.iter().map(|cut| cut.learned.len().div_ceil(8)).sum();
        let batches = 3 * an_epoch;
        for stop in 1..=batches {
            let name = format!("stopped-{stop}");
            let error = run(&name, StartMode::New, stop).expect_err("stopped");
            let TrainError::Stopped(at) = error else {
                panic!("{error:?}")
            };
            assert_eq!((at.epoch - 1) * at.batches + at.batch, stop);
            run(&name, StartMode::Resume, 0).expect("trained");
            assert!(
                files(&dir.path().join(&name)) == whole,
                "stopped after batch {stop}"
            );
            let times = read_epoch_times(&dir.path().join(&name));
            let known: Vec<usize> = times.iter().map(|times| times.epoch).collect();
            assert_eq!(known, [1, 2, 3], "stopped after batch {stop}");
        }
        // Resume repeatedly, with a single batch each time.
        let mut stops = 0;
        while let Err(error) = run("often", StartMode::Resume, 1) {
            assert!(matches!(error, TrainError::Stopped(_)), "{error:?}");
            stops += 1;
        }
        assert_eq!(
            (stops, files(&dir.path().join("often")) == whole),
            (batches, true)
        );
    }

    #[test]
    fn a_training_that_ended_early_resumes_byte_identically() {
        let dir = tempfile::tempdir().expect("a directory");
        let (dataset, config) = (dataset(dir.path()), config(&[]));
        let run = |name: &str, epochs: usize| {
            let dir = dir.path().join(name);
            let ends = |history: &[Epoch]| history.len() >= epochs;
            let run = train_until(
                &dataset,
                &config.training_settings(),
                RunLocation {
                    dir: &dir,
                    config: &config.resolved(),
                    checkpoint_minutes: config.training.checkpoint_minutes,
                },
                StartMode::Resume,
                &Device::Cpu,
                ends,
                stop_after_batches(0),
            )
            .expect("trained");
            (run.metrics.status, run.metrics.epochs, files(&dir))
        };
        let whole = run("whole", 9);
        assert_eq!((whole.0, whole.1), (TrainingStatus::Finished, 3));
        let ended = run("ended", 1);
        assert_eq!((ended.0, ended.1), (TrainingStatus::TerminatedEarly, 1));
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
    fn the_checkpoint_interval_does_not_change_the_result() {
        let dir = tempfile::tempdir().expect("a directory");
        let dataset = dataset(dir.path());
        let run = |name: &str, minutes: f64| {
            let config = config(&[("training.checkpoint_minutes", json!(minutes))]);
            train(
                &dataset,
                &config.training_settings(),
                RunLocation {
                    dir: &dir.path().join(name),
                    config: &config.resolved(),
                    checkpoint_minutes: config.training.checkpoint_minutes,
                },
                StartMode::New,
                &Device::Cpu,
                stop_after_batches(0),
            )
            .expect("trained");
            let mut files = files(&dir.path().join(name));
            files.remove("config.yaml");
            files
        };
        assert!(run("always", 0.0) == run("never", 1e6));
    }
}
