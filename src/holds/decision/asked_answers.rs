//! Answers about all jobs that are held at one moment, with what a page says about them.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;

use super::action::{AnswerFirmness, HoldAction};
use super::answer_rules::held_answer;
use super::asked_causes::ProbeCause;
use super::held_answer::HeldAnswer;
use super::held_evidence::{AllEvidence, GOOD_FOR, HeldEvidence, held_evidence};
use crate::answers::AnswerThreshold;
use crate::answers::{
    AnswerLimits, FailedReleases, HoldHistory, LearnedAge, LearnedAnswers, RecoveryRecord,
    ThingState,
};
use crate::config::AdviceConfig;
use poolcast_base::output;
use poolcast_events::EventStore;
use poolcast_tensors::QueriedHold;

/// The reason why the probability of success is unknown of a hold whose code and words nobody knows.
const UNKNOWN_KIND: &str = "outcomes of holds with such a code and such words are known neither from this log nor from other access points";

/// The answers about all jobs that are held at one moment.
#[derive(Debug)]
pub struct AskedAnswers {
    /// Evidence by the job and its number of earlier holds.
    evidence: HashMap<(u32, u32), HeldEvidence>,
    limits: AnswerLimits,
    /// The states of the things that failed.
    states: HashMap<ProbeCause, Arc<ThingState>>,
    learned_age: LearnedAge,
    /// Time at which the answers expire, epoch ms.
    pub good_until_ms: i64,
}

impl AskedAnswers {
    /// Asks `answers` about the holds in `asked`, all at `asked_ms`.
    ///
    /// # Errors
    /// Fails if the model cannot compute the odds.
    pub fn new(
        store: &EventStore,
        answers: &LearnedAnswers,
        asked: &[QueriedHold],
        asked_ms: i64,
    ) -> Result<AskedAnswers> {
        let history = HoldHistory::new(store);
        let find = |asked: &QueriedHold| history.find(asked.job, asked.cycle.earlier_holds);
        let holds: Vec<usize> = asked.iter().filter_map(find).collect();
        let AllEvidence {
            holds: evidence,
            states,
            learned_age,
        } = held_evidence(&history, &answers.model, &holds, asked_ms)?;
        let key = |evidence: &HeldEvidence| {
            let hold = &history.holds[evidence.hold.index];
            (hold.job, hold.cycle.earlier_holds)
        };
        Ok(AskedAnswers {
            evidence: evidence.iter().map(|one| (key(one), *one)).collect(),
            limits: answers.limits.clone(),
            states,
            learned_age,
            good_until_ms: asked_ms + (GOOD_FOR * history.unit_ms(asked_ms)) as i64,
        })
    }

    /// Returns the evidence on a hold.
    pub fn evidence(&self, asked: &QueriedHold) -> Option<&HeldEvidence> {
        self.evidence.get(&(asked.job, asked.cycle.earlier_holds))
    }

    /// Returns the answer that follows from `evidence`.
    pub fn answer(&self, evidence: &HeldEvidence, settings: &AdviceConfig) -> HeldAnswer {
        held_answer(evidence, &self.limits, settings)
    }

    /// Returns true if the answer would be a release, or at least a probe, if more outcomes were
    /// known.
    pub fn lacks_outcomes(
        &self,
        answer: &HeldAnswer,
        evidence: &HeldEvidence,
        settings: &AdviceConfig,
    ) -> bool {
        let mut taught = *evidence;
        taught.learned.is_taught = true;
        let action = self.answer(&taught, settings).action;
        action != answer.action && matches!(action, HoldAction::Release | HoldAction::Probe)
    }

    /// Returns the record of releases like `answer`, if other jobs got past the cause.
    pub fn recovered(&self, answer: &HeldAnswer) -> Option<RecoveryRecord> {
        self.limits.recovery(answer.recovery?).copied()
    }

    /// Returns the state of the thing that failed; `None` if no outcome is known.
    pub fn state(&self, evidence: &HeldEvidence) -> Option<&Arc<ThingState>> {
        self.states.get(&evidence.cause.key)
    }

