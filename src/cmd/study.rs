//! The trials of `poolcast run`: the best model with its scores, or the reason why there is none.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::progress::{Progress, Stage};
use super::trained_run::score;
use super::whole_sweep::run_to_end;
use super::{choices, text};
use poolcast_base::error::{EXIT_NEVER, HintedError, exit_code, hinted};
use poolcast_base::{files, manifest, output};
use poolcast_events::EventStore;
use poolcast_holds::training::{ModelEvaluation, TrainedModel};
use poolcast_sweep::config::Config;
use poolcast_sweep::{
    self as sweep, BestModel, FEW_HOLDS_FILE, InputValue, ScoreEstimate, SplitChoice, SweepFolder,
    TrialConfig, TrialModel, TrialOutcomes, TrialRow, events_dir,
};
use poolcast_tensors::{Dataset, Split, SplitSummary, hold_counts};

/// The result of the trials of a run.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Study {
    /// A model was chosen.
    Finished(Box<FinishedSweep>),
    /// The log has too few holds to train a model.
    FewHolds {
        /// Counts of the holds.
        few_holds: FewHolds,
    },
}

/// A log with too few holds to train a model. Contents of `few-holds.json`.
#[derive(Serialize)]
pub(super) struct FewHolds {
    /// Number of holds.
    holds: usize,
    /// Number of them whose outcome is known.
    known: usize,
    /// The reason why no model was trained.
    why: String,
}

/// Number of known outcomes up to which a training that fails is attributed to too few holds.
const FEW_OUTCOMES: usize = 200;

impl Study {
    /// Runs the trials of `sweep`, and chooses and scores the best model; returns `None` if that was stopped.
    ///
    /// # Errors
    /// Fails if no model can be trained although the log has enough holds, or if another try may succeed.
    pub(super) fn of_trials(
        sweep: &SweepFolder,
        config: &Config,
        threads: usize,
        progress: &Progress,
    ) -> Result<Option<Study>> {
        match train(sweep, config, threads, progress) {
            Ok(finished) => Ok(finished.map(|finished| Study::Finished(Box::new(finished)))),
            Err(error) => {
                let few = FewHolds::of(sweep, error)?;
                few.write(&config.out)?;
                Ok(Some(Study::FewHolds { few_holds: few }))
            }
        }
    }

    /// Describes the trials and the choice among them.
    pub(super) fn text(&self, out: &Path) -> String {
        match self {
            Study::Finished(finished) => finished.text(out),
            Study::FewHolds { few_holds } => few_holds.words(),
        }
    }
}

/// Runs the trials of `sweep`, and chooses and scores the best model; returns `None` if that was stopped.
fn train(
    sweep: &SweepFolder,
    config: &Config,
    threads: usize,
    progress: &Progress,
) -> Result<Option<FinishedSweep>> {
    let out = &config.out;
    let keep = sweep::default_keep(sweep)?;
    if !run_to_end(sweep, threads, Duration::MAX, keep, progress)? {
        return Ok(None);
    }
    progress.begin(Stage::Scores, 0, 0);
    sweep::write_ensemble(sweep, out)?;
    let finished = FinishedSweep::open(sweep, config)?;
    sweep::write_best_model(out, out, &finished.best)?;
    files::remove_all([out.join(FEW_HOLDS_FILE)])?;
    Ok(Some(finished))
}

impl FewHolds {
    /// Describes why the trials of `sweep` failed with `error`.
    ///
    /// # Errors
    /// Returns `error` if the log has enough holds, or if another try may succeed.
    fn of(sweep: &SweepFolder, error: anyhow::Error) -> Result<FewHolds> {
        let Ok(store) = EventStore::open(&events_dir(&sweep.dir)) else {
            return Err(error);
        };
        let counts = hold_counts(&store);
        let known = counts.iter().map(|count| count.known).sum();
        let has_enough = known > FEW_OUTCOMES && !lacks_scores(sweep);
        if has_enough || exit_code(&error) != EXIT_NEVER {
            return Err(error);
        }
        Ok(FewHolds {
            holds: counts.iter().map(|count| count.holds).sum(),
            known,
            why: format!("{error:#}"),
        })
    }

