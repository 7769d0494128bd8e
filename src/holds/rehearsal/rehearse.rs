//! Asks about all held jobs at moments through a log.

use std::collections::HashMap;

use anyhow::Result;

use super::known_outcome::KnownOutcome;
use super::member_tally::MemberCases;
use super::rehearsal_dir::RehearsalDir;
use super::rehearsed_answer::RehearsedAnswer;
use super::schedule::{RehearsalSettings, ScheduledModel};
use crate::answers::{
    AnswerCalibration, AnswerLimits, AnswerModel, CalibrationTrials, HoldHistory, LearnedAnswers,
    MemberOdds, SettledAnswer, SettledRecord, SettledRelease, SettledRule, label_later,
};
use crate::config::AdviceConfig;
use crate::decision::{
    HeldAnswer, HeldEvidence, HoldAction, ProbeCause, held_answer, held_evidence, hold_cause,
};

/// The answers of a rehearsal.
#[derive(Debug, Default)]
pub struct Rehearsal {
    /// All answers, by moment.
    pub answers: Vec<RehearsedAnswer>,
    trials: CalibrationTrials,
    /// Number of moments.
    moments: u32,
}

/// Replays `history` with `settings`. Models whose answers are in `kept` are not asked again, and
/// the answers of the others are kept there. Calls `progress` after each model with the number of
/// models so far.
///
/// # Errors
/// Fails once `stop` returns true, if a model cannot be fitted, and if the times do not suit the log.
pub fn rehearse(
    history: &HoldHistory<'_>,
    settings: &RehearsalSettings<'_>,
    kept: Option<&RehearsalDir>,
    stop: &(dyn Fn() -> bool + Sync),
    progress: impl Fn(usize),
) -> Result<Rehearsal> {
    let mut rehearsal = Rehearsal::default();
    for (number, scheduled) in settings.times.schedule(history)?.iter().enumerate() {
        let read = kept.map(|kept| kept.read(number, scheduled, history));
        match read.transpose()?.flatten() {
            Some(answers) => rehearsal.add_kept(history, scheduled, &answers),
            None => {
                let before = rehearsal.answers.len();
                rehearsal.ask_model(history, settings, scheduled, stop)?;
                if let Some(kept) = kept {
                    kept.keep(number, &rehearsal.answers[before..])?;
                }
            }
        }
        progress(number + 1);
    }
    Ok(rehearsal)
}

impl Rehearsal {
    /// Learns from the whole log, for questions after it; returns `None` if nothing could be
    /// learned.
    ///
    /// # Errors
    /// Fails once `stop` returns true, and if the model cannot be fitted.
    pub fn learn_answers(
        mut self,
        history: &HoldHistory<'_>,
        settings: &RehearsalSettings<'_>,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<LearnedAnswers>> {
        let end_ms = history.store.summary.end_ms;
        let settled = settled_record(history, &self.answers, end_ms);
        let calibration = self.trials.learn(self.moments, &settled.now);
        let limits = earned_limits(settled, &calibration, settings.advice);
        let answering = self.answering(history, settings, end_ms);
        let mut model = learn_model(history, end_ms, settings, stop)?;
        if let Some(model) = &mut model {
            model.calibration = calibration;
            model.set_answering(answering);
        }
        Ok(model.map(|model| LearnedAnswers {
            model,
            limits,
            known_ms: end_ms,
        }))
    }

    /// Learns the model in `scheduled`, and asks it.
    fn ask_model(
        &mut self,
        history: &HoldHistory<'_>,
        settings: &RehearsalSettings<'_>,
        scheduled: &ScheduledModel,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        let model = learn_model(history, scheduled.known_ms, settings, stop)?;
        if let Some(mut model) = model {
            model.set_answering(self.answering(history, settings, scheduled.known_ms));
            for (moment, asked_ms) in scheduled.moments() {
                let settled = settled_record(history, &self.answers, asked_ms);
                model.calibration = self.trials.learn(moment, &settled.now);
                let asking = Asking {
                    history,
                    settings,
                    moment,
                    asked_ms,
                    limits: earned_limits(settled, &model.calibration, settings.advice),
                };
                self.answers.extend(asking.ask_all(&model)?);
            }
        }
        self.moments += scheduled.asked_ms.len() as u32;
        Ok(())
    }

    /// Returns the members that answer by what the answers so far have shown at `known_ms`.
    fn answering(
        &self,
        history: &HoldHistory<'_>,
        settings: &RehearsalSettings<'_>,
        known_ms: i64,
    ) -> Vec<usize> {
        let count = settings.advice.members.len();
        let with_members = self
            .answers
            .iter()
            .filter(|answer| !answer.members.is_empty());
        let settled = with_members.map(|answer| {
            let hold = &history.holds[answer.hold];
            let truth = KnownOutcome::known_at(history, hold, answer.asked_ms, known_ms);
            (answer, truth)
        });
        MemberCases::new(count, settled).answering(settings.seed)
    }

