//! The interface of submission policies, and the policies without a learned model.

use std::cell::OnceCell;

use super::wait_record::WaitRecord;
use crate::forecast::{EndedRun, QueueTime, RunHistory, SeenWait, WaitForecast, WaitSpan};
use crate::model_inputs::{KnownTime, MAX_WAIT_BY_LIMITS_S};
use crate::wait_model::{ModelAnswer, WaitModel};
use poolcast_base::stats::{cost_quantile, interpolated_quantile};

/// Input of a policy's decision. Durations are in seconds.
pub struct QueriedTime<'a> {
    /// End of the predecessor, in epoch seconds.
    pub predecessor_end_s: i64,
    /// Time until the next decision.
    pub step_s: i64,
    /// The queue.
    pub queue: QueueTime,
    /// The last runs that have ended.
    pub ended_runs: Vec<EndedRun>,
    /// Waits of jobs that have started.
    pub record: &'a WaitRecord,
    /// The successor.
    pub successor: SeenWait,
    /// Forecaster of waits.
    pub forecast: &'a WaitForecast,
    /// Highest quantile of the wait that any policy needs.
    pub highest_quantile: f64,
    /// Cache of the forecast waits.
    pub forecast_waits_s: OnceCell<Vec<i64>>,
    /// Local wall-clock time of the cluster, in seconds, counted as if it were UTC.
    pub wall_s: i64,
    /// Snapshots of the queue, `[144, 42]`; empty if no model reads them.
    pub snapshots: Vec<f32>,
    /// Cache of the features of the queue.
    pub features: OnceCell<Vec<f32>>,
    /// Cache of the answer of each model.
    pub model_answers: Vec<OnceCell<ModelAnswer>>,
}

impl QueriedTime<'_> {
    /// Returns the remaining time of the predecessor.
    fn left_s(&self) -> i64 {
        self.predecessor_end_s - self.queue.now_s
    }

    /// Returns the smallest wait for which the successor should be submitted now, in seconds. With
    /// such a wait it starts nearer to its predecessor's end than after a submission at the next
    /// decision time.
    fn needed_wait_s(&self) -> i64 {
        self.left_s() - self.step_s / 2
    }

    /// Decides for a successor whose wait is predicted to be `wait_s` seconds.
    pub(super) fn choose(&self, wait_s: f64) -> SubmissionChoice {
        if wait_s >= self.needed_wait_s() as f64 {
            return SubmissionChoice::Now {
                expected_s: wait_s - self.left_s() as f64,
            };
        }
        SubmissionChoice::NotYet
    }

    /// Returns the answer of `model`, which has index `number` among all queried models.
    pub(super) fn model_answer(&self, number: usize, model: &WaitModel) -> &ModelAnswer {
        let features = self.features.get_or_init(|| self.known().features());
        self.model_answers[number]
            .get_or_init(|| model.answer(features, &self.snapshots, self.left_s()))
    }

    fn known(&self) -> KnownTime<'_> {
        let (queue, successor) = (&self.queue, &self.successor);
        KnownTime {
            queue,
            record: self.record,
            successor,
            wall_s: self.wall_s,
            wait_by_limits_s: self.forecast.wait_by_limits_s(
                queue,
                successor,
                MAX_WAIT_BY_LIMITS_S,
            ),
        }
    }

    /// Returns the forecast waits in ascending order. Waits beyond the predecessor's end are cut to
    /// its remaining time.
    fn forecast_waits_s(&self) -> &[i64] {
        self.forecast_waits_s.get_or_init(|| {
            let history = RunHistory::of(self.ended_runs.iter().copied());
            let (needed_wait_s, most_s) = (self.needed_wait_s(), self.left_s());
            let span = WaitSpan::with_early_stop(needed_wait_s, most_s, self.highest_quantile);
            self.forecast
                .waits_s(&self.queue, &history, &self.successor, span)
        })
    }
}