    /// Writes the counts into `out`, in place of an earlier best model.
    fn write(&self, out: &Path) -> Result<()> {
        files::remove_all([out.join(sweep::BEST_FILE)])?;
        manifest::write_json(&out.join(FEW_HOLDS_FILE), self)?;
        output::note(&format!("note: no model was trained: {}", self.why));
        Ok(())
    }

    fn words(&self) -> String {
        format!(
            "no model was trained: outcomes are known of {} of {}\nRules answer, and what these outcomes show. Call `poolcast run` again when the log has grown.\n",
            output::with_commas(self.known as u64),
            output::counted(self.holds, "hold")
        )
    }
}

/// A sweep whose trials have ended, with its best model and the scores of that.
#[derive(Serialize)]
pub(super) struct FinishedSweep {
    /// The choice of the model.
    best: BestModel,
    /// The best trial of the models with each input, alone.
    inputs: Vec<InputValue>,
    /// Scores of the model on the test split.
    evaluation: ModelEvaluation,
    /// Estimates of the choice; empty without pipelines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    selection: Vec<SplitChoice>,
    #[serde(skip)]
    rows: Vec<TrialRow>,
    /// The samples of the best model.
    #[serde(skip)]
    dataset: Dataset,
    /// ROC-AUC of the best trial, if no trial is better than chance.
    #[serde(skip)]
    chance: Option<ScoreEstimate>,
}

impl FinishedSweep {
    /// Chooses the best model of `sweep`, and scores it.
    fn open(sweep: &SweepFolder, config: &Config) -> Result<FinishedSweep> {
        let out = &config.out;
        let rows = sweep::trial_rows(sweep)?;
        let best = sweep::choose_model(sweep, &rows).with_context(|| no_model_error(out))?;
        let selection = if config.pipelines.is_empty() {
            Vec::new()
        } else {
            choices::split_choices(sweep, &mut TrialOutcomes::read(sweep)?)
                .with_context(|| no_model_error(out))?
        };
        let winner = rows
            .iter()
            .find(|row| row.trial == best.trial)
            .context("the best trial has no row")?;

        let dataset = Dataset::open(&tensors_dir_of(out, winner)?)?;
        let dir = best.dir(out);
        let model = TrainedModel::open(&dir)?;
        let resamples = config.evaluation.resamples;
        Ok(FinishedSweep {
            evaluation: score(&model, &dir, &dataset, Split::Test, resamples, None)?,
            inputs: best.best_by_input(),
            chance: sweep::no_better_than_chance(sweep, &best)?,
            dataset,
            selection,
            rows,
            best,
        })
    }

    /// Describes the trials, the best model and its scores.
    fn text(&self, out: &Path) -> String {
        format!(
            "Samples of the best trial\n{}\n{}{}{}\n{}\n{}{}",
            text::tensors::summary(&self.dataset.summary),
            self.networks_text(),
            self.pipelines_text(),
            text::trials::inputs_text(&self.best),
            self.answering_text(out),
            text::evaluation::summary(&self.evaluation),
            text::trials::chance_text(self.chance),
        )
    }

    /// Heading of the scores that follow: it names the scored model or ensemble.
    fn answering_text(&self, out: &Path) -> String {
        if self.best.ensemble.is_none() {
            return "The best trial on holds that it has not seen".to_owned();
        }
        let together = text::trials::ensemble_text(&self.best, out);
        format!("The ensemble of the best trials on holds that it has not seen\n{together}")
            .trim_end()
            .to_owned()
    }

