//! The probability of success of a held job that is released without a repair, over the time of the
//! release.

use super::hold_truth::{UnmendedChange, whole_second};
use super::pool::SimulatedPool;
use super::pool_user::PoolUser;
use super::run_chances::JobCondition;

/// Minimum difference between two consecutive recorded probabilities.
pub(super) const MIN_CHANGE: f64 = 0.01;

/// Lists the changes of the probability that a job in `state` succeeds if it is released without a
/// repair. The first change is at the hold; later ones, up to `until_ms`, are at the switches of
/// the resources that the job uses.
///
/// Times are rounded down to a second, because logs have whole seconds. In a second with several
/// switches, the last one counts.
pub(super) fn unmended_changes(
    state: &JobCondition,
    hold_ms: i64,
    until_ms: i64,
    pool: &SimulatedPool,
    user: &PoolUser,
) -> Vec<UnmendedChange> {
    let mut times_ms = vec![hold_ms];
    times_ms.extend(state.switches_ms(hold_ms, until_ms, pool, user));
    times_ms.sort_unstable();

    let mut changes: Vec<UnmendedChange> = Vec::new();
    let seconds = times_ms.chunk_by(|left, right| whole_second(*left) == whole_second(*right));
    for time_ms in seconds.filter_map(|second| second.last().copied()) {
        let then = state.with_resources_at(time_ms, time_ms, pool, user);
        let p = then.success_probability(pool, user);
        let is_small = changes
            .last()
            .is_some_and(|last| (p - last.p).abs() < MIN_CHANGE);
        if !is_small {
            changes.push(UnmendedChange {
                time_ms: whole_second(time_ms),
                p,
            });
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::super::hold_cause::HoldCause;
    use super::super::run_chances::DataOutages;
    use super::super::settings::SimulationSettings;
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    fn pool() -> SimulatedPool {
        SimulatedPool::new(&SimulationSettings {
            seed: 1,
            jobs: 20_000,
            days: 60,
            start_ms: 1_767_571_200_000,
            rotate_bytes: None,
        })
    }

    fn sound_job() -> JobCondition {
        JobCondition {
            fault: None,
            supplied_ms: None,
            memory: 0.5,
            reads_mount: false,
            down: DataOutages::default(),
            bad_share: 0.0,
            holds: 1,
        }
    }

    /// Returns the last recorded probability at `time_ms`.
    fn p_at(changes: &[UnmendedChange], time_ms: i64) -> f64 {
        let after = changes.partition_point(|change| change.time_ms <= time_ms);
        changes[after - 1].p
    }

    #[test]
    fn p_is_lower_during_an_outage_than_after_it() {
        let pool = pool();
        let mut outages = 0;
        for user in &pool.users {
            let Some(origin) = user.input else { continue };
            let switches_ms = pool.origins[origin].outages.switches_ms();
            for outage in switches_ms.chunks_exact(2) {
                let (down_ms, up_ms) = (outage[0], outage[1]);
                if up_ms - down_ms < 2000 {
                    continue;
                }
                let from_ms = down_ms - HOUR_MS;
                let changes = unmended_changes(&sound_job(), from_ms, up_ms + HOUR_MS, &pool, user);
                let during = p_at(&changes, (down_ms + up_ms) / 2);
                let after = p_at(&changes, up_ms + 1000);
                let output_is_down = user
                    .output
                    .is_some_and(|place| pool.origins[place].outages.is_down(up_ms + 1000));
                assert!(output_is_down || during < 0.25 * after, "{during}, {after}");
                outages += 1;
            }
        }
        assert!(outages > 100, "{outages} outages");
    }

    #[test]
    fn recorded_changes_approximate_the_exact_probability() {
        let pool = pool();
        let user = &pool.users[0];
        let state = JobCondition {
            reads_mount: user.mount.is_some(),
            ..sound_job()
        };
        let (hold_ms, until_ms) = (pool.end_ms - 40 * 24 * HOUR_MS + 333, pool.end_ms);
        let changes = unmended_changes(&state, hold_ms, until_ms, &pool, user);
        assert_eq!(changes[0].time_ms, hold_ms - 333);
        assert!(changes.is_sorted_by(|a, b| a.time_ms < b.time_ms));
        assert!(
            changes
                .windows(2)
                .all(|two| (two[0].p - two[1].p).abs() >= MIN_CHANGE)
        );

        let switches = state.switches_ms(hold_ms, until_ms, &pool, user).count();
        assert!((10..=switches).contains(&changes.len()), "{switches}");
        for time_ms in (hold_ms / 1000 * 1000 + 999..until_ms).step_by(600_000) {
            let exact = state
                .with_resources_at(time_ms, time_ms, &pool, user)
                .success_probability(&pool, user);
            let recorded = p_at(&changes, time_ms);
            assert!((exact - recorded).abs() < MIN_CHANGE, "{exact}, {recorded}");
        }
    }

    #[test]
    fn p_of_a_missing_input_never_changes() {
        let pool = pool();
        let state = JobCondition {
            fault: Some(HoldCause::MissingInput),
            ..sound_job()
        };
        let hold_ms = pool.end_ms - 40 * 24 * HOUR_MS;
        let changes = unmended_changes(&state, hold_ms, pool.end_ms, &pool, &pool.users[0]);
        let expected = UnmendedChange {
            time_ms: hold_ms,
            p: 0.0,
        };
        assert_eq!(changes, [expected]);
    }
}
