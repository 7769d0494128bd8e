//! Fits a pipeline with given hyper-parameters to rows. The result has the scores of folds and
//! held-out rows, the predictions for each row, and a model.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use rand::Rng as _;

use crate::config::Config;
use crate::plan::PREDICTIONS_FILE;
use poolcast_base::manifest::Checksum;
use poolcast_base::shard::{self, Shard, ShardColumn};
use poolcast_base::stats::logit;
use poolcast_base::{files, manifest};
use poolcast_config::Threshold;
use poolcast_holds::training::{
    Calibration, ClassScores, FIT, FitScores, FitSummary, LearnedHolds, RollingPrediction,
    RollingPredictions, SampleFit, SuccessRates, TargetScores, TimeCut, check_predictions,
    cluster_weights, pipeline_sha256,
};
use poolcast_pipelines as pipelines;
use poolcast_pipelines::{
    FittedPipeline, HyperParameters, LearnedRows, ValuesBeyond, effective_hyper_parameters,
    fit_pipeline,
};
use poolcast_tables::CrossValidation;
use poolcast_tables::{
    CrossValidationFold, FeatureTable, JoinedTable, RowTargets, SplitRows, cross_validation_folds,
};
use poolcast_tensors::TensorSettings;

/// The rows that a pipeline learns from, and the rows that it is validated on.
#[derive(Debug)]
pub struct FitTables {
    /// Rows to learn from, which are also divided into folds.
    pub train: FeatureTable,
    /// The time of each row of `train`, if known.
    pub times: Option<Vec<f64>>,
    /// The origin of samples of logs; `None` for tables.
    pub samples: Option<LogSamples>,
    /// Held-out rows.
    pub validate: Option<FeatureTable>,
    /// More rows to score on, by name.
    pub evaluate: BTreeMap<String, FeatureTable>,
    /// The digest of the data's origin.
    pub key: String,
}

/// Samples of logs that a pipeline is fitted to.
#[derive(Debug)]
pub struct LogSamples {
    /// The rows of `train` that each fit learns from and predicts. The model of the last fit is
    /// kept.
    pub cuts: Vec<TimeCut>,
    /// The rule that sets the probability from which the model predicts success.
    pub threshold: Threshold,
    /// The settings that the samples were made with.
    pub tensors: TensorSettings,
    /// The digest of the tensors.
    pub tensors_key: String,
    /// Success rates by hold code on the samples that are learned from.
    pub rates: SuccessRates,
    /// A description of the samples that are learned from.
    pub learned: LearnedHolds,
}

impl FitTables {
    /// The rows of the split `name` of `samples`.
    ///
    /// # Errors
    /// Fails if there is no such split.
    pub fn from_split(samples: &JoinedTable, name: &str) -> Result<FitTables> {
        let rows = samples
            .splits
            .get(name)
            .with_context(|| format!("the table has no split `{name}`"))?;
        let all: Vec<usize> = rows.all_rows().collect();
        // Classes that only other splits have are not classes of this split.
        let table = samples.table.select_rows(&all).with_present_classes();
        let mut begin = 0;
        let mut next = |count: usize| {
            let rows: Vec<usize> = (begin..begin + count).collect();
            begin += count;
            table.select_rows(&rows)
        };
        let (train, validate) = (next(rows.train.len()), next(rows.validate.len()));
        let evaluate = rows
            .evaluate
            .iter()
            .map(|(name, rows)| (name.clone(), next(rows.len())))
            .collect();
        let times: Option<Vec<f64>> = samples
            .times
            .as_ref()
            .map(|times| rows.train.iter().map(|row| times[*row]).collect());
        let key = content_key(&table, rows, times.as_deref())?;
        Ok(FitTables {
            train,
            times,
            samples: None,
            validate: (validate.row_count() > 0).then_some(validate),
            evaluate,
            key,
        })
    }
}

