//! A pipeline, its hyper-parameters and rows → scores of folds and of rows held out, what was
//! predicted of each row, a model.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use rand::Rng as _;

use super::paths::PREDICTIONS_FILE;
use poolcast_config::{Config, CrossValidation, Threshold};
use poolcast_base::manifest::Checksum;
use poolcast_pipelines::{
    FittedPipeline, HyperParameters, LearnedRows, ValuesBeyond, effective_hyper_parameters,
    fit_pipeline,
};
use poolcast_base::shard::{self, Shard, ShardColumn};
use poolcast_tables::{
    CrossValidationFold, FeatureTable, JoinedTable, RowTargets, SplitRows, cross_validation_folds,
};
use poolcast_holds::tensors::TensorSettings;
use poolcast_holds::training::{
    Calibration, ClassScores, FIT, FitScores, FitSummary, LearnedHolds, RollingPrediction,
    RollingPredictions, SampleFit, SuccessRates, TargetScores, TimeCut, check_predictions,
    cluster_weights, pipeline_sha256,
};
use poolcast_base::{files, manifest};
use poolcast_base::stats::logit;
use poolcast_pipelines as pipelines;

/// What a pipeline learns from, and what it is validated on.
#[derive(Debug)]
pub struct FitTables {
    /// Learned from, and divided into folds.
    pub train: FeatureTable,
    /// When each row of `train` was, if that is known.
    pub times: Option<Vec<f64>>,
    /// Where samples of logs come from; `None` of tables.
    pub samples: Option<LogSamples>,
    /// Held out.
    pub validate: Option<FeatureTable>,
    /// Further rows to score on, by name.
    pub evaluate: BTreeMap<String, FeatureTable>,
    /// The digest of where they come from.
    pub key: String,
}

/// Samples of logs that a pipeline is fitted to.
#[derive(Debug)]
pub struct LogSamples {
    /// What each fit learns from and predicts, of the rows of `train`; the last one's model remains.
    pub cuts: Vec<TimeCut>,
    /// From which probability on success is predicted.
    pub threshold: Threshold,
    /// How the samples were made.
    pub tensors: TensorSettings,
    /// The digest of the tensors.
    pub tensors_key: String,
    /// Success by hold code on the samples that are learned from.
    pub rates: SuccessRates,
    /// What those are.
    pub learned: LearnedHolds,
}

impl FitTables {
    /// The rows of the split `name` of `samples`.
    ///
    /// # Errors
    /// Fails when there is no such split.
    pub fn from_split(samples: &JoinedTable, name: &str) -> Result<FitTables> {
        let sides = samples
            .splits
            .get(name)
            .with_context(|| format!("the table has no split `{name}`"))?;
        let all: Vec<usize> = sides.all_rows().collect();
        // Classes of other splits are none of this one's.
        let table = samples.table.select_rows(&all).with_present_classes();
        let mut begin = 0;
        let mut next = |count: usize| {
            let rows: Vec<usize> = (begin..begin + count).collect();
            begin += count;
            table.select_rows(&rows)
        };
        let (train, validate) = (next(sides.train.len()), next(sides.validate.len()));
        let evaluate = sides
            .evaluate
            .iter()
            .map(|(name, rows)| (name.clone(), next(rows.len())))
            .collect();
        let times: Option<Vec<f64>> = samples
            .times
            .as_ref()
            .map(|times| sides.train.iter().map(|row| times[*row]).collect());
        let key = content_key(&table, sides, times.as_deref())?;
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

/// The digest of what is in a split, whatever other splits are there: groups count by their order,
/// and not by their numbers.
fn content_key(table: &FeatureTable, sides: &SplitRows, times: Option<&[f64]>) -> Result<String> {
    let groups: BTreeSet<u64> = table.groups.iter().copied().collect();
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
    let evaluate: Vec<(&String, usize)> = sides
        .evaluate
        .iter()
        .map(|(name, rows)| (name, rows.len()))
        .collect();
    let sizes = (sides.train.len(), sides.validate.len(), evaluate);
    let predicted = match &table.targets {
        RowTargets::Classes(classes) => manifest::key(&("classes", &classes.names))?,
        RowTargets::Numbers(numbers) => manifest::key(&("numbers", numbers.loss))?,
    };
    manifest::key(&(checksum.finish(), &table.features, predicted, sizes))
}

/// What was predicted, as single precision has it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrialPredictions {
    /// Of each row learned from, by a fit that did not, of a fold or before a time cut:
    /// the probabilities `[n, classes]` or numbers `[n, 1]`, NaN where there is none. Empty without
    /// folds and time cuts.
    pub folds: Vec<f32>,
    /// Of each row held out, as of those learned from.
    pub validation: Vec<f32>,
}

/// A pipeline with its hyper-parameters, and how it is judged.
#[derive(Debug, Clone)]
pub struct PipelineTask {
    /// The pipeline's name.
    pub pipeline: String,
    /// Its hyper-parameters: all that have an effect, in range.
    pub parameters: HyperParameters,
    /// The split it learns from, of tables.
    pub split: Option<String>,
    cv: Option<CrossValidation>,
    seed: u64,
}

impl PipelineTask {
    /// The task of the trial `config`; `None` for one of a network.
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
        ensure!(split.is_some() || cv.is_none(), "folds are for tables");
        Ok(Some(PipelineTask {
            pipeline: pipeline.clone(),
            parameters,
            split,
            cv,
            seed: config.seed,
        }))
    }

