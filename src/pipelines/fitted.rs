//! A table → a fitted pipeline, and the file it is kept in.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::boosting::Boosted;
use super::forest::Forest;
use super::importances::ColumnImportances;
use super::logistic::Logistic;
use super::matrix::Matrix;
use super::model::{AnyModel, Fitting};
use super::network::Network;
use super::newton::Penalty;
use super::parameters::{HyperParameters, Settings, effective_hyper_parameters};
use super::steps::Steps;
use super::svc::Svc;
use crate::error::hinted;
use crate::shard::ArtefactFormat;
use crate::tables::FeatureTable;

/// The file of a fitted pipeline.
pub const PIPELINE_FILE: &str = "pipeline.json";

const PIPELINE: ArtefactFormat = ArtefactFormat {
    name: "pipeline",
    version: 2,
    rebuild: "poolcast sweep run",
};

/// A pipeline with everything it learnt from its training rows: what to put where a value is missing, which features to
/// look at and how to scale them, and the model.
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
    steps: Steps,
    model: AnyModel,
}

/// Fits `pipeline` on all rows of `table`: every step and the model learn from these rows alone.
///
/// Two classes and more are handled as scikit-learn and xgboost do by default: one logit or softmax for `lasso`, `ridge`,
/// `enet`, `xgb` and `nn`; one machine for each pair of classes, their probabilities coupled, for `svc`; trees that vote for `rf`.
/// The same seed gives the same model, whatever the number of threads. `stop` is asked between iterations, trees and epochs.
///
/// # Errors
/// Fails with [`super::FitStopped`] once `stop` says so; as [`effective_hyper_parameters`] does; on a table with fewer than two classes, without
/// columns, or with an infinite number; and when the selection leaves no feature.
pub fn fit_pipeline(
    pipeline: &str,
    parameters: &HyperParameters,
    table: &FeatureTable,
    seed: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<FittedPipeline> {
    let parameters = effective_hyper_parameters(pipeline, parameters)?;
    check_table(table)?;
    let (present, y) = present(table)?;
    let fitting = Fitting {
        settings: Settings(&parameters),
        y: &y,
        k: present.len(),
        seed,
        stop,
    };
    let is_filled = pipeline != "xgb" || parameters["selection"] == "svd";
    let steps = Steps::fit(table, fitting, is_filled)?;
    let model = fit_model(pipeline, &steps.apply(table), fitting)?;
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

fn fit_model(pipeline: &str, x: &Matrix, fitting: Fitting<'_>) -> Result<AnyModel> {
    let Fitting {
        settings,
        y,
        k,
        stop,
        ..
    } = fitting;
    let logistic = |l1_ratio: f64| {
        let penalty = Penalty {
            c: settings.real("C")?,
            l1_ratio,
        };
        Logistic::fit(x, y, k, penalty, stop).map(AnyModel::Logistic)
    };
    match pipeline {
        "lasso" => logistic(1.0),
        "ridge" => logistic(0.0),
        "enet" => logistic(settings.real("l1_ratio")?),
        "svc" => Svc::fit(x, fitting).map(AnyModel::Svc),
        "xgb" => Boosted::fit(x, fitting).map(AnyModel::Boosted),
        "rf" => Forest::fit(x, fitting).map(AnyModel::Forest),
        "nn" => Network::fit(x, fitting).map(AnyModel::Network),
        other => bail!("there is no pipeline `{other}`"),
    }
}

fn check_table(table: &FeatureTable) -> Result<()> {
    ensure!(table.column_count() > 0, "the table has no features");
    let infinite = (0..table.column_count())
        .find(|place| table.column(*place).iter().any(|value| value.is_infinite()));
    infinite.map_or(Ok(()), |place| {
        bail!("feature `{}` has an infinite number", table.features[place])
    })
}

/// The classes that have rows, ascending, and each row's place among them.
fn present(table: &FeatureTable) -> Result<(Vec<usize>, Vec<u32>)> {
    let mut seen = vec![false; table.classes.len()];
    for class in &table.y {
        *seen
            .get_mut(*class as usize)
            .with_context(|| format!("a row is of class {class}, which has no name"))? = true;
    }
    let present: Vec<usize> = (0..seen.len()).filter(|class| seen[*class]).collect();
    ensure!(
        present.len() > 1,
        hinted(
            match present.first() {
                Some(only) => format!(
                    "every row is of class `{}`, and a model needs two",
                    table.classes[*only]
                ),
                None => "the table has no rows".to_owned(),
            },
            "choose training rows of two classes at least"
        )
    );
    let y = table
        .y
        .iter()
        .map(|class| present.partition_point(|known| known < &(*class as usize)) as u32);
    let y = y.collect();
    Ok((present, y))
}

impl FittedPipeline {
    /// The probability of each class, row by row: `[n, classes]`.
    ///
    /// # Errors
    /// Fails when the table has other features than the pipeline was fitted on, or an infinite number.
    pub fn probabilities(&self, table: &FeatureTable) -> Result<Vec<f64>> {
        self.check_features(table)?;
        check_table(table)?;
        let known = self.model.get().probabilities(&self.steps.apply(table));
        let classes = self.classes.len();
        let mut all = vec![0.0; table.row_count() * classes];
        for (all, known) in all
            .chunks_exact_mut(classes)
            .zip(known.chunks_exact(self.present.len()))
        {
            self.present
                .iter()
                .zip(known)
                .for_each(|(class, p)| all[*class] = *p);
        }
        Ok(all)
    }

    /// What the model makes of each feature, `[features]`; none where that cannot be read off it.
    pub fn importances(&self) -> Option<ColumnImportances> {
        let of_columns = self.model.get().importances(self.steps.column_count())?;
        Some(self.steps.of_table(&of_columns, self.features.len()))
    }

    /// The places of the features that the model depends on; the others were not selected.
    pub fn used_features(&self) -> Vec<usize> {
        self.steps.places()
    }

    fn check_features(&self, table: &FeatureTable) -> Result<()> {
        let of = |features: &[String], place: usize| {
            features.get(place).cloned().unwrap_or("none".to_owned())
        };
        let other = (0..self.features.len().max(table.column_count()))
            .find(|place| self.features.get(*place) != table.features.get(*place));
        other.map_or(Ok(()), |place| {
            let (here, there) = (of(&table.features, place), of(&self.features, place));
            let message = format!(
                "feature {} is `{here}`, and the pipeline was fitted with `{there}` there",
                place + 1
            );
            Err(hinted(
                message,
                "give it the table's columns in the order of the training rows",
            )
            .into())
        })
    }

    /// Writes the pipeline to its file in `dir`.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let document = Document {
            format: PIPELINE.name,
            format_version: PIPELINE.version,
            body: self,
        };
        crate::files::write_atomic(&dir.join(PIPELINE_FILE), &serde_json::to_vec(&document)?)
    }

    /// Reads the pipeline in `dir`.
    ///
    /// # Errors
    /// Fails when there is none, when it is of another version, and when it is not sound.
    pub fn open(dir: &Path) -> Result<FittedPipeline> {
        let path = dir.join(PIPELINE_FILE);
        let bytes = crate::files::read_artefact(&path, 1 << 32)?;
        let place = || format!("cannot read `{}`", path.display());
        let head: Head = serde_json::from_slice(&bytes).with_context(place)?;
        ensure!(
            head.format == PIPELINE.name && head.format_version == PIPELINE.version,
            hinted(
                format!(
                    "`{}` is {} format version {}, and this program reads {} format version {}",
                    path.display(),
                    head.format,
                    head.format_version,
                    PIPELINE.name,
                    PIPELINE.version
                ),
                format!("make it anew with `{}`", PIPELINE.rebuild)
            )
        );
        let document: Body = serde_json::from_slice(&bytes).with_context(place)?;
        document
            .body
            .check()
            .with_context(|| format!("`{}` is not a sound pipeline", path.display()))?;
        Ok(document.body)
    }

    fn check(&self) -> Result<()> {
        let ascending = self.present.windows(2).all(|pair| pair[0] < pair[1]);
        let known = self
            .present
            .last()
            .is_some_and(|last| *last < self.classes.len());
        ensure!(
            self.present.len() > 1 && ascending && known,
            "the classes it knows are not two or more of its own"
        );
        self.steps.check(self.features.len())?;
        self.model
            .get()
            .check(self.steps.column_count(), self.present.len())
    }
}

#[derive(Serialize)]
struct Document<'a> {
    format: &'a str,
    format_version: u32,
    body: &'a FittedPipeline,
}

#[derive(Deserialize)]
struct Head {
    format: String,
    format_version: u32,
}

#[derive(Deserialize)]
struct Body {
    body: FittedPipeline,
}
