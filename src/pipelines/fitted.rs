//! Fits a pipeline to a table, and predicts class probabilities or numbers with it.

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

/// A fitted pipeline with everything learnt from its training rows: the fill values for missing
/// data, the selected features, their scaling, and the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FittedPipeline {
    /// Name of the pipeline.
    pub pipeline: String,
    /// Hyper-parameters that had an effect, defaults included.
    pub parameters: HyperParameters,
    /// Features of the training table, in order.
    pub features: Vec<String>,
    steps: PreprocessingSteps,
    target: FittedTarget,
}

/// Target that a pipeline predicts, with the model for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FittedTarget {
    /// Probabilities of classes.
    Classes {
        /// Classes of the training table.
        names: Vec<String>,
        /// Indices of the classes that had rows, ascending; the others have probability 0.
        present: Vec<usize>,
        model: FittedModel,
    },
    /// Numbers.
    Numbers {
        /// Loss that was minimised.
        loss: NumberLoss,
        model: NumberModel,
    },
}

/// Training rows of a pipeline.
#[derive(Debug, Clone, Copy)]
pub struct LearnedRows<'a> {
    /// Training table; all its rows are used.
    pub table: &'a FeatureTable,
    /// Weight of each row, `[n]`, like scikit-learn's `sample_weight`. `None` gives every row the
    /// weight 1.
    pub weights: Option<&'a [f64]>,
    /// Treatment of values outside the range of the training rows.
    pub beyond: ValuesBeyond,
}

impl<'a> LearnedRows<'a> {
    /// Uses the rows of `table` as scikit-learn does: every weight is 1, and values outside the
    /// training range are kept.
    pub fn from_table(table: &'a FeatureTable) -> LearnedRows<'a> {
        LearnedRows {
            table,
            weights: None,
            beyond: ValuesBeyond::Kept,
        }
    }
}

/// Fits `pipeline` on `rows`. Every step and the model learn from these rows alone.
///
/// The rows have classes or numbers, but `svc` has classes alone. Two or more classes are handled as scikit-learn and xgboost do by default: one logit or
/// softmax for `lasso`, `ridge`, `enet`, `xgb` and `nn`; one machine per pair of classes, with
/// coupled probabilities, for `svc`; trees that vote for `rf` and `et`. For numbers, the model
/// predicts the mean or, except for `lasso`, `ridge` and `enet`, a quantile, as their [`NumberLoss`] says. The same seed gives the same
/// model for any number of threads. The fit calls `stop` between iterations, trees and epochs.
///
/// # Errors
/// Fails with [`super::FitStopped`] once `stop` returns true. Fails like
/// [`effective_hyper_parameters`]. Fails if the table has no rows, fewer than two classes, no
/// columns, or an infinite number. Fails on numbers if the pipeline only supports classes, and if
/// the selection keeps no feature.
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
    if let RowTargets::Numbers(numbers) = &table.targets {
        check_for_numbers(
            pipeline,
            parameters.keys().map(String::as_str),
            numbers.loss,
        )?;
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

/// The weights of classes beside those of rows.
#[derive(Deserialize)]
struct ClassSettings {
    class_weight: Option<ClassWeight>,
}

/// A rule for the weights of classes.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ClassWeight {
    /// All classes have the same total weight, as for scikit-learn's `balanced`.
    Balanced,
}

/// Inputs of a fit besides the targets.
struct PipelineFitting<'a> {
    kind: PipelineKind,
    /// Hyper-parameters that have an effect.
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
        let unweighted = ClassLabels {
            y: &indices_among_present(&present, &classes.y),
            class_count: present.len(),
            weights,
        };
        let ClassSettings { class_weight } = read_settings(self.parameters)?;
        let balanced = class_weight.map(|ClassWeight::Balanced| unweighted.balanced_weights());
        let labels = ClassLabels {
            weights: balanced.as_deref().unwrap_or(weights),
            ..unweighted
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

    /// Fits the preprocessing steps; returns them and the columns as the model sees them.
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

/// Returns the treatment of missing values. Boosted trees and extremely randomised trees learn
/// which branch rows with a missing value take. SVD components have a value for every row.
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
            bail!("feature `{feature}` has an infinite value");
        }
    }
    Ok(())
}

/// Returns the indices of the classes that have rows, ascending.
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
                "every row has class `{}`; a model needs at least two classes",
                names[only]
            ),
            "choose training rows of at least two classes"
        ));
    }
    Ok(present)
}

/// Returns the index of each row's class among the `present` classes, `[n]`.
fn indices_among_present(present: &[usize], y: &[u32]) -> Vec<u32> {
    y.iter()
        .map(|class| present.partition_point(|known| *known < *class as usize) as u32)
        .collect()
}

impl FittedPipeline {
    /// Classes of the training table; empty if the pipeline predicts numbers.
    pub fn classes(&self) -> &[String] {
        match &self.target {
            FittedTarget::Classes { names, .. } => names,
            FittedTarget::Numbers { .. } => &[],
        }
    }

    /// Predicts, row by row, the probability of each class, `[n, classes]`, or the number,
    /// `[n, 1]`.
    ///
    /// # Errors
    /// Fails if the table has other features than the training table, or an infinite number.
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
                let present_probabilities = model.classifier().probabilities(&x);
                all_probabilities(&present_probabilities, present, names.len())
            }
            FittedTarget::Numbers { model, .. } => model.regressor().numbers(&x),
        })
    }

    /// Returns the importance of each feature, `[features]`, or `None` if the model cannot provide
    /// it.
    pub fn importances(&self) -> Option<ColumnImportances> {
        let seen = match &self.target {
            FittedTarget::Classes { model, .. } => {
                model.classifier().importances(self.steps.column_count())?
            }
            FittedTarget::Numbers { model, .. } => model.regressor().importances()?,
        };
        Some(self.steps.importances_of_table(&seen, self.features.len()))
    }

    /// Returns the indices of the features that the model depends on. The others were not selected.
    pub fn used_features(&self) -> Vec<usize> {
        self.steps.used_columns()
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
                        "feature {} is `{found}`, expected `{wanted}` as in the training table",
                        place + 1
                    ),
                    "pass the columns in the order of the training table",
                ));
            }
        }
        Ok(())
    }

    /// Rejects a pipeline that fitting never produces.
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
                    "its classes are not two or more of its class names"
                );
                model.classifier().check(f, present.len())
            }
            FittedTarget::Numbers { model, .. } => model.regressor().check(f),
        }
    }
}

/// Expands the probabilities of the `present` classes to all classes, `[n, classes]`.
fn all_probabilities(present_probabilities: &[f64], present: &[usize], classes: usize) -> Vec<f64> {
    let rows = present_probabilities.len() / present.len();
    let mut probabilities = vec![0.0; rows * classes];
    for (row, present_row) in probabilities
        .chunks_exact_mut(classes)
        .zip(present_probabilities.chunks_exact(present.len()))
    {
        for (class, p) in present.iter().zip(present_row) {
            row[*class] = *p;
        }
    }
    probabilities
}
