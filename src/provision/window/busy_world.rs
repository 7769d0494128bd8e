//! A small cluster that is always busy, for tests.

use rand::Rng as _;

use super::window_plan::WindowPlan;
use crate::replay::SlurmWorld;
use crate::scheduler::{CapacityStep, NEVER, QueueJob, SchedulerSettings};

pub(crate) const HOUR_S: i64 = 3600;

/// Returns a window plan for the busy cluster.
pub(crate) fn busy_plan() -> WindowPlan {
    WindowPlan {
        from_s: None,
        until_s: None,
        interval_h: 4,
        cold_start: false,
        warmup_s: 12 * HOUR_S,
        workload_s: 40 * HOUR_S,
        nodes: 2,
        limit_s: 10 * HOUR_S,
        length_s: 10 * HOUR_S,
        step_s: HOUR_S,
        probes: 3,
        history_runs: 40,
        cost_ratios: vec![1.0, 3.0],
    }
}

/// Creates two days of jobs on the busy cluster.
pub(crate) fn busy_world(seed: u64) -> SlurmWorld {
    let mut random = poolcast_base::seed::generator(seed, "worlds", &[]);
    let mut jobs = Vec::new();
    for _ in 0..160 {
        let enter = random.random_range(0..48 * HOUR_S);
        let limit = HOUR_S * random.random_range(1..12);
        let cancels = random.random_range(0..8) == 0;
        jobs.push(QueueJob {
            enter,
            since: enter,
            cancel: if cancels { enter + 2 * HOUR_S } else { NEVER },
            run: random.random_range(1..=limit),
            limit,
            nodes: random.random_range(1..5),
            user: random.random_range(0..4),
        });
    }
    jobs.sort_by_key(|job| job.enter);
    let settings = SchedulerSettings {
        max_jobs_per_user: Some(4),
        ..SchedulerSettings::small_cluster(6)
    };
    SlurmWorld {
        settings,
        places: (0..jobs.len() as u32).collect(),
        jobs,
        running: Vec::new(),
        users: 4,
        nodes: Vec::new(),
        too_large: 0,
    }
}

/// Returns `world` with another future from `now_s` on. Other jobs arrive, running jobs run much
/// longer, and pending cancellations change. All nodes leave except those for one chained job.
/// `started_at` returns the start of a job if it had started by then.
pub(crate) fn with_another_future(
    world: &SlurmWorld,
    now_s: i64,
    started_at: impl Fn(u32) -> Option<i64>,
) -> SlurmWorld {
    let mut later = SlurmWorld {
        settings: world.settings.clone(),
        jobs: world.jobs.clone(),
        places: world.places.clone(),
        running: Vec::new(),
        users: world.users,
        nodes: Vec::new(),
        too_large: 0,
    };
    later.settings.capacity.push(CapacityStep {
        from: now_s,
        nodes: busy_plan().nodes,
    });
    for (number, job) in later.jobs.iter_mut().enumerate() {
        let started_s = started_at(number as u32);
        if job.enter >= now_s {
            (job.nodes, job.run, job.limit, job.user) = (1, 5, 77, 0);
        } else if let Some(start_s) = started_s.filter(|start_s| start_s + job.run >= now_s) {
            job.run = now_s - start_s + 40 * HOUR_S;
        }
        if job.cancel >= now_s {
            job.cancel = if job.cancel == NEVER { now_s } else { NEVER };
        }
    }
    later
}
