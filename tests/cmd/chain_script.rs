//! Tests of `slurm/chain.sbatch`, a link of a chain, with fake Slurm programs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::place::{Outcome, Place};
use crate::sweep::wait;

/// A link with the job number 12, whose predecessor is job 11. `squeue` prints the file `queue`, and
/// fails while there is none. `scancel` notes its arguments, and ends job 11. `sleep` writes the file
/// `asleep`, and ends once there is a file `awake`.
struct Link {
    place: Place,
}

impl Link {
    fn new() -> Link {
        let link = Link {
            place: Place::new(),
        };
        link.program("squeue", "cat queue");
        link.program("sacct", "cat record 2>/dev/null");
        link.program(
            "scancel",
            "echo \"$*\" >>cancelled; sed -i 's/^11 RUNNING/11 COMPLETED/' queue",
        );
        let sleep = "touch asleep; until [ -e awake ]; do /bin/sleep 0.02; done";
        link.program("sleep", sleep);
        link
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.place.path(name);
        self.place.write(name, format!("#!/bin/bash\n{text}\n"));
        let mode = std::fs::Permissions::from_mode(0o755);
        fs_err::set_permissions(path, mode).expect("made executable");
    }

    /// Lists this link, which has a limit of a hundred hours, and its predecessor, in `state` for
    /// another `left_h` hours.
    fn list(&self, state: &str, left_h: i64) {
        let now_s = jiff::Timestamp::now().as_second();
        let queue = format!(
            "12 RUNNING {now_s} {}\n11 {state} {} {}\n",
            now_s + 360_000,
            now_s - 300_000,
            now_s + 3600 * left_h
        );
        self.place.write("queue", queue);
    }

    fn start(&self, work: &str) -> Child {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("slurm/chain.sbatch");
        let dir = self.place.path("");
        let mut command = Command::new("bash");
        command
            .arg(script)
            .args(["bash", "-c", work])
            .current_dir(&dir)
            .env("PATH", format!("{}:/usr/bin:/bin", dir.display()))
            .env("SLURM_JOB_ID", "12")
            .env("POOLCAST_PREDECESSOR", "11")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().expect("it starts")
    }

    /// Starts the link, and waits until it waits for its predecessor.
    fn start_waiting(&self, work: &str) -> Child {
        let child = self.start(work);
        wait(|| self.path("asleep").exists());
        child
    }

    fn wake(&self) {
        self.place.write("awake", "");
    }

    fn run(&self, work: &str) -> Outcome {
        self.wake();
        Outcome::of(self.start(work).wait_with_output().expect("it ended"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path(name)
    }
}

#[test]
fn predecessor_with_much_time_left_is_not_ended() {
    let link = Link::new();
    link.list("RUNNING", 28);
    let outcome = link.run("touch worked");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(
        outcome.stderr.contains("this link started far too early"),
        "{outcome}"
    );
    assert!(!link.path("cancelled").exists() && !link.path("worked").exists());
}

#[test]
fn predecessor_with_little_time_left_is_asked_to_end() {
    let link = Link::new();
    link.list("RUNNING", 22);
    let outcome = link.run("touch worked");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let cancelled = fs_err::read_to_string(link.path("cancelled")).expect("read");
    assert_eq!(cancelled, "--batch --signal=TERM 11\n");
    assert!(link.path("worked").exists());
}

#[test]
fn work_begins_only_after_the_end_of_the_predecessor() {
    for before in [
        "no answer",
        "lacking both",
        "lacking",
        "COMPLETING",
        "DREAMING",
    ] {
        let link = Link::new();
        link.list(before, 3);
        match before {
            "no answer" => fs_err::remove_file(link.path("queue")).expect("removed"),
            "lacking both" => link.place.write("queue", ""),
            "lacking" => link.place.write("queue", "12 RUNNING 1 2\n"),
            _ => {}
        }
        let child = link.start_waiting("touch worked");
        assert!(!link.path("worked").exists(), "{before}");
        link.list("TIMEOUT", 0);
        link.wake();
        let outcome = Outcome::of(child.wait_with_output().expect("it ended"));
        assert_eq!(outcome.code, Some(0), "{before}: {outcome}");
        assert!(link.path("worked").exists(), "{before}");
    }
}

#[test]
fn forgotten_predecessor_has_ended_if_the_accounting_says_so() {
    let link = Link::new();
    link.place.write("queue", "12 RUNNING 1 2\n");
    link.place.write("record", "CANCELLED by 0\n");
    assert_eq!(link.run("touch worked").code, Some(0));
    assert!(link.path("worked").exists());
}

#[test]
fn link_that_is_asked_to_end_before_its_work_does_not_begin() {
    let link = Link::new();
    link.list("COMPLETING", 3);
    let child = link.start_waiting("touch worked");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("sent");
    link.wake();
    let outcome = Outcome::of(child.wait_with_output().expect("it ended"));
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(!link.path("worked").exists());
}

#[test]
fn only_a_link_that_nobody_asked_to_end_fails() {
    let link = Link::new();
    link.list("COMPLETED", 0);
    assert_eq!(link.run("exit 7").code, Some(7));

    let work = "trap 'touch stopped; exit 85' TERM; touch worked; while :; do /bin/sleep 0.1; done";
    let child = link.start(work);
    wait(|| link.path("worked").exists());
    kill_process(Pid::from_child(&child), Signal::TERM).expect("sent");
    let outcome = Outcome::of(child.wait_with_output().expect("it ended"));
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(outcome.stdout.contains("exited with code 85"), "{outcome}");
    assert!(link.path("stopped").exists());
}
