//! Forecasts when a pending job starts, and when jobs of other shapes in its place would.

use anyhow::Result;
use serde::Serialize;

use super::advice_settings::AdviceSettings;
use super::kept_jobs::KeptJobs;
use super::listed_job::ListedJob;
use super::live_queue::{AskedPlace, ClusterView, LiveQueue, QueueCounts};
use super::no_advice_reason::NoAdviceReason;
use super::pending_reason::PendingRole;
use super::slurm_state::QueueState;
use super::submission_advice::{
    DrawnWaits, NO_ADVICE_CODE, QueriedJob, asked_job, contradict_each_other,
};
use poolcast_provision::forecast::SeenWait;

/// Nodes and time limit of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskedShape {
    /// Number of nodes; `None` for as many as the queried job requests.
    pub nodes: Option<u32>,
    /// Time limit, in seconds.
    pub limit_s: i64,
}

/// Times at which a job starts, over draws of the run times of the others, epoch seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StartTimes {
    /// Number of draws.
    pub draws: usize,
    /// 10 % quantile.
    pub start_p10_s: i64,
    /// Median.
    pub start_p50_s: i64,
    /// 90 % quantile.
    pub start_p90_s: i64,
    /// The start if all jobs run to their limits.
    pub start_by_limits_s: i64,
}

/// The answer about one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum StartAnswer {
    /// The job has started.
    Started,
    /// The job waits for its turn.
    Expected(StartTimes),
    /// There is no forecast.
    None {
        /// The reason.
        #[serde(flatten)]
        reason: NoAdviceReason,
    },
}

impl StartAnswer {
    /// Returns the exit code of `provision start` for this answer.
    pub fn exit_code(&self) -> u8 {
        match self {
            StartAnswer::Started | StartAnswer::Expected(_) => 0,
            StartAnswer::None { .. } => NO_ADVICE_CODE,
        }
    }

    /// Returns no forecast in place of one that contradicts `planned_s`, the start that Slurm plans as if all jobs ran to
    /// their limits, epoch seconds.
    fn checked_by_plan(self, planned_s: Option<i64>, now_s: i64) -> StartAnswer {
        match (&self, planned_s) {
            (StartAnswer::Expected(times), Some(planned_s))
                if contradict_each_other(times.start_p50_s - now_s, planned_s - now_s) =>
            {
                StartAnswer::None {
                    reason: NoAdviceReason::UnlikeSlurm,
                }
            }
            _ => self,
        }
    }
}

/// A job of another shape in place of the queried one, submitted now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShapeForecast {
    /// Number of nodes.
    pub nodes: u32,
    /// Time limit, in seconds.
    pub limit_s: i64,
    /// When it would start.
    #[serde(flatten)]
    pub answer: StartAnswer,
    /// The start that Slurm plans for it (`sbatch --test-only`), epoch seconds; `None` if it was not queried, or gives
    /// none.
    pub planned_start_s: Option<i64>,
}

/// The forecast for one job, with the facts behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StartForecast {
    /// The time of the forecast, epoch seconds.
    pub now_s: i64,
    /// When the job starts.
    #[serde(flatten)]
    pub answer: StartAnswer,
    /// The job.
    pub job: QueriedJob,
    /// The start that Slurm plans for it (`squeue --start`), epoch seconds; `None` if it has none yet.
    pub planned_start_s: Option<i64>,
    /// Number of usable nodes in the job's partition.
    pub nodes: u32,
    /// The queue of the job's partition.
    pub queue: QueueCounts,
    /// Number of known runs that have ended, from which run times are drawn.
    pub ended_runs: usize,
    /// True if jobs share nodes, so that the forecast counts cores, memory and GPUs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shares_nodes: bool,
    /// Jobs of other shapes in its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shapes: Vec<ShapeForecast>,
}

