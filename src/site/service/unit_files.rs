//! The units of systemd, and the files for its user and its directories.

use super::commands::{
    ADVISE_LIMITS, COLLECT_LIMITS, LEARN_LIMITS, advise_arguments, collect_arguments,
    learn_commands,
};
use super::service_paths::ServicePaths;
use super::site_file::SiteFile;

/// Directory of the service.
pub(super) const STATE_DIR: &str = "/var/lib/poolcast";

/// Limits and rights that all units have in common. An access point serves its users first, and the
/// service only uses what they leave.
const COMMON: &str = "\
User=poolcast
Group=poolcast
# EVENT_LOG is often readable for this group only.
SupplementaryGroups=condor
WorkingDirectory=/var/lib/poolcast
StateDirectory=poolcast
StateDirectoryMode=0755
# The output is pages for people. Errors are in the journal.
StandardOutput=null
StandardError=journal
Environment=HOME=/var/lib/poolcast POOLCAST_FILE_MODE=shared
UMask=0027
Nice=19
CPUWeight=idle
IOSchedulingClass=idle
ProtectSystem=strict
ProtectHome=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
NoNewPrivileges=yes
CapabilityBoundingSet=
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
";

/// One part of the service: a unit and its timer.
struct ServicePart {
    /// Paths of the unit and of its timer.
    paths: [&'static str; 2],
    description: &'static str,
    /// Lines of the section `Unit`.
    conditions: &'static str,
    /// Lines of the section `Service` with the commands and their limits.
    commands: String,
    /// Lines of the section `Timer`.
    times: &'static str,
}

/// The files of the service for systemd.
pub(super) fn unit_files(paths: &ServicePaths) -> Vec<SiteFile> {
    let mut files = vec![
        SiteFile::new(
            "/etc/sysusers.d/poolcast.conf",
            format!(
                "#Type Name Id Comment Home Shell\nu poolcast - \"poolcast, advice on held jobs\" {STATE_DIR} /usr/sbin/nologin\n"
            ),
        ),
        tmpfiles("poolcast", None),
    ];
    for part in [collect_part(paths), learn_part(paths), advise_part(paths)] {
        let [unit, timer] = part.paths;
        files.push(SiteFile::new(unit, part.unit_text()));
        files.push(SiteFile::new(timer, part.timer_text()));
    }
    files
}

/// The directories of the service, for systemd-tmpfiles, with one for logs if `log_dir` names it.
/// The model and the metrics are for everyone, and the rest names jobs and owners.
pub(super) fn tmpfiles(user: &str, log_dir: Option<&str>) -> SiteFile {
    let mut text = "#Type Path Mode User Group Age\n".to_owned();
    let state_dirs = [
        (STATE_DIR, "0755"),
        ("/var/lib/poolcast/archive", "0750"),
        ("/var/lib/poolcast/out", "0750"),
        ("/var/lib/poolcast/history", "0750"),
        ("/var/lib/poolcast/pages", "0750"),
        ("/var/lib/poolcast/metrics", "0755"),
    ];
    let log_dir = log_dir.map(|name| (name, "0750"));
    for (name, mode) in state_dirs.into_iter().chain(log_dir) {
        text.push_str(&format!("d {name} {mode} {user} {user} -\n"));
    }
    SiteFile::new("/etc/tmpfiles.d/poolcast.conf", text)
}

fn collect_part(paths: &ServicePaths) -> ServicePart {
    let ServicePaths { program, log } = paths;
    ServicePart {
        paths: [
            "/etc/systemd/system/poolcast-collect.service",
            "/etc/systemd/system/poolcast-collect.timer",
        ],
        description: "Collect the global event log of HTCondor for poolcast",
        conditions: "",
        commands: format!(
            "ExecStart={program} -q {}\n\
             TimeoutStartSec=10min\n\
             MemoryMax={}M\n\
             CPUQuota={}00%\n\
             PrivateTmp=yes\n",
            collect_arguments(log),
            COLLECT_LIMITS.memory_mib,
            COLLECT_LIMITS.threads,
        ),
        times: "OnCalendar=*:0/2\nAccuracySec=10s\nPersistent=yes\n",
    }
}

fn learn_part(paths: &ServicePaths) -> ServicePart {
    ServicePart {
        paths: [
            "/etc/systemd/system/poolcast-learn.service",
            "/etc/systemd/system/poolcast-learn.timer",
        ],
        description: "Learn from held jobs, and publish the model for all users",
        // The first learning of all finds an archive.
        conditions: "Wants=poolcast-collect.service\nAfter=poolcast-collect.service\n",
        // A stopped run continues in the next night.
        commands: format!(
            "ExecStart=/bin/sh -c '{}'\n\
             TimeoutStartSec=4h\n\
             MemoryMax={}M\n\
             CPUQuota={}00%\n\
             PrivateTmp=yes\n",
            learn_commands(&paths.program),
            LEARN_LIMITS.memory_mib,
            LEARN_LIMITS.threads,
        ),
        times: "# At once when the service is installed, and then each night.\n\
                OnActiveSec=30s\n\
                OnCalendar=*-*-* 02:10:00\n\
                Persistent=yes\n",
    }
}

fn advise_part(paths: &ServicePaths) -> ServicePart {
    let ServicePaths { program, log } = paths;
    ServicePart {
        paths: [
            "/etc/systemd/system/poolcast-advise.service",
            "/etc/systemd/system/poolcast-advise.timer",
        ],
        description: "Advise on held jobs, for metrics and pages",
        conditions: "ConditionPathExists=/var/lib/poolcast/model/manifest.json\n",
        commands: format!(
            "ExecStart={program} -q {}\n\
             TimeoutStartSec=5min\n\
             MemoryMax={}M\n\
             CPUQuota={}00%\n\
             # HTCondor knows a user by a directory that condor_q makes in /tmp. Jobs may have files there.\n\
             ReadWritePaths=/tmp\n",
            advise_arguments(log),
            ADVISE_LIMITS.memory_mib,
            ADVISE_LIMITS.threads,
        ),
        times: "OnCalendar=minutely\nAccuracySec=5s\n",
    }
}

impl ServicePart {
    fn unit_text(&self) -> String {
        format!(
            "[Unit]\nDescription={}\nAfter=condor.service\n{}\n[Service]\nType=oneshot\n{}{COMMON}",
            self.description, self.conditions, self.commands
        )
    }

    fn timer_text(&self) -> String {
        format!(
            "[Unit]\nDescription={}\n\n[Timer]\n{}\n[Install]\nWantedBy=timers.target\n",
            self.description, self.times
        )
    }
}
