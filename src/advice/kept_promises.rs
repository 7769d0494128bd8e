//! Lowers the firmness of answers whose kind turned out wrong more often than it promises.

use super::answer_check::{AnswerCheck, AnswerOutcomes};
use super::job_advice::JobAdvice;
use super::remedy::action_commands;
use poolcast_base::shared_text::SharedText;
use poolcast_holds::config::AdviceConfig;
use poolcast_holds::decision::{AnswerFirmness, HoldAction, answer_words};

/// Minimum number of settled answers of a kind that can contradict its promise.
const MIN_DECIDED: usize = 20;

/// A kind of answer that does not keep its promise.
struct BrokenPromise {
    action: HoldAction,
    promised: AnswerFirmness,
    kept: AnswerFirmness,
    decided: usize,
    right: usize,
}

/// Lowers the firmness of answers in `advice` whose kind was right less often than it promises, as
/// `check` shows on answers of the same model. Returns a sentence for each such kind.
pub fn lower_broken_promises(
    advice: &mut [JobAdvice],
    check: &AnswerCheck,
    settings: &AdviceConfig,
) -> Vec<String> {
    let rows = check.answers.iter();
    let mut broken: Vec<BrokenPromise> = rows
        .filter_map(|row| BrokenPromise::of_row(row, settings))
        .collect();
    // A firm answer does not become one that is called probable and is not.
    let is_probable = |promise: &&BrokenPromise| promise.promised == AnswerFirmness::Probable;
    let probable = broken.iter().filter(is_probable);
    let only_possible: Vec<HoldAction> = probable.map(|promise| promise.action).collect();
    for promise in &mut broken {
        if only_possible.contains(&promise.lowered_action()) {
            promise.kept = AnswerFirmness::Possible;
        }
    }

    let broken: Vec<(BrokenPromise, SharedText)> = broken
        .into_iter()
        .map(|promise| {
            let reason = SharedText::from(promise.words());
            (promise, reason)
        })
        .collect();
    for one in advice {
        let is_of = |(promise, _): &&(BrokenPromise, SharedText)| {
            one.verdict.action == promise.action && one.verdict.firmness == Some(promise.promised)
        };
        if let Some((promise, reason)) = broken.iter().find(is_of) {
            promise.lower(one, reason);
        }
    }
    broken.iter().map(|(promise, _)| promise.caveat()).collect()
}

impl BrokenPromise {
    /// Returns the promise of the kind in `row` if even the upper end of the interval of its right
    /// answers is below it.
    fn of_row(row: &AnswerOutcomes, settings: &AdviceConfig) -> Option<BrokenPromise> {
        let (promised, right) = row.firmness.zip(row.right)?;
        let (_, upper) = row.interval.filter(|_| row.decided >= MIN_DECIDED)?;
        let kept = AnswerFirmness::earned(upper, settings);
        (kept > promised).then_some(BrokenPromise {
            action: row.action,
            promised,
            kept,
            decided: row.decided,
            right,
        })
    }

    /// Returns the action of a lowered answer. A removal cannot be undone, so it must be firm.
    fn lowered_action(&self) -> HoldAction {
        match self.action {
            HoldAction::Remove => HoldAction::Fix,
            action => action,
        }
    }

    /// Lowers one answer.
    fn lower(&self, one: &mut JobAdvice, reason: &SharedText) {
        let job = one.held_id();
        let verdict = &mut one.verdict;
        verdict.firmness = Some(self.kept);
        verdict.evidence = None;
        verdict.reasons = (verdict.reasons.iter().chain([reason])).cloned().collect();
        if verdict.action == HoldAction::Remove {
            (verdict.command, verdict.then) = action_commands(HoldAction::Fix, &job);
        }
        verdict.action = self.lowered_action();
    }

    /// Describes the record of the kind.
    fn words(&self) -> String {
        format!(
            "{} was right in only {} of {} cases since the model was learned",
            answer_words(self.action, Some(self.promised)),
            self.right,
            self.decided
        )
    }

