//! The holds of a store, each with its outcome and the moments at which the outcome was known.

use std::ops::Range;

use super::cause_kind::{CauseKeys, CauseKind};
use super::named_fault::{NamedFault, stated_kind};
use super::visible_repair::is_visibly_repaired;
use htcondor_eventlog::{DecidedBy, ReasonKind};
use htcondor_holdreasons::{Outcome, Thing};
use poolcast_config::LabelKind;
use poolcast_events::{EventStore, LogGap, StoredJob};
use poolcast_tensors::{
    DatedOutcome, ExclusionReason, HoldCycle, HoldOutcome, hold_cycles, next_run_outcome,
};

/// Maximum number of past runs, reads or outcomes of one thing that are counted for an answer. More of them take time,
/// and say the same.
pub const MAX_COUNTED: usize = 100;

/// Number of releases, the one that ends the hold included, within which a success shows that the
/// fault passes by itself.
pub const RELEASES_UNTIL_PASSED: usize = 3;

/// Minimum number of releases, each followed by a hold for the same reason, that show a fault which stays.
pub const FAILED_RELEASES: u32 = 2;

/// One hold of a job.
#[derive(Debug, Clone)]
pub(crate) struct PastHold {
    /// Index of the job in the store.
    pub(crate) job: u32,
    pub(crate) cycle: HoldCycle,
    /// Salted hash of the owner; 0 if unknown.
    pub(crate) owner: u64,
    pub(crate) code: i32,
    pub(crate) subcode: i32,
    /// The fault that the hold reason names.
    pub(crate) named_fault: NamedFault,
    /// What the reason states, or else the code.
    pub(crate) stated: ReasonKind,
    /// True if the reason says that the server lacks the file, but the server failed, so that this is unknown.
    pub(crate) is_perhaps_missing: bool,
    /// Hash of the origin or directory that it names; 0 if it names none.
    pub(super) origin: u32,
    pub(crate) hold_ms: i64,
    /// End of the hold; `None` if it lasts to the end of the log.
    pub(crate) end_ms: Option<i64>,
    /// Release that ended the hold; `None` if another event did.
    pub(crate) release_ms: Option<i64>,
    /// True if a policy released the job.
    pub(crate) is_automatic: bool,
    /// True if events of the job may be missing after the hold.
    pub(crate) is_across_gap: bool,
    /// Outcome after the release.
    pub(crate) outcome: Option<DatedOutcome>,
    /// True if the log shows that the job was repaired before it succeeded.
    pub(crate) is_repaired: bool,
    /// The next run: a success if the job got past the point of the hold.
    pub(crate) next_run: Option<DatedOutcome>,
    pub(crate) causes: CauseKeys,
    /// This release and the job's next ones, each without a repair that the log shows.
    next_releases: Vec<DecidedRelease>,
    /// Removal of the job that ended this hold or one of the next ones.
    removed_ms: Option<i64>,
    /// Earlier holds of the job for the same code and subcode.
    pub(crate) earlier_for_code: u32,
    /// Earlier holds of the job for the same reason.
    pub(crate) earlier_for_reason: u32,
    /// Releases of earlier holds of the job, and how many of them a policy made.
    pub(crate) earlier_releases: u32,
    pub(crate) earlier_automatic: u32,
}

impl PastHold {
    /// Returns true if the program that the job brings along could not be started. An interpreter that its
    /// first line names is then not the file that is missing. Jobs of other clusters share images and the software
    /// of containers.
    pub(crate) fn names_own_program(&self) -> bool {
        let is_of_container = matches!(self.stated.thing, Thing::Image | Thing::ContainerSoftware);
        self.stated.is_program_start()
            && !is_of_container
            && self.named_fault != NamedFault::Machine
    }

    /// Returns true if its reason states that the job has not written an output file that it should have.
    pub(crate) fn lacks_output(&self) -> bool {
        (self.stated.thing, self.stated.outcome) == (Thing::SandboxFile, Outcome::Absent)
    }

    /// Returns true if the job was released so often before, and held again for the same reason, that
    /// its fault stays.
    pub(crate) fn is_repeated(&self) -> bool {
        self.earlier_for_reason >= FAILED_RELEASES
    }

    /// Returns true if the job is held at `time_ms`.
    pub(crate) fn lasts_at(&self, time_ms: i64) -> bool {
        self.hold_ms <= time_ms && self.end_ms.is_none_or(|end_ms| time_ms < end_ms)
    }

    /// Returns the outcome after the release if nobody is known to have repaired the job before it.
    pub(crate) fn unrepaired_outcome(&self) -> Option<DatedOutcome> {
        self.outcome.filter(|_| !self.is_repaired)
    }

