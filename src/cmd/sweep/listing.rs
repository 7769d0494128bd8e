//! `poolcast sweep list`: lists every trial of a sweep, the best first.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::Value;

use super::super::results_here::named_or_here;
use poolcast_base::error::EXIT_DONE;
use poolcast_base::stats::Scores;
use poolcast_base::{escape, output};
use poolcast_cli::SweepListArgs;
use poolcast_config::{Metric, MetricName, PredictionTask};
use poolcast_holds::training::TargetScores;
use poolcast_sweep::condor::results_directory;
use poolcast_sweep::config::{Config, TrialSource};
use poolcast_sweep::{
    self as sweep, RunningTrial, SweepFolder, TrialOutcome, TrialOutcomes, TrialRow,
};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Text of a table cell for a value that the trial does not have.
const MISSING: &str = "-";

/// One trial of the list.
#[derive(Serialize)]
struct ListedTrial {
    /// Rank, counted from 1; only for trials with a value.
    rank: Option<usize>,
    /// The trial's number, from 1.
    trial: usize,
    /// The way the trial ended, as in its row, or `running`.
    state: String,
    /// Its duration, in seconds.
    seconds: Option<f64>,
    /// Epoch budget: the maximum that the trial had or may have.
    budget: usize,
    /// Epochs done, for networks.
    epochs: Option<usize>,
    /// Value of the metric that the sweep optimizes.
    value: Option<f64>,
    /// Defined scores on the validation samples, or means over folds, and `loss`.
    metrics: BTreeMap<String, f64>,
    /// The pipeline, or the network's architecture.
    pipeline: Option<String>,
    /// The split of tables.
    split: Option<String>,
    /// Its hyper-parameters.
    parameters: BTreeMap<String, Value>,
    /// Its error.
    error: Option<String>,
}

/// Prints the list.
pub(super) fn list(args: &SweepListArgs) -> Result<u8> {
    let named = named_or_here(args.show.dir.as_deref())?;
    let sweep = SweepFolder::open(&results_directory(&named)?)?;
    let status = sweep::sweep_status(&sweep)?;
    let mut outcomes = TrialOutcomes::read(&sweep)?;
    let running: BTreeMap<usize, &RunningTrial> = status
        .running
        .iter()
        .map(|running| (running.trial, running))
        .collect();

    let goal = sweep.config.wandb.sweep.metric.goal;
    let all = outcomes.all();
    let mut ranked: Vec<usize> = (0..all.len())
        .filter(|at| !running.contains_key(&all[*at].trial))
        .collect();
    ranked.sort_by(|a, b| compare_outcomes(goal, &all[*a], &all[*b]));

    let most = args.top.unwrap_or(usize::MAX);
    let mut list = TrialListing::begin(args, &sweep)?;
    for (at, rank) in ranked.iter().take(most).zip(1..) {
        list.add(ListedTrial::ended_trial(rank, &outcomes.row(*at)?))?;
    }
    for running in running.values().take(most.saturating_sub(ranked.len())) {
        list.add(ListedTrial::from_running(running))?;
    }
    list.end(status.ready)?;
    Ok(EXIT_DONE)
}

/// Orders the better trial first. The earlier trial wins a tie, as in the choice of the best trial.
fn compare_outcomes(
    goal: poolcast_config::Goal,
    a: &TrialOutcome,
    b: &TrialOutcome,
) -> std::cmp::Ordering {
    match (a.rank(), b.rank()) {
        (Some(one), Some(other)) => goal.order(one, other).then(a.trial.cmp(&b.trial)),
        (one, other) => one
            .is_none()
            .cmp(&other.is_none())
            .then(a.trial.cmp(&b.trial)),
    }
}

impl ListedTrial {
    fn ended_trial(rank: usize, row: &TrialRow) -> ListedTrial {
        let mut metrics = BTreeMap::new();
        if let Some(reported) = &row.reported {
            metrics.extend(reported.last.clone());
        }
        if let Some(waits) = &row.waits {
            for name in [MetricName::HeldBackPinball, MetricName::HeldBackCost] {
                metrics.extend(waits.watched(name).map(|value| (name.to_string(), value)));
            }
        }
        if let Some(scores) = row.scores() {
            metrics.extend(scores.loss().map(|loss| ("loss".to_owned(), loss)));
            for (name, score) in scores.named() {
                metrics.extend(score.map(|score| (name.to_owned(), score)));
            }
        }

        ListedTrial {
            rank: row.value.map(|_| rank),
            trial: row.trial,
            state: row.ended.to_string(),
            seconds: Some(row.seconds),
            budget: row.budget,
            epochs: row.trained_epochs(),
            value: row.value,
            metrics,
            pipeline: Some(row.pipeline.clone()),
            split: row.split.clone(),
            parameters: row.counted_parameters(),
            error: row.error.clone(),
        }
    }

