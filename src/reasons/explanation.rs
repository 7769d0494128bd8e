//! Puts the facts of a reason, and the rule for them, into words.

use serde::Serialize;

use super::facts::{
    Amount, Direction, Number, Operation, Outcome, ReasonFacts, Side, Speaker, Thing,
};
use super::outcomes::signal_meaning;
use super::rules::{Action, Party, Rule, attributes_for, rule_with};

/// The meaning of a reason, and the advice on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The event, as a sentence without a full stop.
    pub meaning: String,
    /// The advice; absent if the facts say too little.
    pub action: Option<Action>,
    /// The party at fault.
    pub fault: Option<Party>,
    /// The repair.
    pub mend: Option<String>,
    /// The attributes of the job that may have the wrong value, the likeliest first.
    pub attributes: Vec<&'static str>,
    /// The checks that a look can make.
    pub look: Option<String>,
}

/// Explains `facts`.
pub fn explain(facts: &ReasonFacts) -> Explanation {
    let rule = rule_with(facts.kind, &facts.message);
    let filled = |words: &str| fill(words, facts);
    let look = |rule: &'static Rule| Some(filled(rule.look)).filter(|words| !words.is_empty());
    let mend = rule.map(|rule| filled(rule.mend));
    let fault = rule.map(|rule| rule.fault);
    Explanation {
        meaning: meaning(facts) + &unsaid_names(facts, fault, mend.as_deref().unwrap_or_default()),
        action: rule.map(|rule| rule.action),
        fault,
        mend,
        attributes: rule.map_or_else(Vec::new, |rule| attributes_for(rule, facts)),
        look: rule.and_then(look),
    }
}

/// Returns, in brackets, the name and the machine at fault that neither the meaning nor `mend` has.
fn unsaid_names(facts: &ReasonFacts, fault: Option<Party>, mend: &str) -> String {
    let meaning = meaning(facts);
    let is_said = |name: &&str| meaning.contains(name) || mend.contains(name);
    let of_machine = matches!(fault, Some(Party::Machine | Party::UserOrMachine));
    let machine = facts.machine.as_deref().filter(|_| of_machine);
    let names = [facts.shown_name(), machine].into_iter().flatten();
    let unsaid: Vec<&str> = names.filter(|name| !is_said(name)).collect();
    if unsaid.is_empty() {
        return String::new();
    }
    format!(" ({})", unsaid.join(", "))
}

/// Words before a name that say enough without it.
const NOUNS: [&str; 8] = [
    "directory",
    "file",
    "host",
    "image",
    "input",
    "name",
    "output",
    "program",
];

/// Fills in what the reason names.
fn fill(words: &str, facts: &ReasonFacts) -> String {
    let Some(name) = facts.shown_name() else {
        let named = NOUNS.map(|noun| format!("{noun} {{name}}"));
        let unnamed = named.iter().zip(NOUNS);
        let words = unnamed.fold(words.to_owned(), |words, (named, noun)| {
            words.replace(named, noun)
        });
        return words.replace("{name}", "it");
    };
    // No text is filled in twice: a name may have braces.
    words.replacen("{name}", name, 1)
}

/// States what happened.
fn meaning(facts: &ReasonFacts) -> String {
    let known = limit_words(facts)
        .or_else(|| purpose_words(facts))
        .or_else(|| failure_words(facts));
    let is_known = known.is_some();
    let task = known.unwrap_or_else(|| format!("{} could not {}", actor(facts), task_words(facts)));
    // What was not understood says more than a number.
    let said = Some(&facts.message).filter(|message| {
        facts.is_by_code && !message.is_empty() && !task.contains(message.as_str())
    });
    let outcome = || outcome_words(facts).filter(|_| !is_known);
    match said.cloned().or_else(outcome) {
        Some(how) => format!("{task}: {how}"),
        None => task,
    }
}

