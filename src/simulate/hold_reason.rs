//! Formats hold reasons with the wording of HTCondor and its transfer plugins.

use super::hold_cause::HoldCause;
use super::pool::{HostFault, PoolHost, PoolSite, SCHEDD, SimulatedPool, shared_name};
use super::pool_user::PoolUser;
use super::submissions::JobCluster;
use htcondor_eventlog::HoldCode;

/// The circumstances of a hold that its reason mentions.
pub(super) struct HoldContext<'a> {
    pub(super) pool: &'a SimulatedPool,
    pub(super) user: &'a PoolUser,
    pub(super) cluster: &'a JobCluster,
    pub(super) site: &'a PoolSite,
    pub(super) host: &'a PoolHost,
    /// Name of the slot, as `slot1_N@host`.
    pub(super) slot: &'a str,
    pub(super) proc: u32,
    pub(super) request_memory_mb: u32,
    /// True if the URL of the job's input was wrong when it was submitted.
    pub(super) has_wrong_url: bool,
    /// A random number that selects between equivalent wordings.
    pub(super) variant: u32,
}

impl HoldContext<'_> {
    /// Returns the hold reason code and subcode.
    pub(super) fn code(&self, cause: HoldCause) -> HoldCode {
        match cause {
            HoldCause::Person => (1, 0),
            HoldCause::MissingInput | HoldCause::MountOutage => (13, 2),
            HoldCause::WrongUrl | HoldCause::InputOutage | HoldCause::InputGlitch => (13, 256),
            HoldCause::MissingExecutable | HoldCause::Site => (6, 2),
            HoldCause::BadHost => match self.host.fault {
                HostFault::BrokenMount => (6, 2),
                HostFault::FullScratch => (13, 28),
            },
            HoldCause::Memory => (if self.site.is_pilot { 21 } else { 34 }, 102),
            HoldCause::Duration => (
                if self.variant.is_multiple_of(2) {
                    47
                } else {
                    46
                },
                0,
            ),
            HoldCause::Policy => (3, self.user.exit_hold.unwrap_or(0)),
            HoldCause::MissingOutput | HoldCause::LostOutput => (12, 2),
            HoldCause::OutputOutage | HoldCause::OutputGlitch => (12, 256),
        }
    }

    /// Formats the hold reason.
    pub(super) fn reason(&self, cause: HoldCause) -> String {
        let (slot, name) = (self.slot, &self.user.name);
        let directory = &self.cluster.directory;
        match cause {
            HoldCause::Person => format!("via condor_hold (by user {name})"),
            HoldCause::MissingInput => {
                self.missing_input(&self.cluster.home_file(self.proc))
            }
            HoldCause::MountOutage => {
                self.missing_input(&self.cluster.mount_file(self.pool, self.user))
            }
            HoldCause::WrongUrl => self.plugin_error("input", self.no_such_object()),
            HoldCause::InputOutage | HoldCause::InputGlitch => {
                self.plugin_error("input", self.outage())
            }
            HoldCause::OutputOutage | HoldCause::OutputGlitch => {
                self.plugin_error("output", self.outage())
            }
            HoldCause::MissingExecutable => {
                let (home, id) = (&self.cluster.iwd, self.cluster.id);
                self.failed_to_execute(&format!("{home}/{directory}/{id}/run.sh"))
            }
            HoldCause::Site => self.failed_to_execute("/usr/bin/singularity"),
            HoldCause::BadHost => self.bad_host(),
            HoldCause::Memory => self.memory(),
            HoldCause::Duration if self.variant.is_multiple_of(2) => {
                "The job exceeded allowed execute duration of 20:00:00".into()
            }
            HoldCause::Duration => "The job exceeded allowed job duration of 1+00:00:00".into(),
            HoldCause::Policy => {
                "The job attribute OnExitHold expression '(ExitBySignal == true) || (ExitCode != 0)' evaluated to TRUE".into()
            }
            HoldCause::MissingOutput | HoldCause::LostOutput => format!(
                "Transfer output files failure at execution point {slot} while sending files to access point {SCHEDD}. \
                 Details: 1 total failures: first failure: reading from file \
                 {}/{directory}.tar.gz: (errno 2) No such file or directory",
                self.scratch_directory()
            ),
        }
    }

    fn missing_input(&self, file: &str) -> String {
        format!(
            "Transfer input files failure at access point {SCHEDD} while sending files to execution point {}. \
             Details: 1 total failures: first failure: reading from file {file}: (errno 2) No such file or directory",
            self.slot
        )
    }

    fn failed_to_execute(&self, program: &str) -> String {
        format!(
            "Error from {}: Failed to execute '{program}': (errno=2: 'No such file or directory')",
            self.slot
        )
    }

    fn bad_host(&self) -> String {
        match self.host.fault {
            HostFault::BrokenMount => {
                self.failed_to_execute("/cvmfs/software.pool.example/bin/start")
            }
            HostFault::FullScratch => format!(
                "Transfer input files failure at execution point {} while receiving files from access point {SCHEDD}. \
                 Details: 1 total failures: first failure: writing to file {}/{}: (errno 28) No space left on device",
                self.slot,
                self.scratch_directory(),
                self.cluster.file
            ),
        }
    }

    fn scratch_directory(&self) -> String {
        let number = 1000 + self.variant % 90_000;
        format!("/var/lib/condor/execute/dir_{number}/scratch")
    }

    /// Formats an error of the transfer plugin. It names the URL, and the cache that the plugin
    /// contacted.
    fn plugin_error(&self, direction: &str, error: (u32, &str)) -> String {
        let is_input = direction == "input";
        let place = if is_input {
            self.user.input
        } else {
            self.user.output
        };
        let origin = shared_name(&self.pool.origins, place, "ospool/ap40");
        let is_wrong = is_input && self.has_wrong_url;
        let url = self.cluster.url(origin, self.user, self.proc, is_wrong);
        let (attempts, error) = error;
        let site = self.site.name;
        format!(
            "Transfer {direction} files failure at execution point {} using protocol osdf. Details: Pelican Client Error: \
             Attempt #{attempts}: from osdf-cache.{site}.example:8443: {error} (Version: 7.26.0; Site: {site}) ( URL file = \
             {url} )||FILETRANSFER:1:non-zero exit (1) from \
             /usr/libexec/condor/stash_plugin. |",
            self.slot
        )
    }

    fn no_such_object(&self) -> (u32, &'static str) {
        let error = "Specification.FileNotFound Error: Error code 5011: request failed (HTTP status 404): Unable to open \
                     (...Path...); no such file or directory";
        (1, error)
    }

    /// Picks an error message for an origin that is down. The message depends on the server that
    /// answers.
    fn outage(&self) -> (u32, &'static str) {
        match self.variant % 3 {
            0 => (
                3,
                "Transfer.TimedOut Error: Error code 6003: request failed (HTTP status 504): upstream timed out",
            ),
            1 => (
                3,
                "Contact.ConnectionSetup Error: Error code 3005: connection refused",
            ),
            _ => self.no_such_object(),
        }
    }

    fn memory(&self) -> String {
        let (slot, limit_mb) = (self.slot, self.request_memory_mb.div_ceil(128) * 128);
        if self.site.is_pilot {
            return format!("Error from {slot}: memory usage exceeded request_memory");
        }
        format!(
            "Error from {slot}: Job has gone over cgroup memory limit of {limit_mb} megabytes. Last measured usage: \
             {limit_mb} megabytes.  Consider resubmitting with a higher request_memory."
        )
    }
}
