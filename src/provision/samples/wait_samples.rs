//! Samples of waits in memory: one row per simulated submission of a successor.

use serde::{Deserialize, Serialize};

use crate::model_inputs::{
    CHAIN_COLUMNS, QUEUE_COLUMNS, SNAPSHOT_COLUMNS, SNAPSHOTS, join_snapshots,
};

/// Description of samples. Times are epoch seconds, durations seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SamplesDescription {
    /// Nodes per chained job.
    pub job_nodes: u32,
    /// Time limit of a chained job, in seconds.
    pub limit_s: i64,
    /// Run time of a chained job, in seconds.
    pub length_s: i64,
    /// Time zone of the cluster, in whose local time the clock features are.
    pub zone: String,
    /// True if each window begins with an empty cluster.
    pub cold_start: bool,
    /// Time from a window's beginning to the predecessor's submission.
    pub warmup_s: i64,
    /// Time from a window's beginning to the end of the arrivals of other jobs.
    pub workload_s: i64,
    /// Hours of wall-clock time between two windows.
    pub interval_h: i64,
    /// Number of nodes by which the jobs that ran at the beginning of the simulation exceed the
    /// cluster.
    pub excess_nodes: u32,
    /// Number of skipped jobs: they need more nodes than the cluster ever has.
    pub too_large: usize,
    /// Number of simulated submissions of a successor per window.
    pub probes: usize,
    /// Number of simulated windows.
    pub windows: usize,
    /// Number of windows without rows because a chained job never starts.
    pub never_started: usize,
    /// Begin of the first window, epoch seconds.
    pub first_s: i64,
    /// Begin of the last window, epoch seconds.
    pub last_s: i64,
    /// Latest time on which the outcome of any row depends, epoch seconds.
    pub known_until_s: i64,
    /// Names of the features, in order.
    pub feature_names: Vec<String>,
    /// Number of rows.
    pub rows: usize,
}

/// One simulated submission of a successor.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitSampleRow {
    /// Time of the submission, in epoch seconds.
    pub moment_s: i64,
    /// Remaining time of the predecessor, in seconds; 0 at its end.
    pub left_s: i64,
    /// Wait of the successor, in seconds.
    pub wait_s: i64,
    /// Features of the queue, `[f]`.
    pub features: Vec<f32>,
    /// Snapshot columns of the predecessor and the successor.
    pub chain: [f32; CHAIN_COLUMNS],
    /// Index of the last snapshot among the window's snapshots; at least 143.
    pub last_snapshot: usize,
}

/// The rows of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowSamples {
    /// Number of the window, from 0.
    pub window: u32,
    /// Rows, by time.
    pub rows: Vec<WaitSampleRow>,
    /// Snapshots of the queue, in order of time, `[t, 34]`. Each row uses the snapshots up to its
    /// last one.
    pub snapshots: Vec<f32>,
}

/// All samples of a trace, `n` rows of `f` features. The rows of a window are consecutive and
/// ordered by time.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitSamples {
    /// Description of the samples.
    pub description: SamplesDescription,
    /// Digest of all inputs of the samples.
    pub key: String,
    /// Window number of each row, `[n]`.
    pub window: Vec<u32>,
    /// Decision time of each row, in epoch seconds, `[n]`.
    pub moment_s: Vec<i64>,
    /// Remaining time of the predecessor, in seconds, `[n]`; 0 in the last row of a window.
    pub left_s: Vec<i64>,
    /// Wait of a successor that is submitted at this time, in seconds, `[n]`.
    pub wait_s: Vec<i64>,
    /// Gap between the predecessor's end and the successor's start, in seconds, `[n]`; negative for
    /// an overlap.
    pub gap_s: Vec<i64>,
    /// Features `[n, f]`.
    pub(super) features: Vec<f32>,
    /// Snapshot columns of the chained jobs, `[n, 8]`.
    pub(super) chain: Vec<f32>,
    /// Snapshots of the queue, `[t, 34]`.
    pub(super) snapshots: Vec<f32>,
    /// Index of each row's last snapshot in `snapshots`, `[n]`.
    pub(super) last_snapshot: Vec<u64>,
}

impl WaitSamples {
    /// Creates samples without rows.
    pub(super) fn empty(description: SamplesDescription, key: String) -> WaitSamples {
        WaitSamples {
            description,
            key,
            window: Vec::new(),
            moment_s: Vec::new(),
            left_s: Vec::new(),
            wait_s: Vec::new(),
            gap_s: Vec::new(),
            features: Vec::new(),
            chain: Vec::new(),
            snapshots: Vec::new(),
            last_snapshot: Vec::new(),
        }
    }

    /// Collects the rows of `windows` in memory.
    pub fn from_windows(description: SamplesDescription, windows: &[WindowSamples]) -> WaitSamples {
        let mut samples = WaitSamples::empty(description, String::new());
        for window in windows {
            samples.push(window);
        }
        samples.description.rows = samples.len();
        let known_until_s = samples.last_outcome_s().unwrap_or(i64::MIN);
        let description = &mut samples.description;
        description.known_until_s = description.known_until_s.max(known_until_s);
        samples
    }

    /// Returns the latest time on which the outcome of a row depends.
    fn last_outcome_s(&self) -> Option<i64> {
        let rows = self.moment_s.iter().zip(&self.left_s).zip(&self.wait_s);
        let outcomes_s = rows.map(|((moment_s, left_s), wait_s)| moment_s + left_s.max(wait_s));
        outcomes_s.max()
    }

    /// Appends the rows of `window`.
    pub(super) fn push(&mut self, window: &WindowSamples) {
        let known = (self.snapshots.len() / QUEUE_COLUMNS) as u64;
        for row in &window.rows {
            assert!(row.last_snapshot + 1 >= SNAPSHOTS);
            self.window.push(window.window);
            self.moment_s.push(row.moment_s);
            self.left_s.push(row.left_s);
            self.wait_s.push(row.wait_s);
            self.gap_s.push(row.wait_s - row.left_s);
            self.features.extend_from_slice(&row.features);
            self.chain.extend_from_slice(&row.chain);
            self.last_snapshot.push(known + row.last_snapshot as u64);
        }
        self.snapshots.extend_from_slice(&window.snapshots);
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.window.len()
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.window.is_empty()
    }

    /// Returns the features of the queue in row `row`, `[f]`. Their names are in the description.
    pub fn features(&self, row: usize) -> &[f32] {
        let width = self.description.feature_names.len();
        &self.features[row * width..][..width]
    }

    /// Returns the snapshots of the last day before row `row`, the oldest first, `[144, 42]`.
    pub fn snapshots(&self, row: usize) -> Vec<f32> {
        let end = (self.last_snapshot[row] as usize + 1) * QUEUE_COLUMNS;
        let begin = end.saturating_sub(SNAPSHOTS * QUEUE_COLUMNS);
        let chain = &self.chain[row * CHAIN_COLUMNS..][..CHAIN_COLUMNS];
        let joined = join_snapshots(&self.snapshots[begin..end], chain);
        assert_eq!(joined.len(), SNAPSHOTS * SNAPSHOT_COLUMNS);
        joined
    }
}
