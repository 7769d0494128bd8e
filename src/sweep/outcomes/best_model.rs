//! Chooses the best trial by the sweep's metric on the validation samples. Equal trials are ordered
//! by the lowest validation loss, or for the F-measure by the largest area under the ROC curve. If
//! these are also equal, the earlier trial wins.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::ensemble_choice::EnsembleChoice;
use crate::plan::TrialRow;
use crate::plan::{BEST_FILE, ensemble_dir, trial_dir};
use poolcast_base::error::hinted;
use poolcast_base::manifest;
use poolcast_config::{Goal, Metric, MetricName};
use poolcast_holds::rehearsal::AnswerScores;
use poolcast_holds::training::{Epoch, FitScores, TrainingMetrics};

/// The metric that decides if the sweep's metric is not defined for any trial. For example, the
/// F-measure is not defined without a success among samples and predictions.
const LOSS: Metric = Metric {
    name: MetricName::ValidationLoss,
    goal: Goal::Minimize,
    reported: None,
    target: None,
};

/// The result of one trial.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrialResult {
    /// The trial's number, from 1.
    pub trial: usize,
    /// The name of the network's architecture, or of the pipeline.
    pub model: String,
    /// The reason for its failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The scores of a pipeline's trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<FitScores>,
    /// The scores of its model as the only member of the answers, if the sweep chooses by them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<AnswerScores>,
    /// The training metrics of a network, if it was trained.
    #[serde(flatten)]
    pub metrics: Option<TrainingMetrics>,
}

impl TrialResult {
    /// The best epoch of a network; `None` for a trial without a model.
    pub fn best_epoch(&self) -> Option<&Epoch> {
        self.metrics.as_ref()?.of_model()
    }

    /// Returns true if the trial has no model.
    pub fn has_failed(&self) -> bool {
        self.fit.is_none() && self.best_epoch().is_none()
    }

    /// The value of the metric `name`; `None` also if it is not defined.
    fn value(&self, name: MetricName) -> Option<f64> {
        let of_answers = self
            .answers
            .as_ref()
            .and_then(|answers| answers.value(name));
        of_answers.or_else(|| match &self.fit {
            Some(fit) => fit.watched(name),
            None => self.metrics.as_ref()?.value(name),
        })
    }
}

impl From<&TrialRow> for TrialResult {
    fn from(row: &TrialRow) -> TrialResult {
        TrialResult {
            trial: row.trial,
            model: row.pipeline.clone(),
            error: row.error.clone(),
            fit: row.fit.clone(),
            answers: row.answers,
            metrics: row.metrics.clone(),
        }
    }
}

/// The choice among the trials of a sweep over samples of logs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BestModel {
    /// The best trial, counted from 1.
    pub trial: usize,
    /// The metric of the choice: the sweep's metric, or the validation loss if the former is not
    /// defined for any trial.
    pub metric: Metric,
    /// The best trial's value of the metric.
    pub value: f64,
    /// The ensemble that replaces the best trial, unless that is shown to be better alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ensemble: Option<EnsembleChoice>,
    /// Every trial, including the failed ones.
    pub trials: Vec<TrialResult>,
}

impl BestModel {
    /// Chooses the best of `trials` by `metric`. Trials for which the metric is not defined come
    /// last.
    ///
    /// # Errors
    /// Fails if no trial has a model.
    pub fn choose(metric: &Metric, trials: Vec<TrialResult>) -> Result<BestModel> {
        let by =
            |metric| best_by(metric, trials.iter()).map(|(trial, value)| (metric, trial, value));
        let (metric, trial, value) = by(metric).or_else(|| by(&LOSS)).with_context(|| {
            let why = trials.iter().find_map(|trial| {
                Some(format!(
                    "; trial {}: {}",
                    trial.trial,
                    trial.error.as_ref()?
                ))
            });
            format!(
                "none of {} finished{}",
                poolcast_base::output::counted(trials.len(), "trial"),
                why.unwrap_or_default()
            )
        })?;
        Ok(BestModel {
            trial,
            metric: metric.clone(),
            value,
            ensemble: None,
            trials,
        })
    }

    /// The directory of the model that answers, below the results directory `dir`: the ensemble
    /// once it is made, else the best trial.
    pub fn dir(&self, dir: &Path) -> PathBuf {
        self.judged_dir(dir, dir)
    }

    /// Like [`BestModel::dir`], but with the trials in `dir`, and later results such as the
    /// ensemble in `out`.
    pub fn judged_dir(&self, dir: &Path, out: &Path) -> PathBuf {
        let ensemble = ensemble_dir(out);
        if self.ensemble.is_some() && ensemble.join(manifest::FILE).is_file() {
            return ensemble;
        }
        trial_dir(dir, self.trial)
    }
}

/// The best of the `trials` for which `metric` is defined, with its value.
pub(super) fn best_by<'a>(
    metric: &Metric,
    trials: impl Iterator<Item = &'a TrialResult>,
) -> Option<(usize, f64)> {
    let ranked = trials.filter_map(|trial| {
        let loss = trial.value(LOSS.name);
        let roc_auc = trial.value(MetricName::ValidationRocAuc);
        let tie_breaker = metric.name.tie_breaker(loss, roc_auc);
        Some((trial.trial, (trial.value(metric.name)?, tie_breaker)))
    });
    ranked
        .min_by(|a, b| metric.goal.order(a.1, b.1))
        .map(|(trial, (value, _))| (trial, value))
}

