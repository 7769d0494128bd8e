//! The result of a look at the file of a held job, and the answer that follows from it.

use poolcast_base::output;
use serde::Serialize;

use super::look_process::LookAnswer;
use super::named_path::PathUse;
use super::path_sight::{DiskRoom, FoundNode, NodeKind, NodeRights, PathSight, Sight};
use poolcast_base::shared_text::SharedText;
use poolcast_holds::decision::{AnswerFirmness, HoldAction};

/// Error numbers of a full disk and of an exceeded quota.
const DISK_FULL: i32 = 28;
const QUOTA_EXCEEDED: i32 = 122;

/// Error numbers of file systems whose server or daemon is gone: EIO, ECOMM, ENOTCONN, ETIMEDOUT,
/// EHOSTDOWN, EHOSTUNREACH, ESTALE and EREMOTEIO.
const DEAD_MOUNT: [i32; 8] = [5, 70, 107, 110, 112, 113, 116, 121];

/// Free bytes below which a file system is full.
const FULL_BYTES: u64 = 1 << 20;

/// Maximum difference between the clocks of a file system and of the access point, ms.
const CLOCK_SLACK_MS: i64 = 2000;

/// Result of a look at a file of a held job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JobLook {
    /// The path, or the address of an input file.
    pub path: SharedText,
    /// State of the file.
    pub state: LookState,
    /// Time of the last change of its content, permissions or name, epoch ms; absent if it is
    /// missing or unknown.
    pub changed_ms: Option<i64>,
    /// Free bytes on its file system; absent unless the hold is for lack of room.
    pub free_bytes: Option<u64>,
    /// Time of the look, epoch ms, which does not depend on the log.
    pub looked_ms: i64,
    /// Participle of the job's use of the file, such as `read`.
    #[serde(skip)]
    verb: &'static str,
    /// The action that follows; `None` if the look decides nothing.
    #[serde(skip)]
    decides: Option<(HoldAction, AnswerFirmness)>,
}

/// The state of a file of a held job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LookState {
    /// It does not exist.
    Missing,
    /// Not even its directory exists, which may be one of a file system that is not mounted now.
    NoDirectory,
    /// It exists and can be used, and was changed since the last failure.
    Changed,
    /// It exists and can be used, but was not changed since the last failure.
    Unchanged,
    /// It exists, but the job's owner may not use it.
    NotAllowed,
    /// Its file system is full.
    Full,
    /// Its file system has room.
    HasRoom,
    /// Its file system, or its server, does not answer.
    NoAnswer,
    /// Its server has it.
    Reachable,
    /// The look decides nothing.
    Unknown,
}

/// A path of a held job, and what is known about its failure.
#[derive(Debug, Clone)]
pub(super) struct JobPath {
    pub(super) path: SharedText,
    /// Purpose for which HTCondor uses the path.
    pub(super) use_of_path: PathUse,
    /// Error number of the failure, if it is known.
    pub(super) error: Option<i32>,
    /// True if no other file of the job failed.
    pub(super) is_only_failure: bool,
    /// True if the hold is the job's first one.
    pub(super) is_first_hold: bool,
    /// True if the path is an attribute of the job, and not a part of its hold reason.
    pub(super) is_exact: bool,
    /// True if the look has the rights of the job's owner.
    pub(super) is_own: bool,
    /// Time of the last failure for the path, epoch ms.
    pub(super) failed_ms: i64,
    /// Room that one job needs, in bytes.
    pub(super) needed_bytes: u64,
    /// Number of jobs that wait for room on the file system.
    pub(super) waiting_jobs: u64,
}

/// State of a file, with its time or the room beside it.
struct LookFinding {
    state: LookState,
    changed_ms: Option<i64>,
    free_bytes: Option<u64>,
}

impl LookFinding {
    fn new(state: LookState) -> LookFinding {
        LookFinding {
            state,
            changed_ms: None,
            free_bytes: None,
        }
    }
}

impl JobPath {
    /// Returns true if the job waits for room on a file system.
    pub(super) fn lacks_room(&self) -> bool {
        self.use_of_path == PathUse::Write && matches!(self.error, Some(DISK_FULL | QUOTA_EXCEEDED))
    }

    /// Returns true if the path may be another one: all texts lose bytes that are no text, and hold
    /// reasons also lose repeated blanks and line ends.
    fn may_be_altered(&self) -> bool {
        self.path.contains('\u{fffd}') || !self.is_exact && self.path.contains([' ', '?'])
    }

    /// Returns what the `answer` about the path, at `looked_ms`, shows; `None` if nothing was tried,
    /// or if what is there says nothing about the hold.
    pub(super) fn look(&self, answer: LookAnswer, looked_ms: i64) -> Option<JobLook> {
        let finding = match answer {
            LookAnswer::NotTried => return None,
            LookAnswer::Hangs => LookFinding::new(LookState::NoAnswer),
            LookAnswer::Seen(sight) => self.finding(&sight),
        };
        let is_telling = !matches!(finding.state, LookState::Changed | LookState::Unchanged);
        (self.use_of_path != PathUse::Send || is_telling).then(|| JobLook {
            path: self.path.clone(),
            state: finding.state,
            changed_ms: finding.changed_ms,
            free_bytes: finding.free_bytes,
            looked_ms,
            verb: self.verb(),
            decides: self.decision(&finding),
        })
    }

