//! Hold codes: their meaning, and the answers that need no model. Sources: HTCondor's table of hold
//! reason codes, and the hold templates of execution points.

use super::action::HoldAction;
use crate::answers::NamedFault;

/// A remedy for a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// A person has to look at the hold reason.
    Look,
    /// Request more memory.
    RaiseMemory,
    /// Request more disk.
    RaiseDisk,
    /// Request more CPUs.
    RaiseCpus,
    /// Nothing to do now.
    Nothing,
}

/// An answer that follows from a hold code alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldRule {
    /// The recommended action.
    pub action: HoldAction,
    /// The reason for the action, as a complete sentence.
    pub why: &'static str,
    /// The remedy for the fault, without the release that follows.
    pub remedy: Remedy,
    /// True if a person must release the job once the fault is fixed or has passed; false if
    /// HTCondor releases it automatically.
    pub is_released_by_hand: bool,
}

impl HoldRule {
    /// Returns true if the rule predicts that a release would fail under present conditions.
    pub fn expects_failure(&self) -> bool {
        matches!(self.action, HoldAction::Fix | HoldAction::Later)
    }

    /// Returns true if the outcomes of holds for the same reason can overrule the rule. They cannot
    /// if the remedy is a higher request: raising it costs little, and most jobs that succeeded got
    /// a higher request before their release.
    pub fn can_be_outweighed(&self) -> bool {
        self.expects_failure() && !self.raises_request()
    }

    /// Returns true if the remedy is a higher request.
    pub fn raises_request(&self) -> bool {
        matches!(
            self.remedy,
            Remedy::RaiseMemory | Remedy::RaiseDisk | Remedy::RaiseCpus
        )
    }
}

/// Returns true if the reasons of holds with this code name a file or a directory that could not be
/// used. A job that was held for the same reason, and now gets past it, shows that it is there.
pub fn reason_names_file(code: i32) -> bool {
    matches!(code, 6..=10 | 13 | 14 | 22)
}

/// Returns true if the job has not written an output file that it should have.
pub(super) fn is_missing_output(code: i32, subcode: i32) -> bool {
    (code, subcode) == (12, 2)
}

/// Returns true if the reasons of holds with this code name the machine that could not use a file.
/// A job that was held there with the same code, and now gets past it, shows that the machine may
/// be at fault and not the file.
pub fn reason_names_host(code: i32) -> bool {
    matches!(code, 6..=10 | 14)
}

/// Describes a hold code and subcode for people.
pub fn code_meaning(code: i32, subcode: i32) -> String {
    let text = match code {
        0 => "no reason given",
        1 => "held by a person (condor_hold)",
        2 => "old grid middleware error",
        3 => "the job's own hold policy",
        4 => "invalid credential",
        5 => "the job's own policy could not be evaluated",
        6 => "the program could not be started",
        7 => "standard output could not be opened",
        8 => "standard input could not be opened",
        9 => "the standard output stream could not be opened",
        10 => "the standard input stream could not be opened",
        11 => "file transfer: invalid acknowledgement",
        12 => "output files could not be transferred back",
        13 => "input files could not be transferred to the job",
        14 => "the initial working directory is not accessible",
        15 => "submitted on hold",
        16 => "input files are being spooled",
        17 => "no shadow for this kind of job",
        18 => "file transfer: invalid go-ahead",
        19 => "the prepare hook failed",
        20 => "a deferred start time was missed",
        21 => "held by the execution point's policy",
        22 => "the job's log file could not be opened",
        23 => "the user's account could not be accessed",
        24 => "no compatible shadow",
        25 => "invalid cron settings",
        26 => "the access point's hold policy",
        27 => "the access point's policy could not be evaluated",
        28..=31 => "ownership of the sandbox could not be changed",
        32 => "more input than the access point allows",
        33 => "more output than the access point allows",
        34 => "more resources used than requested",
        35 => "invalid container image",
        36 => "the checkpoint failed",
        37..=42 => "EC2 error",
        43 => "the pre script failed",
        44 => "the post script failed",
        45 => "the container test failed",
        46 => "the allowed job duration was exceeded",
        47 => "the allowed execute duration was exceeded",
        48 => "the shadow's prepare hook failed",
        49 => "the primary group could not be changed",
        _ => "unknown code",
    };
    let detail = match (code, subcode) {
        (21 | 34, 101) => Some("CPUs"),
        (21 | 34, 102) => Some("memory"),
        (21 | 34, 104) => Some("disk"),
        (6..=10 | 12..=14, n) => errno_meaning(n),
        _ => None,
    };
    detail.map_or_else(|| text.to_owned(), |detail| format!("{text}: {detail}"))
}

