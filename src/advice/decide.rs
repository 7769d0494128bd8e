//! Puts the answer about a held job into words, with the outcomes of similar holds. With known costs of mistakes, these
//! decide instead.

use std::sync::Arc;

use super::job_advice::{AdviceGround, AdviceVerdict, SimilarHoldKind, SimilarHolds};
use poolcast_base::output;
use poolcast_base::shared_text::SharedText;
use poolcast_holds::answers::AnswerThreshold;
use poolcast_holds::answers::{
    FailedReleases, MIN_TAUGHT_OUTCOMES, NamedFault, OriginState, RecoveryRecord, ThingState,
};
use poolcast_holds::config::AdviceConfig;
use poolcast_holds::decision::{HeldAnswer, HeldEvidence, HoldAction, HoldRule};

/// Minimum number of similar holds whose outcomes count as evidence.
pub(super) const MIN_SIMILAR_HOLDS: usize = 20;

/// Share of successes among holds for the same reason from which a rule that predicts failure is
/// overruled.
const MIN_SUCCESS_RATE_AGAINST_RULE: f64 = 0.25;

/// Share of successes among similar holds from which a low probability is attributed to a transient
/// fault.
const MIN_SUCCESS_RATE_OF_TRANSIENT_FAULT: f64 = 0.5;

/// The outcomes of holds like one.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimilarOutcomes {
    /// Outcomes of holds with the same reason, or else with the same code and subcode.
    pub(super) all: Option<SimilarHolds>,
    /// Outcomes of holds for the same reason.
    pub(super) of_reason: SimilarHolds,
    /// Another job's release since this hold began, after which the job got past the same fault.
    pub(super) passed_since: Option<PassedSince>,
}

/// What a job shares with a held one, after whose hold it was released and got past the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassedSince {
    /// The hold reason.
    Reason,
    /// The machine and the hold code.
    Host,
}

impl PassedSince {
    fn words(self) -> &'static str {
        match self {
            PassedSince::Reason => {
                "a job that was held for this reason was released since then, and got past it"
            }
            PassedSince::Host => {
                "a job that was held on the same machine with this code was released since then, and got past it"
            }
        }
    }
}

impl SimilarOutcomes {
    /// Returns true if the outcomes of holds for the same reason contradict a rule that predicts
    /// failure. Holds with the same code alone cannot: they may have other faults.
    pub(super) fn contradict_rule(&self) -> bool {
        let SimilarHolds { holds, rate, .. } = self.of_reason;
        let often_succeeded = holds >= MIN_SIMILAR_HOLDS && rate >= MIN_SUCCESS_RATE_AGAINST_RULE;
        often_succeeded || self.passed_since.is_some()
    }

    /// States the outcomes.
    fn words(self) -> impl Iterator<Item = String> {
        let passed = self.passed_since.map(|passed| passed.words().to_owned());
        self.all.map(similar_holds_words).into_iter().chain(passed)
    }
}

/// Facts about the answer on a held job that its words need, besides its evidence.
#[derive(Debug, Clone, Default)]
pub(super) struct AnswerNotes {
    /// The limit that the answer reached.
    pub(super) reached: Option<AnswerThreshold>,
    /// The state of the thing that failed.
    pub(super) state: Option<ThingState>,
    /// The reason why the odds are unknown, if they are.
    pub(super) why_no_odds: Option<String>,
    /// True if the answer would be a release or a probe if more outcomes were known.
    pub(super) lacks_outcomes: bool,
    /// The earlier releases for the same ground, if other jobs got past the cause.
    pub(super) recovered: Option<RecoveryRecord>,
}

