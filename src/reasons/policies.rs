//! Reads what a policy is about: from the names in its expression, or from the words of its author.

use super::facts::{Number, Operation, Outcome, ReasonFacts, Speaker, Thing};
use super::input::ReasonInput;
use super::outcomes::read_number;
use super::quantities::{read_sizes, read_time_limit};
use super::scan::{Scan, leading_number};

/// Attributes of jobs in the expressions of policies, in lower case, by what they measure.
const MEASURES: &[(Thing, &[&str])] = &[
    (
        Thing::Memory,
        &[
            "memoryusage",
            "imagesize",
            "residentsetsize",
            "proportionalsetsize",
        ],
    ),
    (Thing::Disk, &["diskusage", "scratchdirfile"]),
    (Thing::Cpus, &["cpususage"]),
    (
        Thing::Starts,
        &[
            "numjobstarts",
            "numshadowstarts",
            "jobruncount",
            "numshadowexceptions",
            "numholds",
            "numrestarts",
            "numjobreconnects",
        ],
    ),
    (
        Thing::ProgramEnd,
        &["exitcode", "exitsignal", "exitbysignal", "exitstatus"],
    ),
    (
        Thing::Time,
        &[
            "remotewallclocktime",
            "jobstartdate",
            "jobcurrentstart",
            "cumulativeslottime",
            "activationduration",
            "remoteusercpu",
            "currenttime",
            "time()",
            "qdate",
            "enteredcurrentstatus",
        ],
    ),
    (Thing::Credential, &["x509userproxy"]),
];

/// Reads a policy that states its expression: `expression '...' evaluated to TRUE`.
pub(super) fn read_expression(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    let is_stated = scan.has_any(&["evaluated to ", "want_hold ="]);
    if !is_stated {
        return None;
    }
    let speaker = if scan.has("the job attribute") {
        Speaker::JobPolicy
    } else {
        Speaker::SitePolicy
    };
    let expression = scan
        .after("expression '")
        .and_then(|rest| rest.rsplit_once("' evaluated").map(|(inner, _)| inner))
        .or_else(|| scan.after("want_hold = "))
        .or_else(|| scan.after_last("want_hold evaluated to true"));
    let expression = expression.unwrap_or_default();
    let is_undefined = scan.has("evaluated to undefined") || scan.has("evaluated to error");
    let measured = measured_things(&Scan::new(expression));
    let (thing, outcome) = match (&measured[..], is_undefined) {
        (_, true) => (Thing::Expression, Outcome::Undefined),
        ([Thing::ProgramEnd], _) => (Thing::ProgramEnd, Outcome::Failed),
        ([only], _) => (*only, Outcome::Exceeded),
        _ => (Thing::Expression, Outcome::Exceeded),
    };
    Some(
        ReasonFacts::of(thing, Operation::Evaluate, outcome)
            .said_by(speaker)
            .named(Some(expression).filter(|text| !text.is_empty())),
    )
}

/// Returns what the attributes in `expression` measure. A job that ran for a while is in many policies,
/// beside what they are about, so that time counts only if nothing else does.
fn measured_things(expression: &Scan<'_>) -> Vec<Thing> {
    let mut things: Vec<Thing> = MEASURES
        .iter()
        .filter(|(_, names)| expression.has_any(names))
        .map(|(thing, _)| *thing)
        .collect();
    if things.len() > 1 {
        things.retain(|thing| *thing != Thing::Time);
    }
    things
}

