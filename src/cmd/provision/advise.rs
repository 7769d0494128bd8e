//! `poolcast provision advise`: advises from a live queue whether to submit the successor of a job.

use anyhow::Result;
use serde::Serialize;

use super::live_sources::{LiveCluster, LivePast, advice_settings};
use super::shared_flags::cluster_config;
use crate::cmd::best_wait_model::open_wait_model;
use crate::cmd::text;
use poolcast_base::output;
use poolcast_cli::ProvisionAdviseArgs;
use poolcast_slurm::live::{
    ListedJob, QueriedModel, StartJournal, SubmissionAdvice, advise_submission, plan_like,
};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Interval until the next possible query, in seconds.
const QUERY_INTERVAL_S: i64 = 60;

/// Reads files or queries Slurm, and prints the advice. The exit code encodes the answer.
pub(super) fn run(args: &ProvisionAdviseArgs) -> Result<u8> {
    let config = cluster_config(&args.cluster, args.cost_ratio)?;
    let mut cluster =
        LiveCluster::read(args.trace.as_deref(), &args.queue, &StartJournal::default())?;
    let settings = advice_settings(&config, &cluster.past.zone, QUERY_INTERVAL_S)?;
    let model = args.model.as_deref().map(open_wait_model).transpose()?;
    let model = model.as_ref().map(|model| QueriedModel {
        model,
        wall_s: cluster.past.zone.wall_s(cluster.now_s),
    });
    let job = cluster.job(&args.after)?;
    let view = cluster.view(&config.provision);
    let mut advice = advise_submission(&view, job, &settings, model.as_ref())?;
    let mut unplanned = Vec::new();
    if args.queue.queue.is_none()
        && advice.expected.is_some()
        && let Some(start_s) = planned_start_s(job, advice.shares_nodes, &mut unplanned)
    {
        advice = advice.checked_by_plan(start_s);
    }
    cluster.past.missing.extend(unplanned);

    print(args, &advice, &cluster.past)?;
    Ok(advice.answer.exit_code())
}

fn print(args: &ProvisionAdviseArgs, advice: &SubmissionAdvice, past: &LivePast) -> Result<()> {
    if args.json {
        let printed = PrintedAdvice {
            advice,
            missing: &past.missing,
        };
        return output::print_json(SCHEMA_VERSION, &printed);
    }
    output::print(&text::submission::advice(advice, &past.zone))?;
    past.note_missing();
    Ok(())
}

/// The time at which Slurm itself would start the successor of `job`, in epoch seconds. If Slurm
/// does not answer, `missing` gets an entry.
pub(super) fn planned_start_s(
    job: &ListedJob,
    shares_nodes: bool,
    missing: &mut Vec<String>,
) -> Option<i64> {
    match plan_like(job, shares_nodes) {
        Ok(plan) => Some(plan.start_s),
        Err(fault) => {
            missing.push(format!("the start that Slurm plans ({fault})"));
            None
        }
    }
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct PrintedAdvice<'a> {
    #[serde(flatten)]
    advice: &'a SubmissionAdvice,
    /// Missing inputs, in words.
    missing: &'a [String],
}
