//! A model and a side of the split → its scores with intervals, beside baselines on the same samples.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::bootstrap::intervals;
use super::metrics::{Scores, probability};
use super::run::Run;
use super::samples::Samples;
use super::train::score;
use crate::config::SplitMethod;
use crate::error::hinted;
use crate::tensors::{Dataset, LeftOutReason, SplitSide};

/// A score and its 95 % interval.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Score {
    /// The score's name, as in [`Scores::NAMES`].
    pub name: String,
    /// Absent if it is not defined.
    pub value: Option<f64>,
    /// The ends of the interval.
    pub interval: Option<(f64, f64)>,
}

/// One way to predict, scored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Method {
    /// What it is.
    pub name: String,
    /// In the order of [`Scores::NAMES`].
    pub scores: Vec<Score>,
}

/// The scores of a model and its baselines on one side.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Evaluation {
    /// The side scored.
    pub side: SplitSide,
    /// How the samples were divided.
    pub split: SplitMethod,
    /// Samples scored.
    pub samples: usize,
    /// Those with label 1.
    pub successes: usize,
    /// Clusters they come from: what the bootstrap draws.
    pub clusters: usize,
    /// Bootstrap resamples.
    pub resamples: usize,
    /// Training samples.
    pub train_samples: usize,
    /// Those with label 1.
    pub train_successes: usize,
    /// Hold cycles in the log.
    pub cycles_total: usize,
    /// Cycles that are no sample, by reason.
    pub left_out: BTreeMap<LeftOutReason, usize>,
    /// What the model's logits were divided by.
    pub temperature: f64,
    /// The model predicts success from this probability on, the baselines from 0.5 on.
    pub threshold: f64,
    /// The model's scores without both: temperature 1, threshold 0.5.
    pub uncalibrated: Scores,
    /// The model first, then the baselines.
    pub methods: Vec<Method>,
}

impl Evaluation {
    /// The file that keeps the scores of one side beside the run in `dir`.
    pub fn path(dir: &Path, side: SplitSide) -> PathBuf {
        dir.join(format!("evaluation-{}.json", side.name()))
    }
}

/// Scores `run` on `side` of `dataset` over all its samples at once. `best` are the probabilities that the best possible
/// predictor gives these samples, where somebody knows them.
///
/// # Errors
/// Fails when the tensors are not those the model was made for, or the side has no samples.
pub fn evaluate(
    run: &Run,
    dataset: &Dataset,
    side: SplitSide,
    resamples: usize,
    best: Option<Vec<f64>>,
) -> Result<Evaluation> {
    check_fit(run, dataset)?;
    ensure!(
        !dataset.is_empty(side),
        "there are no {} samples to evaluate on",
        side.name()
    );
    let samples = Samples::new(dataset, side, run.model.shape)?;
    let (logits, labels) = (score(&run.model, &samples)?, &samples.labels);
    let groups: Vec<u32> = dataset.column(side, "group")?;
    let rates = &run.summary.rates;
    let overall = rates.overall.share();
    let codes: Vec<i32> = dataset.column(side, "hold_code")?;
    let subcodes: Vec<i32> = dataset.column(side, "hold_subcode")?;
    let by_code = codes
        .iter()
        .zip(&subcodes)
        .map(|(&code, &sub)| rates.get(code, sub).map_or(overall, |rate| rate.share()));
    let seed = run.summary.training.seed;
    let at = |threshold, name: &str, probabilities: Vec<f64>| {
        let values = Scores::of(&probabilities, labels, threshold).values();
        let intervals = intervals(&probabilities, labels, &groups, resamples, seed, threshold);
        let all = Scores::NAMES.iter().zip(values).zip(intervals);
        let scores = all.map(|((name, value), interval)| Score {
            name: (*name).to_owned(),
            value,
            interval,
        });
        Method {
            name: name.to_owned(),
            scores: scores.collect(),
        }
    };
    let method = |name: &str, probabilities| at(0.5, name, probabilities);
    let raw: Vec<f64> = logits
        .iter()
        .map(|&logit| probability(f64::from(logit)))
        .collect();
    let calibrated = logits
        .iter()
        .map(|&logit| run.calibration.probability(logit))
        .collect();
    let mut methods = vec![
        at(
            run.calibration.threshold,
            run.model.architecture.name(),
            calibrated,
        ),
        method("always majority", vec![overall; labels.len()]),
        method("rate by hold code", by_code.collect()),
    ];
    methods.extend(best.map(|probabilities| method("best possible", probabilities)));
    let train = &dataset.summary.splits[&SplitSide::Train];
    Ok(Evaluation {
        side,
        split: dataset.summary.settings.split,
        samples: labels.len(),
        successes: labels.iter().filter(|label| **label).count(),
        clusters: groups
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        resamples,
        train_samples: train.samples,
        train_successes: train.successes,
        cycles_total: dataset.summary.cycles_total,
        left_out: dataset.summary.left_out.clone(),
        temperature: run.calibration.temperature,
        threshold: run.calibration.threshold,
        uncalibrated: Scores::of(&raw, labels, 0.5),
        methods,
    })
}

/// The calibrated probability of success that `run` gives each sample of `side` of `dataset`, `[n]`.
///
/// # Errors
/// Fails when the tensors are not those the model was made for.
pub fn probabilities(run: &Run, dataset: &Dataset, side: SplitSide) -> Result<Vec<f64>> {
    check_fit(run, dataset)?;
    let logits = score(&run.model, &Samples::new(dataset, side, run.model.shape)?)?;
    Ok(logits
        .iter()
        .map(|&logit| run.calibration.probability(logit))
        .collect())
}

fn check_fit(run: &Run, dataset: &Dataset) -> Result<()> {
    let (model, tensors) = (&run.summary.tensors, &dataset.summary.settings);
    let made = |s: &crate::tensors::TensorSettings| {
        let choices = format!("{:?} windows and {:?} labels", s.window, s.label).to_lowercase();
        let states = s
            .states
            .0
            .as_ref()
            .map_or(String::new(), |_| format!(", states {}", s.states));
        let jobs = format!("context {}, vocabulary {}{states}", s.context, s.vocabulary);
        format!(
            "j = {}, m = {}, timeframe_len = {}, {jobs}, {choices}",
            s.j, s.m, s.timeframe_len_s
        )
    };
    ensure!(
        made(model) == made(tensors),
        hinted(
            format!(
                "the model was trained on samples with {}; the tensors have {}",
                made(model),
                made(tensors)
            ),
            format!(
                "make fitting tensors with `poolcast tensors EVENTS -o DIR --j {} --m {} --timeframe-len {} --context {} \
                 --vocabulary {}{}`",
                model.j,
                model.m,
                model.timeframe_len_s,
                model.context,
                model.vocabulary,
                model
                    .states
                    .0
                    .as_ref()
                    .map_or(String::new(), |_| format!(" --states {}", model.states))
            )
        )
    );
    Ok(())
}