    fn from_running(running: &RunningTrial) -> ListedTrial {
        ListedTrial {
            rank: None,
            trial: running.trial,
            state: "running".to_owned(),
            seconds: running.seconds,
            budget: running.budget,
            epochs: running.epoch,
            value: running.value,
            metrics: BTreeMap::new(),
            pipeline: None,
            split: None,
            parameters: BTreeMap::new(),
            error: None,
        }
    }

    fn cells(&self, scores: &ListedScores) -> Vec<String> {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| MISSING.to_owned());
        let number =
            |name: &str| or_dash(self.metrics.get(name).map(|value| format!("{value:.4}")));
        let epochs = self.epochs.map(|epochs| match self.budget {
            // A program reports as often as it likes.
            budget if epochs > budget => epochs.to_string(),
            budget => format!("{epochs}/{budget}"),
        });
        let error = self.error.as_ref().map(|error| error.replace('\n', " "));

        let mut cells = vec![
            or_dash(self.rank.map(|rank| rank.to_string())),
            self.trial.to_string(),
            self.state.clone(),
            or_dash(self.seconds.map(|seconds| format!("{seconds:.1}"))),
            or_dash(epochs),
            or_dash(self.value.map(|value| scores.metric.value_text(value))),
        ];
        cells.extend(scores.shown.iter().map(|name| number(name)));
        cells.extend([
            or_dash(self.split.clone()),
            or_dash(self.pipeline.clone()),
            error.unwrap_or_else(|| self.parameters_text()),
        ]);
        cells
    }

    /// The hyper-parameters as `name=value`, separated by blanks.
    fn parameters_text(&self) -> String {
        let mut parameters = Vec::new();
        for (name, value) in &self.parameters {
            parameters.push(format!("{name}={}", sweep::plain_value(value)));
        }
        parameters.join(" ")
    }

    fn csv_cells(&self, scores: &ListedScores) -> Vec<String> {
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let mut cells = vec![
            self.rank.map_or(String::new(), |rank| rank.to_string()),
            self.trial.to_string(),
            self.state.clone(),
            self.seconds
                .map_or(String::new(), |seconds| format!("{seconds:.3}")),
            self.budget.to_string(),
            self.epochs
                .map_or(String::new(), |epochs| epochs.to_string()),
            number(self.value),
        ];
        let metrics = scores.all.iter();
        cells.extend(metrics.map(|name| number(self.metrics.get(name).copied())));
        cells.extend([
            self.pipeline.clone().unwrap_or_default(),
            self.split.clone().unwrap_or_default(),
            self.parameters_text(),
            self.error.clone().unwrap_or_default(),
        ]);

        cells
            .iter()
            .map(|cell| escape::value(cell).into_owned())
            .collect()
    }
}

/// Names of the scores that the trials of a sweep have.
struct ListedScores {
    /// Metric of the sweep.
    metric: Metric,
    /// Scores that the table shows beside the metric of the sweep.
    shown: Vec<String>,
    /// All scores.
    all: Vec<String>,
}

impl ListedScores {
    fn of(config: &Config) -> ListedScores {
        const OF_WAITS: [&str; 2] = ["held_back_pinball", "held_back_cost"];
        let metrics = &config.wandb.sweep.metric;
        let task = config.data.task;
        let (shown, all) = match config.trial_source() {
            TrialSource::WaitSamples => {
                let chosen_by = metrics.name.to_string();
                let others = OF_WAITS.into_iter().filter(|name| *name != chosen_by);
                (others.collect(), OF_WAITS.to_vec())
            }
            TrialSource::Command => (Vec::new(), Vec::new()),
            TrialSource::Logs | TrialSource::Tables => {
                let shown = match task {
                    PredictionTask::Classification => vec!["roc_auc", "f_measure", "loss"],
                    PredictionTask::Regression => vec!["mae", "r2", "loss"],
                };
                (shown, [TargetScores::names(task), &["loss"]].concat())
            }
        };
        let mut scores = ListedScores {
            metric: metrics.first().clone(),
            shown: shown.into_iter().map(str::to_owned).collect(),
            all: all.into_iter().map(str::to_owned).collect(),
        };
        for other in metrics.others() {
            let of_model = || other.name.to_string().replacen("validation_", "", 1);
            let name = other.reported.clone().unwrap_or_else(of_model);
            for names in [&mut scores.shown, &mut scores.all] {
                if !names.contains(&name) {
                    names.push(name.clone());
                }
            }
        }
        scores
    }
}

