//! The fault that a hold reason names: of a transfer plug-in, of a policy, or of a machine.

use htcondor_eventlog::ReasonKind;
use htcondor_holdreasons::{Operation, Outcome, Side, Speaker, Thing, kind_of_code};
use poolcast_events::StoredJob;
use serde::{Deserialize, Serialize};

/// The fault that the reason of a hold names. Other jobs can show if it is still there.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum NamedFault {
    /// Nothing that is known, or the reason does not say it.
    #[default]
    Unknown,
    /// A fault of a server or a network. It passes without a repair.
    Server,
    /// The server has no such file.
    Missing,
    /// The server refuses the file to this owner.
    Denied,
    /// The job used more memory than a policy allows.
    Memory,
    /// The machine could not start a program that is installed on machines, and not sent with a job.
    /// Another machine may.
    Machine,
}

impl NamedFault {
    /// Returns the fault that follows from what a reason states.
    pub fn of_kind(kind: ReasonKind) -> NamedFault {
        match (kind.thing, kind.outcome) {
            (Thing::Object, Outcome::Absent) => NamedFault::Missing,
            (Thing::Object, Outcome::Denied | Outcome::Expired) => NamedFault::Denied,
            (Thing::Object, outcome) if outcome.passes() => NamedFault::Server,
            (Thing::Memory, Outcome::Exceeded) => NamedFault::Memory,
            // A program for another architecture, or without permission, is at fault itself.
            (Thing::InstalledProgram, Outcome::WrongFormat | Outcome::Denied) => {
                NamedFault::Unknown
            }
            (Thing::InstalledProgram, _) => NamedFault::Machine,
            _ => NamedFault::Unknown,
        }
    }

    /// Returns `kind` with this fault, which other jobs have shown, in place of the one that the reason names.
    pub fn corrects(self, kind: ReasonKind) -> ReasonKind {
        let outcome = match self {
            fault if fault == NamedFault::of_kind(kind) => kind.outcome,
            NamedFault::Missing => Outcome::Absent,
            NamedFault::Server => Outcome::Unavailable,
            _ => kind.outcome,
        };
        ReasonKind { outcome, ..kind }
    }

    /// Returns true if the fault is one of the file, which stays if its server works.
    pub(crate) fn is_of_file(self) -> bool {
        matches!(self, NamedFault::Missing | NamedFault::Denied)
    }

    /// Returns true if the job can succeed without a repair, later or on another machine.
    pub fn may_pass(self) -> bool {
        matches!(self, NamedFault::Server | NamedFault::Machine)
    }

    /// Returns a number for what else has to work for the job: 0 for the server, whose return helps all
    /// its jobs, and others for files that a server in good order does not send.
    pub(super) fn of_file(self) -> u32 {
        match self {
            NamedFault::Unknown | NamedFault::Server | NamedFault::Memory | NamedFault::Machine => {
                0
            }
            NamedFault::Missing => 1,
            NamedFault::Denied => 2,
        }
    }
}

/// Returns what the reason of hold `hold` of `job` states, or else what its code does.
pub fn stated_kind(job: &StoredJob<'_>, hold: usize) -> ReasonKind {
    let kind = job.hold_facts(hold).kind;
    if kind != ReasonKind::default() {
        return kind;
    }
    let history = &job.history;
    kind_of_code(history.hold_code[hold], history.hold_subcode[hold])
}

/// Returns true if what a reason states means the same at every site: a file, a resource or a server, and how it
/// failed. It does not for what only its author can tell apart, such as policies and programs, nor if the reason does
/// not say how it ended.
pub(super) fn is_common_fact(stated: ReasonKind) -> bool {
    let is_of_author = matches!(
        stated.thing,
        Thing::Unknown
            | Thing::Decision
            | Thing::Expression
            | Thing::Hook
            | Thing::OwnSoftware
            | Thing::Plugin
            | Thing::ProgramEnd
            | Thing::RemoteRequest
            | Thing::RemoteSystem
            | Thing::Script
            | Thing::Spool
    );
    !is_of_author && !matches!(stated.outcome, Outcome::Unknown | Outcome::Failed)
}

