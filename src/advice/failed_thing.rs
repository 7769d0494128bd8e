//! Names what failed for a held job: the thing that all causes with the same fault have in common.

use std::fmt;

use htcondor_eventlog::file_origin;
use htcondor_holdreasons::{Operation, Outcome, ReasonFacts, ReasonKind, Speaker, Thing};
use serde::Serialize;

use super::addresses::server_of;
use super::job_advice::JobAdvice;
use poolcast_holds::answers::ThingKind;
use poolcast_holds::decision::HoldAction;

/// The thing that failed, or the mistake of its owners that a job is held for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "name")]
pub enum FailedThing {
    /// The request of a batch that uses more memory.
    Memory,
    /// The request of a batch that uses more disk.
    Disk,
    /// The request of a batch that uses more CPUs.
    Cpus,
    /// A server, or the namespace of addresses without a host.
    Server(String),
    /// A directory or a mount of the access point.
    Directory(String),
    /// A file system without room, by its directory; empty on execution points.
    Room(String),
    /// An installed program, or the software for containers.
    Program(String),
    /// A container image.
    Image(String),
    /// A policy of the owners, by its attribute.
    OwnPolicy(String),
    /// A policy of the site, by its expression.
    SitePolicy(String),
    /// Input files of the owners.
    OwnInput,
    /// Output files of the owners.
    OwnOutput,
    /// Programs that jobs bring along.
    OwnProgram,
    /// A person who holds jobs on purpose.
    Person,
    /// Anything else, in words for its hold code.
    Other(String),
}

impl FailedThing {
    /// Returns what failed for the job of `advice`, whose reason states `facts`, if `action` is the answer.
    pub(super) fn new(advice: &JobAdvice, facts: &ReasonFacts, action: HoldAction) -> FailedThing {
        let name = facts.shown_name().unwrap_or_default();
        let by_kind = FailedThing::of_resource(facts.kind)
            .or_else(|| FailedThing::of_file(advice, action, facts.kind, name))
            .or_else(|| FailedThing::of_program(facts.kind, name))
            .or_else(|| FailedThing::of_policy(facts, name));
        by_kind.unwrap_or_else(|| match advice.hold.code {
            1 => FailedThing::Person,
            _ => FailedThing::Other(advice.hold.meaning.to_string()),
        })
    }

    /// Returns the kind of the thing, without its name.
    pub fn without_name(&self) -> FailedThing {
        match self {
            FailedThing::Server(_) => FailedThing::Server(String::new()),
            FailedThing::Directory(_) => FailedThing::Directory(String::new()),
            FailedThing::Room(_) => FailedThing::Room(String::new()),
            FailedThing::Program(_) => FailedThing::Program(String::new()),
            FailedThing::Image(_) => FailedThing::Image(String::new()),
            FailedThing::SitePolicy(_) => FailedThing::SitePolicy(String::new()),
            other => other.clone(),
        }
    }

    fn of_resource(kind: ReasonKind) -> Option<FailedThing> {
        match (kind.thing, kind.outcome) {
            (Thing::Memory, Outcome::Exceeded) => Some(FailedThing::Memory),
            (Thing::Disk, Outcome::Exceeded) => Some(FailedThing::Disk),
            (Thing::Cpus, Outcome::Exceeded) => Some(FailedThing::Cpus),
            _ => None,
        }
    }

