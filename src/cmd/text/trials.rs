//! One-line descriptions of the trials of a sweep and of the epochs of a training.

use std::path::Path;

use poolcast_base::escape;
use poolcast_holds::training::Epoch;
use poolcast_sweep::{BestModel, InputValue, ScoreEstimate, SweepFolder, TrialRow};

/// One epoch on one line.
pub(in crate::cmd) fn epoch_line(epoch: &Epoch) -> String {
    let auc = epoch
        .validation
        .roc_auc
        .map_or("-".to_owned(), |auc| format!("{auc:.3}"));
    format!(
        "epoch {:3}  train loss {:.4}  validation loss {:.4}  ROC-AUC {auc}{}",
        epoch.epoch,
        epoch.train_loss,
        epoch.validation_loss,
        if epoch.is_best { "  best" } else { "" }
    )
}

/// Logs the epoch of a trial as a diagnostic.
pub(in crate::cmd) fn log_epoch(trial: usize, epoch: &Epoch) {
    tracing::info!("trial {trial}: {}", epoch_line(epoch));
}

/// A trial that has ended, on one line.
pub(in crate::cmd) fn trial_line(row: &TrialRow, sweep: &SweepFolder) -> String {
    let what = match (&row.error, row.value) {
        (Some(error), _) => format!("{}: {}", row.ended, escape::value(error)),
        (None, Some(value)) => {
            let metric = &sweep.config.wandb.sweep.metric;
            format!(
                "{} {}",
                escape::value(&metric.title()),
                metric.value_text(value)
            )
        }
        (None, None) => row.ended.to_string(),
    };
    let how = if row.ended_on_request {
        ", ended on request"
    } else {
        ""
    };
    format!("trial {}: {what}, {:.1} s{how}", row.trial, row.seconds)
}

/// The trials of the sweep in `dir` that form the ensemble, and the location of its model; empty if
/// the best trial answers alone.
pub(in crate::cmd) fn ensemble_text(best: &BestModel, dir: &Path) -> String {
    let Some(ensemble) = &best.ensemble else {
        return String::new();
    };
    let mut text = format!(
        "ensemble of the best trial of each kind: {} {:.4}, the best trial alone {:.4}; trials {}\n",
        best.metric.name.judged_name(),
        ensemble.value,
        best.value,
        escape::value(&ensemble.words())
    );
    let made = best.dir(dir);
    if made == poolcast_sweep::ensemble_dir(dir) {
        text.push_str(&format!("the ensemble is in {}\n", escape::path(&made)));
    }
    text
}

/// The best value that each input reaches alone, and all together if that is better; empty if the
/// trials have only one input.
pub(in crate::cmd) fn inputs_text(best: &BestModel) -> String {
    let mut parts = Vec::new();
    for InputValue { input, best } in best.best_by_input() {
        if let Some(best) = best {
            let (title, trial) = (input.title(), best.trial);
            parts.push(format!("{title} {:.4} (trial {trial})", best.value));
        }
    }
    if parts.len() < 2 {
        return String::new();
    }
    let ensemble = best.ensemble.as_ref();
    parts.extend(ensemble.map(|ensemble| format!("all together {:.4}", ensemble.value)));
    let name = best.metric.name.judged_name();
    format!("best by input, {name}: {}\n", parts.join(", "))
}

/// Advice if no trial is better than chance; empty otherwise. `of_best` is the ROC-AUC of the best
/// trial on later holds, in the first case.
pub(in crate::cmd) fn chance_text(of_best: Option<ScoreEstimate>) -> String {
    let Some(ScoreEstimate { value, low, high }) = of_best else {
        return String::new();
    };
    format!(
        "no trial is shown to be better than chance: on later holds the best has ROC-AUC {value:.2} [{low:.2}, {high:.2}], and a random guess 0.50\n         what can help: more of the log, `context: related` for a network on the frames, `model: outcomes` on what happened to related jobs, models on the static features: `pipelines: {{enet: {{}}, et: {{}}}}`\n"
    )
}