    /// Adds the `answers` that the model in `scheduled` gave in an earlier call, and learns from them
    /// what that call had learned.
    fn add_kept(
        &mut self,
        history: &HoldHistory<'_>,
        scheduled: &ScheduledModel,
        answers: &[RehearsedAnswer],
    ) {
        for (moment, asked_ms) in scheduled.moments() {
            let settled = settled_record(history, &self.answers, asked_ms);
            self.trials.learn(moment, &settled.now);
            let of_moment = answers.iter().filter(|answer| answer.moment == moment);
            self.answers.extend(of_moment.cloned());
        }
        self.moments += scheduled.asked_ms.len() as u32;
    }
}

/// Learns from what was known at `known_ms`; returns `None` if nothing could be learned.
fn learn_model(
    history: &HoldHistory<'_>,
    known_ms: i64,
    settings: &RehearsalSettings<'_>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<AnswerModel>> {
    AnswerModel::learn(history, known_ms, settings.advice, settings.seed, stop)
}

/// Collects the `answers` whose outcomes were known at `known_ms`, with uncalibrated odds.
fn settled_record(
    history: &HoldHistory<'_>,
    answers: &[RehearsedAnswer],
    known_ms: i64,
) -> SettledRecord {
    let mut record = SettledRecord::default();
    let mut causes: HashMap<ProbeCause, u32> = HashMap::new();
    for answer in answers {
        let hold = &history.holds[answer.hold];
        let next_cause = causes.len() as u32;
        let cause = *causes.entry(hold_cause(hold)).or_insert(next_cause);
        let truth = KnownOutcome::known_at(history, hold, answer.asked_ms, known_ms);
        let settled = |probability, is_success| SettledAnswer {
            moment: answer.moment,
            cause,
            cluster: history.store.jobs().cluster(hold.job as usize),
            probability,
            is_success,
        };
        let now = truth.succeeds_now;
        let now = now.map(|is_success| settled(answer.odds.uncalibrated, is_success));
        record.now.extend(now);

        let Some(is_right) = truth.is_right(answer.action) else {
            continue;
        };
        if answer.is_by_rule {
            let is_unrepaired = || {
                let label = label_later(history, hold, known_ms);
                label.is_some_and(|label| label.is_unrepaired())
            };
            if is_right || is_unrepaired() {
                record.rules.push(SettledRule {
                    key: answer.rule_key,
                    agreed: answer.agrees_with_rule,
                    is_right,
                });
            }
            continue;
        }
        match answer.action {
            HoldAction::Fix | HoldAction::Remove => {
                record.later.push(settled(answer.odds.later, !is_right));
            }
            HoldAction::Later => record.later.push(settled(answer.odds.later, is_right)),
            HoldAction::Release => {
                let release = answer.recovery.map(|key| SettledRelease {
                    key,
                    is_success: is_right,
                });
                record.recovered.extend(release);
            }
            HoldAction::Probe | HoldAction::Leave | HoldAction::None => {}
        }
    }
    record
}

/// Returns the limits that the answers in `settled` have earned, for calibrated odds.
fn earned_limits(
    mut settled: SettledRecord,
    calibration: &AnswerCalibration,
    advice: &AdviceConfig,
) -> AnswerLimits {
    for answer in &mut settled.now {
        answer.probability = calibration.probability(answer.probability);
    }
    AnswerLimits::find(&settled, advice.precision, advice.probable_precision)
}

/// One moment at which all held jobs are asked about.
struct Asking<'a> {
    history: &'a HoldHistory<'a>,
    settings: &'a RehearsalSettings<'a>,
    moment: u32,
    asked_ms: i64,
    limits: AnswerLimits,
}

