//! Slurm's own programs: what they are asked, and what they answer. Nothing else of this crate runs
//! them.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::listed_job::ListedJob;
use super::node_listing::SINFO_COLUMNS;
use super::queue_text::SQUEUE_COLUMNS;
use super::slurm_state::{JobOutcome, QueueState, read_state};
use poolcast_base::program::command_without_keys;

/// An answer has no more bytes.
const MOST_BYTES: u64 = 1 << 30;

/// What a program says of its failure has no more.
const MOST_SAID_BYTES: u64 = 1 << 20;

/// And so many characters of that are told.
const MOST_SAID: usize = 2000;

/// A program that takes longer is ended. Slurm's give up by themselves before.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often it is looked whether a program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What goes wrong with a program of Slurm's.
#[derive(Debug, thiserror::Error)]
pub enum SlurmFault {
    /// It is not there.
    #[error("cannot run `{program}`: {why}")]
    Missing {
        /// Which.
        program: String,
        /// What the system says.
        why: String,
    },
    /// It failed.
    #[error("`{program}` failed: {said}")]
    Refused {
        /// Which.
        program: String,
        /// What it says of that.
        said: String,
    },
    /// It did not end.
    #[error("`{program}` has not answered for {} seconds", PATIENCE.as_secs())]
    Silent {
        /// Which.
        program: String,
    },
    /// Its answer is too long, or cannot be read.
    #[error("cannot use the answer of `{program}`: {why}")]
    Unusable {
        /// Which.
        program: String,
        /// Why.
        why: String,
    },
}

impl SlurmFault {
    /// Whether the controller may just not be there for a while.
    pub fn may_pass(&self) -> bool {
        match self {
            SlurmFault::Missing { .. } | SlurmFault::Unusable { .. } => false,
            SlurmFault::Silent { .. } => true,
            SlurmFault::Refused { said, .. } => is_controller_away(said),
        }
    }
}

/// Whether these are words of a program that did not reach the controller, or was told to come later.
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

/// What `squeue` prints of all jobs that Slurm knows: as JSON, or as text by a Slurm that was built
/// without.
pub fn ask_queue() -> Result<Vec<u8>, SlurmFault> {
    let all = ["--all", "--states=all"];
    json_or_text("squeue", &all, &[&format!("--format={SQUEUE_COLUMNS}")])
}

/// What `sinfo` prints of all nodes: as JSON, or as text by a Slurm that was built without.
pub fn ask_nodes() -> Result<Vec<u8>, SlurmFault> {
    let text = ["--Node", &format!("--format={SINFO_COLUMNS}")];
    json_or_text("sinfo", &["--all"], &text)
}

/// What `program` prints of `what` as JSON; if it refuses that, what it prints with the options
/// `text`.
fn json_or_text(program: &str, what: &[&str], text: &[&str]) -> Result<Vec<u8>, SlurmFault> {
    match answer(asked(program).args(what).arg("--json")) {
        Err(refusal @ SlurmFault::Refused { .. }) if !refusal.may_pass() => {
            answer(asked(program).args(what).args(text)).map_err(|_| refusal)
        }
        answered => answered,
    }
}

/// What `sacct` prints of the jobs of the last `days` days, with moments in seconds of the epoch.
pub fn ask_accounting(days: u32) -> Result<Vec<u8>, SlurmFault> {
    let columns = "JobID,User,Submit,Eligible,Start,End,TimelimitRaw,NNodes,State";
    let mut command = asked("sacct");
    command.args(["--allusers", "--duplicates", "--allocations", "--parsable2"]);
    command.arg(format!("--starttime=now-{days}days"));
    answer(command.arg(format!("--format={columns}")))
}

/// What the accounting says of a job that has ended. Moments are epoch seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedEnd {
    /// When it started, if it did.
    pub start_s: Option<i64>,
    /// When it ended.
    pub end_s: i64,
    /// How it ended, if that is known.
    pub outcome: Option<JobOutcome>,
}

