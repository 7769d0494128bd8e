//! A table → a fitted pipeline → probabilities of classes.

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::classifier::{FitRun, TrainingSet};
use super::fitted_model::FittedModel;
use super::hyper_parameters::{
    HyperParameters, effective_hyper_parameters, find_pipeline, read_settings,
};
use super::importances::ColumnImportances;
use super::pipeline_kind::PipelineKind;
use super::selection::FeatureSelection;
use super::solvers::labels::ClassLabels;
use super::solvers::stop::StopSignal;
use super::steps::{MissingValues, PreprocessingSteps, StepSettings, ValuesBeyond};
use crate::error::hinted;
use crate::output::counted;
use crate::tables::FeatureTable;

/// A pipeline with everything it learnt from its training rows: what to put where a value is
/// missing, which features to look at and how to scale them, and the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FittedPipeline {
    /// Its name.
    pub pipeline: String,
    /// The hyper-parameters that had an effect, defaults included.
    pub parameters: HyperParameters,
    /// The features of the table it was fitted on, in order.
    pub features: Vec<String>,
    /// The classes of that table.
    pub classes: Vec<String>,
    /// The places of the classes that had rows, ascending; the others have probability 0.
    present: Vec<usize>,
    steps: PreprocessingSteps,
    model: FittedModel,
}

/// The rows that a pipeline learns from.
#[derive(Debug, Clone, Copy)]
pub struct LearnedRows<'a> {
    /// All rows of it.
    pub table: &'a FeatureTable,
    /// How often each counts, `[n]`, as with scikit-learn's `sample_weight`; all count once where
    /// there are none.
    pub weights: Option<&'a [f64]>,
    /// What values beyond theirs will count as.
    pub beyond: ValuesBeyond,
}

