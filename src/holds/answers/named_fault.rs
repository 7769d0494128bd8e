//! The fault that a hold reason names: of a transfer plug-in, of a policy, or of a machine.

use std::collections::HashMap;

use htcondor_eventlog::reason_template;
use poolcast_events::EventStore;
use serde::{Deserialize, Serialize};

/// Phrases that name a fault of a server or a network, in the templates of the log reader, which keep
/// listed words alone. Curl, Pelican and HTTP use them.
const SERVER: [&str; 15] = [
    "timed out",
    "deadline exceeded",
    "connection refused",
    "connection reset",
    "unavailable",
    "network is unreachable",
    "could not resolve",
    "bad gateway",
    "gateway timeout",
    "408",
    "429",
    "500",
    "502",
    "503",
    "504",
];
/// Phrases that say that a server has no such file.
const MISSING: [&str; 5] = ["404", "410", "not found", "no such file", "does not exist"];
/// Phrases that say that a server refuses to send or to take the file.
const DENIED: [&str; 3] = ["401", "403", "permission denied"];

/// Phrase that names a program which is installed on the machine: templates keep the directories of such
/// programs, and no other paths.
const INSTALLED_PROGRAM: &str = "execute /";

/// Code of holds because the program could not be started.
pub(crate) const PROGRAM_NOT_STARTED: i32 = 6;
/// Unix errors of a program that is there: it is for another architecture, or it may not be executed.
const PROGRAM_FAULTS: [i32; 2] = [8, 13];
/// The lowest subcode of a failed plug-in: HTCondor shifts its exit code left by eight bits.
const PLUGIN_SUBCODES: i32 = 256;
/// Codes of holds by the job's own policy and by the access point's.
const POLICIES: [i32; 2] = [3, 26];

