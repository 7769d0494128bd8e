//! Withholds commands that the words of a hold reason speak against: a limit of time, which a release
//! does not change, and another resource than the one that the code names.

use super::job_advice::{AdviceGround, JobAdvice};
use super::remedy::remedy_command;
use poolcast_base::shared_text::SharedText;
use poolcast_holds::decision::{HoldAction, Remedy};

/// Codes of holds by policies, whose reasons people write: of the job, of a machine and of an access
/// point, and for used resources.
const POLICIES: [i32; 4] = [3, 21, 26, 34];

/// Words for the run time of a job.
const RUN_TIMES: [&str; 13] = [
    "wall time",
    "walltime",
    "wall clock",
    "wallclock",
    "wall-clock",
    "run time",
    "runtime",
    "run-time",
    "running time",
    "execution time",
    "cpu time",
    "time limit",
    "duration",
];

/// Beginnings of the names of units of time.
const UNITS: [&str; 9] = [
    "h", "hr", "hrs", "hour", "hours", "minutes", "day", "days", "seconds",
];

/// Words that say that more was used than is allowed.
const LIMITS: [&str; 9] = [
    "exceed",
    "limit",
    "max",
    "allowed",
    "longer",
    "more than",
    " over ",
    "too long",
    "failed to complete",
];

/// Words that say that less was used than is required.
const MINIMA: [&str; 3] = ["less than", "minimum", "shorter"];

/// Words for the resources that subcodes name.
const RESOURCES: [(i32, &[&str]); 3] = [
    (101, &["cpu", "cores"]),
    (102, &["memory", "residentset", "rss"]),
    (104, &["disk", "scratch"]),
];

/// What the words of a hold reason speak against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReasonObjection {
    /// Against a release: the job ran for longer than it may, and will again.
    TimeLimit,
    /// Against a higher request of what the code names: they name something else.
    OtherResource,
}

impl ReasonObjection {
    fn of(code: i32, subcode: i32, reason: &str) -> Option<ReasonObjection> {
        if !POLICIES.contains(&code) {
            return None;
        }
        // The names of files and directories say nothing about the job.
        let words = reason.split_whitespace().filter(|word| !word.contains('/'));
        let reason = words.collect::<Vec<&str>>().join(" ").to_lowercase();
        let names = |words: &[&str]| words.iter().any(|word| reason.contains(word));
        let of_code = RESOURCES
            .iter()
            .find(|(of_subcode, _)| *of_subcode == subcode && matches!(code, 21 | 34));
        if of_code.is_some_and(|(_, words)| names(words)) {
            return None;
        }
        let names_resource = RESOURCES.iter().any(|(_, words)| names(words));
        let names_time = names(&RUN_TIMES) || names_unit(&reason) && !names_resource;
        if names_time && names(&LIMITS) && !names(&MINIMA) {
            return Some(ReasonObjection::TimeLimit);
        }
        (of_code.is_some() && names_resource).then_some(ReasonObjection::OtherResource)
    }

    fn words(self) -> &'static str {
        match self {
            ReasonObjection::TimeLimit => {
                "its reason speaks of a limit of time, which a release does not change: split the work, save checkpoints, or ask for more time"
            }
            ReasonObjection::OtherResource => {
                "its reason speaks of another resource than its code: read the reason, and change what it names"
            }
        }
    }
}

/// Returns true if a number of units of time is in `reason`, such as `72 hrs` or `two hours`.
fn names_unit(reason: &str) -> bool {
    let words = reason.split(|c: char| !c.is_ascii_alphabetic());
    words.into_iter().any(|word| UNITS.contains(&word))
}

/// Returns true if the words of the reason of a hold contradict its code.
pub(super) fn contradicts_code(advice: &JobAdvice) -> bool {
    objection(advice).is_some()
}

fn objection(advice: &JobAdvice) -> Option<ReasonObjection> {
    let reason = advice.reason.as_ref()?.to_string();
    ReasonObjection::of(advice.hold_code, advice.hold_subcode, &reason)
}

/// Takes the commands from `advice` that the words of its hold reason speak against.
pub(super) fn heed_reason(advice: &mut JobAdvice) {
    let Some(objection) = objection(advice) else {
        return;
    };
    match (objection, advice.action) {
        (ReasonObjection::OtherResource, HoldAction::Fix) => {
            advice.raise = None;
            advice.command = remedy_command(Remedy::Look, &advice.held_id(), None);
        }
        (
            ReasonObjection::TimeLimit,
            HoldAction::Release | HoldAction::Probe | HoldAction::Later | HoldAction::Fix,
        ) => withdraw(advice),
        _ => return,
    }
    advice.reasons = [SharedText::from(objection.words())].into();
}

/// Withdraws the answer: odds do not count beside what a reason says.
fn withdraw(advice: &mut JobAdvice) {
    advice.action = HoldAction::None;
    advice.ground = AdviceGround::Nothing;
    advice.firmness = None;
    advice.evidence = None;
    advice.command = None;
    advice.raise = None;
    advice.then = None;
    advice.probability = None;
    advice.later_probability = None;
    advice.good_until_ms = None;
    advice.probe_cause = None;
    advice.like_cases = None;
    advice.lacks_outcomes = false;
    advice.is_known_from_elsewhere = false;
}

