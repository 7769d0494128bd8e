//! When the epochs of a training began and ended, and what they cost: `times.jsonl`, one a line.
//!
//! This differs each time a training is repeated, so it is in no digest and in no manifest. Trackers
//! take their time stamps from it: a stamp that followed from the moment of sending would differ
//! each time, and MLflow would keep the value twice.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::run_dir::TIMES_FILE;
use poolcast_base::manifest;
use poolcast_models::Device;

/// When an epoch was, and what it cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpochTimes {
    /// Counted from 1.
    pub epoch: usize,
    /// When it began, in seconds since 1970 in UTC; after a checkpoint within it, when it went on.
    pub began_s: f64,
    /// When it ended, in the same.
    pub ended_s: f64,
    /// What the process used of processors meanwhile, in seconds.
    pub cpu_s: f64,
    /// The most memory that the process has had at once so far.
    pub peak_memory_bytes: u64,
    /// How many samples it learned from in a second.
    pub samples_per_s: f64,
    /// What it ran on: `cpu` or `cuda`.
    pub device: String,
    /// How often the training was begun or gone on with until then.
    pub attempt: u32,
}

/// The epochs of the training in `dir` whose times are known. A line that was cut short says
/// nothing, and neither does what follows it.
pub fn read_epoch_times(dir: &Path) -> Vec<EpochTimes> {
    let text = poolcast_base::files::read_regular(&dir.join(TIMES_FILE), MOST_BYTES).unwrap_or_default();
    let mut known = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        let Ok(times) = serde_json::from_slice(line) else {
            break;
        };
        known.push(times);
    }
    known
}

/// The largest file of times that is read.
const MOST_BYTES: u64 = 1 << 30;

/// Writes the times of one training.
pub(super) struct EpochClock {
    path: PathBuf,
    known: Vec<EpochTimes>,
    device: &'static str,
    attempt: u32,
    began_s: f64,
    began: Instant,
    cpu_began: Duration,
}

impl EpochClock {
    /// For the training in `dir`, which has gone through `epochs` and goes on now.
    pub(super) fn resume(dir: &Path, epochs: usize, device: &Device) -> EpochClock {
        let mut known = read_epoch_times(dir);
        let earlier = known.last().map_or(0, |times| times.attempt);
        known.retain(|times| times.epoch <= epochs);
        EpochClock {
            path: dir.join(TIMES_FILE),
            known,
            device: if device.is_cpu() { "cpu" } else { "cuda" },
            attempt: earlier + 1,
            began_s: utc_seconds(),
            began: Instant::now(),
            cpu_began: process_cpu_time(),
        }
    }

    /// Hears that an epoch begins.
    pub(super) fn begin_epoch(&mut self) {
        self.began_s = utc_seconds();
        self.began = Instant::now();
        self.cpu_began = process_cpu_time();
    }

    /// Takes note of the end of `epoch`, which has learned from so many `samples` since it began or
    /// went on. This comes before the checkpoint, so that each epoch of a history has its times.
    pub(super) fn end_epoch(&mut self, epoch: usize, samples: usize) -> Result<()> {
        let elapsed_s = self.began.elapsed().as_secs_f64();
        let cpu = process_cpu_time().saturating_sub(self.cpu_began);
        self.known.push(EpochTimes {
            epoch,
            began_s: self.began_s,
            ended_s: self.began_s + elapsed_s,
            cpu_s: cpu.as_secs_f64(),
            peak_memory_bytes: peak_memory_bytes(),
            samples_per_s: samples as f64 / elapsed_s.max(1e-9),
            device: self.device.to_owned(),
            attempt: self.attempt,
        });
        manifest::write_json_lines(&self.path, &self.known)
    }
}

/// The time in seconds since 1970, in UTC.
fn utc_seconds() -> f64 {
    jiff::Timestamp::now().as_microsecond() as f64 / 1e6
}

/// What this process has used of processors.
fn process_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The most memory that this process has had at once; 0 where the system does not tell.
fn peak_memory_bytes() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    kibibytes.map_or(0, |kibibytes: u64| kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_checkpoint_does_not_know_is_timed_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut clock = EpochClock::resume(dir.path(), 0, &Device::Cpu);
        for epoch in 1..=3 {
            clock.begin_epoch();
            clock.end_epoch(epoch, 100).expect("written");
        }
        let first = read_epoch_times(dir.path());
        assert_eq!(first.len(), 3);
        for times in &first {
            assert!(times.began_s <= times.ended_s && times.samples_per_s > 0.0);
            assert!(times.peak_memory_bytes > 1 << 20 && times.cpu_s >= 0.0);
            assert_eq!((times.device.as_str(), times.attempt), ("cpu", 1));
        }

        // The checkpoint is that of the second epoch.
        let mut clock = EpochClock::resume(dir.path(), 2, &Device::Cpu);
        clock.begin_epoch();
        clock.end_epoch(3, 100).expect("written");
        let second = read_epoch_times(dir.path());
        assert_eq!(second[..2], first[..2]);
        let attempts: Vec<u32> = second.iter().map(|times| times.attempt).collect();
        assert_eq!(attempts, [1, 1, 2]);
    }

    #[test]
    fn a_line_that_was_cut_short_says_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut clock = EpochClock::resume(dir.path(), 0, &Device::Cpu);
        clock.end_epoch(1, 1).expect("written");
        clock.end_epoch(2, 1).expect("written");
        let path = dir.path().join(TIMES_FILE);
        let whole = fs_err::read(&path).expect("read");
        fs_err::write(&path, &whole[..whole.len() - 9]).expect("written");
        assert_eq!(read_epoch_times(dir.path()).len(), 1);
        fs_err::write(&path, b"\xff").expect("written");
        assert!(read_epoch_times(dir.path()).is_empty());
    }
}