impl<'a> LearnedRows<'a> {
    /// The rows of `table` as scikit-learn takes them.
    pub fn of_table(table: &'a FeatureTable) -> LearnedRows<'a> {
        LearnedRows {
            table,
            weights: None,
            beyond: ValuesBeyond::Kept,
        }
    }
}

/// Fits `pipeline` on `rows`: every step and the model learn from these rows alone.
///
/// Two classes and more are handled as scikit-learn and xgboost do by default: one logit or softmax
/// for `lasso`, `ridge`, `enet`, `xgb` and `nn`; one machine for each pair of classes, their
/// probabilities coupled, for `svc`; trees that vote for `rf`. The same seed gives the same model,
/// whatever the number of threads. `stop` is asked between iterations, trees and epochs.
///
/// # Errors
/// Fails with [`super::FitStopped`] once `stop` says so; as [`effective_hyper_parameters`] does; on
/// a table with fewer than two classes, without columns, or with an infinite number; and when the
/// selection leaves no feature.
pub fn fit_pipeline(
    pipeline: &str,
    parameters: &HyperParameters,
    rows: LearnedRows<'_>,
    seed: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<FittedPipeline> {
    let kind = find_pipeline(pipeline)?;
    let table = rows.table;
    let parameters = effective_hyper_parameters(pipeline, parameters)?;
    check_table(table)?;
    let present = present_classes(table)?;
    let y = places_among(&present, &table.y);

    let once = vec![1.0; y.len()];
    let weights = rows.weights.unwrap_or(&once);
    ensure!(
        weights.len() == y.len(),
        "{} for {}",
        counted(weights.len(), "weight"),
        counted(y.len(), "row")
    );
    let labels = ClassLabels {
        y: &y,
        class_count: present.len(),
        weights,
    };
    let run = FitRun {
        seed,
        stop: StopSignal::new(stop),
    };
    let settings: StepSettings = read_settings(&parameters)?;
    let missing = missing_values(kind, settings.selection);
    let steps = PreprocessingSteps::fit(settings, missing, table, rows.beyond, labels, run)?;

    let x = steps.apply(table);
    let model = FittedModel::fit(kind, &parameters, TrainingSet { x: &x, labels }, run)?;
    Ok(FittedPipeline {
        pipeline: pipeline.to_owned(),
        features: table.features.clone(),
        classes: table.classes.clone(),
        present,
        steps,
        model,
        parameters,
    })
}

/// Boosted trees and extremely randomised ones learn by themselves which way rows with a missing
/// value go. Components have a value for every row.
fn missing_values(kind: PipelineKind, selection: FeatureSelection) -> MissingValues {
    let is_svd = matches!(selection, FeatureSelection::Svd { .. });
    let learns_missing = matches!(kind, PipelineKind::BoostedTrees | PipelineKind::ExtraTrees);
    if learns_missing && !is_svd {
        MissingValues::Kept
    } else {
        MissingValues::Filled
    }
}

fn check_table(table: &FeatureTable) -> Result<()> {
    ensure!(table.column_count() > 0, "the table has no features");
    for (place, feature) in table.features.iter().enumerate() {
        if table.column(place).iter().any(|value| value.is_infinite()) {
            bail!("feature `{feature}` has an infinite number");
        }
    }
    Ok(())
}

/// The places of the classes that have rows, ascending.
fn present_classes(table: &FeatureTable) -> Result<Vec<usize>> {
    let mut seen = vec![false; table.classes.len()];
    for class in &table.y {
        *seen
            .get_mut(*class as usize)
            .with_context(|| format!("a row is of class {class}, which has no name"))? = true;
    }

    let present: Vec<usize> = (0..seen.len()).filter(|class| seen[*class]).collect();
    if present.len() > 1 {
        return Ok(present);
    }
    let message = match present.first() {
        Some(only) => format!(
            "every row is of class `{}`, and a model needs two",
            table.classes[*only]
        ),
        None => "the table has no rows".to_owned(),
    };
    bail!(hinted(
        message,
        "choose training rows of two classes at least"
    ))
}

/// The place of each row's class among the `present` classes, `[n]`.
fn places_among(present: &[usize], y: &[u32]) -> Vec<u32> {
    y.iter()
        .map(|class| present.partition_point(|known| *known < *class as usize) as u32)
        .collect()
}

impl FittedPipeline {
    /// The probability of each class, row by row: `[n, classes]`.
    ///
    /// # Errors
    /// Fails when the table has other features than the pipeline was fitted on, or an infinite
    /// number.
    pub fn probabilities(&self, table: &FeatureTable) -> Result<Vec<f64>> {
        self.check_features(table)?;
        check_table(table)?;
        let of_present = self
            .model
            .classifier()
            .probabilities(&self.steps.apply(table));

        let classes = self.classes.len();
        let mut probabilities = vec![0.0; table.row_count() * classes];
        for (row, row_of_present) in probabilities
            .chunks_exact_mut(classes)
            .zip(of_present.chunks_exact(self.present.len()))
        {
            for (class, p) in self.present.iter().zip(row_of_present) {
                row[*class] = *p;
            }
        }
        Ok(probabilities)
    }

    /// What the model makes of each feature, `[features]`; none where that cannot be read off it.
    pub fn importances(&self) -> Option<ColumnImportances> {
        let seen = self
            .model
            .classifier()
            .importances(self.steps.column_count())?;
        Some(self.steps.importances_of_table(&seen, self.features.len()))
    }

    /// The places of the features that the model depends on; the others were not selected.
    pub fn used_features(&self) -> Vec<usize> {
        self.steps.used_places()
    }

    fn check_features(&self, table: &FeatureTable) -> Result<()> {
        for place in 0..self.features.len().max(table.column_count()) {
            let found = table.features.get(place);
            let wanted = self.features.get(place);
            if found != wanted {
                let found = found.map_or("none", String::as_str);
                let wanted = wanted.map_or("none", String::as_str);
                bail!(hinted(
                    format!(
                        "feature {} is `{found}`, and the pipeline was fitted with `{wanted}` there",
                        place + 1
                    ),
                    "give it the table's columns in the order of the training rows",
                ));
            }
        }
        Ok(())
    }

    /// Refuses a pipeline that no fit leaves.
    pub(super) fn check(&self) -> Result<()> {
        let is_ascending = self.present.windows(2).all(|pair| pair[0] < pair[1]);
        let is_known = self
            .present
            .last()
            .is_some_and(|last| *last < self.classes.len());
        ensure!(
            self.present.len() > 1 && is_ascending && is_known,
            "the classes it knows are not two or more of its own"
        );
        self.steps.check(self.features.len())?;
        self.model
            .classifier()
            .check(self.steps.column_count(), self.present.len())
    }
}