/// Finds the run that `path` names. For the directory of a sweep this is its best trial or its
/// ensemble.
pub fn resolve_run(path: &Path) -> Result<PathBuf> {
    let best = path.join(BEST_FILE);
    if best.is_file() {
        return Ok(manifest::read_json::<BestModel>(&best)?.dir(path));
    }
    if path.join(manifest::FILE).is_file() || path.join(poolcast_config::FILE).is_file() {
        return Ok(path.to_owned());
    }
    let hint = "name the directory that `poolcast train` or `poolcast run` wrote";
    Err(hinted(
        format!(
            "`{}` is neither a run nor a sweep with a best trial",
            path.display()
        ),
        hint,
    )
    .into())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use poolcast_base::stats::Scores;
    use poolcast_holds::training::{PooledScores, TrainingStatus};

    const F_MEASURE: Metric = Metric {
        name: MetricName::ValidationFMeasure,
        goal: Goal::Maximize,
        reported: None,
        target: None,
    };

    pub(in crate::outcomes) fn trial(
        trial: usize,
        loss: Option<f64>,
        f_measure: Option<f64>,
    ) -> TrialResult {
        let (status, validation_loss) = loss.map_or((TrainingStatus::NonFinite, 0.1), |loss| {
            (TrainingStatus::Finished, loss)
        });
        let validation = Scores {
            f_measure,
            ..Scores::default()
        };
        let best = Epoch {
            epoch: 1,
            train_loss: 0.0,
            validation_loss,
            validation,
            is_best: true,
        };
        let judged = PooledScores {
            loss: validation_loss,
            scores: validation,
        };
        let metrics = TrainingMetrics {
            status,
            judged: (status == TrainingStatus::Finished).then_some(judged),
            metric: LOSS,
            epochs: 1,
            last: Some(best.clone()),
            best: Some(best),
            calibration: None,
        };
        TrialResult {
            model: "lstm".to_owned(),
            fit: None,
            answers: None,
            trial,
            error: None,
            metrics: Some(metrics),
        }
    }

    #[test]
    fn earlier_of_equal_trials_wins_and_failed_trials_are_listed() {
        let dir = tempfile::tempdir().expect("a directory");
        let with_loss = |number, loss| trial(number, loss, None);
        let losses = [None, Some(0.5), Some(0.4), Some(0.4)];
        let best = BestModel::choose(
            &LOSS,
            (1..)
                .zip(losses)
                .map(|(number, loss)| with_loss(number, loss))
                .collect(),
        );
        let best = best.expect("chosen");
        manifest::write_json(&dir.path().join(BEST_FILE), &best).expect("written");
        assert_eq!((best.trial, best.value, best.trials.len()), (3, 0.4, 4));
        assert_eq!(
            resolve_run(dir.path()).expect("resolved"),
            trial_dir(dir.path(), 3)
        );
        assert!(BestModel::choose(&LOSS, vec![with_loss(1, None)]).is_err());
        assert!(resolve_run(&dir.path().join("nowhere")).is_err());
    }

    #[test]
    fn equal_f_measures_are_decided_by_roc_auc() {
        let with_area = |number, loss, area| {
            let mut trial = trial(number, Some(loss), Some(0.4));
            for judged in trial.metrics.iter_mut().flat_map(|of| &mut of.judged) {
                judged.scores.roc_auc = Some(area);
            }
            trial
        };
        let trials = vec![with_area(1, 0.1, 0.5), with_area(2, 0.9, 0.664)];
        let best = BestModel::choose(&F_MEASURE, trials.clone()).expect("chosen");
        assert_eq!(best.trial, 2);
        let best = BestModel::choose(&LOSS, trials).expect("chosen");
        assert_eq!(best.trial, 1);
    }

    #[test]
    fn first_of_equal_values_wins_and_undefined_values_come_last() {
        let best = |trials: [(Option<f64>, Option<f64>); 3]| {
            let trials = (1..)
                .zip(trials)
                .map(|(number, (loss, f_measure))| trial(number, loss, f_measure));
            let best = BestModel::choose(&F_MEASURE, trials.collect()).expect("chosen");
            (best.trial, best.metric.name, best.value)
        };
        let by_f = MetricName::ValidationFMeasure;
        assert_eq!(
            best([
                (Some(0.1), None),
                (Some(0.9), Some(0.0)),
                (Some(0.8), Some(0.0))
            ]),
            (2, by_f, 0.0)
        );
        assert_eq!(
            best([
                (Some(0.9), Some(0.5)),
                (Some(0.1), Some(0.4)),
                (None, Some(0.9))
            ]),
            (1, by_f, 0.5)
        );
        let undefined = [(Some(0.9), None), (Some(0.1), None), (None, None)];
        assert_eq!(best(undefined), (2, MetricName::ValidationLoss, 0.1));
    }
}
