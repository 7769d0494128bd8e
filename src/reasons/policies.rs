//! Reads what a policy is about: from the names in its expression, or from the words of its author.

use super::facts::{Number, Operation, Outcome, ReasonFacts, Side, Speaker, Thing};
use super::input::ReasonInput;
use super::outcomes::{of_words, read_number, read_outcome};
use super::quantities::{read_sizes, read_times};
use super::scan::{Scan, leading_word, without_paths};

/// Attributes of jobs in the expressions of policies, in lower case, by what they measure.
#[rustfmt::skip]
const MEASURES: &[(Thing, &[&str])] = &[
    (Thing::Memory, &["memoryusage", "imagesize", "residentsetsize", "proportionalsetsize"]),
    (Thing::Disk, &["diskusage", "scratchdirfile"]),
    (Thing::Cpus, &["cpususage"]),
    (Thing::Starts, &[
        "numjobstarts", "numshadowstarts", "jobruncount", "numshadowexceptions", "numholds", "numrestarts",
        "numjobreconnects",
    ]),
    (Thing::ProgramEnd, &["exitcode", "exitsignal", "exitbysignal", "exitstatus"]),
    (Thing::Time, &[
        "remotewallclocktime", "jobstartdate", "jobcurrentstart", "cumulativeslottime", "activationduration",
        "remoteusercpu", "currenttime", "time()", "qdate", "enteredcurrentstatus",
    ]),
    (Thing::Credential, &["x509userproxy"]),
];

