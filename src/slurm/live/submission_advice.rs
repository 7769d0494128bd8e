//! Decides whether the successor of a job should be submitted now.

use std::collections::BTreeSet;

use anyhow::Result;
use serde::Serialize;

use super::advice_settings::{AdviceSettings, wait_forecast};
use super::kept_jobs::KeptJobs;
use super::listed_job::ListedJob;
use super::live_queue::{AskedPlace, ClusterView, LiveQueue, QueueCounts};
use super::model_advice::{ModelAdvice, QueriedModel};
use super::no_advice_reason::NoAdviceReason;
use super::slurm_state::{JobOutcome, QueueState};
use poolcast_base::stats::{cost_quantile, interpolated_quantile, mean};
use poolcast_provision::forecast::{RunHistory, SeenWait, WaitSpan};

/// Maximum wait in forecasts, in seconds: a year and a month, because limits may be a year. Longer waits
/// are cut to it.
const MAX_FORECAST_WAIT_S: i64 = 395 * 86_400;

/// The exit code that means that there is no advice.
pub const NO_ADVICE_CODE: u8 = 40;

/// Margin, in seconds, by which a forecast may exceed Slurm's own plan. Slurm plans once a minute.
pub(super) const PLAN_MARGIN_S: i64 = 60;

/// The action that the advice recommends; the exit codes are 0, 30 and 40. Times are in epoch
/// seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum SubmissionAnswer {
    /// Submit the successor now.
    Now,
    /// Do not submit the successor yet.
    Later {
        /// The earliest time to submit, given the current queue, epoch seconds. `None` while the
        /// job itself is pending, and for a model that only decides.
        not_before_s: Option<i64>,
        /// The time at which to ask again, epoch seconds.
        ask_again_s: i64,
    },
    /// There is no advice.
    None {
        /// The reason.
        #[serde(flatten)]
        reason: NoAdviceReason,
    },
}

impl SubmissionAnswer {
    /// Returns the exit code of `provision advise` for this answer.
    pub fn exit_code(&self) -> u8 {
        match self {
            SubmissionAnswer::Now => 0,
            SubmissionAnswer::Later { .. } => 30,
            SubmissionAnswer::None { .. } => NO_ADVICE_CODE,
        }
    }
}

/// The forecast for a successor that is submitted now. Durations are in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ExpectedStart {
    /// Number of draws.
    pub draws: usize,
    /// Median wait, seconds.
    pub wait_p50_s: i64,
    /// 90 % quantile of the wait, seconds.
    pub wait_p90_s: i64,
    /// 10 % quantile of the wait, seconds.
    pub wait_p10_s: i64,
    /// The quantile, from 0 to 1, on which the decision is based.
    pub quantile: f64,
    /// The wait at `quantile`, seconds.
    pub wait_s: i64,
    /// The wait if all jobs ran to their limits, seconds.
    pub wait_by_limits_s: i64,
    /// Probability that the successor starts by the end of its predecessor.
    pub starts_by_end: f64,
    /// Mean time during which neither of the two jobs runs, seconds.
    pub interruption_s: f64,
    /// Mean time during which both jobs run, seconds.
    pub overlap_s: f64,
}

/// The job whose successor is to be submitted. Times are in epoch seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueriedJob {
    /// The job id, such as `12` or `12_3`.
    pub id: String,
    /// The state.
    pub state: QueueState,
    /// The outcome, if the job has ended.
    pub outcome: Option<JobOutcome>,
    /// The partition whose queue is forecast.
    pub partition: String,
    /// Number of allocated or requested nodes.
    pub nodes: u32,
    /// Time limit, in seconds.
    pub limit_s: Option<i64>,
    /// Start time, epoch seconds.
    pub start_s: Option<i64>,
    /// Actual or expected end time, epoch seconds.
    pub end_s: Option<i64>,
}

