//! The configuration of `poolcast learn` and `poolcast run`, with the logs that a user names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::flags::{flag, flags};
use super::history_log::{HISTORY_LOG, write_history_log};
use super::own_logs::expand_own_logs;
use super::preparation::begin_sweep;
use super::progress::Progress;
use super::signals::{end_at_interrupt, stopped_words};
use poolcast_base::error::hinted;
use poolcast_base::files::LockedDirectory;
use poolcast_cli::RunArgs;
use poolcast_sweep::config::{Config, TrialSource};
use poolcast_sweep::{EarlierSweep, SweepFolder};

/// Prepares the run that `args` describe: reads its logs, and makes its folder. Returns the configuration, the folder
/// and its lock.
///
/// # Errors
/// Fails if a log cannot be read, or if another process works in the folder.
pub(super) fn begin_run(
    args: &RunArgs,
    progress: &Progress,
) -> Result<(Config, SweepFolder, LockedDirectory)> {
    let (config, place) = run_config(args)?;
    check_logs(&config, &place)?;
    end_at_interrupt(stopped_words(&config.out))?;
    if !args.history.is_empty() {
        write_history_log(&args.history, &config.out.join(HISTORY_LOG))?;
    }
    let earlier = match args.overwrite {
        true => EarlierSweep::Replace,
        false => EarlierSweep::ExtendOrReplace,
    };
    let (sweep, lock) = begin_sweep(&config, &place, earlier, progress)?;
    Ok((config, sweep, lock))
}

/// Loads the configuration with the overrides of the flags; returns it and its origin, for
/// messages.
fn run_config(args: &RunArgs) -> Result<(Config, String)> {
    let (file, logs) = named_logs(args);
    let logs = expand_own_logs(&logs)?;
    let logs = (!logs.is_empty()).then_some(&logs);
    let given = flags([("out", flag(&args.out)), ("logs", flag(&logs))]);
    let (mut config, place) = load_config(file, &given)?;
    if !args.history.is_empty() {
        config.logs = vec![config.out.join(HISTORY_LOG)];
    }
    Ok((config, place))
}

/// Loads the configuration in `file`, or the built-in one; returns it and its origin.
fn load_config(
    file: Option<&Path>,
    given: &BTreeMap<&'static str, serde_json::Value>,
) -> Result<(Config, String)> {
    match file {
        Some(file) => {
            let config = Config::load(Some(file), given)?;
            Ok((config, format!("`{}`", file.display())))
        }
        None => {
            let config = Config::load_built_in(given)?;
            Ok((config, "the built-in configuration".to_owned()))
        }
    }
}

/// The configuration file and the logs that the user named. A configuration may follow the logs, and
/// is then among the values of `--log`.
fn named_logs(args: &RunArgs) -> (Option<&Path>, Vec<PathBuf>) {
    let is_config = |log: &PathBuf| {
        log.extension()
            .is_some_and(|end| end == "yaml" || end == "yml")
    };
    let mut logs = args.logs.clone();
    if let Some(file) = &args.config {
        return (Some(file), logs);
    }
    let file = args.logs.iter().find(|log| is_config(log));
    if let Some(file) = file {
        logs.retain(|log| log != file);
    }
    (file.map(PathBuf::as_path), logs)
}

/// Rejects a configuration without logs, because only logs have jobs to advise on.
fn check_logs(config: &Config, place: &str) -> Result<()> {
    let named = match config.trial_source() {
        TrialSource::Logs => return Ok(()),
        TrialSource::Tables => "tables",
        TrialSource::WaitSamples => "samples of waits",
        TrialSource::Command => "a program",
    };
    Err(hinted(
        format!("{place} names {named}, but advice is about the jobs of logs"),
        "use `poolcast sweep init` and `poolcast sweep run`",
    )
    .into())
}
