//! Finds the run, the jobs, the logs and the queue that the arguments of `advise` name. An unnamed
//! run comes from the current directory, with its logs, and an unnamed queue from `condor_q`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::history_log::{HISTORY_LOG, read_history, write_jobs};
use super::logs::{LogReading, ReadLogs};
use super::named_inputs::NamedInputs;
use super::results_here::{find_results, is_result, logs_of_run};
use super::run_answers::RunAnswers;
use super::text::advice::shell_word;
use poolcast_advice::{
    JobQueue, JobSelection, LOG_ATTRIBUTES, LogWords, PoolSlots, PublishedModel, QUEUE_ATTRIBUTES,
    UNHELD_ATTRIBUTES, UnheldJobs, logs_of_jobs,
};
use poolcast_base::error::hinted;
use poolcast_base::{files, output, user_directories};
use poolcast_cli::AdviseArgs;
use poolcast_collect::{find_generations, is_log};
use poolcast_events::HoldSource;
use poolcast_holds::config::AdviceConfig;
use poolcast_holds::past_jobs::{HISTORY_ATTRIBUTES, PastJobs};
use poolcast_sweep as sweep;
use poolcast_sweep::condor;
use poolcast_sweep::config::Config;
use tempfile::TempDir;

/// Maximum size of a queue that is read, in bytes. It is read in parts.
const MAX_LIST_BYTES: u64 = 64 << 30;

/// Maximum size of the log of an access point that is read although nobody named it, in bytes.
const MAX_EVENT_LOG_BYTES: u64 = 256 << 20;

/// Time within which `condor_q` must begin to answer where nobody asked for the queue.
pub(super) const QUEUE_ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Advice for a user if no log is found.
const LOG_HINT: &str =
    "name the log: --log LOG; `condor_config_val EVENT_LOG` prints that of an access point";

/// The results that a user named, or that were found, and what was learned there.
pub(super) struct LearnedRun {
    /// The directory that the user named, or that was found.
    pub(super) results: PathBuf,
    /// The run in that directory.
    pub(super) run: PathBuf,
    /// What was learned about held jobs.
    pub(super) answers: RunAnswers,
    /// The model that was published, in place of a run.
    pub(super) published: Option<PublishedRun>,
}

/// The facts about a published model beside its answers.
pub(super) struct PublishedRun {
    /// The settings of advice at the site.
    settings: AdviceConfig,
    /// True if the site publishes it, and the user did not name it.
    pub(super) is_of_site: bool,
}

impl LearnedRun {
    fn open(results: PathBuf) -> Result<LearnedRun> {
        if PublishedModel::is_in(&results) {
            return LearnedRun::open_published(results, false);
        }
        let run = sweep::resolve_run(&results)?;
        ensure!(
            is_result(&run),
            hinted(
                format!("`{}` has no finished run", run.display()),
                "name the directory that `poolcast learn`, `run` or `train` wrote, once it has ended"
            )
        );
        Ok(LearnedRun {
            answers: RunAnswers::open(&results)?,
            results,
            run,
            published: None,
        })
    }

    fn open_published(dir: PathBuf, is_of_site: bool) -> Result<LearnedRun> {
        let PublishedModel {
            answers,
            origin,
            settings,
        } = PublishedModel::open(&dir)?;
        Ok(LearnedRun {
            run: dir.clone(),
            results: dir,
            answers: RunAnswers {
                learned: Some(answers),
                origin,
            },
            published: Some(PublishedRun {
                settings,
                is_of_site,
            }),
        })
    }

    /// The end of the time that the answers learned from, epoch ms; `None` if there are none.
    pub(super) fn known_ms(&self) -> Option<i64> {
        Some(self.answers.learned.as_ref()?.known_ms)
    }

    /// The directory in which answers are recorded: the run itself, or for a published model one of
    /// this user. `None` if there is no such directory.
    pub(super) fn ledger_dir(&self) -> Option<PathBuf> {
        match self.published {
            None => Some(self.results.clone()),
            Some(_) => user_directories::state_directory(),
        }
    }
}

/// The inputs of `advise`.
pub(super) struct AdviceSources {
    /// What was learned; `None` if there is no run.
    pub(super) learned: Option<LearnedRun>,
    /// The configuration of the run, or else the default one.
    pub(super) config: Config,
    /// The logs that the user named, or else the logs of the run.
    pub(super) logs: Vec<PathBuf>,
    /// True if the logs are those of the jobs in the queue of this access point, because the user
    /// named none.
    pub(super) has_logs_of_queue: bool,
    /// True if that log is the one of all jobs.
    pub(super) has_event_log: bool,
    /// True if the run learned from a history, which has no held jobs, and the user named no logs.
    /// The held jobs then come from the queue.
    is_of_history: bool,
    /// The log that was made from the history that the user named, and from the held jobs in the queue.
    history: Option<HistoryLog>,
    /// The jobs that the user named.
    pub(super) selections: Vec<JobSelection>,
    /// True if the queue is asked for the jobs of all users, where none is named. A named job or owner
    /// may be anyone's.
    pub(super) is_about_all_users: bool,
}

