//! The process of a trial: a group of its own, with its output in a file.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use rustix::process::{Pid, Signal, kill_process_group};

use poolcast_base::files;

/// Time that a process has to end after SIGTERM, before SIGKILL.
const TERM_TIME: Duration = Duration::from_secs(10);

/// Interval between checks whether a process has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The file of the ids of a running process and of the worker that started it, in the directory of
/// its attempt.
const PID_FILE: &str = "process.pid";

/// The environment variable with the directory of the attempt, by which its process is recognized.
pub(super) const DIR_VARIABLE: &str = "POOLCAST_TRIAL_DIR";

/// A process that has been started and whose end has not been seen.
pub(super) struct TrialProcess {
    child: Child,
    pid_file: PathBuf,
    has_ended: bool,
}

impl TrialProcess {
    /// Starts the `command` line in `directory`, with `variables` in its environment. Its output is
    /// appended to `log`.
    ///
    /// # Errors
    /// Fails for a program that cannot be started, and on a full disk.
    pub(super) fn start(
        command: &[String],
        directory: &Path,
        dir: &Path,
        log: &Path,
        variables: &[(String, String)],
    ) -> Result<TrialProcess> {
        let output = fs_err::OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)?;
        let errors = output.try_clone()?;
        let (program, arguments) = command.split_first().context("the command is empty")?;
        let child = Command::new(program)
            .args(arguments)
            .current_dir(directory)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .env(DIR_VARIABLE, dir)
            .stdin(Stdio::null())
            .stdout(output.into_parts().0)
            .stderr(errors.into_parts().0)
            .process_group(0)
            .spawn();
        // The text alone, because an error of the system would count as a fault of this machine.
        let child = child.map_err(|error| anyhow!("cannot start `{program}`: {error}"))?;

        let mut process = TrialProcess {
            child,
            pid_file: dir.join(PID_FILE),
            has_ended: false,
        };
        let ids = format!("{} {}\n", process.child.id(), std::process::id());
        if let Err(error) = files::write_atomic(&process.pid_file, ids.as_bytes()) {
            process.stop();
            return Err(error);
        }
        Ok(process)
    }

    /// The exit status, once the process has ended.
    pub(super) fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.note_end();
        }
        Ok(status)
    }

    /// Ends the process and all processes of its group: by SIGTERM, and by SIGKILL if that does not
    /// help in time.
    pub(super) fn stop(&mut self) {
        if self.has_ended {
            return;
        }
        self.signal(Signal::TERM);
        let began = Instant::now();
        while began.elapsed() < TERM_TIME {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                break;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        // Processes that the program has started may outlive it.
        self.signal(Signal::KILL);
        let _ = self.child.wait();
        self.note_end();
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // The group may have ended by itself.
        let _ = pid.map(|pid| kill_process_group(pid, signal));
    }

    fn note_end(&mut self) {
        self.has_ended = true;
        let _ = fs_err::remove_file(&self.pid_file);
    }
}

impl Drop for TrialProcess {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Ends the process of the attempt in `dir`, if it runs on this machine and has outlived the worker
/// that started it.
pub(super) fn end_orphan(dir: &Path) {
    let ids = fs_err::read_to_string(dir.join(PID_FILE)).unwrap_or_default();
    let ids = ids.trim_end().split_once(' ');
    let Some((pid, worker)) = ids.and_then(|(pid, worker)| Some((pid.parse().ok()?, worker)))
    else {
        return;
    };

    let is_orphan = is_process_of(pid, dir) && parent_of(pid).is_some_and(|it| it != worker);
    if is_orphan && let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// Returns true if the process `pid` is that of the attempt in `dir`: the number may belong to another
/// process by now, but no other process has this variable.
fn is_process_of(pid: i32, dir: &Path) -> bool {
    let wanted = format!("{DIR_VARIABLE}={}", dir.display());
    let environment = fs_err::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut variables = environment.split(|byte| *byte == 0);
    variables.any(|variable| variable == wanted.as_bytes())
}

/// The id of the parent of the process `pid`, in digits.
fn parent_of(pid: i32) -> Option<String> {
    let status = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the name of the program in parentheses, which may contain blanks.
    let (_, fields) = status.rsplit_once(") ")?;
    Some(fields.split_ascii_whitespace().nth(1)?.to_owned())
}