/// The list while it is written to stdout. A table is laid out as a whole; JSON and CSV are written
/// line by line.
enum TrialListing {
    Table {
        rows: Vec<Vec<String>>,
        scores: ListedScores,
    },
    Json {
        is_empty: bool,
    },
    Csv {
        scores: ListedScores,
    },
}

/// Drops the columns that are empty for every trial.
fn drop_empty_columns(rows: &mut [Vec<String>]) {
    let [head, listed @ ..] = &*rows else {
        return;
    };
    let is_shown: Vec<bool> = (0..head.len())
        .map(|column| listed.is_empty() || listed.iter().any(|row| row[column] != MISSING))
        .collect();
    for row in rows {
        let mut column = is_shown.iter();
        row.retain(|_| column.next() == Some(&true));
    }
}

/// Pads the cells of the last column to the same width. The table aligns its columns to the right,
/// which suits numbers. The hyper-parameters in the last column are words, and read better when
/// aligned to the left.
fn pad_last_column(rows: &mut [Vec<String>]) {
    let width = rows
        .iter()
        .filter_map(|row| row.last())
        .map(|cell| output::columns_of(cell))
        .max()
        .unwrap_or(0);
    for cell in rows.iter_mut().filter_map(|row| row.last_mut()) {
        *cell = output::left_aligned(cell, width);
    }
}

impl TrialListing {
    fn begin(args: &SweepListArgs, sweep: &SweepFolder) -> Result<TrialListing> {
        let scores = ListedScores::of(&sweep.config);
        if args.show.json {
            output::print(&format!(
                "{{\"schema_version\": {SCHEMA_VERSION}, \"trials\": ["
            ))?;
            return Ok(TrialListing::Json { is_empty: true });
        }
        if args.csv {
            let before_metrics = [
                "rank", "trial", "state", "seconds", "budget", "epochs", "value",
            ];
            let head: Vec<String> = before_metrics
                .into_iter()
                .chain(scores.all.iter().map(String::as_str))
                .chain(["pipeline", "split", "parameters", "error"])
                .map(str::to_owned)
                .collect();
            output::print_file(&sweep::csv_line(&head))?;
            return Ok(TrialListing::Csv { scores });
        }

        let mut head = ["rank", "trial", "state", "s", "epochs"]
            .map(str::to_owned)
            .to_vec();
        head.push(sweep.config.wandb.sweep.metric.title());
        let title = |name: &String| match scores.metric.reported {
            Some(_) => name.clone(),
            None => Scores::title(name),
        };
        head.extend(scores.shown.iter().map(title));
        head.extend(["split", "pipeline", "with"].map(str::to_owned));
        Ok(TrialListing::Table {
            rows: vec![head],
            scores,
        })
    }

    fn add(&mut self, listed: ListedTrial) -> Result<()> {
        match self {
            TrialListing::Table { rows, scores } => {
                rows.push(listed.cells(scores));
                Ok(())
            }
            TrialListing::Json { is_empty } => {
                let text = serde_json::to_string(&listed)
                    .context("a listed trial cannot be written as JSON")?;
                let text = escape::json(&text);
                let comma = if std::mem::take(is_empty) { "" } else { "," };
                output::write(&format!("{comma}\n{text}"))
            }
            TrialListing::Csv { scores } => {
                output::print_file(&sweep::csv_line(&listed.csv_cells(scores)))
            }
        }
    }

    fn end(self, ready: usize) -> Result<()> {
        match self {
            TrialListing::Table { mut rows, .. } => {
                drop_empty_columns(&mut rows);
                pad_last_column(&mut rows);
                output::print(&output::aligned_table(&rows))?;
                if ready > 0 {
                    output::note(&match ready {
                        1 => "1 more trial is ready, and has not started".to_owned(),
                        _ => format!(
                            "{} more trials are ready, and have not started",
                            output::with_commas(ready as u64)
                        ),
                    });
                }
                Ok(())
            }
            TrialListing::Json { is_empty } => {
                output::print_file(if is_empty { "]}\n" } else { "\n]}\n" })
            }
            TrialListing::Csv { .. } => Ok(()),
        }
    }
}