/// Describes a Unix error number, or a plug-in exit code, which HTCondor shifts left by eight bits.
fn errno_meaning(number: i32) -> Option<&'static str> {
    Some(match number {
        2 => "no such file or directory",
        8 => "not an executable for this machine",
        13 => "permission denied",
        28 => "no space left",
        62 => "timed out",
        110 => "connection timed out",
        122 => "quota exceeded",
        n if n >= 256 && n % 256 == 0 => "the transfer plug-in failed",
        _ => return None,
    })
}

const fn fix(why: &'static str, remedy: Remedy) -> Option<HoldRule> {
    Some(HoldRule {
        action: HoldAction::Fix,
        why,
        remedy,
        is_released_by_hand: true,
    })
}

const fn later(why: &'static str) -> Option<HoldRule> {
    Some(HoldRule {
        action: HoldAction::Later,
        why,
        remedy: Remedy::Nothing,
        is_released_by_hand: true,
    })
}

const fn leave(why: &'static str, is_released_by_hand: bool) -> Option<HoldRule> {
    Some(HoldRule {
        action: HoldAction::Leave,
        why,
        remedy: Remedy::Nothing,
        is_released_by_hand,
    })
}

/// Returns the answer for a hold with this code whose reason names `fault`; `None` where a model has to
/// judge.
pub(super) fn hold_rule(code: i32, subcode: i32, fault: NamedFault) -> Option<HoldRule> {
    match fault {
        NamedFault::Missing => fix(
            "the server does not have what the address names: correct it or upload the file, then release",
            Remedy::Look,
        ),
        NamedFault::Denied => fix(
            "the server refuses this file: renew the credential or ask for access, then release",
            Remedy::Look,
        ),
        NamedFault::Memory => resource_rule(MEMORY),
        NamedFault::Machine => None,
        NamedFault::Server | NamedFault::Unknown => code_rule(code, subcode),
    }
}

/// The reason to wait where the machine could not start an installed program.
pub const ANOTHER_MACHINE_MAY: &str =
    "a machine could not start a program that is installed there: another machine may";

/// Returns the answer for a hold where nothing is known but its code and the fault that its reason
/// names; `None` if these say nothing.
pub fn rule_without_odds(code: i32, subcode: i32, fault: NamedFault) -> Option<HoldRule> {
    match fault {
        NamedFault::Server => later(
            "a server or a network failed, which passes without a repair: release it once it works again",
        ),
        NamedFault::Machine => later(ANOTHER_MACHINE_MAY),
        _ => hold_rule(code, subcode, fault),
    }
}

/// Returns the answer for codes whose outcome is certain; `None` where a model has to judge.
pub fn code_rule(code: i32, subcode: i32) -> Option<HoldRule> {
    match code {
        6..=10 | 14 | 22 => path_rule(code, subcode),
        21 | 34 => resource_rule(subcode),
        _ => policy_rule(code, subcode),
    }
}

/// Returns the answer for a file or directory of the job that could not be opened.
fn path_rule(code: i32, subcode: i32) -> Option<HoldRule> {
    match (code, subcode) {
        (_, 122) => fix(
            "a disk quota is exceeded: remove files or ask for a larger quota, then release",
            Remedy::Look,
        ),
        (_, 28) => fix(
            "a disk is full: free space where its program or files are written, then release",
            Remedy::Look,
        ),
        (_, 62 | 110) => later(
            "a file system or a host did not answer in time: release it once it answers again",
        ),
        (6, _) => fix(
            "the program cannot be started anywhere until its path, mode or architecture is right",
            Remedy::Look,
        ),
        _ => fix(
            "a path it names cannot be opened: create it or correct it, then release",
            Remedy::Look,
        ),
    }
}

/// Subcode of a hold because a job used more memory than it requested.
const MEMORY: i32 = 102;

/// Returns the answer for a job that used more than it requested.
fn resource_rule(subcode: i32) -> Option<HoldRule> {
    match subcode {
        MEMORY => fix(
            "it used more memory than it requested, and will again: raise RequestMemory, then release",
            Remedy::RaiseMemory,
        ),
        104 => fix(
            "it used more disk than it requested, and will again: raise RequestDisk, then release",
            Remedy::RaiseDisk,
        ),
        101 => fix(
            "it used more CPUs than it requested, and will again: raise RequestCpus or limit its threads, then release",
            Remedy::RaiseCpus,
        ),
        _ => None,
    }
}