    /// Explains why the probability of success of a hold that has lasted for `held_for_ms` is unknown; `None` if
    /// it is known.
    pub fn why_no_odds(&self, evidence: &HeldEvidence, held_for_ms: i64) -> Option<String> {
        evidence.stated_probability().is_none().then(|| {
            let known = if evidence.is_of_unknown_kind() {
                UNKNOWN_KIND.to_owned()
            } else {
                self.learned_age_words(held_for_ms)
            };
            format!("{known}, so its probability of success is unknown")
        })
    }

    /// Explains why the answer of a rule about a hold that has lasted for `held_for_ms` is certain; `None`
    /// if its age is not the reason.
    pub fn why_certain(
        &self,
        answer: &HeldAnswer,
        evidence: &HeldEvidence,
        held_for_ms: i64,
    ) -> Option<String> {
        let is_certain = answer.firmness == Some(AnswerFirmness::Firm);
        let is_by_age = evidence.outlasts_passing_faults()
            && evidence.agrees_with_rule()
            && evidence.hold.rule_key.failed == FailedReleases::Unknown;
        (is_certain && is_by_age).then(|| {
            let known = self.learned_age_words(held_for_ms);
            format!("{known}, and faults that pass are gone by then")
        })
    }

    /// States the ages that were learned. A hold that has lasted for `held_for_ms` is older.
    fn learned_age_words(&self, held_for_ms: i64) -> String {
        let longest_ms = self.learned_age.longest_released_ms;
        if longest_ms == 0 {
            "no job in this log was released".to_owned()
        } else if held_for_ms > longest_ms {
            let longest = output::time_span(longest_ms);
            format!("no job in this log was released after more than {longest}")
        } else {
            let max = output::time_span(self.learned_age.max_ms);
            format!("the answers have learned from the first {max} of holds only")
        }
    }

