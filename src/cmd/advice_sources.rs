//! What `advise` is asked with → the run, the jobs, the logs and the queue that are meant: where they
//! are not named, those of the directory that it is called in.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use poolcast_holds::advice::{JobQueue, JobSelection, QUEUE_ATTRIBUTES};
use crate::cli::AdviseArgs;
use poolcast_config::Config;
use poolcast_base::error::hinted;
use poolcast_holds::training::RunModels;
use poolcast_base::{files, manifest};
use poolcast_sweep::condor;
use poolcast_sweep as sweep;

/// The largest queue that is read.
const MOST_QUEUE_BYTES: u64 = 1 << 30;

/// So many configuration files of a directory are looked at.
const MOST_CONFIGURATIONS: usize = 100;

/// What to do where no log is found.
const LOG_HINT: &str =
    "name the log: --log LOG; `condor_config_val EVENT_LOG` names that of an access point";

/// The artefacts that are a model.
const MODEL_FORMATS: [&str; 3] = ["run", "fit", "ensemble"];

/// What `advise` works with.
pub(super) struct AdviceSources {
    /// The directory that was named or found.
    pub(super) results: PathBuf,
    /// The run in it.
    pub(super) run: PathBuf,
    /// Its models.
    pub(super) models: RunModels,
    /// The configuration of the run.
    pub(super) config: Config,
    /// Its logs, or those that were named.
    pub(super) logs: Vec<PathBuf>,
    /// The jobs that were named.
    pub(super) selections: Vec<JobSelection>,
}

impl AdviceSources {
    /// What `args` mean.
    ///
    /// # Errors
    /// Fails where there is no run or no log, and for what is no job.
    pub(super) fn find(args: &AdviseArgs) -> Result<AdviceSources> {
        let mut jobs: Vec<&str> = args.jobs.iter().map(String::as_str).collect();
        let mut named = args.run.as_deref();
        // A first argument that is a job's id, and no directory, is a job.
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
        let config = Config::read(&run)?;
        let logs = match &args.logs[..] {
            [] => logs_of_config(&config, &results)?,
            named => named.to_vec(),
        };
        Ok(AdviceSources {
            results,
            run,
            models,
            config,
            logs,
            selections,
        })
    }
}

/// The logs of the run of this directory, with its configuration.
///
/// # Errors
/// Fails where there is no such run, and where it names no log that is there.
pub(super) fn find_logs_of_run() -> Result<(Config, Vec<PathBuf>)> {
    let results = find_results().map_err(|error| hinted(error.to_string(), LOG_HINT))?;
    let config = Config::read(&sweep::resolve_run(&results)?)?;
    let logs = logs_of_config(&config, &results)?;
    Ok((config, logs))
}

/// The run of this directory: one that is here, or the `out` of a configuration file that is here.
fn find_results() -> Result<PathBuf> {
    if is_result(Path::new(".")) {
        return Ok(PathBuf::from("."));
    }

    let (mut found, mut looked): (Vec<PathBuf>, Vec<PathBuf>) = (Vec::new(), Vec::new());
    let default_out = PathBuf::from("out");
    for out in outs_of_configurations()?.into_iter().chain([default_out]) {
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
                "there is no run here: looked at this directory, the `out` of its configuration files, and {}",
                shown(&looked)
            ),
            "name one: poolcast advise RUN; `poolcast run --log LOG` makes one",
        )
        .into()),
        several => Err(hinted(
            format!("there are several runs here: {}", shown(several)),
            format!("name one: poolcast advise {}", several[0].display()),
        )
        .into()),
    }
}

/// Whether `dir` is a run, or a sweep that has chosen its best.
fn is_result(dir: &Path) -> bool {
    let format = manifest::format_name(dir).ok().flatten();
    let is_model = format.is_some_and(|format| MODEL_FORMATS.contains(&format.as_str()));
    is_model || dir.join(sweep::BEST_FILE).is_file()
}

/// Where the configuration files of this directory leave their results, in the order of their
/// names. Other files are passed over.
fn outs_of_configurations() -> Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = fs_err::read_dir(".")?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|end| end == "yaml" || end == "yml")
        })
        .collect();
    paths.sort();
    paths.truncate(MOST_CONFIGURATIONS);

    let mut outs = Vec::new();
    for path in paths {
        let name = path.strip_prefix(".").unwrap_or(&path);
        if let Ok(config) = Config::load(Some(name), &std::collections::BTreeMap::new()) {
            outs.push(config.out);
        }
    }
    Ok(outs)
}

/// The logs that the model was made from.
fn logs_of_config(config: &Config, results: &Path) -> Result<Vec<PathBuf>> {
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
                    "`{}`, the log that `{}` was made from, is not there as seen from here",
                    log.display(),
                    results.display()
                ),
                LOG_HINT
            )
        );
    }
    Ok(config.logs.clone())
}

/// The queue that `named` means: a file, `-`, or `now` for that of this access point.
///
/// # Errors
/// Fails where it cannot be read, or asked.
pub(super) fn read_queue(named: &str) -> Result<JobQueue> {
    let text = match named {
        "now" => condor::held_jobs_in_queue(QUEUE_ATTRIBUTES, None)?,
        "-" => {
            let mut text = Vec::new();
            let stdin = std::io::stdin().lock();
            stdin.take(MOST_QUEUE_BYTES).read_to_end(&mut text)?;
            text
        }
        path => files::read_regular(Path::new(path), MOST_QUEUE_BYTES)?,
    };
    JobQueue::parse(&text).with_context(|| format!("cannot use the queue `{named}`"))
}
