//! Runs Slurm's commands and parses their answers. No other module of this crate runs them.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::listed_job::ListedJob;
use super::node_listing::{NodeListing, SINFO_COLUMNS};
use super::queue_listing::QueueListing;
use super::queue_text::{COMMENT_COLUMNS, SQUEUE_COLUMNS, add_comments, is_queue_text};
use super::slurm_settings::SlurmSettings;
use super::slurm_state::{JobOutcome, QueueState, read_state};
use poolcast_base::program::command_without_keys;

/// Maximum size of a command's output, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// Maximum size of a command's error output, in bytes.
const MAX_STDERR_BYTES: u64 = 1 << 20;

/// Maximum length of a quoted error message, in characters.
const MAX_MESSAGE_CHARS: usize = 2000;

/// Timeout of a command. Slurm's commands normally give up earlier on their own.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);

/// Interval between checks whether a command has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A failure of a Slurm command.
#[derive(Debug, thiserror::Error)]
pub enum SlurmFault {
    /// The command cannot be started.
    #[error("cannot run `{program}`: {why}")]
    Missing {
        /// Name of the Slurm command.
        program: String,
        /// The error of the operating system.
        why: String,
    },
    /// The command failed.
    #[error("`{program}` failed: {said}")]
    Refused {
        /// Name of the Slurm command.
        program: String,
        /// The end of its error output.
        said: String,
    },
    /// The command did not end in time.
    #[error("`{program}` has not answered for {} seconds", COMMAND_TIMEOUT.as_secs())]
    Silent {
        /// Name of the Slurm command.
        program: String,
    },
    /// The output is too long, or cannot be read or parsed.
    #[error("cannot use the answer of `{program}`: {why}")]
    Unusable {
        /// Name of the Slurm command.
        program: String,
        /// The reason.
        why: String,
    },
}

impl SlurmFault {
    /// Returns true if a retry may help, because the controller may be down only for a while.
    pub fn is_transient(&self) -> bool {
        match self {
            SlurmFault::Missing { .. } => false,
            SlurmFault::Silent { .. } => true,
            SlurmFault::Unusable { why, .. } => is_controller_away(why),
            SlurmFault::Refused { said, .. } => is_controller_away(said),
        }
    }
}

/// Returns true if the error output `said` shows that the command could not reach the controller,
/// or that the controller asked it to retry later.
fn is_controller_away(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    [
        "unable to contact slurm controller",
        "unable to connect",
        "connection refused",
        "connection reset",
        "socket timed out",
        "zero bytes were transmitted",
        "communication connection failure",
        "communication shutdown failure",
        "message receive failure",
        "message send failure",
        "temporarily unable",
        "try again",
        "slurm backup controller in standby",
        "is starting up",
        "slurm_load_jobs error: unspecified error",
    ]
    .iter()
    .any(|words| said.contains(words))
}

/// Runs `squeue` for all jobs that Slurm knows, as JSON, or as text if Slurm was built without JSON.
pub fn query_queue() -> Result<QueueListing, SlurmFault> {
    let all = ["--all", "--states=all"];
    let printed = json_or_text("squeue", &all, &[&format!("--format={SQUEUE_COLUMNS}")])?;
    let mut listing = parsed("squeue", QueueListing::parse(&printed))?;
    if is_queue_text(&printed) {
        query_own_comments(&mut listing)?;
    }
    Ok(listing)
}

/// Adds the comments of the caller's own jobs to `listing`.
fn query_own_comments(listing: &mut QueueListing) -> Result<(), SlurmFault> {
    let caller = rustix::process::getuid().as_raw();
    let mut command = slurm_command("squeue");
    command.args(["--all", "--states=all", "--noheader"]);
    command.arg(format!("--user={caller}"));
    let printed = answer(command.arg(format!("--format={COMMENT_COLUMNS}")))?;
    let jobs = listing.jobs.iter_mut();
    let own_jobs = jobs.filter(|job| job.user_id == Some(caller));
    add_comments(own_jobs, &String::from_utf8_lossy(&printed));
    Ok(())
}

/// Runs `sinfo` for all nodes, as JSON, or as text if Slurm was built without JSON. If jobs share
/// nodes on the cluster with these `settings`, `scontrol` lists what the nodes have.
pub fn query_nodes(settings: Option<&SlurmSettings>) -> Result<NodeListing, SlurmFault> {
    if settings.is_some_and(SlurmSettings::has_shared_nodes) {
        let mut command = slurm_command("scontrol");
        let printed = answer(command.args(["--all", "--oneliner", "show", "node"]))?;
        return parsed("scontrol", NodeListing::parse(&printed));
    }
    let text = ["--Node", &format!("--format={SINFO_COLUMNS}")];
    let printed = json_or_text("sinfo", &["--all"], &text)?;
    parsed("sinfo", NodeListing::parse(&printed))
}

