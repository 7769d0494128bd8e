//! An attempt at a trial of the user's program: one process, in the attempt's own directory until
//! the attempt counts.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde_json::{Map, Value, json};

use super::command_line::{CommandPlace, command_line};
use super::deadline::{AttemptDeadline, AttemptError};
use super::python_text::{python_json, yaml_json};
use super::report_reader::ReportReader;
use super::trial_process::{self, TrialProcess};
use crate::config::{CommandConfig, Config};
use crate::plan::schedule;
use crate::plan::{EarlierTrial, ReportedValues, TrialConfig, TrialRow};
use poolcast_base::error::EXIT_CHECKPOINTED;
use poolcast_base::{escape, files, manifest};
use poolcast_queue::{Queue, TrialAttempt};

/// The output of the program, in the trial's directory.
const OUTPUT_FILE: &str = "output.log";

/// The parameters of the trial as JSON, in its directory.
const PARAMETERS_FILE: &str = "parameters.json";

/// The parameters in the form that the `wandb` library reads, in the trial's directory.
const WANDB_PARAMETERS_FILE: &str = "wandb-parameters.yaml";

/// The file that the program may report to, in the trial's directory.
const REPORT_FILE: &str = "report.jsonl";

/// Number of last lines of its output that are kept of a program that failed.
const TAIL_LINES: usize = 50;

/// Maximum size of the part of the output that is read for its last lines, and maximum length of
/// each.
const TAIL_BYTES: u64 = 64 << 10;
const MAX_TAIL_CHARS: usize = 500;

/// Maximum number of names in a message.
const MAX_NAMES: usize = 5;

/// Maximum number of times that a program may exit with a checkpoint.
const MAX_CHECKPOINTS: usize = 1000;

/// Shortest and longest time between two looks at a program.
const MIN_WAIT: Duration = Duration::from_millis(2);
const MAX_WAIT: Duration = Duration::from_millis(100);

/// Ends the programs on this machine whose workers have died: their trials will be begun again.
///
/// # Errors
/// Fails if the directory of `queue` cannot be read.
pub(crate) fn end_orphans(queue: &Queue) -> Result<()> {
    let dirs = queue.attempt_dirs()?.into_iter();
    let dirs = dirs.map(std::path::absolute).collect::<Result<_, _>>()?;
    trial_process::end_orphans(&dirs);
    Ok(())
}

/// An attempt at a trial of a program, for a queue.
pub(crate) struct CommandAttempt<'a> {
    pub(crate) attempt: &'a TrialAttempt<'a>,
    /// The attempt's own directory.
    pub(crate) dir: PathBuf,
    /// The trials that this one learns from.
    pub(crate) earlier: Vec<EarlierTrial>,
    pub(crate) trial: &'a TrialConfig,
    pub(crate) command: &'a CommandConfig,
    pub(crate) deadline: AttemptDeadline<'a>,
}

/// The way in which a program ended.
enum ProgramEnd {
    /// On its own.
    Exited(ExitStatus),
    /// The sweep ended it, because others were better.
    Terminated,
    /// The deadline of the attempt has passed.
    Stopped,
}

