//! The settings of advice, and of the simulated scheduler for a live queue.

use super::live_queue::{ClusterView, LiveQueue};
use poolcast_provision::forecast::WaitForecast;
use poolcast_provision::replay::SlurmReplay;

/// Settings of the decision.
#[derive(Debug, Clone)]
pub struct AdviceSettings {
    /// The model of the scheduler.
    pub replay: SlurmReplay,
    /// The cost of an hour of interruption, in hours of overlap.
    pub cost_ratio: f64,
    /// Number of draws of run times per forecast.
    pub draws: usize,
    /// The seed of the draws.
    pub seed: u64,
    /// The expected run time of the job, in seconds; `None` if it runs to its limit.
    pub length_s: Option<i64>,
    /// Minimum time until the caller can ask again, in seconds.
    pub step_s: i64,
}

/// Returns the forecast settings for the queue of `view`.
pub(super) fn wait_forecast(
    view: &ClusterView<'_>,
    queue: &LiveQueue,
    settings: &AdviceSettings,
) -> WaitForecast {
    let max_jobs_per_user = match settings.replay.max_jobs_per_user {
        None => view.past.max_jobs_per_user,
        given => given.filter(|most| *most > 0),
    };
    // All jobs of unknown users would count as jobs of one user, so the limit cannot be applied.
    let are_users_known = view.listing.jobs.iter().all(|job| !job.user.is_empty());
    let max_jobs_per_user = max_jobs_per_user.filter(|_| are_users_known);

    let replay = &settings.replay;
    let mut scheduler = replay.scheduler_settings(view.now_s, Vec::new(), max_jobs_per_user);
    // Slurm's priorities already contain the weight of the size.
    if queue.is_ranked {
        scheduler.size_weight = 0;
    }
    WaitForecast {
        settings: scheduler,
        draws: settings.draws,
        seed: settings.seed,
    }
}
