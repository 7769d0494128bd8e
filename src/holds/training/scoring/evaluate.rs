//! Evaluation of a model on one split: scores with intervals, beside baselines on the same samples.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::baselines::SuccessRates;
use crate::training::runs::TrainedModel;
use poolcast_base::error::hinted;
use poolcast_base::stats::{LabelledPredictions, Resampling, SampleGroups, score_intervals};
use poolcast_base::stats::{Scores, sigmoid};
use poolcast_config::SplitMethod;
use poolcast_events::HoldSource;
use poolcast_tensors::{Dataset, ExcludedCycles, ExclusionReason, Split, TensorSettings};

/// A score and its 95 % interval.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScoreInterval {
    /// Name of the score, a key of the scores of a model.
    pub name: String,
    /// The score's value. `None` if it is not defined.
    pub value: Option<f64>,
    /// Lower and upper end of the 95 % interval; `None` if it is not defined.
    pub interval: Option<(f64, f64)>,
}

/// Finds the score with this name, one of [`Scores::NAMES`].
pub fn find_score<'a>(scores: &'a [ScoreInterval], name: &str) -> Option<&'a ScoreInterval> {
    scores.iter().find(|score| score.name == name)
}

/// Scores of one method of prediction.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MethodScores {
    /// Name of the method: the model or a baseline; with `--truth` also `best possible`.
    pub name: String,
    /// Each score of the method, with its interval.
    pub scores: Vec<ScoreInterval>,
}

/// Scores of a model after a probe of each cause: one of its jobs was released first, and its outcome
/// is known for the others.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProbedScores {
    /// Samples, of those scored, for which the outcome of another job of their cause is known.
    pub samples: usize,
    /// Each score on all samples, with its interval.
    pub scores: Vec<ScoreInterval>,
}

/// Scores of a model and its baselines on one split.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ModelEvaluation {
    /// The evaluated split.
    pub side: Split,
    /// Method by which the samples were split.
    pub split: SplitMethod,
    /// Samples scored.
    pub samples: usize,
    /// Scored samples with label 1.
    pub successes: usize,
    /// Clusters of the samples. The bootstrap draws whole clusters.
    pub clusters: usize,
    /// Bootstrap resamples.
    pub resamples: usize,
    /// Training samples.
    pub train_samples: usize,
    /// Training samples with label 1.
    pub train_successes: usize,
    /// What the holds come from. Scores of the two sources are not comparable.
    #[serde(default)]
    pub source: HoldSource,
    /// Hold cycles in the log.
    pub cycles_total: usize,
    /// Hold cycles that are not samples, by reason.
    pub left_out: BTreeMap<ExclusionReason, ExcludedCycles>,
    /// Divisor of the model's logits.
    pub temperature: f64,
    /// Minimum probability at which the model predicts success. For baselines it is 0.5.
    pub threshold: f64,
    /// The model's scores with temperature 1 and threshold 0.5.
    pub uncalibrated: Scores,
    /// The model first, then the baselines; with `--truth`, the best possible answers are the last.
    pub methods: Vec<MethodScores>,
    /// Scores on the test split once one job of each cause was tried. `None` if the log of the
    /// samples is unknown, or if they are not asked about at the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_probes: Option<ProbedScores>,
}