/// The digest of a split's contents, independent of other splits. Groups count by their order, not
/// by their numbers.
fn content_key(table: &FeatureTable, rows: &SplitRows, times: Option<&[f64]>) -> Result<String> {
    let groups: BTreeSet<u64> = table.groups.iter().copied().collect();
    // The numbers of groups depend on other splits; their ranks do not.
    let rank: BTreeMap<u64, u64> = groups.into_iter().zip(0..).collect();
    let groups: Vec<u64> = table.groups.iter().map(|group| rank[group]).collect();
    let mut checksum = Checksum::default();
    checksum.update(bytemuck::cast_slice(&table.x));
    match &table.targets {
        RowTargets::Classes(classes) => checksum.update(bytemuck::cast_slice(&classes.y)),
        RowTargets::Numbers(numbers) => checksum.update(bytemuck::cast_slice(&numbers.y)),
    }
    checksum.update(bytemuck::cast_slice(&groups));
    checksum.update(bytemuck::cast_slice(times.unwrap_or_default()));
    let evaluate: Vec<(&String, usize)> = rows
        .evaluate
        .iter()
        .map(|(name, rows)| (name, rows.len()))
        .collect();
    let sizes = (rows.train.len(), rows.validate.len(), evaluate);
    let predicted = match &table.targets {
        RowTargets::Classes(classes) => manifest::key(&("classes", &classes.names))?,
        RowTargets::Numbers(numbers) => manifest::key(&("numbers", numbers.loss))?,
    };
    manifest::key(&(checksum.finish(), &table.features, predicted, sizes))
}

/// The predictions of a trial, in single precision.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrialPredictions {
    /// Predictions for the rows learned from, each by a fit of a fold or before a time cut that did
    /// not see the row. Probabilities `[n, classes]` or numbers `[n, 1]`; NaN for rows without a
    /// prediction. Empty without folds and time cuts.
    pub folds: Vec<f32>,
    /// Predictions for the held-out rows, in the same format.
    pub validation: Vec<f32>,
}

/// A pipeline with its hyper-parameters, and the rule by which it is scored.
#[derive(Debug, Clone)]
pub struct PipelineTask {
    /// The pipeline's name.
    pub pipeline: String,
    /// Its hyper-parameters: all that have an effect, each in its range.
    pub parameters: HyperParameters,
    /// The split that it learns from; only for tables.
    pub split: Option<String>,
    cv: Option<CrossValidation>,
    seed: u64,
}

impl PipelineTask {
    /// The task of the trial `config`; `None` for a trial of a network.
    ///
    /// # Errors
    /// Fails for hyper-parameters that the pipeline cannot have.
    pub fn from_config(config: &Config) -> Result<Option<PipelineTask>> {
        let Some((pipeline, spaces)) = config.pipelines.first_key_value() else {
            return Ok(None);
        };
        let mut parameters = HyperParameters::new();
        for space in spaces.all() {
            for (name, parameter) in &space.parameters {
                parameters.insert(name.clone(), parameter.constant(name)?.clone());
            }
        }
        let parameters = effective_hyper_parameters(pipeline, &parameters)
            .with_context(|| format!("cannot use `pipelines.{pipeline}`"))?;
        let split = config.data.split_names.first().cloned();
        let cv = config.data.cross_validation();
        ensure!(
            split.is_some() || cv.is_none(),
            "cross-validation is only for tables"
        );
        Ok(Some(PipelineTask {
            pipeline: pipeline.clone(),
            parameters,
            split,
            cv,
            seed: config.seed,
        }))
    }

    /// The digest of everything that determines the fit on `tables`. It is equal for trials that
    /// differ only in settings without effect.
    pub fn key(&self, tables: &FitTables) -> Result<String> {
        let cv = self.cv.map(|cv| (cv.k, cv.folds));
        manifest::key(&(
            FIT.version,
            &self.pipeline,
            &self.parameters,
            &self.split,
            cv,
            self.seed,
            &tables.key,
        ))
    }

    /// Fits each fold and then all rows, unless `stop` returns true.
    ///
    /// # Errors
    /// Fails with [`pipelines::FitStopped`] if it was stopped. Also fails if the rows cannot be
    /// divided or fitted.
    pub fn fit(&self, tables: &FitTables, stop: &(dyn Fn() -> bool + Sync)) -> Result<PipelineFit> {
        let mut seconds = Vec::new();
        let folds = self.fit_folds(tables, stop, &mut seconds)?;
        let model = self.fit_remaining(tables, stop, &mut seconds)?;

        let mut validation = None;
        let mut predicted_validation = Vec::new();
        if let Some(table) = &tables.validate {
            let predicted = model.predict(table)?;
            predicted_validation = predicted.iter().map(|value| *value as f32).collect();
            validation = Some(TargetScores::compute(&predicted, &table.targets));
        }

        let mut evaluation = BTreeMap::new();
        for (name, table) in &tables.evaluate {
            let predicted = model.predict(table)?;
            let scores = TargetScores::compute(&predicted, &table.targets);
            evaluation.insert(name.clone(), scores);
        }

        let is_rolling = tables.samples.is_some();
        let mean = match is_rolling {
            true => None,
            false => TargetScores::mean(&folds.scores),
        };
        let rolling = tables
            .samples
            .as_ref()
            .map(|samples| folds.rolling_predictions(&tables.train, &samples.cuts));
        let samples = tables.samples.as_ref().zip(rolling.as_ref());
        let samples = samples.map(|(samples, rolling)| SampleFit {
            tensors: samples.tensors.clone(),
            tensors_key: samples.tensors_key.clone(),
            rates: samples.rates.clone(),
            learned: samples.learned.clone(),
            calibration: Calibration::fit(rolling, samples.threshold),
            seed: self.seed,
        });
        Ok(PipelineFit {
            scores: FitScores {
                folds: folds.scores,
                mean,
                rolling: rolling
                    .as_ref()
                    .map(|rolling| TargetScores::Classes(pooled_scores(rolling))),
                validation,
                evaluation,
            },
            predictions: TrialPredictions {
                folds: folds.predictions,
                validation: predicted_validation,
            },
            rolling,
            samples,
            model,
            seconds,
        })
    }

