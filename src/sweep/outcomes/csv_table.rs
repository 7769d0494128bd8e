//! Converts rows to a CSV table for spreadsheets.

use std::collections::BTreeSet;

use crate::config::TrialSource;
use crate::plan::{TrialRow, plain_value};
use poolcast_config::{MetricName, PredictionTask};
use poolcast_holds::training::{FitScores, TargetScores};

/// The columns of a table of rows for spreadsheets, in addition to those that every row has. The
/// configuration has no column.
#[derive(Debug, Default)]
pub(crate) struct CsvColumns {
    /// Further splits that pipelines were evaluated on.
    evaluations: BTreeSet<String>,
    /// Hyper-parameters.
    parameters: BTreeSet<String>,
    /// The type of the targets: numbers have other scores than classes.
    task: PredictionTask,
    /// True if the trials are over wait samples, which have their own scores.
    is_over_waits: bool,
}

/// The scores of wait models, which are also their column names.
const OF_WAITS: [MetricName; 2] = [MetricName::HeldBackPinball, MetricName::HeldBackCost];

impl CsvColumns {
    /// Adds the columns that `row` needs.
    pub(crate) fn add_row(&mut self, row: &TrialRow) {
        self.evaluations.extend(
            row.fit
                .iter()
                .flat_map(|fit| fit.evaluation.keys().cloned()),
        );
        self.parameters.extend(row.parameters.keys().cloned());
        self.task = row.config.data.task;
        self.is_over_waits = row.config.trial_source() == TrialSource::WaitSamples;
    }

    /// The first line.
    pub(crate) fn header_line(&self) -> String {
        let mut columns = [
            "trial", "pipeline", "split", "budget", "ended", "error", "value", "folds", "attempt",
            "worker", "began", "seconds", "seed",
        ]
        .map(str::to_owned)
        .to_vec();
        columns
            .extend(["epochs", "best_epoch", "train_loss", "validation_loss"].map(str::to_owned));
        if self.is_over_waits {
            columns.extend(OF_WAITS.map(|name| name.to_string()));
        } else {
            let names = TargetScores::names(self.task).iter();
            columns.extend(names.map(|name| format!("validation_{name}")));
        }
        columns.extend(
            self.evaluations
                .iter()
                .map(|name| format!("evaluation_{name}")),
        );
        for name in &self.parameters {
            // The drawn number of epochs is not the number of trained epochs.
            let is_taken = columns.contains(name);
            columns.push(if is_taken {
                format!("model.{name}")
            } else {
                name.clone()
            });
        }
        csv_line(&columns)
    }

    /// The line of `row`.
    pub(crate) fn row_line(&self, row: &TrialRow) -> String {
        let held_out = row.fit.as_ref().and_then(|fit| fit.validation);
        let best = row
            .metrics
            .as_ref()
            .and_then(|metrics| metrics.best.as_ref());
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let mut cells = vec![
            row.trial.to_string(),
            row.pipeline.clone(),
            row.split.clone().unwrap_or_default(),
            row.budget.to_string(),
            row.ended.to_string(),
            row.error.clone().unwrap_or_default(),
            number(row.value),
            row.fit.as_ref().map_or(String::new(), |fit| {
                fold_scores(fit, row.config.wandb.sweep.metric.name)
            }),
            row.attempt.to_string(),
            row.worker.clone(),
            row.began.clone(),
            format!("{:.3}", row.seconds),
            row.seed.to_string(),
            row.trained_epochs()
                .map_or(String::new(), |epochs| epochs.to_string()),
            best.map_or(String::new(), |best| best.epoch.to_string()),
            number(best.map(|best| best.train_loss)),
            number(
                best.map(|best| best.validation_loss)
                    .or(held_out.and_then(|scores| scores.loss())),
            ),
        ];
        let of_network = best.map(|best| best.validation.values().to_vec());
        let of_fit = held_out.map(|scores| scores.values());
        let scores = of_network.or(of_fit).unwrap_or_default();
        if self.is_over_waits {
            let waits = row.waits.as_ref();
            let value_of = |name: MetricName| waits.and_then(|waits| waits.watched(name));
            cells.extend(OF_WAITS.map(|name| number(value_of(name))));
        } else {
            for place in 0..TargetScores::names(self.task).len() {
                cells.push(number(scores.get(place).copied().flatten()));
            }
        }
        cells.extend(self.evaluations.iter().map(|name| {
            let scores = row.fit.as_ref().and_then(|fit| fit.evaluation.get(name));
            number(scores.and_then(|scores| scores.watched(row.config.wandb.sweep.metric.name)))
        }));
        cells.extend(
            self.parameters
                .iter()
                .map(|name| row.parameters.get(name).map_or(String::new(), plain_value)),
        );
        csv_line(&cells)
    }
}

/// `rows` as a table for spreadsheets.
pub(crate) fn csv_table(rows: &[TrialRow]) -> String {
    let mut columns = CsvColumns::default();
    rows.iter().for_each(|row| columns.add_row(row));
    std::iter::once(columns.header_line())
        .chain(rows.iter().map(|row| columns.row_line(row)))
        .collect()
}

/// The metric of each fold, separated by spaces.
fn fold_scores(fit: &FitScores, metric: MetricName) -> String {
    let of = |fold: &TargetScores| {
        fold.watched(metric)
            .map_or("-".to_owned(), |value| value.to_string())
    };
    fit.folds.iter().map(of).collect::<Vec<_>>().join(" ")
}

/// `cells` as a line of CSV.
pub fn csv_line(cells: &[String]) -> String {
    let quoted = cells
        .iter()
        .map(|cell| match cell.contains(['"', ',', '\n', '\r']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.clone(),
        });
    quoted.collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_special_characters_are_quoted() {
        let cells = ["1", "a,b", "say \"no\"", "two\nlines"].map(str::to_owned);
        assert_eq!(
            csv_line(&cells),
            "1,\"a,b\",\"say \"\"no\"\"\",\"two\nlines\"\n"
        );
    }
}
