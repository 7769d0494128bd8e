//! `poolcast provision replay`: simulates a trace, and compares simulated starts with logged ones.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::{Result, bail};
use serde::Serialize;

use super::slurm_keys::{parse_key_time, slurm_replay};
use crate::cmd::flags::{flag, flags};
use crate::cmd::text;
use poolcast_base::error::{EXIT_DONE, hinted};
use poolcast_base::files::AtomicFile;
use poolcast_base::output;
use poolcast_cli::ProvisionReplayArgs;
use poolcast_provision::config::{NodeCount, ProvisionConfig, SchedulerKind};
use poolcast_provision::replay::{
    DatedNodes, PublishedFiles, ReplayComparison, ReplayedTrace, compare_starts, replay_published,
    replay_slurm,
};
use poolcast_provision::trace::{JobTrace, TraceZone};
use poolcast_sweep::config::Config;

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Simulates the trace, and prints the comparison.
pub(super) fn run(args: &ProvisionReplayArgs) -> Result<u8> {
    let config = Config::load(
        args.config.as_deref(),
        &flags([
            ("provision.scheduler", flag(&args.scheduler)),
            ("provision.nodes", flag(&args.nodes)),
            ("provision.max_jobs_per_user", flag(&args.max_jobs_per_user)),
        ]),
    )?;
    let provision = config.provision;
    let trace = JobTrace::open(&args.trace)?;
    let since_s = since_s(args, &trace.zone)?;

    let replayed = match provision.scheduler {
        SchedulerKind::Published => simulate_published(args, &provision, &trace)?,
        SchedulerKind::Slurm => {
            reject_published_files(args)?;
            replay_slurm(&trace, &slurm_replay(&provision, &trace.zone)?)?
        }
    };
    if let Some(path) = &args.starts {
        write_starts(path, &trace, &replayed)?;
    }

    let comparison = compare_starts(&trace, &replayed, since_s);
    if args.json {
        let printed = PrintedReplay::of(provision.scheduler, &replayed, &comparison);
        output::print_json(SCHEMA_VERSION, &printed)?;
    } else {
        output::print(&text::replay::settings(&trace, &replayed))?;
        output::print(&text::replay::comparison(&comparison))?;
    }
    Ok(EXIT_DONE)
}

fn since_s(args: &ProvisionReplayArgs, zone: &TraceZone) -> Result<i64> {
    match &args.since {
        None => Ok(i64::MIN),
        Some(since) => parse_key_time("--since", since, zone),
    }
}

fn reject_published_files(args: &ProvisionReplayArgs) -> Result<()> {
    for (given, name) in [
        (&args.slurm_config, "--slurm-config"),
        (&args.backfill_config, "--backfill-config"),
    ] {
        if given.is_some() {
            bail!(hinted(
                format!("`{name}` is for the published scheduler"),
                "add `--scheduler published`; the keys under `provision` configure Slurm"
            ));
        }
    }
    Ok(())
}

fn simulate_published(
    args: &ProvisionReplayArgs,
    provision: &ProvisionConfig,
    trace: &JobTrace,
) -> Result<ReplayedTrace> {
    let files = PublishedFiles::read(
        args.slurm_config.as_deref(),
        args.backfill_config.as_deref(),
    )?;
    let nodes = match &provision.nodes {
        Some(NodeCount::Number(nodes)) => Some(*nodes),
        Some(NodeCount::Dated(_)) => bail!(hinted(
            "the published scheduler has a constant number of nodes, but `provision.nodes` has dates",
            "give a constant number with `--nodes N`"
        )),
        None => files.slurm.nodes.or(trace.summary.cluster_nodes()),
    };
    replay_published(trace, &files, nodes.unwrap_or(PUBLISHED_NODES))
}

/// Number of nodes of the published scheduler, if neither its files nor the trace name one.
const PUBLISHED_NODES: u32 = 88;

/// Writes `ID<TAB>2023-03-01T00:00:00<TAB>0` for each job that started, in the order of submission.
/// The last column is 1 for a backfilled job.
fn write_starts(path: &Path, trace: &JobTrace, replayed: &ReplayedTrace) -> Result<()> {
    let mut file = AtomicFile::new(path)?;
    let mut lines = BufWriter::new(file.file());
    for (place, job) in trace.jobs.iter().enumerate() {
        let Some(wall_s) = replayed.start_wall_s(trace, place) else {
            continue;
        };
        let start = jiff::Timestamp::from_second(wall_s)?.strftime("%Y-%m-%dT%H:%M:%S");
        let passed = u8::from(replayed.is_backfilled[place]);
        writeln!(lines, "{}\t{start}\t{passed}", job.id)?;
    }
    lines.flush()?;
    drop(lines);
    file.commit(path)
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct PrintedReplay<'a> {
    /// The scheduler that was simulated.
    scheduler: SchedulerKind,
    /// Begin of the simulation, epoch seconds.
    begin_s: i64,
    /// Number of nodes of the cluster, by date.
    nodes: &'a [DatedNodes],
    /// Maximum number of running jobs per user.
    max_jobs_per_user: Option<u32>,
    /// Jobs that started in the simulation.
    started: usize,
    /// Jobs among them that started before a job ahead of them in the queue.
    backfilled: usize,
    /// Jobs that ran when the simulation began.
    running_at_begin: usize,
    /// Number of nodes by which these exceed the available ones.
    excess_nodes: u32,
    /// Jobs that need more nodes than the cluster ever has.
    too_large: usize,
    #[serde(flatten)]
    comparison: &'a ReplayComparison,
}

impl PrintedReplay<'_> {
    fn of<'a>(
        scheduler: SchedulerKind,
        replayed: &'a ReplayedTrace,
        comparison: &'a ReplayComparison,
    ) -> PrintedReplay<'a> {
        PrintedReplay {
            scheduler,
            begin_s: replayed.begin_s,
            nodes: &replayed.nodes,
            max_jobs_per_user: replayed.max_jobs_per_user,
            started: replayed.started(),
            backfilled: replayed.backfilled(),
            running_at_begin: replayed.running_at_begin,
            excess_nodes: replayed.excess_nodes,
            too_large: replayed.too_large,
            comparison,
        }
    }
}