    /// Fits the model that is kept: to all rows, or to the rows that are learned from at the last
    /// time cut.
    fn fit_remaining(
        &self,
        tables: &FitTables,
        stop: &(dyn Fn() -> bool + Sync),
        seconds: &mut Vec<f64>,
    ) -> Result<FittedPipeline> {
        let last_cut = tables.samples.as_ref().and_then(|of| of.cuts.last());
        match last_cut {
            Some(last) => {
                let learned = tables.train.select_rows(&last.learned);
                self.fit_timed(&learned, 0, stop, seconds)
            }
            None => self.fit_timed(&tables.train, 0, stop, seconds),
        }
    }

    /// Fits each fold, and predicts the rows that the fold's fit did not learn from.
    fn fit_folds(
        &self,
        tables: &FitTables,
        stop: &(dyn Fn() -> bool + Sync),
        seconds: &mut Vec<f64>,
    ) -> Result<FittedFolds> {
        let train = &tables.train;
        let width = train.targets.width();
        let folds = self.folds(tables)?;
        if folds.is_empty() {
            return Ok(FittedFolds::default());
        }

        let mut scores = Vec::new();
        let mut predictions = vec![f32::NAN; train.row_count() * width];
        for (fold, number) in folds.iter().zip(1..) {
            let fitted = self.fit_timed(&train.select_rows(&fold.train), number, stop, seconds)?;
            let tested = train.select_rows(&fold.test);
            let predicted = fitted.predict(&tested)?;
            scores.push(TargetScores::compute(&predicted, &tested.targets));

            for (row, of_row) in fold.test.iter().zip(predicted.chunks_exact(width)) {
                for (to, value) in predictions[row * width..][..width].iter_mut().zip(of_row) {
                    *to = *value as f32;
                }
            }
        }
        Ok(FittedFolds {
            scores,
            predictions,
        })
    }

    /// Divides the rows for all fits except the model that is kept.
    fn folds(&self, tables: &FitTables) -> Result<Vec<CrossValidationFold>> {
        if let Some(samples) = &tables.samples {
            let judged = samples.cuts.iter().filter(|cut| !cut.predicted.is_empty());
            let folds = judged.map(|cut| CrossValidationFold {
                train: cut.learned.clone(),
                test: cut.predicted.clone(),
            });
            return Ok(folds.collect());
        }
        let times = tables.times.as_deref();
        match self.cv {
            Some(cv) => cross_validation_folds(&tables.train, times, cv, self.seed),
            None => Ok(Vec::new()),
        }
    }

    /// Fits `table`, and appends the duration to `seconds`, also if the fit fails. `number` is the
    /// number of the fold, or 0 for the model. It gives each fit its own random stream.
    fn fit_timed(
        &self,
        table: &FeatureTable,
        number: i64,
        stop: &(dyn Fn() -> bool + Sync),
        seconds: &mut Vec<f64>,
    ) -> Result<FittedPipeline> {
        let began = Instant::now();
        let seed = poolcast_base::seed::generator(self.seed, "fit", &[number]).random();
        // Rows of tables have equal weights, because their groups need not be clusters of jobs.
        // Their values are not clipped, as in scikit-learn.
        let is_of_logs = self.split.is_none();
        let weights = is_of_logs.then(|| cluster_weights(&table.groups));
        let rows = LearnedRows {
            table,
            weights: weights.as_deref(),
            beyond: if is_of_logs {
                ValuesBeyond::Clipped
            } else {
                ValuesBeyond::Kept
            },
        };
        let fitted = fit_pipeline(&self.pipeline, &self.parameters, rows, seed, stop);
        seconds.push(began.elapsed().as_secs_f64());
        fitted
    }
}

