//! `advise --idle`: finds faults of the jobs that are idle or running.

use std::collections::HashSet;

use anyhow::{Result, ensure};

use super::advice_sources::{AdviceSources, ask_slots, ask_unheld_jobs, read_unheld_jobs};
use super::default_schedd::default_schedd;
use super::file_looks::look_at_inputs;
use super::text::idle_jobs::{IdleView, SCHEMA_VERSION};
use poolcast_advice::{
    JobId, JobSelection, LogWords, RestartLoop, UnfitRequest, UnheldJob, UnheldJobs, restart_loops,
    unfit_requests, unmatched_jobs,
};
use poolcast_base::error::hinted;
use poolcast_base::{output, pager};
use poolcast_cli::AdviseArgs;

/// Asks the queue for idle and running jobs and the pool for its slots, looks at the files that the jobs need,
/// and prints what they lack.
///
/// # Errors
/// Fails if the queue or a log cannot be read, or if a named job is neither idle nor running.
pub(super) fn print_idle_advice(
    args: &AdviseArgs,
    sources: &AdviceSources,
    now_ms: i64,
) -> Result<()> {
    let mut jobs = match &args.queue {
        Some(named) => read_unheld_jobs(named)?,
        None => ask_unheld_jobs(sources.is_about_all_users)?,
    };
    check_selections(&jobs, &sources.selections)?;
    jobs.retain(|job| is_wanted(args, &sources.selections, job));

    let is_queue_here = args.queue.as_deref().is_none_or(|named| named == "now");
    if !is_queue_here {
        default_schedd().name_others_of_unheld(&mut jobs);
    }
    let looks = look_at_inputs(args, is_queue_here, now_ms, &jobs);
    let pool = is_queue_here.then(|| ask_slots(&jobs)).flatten();
    let unmatched = pool.map_or(Vec::new(), |pool| unmatched_jobs(&jobs, &pool));
    let mut runs = LoggedRuns::find(args, sources, &jobs)?;
    if !is_queue_here {
        default_schedd().name_others_of_loops(&mut runs.loops);
    }
    let view = IdleView {
        jobs: &jobs,
        looks: &looks,
        unmatched: &unmatched,
        memory: &runs.memory,
        loops: &runs.loops,
        now_ms,
        log_end_ms: runs.log_end_ms,
        width: output::page_width(),
        shows_all: args.shows_all,
    };
    if args.json {
        return output::print_json(SCHEMA_VERSION, &view.document());
    }
    pager::show(&output::shown_page(&view.page()))
}

/// The faults that the runs in the logs show; none without a log.
#[derive(Default)]
struct LoggedRuns {
    /// The jobs that request too little memory.
    memory: Vec<UnfitRequest>,
    /// The jobs that start and are put back again.
    loops: Vec<RestartLoop>,
    /// Time of the last event, epoch ms; `None` if no log was read.
    log_end_ms: Option<i64>,
}

impl LoggedRuns {
    fn find(args: &AdviseArgs, sources: &AdviceSources, jobs: &UnheldJobs) -> Result<LoggedRuns> {
        if sources.has_no_events() {
            return Ok(LoggedRuns::default());
        }
        let mut words = LogWords::default();
        let store = sources.read_store(args.year, None, Some(&mut words))?.store;
        let queued: HashSet<JobId> = jobs.jobs().iter().map(|job| job.job).collect();
        let end_ms = store.summary.end_ms;
        let mut loops = restart_loops(&store, end_ms, |job| queued.contains(&job));
        words.add_to_loops(&mut loops);
        Ok(LoggedRuns {
            memory: unfit_requests(&store, jobs),
            loops,
            log_end_ms: Some(end_ms),
        })
    }
}

/// Requires that each of `selections` is a job in `jobs`.
fn check_selections(jobs: &UnheldJobs, selections: &[JobSelection]) -> Result<()> {
    for selection in selections {
        let is_it = |job: &UnheldJob| selection.has(job.job.cluster, job.job.proc);
        ensure!(
            jobs.jobs().iter().any(is_it),
            hinted(
                format!("{selection} is neither idle nor running in the queue"),
                "without --idle, `poolcast advise` is about held jobs"
            )
        );
    }
    Ok(())
}

/// Returns true if the options select `job`.
fn is_wanted(args: &AdviseArgs, selections: &[JobSelection], job: &UnheldJob) -> bool {
    let JobId { cluster, proc } = job.job;
    let filter = &args.filter;
    let is_owner = |name: &String| job.owner.as_deref() == Some(name.as_str());
    (selections.is_empty() || selections.iter().any(|one| one.has(cluster, proc)))
        && (filter.owners.is_empty() || filter.owners.iter().any(is_owner))
        && (filter.clusters.is_empty() || filter.clusters.contains(&cluster))
}
