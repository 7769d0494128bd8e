//! Hold reasons that name a fault of a server or a network. Such a fault passes without a repair.

use std::collections::HashSet;

use super::codes::is_plugin_transfer;
use crate::answers::PastHold;
use poolcast_events::EventStore;

/// Phrases of such reasons, in the templates of the log reader, which keep listed words alone. They are
/// those of curl, of Pelican and of the status codes 502, 503 and 504 of HTTP.
const PHRASES: [&str; 8] = [
    "timed out",
    "connection refused",
    "connection reset",
    "unavailable",
    "network is unreachable",
    "could not resolve",
    "bad gateway",
    "gateway timeout",
];

/// The templates of such reasons in one store.
#[derive(Debug)]
pub(super) struct PassingReasons<'a> {
    store: &'a EventStore,
    templates: HashSet<u32>,
}

impl<'a> PassingReasons<'a> {
    pub(super) fn new(store: &'a EventStore) -> PassingReasons<'a> {
        let templates = store.summary.reasons.iter();
        let passing = templates.filter(|(_, template)| names_passing_fault(template));
        PassingReasons {
            store,
            templates: passing.map(|(hash, _)| hash).collect(),
        }
    }

    /// Returns true if a plug-in could not transfer the files of the job of `hold`, and its reason names
    /// a fault that passes.
    pub(super) fn include(&self, hold: &PastHold) -> bool {
        let history = self.store.jobs().history(hold.job as usize);
        let template = history.value[hold.cycle.hold].cast_unsigned();
        is_plugin_transfer(hold.code, hold.subcode) && self.templates.contains(&template)
    }
}

fn names_passing_fault(template: &str) -> bool {
    PHRASES.iter().any(|phrase| template.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log reader made all templates: those of Pelican from a simulated log, and the others from the
    /// log of a real pool.
    #[test]
    fn reasons_of_servers_and_networks_name_passing_faults() {
        let pelican = "transfer input files failure at execution point * using protocol osdf details pelican * error attempt * from * error";
        let end = "version * url file * exit * from *";
        for fault in [
            "error code * connection refused",
            "error code * request failed * status * timed out",
        ] {
            assert!(names_passing_fault(&format!("{pelican} {fault} {end}")));
        }
        for template in [
            "transfer input files failure at execution point * using protocol osdf details * server returned * unavailable * url file *",
            "transfer input files failure at execution point * using protocol osdf details * connection reset by * while transferring * url file *",
        ] {
            assert!(names_passing_fault(template), "{template}");
        }
        let missing =
            "error code * request failed * status * unable to open * no such file or directory";
        assert!(!names_passing_fault(&format!("{pelican} {missing} {end}")));
    }
}