/// The results of fitting the folds; empty without folds.
#[derive(Default)]
struct FittedFolds {
    scores: Vec<TargetScores>,
    /// Like [`TrialPredictions::folds`].
    predictions: Vec<f32>,
}

impl FittedFolds {
    /// The success predictions for rows of `table`, by fits before time cuts.
    fn rolling_predictions(&self, table: &FeatureTable, cuts: &[TimeCut]) -> RollingPredictions {
        let classes = table.targets.classes();
        let mut predictions = RollingPredictions::default();
        for (number, cut) in cuts.iter().enumerate() {
            for &row in &cut.predicted {
                let success = f64::from(self.predictions[2 * row + 1]);
                predictions.push(RollingPrediction {
                    sample: row,
                    cluster: table.groups[row] as u32,
                    cut: number,
                    logit: logit(success),
                    label: classes[row] == 1,
                });
            }
        }
        predictions
    }
}

/// The pooled scores of the predictions after all time cuts.
pub(crate) fn pooled_scores(predictions: &RollingPredictions) -> ClassScores {
    let probabilities = predictions.class_probabilities();
    let y: Vec<u32> = predictions
        .labels
        .iter()
        .map(|label| u32::from(*label))
        .collect();
    ClassScores::from_samples(&probabilities, &y)
}

/// The result of a pipeline's trial.
#[derive(Debug)]
pub struct PipelineFit {
    /// Its scores.
    pub scores: FitScores,
    /// Its predictions.
    pub predictions: TrialPredictions,
    /// Its predictions after time cuts; only for samples of logs.
    pub rolling: Option<RollingPredictions>,
    /// Facts about the samples of logs that it was fitted to.
    pub samples: Option<SampleFit>,
    /// The model, fitted to all rows that are learned from.
    pub model: FittedPipeline,
    /// Duration of each fit, in seconds: the folds, then the model.
    pub seconds: Vec<f64>,
}

impl PipelineFit {
    /// Writes it to the directory `dir`. Equal keys give byte-identical files.
    pub fn write(&self, dir: &Path, config: &Config, key: &str) -> Result<()> {
        fs_err::create_dir_all(dir)?;
        let predictions_sha256 = match &self.rolling {
            Some(rolling) => rolling.write(dir)?,
            None => self.predictions.write(dir, key)?,
        };
        self.model.write(dir)?;
        config.write(dir)?;
        let summary = FitSummary {
            scores: self.scores.clone(),
            samples: self.samples.clone(),
            pipeline_sha256: pipeline_sha256(dir)?,
            predictions_sha256,
        };
        manifest::write(dir, FIT, key, &summary)
    }
}

impl TrialPredictions {
    /// Writes the predictions to a trial's directory; returns the digest of the file.
    fn write(&self, dir: &Path, key: &str) -> Result<String> {
        let TrialPredictions { folds, validation } = self;
        let columns = [("folds", folds), ("validation", validation)];
        let columns = columns.map(|(name, values)| (name.to_owned(), ShardColumn::vector(values)));
        let bytes = shard::encode(FIT, &key, columns.to_vec())?;
        files::write_atomic(&dir.join(PREDICTIONS_FILE), &bytes)?;
        Ok(manifest::sha256(&bytes))
    }

    /// Reads the predictions of the trial in `dir`.
    ///
    /// # Errors
    /// Fails if the predictions were removed, or if the manifest has the digest of other
    /// predictions.
    pub fn read(dir: &Path) -> Result<TrialPredictions> {
        let shard = Shard::open(&dir.join(PREDICTIONS_FILE), FIT)?;
        check_predictions(dir, shard.bytes())?;
        let column = |name| anyhow::Ok(shard.column::<f32>(name)?.to_vec());
        Ok(TrialPredictions {
            folds: column("folds")?,
            validation: column("validation")?,
        })
    }
}

/// The scores of the fit in `dir`, if it is finished and has this `key`.
pub(crate) fn finished_scores(dir: &Path, key: &str) -> Option<FitScores> {
    let found = manifest::read::<FitSummary>(dir, FIT).ok()?;
    (found.key == key).then_some(found.body.scores)
}

/// Removes the model in `dir`. It can be made again from the trial's row.
pub(crate) fn remove_model(dir: &Path) -> Result<()> {
    files::remove_all([dir.join(pipelines::PIPELINE_FILE)])
}