/// Forecasts when `job` starts, at the time of `view`, and when jobs like it of other `shapes` would if they were
/// submitted now in its place. `plan` asks Slurm when it would start such a job.
///
/// # Errors
/// Fails if the number of nodes is unknown.
pub fn forecast_start(
    view: &ClusterView<'_>,
    job: &ListedJob,
    settings: &AdviceSettings,
    shapes: &[AskedShape],
    mut plan: impl FnMut(&ListedJob, bool) -> Option<i64>,
) -> Result<StartForecast> {
    let kept = KeptJobs::find(view, job, settings)?;
    let queue = LiveQueue::new(view, job, job.end_s, AskedPlace::Own, &kept.jobs)?;
    let is_pending = job.state == QueueState::Pending;
    let planned_start_s = job
        .start_s
        .filter(|start_s| is_pending && *start_s > view.now_s);
    let mut forecasts = Vec::new();
    for shape in shapes {
        forecasts.push(forecast_shape(
            view, job, &kept, settings, shape, &mut plan,
        )?);
    }

    Ok(StartForecast {
        now_s: view.now_s,
        answer: match answer_about(view, job, &queue, settings, planned_start_s) {
            StartAnswer::Expected(_) if kept.has(view, job) => StartAnswer::None {
                reason: NoAdviceReason::ShouldRun,
            },
            answer => answer,
        },
        job: asked_job(job, job.end_s.filter(|_| !is_pending)),
        planned_start_s,
        nodes: queue.moment.nodes,
        queue: queue.counts,
        ended_runs: queue.ended_runs.len(),
        shares_nodes: queue.moment.shared.is_some(),
        shapes: forecasts,
    })
}

/// Answers when `job` starts, which Slurm plans to start at `planned_s`, epoch seconds.
fn answer_about(
    view: &ClusterView<'_>,
    job: &ListedJob,
    queue: &LiveQueue,
    settings: &AdviceSettings,
    planned_s: Option<i64>,
) -> StartAnswer {
    match (job.state, job.pending_role(view.now_s)) {
        (QueueState::Running | QueueState::Completing | QueueState::Ended, _) => {
            StartAnswer::Started
        }
        (QueueState::Pending, Some(PendingRole::Idle(reason))) => StartAnswer::None {
            reason: NoAdviceReason::NotItsTurn(reason.words().to_owned()),
        },
        (QueueState::Pending | QueueState::Unknown, _) => {
            start_in(view, job, queue, settings).checked_by_plan(planned_s, view.now_s)
        }
    }
}

/// Forecasts when a job like `job` of another `shape` would start if it was submitted now in its place.
fn forecast_shape(
    view: &ClusterView<'_>,
    job: &ListedJob,
    kept: &KeptJobs,
    settings: &AdviceSettings,
    shape: &AskedShape,
    plan: &mut impl FnMut(&ListedJob, bool) -> Option<i64>,
) -> Result<ShapeForecast> {
    let other = ListedJob {
        nodes: shape.nodes.unwrap_or(job.nodes),
        limit_s: Some(shape.limit_s),
        ..job.clone()
    };
    let queue = LiveQueue::new(view, &other, job.end_s, AskedPlace::InsteadOfIt, &kept.jobs)?;
    let shares_nodes = queue.moment.shared.is_some();
    let forecast = |answer, planned_start_s| ShapeForecast {
        nodes: other.nodes,
        limit_s: shape.limit_s,
        answer,
        planned_start_s,
    };
    if shares_nodes && other.nodes != job.nodes {
        let what = "another number of nodes where jobs have parts of them".to_owned();
        let reason = NoAdviceReason::UnknownRequest(what);
        return Ok(forecast(StartAnswer::None { reason }, None));
    }
    let planned_s = plan(&other, shares_nodes);
    let answer = start_in(view, &other, &queue, settings).checked_by_plan(planned_s, view.now_s);
    Ok(forecast(answer, planned_s))
}

/// Forecasts when `job` starts, which has the asked place in `queue`.
fn start_in(
    view: &ClusterView<'_>,
    job: &ListedJob,
    queue: &LiveQueue,
    settings: &AdviceSettings,
) -> StartAnswer {
    let none = |reason| StartAnswer::None { reason };
    let partition = job.partitions.first().map_or("", String::as_str);
    let obstacle = view.listing().find_obstacle(partition, view.now_s);
    if let Some(reason) = obstacle.or_else(|| view.find_own_obstacle(job, false)) {
        return none(reason);
    }
    if queue.is_too_large(job) {
        return none(NoAdviceReason::TooLarge);
    }
    let Some(limit_s) = job.limit_s.or(settings.length_s) else {
        return none(NoAdviceReason::NoLimit);
    };

    let asked = SeenWait {
        since_s: queue.asked_since_s(),
        limit_s: limit_s.max(1),
        nodes: job.nodes,
        user: queue.user,
    };
    let waits = DrawnWaits::draw(view, queue, &asked, settings);
    let start_s = |part| view.now_s + waits.quantile_s(part);
    StartAnswer::Expected(StartTimes {
        draws: waits.drawn_s.len(),
        start_p10_s: start_s(0.1),
        start_p50_s: start_s(0.5),
        start_p90_s: start_s(0.9),
        start_by_limits_s: view.now_s + waits.by_limits_s,
    })
}
