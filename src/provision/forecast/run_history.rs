//! Run times of earlier jobs, from which the run times of similar jobs are drawn.

use std::collections::HashMap;

/// Upper bounds of the classes of time limits, in seconds. Jobs in one class are similar. The last
/// class has no bound.
const LIMIT_CLASSES_S: [i64; 7] = [1_800, 7_200, 43_200, 86_400, 172_800 - 1, 172_800, 604_800];

/// Minimum number of a user's own runs to draw from them alone.
const MIN_OWN_RUNS: usize = 10;

/// Minimum number of earlier runs that are longer than the current run time of a job.
const MIN_LONGER_RUNS: usize = 5;

/// Share of its time limit from which a run counts as ended by the limit.
const MIN_SHARE_AT_LIMIT: f64 = 0.99;

/// A run that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedRun {
    /// Number of the user.
    pub user: u32,
    /// Time limit, in seconds.
    pub limit_s: i64,
    /// Run time, in seconds.
    pub run_s: i64,
}

/// Runs that have ended, by user and class of limits.
#[derive(Debug, Default)]
pub struct RunHistory {
    by_user: HashMap<(u32, usize), Vec<EndedRun>>,
    by_limit: [Vec<EndedRun>; LIMIT_CLASSES_S.len() + 1],
}

impl RunHistory {
    /// Builds the history of `runs`.
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

    /// Returns the likely run times of a job of `user` with the limit `limit_s` that has run for
    /// `elapsed_s`, in ascending order. They are the run times of similar jobs that ran longer than
    /// that. Runs of the same user are preferred if there are enough, then the runs of all users.
    /// Without enough runs, the job is assumed to run to its limit.
    pub(super) fn likely_runs_s(&self, user: u32, limit_s: i64, elapsed_s: i64) -> Vec<i64> {
        let class = limit_class(limit_s);
        let own = self.by_user.get(&(user, class)).map_or(&[][..], |own| own);
        let mut likely = Vec::new();
        if own.len() >= MIN_OWN_RUNS {
            likely = longer_runs_s(own, limit_s, elapsed_s);
        }
        if likely.len() < MIN_LONGER_RUNS {
            likely = longer_runs_s(&self.by_limit[class], limit_s, elapsed_s);
        }
        if likely.len() < MIN_LONGER_RUNS {
            likely = vec![limit_s.max(elapsed_s + 1)];
        }
        likely.sort_unstable();
        likely
    }
}

/// Returns the index of the class of limits.
fn limit_class(limit_s: i64) -> usize {
    LIMIT_CLASSES_S.partition_point(|most_s| *most_s < limit_s)
}

/// Returns the run times that `runs` imply for a job with the limit `limit_s`, but only those
/// longer than `elapsed_s`. A run that reached its own limit implies a run to this limit.
fn longer_runs_s(runs: &[EndedRun], limit_s: i64, elapsed_s: i64) -> Vec<i64> {
    let mut longer = Vec::new();
    for run in runs {
        let is_at_limit = run.run_s as f64 >= MIN_SHARE_AT_LIMIT * run.limit_s as f64;
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
    fn own_runs_are_preferred_to_all_runs_and_to_the_limit() {
        let mut all = runs(1, 6000, &[10, 20, 30, 40, 50, 60, 70, 80, 90, 6000]);
        all.extend(runs(2, 5000, &[500, 600, 700, 800, 900]));
        let history = RunHistory::of(all.into_iter());
        // A run that its limit ended would also have been ended by another limit.
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
