//! The identity of a process: recorded in files, so that the end of a process on the same host can
//! be detected at once.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde::{Deserialize, Serialize};

/// A process. Equal values mean the same process, on all hosts and in all containers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Host name.
    pub host: String,
    /// Identifier of the host's current boot, from the kernel.
    boot_id: String,
    /// PID namespace in which `pid` is valid.
    pid_namespace: String,
    /// Process id.
    pub pid: u32,
    /// Start time, in the kernel's ticks since boot.
    start: String,
}

/// State of a process, as this host knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessStatus {
    /// The process runs.
    Running,
    /// The process has ended.
    Gone,
    /// The process is stopped by a signal, and may go on.
    Stopped,
    /// The process is on another host, or cannot be inspected.
    Unknown,
}

impl Process {
    /// Returns the identity of this process.
    pub fn current() -> Process {
        Process::with_id(std::process::id())
    }

    /// Returns the identity of the process `pid` in the PID namespace of this one.
    pub fn with_id(pid: u32) -> Process {
        let read = |path: &str| {
            fs_err::read_to_string(path).map_or(String::new(), |text| text.trim().to_owned())
        };
        let namespace = fs_err::read_link("/proc/self/ns/pid").unwrap_or_default();
        Process {
            host: read("/proc/sys/kernel/hostname"),
            boot_id: read("/proc/sys/kernel/random/boot_id"),
            pid_namespace: namespace.to_string_lossy().into_owned(),
            pid,
            start: status(pid).map_or(String::new(), |(_, start)| start),
        }
    }

    /// Returns a unique name for a worker in this process: `node7-4711-9f3c2a1b`.
    pub fn worker_name(&self) -> String {
        use std::hash::{BuildHasher as _, Hasher as _};
        let host = self.host.split('.').next().unwrap_or("");
        let host: String = host
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
            .take(40)
            .collect();
        // The standard library seeds its hash keys with random numbers from the system.
        let nonce = std::hash::RandomState::new().build_hasher().finish() as u32;
        format!("{host}-{}-{nonce:08x}", self.pid)
    }

    /// Returns the identity as a part of a file name: `4711-8273645-4026531836-9f3c2a1b...` for the
    /// process id, the start time, the PID namespace and the boot id. It is unique. A reused
    /// process id, or a process of another host on a shared file system, is never mistaken for this
    /// process.
    pub fn file_name_part(&self) -> String {
        let namespace: String = self
            .pid_namespace
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        let boot_id: String = self
            .boot_id
            .chars()
            .filter(char::is_ascii_hexdigit)
            .collect();
        format!("{}-{}-{namespace}-{boot_id}", self.pid, self.start)
    }

    /// Parses a part of a file name that [`Process::file_name_part`] made. The host name is not in
    /// it and stays empty. Returns `None` if `part` has another form.
    pub fn from_file_name_part(part: &str) -> Option<Process> {
        let fields: Vec<&str> = part.split('-').collect();
        let [pid, start, namespace, boot_id] = fields[..] else {
            return None;
        };
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_boot_id =
            boot_id.len() == 32 && boot_id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !(is_number(pid) && is_number(start) && is_number(namespace) && is_boot_id) {
            return None;
        }

        let lengths = [0..8, 8..12, 12..16, 16..20, 20..32];
        Some(Process {
            host: String::new(),
            boot_id: lengths.map(|range| &boot_id[range]).join("-"),
            pid_namespace: format!("pid:[{namespace}]"),
            pid: pid.parse().ok()?,
            start: start.to_owned(),
        })
    }

    /// Returns the state of this process, as seen from the process `current`. It is known only if
    /// both have the same boot and PID namespace.
    pub fn status_seen_from(&self, current: &Process) -> ProcessStatus {
        let here = !self.boot_id.is_empty()
            && !self.pid_namespace.is_empty()
            && (&self.boot_id, &self.pid_namespace) == (&current.boot_id, &current.pid_namespace);
        match (here, status(self.pid)) {
            (false, _) => ProcessStatus::Unknown,
            (true, None) if is_pid_unused(self.pid) => ProcessStatus::Gone,
            (true, None) => ProcessStatus::Unknown,
            // Another start time means that the id was reused. A zombie (Z) or dead (X) process has
            // ended, too.
            (true, Some((state, start))) if start != self.start || "ZX".contains(state) => {
                ProcessStatus::Gone
            }
            (true, Some((state, _))) if "Tt".contains(state) => ProcessStatus::Stopped,
            _ => ProcessStatus::Running,
        }
    }
}

/// Asks `process` by SIGTERM to end, if it runs on this host.
pub fn ask_to_end(process: &Process) {
    let is_running = process.status_seen_from(&Process::current()) == ProcessStatus::Running;
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid.filter(|_| is_running) {
        // If it has ended meanwhile, there is nothing to ask.
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Returns true if no process has the id `pid`. Checking `/proc` is not enough, because it may hide
/// the processes of other users.
fn is_pid_unused(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// Returns the state letter and the start time of the process `pid`, from `/proc/PID/stat`.
fn status(pid: u32) -> Option<(char, String)> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses. It may contain any character, so the
    // fields are counted from the last parenthesis.
    let mut fields = text.rsplit_once(") ")?.1.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_processes_are_detected_on_their_host() {
        let current = Process::current();
        assert_eq!(current.status_seen_from(&current), ProcessStatus::Running);
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .expect("it starts");
        let process = Process::with_id(child.id());
        ask_to_end(&Process {
            start: "0".to_owned(),
            ..process.clone()
        });
        assert_eq!(process.status_seen_from(&current), ProcessStatus::Running);
        ask_to_end(&process);
        while process.status_seen_from(&current) == ProcessStatus::Running {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(
            process.status_seen_from(&current),
            ProcessStatus::Gone,
            "not yet waited for"
        );
        child.wait().expect("it ended");
        assert_eq!(process.status_seen_from(&current), ProcessStatus::Gone);
        assert_eq!(
            Process {
                start: "0".to_owned(),
                ..current.clone()
            }
            .status_seen_from(&current),
            ProcessStatus::Gone,
            "its number came again"
        );
        assert_eq!(
            Process {
                boot_id: "another".to_owned(),
                ..process
            }
            .status_seen_from(&current),
            ProcessStatus::Unknown
        );
    }

    #[test]
    fn processes_round_trip_through_file_names() {
        let current = Process::current();
        let part = current.file_name_part();
        let found = Process::from_file_name_part(&part).expect("it is one");
        assert_eq!(
            Process {
                host: current.host.clone(),
                ..found
            },
            current
        );
        for other in [
            "",
            "1",
            "1-2-3",
            &part[1..].replace('-', "_"),
            &format!("{part}0"),
            &format!("-{part}"),
        ] {
            assert_eq!(Process::from_file_name_part(other), None, "{other}");
        }
    }
}
