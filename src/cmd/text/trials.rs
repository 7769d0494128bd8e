//! What the trials of a sweep, and the epochs of a training, say to people: a line each.

use crate::escape;
use crate::sweep::{SweepFolder, TrialRow};
use crate::training::Epoch;

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

/// Says of an epoch of a trial what diagnostics show.
pub(in crate::cmd) fn tell_epoch(trial: usize, epoch: &Epoch) {
    tracing::info!("trial {trial}: {}", epoch_line(epoch));
}

/// One line on a trial that has ended.
pub(in crate::cmd) fn trial_line(row: &TrialRow, sweep: &SweepFolder) -> String {
    let what = match (&row.error, row.value) {
        (Some(error), _) => format!("{}: {}", row.ended, escape::value(error)),
        (None, Some(value)) => format!("{} {value:.4}", sweep.config.wandb.sweep.metric.name),
        (None, None) => row.ended.to_string(),
    };
    format!("trial {}: {what}, {:.1} s", row.trial, row.seconds)
}
