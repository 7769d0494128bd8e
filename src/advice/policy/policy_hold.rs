//! Extracts each hold from the histories of all jobs, with the outcome of its release.

use super::owner_names::OwnerNames;
use htcondor_eventlog::{ABORTED, EVICTED, EXECUTE, HELD, TERMINATED};
use poolcast_config::LabelKind;
use poolcast_events::{EventStore, JobHistory, StoredJob};
use poolcast_tensors::{HoldCycle, HoldOutcome, hold_cycles};

/// One hold of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PolicyHold<'a> {
    /// `HoldReasonCode`.
    pub code: i32,
    /// `HoldReasonSubCode`.
    pub subcode: i32,
    /// Number of holds of the job so far, this one included: `NumHolds`.
    pub hold_number: u32,
    /// Time of the hold, epoch ms.
    pub held_at_ms: i64,
    /// Access point and cluster of the job.
    pub cluster: (u32, i32),
    /// Name of the job's owner, if it is known.
    pub owner: Option<&'a str>,
    /// Outcome of the release; `None` if the hold was not released or the log does not show the
    /// outcome.
    pub outcome: Option<ReleaseOutcome>,
}

/// The outcome of the release of a hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReleaseOutcome {
    /// True if the job next terminated on its own with exit code 0.
    pub is_success: bool,
    /// Duration of the hold, ms.
    pub held_for_ms: i64,
    /// Time of the event that decided the outcome, epoch ms.
    pub decided_ms: i64,
    /// Run time from the release until the deciding event, ms.
    pub run_ms: i64,
}

/// Lists the holds of all jobs, in the order of the store. The store has no names of owners;
/// `owners` adds those that are known.
pub fn past_holds<'a>(store: &EventStore, owners: &'a OwnerNames) -> Vec<PolicyHold<'a>> {
    let jobs = store.jobs();
    let parts = jobs.map_ranges(|range| {
        range
            .flat_map(|index| holds_of_job(store, owners, &jobs.get(index)))
            .collect::<Vec<_>>()
    });
    parts.concat()
}

fn holds_of_job<'a>(
    store: &EventStore,
    owners: &'a OwnerNames,
    job: &StoredJob<'_>,
) -> Vec<PolicyHold<'a>> {
    let history = job.history;
    let ap = store.summary.aps.get(job.ap as usize);
    let owner = ap.and_then(|ap| owners.owner(ap, job.cluster));
    let mut holds = Vec::new();
    for cycle in hold_cycles(history, LabelKind::Next, store.gaps(job.ap)) {
        holds.push(PolicyHold {
            code: history.hold_code[cycle.hold],
            subcode: history.hold_subcode[cycle.hold],
            hold_number: cycle.earlier_holds + 1,
            held_at_ms: history.time_ms[cycle.hold],
            cluster: (job.ap, job.cluster),
            owner,
            outcome: release_outcome(&history, &cycle),
        });
    }
    holds
}

fn release_outcome(history: &JobHistory<'_>, cycle: &HoldCycle) -> Option<ReleaseOutcome> {
    let HoldOutcome::Label(is_success) = cycle.outcome else {
        return None;
    };
    let release = cycle.end?;
    Some(ReleaseOutcome {
        is_success,
        held_for_ms: history.time_ms[release] - history.time_ms[cycle.hold],
        decided_ms: history.time_ms[cycle.decided],
        run_ms: run_time_ms(history, release, cycle.decided),
    })
}

/// Adds up the run time of the job from event `from` to event `to`, in ms.
fn run_time_ms(history: &JobHistory<'_>, from: usize, to: usize) -> i64 {
    let mut run_ms = 0;
    let mut started_ms = None;
    for at in from..=to {
        match history.number[at] {
            EXECUTE => started_ms = Some(history.time_ms[at]),
            EVICTED | TERMINATED | ABORTED | HELD => {
                if let Some(started_ms) = started_ms.take() {
                    run_ms += history.time_ms[at] - started_ms;
                }
            }
            _ => {}
        }
    }
    run_ms
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Creates the first hold of a job. `released` has the seconds until the release, and true if
    /// the run after it succeeded. That run takes one hour.
    pub(in crate::policy) fn policy_hold(
        (code, subcode): (i32, i32),
        cluster: i32,
        held_at_ms: i64,
        released: Option<(i64, bool)>,
    ) -> PolicyHold<'static> {
        let outcome = released.map(|(held_for_s, is_success)| ReleaseOutcome {
            is_success,
            held_for_ms: 1000 * held_for_s,
            decided_ms: held_at_ms + 1000 * held_for_s + 3_600_000,
            run_ms: 3_600_000,
        });
        PolicyHold {
            code,
            subcode,
            hold_number: 1,
            held_at_ms,
            cluster: (0, cluster),
            owner: None,
            outcome,
        }
    }

    #[test]
    fn only_time_between_a_start_and_an_end_is_run_time() {
        let number = [HELD, 13, EXECUTE, EVICTED, 6, EXECUTE, EXECUTE, HELD];
        let time_ms = [0, 10, 100, 150, 200, 300, 320, 400];
        let zeros = [0; 8];
        let history = JobHistory {
            time_ms: &time_ms,
            number: &number,
            hold_code: &zeros,
            hold_subcode: &zeros,
            value: &zeros,
            normal: &[0; 8],
            text_hash: &[0; 8],
        };
        assert_eq!(run_time_ms(&history, 1, 7), 50 + 80);
        assert_eq!(run_time_ms(&history, 3, 4), 0);
    }
}