impl Asking<'_> {
    fn ask_all(&self, model: &AnswerModel) -> Result<Vec<RehearsedAnswer>> {
        let held = self.history.held_at(self.asked_ms);
        let evidence = held_evidence(self.history, model, &held, self.asked_ms)?;
        let members = model.odds_of_members(self.history, &held, self.asked_ms)?;
        let mut causes = HashMap::new();
        let answer = |(evidence, members): (&HeldEvidence, Vec<MemberOdds>)| {
            let first = *causes
                .entry(evidence.cause.key)
                .or_insert(evidence.hold.index);
            self.answer(evidence, members, first)
        };
        Ok(evidence.holds.iter().zip(members).map(answer).collect())
    }

    fn answer(
        &self,
        evidence: &HeldEvidence,
        members: Vec<MemberOdds>,
        first_of_cause: usize,
    ) -> RehearsedAnswer {
        let HeldAnswer {
            action,
            firmness,
            is_by_rule,
            recovery,
            ..
        } = held_answer(evidence, &self.limits, self.settings.advice);
        RehearsedAnswer {
            moment: self.moment,
            asked_ms: self.asked_ms,
            odds: evidence.learned.odds,
            members,
            stated: evidence.stated_probability(),
            action,
            firmness,
            holds: self.history.holds[evidence.hold.index].cycle.earlier_holds + 1,
            hold: evidence.hold.index,
            first_of_cause,
            held_for_cause: evidence.cause.held,
            is_probe: evidence.cause.is_probe,
            rule_key: evidence.hold.rule_key,
            rule: evidence.hold.rule.map(|rule| rule.action),
            is_by_rule,
            agrees_with_rule: evidence.agrees_with_rule(),
            recovery,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::answers::HeldOdds;
    use crate::rehearsal::rehearsed_answer::test_answer;
    use crate::rehearsal::{RehearsalTally, RehearsalTimes, SettledAnswers};
    use crate::test_config::TestConfig;
    use test_stores::{TestLog, log_with_outages};

    /// Returns a log with outages, and jobs that nobody releases.
    fn log() -> TestLog {
        let mut log = log_with_outages(12);
        for at in 0..60 {
            log.add_held(7, 10_050 + 190 * at);
            log.add_held(9, 10_070 + 190 * at);
        }
        log
    }

    fn rehearsed(
        log: &TestLog,
        threads: usize,
    ) -> (Vec<(u32, HoldAction, HeldOdds)>, RehearsalTally) {
        let config = TestConfig::without_prior();
        let settings = RehearsalSettings {
            times: RehearsalTimes::Models(6),
            advice: &config,
            seed: 1,
        };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("a pool");
        pool.install(|| {
            let store = log.store();
            let history = HoldHistory::new(&store);
            let rehearsal =
                rehearse(&history, &settings, None, &|| false, |_| {}).expect("rehearsed");
            let settled = SettledAnswers::by_truth(&rehearsal.answers, &history, |asked| {
                // Odd jobs use file 7, which is there in every second stretch of 1,000 s.
                let is_passing = asked.cluster % 2 == 1;
                let is_up = (asked.asked_ms / 1_000_000) % 2 == 1;
                Some(KnownOutcome {
                    succeeds_now: Some(is_passing && is_up),
                    is_passing: Some(is_passing),
                    ..KnownOutcome::default()
                })
            });
            let row = |answer: &RehearsedAnswer| (answer.moment, answer.action, answer.odds);
            (
                rehearsal.answers.iter().map(row).collect(),
                RehearsalTally::new(&settled),
            )
        })
    }

    /// Returns how many FIX that were given before `log` released its first job count as right and as wrong, by a
    /// rule or by the odds.
    fn settled_fixes(log: &TestLog, is_by_rule: bool) -> (usize, usize) {
        let store = log.store();
        let history = HoldHistory::new(&store);
        let answer = RehearsedAnswer {
            is_by_rule,
            ..test_answer(HoldAction::Fix, None)
        };
        let settled = settled_record(&history, &[answer], 1_000_000);
        let by_rule = settled.rules.iter().map(|rule| rule.is_right);
        let by_odds = settled.later.iter().map(|answer| !answer.is_success);
        let (right, wrong): (Vec<bool>, Vec<bool>) =
            by_rule.chain(by_odds).partition(|right| *right);
        (right.len(), wrong.len())
    }

    #[test]
    fn only_a_success_after_a_release_by_a_policy_shows_that_fix_was_wrong() {
        for is_by_rule in [true, false] {
            let mut log = TestLog::default();
            log.add_released(7, 1, 150, true);
            assert_eq!(settled_fixes(&log, is_by_rule), (0, 1));
            log.release_last_job_by_hand();
            let repaired = settled_fixes(&log, is_by_rule);
            assert_eq!(repaired, (0, 0), "perhaps it was repaired");

            let mut log = TestLog::default();
            log.add_released(7, 1, 150, false);
            log.release_last_job_by_hand();
            assert_eq!(settled_fixes(&log, is_by_rule), (1, 0));
        }
    }

    #[test]
    fn answers_do_not_depend_on_threads() {
        let log = log();
        assert_eq!(rehearsed(&log, 1).0, rehearsed(&log, 3).0);
    }

    #[test]
    fn answers_do_not_depend_on_what_comes_later() {
        let mut log = log();
        let (before, _) = rehearsed(&log, 2);
        let store = log.store();
        let (begin_ms, end_ms) = (store.summary.begin_ms, store.summary.end_ms);
        // The moments depend on the end of the log alone, which stays.
        let from_s = (begin_ms + (end_ms - begin_ms) * 9 / 10) / 1000;
        for at in 0..40 {
            log.add_released(9, from_s + 10 * at, from_s + 5 + 10 * at, true);
        }
        let (after, _) = rehearsed(&log, 2);
        let is_early = |row: &&(u32, HoldAction, HeldOdds)| row.0 < 15;
        assert!(
            before
                .iter()
                .filter(is_early)
                .eq(after.iter().filter(is_early))
        );
        assert!(before.iter().filter(is_early).count() > 50);
    }

    #[test]
    fn most_successes_are_kept_and_few_runs_are_wasted() {
        let (_, tally) = rehearsed(&log(), 2);
        let share = |of: crate::rehearsal::Proportion| of.share().expect("cases");
        assert!(share(tally.advice.kind_right) > 0.7, "{tally:?}");
        // Some moments are just after the server came back, when no outcome shows it yet.
        assert!(share(tally.advice.kept) > 0.4, "{tally:?}");
        assert!(share(tally.advice.wasted) < 0.2, "{tally:?}");
        assert_eq!(share(tally.release_all.kept), 1.0);
        assert_eq!(share(tally.release_all.wasted), 1.0);
        let best = tally.best_possible;
        assert_eq!((share(best.kept), share(best.wasted)), (1.0, 0.0));
        assert_eq!(share(best.kind_right), 1.0);
        assert_eq!(best.kept.of, tally.advice.kept.of);
        let passing = share(tally.release_all.kind_right);
        assert!(passing > 0.0 && passing < share(tally.advice.kind_right));
    }

    #[test]
    fn stopped_rehearsal_goes_on_with_the_same_answers() {
        let store = log().store();
        let history = HoldHistory::new(&store);
        let config = TestConfig::without_prior();
        let settings = RehearsalSettings {
            times: RehearsalTimes::Models(4),
            advice: &config,
            seed: 1,
        };
        let whole = rehearse(&history, &settings, None, &|| false, |_| {}).expect("rehearsed");

        let place = tempfile::tempdir().expect("a directory");
        let dir = place.path().join("out");
        let done = AtomicUsize::new(0);
        let is_stopped = || done.load(Ordering::Relaxed) == 2;
        {
            let kept = RehearsalDir::open(&dir, &store, &settings, false).expect("new");
            let count = |models| done.store(models, Ordering::Relaxed);
            let stopped = rehearse(&history, &settings, Some(&kept), &is_stopped, count);
            assert!(stopped.is_err());
        }
        let resumed = {
            let kept = RehearsalDir::open(&dir, &store, &settings, false).expect("the same");
            assert_eq!(kept.kept_models(4), 2);
            rehearse(&history, &settings, Some(&kept), &|| false, |_| {}).expect("rehearsed")
        };
        assert_eq!(resumed.answers, whole.answers);
        let learn = |rehearsal: Rehearsal| {
            let learned = rehearsal.learn_answers(&history, &settings, &|| false);
            learned.expect("learned").expect("outcomes")
        };
        assert_eq!(learn(resumed), learn(whole));

        let other = RehearsalSettings {
            seed: 2,
            ..settings
        };
        assert!(RehearsalDir::open(&dir, &store, &other, false).is_err());
        let kept = RehearsalDir::open(&dir, &store, &other, true).expect("replaced");
        assert_eq!(kept.kept_models(4), 0);
    }

    #[test]
    fn damaged_answers_are_an_error() {
        let store = log().store();
        let history = HoldHistory::new(&store);
        let config = TestConfig::without_prior();
        let settings = RehearsalSettings {
            times: RehearsalTimes::Models(1),
            advice: &config,
            seed: 1,
        };
        let place = tempfile::tempdir().expect("a directory");
        let kept = RehearsalDir::open(place.path(), &store, &settings, false).expect("new");
        let rehearsed = || rehearse(&history, &settings, Some(&kept), &|| false, |_| {});
        let answers = rehearsed().expect("rehearsed").answers;
        let mut beyond = answers[0].clone();
        beyond.hold = history.holds.len();
        kept.keep(0, &[beyond]).expect("kept");
        assert!(rehearsed().is_err());
    }

    #[test]
    fn stopped_rehearsal_is_an_error() {
        let store = log().store();
        let history = HoldHistory::new(&store);
        let config = TestConfig::without_prior();
        let settings = RehearsalSettings {
            times: RehearsalTimes::Models(3),
            advice: &config,
            seed: 1,
        };
        assert!(rehearse(&history, &settings, None, &|| true, |_| {}).is_err());
    }
}
