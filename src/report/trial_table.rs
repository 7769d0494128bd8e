//! The table of all trials, with the hyper-parameters that differ between them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::document::{ReportCell, ReportTable};
use super::inputs::ReportInputs;
use super::reported_trial::ReportedTrial;
use super::words;
use poolcast_config::MetricName;
use poolcast_sweep::plain_value;

/// Maximum number of columns for hyper-parameters.
const MAX_PARAMETER_COLUMNS: usize = 16;

/// Makes the table.
pub(super) fn trial_table(inputs: &ReportInputs) -> ReportTable {
    let has_splits = inputs.trials.iter().any(|trial| trial.split.is_some());
    let has_epochs = inputs.has_epochs();
    let has_errors = inputs.trials.iter().any(|trial| trial.error.is_some());
    let parameters = shown_parameters(inputs);
    let shown: Vec<String> = parameters.iter().map(|name| words::shown(name)).collect();

    let metric = inputs.metric().name;
    let kept_value = match &inputs.metric().reported {
        Some(reported) => words::shown(reported),
        None => metric.to_string(),
    };
    let value = metric.judged_name();
    // A program reports no scores but its own.
    let has_scores = !inputs.is_over_waits() && !inputs.runs_program();
    let value = if has_epochs { &value } else { &kept_value };
    let mut columns = vec![
        ("trial", 0),
        ("model", 0),
        ("ended", 0),
        (value.as_str(), 4),
    ];
    let optional = [
        (has_epochs, (kept_value.as_str(), 4)),
        (
            metric != MetricName::ValidationLoss && has_scores,
            ("validation loss", 4),
        ),
        (
            metric != MetricName::ValidationRocAuc && !inputs.predicts_numbers() && has_scores,
            ("ROC-AUC", 4),
        ),
        (has_epochs, ("epochs", 0)),
        (has_epochs, ("epoch kept", 0)),
        (has_splits, ("split", 0)),
    ];
    let shown_optional = optional.iter().filter(|(is_shown, _)| *is_shown);
    columns.extend(shown_optional.map(|(_, column)| *column));
    columns.extend(shown.iter().map(|name| (name.as_str(), 4)));
    if has_errors {
        columns.push(("reason", 0));
    }

    let mut table = ReportTable::new("All trials that have ended, the best first", &columns);
    table.is_sortable = true;
    let is_shown = optional.map(|(is_shown, _)| is_shown);
    for trial in inputs.ranked_trials() {
        let mut row = trial_cells(trial, is_shown);
        for name in &parameters {
            row.push(parameter_cell(trial.parameters.get(*name)));
        }
        if has_errors && !inputs.is_anonymous {
            row.push(trial.error.clone().into());
        } else if has_errors {
            row.push(ReportCell::Empty);
        }
        table.rows.push(row);
    }
    table
}

/// Returns the names of the hyper-parameters that differ. The model's name has its own column.
fn shown_parameters(inputs: &ReportInputs) -> Vec<&str> {
    let is_of_model = |name: &str| match name {
        "model" => !inputs.runs_program(),
        "name" => inputs.is_over_waits(),
        _ => false,
    };
    let mut parameters = varied_parameters(&inputs.trials);
    parameters.retain(|name| !is_of_model(name));
    parameters
}

/// Returns the cells of a trial before its hyper-parameters. `is_shown` selects the optional
/// columns.
fn trial_cells(trial: &ReportedTrial, is_shown: [bool; 6]) -> Vec<ReportCell> {
    let mut row = vec![
        trial.trial.into(),
        trial.model.clone().into(),
        trial.ended.clone().into(),
        trial.value.into(),
    ];
    let optional: [ReportCell; 6] = [
        trial.kept_value.into(),
        trial.loss.into(),
        trial.roc_auc.into(),
        trial.epochs.into(),
        trial.kept_epoch.into(),
        trial.split.clone().into(),
    ];
    for (cell, is_shown) in optional.into_iter().zip(is_shown) {
        if is_shown {
            row.push(cell);
        }
    }
    row
}

/// Returns the hyper-parameters that have different values in different trials.
fn varied_parameters(trials: &[ReportedTrial]) -> Vec<&str> {
    let mut values: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for trial in trials {
        for (name, value) in &trial.parameters {
            let seen = values.entry(name).or_default();
            // Two distinct values are enough to see that it varies.
            if seen.len() < 2 {
                seen.insert(plain_value(value));
            }
        }
    }
    let varied = values.into_iter().filter(|(_, seen)| seen.len() > 1);
    varied
        .map(|(name, _)| name)
        .take(MAX_PARAMETER_COLUMNS)
        .collect()
}

fn parameter_cell(value: Option<&Value>) -> ReportCell {
    match value {
        None => ReportCell::Empty,
        Some(value) => match (value.as_u64(), value.as_f64()) {
            (Some(count), _) => ReportCell::Count(count),
            (None, Some(number)) => number.into(),
            (None, None) => words::shown(&plain_value(value)).into(),
        },
    }
}
