//! The rules by which a held job is answered, in their order: the first that applies decides.

use AnswerBasis::{Facts, Odds};

use super::action::{AnswerFirmness, HoldAction};
use super::code_answer::code_rule;
use super::failure_rules::{
    fault_may_pass, fault_returns, fault_stays, kind_is_unknown, others_read_their_files,
    outputs_missing_on_several_machines, reason_names_a_passing_fault, release_failed_again,
    unknown_kind_may_pass,
};
use super::held_answer::{HeldAnswer, HeldQuestion};
use super::held_evidence::{HeldEvidence, RECOVERED_WITHOUT_ODDS};
use super::release_rules::{
    odds_are_nearly_sure, odds_reach_the_limit, others_got_past_the_cause, probe_of_cause,
    try_of_lone_job,
};
use crate::answers::AnswerLimits;
use crate::config::AdviceConfig;

/// Name of the rule by which the hold code decides.
pub const CODE_RULE: &str = "code_rule";

/// One way to answer, which applies to some held jobs.
struct AnswerRule {
    /// Its name, which pages show.
    name: &'static str,
    basis: AnswerBasis,
    /// Returns the answer; `None` if the rule does not apply.
    answer: AnswerFunction,
}

type AnswerFunction = fn(&HeldQuestion<'_>) -> Option<HeldAnswer>;

/// What the answer of a rule follows from.
enum AnswerBasis {
    /// What the log shows, or what is known about HTCondor.
    Facts,
    /// Odds, which promise nothing where nothing was learned.
    Odds,
}

/// All rules, in their order. If none applies, nothing is known.
const RULES: &[AnswerRule] = &[
    rule(CODE_RULE, Facts, code_rule),
    rule("release_failed_again", Facts, release_failed_again),
    rule(
        "outputs_missing_on_several_machines",
        Facts,
        outputs_missing_on_several_machines,
    ),
    rule("others_read_their_files", Facts, others_read_their_files),
    rule("unknown_kind_may_pass", Facts, unknown_kind_may_pass),
    rule("kind_is_unknown", Facts, kind_is_unknown),
    rule("odds_are_nearly_sure", Odds, odds_are_nearly_sure),
    rule("others_got_past_the_cause", Odds, others_got_past_the_cause),
    rule("odds_reach_the_limit", Odds, odds_reach_the_limit),
    rule("probe_of_cause", Odds, probe_of_cause),
    rule("try_of_lone_job", Odds, try_of_lone_job),
    rule("fault_may_pass", Odds, fault_may_pass),
    rule(
        "reason_names_a_passing_fault",
        Odds,
        reason_names_a_passing_fault,
    ),
    rule("fault_returns", Odds, fault_returns),
    rule("fault_stays", Odds, fault_stays),
];

const fn rule(name: &'static str, basis: AnswerBasis, answer: AnswerFunction) -> AnswerRule {
    AnswerRule {
        name,
        basis,
        answer,
    }
}

/// Decides the answer. The first rule that applies counts.
pub(crate) fn held_answer(
    evidence: &HeldEvidence,
    limits: &AnswerLimits,
    settings: &AdviceConfig,
) -> HeldAnswer {
    let question = HeldQuestion {
        evidence,
        limits,
        settings,
    };
    let answer = RULES.iter().find_map(|rule| rule.answer(&question));
    answer.unwrap_or(HeldAnswer::new(HoldAction::None, None))
}

impl AnswerRule {
    /// Returns the answer with the name of this rule; `None` if it does not apply.
    fn answer(&self, question: &HeldQuestion<'_>) -> Option<HeldAnswer> {
        let answer = (self.answer)(question)?;
        let capped = match self.basis {
            Facts => answer,
            Odds => within_learned(answer, question.evidence),
        };
        Some(HeldAnswer {
            because: self.name,
            ..capped
        })
    }
}

/// Returns `answer`, without its promise if it follows from odds that nothing was learned for here. A
/// removal, which cannot be undone, then becomes a repair, and a release the try of one job.
fn within_learned(answer: HeldAnswer, evidence: &HeldEvidence) -> HeldAnswer {
    let is_learned = !evidence.learned.is_hold_too_old && evidence.is_learned_here();
    if is_learned || evidence.cause.recovered >= RECOVERED_WITHOUT_ODDS {
        return answer;
    }
    match answer.action {
        HoldAction::Release => HeldAnswer::new(HoldAction::Probe, None),
        HoldAction::Remove => HeldAnswer::new(HoldAction::Fix, Some(AnswerFirmness::Possible)),
        action => HeldAnswer::new(action, answer.firmness.map(|_| AnswerFirmness::Possible)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use htcondor_eventlog::{InputFile, ReasonKind};
    use htcondor_holdreasons::{Outcome, kind_of_code, read_reason};
    use test_stores::{TestLog, log_with_outages};

    use super::super::codes::{code_rule, hold_rule};
    use super::super::held_answer::NOTHING_IS_KNOWN;
    use super::super::held_evidence::held_evidence;
    use super::super::test_evidence::{
        FIRM, POSSIBLE, PROBABLE, elsewhere, evidence, limits, object_that_is, rule_key, sure,
    };
    use super::*;
    use crate::answers::{
        CauseKind, HoldHistory, LearnedFrom, NamedFault, OriginState, ReasonRecord, RecoveryRecord,
        learned_test_answers,
    };
    use crate::test_config::TestConfig;

    /// Returns the names of all rules, in their order, and the name of the answer without one.
    fn rule_names() -> Vec<&'static str> {
        let names = RULES.iter().map(|rule| rule.name);
        names.chain([NOTHING_IS_KNOWN]).collect()
    }

    /// Each rule decides one case at least.
    #[test]
    fn each_rule_decides() {
        let base = evidence;
        let of_kind = |fault: NamedFault| {
            base(0.3, 0.35).with(|one| {
                one.learned.odds.learned_from = LearnedFrom::Nothing;
                one.hold.rule_key.named_fault = fault;
            })
        };
        let machine = |later, failed_again| {
            base(0.05, later).with(|one| {
                one.hold.rule_key.named_fault = NamedFault::Machine;
                one.cause.failed_again = failed_again;
            })
        };
        let cases = [
            base(0.95, 0.2).with(|one| one.hold.rule = code_rule(13, 2)),
            machine(0.35, true),
            base(0.7, 0.7).with(|one| one.hold.never_writes_output = true),
            base(0.7, 0.7).with(|one| {
                one.hold.stated = kind_of_code(13, 256);
                one.origin.state = OriginState::Works;
            }),
            of_kind(NamedFault::Server),
            of_kind(NamedFault::Unknown),
            base(0.95, 0.9),
            base(0.4, 0.3).with(|one| one.cause.recovered = 3),
            base(0.8, 0.9),
            base(0.8, 0.7).with(|one| one.cause.held = 12),
            base(0.4, 0.7),
            base(0.3, 0.7),
            machine(0.35, false),
            base(0.05, 0.05).with(|one| one.hold.holds_for_code = 5),
            base(0.05, 0.2),
            base(0.3, 0.35).with(|one| one.learned.has_outcomes = false),
        ];
        let settings = TestConfig::load(&[]).advice;
        let decided = cases.map(|evidence| held_answer(&evidence, &limits(), &settings).because);
        assert_eq!(decided.as_slice(), rule_names());
        let unique: HashSet<_> = decided.into_iter().collect();
        assert_eq!(unique.len(), decided.len());
    }

    #[test]
    fn page_has_all_rules_in_their_order() {
        let page = include_str!("../../../docs/stages.md");
        let (_, table) = page.split_once("| `because` | ").expect("a table");
        let rows = table.lines().skip(2).take_while(|row| row.starts_with('|'));
        let names: Vec<_> = rows.filter_map(|row| row.split('`').nth(1)).collect();
        assert_eq!(names, rule_names());
    }

    fn answer(evidence: HeldEvidence) -> (HoldAction, Option<AnswerFirmness>) {
        let HeldAnswer {
            action, firmness, ..
        } = held_answer(&evidence, &limits(), &TestConfig::load(&[]).advice);
        (action, firmness)
    }

    #[test]
    fn release_after_others_got_past_is_firm_if_the_cluster_succeeds_unrepaired() {
        let recovered = evidence(0.4, 0.3).with(|one| {
            one.cause.recovered = 3;
            one.origin.file_passed_since = true;
        });
        // Returns the certainty with a record of 20 releases and these successes.
        let firmness = |evidence: HeldEvidence, successes: Option<usize>| {
            let record = successes.map(|successes| RecoveryRecord {
                key: evidence.recovery_key(),
                releases: 20,
                successes,
            });
            let limits = AnswerLimits {
                recovered: record.into_iter().collect(),
                ..limits()
            };
            let answer = held_answer(&evidence, &limits, &TestConfig::load(&[]).advice);
            assert_eq!(answer.recovery, Some(evidence.recovery_key()));
            assert_eq!(answer.action, HoldAction::Release);
            answer.firmness
        };
        assert_eq!(firmness(recovered, None), FIRM);
        assert_eq!(firmness(recovered, Some(18)), FIRM);
        assert_eq!(firmness(recovered, Some(17)), PROBABLE);
        let alone = recovered.with(|one| one.cause.has_cluster_succeeded = false);
        assert_eq!(firmness(alone, None), PROBABLE, "perhaps another fault");
        assert_eq!(firmness(alone, Some(19)), PROBABLE);
        assert_eq!(firmness(alone, Some(20)), FIRM, "others had none");
        let failed_since = recovered.with(|one| one.origin.has_failed_since = true);
        assert_eq!(firmness(failed_since, Some(20)), PROBABLE, "it fails again");
        let of_other_files = recovered.with(|one| one.origin.file_passed_since = false);
        assert_eq!(firmness(of_other_files, Some(20)), PROBABLE);
        let sure = alone.with(|one| one.learned.odds = evidence(0.95, 0.9).learned.odds);
        assert_eq!(firmness(sure, Some(20)), FIRM, "the odds do not weaken it");

        let repaired = recovered.with(|one| one.cause.is_perhaps_repaired = true);
        assert_eq!(firmness(repaired, None), FIRM, "nobody repairs a server so");
        let input = repaired.with(|one| one.hold.rule = code_rule(13, 2));
        assert_eq!(firmness(input, Some(20)), PROBABLE);
        let unrepaired = input.with(|one| one.cause.is_perhaps_repaired = false);
        assert_eq!(firmness(unrepaired, None), FIRM);
    }

    #[test]
    fn passes_after_possible_repairs_state_no_probability() {
        let passed = evidence(0.4, 0.9).with(|one| one.cause.recovered = 3);
        let output = passed.with(|one| one.hold.lacks_output = true);
        let input = passed.with(|one| one.hold.rule = code_rule(13, 2));
        let decided = |evidence: HeldEvidence| (answer(evidence).0, evidence.stated_probability());
        let repaired =
            |evidence: HeldEvidence| evidence.with(|one| one.cause.is_perhaps_repaired = true);
        assert_eq!(decided(output), (HoldAction::Release, Some(0.875)));
        assert_eq!(decided(repaired(output)), (HoldAction::Probe, Some(0.4)));
        assert_eq!(repaired(input).stated_probability(), Some(0.4));
    }

    #[test]
    fn both_odds_decide() {
        assert_eq!(answer(sure(0.95, 0.9)), (HoldAction::Release, FIRM));
        assert_eq!(answer(evidence(0.8, 0.9)), (HoldAction::Release, PROBABLE));
        assert_eq!(
            answer(evidence(0.6, 0.9)),
            (HoldAction::Probe, None),
            "a try"
        );
        assert_eq!(answer(evidence(0.4, 0.7)), (HoldAction::Probe, None));
        assert_eq!(answer(evidence(0.3, 0.7)), (HoldAction::Later, POSSIBLE));
        assert_eq!(answer(evidence(0.3, 0.9)), (HoldAction::Later, PROBABLE));
        assert_eq!(answer(evidence(0.2, 0.96)), (HoldAction::Later, FIRM));
        let repaired = evidence(0.2, 0.96).with(|one| one.learned.is_mostly_repaired = true);
        assert_eq!(answer(repaired), (HoldAction::Later, PROBABLE));
        assert_eq!(answer(evidence(0.3, 0.05)), (HoldAction::Fix, FIRM));
        assert_eq!(answer(evidence(0.05, 0.2)), (HoldAction::Fix, PROBABLE));
        assert_eq!(answer(evidence(0.05, 0.35)), (HoldAction::Fix, POSSIBLE));
        assert_eq!(
            answer(evidence(0.05, 0.45)),
            (HoldAction::Later, POSSIBLE),
            "it may pass"
        );
        for fault in [NamedFault::Server, NamedFault::Machine] {
            let named =
                |now, later| evidence(now, later).with(|one| one.hold.rule_key = rule_key(fault));
            assert_eq!(
                answer(named(0.05, 0.35)),
                (HoldAction::Later, POSSIBLE),
                "the words outweigh odds without a promise"
            );
            assert_eq!(answer(named(0.05, 0.2)), (HoldAction::Fix, PROBABLE));
            let again = named(0.05, 0.45).with(|one| one.cause.failed_again = true);
            let expected = match fault {
                NamedFault::Machine => HoldAction::Fix,
                _ => HoldAction::Later,
            };
            assert_eq!(answer(again), (expected, POSSIBLE), "{fault:?}");
        }
        let often = evidence(0.05, 0.05).with(|one| one.hold.holds_for_code = 5);
        assert_eq!(answer(often), (HoldAction::Remove, FIRM));
    }

    #[test]
    fn many_held_jobs_are_probed_before_they_are_released() {
        let many = |now| evidence(now, 0.7).with(|one| one.cause.held = 12);
        assert_eq!(answer(many(0.8)), (HoldAction::Probe, None));
        assert_eq!(answer(many(0.12)), (HoldAction::Probe, None));
        assert_eq!(
            answer(many(0.03)),
            (HoldAction::Later, POSSIBLE),
            "a third of a success of 12"
        );
        assert_eq!(answer(many(0.95)), (HoldAction::Release, PROBABLE));
        let two = evidence(0.15, 0.7).with(|one| one.cause.held = 2);
        assert_eq!(
            answer(two).0,
            HoldAction::Later,
            "a run for a third of a success"
        );
    }

    #[test]
    fn cause_that_failed_just_now_is_not_probed_again_at_once() {
        let failed = |now, recovered| {
            evidence(now, 0.7).with(|one| {
                one.cause.failed_just_now = true;
                one.cause.held = 12;
                one.cause.recovered = recovered;
            })
        };
        assert_eq!(answer(failed(0.3, 0)), (HoldAction::Later, POSSIBLE));
        assert_eq!(answer(failed(0.3, 1)), (HoldAction::Probe, None));
        assert_eq!(answer(failed(0.6, 0)), (HoldAction::Probe, None));
    }

    #[test]
    fn cause_is_probed_once_others_read_from_its_origin() {
        let failed = |later, origin_reads| {
            evidence(0.01, later).with(|one| {
                one.cause.failed_just_now = true;
                one.cause.held = 4;
                one.origin.reads = origin_reads;
            })
        };
        assert_eq!(answer(failed(0.7, 1)), (HoldAction::Later, POSSIBLE));
        assert_eq!(answer(failed(0.7, 2)), (HoldAction::Probe, None));
        assert_eq!(
            answer(failed(0.1, 9)).0,
            HoldAction::Fix,
            "it lacks the file"
        );
    }

    /// Other jobs that read the very file of a held job outweigh a failure of another file of its origin.
    #[test]
    fn readers_of_a_file_show_that_its_fault_has_passed() {
        let mut log = log_with_outages(3);
        let held_s = 13_000;
        log.add_held(7, held_s);
        let asked = |log: &TestLog| {
            let store = log.store();
            let history = HoldHistory::new(&store);
            let learned = learned_test_answers();
            let asked_ms = (held_s + 60) * 1000;
            let holds = history.held_at(asked_ms);
            let found = held_evidence(&history, &learned.model, &holds, asked_ms);
            found.expect("evidence").holds[0]
        };
        let before = asked(&log);
        assert_eq!(before.cause.key.0, CauseKind::Origin as u8);
        assert_ne!(answer(before).0, HoldAction::Release);
        for at in 0..2 {
            log.add_reader(InputFile { file: 7, origin: 7 }, held_s + 20 + at);
        }
        let after = asked(&log);
        assert_eq!(
            (after.cause.key.0, after.cause.recovered),
            (CauseKind::File as u8, 2)
        );
        assert_eq!(answer(after), (HoldAction::Release, PROBABLE));
    }

    #[test]
    fn jobs_of_one_cause_are_probed_together() {
        let of_cause = evidence(0.01, 0.7).with(|one| {
            one.cause.held = 12;
            one.cause.best_odds = 0.3;
        });
        assert_eq!(answer(of_cause), (HoldAction::Probe, None));
    }

    #[test]
    fn others_are_released_once_probes_have_succeeded() {
        let after = |held_for_cause, now, recovered| {
            evidence(now, 0.7).with(|one| {
                one.cause.held = held_for_cause;
                one.cause.recovered = recovered;
            })
        };
        assert_eq!(answer(after(5, 0.3, 1)), (HoldAction::Probe, None));
        assert_eq!(answer(after(5, 0.4, 1)), (HoldAction::Release, PROBABLE));
        assert_eq!(answer(after(1, 0.5, 1)), (HoldAction::Probe, None), "a try");
        assert_eq!(
            answer(after(12, 0.5, 1)),
            (HoldAction::Probe, None),
            "two of many are probes"
        );
        let two = after(12, 0.2, 2).with(|one| one.origin.file_passed_since = true);
        assert_eq!(answer(two), (HoldAction::Release, FIRM));
        let of_other_clusters = two.with(|one| one.cause.has_cluster_succeeded = false);
        assert_eq!(answer(of_other_clusters), (HoldAction::Release, PROBABLE));
    }

    #[test]
    fn successes_since_the_last_failure_raise_the_probability() {
        let after = |now, recovered| evidence(now, 0.7).with(|one| one.cause.recovered = recovered);
        assert_eq!(after(0.4, 1).probability_now(), 0.4, "one may be luck");
        assert_eq!(after(0.4, 2).probability_now(), 2.5 / 3.0);
        assert_eq!(after(0.95, 2).probability_now(), 0.95);
    }

    #[test]
    fn owner_without_outcomes_gets_no_release() {
        let untaught = evidence(0.95, 0.9).with(|one| one.learned.is_taught = false);
        assert_eq!(answer(untaught).0, HoldAction::Probe, "at most a try");
    }

    #[test]
    fn low_odds_without_outcomes_are_no_advice_or_a_probe() {
        let unknown = |now, later, held_for_cause| {
            evidence(now, later).with(|one| {
                one.learned.is_taught = false;
                one.learned.has_outcomes = false;
                one.cause.held = held_for_cause;
            })
        };
        assert_eq!(answer(unknown(0.3, 0.35, 1)), (HoldAction::None, None));
        assert_eq!(answer(unknown(0.3, 0.35, 4)), (HoldAction::Probe, None));
        assert_eq!(answer(unknown(0.05, 0.35, 4)), (HoldAction::None, None));
        assert_eq!(answer(unknown(0.05, 0.05, 4)), (HoldAction::Fix, FIRM));
        assert_eq!(answer(unknown(0.3, 0.7, 1)), (HoldAction::Later, POSSIBLE));
    }

    #[test]
    fn new_cause_of_several_jobs_is_probed_whatever_other_access_points_know() {
        let new = |held_for_cause| {
            elsewhere(0.02, 0.1).with(|one| {
                one.cause.is_new = true;
                one.cause.held = held_for_cause;
            })
        };
        assert_eq!(answer(new(2)), (HoldAction::Probe, None));
        assert_eq!(answer(new(1)), (HoldAction::Fix, POSSIBLE), "no job to try");
        let tried = new(2).with(|one| one.cause.is_new = false);
        assert_eq!(answer(tried).0, HoldAction::Fix, "the probe has failed");
    }

    #[test]
    fn answers_from_elsewhere_are_never_firm() {
        let elsewhere = |now, later| elsewhere(now, later).with(|one| one.hold.holds_for_code = 9);
        assert_eq!(answer(elsewhere(0.05, 0.05)), (HoldAction::Fix, POSSIBLE));
        assert_eq!(answer(elsewhere(0.3, 0.35)), (HoldAction::Fix, POSSIBLE));
        assert_eq!(answer(elsewhere(0.05, 0.9)), (HoldAction::Later, POSSIBLE));
        assert_eq!(answer(elsewhere(0.95, 0.95)).0, HoldAction::Probe);
        let recovered = elsewhere(0.3, 0.9).with(|one| {
            one.cause.recovered = 2;
            one.origin.file_passed_since = true;
        });
        assert_eq!(
            answer(recovered),
            (HoldAction::Release, FIRM),
            "jobs of this log show it"
        );
    }

    #[test]
    fn odds_of_other_kinds_of_holds_give_no_advice() {
        let of_kind = |now, later, held_for_cause| {
            evidence(now, later).with(|one| {
                one.learned.odds.learned_from = LearnedFrom::Nothing;
                one.cause.held = held_for_cause;
                one.cause.is_new = true;
            })
        };
        for held_for_cause in [1, 12] {
            for (now, later) in [(0.34, 0.5), (0.95, 0.95), (0.02, 0.02)] {
                let unknown = of_kind(now, later, held_for_cause);
                assert_eq!(answer(unknown), (HoldAction::None, None), "{now} {later}");
                assert_eq!(unknown.stated_probability(), None);
                assert_eq!(unknown.stated_later(), None);
            }
        }
        let unknown = of_kind(0.95, 0.95, 1);
        let by_rule = unknown.with(|one| one.hold.rule = code_rule(13, 2));
        assert_eq!(answer(by_rule).0, HoldAction::Fix);
        let by_words = unknown.with(|one| one.hold.rule_key = rule_key(NamedFault::Server));
        assert_eq!(answer(by_words), (HoldAction::Later, POSSIBLE));
        let recovered = unknown.with(|one| one.cause.recovered = 2);
        assert_eq!(answer(recovered), (HoldAction::Release, PROBABLE));
        assert_eq!(recovered.stated_probability(), Some(2.5 / 3.0));
    }

    #[test]
    fn rules_yield_to_a_pass_or_to_a_passing_fault_alone() {
        let missing =
            |evidence: HeldEvidence| evidence.with(|one| one.hold.rule = code_rule(13, 2));
        assert_eq!(
            answer(missing(evidence(0.95, 0.2))),
            (HoldAction::Fix, FIRM)
        );
        assert_eq!(answer(missing(evidence(0.95, 0.9))).0, HoldAction::Release);
        let passed = evidence(0.8, 0.4).with(|one| one.origin.file_passed_since = true);
        assert_eq!(answer(missing(passed)), (HoldAction::Release, PROBABLE));
        let from_elsewhere = evidence(0.2, 0.9);
        let from_elsewhere =
            from_elsewhere.with(|one| one.learned.odds.learned_from = LearnedFrom::OtherLogs);
        assert_eq!(answer(missing(from_elsewhere)).0, HoldAction::Fix);
        let memory = evidence(0.95, 0.9).with(|one| {
            one.hold.rule = code_rule(34, 102);
            one.origin.file_passed_since = true;
        });
        assert_eq!(answer(memory), (HoldAction::Fix, PROBABLE));
    }

    #[test]
    fn rule_stays_for_a_hold_that_is_older_than_all_that_was_learned() {
        let old = |named_fault| {
            evidence(0.2, 0.9).with(|one| {
                one.hold.rule = hold_rule(object_that_is(Outcome::Absent));
                one.hold.rule_key = rule_key(named_fault);
                one.learned.is_hold_too_old = true;
            })
        };
        assert_eq!(answer(old(NamedFault::Unknown)).0, HoldAction::Fix);
        assert_eq!(answer(old(NamedFault::Missing)), (HoldAction::Probe, None));
    }

    #[test]
    fn odds_outweigh_no_rule_before_outcomes_of_its_reason_are_known() {
        for stated in [object_that_is(Outcome::Absent), kind_of_code(22, 0)] {
            let learned = evidence(0.2, 0.9).with(|one| {
                one.hold.rule = hold_rule(stated);
                one.hold.rule_key = rule_key(NamedFault::of_kind(stated));
            });
            assert_eq!(answer(learned).0, HoldAction::Later);
            let unknown = learned.with(|one| one.learned.reason = ReasonRecord::default());
            assert_eq!(answer(unknown).0, HoldAction::Fix);
            let agreed = unknown.with(|one| one.learned.odds = evidence(0.2, 0.1).learned.odds);
            assert_ne!(answer(agreed).1, FIRM, "nothing was learned");
        }
    }

    #[test]
    fn odds_outweigh_no_rule_whose_reason_no_job_ever_got_past() {
        for stated in [object_that_is(Outcome::Denied), kind_of_code(22, 0)] {
            let asked = |failures| {
                evidence(0.2, 0.63).with(|one| {
                    one.hold.rule = hold_rule(stated);
                    one.hold.rule_key = rule_key(NamedFault::of_kind(stated));
                    one.learned.reason = ReasonRecord {
                        outcomes: 26,
                        failures,
                        ..ReasonRecord::default()
                    };
                })
            };
            assert_eq!(answer(asked(26)).0, HoldAction::Fix, "{stated:?}");
            assert_eq!(answer(asked(0)).0, HoldAction::Later, "a job got past it");
        }
    }

    #[test]
    fn no_job_is_released_against_a_limit_of_time() {
        let asked = evidence(0.95, 0.97).with(|one| {
            one.hold.rule = code_rule(46, 0);
            one.origin.file_passed_since = true;
            one.cause.recovered = 30;
        });
        assert_eq!(answer(asked).0, HoldAction::Fix);
    }

    /// What is stated of a program that could not be started, under the code for standard output.
    fn start_failure() -> ReasonKind {
        let reason = "Error from slot1@e: Failed to execute '/home/ada/run.sh': (errno=13: 'Permission denied')";
        read_reason(reason, Some((7, 13))).kind
    }

    /// What HTCondor 8 states of input from a server, under the code for output.
    fn old_input() -> ReasonKind {
        let reason = "Error from slot1@e: STARTER at 192.0.2.7 failed to receive file /x/dir_1/a: FILETRANSFER:1:non-zero exit(2) from /usr/libexec/condor/curl_plugin";
        read_reason(reason, Some((12, 0))).kind
    }

    #[test]
    fn releases_by_hand_show_no_passing_fault_of_an_own_program() {
        let passes = |code: (i32, i32), is_mostly_repaired| {
            evidence(0.2, 0.96).with(|one| {
                one.hold.rule = code_rule(code.0, code.1);
                one.hold.stated = kind_of_code(code.0, code.1);
                one.learned.is_mostly_repaired = is_mostly_repaired;
            })
        };
        assert_eq!(answer(passes((6, 2), false)), (HoldAction::Later, FIRM));
        assert_eq!(answer(passes((6, 2), true)).0, HoldAction::Fix);
        let other_code = passes((13, 2), true).with(|one| one.hold.stated = start_failure());
        assert_eq!(answer(other_code).0, HoldAction::Fix);
        let of_input = passes((13, 2), true);
        assert_eq!(answer(of_input), (HoldAction::Later, PROBABLE));
        let corrected = of_input.with(|one| one.origin.is_corrected_by_owner = true);
        assert_eq!(answer(corrected).0, HoldAction::Fix);
    }

    #[test]
    fn file_in_a_missing_directory_is_waited_for() {
        let missing = evidence(0.01, 0.05).with(|one| {
            one.hold.rule = code_rule(13, 2);
            one.origin.state = OriginState::Fails;
        });
        assert_eq!(answer(missing), (HoldAction::Later, POSSIBLE));
        let several = missing.with(|one| {
            one.cause.held = 4;
            one.cause.best_odds = 0.3;
        });
        assert_eq!(answer(several), (HoldAction::Probe, None));
    }

    #[test]
    fn release_is_firm_only_if_a_job_of_the_cluster_succeeded() {
        let sure = sure(0.95, 0.95);
        assert_eq!(answer(sure), (HoldAction::Release, FIRM));
        let alone = sure.with(|one| one.cause.has_cluster_succeeded = false);
        assert_eq!(answer(alone), (HoldAction::Release, PROBABLE));
    }

    #[test]
    fn release_is_firm_for_an_input_only_if_others_got_the_same_file() {
        let of_other_files = evidence(0.98, 0.95);
        assert_eq!(answer(of_other_files), (HoldAction::Release, PROBABLE));
        let same_file = sure(0.98, 0.95);
        assert_eq!(answer(same_file), (HoldAction::Release, FIRM));
        let output = of_other_files.with(|one| one.hold.stated = kind_of_code(12, 256));
        assert_eq!(answer(output), (HoldAction::Release, FIRM));
        let input = of_other_files.with(|one| one.hold.stated = old_input());
        assert_eq!(answer(input), (HoldAction::Release, PROBABLE));
    }

    #[test]
    fn file_that_fails_while_others_get_theirs_from_its_server_is_to_be_repaired() {
        let plugin = |named_fault| {
            evidence(0.7, 0.7).with(|one| {
                one.hold.stated = kind_of_code(13, 256);
                one.hold.rule_key.named_fault = named_fault;
                one.origin.state = OriginState::Works;
            })
        };
        let unnamed = plugin(NamedFault::Unknown);
        assert_eq!(answer(unnamed), (HoldAction::Fix, PROBABLE));
        assert_ne!(answer(plugin(NamedFault::Server)).0, HoldAction::Fix);
        let passed = unnamed.with(|one| one.origin.file_passed_since = true);
        assert_ne!(answer(passed).0, HoldAction::Fix);
        let full_disk = unnamed.with(|one| one.hold.stated = kind_of_code(13, 28));
        assert_ne!(answer(full_disk).0, HoldAction::Fix);
        let old = unnamed.with(|one| one.hold.stated = old_input());
        assert_eq!(answer(old), (HoldAction::Fix, PROBABLE));
    }

    #[test]
    fn file_that_is_missing_where_others_get_theirs_is_to_be_repaired() {
        let missing = evidence(0.7, 0.7).with(|one| one.hold.rule = code_rule(13, 2));
        assert_eq!(answer(missing), (HoldAction::Release, PROBABLE));
        let others_read = missing.with(|one| one.origin.state = OriginState::Works);
        assert_eq!(answer(others_read), (HoldAction::Fix, FIRM));
        let read_by_others = others_read.with(|one| one.origin.file_passed_since = true);
        assert_ne!(answer(read_by_others).0, HoldAction::Fix);
    }

    #[test]
    fn output_that_is_missing_again_after_a_release_needs_a_repair_once_the_hold_is_old() {
        let old_after_failure = evidence(0.6, 0.7).with(|one| {
            one.hold.lacks_output = true;
            one.cause.failed_again = true;
            one.cause.held = 12;
            one.learned.is_hold_too_old = true;
        });
        assert_eq!(answer(old_after_failure), (HoldAction::Fix, POSSIBLE));
        let young = old_after_failure.with(|one| one.learned.is_hold_too_old = false);
        let without_a_failure = old_after_failure.with(|one| one.cause.failed_again = false);
        let of_input = old_after_failure.with(|one| one.hold.lacks_output = false);
        for unsure in [young, without_a_failure, of_input] {
            assert_eq!(answer(unsure), (HoldAction::Probe, None));
        }
    }

    #[test]
    fn answers_beyond_the_learned_ages_promise_nothing() {
        let old = |evidence: HeldEvidence| evidence.with(|one| one.learned.is_hold_too_old = true);
        let of_odds = |now, later| answer(old(evidence(now, later)));
        assert_eq!(of_odds(0.95, 0.9), (HoldAction::Probe, None), "a try");
        assert_eq!(of_odds(0.6, 0.9), (HoldAction::Probe, None));
        assert_eq!(
            of_odds(0.2, 0.9),
            (HoldAction::Probe, None),
            "it would have passed by now"
        );
        let not_due = [
            evidence(0.2, 0.9).with(|one| one.cause.failed_just_now = true),
            evidence(0.2, 0.9).with(|one| one.origin.state = OriginState::Fails),
        ];
        for evidence in not_due {
            assert_eq!(answer(old(evidence)), (HoldAction::Later, POSSIBLE));
        }
        assert_eq!(of_odds(0.05, 0.05), (HoldAction::Fix, POSSIBLE));
        let often = evidence(0.05, 0.05).with(|one| one.hold.holds_for_code = 5);
        assert_eq!(answer(often).0, HoldAction::Remove);
        assert_eq!(answer(old(often)), (HoldAction::Fix, POSSIBLE));

        let recovered = |recovered| {
            evidence(0.6, 0.9).with(|one| {
                one.cause.recovered = recovered;
                one.origin.file_passed_since = recovered > 0;
            })
        };
        assert_eq!(answer(old(recovered(1))), (HoldAction::Probe, None));
        assert_eq!(answer(old(recovered(2))), (HoldAction::Release, FIRM));
        let missing = evidence(0.6, 0.2).with(|one| one.hold.rule = code_rule(13, 2));
        assert_eq!(
            answer(old(missing)),
            answer(missing),
            "a rule needs no odds"
        );
    }
}