    fn verb(&self) -> &'static str {
        match self.use_of_path {
            PathUse::Read | PathUse::Send => "read",
            PathUse::Write => "written",
            PathUse::Enter => "entered",
            PathUse::Execute => "executed",
        }
    }

    fn finding(&self, sight: &PathSight) -> LookFinding {
        // The owner of the job may not see this file, although this process does.
        if !self.is_own && !sight.is_visible {
            return LookFinding::new(LookState::Unknown);
        }
        if self.lacks_room()
            && let Some(room) = sight.room
        {
            return self.room_finding(room);
        }
        match self.use_of_path {
            PathUse::Write => self.output_finding(sight),
            _ => self.input_finding(sight),
        }
    }

    /// Judges a file or directory that must exist.
    fn input_finding(&self, sight: &PathSight) -> LookFinding {
        let finding = self.node_finding(sight.target);
        if finding.state == LookState::Missing && sight.parent == Sight::Missing {
            return LookFinding::new(LookState::NoDirectory);
        }
        finding
    }

    /// Judges an output file: its directory decides if it does not exist.
    fn output_finding(&self, sight: &PathSight) -> LookFinding {
        match (sight.parent, sight.target) {
            (parent @ Sight::Found(_), Sight::Found(file)) => {
                let directory = self.node_finding(parent);
                match directory.state {
                    LookState::Changed | LookState::Unchanged if file.kind == NodeKind::File => {
                        self.usable(file)
                    }
                    LookState::Changed | LookState::Unchanged => {
                        LookFinding::new(LookState::Unknown)
                    }
                    _ => directory,
                }
            }
            (_, failed @ Sight::Failed(_)) => self.node_finding(failed),
            (parent, _) => self.node_finding(parent),
        }
    }

    fn node_finding(&self, sight: Sight) -> LookFinding {
        LookFinding::new(match sight {
            Sight::Missing if self.may_be_altered() => LookState::Unknown,
            Sight::Missing => LookState::Missing,
            Sight::Denied if self.is_own => LookState::NotAllowed,
            Sight::Failed(error) if DEAD_MOUNT.contains(&error) => LookState::NoAnswer,
            Sight::Denied | Sight::Refused | Sight::Failed(_) => LookState::Unknown,
            Sight::Found(node) => return self.usable(node),
        })
    }

    /// Judges a file or a directory that exists.
    fn usable(&self, node: FoundNode) -> LookFinding {
        let state = match self.is_allowed(node) {
            _ if node.kind == NodeKind::Other => LookState::Unknown,
            None => LookState::Unknown,
            Some(false) => LookState::NotAllowed,
            Some(true) if node.changed_ms > self.failed_ms.saturating_add(CLOCK_SLACK_MS) => {
                LookState::Changed
            }
            Some(true) => LookState::Unchanged,
        };
        LookFinding {
            changed_ms: Some(node.changed_ms),
            ..LookFinding::new(state)
        }
    }

    /// Returns true if the job's owner may use `node`; `None` if that is not sure.
    fn is_allowed(&self, node: FoundNode) -> Option<bool> {
        let is_directory = node.kind == NodeKind::Directory;
        let right = |rights: NodeRights| match self.use_of_path {
            PathUse::Read | PathUse::Send => rights.read && (rights.execute || !is_directory),
            PathUse::Write => rights.write && (rights.execute || !is_directory),
            PathUse::Enter => rights.execute,
            PathUse::Execute => node.is_program,
        };
        match self.use_of_path {
            // The schedd examines this bit alone, for every owner of a job.
            PathUse::Execute => Some(node.is_program && !is_directory),
            PathUse::Enter if !is_directory => Some(false),
            _ if self.is_own => Some(right(node.by_caller)),
            _ => right(node.by_all).then_some(true),
        }
    }

    fn room_finding(&self, room: DiskRoom) -> LookFinding {
        let is_full = room.free_bytes < FULL_BYTES || room.lacks_files;
        let state = match self.error {
            _ if is_full => LookState::Full,
            // A quota is not visible in the room on the file system.
            Some(QUOTA_EXCEEDED) => LookState::Unknown,
            _ if room.free_bytes >= self.needed_bytes => LookState::HasRoom,
            _ => LookState::Unknown,
        };
        LookFinding {
            free_bytes: Some(room.free_bytes),
            ..LookFinding::new(state)
        }
    }

    fn decision(&self, finding: &LookFinding) -> Option<(HoldAction, AnswerFirmness)> {
        use AnswerFirmness::{Firm, Probable};
        use HoldAction::{Fix, Later, Release};
        let firm_if = |is_firm: bool| if is_firm { Firm } else { Probable };
        Some(match finding.state {
            // The access point may have a copy of what it sends.
            LookState::Missing => (Fix, firm_if(self.use_of_path != PathUse::Send)),
            LookState::NotAllowed | LookState::NoDirectory if self.use_of_path == PathUse::Send => {
                return None;
            }
            LookState::NoDirectory => (Fix, Probable),
            LookState::NotAllowed | LookState::Full => (Fix, Firm),
            LookState::NoAnswer => (Later, Firm),
            LookState::Changed => (Release, firm_if(self.is_only_failure)),
            LookState::Unchanged if self.is_only_failure && self.is_first_hold => {
                (Release, Probable)
            }
            LookState::HasRoom => {
                let needed_bytes = self.needed_bytes.saturating_mul(self.waiting_jobs);
                (Release, firm_if(finding.free_bytes >= Some(needed_bytes)))
            }
            LookState::Unchanged | LookState::Reachable | LookState::Unknown => return None,
        })
    }
}

