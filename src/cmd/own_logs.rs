//! Finds the logs of the user's own jobs: those that the jobs in the queue and in the history name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use poolcast_advice::{LOG_ATTRIBUTES, logs_of_jobs};
use poolcast_base::error::hinted;
use poolcast_base::output;
use poolcast_collect::is_log;
use poolcast_sweep::condor;

/// Value of `--log` that stands for the logs of the user's own jobs.
const MINE: &str = "mine";

/// Returns `logs` with `mine` replaced by the logs of the user's own jobs.
///
/// # Errors
/// Fails if neither the queue nor the history can be read, or if they name no readable log.
pub(super) fn expand_own_logs(logs: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for log in logs {
        if log == Path::new(MINE) {
            all.extend(own_logs()?);
        } else {
            all.push(log.clone());
        }
    }
    Ok(all)
}

fn own_logs() -> Result<Vec<PathBuf>> {
    let queued = condor::read_own_jobs(LOG_ATTRIBUTES, |output| logs_of_jobs(output));
    let ended = user_name().and_then(|user| {
        condor::read_own_history(&user, LOG_ATTRIBUTES, |output| logs_of_jobs(output))
    });
    let named: BTreeSet<PathBuf> = match (queued, ended) {
        (Ok(mut queued), Ok(ended)) => {
            queued.extend(ended);
            queued
        }
        (Ok(found), Err(error)) | (Err(error), Ok(found)) => {
            output::note(&format!("note: not all own logs are known: {error:#}"));
            found
        }
        (Err(error), Err(_)) => {
            return Err(error.context(hinted(
                "cannot find your logs",
                "run this on an access point, or name the logs: --log DIR",
            )));
        }
    };

    let count = named.len();
    let logs: Vec<PathBuf> = named.into_iter().filter(|log| is_log(log)).collect();
    ensure!(
        !logs.is_empty(),
        hinted(
            format!(
                "your jobs in the queue and in the history name {}, none of which can be read",
                output::counted(count, "log")
            ),
            "write `log = job.log` into the submit file of the next job"
        )
    );
    if logs.len() < count {
        let missing = output::counted(count - logs.len(), "log");
        output::note(&format!("note: {missing} of your jobs cannot be read"));
    }
    Ok(logs)
}

/// Returns the name of this user: from the environment, or else, as services may have none, from
/// `id`, which also knows the users of a directory server.
pub(super) fn user_name() -> Result<String> {
    let mut names = ["USER", "LOGNAME"].into_iter();
    if let Some(name) = names.find_map(|name| std::env::var(name).ok()) {
        // HTCondor's programs get the name as an argument, and no user's name begins like an option.
        ensure!(!name.starts_with('-'), "`{name}` is not the name of a user");
        return Ok(name);
    }
    let id = Command::new("id").arg("-un").output();
    let id = id.context("neither USER nor LOGNAME is set, and `id` cannot be started")?;
    let name = String::from_utf8(id.stdout).context("`id -un` prints no name")?;
    ensure!(!name.trim().is_empty(), "`id -un` prints no name");
    Ok(name.trim().to_owned())
}
