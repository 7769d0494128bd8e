//! A model and hold cycles → how probably each release ends well: those of a log, or the samples of tensors.

use anyhow::Result;
use rayon::prelude::*;

use super::evaluate::probabilities;
use super::run::Run;
use crate::config::LabelKind;
use crate::events::EventStore;
use crate::models::SampleBatch;
use crate::tensors::{
    Dataset, HoldCycle, HoldFacts, HoldHistories, SampleEncoder, SplitSide, hold_cycles,
};

/// So many holds go through the model at once.
const TOGETHER: usize = 256;

/// Asks a model about holds of the jobs in a store of events.
#[derive(Debug)]
pub struct HoldModel<'a> {
    store: &'a EventStore,
    run: &'a Run,
    sampler: SampleEncoder<'a>,
    /// For a model that takes static features.
    records: Option<HoldHistories>,
}

impl<'a> HoldModel<'a> {
    /// The model of `run` over the jobs of `store`.
    pub fn new(store: &'a EventStore, run: &'a Run) -> HoldModel<'a> {
        let sampler = SampleEncoder::new(store, run.summary.tensors.clone());
        let records = (run.model.shape.s > 0).then(|| HoldHistories::new(store));
        HoldModel {
            store,
            run,
            sampler,
            records,
        }
    }

    /// The calibrated probability that the release of each hold ends well; a hold is the place of its job, and its cycle.
    pub fn probabilities(&self, holds: &[(usize, HoldCycle)]) -> Result<Vec<f64>> {
        let of_some = |holds: &[(usize, HoldCycle)]| self.some(holds);
        let all: Vec<Vec<f64>> = holds
            .par_chunks(TOGETHER)
            .map(of_some)
            .collect::<Result<_>>()?;
        Ok(all.concat())
    }

    fn some(&self, holds: &[(usize, HoldCycle)]) -> Result<Vec<f64>> {
        let tensors = &self.run.summary.tensors;
        let size = tensors.m * tensors.j;
        let mut codes = vec![0; holds.len() * size];
        for (codes, (job, cycle)) in codes.chunks_exact_mut(size).zip(holds) {
            self.sampler.encode_hold(*job, cycle, codes);
        }
        let jobs = self.store.jobs();
        let statics = |records: &HoldHistories| {
            let of = |(job, cycle): &(usize, HoldCycle)| {
                HoldFacts::at_hold(&jobs.get(*job), cycle, records).static_features()
            };
            holds.iter().flat_map(of).collect::<Vec<f32>>()
        };
        let statics = self.records.as_ref().map(statics).unwrap_or_default();
        let logits =
            self.run
                .model
                .logits(&SampleBatch::new(&self.run.model.shape, &codes, &statics)?)?;
        Ok(logits
            .iter()
            .map(|&logit| self.run.calibration.probability(logit))
            .collect())
    }
}

/// A hold, and how probably its release ends well.
#[derive(Debug, Clone, PartialEq)]
pub struct HoldPrediction {
    /// The side of the tensors; of a log there is none.
    pub side: Option<SplitSide>,
    /// The access point; tensors do not know it.
    pub ap: Option<String>,
    /// The job's cluster.
    pub cluster: i32,
    /// The job within its cluster.
    pub proc: i32,
    /// When it was held, epoch ms.
    pub hold_time_ms: i64,
    /// The hold code.
    pub hold_code: i32,
    /// The hold subcode.
    pub hold_subcode: i32,
    /// The calibrated probability of success once it is released unchanged.
    pub probability: f64,
}

/// Every hold in `store`, whatever followed it, in the order of the store's jobs.
///
/// # Errors
/// Fails where the model cannot be asked.
pub fn predict_holds(store: &EventStore, run: &Run) -> Result<Vec<HoldPrediction>> {
    let jobs = store.jobs();
    let of_job = |job: usize| {
        let cycles = hold_cycles(
            jobs.history(job),
            LabelKind::Next,
            store.gaps(jobs.get(job).ap),
        );
        cycles
            .into_iter()
            .map(move |cycle| (job, cycle))
            .collect::<Vec<_>>()
    };
    let holds: Vec<(usize, HoldCycle)> = (0..jobs.len()).flat_map(of_job).collect();
    let found = HoldModel::new(store, run).probabilities(&holds)?;
    let prediction = |((job, cycle), probability): ((usize, HoldCycle), f64)| {
        let job = jobs.get(job);
        HoldPrediction {
            side: None,
            ap: Some(store.summary.aps[job.ap as usize].clone()),
            cluster: job.cluster,
            proc: job.proc,
            hold_time_ms: job.history.time_ms[cycle.hold],
            hold_code: job.history.hold_code[cycle.hold],
            hold_subcode: job.history.hold_subcode[cycle.hold],
            probability,
        }
    };
    Ok(holds.into_iter().zip(found).map(prediction).collect())
}

/// Every sample of `dataset`, side by side.
///
/// # Errors
/// Fails when the tensors are not those the model was made for.
pub fn predict_samples(dataset: &Dataset, run: &Run) -> Result<Vec<HoldPrediction>> {
    let mut all = Vec::new();
    for side in SplitSide::ALL
        .into_iter()
        .filter(|side| !dataset.is_empty(*side))
    {
        let (clusters, procs) = (
            dataset.column::<i32>(side, "cluster")?,
            dataset.column::<i32>(side, "proc")?,
        );
        let times = dataset.column::<i64>(side, "hold_time_ms")?;
        let (codes, subcodes): (Vec<i32>, Vec<i32>) = (
            dataset.column(side, "hold_code")?,
            dataset.column(side, "hold_subcode")?,
        );
        for (at, probability) in probabilities(run, dataset, side)?.into_iter().enumerate() {
            all.push(HoldPrediction {
                side: Some(side),
                ap: None,
                cluster: clusters[at],
                proc: procs[at],
                hold_time_ms: times[at],
                hold_code: codes[at],
                hold_subcode: subcodes[at],
                probability,
            });
        }
    }
    Ok(all)
}
