//! Reads that another batch system, or a service for jobs elsewhere, did not take or lost the job.

use super::codes::kind_of_code;
use super::facts::{Direction, Number, Operation, Outcome, ReasonFacts, Side, Thing};
use super::input::ReasonInput;
use super::outcomes::read_outcome;
use super::policies::limited_thing;
use super::quantities::{read_sizes, read_times};
use super::scan::{Scan, first_url, leading_number, leading_word};

/// Words of the parts of HTCondor that send jobs to other systems.
#[rustfmt::skip]
const REMOTE_WORDS: &[&str] = &[
    "attempts to submit failed", "submit attempts", "submission command failed", "submission script",
    "batch queue", "gahp", "remote schedd", "schedd ", "globus", "gram server", "gridresource",
    "stage-in failed", "stage-out failed", "arc job", "arc_", "nordugrid", "lrms", "session directory",
    "instance", "held remotely", "job cancel did not succeed", "blah", "cream", "job submission",
    "submitted jobs", "max_jobs", "sbatch", "qsub", "job exit information", "batch system", "unicore", "boinc",
    "azure", "gatekeeper", "job manager", "spot request", "ssh keypair", "grid type",
    "limitexceeded", "countexceeded", "quota '", "resource 'projects/", "resource_pool_exhausted", "invalid value for field",
    "insufficient authentication", "ssh: ", "publickey", "remote directory", "dcschedd", "outputsandbox",
];

/// Words of the same that no policy of another kind has.
#[rustfmt::skip]
const SURE_WORDS: &[&str] = &[
    "invalidamiid", "invalidkeypair", "instancelimitexceeded", "insufficientinstancecapacity", "unauthorizedoperation",
    "compute.instances.", "matching route", "route in job_router", "route job limit", "job universe", "gridmanager",
];

/// Whole reasons that say what a server answered, such as the status text of a response (RFC 9110, section 15).
#[rustfmt::skip]
const WHOLE_ANSWERS: &[&str] = &[
    "bad request", "unauthorized", "forbidden", "not found", "job not found", "conflict", "too many requests",
    "internal server error", "bad gateway", "service unavailable", "gateway timeout", "gateway time-out",
];

/// Words of what failed, by the thing and the operation; the first that the text has counts. A request is one that
/// the other system takes from nobody.
#[rustfmt::skip]
const THINGS: &[(Thing, Operation, &[&str])] = &[
    (Thing::OwnSoftware, Operation::Start, &[
        "gahp not defined", "start gahp", "initialize gahp", "blahpd", "sbatch: command not found",
        "qsub: command not found", "bsub: command not found",
    ]),
    (Thing::RemoteRequest, Operation::Submit, &[
        "account/partition", "invalid account", "invalid job universe", "not of type", "invalid qos",
        "invalid partition", "unknown queue", "queue not found", "invalid queue", "parameter is invalid",
        "aborted by esub", "job rejected", "requested project", "unknown project", "no such queue", "illegal attribute",
        "invalidamiid", "invalidparameter", "invalidkeypair", "invalidgroup", "invalidsubnet", "acl is not satisfied",
        "unauthorized request", "node configuration", "more processors requested", "invalid feature", "invalid constraint",
        "gridresource", "grid_resource", "service url", "this job type", "grid type", "provided rsl", "invalid rsl",
        "rsl string", "rsl parameter", "resource 'projects/", "value is invalid", "not an integer", "ssh keypair",
        "queue resource limits", "maxwallduration", "cannot use the queue", "no suitable queue", "time limit is invalid", "memory required by task",
        "invalid value for field",
    ]),
    (Thing::Program, Operation::Execute, &[
        "executable does not exist", "executable file permissions", "executable parameter",
    ]),
    (Thing::StandardInput, Operation::Open, &["stdin file"]),
];

/// Words of a rule by which a batch system ends jobs that use too much.
const RULE_WORDS: &[&str] = &["evaluated to true", "periodicremove", "periodic_remove"];

/// Words of a batch system that ended the job.
#[rustfmt::skip]
const ENDED_WORDS: &[&str] = &[
    "terminated by", "killed by", "was killed", "been killed", "cancelled the job", "cancelled by", "canceled by",
    "removed from batch",
];

/// Codes of services for jobs elsewhere, which have no other holds.
const SERVICE_CODES: std::ops::RangeInclusive<i32> = 37..=42;