impl JobLook {
    /// Creates the result of asking the server of `url` at `looked_ms`.
    pub(super) fn of_url(
        url: SharedText,
        state: LookState,
        decides: Option<(HoldAction, AnswerFirmness)>,
        looked_ms: i64,
    ) -> JobLook {
        JobLook {
            path: url,
            state,
            changed_ms: None,
            free_bytes: None,
            looked_ms,
            verb: "read",
            decides,
        }
    }

    /// Returns the action that follows, and its certainty, for a job with the answer `action` and `firmness`
    /// without the look; `None` if the look decides nothing.
    pub(crate) fn decides(
        &self,
        action: HoldAction,
        firmness: Option<AnswerFirmness>,
    ) -> Option<(HoldAction, AnswerFirmness)> {
        use HoldAction::{Fix, Later, Probe, Release, Remove};
        let decided = self.decides?;
        if self.state != LookState::NoDirectory {
            return Some(decided);
        }

        match action {
            // Other jobs have shown that the fault passes, but now it lasts.
            Release | Probe | Later => Some((Later, AnswerFirmness::Possible)),
            // Earlier answers have shown that it does not pass.
            Fix | Remove if firmness == Some(AnswerFirmness::Firm) => None,
            _ => Some(decided),
        }
    }

    /// Describes what the look has shown. `path` is the path in the form to print.
    pub fn words(&self, path: &str) -> String {
        let verb = self.verb;
        let free = || size_words(self.free_bytes.unwrap_or(0));
        let changed = || output::utc_time(self.changed_ms.unwrap_or(0));
        let found = match self.state {
            LookState::Missing => format!("{path} does not exist"),
            LookState::NoDirectory => format!(
                "the directory of {path} does not exist: perhaps its file system is not mounted"
            ),
            LookState::Changed => format!(
                "{path} exists and can be {verb}, last changed at {}, after the failure",
                changed()
            ),
            LookState::Unchanged => format!(
                "{path} exists and can be {verb}, last changed at {}, before the failure",
                changed()
            ),
            LookState::NotAllowed => format!("{path} cannot be {verb} by the job's owner"),
            LookState::Full => format!("the file system of {path} is full, {} free", free()),
            LookState::HasRoom => format!("the file system of {path} has {} free", free()),
            LookState::Reachable => format!("the server of {path} has it"),
            LookState::NoAnswer if path.contains("://") => {
                format!("the server of {path} does not answer")
            }
            LookState::NoAnswer => format!("the file system of {path} does not answer"),
            LookState::Unknown => match (self.free_bytes, self.changed_ms) {
                (Some(_), _) => format!(
                    "the file system of {path} has {} free, which may not be enough",
                    free()
                ),
                (_, Some(_)) => {
                    format!("{path} exists, but this user cannot see whether it can be {verb}")
                }
                _ => format!("{path} cannot be checked by this user"),
            },
        };
        format!("checked now: {found}")
    }
}

/// Formats a size in the largest unit that it fills.
fn size_words(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (unit, bits) in UNITS {
        if bytes >> bits > 0 {
            return format!("{:.1} {unit}", bytes as f64 / f64::from(bits).exp2());
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_that_is_away_makes_no_repair_of_a_fault_that_passes() {
        let fix = (HoldAction::Fix, AnswerFirmness::Probable);
        let look = JobLook::of_url("/mnt/in.dat".into(), LookState::NoDirectory, Some(fix), 0);
        let later = (HoldAction::Later, AnswerFirmness::Possible);
        for passing in [HoldAction::Release, HoldAction::Probe, HoldAction::Later] {
            assert_eq!(
                look.decides(passing, Some(AnswerFirmness::Firm)),
                Some(later)
            );
        }
        for unsure in [HoldAction::Fix, HoldAction::None] {
            assert_eq!(look.decides(unsure, None), Some(fix));
        }
        let sure = look.decides(HoldAction::Fix, Some(AnswerFirmness::Firm));
        assert_eq!(sure, None, "the answer stays as it is");
        let sent = JobLook::of_url("/mnt/a.sif".into(), LookState::NoDirectory, None, 0);
        assert_eq!(sent.decides(HoldAction::Release, None), None, "a copy");
    }
}