/// The advice for one job, with the facts behind it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SubmissionAdvice {
    /// The time of the advice, in epoch seconds.
    pub now_s: i64,
    /// The recommended action.
    #[serde(flatten)]
    pub answer: SubmissionAnswer,
    /// The job whose successor to submit.
    pub job: QueriedJob,
    /// Number of usable nodes in the job's partition.
    pub nodes: u32,
    /// The queue of the job's partition.
    pub queue: QueueCounts,
    /// Number of known runs that have ended, from which run times are drawn.
    pub ended_runs: usize,
    /// The forecast for a successor submitted now; `None` if there cannot be one.
    pub expected: Option<ExpectedStart>,
    /// The output of the model, if the caller gave one. The answer then follows the model.
    pub model: Option<ModelAdvice>,
    /// The time at which Slurm itself would start the successor (`sbatch --test-only`), epoch
    /// seconds; `None` if it was not queried, or gives none.
    pub planned_start_s: Option<i64>,
    /// True if jobs share nodes, so that the forecast counts cores, memory and GPUs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shares_nodes: bool,
}

impl SubmissionAdvice {
    /// Compares the advice with `start_s`, the time at which Slurm itself plans to start the
    /// successor, assuming that all jobs run to their limits. If the two contradict each other, the
    /// forecast has a wrong picture of the cluster, and there is no advice.
    #[must_use]
    pub fn checked_by_plan(mut self, start_s: i64) -> SubmissionAdvice {
        self.planned_start_s = Some(start_s);
        let is_running = self.job.state == QueueState::Running;
        if let Some(wait_s) = self.decisive_wait_s().filter(|_| is_running)
            && contradict_each_other(wait_s, (start_s - self.now_s).max(0))
        {
            self.answer = SubmissionAnswer::None {
                reason: NoAdviceReason::UnlikeSlurm,
            };
        }
        self
    }

    /// Returns the wait that decides the answer: the one that the model predicts, if any, else the
    /// forecast.
    fn decisive_wait_s(&self) -> Option<i64> {
        let of_model = self.model.as_ref().and_then(|model| model.wait_s);
        of_model.or(self.expected.map(|expected| expected.wait_s))
    }
}

/// Returns true if a forecast wait contradicts the wait that Slurm plans. Both are in seconds.
pub(super) fn contradict_each_other(wait_s: i64, planned_s: i64) -> bool {
    let is_longer = wait_s > planned_s + PLAN_MARGIN_S;
    let misses_a_queue = wait_s == 0 && planned_s > PLAN_MARGIN_S;
    is_longer || misses_a_queue
}

/// Decides whether a successor of `job` should be submitted at the time of `view`. The decision
/// follows `model` if given, or else forecasts.
///
/// # Errors
/// Fails if the number of nodes is unknown, and if `model` is not for such jobs.
pub fn advise_submission(
    view: &ClusterView<'_>,
    job: &ListedJob,
    settings: &AdviceSettings,
    model: Option<&QueriedModel<'_>>,
) -> Result<SubmissionAdvice> {
    if let Some(model) = model {
        model.check(job, settings.cost_ratio)?;
    }
    let end_s = end_of(job, settings.length_s);
    // All jobs compete: without those that something keeps, a forecast is shorter, and a successor that is submitted too
    // late leaves a gap.
    let queue = LiveQueue::new(view, job, end_s, AskedPlace::Behind, &BTreeSet::new())?;
    let kept = KeptJobs::find(view, job, settings)?.count_in(&queue);
    let partition = job.partitions.first().map_or("", String::as_str);
    let obstacle = view.listing().find_obstacle(partition, view.now_s);
    let obstacle = obstacle.or_else(|| view.find_own_obstacle(job, model.is_some()));
    let successor = match obstacle {
        Some(_) => None,
        None => successor(view, job, &queue, settings),
    };
    let left_s = end_s.map(|end_s| (end_s - view.now_s).max(0));
    let mut advice = SubmissionAdvice {
        now_s: view.now_s,
        answer: SubmissionAnswer::Now,
        job: asked_job(job, end_s),
        nodes: queue.moment.nodes,
        queue: QueueCounts {
            waiting: queue.counts.waiting - kept,
            kept,
            ..queue.counts
        },
        ended_runs: queue.ended_runs.len(),
        expected: None,
        model: None,
        planned_start_s: None,
        shares_nodes: queue.moment.shared.is_some(),
    };
    if let (Some(successor), Some(left_s)) = (successor, left_s) {
        let expected = estimate_start(view, &queue, &successor, left_s, settings);
        let query = |model: &QueriedModel<'_>| {
            let (by_limits_s, ratio) = (expected.wait_by_limits_s, settings.cost_ratio);
            model.query(view, &queue, &successor, by_limits_s, left_s, ratio)
        };
        advice.model = model.map(query);
        advice.expected = Some(expected);
    }
    let is_too_large = queue.is_too_large(job);
    advice.answer = answer(job, &advice, is_too_large, obstacle, settings);
    Ok(advice)
}

