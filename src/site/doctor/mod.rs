//! Examines what advice needs on this machine: the global event log, the queue, the history, and a
//! model. Each finding says what to type if something is missing.

mod clock;
mod event_log;
mod learned;
mod queue;

use std::path::PathBuf;

use event_log::LogPlace;
use poolcast_base::finding::{Finding, FindingState};
use poolcast_sweep::condor;

/// The caller's view of a machine.
#[derive(Debug)]
pub struct Examination {
    /// Results of `poolcast run` in the current directory.
    pub run: Option<PathBuf>,
    /// The directory in which the site publishes its model; `None` if it is switched off.
    pub site_model: Option<PathBuf>,
    /// Archives that `poolcast collect` may have written.
    pub archives: Vec<PathBuf>,
    /// Name of this user; `None` if it is unknown.
    pub user: Option<String>,
    /// Current time, epoch ms.
    pub now_ms: i64,
}

impl Examination {
    /// Examines this machine. The findings are in the order in which they should be mended.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let condor = condor::configured_value("LOG");
        let log = match &condor {
            Ok(_) => {
                findings.push(Finding::good("htcondor", "its programs answer"));
                LogPlace::configured()
            }
            Err(error) => {
                findings.push(Finding::bad(
                    "htcondor",
                    format!("its programs do not answer here: {error:#}"),
                    "run this on an access point; elsewhere, name logs: poolcast advise FILE.log",
                ));
                LogPlace::Unknown
            }
        };
        let model = self.model_finding(&log);
        let has_model = model.state == FindingState::Good;
        findings.extend(event_log::findings(&log, has_model, self.now_ms));
        findings.extend(learned::archive_findings(&self.archives));
        if condor.is_ok() {
            findings.extend(queue::findings(self.user.as_deref()));
        }
        findings.push(model);
        findings
    }

    fn model_finding(&self, log: &LogPlace) -> Finding {
        learned::model_finding(
            self.run.as_deref(),
            self.site_model.as_deref(),
            log.path(),
            self.now_ms,
        )
    }
}
