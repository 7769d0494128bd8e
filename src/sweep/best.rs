//! Results of trials → the best one: by the sweep's metric on the validation samples, ties to the earlier trial.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::trial::trial_dir;
use crate::config::Metric;
use crate::error::hinted;
use crate::manifest;
use crate::training::{Epoch, Metrics};

/// The file in a sweep's directory that names the best trial.
pub const BEST_FILE: &str = "best.json";

/// How one trial ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrialResult {
    /// Counted from 1.
    pub trial: usize,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How its training went, if there was one.
    #[serde(flatten)]
    pub metrics: Option<Metrics>,
}

impl TrialResult {
    /// Its best epoch; `None` for a trial that left no model.
    pub fn best(&self) -> Option<&Epoch> {
        self.metrics.as_ref()?.of_model()
    }
}

/// The choice among the trials of a sweep.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Best {
    /// The best trial, counted from 1.
    pub trial: usize,
    /// What it was chosen by.
    pub metric: Metric,
    /// Its value.
    pub value: f64,
    /// Every trial, the failed ones too.
    pub trials: Vec<TrialResult>,
}

impl Best {
    /// The best of `trials`.
    ///
    /// # Errors
    /// Fails when no trial has a value.
    pub fn of(metric: &Metric, trials: Vec<TrialResult>) -> Result<Best> {
        let valued = trials.iter().filter_map(|trial| Some((trial.trial, trial.metrics.as_ref()?.watched()?)));
        let best = metric.goal.best(valued, |(_, value)| *value);
        let (trial, value) = best.with_context(|| {
            let why =
                trials.iter().find_map(|trial| Some(format!("; trial {}: {}", trial.trial, trial.error.as_ref()?)));
            format!("none of the {} trials finished{}", trials.len(), why.unwrap_or_default())
        })?;
        Ok(Best { trial, metric: metric.clone(), value, trials })
    }
}

/// The run that `path` means: a run itself, or the best trial of a sweep's directory.
pub fn resolve(path: &Path) -> Result<PathBuf> {
    let best = path.join(BEST_FILE);
    if best.is_file() {
        return Ok(trial_dir(path, manifest::read_json::<Best>(&best)?.trial));
    }
    if path.join(manifest::FILE).is_file() || path.join(crate::config::FILE).is_file() {
        return Ok(path.to_owned());
    }
    let hint = "name the directory that `poolcast train` or `poolcast run` wrote";
    Err(hinted(format!("`{}` is neither a run nor a sweep with a best trial", path.display()), hint).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Goal, MetricName};
    use crate::training::{Scores, Status};

    const METRIC: Metric = Metric { name: MetricName::ValidationLoss, goal: Goal::Minimize };

    fn trial(trial: usize, loss: Option<f64>) -> TrialResult {
        let (status, validation_loss) = loss.map_or((Status::NonFinite, 0.1), |loss| (Status::Finished, loss));
        let best = Epoch { epoch: 1, train_loss: 0.0, validation_loss, validation: Scores::default(), is_best: true };
        let metrics = Metrics {
            status,
            metric: METRIC,
            epochs: 1,
            last: Some(best.clone()),
            best: Some(best),
            calibration: None,
        };
        TrialResult { trial, error: None, metrics: Some(metrics) }
    }

    #[test]
    fn the_earlier_of_equals_wins_and_failures_are_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let trials = vec![trial(1, None), trial(2, Some(0.5)), trial(3, Some(0.4)), trial(4, Some(0.4))];
        let best = Best::of(&METRIC, trials).expect("chosen");
        manifest::write_json(&dir.path().join(BEST_FILE), &best).expect("written");
        assert_eq!((best.trial, best.value, best.trials.len()), (3, 0.4, 4));
        assert_eq!(resolve(dir.path()).expect("resolved"), trial_dir(dir.path(), 3));
        assert!(Best::of(&METRIC, vec![trial(1, None)]).is_err());
        assert!(resolve(&dir.path().join("nowhere")).is_err());
    }
}