    fn of_file(
        advice: &JobAdvice,
        action: HoldAction,
        kind: ReasonKind,
        name: &str,
    ) -> Option<FailedThing> {
        // The answer says whether what lacks the file may come back.
        let is_mistake = matches!(action, HoldAction::Fix | HoldAction::Remove);
        let state = advice.forecast.state.as_ref().map(|state| state.kind);
        let is_of_origin = state == Some(ThingKind::Origin);
        let is_absent = kind.outcome == Outcome::Absent;
        match kind.thing {
            Thing::SandboxFile | Thing::File | Thing::OutputName | Thing::WorkingDirectory
                if matches!(kind.outcome, Outcome::Full | Outcome::Quota) =>
            {
                Some(FailedThing::Room(directory_of(name).to_owned()))
            }
            Thing::SandboxFile if is_absent => Some(FailedThing::OwnOutput),
            Thing::Object if is_absent && is_mistake && !is_of_origin => {
                Some(FailedThing::OwnInput)
            }
            Thing::Object => Some(FailedThing::Server(namespace_of(name).to_owned())),
            Thing::File | Thing::StandardInput | Thing::WorkingDirectory
                if is_mistake && !kind.outcome.passes() =>
            {
                let is_written = matches!(kind.operation, Operation::Write | Operation::Receive);
                Some(match is_written {
                    true => FailedThing::OwnOutput,
                    false => FailedThing::OwnInput,
                })
            }
            Thing::File | Thing::StandardInput | Thing::WorkingDirectory => {
                let directory = directory_of(name);
                (!directory.is_empty()).then(|| FailedThing::Directory(directory.to_owned()))
            }
            _ => None,
        }
    }

    fn of_program(kind: ReasonKind, name: &str) -> Option<FailedThing> {
        match kind.thing {
            Thing::InstalledProgram | Thing::ContainerSoftware => {
                Some(FailedThing::Program(name.to_owned()))
            }
            Thing::Image => Some(FailedThing::Image(name.to_owned())),
            Thing::Program | Thing::SharedProgram | Thing::Interpreter => {
                Some(FailedThing::OwnProgram)
            }
            _ => None,
        }
    }

    fn of_policy(facts: &ReasonFacts, name: &str) -> Option<FailedThing> {
        match facts.kind.speaker {
            Speaker::JobPolicy => {
                let attribute = facts.message.strip_prefix("The job attribute ");
                let attribute = attribute.and_then(|rest| rest.split(' ').next());
                let attribute = attribute.unwrap_or_default();
                Some(FailedThing::OwnPolicy(attribute.to_owned()))
            }
            Speaker::SitePolicy => Some(FailedThing::SitePolicy(name.to_owned())),
            _ => None,
        }
    }

    /// Returns true if jobs asked for less than they use.
    fn is_request(&self) -> bool {
        matches!(
            self,
            FailedThing::Memory | FailedThing::Disk | FailedThing::Cpus
        )
    }

    /// Returns true if the outcome of one job says something about the others.
    pub fn has_common_state(&self) -> bool {
        !self.is_request() && *self != FailedThing::Person
    }

    /// Returns true if what failed are files or programs of the owners.
    pub fn is_own_file(&self) -> bool {
        matches!(
            self,
            FailedThing::OwnInput | FailedThing::OwnOutput | FailedThing::OwnProgram
        )
    }

    /// Returns true if each owner has made a mistake of their own, so that the job of one shows nothing about the
    /// jobs of another.
    pub(super) fn is_of_each_owner(&self) -> bool {
        let is_mistake = matches!(self, FailedThing::OwnPolicy(_) | FailedThing::Other(_));
        is_mistake || self.is_own_file() || self.is_request()
    }
}

