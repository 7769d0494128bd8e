//! Record of the waits of jobs that have started.

use std::collections::VecDeque;

use super::history_bound::HistoryBound;

/// Number of waits for a mean, as published.
const LAST_WAITS: usize = 100;

/// A job that has started. Durations are in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartedWait {
    /// Nodes of the job.
    pub nodes: u32,
    /// Time limit of the job.
    pub limit_s: i64,
    /// Wait of the job.
    pub wait_s: i64,
}

impl StartedWait {
    /// Returns true if nodes and limit differ from `nodes` and `limit_s` by a factor of at most
    /// two.
    pub fn is_similar(&self, nodes: u32, limit_s: i64) -> bool {
        let has_similar_size = self.nodes <= 2 * nodes && nodes <= 2 * self.nodes;
        has_similar_size && self.limit_s <= 2 * limit_s && limit_s <= 2 * self.limit_s
    }
}

/// The last waits of a queue, and bounds on the waits of jobs similar to the successor.
#[derive(Debug, Clone)]
pub struct WaitRecord {
    nodes: u32,
    limit_s: i64,
    last_s: VecDeque<i64>,
    /// Waits of jobs similar to the successor.
    last_similar_s: VecDeque<i64>,
    bounds: Vec<HistoryBound>,
}

impl WaitRecord {
    /// Creates a record for a successor of `nodes` nodes and the limit `limit_s`, with bounds on
    /// `quantiles`.
    pub fn new(nodes: u32, limit_s: i64, quantiles: &[f64]) -> WaitRecord {
        WaitRecord {
            nodes,
            limit_s,
            last_s: VecDeque::new(),
            last_similar_s: VecDeque::new(),
            bounds: quantiles.iter().map(|q| HistoryBound::new(*q)).collect(),
        }
    }

    /// Adds the wait of the next started job.
    pub fn observe(&mut self, started: StartedWait) {
        push_last(&mut self.last_s, started.wait_s);
        if started.is_similar(self.nodes, self.limit_s) {
            push_last(&mut self.last_similar_s, started.wait_s);
            for bound in &mut self.bounds {
                bound.observe(started.wait_s);
            }
        }
    }

    /// Returns the last waits of all jobs, at most 100, the latest last.
    pub fn last_s(&self) -> impl DoubleEndedIterator<Item = i64> {
        self.last_s.iter().copied()
    }

    /// Returns the last waits of jobs similar to the successor, at most 100, the latest last.
    pub fn last_similar_s(&self) -> impl DoubleEndedIterator<Item = i64> {
        self.last_similar_s.iter().copied()
    }

    /// Returns the mean of the last waits of all jobs, or 0 without waits.
    pub fn mean_s(&self) -> f64 {
        if self.last_s.is_empty() {
            return 0.0;
        }
        self.last_s.iter().sum::<i64>() as f64 / self.last_s.len() as f64
    }

    /// Returns the bound on the quantile with index `number`.
    pub fn bound_s(&self, number: usize) -> Option<i64> {
        self.bounds[number].bound_s()
    }
}

fn push_last(last_s: &mut VecDeque<i64>, wait_s: i64) {
    if last_s.len() == LAST_WAITS {
        last_s.pop_front();
    }
    last_s.push_back(wait_s);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_use_all_jobs_and_bounds_only_similar_ones() {
        let mut record = WaitRecord::new(4, 1000, &[0.5]);
        assert_eq!((record.mean_s(), record.bound_s(0)), (0.0, None));
        for wait_s in 0..150 {
            record.observe(StartedWait {
                nodes: 1,
                limit_s: 1000,
                wait_s,
            });
        }
        assert_eq!((record.mean_s(), record.bound_s(0)), (99.5, None));
        for _ in 0..5 {
            record.observe(StartedWait {
                nodes: 8,
                limit_s: 500,
                wait_s: 70,
            });
        }
        assert_eq!(record.bound_s(0), Some(70));
        assert_eq!(
            (record.last_s().count(), record.last_s().last()),
            (100, Some(70))
        );
        assert_eq!(record.last_similar_s().collect::<Vec<i64>>(), [70; 5]);
    }
}
