//! How long jobs waited that have started.

use std::collections::VecDeque;

use super::history_bound::HistoryBound;

/// How many waits a mean is taken of, as published.
const LAST_WAITS: usize = 100;

/// A job that has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartedWait {
    /// How many nodes it got.
    pub nodes: u32,
    /// How long it may run.
    pub limit_s: i64,
    /// How long it waited.
    pub wait_s: i64,
}

impl StartedWait {
    /// Whether it and a job of `nodes` nodes and the limit `limit_s` differ by a factor of two at
    /// most.
    pub fn is_like(&self, nodes: u32, limit_s: i64) -> bool {
        let is_size = self.nodes <= 2 * nodes && nodes <= 2 * self.nodes;
        is_size && self.limit_s <= 2 * limit_s && limit_s <= 2 * self.limit_s
    }
}

/// The last waits of a queue, and what those of jobs like one to be submitted say.
#[derive(Debug, Clone)]
pub struct WaitRecord {
    nodes: u32,
    limit_s: i64,
    last_s: VecDeque<i64>,
    /// Of jobs like the one to be submitted.
    last_like_s: VecDeque<i64>,
    bounds: Vec<HistoryBound>,
}

impl WaitRecord {
    /// A record for a job of `nodes` nodes and the limit `limit_s`, and for bounds on `quantiles`.
    pub fn new(nodes: u32, limit_s: i64, quantiles: &[f64]) -> WaitRecord {
        WaitRecord {
            nodes,
            limit_s,
            last_s: VecDeque::new(),
            last_like_s: VecDeque::new(),
            bounds: quantiles.iter().map(|q| HistoryBound::new(*q)).collect(),
        }
    }

    /// Takes the wait of the job that started next.
    pub fn observe(&mut self, started: StartedWait) {
        push_last(&mut self.last_s, started.wait_s);
        if started.is_like(self.nodes, self.limit_s) {
            push_last(&mut self.last_like_s, started.wait_s);
            for bound in &mut self.bounds {
                bound.observe(started.wait_s);
            }
        }
    }

    /// The last waits, of jobs of any kind, a hundred at most; the latest is the last.
    pub fn last_s(&self) -> impl DoubleEndedIterator<Item = i64> {
        self.last_s.iter().copied()
    }

    /// Those of jobs like the one to be submitted.
    pub fn last_like_s(&self) -> impl DoubleEndedIterator<Item = i64> {
        self.last_like_s.iter().copied()
    }

    /// The mean of the last waits, of jobs of any kind; 0 of none.
    pub fn mean_s(&self) -> f64 {
        if self.last_s.is_empty() {
            return 0.0;
        }
        self.last_s.iter().sum::<i64>() as f64 / self.last_s.len() as f64
    }

    /// The bound on the quantile `number` of those that were asked for.
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
    fn means_are_of_the_last_and_bounds_of_like_jobs() {
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
        assert_eq!(record.last_like_s().collect::<Vec<i64>>(), [70; 5]);
    }
}
