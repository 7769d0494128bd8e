//! The plan of a service: its files, and the commands that start it.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::condor_files::{cron_files, event_log_file};
use super::service_paths::ServicePaths;
use super::site_file::SiteFile;
use super::unit_files::unit_files;
use poolcast_sweep::condor;

/// Log that the service reads if HTCondor's configuration names none.
const DEFAULT_LOG: &str = "/var/log/condor/EventLog";

/// Program that starts the parts of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceKind {
    /// Timers of systemd.
    Systemd,
    /// The schedd, by `SCHEDD_CRON`.
    ScheddCron,
}

/// The files of a service, and what to type once they are written.
#[derive(Debug)]
pub struct ServicePlan {
    /// Files, in the order in which they are explained.
    pub files: Vec<SiteFile>,
    /// Commands for the administrator, in order.
    pub next: Vec<String>,
}

/// Plans a service in which `program` reads `log`, or else the log that HTCondor's configuration
/// names. Without a configured log, the plan configures one.
///
/// # Errors
/// Fails for a path that a unit or HTCondor's configuration would misread.
pub fn plan_service(kind: ServiceKind, program: &Path, log: Option<&Path>) -> Result<ServicePlan> {
    let configured = match log {
        Some(log) => Some(log.to_owned()),
        None => condor::configured_value("EVENT_LOG")
            .ok()
            .flatten()
            .map(PathBuf::from),
    };
    let log = configured.as_deref().unwrap_or(Path::new(DEFAULT_LOG));
    let paths = ServicePaths::new(program, log)?;
    let mut files = match kind {
        ServiceKind::Systemd => unit_files(&paths),
        ServiceKind::ScheddCron => cron_files(&paths),
    };
    if configured.is_none() {
        files.push(event_log_file(&paths.log));
    }
    Ok(ServicePlan {
        files,
        next: next_commands(kind),
    })
}

fn next_commands(kind: ServiceKind) -> Vec<String> {
    let commands: &[&str] = match kind {
        ServiceKind::Systemd => &[
            "systemd-sysusers",
            "systemd-tmpfiles --create",
            "condor_reconfig",
            "systemctl daemon-reload",
            "systemctl enable --now poolcast-collect.timer poolcast-learn.timer poolcast-advise.timer",
            "poolcast doctor",
        ],
        ServiceKind::ScheddCron => &[
            "systemd-tmpfiles --create",
            // A schedd without such jobs ignores the first ones until it begins again.
            "condor_restart -daemon schedd",
            "poolcast doctor",
        ],
    };
    commands
        .iter()
        .map(|command| (*command).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::site_file::FileState;
    use super::*;

    fn plan(kind: ServiceKind, log: Option<&str>) -> ServicePlan {
        let program = Path::new("/usr/bin/poolcast");
        plan_service(kind, program, log.map(Path::new)).expect("a plan")
    }

    #[test]
    fn paths_that_a_unit_would_misread_are_rejected() {
        for path in [
            "poolcast", "/a b", "/a%n", "/a\n/b", "/$HOME/p", "/a;b", "/a\"b",
        ] {
            let found = plan_service(ServiceKind::Systemd, Path::new(path), None);
            assert!(found.is_err(), "{path}");
            let program = Path::new("/usr/bin/poolcast");
            let found = plan_service(ServiceKind::ScheddCron, program, Some(Path::new(path)));
            assert!(found.is_err(), "{path}");
        }
    }

    #[test]
    fn files_are_written_below_a_root_and_then_the_same() {
        let root = tempfile::tempdir().expect("a directory");
        for kind in [ServiceKind::Systemd, ServiceKind::ScheddCron] {
            let plan = plan(kind, Some("/var/log/condor/EventLog"));
            assert!(plan.files.len() > 2);
            for file in &plan.files {
                assert!(file.path.starts_with('/') && !file.path.contains(".."));
                assert!(
                    !file.text.contains('@'),
                    "a placeholder is left: {}",
                    file.text
                );
                file.write(root.path()).expect("written");
                assert_eq!(file.state(root.path()), FileState::Same, "{}", file.path);
            }
            let first = &plan.files[0];
            fs_err::write(first.below(root.path()), "mine").expect("changed");
            assert_eq!(first.state(root.path()), FileState::Other);
        }
    }
}
