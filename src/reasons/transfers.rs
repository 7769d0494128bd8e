//! Reads the failure of a transfer: of a file that a daemon reads or writes, or of a plug-in.

use super::facts::{Direction, Number, Operation, Outcome, ReasonFacts, Side, Speaker, Thing};
use super::heads::{failing_clause, innermost};
use super::input::ReasonInput;
use super::outcomes::{of_curl_exit, of_words, read_number, read_outcome};
use super::quantities::read_sizes;
use super::scan::{Scan, first_url, is_in_sandbox, leading_name, leading_word, without_paths};

/// Exit code with which Pelican says that another attempt may help.
const PELICAN_RETRY: i32 = 11;

/// Reads the failure of a transfer.
pub(super) fn read_transfer(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let head = &input.head;
    let clause = failing_clause(head.rest);
    let direction = clause.map(|clause| clause.direction);
    // The words win over the code.
    let direction = direction.or_else(|| input.direction());
    let is_plugin_text = input
        .scan
        .has_any(&["filetransfer:", "url file =", "transfer plugin"]);
    if direction.is_none() && !is_plugin_text {
        return None;
    }
    let transfer = Transfer {
        direction,
        side: clause.map_or(head.side, |clause| clause.side),
        is_of_daemon: clause.is_some() || head.direction.is_some(),
    };
    let details = clause.map_or(head.rest, |clause| clause.details);
    // Where no daemon speaks, what names an address is a plug-in's message.
    let is_plugin = is_plugin_text
        || head.speaker == Speaker::Plugin
        || (!transfer.is_of_daemon && first_url(details).is_some());

    let mut facts = None;
    if !is_plugin {
        facts = read_file(&transfer, &Scan::new(details));
    }
    let facts = facts.or_else(|| is_plugin.then(|| read_plugin(input, &transfer, details)));
    let mut facts = facts.or_else(|| read_rest(&transfer, details))?;
    facts.kind.direction = transfer.direction;
    Some(facts)
}

/// Facts about a transfer before its message is read.
struct Transfer {
    direction: Option<Direction>,
    side: Side,
    /// True if the text says that a transfer failed, and not the code alone.
    is_of_daemon: bool,
}

/// Operations on a file, by the words before its name.
const FILE_WORDS: &[(&str, Operation)] = &[
    ("reading from file ", Operation::Read),
    ("error reading from ", Operation::Read),
    ("read from file ", Operation::Read),
    ("writing to file ", Operation::Write),
    ("write to file ", Operation::Write),
    ("permission denied to write file ", Operation::Write),
    (
        "failed to create output directory ",
        Operation::CreateDirectory,
    ),
    ("create output directory ", Operation::CreateDirectory),
    ("create directory ", Operation::CreateDirectory),
    ("sha256 manifest ", Operation::Read),
];

/// Words before a name that output cannot have.
const NAME_WORDS: &[&str] = &[
    "remaps resulted in a cycle: ",
    "remap of output file resulted in a url: ",
    "illegal sandbox path: ",
];

/// Reads a file that a daemon could not read or write.
fn read_file(transfer: &Transfer, details: &Scan<'_>) -> Option<ReasonFacts> {
    let named = |words: &&str| details.name_after(words);
    if let Some(name) = NAME_WORDS.iter().find_map(named) {
        return Some(
            ReasonFacts::of(Thing::OutputName, Operation::Write, Outcome::Invalid)
                .on(transfer.side)
                .named(Some(name)),
        );
    }
    if details.has("bytes exceeded") || details.has("max_transfer_") {
        return Some(read_size_limit(details));
    }
    let (words, operation) = FILE_WORDS.iter().find(|(words, _)| details.has(words))?;
    let name = details.name_after(words)?;
    let (mut outcome, number) = outcome_after(details, name);
    if *operation == Operation::Read && outcome == Outcome::Absent && is_taken_as_one(name) {
        outcome = Outcome::Invalid;
    }
    let thing = if is_proxy(name) {
        Thing::Credential
    } else if is_in_sandbox(name) || transfer.side == Side::ExecutionPoint {
        Thing::SandboxFile
    } else if is_image(name) {
        Thing::Image
    } else {
        Thing::File
    };
    // A daemon that does not name itself is the one that the user runs.
    let side = if transfer.side == Side::Unknown {
        Side::AccessPoint
    } else {
        transfer.side
    };
    Some(
        ReasonFacts::of(thing, *operation, outcome)
            .on(side)
            .numbered(number)
            .named(Some(name)),
    )
}

