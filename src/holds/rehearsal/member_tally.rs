//! The members of the answers on the settled questions of a rehearsal: how good each one is, and whether it helps
//! beside the base.

use serde::{Deserialize, Serialize};

use super::known_outcome::KnownOutcome;
use super::rehearsed_answer::RehearsedAnswer;
use super::schedule::RehearsalSettings;
use super::settled::SettledAnswers;
use crate::answers::{MIN_MOMENTS, MemberOdds, log_loss};
use poolcast_base::stats::{SampleGroups, mean, percentile_interval, roc_auc};

/// Number of bootstrap resamples of an interval.
const RESAMPLES: usize = 1_000;

/// Scores of the odds for one question, before the calibration.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct QuestionScores {
    /// Number of questions with a known outcome.
    pub settled: usize,
    /// Mean logarithmic loss; `None` without outcomes.
    pub log_loss: Option<f64>,
    /// ROC-AUC; `None` without outcomes of both kinds.
    pub roc_auc: Option<f64>,
}

impl QuestionScores {
    /// Scores `odds` of releases with these known outcomes.
    pub(super) fn compute(odds: &[f64], successes: &[bool]) -> QuestionScores {
        let losses = odds.iter().zip(successes);
        let losses: Vec<f64> = losses.map(|(p, success)| log_loss(*p, *success)).collect();
        QuestionScores {
            settled: losses.len(),
            log_loss: (!losses.is_empty()).then(|| mean(&losses)),
            roc_auc: roc_auc(odds, successes),
        }
    }
}

/// A change of the logarithmic loss, summed over the questions with outcomes of both kinds, with a 95 % interval: where
/// all outcomes are equal, the loss rewards certainty alone. Moments are drawn for the interval, because the answers of
/// one moment share what happened.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LossChange {
    /// The change; negative if the member helps.
    pub change: f64,
    /// Lower bound of its 95 % interval.
    pub lower: f64,
    /// Upper bound of the interval.
    pub upper: f64,
}

/// One member alone, or all of them together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberTally {
    /// The names of the pipelines and networks.
    pub members: Vec<String>,
    /// Scores of the odds for a release now, before the calibration.
    pub now: QuestionScores,
    /// Scores for a release later. A success after a release by hand is not a known outcome.
    pub later: QuestionScores,
    /// Change of the base's logarithmic loss if this member is added to it, summed over the
    /// questions with outcomes of both kinds; `None` for the base and for all, and after too few
    /// moments.
    pub change: Option<LossChange>,
    /// True if the member answers by these scores.
    pub answers: bool,
}

impl MemberTally {
    /// Scores each member alone and all together on `settled` answers; nothing if the base is the only one.
    pub(super) fn of_rehearsal(
        settled: &SettledAnswers<'_>,
        settings: &RehearsalSettings<'_>,
    ) -> Vec<MemberTally> {
        let names: Vec<String> = (settings.advice.members.iter())
            .map(|member| member.name().to_owned())
            .collect();
        if names.len() < 2 {
            return Vec::new();
        }
        let cases = MemberCases::new(names.len(), settled.answers.iter().copied());
        let answering = cases.answering(settings.seed);
        let alone = names.iter().enumerate().map(|(index, name)| {
            let [now, later] = cases.scores(&[index]);
            MemberTally {
                members: vec![name.clone()],
                now,
                later,
                change: cases.change(index, settings.seed),
                answers: answering.contains(&index),
            }
        });
        let mut tallies: Vec<MemberTally> = alone.collect();
        let all: Vec<usize> = (0..names.len()).collect();
        let [now, later] = cases.scores(&all);
        tallies.push(MemberTally {
            members: names,
            now,
            later,
            change: None,
            answers: answering == all,
        });
        tallies
    }
}

/// Answers with the odds of every member, and what is known about them.
pub(super) struct MemberCases<'a> {
    /// Number of members.
    count: usize,
    cases: Vec<(&'a RehearsedAnswer, KnownOutcome)>,
}

impl<'a> MemberCases<'a> {
    /// Collects the `settled` answers for which all `count` members have odds.
    pub(super) fn new(
        count: usize,
        settled: impl Iterator<Item = (&'a RehearsedAnswer, KnownOutcome)>,
    ) -> MemberCases<'a> {
        let cases = settled.filter(|(answer, _)| answer.members.len() == count);
        MemberCases {
            count,
            cases: cases.collect(),
        }
    }

    /// Returns the indices of the members that answer: the base, and each one that lowers its loss.
    pub(super) fn answering(&self, seed: u64) -> Vec<usize> {
        let helps = |&index: &usize| {
            let change = self.change(index, seed);
            change.is_some_and(|change| change.upper < 0.0)
        };
        let added = (1..self.count).filter(helps);
        std::iter::once(0).chain(added).collect()
    }

    /// Returns the change of the base's loss if the member `added` is added to it.
    fn change(&self, added: usize, seed: u64) -> Option<LossChange> {
        if added == 0 {
            return None;
        }
        let moments: Vec<u32> = self.cases.iter().map(|(answer, _)| answer.moment).collect();
        let groups = SampleGroups::new(&moments);
        if groups.count() < MIN_MOMENTS {
            return None;
        }
        let of_moment = |group| self.changes_of(groups.samples(group), added);
        let changes: Vec<[LossSum; 2]> = (0..groups.count()).map(of_moment).collect();
        let scored = self.scores(&[0]).map(|scores| scores.roc_auc.is_some());
        let all: Vec<usize> = (0..groups.count()).collect();
        let change = sum_of(&changes, scored, &all)?;

        let resampled = (0..RESAMPLES).filter_map(|resample| {
            let drawn = groups.draw_groups(seed, "members", resample);
            sum_of(&changes, scored, &drawn)
        });
        let (lower, upper) = percentile_interval(resampled.collect(), RESAMPLES)?;
        Some(LossChange {
            change,
            lower,
            upper,
        })
    }

