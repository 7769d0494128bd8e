//! Event logs as arguments: which logs are meant, how they are read, and what their owners are
//! hashed with.

use std::path::PathBuf;

use anyhow::Result;

use crate::eventlog::{self, ReadOptions};
use crate::output;
use crate::salt::OwnerSalt;

/// The logs to read: those that were named, and rotated generations of them.
pub(super) fn find_logs(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let all = eventlog::find_generations(named)?;
    for found in all.iter().filter(|log| !named.contains(log)) {
        output::note(&also_reading(found));
    }
    Ok(all)
}

/// Says that a log is read which was not named.
pub(super) fn also_reading(log: &std::path::Path) -> String {
    format!("also reading the rotated generation `{}`", log.display())
}

/// How to read `logs`, with what is given of the access point and the year.
pub(super) fn read_options(
    ap: Option<String>,
    year: Option<i16>,
    logs: &[PathBuf],
) -> Result<ReadOptions> {
    Ok(ReadOptions {
        ap,
        year,
        likely_ap: eventlog::likely_access_point(logs)?,
    })
}

/// What owners, who never enter a store by name, are hashed with.
pub(super) fn user_salt() -> Result<OwnerSalt> {
    let salt = OwnerSalt::for_this_user()?;
    if let Some(note) = &salt.note {
        output::note(note);
    }
    Ok(salt)
}