    /// A table of the network trials, one line each; empty if there are only pipelines.
    fn networks_text(&self) -> String {
        let head = [
            "trial",
            "j",
            "m",
            "timeframe",
            "model",
            "layers",
            "hidden",
            "learning rate",
            "batch",
            "epoch",
            "loss",
            "ROC-AUC",
            "F-measure",
            "judged",
            "",
        ];

        let mut table = vec![head.map(str::to_owned).to_vec()];
        for (result, row) in self.best.trials.iter().zip(&self.rows) {
            if row.config.pipelines.is_empty() {
                table.push(trial_row(&self.best, result, row));
            }
        }
        if table.len() == 1 {
            return String::new();
        }
        format!(
            "Trials, by {}\n{}",
            self.best.metric.name.judged_name(),
            output::aligned_table(&table)
        )
    }

    /// A table with the best trial of each pipeline and of the networks, and the choice among them;
    /// empty if there are only networks.
    fn pipelines_text(&self) -> String {
        let [choice, ..] = &self.selection[..] else {
            return String::new();
        };

        let mut table = Vec::new();
        for (name, leader) in &choice.pipelines {
            table.push(vec![
                name.clone(),
                format!("trial {}", leader.trial),
                format!("{:.4}", leader.value),
            ]);
        }
        format!(
            "\nPipelines and networks on the same samples, by {}\n{}{}",
            self.best.metric.name.judged_name(),
            output::aligned_table(&table),
            choices::choice_table(&self.selection)
        )
    }
}

/// Returns true if no trial of `sweep` has a score because the holds to learn from, or those to judge by,
/// ended alike.
fn lacks_scores(sweep: &SweepFolder) -> bool {
    let rows = sweep::trial_rows(sweep).unwrap_or_default();
    let is_unscored = rows.iter().all(|row| row.value.is_none());
    is_unscored
        && rows
            .first()
            .is_some_and(|row| has_split_of_one_class(sweep, row).unwrap_or(false))
}

/// Returns true if all samples to train on, or all to validate on, ended alike.
fn has_split_of_one_class(sweep: &SweepFolder, row: &TrialRow) -> Result<bool> {
    let samples = Dataset::open(&tensors_dir_of(&sweep.dir, row)?)?;
    let splits = &samples.summary.splits;
    let is_of_one_class = |split| {
        let listed: &SplitSummary = &splits[split];
        listed.successes == 0 || listed.successes == listed.samples
    };
    Ok([Split::Train, Split::Validate].iter().any(is_of_one_class))
}

/// The error for a sweep in which no trial has a model that can be evaluated.
fn no_model_error(out: &Path) -> HintedError {
    hinted(
        "cannot learn a model: usually, the log has too few releases with a known outcome",
        format!(
            "collect the log for longer with `poolcast collect`; `poolcast sweep status {}` shows why trials failed",
            out.display()
        ),
    )
}

/// The tensor directory of the trial in `row`, within the sweep in `out`.
fn tensors_dir_of(out: &Path, row: &TrialRow) -> Result<PathBuf> {
    let settings = row.config.tensor_settings()?;
    Ok(sweep::tensors_dir(out, &settings))
}

fn trial_row(best: &BestModel, result: &sweep::TrialResult, row: &TrialRow) -> Vec<String> {
    let Ok(TrialConfig {
        tensors: Some(tensors),
        model: TrialModel::Network(training),
        ..
    }) = row.trial_config()
    else {
        return vec![result.trial.to_string()];
    };
    let network = training.parameters;

    let score = |score: Option<f64>| score.map_or("-".to_owned(), |score| format!("{score:.3}"));
    let mut cells = vec![
        result.trial.to_string(),
        tensors.j.to_string(),
        tensors.m.to_string(),
        format!("{} s", tensors.timeframe_len_s),
        network.model,
        network.lstm_layers.to_string(),
        network.hidden_size.to_string(),
        format!("{:.5}", network.learning_rate),
        network.batch_size.to_string(),
    ];

    match result.best_epoch() {
        Some(epoch) => cells.extend([
            epoch.epoch.to_string(),
            format!("{:.4}", epoch.validation_loss),
            score(epoch.validation.roc_auc),
            score(epoch.validation.f_measure),
            score(row.value),
            if best.trial == result.trial {
                "best".to_owned()
            } else {
                String::new()
            },
        ]),
        None => cells.push(result.error.clone().unwrap_or_default()),
    }
    cells
}
