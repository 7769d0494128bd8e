//! `poolcast track`: sends the results of a run, a sweep or a DAG to an experiment tracker, or
//! exports them as files.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Serialize;
use serde_json::Value;

use super::results_here::named_or_here;
use super::signals::stop_signal;
use poolcast_base::error::{EXIT_DONE, hinted};
use poolcast_base::output::{self, counted};
use poolcast_cli::{ExportName, TrackArgs, TrackerName};
use poolcast_sweep::config::Tracker;
use poolcast_tracking::{
    ExportFormat, SendTime, SentSummary, TrackedSource, export_runs, preview_to_mlflow,
    preview_to_wandb, send_runs,
};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// The document that `--json` prints.
#[derive(Serialize)]
struct SentDocument {
    /// The sent data, by tracker.
    sent: Vec<SentSummary>,
}

/// Sends the runs, prints the requests, or exports files.
pub fn run(args: &TrackArgs) -> Result<u8> {
    let dir = named_or_here(args.dir.as_deref())?;
    if let (Some(name), Some(out)) = (args.export, &args.out) {
        return export(&dir, name, out);
    }
    check_server(args)?;
    if args.dry_run {
        return print_requests(args, &dir);
    }

    let stop = stop_signal()?;
    let time = SendTime {
        watch: args.watch,
        limit: args.seconds.map(Duration::from_secs),
    };
    let mut sent = Vec::new();
    let mut failures = Vec::new();
    for result in send_runs(&dir, &trackers(args), args.server.as_deref(), time, &stop)? {
        match result {
            Ok(summary) => sent.push(summary),
            Err(failure) => failures.push(failure),
        }
    }
    print_sent(args, sent)?;

    // The last failure determines the exit code. The others are printed as notes.
    let Some(last) = failures.pop() else {
        return Ok(EXIT_DONE);
    };
    for failure in &failures {
        output::note(&format!("some results were not sent: {failure:#}"));
    }
    Err(last)
}

fn print_sent(args: &TrackArgs, sent: Vec<SentSummary>) -> Result<()> {
    for note in sent.iter().flat_map(|sent| &sent.notes) {
        output::note(note);
    }
    if args.json {
        return output::print_json(SCHEMA_VERSION, &SentDocument { sent });
    }
    for sent in &sent {
        output::print(&sent_line(sent))?;
    }
    Ok(())
}

/// Exports the runs as files, and prints their number.
fn export(dir: &Path, name: ExportName, out: &Path) -> Result<u8> {
    let format = match name {
        ExportName::Wandb => ExportFormat::Wandb,
        ExportName::Tensorboard => ExportFormat::Tensorboard,
    };
    let exported = export_runs(&TrackedSource::open(dir)?, format, out)?;
    if exported.left_out > 0 {
        output::note(&format!(
            "{} not written: still running, and W&B would show an unfinished file as a failed run",
            counted(exported.left_out, "run")
        ));
    }

    let shown = poolcast_base::escape::path(out);
    let next = match format {
        ExportFormat::Wandb => format!("wandb sync {shown}/offline-run-*"),
        ExportFormat::Tensorboard => format!("tensorboard --logdir {shown}"),
    };
    let runs = counted(exported.written, "run");
    output::print(&format!("{runs} written to {shown}: {next}\n"))?;
    Ok(EXIT_DONE)
}

/// The trackers that the user named, without duplicates.
fn trackers(args: &TrackArgs) -> Vec<Tracker> {
    let mut trackers = Vec::new();
    for name in &args.to {
        let tracker = match name {
            TrackerName::Wandb => Tracker::Wandb,
            TrackerName::Mlflow => Tracker::Mlflow,
        };
        if !trackers.contains(&tracker) {
            trackers.push(tracker);
        }
    }
    trackers
}

/// Rejects `--server` with several trackers, which have different servers.
fn check_server(args: &TrackArgs) -> Result<()> {
    ensure!(
        args.server.is_none() || trackers(args).len() == 1,
        hinted(
            "`--server` is the address of one tracker, but `--to` names several",
            "send to each of them with a command of its own"
        )
    );
    Ok(())
}

/// Prints each request as one line of JSON.
fn print_requests(args: &TrackArgs, dir: &Path) -> Result<u8> {
    let source = TrackedSource::open(dir)?;
    let print = |request: &Value| output::print(&format!("{request}\n"));
    let server = args.server.as_deref();
    for tracker in trackers(args) {
        match tracker {
            Tracker::Wandb => preview_to_wandb(&source, server, print)?,
            Tracker::Mlflow => preview_to_mlflow(&source, server, print)?,
        }
    }
    Ok(EXIT_DONE)
}

fn sent_line(sent: &SentSummary) -> String {
    let files = match sent.files {
        0 => String::new(),
        files => format!(" and {}", counted(files, "file")),
    };
    format!(
        "{} with {}{files} sent to {}: {} ended, {} running\n",
        counted(sent.runs, "run"),
        counted(sent.epochs, "epoch"),
        poolcast_base::escape::value(&sent.to),
        output::with_commas(sent.ended as u64),
        output::with_commas(sent.running as u64),
    )
}