/// The name of the thing in words.
impl fmt::Display for FailedThing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |f: &mut fmt::Formatter<'_>, what: &str, name: &str| match name {
            "" => f.write_str(what),
            name => write!(f, "{what} {name}"),
        };
        match self {
            FailedThing::Memory => f.write_str("asked less memory than used"),
            FailedThing::Disk => f.write_str("asked less disk than used"),
            FailedThing::Cpus => f.write_str("asked fewer CPUs than used"),
            FailedThing::Server(name) => named(f, "server", name),
            FailedThing::Directory(name) if name.is_empty() => f.write_str("directory"),
            FailedThing::Directory(name) => f.write_str(name),
            FailedThing::Room(name) if name.is_empty() => f.write_str("no space left on machines"),
            FailedThing::Room(name) => write!(f, "no space left in {name}"),
            FailedThing::Program(name) if name.is_empty() => f.write_str("installed program"),
            FailedThing::Program(name) => f.write_str(name),
            FailedThing::Image(name) => named(f, "image", name),
            FailedThing::OwnPolicy(name) => named(f, "own policy", name),
            FailedThing::SitePolicy(name) => named(f, "site policy", name),
            FailedThing::OwnInput => f.write_str("own input file missing"),
            FailedThing::OwnOutput => f.write_str("own output file missing"),
            FailedThing::OwnProgram => f.write_str("own program cannot start"),
            FailedThing::Person => f.write_str("held by a person"),
            FailedThing::Other(words) => f.write_str(words),
        }
    }
}

/// Returns the host of `address`, or else the first directory of its path.
fn namespace_of(address: &str) -> &str {
    let server = server_of(address);
    let Some((_, path)) = server.split_once(":///") else {
        return server;
    };
    path.split('/').next().unwrap_or(path)
}

/// Returns the upper directories of an absolute path; empty for any other name.
fn directory_of(path: &str) -> &str {
    match path.starts_with('/') {
        true => file_origin(path),
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use htcondor_holdreasons::read_reason;

    use super::*;

    fn failed(reason: &str, codes: (i32, i32), action: HoldAction) -> String {
        let advice = JobAdvice::of_test_job().with(|one| {
            one.hold.code = codes.0;
            one.hold.subcode = codes.1;
            one.hold.meaning = "some meaning".into();
            one.verdict.action = action;
        });
        FailedThing::new(&advice, &read_reason(reason, Some(codes)), action).to_string()
    }

    #[test]
    fn things_are_named_by_what_failed() {
        use HoldAction::{Fix, Leave, None, Probe};
        let absent = |file: &str| {
            format!(
                "Transfer input files failure at access point ap while sending files to execution point slot1@e. \
                 Details: reading from file {file}: (errno 2) No such file or directory"
            )
        };
        let url = |url: &str| {
            format!(
                "Transfer input files failure at execution point slot1@e using protocol osdf. Details: Transfer.TimedOut \
                 ( URL file = {url} )"
            )
        };
        let policy = "The job attribute OnExitHold expression '(ExitCode != 0)' evaluated to TRUE";
        let full = "Transfer input files failure at execution point slot1@e while receiving files from access point ap. Details: \
                    writing to file /var/lib/condor/execute/dir_7/scratch/a: (errno 28) No space left on device";
        let program = "Error from slot1@e: Failed to execute '/usr/bin/singularity': (errno=2: 'No such file or directory')";
        for (reason, codes, action, expected) in [
            (
                "Error from slot1@e: memory usage exceeded request_memory",
                (34, 102),
                Fix,
                "asked less memory than used",
            ),
            (
                &absent("/home/ada/in/a.dat"),
                (13, 2),
                Fix,
                "own input file missing",
            ),
            (
                &absent("/project/gwave/a.dat"),
                (13, 2),
                Probe,
                "/project/gwave",
            ),
            (
                &url("osdf:///ospool/ap40/ada/a.dat"),
                (13, 256),
                Probe,
                "server ospool",
            ),
            (
                &url("https://ada@fs1.example:8443/a.dat"),
                (13, 256),
                Probe,
                "server fs1.example:8443",
            ),
            (policy, (3, 2), Probe, "own policy OnExitHold"),
            (full, (13, 28), Probe, "no space left on machines"),
            (program, (6, 2), Probe, "/usr/bin/singularity"),
            (
                "via condor_hold (by user ada)",
                (1, 0),
                Leave,
                "held by a person",
            ),
            ("of another kind", (99, 0), None, "some meaning"),
        ] {
            assert_eq!(failed(reason, codes, action), expected, "{reason}");
        }
    }
}
