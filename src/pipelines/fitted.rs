//! A table → a fitted pipeline → probabilities of classes, or numbers.

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::classifier::{FitRun, TrainingSet};
use super::fitted_model::FittedModel;
use super::hyper_parameters::{
    HyperParameters, check_for_numbers, effective_hyper_parameters, find_pipeline, read_settings,
};
use super::importances::ColumnImportances;
use super::number_model::NumberModel;
use super::pipeline_kind::PipelineKind;
use super::regressor::NumberTrainingSet;
use super::selection::FeatureSelection;
use super::solvers::labels::{ClassLabels, NumberLabels, TrainingTargets};
use super::solvers::matrix::ColumnMatrix;
use super::solvers::stop::StopSignal;
use super::steps::{MissingValues, PreprocessingSteps, StepSettings, ValuesBeyond};
use poolcast_base::error::hinted;
use poolcast_base::output::counted;
use poolcast_tables::{FeatureTable, NumberLoss, RowClasses, RowTargets};

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
    steps: PreprocessingSteps,
    target: FittedTarget,
}

/// What a pipeline predicts, and the model that does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FittedTarget {
    /// The probabilities of classes.
    Classes {
        /// The classes of the table it was fitted on.
        names: Vec<String>,
        /// The places of those that had rows, ascending; the others have probability 0.
        present: Vec<usize>,
        model: FittedModel,
    },
    /// Numbers.
    Numbers {
        /// What was minimised.
        loss: NumberLoss,
        model: NumberModel,
    },
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
/// The rows have classes or numbers. `xgb`, `rf`, `et` and `nn` know both, and the others classes
/// alone. Two classes and more are handled as scikit-learn and xgboost do by default: one logit or softmax
/// for `lasso`, `ridge`, `enet`, `xgb` and `nn`; one machine for each pair of classes, their
/// probabilities coupled, for `svc`; trees that vote for `rf`. Of numbers the mean is predicted or a
/// quantile, by their [`NumberLoss`]. The same seed gives the same model, whatever the number of
/// threads. `stop` is asked between iterations, trees and epochs.
///
/// # Errors
/// Fails with [`super::FitStopped`] once `stop` says so; as [`effective_hyper_parameters`] does; on
/// a table without rows, with fewer than two classes, without columns, or with an infinite number;
/// for numbers with a pipeline that knows classes alone; and when the selection leaves no feature.
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
    ensure!(
        table.row_count() > 0,
        hinted("the table has no rows", "choose other training rows")
    );

    let once = vec![1.0; table.row_count()];
    let weights = rows.weights.unwrap_or(&once);
    ensure!(
        weights.len() == table.row_count(),
        "{} for {}",
        counted(weights.len(), "weight"),
        counted(table.row_count(), "row")
    );
    let fit = PipelineFitting {
        kind,
        parameters: &parameters,
        rows,
        run: FitRun {
            seed,
            stop: StopSignal::new(stop),
        },
    };
    if let RowTargets::Numbers(_) = &table.targets {
        check_for_numbers(pipeline)?;
    }
    let (steps, target) = match &table.targets {
        RowTargets::Classes(classes) => fit.fit_classes(classes, weights)?,
        RowTargets::Numbers(numbers) => fit.fit_numbers(NumberLabels {
            y: &numbers.y,
            weights,
            loss: numbers.loss,
        })?,
    };
    Ok(FittedPipeline {
        pipeline: pipeline.to_owned(),
        features: table.features.clone(),
        steps,
        target,
        parameters,
    })
}

/// What a fit needs besides targets.
struct PipelineFitting<'a> {
    kind: PipelineKind,
    /// All that have an effect.
    parameters: &'a HyperParameters,
    rows: LearnedRows<'a>,
    run: FitRun<'a>,
}