/// Decision of a policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SubmissionChoice {
    /// Submit now.
    Now {
        /// Expected gap between the predecessor's end and the successor's start, in seconds.
        expected_s: f64,
    },
    /// Query the policy again at the next decision time.
    NotYet,
    /// Submit at this time, in epoch seconds. No further query is needed.
    At(i64),
}

/// Decides when to submit a successor. If a policy never submits, the successor is submitted at the
/// predecessor's end.
pub trait SubmissionPolicy: Sync {
    /// Returns the name of the policy in tables and files.
    fn name(&self) -> String;

    /// Decides at `time`.
    fn choose(&self, time: &QueriedTime<'_>) -> SubmissionChoice;
}

/// Submits when the predecessor has ended.
pub struct Reactive;

/// Submits ahead of the predecessor's end by the mean of the last waits, in whole minutes, as
/// published. The mean is taken when the predecessor starts.
pub struct AverageAtStart;

/// Submits once the mean of the last waits is as long as the predecessor's remaining time.
pub struct AverageNow;

/// Submits once the predecessor's remaining time is no longer than the wait by time limits: the
/// wait if all running and waiting jobs ran to their limits.
pub struct LimitPlan;

/// Submits once an upper bound on the waits of similar jobs is as long as the predecessor's
/// remaining time.
pub struct HistoryQuantile {
    /// Cost of an hour of interruption, in hours of overlap.
    pub cost_ratio: f64,
    /// Index of the quantile in the record of waits.
    pub number: usize,
}

/// Submits once a quantile of the forecast waits is as long as the predecessor's remaining time.
pub struct ForecastQuantile {
    /// Cost of an hour of interruption, in hours of overlap.
    pub cost_ratio: f64,
}

impl SubmissionPolicy for Reactive {
    fn name(&self) -> String {
        "reactive".to_owned()
    }

    fn choose(&self, _: &QueriedTime<'_>) -> SubmissionChoice {
        SubmissionChoice::NotYet
    }
}

impl SubmissionPolicy for AverageAtStart {
    fn name(&self) -> String {
        "avg".to_owned()
    }

    fn choose(&self, time: &QueriedTime<'_>) -> SubmissionChoice {
        // The policy is first queried when the predecessor starts, and never again.
        let minutes = (time.record.mean_s() / 60.0) as i64;
        SubmissionChoice::At(time.predecessor_end_s - minutes * 60)
    }
}

impl SubmissionPolicy for AverageNow {
    fn name(&self) -> String {
        "avg-now".to_owned()
    }

    fn choose(&self, time: &QueriedTime<'_>) -> SubmissionChoice {
        time.choose(time.record.mean_s())
    }
}

impl SubmissionPolicy for LimitPlan {
    fn name(&self) -> String {
        "limit".to_owned()
    }

    fn choose(&self, time: &QueriedTime<'_>) -> SubmissionChoice {
        let wait_s = time
            .forecast
            .wait_by_limits_s(&time.queue, &time.successor, time.left_s());
        time.choose(wait_s as f64)
    }
}

impl SubmissionPolicy for HistoryQuantile {
    fn name(&self) -> String {
        format!("history-{}", self.cost_ratio)
    }

    fn choose(&self, time: &QueriedTime<'_>) -> SubmissionChoice {
        match time.record.bound_s(self.number) {
            Some(bound_s) => time.choose(bound_s as f64),
            None => SubmissionChoice::NotYet,
        }
    }
}

impl SubmissionPolicy for ForecastQuantile {
    fn name(&self) -> String {
        format!("forecast-{}", self.cost_ratio)
    }

    fn choose(&self, time: &QueriedTime<'_>) -> SubmissionChoice {
        let waits_s: Vec<f64> = time.forecast_waits_s().iter().map(|s| *s as f64).collect();
        time.choose(interpolated_quantile(
            &waits_s,
            cost_quantile(self.cost_ratio),
        ))
    }
}