    /// Returns the limit that `answer` reached, with the earlier answers beyond it.
    pub fn limit(&self, answer: &HeldAnswer, evidence: &HeldEvidence) -> Option<AnswerThreshold> {
        if evidence.learned.is_hold_too_old || !evidence.is_learned_here() {
            return None;
        }
        let limits = match answer.action {
            HoldAction::Release => self.limits.release,
            HoldAction::Fix | HoldAction::Remove => self.limits.fix,
            HoldAction::Later => self.limits.later,
            HoldAction::Probe | HoldAction::Leave | HoldAction::None => return None,
        };
        let limit = match answer.firmness? {
            AnswerFirmness::Firm => limits.firm?,
            AnswerFirmness::Probable => limits.probable?,
            AnswerFirmness::Possible => return None,
        };
        // A release may follow from the outcomes of other jobs, without the odds.
        let is_reached =
            answer.action != HoldAction::Release || evidence.learned.odds.now >= limit.probability;
        is_reached.then_some(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::super::codes::code_rule;
    use super::super::test_evidence::{evidence, limits};
    use super::*;
    use crate::answers::AnswerModel;
    use crate::test_config::TestConfig;
    use htcondor_holdreasons::kind_of_code;
    use test_stores::{TestLog, log_with_outages};

    /// Returns the answers about the jobs that are held at second 16,500 of `log`, which is a log of
    /// six outages with more jobs. The model has learned up to second 16,000.
    fn asked_answers(log: &TestLog) -> (AskedAnswers, Vec<QueriedHold>) {
        let store = log.store();
        let history = HoldHistory::new(&store);
        let asked_ms = 16_500_000;
        let holds = history.held_at(asked_ms);
        let asked: Vec<QueriedHold> = holds
            .iter()
            .map(|&hold| history.asked(hold, asked_ms))
            .collect();
        let advice = TestConfig::without_prior();
        let model = AnswerModel::learn(&history, 16_000_000, &advice, 1, &|| false);
        let answers = LearnedAnswers {
            model: model.expect("learned").expect("outcomes"),
            limits: limits(),
            known_ms: 16_000_000,
        };
        let answers = AskedAnswers::new(&store, &answers, &asked, asked_ms);
        (answers.expect("asked"), asked)
    }

    #[test]
    fn jobs_of_one_thing_share_its_state() {
        let mut log = log_with_outages(6);
        log.add_held(7, 15_990);
        log.add_held(7, 16_000);
        log.add_held(8, 16_010);
        let (answers, asked) = asked_answers(&log);
        assert_eq!(asked.len(), 3);
        let state = |at: usize| {
            let evidence = answers.evidence(&asked[at]).expect("evidence");
            answers.state(evidence).map(|state| **state)
        };
        let known = state(0).expect("a state");
        assert_eq!(known.last_failure_ms, 16_000_000);
        assert_eq!(state(1), Some(known));
        assert_eq!(state(2), None, "no outcome of file 8 is known");
    }

    #[test]
    fn held_for_longer_than_any_release_has_no_odds() {
        let mut log = log_with_outages(6);
        log.add_held(7, 11_000);
        log.add_held(7, 16_490);
        let (answers, asked) = asked_answers(&log);
        let why = |at: usize, held_for_ms| {
            let evidence = answers.evidence(&asked[at]).expect("evidence");
            answers.why_no_odds(evidence, held_for_ms)
        };
        let of_old = why(0, 5_500_000).expect("too old");
        assert!(
            of_old.starts_with("no job in this log was released after more than 1 min 21 s,"),
            "{of_old}"
        );
        let of_younger = why(0, 80_000).expect("too old");
        assert!(of_younger.starts_with("the answers have learned from the first"));
        assert_eq!(why(1, 10_000), None);

        let evidence = |at: usize, code: (i32, i32)| {
            let mut evidence = *answers.evidence(&asked[at]).expect("evidence");
            evidence.hold.stated = kind_of_code(code.0, code.1);
            evidence.hold.rule = code_rule(code.0, code.1);
            evidence
        };
        let certain = |evidence: &HeldEvidence, firmness| {
            let answer = HeldAnswer {
                action: HoldAction::Fix,
                firmness: Some(firmness),
                because: "",
                is_by_rule: true,
                recovery: None,
            };
            answers.why_certain(&answer, evidence, 5_500_000)
        };
        let old = evidence(0, (13, 2));
        let of_old = certain(&old, AnswerFirmness::Firm).expect("too old");
        assert!(
            of_old.ends_with("faults that pass are gone by then"),
            "{of_old}"
        );
        assert_eq!(certain(&old, AnswerFirmness::Probable), None);
        let young = evidence(1, (13, 2));
        assert_eq!(certain(&young, AnswerFirmness::Firm), None);
        let mut repeated = old;
        repeated.hold.rule_key.failed = FailedReleases::OfJob;
        assert_eq!(certain(&repeated, AnswerFirmness::Firm), None);
        let of_request = evidence(0, (34, 102));
        assert_eq!(certain(&of_request, AnswerFirmness::Firm), None);
    }

    #[test]
    fn log_without_a_release_says_so() {
        let mut log = log_with_outages(6);
        log.add_held(7, 11_000);
        let (mut answers, asked) = asked_answers(&log);
        answers.learned_age.longest_released_ms = 0;
        let evidence = answers.evidence(&asked[0]).expect("evidence");
        let why = answers.why_no_odds(evidence, 5_500_000).expect("too old");
        assert!(
            why.starts_with("no job in this log was released, so"),
            "{why}"
        );
    }

    #[test]
    fn cause_is_new_if_neither_its_jobs_nor_a_late_failure_teach_anything() {
        let mut log = log_with_outages(2);
        log.add_held(8, 11_000);
        log.add_held(8, 11_010);
        log.add_held(7, 11_000);
        log.add_held(7, 16_490);
        let (answers, asked) = asked_answers(&log);
        let is_new = |at: usize| answers.evidence(&asked[at]).expect("evidence").cause.is_new;
        assert_eq!([0, 1, 2, 3].map(is_new), [true, true, false, false]);
    }

    #[test]
    fn lack_of_outcomes_is_named_only_where_it_decides() {
        let mut log = log_with_outages(6);
        log.add_held(7, 16_000);
        let (answers, _) = asked_answers(&log);
        let settings = TestConfig::load(&[]).advice;
        let lacks = |now, later| {
            let untaught = evidence(now, later).with(|one| one.learned.is_taught = false);
            let answer = answers.answer(&untaught, &settings);
            answers.lacks_outcomes(&answer, &untaught, &settings)
        };
        assert!(lacks(0.95, 0.9), "else a release");
        assert!(!lacks(0.6, 0.9), "a try in any case");
        assert!(!lacks(0.05, 0.2), "a permanent fault");
        let taught = evidence(0.95, 0.9);
        let answer = answers.answer(&taught, &settings);
        assert!(!answers.lacks_outcomes(&answer, &taught, &settings));
    }
}
