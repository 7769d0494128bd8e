//! Classical pipelines that predict numbers from the features at a decision time, one pipeline per
//! quantile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use poolcast_base::manifest::Checksum;
use poolcast_config::WaitModelName;
use poolcast_pipelines::{
    FittedPipeline, HyperParameters, LearnedRows, PIPELINE_FILE, ValuesBeyond, fit_pipeline,
};
use poolcast_tables::{FeatureTable, NumberLoss, RowNumbers, RowTargets};

/// Name of the column with the predecessor's remaining time.
const LEFT_COLUMN: &str = "left_h";

/// Fitted pipelines, one per output.
#[derive(Debug)]
pub(super) struct FeaturePipelines {
    pipelines: Vec<FittedPipeline>,
    /// True if the predecessor's remaining time follows the features as an input.
    has_left_column: bool,
}

/// Training data of the pipelines.
pub(super) struct FeatureRows<'a> {
    pub(super) names: &'a [String],
    pub(super) rows: Vec<FeatureRow<'a>>,
    /// Target of each row, in hours.
    pub(super) targets_h: Vec<f64>,
}

/// Inputs of the pipelines at one decision time.
#[derive(Debug, Clone, Copy)]
pub(super) struct FeatureRow<'a> {
    /// Features `[f]`.
    pub(super) features: &'a [f32],
    /// Remaining time of the predecessor, in hours.
    pub(super) left_h: f64,
}

/// The pipelines to fit: one for each of the losses.
pub(super) struct FeaturePipelineTask<'a> {
    pub(super) name: WaitModelName,
    /// Hyper-parameters that override the defaults.
    pub(super) parameters: &'a BTreeMap<String, Value>,
    pub(super) losses: &'a [NumberLoss],
    /// True if the predecessor's remaining time is an input.
    pub(super) has_left_column: bool,
    pub(super) seed: u64,
    /// Returns true if the fit has to end.
    pub(super) stop: &'a (dyn Fn() -> bool + Sync),
}

impl FeaturePipelines {
    /// Fits the pipelines of `task`.
    ///
    /// # Errors
    /// Fails for hyper-parameters that the pipeline does not have, and like [`fit_pipeline`].
    pub(super) fn fit(
        task: &FeaturePipelineTask<'_>,
        learned: &FeatureRows<'_>,
    ) -> Result<FeaturePipelines> {
        let mut parameters = default_parameters(task.name);
        parameters.extend(task.parameters.clone());
        let mut pipelines = Vec::with_capacity(task.losses.len());
        for loss in task.losses {
            let table = feature_table(
                learned.names,
                &learned.rows,
                task.has_left_column,
                RowNumbers {
                    y: learned.targets_h.clone(),
                    loss: *loss,
                },
            );
            let rows = LearnedRows {
                beyond: ValuesBeyond::Clipped,
                ..LearnedRows::from_table(&table)
            };
            pipelines.push(fit_pipeline(
                &task.name.to_string(),
                &parameters,
                rows,
                task.seed,
                task.stop,
            )?);
        }
        Ok(FeaturePipelines {
            pipelines,
            has_left_column: task.has_left_column,
        })
    }

    /// Returns the number of outputs.
    pub(super) fn len(&self) -> usize {
        self.pipelines.len()
    }

    /// Predicts all outputs for one decision time, in hours.
    ///
    /// # Errors
    /// Fails if the number of features is wrong, or if a feature is infinite.
    pub(super) fn outputs_h(&self, features: &[f32], left_h: f64) -> Result<Vec<f64>> {
        let mut predicted_h = Vec::with_capacity(self.pipelines.len());
        for pipeline in &self.pipelines {
            let known = pipeline.features.len() - usize::from(self.has_left_column);
            ensure!(
                features.len() == known,
                "expected {known} features, got {}",
                features.len()
            );
            // A table needs targets, but a prediction ignores them.
            let targets = RowNumbers {
                y: vec![0.0],
                loss: NumberLoss::Squared,
            };
            let names = &pipeline.features[..known];
            let row = [FeatureRow { features, left_h }];
            let table = feature_table(names, &row, self.has_left_column, targets);
            predicted_h.extend(pipeline.predict(&table)?);
        }
        Ok(predicted_h)
    }

    /// Writes the pipelines into `dir` and returns the digests of their files.
    pub(super) fn write(&self, dir: &Path) -> Result<Vec<String>> {
        let mut digests = Vec::with_capacity(self.pipelines.len());
        for (number, pipeline) in self.pipelines.iter().enumerate() {
            let place = pipeline_dir(dir, number);
            fs_err::create_dir_all(&place)?;
            pipeline.write(&place)?;
            digests.push(digest(&place)?);
        }
        Ok(digests)
    }

    /// Reads the pipelines in `dir` and checks them against `digests`.
    ///
    /// # Errors
    /// Fails if a file is missing or has another digest.
    pub(super) fn read(
        dir: &Path,
        digests: &[String],
        has_left_column: bool,
    ) -> Result<FeaturePipelines> {
        ensure!(!digests.is_empty(), "its manifest lists no pipeline");
        let mut pipelines = Vec::with_capacity(digests.len());
        for (number, expected) in digests.iter().enumerate() {
            let place = pipeline_dir(dir, number);
            ensure!(
                digest(&place)? == *expected,
                "`{}` differs from its manifest",
                place.join(PIPELINE_FILE).display()
            );
            let pipeline = FittedPipeline::open(&place)?;
            ensure!(
                pipeline.classes().is_empty()
                    && pipeline.features.len() > usize::from(has_left_column),
                "`{}` does not predict numbers from features",
                place.display()
            );
            pipelines.push(pipeline);
        }
        Ok(FeaturePipelines {
            pipelines,
            has_left_column,
        })
    }
}

/// Returns the directory of pipeline `number` in the model directory `dir`.
pub(super) fn pipeline_dir(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("pipeline-{number}"))
}

fn digest(place: &Path) -> Result<String> {
    let bytes = fs_err::read(place.join(PIPELINE_FILE))?;
    Ok(Checksum::of([&bytes[..]].into_iter()))
}

/// Returns the default hyper-parameters, which the configuration overrides. Samples have a few
/// thousand rows, and the rows of one window are similar. So the defaults keep the influence of
/// each leaf and each step small.
fn default_parameters(name: WaitModelName) -> HyperParameters {
    let usual: &[(&str, Value)] = match name {
        WaitModelName::Xgb => &[
            ("n_estimators", json!(200)),
            ("learning_rate", json!(0.05)),
            ("max_depth", json!(4)),
            ("subsample", json!(0.5)),
        ],
        WaitModelName::Rf => &[
            ("n_estimators", json!(200)),
            ("min_samples_leaf", json!(5)),
            ("max_features", json!(0.5)),
        ],
        _ => &[],
    };
    let usual = usual
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    usual.collect()
}

/// Builds a table of decision times, column by column.
fn feature_table(
    names: &[String],
    rows: &[FeatureRow<'_>],
    has_left_column: bool,
    targets: RowNumbers,
) -> FeatureTable {
    let mut features = names.to_vec();
    let mut x = Vec::with_capacity((names.len() + 1) * rows.len());
    for place in 0..names.len() {
        x.extend(rows.iter().map(|row| f64::from(row.features[place])));
    }
    if has_left_column {
        features.push(LEFT_COLUMN.to_owned());
        x.extend(rows.iter().map(|row| row.left_h));
    }
    FeatureTable {
        features,
        x,
        groups: (0..rows.len() as u64).collect(),
        targets: RowTargets::Numbers(targets),
    }
}
