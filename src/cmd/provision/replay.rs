//! `poolcast provision replay`: a trace → simulated starts beside logged ones.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use crate::cli::ProvisionReplayArgs;
use crate::cmd::flags::{flag, flags};
use crate::cmd::text;
use crate::config::{Config, NodeCount, ProvisionConfig, SchedulerKind};
use crate::error::{EXIT_DONE, hinted};
use crate::provision::replay::{
    DatedNodes, PublishedFiles, ReplayComparison, ReplayedTrace, SlurmReplay, compare_starts,
    replay_published, replay_slurm,
};
use crate::provision::trace::{JobTrace, TraceZone};
use crate::{files, output};

/// The version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Simulates the trace, prints the comparison.
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
            refuse_published_files(args)?;
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
    let Some(since) = &args.since else {
        return Ok(i64::MIN);
    };
    zone.moment_s(since).with_context(|| {
        hinted(
            format!("`--since {since}` is no date"),
            "write `2022-11-10`, or `2022-11-10T12:00`",
        )
    })
}

fn refuse_published_files(args: &ProvisionReplayArgs) -> Result<()> {
    for (given, name) in [
        (&args.slurm_config, "--slurm-config"),
        (&args.backfill_config, "--backfill-config"),
    ] {
        if given.is_some() {
            bail!(hinted(
                format!("`{name}` is for the published scheduler"),
                "add `--scheduler published`; for Slurm, the keys under `provision` say how it is set"
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
            "the published scheduler has the same number of nodes all the time",
            "give it with `--nodes`"
        )),
        None => files.slurm.nodes,
    };
    replay_published(trace, &files, nodes.unwrap_or(PUBLISHED_NODES))
}

/// How many nodes the published scheduler has where its files say none.
const PUBLISHED_NODES: u32 = 88;

/// What the configuration says, in seconds.
fn slurm_replay(provision: &ProvisionConfig, zone: &TraceZone) -> Result<SlurmReplay> {
    let mut nodes = Vec::new();
    match &provision.nodes {
        None => {}
        Some(NodeCount::Number(number)) => nodes.push(DatedNodes {
            from_s: 0,
            nodes: *number,
        }),
        Some(NodeCount::Dated(steps)) => {
            for (date, number) in steps {
                let from_s = zone.moment_s(date);
                let from_s = from_s.with_context(|| format!("`{date}` is no date"))?;
                nodes.push(DatedNodes {
                    from_s,
                    nodes: *number,
                });
            }
            nodes.sort_by_key(|step| step.from_s);
        }
    }
    Ok(SlurmReplay {
        nodes,
        max_jobs_per_user: provision.max_jobs_per_user,
        bf_interval_s: provision.bf_interval.into(),
        bf_resolution_s: provision.bf_resolution.into(),
        bf_window_s: i64::from(provision.bf_window) * 60,
        bf_max_job_test: provision.bf_max_job_test,
        priority_weight_age: provision.priority_weight_age.into(),
        priority_weight_job_size: provision.priority_weight_job_size.into(),
        priority_max_age_s: i64::from(provision.priority_max_age) * 86_400,
    })
}

/// Writes `ID<TAB>2023-03-01T00:00:00<TAB>0` for each job that started, by when they were submitted.
fn write_starts(path: &Path, trace: &JobTrace, replayed: &ReplayedTrace) -> Result<()> {
    let mut lines = String::new();
    for (place, wall_s) in replayed.starts_wall_s.iter().enumerate() {
        let Some(wall_s) = wall_s else { continue };
        let start = jiff::Timestamp::from_second(*wall_s)?.strftime("%Y-%m-%dT%H:%M:%S");
        let passed = u8::from(replayed.is_backfilled[place]);
        writeln!(lines, "{}\t{start}\t{passed}", trace.jobs[place].id)?;
    }
    files::write_atomic(path, lines.as_bytes())
}

/// What `--json` prints.
#[derive(Serialize)]
struct PrintedReplay<'a> {
    scheduler: SchedulerKind,
    begin_s: i64,
    nodes: &'a [DatedNodes],
    max_jobs_per_user: Option<u32>,
    started: usize,
    backfilled: usize,
    running_at_begin: usize,
    excess_nodes: u32,
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