/// The configuration of the run that was `learned` from; of a published model, the settings of advice alone.
fn config_of(learned: Option<&LearnedRun>, built_in: Config) -> Result<Config> {
    let Some(learned) = learned else {
        return Ok(built_in);
    };
    match &learned.published {
        Some(published) => Ok(Config {
            advice: published.settings.clone(),
            ..built_in
        }),
        None => Config::read(&learned.run),
    }
}

/// A log that was made from a history. It has names, so it is removed again.
struct HistoryLog {
    path: PathBuf,
    _dir: TempDir,
}

impl AdviceSources {
    /// The directory that keeps what later calls need: beside the run, or else one of the user.
    pub(super) fn state_dir(&self) -> Option<PathBuf> {
        let ledger = self.learned.as_ref().and_then(LearnedRun::ledger_dir);
        ledger.or_else(user_directories::state_directory)
    }

    /// Finds the inputs that `args` name. Without a run, there may be no log.
    ///
    /// # Errors
    /// Fails if an argument is no input, if there are several runs, or if no log of the run exists.
    pub(super) fn find(args: &AdviseArgs) -> Result<AdviceSources> {
        let NamedInputs {
            run,
            mut logs,
            selections,
        } = NamedInputs::sort(&args.named, &args.logs)?;
        let results = match run {
            Some(run) => Some(condor::results_directory(&run)?),
            None => find_results()?,
        };
        let built_in = Config::load_built_in(&BTreeMap::new())?;
        let learned = match results {
            Some(results) => Some(LearnedRun::open(results)?),
            None => site_model(&built_in),
        };
        let config = config_of(learned.as_ref(), built_in)?;
        let mut has_logs_of_queue = false;
        let mut has_event_log = false;
        let mut is_of_history = false;
        match &learned {
            Some(learned) if logs.is_empty() && learned.published.is_none() => {
                logs = configured_logs(&config, &learned.results)?;
                is_of_history = learned.answers.origin.source == HoldSource::History;
            }
            // What happened to other jobs shows every user whether a fault has passed.
            _ if logs.is_empty() && !args.idle && is_this_queue(args.queue.as_deref()) => {
                logs = event_log_here().into_iter().collect();
                has_event_log = !logs.is_empty();
                if logs.is_empty() {
                    logs = logs_of_held_jobs();
                }
                has_logs_of_queue = !logs.is_empty();
            }
            _ => {}
        }
        let filter = &args.filter;
        let names_jobs = !(selections.is_empty() && filter.clusters.is_empty());
        let mut sources = AdviceSources {
            is_about_all_users: args.all_users || names_jobs || !filter.owners.is_empty(),
            learned,
            config,
            logs,
            has_logs_of_queue,
            has_event_log,
            is_of_history,
            history: None,
            selections,
        };
        if is_of_history || !args.history.is_empty() {
            sources.history = sources.make_history_log(args)?;
        }
        Ok(sources)
    }

    /// Writes the jobs of the history that `args` name, and the held jobs in the queue, into a log, so
    /// that models can judge them. Returns `None` if there are none.
    fn make_history_log(&self, args: &AdviseArgs) -> Result<Option<HistoryLog>> {
        let mut jobs = PastJobs::default();
        if !args.history.is_empty() {
            jobs = read_history(&args.history)?;
        }
        if !args.idle && (args.queue.is_some() || self.is_queue_here(None)) {
            read_held_jobs(args, self.is_about_all_users, &mut jobs);
        }
        if jobs.is_empty() {
            return Ok(None);
        }
        let dir = tempfile::tempdir()?;
        let path = dir.path().join(HISTORY_LOG);
        let counts = write_jobs(&jobs, &path)?;
        if counts.jobs > 0 {
            output::note(&format!("note: {}", counts.words()));
        }
        Ok(Some(HistoryLog { path, _dir: dir }))
    }

    /// Returns true if no run has learned from the logs. A run takes times without a zone as UTC.
    fn has_no_run(&self) -> bool {
        let learned = self.learned.as_ref();
        learned.is_none_or(|learned| learned.published.is_some())
    }