/// Scores `model` on all samples of `split` of `dataset`. `best` holds the probabilities of the best
/// possible predictor for these samples, if they are known.
///
/// # Errors
/// Fails when the model was made for other tensors, when the split has no samples, and when `split`
/// is the test split and the model learned from it.
pub fn evaluate_run(
    model: &TrainedModel,
    dataset: &Dataset,
    split: Split,
    resamples: usize,
    best: Option<Vec<f64>>,
) -> Result<ModelEvaluation> {
    check_tensors(model, dataset)?;
    ensure!(
        !dataset.is_empty(split),
        "there are no {} samples to evaluate on",
        split.name()
    );
    // Test scores on learned samples would be too good.
    let is_learned = model.tensors_key == dataset.key && model.learned.splits.contains(&split);
    ensure!(
        split != Split::Test || !is_learned,
        "the model was trained on the test split of these tensors"
    );

    let logits = model.split_logits(dataset, split)?;
    let truth = SplitTruth::read(model, dataset, split, resamples)?;
    let methods = predictions(model, dataset, split, &logits, best)?
        .into_iter()
        .map(|method| method.score(&truth))
        .collect();

    let uncalibrated: Vec<f64> = logits
        .iter()
        .map(|&logit| sigmoid(f64::from(logit)))
        .collect();
    let learned = model.rates.overall;
    Ok(ModelEvaluation {
        side: split,
        split: dataset.summary.settings.split,
        samples: truth.labels.len(),
        successes: truth.labels.iter().filter(|label| **label).count(),
        clusters: truth.groups.count(),
        resamples,
        train_samples: learned.holds,
        train_successes: learned.successes,
        source: dataset.summary.source,
        cycles_total: dataset.summary.cycles_total,
        left_out: dataset.summary.left_out.clone(),
        temperature: model.calibration.temperature,
        threshold: model.calibration.threshold,
        uncalibrated: Scores::compute(&uncalibrated, &truth.labels, 0.5),
        methods,
        after_probes: None,
    })
}

/// Scores other `probabilities` of success for the samples of `split` of `dataset`, `[n]`, with the
/// threshold and the bootstrap of `model`.
///
/// # Errors
/// Fails when the tensors cannot be read.
pub(crate) fn score_in_place_of(
    model: &TrainedModel,
    dataset: &Dataset,
    split: Split,
    probabilities: &[f64],
    resamples: usize,
) -> Result<Vec<ScoreInterval>> {
    let truth = SplitTruth::read(model, dataset, split, resamples)?;
    Ok(truth.score(probabilities, model.calibration.threshold))
}

/// What the predictions for one split are scored by.
struct SplitTruth {
    /// True for samples that ended in success, `[n]`.
    labels: Vec<bool>,
    groups: SampleGroups,
    resampling: Resampling,
}

impl SplitTruth {
    fn read(
        model: &TrainedModel,
        dataset: &Dataset,
        split: Split,
        resamples: usize,
    ) -> Result<SplitTruth> {
        let labels: Vec<u8> = dataset.column(split, "label")?;
        Ok(SplitTruth {
            labels: labels.into_iter().map(|label| label == 1).collect(),
            groups: SampleGroups::new(&dataset.column::<u32>(split, "group")?),
            resampling: Resampling {
                resamples,
                seed: model.seed,
            },
        })
    }

    /// Scores `probabilities` of success, `[n]`; from `threshold` on, success is predicted.
    fn score(&self, probabilities: &[f64], threshold: f64) -> Vec<ScoreInterval> {
        let predictions = LabelledPredictions {
            probabilities,
            labels: &self.labels,
            threshold,
        };
        let values = Scores::compute(probabilities, &self.labels, threshold).values();
        let intervals = score_intervals(predictions, &self.groups, self.resampling);
        Scores::NAMES
            .iter()
            .zip(values)
            .zip(intervals)
            .map(|((name, value), interval)| ScoreInterval {
                name: (*name).to_owned(),
                value,
                interval,
            })
            .collect()
    }
}

/// Predictions of one method for the samples.
struct MethodPredictions {
    name: String,
    /// Probabilities of success, `[n]`.
    probabilities: Vec<f64>,
    /// Minimum probability at which success is predicted.
    threshold: f64,
}

impl MethodPredictions {
    fn baseline(name: &str, probabilities: Vec<f64>) -> MethodPredictions {
        MethodPredictions {
            name: name.to_owned(),
            probabilities,
            threshold: 0.5,
        }
    }

    fn score(self, truth: &SplitTruth) -> MethodScores {
        MethodScores {
            scores: truth.score(&self.probabilities, self.threshold),
            name: self.name,
        }
    }
}

