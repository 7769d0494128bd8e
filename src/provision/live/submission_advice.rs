//! Whether the successor of a job is to be submitted now.

use anyhow::Result;
use serde::Serialize;

use super::listed_job::ListedJob;
use super::live_queue::{ClusterView, LiveQueue, QueueCounts};
use super::model_advice::{AskedModel, ModelAdvice};
use super::slurm_state::{JobOutcome, QueueState};
use crate::forecast::{RunHistory, SeenWait, WaitForecast, WaitSpan};
use poolcast_base::stats::{cost_quantile, mean, quantile};
use crate::replay::SlurmReplay;

/// Longer waits are as long as this, seconds.
const MOST_WAIT_S: i64 = 30 * 86_400;

/// How it is decided.
#[derive(Debug, Clone)]
pub struct AdviceSettings {
    /// How the scheduler is set.
    pub replay: SlurmReplay,
    /// An hour of interruption costs as much as so many of overlap.
    pub cost_ratio: f64,
    /// How many times run times are drawn for a forecast.
    pub draws: usize,
    /// What they are drawn from.
    pub seed: u64,
    /// How long the job runs, seconds; `None`: to its limit.
    pub length_s: Option<i64>,
    /// How long it is until it can be asked again, seconds.
    pub step_s: i64,
}

/// What to do. Moments are epoch seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum SubmissionAnswer {
    /// Submit the successor now.
    Now,
    /// Not yet.
    Later {
        /// Not before this moment, as the queue is now; `None` while the job itself waits, and of a
        /// model that only decides.
        not_before_s: Option<i64>,
        /// When to ask again.
        ask_again_s: i64,
    },
    /// Nothing that would be honest to say.
    None {
        /// Why.
        #[serde(rename = "because")]
        reason: NoAdviceReason,
    },
}

/// Why there is no advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoAdviceReason {
    /// Nothing says when the job ends.
    NoLimit,
    /// The job has failed.
    Failed,
    /// The job was cancelled.
    Cancelled,
    /// It needs more nodes than can be used.
    TooLarge,
}

impl SubmissionAnswer {
    /// The exit code of `provision advise` that stands for it.
    pub fn exit_code(self) -> u8 {
        match self {
            SubmissionAnswer::Now => 0,
            SubmissionAnswer::Later { .. } => 30,
            SubmissionAnswer::None { .. } => 40,
        }
    }
}

/// What is expected of a successor that is submitted now. Spans are seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ExpectedStart {
    /// How many draws this is of.
    pub draws: usize,
    /// How long it waits in the median.
    pub wait_p50_s: i64,
    /// What one wait in ten exceeds.
    pub wait_p90_s: i64,
    /// The quantile by which it is decided.
    pub quantile: f64,
    /// That quantile of its wait.
    pub wait_s: i64,
    /// How long it would wait if all jobs ran to their limits.
    pub wait_by_limits_s: i64,
    /// How probable it is that it starts by its predecessor's end.
    pub starts_by_end: f64,
    /// For how long neither runs, on average.
    pub interruption_s: f64,
    /// For how long both run, on average.
    pub overlap_s: f64,
}

/// The job whose successor is to be submitted. Moments are epoch seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AskedJob {
    /// What it is called.
    pub id: String,
    /// How far it got.
    pub state: QueueState,
    /// How it ended, if it has.
    pub outcome: Option<JobOutcome>,
    /// The partition whose queue counts.
    pub partition: String,
    /// How many nodes it has, or asks for.
    pub nodes: u32,
    /// How long it may run, seconds.
    pub limit_s: Option<i64>,
    /// When it started.
    pub start_s: Option<i64>,
    /// When it ends, or has ended.
    pub end_s: Option<i64>,
}

/// The advice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SubmissionAdvice {
    /// The moment it is of.
    pub now_s: i64,
    /// What to do.
    #[serde(flatten)]
    pub answer: SubmissionAnswer,
    /// The job.
    pub job: AskedJob,
    /// How many nodes its partition has that can be used.
    pub nodes: u32,
    /// The queue of its partition.
    pub queue: QueueCounts,
    /// How many runs that have ended are known.
    pub ended_runs: usize,
    /// What is expected if the successor is submitted now; `None` where that cannot be said.
    pub expected: Option<ExpectedStart>,
    /// What the model says that was asked; then the answer goes by that.
    pub model: Option<ModelAdvice>,
}