/// How the job `id` ended, by `sacct`; `None` where it has no such job, or one that has not ended.
pub fn ask_ended_job(id: u64) -> Result<Option<RecordedEnd>, SlurmFault> {
    let mut command = asked("sacct");
    command.args([
        "--allocations",
        "--noheader",
        "--parsable2",
        "--format=Start,End,State",
    ]);
    let printed = answer(command.arg(format!("--jobs={id}")))?;
    Ok(recorded_end(&String::from_utf8_lossy(&printed)))
}

/// The end in a line `START|END|STATE`.
fn recorded_end(printed: &str) -> Option<RecordedEnd> {
    let mut fields = printed.lines().next()?.split('|');
    let (start, end, state) = (fields.next()?, fields.next()?, fields.next()?);
    let (state, outcome) = read_state(&[state.to_owned()])?;
    Some(RecordedEnd {
        start_s: start.parse().ok(),
        end_s: end.parse().ok().filter(|_| state == QueueState::Ended)?,
        outcome,
    })
}

/// When Slurm itself would start a job like `job` if it were submitted now, epoch seconds: what
/// `sbatch --test-only` says, which submits nothing.
pub fn ask_planned_start(job: &ListedJob) -> Result<i64, SlurmFault> {
    let mut command = asked("sbatch");
    command.args(["--test-only", "--wrap=true"]);
    command.arg(format!("--nodes={}", job.nodes));
    if let Some(limit_s) = job.limit_s {
        command.arg(format!("--time={}", (limit_s / 60).max(1)));
    }
    command.arg(format!("--partition={}", job.partitions.join(",")));
    for (option, value) in [("--account", &job.account), ("--qos", &job.qos)] {
        if let Some(value) = value {
            command.arg(format!("{option}={value}"));
        }
    }
    let answer = run(&mut command)?;
    // It says so as if it were an error.
    let said = format!(
        "{}{}",
        answer.said,
        String::from_utf8_lossy(&answer.printed)
    );
    if !answer.status.success() {
        return Err(refused(&command, &said));
    }
    planned_start_s(&said).ok_or_else(|| SlurmFault::Unusable {
        program: name_of(&command),
        why: last_words(&said),
    })
}

/// What Slurm says of a script, and its arguments, that would be submitted now.
pub fn test_script(command_line: &[String]) -> Result<String, SlurmFault> {
    let mut command = command_without_keys("sbatch");
    command.arg("--test-only").args(command_line);
    let answer = run(&mut command)?;
    if !answer.status.success() {
        return Err(refused(&command, &answer.said));
    }
    Ok(last_words(&answer.said))
}

/// The moment in `sbatch: Job 8 to start at 1795407855 using 2 processors on nodes ...`.
fn planned_start_s(said: &str) -> Option<i64> {
    let (_, rest) = said.split_once(" to start at ")?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// What came of a submission.
#[derive(Debug)]
pub enum SubmissionAttempt {
    /// The number of the job.
    Submitted(u64),
    /// Slurm has not taken the job, and says why.
    Refused(String),
    /// Nobody knows.
    Unclear(String),
}

/// Submits a job by `sbatch` with `arguments`, and the variables `environment`. `kept_open` stays open
/// until the program is gone, even if this process is not there to see that.
pub fn submit_job(
    arguments: &[String],
    environment: &[(&str, String)],
    kept_open: Option<std::fs::File>,
) -> Result<SubmissionAttempt, SlurmFault> {
    let mut command = command_without_keys("sbatch");
    command.args(["--parsable"]).args(arguments);
    for (name, value) in environment {
        command.env(name, value);
    }
    // A script that is named is not read from standard input.
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
            Err(_) => SubmissionAttempt::Unclear(last_words(&printed)),
        });
    }
    // An answer that got lost may have been a job.
    let said = last_words(&answer.said);
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
    answer(asked("scontrol").arg("release").arg(id.to_string())).map(|_| ())
}