#[cfg(test)]
mod tests {
    use super::super::job_command::{RaisedRequest, RequestAttribute};
    use super::*;

    fn objection_to(code: i32, subcode: i32, reason: &str) -> Option<ReasonObjection> {
        ReasonObjection::of(code, subcode, reason)
    }

    #[test]
    fn limits_of_time_are_read_in_many_forms() {
        for (code, subcode, reason) in [
            (21, 0, "Job failed to complete in 72 hrs"),
            (
                21,
                0,
                "Error from slot1_3@e7: Job failed to complete in 72 hours",
            ),
            (21, 103, "runtime exceeded maximum (86400 seconds)"),
            (3, 42, "Job ran for more than two hours"),
            (3, 0, "it has been running for longer than 3 days"),
            (26, 0, "Maximum wallclock time exceeded"),
            (26, 8, "SYSTEM_PERIODIC_HOLD Run Time Limit"),
            (26, 0, "CPU time limit of the cluster is 40 h"),
            (
                34,
                102,
                "The job exceeded its allowed wall time of 1+00:00:00",
            ),
        ] {
            let found = objection_to(code, subcode, reason);
            assert_eq!(found, Some(ReasonObjection::TimeLimit), "{reason}");
        }
    }

    #[test]
    fn other_resources_than_that_of_the_code_are_found() {
        for (code, subcode, reason) in [
            (21, 102, "disk usage exceeded request_disk"),
            (
                21,
                102,
                "Error from slot1_2@e7: DiskUsage is over the limit of the slot",
            ),
            (
                34,
                102,
                "Job used 9000 MB of scratch space, 4000 MB were requested",
            ),
            (21, 104, "memory usage exceeded request_memory"),
            (
                21,
                101,
                "Job has gone over the memory limit of 2048 megabytes",
            ),
        ] {
            let found = objection_to(code, subcode, reason);
            assert_eq!(found, Some(ReasonObjection::OtherResource), "{reason}");
        }
    }

    #[test]
    fn other_reasons_are_left_alone() {
        for (code, subcode, reason) in [
            (21, 102, "memory usage exceeded request_memory"),
            (
                34,
                102,
                "Job has gone over cgroup memory limit of 128 megabytes. Last measured usage: 121 megabytes.  Consider \
                resubmitting with a higher request_memory.",
            ),
            (
                34,
                102,
                "memory limit exceeded: the job used 9 GB of memory after 2 hours, disk usage was 1 GB",
            ),
            (21, 104, "disk usage exceeded request_disk"),
            (21, 101, "CPU usage exceeded request_cpus"),
            (
                3,
                1,
                "The job's wall clock time is less than the minimum specified by the job (20) min",
            ),
            (3, 0, "exit code 1"),
            (
                34,
                102,
                "first failure: reading from file /execute/dir_1/scratch/disk.txt: (errno 2)",
            ),
            (26, 0, "memory limit exceeded for 2 hours"),
            (
                13,
                62,
                "File transfer plugin osdf timed out after 72000 seconds, more than allowed",
            ),
            (1, 0, "via condor_hold (by user ada): wall time limit"),
            (26, 0, ""),
        ] {
            assert_eq!(objection_to(code, subcode, reason), None, "{reason}");
        }
    }

    /// Returns the advice on a job after its reason was heeded.
    fn heeded(code: (i32, i32), action: HoldAction, reason: &str) -> JobAdvice {
        let mut advice = JobAdvice {
            hold_code: code.0,
            hold_subcode: code.1,
            action,
            raise: Some(RaisedRequest {
                attribute: RequestAttribute::RequestMemory,
                number: 512,
            }),
            reason: Some(reason.into()),
            ..JobAdvice::of_test_job()
        };
        advice.then = advice.command.clone();
        heed_reason(&mut advice);
        advice
    }

    #[test]
    fn no_job_is_released_against_a_limit_of_time() {
        for action in [HoldAction::Release, HoldAction::Probe, HoldAction::Later] {
            let advice = heeded((21, 0), action, "Job failed to complete in 72 hrs");
            assert_eq!(advice.action, HoldAction::None);
            assert_eq!((&advice.command, &advice.then), (&None, &None));
            assert!(advice.reasons[0].contains("a limit of time"));
        }
        let removed = heeded(
            (21, 0),
            HoldAction::Remove,
            "Job failed to complete in 72 hrs",
        );
        assert_eq!(removed.action, HoldAction::Remove);
    }

    #[test]
    fn no_request_is_raised_that_the_reason_does_not_name() {
        let advice = heeded(
            (21, 102),
            HoldAction::Fix,
            "disk usage exceeded request_disk",
        );
        assert_eq!((advice.action, advice.raise), (HoldAction::Fix, None));
        let command = advice.command.as_ref().expect("a look").to_string();
        assert_eq!(command, "condor_q -hold 12.0");
        assert!(contradicts_code(&advice));
        let memory = heeded((21, 102), HoldAction::Fix, "memory usage exceeded");
        assert!(memory.raise.is_some() && !contradicts_code(&memory));
    }
}
