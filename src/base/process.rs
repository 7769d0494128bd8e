//! A process ⇄ what identifies it on its host, so that the dead are known at once where that can be
//! known.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

/// A process. Two of equal identity are one, on whatever host and in whatever container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The name of its host.
    pub host: String,
    /// Of this start of the host.
    boot_id: String,
    /// The namespace in which the number counts.
    pid_namespace: String,
    /// Its number.
    pub pid: u32,
    /// When it began, in the kernel's ticks.
    start: String,
}

/// What this host knows of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessStatus {
    /// It runs.
    Running,
    /// It is no more.
    Gone,
    /// It is stopped, or of another host.
    Unknown,
}

impl Process {
    /// This process.
    pub fn current() -> Process {
        let read = |path: &str| {
            fs_err::read_to_string(path).map_or(String::new(), |text| text.trim().to_owned())
        };
        let pid = std::process::id();
        let namespace = fs_err::read_link("/proc/self/ns/pid").unwrap_or_default();
        Process {
            host: read("/proc/sys/kernel/hostname"),
            boot_id: read("/proc/sys/kernel/random/boot_id"),
            pid_namespace: namespace.to_string_lossy().into_owned(),
            pid,
            start: status(pid).map_or(String::new(), |(_, start)| start),
        }
    }

    /// A name for a worker in this process, unlike any other's: `node7-4711-9f3c2a1b`.
    pub fn worker_name(&self) -> String {
        use std::hash::{BuildHasher as _, Hasher as _};
        let host = self.host.split('.').next().unwrap_or("");
        let host: String = host
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
            .take(40)
            .collect();
        // The standard library's keys are the system's random numbers.
        let nonce = std::hash::RandomState::new().build_hasher().finish() as u32;
        format!("{host}-{}-{nonce:08x}", self.pid)
    }

    /// What identifies it, as a part of a file's name: `4711-8273645-4026531836-9f3c2a1b...` for
    /// its number, its start, the namespace of its number and this start of its host. No two
    /// processes have one, so that a number used again, or another host on a shared file system, is
    /// never mistaken for it.
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

    /// The process of which [`Process::file_name_part`] is `part`, but for the name of its host.
    pub fn of_file_name_part(part: &str) -> Option<Process> {
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

    /// What has become of it, seen from this process's host.
    pub fn status_seen_from(&self, current: &Process) -> ProcessStatus {
        let here = !self.boot_id.is_empty()
            && !self.pid_namespace.is_empty()
            && (&self.boot_id, &self.pid_namespace) == (&current.boot_id, &current.pid_namespace);
        match (here, status(self.pid)) {
            (false, _) => ProcessStatus::Unknown,
            (true, None) if is_free(self.pid) => ProcessStatus::Gone,
            (true, None) => ProcessStatus::Unknown,
            (true, Some((state, start))) if start != self.start || "ZX".contains(state) => {
                ProcessStatus::Gone
            }
            (true, Some((state, _))) if "Tt".contains(state) => ProcessStatus::Unknown,
            _ => ProcessStatus::Running,
        }
    }
}

/// Whether no process has the number `pid`. `/proc` alone does not tell: it may hide the processes
/// of other users.
fn is_free(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// The state letter and the start of the process `pid`.
fn status(pid: u32) -> Option<(char, String)> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses, and may hold any character.
    let mut fields = text.rsplit_once(") ")?.1.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_living_and_the_dead_are_told_apart() {
        let current = Process::current();
        assert_eq!(current.status_seen_from(&current), ProcessStatus::Running);
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .expect("it starts");
        let (_, start) = status(child.id()).expect("it runs");
        let process = Process {
            pid: child.id(),
            start,
            ..current.clone()
        };
        assert_eq!(process.status_seen_from(&current), ProcessStatus::Running);
        child.kill().expect("killed");
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
    fn file_names_identify_processes() {
        let current = Process::current();
        let part = current.file_name_part();
        let found = Process::of_file_name_part(&part).expect("it is one");
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
            assert_eq!(Process::of_file_name_part(other), None, "{other}");
        }
    }
}