/// Cancels the job `id`.
pub fn cancel_job(id: u64) -> Result<(), SlurmFault> {
    answer(asked("scancel").arg(id.to_string())).map(|_| ())
}

/// A call of `program` that is not influenced by what a user has set for its output.
fn asked(program: &str) -> Command {
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

/// What a program left.
struct ProgramAnswer {
    status: ExitStatus,
    printed: Vec<u8>,
    said: String,
}

/// What `command` prints, if it succeeds.
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

/// Runs `command` to its end, which is made to come if it takes too long.
fn run_with(command: &mut Command, stdin: Stdio) -> Result<ProgramAnswer, SlurmFault> {
    let program = name_of(command);
    command.stdin(stdin);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| SlurmFault::Missing {
        program: program.clone(),
        why: error.to_string(),
    })?;
    // Both are read at once, so that it never waits for a reader.
    let printed = read_apart(child.stdout.take(), MOST_BYTES);
    let said = read_apart(child.stderr.take(), MOST_SAID_BYTES);

    let deadline = Instant::now() + PATIENCE;
    let silent = || SlurmFault::Silent {
        program: program.clone(),
    };
    let status = wait(&mut child, &program, deadline)?;
    // What it has started may still hold the pipes.
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

type ReadBytes = std::io::Result<Vec<u8>>;

/// Reads all of `pipe` in a thread of its own, `most` bytes at most.
fn read_apart(pipe: Option<impl Read + Send + 'static>, most: u64) -> Receiver<ReadBytes> {
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
        // Nobody waits for it any more if it took too long.
        let _ = sender.send(all);
    });
    receiver
}

fn received(receiver: &Receiver<ReadBytes>, deadline: Instant) -> Option<ReadBytes> {
    let left = deadline.saturating_duration_since(Instant::now());
    receiver.recv_timeout(left.max(LOOK_EVERY)).ok()
}

/// Waits for `child`, which is ended at `deadline`.
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
        std::thread::sleep(LOOK_EVERY);
    }
}

fn name_of(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn refused(command: &Command, said: &str) -> SlurmFault {
    SlurmFault::Refused {
        program: name_of(command),
        said: last_words(said),
    }
}

/// The end of what a program said, in one line.
fn last_words(said: &str) -> String {
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let line = lines[lines.len().saturating_sub(3)..].join("; ");
    let characters = line.chars().count();
    line.chars()
        .skip(characters.saturating_sub(MOST_SAID))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_refusals_are_told() {
        assert_eq!(
            answer(Command::new("echo").arg("a")).expect("an answer"),
            b"a\n"
        );
        let refused =
            answer(Command::new("sh").args(["-c", "echo; echo no such thing >&2; exit 3"]));
        let refused = refused.expect_err("refused");
        assert_eq!(refused.to_string(), "`sh` failed: no such thing");
        assert!(!refused.may_pass());
        let missing = answer(&mut Command::new("no-such-program")).expect_err("missing");
        assert!(matches!(missing, SlurmFault::Missing { .. }), "{missing}");
        let away = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)";
        assert!(is_controller_away(away));
    }

    #[test]
    fn the_accounting_says_how_a_job_ended() {
        let ended = recorded_end("1000|1060|CANCELLED by 0\n").expect("an end");
        assert_eq!((ended.start_s, ended.end_s), (Some(1000), 1060));
        assert_eq!(ended.outcome, Some(JobOutcome::Cancelled));
        for none in ["", "1000|Unknown|RUNNING\n", "slurm"] {
            assert_eq!(recorded_end(none), None, "{none}");
        }
    }

    #[test]
    fn slurm_says_when_a_job_would_start() {
        let said = "sbatch: Job 8 to start at 1795407855 using 2 processors on nodes n[1-2] in partition all\n";
        assert_eq!(planned_start_s(said), Some(1_795_407_855));
        assert_eq!(
            planned_start_s("allocation failure: Requested node configuration is not available"),
            None
        );
    }
}