impl CommandAttempt<'_> {
    /// Runs the program until it ends or its deadline has passed, and records its report in `row`.
    ///
    /// # Errors
    /// Fails if it was stopped, if it exited with another code than 0 or did not report the metric,
    /// and on a full disk.
    pub(crate) fn run(&self, row: &mut TrialRow) -> Result<(), AttemptError> {
        let metric = self.config().wandb.sweep.metric.reported.clone();
        let [file, log] = [REPORT_FILE, OUTPUT_FILE].map(|name| self.file(name));
        let mut reader = ReportReader::new(metric, &file, &self.dir, &log);
        let mut reported = ReportedValues::default();
        let key = self.begin(row)?;
        let end = self.run_program(&key, &mut reader, &mut reported)?;

        let report = reader.report();
        reported.reports = report.reports;
        reported.last = report.last.clone();
        let outcome = self.outcome(&end, &reader, &mut reported);
        // A program that failed is not compared by what it reported before.
        let value = report.value.filter(|_| outcome.is_ok());
        row.set_report(value, report.values.clone(), reported);
        outcome
    }

    /// Makes the directory of the attempt. Returns the digest of everything that determines the trial,
    /// and stores it in `row`.
    fn begin(&self, row: &mut TrialRow) -> Result<String> {
        fs_err::create_dir_all(&self.dir)?;
        self.config().write(&self.dir)?;
        // A folder that this machine does not see is not the fault of the trial.
        fs_err::metadata(&self.command.directory)?;
        let key = manifest::key(&(self.command, self.config().seed))?;
        row.key = Some(key.clone());
        Ok(key)
    }

    fn config(&self) -> &Config {
        &self.trial.written
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Runs the program, again after each checkpoint, until it ends.
    fn run_program(
        &self,
        key: &str,
        reader: &mut ReportReader,
        reported: &mut ReportedValues,
    ) -> Result<ProgramEnd> {
        let values = self.command.values()?;
        let line = self.prepare(&values)?;
        let variables = self.variables(key);
        loop {
            let directory = &self.command.directory;
            let log = self.file(OUTPUT_FILE);
            let process = TrialProcess::start(&line, directory, &self.dir, &log, &variables)?;
            match self.follow(process, reader)? {
                ProgramEnd::Exited(status)
                    if status.code() == Some(EXIT_CHECKPOINTED.into())
                        && reported.checkpoints < MAX_CHECKPOINTS =>
                {
                    reported.checkpoints += 1;
                }
                end => return Ok(end),
            }
        }
    }

    /// Writes the files with the parameters, and returns the command line.
    fn prepare(&self, values: &Map<String, Value>) -> Result<Vec<String>> {
        let json_file = self.file(PARAMETERS_FILE);
        files::write_atomic(&json_file, python_json(values).as_bytes())?;

        let mut for_wandb = Map::from_iter([("wandb_version".to_owned(), json!(1))]);
        for (name, value) in values {
            for_wandb.insert(name.clone(), json!({"value": value}));
        }
        let text = yaml_json(&for_wandb) + "\n";
        files::write_atomic(&self.file(WANDB_PARAMETERS_FILE), text.as_bytes())?;

        let place = CommandPlace {
            interpreter: interpreter(),
            json_file: &json_file,
            variable: &|name| std::env::var(name).ok(),
        };
        command_line(self.command, values, place)
    }

    /// The environment variables of the program. A variable of W&B that the user has set stays.
    fn variables(&self, key: &str) -> Vec<(String, String)> {
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let trial = self.attempt.entry.next_item().trial;
        let name = format!("trial-{trial:04}");
        let mut variables = vec![
            ("POOLCAST_TRIAL".to_owned(), trial.to_string()),
            (
                "POOLCAST_PARAMETERS".to_owned(),
                shown(&self.file(PARAMETERS_FILE)),
            ),
            ("POOLCAST_REPORT".to_owned(), shown(&self.file(REPORT_FILE))),
            (
                "WANDB_SWEEP_PARAM_PATH".to_owned(),
                shown(&self.file(WANDB_PARAMETERS_FILE)),
            ),
            ("WANDB_DIR".to_owned(), shown(&self.dir)),
            // Unique, so that the runs of several sweeps can be sent to one project.
            ("WANDB_RUN_ID".to_owned(), format!("{name}-{key:.8}")),
        ];
        let wandb = &self.config().wandb;
        let defaults = [
            ("WANDB_MODE", Some("offline".to_owned())),
            ("WANDB_NAME", Some(name)),
            ("WANDB_RUN_GROUP", Some(wandb.sweep.name.clone())),
            ("WANDB_ENTITY", wandb.entity.clone()),
            ("WANDB_PROJECT", wandb.project.clone()),
            // Its reports are then read while it runs.
            ("PYTHONUNBUFFERED", Some("1".to_owned())),
            (
                "WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL",
                Some("1".to_owned()),
            ),
        ];
        for (name, value) in defaults {
            if let Some(value) = value.filter(|_| std::env::var_os(name).is_none()) {
                variables.push((name.to_owned(), value));
            }
        }
        variables
    }

    /// Reads the reports of `process` until it ends, and ends it if the deadline has passed or
    /// others are better.
    fn follow(&self, mut process: TrialProcess, reader: &mut ReportReader) -> Result<ProgramEnd> {
        let mut known = reader.report().reports;
        let mut wait = MIN_WAIT;
        loop {
            let exited = process.try_wait()?;
            reader.read(exited.is_some())?;
            if let Some(status) = exited {
                return Ok(ProgramEnd::Exited(status));
            }
            if self.deadline.has_passed() {
                process.stop();
                return Ok(ProgramEnd::Stopped);
            }

            let report = reader.report();
            if report.reports > known {
                known = report.reports;
                self.attempt.report_epoch(known, report.value);
                let values = report.values.iter().copied().flatten().collect();
                if schedule::is_behind(self.config(), &self.earlier, values) {
                    process.stop();
                    return Ok(ProgramEnd::Terminated);
                }
            }
            std::thread::sleep(wait);
            wait = (2 * wait).min(MAX_WAIT);
        }
    }

    /// Decides whether the trial has succeeded, and keeps the last lines of the output otherwise.
    fn outcome(
        &self,
        end: &ProgramEnd,
        reader: &ReportReader,
        reported: &mut ReportedValues,
    ) -> Result<(), AttemptError> {
        let status = match end {
            ProgramEnd::Terminated => {
                reported.is_terminated = true;
                return Ok(());
            }
            ProgramEnd::Stopped => {
                reported.log_tail = self.log_tail();
                return Err(AttemptError::Stopped(anyhow!("the program was stopped")));
            }
            ProgramEnd::Exited(status) => *status,
        };

        reported.exit_code = status.code();
        let error = if status.success() {
            match self.missing_metric(reader, reported) {
                None => return Ok(()),
                Some(error) => error,
            }
        } else {
            AttemptError::Other(anyhow!("{}", exit_text(status)))
        };
        reported.log_tail = self.log_tail();
        Err(match (error, reported.log_tail.last()) {
            (AttemptError::Other(error), Some(last)) if !status.success() => {
                AttemptError::Other(anyhow!("{error}: {last}"))
            }
            (error, _) => error,
        })
    }

    /// The error of a program that has not reported the metric of the sweep, or not as a number.
    fn missing_metric(
        &self,
        reader: &ReportReader,
        reported: &ReportedValues,
    ) -> Option<AttemptError> {
        let metric = self.config().wandb.sweep.metric.reported.as_deref()?;
        let report = reader.report();
        if report.value.is_some() || report.reports > 0 {
            let error = anyhow!("the last `{metric}` that the program reported is not a number");
            return report
                .value
                .is_none()
                .then_some(AttemptError::NonFinite(error));
        }
        let names: Vec<String> = reported
            .last
            .keys()
            .take(MAX_NAMES)
            .map(|name| format!("`{}`", escape::value(name)))
            .collect();
        let but = if names.is_empty() {
            "nothing".to_owned()
        } else {
            format!("only {}", names.join(", "))
        };
        Some(AttemptError::Other(anyhow!(
            "the program has not reported `{metric}`, but {but}"
        )))
    }

    /// The last lines of the output, without characters that a terminal would obey.
    fn log_tail(&self) -> Vec<String> {
        let path = self.file(OUTPUT_FILE);
        let bytes = read_end(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        let shown = |line: &&str| {
            let cut: String = line.trim_end().chars().take(MAX_TAIL_CHARS).collect();
            escape::value(&cut).into_owned()
        };
        last.iter().map(shown).collect()
    }
}

/// Reads the end of the file `path`.
fn read_end(path: &Path) -> Result<Vec<u8>> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = files::open_regular(path, u64::MAX)?;
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn exit_text(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the program exited with code {code}"),
        (None, Some(signal)) => format!("signal {signal} ended the program"),
        (None, None) => "the program ended without an exit code".to_owned(),
    }
}

/// The name of Python: `python` as for W&B, or `python3` where only that is on the path.
fn interpreter() -> &'static str {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_on_path = |name: &str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    if !is_on_path("python") && is_on_path("python3") {
        "python3"
    } else {
        "python"
    }
}