/// Returns the number of the fault that a reason states, if other sites have it, too: without what differs from one
/// version, plug-in or policy to the next, which are the speaker, how exactly a server failed, and who measured.
pub(super) fn common_fault(stated: ReasonKind) -> Option<u32> {
    let fault = ReasonKind {
        speaker: Speaker::Unknown,
        outcome: match stated.outcome {
            outcome if outcome.passes() => Outcome::Unavailable,
            outcome => outcome,
        },
        ..stated
    };
    let fault = match fault.thing {
        Thing::Object => ReasonKind {
            side: Side::Server,
            operation: match fault.operation {
                Operation::Send => Operation::Send,
                _ => Operation::Receive,
            },
            ..fault
        },
        Thing::Cpus | Thing::Disk | Thing::Memory | Thing::Time => ReasonKind {
            side: Side::Unknown,
            operation: Operation::Use,
            ..fault
        },
        _ => fault,
    };
    is_common_fact(stated).then(|| fault.packed_fault())
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_holdreasons::read_reason;

    fn fault(code: i32, subcode: i32, reason: &str) -> NamedFault {
        NamedFault::of_kind(read_reason(reason, Some((code, subcode))).kind)
    }

    #[test]
    fn reasons_of_plug_ins_name_faults() {
        let from = |details: &str| {
            let reason = format!(
                "Transfer input files failure at execution point slot1@e using protocol osdf. Details: {details} ( URL file = osdf:///lab/x.tar )|"
            );
            fault(13, 256, &reason)
        };
        for (details, expected) in [
            (
                "Pelican Client Error: Attempt #1: from cache1: connection refused",
                NamedFault::Server,
            ),
            (
                "Pelican Client Error: Attempt #1: from cache1: request failed (HTTP status 504)",
                NamedFault::Server,
            ),
            (
                "Pelican Client Error: Attempt #1: from cache1: request failed (HTTP status 404)",
                NamedFault::Missing,
            ),
            ("The requested URL returned error: 503", NamedFault::Server),
            ("The requested URL returned error: 404", NamedFault::Missing),
            ("The requested URL returned error: 403", NamedFault::Denied),
            ("The requested URL returned error: 418", NamedFault::Unknown),
            (
                "osdf:///lab/x.tar: server returned 503 Service Unavailable",
                NamedFault::Server,
            ),
            (
                "connection reset by peer while transferring",
                NamedFault::Server,
            ),
        ] {
            assert_eq!(from(details), expected, "{details}");
        }
    }

    #[test]
    fn only_an_installed_program_is_a_fault_of_the_machine() {
        let of_program = |errno, program: &str| {
            let reason = format!(
                "Error from slot1@ep.example: Failed to execute '{program}': (errno={errno}: 'an error')"
            );
            fault(6, errno, &reason)
        };
        for program in ["/usr/bin/singularity", "/cvmfs/soft.example/bin/start"] {
            assert_eq!(of_program(2, program), NamedFault::Machine, "{program}");
            assert_eq!(of_program(107, program), NamedFault::Machine, "{program}");
            assert_eq!(of_program(13, program), NamedFault::Unknown, "{program}");
        }
        for program in [
            "/var/lib/condor/execute/dir_7/condor_exec.exe",
            "/home/ada/run.sh",
            "usr/bin/python3",
        ] {
            assert_eq!(of_program(2, program), NamedFault::Unknown, "{program}");
        }
    }

    #[test]
    fn other_jobs_correct_the_fault_that_a_reason_names() {
        let missing = read_reason(
            "server returned 404 Not Found ( URL file = osdf:///lab/x.tar )",
            Some((13, 256)),
        )
        .kind;
        let corrected = |fault: NamedFault| NamedFault::of_kind(fault.corrects(missing));
        for fault in [NamedFault::Missing, NamedFault::Server] {
            assert_eq!(corrected(fault), fault);
        }
    }

    #[test]
    fn faults_are_the_same_under_any_code_and_policies_state_none() {
        let fault = |code, subcode, reason: &str| {
            common_fault(read_reason(reason, Some((code, subcode))).kind)
        };
        let by_code = |code, subcode| common_fault(kind_of_code(code, subcode));
        assert!(by_code(13, 2).is_some() && by_code(6, 8).is_some() && by_code(47, 0).is_some());
        assert_eq!(by_code(34, 102), by_code(21, 102));
        for reason in [
            "memory usage 3000 MB exceeded the limit of 2000 MB",
            "Error from slot1@ep.example: memory usage exceeded request_memory",
        ] {
            assert_eq!(fault(26, 0, reason), by_code(34, 102), "{reason}");
        }
        let from_server = |status| {
            let reason = format!(
                "The requested URL returned error: {status} ( URL file = http://a.example/x )"
            );
            fault(13, 256, &reason)
        };
        assert_eq!(from_server(503), from_server(504));
        assert_ne!(from_server(503), from_server(404));
        for (code, subcode) in [
            (26, 0),
            (3, 1),
            (3, 102),
            (21, 7),
            (13, 256),
            (12, 0),
            (999, 2),
        ] {
            assert_eq!(by_code(code, subcode), None, "{code}/{subcode}");
        }
    }
}
