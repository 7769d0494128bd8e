//! Reads that another batch system, or a service for jobs elsewhere, did not take or lost the job.

use super::codes::kind_of_code;
use super::facts::{Direction, Operation, Outcome, ReasonFacts, Side, Thing};
use super::input::ReasonInput;
use super::outcomes::read_outcome;
use super::policies::limited_thing;
use super::quantities::{read_sizes, read_times};
use super::scan::{Scan, first_url, leading_word};

/// Words of the parts of HTCondor that send jobs to other systems.
#[rustfmt::skip]
const REMOTE_WORDS: &[&str] = &[
    "attempts to submit failed", "submit attempts", "submission command failed", "submission script",
    "batch queue", "gahp", "remote schedd", "schedd ", "globus", "gram server", "gridresource",
    "stage-in failed", "stage-out failed", "arc job", "arc_", "nordugrid", "lrms", "session directory",
    "instance", "held remotely", "job cancel did not succeed", "blah", "cream", "job submission",
    "submitted jobs", "max_jobs", "sbatch", "qsub",
];

/// Words of the same that no policy of another kind has.
#[rustfmt::skip]
const SURE_WORDS: &[&str] = &[
    "invalidamiid", "invalidkeypair", "instancelimitexceeded", "insufficientinstancecapacity", "unauthorizedoperation",
    "compute.instances.", "matching route", "route in job_router", "route job limit", "job universe", "gridmanager", "vmgahp",
];

/// Words of a request that the other system does not take from anybody.
#[rustfmt::skip]
const REQUEST_WORDS: &[&str] = &[
    "account/partition", "invalid account", "invalid job universe", "not of type", "invalid qos",
    "invalid partition", "unknown queue", "queue not found", "invalid queue", "parameter is invalid",
    "aborted by esub", "job rejected", "requested project", "unknown project", "no such queue", "illegal attribute",
    "invalidamiid", "invalidparameter", "invalidkeypair", "invalidgroup", "invalidsubnet", "acl is not satisfied", "unauthorized request", "node configuration", "more processors requested", "invalid feature", "invalid constraint",
    "vmgahp_err_jobclassad",
];

/// Codes of services for jobs elsewhere, which have no other holds.
const SERVICE_CODES: std::ops::RangeInclusive<i32> = 37..=42;

/// Reads that another system did not take or lost the job.
pub(super) fn read_remote_system(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    if !is_remote(input) {
        return None;
    }
    // The batch system's own words are in `(stderr:...)`.
    let words = scan
        .after_last("stderr:")
        .filter(|rest| rest.trim_start_matches([')', '-', ' ']).len() > 2)
        .filter(|rest| !rest.trim_start().starts_with(')'))
        .unwrap_or(scan.text);
    let words = words.split(") N/A (jobId").next().unwrap_or_default();
    let own = Scan::new(words);
    let message = words.trim_end_matches([')', '-', ' ']).to_owned();
    if let Some(stage) = read_stage(scan) {
        return Some(ReasonFacts { message, ..stage });
    }
    let is_ended = own.has_any(&["killed", "exceeded", "out_of_memory", "out of memory"])
        && !own.has_any(&["limitexceeded", "queue limit"]);
    if let Some(thing) = is_ended.then(|| limited_thing(&own)).flatten() {
        let (limit, used) = match thing {
            Thing::Time => read_times(&own),
            _ => read_sizes(&own),
        };
        return Some(ReasonFacts {
            limit,
            used,
            message,
            ..ReasonFacts::of(thing, Operation::Use, Outcome::Exceeded).on(Side::Server)
        });
    }

    let (outcome, number) = read_outcome(&own);
    let host = scan.after("schedd ").and_then(leading_word);
    let mut facts = ReasonFacts {
        message,
        ..ReasonFacts::of(Thing::RemoteSystem, Operation::Submit, outcome)
            .on(Side::Server)
            .numbered(number)
            .named(host)
    };
    if own.has_any(REQUEST_WORDS) {
        facts.kind.thing = Thing::RemoteRequest;
    } else if let Some(code) = input.code.filter(|code| SERVICE_CODES.contains(code)) {
        let of_code = kind_of_code(code, 0);
        facts.kind.thing = of_code.thing;
        facts.kind.operation = of_code.operation;
        if outcome == Outcome::Unknown {
            facts.kind.outcome = of_code.outcome;
        }
    }
    Some(facts)
}

fn is_remote(input: &ReasonInput<'_>) -> bool {
    let scan = &input.scan;
    match input.code {
        Some(2) => true,
        Some(code) if SERVICE_CODES.contains(&code) => true,
        None | Some(0) => scan.has_any(REMOTE_WORDS) || scan.has_any(SURE_WORDS),
        _ => scan.has_any(SURE_WORDS),
    }
}

/// Reads that files could not be sent to or from the other system.
fn read_stage(scan: &Scan<'_>) -> Option<ReasonFacts> {
    let is_input = scan.has("stage-in failed");
    if !is_input && !scan.has("stage-out failed") {
        return None;
    }
    let (operation, direction) = if is_input {
        (Operation::Receive, Direction::Input)
    } else {
        (Operation::Send, Direction::Output)
    };
    let (outcome, number) = read_outcome(scan);
    let facts = ReasonFacts::of(Thing::Object, operation, outcome);
    Some(ReasonFacts {
        direction: Some(direction),
        ..facts
            .on(Side::Server)
            .numbered(number)
            .named(first_url(scan.text))
    })
}