/// Reads a policy that states its expression: `expression '...' evaluated to TRUE`.
pub(super) fn read_expression(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    let is_stated = scan.has_any(&["evaluated to ", "want_hold ="]);
    // The rule belongs to another batch system, not to the job.
    if !is_stated || scan.has_any(&["lrms error", "arc job failed"]) {
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
    let is_true = scan.has_any(&["evaluated to true", "want_hold ="]);
    let measured = measured_things(&Scan::new(expression));
    let (thing, outcome) = match (&measured[..], is_undefined) {
        (_, true) => (Thing::Expression, Outcome::Undefined),
        _ if !is_true => (Thing::Expression, Outcome::Unknown),
        ([Thing::ProgramEnd], _) => (Thing::ProgramEnd, Outcome::Failed),
        // Without a difference of times, the expression is about a fixed one.
        ([Thing::Time], _) if is_deadline(expression) => (Thing::Time, Outcome::Expired),
        ([only @ (Thing::Memory | Thing::Disk)], _) if is_over_a_number(expression) => {
            (*only, Outcome::TooLarge)
        }
        ([only], _) => (*only, Outcome::Exceeded),
        _ => (Thing::Expression, Outcome::Exceeded),
    };
    Some(
        ReasonFacts::of(thing, Operation::Evaluate, outcome)
            .said_by(speaker)
            .named(Some(expression).filter(|text| !text.is_empty())),
    )
}

/// Returns true if `expression` is true from a fixed time on.
fn is_deadline(expression: &str) -> bool {
    let words = expression.to_ascii_lowercase();
    let is_of_now = words.contains("time()") || words.contains("currenttime");
    is_of_now
        && !expression.contains('-')
        && !words.contains("wallclock")
        && !words.contains("duration")
}

/// Returns true if `expression` compares with numbers alone: no request changes these.
fn is_over_a_number(expression: &str) -> bool {
    let mut compared = expression.split('>').skip(1).map(|after| {
        let after = after.trim_start_matches(['=', ' ', '(']);
        let end = after.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, rest) = after.split_at(end.unwrap_or(after.len()));
        !number.is_empty() && !rest.trim_start().starts_with('*')
    });
    compared.next() == Some(true) && compared.all(|is_number| is_number)
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

/// Words for what a job uses, in lower case: each begins a word. The first thing that the text has
/// counts.
#[rustfmt::skip]
const RESOURCES: &[(Thing, &[&str])] = &[
    (Thing::Memory, &[
        "memory", "virtualmemory", "pss", "residentset", "resident set", "imagesize", "image size", "rss",
        "vmem", "ram ", "swap", "oom", "out-of-memory", "out_of_memory",
    ]),
    (Thing::Disk, &["disk", "scratch", "local storage"]),
    (Thing::Time, &[
        "runtime", "requestruntime", "run time", "run-time", "maxruntime", "maxtime", "wall", "remotewallclock",
        "cput", "cpu time", "cputime", "hours of cpu", "cpu hours", "exceeded time", "over time",
        "time is over", "duration", "lifetime", "life time", "execution time", "time limit", "timelimit",
        "queue time", "hold time", "elapsed time", "time exceeded", "time_exceeded", "timeout set by",
    ]),
    (Thing::Cpus, &["cpu", "cores", "threads", "load average"]),
    (Thing::Starts, &[
        "restart", "job starts", "number of starts", "numjobstarts", "numshadow", "shadow exception",
        "jobruncount", "run count", "second start", "start not allowed", "started ", "too many starts",
        "attempt", "evicted", "evictions", "preempted", "preemptions",
    ]),
    (Thing::Resource, &["resource limit", "resource usage", "resources exceeded", "its limits"]),
];

/// Words that set a use against a limit.
#[rustfmt::skip]
const OVER_WORDS: &[&str] = &[
    "exceed", "limit", "over ", "overuse", "usage", "used ", "uses ", "using ", "out-of-memory", "out of memory", "out_of_memory", "oom",
    "too much", "too many", "too high", "too long", "too often", "above", "beyond", "larger than", "greater than",
    "more than", "longer than", "higher than", "than request", ">", "max", "reached", "killed", "terminated",
    "to complete in", "timeout set by", "shadow exception", "second ", "twice", "not allowed", "times",
];

/// Words of a use that is far below a request.
#[rustfmt::skip]
const UNDER_WORDS: &[&str] = &[
    "wasting", "wasted", "less than", "below", "under-us", "underus", "too little", "low cpu", "low effic", "inefficien",
    "used only", "only used",
];

/// Returns what the words of a limit are about.
pub(super) fn limited_thing(scan: &Scan<'_>) -> Option<Thing> {
    let words = without_paths(scan.text);
    let scan = &Scan::new(&words);
    let is_compared = scan.has_any(OVER_WORDS) || scan.has_any(UNDER_WORDS);
    let found = RESOURCES.iter().find(|(thing, words)| {
        let is_other = match thing {
            Thing::Memory => scan.has("cannot allocate"),
            Thing::Disk => scan.has_any(&["disk quota", "no space left"]),
            Thing::Cpus => scan.has_any(&["not available", "quota"]),
            _ => false,
        };
        is_compared && !is_other && scan.has_word(words)
    });
    let has_time = scan.has_word(&["hour", "minute", "day"]) || read_times(scan) != (None, None);
    let ran_long = scan.has_word(&["ran ", "run ", "running ", "used for", "in use for"])
        && (scan.has_any(&["too long", "longer"])
            || scan.has_any(&["more than", "limit"]) && has_time)
        || scan.has("to complete in") && has_time;
    found
        .map(|(thing, _)| *thing)
        .or(ran_long.then_some(Thing::Time))
}

/// Reads the words of a limit on memory, disk, CPUs, time or starts, of every writer.
pub(super) fn read_limit(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    let thing = limited_thing(scan)?;
    // A site may ask to use less of what the job used too much of.
    let is_over = scan.has_any(&["exceed", "above", "too much", "must"]);
    let is_wasted = scan.has_any(UNDER_WORDS) && !is_over;
    let (limit, used) = match thing {
        Thing::Memory | Thing::Disk if !is_wasted => read_sizes(scan),
        Thing::Time => read_times(scan),
        _ => (None, None),
    };
    let outcome = if is_wasted {
        Outcome::Wasted
    } else if matches!(thing, Thing::Memory | Thing::Disk)
        && limit.is_some()
        && is_limit_fixed(input)
    {
        Outcome::TooLarge
    } else {
        Outcome::Exceeded
    };
    let number = read_number(scan);
    Some(ReasonFacts {
        limit,
        used,
        ..ReasonFacts::of(thing, Operation::Use, outcome).numbered(number)
    })
}

/// Words of a limit that follows from the request of a job.
#[rustfmt::skip]
const REQUEST_LIMIT_WORDS: &[&str] = &[
    "request", "cgroup", "docker", "container", "oom", "out of memory", "out-of-memory", "allocated", "memory limit",
];

/// Words of a limit that is the same for all jobs.
#[rustfmt::skip]
const FIXED_LIMIT_WORDS: &[&str] = &[
    "rules", "policy", "hard limit", "site limit", "maximum", "max ", "per job", "per core", "allowed",
    "greater than", "more than", "larger than", "higher than", "above",
];

/// Returns true if the limit does not follow from the request of the job, so that a larger one does not help.
fn is_limit_fixed(input: &ReasonInput<'_>) -> bool {
    let scan = &input.scan;
    let is_of_request = input.code == Some(34) || matches!(input.subcode, Some(101..=104));
    !is_of_request && !scan.has_any(REQUEST_LIMIT_WORDS) && scan.has_any(FIXED_LIMIT_WORDS)
}

/// Words of a request for resources, and not of their use.
#[rustfmt::skip]
const REQUEST_WORDS: &[&str] = &[
    "request", "requirement", "asks for", "asked for", "requests",
];

/// Words of machines that do not meet a request.
#[rustfmt::skip]
const UNMET_WORDS: &[&str] = &[
    "no machine", "no slot", "no resource", "no matching machine", "no matching slot", "any machine",
    "any slot", "largest machine", "largest slot", "largest node", "cannot be met", "cannot be satisfied",
    "can not be satisfied", "never match", "does not match", "do not match", "not matched", "unmatched",
    "never be matched", "in the pool",
];

/// Reads that no machine meets what the job requests.
pub(super) fn read_request(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    let is_request = scan.has_any(REQUEST_WORDS) && scan.has_any(UNMET_WORDS);
    let is_use = scan.has_any(&["usage", "used ", "out of memory"]);
    let facts = ReasonFacts::of(Thing::Request, Operation::Start, Outcome::Absent);
    (is_request && !is_use).then(|| facts.on(Side::ExecutionPoint))
}

/// Reads that the machine lacks an attribute that the job's submission names by `$$(NAME)`.
pub(super) fn read_expansion(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let name = input.scan.after("cannot expand $$ expression (")?;
    let name = name.split([')', ':']).next();
    let facts = ReasonFacts::of(Thing::Request, Operation::Evaluate, Outcome::Undefined);
    Some(facts.on(Side::ExecutionPoint).named(name))
}

/// What a policy is about, by the first of the few words of its reason.
#[rustfmt::skip]
const SHORT_WORDS: &[(Thing, &[&str])] = &[
    (Thing::Memory, &["m", "mem", "memory", "rss", "pss", "ram", "vmem", "oom"]),
    (Thing::Disk, &["d", "disk", "scratch"]),
    (Thing::Time, &["t", "rt", "wt", "time", "wall", "walltime", "wallclock", "wallclocktime", "runtime", "clock"]),
    (Thing::Cpus, &["c", "cpu", "cpus", "cores", "threads"]),
    (Thing::Starts, &["starts", "restarts", "runs", "retries", "evictions"]),
];

/// Reads a reason of one word for what was used, and its amount, such as `t 1:30:12`.
pub(super) fn read_short(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let text = input.scan.lower();
    let end = text.find(|c: char| !c.is_ascii_alphabetic());
    let (word, amount) = text.split_at(end.unwrap_or(text.len()));
    let is_amount = amount.split_whitespace().count() <= 2
        && (amount.trim_matches(['.', '!', ' ']).is_empty() || amount.contains(char::is_numeric));
    let found = SHORT_WORDS.iter().find(|(_, words)| words.contains(&word));
    let thing = found.filter(|_| is_policy(input) && is_amount)?.0;

    // A number that stands alone is the use; one of a time counts seconds.
    let is_bare = amount.trim().bytes().all(|byte| byte.is_ascii_digit());
    let unit = if is_bare && thing == Thing::Time {
        " s"
    } else {
        ""
    };
    let said = format!("used {amount}{unit}");
    let said = Scan::new(&said);
    let (limit, used) = match thing {
        Thing::Memory | Thing::Disk => read_sizes(&said),
        Thing::Time => read_times(&said),
        _ => (None, None),
    };
    Some(ReasonFacts {
        limit,
        used,
        ..ReasonFacts::of(thing, Operation::Use, Outcome::Exceeded)
    })
}

/// Words with which a site asks for another request.
#[rustfmt::skip]
const DEMANDS: &[&str] = &[
    "please set", "please use", "please specify", "please request", "please add", "must specify", "must set",
    "must request", "must use", "must be set", "must have", "is required", "are required", "no valid",
    "not specified", "not set", "please increase", "please raise", "please reduce", "please lower", "please correct",
    "please fix", "please change", "please adapt", "please adjust", "please choose", "please resubmit",
    "did not request", "not requested", "without requesting",
];

/// Words of a setting of the job that is not accepted.
#[rustfmt::skip]
const SETTING_FAULTS: &[&str] = &[
    "invalid", "not valid", "unknown user", "unknown group", "unknown account", "unknown project", "unknown queue",
    "not registered", "is missing", "misconfigured", "wrong ", "incorrect", "not a member", "does not exist",
];

/// Reads a fault of the job, for which a person or a program of one holds it.
pub(super) fn read_fault_of_job(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let text = input.scan.text.split("(by user ").next()?;
    let own = Scan::new(text);
    if own.has_any(PEOPLE_WORDS) {
        return None;
    }
    if own.has_any(DEMANDS) || own.has_any(SETTING_FAULTS) {
        return Some(ReasonFacts::of(
            Thing::Request,
            Operation::Submit,
            Outcome::Invalid,
        ));
    }
    // A use that is compared with a limit is no matter of taste.
    read_limit(input).filter(|facts| facts.limit.is_some() && facts.used.is_some())
}

/// Reads that a site takes no job without another setting or request.
pub(super) fn read_demand(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    let is_use = scan.has_any(&[
        "exceed", "usage", "used ", "over ", "than ", "killed", "too ",
    ]);
    let is_demand = is_policy(input) && scan.has_any(DEMANDS) && !is_use;
    is_demand.then(|| ReasonFacts::of(Thing::Request, Operation::Submit, Outcome::Invalid))
}

/// Words of a device that does not work.
#[rustfmt::skip]
const LOST_WORDS: &[&str] = &[
    "disappear", "lost", "fallen off", "not found", "no cuda", "no gpu", "missing", "unavailable",
    "not available", "failed", "failure", "error", "broken", "unhealthy", "xid", "no such",
];

/// Reads that a GPU is lost, or lacks memory.
pub(super) fn read_device(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    if !scan.has_word(&["gpu", "cuda", "nvidia", "/dev/nvidia"]) {
        return None;
    }
    let is_memory = scan.has_any(&["gpu mem", "gpu ram", "vram"])
        || scan.has("cuda") && scan.has("out of memory");
    let is_lost = scan.has_any(LOST_WORDS) && limited_thing(scan).is_none();
    let outcome = match (is_memory, is_lost) {
        (true, _) => Outcome::NoMemory,
        (_, true) => Outcome::Absent,
        _ => return None,
    };
    let facts = ReasonFacts::of(Thing::Device, Operation::Use, outcome);
    Some(facts.on(Side::ExecutionPoint))
}

/// Words of a policy that releases what it holds.
#[rustfmt::skip]
const PROMISE_WORDS: &[&str] = &[
    "checkpointed", "will resume", "will be resumed", "will retry", "will be retried", "will be released",
    "will restart", "will be restarted", "auto-release", "automatically release",
];

/// Reads that a policy holds the job for a while only, and releases it itself.
pub(super) fn read_promise(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let is_promised = input.scan.has_any(PROMISE_WORDS);
    (is_policy(input) && is_promised)
        .then(|| ReasonFacts::of(Thing::Checkpoint, Operation::Hold, Outcome::Intended))
}

/// Words of people who are at work.
#[rustfmt::skip]
const PEOPLE_WORDS: &[&str] = &[
    "maintenance", "downtime", "outage", "draining", "is down", "are down", "being upgraded", "held until",
    "do not release", "held manually", "manually held", "held by the admin", "held by operator", "on request of",
];

/// Reads that a site holds jobs until people are done. If they work on one machine, another one may do.
pub(super) fn read_people(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let is_of_people = input.scan.has_any(PEOPLE_WORDS);
    let facts = match input.head.side {
        Side::ExecutionPoint => {
            ReasonFacts::of(Thing::Unknown, Operation::Unknown, Outcome::Unavailable)
        }
        _ => ReasonFacts::of(Thing::Decision, Operation::Hold, Outcome::Intended),
    };
    (is_policy(input) && is_of_people).then_some(facts)
}

/// Words of a fault that passes, or that other machines do not have.
#[rustfmt::skip]
const TEMPORARY_WORDS: &[&str] = &[
    "temporarily", "temporary failure", "temporary error", "temporary problem", "transient", "retry later",
    "try again", "please retry", "throttl", "too many jobs",
];

/// Names of a machine, and words of one that does not work.
const MACHINE_WORDS: &[&str] = &["node", "host", "machine", "worker"];
const BROKEN_WORDS: &[&str] = &[
    "problem",
    "bad ",
    "broken",
    "unhealthy",
    "health check",
    "faulty",
    "defect",
];

/// Words of licences.
pub(super) const LICENCE_WORDS: &[&str] = &["license", "licence", "flexlm", "flexnet"];

/// Words of a licence that does not become free by itself.
const UNLICENSED_WORDS: &[&str] = &["expired", "invalid", "agreement", "accept", "not found"];

/// Words of a network between the job and what it needs.
const NETWORK_WORDS: &[&str] = &[
    "connect", "network", "download", "upload", "server", "transfer",
];

/// Reads, in the words of a policy, a fault of a server, a network or a machine that may pass. A policy uses many
/// of the words of daemons for something else, such as the time that a job took. One that addresses the user asks for
/// a change.
pub(super) fn read_passing_fault(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let words = without_paths(input.scan.text);
    let scan = &Scan::new(&words);
    let is_licence = scan.has_word(LICENCE_WORDS) && !scan.has_any(UNLICENSED_WORDS);
    let is_of_network = scan.has_any(NETWORK_WORDS);
    let is_unmounted = input.scan.has("cvmfs") && input.scan.has_any(LOST_WORDS);
    let is_of_machine = input.head.side == Side::ExecutionPoint;
    let is_broken = scan.has_word(MACHINE_WORDS) && scan.has_word(BROKEN_WORDS);
    if !is_policy(input) || scan.has_word(&["you", "your"]) {
        return None;
    }
    let outcome = match of_words(scan) {
        _ if is_licence || scan.has_any(TEMPORARY_WORDS) => Outcome::Busy,
        _ if is_unmounted || scan.has("not mounted") => Outcome::MountLost,
        _ if is_broken => Outcome::Unavailable,
        Outcome::TimedOut if !is_of_network => return None,
        Outcome::Full | Outcome::ReadOnly if !is_of_machine => return None,
        found @ (Outcome::TimedOut
        | Outcome::Full
        | Outcome::ReadOnly
        | Outcome::Disconnected
        | Outcome::Unresolved
        | Outcome::MountLost
        | Outcome::Unavailable) => found,
        _ => return None,
    };
    Some(ReasonFacts::of(Thing::Unknown, Operation::Unknown, outcome))
}

/// Words of an account that is refused.
#[rustfmt::skip]
const REFUSAL_WORDS: &[&str] = &[
    "suspended", "disabled", "not authorized", "not allowed", "locked", "expired",
];

/// Words of an account of Windows whose password HTCondor does not have.
const PASSWORD_WORDS: &[&str] = &[
    "user_priv",
    "condor_store_cred",
    "valid credential for user",
    "missing credential for user",
    "logonuser",
    "password is securely stored",
];

/// Reads that HTCondor does not have the password of an account of Windows.
pub(super) fn read_password(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    if !scan.has_any(PASSWORD_WORDS) {
        return None;
    }
    let account = scan
        .name_after("user_priv as ")
        .or_else(|| scan.name_after("for user "))
        .or_else(|| scan.name_after("for user: "));
    let facts = ReasonFacts::of(Thing::Account, Operation::Authenticate, Outcome::Absent);
    Some(facts.named(account))
}

/// Reads that an account may not run jobs.
pub(super) fn read_account(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    let is_banned = scan.has_word(&["blocked", "banned"]);
    let is_refused = scan.has_word(REFUSAL_WORDS);
    // What is said to be suspended stands before the word: a job may be, too.
    let suspended = scan
        .lower()
        .split_once("suspended")
        .map(|(before, _)| Scan::new(before));
    let is_suspended = suspended.is_some_and(|subject| {
        subject.has_word(&["access", "user", "project", "group", "privilege"])
            && !subject.has_word(&["job "])
    });
    let is_account = is_suspended || scan.has_word(&["account ", "account:", "allocation"]);
    let is_met = is_banned && (is_account || scan.has("user")) || is_refused && is_account;
    let user = scan.after("user ").and_then(leading_word);
    (is_policy(input) && is_met)
        .then(|| ReasonFacts::of(Thing::Account, Operation::Use, Outcome::Denied).named(user))
}

fn is_policy(input: &ReasonInput<'_>) -> bool {
    input.speaker().is_policy()
}

/// Words of a program that makes no progress.
#[rustfmt::skip]
const STANDSTILL_WORDS: &[&str] = &[
    "stall", "stuck", "suspended", "hang", "hung", "no progress", "not progressing", "idle cpu", "cpu idle",
];

/// Reads, in the words of a policy, that the program makes no progress.
pub(super) fn read_standstill(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let stands = is_policy(input) && input.scan.has_word(STANDSTILL_WORDS);
    // A program that computes for too long does so on any machine.
    let computes = input
        .scan
        .has_any(&["cpu>", "cpu >", "infinite loop", "endless"]);
    let outcome = if computes {
        Outcome::Failed
    } else {
        Outcome::TimedOut
    };
    stands.then(|| ReasonFacts::of(Thing::ProgramEnd, Operation::Execute, outcome))
}

/// Words of the end of a program.
#[rustfmt::skip]
const END_WORDS: &[&str] = &[
    "on_exit_hold", "exit code", "exitcode", "exit status", "exited", "exit by signal", "non-zero", "nonzero",
    "signal", "program failed", "job failed", "command failed", "payload", "segmentation fault",
];

/// Reads how the program ended, in the words of a policy or of a batch system.
pub(super) fn read_program_end(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    let number = read_number(scan);
    let number = number.filter(|number| matches!(number, Number::Exit(_) | Number::Signal(_)));
    let is_said = scan.has_any(END_WORDS);
    let is_ended = is_policy(input) && (number.is_some() || is_said)
        || scan.has("payload") && number.is_some();
    let outcome = match number {
        Some(Number::Signal(_)) => Outcome::Died,
        None if read_outcome(scan).0 == Outcome::Died || scan.has("signal") => Outcome::Died,
        _ => Outcome::Failed,
    };
    is_ended
        .then(|| ReasonFacts::of(Thing::ProgramEnd, Operation::Execute, outcome).numbered(number))
}