/// Puts the `answer` about a held job into words.
pub(super) fn decide_by_answer(
    settings: &AdviceConfig,
    answer: HeldAnswer,
    evidence: &HeldEvidence,
    notes: AnswerNotes,
    similar: SimilarOutcomes,
) -> AdviceVerdict {
    // Odds of other kinds of holds are no odds of this one.
    let has_odds = !evidence.is_of_unknown_kind();
    if let Some(cost) = settings.cost.filter(|_| has_odds) {
        let release_from = cost.wasted_run / (cost.wasted_run + cost.lost_success);
        return decide_by_cost(settings, release_from, evidence, similar);
    }
    let mut reasons = answer_reasons(answer.action, evidence, &notes);
    reasons.extend(similar.words());
    let ground = match answer.action {
        HoldAction::None => AdviceGround::Nothing,
        _ => AdviceGround::Model,
    };
    AdviceVerdict {
        firmness: answer.firmness,
        evidence: notes.reached.map(Box::new),
        ..AdviceVerdict::new(answer.action, ground, answer.because, shared(reasons))
    }
}

/// Returns `texts` as the reasons of a verdict.
pub(super) fn shared(texts: impl IntoIterator<Item = String>) -> Arc<[SharedText]> {
    texts.into_iter().map(SharedText::from).collect()
}

/// States how often a job was held for the reason.
fn often_held_words(evidence: &HeldEvidence) -> String {
    format!(
        "it was held {} times for this reason",
        evidence.hold.holds_for_code
    )
}

/// States the odds that lead to an action, or why they are unknown.
fn answer_reasons(action: HoldAction, evidence: &HeldEvidence, notes: &AnswerNotes) -> Vec<String> {
    let odds = match evidence.stated_probability() {
        Some(now) => Some(odds_words(now, evidence.stated_later())),
        None => notes.why_no_odds.clone(),
    };
    let held = evidence.cause.held;
    let why = match action {
        HoldAction::Probe if evidence.cause.awaits_outcome => Some(
            "a job with this cause was released recently: wait for what comes of it".to_owned(),
        ),
        HoldAction::Probe if held > 1 => Some(format!(
            "{held} jobs are held for this cause: the run of one shows if the fault has passed"
        )),
        HoldAction::Probe => Some("one run shows if the fault has passed".to_owned()),
        HoldAction::None if !evidence.is_of_unknown_kind() => Some(unknown_words()),
        HoldAction::Release if evidence.cause.started_in_cluster > 0 => {
            Some(cluster_words(evidence.cause.started_in_cluster))
        }
        HoldAction::Release => notes.state.and_then(|state| successes_words(&state)),
        HoldAction::Later if evidence.origin.state == OriginState::Fails => Some(
            "files of several jobs did not arrive from its directory or server, which more likely fails than the path is wrong"
                .to_owned(),
        ),
        HoldAction::Later if evidence.hold.rule_key.named_fault == NamedFault::Server => Some(
            "the reason, or that of other jobs, names a fault of a server or a network, which passes without a repair"
                .to_owned(),
        ),
        HoldAction::Later if evidence.hold.rule_key.named_fault == NamedFault::Machine => {
            Some("a machine could not start a program that is installed there: another machine may".to_owned())
        }
        HoldAction::Fix if evidence.stays_after_failed_release() => Some(FAILED_AGAIN.to_owned()),
        HoldAction::Fix if evidence.hold.never_writes_output => Some(NEVER_WRITTEN.to_owned()),
        HoldAction::Fix if evidence.failed_while_others_read() => Some(OTHERS_READ.to_owned()),
        HoldAction::Remove => Some(often_held_words(evidence)),
        _ => None,
    };
    let others = (action == HoldAction::Release)
        .then(|| others_words(evidence))
        .flatten();
    let recovered = notes.recovered.map(recovery_words);
    let lacks_outcomes = notes.lacks_outcomes.then(lack_words);
    let is_known_from_elsewhere = evidence.is_known_from_elsewhere();
    let elsewhere = is_known_from_elsewhere.then(|| elsewhere_words().to_owned());
    why.into_iter()
        .chain(others)
        .chain(recovered)
        .chain(odds)
        .chain(elsewhere)
        .chain(lacks_outcomes)
        .collect()
}