/// States a limit that was passed, with its numbers.
fn limit_words(facts: &ReasonFacts) -> Option<String> {
    let what = match facts.kind.thing {
        Thing::Memory => "memory",
        Thing::Disk => "disk",
        Thing::Cpus => "CPU time",
        Thing::Time => "time",
        Thing::Starts => "starts",
        Thing::Resource => "of a resource",
        Thing::TransferSize => "data in its transfers",
        Thing::ProgramEnd if facts.kind.outcome == Outcome::TimedOut => {
            let words = "the program makes no progress, and a policy holds the job for it";
            return Some(with_message(words, &facts.message));
        }
        Thing::ProgramEnd => {
            let said = said_words(facts);
            let how = facts
                .number
                .map_or(said, |number| format!(": {}", number_words(number)));
            return Some(format!(
                "the program failed, and a policy holds the job for it{how}"
            ));
        }
        Thing::Expression if facts.kind.outcome == Outcome::Exceeded => {
            let expression = facts.name.as_deref().unwrap_or(&facts.message);
            let words = "a policy holds the job, because this became true";
            return Some(with_message(words, expression));
        }
        _ => return None,
    };
    let mut words = if facts.kind.outcome == Outcome::Wasted {
        format!("the job uses far less {what} than it requested or than is expected")
    } else {
        format!("the job used more {what} than it may")
    };
    let amounts = [("limit", facts.limit), ("use", facts.used)];
    let amounts: Vec<String> = amounts
        .iter()
        .filter_map(|(name, amount)| Some(format!("{name} {}", amount_words((*amount)?))))
        .collect();
    if !amounts.is_empty() {
        words.push_str(&format!(" ({})", amounts.join(", ")));
    } else if matches!(
        facts.kind.thing,
        Thing::Time | Thing::Starts | Thing::Resource
    ) || facts.kind.outcome == Outcome::Wasted
    {
        words.push_str(&said_words(facts));
    }
    if let Some(number @ (Number::Signal(_) | Number::Exit(_))) = facts.number {
        words.push_str(&format!("; {}", number_words(number)));
    }
    if let Some(expression) = facts
        .name
        .as_ref()
        .filter(|_| facts.kind.operation == Operation::Evaluate)
    {
        words.push_str(&format!(", as a policy states: {expression}"));
    }
    Some(words)
}

/// Returns the message after a colon, unless it is said elsewhere: its expression, or all that was not understood.
fn said_words(facts: &ReasonFacts) -> String {
    let is_said = facts.is_by_code || facts.kind.operation == Operation::Evaluate;
    if is_said || facts.message.is_empty() {
        return String::new();
    }
    format!(": {}", facts.message)
}

/// Words with which programs hold jobs for people, who then said nothing themselves.
const NO_MESSAGE: [&str; 3] = ["via condor_hold", "Python-initiated", "submitted on hold"];

/// Returns the words of the person who holds a job, after a colon.
fn words_of_person(facts: &ReasonFacts) -> String {
    let words = facts.message.split("(by user ").next().unwrap_or_default();
    let words = words.trim_end_matches([' ', ':', '.']);
    if words.is_empty() || NO_MESSAGE.iter().any(|begin| words.starts_with(begin)) {
        return String::new();
    }
    format!(": {words}")
}

fn purpose_words(facts: &ReasonFacts) -> Option<String> {
    match (facts.kind.thing, facts.kind.outcome) {
        (Thing::Spool, _) => {
            Some("its input files are still being sent to the access point".to_owned())
        }
        (_, Outcome::Intended) => Some(match &facts.name {
            Some(user) => format!("{user} holds the job on purpose{}", words_of_person(facts)),
            None => format!("the job is held on purpose{}", words_of_person(facts)),
        }),
        _ => None,
    }
}

