//! How long like jobs ran.

use std::collections::HashMap;

/// Up to which limits jobs are alike, seconds; beyond the last, all are.
const LIMIT_CLASSES_S: [i64; 7] = [1_800, 7_200, 43_200, 86_400, 172_800 - 1, 172_800, 604_800];

/// A user's own runs count from so many on.
const LEAST_OWN_RUNS: usize = 10;

/// So many runs must have outlived the time that a job has run so far.
const LEAST_LONGER_RUNS: usize = 5;

/// A run of this share of its limit was ended by it.
const AT_LIMIT: f64 = 0.99;

/// A run that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedRun {
    /// Whose it was: a number.
    pub user: u32,
    /// How long it could have run.
    pub limit_s: i64,
    /// How long it ran.
    pub run_s: i64,
}

/// The runs that had ended by a moment, by users and limits.
#[derive(Debug, Default)]
pub struct RunHistory {
    by_user: HashMap<(u32, usize), Vec<EndedRun>>,
    by_limit: [Vec<EndedRun>; LIMIT_CLASSES_S.len() + 1],
}

impl RunHistory {
    /// The history of `runs`.
    pub fn of(runs: impl Iterator<Item = EndedRun>) -> RunHistory {
        let mut history = RunHistory::default();
        for run in runs {
            let class = limit_class(run.limit_s);
            history.by_limit[class].push(run);
            history
                .by_user
                .entry((run.user, class))
                .or_default()
                .push(run);
        }
        history
    }

    /// How long a job of `user` may run that is limited to `limit_s` and has run for `elapsed_s`: as
    /// like jobs did that ran for longer than that, in ascending order. Those of the same user count
    /// if there are enough, else those of all; without any, it runs to its limit.
    pub(super) fn likely_runs_s(&self, user: u32, limit_s: i64, elapsed_s: i64) -> Vec<i64> {
        let class = limit_class(limit_s);
        let own = self.by_user.get(&(user, class)).map_or(&[][..], |own| own);
        let mut likely = Vec::new();
        if own.len() >= LEAST_OWN_RUNS {
            likely = longer_runs_s(own, limit_s, elapsed_s);
        }
        if likely.len() < LEAST_LONGER_RUNS {
            likely = longer_runs_s(&self.by_limit[class], limit_s, elapsed_s);
        }
        if likely.len() < LEAST_LONGER_RUNS {
            likely = vec![limit_s.max(elapsed_s + 1)];
        }
        likely.sort_unstable();
        likely
    }
}

fn limit_class(limit_s: i64) -> usize {
    LIMIT_CLASSES_S.partition_point(|most_s| *most_s < limit_s)
}

/// How long a job with the limit `limit_s` would run if it did as each of `runs` that is longer than
/// `elapsed_s`.
fn longer_runs_s(runs: &[EndedRun], limit_s: i64, elapsed_s: i64) -> Vec<i64> {
    let mut longer = Vec::new();
    for run in runs {
        let is_at_limit = run.run_s as f64 >= AT_LIMIT * run.limit_s as f64;
        let run_s = if is_at_limit {
            limit_s
        } else {
            run.run_s.min(limit_s)
        };
        if run_s > elapsed_s {
            longer.push(run_s);
        }
    }
    longer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(user: u32, limit_s: i64, lengths_s: &[i64]) -> Vec<EndedRun> {
        let run = |run_s: &i64| EndedRun {
            user,
            limit_s,
            run_s: *run_s,
        };
        lengths_s.iter().map(run).collect()
    }

    #[test]
    fn own_runs_count_first_then_those_of_all_then_the_limit() {
        let mut all = runs(1, 6000, &[10, 20, 30, 40, 50, 60, 70, 80, 90, 6000]);
        all.extend(runs(2, 5000, &[500, 600, 700, 800, 900]));
        let history = RunHistory::of(all.into_iter());
        // What its limit ended would have been ended by another one.
        let own = history.likely_runs_s(1, 4000, 45);
        assert_eq!(own, [50, 60, 70, 80, 90, 4000]);
        let longer = history.likely_runs_s(1, 6000, 95);
        assert_eq!(longer, [500, 600, 700, 800, 900, 6000]);
        assert_eq!(
            history.likely_runs_s(2, 6000, 0).len(),
            15,
            "too few of its own"
        );
        assert_eq!(history.likely_runs_s(1, 6000, 1000), [6000]);
        assert_eq!(
            history.likely_runs_s(1, 600, 700),
            [701],
            "beyond its limit"
        );
    }

    #[test]
    fn limits_are_in_classes() {
        let classes = [1, 1800, 1801, 172_799, 172_800, 172_801, 604_801].map(limit_class);
        assert_eq!(classes, [0, 0, 1, 4, 5, 6, 7]);
    }
}
