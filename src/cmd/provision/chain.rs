//! `poolcast provision chain`: submits a script to a live Slurm repeatedly, as a chain of jobs.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use super::live_sources::{LivePast, advice_settings, cluster_view, now_s};
use super::shared_flags::cluster_config;
use crate::cmd::logs::user_salt;
use crate::cmd::signals::stop_signal;
use crate::cmd::text;
use poolcast_base::error::{EXIT_CHECKPOINTED, EXIT_DONE, EXIT_NEVER, hinted, render};
use poolcast_base::files;
use poolcast_base::output;
use poolcast_base::program::command_without_keys;
use poolcast_cli::{ChainOptions, ProvisionChainArgs};
use poolcast_slurm::chain::{
    ChainCaller, ChainEnd, ChainLink, ChainNote, ChainPlan, ChainState, ChainTiming, LINK_VARIABLE,
    run_chain,
};
use poolcast_slurm::live::{
    ClusterListing, ListedJob, NO_ADVICE_CODE, NoAdviceReason, StartJournal, advise_submission,
    plan_script, query_nodes, query_queue, query_settings, test_script,
};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Maximum size of a script, in bytes. It equals Slurm's own limit of 4 MiB.
const MAX_SCRIPT_BYTES: u64 = 1 << 22;

/// Time to wait for another call that may be ending.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the chain, and prints the results of its links.
pub(super) fn run(args: &ProvisionChainArgs) -> Result<u8> {
    check_script(&args.script)?;
    let dir = state_directory(args)?;
    let plan = ChainPlan {
        command: command(args)?,
        links: args.links,
        every: Duration::from_secs(args.every.into()),
        when: args.when,
        deadline_s: deadline_s(&args.options),
        own: None,
    };
    if args.dry_run {
        return dry_run(args, &plan, &dir);
    }

    let lock = lock(&dir)?;
    let mut state = ChainState::open(&dir)?;
    let past = find_past(&args.options)?;
    past.note_missing();
    let end = with_caller(&args.options, &plan, &past, &lock, None, |caller| {
        run_chain(&mut state, &plan, caller)
    });
    print(args, &state, &past)?;
    Ok(end_code(end?))
}

/// Returns the time after which no link is to start, in epoch seconds.
pub(super) fn deadline_s(options: &ChainOptions) -> Option<i64> {
    let deadline_ms = options.deadline;
    deadline_ms.map(|moment_ms| moment_ms.div_euclid(1000))
}

/// Finds the past runs of the cluster, from which forecasts draw.
pub(super) fn find_past(options: &ChainOptions) -> Result<LivePast> {
    let trace = options.trace.as_deref();
    LivePast::find(trace, true, &user_salt()?, &StartJournal::default())
}

/// Runs `act` with the callbacks of `plan`, for the directory that `lock` has locked. After `patience` they stop the chain.
pub(super) fn with_caller<T>(
    options: &ChainOptions,
    plan: &ChainPlan,
    past: &LivePast,
    lock: &fs_err::File,
    patience: Option<Duration>,
    act: impl FnOnce(&ChainCaller<'_>) -> Result<T>,
) -> Result<T> {
    let stop = stop_signal()?;
    let begin = Instant::now();
    let config = cluster_config(&options.cluster, options.cost_ratio)?;
    let salt = user_salt()?;
    let settings = advice_settings(&config, &past.zone, plan.every.as_secs() as i64)?;
    let last_s = Cell::new(0);
    let done = options.done.as_deref().unwrap_or_default();
    let ask = |link: &ChainLink| is_work_done(done, link);
    let caller = ChainCaller {
        advise: &|cluster: &ClusterListing<'_>, job: &ListedJob| {
            let view = cluster_view(last_s.get(), cluster, past, &salt, &config.provision);
            advise_submission(&view, job, &settings, None)
        },
        is_work_done: options.done.is_some().then_some(&ask),
        tell: &|note| output::note(&text::chain::note(&note)),
        pause: &|span| {
            let is_over = patience.is_some_and(|patience| begin.elapsed() + span > patience);
            is_over || pause(span, &stop)
        },
        lock: &|| lock.file().try_clone().ok(),
        now_s: &|listing| {
            last_s.set(now_s(listing, last_s.get() == 0));
            last_s.get()
        },
    };
    act(&caller)
}