    /// Describes the consequence on a page.
    fn caveat(&self) -> String {
        format!(
            "{}: such answers are called {} until `poolcast learn` learns again",
            self.words(),
            answer_words(self.lowered_action(), Some(self.kept))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer_check::CheckedAnswers;
    use super::super::answer_ledger::GivenAnswer;
    use super::*;
    use crate::test_config::default_settings;
    use test_stores::TestLog;

    use AnswerFirmness::{Firm, Possible, Probable};

    /// An action, its firmness, and the numbers of jobs that succeeded and that failed.
    type Record = (HoldAction, AnswerFirmness, usize, usize);

    /// Lowers one answer with the action and firmness of the first record; returns what it became,
    /// and the sentences.
    fn lowered(records: &[Record]) -> (JobAdvice, Vec<String>) {
        let mut log = TestLog::default();
        let mut given = Vec::new();
        for &(action, firmness, successes, failures) in records {
            for at in 0..successes + failures {
                let cluster = log.add_released(7, 100, 200, at < successes);
                given.push(GivenAnswer {
                    firmness: Some(firmness),
                    ..GivenAnswer::of_test_job(cluster, 100, action)
                });
            }
        }
        let check = CheckedAnswers::new(&given, &log.store()).check();
        let (action, firmness, ..) = records[0];
        let mut advice = [JobAdvice::of_test_job().with(|one| {
            one.verdict.action = action;
            one.verdict.firmness = Some(firmness);
        })];
        let caveats = lower_broken_promises(&mut advice, &check, &default_settings());
        let [advice] = advice;
        (advice, caveats)
    }

    fn answer(records: &[Record]) -> (HoldAction, Option<AnswerFirmness>) {
        let (advice, _) = lowered(records);
        (advice.verdict.action, advice.verdict.firmness)
    }

    #[test]
    fn kinds_that_are_wrong_too_often_are_lowered() {
        let release =
            |firmness, wrong, right| answer(&[(HoldAction::Release, firmness, right, wrong)]);
        assert_eq!(release(Firm, 2, 28), (HoldAction::Release, Some(Firm)));
        // The upper end of the interval of 24 of 30 is 90.5 %, and of 23 of 30, 88.2 %.
        assert_eq!(release(Firm, 6, 24).1, Some(Firm));
        assert_eq!(release(Firm, 7, 23).1, Some(Probable));
        assert_eq!(release(Firm, 20, 10).1, Some(Possible));
        assert_eq!(release(Probable, 7, 23).1, Some(Probable));
        assert_eq!(release(Probable, 20, 10).1, Some(Possible));
        assert_eq!(release(Possible, 30, 0).1, Some(Possible));
    }

    #[test]
    fn who_does_what_fix_asks_for_lowers_nothing() {
        assert_eq!(answer(&[(HoldAction::Fix, Firm, 30, 0)]).1, Some(Firm));
        assert_eq!(answer(&[(HoldAction::Fix, Firm, 29, 1)]).1, Some(Firm));
    }

    #[test]
    fn few_answers_contradict_nothing() {
        let failed = |count| answer(&[(HoldAction::Release, Firm, 0, count)]).1;
        assert_eq!(failed(19), Some(Firm));
        assert_eq!(failed(20), Some(Possible));
    }

    #[test]
    fn other_kinds_do_not_matter() {
        let other = (HoldAction::Remove, Firm, 30, 0);
        let kept = (HoldAction::Release, Firm, 30, 0);
        assert_eq!(answer(&[kept, other]).1, Some(Firm));
        assert_eq!(answer(&[other]), (HoldAction::Fix, Some(Possible)));
        let probable = (HoldAction::Release, Probable, 0, 30);
        let firm = (HoldAction::Release, Firm, 23, 7);
        assert_eq!(answer(&[firm, probable]).1, Some(Possible));
        assert_eq!(answer(&[kept, probable]).1, Some(Firm));
    }

    #[test]
    fn lowered_removal_is_a_repair() {
        let (advice, caveats) = lowered(&[(HoldAction::Remove, Firm, 7, 23)]);
        assert_eq!(
            (advice.verdict.action, advice.verdict.firmness),
            (HoldAction::Fix, Some(Probable))
        );
        let command = advice.verdict.command.expect("to look").to_string();
        assert_eq!(command, "condor_q -hold 12.0");
        assert!(
            advice
                .verdict
                .then
                .expect("to release")
                .to_string()
                .starts_with("condor_release")
        );
        assert!(
            advice.verdict.evidence.is_none(),
            "it is about firm answers"
        );
        let said = "REMOVE was right in only 23 of 30 cases since the model was learned";
        assert_eq!(
            advice.verdict.reasons.last().map(SharedText::as_str),
            Some(said)
        );
        assert_eq!(
            caveats,
            [format!(
                "{said}: such answers are called PROBABLY FIX, THEN RELEASE until `poolcast learn` learns again"
            )]
        );
    }
}
