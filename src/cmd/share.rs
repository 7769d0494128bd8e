//! `poolcast share`: writes what a site contributes to the prior of other access points.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::text;
use poolcast_base::error::EXIT_DONE;
use poolcast_base::{manifest, output};
use poolcast_cli::ShareArgs;
use poolcast_events::{EVENTS_FORMAT, EventStore};
use poolcast_holds::answers::{Contribution, ContributionSummary, HoldHistory, MIN_OWNERS};
use poolcast_sweep::{condor, events_dir};

/// The JSON document: what a contribution has, and the file that has it.
#[derive(Debug, Serialize)]
struct ContributionDocument<'a> {
    /// The file that is written; `None` without `--out`.
    file: Option<&'a Path>,
    #[serde(flatten)]
    summary: &'a ContributionSummary,
}

/// Prints what the contribution has, and writes it if a file is named.
pub fn run(args: &ShareArgs) -> Result<u8> {
    let store = open_events(&args.source)?;
    let (contribution, summary) = Contribution::collect(&HoldHistory::new(&store), MIN_OWNERS);
    let file = args.out.as_deref();
    // What is shared is shown before it is written.
    if args.output.json {
        let document = ContributionDocument {
            file,
            summary: &summary,
        };
        output::print_json(text::contribution::SCHEMA_VERSION, &document)?;
    } else {
        output::print(&text::contribution::page(&summary, file))?;
    }
    if let Some(file) = file {
        contribution.write(file)?;
    }
    Ok(EXIT_DONE)
}

/// Opens the events in `dir`, or in the run or sweep in `dir`.
fn open_events(dir: &Path) -> Result<EventStore> {
    let format = manifest::format_name(dir)?;
    if format.is_some_and(|format| format == EVENTS_FORMAT.name) {
        return EventStore::open(dir);
    }
    EventStore::open(&events_dir(&condor::results_directory(dir)?))
}