    /// Returns whether the job succeeds once it is released later, without a repair; `None` if that was
    /// not known at `known_ms`. It does after a success of one of the next three releases, and does not
    /// after two failures or a removal. A success after a repair that the log shows does not count.
    pub(crate) fn passes_later(&self, known_ms: i64) -> Option<LaterOutcome> {
        let is_known = |release: &&DecidedRelease| release.outcome.decided_ms() <= known_ms;
        let known: Vec<&DecidedRelease> = self.next_releases.iter().filter(is_known).collect();
        if let Some(success) = known.iter().find(|one| one.outcome.is_success()) {
            return Some(LaterOutcome {
                is_success: true,
                decided_ms: success.outcome.decided_ms(),
                is_automatic: success.is_automatic,
            });
        }

        let removed_ms = self.removed_ms.unwrap_or(i64::MAX);
        let failed_twice_ms = known
            .get(1)
            .map_or(i64::MAX, |one| one.outcome.decided_ms());
        let decided_ms = removed_ms.min(failed_twice_ms);
        (decided_ms <= known_ms).then_some(LaterOutcome {
            is_success: false,
            decided_ms,
            is_automatic: self.is_automatic,
        })
    }
}

/// A release whose outcome is known.
#[derive(Debug, Clone, Copy)]
struct DecidedRelease {
    outcome: DatedOutcome,
    /// True if a policy released the job.
    is_automatic: bool,
}

/// Whether a job succeeds once it is released later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaterOutcome {
    pub(crate) is_success: bool,
    /// Time at which this was known, epoch ms.
    pub(crate) decided_ms: i64,
    /// True if a policy made the release that succeeded, or else the first one: a person may have repaired the
    /// job before.
    pub(crate) is_automatic: bool,
}

/// Returns all holds of `store`, sorted by job and time.
pub(crate) fn past_holds(store: &EventStore) -> Vec<PastHold> {
    let jobs = store.jobs();
    let parts = jobs.map_ranges(|range| {
        let mut holds = Vec::new();
        for index in range.filter(|&index| jobs.was_held(index)) {
            let job = jobs.get(index);
            let gaps = store.gaps(job.ap);
            holds.extend(holds_of_job(index as u32, &job, gaps));
        }
        holds
    });
    parts.concat()
}

fn holds_of_job(index: u32, job: &StoredJob<'_>, gaps: &[LogGap]) -> Vec<PastHold> {
    let history = &job.history;
    let cycles = hold_cycles(*history, LabelKind::Next, gaps);
    let mut holds: Vec<PastHold> = Vec::with_capacity(cycles.len());
    for (at, cycle) in cycles.iter().enumerate() {
        let next = at..cycles.len().min(at + RELEASES_UNTIL_PASSED);
        let (code, subcode) = (
            history.hold_code[cycle.hold],
            history.hold_subcode[cycle.hold],
        );
        let stated = stated_kind(job, cycle.hold);
        let named_fault = NamedFault::of_kind(stated);
        let hold_ms = history.time_ms[cycle.hold];
        let is_seen = |outcome: &DatedOutcome| {
            !gaps
                .iter()
                .any(|gap| gap.is_between(hold_ms, outcome.decided_ms()))
        };
        let causes = CauseKeys::new(job, cycle.hold, named_fault);
        let of_code = |hold: &&PastHold| (hold.code, hold.subcode) == (code, subcode);
        let reason = causes.get(CauseKind::ClusterReason);
        let of_reason = |hold: &&PastHold| hold.causes.get(CauseKind::ClusterReason) == reason;
        holds.push(PastHold {
            job: index,
            cycle: *cycle,
            owner: job.owner,
            code,
            subcode,
            named_fault,
            stated,
            is_perhaps_missing: false,
            origin: job.hold_facts(cycle.hold).origin,
            hold_ms,
            end_ms: cycle.end.map(|end| history.time_ms[end].max(hold_ms)),
            release_ms: release_of(job, cycle).map(|release| history.time_ms[release]),
            is_automatic: is_automatic(job, cycle),
            is_across_gap: cycle.outcome == HoldOutcome::LeftOut(ExclusionReason::AcrossGap),
            outcome: dated_outcome(job, cycle),
            is_repaired: is_repaired_success(job, cycle),
            next_run: past_outcome(job, cycle, stated).filter(is_seen),
            causes,
            next_releases: decided_releases(job, &cycles[next.clone()]),
            removed_ms: removal_ms(job, &cycles, next),
            earlier_for_code: holds.iter().filter(of_code).count() as u32,
            earlier_for_reason: holds.iter().filter(of_reason).count() as u32,
            earlier_releases: holds
                .iter()
                .filter(|hold| hold.release_ms.is_some())
                .count() as u32,
            earlier_automatic: holds.iter().filter(|hold| hold.is_automatic).count() as u32,
        });
    }
    holds
}