/// Predicts the samples with the model, then with the baselines, then adds `best`.
fn predictions(
    model: &TrainedModel,
    dataset: &Dataset,
    split: Split,
    logits: &[f32],
    best: Option<Vec<f64>>,
) -> Result<Vec<MethodPredictions>> {
    let rates = &model.rates;
    let mut methods = vec![
        MethodPredictions {
            name: model.name.clone(),
            probabilities: logits
                .iter()
                .map(|&logit| model.calibration.probability(logit))
                .collect(),
            threshold: model.calibration.threshold,
        },
        MethodPredictions::baseline("always majority", vec![rates.overall.share(); logits.len()]),
        MethodPredictions::baseline("rate by hold code", rates_by_code(rates, dataset, split)?),
    ];
    if let Some(probabilities) = best {
        methods.push(MethodPredictions::baseline("best possible", probabilities));
    }
    Ok(methods)
}

/// The success rate of each sample's hold code and subcode in the training samples. A kind without
/// training samples gets the overall rate.
fn rates_by_code(rates: &SuccessRates, dataset: &Dataset, split: Split) -> Result<Vec<f64>> {
    let overall = rates.overall.share();
    let codes: Vec<i32> = dataset.column(split, "hold_code")?;
    let subcodes: Vec<i32> = dataset.column(split, "hold_subcode")?;
    Ok(codes
        .iter()
        .zip(&subcodes)
        .map(|(&code, &subcode)| {
            rates
                .get(code, subcode)
                .map_or(overall, |rate| rate.share())
        })
        .collect())
}

/// Predicts the calibrated probability of success of each sample of `split` of `dataset`, `[n]`.
///
/// # Errors
/// Fails when the model was made for other tensors.
pub fn predict_split(model: &TrainedModel, dataset: &Dataset, split: Split) -> Result<Vec<f64>> {
    check_tensors(model, dataset)?;
    let logits = model.split_logits(dataset, split)?;
    Ok(logits
        .iter()
        .map(|&logit| model.calibration.probability(logit))
        .collect())
}

/// Like [`predict_split`], but without calibration.
///
/// # Errors
/// Fails when the model was made for other tensors.
pub fn uncalibrated_split(
    model: &TrainedModel,
    dataset: &Dataset,
    split: Split,
) -> Result<Vec<f64>> {
    check_tensors(model, dataset)?;
    let logits = model.split_logits(dataset, split)?;
    Ok(logits
        .iter()
        .map(|&logit| sigmoid(f64::from(logit)))
        .collect())
}

/// Rejects tensors whose settings differ from those that the model was trained with.
fn check_tensors(model: &TrainedModel, dataset: &Dataset) -> Result<()> {
    let known = describe_settings(&model.tensors);
    let tensors = describe_settings(&dataset.summary.settings);
    ensure!(
        known == tensors,
        hinted(
            format!("the model was trained on samples with {known}; the tensors have {tensors}"),
            format!(
                "build matching tensors with `poolcast tensors EVENTS -o DIR {}`",
                tensors_options(&model.tensors)
            )
        )
    );
    Ok(())
}

/// Describes in words the settings that a model depends on.
fn describe_settings(settings: &TensorSettings) -> String {
    let TensorSettings {
        j,
        m,
        timeframe_len_s,
        context,
        vocabulary,
        ..
    } = settings;
    let states = match settings.states.0 {
        Some(_) => format!(", states {}", settings.states),
        None => String::new(),
    };
    let choices = format!(
        "{:?} windows and {:?} labels",
        settings.window, settings.label
    );
    format!(
        "j = {j}, m = {m}, timeframe_len = {timeframe_len_s}, context {context}, \
         vocabulary {vocabulary}{states}, {}",
        choices.to_lowercase()
    )
}

/// Formats the same settings as options of `poolcast tensors`.
fn tensors_options(settings: &TensorSettings) -> String {
    let TensorSettings {
        j,
        m,
        timeframe_len_s,
        context,
        vocabulary,
        ..
    } = settings;
    let states = match settings.states.0 {
        Some(_) => format!(" --states {}", settings.states),
        None => String::new(),
    };
    format!(
        "--j {j} --m {m} --timeframe-len {timeframe_len_s} --context {context} \
         --vocabulary {vocabulary}{states} --window {} --label {}",
        settings.window, settings.label
    )
}