/// Runs `scontrol show` for the settings of the cluster and of its partitions.
pub fn query_settings() -> Result<SlurmSettings, SlurmFault> {
    let show = |what: &str| {
        let mut command = slurm_command("scontrol");
        let printed = answer(command.args(["--all", "--oneliner", "show", what]))?;
        Ok(String::from_utf8_lossy(&printed).into_owned())
    };
    let settings = SlurmSettings::parse(&show("config")?, &show("partition")?);
    parsed("scontrol", settings)
}

/// Returns the name and the version of Slurm, such as `slurm-wlm 22.05.8`.
pub fn query_version() -> Result<String, SlurmFault> {
    let printed = answer(slurm_command("sinfo").arg("--version"))?;
    Ok(message_tail(&String::from_utf8_lossy(&printed)))
}

/// Runs `sprio` and `sshare`, which list the factors of priorities.
pub(super) fn query_priority_factors() -> Result<(), SlurmFault> {
    answer(slurm_command("sprio").arg("--noheader"))?;
    answer(slurm_command("sshare").args(["--noheader", "--all"])).map(|_| ())
}

/// Runs `sacctmgr` for the limits of `user`: rows `QOS|MaxJobs|MaxSubmitJobs` of the accounts, and rows
/// `NAME|MaxJobsPU|MaxSubmitJobsPU` of all qualities of service.
pub(super) fn query_limits(user: &str) -> Result<(String, String), SlurmFault> {
    let show = |what: &[&str]| {
        let mut command = slurm_command("sacctmgr");
        command.args(["--noheader", "--parsable2", "show"]);
        let printed = answer(command.args(what))?;
        Ok(String::from_utf8_lossy(&printed).into_owned())
    };
    let user = format!("user={user}");
    let accounts = show(&["associations", &user, "format=QOS,MaxJobs,MaxSubmitJobs"])?;
    let qualities = show(&["qos", "format=Name,MaxJobsPU,MaxSubmitJobsPU"])?;
    Ok((accounts, qualities))
}

/// Returns a parsed answer of `program`.
fn parsed<T>(program: &str, answer: anyhow::Result<T>) -> Result<T, SlurmFault> {
    answer.map_err(|error| SlurmFault::Unusable {
        program: program.to_owned(),
        why: format!("{error:#}"),
    })
}

/// Runs `program` with the options `what` and `--json`. If it rejects them, runs it again with the
/// options `what` and `text`. If both fail, returns the first error.
fn json_or_text(program: &str, what: &[&str], text: &[&str]) -> Result<Vec<u8>, SlurmFault> {
    match answer(slurm_command(program).args(what).arg("--json")) {
        Err(refusal @ SlurmFault::Refused { .. }) if !refusal.is_transient() => {
            answer(slurm_command(program).args(what).args(text)).map_err(|_| refusal)
        }
        answered => answered,
    }
}

/// Runs `sacct` for the jobs of the last `days` days, with times in seconds of the epoch.
pub fn query_accounting(days: u32) -> Result<Vec<u8>, SlurmFault> {
    let columns = "JobID,User,Submit,Eligible,Start,End,TimelimitRaw,NNodes,State";
    let mut command = slurm_command("sacct");
    command.args(["--allusers", "--duplicates", "--allocations", "--parsable2"]);
    command.arg(format!("--starttime=now-{days}days"));
    answer(command.arg(format!("--format={columns}")))
}

/// The end of a job, as recorded by the accounting. Times are in epoch seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedEnd {
    /// Start time, if the job started.
    pub start_s: Option<i64>,
    /// End time.
    pub end_s: i64,
    /// The outcome, if known.
    pub outcome: Option<JobOutcome>,
}

/// The state of a job, as recorded by the accounting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedState {
    /// The job has ended.
    Ended(RecordedEnd),
    /// The job is pending or running, or in a state that this program does not know.
    Alive,
    /// The accounting does not know the job.
    Unknown,
}

/// Asks `sacct` for the state of the job `id`.
pub fn query_job_record(id: u64) -> Result<RecordedState, SlurmFault> {
    let mut command = slurm_command("sacct");
    command.args([
        "--allocations",
        "--noheader",
        "--parsable2",
        "--format=Start,End,State",
    ]);
    let printed = answer(command.arg(format!("--jobs={id}")))?;
    Ok(recorded_state(&String::from_utf8_lossy(&printed)))
}

