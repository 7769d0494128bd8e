//! `poolcast track`: what a run, a sweep or a DAG has left → an experiment tracker, or its files.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::signals::stop_signal;
use crate::cli::{ExportName, TrackArgs};
use crate::error::EXIT_DONE;
use crate::output::{self, counted};
use crate::tracking::{
    ExportFormat, SendTime, SentSummary, TrackedSource, export_runs, preview_to_wandb,
    send_to_wandb,
};

/// The version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// What is printed as JSON.
#[derive(Serialize)]
struct SentDocument {
    sent: Vec<SentSummary>,
}

/// Sends the runs, or writes files of them.
pub fn run(args: &TrackArgs) -> Result<u8> {
    if let (Some(name), Some(out)) = (args.export, &args.out) {
        return export(&args.dir, name, out);
    }
    if args.dry_run {
        return print_requests(&args.dir);
    }

    let stop = stop_signal()?;
    let time = SendTime {
        watch: args.watch,
        limit: args.seconds.map(Duration::from_secs),
    };
    let sent = send_to_wandb(&args.dir, time, stop)?;
    for note in &sent.notes {
        output::note(note);
    }
    if args.json {
        let document = SentDocument { sent: vec![sent] };
        output::print_json(SCHEMA_VERSION, &document)?;
    } else {
        output::print(&sent_line(&sent))?;
    }
    Ok(EXIT_DONE)
}

/// Writes files of the runs, and says of how many.
fn export(dir: &Path, name: ExportName, out: &Path) -> Result<u8> {
    let format = match name {
        ExportName::Wandb => ExportFormat::Wandb,
        ExportName::Tensorboard => ExportFormat::Tensorboard,
    };
    let exported = export_runs(&TrackedSource::open(dir)?, format, out)?;
    if exported.left_out > 0 {
        output::note(&format!(
            "{} not written: they go on, and W&B takes a file without an end for a run that has failed",
            counted(exported.left_out, "run")
        ));
    }
    output::print(&format!(
        "{} written to {}\n",
        counted(exported.written, "run"),
        crate::escape::path(out)
    ))?;
    Ok(EXIT_DONE)
}

/// Prints each request, one document a line.
fn print_requests(dir: &Path) -> Result<u8> {
    let source = TrackedSource::open(dir)?;
    preview_to_wandb(&source, |request| output::print(&format!("{request}\n")))?;
    Ok(EXIT_DONE)
}

fn sent_line(sent: &SentSummary) -> String {
    format!(
        "{} with {} sent to {}: {} ended, {} running\n",
        counted(sent.runs, "run"),
        counted(sent.epochs, "epoch"),
        crate::escape::value(&sent.to),
        output::with_commas(sent.ended as u64),
        output::with_commas(sent.running as u64),
    )
}
