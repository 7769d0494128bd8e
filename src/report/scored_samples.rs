//! The test side of the best model's tensors → what it said of each sample and what came of it, and
//! intervals by a bootstrap over whole clusters.

use anyhow::Result;
use poolcast_base::stats::{SampleGroups, percentile_interval};
use rayon::prelude::*;

use super::inputs::{ReportInputs, ReportedKind};
use poolcast_sweep as sweep;
use poolcast_holds::tensors::{Dataset, SplitSide};
use poolcast_holds::training::{
    AnswerThresholds, TrainedModel, predict_side, uncalibrated_side,
};

/// So many resamples at most are behind the bands of plots: more change nothing that can be seen.
const MOST_RESAMPLES: usize = 300;

/// Samples that a model was scored on, `[n]` each.
#[derive(Debug)]
pub(super) struct ScoredSamples {
    /// The calibrated probability of success.
    pub(super) probabilities: Vec<f64>,
    /// The same before any calibration.
    pub(super) uncalibrated: Vec<f64>,
    /// Whether the job succeeded.
    pub(super) labels: Vec<bool>,
    /// The hold code and subcode.
    pub(super) codes: Vec<(i32, i32)>,
    /// When they are asked about, epoch ms.
    pub(super) asked_ms: Vec<i64>,
    /// What the rate by hold code says.
    pub(super) rates: Vec<f64>,
    /// Success is predicted from this probability on.
    pub(super) threshold: f64,
    /// What is said firmly, and what probably.
    pub(super) limits: [AnswerThresholds; 2],
    groups: SampleGroups,
    seed: u64,
    resamples: usize,
}

impl ScoredSamples {
    /// Those of the best model of a sweep; `None` where its model or its tensors are not there.
    ///
    /// # Errors
    /// Fails where these are there, and are not what they should be.
    pub(super) fn read(inputs: &ReportInputs) -> Result<Option<ScoredSamples>> {
        let Some(run) = inputs
            .best_run()
            .filter(|_| inputs.kind != ReportedKind::Run)
        else {
            return Ok(None);
        };
        let Ok(model) = TrainedModel::open(run) else {
            return Ok(None);
        };
        let tensors = sweep::tensors_dir(&inputs.dir, &model.tensors);
        let Ok(dataset) = Dataset::open_side(&tensors, SplitSide::Test) else {
            return Ok(None);
        };
        let is_known = model.learned.sides.contains(&SplitSide::Test);
        if is_known || dataset.is_empty(SplitSide::Test) {
            return Ok(None);
        }
        ScoredSamples::score(inputs, &model, &dataset).map(Some)
    }

    fn score(
        inputs: &ReportInputs,
        model: &TrainedModel,
        dataset: &Dataset,
    ) -> Result<ScoredSamples> {
        let side = SplitSide::Test;
        let labels: Vec<u8> = dataset.column(side, "label")?;
        let hold_codes: Vec<i32> = dataset.column(side, "hold_code")?;
        let subcodes: Vec<i32> = dataset.column(side, "hold_subcode")?;
        let codes: Vec<(i32, i32)> = hold_codes.into_iter().zip(subcodes).collect();
        let overall = model.rates.overall.share();
        let mut rates = Vec::with_capacity(codes.len());
        for &(code, subcode) in &codes {
            let rate = model.rates.get(code, subcode);
            rates.push(rate.map_or(overall, |rate| rate.share()));
        }

        let advice = &inputs.config.advice;
        let precisions = [advice.precision, advice.probable_precision];
        Ok(ScoredSamples {
            probabilities: predict_side(model, dataset, side)?,
            uncalibrated: uncalibrated_side(model, dataset, side)?,
            labels: labels.into_iter().map(|label| label == 1).collect(),
            codes,
            asked_ms: dataset.column(side, "asked_time_ms")?,
            rates,
            threshold: model.calibration.threshold,
            limits: model.answer_thresholds(precisions).unwrap_or_default(),
            groups: SampleGroups::new(&dataset.column::<u32>(side, "group")?),
            seed: model.seed,
            resamples: inputs.config.evaluation.resamples.min(MOST_RESAMPLES),
        })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    /// The 95 % interval of each number that `numbers` makes of the samples with these weights; a
    /// number that is not defined is NaN.
    pub(super) fn bands(
        &self,
        numbers: impl Fn(&[f64]) -> Vec<f64> + Sync,
    ) -> Vec<Option<(f64, f64)>> {
        let drawn: Vec<Vec<f64>> = (0..self.resamples)
            .into_par_iter()
            .map(|resample| {
                let mut weights = vec![0.0; self.len()];
                for group in self.groups.draw_groups(self.seed, "report", resample) {
                    for &sample in self.groups.samples(group) {
                        weights[sample] += 1.0;
                    }
                }
                numbers(&weights)
            })
            .collect();

        let count = drawn.first().map_or(0, Vec::len);
        let mut bands = Vec::with_capacity(count);
        for at in 0..count {
            let values = drawn.iter().map(|numbers| numbers[at]);
            let finite = values.filter(|value| value.is_finite()).collect();
            bands.push(percentile_interval(finite, self.resamples));
        }
        bands
    }
}
