//! Refit of a judged model: trains the same model again on every hold that was decided by the end
//! of the log. The refitted model has no samples left to judge it. Its thresholds and its
//! calibration come from predictions of later holds by the judged model and by the models of its
//! time cuts.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::checkpoint::checkpoint_key;
use super::epoch::read_history;
use super::hold_learner::RepeatedTraining;
use super::progress::TrainingUpdate;
use super::settings::TrainingSettings;
use super::time_cuts::TimeCut;
use super::train::{RunLocation, StartMode, TrainingTask};
use crate::training::runs::LearnedHolds;
use crate::training::runs::TrainedModel;
use crate::training::runs::TrainingMetrics;
use crate::training::runs::TrainingRun;
use crate::training::runs::{RUN_FORMAT, remove_checkpoint};
use crate::training::scoring::{RollingPrediction, RollingPredictions};
use poolcast_base::manifest;
use poolcast_models::Device;
use poolcast_models::optim::TrainError;
use poolcast_tensors::{Dataset, Split};

/// The digest of everything that determines the result of a refit of `judged` on all splits of its
/// tensors.
pub fn refit_key(judged: &TrainedModel) -> Result<String> {
    manifest::key(&("refit", &judged.key, &judged.sha256))
}

/// Returns the predictions of `judged`, and of the models of its time cuts, for holds that came
/// after everything they learned from. These are the holds after each time cut and, as one more
/// cut, the test split of `dataset`.
///
/// # Errors
/// Fails when the predictions file beside the model is missing, and when `dataset` does not fit the
/// model.
pub fn later_predictions(judged: &TrainedModel, dataset: &Dataset) -> Result<RollingPredictions> {
    let mut predictions = judged.rolling_predictions()?;
    if dataset.is_empty(Split::Test) {
        return Ok(predictions);
    }

    let cut = predictions.cuts.iter().max().map_or(0, |cut| cut + 1);
    let first = dataset.len(Split::Train) + dataset.len(Split::Validate);
    let logits = judged.split_logits(dataset, Split::Test)?;
    let labels: Vec<u8> = dataset.column(Split::Test, "label")?;
    let clusters: Vec<u32> = dataset.column(Split::Test, "group")?;
    for (at, logit) in logits.into_iter().enumerate() {
        predictions.push(RollingPrediction {
            sample: first + at,
            cluster: clusters[at],
            cut: cut as usize,
            logit,
            label: labels[at] == 1,
        });
    }
    Ok(predictions)
}