/// Parses a line `START|END|STATE`.
fn recorded_state(printed: &str) -> RecordedState {
    let fields: Vec<&str> = printed.lines().next().unwrap_or("").split('|').collect();
    let [start, end, state] = fields[..] else {
        return RecordedState::Unknown;
    };
    let (state, outcome) = read_state(&[state.to_owned()]);
    match (state, end.parse()) {
        (QueueState::Ended, Ok(end_s)) => RecordedState::Ended(RecordedEnd {
            start_s: start.parse().ok(),
            end_s,
            outcome,
        }),
        (QueueState::Ended, Err(_)) => RecordedState::Unknown,
        _ => RecordedState::Alive,
    }
}

/// The time at which Slurm plans to start a job that is submitted now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStart {
    /// The start, in epoch seconds.
    pub start_s: i64,
    /// The partition in which the job would start, if stated.
    pub partition: Option<String>,
}

/// Asks Slurm when it would start a job like `job` that is submitted now, by `sbatch --test-only`,
/// which submits nothing. `shares_nodes` is true if the job has parts of its nodes.
pub fn plan_like(job: &ListedJob, shares_nodes: bool) -> Result<PlannedStart, SlurmFault> {
    let mut command = slurm_command("sbatch");
    command.args(["--test-only", "--wrap=true"]);
    match job.resources.as_ref().filter(|_| shares_nodes) {
        None => command.arg(format!("--nodes={}", job.nodes)),
        Some(resources) => {
            let held = (job.state == QueueState::Running).then_some(job.nodes);
            command.args(resources.sbatch_options(held))
        }
    };
    if let Some(limit_s) = job.limit_s {
        command.arg(format!("--time={}", (limit_s / 60).max(1)));
    }
    command.arg(format!("--partition={}", job.partitions.join(",")));
    for (option, value) in [("--account", &job.account), ("--qos", &job.qos)] {
        if let Some(value) = value {
            command.arg(format!("{option}={value}"));
        }
    }
    plan(command)
}

/// Asks Slurm when it would start a script that is submitted now with its arguments, by
/// `sbatch --test-only`, which submits nothing.
pub fn plan_script(command_line: &[String]) -> Result<PlannedStart, SlurmFault> {
    let mut command = without_own_job(slurm_command("sbatch"));
    command.arg("--test-only").args(command_line);
    plan(command)
}

fn plan(mut command: Command) -> Result<PlannedStart, SlurmFault> {
    let answer = run(&mut command)?;
    // `sbatch` writes the answer to standard error.
    let said = format!(
        "{}{}",
        answer.said,
        String::from_utf8_lossy(&answer.printed)
    );
    if !answer.status.success() {
        return Err(refused(&command, &said));
    }
    planned_start(&said).ok_or_else(|| SlurmFault::Unusable {
        program: name_of(&command),
        why: message_tail(&said),
    })
}

/// Runs `sbatch --test-only` for a script and its arguments. Returns the end of Slurm's message.
pub fn test_script(command_line: &[String]) -> Result<String, SlurmFault> {
    let mut command = without_own_job(command_without_keys("sbatch"));
    command.arg("--test-only").args(command_line);
    let answer = run(&mut command)?;
    if !answer.status.success() {
        return Err(refused(&command, &answer.said));
    }
    Ok(message_tail(&answer.said))
}

/// Parses `sbatch: Job 8 to start at 1795407855 using 2 processors on nodes ... in partition all`.
fn planned_start(said: &str) -> Option<PlannedStart> {
    let (_, rest) = said.split_once(" to start at ")?;
    let start_s = rest.split_ascii_whitespace().next()?.parse().ok()?;
    let partition = rest
        .split_once(" in partition ")
        .and_then(|(_, name)| name.split_ascii_whitespace().next());
    Some(PlannedStart {
        start_s,
        partition: partition.map(str::to_owned),
    })
}

/// The result of a submission.
#[derive(Debug)]
pub enum SubmissionAttempt {
    /// The id of the submitted job.
    Submitted(u64),
    /// Slurm rejected the job, for this reason.
    Refused(String),
    /// The result is unknown: Slurm may have accepted the job. The text is the error.
    Unclear(String),
}