pub(super) fn asked_job(job: &ListedJob, end_s: Option<i64>) -> QueriedJob {
    QueriedJob {
        id: job.name(),
        state: job.state,
        outcome: job.outcome,
        partition: job.partitions.first().cloned().unwrap_or_default(),
        nodes: job.nodes,
        limit_s: job.limit_s,
        start_s: job.start_s.filter(|_| job.state != QueueState::Pending),
        end_s,
    }
}

/// Returns the successor: a job like `job`, submitted now. Returns `None` if it could not run, if
/// its time limit is unknown, or if `job` itself is pending.
fn successor(
    view: &ClusterView<'_>,
    job: &ListedJob,
    queue: &LiveQueue,
    settings: &AdviceSettings,
) -> Option<SeenWait> {
    let limit_s = job.limit_s.or(settings.length_s)?;
    if job.state == QueueState::Pending || queue.is_too_large(job) {
        return None;
    }
    Some(SeenWait {
        since_s: view.now_s,
        limit_s: limit_s.max(1),
        nodes: job.nodes,
        user: queue.user,
    })
}

/// Returns the actual or expected end of `job`. Returns `None` if it is pending, or runs without a
/// known limit.
fn end_of(job: &ListedJob, length_s: Option<i64>) -> Option<i64> {
    match job.state {
        QueueState::Pending | QueueState::Unknown => None,
        QueueState::Completing | QueueState::Ended => job.end_s.or(job.start_s),
        QueueState::Running => {
            let limit_end_s = job.limit_s.and(job.end_s);
            let length_end_s = job
                .start_s
                .zip(length_s)
                .map(|(start_s, length_s)| start_s + length_s);
            match (limit_end_s, length_end_s) {
                (Some(limit_end_s), Some(length_end_s)) => Some(limit_end_s.min(length_end_s)),
                (limit_end_s, length_end_s) => limit_end_s.or(length_end_s),
            }
        }
    }
}

fn answer(
    job: &ListedJob,
    advice: &SubmissionAdvice,
    is_too_large: bool,
    obstacle: Option<NoAdviceReason>,
    settings: &AdviceSettings,
) -> SubmissionAnswer {
    let no_advice = |reason| SubmissionAnswer::None { reason };
    let now_s = advice.now_s;
    let not_yet = SubmissionAnswer::Later {
        not_before_s: None,
        ask_again_s: now_s + settings.step_s,
    };
    match (job.state, job.outcome) {
        (_, Some(JobOutcome::Failed)) => return no_advice(NoAdviceReason::Failed),
        (_, Some(JobOutcome::Cancelled)) => return no_advice(NoAdviceReason::Cancelled),
        (QueueState::Pending, _) => return not_yet,
        (QueueState::Completing | QueueState::Ended, _) => return SubmissionAnswer::Now,
        (QueueState::Running | QueueState::Unknown, _) => {}
    }
    if let Some(reason) = obstacle {
        return no_advice(reason);
    }
    if is_too_large {
        return no_advice(NoAdviceReason::TooLarge);
    }
    let (Some(end_s), Some(expected)) = (advice.job.end_s, &advice.expected) else {
        return no_advice(NoAdviceReason::NoLimit);
    };
    let wait_s = match &advice.model {
        None => expected.wait_s,
        Some(model) => match (model.submits, model.wait_s) {
            (Some(true), _) => return SubmissionAnswer::Now,
            (_, Some(wait_s)) => wait_s,
            (_, None) => return not_yet,
        },
    };
    // A submission one step later would start the successor one step later. Submit now if that
    // start would miss the end of the job by more than the start expected now.
    if wait_s >= end_s - now_s - settings.step_s / 2 {
        return SubmissionAnswer::Now;
    }
    let not_before_s = end_s - wait_s;
    // Ask again halfway, because the queue may grow until then.
    let ask_again_s = now_s + ((not_before_s - now_s) / 2).max(settings.step_s);
    SubmissionAnswer::Later {
        not_before_s: Some(not_before_s),
        ask_again_s: ask_again_s.min(not_before_s.max(now_s + settings.step_s)),
    }
}