/// Says whether a successor of `job` is to be submitted at the moment of `view`: by forecasts, or by
/// what `model` says.
///
/// # Errors
/// Fails where it is not known how many nodes there are, and for a model that is not of such jobs.
pub fn advise_submission(
    view: &ClusterView<'_>,
    job: &ListedJob,
    settings: &AdviceSettings,
    model: Option<&AskedModel<'_>>,
) -> Result<SubmissionAdvice> {
    if let Some(model) = model {
        model.check(job, settings.cost_ratio)?;
    }
    let end_s = end_of(job, settings.length_s);
    let queue = LiveQueue::new(view, job, end_s)?;
    let successor = successor(view, job, &queue, settings);
    let left_s = end_s.map(|end_s| (end_s - view.now_s).max(0));
    let mut advice = SubmissionAdvice {
        now_s: view.now_s,
        answer: SubmissionAnswer::Now,
        job: asked_job(job, end_s),
        nodes: queue.moment.nodes,
        queue: queue.counts,
        ended_runs: queue.ended_runs.len(),
        expected: None,
        model: None,
    };
    if let (Some(successor), Some(left_s)) = (successor, left_s) {
        let expected = expected_start(view, &queue, &successor, left_s, settings);
        let ask = |model: &AskedModel<'_>| {
            let (by_limits_s, ratio) = (expected.wait_by_limits_s, settings.cost_ratio);
            model.ask(view, &queue, &successor, by_limits_s, left_s, ratio)
        };
        advice.model = model.map(ask);
        advice.expected = Some(expected);
    }
    advice.answer = answer(job, &advice, settings);
    Ok(advice)
}

fn asked_job(job: &ListedJob, end_s: Option<i64>) -> AskedJob {
    AskedJob {
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

/// A job like `job` that is submitted now; `None` where it could not run, or `job` itself waits.
fn successor(
    view: &ClusterView<'_>,
    job: &ListedJob,
    queue: &LiveQueue,
    settings: &AdviceSettings,
) -> Option<SeenWait> {
    let limit_s = job.limit_s.or(settings.length_s)?;
    if job.state == QueueState::Pending || job.nodes > queue.moment.nodes {
        return None;
    }
    Some(SeenWait {
        since_s: view.now_s,
        limit_s: limit_s.max(1),
        nodes: job.nodes,
        user: queue.user,
    })
}

/// When `job` ends, or has ended; `None` for one that waits, or runs without a limit.
fn end_of(job: &ListedJob, length_s: Option<i64>) -> Option<i64> {
    match job.state {
        QueueState::Pending => None,
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
        (QueueState::Running, _) => {}
    }
    if job.nodes > advice.nodes {
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
    // If it is asked again a step later, the successor starts as far after the end as before it now.
    if wait_s >= end_s - now_s - settings.step_s / 2 {
        return SubmissionAnswer::Now;
    }
    let not_before_s = end_s - wait_s;
    // The queue may grow until then.
    let ask_again_s = now_s + ((not_before_s - now_s) / 2).max(settings.step_s);
    SubmissionAnswer::Later {
        not_before_s: Some(not_before_s),
        ask_again_s: ask_again_s.min(not_before_s.max(now_s + settings.step_s)),
    }
}

/// How waits in the queue of `view` are forecast.
fn wait_forecast(
    view: &ClusterView<'_>,
    queue: &LiveQueue,
    settings: &AdviceSettings,
) -> WaitForecast {
    let max_jobs_per_user = match settings.replay.max_jobs_per_user {
        None => view.past.max_jobs_per_user,
        given => given.filter(|most| *most > 0),
    };
    // Jobs of users who are not known would be those of one.
    let are_users_known = view.listing.jobs.iter().all(|job| !job.user.is_empty());
    let max_jobs_per_user = max_jobs_per_user.filter(|_| are_users_known);

    let replay = &settings.replay;
    let mut scheduler = replay.scheduler_settings(view.now_s, Vec::new(), max_jobs_per_user);
    if queue.is_ranked {
        scheduler.size_weight = 0;
    }
    WaitForecast {
        settings: scheduler,
        draws: settings.draws,
        seed: settings.seed,
    }
}

/// What `successor` has to expect, whose predecessor runs on for `left_s` seconds.
fn expected_start(
    view: &ClusterView<'_>,
    queue: &LiveQueue,
    successor: &SeenWait,
    left_s: i64,
    settings: &AdviceSettings,
) -> ExpectedStart {
    let forecast = wait_forecast(view, queue, settings);
    let history = RunHistory::of(queue.ended_runs.iter().copied());
    let span = WaitSpan::up_to(MOST_WAIT_S);
    let drawn_s = forecast.waits_s(&queue.moment, &history, successor, span);
    let wait_by_limits_s = forecast.wait_by_limits_s(&queue.moment, successor, MOST_WAIT_S);

    let waits_s: Vec<f64> = drawn_s.iter().map(|wait_s| *wait_s as f64).collect();
    let (mut interruptions_s, mut overlaps_s, mut in_time) = (Vec::new(), Vec::new(), 0);
    for wait_s in &drawn_s {
        interruptions_s.push((wait_s - left_s).max(0) as f64);
        overlaps_s.push((left_s - wait_s).max(0) as f64);
        in_time += usize::from(*wait_s <= left_s);
    }
    let decided = cost_quantile(settings.cost_ratio);
    ExpectedStart {
        draws: drawn_s.len(),
        wait_p50_s: quantile(&waits_s, 0.5) as i64,
        wait_p90_s: quantile(&waits_s, 0.9) as i64,
        quantile: decided,
        wait_s: quantile(&waits_s, decided) as i64,
        wait_by_limits_s,
        starts_by_end: in_time as f64 / drawn_s.len().max(1) as f64,
        interruption_s: mean(&interruptions_s),
        overlap_s: mean(&overlaps_s),
    }
}