    /// The digest of everything that decides what comes of it on `rows`: equal for trials that
    /// differ only where it has no effect.
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

    /// Fits each fold and then all rows, until `stop` says so.
    ///
    /// # Errors
    /// Fails with [`pipelines::FitStopped`] where it was stopped, and where the rows cannot be
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

    /// Fits the model that remains: to all rows, or to what is learned from at the last time cut.
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

    /// Fits the rows of `table`, which are all that there are: nothing is left to judge that by.
    /// `scores` are those of the fit that was judged, and `predictions` what is known to be
    /// predicted of rows that were not learned from.
    ///
    /// # Errors
    /// As [`PipelineTask::fit`].
    pub(super) fn refit(
        &self,
        table: &FeatureTable,
        samples: SampleFit,
        scores: FitScores,
        predictions: RollingPredictions,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<PipelineFit> {
        let mut seconds = Vec::new();
        Ok(PipelineFit {
            scores,
            predictions: TrialPredictions::default(),
            rolling: Some(predictions),
            samples: Some(samples),
            model: self.fit_timed(table, 0, stop, &mut seconds)?,
            seconds,
        })
    }

    /// Fits each fold, and predicts the rows that it did not learn from.
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

    /// What is learned from and predicted besides the model that remains.
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

    /// Fits `table`, and adds to `seconds` how long that took, also where it fails. `number` is
    /// that of the fold, or 0 for the model, so that each fit has a random stream of its own.
    fn fit_timed(
        &self,
        table: &FeatureTable,
        number: i64,
        stop: &(dyn Fn() -> bool + Sync),
        seconds: &mut Vec<f64>,
    ) -> Result<FittedPipeline> {
        let began = Instant::now();
        let seed = poolcast_base::seed::generator(self.seed, "fit", &[number]).random();
        // Rows of tables count once each, as their groups need not be clusters of jobs, and are
        // seen as scikit-learn sees them.
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

/// What the fits of folds came to; empty without folds.
#[derive(Default)]
struct FittedFolds {
    scores: Vec<TargetScores>,
    /// As [`TrialPredictions::folds`].
    predictions: Vec<f32>,
}

impl FittedFolds {
    /// What fits before time cuts said of success, of rows of `table`.
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

/// The scores of what was predicted after all time cuts, pooled.
pub(super) fn pooled_scores(predictions: &RollingPredictions) -> ClassScores {
    let both = |success: f64| [1.0 - success, success];
    let probabilities = predictions.probabilities();
    let probabilities: Vec<f64> = probabilities.into_iter().flat_map(both).collect();
    let y: Vec<u32> = predictions
        .labels
        .iter()
        .map(|label| u32::from(*label))
        .collect();
    ClassScores::of_samples(&probabilities, &y)
}

/// A trial of a pipeline, done.
#[derive(Debug)]
pub struct PipelineFit {
    /// Its scores.
    pub scores: FitScores,
    /// What it predicted.
    pub predictions: TrialPredictions,
    /// What it predicted after time cuts, of samples of logs.
    pub rolling: Option<RollingPredictions>,
    /// What it says of the samples of logs that it was fitted to.
    pub samples: Option<SampleFit>,
    /// Fitted to all rows that are learned from.
    pub model: FittedPipeline,
    /// How long each fit took: the folds, then the model.
    pub seconds: Vec<f64>,
}

impl PipelineFit {
    /// Writes it to the directory `dir`: the same bytes for the same `key`.
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
    /// Writes them to the directory of a trial; returns the digest of the file.
    fn write(&self, dir: &Path, key: &str) -> Result<String> {
        let TrialPredictions { folds, validation } = self;
        let columns = [("folds", folds), ("validation", validation)];
        let columns = columns.map(|(name, values)| (name.to_owned(), ShardColumn::vector(values)));
        let bytes = shard::encode(FIT, &key, columns.to_vec())?;
        files::write_atomic(&dir.join(PREDICTIONS_FILE), &bytes)?;
        Ok(manifest::sha256(&bytes))
    }

    /// Reads those of the trial in `dir`.
    ///
    /// # Errors
    /// Fails where they were removed, and where the manifest speaks of others.
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

/// The scores of the fit in `dir`, if it is finished and of this `key`.
pub(super) fn finished_scores(dir: &Path, key: &str) -> Option<FitScores> {
    let found = manifest::read::<FitSummary>(dir, FIT).ok()?;
    (found.key == key).then_some(found.body.scores)
}

/// Removes the model in `dir`; it can be made again from the row.
pub(super) fn remove_model(dir: &Path) -> Result<()> {
    files::remove_all([dir.join(pipelines::PIPELINE_FILE)])
}
