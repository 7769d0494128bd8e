//! `poolcast provision advise`: advises from a live queue whether to submit the successor of a job.

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::live_sources::{
    LivePast, advice_settings, cluster_view, now_s, query_cluster_settings, query_node_listing,
    read_file,
};
use super::shared_flags::decision_config;
use crate::cmd::best_wait_model::open_wait_model;
use crate::cmd::logs::user_salt;
use crate::cmd::text;
use poolcast_base::error::hinted;
use poolcast_base::output;
use poolcast_cli::ProvisionAdviseArgs;
use poolcast_slurm::live::{
    ClusterListing, ListedJob, NodeListing, QueriedModel, QueueListing, SlurmSettings,
    SubmissionAdvice, advise_submission, plan_like, query_queue,
};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Interval until the next possible query, in seconds.
const QUERY_INTERVAL_S: i64 = 60;

/// Reads files or queries Slurm, and prints the advice. The exit code encodes the answer.
pub(super) fn run(args: &ProvisionAdviseArgs) -> Result<u8> {
    let config = decision_config(&args.decision)?;
    let salt = user_salt()?;
    let queries_slurm = args.queue.is_none();
    let mut past = LivePast::find(args.trace.as_deref(), queries_slurm, &salt)?;
    let cluster_settings = match queries_slurm {
        true => query_cluster_settings(&mut past.missing),
        false => None,
    };
    let (listing, nodes) = listings(args, cluster_settings.as_ref(), &mut past.missing)?;
    if listing.left_out > 0 {
        let jobs = output::counted(listing.left_out, "job");
        past.missing.push(format!("{jobs} with invalid data"));
    }

    let moment_s = prediction_time_s(args, &listing);
    let cluster = ClusterListing {
        queue: &listing,
        nodes: nodes.as_ref(),
        settings: cluster_settings.as_ref(),
    };
    let view = cluster_view(moment_s, &cluster, &past, &salt, &config.provision);
    let settings = advice_settings(&config, &past.zone, QUERY_INTERVAL_S)?;
    let job = find_job(&listing, &args.after)?;
    let model = args.model.as_deref().map(open_wait_model).transpose()?;
    let model = model.as_ref().map(|model| QueriedModel {
        model,
        wall_s: past.zone.wall_s(moment_s),
    });
    let mut advice = advise_submission(&view, job, &settings, model.as_ref())?;
    if queries_slurm
        && advice.expected.is_some()
        && let Some(start_s) = planned_start_s(job, advice.shares_nodes, &mut past.missing)
    {
        advice = advice.checked_by_plan(start_s);
    }

    print(args, &advice, &past)?;
    Ok(advice.answer.exit_code())
}

/// Prediction time, in epoch seconds.
fn prediction_time_s(args: &ProvisionAdviseArgs, listing: &QueueListing) -> i64 {
    match (args.at, &args.queue) {
        (Some(at_ms), _) => at_ms.div_euclid(1000),
        (None, Some(_)) => listing.last_event_s(),
        (None, None) => now_s(listing, true),
    }
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
    for missing in &past.missing {
        output::note(&format!("missing: {missing}"));
    }
    Ok(())
}

fn find_job<'a>(listing: &'a QueueListing, name: &str) -> Result<&'a ListedJob> {
    listing.find(name).with_context(|| {
        hinted(
            format!("`squeue` lists no job {name}"),
            "list your jobs with `squeue --me`; Slurm drops a job some minutes after it ends",
        )
    })
}

/// The time at which Slurm itself would start the successor of `job`, in epoch seconds. If Slurm
/// does not answer, `missing` gets an entry.
fn planned_start_s(job: &ListedJob, shares_nodes: bool, missing: &mut Vec<String>) -> Option<i64> {
    match plan_like(job, shares_nodes) {
        Ok(plan) => Some(plan.start_s),
        Err(fault) => {
            missing.push(format!("the start that Slurm plans ({fault})"));
            None
        }
    }
}

/// The jobs, and the nodes if they are known.
fn listings(
    args: &ProvisionAdviseArgs,
    settings: Option<&SlurmSettings>,
    missing: &mut Vec<String>,
) -> Result<(QueueListing, Option<NodeListing>)> {
    let Some(file) = &args.queue else {
        let listing = query_queue().context(hinted(
            "cannot query Slurm's queue",
            "if this machine has no Slurm commands, save the output of `squeue --all --states=all --json` and give it as `--queue FILE`",
        ))?;
        return Ok((listing, query_node_listing(settings, missing)));
    };
    let listing = QueueListing::parse(&read_file(file)?)
        .with_context(|| format!("cannot use the queue `{}`", file.display()))?;
    let nodes = args.node_list.as_ref().map(|file| {
        NodeListing::parse(&read_file(file)?)
            .with_context(|| format!("cannot use the node list `{}`", file.display()))
    });
    Ok((listing, nodes.transpose()?))
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct PrintedAdvice<'a> {
    #[serde(flatten)]
    advice: &'a SubmissionAdvice,
    /// Missing inputs, in words.
    missing: &'a [String],
}