    /// Returns true if there are neither logs nor a history.
    pub(super) fn has_no_events(&self) -> bool {
        self.logs.is_empty() && self.history.is_none()
    }

    /// The logs, if all events come from them, so that a later call reads the same events.
    pub(super) fn kept_logs(&self) -> Option<&[PathBuf]> {
        self.history.is_none().then_some(&*self.logs)
    }

    /// Reads the events of the logs and of the history, and their `words` if requested. `year` is that
    /// of the first event, for logs without years. With `until_ms`, epoch ms, later events are left out.
    ///
    /// # Errors
    /// Fails if a log cannot be read, or if the logs do not cover `until_ms`.
    pub(super) fn read_store(
        &self,
        year: Option<i16>,
        until_ms: Option<i64>,
        words: Option<&mut LogWords>,
    ) -> Result<ReadLogs> {
        let reading = LogReading {
            named: &self.logs,
            history: self.history.as_ref().map(|history| history.path.as_path()),
            year,
            until_ms,
            applies_zone: self.has_no_run(),
            config: &self.config,
        };
        reading.read(words)
    }

    /// Returns true if the queue of this access point names the held jobs. `queue` is the queue that
    /// the user named.
    pub(super) fn is_queue_here(&self, queue: Option<&str>) -> bool {
        match queue {
            Some(named) => named == "now",
            None => self.logs.is_empty() || self.has_logs_of_queue || self.is_of_history,
        }
    }
}

/// Opens the model that the site publishes; `None` if there is none. A model that cannot be used
/// only causes a note, because rules answer without it.
fn site_model(config: &Config) -> Option<LearnedRun> {
    let dir = config.advice.site_model.clone()?;
    if !PublishedModel::is_in(&dir) {
        return None;
    }
    match LearnedRun::open_published(dir, true) {
        Ok(learned) => Some(learned),
        Err(error) => {
            output::note(&format!(
                "note: the model of this site is not used: {error:#}"
            ));
            None
        }
    }
}

/// Adds the held jobs in the queue to `jobs`, unless the queue can be read only once. The queue is
/// queried again later, and a failure is reported then.
fn read_held_jobs(args: &AdviseArgs, is_about_all_users: bool, jobs: &mut PastJobs) {
    let read = |list: &mut dyn BufRead| jobs.read(list);
    let attributes = HISTORY_ATTRIBUTES;
    let _ = match args.queue.as_deref() {
        Some("-") => Ok(()),
        Some("now") => condor::read_held_jobs(attributes, None, read),
        Some(file) => read_list(file, read),
        None => condor::ask_held_jobs(attributes, is_about_all_users, QUEUE_ANSWERS_WITHIN, read)
            .map(drop),
    };
}

/// Returns true unless `queue`, the one that the user named, is in a file.
fn is_this_queue(queue: Option<&str>) -> bool {
    queue.is_none_or(|named| named == "now")
}

/// The log of all jobs of this access point, if this user may read all of it, and if that does not take
/// long.
fn event_log_here() -> Option<PathBuf> {
    let log = PathBuf::from(condor::configured_value("EVENT_LOG").ok().flatten()?);
    if condor::queue_is_elsewhere() {
        return None;
    }
    let generations = find_generations(std::slice::from_ref(&log)).ok()?;
    if !generations.iter().all(|generation| is_log(generation)) {
        return None;
    }
    let bytes = |generation: &PathBuf| fs_err::metadata(generation).ok().map(|found| found.len());
    let bytes: u64 = generations.iter().filter_map(bytes).sum();
    if bytes > MAX_EVENT_LOG_BYTES {
        output::note(&format!(
            "note: the event log of this access point has {} bytes, and is read only if you name it: --log {}",
            output::with_commas(bytes),
            shell_word(&log.to_string_lossy())
        ));
        return None;
    }
    Some(log)
}

/// The readable logs that the held jobs of this user in the queue name.
fn logs_of_held_jobs() -> Vec<PathBuf> {
    let limit = QUEUE_ANSWERS_WITHIN;
    let read = |output: &mut dyn BufRead| logs_of_jobs(output);
    match condor::ask_held_jobs(LOG_ATTRIBUTES, false, limit, read) {
        Ok(named) => {
            let named = named.unwrap_or_default();
            named.into_iter().filter(|log| is_log(log)).collect()
        }
        // The jobs are queried later, and a failure is noted then.
        Err(_) => Vec::new(),
    }
}

/// Finds the logs of the run in this directory, and the configuration of that run.
///
/// # Errors
/// Fails if there is no such run, or if none of its logs exists.
pub(super) fn find_run_logs() -> Result<(Config, Vec<PathBuf>)> {
    let results = find_results()
        .and_then(|found| found.context("there is no run here"))
        .map_err(|error| hinted(error.to_string(), LOG_HINT))?;
    let config = Config::read(&sweep::resolve_run(&results)?)?;
    let logs = configured_logs(&config, &results)?;
    Ok((config, logs))
}