/// Trains the network of the run in `dir` again with its `settings`, on all splits of `dataset`, up
/// to its best epoch, and writes the run to `place`. Resumes an unfinished earlier call.
///
/// # Errors
/// Fails like [`super::train`].
pub fn refit_network(
    dataset: &Dataset,
    dir: &Path,
    settings: &TrainingSettings,
    place: RunLocation<'_>,
    device: &Device,
    listener: impl Fn(TrainingUpdate<'_>) -> ControlFlow<()> + Sync,
) -> Result<TrainingRun, TrainError> {
    let judged = TrainedModel::open(dir)?;
    let key = refit_key(&judged)?;
    if manifest::finished_key(place.dir, RUN_FORMAT).as_ref() == Some(&key) {
        return Ok(TrainingRun::open(place.dir)?);
    }

    // The number of epochs is fixed to the best one, as nothing can trigger early stopping here.
    let metrics = TrainingMetrics::read(dir)?;
    let best = metrics.of_model().context("the training wrote no model")?;
    let mut epochs = read_history(dir)?;
    epochs.truncate(best.epoch);
    let settings = TrainingSettings {
        epochs: best.epoch,
        ..settings.clone()
    };

    let task = TrainingTask {
        dataset,
        settings: &settings,
        key: &key,
        splits: &Split::ALL,
        cuts: vec![whole_cut(dataset)],
        learned: LearnedHolds::new(dataset, &Split::ALL)?,
        repeated: Some(RepeatedTraining {
            epochs,
            predictions: later_predictions(&judged, dataset)?,
        }),
    };
    let is_begun = checkpoint_key(place.dir).as_ref() == Some(&key);
    let mode = if is_begun {
        StartMode::Resume
    } else {
        StartMode::Overwrite
    };
    let run = task.train(place, mode, device, &|_| false, &listener)?;
    remove_checkpoint(place.dir)?;
    Ok(run)
}

/// A cut that learns from all samples and leaves none to predict.
fn whole_cut(dataset: &Dataset) -> TimeCut {
    let count = Split::ALL.map(|split| dataset.len(split)).iter().sum();
    TimeCut {
        learned: (0..count).collect(),
        predicted: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::training::fitting::{refit_small, small_dataset, train_small};
    use crate::training::runs::TIMES_FILE;
    use crate::training::{RunModels, refit_dir};

    /// Creates tensors in `dir`, and a run on them in its subdirectory `run`.
    fn trained(dir: &Path) -> Dataset {
        let dataset = small_dataset(dir);
        train_small(&dataset, &dir.join("run"), "lstm");
        dataset
    }

    fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        for entry in fs_err::read_dir(dir).expect("listed") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy();
            if name == TIMES_FILE {
                continue;
            }
            found.insert(name.into_owned(), fs_err::read(&path).expect("read"));
        }
        found
    }

    #[test]
    fn a_refit_learns_from_all_splits_up_to_the_best_epoch() {
        let dir = tempfile::tempdir().expect("a directory");
        let dataset = trained(dir.path());
        let run = dir.path().join("run");
        let before = RunModels::open(&run).expect("opened");
        assert!(before.refitted.is_none());
        assert!(std::ptr::eq(before.at_moment(i64::MAX), &before.judged));

        let listen = |_: TrainingUpdate<'_>| ControlFlow::Continue(());
        let fitted = refit_small(&dataset, &run, listen).expect("fitted");
        let judged = TrainingMetrics::read(&run).expect("read");
        let best = judged.of_model().expect("a model").epoch;
        assert_eq!(fitted.metrics.epochs, best);
        assert_eq!(fitted.metrics.of_model().expect("a model").epoch, best);

        let models = RunModels::open(&run).expect("opened");
        let refitted = models.refitted.as_ref().expect("fitted");
        let all: usize = Split::ALL.map(|split| dataset.len(split)).iter().sum();
        assert_eq!(refitted.rates.overall.holds, all);
        let decided_ms = refitted.learned.decided_ms;
        assert!(std::ptr::eq(models.at_moment(decided_ms), refitted));
        assert!(std::ptr::eq(
            models.at_moment(decided_ms - 1),
            &models.judged
        ));

        let earlier = models.judged.rolling_predictions().expect("read");
        let later = refitted.rolling_predictions().expect("read");
        let count = earlier.logits.len();
        assert_eq!(later.logits[..count], earlier.logits);
        assert_eq!(later.logits.len(), count + dataset.len(Split::Test));
        let of_test = models.judged.split_logits(&dataset, Split::Test);
        assert_eq!(later.logits[count..], of_test.expect("asked"));
        let last_cut = earlier.cuts.iter().max().expect("cuts");
        assert!(later.cuts[count..].iter().all(|cut| *cut == last_cut + 1));
    }

    #[test]
    fn a_refit_stopped_after_any_batch_resumes_byte_identically() {
        let dir = tempfile::tempdir().expect("a directory");
        let dataset = trained(dir.path());
        let run = dir.path().join("run");
        let refit = |batch_limit: usize| {
            let heard = AtomicUsize::new(0);
            let listen = |news: TrainingUpdate<'_>| match news {
                TrainingUpdate::Batch { .. }
                    if heard.fetch_add(1, Ordering::Relaxed) + 1 == batch_limit =>
                {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            };
            refit_small(&dataset, &run, listen)
        };
        refit(0).expect("fitted");
        let whole = files(&refit_dir(&run));
        fs_err::remove_dir_all(refit_dir(&run)).expect("removed");
        let mut stops = 0;
        while let Err(error) = refit(1) {
            assert!(matches!(error, TrainError::Stopped(_)), "{error:?}");
            let models = RunModels::open(&run).expect("opened");
            assert!(models.refitted.is_none(), "it is not there before its end");
            stops += 1;
        }
        assert!(stops > 3 && files(&refit_dir(&run)) == whole);
    }

    #[test]
    fn predictions_that_do_not_match_the_manifest_are_rejected() {
        let dir = tempfile::tempdir().expect("a directory");
        trained(dir.path());
        let run = dir.path().join("run");
        let model = TrainedModel::open(&run).expect("opened");
        let mut predictions = model.rolling_predictions().expect("read");
        predictions.logits[0] += 1.0;
        predictions.write(&run).expect("written");
        let refusal = model.rolling_predictions().expect_err("must be refused");
        let refusal = refusal.to_string();
        assert!(
            refusal.contains("predictions.safetensors` does not match its manifest"),
            "{refusal}"
        );
    }
}
