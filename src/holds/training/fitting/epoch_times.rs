//! Time stamps and cost of a training's epochs: `times.jsonl`, one epoch per line.
//!
//! The file differs each time a training is repeated, so no digest and no manifest covers it.
//! Trackers take their time stamps from it. A stamp from the time of sending would differ each
//! time, and MLflow would keep the value twice.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::training::runs::TIMES_FILE;
use poolcast_base::manifest;
use poolcast_models::Device;

/// Times and cost of one epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpochTimes {
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// Start, in seconds since 1970 in UTC. After a checkpoint within the epoch, the time of the
    /// resumption.
    pub began_s: f64,
    /// End, in seconds since 1970 in UTC.
    pub ended_s: f64,
    /// CPU time of the process during the epoch, in seconds.
    pub cpu_s: f64,
    /// Peak memory of the process so far, in bytes.
    pub peak_memory_bytes: u64,
    /// Samples learned from per second.
    pub samples_per_s: f64,
    /// Device of the training: `cpu` or `cuda`.
    pub device: String,
    /// Starts and resumptions of the training up to this epoch.
    pub attempt: u32,
}

/// Reads the known times of the training in `dir`. A truncated line and everything after it are
/// ignored.
pub fn read_epoch_times(dir: &Path) -> Vec<EpochTimes> {
    let text =
        poolcast_base::files::read_regular(&dir.join(TIMES_FILE), MAX_BYTES).unwrap_or_default();
    let mut known = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        let Ok(times) = serde_json::from_slice(line) else {
            break;
        };
        known.push(times);
    }
    known
}

/// Maximum size of a times file, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// Measures and writes the epoch times of one training.
pub(crate) struct EpochClock {
    path: PathBuf,
    known: Vec<EpochTimes>,
    device: &'static str,
    attempt: u32,
    began_s: f64,
    began: Instant,
    cpu_began: Duration,
}

impl EpochClock {
    /// Creates a clock for the training in `dir`, which has completed `epochs` and starts or
    /// resumes now.
    pub(crate) fn resume(dir: &Path, epochs: usize, device: &Device) -> EpochClock {
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

    /// Records the start of an epoch.
    pub(crate) fn begin_epoch(&mut self) {
        self.began_s = utc_seconds();
        self.began = Instant::now();
        self.cpu_began = process_cpu_time();
    }

    /// Records the end of `epoch`, which has learned from `samples` since it began or was resumed.
    /// Must be called before the checkpoint is written, so that each epoch of a history has its
    /// times.
    pub(crate) fn end_epoch(&mut self, epoch: usize, samples: usize) -> Result<()> {
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

/// The current time in seconds since 1970, in UTC.
fn utc_seconds() -> f64 {
    jiff::Timestamp::now().as_microsecond() as f64 / 1e6
}

/// CPU time used by this process.
fn process_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Peak memory of this process, in bytes. 0 if the system does not report it.
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
    fn epochs_after_the_checkpoint_are_timed_again() {
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

        // The checkpoint is from the second epoch.
        let mut clock = EpochClock::resume(dir.path(), 2, &Device::Cpu);
        clock.begin_epoch();
        clock.end_epoch(3, 100).expect("written");
        let second = read_epoch_times(dir.path());
        assert_eq!(second[..2], first[..2]);
        let attempts: Vec<u32> = second.iter().map(|times| times.attempt).collect();
        assert_eq!(attempts, [1, 1, 2]);
    }

    #[test]
    fn truncated_lines_are_ignored() {
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