/// Reads that another system did not take or lost the job.
pub(super) fn read_remote_system(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    if !is_remote(input) {
        return None;
    }
    let words = own_words(&input.scan);
    let own = Scan::new(words);
    let facts = read_stage(&input.scan)
        .or_else(|| read_limit(&own))
        .or_else(|| read_end(&own))
        .unwrap_or_else(|| read_refusal(input, &own));
    Some(ReasonFacts {
        message: words.to_owned(),
        ..facts
    })
}

/// Returns the batch system's own words, which are in `(stderr:...)`, or else all.
fn own_words<'a>(scan: &Scan<'a>) -> &'a str {
    scan.after_last("stderr:")
        .and_then(|rest| rest.split(") N/A (jobId").next())
        .map(|rest| rest.trim_end_matches([')', '-', ' ']))
        .filter(|rest| rest.len() > 2 && !rest.trim_start().starts_with(')'))
        .unwrap_or(scan.text)
}

/// Reads that the other system ended the job at a limit.
fn read_limit(own: &Scan<'_>) -> Option<ReasonFacts> {
    let is_by_rule = own.has_any(RULE_WORDS);
    let is_ended = own.has_any(&["killed", "exceeded", "out_of_memory", "out of memory"])
        && !own.has_any(&["limitexceeded", "countexceeded", "queue limit", "quota"]);
    if !is_by_rule && !is_ended {
        return None;
    }

    let thing = limited_thing(own).or(is_by_rule.then_some(Thing::Resource))?;
    let (limit, used) = match thing {
        Thing::Time => read_times(own),
        _ => read_sizes(own),
    };
    Some(ReasonFacts {
        limit,
        used,
        ..ReasonFacts::of(thing, Operation::Use, Outcome::Exceeded).on(Side::Server)
    })
}

/// Reads that the other system ended the job, or lost what it knew of its end.
fn read_end(own: &Scan<'_>) -> Option<ReasonFacts> {
    let signal = signal_of_batch_system(own);
    let outcome = if signal.is_some() || own.has_any(ENDED_WORDS) {
        Outcome::Died
    } else if own.has("job exit information") {
        Outcome::Failed
    } else {
        return None;
    };
    let facts = ReasonFacts::of(Thing::RemoteSystem, Operation::Execute, outcome);
    Some(facts.on(Side::Server).numbered(signal))
}

/// Returns the signal with which the batch system ended the job. Its exit code has 128 or 256 added.
fn signal_of_batch_system(own: &Scan<'_>) -> Option<Number> {
    let codes = ["lrms error: (", "reason=", "exit_status="];
    let mut codes = codes
        .iter()
        .filter_map(|words| i32::try_from(leading_number(own.after(words)?)?).ok());
    codes.find_map(|code| match code {
        129..=192 => Some(Number::Signal(code - 128)),
        257..=320 => Some(Number::Signal(code - 256)),
        _ => None,
    })
}

/// Reads that the other system did not take the job.
fn read_refusal(input: &ReasonInput<'_>, own: &Scan<'_>) -> ReasonFacts {
    let (outcome, number) = read_outcome(own);
    let host = input.scan.after("schedd ").and_then(leading_word);
    let mut facts = ReasonFacts::of(Thing::RemoteSystem, Operation::Submit, outcome)
        .on(Side::Server)
        .numbered(number)
        .named(host);
    if let Some((thing, operation, _)) = THINGS.iter().find(|(.., words)| own.has_any(words)) {
        facts.kind.thing = *thing;
        facts.kind.operation = *operation;
    } else if let Some(code) = input.code.filter(|code| SERVICE_CODES.contains(code)) {
        let of_code = kind_of_code(code, 0);
        facts.kind.thing = of_code.thing;
        facts.kind.operation = of_code.operation;
        if outcome == Outcome::Unknown {
            facts.kind.outcome = of_code.outcome;
        }
    }
    facts
}

fn is_remote(input: &ReasonInput<'_>) -> bool {
    let scan = &input.scan;
    match input.code {
        Some(2) => true,
        Some(code) if SERVICE_CODES.contains(&code) => true,
        None | Some(0) => {
            scan.has_any(REMOTE_WORDS) || scan.has_any(SURE_WORDS) || scan.is_one_of(WHOLE_ANSWERS)
        }
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
    let mut facts = ReasonFacts::of(Thing::Object, operation, outcome);
    facts.kind.direction = Some(direction);
    Some(
        facts
            .on(Side::Server)
            .numbered(number)
            .named(first_url(scan.text)),
    )
}