/// States the probability of success now, and later unless nothing was learned about so old a hold.
fn odds_words(now: f64, later: Option<f64>) -> String {
    let now = percent_words(now);
    let unchanged = format!("released unchanged, it succeeds with a probability of {now} now");
    match later.map(percent_words) {
        Some(later) => format!("{unchanged}, and of {later} later"),
        None => format!("{unchanged}, as the jobs that got past this cause show"),
    }
}

/// States the successes since the last failure, with the lower bound of the chance of success if
/// there are several; `None` if there are none.
fn successes_words(state: &ThingState) -> Option<String> {
    let lower = state.success_lower?;
    let since = output::utc_time(state.last_failure_ms);
    let count = state.successes_since;
    Some(match count {
        1 => format!("1 job got past this cause since {since}, and none has failed since"),
        // Rounded down, because it is a lower bound.
        _ => format!(
            "{count} of {count} jobs got past this cause since {since}: with 90 % confidence, at least {:.0} % do",
            (100.0 * lower).floor()
        ),
    })
}

/// States that other jobs of the cluster started their program.
fn cluster_words(started: usize) -> String {
    format!(
        "{} of its cluster started the same program since the last failure, and succeeded",
        output::counted(started, "other job")
    )
}

/// A further job that shows that a job whose cause others got past has no other fault.
const IN_CLUSTER: &str = "another job of its cluster has succeeded since";
/// What makes successes of other jobs a weak sign.
const BY_HAND: &str = "a person released all of them, and may have repaired each one before";

/// States what is known of the jobs that got past the cause, beyond their number.
fn others_words(evidence: &HeldEvidence) -> Option<String> {
    if evidence.cause.recovered == 0 || evidence.cause.started_in_cluster > 0 {
        return None;
    }
    if evidence.may_need_repair() {
        return Some(BY_HAND.to_owned());
    }
    (evidence.cause.has_cluster_succeeded).then(|| IN_CLUSTER.to_owned())
}

/// States how the earlier releases ended whose cause other jobs had got past.
fn recovery_words(record: RecoveryRecord) -> String {
    format!(
        "{} of {} earlier releases after such successes succeeded",
        output::with_commas(record.successes as u64),
        output::with_commas(record.releases as u64)
    )
}

/// States that too few outcomes are known for a release.
pub fn lack_words() -> String {
    format!(
        "fewer than {MIN_TAUGHT_OUTCOMES} outcomes of this owner for this code are known: too few to advise a release"
    )
}

/// A failed release, which shows that the fault of other jobs with this cause stays, too.
const FAILED_AGAIN: &str =
    "a job with this cause was released and held again, and none has got past it since";

/// Other jobs that show that the program of a job is at fault, and not a machine.
const NEVER_WRITTEN: &str = "no job of its cluster ended well by itself, and outputs are missing on several machines where other jobs end well";

/// Other jobs that show that the file of a job is at fault, and not its directory or server.
const OTHERS_READ: &str =
    "other jobs got their files from the same directory or server before and after this hold";

/// States what this log shows that supports the rule for the hold code of a job.
pub(super) fn rule_evidence_words(
    rule: &HoldRule,
    evidence: &HeldEvidence,
) -> impl Iterator<Item = String> + use<> {
    let failed = match evidence.hold.rule_key.failed {
        FailedReleases::OfJob => {
            Some("it was released several times, and held again for the same reason each time")
        }
        FailedReleases::OfCluster => Some(FAILED_AGAIN),
        FailedReleases::Unknown => None,
    };
    let of_origin = match evidence.origin.state {
        OriginState::Works => Some(OTHERS_READ),
        OriginState::PerhapsFails => Some(
            "other clusters miss files of the same directory, so it may be away: the log does not name their owners",
        ),
        OriginState::Fails | OriginState::Unknown => None,
    };
    let words = [of_origin, failed.filter(|_| rule.expects_failure())];
    words.into_iter().flatten().map(str::to_owned)
}

/// States that the odds follow from outcomes at other access points.
pub fn elsewhere_words() -> &'static str {
    "known from other access points, not from this one: this log shows no outcome for the hold code"
}