/// Reads the words of a limit on memory, disk, CPUs or time, of every writer.
pub(super) fn read_limit(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    let is_wasted = scan.has_any(&["wasting", "less than", "below", "under-us"]);
    let is_over = scan.has_any(&[
        "exceed",
        "limit",
        "gone over",
        "usage",
        "used ",
        "overuse",
        "out-of-memory",
        "out of memory",
        "oom",
        "too much",
    ]);
    let thing = if scan.has_any(&["memory", "oom killed"])
        && !scan.has("cannot allocate")
        && (is_over || is_wasted)
    {
        Thing::Memory
    } else if scan.has("disk")
        && !scan.has_any(&["disk quota", "no space left"])
        && (is_over || is_wasted)
    {
        Thing::Disk
    } else if scan.has("cpu") && !scan.has("not available") && (is_over || is_wasted) {
        Thing::Cpus
    } else if is_about_time(scan) {
        Thing::Time
    } else {
        return None;
    };

    let (mut limit, mut used) = (None, None);
    match thing {
        Thing::Memory | Thing::Disk if !is_wasted => (limit, used) = read_sizes(scan),
        Thing::Time => limit = read_time_limit(scan),
        _ => {}
    }
    let outcome = if is_wasted {
        Outcome::Wasted
    } else {
        Outcome::Exceeded
    };
    Some(ReasonFacts {
        limit,
        used,
        ..ReasonFacts::of(thing, Operation::Use, outcome).numbered(signal_number(scan))
    })
}

fn is_about_time(scan: &Scan<'_>) -> bool {
    scan.has_any(&[
        "job duration",
        "execute duration",
        "run time limit",
        "runtime exceeded",
        "runtime limit",
        "maximum runtime",
        "max runtime",
        "exceeded runtime",
        "exceeded its runtime",
        "wall time",
        "walltime",
        "wallclock",
        "wall clock",
        "time limit",
        "to complete in",
        "ran for more than",
        "ran longer",
        "running longer",
        "running for longer",
        "running for more than",
        "running too long",
        "ran too long",
    ])
}

fn signal_number(scan: &Scan<'_>) -> Option<Number> {
    let signal = leading_number(scan.after("signal ")?)?;
    i32::try_from(signal).ok().map(Number::Signal)
}

/// Reads that a policy holds the job for a while only, and releases it itself.
pub(super) fn read_promise(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let is_promised = input.scan.has_any(&[
        "checkpointed",
        "will resume",
        "will retry",
        "will be retried",
        "will be released",
        "will restart",
        "will be restarted",
    ]);
    (is_policy(input) && is_promised)
        .then(|| ReasonFacts::of(Thing::Checkpoint, Operation::Hold, Outcome::Intended))
}

fn is_policy(input: &ReasonInput<'_>) -> bool {
    matches!(input.speaker(), Speaker::JobPolicy | Speaker::SitePolicy)
}

/// Words of a program that makes no progress.
const STANDSTILL_WORDS: &[&str] = &["stall", "stuck", "suspended", "hang", "hung", "no progress"];

/// Reads how the program ended, in the words of the job's own policy.
pub(super) fn read_program_end(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    if !is_policy(input) {
        return None;
    }
    let scan = &input.scan;
    if scan.has_any(STANDSTILL_WORDS) {
        return Some(ReasonFacts::of(
            Thing::ProgramEnd,
            Operation::Execute,
            Outcome::TimedOut,
        ));
    }
    if scan.has_any(&[
        "shadow exception",
        "job starts",
        "numshadow",
        "numjobstarts",
        "restarted",
        "too many starts",
        "second start",
        "start not allowed",
        "started twice",
        "run count",
    ]) {
        return Some(ReasonFacts::of(
            Thing::Starts,
            Operation::Use,
            Outcome::Exceeded,
        ));
    }
    let number = read_number(scan);
    let number = number.filter(|number| matches!(number, Number::Exit(_) | Number::Signal(_)));
    let is_said = scan.has_any(&[
        "on_exit_hold",
        "exit code",
        "exitcode",
        "exit status",
        "exited",
        "signal",
        "program failed",
        "job failed",
    ]);
    if number.is_none() && !is_said {
        return None;
    }
    let outcome = match number {
        Some(Number::Signal(_)) => Outcome::Died,
        _ => Outcome::Failed,
    };
    Some(ReasonFacts::of(Thing::ProgramEnd, Operation::Execute, outcome).numbered(number))
}