/// Submits a job by `sbatch` with `arguments` and the environment variables `environment`, from the directory `dir` or
/// else the current one. The file `kept_open` stays open until `sbatch` ends, even if this process ends earlier.
///
/// # Errors
/// Fails only if `sbatch` cannot be started.
pub fn submit_job(
    arguments: &[String],
    environment: &[(&str, String)],
    dir: Option<&Path>,
    kept_open: Option<std::fs::File>,
) -> Result<SubmissionAttempt, SlurmFault> {
    let mut command = without_own_job(command_without_keys("sbatch"));
    command.args(["--parsable"]).args(arguments);
    if let Some(dir) = dir {
        command.current_dir(dir);
    }
    for (name, value) in environment {
        command.env(name, value);
    }
    // `sbatch` never reads standard input when a script is named, so it can hold `kept_open`.
    let stdin = kept_open.map_or(Stdio::null(), Stdio::from);
    let answer = match run_with(&mut command, stdin) {
        Ok(answer) => answer,
        Err(missing @ SlurmFault::Missing { .. }) => return Err(missing),
        Err(fault) => return Ok(SubmissionAttempt::Unclear(fault.to_string())),
    };
    if answer.status.success() {
        let printed = String::from_utf8_lossy(&answer.printed);
        let number = printed.split(['\n', ';']).next().unwrap_or_default();
        return Ok(match number.trim().parse() {
            Ok(number) => SubmissionAttempt::Submitted(number),
            Err(_) => SubmissionAttempt::Unclear(message_tail(&printed)),
        });
    }
    // Slurm may have created a job although its answer got lost.
    let said = message_tail(&answer.said);
    Ok(
        if is_controller_away(&said) || answer.status.code().is_none() {
            SubmissionAttempt::Unclear(said)
        } else {
            SubmissionAttempt::Refused(said)
        },
    )
}

/// Releases the held job `id`.
pub fn release_job(id: u64) -> Result<(), SlurmFault> {
    answer(slurm_command("scontrol").arg("release").arg(id.to_string())).map(|_| ())
}

/// Cancels the job `id`.
pub fn cancel_job(id: u64) -> Result<(), SlurmFault> {
    answer(slurm_command("scancel").arg(id.to_string())).map(|_| ())
}

/// Asks `scontrol` for the script of the job `id`, with its arguments. `None` if the job has no script that has a name.
pub fn query_job_command(id: u64) -> Result<Option<String>, SlurmFault> {
    let mut command = slurm_command("scontrol");
    let printed = answer(command.args(["show", "job"]).arg(id.to_string()))?;
    let printed = String::from_utf8_lossy(&printed);
    let command = printed
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("Command="));
    Ok(command
        .filter(|command| *command != "(null)")
        .map(str::to_owned))
}

/// Removes the variables of the job in which this program runs from the environment of `command`, an `sbatch`. It would
/// hand them to the new job: there an `srun` takes `SLURM_MEM_PER_NODE` or `SLURM_NTASKS` for its own options, and
/// `sbatch` itself takes `SLURM_HINT`.
fn without_own_job(mut command: Command) -> Command {
    if std::env::var_os("SLURM_JOB_ID").is_none() {
        return command;
    }
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let is_of_job = text.starts_with("SLURM_") || text.starts_with("SLURMD_");
        // These say how to reach the controller.
        if is_of_job && !["SLURM_CONF", "SLURM_JWT", "SLURM_TIME_FORMAT"].contains(&&*text) {
            command.env_remove(name);
        }
    }
    command
}

/// Creates a call of `program` without the user's settings for its output.
fn slurm_command(program: &str) -> Command {
    let mut command = command_without_keys(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["SQUEUE_", "SINFO_", "SACCT_"]
            .iter()
            .any(|begin| text.starts_with(begin))
        {
            command.env_remove(name);
        }
    }
    command.env("SLURM_TIME_FORMAT", "%s");
    command
}

/// The result of a command that ended.
struct ProgramAnswer {
    status: ExitStatus,
    printed: Vec<u8>,
    said: String,
}

/// Runs `command`, and returns its output if it succeeds.
fn answer(command: &mut Command) -> Result<Vec<u8>, SlurmFault> {
    let answer = run(command)?;
    if !answer.status.success() {
        return Err(refused(command, &answer.said));
    }
    Ok(answer.printed)
}

fn run(command: &mut Command) -> Result<ProgramAnswer, SlurmFault> {
    run_with(command, Stdio::null())
}

/// Runs `command` until it ends, and kills it after [`COMMAND_TIMEOUT`].
fn run_with(command: &mut Command, stdin: Stdio) -> Result<ProgramAnswer, SlurmFault> {
    let program = name_of(command);
    command.stdin(stdin);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| SlurmFault::Missing {
        program: program.clone(),
        why: error.to_string(),
    })?;
    // Read both pipes at the same time, so that the command never blocks on a full pipe.
    let printed = read_on_thread(child.stdout.take(), MAX_BYTES);
    let said = read_on_thread(child.stderr.take(), MAX_STDERR_BYTES);

    let deadline = Instant::now() + COMMAND_TIMEOUT;
    let silent = || SlurmFault::Silent {
        program: program.clone(),
    };
    let status = wait(&mut child, &program, deadline)?;
    // A child of the command may still hold the pipes open.
    let printed = received(&printed, deadline).ok_or_else(silent)?;
    let said = received(&said, deadline).ok_or_else(silent)?;
    match printed {
        Ok(printed) => Ok(ProgramAnswer {
            status,
            printed,
            said: String::from_utf8_lossy(&said.unwrap_or_default()).into_owned(),
        }),
        Err(error) => Err(SlurmFault::Unusable {
            program,
            why: error.to_string(),
        }),
    }
}