/// States that the outcomes of neither the cause nor the owner are known.
fn unknown_words() -> String {
    format!("fewer than {MIN_TAUGHT_OUTCOMES} outcomes of this cause or of this owner are known")
}

/// Decides by the costs of mistakes. With known costs, every hold gets an answer.
fn decide_by_cost(
    settings: &AdviceConfig,
    release_from: f64,
    evidence: &HeldEvidence,
    similar: SimilarOutcomes,
) -> AdviceVerdict {
    let probability = evidence.probability_now();
    let action = if probability >= release_from {
        HoldAction::Release
    } else {
        action_on_failure(settings, evidence, similar)
    };
    let why = match action {
        HoldAction::Remove => Some(often_held_words(evidence)),
        HoldAction::Later => Some("similar holds succeeded later".to_owned()),
        _ => None,
    };
    let odds = format!(
        "released unchanged, it succeeds with a probability of {} now",
        percent_words(probability)
    );
    let cost = format!(
        "with `advice.cost`, a release pays from {:.0} %",
        100.0 * release_from
    );
    let reasons = (why.into_iter().chain([odds]))
        .chain(similar.words())
        .chain([cost]);
    AdviceVerdict::new(action, AdviceGround::Model, "advice_cost", shared(reasons))
}

/// Returns the action for a job that would fail if it were released now.
fn action_on_failure(
    settings: &AdviceConfig,
    evidence: &HeldEvidence,
    similar: SimilarOutcomes,
) -> HoldAction {
    if evidence.hold.holds_for_code >= settings.remove_from_holds {
        return HoldAction::Remove;
    }
    let passes = similar.all.is_some_and(|all| {
        all.holds >= MIN_SIMILAR_HOLDS && all.rate >= MIN_SUCCESS_RATE_OF_TRANSIENT_FAULT
    });
    if passes {
        HoldAction::Later
    } else {
        HoldAction::Fix
    }
}

/// Formats a probability as a percentage, but never as 0 % or 100 %.
pub(super) fn percent_words(probability: f64) -> String {
    match probability {
        p if p < 0.01 => "less than 1 %".to_owned(),
        p if p > 0.99 => "more than 99 %".to_owned(),
        p => format!("{:.0} %", 100.0 * p),
    }
}