/// States that a script or a part of HTCondor failed, which says more itself.
fn failure_words(facts: &ReasonFacts) -> Option<String> {
    let is_policy = facts.kind.speaker.is_policy();
    let what = match facts.kind.thing {
        Thing::Hook => "a script of the site failed",
        Thing::Script => "a script of the job failed",
        Thing::Checkpoint => "the checkpoint failed",
        Thing::OwnSoftware => "HTCondor itself failed",
        Thing::RemoteSystem if facts.kind.operation == Operation::Cancel => {
            "another system did not cancel the job"
        }
        Thing::RemoteSystem if facts.kind.outcome == Outcome::Died => {
            let how = with_message("the other system ended the job", &facts.message);
            return Some(match facts.number {
                Some(number) => format!("{how} ({})", number_words(number)),
                None => how,
            });
        }
        Thing::RemoteSystem | Thing::RemoteRequest => "another system did not take or lost the job",
        Thing::Request if facts.kind.speaker == Speaker::Person => {
            "a person or a program holds the job for how it is set"
        }
        Thing::Request if facts.kind.outcome == Outcome::Invalid => {
            "the site does not take the job as it is set"
        }
        Thing::Request if facts.kind.outcome == Outcome::Undefined => {
            "an expression of the submission has no value on the machine"
        }
        Thing::Request if facts.kind.operation == Operation::Submit => {
            "the job lacks a setting, or has a wrong one"
        }
        Thing::Request => "no machine meets what the job requests",
        Thing::Device if facts.kind.outcome == Outcome::NoMemory => {
            "the GPU has less memory than the job uses"
        }
        Thing::Device => "a GPU or another device of the machine is missing or fails",
        Thing::Account if !facts.message.is_empty() => "the account cannot be used",
        Thing::Schedule => "the start times cannot be met",
        Thing::Unknown if facts.kind.operation == Operation::Hold => "the machine held the job",
        Thing::Unknown if is_policy && facts.kind.outcome != Outcome::Unknown => {
            "a policy holds the job for a fault that may pass"
        }
        Thing::Unknown if facts.kind.outcome == Outcome::Unknown => {
            let message = &facts.message;
            return Some(match (message.as_str(), facts.kind.direction) {
                ("" | "Reason unspecified", _) => "the reason says nothing".to_owned(),
                (_, Some(direction)) => format!("{}: {message}", unclear_transfer(direction)),
                _ => format!("not understood: {message}"),
            });
        }
        _ => return None,
    };
    Some(with_message(what, &facts.message))
}

/// States that files did not arrive, where nothing else was understood.
fn unclear_transfer(direction: Direction) -> &'static str {
    match direction {
        Direction::Input => "input files did not arrive, and it is not clear why",
        Direction::Output => "output files did not arrive, and it is not clear why",
    }
}

/// Returns `words` and the message, if there is one.
fn with_message(words: &str, message: &str) -> String {
    match message {
        "" => words.to_owned(),
        message => format!("{words}: {message}"),
    }
}

/// Formats an amount with its unit.
fn amount_words(amount: Amount) -> String {
    match amount {
        Amount::Mib(mib) => format!("{mib} MB"),
        Amount::Seconds(seconds) if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        Amount::Seconds(seconds) => format!("{seconds} s"),
    }
}

/// Names who could not do it.
fn actor(facts: &ReasonFacts) -> String {
    let machine = facts.machine.as_deref();
    match facts.kind.side {
        Side::AccessPoint => "the access point".to_owned(),
        Side::ExecutionPoint => machine.map_or("the machine".to_owned(), |slot| {
            format!("the machine {slot}")
        }),
        Side::Server if facts.kind.thing == Thing::Object => "the transfer plug-in".to_owned(),
        Side::Server => "the other system".to_owned(),
        Side::Unknown => "HTCondor".to_owned(),
    }
}

/// Names what could not be done, and with what.
fn task_words(facts: &ReasonFacts) -> String {
    let thing = match facts.kind.operation {
        Operation::CreateDirectory => "the directory",
        _ => thing_words(facts.kind.thing),
    };
    let named = match facts.shown_name() {
        Some(name) => format!("{thing} {name}"),
        None => {
            let without = thing
                .strip_suffix(" at")
                .or_else(|| thing.strip_suffix(" from"));
            without.unwrap_or(thing).to_owned()
        }
    };
    let verb = match (facts.kind.operation, facts.kind.direction) {
        (Operation::Read, _) => "read",
        (Operation::Write, _) => "write",
        (Operation::CreateDirectory, _) => "create",
        (Operation::Open, _) => "open",
        (Operation::Execute | Operation::Start, _) => "start",
        (Operation::Pull, _) => "pull",
        (Operation::Submit, _) => "submit the job to",
        (Operation::Send, _) | (_, Some(Direction::Output)) => "send",
        (Operation::Receive, _) | (_, Some(Direction::Input)) => "get",
        (Operation::Evaluate, _) => "evaluate",
        _ => "use",
    };
    format!("{verb} {named}")
}

