//! Trains a model on samples and writes it into a directory.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use super::episodes::EpisodeSplit;
use super::held_back_scores::{JudgedModel, held_back_scores};
use super::learned_model::LearnedModel;
use super::learning_state::LearningEpoch;
use super::model_settings::WaitModelSettings;
use super::network_training::{LearningUpdate, LearningWatch, NetworkTraining};
use super::sample_checks::check_samples;
use super::submission_replay::gap_h;
use super::training_checkpoint::checkpoint_path;
use super::value_training::learn_action_values;
use super::wait_estimator::{EstimatorTask, TimeInputs, WaitEstimator};
use super::wait_model_store::{
    DirectoryState, WAIT_MODEL_FORMAT, WaitModel, WaitModelDescription, WaitModelSummary,
    prepare_directory, read_summary, write_model,
};
use crate::samples::WaitSamples;
use poolcast_base::error::hinted;
use poolcast_base::files::LockedDirectory;
use poolcast_base::manifest;
use poolcast_base::parallel::map_numbers;
use poolcast_base::stats::cost_quantile;
use poolcast_config::{WaitModelName, WaitModelTarget};
use poolcast_models::Device;
use poolcast_published::series::SeriesKind;
use poolcast_published::{HeadEpisode, learn_head};

/// Input of a training.
pub struct WaitTrainingTask<'a> {
    /// Samples to learn from.
    pub samples: &'a WaitSamples,
    /// Base model of a head; `None` for a model without a base.
    pub base: Option<&'a WaitModel>,
    /// Settings of the training.
    pub settings: &'a WaitModelSettings,
    /// Device on which networks learn.
    pub device: &'a Device,
    /// Directory of the model.
    pub out: &'a Path,
    /// True if another model in the directory may be replaced.
    pub overwrite: bool,
    /// Interval of checkpoints within an epoch.
    pub checkpoint_interval: Duration,
    /// Receives each batch and epoch, and may stop the training after a batch.
    pub listener: &'a (dyn Fn(LearningUpdate<'_>) -> ControlFlow<()> + Sync),
}

/// Result of a finished training.
#[derive(Debug)]
pub struct TrainedWaitModel {
    /// Summary of the model.
    pub summary: WaitModelSummary,
    /// True if the model had already been in its directory.
    pub is_old: bool,
}

/// Trains a model and writes it into its directory, the manifest last. The same samples, settings
/// and base yield byte-identical files. This does not depend on the thread count, nor on when a
/// training was stopped or killed before it was restarted.
///
/// # Errors
/// Fails for samples that no model can learn from, and for a base that does not fit. Fails if the
/// directory holds something else. Fails with [`poolcast_models::optim::NonFiniteLoss`] when a loss is not
/// finite. When the listener stops the training, fails with [`poolcast_models::optim::TrainingStopped`] or
/// [`poolcast_pipelines::FitStopped`].
pub fn train_wait_model(task: &WaitTrainingTask<'_>) -> Result<TrainedWaitModel> {
    let key = wait_model_key(task.samples, task.settings, task.base)?;
    task.check_base()?;
    let lock = LockedDirectory::new(task.out)?;
    let is_old = prepare_directory(task.out, &key, task.overwrite)? == DirectoryState::Done;
    if !is_old {
        task.train(&key)?;
    }
    drop(lock);
    Ok(TrainedWaitModel {
        summary: read_summary(task.out)?,
        is_old,
    })
}

/// Returns the digest of all inputs of a model that is learned from `samples`.
///
/// # Errors
/// Fails for settings that cannot be written as JSON.
pub fn wait_model_key(
    samples: &WaitSamples,
    settings: &WaitModelSettings,
    base: Option<&WaitModel>,
) -> Result<String> {
    manifest::key(&(
        &samples.key,
        settings,
        base.map(|base| &base.description().key),
        (WAIT_MODEL_FORMAT.version, env!("CARGO_PKG_VERSION")),
    ))
}

