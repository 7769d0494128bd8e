//! The process of a trial: a group of its own, with its output in a file.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use rustix::process::{Pid, Signal, kill_process_group};

/// Time that a process has to end after SIGTERM, before SIGKILL.
const TERM_TIME: Duration = Duration::from_secs(10);

/// Interval between checks whether a process has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The environment variable with the directory of the attempt, by which its process is recognized.
pub(super) const DIR_VARIABLE: &str = "POOLCAST_TRIAL_DIR";

/// A process that has been started and whose end has not been seen.
pub(super) struct TrialProcess {
    child: Child,
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

        Ok(TrialProcess {
            child,
            has_ended: false,
        })
    }

    /// The exit status, once the process has ended.
    pub(super) fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        self.has_ended |= status.is_some();
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
        self.has_ended = true;
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // The group may have ended by itself.
        let _ = pid.map(|pid| kill_process_group(pid, signal));
    }
}

impl Drop for TrialProcess {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Ends the processes of the attempts in `dirs` that run on this machine and have outlived their
/// workers. The name of a directory ends with the worker's name, which has its process id.
pub(super) fn end_orphans(dirs: &BTreeSet<PathBuf>) {
    let processes = fs_err::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let pid = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(pid) = pid.filter(|_| is_comparable(&process.path())) else {
            continue;
        };
        let dir = attempt_dir_of(&process.path()).filter(|dir| dirs.contains(dir));
        let worker = dir.as_deref().and_then(worker_pid);
        let Some((worker, ids)) = worker.zip(ids_of(&process.path())) else {
            continue;
        };
        if ids.group == pid && ids.parent != worker {
            let pid = Pid::from_raw(pid);
            let _ = pid.map(|pid| kill_process_group(pid, Signal::KILL));
        }
    }
}

/// Returns true if the process ids in the directory `process` of `/proc` are comparable with the id of
/// this process. In a container, they may be others.
fn is_comparable(process: &Path) -> bool {
    let own = fs_err::read_link("/proc/self/ns/pid").ok();
    own.is_some() && fs_err::read_link(process.join("ns/pid")).ok() == own
}

/// The directory of the attempt that a process was started for.
fn attempt_dir_of(process: &Path) -> Option<PathBuf> {
    let environment = fs_err::read(process.join("environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let name = format!("{DIR_VARIABLE}=");
    let dir = variables.find_map(|variable| variable.strip_prefix(name.as_bytes()))?;
    Some(PathBuf::from(std::str::from_utf8(dir).ok()?))
}

/// The process id in the name of the worker of the attempt in `dir`, such as `node7-4711-9f3c2a1b`.
fn worker_pid(dir: &Path) -> Option<i32> {
    let mut parts = dir.file_name()?.to_str()?.rsplit('-');
    parts.nth(1)?.parse().ok()
}

/// Ids of a process.
struct ProcessIds {
    parent: i32,
    group: i32,
}

fn ids_of(process: &Path) -> Option<ProcessIds> {
    let status = fs_err::read_to_string(process.join("stat")).ok()?;
    // The second field is the name of the program in parentheses, which may contain blanks.
    let (_, fields) = status.rsplit_once(") ")?;
    let mut fields = fields.split_ascii_whitespace().skip(1);
    Some(ProcessIds {
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_is_known_by_the_name_of_a_directory() {
        let pid = |name: &str| worker_pid(Path::new("/a/queue/running").join(name).as_path());
        assert_eq!(pid("t000001-e000001.a1.node-7-4711-9f3c2a1b"), Some(4711));
        assert_eq!(pid("t000001-e000001.a1.nobody"), None);
    }

    #[test]
    fn ids_of_this_process_are_read() {
        let ids = ids_of(Path::new("/proc/self")).expect("ids");
        let parent = std::os::unix::process::parent_id();
        assert_eq!(u32::try_from(ids.parent), Ok(parent));
    }
}