/// What a transfer plug-in or a policy says is wrong.
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
    /// Returns the fault that a plug-in names. It may list several attempts, and then a fault of the
    /// server explains the others.
    fn of_plugin(template: &str) -> NamedFault {
        let names = |phrases: &[&str]| phrases.iter().any(|phrase| template.contains(phrase));
        if names(&SERVER) {
            NamedFault::Server
        } else if names(&MISSING) {
            NamedFault::Missing
        } else if names(&DENIED) {
            NamedFault::Denied
        } else {
            NamedFault::Unknown
        }
    }

    /// Returns the fault that the text of a hold reason names.
    pub fn of_reason(code: i32, subcode: i32, reason: &str) -> NamedFault {
        NamedFault::of_template(code, subcode, &reason_template(reason.as_bytes()))
    }

    /// Returns the fault that the template of a hold reason names.
    pub fn of_template(code: i32, subcode: i32, template: &str) -> NamedFault {
        TemplateFaults::new(template).of_code(code, subcode)
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

/// Returns true if a policy says that a job used more memory than it may, as in the policies of the
/// HTCondor manual and of access points.
fn is_memory_excess(template: &str) -> bool {
    template.contains("memory")
        && ["exceed", "limit"]
            .iter()
            .any(|word| template.contains(word))
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

/// The faults that the template of a hold reason names.
#[derive(Debug, Clone, Copy, Default)]
struct TemplateFaults {
    /// If a plug-in failed.
    of_plugin: NamedFault,
    /// If a policy held the job.
    of_policy: NamedFault,
    /// If the program could not be started.
    of_program: NamedFault,
}

impl TemplateFaults {
    fn new(template: &str) -> TemplateFaults {
        let of_policy = if is_memory_excess(template) {
            NamedFault::Memory
        } else {
            NamedFault::Unknown
        };
        let of_program = if template.contains(INSTALLED_PROGRAM) {
            NamedFault::Machine
        } else {
            NamedFault::Unknown
        };
        TemplateFaults {
            of_plugin: NamedFault::of_plugin(template),
            of_policy,
            of_program,
        }
    }

    /// Returns the fault that the template names in a hold with this code.
    fn of_code(self, code: i32, subcode: i32) -> NamedFault {
        if is_plugin_transfer(code, subcode) {
            self.of_plugin
        } else if POLICIES.contains(&code) {
            self.of_policy
        } else if code == PROGRAM_NOT_STARTED && !PROGRAM_FAULTS.contains(&subcode) {
            self.of_program
        } else {
            NamedFault::Unknown
        }
    }
}

/// The faults that the templates of one store name, by the hashes of the templates.
#[derive(Debug)]
pub(super) struct NamedFaults(HashMap<u32, TemplateFaults>);

impl NamedFaults {
    pub(super) fn new(store: &EventStore) -> NamedFaults {
        let templates = store.summary.reasons.iter();
        NamedFaults(
            templates
                .map(|(hash, template)| (hash, TemplateFaults::new(template)))
                .collect(),
        )
    }

    /// Returns the fault that the template with this hash names in a hold with this code.
    pub(super) fn get(&self, code: i32, subcode: i32, template: u32) -> NamedFault {
        let faults = self.0.get(&template).copied().unwrap_or_default();
        faults.of_code(code, subcode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log reader made all templates: the ones of Pelican from a simulated log, and the others from
    /// logs of real pools.
    #[test]
    fn reasons_of_plug_ins_name_faults() {
        let pelican = "transfer input files failure at execution point * using protocol osdf details pelican * error attempt * from * error";
        let end = "version * url file * exit * from *";
        let of_pelican = |fault| NamedFault::of_plugin(&format!("{pelican} {fault} {end}"));
        for fault in [
            "error code * connection refused",
            "error code * request failed * status 504 * timed out",
        ] {
            assert_eq!(of_pelican(fault), NamedFault::Server, "{fault}");
        }
        let missing =
            "error code * request failed * status 404 unable to open * no such file or directory";
        assert_eq!(of_pelican(missing), NamedFault::Missing);

        let http = "transfer input files failure at execution point * using protocol http details the requested url returned error";
        for (status, fault) in [
            ("503", NamedFault::Server),
            ("404", NamedFault::Missing),
            ("403", NamedFault::Denied),
            ("*", NamedFault::Unknown),
        ] {
            let template = format!("{http} {status} url file *");
            assert_eq!(NamedFault::of_plugin(&template), fault, "{template}");
        }
        for template in [
            "transfer input files failure at execution point * using protocol osdf details * server returned 503 * unavailable * url file *",
            "transfer input files failure at execution point * using protocol osdf details * connection reset by * while transferring * url file *",
        ] {
            assert_eq!(NamedFault::of_plugin(template), NamedFault::Server);
        }
    }

    #[test]
    fn only_an_installed_program_is_a_fault_of_the_machine() {
        let fault = |code, subcode, program: &str| {
            let reason = format!(
                "Error from slot1@ep.example: Failed to execute '{program}': (errno=2: 'No such file or directory')"
            );
            NamedFault::of_reason(code, subcode, &reason)
        };
        for program in [
            "/usr/bin/singularity",
            "/cvmfs/soft.example/bin/start",
            "/lib64/x",
        ] {
            assert_eq!(fault(6, 2, program), NamedFault::Machine, "{program}");
        }
        for program in [
            "/home/ada/usr/run.sh",
            "/users/ada/run.sh",
            "usr/bin/python3",
        ] {
            assert_eq!(fault(6, 2, program), NamedFault::Unknown, "{program}");
        }
        assert_eq!(fault(6, 107, "/cvmfs/soft/start"), NamedFault::Machine);
        assert_eq!(fault(6, 13, "/usr/bin/python3"), NamedFault::Unknown);
        assert_eq!(fault(13, 2, "/usr/bin/singularity"), NamedFault::Unknown);
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
        assert_eq!(NamedFault::of_reason(26, 102, reason), NamedFault::Memory);
        assert_eq!(NamedFault::of_reason(3, 0, reason), NamedFault::Memory);
        assert_eq!(NamedFault::of_reason(1, 0, reason), NamedFault::Unknown);
        let other = "The job exceeded allowed execute duration of 0+20:00:00";
        assert_eq!(NamedFault::of_reason(26, 0, other), NamedFault::Unknown);
    }
}
