//! Predictions for hold cycles: the probability that each release leads to success. The cycles come
//! from a log or from the samples of tensors.

use anyhow::Result;

use super::hold_encoder::HoldEncoder;
use super::trained_model::TrainedModel;
use crate::training::scoring::predict_split;
use poolcast_base::parallel::map_ranges;
use poolcast_config::LabelKind;
use poolcast_events::EventStore;
use poolcast_tensors::{Dataset, QueriedHold, Split, cutoffs_ms, hold_cycles};

/// Holds per parallel task.
const HOLDS_PER_TASK: usize = 256;

/// The calibrated probability that the release of each of `holds` leads to success.
fn hold_probabilities(
    store: &EventStore,
    model: &TrainedModel,
    holds: &[QueriedHold],
) -> Result<Vec<f64>> {
    let (takes_statics, takes_tokens) = (model.takes_statics(), model.takes_tokens());
    let encoder = HoldEncoder::new(store, model.tensors.clone(), takes_statics, takes_tokens);
    let parts = map_ranges(holds.len(), HOLDS_PER_TASK, |range| {
        model.hold_logits(&encoder.encode(&holds[range]))
    });
    let parts: Vec<Vec<f32>> = parts.into_iter().collect::<Result<_>>()?;
    let logits = parts.iter().flatten();
    let probability = |&logit| model.calibration.probability(logit);
    Ok(logits.map(probability).collect())
}

/// A hold, and the predicted probability that its release leads to success.
#[derive(Debug, Clone, PartialEq)]
pub struct HoldPrediction {
    /// Split of the tensors. `None` for a hold of a log.
    pub split: Option<Split>,
    /// Access point. `None` for a sample, as tensors do not record it.
    pub ap: Option<String>,
    /// Cluster of the job.
    pub cluster: i32,
    /// Job number within the cluster.
    pub proc: i32,
    /// Hold time, in epoch ms.
    pub hold_time_ms: i64,
    /// Prediction time, in epoch ms.
    pub asked_time_ms: i64,
    /// Hold code.
    pub hold_code: i32,
    /// Hold subcode.
    pub hold_subcode: i32,
    /// Calibrated probability of success if the job is released unchanged.
    pub probability: f64,
}

/// Predicts every hold in `store`, with any outcome or none, in the order of the store's jobs. The
/// prediction time has the same definition as for the models' samples. With `window = release`,
/// jobs that are still held are predicted at the last event of their access point.
///
/// # Errors
/// Fails where the model cannot predict.
pub fn predict_holds(store: &EventStore, model: &TrainedModel) -> Result<Vec<HoldPrediction>> {
    let jobs = store.jobs();
    let window = model.tensors.window;
    let until_ms = cutoffs_ms(store, &jobs);
    let mut holds: Vec<QueriedHold> = Vec::new();
    for (index, job) in (0..).zip(jobs.iter()) {
        let until_ms = until_ms[job.ap as usize];
        for cycle in hold_cycles(job.history, LabelKind::Next, store.gaps(job.ap)) {
            let asked = QueriedHold::new(index, &job.history, cycle, window, until_ms);
            holds.push(asked);
        }
    }

    let probabilities = hold_probabilities(store, model, &holds)?;
    let mut all = Vec::with_capacity(holds.len());
    for (asked, probability) in holds.into_iter().zip(probabilities) {
        let job = jobs.get(asked.job as usize);
        let hold = asked.cycle.hold;
        all.push(HoldPrediction {
            split: None,
            ap: Some(store.summary.aps[job.ap as usize].clone()),
            cluster: job.cluster,
            proc: job.proc,
            hold_time_ms: job.history.time_ms[hold],
            asked_time_ms: asked.asked_ms,
            hold_code: job.history.hold_code[hold],
            hold_subcode: job.history.hold_subcode[hold],
            probability,
        });
    }
    Ok(all)
}

/// Predicts every sample of `dataset`, split by split.
///
/// # Errors
/// Fails when the model was made for other tensors.
pub fn predict_samples(dataset: &Dataset, model: &TrainedModel) -> Result<Vec<HoldPrediction>> {
    let mut all = Vec::new();
    for split in Split::ALL {
        if dataset.is_empty(split) {
            continue;
        }
        let clusters: Vec<i32> = dataset.column(split, "cluster")?;
        let procs: Vec<i32> = dataset.column(split, "proc")?;
        let times: Vec<i64> = dataset.column(split, "hold_time_ms")?;
        let asked_ms: Vec<i64> = dataset.column(split, "asked_time_ms")?;
        let codes: Vec<i32> = dataset.column(split, "hold_code")?;
        let subcodes: Vec<i32> = dataset.column(split, "hold_subcode")?;

        let probabilities = predict_split(model, dataset, split)?;
        for (sample, probability) in probabilities.into_iter().enumerate() {
            all.push(HoldPrediction {
                split: Some(split),
                ap: None,
                cluster: clusters[sample],
                proc: procs[sample],
                hold_time_ms: times[sample],
                asked_time_ms: asked_ms[sample],
                hold_code: codes[sample],
                hold_subcode: subcodes[sample],
                probability,
            });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::fitting::{small_dataset, train_small};
    use test_stores::store_of_held_jobs;

    #[test]
    fn a_log_gets_the_predictions_of_its_samples() {
        let dir = tempfile::tempdir().expect("a directory");
        let dataset = small_dataset(dir.path());
        let store = store_of_held_jobs(|job| i64::from(job % 7));
        for name in ["outcomes", "lstm+static"] {
            let run = dir.path().join(name);
            train_small(&dataset, &run, name);
            let model = &TrainedModel::open(&run).expect("opened");
            let of_samples = predict_samples(&dataset, model).expect("predicted");
            let of_log = predict_holds(&store, model).expect("predicted");
            for sample in of_samples {
                let is_sample = |hold: &&HoldPrediction| {
                    (hold.cluster, hold.hold_time_ms) == (sample.cluster, sample.hold_time_ms)
                };
                let hold = of_log.iter().find(is_sample).expect("a hold");
                assert_eq!(hold.probability, sample.probability, "{name}");
            }
        }
    }
}