/// Reports how the chain ended, and returns the exit code.
pub(super) fn end_code(end: ChainEnd) -> u8 {
    match end {
        ChainEnd::Done | ChainEnd::Submitted => EXIT_DONE,
        ChainEnd::WorkDone(number) => {
            output::note(&format!("the work was done after link {number}"));
            EXIT_DONE
        }
        ChainEnd::Deadline => {
            output::note("no further link is submitted: it would start after the deadline");
            EXIT_DONE
        }
        ChainEnd::Stopped => {
            output::note("stopped; run the same command again to continue");
            EXIT_CHECKPOINTED
        }
        ChainEnd::NoAdvice(reason) => no_advice(&reason),
        ChainEnd::EarlyStart(link) => {
            let hint = "find the cause, for example in `scontrol show job`; run the same command again to continue with the next link";
            refuse(text::chain::early_start(&link), hint)
        }
    }
}

/// Runs the `command` of the user that says whether the work is done after `link`.
fn is_work_done(command: &str, link: &ChainLink) -> Result<bool> {
    let mut shell = command_without_keys("sh");
    shell.args(["-c", command]).stdin(Stdio::null());
    shell.env(LINK_VARIABLE, link.number.to_string());
    // The links are all that this program prints.
    shell.stdout(Stdio::null());
    let status = shell.status().context("cannot start `sh`")?;
    match status.code() {
        Some(0) => Ok(true),
        // So a shell reports a command that it cannot run.
        Some(126 | 127) | None => Err(hinted(
            format!("the command of `--done` has not answered: {status}"),
            "it should exit with 0 if the work is done, and with 1 if it is not",
        )
        .into()),
        Some(_) => Ok(false),
    }
}

/// Reports that there will be no advice on the chain for this `reason`, and returns the exit code.
fn no_advice(reason: &NoAdviceReason) -> u8 {
    let why = text::submission::no_advice_words(reason);
    let hint = "let each job wait for the end of the previous one: `--when dependency`";
    refuse(format!("no advice: {why}"), hint)
}

/// Prints the error `message` with its `hint`, and returns the exit code.
fn refuse(message: String, hint: &str) -> u8 {
    output::error(&render(&hinted(message, hint).into()));
    NO_ADVICE_CODE
}

/// Rejects a script that cannot be a link, because it asks for an array of jobs.
pub(super) fn check_script(script: &Path) -> Result<()> {
    let text = files::read_artefact(script, MAX_SCRIPT_BYTES)?;
    for line in String::from_utf8_lossy(&text).lines() {
        let Some(options) = line.strip_prefix("#SBATCH") else {
            continue;
        };
        let is_array = options
            .split_ascii_whitespace()
            .any(|word| word.starts_with("--array") || word.starts_with("-a"));
        ensure!(
            !is_array,
            hinted(
                format!(
                    "`{}` requests an array of jobs (`{}`)",
                    script.display(),
                    line.trim()
                ),
                "a link of a chain is one job: start a chain for each element"
            )
        );
    }
    Ok(())
}

fn state_directory(args: &ProvisionChainArgs) -> Result<PathBuf> {
    match &args.options.state {
        Some(dir) => Ok(dir.clone()),
        None => default_directory(&args.script),
    }
}

/// Returns the directory with the state of a chain of `script`, relative to the directory from which it is submitted.
pub(super) fn default_directory(script: &Path) -> Result<PathBuf> {
    let name = script
        .file_name()
        .context("the path of the script has no file name")?;
    let mut name = name.to_owned();
    name.push(".chain");
    Ok(PathBuf::from(name))
}

/// The script and its arguments, for `sbatch`.
fn command(args: &ProvisionChainArgs) -> Result<Vec<String>> {
    let script = args.script.to_str().with_context(|| {
        format!(
            "the name of the script `{}` is not UTF-8",
            args.script.display()
        )
    })?;
    // `sbatch` may also search for a bare name in other directories, and would take a name that
    // begins with a dash for an option.
    let is_bare = !script.contains('/');
    let script = if is_bare {
        format!("./{script}")
    } else {
        script.to_owned()
    };
    let mut command = vec![script];
    command.extend(args.script_args.iter().cloned());
    Ok(command)
}