    /// Sums the changes of the loss over `cases`, for each question.
    fn changes_of(&self, cases: &[usize], added: usize) -> [LossSum; 2] {
        let mut sums = [LossSum::default(); 2];
        for &case in cases {
            let (answer, truth) = &self.cases[case];
            let base = odds_for(&answer.members, &[0]);
            let both = odds_for(&answer.members, &[0, added]);
            let questions = base.into_iter().zip(both).zip(outcomes(truth));
            for (sum, ((base, both), outcome)) in sums.iter_mut().zip(questions) {
                if let Some(is_success) = outcome {
                    sum.change += log_loss(both, is_success) - log_loss(base, is_success);
                    sum.settled += 1;
                }
            }
        }
        sums
    }

    /// Returns the scores of `members` together, for each question.
    fn scores(&self, members: &[usize]) -> [QuestionScores; 2] {
        [0, 1].map(|question| {
            let mut odds = Vec::new();
            let mut successes = Vec::new();
            for (answer, truth) in &self.cases {
                if let Some(is_success) = outcomes(truth)[question] {
                    odds.push(odds_for(&answer.members, members)[question]);
                    successes.push(is_success);
                }
            }
            QuestionScores::compute(&odds, &successes)
        })
    }
}

/// The change of a loss, summed over the questions with a known outcome.
#[derive(Clone, Copy, Default)]
struct LossSum {
    change: f64,
    settled: usize,
}

/// Returns the mean changes over the `drawn` moments, summed over the `scored` questions; `None` if there is no such
/// question, or none with an outcome.
fn sum_of(changes: &[[LossSum; 2]], scored: [bool; 2], drawn: &[usize]) -> Option<f64> {
    let mean_change = |question: usize| {
        let sums = drawn.iter().map(|&moment| changes[moment][question]);
        let settled: usize = sums.clone().map(|sum| sum.settled).sum();
        let change: f64 = sums.map(|sum| sum.change).sum();
        (settled > 0).then(|| change / settled as f64)
    };
    let questions = (0..2).filter(|&question| scored[question]);
    let means: Option<Vec<f64>> = questions.map(mean_change).collect();
    means
        .filter(|means| !means.is_empty())
        .map(|means| means.iter().sum())
}

/// Returns the odds of `members` together, now and later.
fn odds_for(all: &[MemberOdds], members: &[usize]) -> [f64; 2] {
    let MemberOdds { now, later } = MemberOdds::mean(members.iter().map(|&member| &all[member]));
    [now, later]
}

/// Returns the outcomes of a release now and later, unrepaired.
pub(super) fn outcomes(truth: &KnownOutcome) -> [Option<bool>; 2] {
    let later = truth.is_passing.filter(|_| !truth.is_perhaps_repaired);
    [truth.succeeds_now, later]
}

#[cfg(test)]
mod tests {
    use super::super::rehearsed_answer::test_answer;
    use super::*;
    use crate::decision::HoldAction;

    /// Returns ten answers at each of `moments`, and every second one succeeds. The base says 0.5, the first added
    /// member is right with a probability of 0.8, and the second is wrong with it.
    fn answers(moments: u32) -> Vec<(RehearsedAnswer, KnownOutcome)> {
        let answer = |at: u32| {
            let is_success = at.is_multiple_of(2);
            let right = if is_success { 0.8 } else { 0.2 };
            let odds = [0.5, right, 1.0 - right].map(|p| MemberOdds { now: p, later: p });
            let answer = RehearsedAnswer {
                moment: at / 10,
                members: odds.to_vec(),
                ..test_answer(HoldAction::Fix, None)
            };
            let truth = KnownOutcome {
                succeeds_now: Some(is_success),
                is_passing: Some(is_success),
                is_perhaps_repaired: false,
            };
            (answer, truth)
        };
        (0..10 * moments).map(answer).collect()
    }

    fn cases(answers: &[(RehearsedAnswer, KnownOutcome)]) -> MemberCases<'_> {
        MemberCases::new(3, answers.iter().map(|(answer, truth)| (answer, *truth)))
    }

    #[test]
    fn member_is_added_if_it_lowers_the_loss() {
        let answers = answers(8);
        let cases = cases(&answers);
        assert_eq!(cases.answering(1), [0, 1]);
        let change = cases.change(1, 1).expect("known");
        assert!(change.lower <= change.change && change.change <= change.upper);
        assert!(cases.change(2, 1).expect("known").lower > 0.0);
        let [now, later] = cases.scores(&[1]);
        assert_eq!((now, now.settled, now.roc_auc), (later, 80, Some(1.0)));
    }

    #[test]
    fn outcomes_of_one_kind_add_no_member() {
        let mut answers = answers(8);
        answers.retain(|(_, truth)| truth.succeeds_now == Some(true));
        let cases = cases(&answers);
        assert_eq!((cases.change(1, 1), cases.answering(1)), (None, vec![0]));
    }

    #[test]
    fn base_answers_alone_after_few_moments() {
        assert_eq!(cases(&answers(5)).answering(1), [0]);
        assert_eq!(cases(&[]).answering(1), [0]);
        assert_eq!(cases(&[]).scores(&[0, 1]), [QuestionScores::default(); 2]);
    }
}
