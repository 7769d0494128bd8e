//! Reads a hold reason as facts: each reader knows one part of the language, and the first that finds its
//! part answers.

use super::codes::{kind_of_code, may_have_errno};
use super::containers::read_container;
use super::facts::{Number, Operation, Outcome, ReasonFacts, Side, Speaker, Thing};
use super::heads::{innermost, read_head};
use super::input::ReasonInput;
use super::outcomes::{of_errno, read_outcome};
use super::policies::{
    read_account, read_demand, read_device, read_expansion, read_expression, read_fault_of_job,
    read_limit, read_passing_fault, read_password, read_people, read_program_end, read_promise,
    read_request, read_short, read_standstill,
};
use super::remote::read_remote_system;
use super::scan::{
    Scan, first_url, is_in_sandbox, is_installed, leading_name, leading_word, without_paths,
};
use super::transfers::{outcome_after, read_size_limit, read_transfer};

/// Longest part of a reason that is read, in bytes. HTCondor's own are shorter.
const MAX_BYTES: usize = 16 << 10;

/// Readers of single parts, in the order in which they are asked.
const READERS: &[fn(&ReasonInput<'_>) -> Option<ReasonFacts>] = &[
    read_purpose,
    read_transfer,
    read_sizes_at_submission,
    read_expression,
    read_hook,
    read_program_start,
    read_standard_stream,
    read_directory,
    read_container,
    read_password,
    read_credential,
    read_schedule,
    read_setting,
    read_remote_system,
    read_expansion,
    read_request,
    read_device,
    read_promise,
    read_account,
    read_standstill,
    read_demand,
    read_short,
    read_limit,
    read_people,
    read_passing_fault,
    read_program_end,
    read_own_software,
    read_unsaid_hold,
    read_passing_outcome,
];

/// Reads the reason of a hold. `codes` are its code and subcode, if they are known: the text says more.
/// Takes time in proportion to the text.
pub fn read_reason(reason: &str, codes: Option<(i32, i32)>) -> ReasonFacts {
    let text = clean(reason);
    // What an operation was for has not failed itself.
    let text = text.split(" order to ").next().unwrap_or_default();
    let head = read_head(text);
    let input = ReasonInput {
        scan: Scan::new(head.rest),
        head,
        code: codes.map(|(code, _)| code),
        subcode: codes.map(|(_, subcode)| subcode),
    };
    let read = READERS.iter().find_map(|read| read(&input));
    complete(read.unwrap_or_default(), &input)
}

/// Returns `reason` on one line, without control characters, and not too long.
fn clean(reason: &str) -> String {
    let mut end = reason.len().min(MAX_BYTES);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let one_line: String = reason[..end]
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    // A message within quotation marks has its own behind a backslash.
    let one_line = one_line.replace("\\'", "'").replace("\\\"", "\"");
    one_line.trim().trim_matches('"').to_owned()
}

/// Adds what the head and the codes say to the facts of the message.
fn complete(mut facts: ReasonFacts, input: &ReasonInput<'_>) -> ReasonFacts {
    if facts.kind.speaker == Speaker::Unknown {
        facts.kind.speaker = input.speaker();
    }
    if facts.kind.side == Side::Unknown {
        facts.kind.side = input.head.side;
    }
    if !facts.kind.is_program_start() {
        facts.kind.direction = facts.kind.direction.or_else(|| input.direction());
    }
    facts.machine = input.head.machine.map(str::to_owned);
    if facts.message.is_empty() {
        facts.message = innermost(input.head.rest);
    }
    let Some((code, subcode)) = input.code.zip(input.subcode) else {
        return facts;
    };
    // A subcode is a Unix error, unless the text names a number.
    if facts.kind.outcome == Outcome::Unknown
        && facts.kind.thing != Thing::Plugin
        && may_have_errno(code, subcode)
    {
        facts.kind.outcome = of_errno(subcode);
        facts.number = Some(Number::Errno(subcode));
    }
    fill_in_from_code(&mut facts, code, subcode);
    facts
}

/// Adds what the code is about to facts that name no thing, unless the text says that another side failed.
fn fill_in_from_code(facts: &mut ReasonFacts, code: i32, subcode: i32) {
    let of_code = kind_of_code(code, subcode);
    // A daemon repeats what a plug-in said.
    if facts.kind.thing == Thing::Unknown && of_code.speaker == Speaker::Plugin {
        facts.kind.speaker = Speaker::Plugin;
    }
    let is_other_side = facts.kind.side != of_code.side
        && facts.kind.side != Side::Unknown
        && of_code.side != Side::Unknown;
    if facts.kind.thing != Thing::Unknown || of_code.thing == Thing::Unknown || is_other_side {
        return;
    }
    facts.kind.thing = of_code.thing;
    facts.kind.operation = of_code.operation;
    facts.is_by_code = true;
    if facts.kind.side == Side::Unknown {
        facts.kind.side = of_code.side;
    }
    if facts.kind.outcome == Outcome::Unknown {
        facts.kind.outcome = of_code.outcome;
    }
}

/// Reads that a person or HTCondor itself holds the job on purpose.
fn read_purpose(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    let by_user = scan.after_last("(by user ").and_then(leading_word);
    let thing = match input.code {
        Some(16) => Thing::Spool,
        Some(1 | 15) => Thing::Decision,
        Some(code) if code != 0 => return None,
        _ if scan.has("spooling input") => Thing::Spool,
        _ if by_user.is_some()
            || scan.has_any(&["via condor_hold", "submitted on hold", "python-initiated"]) =>
        {
            Thing::Decision
        }
        _ => return None,
    };
    let fault = || read_fault_of_job(input).filter(|_| input.code != Some(15));
    let facts = (thing == Thing::Decision).then(fault).flatten();
    let intended = || ReasonFacts::of(thing, Operation::Hold, Outcome::Intended);
    Some(
        facts
            .unwrap_or_else(intended)
            .said_by(Speaker::Person)
            .named(by_user),
    )
}

/// Reads a limit on the size of all files.
fn read_sizes_at_submission(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    if !scan.has_any(&[
        "max_transfer_input_mb",
        "transferinputsizemb",
        "load bytes exceeded",
    ]) {
        return None;
    }
    Some(read_size_limit(scan))
}

/// Reads that the program could not be started.
fn read_program_start(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    if let Some(facts) = read_program_file(input) {
        return Some(facts);
    }
    let program = scan.name_after("failed to execute ")?;
    // Arguments of the job follow, and may have any words: the error is in the last bracket, or at the end.
    let last = |words: &&str| scan.lower().rfind(words);
    let bracket = ["(errno=", "(errno "].iter().filter_map(last).max();
    let end = bracket.or_else(|| scan.lower().rfind(": "));
    let error = Scan::new(end.and_then(|at| scan.text.get(at..)).unwrap_or_default());
    let (outcome, number) = read_outcome(&error);
    let thing = if is_installed(program) {
        Thing::InstalledProgram
    } else if program.starts_with('/') && !is_in_sandbox(program) {
        Thing::SharedProgram
    } else {
        Thing::Program
    };
    let mut facts = ReasonFacts::of(thing, Operation::Execute, outcome)
        .on(Side::ExecutionPoint)
        .numbered(number)
        .named(Some(program));
    if let Some(interpreter) = scan.after("invalid interpreter ").and_then(leading_name) {
        facts.kind.thing = Thing::Interpreter;
        facts.name = Some(interpreter.to_owned());
    } else if let Some(directory) = scan.name_after("initial working directory ") {
        facts.kind.thing = Thing::WorkingDirectory;
        facts.name = Some(directory.to_owned());
    } else if scan.has("glexec") {
        facts.kind.thing = Thing::OwnSoftware;
        facts.kind.outcome = Outcome::Failed;
    } else if outcome == Outcome::NoMemory && scan.has("oom") {
        facts.kind.thing = Thing::Memory;
    }
    Some(facts)
}

/// Reads a program that the access point itself cannot find.
fn read_program_file(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    if !scan.has_any(&[
        "missing or not executable",
        "is not executable",
        "executable unknown",
    ]) {
        return None;
    }
    let name = scan.name_after("file ");
    // Where the words leave it open, the subcode may have the error.
    let is_open = scan.has("missing or") && input.subcode.is_some_and(|subcode| subcode > 0);
    let outcome = if is_open {
        Outcome::Unknown
    } else {
        Outcome::Denied
    };
    let facts = ReasonFacts::of(Thing::Program, Operation::Execute, outcome);
    Some(
        facts
            .on(Side::AccessPoint)
            .named(name.and_then(|name| name.split("' is").next())),
    )
}

/// Reads that standard input, output or error could not be opened or written.
fn read_standard_stream(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    let is_input = scan.has_any(&["as standard input", "input stream"]);
    let is_output = scan.has_any(&[
        "as standard output",
        "as standard error",
        "output stream",
        "streamhandler",
    ]);
    if !is_input && !is_output {
        return None;
    }
    let name = scan.name_after("open ").or_else(|| {
        scan.after("bytes to ")
            .and_then(|rest| rest.split(" failed").next())
    });
    let (outcome, number) = match name {
        Some(name) => outcome_after(scan, name),
        None => read_outcome(&Scan::new(&without_paths(scan.text))),
    };
    let thing = if is_input {
        Thing::StandardInput
    } else {
        Thing::StandardOutput
    };
    let operation = if scan.has("write of") {
        Operation::Write
    } else {
        Operation::Open
    };
    let side = if scan.has("stream") {
        Side::AccessPoint
    } else {
        input.head.side
    };
    Some(
        ReasonFacts::of(thing, operation, outcome)
            .on(side)
            .numbered(number)
            .named(name),
    )
}

/// Reads that the directory of the job or its event log could not be used.
fn read_directory(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    let (thing, words) = if scan.has("initial working directory") {
        (Thing::WorkingDirectory, "initial working directory ")
    } else if scan.has("initialize user log") {
        (Thing::UserLog, "user log to ")
    } else {
        return None;
    };
    let name = scan.name_after(words);
    let (outcome, number) = name.map_or((Outcome::Unknown, None), |name| outcome_after(scan, name));
    let side = if input.head.side == Side::Unknown {
        Side::AccessPoint
    } else {
        input.head.side
    };
    Some(
        ReasonFacts::of(thing, Operation::Open, outcome)
            .on(side)
            .numbered(number)
            .named(name),
    )
}

/// Words of a checkpoint that failed.
const CHECKPOINT_WORDS: &[&str] = &[
    "checkpoint signal",
    "exit as promised",
    "failed to checkpoint",
    "checkpoint failed",
    "upload checkpoint",
    "upload the checkpoint",
    "upload its checkpoint",
];

/// Reads that a script of the site or of the job, or a checkpoint failed.
fn read_hook(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    let thing = if scan.has("hook_") {
        Thing::Hook
    } else if scan.has_any(&["pre script", "post script", "precmd", "postcmd"]) {
        Thing::Script
    } else if scan.has_any(CHECKPOINT_WORDS) {
        Thing::Checkpoint
    } else {
        return None;
    };
    let (outcome, number) = read_outcome(scan);
    let is_hook = thing == Thing::Hook;
    let is_of_program = matches!(outcome, Outcome::Unknown | Outcome::Failed | Outcome::Died);
    let is_stored = thing == Thing::Checkpoint && (scan.has("upload") || !is_of_program);
    let operation = if is_stored {
        Operation::Send
    } else {
        Operation::Execute
    };
    let outcome = if is_stored && !is_of_program {
        outcome
    } else {
        Outcome::Failed
    };
    let side = if scan.has("hook_shadow") {
        Side::AccessPoint
    } else {
        Side::ExecutionPoint
    };
    let speaker = if is_hook {
        Speaker::Hook
    } else {
        input.speaker()
    };
    Some(
        ReasonFacts::of(thing, operation, outcome)
            .said_by(speaker)
            .on(side)
            .numbered(number)
            .named(scan.after_last("): ").filter(|_| is_hook)),
    )
}

/// Reads that a proxy, a token or another credential is missing or refused.
fn read_credential(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    let is_about = scan.has_any(&[
        "proxy",
        "token",
        "credential",
        "kerberos",
        "keytab",
        "access key",
        "key file not defined",
        "authenticate",
    ]);
    let is_certificate_of_server = scan.has_any(&["ssl certificate", "x509:"]);
    let is_other_proxy = scan.has_any(&["squid", "http proxy", "http_proxy", "web proxy"]);
    // The errors of GRAM have numbers, and only these two are about credentials.
    let error = scan.after("globus error ");
    let is_own = |rest: &str| ["7:", "131:"].iter().any(|own| rest.starts_with(own));
    let is_own_error = error.is_some_and(is_own);
    let is_other_error = error.is_some() && !is_own_error;
    let is_other = is_certificate_of_server || is_other_proxy || is_other_error;
    if !is_about && !is_own_error || is_other {
        return None;
    }
    let (outcome, number) = match read_outcome(scan) {
        (Outcome::Unknown, number) => (Outcome::Absent, number),
        read => read,
    };
    // The service that asks for it, or the user who has it.
    let word_after = |words: &str| scan.after(words).and_then(leading_word);
    let host = || word_after("schedd ").or_else(|| word_after("user: "));
    let is_service = input.code == Some(37) || scan.has("failed to authenticate http");
    let side = if is_service {
        Side::Server
    } else {
        Side::Unknown
    };
    Some(
        ReasonFacts::of(Thing::Credential, Operation::Authenticate, outcome)
            .on(side)
            .numbered(number)
            .named(first_url(scan.text).or_else(host)),
    )
}

/// Words of an account that the access point does not know, or may not use.
const SWITCH_WORDS: &[&str] = &[
    "unable to switch to user",
    "cannot switch to user",
    "init_user_ids",
    "getpwnam",
    "no such user",
];

/// Reads that a job cannot start at the times that it asks for, or for its account.
fn read_schedule(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    let (thing, outcome) = if scan.has_any(&["deferred execution time", "cron schedule"]) {
        (Thing::Schedule, Outcome::Invalid)
    } else if scan.has_any(SWITCH_WORDS) {
        (Thing::Account, Outcome::Denied)
    } else if scan.has("primary") && scan.has("group") {
        (Thing::Account, Outcome::Invalid)
    } else {
        return None;
    };
    let user = scan.after("user: ").and_then(leading_word);
    Some(ReasonFacts {
        message: scan.text.to_owned(),
        ..ReasonFacts::of(thing, Operation::Unknown, outcome).named(user)
    })
}

/// Words after the name of an attribute that the job does not have.
const LACKS_WORDS: &[&str] = &[
    " cannot be found in job classad",
    " not found in job ad",
    " not found in the job ad",
    " is missing from the job ad",
    " not defined",
];

/// Returns true if `name` is that of an attribute of a job, which begins with a capital letter, and not of a part
/// of HTCondor.
fn is_attribute(name: &&str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(is_part)
        && !name.ends_with("GAHP")
}

/// Reads that the job lacks a setting that the software around it needs.
fn read_setting(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    let is_of_machine = scan.has_any(&[
        "vmgahp_err_jobclassad",
        "err_no_jobclassad",
        "supported_vm_type",
    ]);
    let before = |words: &&str| {
        let at = scan.lower().find(words)?;
        scan.text[..at].split_whitespace().next_back()
    };
    let attribute = LACKS_WORDS.iter().find_map(before);
    let attribute = attribute.or_else(|| scan.after("missing attribute ").and_then(leading_word));
    let list = || scan.after("failed to read job ").and_then(leading_word);
    let name = attribute.filter(is_attribute).or_else(list);
    let facts = ReasonFacts::of(Thing::Request, Operation::Submit, Outcome::Absent);
    (name.is_some() || is_of_machine).then(|| facts.named(name))
}

/// Words of a hold by the machine.
const HELD_THERE_WORDS: &[&str] = &[
    "on hold by remote host",
    "held by remote host",
    "held by the remote host",
    "on hold by the starter",
    "held by the starter",
];

/// Reads that the machine held the job, without a word on why.
fn read_unsaid_hold(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let facts = ReasonFacts::of(Thing::Unknown, Operation::Hold, Outcome::Unknown);
    let is_held_there = input.scan.has_any(HELD_THERE_WORDS);
    is_held_there.then(|| facts.on(Side::ExecutionPoint))
}

/// Reads an outcome that passes by itself from a reason without any other known part. Only codes of transfers and
/// of no part of HTCondor leave it open who speaks: a policy or a person may use the same words for something else.
fn read_passing_outcome(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    if !matches!(input.code, None | Some(0 | 12 | 13)) {
        return None;
    }
    let (outcome, number) = read_outcome(&Scan::new(&without_paths(input.scan.text)));
    let facts = ReasonFacts::of(Thing::Unknown, Operation::Unknown, outcome)
        .numbered(number)
        .named(first_url(input.scan.text));
    outcome.passes().then_some(facts)
}

/// Reads faults of HTCondor's own software.
fn read_own_software(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    let is_own = scan.has_any(&[
        "acknowledgment missing attribute",
        "message missing attribute",
        "internal error",
        "glexec",
        "changing sandbox ownership",
        "no condor_shadow installed",
        "procd",
        "snapshot for vm",
        "dprintf hit fatal",
        "vmgahp",
        "allocating memory",
        "attempting to clear request",
        "failed to initialize filetransfer",
        "starter failed to initialize",
    ]);
    let is_standard_universe = scan.has_any(&["standard universe", "condor_compile"]);
    if !is_own && !is_standard_universe {
        return None;
    }
    let outcome = if is_standard_universe {
        Outcome::WrongFormat
    } else if scan.has("installed") {
        Outcome::Absent
    } else {
        Outcome::Failed
    };
    Some(ReasonFacts::of(
        Thing::OwnSoftware,
        Operation::Unknown,
        outcome,
    ))
}