fn thing_words(thing: Thing) -> &'static str {
    match thing {
        Thing::Unknown => "what the job needs from",
        Thing::File => "the file",
        Thing::SandboxFile => "the job's file",
        Thing::OutputName => "the output name",
        Thing::StandardInput => "standard input",
        Thing::StandardOutput => "standard output or error",
        Thing::Program | Thing::InstalledProgram | Thing::SharedProgram => "the program",
        Thing::Interpreter => "the interpreter",
        Thing::WorkingDirectory => "the initial working directory",
        Thing::UserLog => "the job's log",
        Thing::Object => "the data at",
        Thing::Plugin => "the transfer plug-in",
        Thing::Image => "the container image",
        Thing::ContainerSoftware => "the container",
        Thing::Credential => "the credential",
        Thing::Hook => "a script of the site",
        Thing::Script => "a script of the job",
        Thing::Checkpoint => "the checkpoint",
        Thing::Schedule => "the start times",
        Thing::Account => "the user's account",
        Thing::RemoteSystem | Thing::RemoteRequest => "another system",
        Thing::Device => "a device of the machine",
        Thing::OwnSoftware => "HTCondor's own software",
        Thing::Memory
        | Thing::Disk
        | Thing::Cpus
        | Thing::Time
        | Thing::Starts
        | Thing::Request
        | Thing::Resource
        | Thing::TransferSize => "a resource",
        Thing::ProgramEnd | Thing::Expression => "a policy's expression",
        Thing::Decision | Thing::Spool => "the job",
    }
}

/// States how it ended: by the message itself where it is short.
fn outcome_words(facts: &ReasonFacts) -> Option<String> {
    let words = match facts.kind.outcome {
        Outcome::Absent
            if matches!(
                facts.kind.operation,
                Operation::Write | Operation::CreateDirectory
            ) =>
        {
            "the directory above it does not exist"
        }
        Outcome::Absent => "it does not exist",
        Outcome::Denied => "permission is denied",
        Outcome::Exists => "it exists already",
        Outcome::Expired => "it has expired",
        Outcome::WrongKind => "it is a directory where a file is needed, or the reverse",
        Outcome::Invalid => "it is not valid",
        Outcome::Full => "no space is left",
        Outcome::Quota => "the disk quota is used up",
        Outcome::ReadOnly => "the file system is read-only",
        Outcome::MountLost => "the file system does not work",
        Outcome::TimedOut => "no answer came in time",
        Outcome::Disconnected => "the connection failed",
        Outcome::Unresolved => "the host's name is not known",
        Outcome::Busy => "it is busy",
        Outcome::Unavailable => "the server fails",
        Outcome::Corrupt => "the data are not what was sent",
        Outcome::BadCertificate => "the certificate of the server is not accepted",
        Outcome::WrongFormat => "it is not for this kind of machine",
        Outcome::TooLarge => "it is too large or too long",
        Outcome::NoMemory => "the machine has no memory left",
        Outcome::Died => "it ended without a message",
        Outcome::Failed => "it failed",
        Outcome::Undefined => "it has no value",
        Outcome::Exceeded => "a limit is passed",
        Outcome::Unknown | Outcome::Wasted | Outcome::Intended => return None,
    };
    Some(match facts.number {
        Some(number) => format!("{words} ({})", number_words(number)),
        None => words.to_owned(),
    })
}

fn number_words(number: Number) -> String {
    match number {
        Number::Errno(errno) => format!("errno {errno}"),
        Number::Http(status) => format!("HTTP {status}"),
        Number::Signal(signal) => signal_words(signal),
        Number::Exit(126) => "exit code 126: a command is not executable".to_owned(),
        Number::Exit(127) => "exit code 127: a command is not found".to_owned(),
        // A shell adds 128 to the signal that ended its command.
        Number::Exit(exit @ 129..=192) if signal_meaning(exit - 128).is_some() => {
            format!("exit code {exit}: {}", signal_words(exit - 128))
        }
        Number::Exit(exit) => format!("exit code {exit}"),
    }
}

fn signal_words(signal: i32) -> String {
    match signal_meaning(signal) {
        Some((name, meaning)) => {
            format!("signal {signal} ({}: {meaning})", name.to_ascii_uppercase())
        }
        None => format!("signal {signal}"),
    }
}
