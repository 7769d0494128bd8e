//! The best trial → `best.json` for programs, and `bestmodel.info` for people and scripts, a line of `key = value` each.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use super::best::{BEST_FILE, Best, TrialResult};
use super::row::{parameters, plain};
use super::trial::trial_dir;
use crate::config::Config;
use crate::tensors::Side;
use crate::training::{Evaluation, Run};
use crate::{escape, files, manifest};

/// The file in a sweep's directory that says which model is the best, and how good it is.
pub const INFO_FILE: &str = "bestmodel.info";

/// Writes `best`, of the sweep in `dir`, for programs and for people.
pub fn write_best(dir: &Path, best: &Best) -> Result<()> {
    manifest::write_json(&dir.join(BEST_FILE), best)?;
    files::write_atomic(&dir.join(INFO_FILE), info(dir, best, None)?.as_bytes())
}

/// What is known of the best trial: why it was chosen, its scores on the test samples where it was evaluated on them, its
/// hyper-parameters, where its model is. `evaluation` are those scores, if they are not beside the model yet.
pub fn info(dir: &Path, best: &Best, evaluation: Option<&Evaluation>) -> Result<String> {
    let run = trial_dir(dir, best.trial);
    let failed: Vec<String> = best.trials.iter().filter(|trial| trial.best().is_none()).map(failure).collect();
    let chosen = best.trials.iter().find(|trial| trial.trial == best.trial).and_then(|trial| trial.best());
    let mut lines = vec![
        ("trial".to_owned(), best.trial.to_string()),
        ("metric".to_owned(), best.metric.name.to_string()),
        ("goal".to_owned(), format!("{:?}", best.metric.goal).to_lowercase()),
        ("value".to_owned(), best.value.to_string()),
        ("epoch".to_owned(), chosen.map_or(String::new(), |epoch| epoch.epoch.to_string())),
        ("model".to_owned(), format!("trials/trial-{:04}/model.safetensors", best.trial)),
        ("model_sha256".to_owned(), Run::open(&run)?.summary.model_sha256),
        ("trials".to_owned(), best.trials.len().to_string()),
        ("failed".to_owned(), failed.len().to_string()),
    ];
    lines.extend(failed.into_iter().map(|failure| ("failed_trial".to_owned(), failure)));
    lines.extend(test_scores(&run, evaluation.cloned())?);
    lines.extend(parameters(&Config::read(&run)?)?.into_iter().map(|(name, value)| (name, short(&value))));
    Ok(lines.into_iter().map(|(key, value)| format!("{} = {}\n", escape::value(&key), escape::value(&value))).collect())
}

/// A trial without a model, and why.
fn failure(trial: &TrialResult) -> String {
    let why = trial.error.as_deref().unwrap_or("its loss was no number").replace('\n', " ");
    format!("{}: {why}", trial.trial)
}

fn test_scores(run: &Path, evaluation: Option<Evaluation>) -> Result<Vec<(String, String)>> {
    let path = Evaluation::path(run, Side::Test);
    let is_beside = evaluation.is_none() && path.is_file();
    let beside = is_beside.then(|| manifest::read_json::<Evaluation>(&path)).transpose()?;
    let evaluation = evaluation.or(beside);
    let scores = evaluation.and_then(|evaluation| evaluation.methods.into_iter().next()).map(|model| model.scores);
    let defined = scores.into_iter().flatten().filter_map(|score| Some((score.name, score.value?)));
    Ok(defined.map(|(name, value)| (format!("test_{name}"), value.to_string())).collect())
}

/// A hyper-parameter as people write it: `64`, not `64.0`.
fn short(value: &Value) -> String {
    value.as_f64().map_or_else(|| plain(value), |number| number.to_string())
}
