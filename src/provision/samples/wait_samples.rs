//! Samples of waits: a row for each moment at which a successor was submitted.

use serde::{Deserialize, Serialize};

use crate::model_inputs::{
    CHAIN_COLUMNS, QUEUE_COLUMNS, SNAPSHOT_COLUMNS, SNAPSHOTS, join_snapshots,
};

/// What the samples of a trace are. Moments are epoch seconds, spans seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SamplesDescription {
    /// How many nodes the chained jobs have.
    pub job_nodes: u32,
    /// How long they may run.
    pub limit_s: i64,
    /// How long they do.
    pub length_s: i64,
    /// The zone of the cluster, whose clock the features have.
    pub zone: String,
    /// Whether a window begins with an empty cluster.
    pub cold_start: bool,
    /// How long after a window's beginning the predecessor is submitted.
    pub warmup_s: i64,
    /// For how long after a window's beginning jobs come to the queue.
    pub workload_s: i64,
    /// Hours of the wall clock from one window to the next.
    pub interval_h: i64,
    /// By how many nodes the jobs that ran when the simulation began exceed what there was.
    pub excess_nodes: u32,
    /// Jobs of the trace that need more nodes than there ever are, and were left out.
    pub too_large: usize,
    /// At how many moments of a window a successor is submitted.
    pub probes: usize,
    /// How many windows were simulated.
    pub windows: usize,
    /// Those of them that have no rows, as a chained job never starts.
    pub never_started: usize,
    /// Where the first window begins.
    pub first_s: i64,
    /// Where the last window begins.
    pub last_s: i64,
    /// The last moment that the outcome of any row depends on.
    pub known_until_s: i64,
    /// What the features are, in order.
    pub feature_names: Vec<String>,
    /// How many rows there are.
    pub rows: usize,
}

/// A moment of a window at which a successor was submitted.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitSampleRow {
    /// The moment, epoch seconds.
    pub moment_s: i64,
    /// How long the predecessor has left before it ends, seconds; 0 at its end.
    pub left_s: i64,
    /// How long the successor waits, seconds.
    pub wait_s: i64,
    /// What is known of the queue, `[f]`.
    pub features: Vec<f32>,
    /// What the snapshots say of the predecessor and the successor.
    pub chain: [f32; CHAIN_COLUMNS],
    /// The place of the last snapshot among those of the window: 143 at least.
    pub last_snapshot: usize,
}

/// The rows of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowSamples {
    /// The number of the window, from 0 on.
    pub window: u32,
    /// By moment.
    pub rows: Vec<WaitSampleRow>,
    /// Snapshots of the queue, one after another, `[t, 34]`. Each row has those up to its last one.
    pub snapshots: Vec<f32>,
}

/// All samples of a trace, `n` rows of `f` features. The rows of a window are together, by moment.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitSamples {
    /// What they are.
    pub description: SamplesDescription,
    /// The digest of everything they were made from.
    pub key: String,
    /// The number of each row's window, `[n]`.
    pub window: Vec<u32>,
    /// The moment of decision, epoch seconds, `[n]`.
    pub moment_s: Vec<i64>,
    /// How long the predecessor has left before it ends, seconds, `[n]`; 0 in the last row of a
    /// window.
    pub left_s: Vec<i64>,
    /// How long a successor waits that is submitted then, seconds, `[n]`.
    pub wait_s: Vec<i64>,
    /// By how much it starts after its predecessor's end, seconds, `[n]`; below 0 for an overlap.
    pub gap_s: Vec<i64>,
    /// `[n, f]`.
    pub(super) features: Vec<f32>,
    /// `[n, 8]`.
    pub(super) chain: Vec<f32>,
    /// Snapshots of the queue, `[t, 34]`.
    pub(super) snapshots: Vec<f32>,
    /// The place of each row's last snapshot among them, `[n]`.
    pub(super) last_snapshot: Vec<u64>,
}

impl WaitSamples {
    /// No rows yet.
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

    /// The rows of `windows`, in memory.
    pub fn of_windows(description: SamplesDescription, windows: &[WindowSamples]) -> WaitSamples {
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

    /// The last moment that the outcome of a row depends on.
    fn last_outcome_s(&self) -> Option<i64> {
        let rows = self.moment_s.iter().zip(&self.left_s).zip(&self.wait_s);
        let outcomes_s = rows.map(|((moment_s, left_s), wait_s)| moment_s + left_s.max(wait_s));
        outcomes_s.max()
    }

    /// Adds the rows of `window`.
    pub(super) fn push(&mut self, window: &WindowSamples) {
        let known = (self.snapshots.len() / QUEUE_COLUMNS) as u64;
        for row in &window.rows {
            debug_assert!(row.last_snapshot + 1 >= SNAPSHOTS);
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

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.window.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.window.is_empty()
    }

    /// What is known of the queue at the moment of row `row`, `[f]`; the names are in the description.
    pub fn features(&self, row: usize) -> &[f32] {
        let width = self.description.feature_names.len();
        &self.features[row * width..][..width]
    }

    /// The snapshots of the last day before the moment of row `row`, the oldest first, `[144, 42]`.
    pub fn snapshots(&self, row: usize) -> Vec<f32> {
        let end = (self.last_snapshot[row] as usize + 1) * QUEUE_COLUMNS;
        let begin = end.saturating_sub(SNAPSHOTS * QUEUE_COLUMNS);
        let chain = &self.chain[row * CHAIN_COLUMNS..][..CHAIN_COLUMNS];
        let joined = join_snapshots(&self.snapshots[begin..end], chain);
        debug_assert_eq!(joined.len(), SNAPSHOTS * SNAPSHOT_COLUMNS);
        joined
    }
}
