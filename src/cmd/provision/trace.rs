//! `poolcast provision trace`: turns exports of a cluster's accounting into a trace.

use anyhow::Result;
use serde::Serialize;

use crate::cmd::logs::user_salt;
use crate::cmd::text;
use poolcast_base::error::EXIT_DONE;
use poolcast_base::salt::{self, OwnerSalt};
use poolcast_base::{manifest, output};
use poolcast_cli::ProvisionTraceArgs;
use poolcast_provision::trace::{
    JobTrace, ReadTrace, TRACE_FORMAT, TraceOptions, TraceStatistics, TraceSummary, TraceZone,
    read_trace, trace_key, trace_statistics, write_trace,
};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Reads the files, writes the trace and prints the counts.
pub(super) fn run(args: &ProvisionTraceArgs) -> Result<u8> {
    make(args)?;
    let trace = JobTrace::open(&args.out)?;
    let statistics = args.stats.then(|| trace_statistics(&trace));
    if args.output.json {
        output::print_json(
            SCHEMA_VERSION,
            &PrintedTrace {
                summary: &trace.summary,
                statistics,
            },
        )?;
        return Ok(EXIT_DONE);
    }
    output::print(&text::trace::summary(&trace.summary))?;
    if let Some(statistics) = &statistics {
        output::print(&text::trace::statistics(statistics))?;
    }
    Ok(EXIT_DONE)
}

/// Reads the files, and writes the trace.
fn make(args: &ProvisionTraceArgs) -> Result<()> {
    let zone = args.tz.as_deref().map(TraceZone::named).transpose()?;
    let options = TraceOptions {
        zone,
        procs_per_node: args.procs_per_node,
    };
    let salt = user_salt()?;
    let read = read_trace(&args.files, &options, &salt)?;
    write(args, &read, &trace_key(&read, &options)?, &salt)
}

/// Writes the trace, unless it exists already.
fn write(args: &ProvisionTraceArgs, read: &ReadTrace, key: &str, salt: &OwnerSalt) -> Result<()> {
    let is_done = manifest::finished_key(&args.out, TRACE_FORMAT).as_deref() == Some(key);
    if is_done && !args.earlier.overwrite {
        output::note_nothing_new(&args.out, "this trace");
        return Ok(());
    }
    let mut summary = TraceSummary::of(&read.jobs, read.sources.clone(), &read.zone);
    summary.owner_salt_digest = salt::digest(salt.text());
    summary.repeated_rows = read.repeated_rows;
    write_trace(&read.jobs, &summary, key, &args.out, args.earlier.overwrite)
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct PrintedTrace<'a> {
    #[serde(flatten)]
    summary: &'a TraceSummary,
    /// Statistics of the cluster, with `--stats`. Shares are of 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    statistics: Option<TraceStatistics>,
}