/// Reads how the operation on the file `name` ended: by what follows its name. Words in names mean
/// nothing.
pub(super) fn outcome_after(details: &Scan<'_>, name: &str) -> (Outcome, Option<Number>) {
    let at = details.text.find(name).map_or(0, |at| at + name.len());
    let after = Scan::new(details.text.get(at..).unwrap_or_default());
    match read_outcome(&after) {
        (Outcome::Unknown, None) => {
            let before = details.text.split(name).next().unwrap_or_default();
            (of_words(&Scan::new(before)), None)
        }
        read => read,
    }
}

/// Reads a limit on the size of transfers.
pub(super) fn read_size_limit(scan: &Scan<'_>) -> ReasonFacts {
    let (limit, used) = read_sizes(scan);
    ReasonFacts {
        limit,
        used,
        ..ReasonFacts::of(Thing::TransferSize, Operation::Send, Outcome::Exceeded)
            .named(scan.name_after("sending file "))
    }
}

/// Returns true if `name` seems to be several names parted by blanks, or to have signs that a shell replaces:
/// HTCondor takes it for the name of one file.
fn is_taken_as_one(name: &str) -> bool {
    let has_ending = |word: &str| {
        let file = word.rsplit(['/', '\\']).next().unwrap_or_default();
        let ending = file.rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
        ending.is_some_and(|(_, ending)| ending.starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    let is_list = name
        .trim()
        .split_once(' ')
        .is_some_and(|(first, _)| has_ending(first));
    is_list || name.contains(['*', '$', '"', ';']) || name.contains("/~")
}

fn is_proxy(name: &str) -> bool {
    name.rsplit('/')
        .next()
        .is_some_and(|file| file.contains("x509"))
}

fn is_image(name: &str) -> bool {
    [".sif", ".simg", ".img"]
        .iter()
        .any(|end| name.ends_with(end))
}

/// Words of faults of a credential, in the message of a plug-in.
#[rustfmt::skip]
const CREDENTIAL_WORDS: &[&str] = &[
    "token", "credential", "_condor_creds", "signing url", "access key", "signaturedoesnotmatch", "proxy certificate",
];

/// Words of a plug-in that ended without doing its work.
#[rustfmt::skip]
const PLUGIN_DIED: &[&str] = &[
    "output file", "exited unexpectedly", "panic", "valid response", "no valid classads", "is not operational",
];

/// Words of a plug-in that is not there, or not allowed.
const PLUGIN_ABSENT: &[&str] = &[
    "plugin for type",
    "transfers are disabled",
    "user-supplied plugin",
];

/// Words before the name of a host that nobody knows.
const UNRESOLVED_HOST: &str = "could not resolve host";

/// Reads the message of a transfer plug-in.
fn read_plugin(input: &ReasonInput<'_>, transfer: &Transfer, details: &str) -> ReasonFacts {
    let message = innermost(details);
    let url = input
        .scan
        .after_last("url file = ")
        .and_then(|rest| rest.split([' ', ')']).next())
        .filter(|url| !url.is_empty())
        .or_else(|| first_url(&message))
        .or_else(|| input.scan.name_after("failed to receive file "));
    let words = without_paths(&message);
    let inner = Scan::new(&words);
    let (outcome, number) = outcome_of_attempts(&inner);
    let is_output = transfer.direction == Some(Direction::Output);
    let operation = if is_output {
        Operation::Send
    } else {
        Operation::Receive
    };
    let mut facts = ReasonFacts {
        message: message.clone(),
        ..ReasonFacts::of(Thing::Object, operation, outcome)
            .said_by(Speaker::Plugin)
            .on(Side::Server)
            .numbered(number)
            .named(url)
    };

    let all = Scan::new(details);
    let is_killed = all.has("exit by signal") || all.has("(signal ");
    if inner.has("local file") {
        read_local_file(&mut facts, &message, is_output);
    } else if inner.has_any(CREDENTIAL_WORDS) && !outcome.passes() {
        facts.kind.thing = Thing::Credential;
        facts.kind.side = Side::ExecutionPoint;
        facts.kind.operation = Operation::Authenticate;
    } else if is_killed || inner.has_any(PLUGIN_DIED) || inner.has_any(PLUGIN_ABSENT) {
        read_plugin_itself(&mut facts, &inner, &all, is_killed);
    } else if let Some(host) = inner.after(UNRESOLVED_HOST) {
        let host = leading_word(host.trim_start_matches(':'));
        facts.name = host.map(str::to_owned);
    } else if is_output && inner.has("overwrite") {
        facts.kind.outcome = Outcome::Exists;
    }
    if matches!(facts.kind.outcome, Outcome::Unknown | Outcome::Failed) {
        facts.kind.outcome = outcome_of_exit(input, &all);
    }
    facts
}

/// Reads that a plug-in could not read or write its file in the job's directory.
fn read_local_file(facts: &mut ReasonFacts, message: &str, is_output: bool) {
    let name = Scan::new(message)
        .name_after("local file ")
        .map(str::to_owned);
    facts.kind.thing = Thing::SandboxFile;
    facts.kind.side = Side::ExecutionPoint;
    facts.name = name;
    facts.kind.operation = if is_output {
        Operation::Read
    } else {
        Operation::Write
    };
}

/// Reads that the plug-in itself failed, or is not there. `inner` is its message, and `all` what the
/// daemon says of it.
fn read_plugin_itself(facts: &mut ReasonFacts, inner: &Scan<'_>, all: &Scan<'_>, is_killed: bool) {
    facts.kind.thing = Thing::Plugin;
    facts.kind.side = Side::ExecutionPoint;
    facts.kind.operation = Operation::Execute;
    let scheme = inner.after("plugin for type ").and_then(leading_word);
    facts.name = scheme.map(str::to_owned);
    if is_killed || inner.has_any(PLUGIN_DIED) {
        facts.kind.outcome = Outcome::Died;
        facts.number = read_number(all);
    } else if inner.has("user-supplied") {
        facts.kind.outcome = Outcome::Denied;
    } else {
        facts.kind.outcome = Outcome::Absent;
    }
}

/// Reads the outcome of all attempts that a message lists: a fault that passes explains the others.
fn outcome_of_attempts(message: &Scan<'_>) -> (Outcome, Option<Number>) {
    if !message.has("attempt #") {
        return read_outcome(message);
    }
    let attempts = message.text.split("ttempt #").skip(1);
    let all: Vec<_> = attempts
        .map(|text| read_outcome(&Scan::new(text)))
        .collect();
    let passing = all.iter().find(|(outcome, _)| outcome.passes());
    let known = passing.or_else(|| all.iter().find(|(outcome, _)| *outcome != Outcome::Unknown));
    known.copied().unwrap_or_default()
}

/// Returns the outcome that the exit code of a plug-in means: one of curl's where it is passed on, and
/// Pelican's word that another attempt may help.
fn outcome_of_exit(input: &ReasonInput<'_>, details: &Scan<'_>) -> Outcome {
    let by_subcode = input
        .subcode
        .filter(|subcode| *subcode >= 256 && subcode % 256 == 0);
    let by_text = match read_number(details) {
        // Old versions write the wait status, in which the exit code is shifted.
        Some(Number::Exit(exit)) if exit >= 256 => Some(exit / 256),
        Some(Number::Exit(exit)) => Some(exit),
        _ => None,
    };
    match by_text.or(by_subcode.map(|subcode| subcode / 256)) {
        Some(PELICAN_RETRY) => Outcome::Unavailable,
        // What the plug-in does not name.
        Some(1..=3) | None => Outcome::Unknown,
        Some(exit) => of_curl_exit(exit),
    }
}

/// Reads what is known if neither a file nor a plug-in is named.
fn read_rest(transfer: &Transfer, details: &str) -> Option<ReasonFacts> {
    if !transfer.is_of_daemon {
        return None;
    }
    let scan = Scan::new(details);
    let hook = scan.after("remote transfer hook error");
    let words = without_paths(details);
    let (outcome, number) = read_outcome(&Scan::new(&words));
    let thing = if hook.is_some() {
        Thing::Object
    } else {
        Thing::Unknown
    };
    let operation = match transfer.direction {
        Some(Direction::Output) => Operation::Send,
        _ => Operation::Receive,
    };
    let named = hook.or_else(|| scan.after(UNRESOLVED_HOST));
    let name = named.and_then(|rest| leading_name(rest.trim_start_matches(':')));
    Some(ReasonFacts {
        message: innermost(details),
        ..ReasonFacts::of(thing, operation, outcome)
            .on(transfer.side)
            .numbered(number)
            .named(name)
    })
}