type PipeContent = std::io::Result<Vec<u8>>;

/// Reads all of `pipe` on a separate thread. The result is an error if there are more than `most`
/// bytes.
fn read_on_thread(pipe: Option<impl Read + Send + 'static>, most: u64) -> Receiver<PipeContent> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut read = Ok(0);
        if let Some(pipe) = pipe {
            read = pipe.take(most + 1).read_to_end(&mut bytes);
        }
        let is_too_long = bytes.len() as u64 > most;
        let all = match read {
            Ok(_) if is_too_long => Err(std::io::Error::other(format!("more than {most} bytes"))),
            Ok(_) => Ok(bytes),
            Err(error) => Err(error),
        };
        // After a timeout the receiver is gone, which is fine.
        let _ = sender.send(all);
    });
    receiver
}

fn received(receiver: &Receiver<PipeContent>, deadline: Instant) -> Option<PipeContent> {
    let left = deadline.saturating_duration_since(Instant::now());
    receiver.recv_timeout(left.max(POLL_INTERVAL)).ok()
}

/// Waits for `child` to end, and kills it at `deadline`.
fn wait(child: &mut Child, program: &str, deadline: Instant) -> Result<ExitStatus, SlurmFault> {
    loop {
        let ended = child.try_wait().map_err(|error| SlurmFault::Unusable {
            program: program.to_owned(),
            why: error.to_string(),
        })?;
        if let Some(status) = ended {
            return Ok(status);
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Err(SlurmFault::Silent {
                program: program.to_owned(),
            });
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn name_of(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn refused(command: &Command, said: &str) -> SlurmFault {
    SlurmFault::Refused {
        program: name_of(command),
        said: message_tail(said),
    }
}

/// Joins the last three lines of an error output, and keeps the last [`MAX_MESSAGE_CHARS`]
/// characters.
fn message_tail(said: &str) -> String {
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let line = lines[lines.len().saturating_sub(3)..].join("; ");
    let characters = line.chars().count();
    line.chars()
        .skip(characters.saturating_sub(MAX_MESSAGE_CHARS))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_errors_of_programs_are_returned() {
        assert_eq!(
            answer(Command::new("echo").arg("a")).expect("an answer"),
            b"a\n"
        );
        let refused =
            answer(Command::new("sh").args(["-c", "echo; echo no such thing >&2; exit 3"]));
        let refused = refused.expect_err("refused");
        assert_eq!(refused.to_string(), "`sh` failed: no such thing");
        assert!(!refused.is_transient());
        let missing = answer(&mut Command::new("no-such-program")).expect_err("missing");
        assert!(matches!(missing, SlurmFault::Missing { .. }), "{missing}");
        let away = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)";
        assert!(is_controller_away(away));
    }

    #[test]
    fn recorded_states_are_parsed() {
        let RecordedState::Ended(ended) = recorded_state("1000|1060|CANCELLED by 0\n") else {
            panic!("it has ended");
        };
        assert_eq!((ended.start_s, ended.end_s), (Some(1000), 1060));
        assert_eq!(ended.outcome, Some(JobOutcome::Cancelled));
        for unknown in ["", "slurm"] {
            assert_eq!(recorded_state(unknown), RecordedState::Unknown, "{unknown}");
        }
        for alive in [
            "1000|Unknown|RUNNING\n",
            "Unknown|Unknown|PENDING\n",
            "1000|Unknown|DREAMING\n",
        ] {
            assert_eq!(recorded_state(alive), RecordedState::Alive, "{alive}");
        }
    }

    #[test]
    fn planned_starts_are_parsed() {
        let said = "sbatch: Job 8 to start at 1795407855 using 2 processors on nodes n[1-2] in partition all\n";
        let planned = planned_start(said).expect("a start");
        assert_eq!(planned.start_s, 1_795_407_855);
        assert_eq!(planned.partition.as_deref(), Some("all"));
        assert_eq!(
            planned_start("allocation failure: Requested node configuration is not available"),
            None
        );
    }
}
