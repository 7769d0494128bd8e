//! A process ⇄ what identifies it on its host, so that the dead are known at once where that can be known.

use serde::{Deserialize, Serialize};

/// A process. Two of equal identity are one, on whatever host and in whatever container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Process {
    pub(super) host: String,
    /// Of this start of the host.
    boot_id: String,
    /// The namespace in which the number counts.
    pid_namespace: String,
    pid: u32,
    /// When it began, in the kernel's ticks.
    start: String,
}

/// What this host knows of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It runs.
    Runs,
    /// It is no more.
    Gone,
    /// It is stopped, or of another host.
    Unknown,
}

impl Process {
    /// This process.
    pub(super) fn current() -> Process {
        let read = |path: &str| fs_err::read_to_string(path).map_or(String::new(), |text| text.trim().to_owned());
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
    pub(super) fn worker_name(&self) -> String {
        use std::hash::{BuildHasher as _, Hasher as _};
        let host = self.host.split('.').next().unwrap_or("");
        let host: String = host.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
        // The standard library's keys are the system's random numbers.
        let nonce = std::hash::RandomState::new().build_hasher().finish() as u32;
        format!("{host}-{}-{nonce:08x}", self.pid)
    }

    /// What has become of it, seen from this process's host.
    pub(super) fn fate(&self, current: &Process) -> Fate {
        let here = !self.boot_id.is_empty()
            && !self.pid_namespace.is_empty()
            && (&self.boot_id, &self.pid_namespace) == (&current.boot_id, &current.pid_namespace);
        match (here, status(self.pid)) {
            (false, _) => Fate::Unknown,
            (true, None) => Fate::Gone,
            (true, Some((state, start))) if start != self.start || "ZX".contains(state) => Fate::Gone,
            (true, Some((state, _))) if "Tt".contains(state) => Fate::Unknown,
            _ => Fate::Runs,
        }
    }
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
        assert_eq!(current.fate(&current), Fate::Runs);
        let mut child = std::process::Command::new("sleep").arg("100").spawn().expect("it starts");
        let (_, start) = status(child.id()).expect("it runs");
        let process = Process { pid: child.id(), start, ..current.clone() };
        assert_eq!(process.fate(&current), Fate::Runs);
        child.kill().expect("killed");
        while process.fate(&current) == Fate::Runs {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(process.fate(&current), Fate::Gone, "not yet waited for");
        child.wait().expect("it ended");
        assert_eq!(process.fate(&current), Fate::Gone);
        assert_eq!(
            Process { start: "0".to_owned(), ..current.clone() }.fate(&current),
            Fate::Gone,
            "its number came again"
        );
        assert_eq!(Process { boot_id: "another".to_owned(), ..process }.fate(&current), Fate::Unknown);
    }

    #[test]
    fn names_differ_and_are_names() {
        let current = Process { host: "über.example.org".to_owned(), ..Process::current() };
        let (a, b) = (current.worker_name(), current.worker_name());
        assert!(a != b && crate::sweep::queue::token::is_worker(&a), "{a} {b}");
        assert!(a.starts_with("ber-"), "{a}");
    }
}
