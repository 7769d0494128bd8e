//! Predictions and outcomes of the best model on the test split. Intervals come from a bootstrap
//! over whole clusters.

use anyhow::Result;
use poolcast_base::parallel::map_numbers;
use poolcast_base::stats::{SampleGroups, percentile_interval};

use super::inputs::{ReportInputs, ReportedKind};
use poolcast_holds::training::{TrainedModel, predict_split, uncalibrated_split};
use poolcast_sweep as sweep;
use poolcast_tensors::{Dataset, Split};

/// Maximum number of bootstrap resamples. More would not change the plots visibly.
const MAX_RESAMPLES: usize = 300;

/// The samples that a model was scored on. Each vector has one element per sample.
#[derive(Debug)]
pub(super) struct ScoredSamples {
    /// Calibrated probability of success.
    pub(super) probabilities: Vec<f64>,
    /// Uncalibrated probability of success.
    pub(super) uncalibrated: Vec<f64>,
    /// True if the job succeeded.
    pub(super) labels: Vec<bool>,
    /// Hold code and subcode.
    pub(super) codes: Vec<(i32, i32)>,
    /// Prediction time, epoch ms.
    pub(super) asked_ms: Vec<i64>,
    /// Success rate of the hold code.
    pub(super) rates: Vec<f64>,
    /// Success is predicted from this probability on.
    pub(super) threshold: f64,
    groups: SampleGroups,
    seed: u64,
    resamples: usize,
}

impl ScoredSamples {
    /// Scores the best model of a sweep on the test split; `None` if the model or its tensors are
    /// missing or of another version, or if the model has learned from that split.
    ///
    /// # Errors
    /// Fails if one of these files is damaged.
    pub(super) fn read(inputs: &ReportInputs) -> Result<Option<ScoredSamples>> {
        let Some(run) = inputs
            .best_run()
            .filter(|_| inputs.kind != ReportedKind::Run)
        else {
            return Ok(None);
        };
        let Some(model) = inputs.open_model(run)? else {
            return Ok(None);
        };
        let tensors = sweep::tensors_dir(&inputs.dir, &model.tensors);
        let opened = Dataset::open_split(&tensors, Split::Test);
        let Some(dataset) = inputs.if_available(opened)? else {
            return Ok(None);
        };
        // Scores on samples that the model has learned from would be too good.
        let is_known = model.learned.splits.contains(&Split::Test);
        if is_known || dataset.is_empty(Split::Test) {
            return Ok(None);
        }
        ScoredSamples::score(inputs, &model, &dataset).map(Some)
    }

    fn score(
        inputs: &ReportInputs,
        model: &TrainedModel,
        dataset: &Dataset,
    ) -> Result<ScoredSamples> {
        let split = Split::Test;
        let labels: Vec<u8> = dataset.column(split, "label")?;
        let hold_codes: Vec<i32> = dataset.column(split, "hold_code")?;
        let subcodes: Vec<i32> = dataset.column(split, "hold_subcode")?;
        let codes: Vec<(i32, i32)> = hold_codes.into_iter().zip(subcodes).collect();
        let overall = model.rates.overall.share();
        let mut rates = Vec::with_capacity(codes.len());
        for &(code, subcode) in &codes {
            let rate = model.rates.get(code, subcode);
            rates.push(rate.map_or(overall, |rate| rate.share()));
        }

        Ok(ScoredSamples {
            probabilities: predict_split(model, dataset, split)?,
            uncalibrated: uncalibrated_split(model, dataset, split)?,
            labels: labels.into_iter().map(|label| label == 1).collect(),
            codes,
            asked_ms: dataset.column(split, "asked_time_ms")?,
            rates,
            threshold: model.calibration.threshold,
            groups: SampleGroups::new(&dataset.column::<u32>(split, "group")?),
            seed: model.seed,
            resamples: inputs.config.evaluation.resamples.min(MAX_RESAMPLES),
        })
    }

    /// Number of samples.
    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    /// Computes the 95 % bootstrap interval of each number that `numbers` computes for given sample
    /// weights. An undefined number is NaN.
    pub(super) fn bands(
        &self,
        numbers: impl Fn(&[f64]) -> Vec<f64> + Sync,
    ) -> Vec<Option<(f64, f64)>> {
        let drawn: Vec<Vec<f64>> = map_numbers(self.resamples, |resample| {
            let mut weights = vec![0.0; self.len()];
            for group in self.groups.draw_groups(self.seed, "report", resample) {
                for &sample in self.groups.samples(group) {
                    weights[sample] += 1.0;
                }
            }
            numbers(&weights)
        });

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
