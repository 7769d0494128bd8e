//! Classical pipelines that say a number from the features of a moment, one for each quantile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use poolcast_config::WaitModelName;
use poolcast_base::manifest::Checksum;
use poolcast_pipelines::{
    FittedPipeline, HyperParameters, LearnedRows, PIPELINE_FILE, ValuesBeyond, fit_pipeline,
};
use poolcast_tables::{FeatureTable, NumberLoss, RowNumbers, RowTargets};

/// What the column of the time that the predecessor has left is called.
const LEFT_COLUMN: &str = "left_h";

/// Fitted pipelines, one for each output.
#[derive(Debug)]
pub(super) struct FeaturePipelines {
    pipelines: Vec<FittedPipeline>,
    /// Whether they are told how long the predecessor has left, after the features.
    takes_left: bool,
}

/// What pipelines learn from.
pub(super) struct FeatureRows<'a> {
    pub(super) names: &'a [String],
    /// The features of each row, and how long the predecessor has left, hours.
    pub(super) rows: Vec<(&'a [f32], f64)>,
    /// What is to be said of each, hours.
    pub(super) targets_h: Vec<f64>,
}

impl FeaturePipelines {
    /// Fits the pipeline `name`, once for each of `losses`. It is told how long the predecessor has
    /// left if `takes_left` says so.
    ///
    /// # Errors
    /// Fails for hyper-parameters that the pipeline has not, and as [`fit_pipeline`] does.
    pub(super) fn fit(
        name: WaitModelName,
        given: &BTreeMap<String, Value>,
        learned: &FeatureRows<'_>,
        (losses, takes_left): (&[NumberLoss], bool),
        (seed, stop): (u64, &(dyn Fn() -> bool + Sync)),
    ) -> Result<FeaturePipelines> {
        let mut parameters = usual_parameters(name);
        parameters.extend(given.clone());
        let mut pipelines = Vec::with_capacity(losses.len());
        for loss in losses {
            let table = feature_table(
                learned.names,
                &learned.rows,
                takes_left,
                RowNumbers {
                    y: learned.targets_h.clone(),
                    loss: *loss,
                },
            );
            let rows = LearnedRows {
                beyond: ValuesBeyond::Clipped,
                ..LearnedRows::of_table(&table)
            };
            pipelines.push(fit_pipeline(
                &name.to_string(),
                &parameters,
                rows,
                seed,
                stop,
            )?);
        }
        Ok(FeaturePipelines {
            pipelines,
            takes_left,
        })
    }

    /// How many numbers they say.
    pub(super) fn len(&self) -> usize {
        self.pipelines.len()
    }

    /// What they say of a moment, hours.
    ///
    /// # Errors
    /// Fails where there are more or fewer features, or an infinite one.
    pub(super) fn outputs_h(&self, features: &[f32], left_h: f64) -> Result<Vec<f64>> {
        let mut said_h = Vec::with_capacity(self.pipelines.len());
        for pipeline in &self.pipelines {
            let known = pipeline.features.len() - usize::from(self.takes_left);
            ensure!(
                features.len() == known,
                "a moment has {} features, and the model reads {known}",
                features.len()
            );
            let targets = RowNumbers {
                y: vec![0.0],
                loss: NumberLoss::Squared,
            };
            let names = &pipeline.features[..known];
            let row = [(features, left_h)];
            let table = feature_table(names, &row, self.takes_left, targets);
            said_h.extend(pipeline.predict(&table)?);
        }
        Ok(said_h)
    }

    /// Writes them into `dir`; returns the digests of their files.
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

    /// Reads those in `dir`, whose files have these digests.
    ///
    /// # Errors
    /// Fails where one is missing, or another file.
    pub(super) fn read(
        dir: &Path,
        digests: &[String],
        takes_left: bool,
    ) -> Result<FeaturePipelines> {
        ensure!(!digests.is_empty(), "its manifest lists no pipeline");
        let mut pipelines = Vec::with_capacity(digests.len());
        for (number, expected) in digests.iter().enumerate() {
            let place = pipeline_dir(dir, number);
            ensure!(
                digest(&place)? == *expected,
                "`{}` is not the file that its manifest speaks of",
                place.join(PIPELINE_FILE).display()
            );
            let pipeline = FittedPipeline::open(&place)?;
            ensure!(
                pipeline.classes().is_empty() && pipeline.features.len() > usize::from(takes_left),
                "`{}` says no numbers of features",
                place.display()
            );
            pipelines.push(pipeline);
        }
        Ok(FeaturePipelines {
            pipelines,
            takes_left,
        })
    }
}

/// Where the pipeline of an output is in a model.
pub(super) fn pipeline_dir(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("pipeline-{number}"))
}

fn digest(place: &Path) -> Result<String> {
    let bytes = fs_err::read(place.join(PIPELINE_FILE))?;
    Ok(Checksum::of([&bytes[..]].into_iter()))
}

/// What counts for waits where the configuration does not say otherwise: some thousand rows, of which
/// those of a window are much alike, so that each leaf and each step says little.
fn usual_parameters(name: WaitModelName) -> HyperParameters {
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

/// A table of moments, column by column.
fn feature_table(
    names: &[String],
    rows: &[(&[f32], f64)],
    takes_left: bool,
    targets: RowNumbers,
) -> FeatureTable {
    let mut features = names.to_vec();
    let mut x = Vec::with_capacity((names.len() + 1) * rows.len());
    for place in 0..names.len() {
        x.extend(rows.iter().map(|(features, _)| f64::from(features[place])));
    }
    if takes_left {
        features.push(LEFT_COLUMN.to_owned());
        x.extend(rows.iter().map(|(_, left_h)| *left_h));
    }
    FeatureTable {
        features,
        x,
        groups: (0..rows.len() as u64).collect(),
        targets: RowTargets::Numbers(targets),
    }
}