impl PipelineFitting<'_> {
    fn fit_classes(
        &self,
        classes: &RowClasses,
        weights: &[f64],
    ) -> Result<(PreprocessingSteps, FittedTarget)> {
        let present = present_classes(classes)?;
        let labels = ClassLabels {
            y: &places_among(&present, &classes.y),
            class_count: present.len(),
            weights,
        };
        let (steps, x) = self.fit_steps(TrainingTargets::Classes(labels))?;
        let training = TrainingSet { x: &x, labels };
        let target = FittedTarget::Classes {
            names: classes.names.clone(),
            present,
            model: FittedModel::fit(self.kind, self.parameters, training, self.run)?,
        };
        Ok((steps, target))
    }

    fn fit_numbers(&self, labels: NumberLabels<'_>) -> Result<(PreprocessingSteps, FittedTarget)> {
        ensure!(
            labels.y.iter().all(|number| number.is_finite()),
            "a number to predict is not finite"
        );
        let (steps, x) = self.fit_steps(TrainingTargets::Numbers(labels))?;
        let training = NumberTrainingSet { x: &x, labels };
        let target = FittedTarget::Numbers {
            loss: labels.loss,
            model: NumberModel::fit(self.kind, self.parameters, training, self.run)?,
        };
        Ok((steps, target))
    }

    /// The steps, and the columns as the model sees them.
    fn fit_steps(
        &self,
        targets: TrainingTargets<'_>,
    ) -> Result<(PreprocessingSteps, ColumnMatrix)> {
        let LearnedRows { table, beyond, .. } = self.rows;
        let settings: StepSettings = read_settings(self.parameters)?;
        let missing = missing_values(self.kind, settings.selection);
        let steps = PreprocessingSteps::fit(settings, missing, table, beyond, targets, self.run)?;
        let x = steps.apply(table);
        Ok((steps, x))
    }
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
fn present_classes(classes: &RowClasses) -> Result<Vec<usize>> {
    let RowClasses { names, y } = classes;
    let mut seen = vec![false; names.len()];
    for class in y {
        *seen
            .get_mut(*class as usize)
            .with_context(|| format!("a row is of class {class}, which has no name"))? = true;
    }

    let present: Vec<usize> = (0..seen.len()).filter(|class| seen[*class]).collect();
    if let [only] = present[..] {
        bail!(hinted(
            format!(
                "every row is of class `{}`, and a model needs two",
                names[only]
            ),
            "choose training rows of two classes at least"
        ));
    }
    Ok(present)
}

/// The place of each row's class among the `present` classes, `[n]`.
fn places_among(present: &[usize], y: &[u32]) -> Vec<u32> {
    y.iter()
        .map(|class| present.partition_point(|known| *known < *class as usize) as u32)
        .collect()
}

impl FittedPipeline {
    /// The classes of the table it was fitted on; none where it predicts numbers.
    pub fn classes(&self) -> &[String] {
        match &self.target {
            FittedTarget::Classes { names, .. } => names,
            FittedTarget::Numbers { .. } => &[],
        }
    }

    /// Row by row, the probability of each class, `[n, classes]`, or the number, `[n, 1]`.
    ///
    /// # Errors
    /// Fails when the table has other features than the pipeline was fitted on, or an infinite
    /// number.
    pub fn predict(&self, table: &FeatureTable) -> Result<Vec<f64>> {
        self.check_features(table)?;
        check_table(table)?;
        let x = self.steps.apply(table);
        Ok(match &self.target {
            FittedTarget::Classes {
                names,
                present,
                model,
            } => {
                let of_present = model.classifier().probabilities(&x);
                all_probabilities(&of_present, present, names.len())
            }
            FittedTarget::Numbers { model, .. } => model.regressor().numbers(&x),
        })
    }

    /// What the model makes of each feature, `[features]`; none where that cannot be read off it.
    pub fn importances(&self) -> Option<ColumnImportances> {
        let seen = match &self.target {
            FittedTarget::Classes { model, .. } => {
                model.classifier().importances(self.steps.column_count())?
            }
            FittedTarget::Numbers { model, .. } => model.regressor().importances()?,
        };
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
        self.steps.check(self.features.len())?;
        let f = self.steps.column_count();
        match &self.target {
            FittedTarget::Classes {
                names,
                present,
                model,
            } => {
                let is_ascending = present.windows(2).all(|pair| pair[0] < pair[1]);
                let is_known = present.last().is_some_and(|last| *last < names.len());
                ensure!(
                    present.len() > 1 && is_ascending && is_known,
                    "the classes it knows are not two or more of its own"
                );
                model.classifier().check(f, present.len())
            }
            FittedTarget::Numbers { model, .. } => model.regressor().check(f),
        }
    }
}

/// Of the probabilities of the `present` classes those of all, `[n, classes]`.
fn all_probabilities(of_present: &[f64], present: &[usize], classes: usize) -> Vec<f64> {
    let rows = of_present.len() / present.len();
    let mut probabilities = vec![0.0; rows * classes];
    for (row, row_of_present) in probabilities
        .chunks_exact_mut(classes)
        .zip(of_present.chunks_exact(present.len()))
    {
        for (class, p) in present.iter().zip(row_of_present) {
            row[*class] = *p;
        }
    }
    probabilities
}
