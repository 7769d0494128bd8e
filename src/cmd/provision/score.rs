//! `poolcast provision score`: compares earlier forecasts of `provision start` with the starts of their jobs.

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::live_sources::LivePast;
use crate::cmd::logs::user_salt;
use crate::cmd::text;
use poolcast_base::error::{EXIT_DONE, hinted};
use poolcast_base::{output, user_directories};
use poolcast_cli::ProvisionScoreArgs;
use poolcast_slurm::live::{StartJournal, StartRecord};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Reads the journal of the user and the accounting, and prints the comparison.
pub(super) fn run(args: &ProvisionScoreArgs) -> Result<u8> {
    let dir = user_directories::state_directory().with_context(|| {
        hinted(
            "there is no directory for the journal of forecasts",
            "set HOME or XDG_STATE_HOME",
        )
    })?;
    let journal = StartJournal::read(&dir)?;
    let past = LivePast::find(args.trace.as_deref(), true, &user_salt()?, &journal)?;
    // A job that a trace shows as pending may have started since.
    let now_s = args
        .trace
        .is_none()
        .then(|| jiff::Timestamp::now().as_second());
    let record = journal.record(&past.jobs, now_s);

    if args.json {
        let printed = PrintedScore {
            record: &record,
            missing: &past.missing,
        };
        output::print_json(SCHEMA_VERSION, &printed)?;
    } else {
        output::print(&text::start::record(&record, &past.zone))?;
        past.note_missing();
    }
    Ok(EXIT_DONE)
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct PrintedScore<'a> {
    #[serde(flatten)]
    record: &'a StartRecord,
    /// Missing inputs, in words.
    missing: &'a [String],
}