/// Returns the outcome of a released hold, with the time at which it was decided.
fn dated_outcome(job: &StoredJob<'_>, cycle: &HoldCycle) -> Option<DatedOutcome> {
    match cycle.outcome {
        HoldOutcome::Label(is_success) => Some(DatedOutcome::new(
            job.history.time_ms[cycle.decided],
            is_success,
        )),
        HoldOutcome::LeftOut(_) => None,
    }
}

/// Returns whether the job got past the hold of `cycle`, whose reason states `stated`, after its release, with the time
/// at which that was known. Output files are written when a run ends well, however long it lasts.
fn past_outcome(
    job: &StoredJob<'_>,
    cycle: &HoldCycle,
    stated: ReasonKind,
) -> Option<DatedOutcome> {
    if stated.is_output_transfer() {
        dated_outcome(job, cycle)
    } else {
        next_run_outcome(&job.history, cycle)
    }
}

/// Returns true if the job succeeded after the release of `cycle`, and the log shows a repair before
/// it.
fn is_repaired_success(job: &StoredJob<'_>, cycle: &HoldCycle) -> bool {
    cycle.outcome == HoldOutcome::Label(true) && is_visibly_repaired(job, cycle)
}

/// Returns the releases that ended `cycles`, without successes after a repair.
fn decided_releases(job: &StoredJob<'_>, cycles: &[HoldCycle]) -> Vec<DecidedRelease> {
    let unrepaired = cycles
        .iter()
        .filter(|cycle| !is_repaired_success(job, cycle));
    unrepaired
        .filter_map(|cycle| {
            Some(DecidedRelease {
                outcome: dated_outcome(job, cycle)?,
                is_automatic: is_automatic(job, cycle),
            })
        })
        .collect()
}

/// Returns the event that released the job from the hold of `cycle`, if one did.
fn release_of(job: &StoredJob<'_>, cycle: &HoldCycle) -> Option<usize> {
    cycle.end.filter(|_| cycle.is_released(&job.history))
}

/// Returns true if a policy released the job from the hold of `cycle`.
fn is_automatic(job: &StoredJob<'_>, cycle: &HoldCycle) -> bool {
    let release = release_of(job, cycle);
    release.is_some_and(|release| job.history.value[release] == DecidedBy::Policy as i32)
}