/// Returns the answer for all other codes, such as holds by people, by policies or by the job
/// itself.
fn policy_rule(code: i32, subcode: i32) -> Option<HoldRule> {
    match (code, subcode) {
        (1, _) => leave(
            "a person held this job on purpose: release it once that person's reason is gone",
            true,
        ),
        (15, _) => leave(
            "it was submitted on hold: release it when it may start",
            true,
        ),
        (16, _) => leave(
            "its input files are still being transferred; HTCondor releases it when they have arrived",
            false,
        ),
        (4, _) => fix(
            "its credential is invalid: renew it, then release",
            Remedy::Look,
        ),
        (5 | 27, _) => fix(
            "a policy expression is undefined and will be again: define what it refers to, then release",
            Remedy::Look,
        ),
        (12, 122) => fix(
            "a disk quota is exceeded where its output goes: remove files or ask for a larger quota, then release",
            Remedy::Look,
        ),
        (13, 2) => fix(
            "an input file is missing on the access point: put it back or correct its name, then release",
            Remedy::Look,
        ),
        (20 | 25, _) => fix(
            "its start times cannot be met as set: correct the cron_ or deferral settings, then release",
            Remedy::Look,
        ),
        (32 | 33, _) => fix(
            "its files are larger than the access point transfers: move large files another way, then release",
            Remedy::Look,
        ),
        (35 | 45, _) => fix(
            "its container image does not work: correct the image, then release",
            Remedy::Look,
        ),
        (36 | 43 | 44 | 48, _) => fix(
            "a script or hook of the job fails: correct it, then release",
            Remedy::Look,
        ),
        (46 | 47, _) => fix(
            "it ran longer than allowed, and will again if released unchanged: split the work, checkpoint it, or ask for a longer duration; remove it if none of these is possible",
            Remedy::Look,
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deterministic_codes_have_a_rule_and_ambiguous_ones_none() {
        for code in [1, 15, 16] {
            assert_eq!(
                code_rule(code, 0).map(|rule| rule.action),
                Some(HoldAction::Leave),
                "{code}"
            );
        }
        for (code, subcode) in [
            (46, 0),
            (47, 0),
            (6, 8),
            (13, 2),
            (34, 102),
            (34, 104),
            (21, 102),
        ] {
            assert_eq!(
                code_rule(code, subcode).map(|rule| rule.action),
                Some(HoldAction::Fix),
                "{code}/{subcode}"
            );
        }
        for (code, subcode) in [(12, 2), (13, 256), (19, 1), (26, 0), (3, 7), (999, 0)] {
            assert_eq!(code_rule(code, subcode), None, "{code}/{subcode}");
        }
    }

    #[test]
    fn a_program_of_the_machine_has_no_rule_but_without_odds() {
        assert_eq!(hold_rule(6, 2, NamedFault::Machine), None);
        let rule = rule_without_odds(6, 2, NamedFault::Machine);
        assert_eq!(rule.map(|rule| rule.action), Some(HoldAction::Later));
        let rule = rule_without_odds(6, 2, NamedFault::Unknown);
        assert_eq!(rule.map(|rule| rule.action), Some(HoldAction::Fix));
    }

    #[test]
    fn raise_rules_cannot_be_outweighed() {
        let can_be_outweighed =
            |code, subcode| code_rule(code, subcode).map(|rule| rule.can_be_outweighed());
        assert_eq!(can_be_outweighed(34, 102), Some(false));
        assert_eq!(can_be_outweighed(21, 104), Some(false));
        assert_eq!(can_be_outweighed(13, 2), Some(true));
        assert_eq!(can_be_outweighed(1, 0), Some(false));
    }

    #[test]
    fn quotas_full_disks_and_timeouts_have_their_own_reasons() {
        for code in [6, 7, 8, 9, 10, 14, 22] {
            let said = |subcode| {
                code_rule(code, subcode)
                    .map(|rule| (rule.action, rule.why))
                    .expect("a rule")
            };
            for (subcode, action, word) in [
                (122, HoldAction::Fix, "quota"),
                (28, HoldAction::Fix, "full"),
                (110, HoldAction::Later, "in time"),
            ] {
                let (found, why) = said(subcode);
                assert!(
                    found == action && why.contains(word) && !why.contains("path"),
                    "{code}/{subcode}: {why}"
                );
            }
            assert!(said(2).1.contains("path"), "{code}");
        }
        let output = code_rule(12, 122).expect("a rule");
        assert!(output.action == HoldAction::Fix && output.why.contains("quota"));
        // A disk that is full gets room again when other jobs end.
        assert!(code_rule(12, 28).is_none());
        assert_eq!(
            code_meaning(6, 122),
            "the program could not be started: quota exceeded"
        );
    }

    #[test]
    fn meanings_name_the_error() {
        assert_eq!(
            code_meaning(13, 2),
            "input files could not be transferred to the job: no such file or directory"
        );
        assert_eq!(
            code_meaning(34, 102),
            "more resources used than requested: memory"
        );
        assert_eq!(
            code_meaning(12, 256),
            "output files could not be transferred back: the transfer plug-in failed"
        );
        assert_eq!(code_meaning(-5, 0), "unknown code");
    }
}