/// The logs that the run was made from and that exist. It is an error if none of them does.
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
    let logs = logs_of_run(config, results).into_iter();
    let (found, missing): (Vec<PathBuf>, Vec<PathBuf>) = logs.partition(|log| log.exists());
    let Some(first) = missing.first() else {
        return Ok(found);
    };
    // Users remove the logs of finished jobs one by one.
    ensure!(
        !found.is_empty(),
        hinted(
            format!(
                "cannot find `{}`, the log that `{}` was made from",
                first.display(),
                results.display()
            ),
            LOG_HINT
        )
    );
    output::note(&format!(
        "note: {} of the run cannot be found, such as `{}`",
        output::counted(missing.len(), "log"),
        first.display()
    ));
    Ok(found)
}

/// Asks the queue of this access point for the held jobs of this user, or of all users; `None` if it
/// does not answer within [`QUEUE_ANSWERS_WITHIN`].
pub(super) fn ask_queue(is_of_all_users: bool) -> Option<JobQueue> {
    let read = |output: &mut dyn BufRead| JobQueue::read(output);
    let limit = QUEUE_ANSWERS_WITHIN;
    match condor::ask_held_jobs(QUEUE_ATTRIBUTES, is_of_all_users, limit, read) {
        Ok(answer) => answer,
        Err(error) => {
            output::note(&format!("note: the queue is not used: {error:#}"));
            None
        }
    }
}

/// Reads the queue that `named` refers to: a file, `-` for stdin, or `now` for the queue of this
/// access point.
///
/// # Errors
/// Fails if the file cannot be read or parsed, or if the query fails.
pub(super) fn read_queue(named: &str) -> Result<JobQueue> {
    let queue = match named {
        "now" => condor::read_held_jobs(QUEUE_ATTRIBUTES, None, |output| JobQueue::read(output)),
        file => read_list(file, |list| JobQueue::read(list)),
    };
    queue.with_context(|| format!("cannot use the queue `{named}`"))
}

/// Like [`ask_queue`], for the idle and running jobs.
///
/// # Errors
/// Fails if the queue does not answer.
pub(super) fn ask_unheld_jobs(is_of_all_users: bool) -> Result<UnheldJobs> {
    let read = |output: &mut dyn BufRead| UnheldJobs::read(output);
    let limit = QUEUE_ANSWERS_WITHIN;
    let answer = condor::ask_unheld_jobs(UNHELD_ATTRIBUTES, is_of_all_users, limit, read)?;
    answer.context(hinted(
        "the queue does not answer",
        "run this on an access point; elsewhere, pass the output of `condor_q -json` with `--queue FILE`",
    ))
}

/// Like [`read_queue`], for the idle and running jobs.
///
/// # Errors
/// Fails if the file cannot be read or parsed, or if the query fails.
pub(super) fn read_unheld_jobs(named: &str) -> Result<UnheldJobs> {
    let jobs = match named {
        "now" => condor::read_unheld_jobs(UNHELD_ATTRIBUTES, |output| UnheldJobs::read(output)),
        file => read_list(file, |list| UnheldJobs::read(list)),
    };
    jobs.with_context(|| format!("cannot use the queue `{named}`"))
}

/// Asks the pool of this access point for the slots that the idle ones of `jobs` may match. Returns `None` if it
/// does not answer, or if jobs may run in other pools, too.
pub(super) fn ask_slots(jobs: &UnheldJobs) -> Option<PoolSlots> {
    let flocks = condor::configured_value("FLOCK_TO").is_ok_and(|pools| pools.is_some());
    if jobs.idle_count() == 0 || flocks {
        return None;
    }
    let pool = PoolSlots::for_jobs(jobs);
    let expressions = pool.expressions();
    let read = |output: &mut dyn BufRead| pool.clone().read(output);
    // Without an answer, advice lacks only these findings.
    condor::ask_slots(&expressions, QUEUE_ANSWERS_WITHIN, read).ok()?
}

/// Lets `read` consume the file `named`, or stdin for `-`.
fn read_list<T>(named: &str, read: impl FnOnce(&mut dyn BufRead) -> Result<T>) -> Result<T> {
    if named == "-" {
        return read(&mut std::io::stdin().lock().take(MAX_LIST_BYTES));
    }
    let file = files::open_regular(Path::new(named), MAX_LIST_BYTES)?;
    read(&mut BufReader::new(file))
}