/// Returns the time at which the job was removed while it was held, or after a release, in one of
/// the `next` cycles.
fn removal_ms(job: &StoredJob<'_>, cycles: &[HoldCycle], next: Range<usize>) -> Option<i64> {
    let is_removal = |cycle: &&HoldCycle| {
        matches!(
            cycle.outcome,
            HoldOutcome::LeftOut(
                ExclusionReason::RemovedWhileHeld | ExclusionReason::RemovedAfterRelease
            )
        )
    };
    let removed = cycles[next].iter().find(is_removal)?;
    Some(job.history.time_ms[removed.decided])
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_eventlog::{
        ABORTED, EXECUTE, EventFacts, HELD, HoldFacts, JobEvent, RELEASED, SUBMIT, TERMINATED,
    };
    use htcondor_holdreasons::{kind_of_code, read_reason};
    use test_stores::{TestLog, store_of};

    /// Returns a log with a job that is held at 10 s, and then has these events.
    fn held_job(then: &[(i64, u16)]) -> TestLog {
        let mut events = vec![(0, SUBMIT, 0), (5, EXECUTE, 0), (10, HELD, 7)];
        events.extend(then.iter().map(|&(s, number)| (s, number, 7)));
        let mut log = TestLog::default();
        log.add(&events);
        log
    }

    /// Returns whether the fault of the first hold of `log` passes, as known at second `known_s`, and whether a
    /// policy released the job.
    fn passes(log: &TestLog, known_s: i64) -> Option<(bool, bool)> {
        let later = past_holds(&log.store())[0].passes_later(known_s * 1000)?;
        Some((later.is_success, later.is_automatic))
    }

    #[test]
    fn fault_passes_if_one_of_three_releases_succeeds() {
        let failed = [
            (20, RELEASED),
            (21, EXECUTE),
            (22, HELD),
            (30, RELEASED),
            (31, EXECUTE),
        ];
        let mut succeeded = held_job(&[&failed[..], &[(40, TERMINATED)]].concat());
        assert_eq!(passes(&succeeded, 39), None, "one failure is not enough");
        assert_eq!(passes(&succeeded, 40), Some((true, true)));
        succeeded.release_last_job_by_hand();
        assert_eq!(passes(&succeeded, 40), Some((true, false)));

        let failed_again = held_job(&[&failed[..], &[(40, HELD)]].concat());
        assert_eq!(passes(&failed_again, 39), None);
        assert_eq!(passes(&failed_again, 40), Some((false, true)));
        let removed = held_job(&[&failed[..3], &[(50, ABORTED)]].concat());
        assert_eq!(passes(&removed, 50), Some((false, true)));
        assert_eq!(passes(&removed, 49), None);
        assert_eq!(passes(&held_job(&[]), 99), None);
    }

    #[test]
    fn job_without_its_output_gets_past_the_hold_when_it_ends_well() {
        let passed_after = |hold_code, kind: ReasonKind, end| {
            let held = [(0, SUBMIT), (5, EXECUTE), (10, HELD)];
            let released = [(20, RELEASED), (30, EXECUTE), (90, end)];
            let event = |&(s, number): &(i64, u16)| JobEvent {
                cluster: 1,
                time_ms: s * 1000,
                number,
                normal: u8::from(number == TERMINATED),
                hold_code: if number == HELD { hold_code } else { 0 },
                facts: match number {
                    HELD => EventFacts::from_hold(HoldFacts {
                        kind,
                        ..HoldFacts::default()
                    }),
                    _ => EventFacts::default(),
                },
                ..JobEvent::default()
            };
            let events: Vec<JobEvent> = held.iter().chain(&released).map(event).collect();
            let pass = past_holds(&store_of(&events))[0].next_run;
            pass.map(|pass| (pass.decided_ms() / 1000, pass.is_success()))
        };
        let passed = |hold_code, end| passed_after(hold_code, ReasonKind::default(), end);
        // The run before the hold lasted 5 s, so one of 11 s or more lasts longer.
        assert_eq!(passed(13, HELD), Some((41, true)));
        assert_eq!(passed(12, HELD), Some((90, false)));
        assert_eq!(passed(12, TERMINATED), Some((90, true)));

        // Up to version 9.11, the code is for what the starter did.
        let stated = |code, did: &str| {
            let reason = format!(
                "Error from slot1@e: STARTER at 192.0.2.7 failed to {did}: error with /a: (errno 2) No such file or directory"
            );
            read_reason(&reason, Some((code, 2))).kind
        };
        let output = stated(13, "send file(s) to <192.0.2.9:1>");
        assert_eq!(passed_after(13, output, HELD), Some((90, false)));
        let input = stated(12, "receive file(s) from <192.0.2.9:1>");
        assert_eq!(passed_after(12, input, HELD), Some((41, true)));
    }

    #[test]
    fn own_program_is_known_by_the_words_and_not_by_the_code() {
        let names_own_program = |code, reason: &str| {
            let mut hold = past_holds(&held_job(&[]).store())[0].clone();
            hold.code = code;
            hold.stated = read_reason(reason, Some((code, 2))).kind;
            hold.names_own_program()
        };
        assert!(names_own_program(
            7,
            "Error from slot1@e: Failed to execute '/home/ada/run.sh': (errno=2: 'No such file or directory')"
        ));
        assert!(!names_own_program(
            6,
            "Error from slot1@e: Failed to open '/home/ada/out' as standard output: No such file or directory (errno 2)"
        ));
        assert!(!names_own_program(
            6,
            "Error from slot1@e: Error running docker job: Cannot connect to the Docker daemon at unix:///var/run/docker.sock."
        ));
        let mut by_code = past_holds(&held_job(&[]).store())[0].clone();
        by_code.stated = kind_of_code(6, 2);
        assert!(by_code.names_own_program());
    }

    #[test]
    fn two_failed_releases_for_one_reason_make_a_repeated_hold() {
        let repeated = |files: &[u32]| {
            let mut events = vec![(0, SUBMIT, 0)];
            for (at, &file) in (0..).zip(files) {
                events.push((10 + 10 * at, HELD, file));
                events.push((15 + 10 * at, RELEASED, 0));
            }
            let mut log = TestLog::default();
            log.add(&events);
            let holds = past_holds(&log.store());
            holds.last().expect("a hold").is_repeated()
        };
        assert!(!repeated(&[7, 7]));
        assert!(repeated(&[7, 7, 7]));
        assert!(!repeated(&[7, 9, 7]), "another file failed in between");
        assert!(repeated(&[7, 9, 7, 7]));
    }
}
