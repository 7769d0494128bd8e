//! Hold codes: their meaning, and the answers that need no model. Sources: HTCondor's table of hold
//! reason codes, and the hold templates of execution points.

use htcondor_eventlog::ReasonKind;
use htcondor_holdreasons::rules::{Action, rule_for};
use htcondor_holdreasons::{Outcome, Thing, explain, kind_of_code};

use super::action::HoldAction;

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

/// An answer that follows from what the hold reason states, or from the hold code alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldRule {
    /// What is stated.
    stated: ReasonKind,
    /// The recommended action.
    pub action: HoldAction,
    /// The remedy for the fault, without the release that follows.
    pub remedy: Remedy,
    /// True if a person must release the job once the fault is fixed or has passed; false if
    /// HTCondor releases it automatically.
    pub is_released_by_hand: bool,
}

impl HoldRule {
    /// Says what happened and what mends it, without names.
    pub fn why(&self) -> String {
        let explained = explain(&self.stated.into());
        let mend = explained.mend.unwrap_or_default();
        format!("{}; {mend}", explained.meaning)
    }

    /// Returns true if the rule predicts that a release would fail under present conditions.
    pub fn expects_failure(&self) -> bool {
        matches!(self.action, HoldAction::Fix | HoldAction::Later)
    }

    /// Returns true if the outcomes of holds for the same reason can overrule the rule. They cannot
    /// if the remedy is a higher request: raising it costs little, and most jobs that succeeded got
    /// a higher request before their release. No release changes a limit of time either.
    pub fn can_be_outweighed(&self) -> bool {
        self.expects_failure() && !self.raises_request() && self.stated.thing != Thing::Time
    }

    /// Returns true if the remedy is a higher request.
    pub fn raises_request(&self) -> bool {
        matches!(
            self.remedy,
            Remedy::RaiseMemory | Remedy::RaiseDisk | Remedy::RaiseCpus
        )
    }
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

/// Returns the remedy for what is stated, if the advice is `action`.
fn remedy_for(stated: ReasonKind, action: Action) -> Remedy {
    match (stated.thing, stated.outcome, action) {
        (Thing::Memory, Outcome::Exceeded, Action::Fix) => Remedy::RaiseMemory,
        (Thing::Disk, Outcome::Exceeded, Action::Fix) => Remedy::RaiseDisk,
        (Thing::Cpus, Outcome::Exceeded, Action::Fix) => Remedy::RaiseCpus,
        (_, _, Action::Fix) => Remedy::Look,
        _ => Remedy::Nothing,
    }
}

/// Returns the answer for what a reason states; `None` where outcomes have to judge: a release may succeed, or
/// nobody but the program or the author of a policy knows what it depends on.
pub(super) fn hold_rule(stated: ReasonKind) -> Option<HoldRule> {
    let is_known_to_its_author = match stated.thing {
        Thing::Expression => stated.outcome == Outcome::Exceeded,
        thing => matches!(
            thing,
            Thing::ProgramEnd | Thing::Starts | Thing::SandboxFile | Thing::Unknown
        ),
    };
    let rule = rule_without_odds(stated)?;
    // Where many jobs were asked about, a path that nobody can see is mostly wrong. Odds overrule this.
    if stated.thing == Thing::SharedProgram && stated.outcome == Outcome::Absent {
        return Some(HoldRule {
            action: HoldAction::Fix,
            remedy: Remedy::Look,
            ..rule
        });
    }
    Some(rule).filter(|rule| {
        matches!(rule.action, HoldAction::Fix | HoldAction::Leave) && !is_known_to_its_author
    })
}

/// Returns the answer for a hold where nothing is known but what its reason states; `None` if it says nothing.
pub fn rule_without_odds(stated: ReasonKind) -> Option<HoldRule> {
    let rule = rule_for(stated)?;
    Some(HoldRule {
        stated,
        // Nobody has chosen the job to try yet.
        action: match rule.action {
            Action::TryOne => HoldAction::Later,
            action => action.into(),
        },
        remedy: remedy_for(stated, rule.action),
        is_released_by_hand: stated.thing != Thing::Spool,
    })
}

/// Returns the answer for a code whose outcome is certain; `None` where outcomes have to judge.
pub fn code_rule(code: i32, subcode: i32) -> Option<HoldRule> {
    hold_rule(kind_of_code(code, subcode))
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
        let own = kind_of_code(6, 2);
        let installed = ReasonKind {
            thing: Thing::InstalledProgram,
            ..own
        };
        assert_eq!(hold_rule(installed), None);
        let rule = rule_without_odds(installed);
        assert_eq!(rule.map(|rule| rule.action), Some(HoldAction::Later));
        let rule = rule_without_odds(own);
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
        assert_eq!(can_be_outweighed(47, 0), Some(false), "a limit of time");
    }

    #[test]
    fn quotas_full_disks_and_timeouts_have_their_own_reasons() {
        for code in [7, 8, 9, 10, 14, 22] {
            let said = |subcode| {
                let rule = rule_without_odds(kind_of_code(code, subcode)).expect("a rule");
                (rule.action, rule.why())
            };
            for (subcode, action, word) in [
                (122, HoldAction::Fix, "quota"),
                (110, HoldAction::Later, "in time"),
            ] {
                let (found, why) = said(subcode);
                assert!(
                    found == action && why.contains(word) && !why.contains("path"),
                    "{code}/{subcode}: {why}"
                );
            }
            let (found, why) = said(2);
            assert!(
                found == HoldAction::Fix && why.contains("does not exist"),
                "{code}: {why}"
            );
        }
        let output = code_rule(12, 122).expect("a rule");
        assert!(output.action == HoldAction::Fix && output.why().contains("quota"));
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
