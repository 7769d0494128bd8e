//! The fault that the hold reason of a failed transfer plug-in names.

use std::collections::HashMap;

use htcondor_eventlog::reason_template;
use poolcast_events::EventStore;
use serde::{Deserialize, Serialize};

/// Phrases that name a fault of a server or a network, in the templates of the log reader, which keep
/// listed words alone. They are those of curl, of Pelican and of HTTP.
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

/// What a transfer plug-in says is wrong.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum NamedFault {
    /// Nothing that is known, or the plug-in says nothing.
    #[default]
    Unknown,
    /// A fault of a server or a network. It passes without a repair.
    Server,
    /// The server has no such file.
    Missing,
    /// The server refuses the file to this owner.
    Denied,
}

impl NamedFault {
    /// Returns the fault that a template names. A plug-in may list several attempts, and then a fault
    /// of the server explains the others.
    fn of_template(template: &str) -> NamedFault {
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

    /// Returns the fault that the text of a hold reason names, if a plug-in failed.
    pub fn of_reason(code: i32, subcode: i32, reason: &str) -> NamedFault {
        if is_plugin_transfer(code, subcode) {
            NamedFault::of_template(&reason_template(reason.as_bytes()))
        } else {
            NamedFault::Unknown
        }
    }

    /// Returns true if the fault is one of the file, which stays if its server works.
    pub(crate) fn is_of_file(self) -> bool {
        matches!(self, NamedFault::Missing | NamedFault::Denied)
    }

    /// Returns a number for what else has to work for the job: 0 for the server, whose return helps all
    /// its jobs, and others for files that a server in good order does not send.
    pub(super) fn of_file(self) -> u32 {
        match self {
            NamedFault::Unknown | NamedFault::Server => 0,
            NamedFault::Missing => 1,
            NamedFault::Denied => 2,
        }
    }
}

/// Returns true if a transfer of files by a plug-in failed.
pub(crate) fn is_plugin_transfer(code: i32, subcode: i32) -> bool {
    matches!(code, 12 | 13) && subcode >= 256
}

/// The faults that the templates of one store name, by the hashes of the templates.
#[derive(Debug)]
pub(super) struct NamedFaults(HashMap<u32, NamedFault>);

impl NamedFaults {
    pub(super) fn new(store: &EventStore) -> NamedFaults {
        let templates = store.summary.reasons.iter();
        NamedFaults(
            templates
                .map(|(hash, template)| (hash, NamedFault::of_template(template)))
                .collect(),
        )
    }

    /// Returns the fault that the template with this hash names, if a plug-in failed.
    pub(super) fn get(&self, code: i32, subcode: i32, template: u32) -> NamedFault {
        let named = self.0.get(&template).copied();
        named
            .filter(|_| is_plugin_transfer(code, subcode))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log reader made all templates: those of Pelican from a simulated log, and the others from
    /// logs of real pools.
    #[test]
    fn reasons_of_plug_ins_name_faults() {
        let pelican = "transfer input files failure at execution point * using protocol osdf details pelican * error attempt * from * error";
        let end = "version * url file * exit * from *";
        let of_pelican = |fault| NamedFault::of_template(&format!("{pelican} {fault} {end}"));
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
            assert_eq!(NamedFault::of_template(&template), fault, "{template}");
        }
        for template in [
            "transfer input files failure at execution point * using protocol osdf details * server returned 503 * unavailable * url file *",
            "transfer input files failure at execution point * using protocol osdf details * connection reset by * while transferring * url file *",
        ] {
            assert_eq!(NamedFault::of_template(template), NamedFault::Server);
        }
    }
}
