//! Finds the run, the jobs, the logs and the queue that the arguments of `advise` name. Unnamed
//! ones come from the current directory.

use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::cli::AdviseArgs;
use poolcast_base::error::hinted;
use poolcast_base::{files, manifest};
use poolcast_holds::advice::{JobQueue, JobSelection, QUEUE_ATTRIBUTES};
use poolcast_holds::answers::LearnedAnswers;
use poolcast_holds::training::RunModels;
use poolcast_sweep as sweep;
use poolcast_sweep::condor;
use poolcast_sweep::config::Config;

/// Maximum size of a queue that is read, in bytes. It is read in parts.
const MAX_QUEUE_BYTES: u64 = 64 << 30;

/// Maximum number of configuration files that are examined in a directory.
const MAX_CONFIGURATIONS: usize = 100;

/// Advice for a user if no log is found.
const LOG_HINT: &str =
    "name the log: --log LOG; `condor_config_val EVENT_LOG` prints that of an access point";

/// Formats of artefacts that are models.
const MODEL_FORMATS: [&str; 3] = ["run", "fit", "ensemble"];

/// The inputs of `advise`.
pub(super) struct AdviceSources {
    /// The directory that the user named, or that was found.
    pub(super) results: PathBuf,
    /// The run in that directory.
    pub(super) run: PathBuf,
    /// The models of the run.
    pub(super) models: RunModels,
    /// The model for questions in the middle of a hold, if the results have one.
    pub(super) answers: Option<LearnedAnswers>,
    /// The configuration of the run.
    pub(super) config: Config,
    /// The logs that the user named, or else the logs of the run.
    pub(super) logs: Vec<PathBuf>,
    /// The jobs that the user named.
    pub(super) selections: Vec<JobSelection>,
}

impl AdviceSources {
    /// Finds the inputs that `args` name.
    ///
    /// # Errors
    /// Fails if there is no run or no log, or if a job cannot be parsed.
    pub(super) fn find(args: &AdviseArgs) -> Result<AdviceSources> {
        let mut jobs: Vec<&str> = args.jobs.iter().map(String::as_str).collect();
        let mut named = args.run.as_deref();
        // A first argument that is a job id, and not an existing path, is a job.
        if let Some(text) = named.and_then(Path::to_str)
            && !Path::new(text).exists()
            && text.parse::<JobSelection>().is_ok()
        {
            jobs.insert(0, text);
            named = None;
        }
        let selections: Vec<JobSelection> =
            jobs.iter().map(|job| job.parse()).collect::<Result<_>>()?;

        let results = match named {
            Some(run) => condor::results_directory(run)?,
            None => find_results()?,
        };
        let run = sweep::resolve_run(&results)?;
        let models = RunModels::open(&run)?;
        let answers = LearnedAnswers::open(&sweep::answers_dir(&results))?;
        let config = Config::read(&run)?;
        let logs = match &args.logs[..] {
            [] => configured_logs(&config, &results)?,
            named => named.to_vec(),
        };
        Ok(AdviceSources {
            results,
            run,
            models,
            answers,
            config,
            logs,
            selections,
        })
    }
}

/// Finds the logs of the run in this directory, and the configuration of that run.
///
/// # Errors
/// Fails if there is no such run, or if none of its logs exists.
pub(super) fn find_run_logs() -> Result<(Config, Vec<PathBuf>)> {
    let results = find_results().map_err(|error| hinted(error.to_string(), LOG_HINT))?;
    let config = Config::read(&sweep::resolve_run(&results)?)?;
    let logs = configured_logs(&config, &results)?;
    Ok((config, logs))
}

/// Finds the run whose model `advise` uses in this directory; `None` if there is none, or several.
pub(super) fn find_run_here() -> Option<PathBuf> {
    let results = find_results().ok()?;
    sweep::resolve_run(&results).ok()
}

/// Finds the run of this directory: either the directory itself, or the `out` of one of its
/// configuration files.
fn find_results() -> Result<PathBuf> {
    if is_result(Path::new(".")) {
        return Ok(PathBuf::from("."));
    }

    let (mut found, mut looked): (Vec<PathBuf>, Vec<PathBuf>) = (Vec::new(), Vec::new());
    let default_out = PathBuf::from("out");
    for out in configured_outputs()?.into_iter().chain([default_out]) {
        if looked.contains(&out) {
            continue;
        }
        if is_result(&out) {
            found.push(out.clone());
        }
        looked.push(out);
    }

    let shown = |paths: &[PathBuf]| {
        let names: Vec<String> = paths
            .iter()
            .map(|path| format!("`{}`", path.display()))
            .collect();
        names.join(", ")
    };
    match &found[..] {
        [only] => Ok(only.clone()),
        [] => Err(hinted(
            format!(
                "there is no run here: looked in this directory, the `out` of its configuration files, and {}",
                shown(&looked)
            ),
            "name one: poolcast advise RUN; `poolcast run --log LOG` creates one",
        )
        .into()),
        several => Err(hinted(
            format!("there are several runs here: {}", shown(several)),
            format!("name one: poolcast advise {}", several[0].display()),
        )
        .into()),
    }
}

/// Returns true if `dir` is a run, or a sweep that has chosen its best trial.
fn is_result(dir: &Path) -> bool {
    let format = manifest::format_name(dir).ok().flatten();
    let is_model = format.is_some_and(|format| MODEL_FORMATS.contains(&format.as_str()));
    is_model || dir.join(sweep::BEST_FILE).is_file()
}

/// The output directories of the configuration files in this directory, in the order of the file
/// names. Files that are not valid configurations are skipped.
fn configured_outputs() -> Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = fs_err::read_dir(".")?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|end| end == "yaml" || end == "yml")
        })
        .collect();
    paths.sort();
    paths.truncate(MAX_CONFIGURATIONS);

    let mut outs = Vec::new();
    for path in paths {
        let name = path.strip_prefix(".").unwrap_or(&path);
        if let Ok(config) = Config::load(Some(name), &std::collections::BTreeMap::new()) {
            outs.push(config.out);
        }
    }
    Ok(outs)
}

/// The logs that the model was made from. It is an error if one of them is missing.
fn configured_logs(config: &Config, results: &Path) -> Result<Vec<PathBuf>> {
    ensure!(
        !config.logs.is_empty(),
        hinted(
            format!(
                "the configuration of `{}` names no log to advise on",
                results.display()
            ),
            LOG_HINT
        )
    );
    for log in &config.logs {
        ensure!(
            log.exists(),
            hinted(
                format!(
                    "cannot find `{}`, the log that `{}` was made from",
                    log.display(),
                    results.display()
                ),
                LOG_HINT
            )
        );
    }
    Ok(config.logs.clone())
}

/// Reads the queue that `named` refers to: a file, `-` for stdin, or `now` for the queue of this
/// access point.
///
/// # Errors
/// Fails if the file cannot be read or parsed, or if the query fails.
pub(super) fn read_queue(named: &str) -> Result<JobQueue> {
    let queue = match named {
        "now" => condor::read_held_jobs(QUEUE_ATTRIBUTES, None, |output| JobQueue::read(output)),
        "-" => JobQueue::read(std::io::stdin().lock().take(MAX_QUEUE_BYTES)),
        path => {
            let file = files::open_regular(Path::new(path), MAX_QUEUE_BYTES)?;
            JobQueue::read(BufReader::new(file))
        }
    };
    queue.with_context(|| format!("cannot use the queue `{named}`"))
}