/// Forecasts the start of `successor`, whose predecessor runs for another `left_s` seconds.
fn estimate_start(
    view: &ClusterView<'_>,
    queue: &LiveQueue,
    successor: &SeenWait,
    left_s: i64,
    settings: &AdviceSettings,
) -> ExpectedStart {
    let waits = DrawnWaits::draw(view, queue, successor, settings);
    let (mut interruptions_s, mut overlaps_s, mut in_time) = (Vec::new(), Vec::new(), 0);
    let left_s = left_s as f64;
    for wait_s in &waits.drawn_s {
        interruptions_s.push((wait_s - left_s).max(0.0));
        overlaps_s.push((left_s - wait_s).max(0.0));
        in_time += usize::from(*wait_s <= left_s);
    }
    let decided = cost_quantile(settings.cost_ratio);
    ExpectedStart {
        draws: waits.drawn_s.len(),
        wait_p50_s: waits.quantile_s(0.5),
        wait_p90_s: waits.quantile_s(0.9),
        wait_p10_s: waits.quantile_s(0.1),
        quantile: decided,
        wait_s: waits.quantile_s(decided),
        wait_by_limits_s: waits.by_limits_s,
        starts_by_end: in_time as f64 / waits.drawn_s.len().max(1) as f64,
        interruption_s: mean(&interruptions_s),
        overlap_s: mean(&overlaps_s),
    }
}

/// Waits of a job in a live queue, for drawn run times of the others.
pub(super) struct DrawnWaits {
    /// The waits in seconds, in ascending order.
    pub(super) drawn_s: Vec<f64>,
    /// The wait if all jobs ran to their limits, in seconds.
    pub(super) by_limits_s: i64,
}

impl DrawnWaits {
    pub(super) fn draw(
        view: &ClusterView<'_>,
        queue: &LiveQueue,
        job: &SeenWait,
        settings: &AdviceSettings,
    ) -> DrawnWaits {
        let forecast = wait_forecast(view, queue, settings);
        let history = RunHistory::of(queue.ended_runs.iter().copied());
        let span = WaitSpan::up_to(MAX_FORECAST_WAIT_S);
        let drawn_s = forecast.waits_s(&queue.moment, &history, job, span);
        DrawnWaits {
            drawn_s: drawn_s.into_iter().map(|wait_s| wait_s as f64).collect(),
            by_limits_s: forecast.wait_by_limits_s(&queue.moment, job, MAX_FORECAST_WAIT_S),
        }
    }

    /// The quantile `part`, from 0 to 1, in seconds.
    pub(super) fn quantile_s(&self, part: f64) -> i64 {
        interpolated_quantile(&self.drawn_s, part) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forecasts_that_contradict_the_plan_are_found() {
        for (wait_s, planned_s, expected) in [
            (600, 7200, false),
            (600, 541, false),
            (600, 539, true),
            (0, 60, false),
            (0, 61, true),
            (1, 7200, false),
            (0, 0, false),
        ] {
            let found = contradict_each_other(wait_s, planned_s);
            assert_eq!(found, expected, "{wait_s} {planned_s}");
        }
    }
}