/// Makes `dir`, and locks it against other calls, and against processes that killed calls have left running.
pub(super) fn lock(dir: &Path) -> Result<fs_err::File> {
    fs_err::create_dir_all(dir)?;
    let begin = Instant::now();
    loop {
        match files::lock_directory(dir) {
            Err(_) if begin.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(100));
            }
            locked => return locked,
        }
    }
}

/// Sleeps for `span`; returns true as soon as `stop` is set.
fn pause(span: Duration, stop: &AtomicBool) -> bool {
    let end = Instant::now() + span;
    loop {
        if stop.load(Ordering::Relaxed) {
            return true;
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(left.min(Duration::from_millis(200)));
    }
}

/// Prints the next action of the chain without doing it, and lets Slurm test the script.
fn dry_run(args: &ProvisionChainArgs, plan: &ChainPlan, dir: &Path) -> Result<u8> {
    let state = ChainState::open(dir)?;
    let known = state.links.len() as u32;
    let mut text = format!(
        "{} of {} recorded in `{}`\n",
        output::counted(known as usize, "link"),
        args.links,
        dir.display()
    );
    if known < args.links {
        let number = known + 1;
        let words: Vec<String> = plan.command.iter().map(|word| shell_word(word)).collect();
        text.push_str(&format!(
            "link {number} would be submitted with: sbatch --parsable --hold --comment={} {}\n",
            shell_word(&state.comment_of(number)),
            words.join(" ")
        ));
    }
    output::print(&text)?;
    match test_script(&plan.command) {
        Ok(said) => {
            output::print(&format!("Slurm would accept it: {said}\n"))?;
            Ok(match (find_obstacle(plan)?, plan.when) {
                (Some(obstacle), Some(_)) => no_advice(&obstacle),
                (Some(obstacle), None) => {
                    let note = ChainNote::WithoutForecast(&obstacle);
                    output::note(&text::chain::note(&note));
                    EXIT_DONE
                }
                (None, _) => EXIT_DONE,
            })
        }
        Err(fault) => {
            output::error(&format!("Slurm would reject it: {fault}"));
            Ok(EXIT_NEVER)
        }
    }
}

/// Finds what makes the forecasts that `plan` wants impossible, if anything.
fn find_obstacle(plan: &ChainPlan) -> Result<Option<NoAdviceReason>> {
    if plan.when.is_some_and(|when| when != ChainTiming::Forecast) {
        return Ok(None);
    }
    let Some(partition) = plan_script(&plan.command)?.partition else {
        return Ok(None);
    };
    let (queue, settings) = (query_queue()?, query_settings()?);
    let nodes = query_nodes(Some(&settings))?;
    let cluster = ClusterListing {
        queue: &queue,
        nodes: Some(&nodes),
        settings: Some(&settings),
    };
    Ok(cluster.find_obstacle(&partition, now_s(&queue, false)))
}

fn shell_word(word: &str) -> String {
    text::advice::shell_word(word)
}

fn print(args: &ProvisionChainArgs, state: &ChainState, past: &LivePast) -> Result<()> {
    let gaps_s: Vec<Option<i64>> = (0..state.links.len())
        .map(|place| state.gap_s(place))
        .collect();
    if args.json {
        let printed = PrintedChain {
            chain: &state.chain,
            links: printed_links(&state.links, &gaps_s),
            is_done: state.is_done(args.links) || state.done_after.is_some(),
        };
        return output::print_json(SCHEMA_VERSION, &printed);
    }
    output::print(&text::chain::links(&state.links, &gaps_s, &past.zone))
}

fn printed_links<'a>(links: &'a [ChainLink], gaps_s: &[Option<i64>]) -> Vec<PrintedLink<'a>> {
    let mut printed = Vec::with_capacity(links.len());
    for (link, gap_s) in links.iter().zip(gaps_s) {
        printed.push(PrintedLink {
            link,
            gap_s: *gap_s,
        });
    }
    printed
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct PrintedChain<'a> {
    /// Name of the chain in the comments of its jobs.
    chain: &'a str,
    /// Its links, the first one first.
    links: Vec<PrintedLink<'a>>,
    /// True if all links were submitted, the last one has started and the others have ended.
    is_done: bool,
}

#[derive(Serialize)]
struct PrintedLink<'a> {
    #[serde(flatten)]
    link: &'a ChainLink,
    /// Time from the end of the previous link to the start of this one, in seconds; negative if
    /// both ran in parallel.
    gap_s: Option<i64>,
}
