//! A hold and where it happened → the words that HTCondor and its transfer plugins have for it.

use super::hold_cause::HoldCause;
use super::pool::{PoolUser, SCHEDD, SimulatedPool};
use crate::eventlog::HoldCode;

/// What a hold reason names.
pub(super) struct HoldPlace<'a> {
    pub(super) pool: &'a SimulatedPool,
    pub(super) user: &'a PoolUser,
    /// `slot1_N@host`.
    pub(super) slot: &'a str,
    /// The name of the cluster's batch, and the number of the job's files.
    pub(super) batch: &'a str,
    pub(super) proc: u32,
    pub(super) request_memory_mb: u32,
    /// Whether a pilot watches memory.
    pub(super) is_pilot: bool,
    /// Chooses between words that mean the same.
    pub(super) variant: u32,
}

impl HoldPlace<'_> {
    /// The hold reason code and subcode.
    pub(super) fn code(&self, cause: HoldCause) -> HoldCode {
        match cause {
            HoldCause::Person => (1, 0),
            HoldCause::MissingInput => (13, 2),
            HoldCause::WrongUrl | HoldCause::InputOutage | HoldCause::InputGlitch => (13, 256),
            HoldCause::MissingExecutable | HoldCause::Site => (6, 2),
            HoldCause::Memory => (if self.is_pilot { 21 } else { 34 }, 102),
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
}

impl HoldPlace<'_> {
    /// The hold reason.
    pub(super) fn reason(&self, cause: HoldCause) -> String {
        let (slot, name, proc) = (self.slot, &self.user.name, self.proc);
        match cause {
            HoldCause::Person => format!("via condor_hold (by user {name})"),
            HoldCause::MissingInput => format!(
                "Transfer input files failure at access point {SCHEDD} while sending files to execution point {slot}. \
                 Details: 1 total failures: first failure: reading from file /home/{name}/{}/in/part{proc}.dat: \
                 (errno 2) No such file or directory",
                self.batch
            ),
            HoldCause::WrongUrl => self.plugin(
                "input",
                "Attempt #1: from cache: Specification.FileNotFound Error: Error code 5011: request failed (HTTP status \
                 404): Unable to open (...Path...); no such file or directory",
            ),
            HoldCause::InputOutage | HoldCause::InputGlitch => self.plugin("input", self.outage()),
            HoldCause::OutputOutage | HoldCause::OutputGlitch => self.plugin("output", self.outage()),
            HoldCause::MissingExecutable | HoldCause::Site => format!(
                "Error from {slot}: Failed to execute '/home/{name}/{}/run.sh': (errno=2: 'No such file or directory')",
                self.batch
            ),
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
                 /var/lib/condor/execute/dir_{}/scratch/result{proc}.tar.gz: (errno 2) No such file or directory",
                1000 + self.variant % 90_000
            ),
        }
    }

    fn plugin(&self, direction: &str, error: &str) -> String {
        let origin = if direction == "input" {
            self.user.input
        } else {
            self.user.output
        };
        let origin = origin.map_or("ospool/ap40", |at| self.pool.origins[at].name);
        format!(
            "Transfer {direction} files failure at execution point {} using protocol osdf. Details: Pelican Client Error: \
             {error} (Version: 7.26.0; Site: {}) ( URL file = osdf:///{origin}/{}/{}/part{}.tar.gz )||FILETRANSFER:1:non-zero \
             exit (1) from /usr/libexec/condor/stash_plugin. |",
            self.slot,
            self.slot.split('.').nth(1).unwrap_or("unknown"),
            self.user.name,
            self.batch,
            self.proc
        )
    }

    /// What the client says while an origin is down depends on which of its servers answers.
    fn outage(&self) -> &'static str {
        match self.variant % 3 {
            0 => {
                "Attempt #3: from cache: Transfer.TimedOut Error: Error code 6003: request failed (HTTP status 504): upstream timed out"
            }
            1 => {
                "Attempt #3: from cache: Contact.ConnectionSetup Error: Error code 3005: connection refused"
            }
            _ => {
                "Attempt #1: from cache: Specification.FileNotFound Error: Error code 5011: request failed (HTTP status \
                 404): Unable to open (...Path...); no such file or directory"
            }
        }
    }

    fn memory(&self) -> String {
        let (slot, limit_mb) = (self.slot, self.request_memory_mb.div_ceil(128) * 128);
        if self.is_pilot {
            return format!("Error from {slot}: memory usage exceeded request_memory");
        }
        format!(
            "Error from {slot}: Job has gone over cgroup memory limit of {limit_mb} megabytes. Last measured usage: \
             {limit_mb} megabytes.  Consider resubmitting with a higher request_memory."
        )
    }
}