impl WaitTrainingTask<'_> {
    /// Rejects a base that is missing, not needed, or for other jobs.
    fn check_base(&self) -> Result<()> {
        let name = self.settings.model.name;
        let Some(base) = self.base else {
            ensure!(
                name != WaitModelName::PolicyGradient,
                hinted(
                    "`policy_gradient` needs a base model, and none is given",
                    "train one first, such as a transformer, and give it as `--base MODEL`"
                )
            );
            return Ok(());
        };
        ensure!(
            name == WaitModelName::PolicyGradient,
            hinted(
                format!("`{name}` does not use a base model"),
                "omit `--base`, or give `--model policy_gradient`"
            )
        );
        let found = base.description();
        ensure!(
            matches!(base.learned, LearnedModel::Estimator(_)),
            hinted(
                format!("the base is a `{}`, which predicts decisions", found.kind),
                "give a model that predicts waits or rewards"
            )
        );
        let samples = &self.samples.description;
        if (found.job_nodes, found.limit_s) != (samples.job_nodes, samples.limit_s)
            || found.feature_names != samples.feature_names
        {
            bail!(hinted(
                format!(
                    "the base is for jobs of {} nodes and {} hours, and the samples are for {} nodes and {} hours, or have other features",
                    found.job_nodes,
                    found.limit_s as f64 / 3600.0,
                    samples.job_nodes,
                    samples.limit_s as f64 / 3600.0
                ),
                "train a base on these samples"
            ));
        }
        Ok(())
    }

    /// Trains and evaluates the model, and writes it into its directory.
    fn train(&self, key: &str) -> Result<()> {
        let split = EpisodeSplit::new(self.samples)?;
        check_samples(self.samples, &split)?;
        let watch = LearningWatch {
            checkpoint: &checkpoint_path(self.out),
            key,
            interval: self.checkpoint_interval,
            listener: self.listener,
        };
        let (learned, epochs) = self.learn(&split, &watch)?;

        let description = self.description(&learned);
        let held_back = self.held_back(&split, &description, &learned)?;
        let summary = WaitModelSummary {
            parameters: learned.parameter_count(),
            learned_windows: split.learned.len(),
            left_out_windows: split.between,
            held_back_windows: split.held_back.len(),
            epochs,
            held_back,
            description,
        };
        write_model(self.out, key, &learned, summary)
    }

    /// Trains a model of the kind in the settings; returns it with its epochs.
    fn learn(
        &self,
        split: &EpisodeSplit,
        watch: &LearningWatch<'_>,
    ) -> Result<(LearnedModel, Vec<LearningEpoch>)> {
        let WaitModelSettings {
            model, cost_ratios, ..
        } = self.settings;
        let quantiles: Vec<f64> = cost_ratios
            .iter()
            .map(|ratio| cost_quantile(*ratio))
            .collect();
        let estimator = EstimatorTask {
            samples: self.samples,
            split,
            target: model.target,
            quantiles: &quantiles,
        };
        let settings = self.settings.learning();
        let training = NetworkTraining {
            settings: &settings,
            size: model.size,
            device: self.device,
        };
        let kind = match model.name {
            WaitModelName::PolicyGradient => return self.learn_head(split),
            WaitModelName::Dqn => {
                let (learned, epochs) =
                    learn_action_values(self.samples, split, cost_ratios[0], training, watch)?;
                return Ok((LearnedModel::Values(learned), epochs));
            }
            WaitModelName::Transformer => SeriesKind::Transformer,
            WaitModelName::Moe => SeriesKind::Mixture,
            WaitModelName::Convolution => SeriesKind::Convolution,
            WaitModelName::Lstm => SeriesKind::Recurrence,
            WaitModelName::Xgb | WaitModelName::Rf | WaitModelName::Nn => {
                let (name, given) = (model.name, &model.parameters);
                let stop = || (self.listener)(LearningUpdate::Fit).is_break();
                let learned = estimator.learn_pipelines(name, given, settings.seed, &stop)?;
                return Ok((LearnedModel::Estimator(Arc::new(learned)), Vec::new()));
            }
        };
        let (learned, epochs) = estimator.learn_network(kind, training, watch)?;
        Ok((LearnedModel::Estimator(Arc::new(learned)), epochs))
    }

    /// Trains only the head. The base stays unchanged.
    fn learn_head(&self, split: &EpisodeSplit) -> Result<(LearnedModel, Vec<LearningEpoch>)> {
        let base = self.base.context("a head needs a base")?;
        let LearnedModel::Estimator(estimator) = &base.learned else {
            bail!("a head needs a base that predicts waits or rewards");
        };
        let mut episodes = Vec::with_capacity(split.learned.len());
        for episode in &split.learned {
            let rows = episode.decisions();
            let expected_h = map_numbers(rows.len(), |place| {
                self.expected_gaps_h(estimator, rows.start + place)
            });
            episodes.push(HeadEpisode {
                expected_h: expected_h.into_iter().collect::<Result<_>>()?,
                gaps_h: rows.map(|row| gap_h(self.samples, row)).collect(),
            });
        }
        let (cost_ratio, seed) = (self.settings.cost_ratios[0], self.settings.seed);
        let listener = |epoch, epochs| {
            (self.listener)(LearningUpdate::Batch {
                epoch,
                epochs,
                batch: 1,
                batches: 1,
            })
        };
        let (head, history) = learn_head(&episodes, cost_ratio, seed, &listener)?;
        let numbered = history.iter().zip(1..);
        let epochs = numbered.map(|(found, epoch)| LearningEpoch {
            epoch,
            train_loss: found.drawn_cost_h,
            judged_loss: found.cost_h,
            is_best: found.is_best,
        });
        let learned = LearnedModel::Head {
            base: Arc::clone(estimator),
            head,
        };
        Ok((learned, epochs.collect()))
    }

    /// Returns the gaps that the base expects for a submission in `row`, in hours.
    fn expected_gaps_h(&self, estimator: &WaitEstimator, row: usize) -> Result<Vec<f64>> {
        let snapshots = self.samples.snapshots(row);
        estimator.expected_gaps_h(TimeInputs {
            features: self.samples.features(row),
            snapshots: &snapshots,
            left_s: self.samples.left_s[row],
        })
    }

    /// Describes the learned model. The key is added when the model is opened.
    fn description(&self, learned: &LearnedModel) -> WaitModelDescription {
        let WaitModelSettings {
            model, cost_ratios, ..
        } = self.settings;
        let samples = &self.samples.description;
        let base = self.base.map(WaitModel::description);
        let predicts_waits =
            matches!(learned, LearnedModel::Estimator(_)) && model.target == WaitModelTarget::Wait;
        // The published reward weighs interruption and overlap equally. A decision is learned for
        // one ratio.
        let cost_ratios = match learned {
            LearnedModel::Estimator(_) if predicts_waits => cost_ratios.clone(),
            LearnedModel::Estimator(_) => vec![1.0],
            LearnedModel::Head { .. } | LearnedModel::Values(_) => vec![cost_ratios[0]],
        };
        let starts = self.samples.moment_s.iter().zip(&self.samples.wait_s);
        let last_start_s = starts.map(|(moment_s, wait_s)| moment_s + wait_s).max();
        let base_until_s = base.map(|base| base.learned_until_s);
        let until_s = last_start_s.max(base_until_s).unwrap_or(i64::MIN);
        WaitModelDescription {
            kind: model.name,
            base: base.map(|base| base.kind),
            target: base.map_or(model.target, |base| base.target),
            job_nodes: samples.job_nodes,
            limit_s: samples.limit_s,
            feature_names: samples.feature_names.clone(),
            cost_ratios,
            takes_snapshots: learned.takes_snapshots(),
            learned_until_s: samples.known_until_s.max(until_s),
            key: String::new(),
        }
    }

    /// Evaluates the learned model on the held-back windows.
    fn held_back(
        &self,
        split: &EpisodeSplit,
        description: &WaitModelDescription,
        learned: &LearnedModel,
    ) -> Result<super::HeldBackScores> {
        let answer_of = |model: &LearnedModel, cost_ratios: &[f64], row: usize| {
            let snapshots = self.samples.snapshots(row);
            let inputs = TimeInputs {
                features: self.samples.features(row),
                snapshots: &snapshots,
                left_s: self.samples.left_s[row],
            };
            model.answer(inputs, cost_ratios)
        };
        let cost_ratios = &description.cost_ratios;
        let name = description.kind.to_string();
        let model = JudgedModel {
            name: &name,
            cost_ratios,
            answer: &|row| answer_of(learned, cost_ratios, row),
        };
        let Some(base) = self.base else {
            return held_back_scores(self.samples, split, &model, None);
        };
        let base_name = base.description().kind.to_string();
        let cost_ratios = &base.description().cost_ratios;
        let base = JudgedModel {
            name: &base_name,
            cost_ratios,
            answer: &|row| answer_of(&base.learned, cost_ratios, row),
        };
        held_back_scores(self.samples, split, &model, Some(&base))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::config::default_wait_model;
    use crate::wait_model::ModelAnswer;
    use crate::wait_model::sample_checks::queue_samples;
    use crate::wait_model::training_checkpoint::checkpoint_paths;
    use poolcast_config::WaitModelParameters;
    use poolcast_models::optim::TrainingStopped;

    fn settings(name: WaitModelName) -> WaitModelSettings {
        WaitModelSettings {
            model: WaitModelParameters {
                name,
                batch_size: 16,
                learning_rate: Some(3e-3),
                ..default_wait_model()
            },
            cost_ratios: vec![1.0, 3.0],
            epochs: 3,
            earlystop_threshold: 20,
            earlystop_min_delta: 0.0,
            seed: 1,
        }
    }

    fn never_stop(_: LearningUpdate<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn task<'a>(
        samples: &'a WaitSamples,
        settings: &'a WaitModelSettings,
        out: &'a Path,
    ) -> WaitTrainingTask<'a> {
        WaitTrainingTask {
            samples,
            base: None,
            settings,
            device: &Device::Cpu,
            out,
            overwrite: false,
            checkpoint_interval: Duration::MAX,
            listener: &never_stop,
        }
    }

    /// Reads all files of a model.
    fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
        let mut files = Vec::new();
        for entry in fs_err::read_dir(dir).expect("listed") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().to_string_lossy().into_owned();
            files.push((name, fs_err::read(entry.path()).expect("read")));
        }
        files.sort();
        files
    }

    fn compared(summary: &WaitModelSummary) -> Vec<&super::super::ComparedCost> {
        let policies = summary.held_back.policies.iter();
        policies
            .filter_map(|policy| policy.compared.as_ref())
            .collect()
    }

    #[test]
    fn a_network_learns_waits_from_snapshots() {
        let samples = queue_samples(50, 1);
        let dir = tempfile::tempdir().expect("a directory");
        let settings = WaitModelSettings {
            epochs: 8,
            ..settings(WaitModelName::Transformer)
        };
        let task = task(&samples, &settings, dir.path());
        let trained = train_wait_model(&task).expect("trained");
        assert!(!trained.is_old);
        for score in &trained.summary.held_back.quantiles {
            let bound = 0.7 * score.constant_pinball_h;
            assert!(score.pinball_h < bound, "{score:?}");
        }
        assert!(
            compared(&trained.summary)
                .iter()
                .all(|cost| cost.beats_base)
        );

        let model = WaitModel::open(dir.path()).expect("opened");
        let description = model.description();
        assert_eq!(description.cost_ratios, [1.0, 3.0]);
        assert!(description.takes_snapshots && !description.key.is_empty());
        assert_eq!(
            description.learned_until_s,
            samples.description.known_until_s
        );
        let answer = model.answer(samples.features(0), &samples.snapshots(0), 7200);
        let ModelAnswer::Waits { waits_s } = answer else {
            panic!("it says waits");
        };
        assert_eq!(waits_s.len(), 2);

        let again = train_wait_model(&task).expect("there already");
        assert!(again.is_old && again.summary == trained.summary);
    }

    #[test]
    fn pipelines_learn_waits_and_rewards_from_features() {
        let samples = queue_samples(60, 8);
        let dir = tempfile::tempdir().expect("a directory");
        for name in [WaitModelName::Xgb, WaitModelName::Rf, WaitModelName::Nn] {
            let out = dir.path().join(name.to_string());
            let waits = settings(name);
            let trained = train_wait_model(&task(&samples, &waits, &out)).expect("trained");
            for score in &trained.summary.held_back.quantiles {
                let bound = 0.7 * score.constant_pinball_h;
                assert!(score.pinball_h < bound, "{name}: {score:?}");
            }
            let model = WaitModel::open(&out).expect("opened");
            assert!(!model.description().takes_snapshots);
            let answer = model.answer(samples.features(0), &[], 3600);
            let ModelAnswer::Waits { waits_s } = answer else {
                panic!("it says waits");
            };
            assert!(waits_s.len() == 2 && waits_s.iter().all(|wait_s| *wait_s > 0.0));

            let mut rewards = waits.clone();
            rewards.model.target = WaitModelTarget::Reward;
            let out = dir.path().join(format!("{name}-reward"));
            let trained = train_wait_model(&task(&samples, &rewards, &out)).expect("trained");
            assert!(compared(&trained.summary)[0].beats_base, "{name}");
            let model = WaitModel::open(&out).expect("opened");
            let decisions =
                [40, 0].map(|left_h| model.answer(samples.features(0), &[], left_h * 3600));
            let decision = |submit| ModelAnswer::Decision { submit };
            assert_eq!(decisions, [decision(false), decision(true)], "{name}");
        }

        let mut unknown = settings(WaitModelName::Xgb);
        unknown
            .model
            .parameters
            .insert("depth".to_owned(), 3.into());
        let out = dir.path().join("unknown");
        let error = train_wait_model(&task(&samples, &unknown, &out)).expect_err("refused");
        assert!(error.to_string().contains("depth"), "{error}");
        let stop = |_: LearningUpdate<'_>| ControlFlow::Break(());
        let error = train_wait_model(&WaitTrainingTask {
            listener: &stop,
            ..task(&samples, &settings(WaitModelName::Rf), &out)
        });
        let error = error.expect_err("stopped");
        assert!(
            error
                .downcast_ref::<poolcast_pipelines::FitStopped>()
                .is_some(),
            "{error:#}"
        );
    }

    /// Trains, but stops after `batches` batches and restarts, until the training is done. Returns
    /// the number of stops.
    fn train_with_stops(task: &WaitTrainingTask<'_>, batches: usize) -> usize {
        let mut stops = 0;
        loop {
            let batch = AtomicUsize::new(0);
            let stop_soon = |update: LearningUpdate<'_>| match update {
                LearningUpdate::Batch { .. }
                    if batch.fetch_add(1, Ordering::Relaxed) == batches =>
                {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            };
            let task = WaitTrainingTask {
                listener: &stop_soon,
                ..*task
            };
            let Err(error) = train_wait_model(&task) else {
                return stops;
            };
            assert!(error.is::<TrainingStopped>(), "{error:#}");
            stops += 1;
        }
    }

    #[test]
    fn stopped_trainings_resume_to_byte_identical_models() {
        let samples = queue_samples(20, 2);
        let dir = tempfile::tempdir().expect("a directory");
        for name in [WaitModelName::Lstm, WaitModelName::Dqn] {
            let settings = settings(name);
            let whole = dir.path().join(format!("{name}-whole"));
            train_wait_model(&task(&samples, &settings, &whole)).expect("trained");

            let parts = dir.path().join(format!("{name}-parts"));
            let stops = train_with_stops(&task(&samples, &settings, &parts), 1);
            assert!(stops > 1);
            assert_eq!(files(&parts), files(&whole), "{name}");
        }
    }

    #[test]
    fn experts_are_trained_alone_first() {
        let samples = queue_samples(40, 2);
        let dir = tempfile::tempdir().expect("a directory");
        let settings = WaitModelSettings {
            epochs: 1,
            ..settings(WaitModelName::Moe)
        };
        let updates = std::sync::Mutex::new(Vec::new());
        let listen = |update: LearningUpdate<'_>| {
            let mut updates = updates.lock().expect("no thread panics with the lock");
            match update {
                LearningUpdate::Expert { expert, experts } => updates.push((expert, experts)),
                LearningUpdate::Together => updates.push((0, 4)),
                _ => {}
            }
            ControlFlow::Continue(())
        };
        let whole = dir.path().join("whole");
        let trained = train_wait_model(&WaitTrainingTask {
            listener: &listen,
            ..task(&samples, &settings, &whole)
        });
        assert_eq!(trained.expect("trained").summary.epochs.len(), 1);
        let updates = updates
            .into_inner()
            .expect("no thread panics with the lock");
        assert_eq!(updates, [(1, 4), (2, 4), (3, 4), (4, 4), (0, 4)]);

        let parts = dir.path().join("parts");
        let stops = train_with_stops(&task(&samples, &settings, &parts), 1);
        assert!(stops > 4, "{stops}");
        assert_eq!(files(&parts), files(&whole));
    }

    #[test]
    fn expert_checkpoints_of_other_trainings_are_rejected() {
        let samples = queue_samples(40, 2);
        let dir = tempfile::tempdir().expect("a directory");
        let first = WaitModelSettings {
            epochs: 1,
            ..settings(WaitModelName::Moe)
        };
        let stop = |update: LearningUpdate<'_>| match update {
            LearningUpdate::Batch { .. } => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let stopped = WaitTrainingTask {
            listener: &stop,
            ..task(&samples, &first, dir.path())
        };
        train_wait_model(&stopped).expect_err("stopped");
        assert_eq!(checkpoint_paths(dir.path()).len(), 1, "of the first expert");

        let other = WaitModelSettings { seed: 2, ..first };
        let error = train_wait_model(&task(&samples, &other, dir.path())).expect_err("refused");
        assert!(error.to_string().contains("another training"), "{error}");
        let replacing = WaitTrainingTask {
            overwrite: true,
            ..task(&samples, &other, dir.path())
        };
        train_wait_model(&replacing).expect("trained");
        assert!(checkpoint_paths(dir.path()).is_empty());
    }

    #[test]
    fn models_do_not_depend_on_thread_count() {
        let samples = queue_samples(20, 3);
        let dir = tempfile::tempdir().expect("a directory");
        for name in [WaitModelName::Moe, WaitModelName::Convolution] {
            let settings = WaitModelSettings {
                epochs: 1,
                ..settings(name)
            };
            let left = [1, 3].map(|threads| {
                let out = dir.path().join(format!("{name}-{threads}"));
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                let pool = pool.build().expect("a pool");
                pool.install(|| train_wait_model(&task(&samples, &settings, &out)))
                    .expect("trained");
                files(&out)
            });
            assert_eq!(left[0], left[1], "{name}");
        }
    }

    #[test]
    fn heads_leave_their_base_unchanged() {
        let samples = queue_samples(40, 4);
        let dir = tempfile::tempdir().expect("a directory");
        let mut settings = settings(WaitModelName::Moe);
        settings.model.target = WaitModelTarget::Reward;
        let base_dir = dir.path().join("base");
        let base = train_wait_model(&task(&samples, &settings, &base_dir)).expect("trained");
        assert!(base.summary.held_back.quantiles.is_empty());
        let base = WaitModel::open(&base_dir).expect("opened");

        settings.model.name = WaitModelName::PolicyGradient;
        let out = dir.path().join("head");
        let without = train_wait_model(&task(&samples, &settings, &out)).expect_err("no base");
        assert!(without.to_string().contains("none is given"), "{without}");
        let task = WaitTrainingTask {
            base: Some(&base),
            ..task(&samples, &settings, &out)
        };
        let trained = train_wait_model(&task).expect("trained");
        // A small mixture has four networks: four weights for each of two actions, and two biases.
        assert_eq!(trained.summary.parameters, Some(10));
        assert_eq!(compared(&trained.summary)[0].base, "moe-1");
        assert_eq!(trained.summary.description.base, Some(WaitModelName::Moe));

        let network = "network.safetensors";
        let weights = |dir: &Path| fs_err::read(dir.join(network)).expect("read");
        assert_eq!(weights(&out), weights(&base_dir), "the base stays as it is");
        let head = WaitModel::open(&out).expect("opened");
        let answer = head.answer(samples.features(0), &samples.snapshots(0), 0);
        assert!(matches!(answer, ModelAnswer::Decision { .. }));

        let error = train_wait_model(&WaitTrainingTask {
            base: Some(&head),
            out: &dir.path().join("other"),
            ..task
        });
        let error = error.expect_err("a head on a head");
        assert!(error.to_string().contains("predicts decisions"), "{error}");
    }

    #[test]
    fn action_values_beat_the_reactive_policy() {
        let samples = queue_samples(60, 5);
        let dir = tempfile::tempdir().expect("a directory");
        let settings = WaitModelSettings {
            epochs: 60,
            ..settings(WaitModelName::Dqn)
        };
        let trained = train_wait_model(&task(&samples, &settings, dir.path())).expect("trained");
        let cost = compared(&trained.summary)[0];
        assert!(cost.beats_base, "{cost:?}");
        let best = trained.summary.epochs.iter().map(|epoch| epoch.judged_loss);
        assert_eq!(cost.cost_h, best.fold(f64::INFINITY, f64::min));
        let model = WaitModel::open(dir.path()).expect("opened");
        assert!(!model.description().takes_snapshots);
        model.answer(samples.features(0), &[], 3600);
    }

    #[test]
    fn other_models_are_kept_without_overwrite() {
        let samples = queue_samples(20, 6);
        let dir = tempfile::tempdir().expect("a directory");
        let settings = WaitModelSettings {
            epochs: 1,
            ..settings(WaitModelName::Dqn)
        };
        train_wait_model(&task(&samples, &settings, dir.path())).expect("trained");
        let other = WaitModelSettings {
            seed: 2,
            ..settings.clone()
        };
        let error = train_wait_model(&task(&samples, &other, dir.path())).expect_err("refused");
        assert!(
            error.to_string().contains("already holds something else"),
            "{error}"
        );
        let task = WaitTrainingTask {
            overwrite: true,
            ..task(&samples, &other, dir.path())
        };
        train_wait_model(&task).expect("replaced");

        let manifest = dir.path().join(manifest::FILE);
        let text = fs_err::read_to_string(&manifest).expect("read");
        let newer = text.replace("\"format_version\": 1", "\"format_version\": 2");
        fs_err::write(&manifest, newer).expect("written");
        let error = WaitModel::open(dir.path())
            .expect_err("refused")
            .to_string();
        assert!(
            error.contains("version 2, and this program reads version 1"),
            "{error}"
        );
    }

    #[test]
    fn unsuitable_bases_are_rejected() {
        let samples = queue_samples(20, 7);
        let dir = tempfile::tempdir().expect("a directory");
        let settings = settings(WaitModelName::Lstm);
        let base_dir = dir.path().join("base");
        train_wait_model(&task(&samples, &settings, &base_dir)).expect("trained");
        let base = WaitModel::open(&base_dir).expect("opened");
        let out = dir.path().join("out");
        let error = train_wait_model(&WaitTrainingTask {
            base: Some(&base),
            ..task(&samples, &settings, &out)
        });
        let error = error.expect_err("refused");
        assert!(
            error.to_string().contains("does not use a base model"),
            "{error}"
        );

        let mut larger = queue_samples(20, 7);
        larger.description.job_nodes = 2;
        let mut head = settings.clone();
        head.model.name = WaitModelName::PolicyGradient;
        let error = train_wait_model(&WaitTrainingTask {
            base: Some(&base),
            ..task(&larger, &head, &out)
        });
        let error = error.expect_err("refused");
        assert!(
            error
                .to_string()
                .contains("the samples are for 2 nodes and 24"),
            "{error}"
        );
        assert!(!out.exists(), "nothing is left");
    }
}