/// Formats the outcomes of similar holds.
pub(super) fn similar_holds_words(similar: SimilarHolds) -> String {
    let kind = match similar.kind {
        SimilarHoldKind::Reason => "for this reason",
        SimilarHoldKind::Code => "with this code",
    };
    let mut words = format!(
        "{} of {} {kind} succeeded after release",
        output::with_commas(similar.successes as u64),
        output::counted(similar.holds, "earlier hold")
    );
    if similar.holds > 10 {
        words.push_str(&format!(", {} of the last ten", similar.last_10_successes));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_holdreasons::kind_of_code;
    use poolcast_holds::answers::{
        HeldOdds, LearnedFrom, ReasonRecord, RecoveryKey, RuleKey, ThingKind,
    };
    use poolcast_holds::config::AdviceCost;
    use poolcast_holds::decision::{
        CauseEvidence, HoldEvidence, LearnedEvidence, OriginEvidence, code_rule,
    };

    const SETTINGS: AdviceConfig = AdviceConfig {
        precision: 0.9,
        probable_precision: 0.75,
        cost: None,
        remove_from_holds: 5,
        rehearsed_models: 20,
        members: Vec::new(),
        prior: true,
        site_model: None,
    };

    fn similar(holds: usize, successes: usize) -> Option<SimilarHolds> {
        Some(SimilarHolds {
            kind: SimilarHoldKind::Code,
            holds,
            successes,
            rate: successes as f64 / holds as f64,
            last_10_successes: 0,
        })
    }

    fn of_reason(holds: usize, successes: usize) -> SimilarHolds {
        SimilarHolds {
            kind: SimilarHoldKind::Reason,
            ..similar(holds.max(1), successes).expect("some")
        }
    }

    fn outcomes(all: Option<SimilarHolds>, of_reason: SimilarHolds) -> SimilarOutcomes {
        SimilarOutcomes {
            all,
            of_reason,
            passed_since: None,
        }
    }

    /// Evidence on a job that was held for a missing output.
    fn evidence() -> HeldEvidence {
        HeldEvidence {
            hold: HoldEvidence {
                index: 0,
                stated: kind_of_code(12, 2),
                rule_key: RuleKey {
                    code: (12, 2),
                    named_fault: NamedFault::Unknown,
                    failed: FailedReleases::Unknown,
                },
                rule: None,
                lacks_output: true,
                never_writes_output: false,
                holds_for_code: 1,
            },
            cause: CauseEvidence {
                held: 1,
                best_odds: 0.4,
                is_probe: true,
                recovered: 10,
                ..CauseEvidence::default()
            },
            origin: OriginEvidence::default(),
            learned: LearnedEvidence {
                odds: HeldOdds {
                    now: 0.4,
                    uncalibrated: 0.4,
                    later: 0.7,
                    learned_from: LearnedFrom::ThisLog,
                },
                reason: ReasonRecord::default(),
                is_taught: false,
                has_outcomes: true,
                is_mostly_repaired: false,
                is_hold_too_old: false,
            },
        }
    }

    #[test]
    fn reasons_of_an_answer_have_the_bound_and_what_is_unknown() {
        let evidence = evidence();
        let state = |successes_since, success_lower| {
            Some(ThingState {
                kind: ThingKind::File,
                last_failure_ms: 1_795_227_966_000,
                successes_since,
                owners_since: 0,
                by_hand_of: None,
                success_lower: Some(success_lower),
                reads_since: 0,
            })
        };
        let from_elsewhere = |recovered| {
            let mut evidence = evidence;
            evidence.learned.odds.learned_from = LearnedFrom::OtherLogs;
            evidence.cause.recovered = recovered;
            evidence.cause.has_cluster_succeeded = true;
            answer_reasons(HoldAction::Release, &evidence, &AnswerNotes::default())
        };
        assert!(from_elsewhere(0).contains(&elsewhere_words().to_owned()));
        assert!(!from_elsewhere(4).contains(&elsewhere_words().to_owned()));
        assert!(from_elsewhere(4).contains(&IN_CLUSTER.to_owned()));
        let mut missing_input = evidence;
        missing_input.hold.rule = code_rule(13, 2);
        missing_input.cause.is_perhaps_repaired = true;
        missing_input.cause.has_cluster_succeeded = true;
        assert_eq!(others_words(&missing_input).as_deref(), Some(BY_HAND));

        let mut of_request = evidence;
        of_request.hold.rule_key.failed = FailedReleases::OfCluster;
        let rule = code_rule(34, 102).expect("a rule");
        let words = |evidence: &HeldEvidence| -> Vec<String> {
            rule_evidence_words(&rule, evidence).collect()
        };
        assert_eq!(words(&of_request), [FAILED_AGAIN]);
        assert!(words(&evidence).is_empty());
        let mut of_output = evidence;
        of_output.cause.failed_again = true;
        of_output.learned.is_hold_too_old = true;
        let of_output = answer_reasons(HoldAction::Fix, &of_output, &AnswerNotes::default());
        assert_eq!(of_output[0], FAILED_AGAIN);

        let reasons =
            |notes: &AnswerNotes| answer_reasons(HoldAction::Release, &evidence, notes).join("; ");
        let odds =
            "released unchanged, it succeeds with a probability of 95 % now, and of 70 % later";
        assert_eq!(reasons(&AnswerNotes::default()), odds);

        let of_ten = AnswerNotes {
            state: state(10, 0.794),
            ..AnswerNotes::default()
        };
        let bound = "10 of 10 jobs got past this cause since 2026-11-21 02:26:06 UTC: with 90 % confidence, at least 79 % do";
        assert_eq!(reasons(&of_ten), format!("{bound}; {odds}"));
        let of_one = AnswerNotes {
            state: state(1, 0.1),
            ..AnswerNotes::default()
        };
        assert!(!reasons(&of_one).contains("confidence"));
        let with_record = AnswerNotes {
            recovered: Some(RecoveryRecord {
                key: RecoveryKey {
                    code: (12, 2),
                    has_cluster_succeeded: true,
                },
                releases: 1_200,
                successes: 1_100,
            }),
            ..of_ten
        };
        let record = "1,100 of 1,200 earlier releases after such successes succeeded";
        assert_eq!(reasons(&with_record), format!("{bound}; {record}; {odds}"));

        let unknown = AnswerNotes {
            why_no_odds: Some("nobody knows".to_owned()),
            lacks_outcomes: true,
            ..AnswerNotes::default()
        };
        let of_old = |recovered| {
            let mut old = evidence;
            old.learned.is_hold_too_old = true;
            old.cause.recovered = recovered;
            answer_reasons(HoldAction::Release, &old, &unknown).join("; ")
        };
        let lack = "fewer than 3 outcomes of this owner for this code are known: too few to advise a release";
        assert_eq!(of_old(0), format!("nobody knows; {lack}"));
        assert_eq!(
            of_old(4),
            format!(
                "released unchanged, it succeeds with a probability of 90 % now, as the jobs that got past this cause show; {lack}"
            )
        );
    }

    #[test]
    fn successes_of_the_cluster_are_the_reason_of_a_release() {
        assert_eq!(
            cluster_words(2),
            "2 other jobs of its cluster started the same program since the last failure, and succeeded"
        );
        assert!(cluster_words(1).starts_with("1 other job of its cluster started"));
    }

    #[test]
    fn percentages_are_never_0_or_100() {
        assert_eq!(
            [0.0, 0.012, 0.5, 1.0].map(percent_words),
            ["less than 1 %", "1 %", "50 %", "more than 99 %"]
        );
    }

    #[test]
    fn costs_replace_thresholds() {
        let settings = AdviceConfig {
            cost: Some(AdviceCost {
                wasted_run: 1.0,
                lost_success: 4.0,
            }),
            ..SETTINGS
        };
        let action = |now, all, holds_for_code| {
            let mut evidence = evidence();
            evidence.learned.odds.now = now;
            evidence.cause.recovered = 0;
            evidence.hold.holds_for_code = holds_for_code;
            let answer = HeldAnswer {
                action: HoldAction::None,
                firmness: None,
                because: "",
                is_by_rule: false,
                recovery: None,
            };
            let similar = outcomes(all, of_reason(0, 0));
            let notes = AnswerNotes::default();
            let verdict = decide_by_answer(&settings, answer, &evidence, notes, similar);
            assert_eq!(verdict.because, "advice_cost");
            verdict.action
        };
        assert_eq!(action(0.2, None, 1), HoldAction::Release);
        assert_eq!(action(0.19, similar(100, 20), 1), HoldAction::Fix);
        assert_eq!(action(0.19, similar(100, 60), 1), HoldAction::Later);
        assert_eq!(action(0.19, similar(100, 60), 5), HoldAction::Remove);
    }

    #[test]
    fn many_successes_for_the_same_reason_contradict_a_rule() {
        let contradicts =
            |holds, successes| outcomes(None, of_reason(holds, successes)).contradict_rule();
        assert!(contradicts(20, 5));
        assert!(!contradicts(19, 19));
        assert!(!contradicts(100, 24));
        assert!(!contradicts(0, 0));
    }

    #[test]
    fn holds_with_the_same_code_do_not_contradict_a_rule() {
        let similar = outcomes(similar(500, 480), of_reason(3, 0));
        assert!(!similar.contradict_rule());
    }

    #[test]
    fn one_pass_since_the_hold_contradicts_a_rule() {
        let similar = SimilarOutcomes {
            passed_since: Some(PassedSince::Reason),
            ..outcomes(None, of_reason(3, 1))
        };
        assert!(similar.contradict_rule());
        assert!(similar.words().any(|words| words.contains("since then")));
    }
}
