//! The policies.

use std::cell::OnceCell;

use super::wait_record::WaitRecord;
use crate::forecast::{
    EndedRun, QueueMoment, RunHistory, SeenWait, WaitForecast, WaitSpan,
};
use crate::model_inputs::{KnownMoment, MOST_WAIT_BY_LIMITS_S};
use poolcast_base::stats::{cost_quantile, quantile};
use crate::wait_model::{ModelAnswer, WaitModel};

/// What a policy may know when it is asked whether the successor is to be submitted. Spans are
/// seconds.
pub struct AskedMoment<'a> {
    /// When its predecessor ends, epoch seconds.
    pub predecessor_end_s: i64,
    /// How long it is until the next such moment.
    pub step_s: i64,
    /// The queue.
    pub queue: QueueMoment,
    /// The last runs that have ended.
    pub ended_runs: Vec<EndedRun>,
    /// The waits of jobs that have started.
    pub record: &'a WaitRecord,
    /// The successor.
    pub successor: SeenWait,
    /// How waits are forecast.
    pub forecast: &'a WaitForecast,
    /// The highest quantile of them that is asked for.
    pub highest_quantile: f64,
    /// Forecast waits, once a policy has asked for them.
    pub forecast_waits_s: OnceCell<Vec<i64>>,
    /// What a clock on the wall of the cluster shows, seconds as of universal time.
    pub wall_s: i64,
    /// Snapshots of the queue, `[144, 42]`; none where no model takes them.
    pub snapshots: Vec<f32>,
    /// What is known of the queue in numbers, once a model was asked.
    pub features: OnceCell<Vec<f32>>,
    /// What each model says, once a policy has asked for it.
    pub model_answers: Vec<OnceCell<ModelAnswer>>,
}

impl AskedMoment<'_> {
    /// How long the predecessor runs on.
    fn left_s(&self) -> i64 {
        self.predecessor_end_s - self.queue.now_s
    }

    /// From which wait on the successor is submitted, seconds: it then starts nearer to its
    /// predecessor's end than if it is submitted at the next such moment.
    fn reached_s(&self) -> i64 {
        self.left_s() - self.step_s / 2
    }

    pub(super) fn choose(&self, wait_s: f64) -> SubmissionChoice {
        if wait_s >= self.reached_s() as f64 {
            return SubmissionChoice::Now {
                expected_s: wait_s - self.left_s() as f64,
            };
        }
        SubmissionChoice::NotYet
    }

    /// What `model` says, which is the model `number` of those that are asked.
    pub(super) fn model_answer(&self, number: usize, model: &WaitModel) -> &ModelAnswer {
        let features = self.features.get_or_init(|| self.known().features());
        self.model_answers[number]
            .get_or_init(|| model.answer(features, &self.snapshots, self.left_s()))
    }

    fn known(&self) -> KnownMoment<'_> {
        let (queue, successor) = (&self.queue, &self.successor);
        KnownMoment {
            queue,
            record: self.record,
            successor,
            wall_s: self.wall_s,
            wait_by_limits_s: self.forecast.wait_by_limits_s(
                queue,
                successor,
                MOST_WAIT_BY_LIMITS_S,
            ),
        }
    }

    /// Forecast waits, ascending; those that outlast the predecessor are as long as that.
    fn forecast_waits_s(&self) -> &[i64] {
        self.forecast_waits_s.get_or_init(|| {
            let history = RunHistory::of(self.ended_runs.iter().copied());
            let (reached_s, most_s) = (self.reached_s(), self.left_s());
            let span = WaitSpan::reaching(reached_s, most_s, self.highest_quantile);
            self.forecast
                .waits_s(&self.queue, &history, &self.successor, span)
        })
    }
}

/// What a policy says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SubmissionChoice {
    /// Submit now.
    Now {
        /// By how much the successor is expected to start after its predecessor's end, seconds.
        expected_s: f64,
    },
    /// Ask again at the next moment of decision.
    NotYet,
    /// Submit at this moment, epoch seconds; there is no need to ask again.
    At(i64),
}

/// Decides when a successor is submitted. If it never does, that is when the predecessor ends.
pub trait SubmissionPolicy: Sync {
    /// Its name in tables and files.
    fn name(&self) -> String;

    /// Whether to submit at the moment of `asked`.
    fn choose(&self, asked: &AskedMoment<'_>) -> SubmissionChoice;
}

/// Submits when the predecessor has ended.
pub struct Reactive;

/// Submits so much before that end as the last waits were on average when the predecessor started,
/// in whole minutes, as published.
pub struct AverageAtStart;

/// Submits once the mean of the last waits is as long as the predecessor has left.
pub struct AverageNow;

/// Submits once the wait that all running and waiting jobs would cause at their limits is as long.
pub struct LimitPlan;

/// Submits once a bound on the waits of like jobs is as long.
pub struct HistoryQuantile {
    /// An hour of interruption costs as much as so many of overlap.
    pub cost_ratio: f64,
    /// The number of its quantile in the record of waits.
    pub number: usize,
}

/// Submits once a quantile of the forecast is as long.
pub struct ForecastQuantile {
    /// An hour of interruption costs as much as so many of overlap.
    pub cost_ratio: f64,
}

impl SubmissionPolicy for Reactive {
    fn name(&self) -> String {
        "reactive".to_owned()
    }

    fn choose(&self, _: &AskedMoment<'_>) -> SubmissionChoice {
        SubmissionChoice::NotYet
    }
}

impl SubmissionPolicy for AverageAtStart {
    fn name(&self) -> String {
        "avg".to_owned()
    }

    fn choose(&self, asked: &AskedMoment<'_>) -> SubmissionChoice {
        let minutes = (asked.record.mean_s() / 60.0) as i64;
        SubmissionChoice::At(asked.predecessor_end_s - minutes * 60)
    }
}

impl SubmissionPolicy for AverageNow {
    fn name(&self) -> String {
        "avg-now".to_owned()
    }

    fn choose(&self, asked: &AskedMoment<'_>) -> SubmissionChoice {
        asked.choose(asked.record.mean_s())
    }
}

impl SubmissionPolicy for LimitPlan {
    fn name(&self) -> String {
        "limit".to_owned()
    }

    fn choose(&self, asked: &AskedMoment<'_>) -> SubmissionChoice {
        let wait_s =
            asked
                .forecast
                .wait_by_limits_s(&asked.queue, &asked.successor, asked.left_s());
        asked.choose(wait_s as f64)
    }
}

impl SubmissionPolicy for HistoryQuantile {
    fn name(&self) -> String {
        format!("history-{}", self.cost_ratio)
    }

    fn choose(&self, asked: &AskedMoment<'_>) -> SubmissionChoice {
        match asked.record.bound_s(self.number) {
            Some(bound_s) => asked.choose(bound_s as f64),
            None => SubmissionChoice::NotYet,
        }
    }
}

impl SubmissionPolicy for ForecastQuantile {
    fn name(&self) -> String {
        format!("forecast-{}", self.cost_ratio)
    }

    fn choose(&self, asked: &AskedMoment<'_>) -> SubmissionChoice {
        let waits_s: Vec<f64> = asked.forecast_waits_s().iter().map(|s| *s as f64).collect();
        asked.choose(quantile(&waits_s, cost_quantile(self.cost_ratio)))
    }
}
