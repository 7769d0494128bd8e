//! The fault that a hold reason names: of a transfer plug-in, of a policy, or of a machine.

use htcondor_eventlog::ReasonKind;
use htcondor_holdreasons::{Outcome, Thing, kind_of_code};
use poolcast_events::StoredJob;
use serde::{Deserialize, Serialize};

/// Code of holds because the program could not be started.
pub(crate) const PROGRAM_NOT_STARTED: i32 = 6;
/// The lowest subcode of a failed plug-in: HTCondor shifts its exit code left by eight bits.
const PLUGIN_SUBCODES: i32 = 256;

/// What the reason of a hold names as wrong, as far as other jobs can show whether it still is.
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

/// Returns true if the code and subcode of a hold, or the fault that its reason names, say what failed: an error of
/// Unix, a resource, or a fault of a plug-in. The codes of policies and of other failed plug-ins are the same for every
/// fault, so that one site says nothing about another.
pub(super) fn says_what_failed(code: i32, subcode: i32, named_fault: NamedFault) -> bool {
    let is_of_file =
        matches!(code, 6..=10 | 12..=14 | 22) && (1..PLUGIN_SUBCODES).contains(&subcode);
    let is_of_request = matches!(code, 21 | 34) && matches!(subcode, 101 | 102 | 104);
    let is_of_duration = matches!(code, 46 | 47);
    named_fault != NamedFault::Unknown || is_of_file || is_of_request || is_of_duration
}

/// Returns the subcode that stands for all subcodes of the same kind: failed plug-ins give their exit code.
pub(super) fn subcode_class(code: i32, subcode: i32) -> i32 {
    if is_plugin_transfer(code, subcode) {
        PLUGIN_SUBCODES
    } else {
        subcode
    }
}

/// Returns true if a transfer of files by a plug-in failed.
pub(crate) fn is_plugin_transfer(code: i32, subcode: i32) -> bool {
    matches!(code, 12 | 13) && subcode >= PLUGIN_SUBCODES
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
    fn codes_of_policies_and_plug_ins_say_what_failed_by_their_words_alone() {
        let says = |code, subcode| says_what_failed(code, subcode, NamedFault::Unknown);
        assert!(says(13, 2) && says(6, 8) && says(34, 102) && says(47, 0));
        for (code, subcode) in [
            (26, 0),
            (3, 1),
            (3, 102),
            (21, 7),
            (13, 256),
            (12, 0),
            (999, 2),
        ] {
            assert!(!says(code, subcode), "{code}/{subcode}");
            assert!(says_what_failed(code, subcode, NamedFault::Server));
        }
        assert_eq!(subcode_class(13, 2816), subcode_class(13, 256));
        assert_ne!(subcode_class(13, 2), subcode_class(13, 13));
    }

    /// A real pool with such a policy gave the first reason, and the other one is HTCondor's own.
    #[test]
    fn policies_name_memory() {
        let reason = "Job exceeded its memory request: used 162 MB of 50";
        assert_eq!(fault(26, 102, reason), NamedFault::Memory);
        assert_eq!(fault(3, 0, reason), NamedFault::Memory);
        assert_eq!(fault(1, 0, reason), NamedFault::Unknown);
        let other = "The job exceeded allowed execute duration of 0+20:00:00";
        assert_eq!(fault(26, 0, other), NamedFault::Unknown);
    }
}
