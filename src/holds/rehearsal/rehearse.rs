//! Asks about all held jobs at moments through a log.

use anyhow::Result;

use super::hold_truth::HoldTruth;
use crate::advice::{
    AnswerFirmness, HeldAnswer, HeldEvidence, HoldAction, held_answer, held_evidence,
};
use crate::answers::{
    AnswerCalibration, AnswerLimits, AnswerModel, CalibrationTrials, HeldOdds, HoldHistory,
    LearnedAnswers, SettledAnswer, SettledRecord, SettledRule,
};
use crate::config::AdviceConfig;
use crate::events::EventStore;

/// Share of the log's time before the first model. Earlier, too little is known.
const FIRST_SHARE: f64 = 0.3;
/// Number of moments at which each model is asked: when it has learned, and later, as by users of a
/// model that learns each night.
const MOMENTS_PER_MODEL: u32 = 3;

/// The moments and the settings of a rehearsal.
#[derive(Debug, Clone, Copy)]
pub struct RehearsalSettings<'a> {
    /// Number of models, which learn at times spread evenly over the last 70 % of the log.
    pub models: u32,
    /// Precisions of firm and of probable answers, and when to remove.
    pub advice: &'a AdviceConfig,
    /// Root seed.
    pub seed: u64,
}

/// An answer about one held job at one moment.
#[derive(Debug, Clone, Copy)]
pub struct RehearsedAnswer {
    /// Index of the moment.
    pub moment: u32,
    /// Time of the moment, epoch ms.
    pub asked_ms: i64,
    /// Odds that the model gave.
    pub odds: HeldOdds,
    /// The action.
    pub action: HoldAction,
    /// The certainty of the action.
    pub firmness: Option<AnswerFirmness>,
    /// Number of holds of the job so far, this one included.
    pub holds: u32,
    pub(crate) hold: usize,
    pub(crate) evidence: HeldEvidence,
    pub(crate) is_by_rule: bool,
}

/// The answers of a rehearsal, and what it leaves for the questions after the log.
#[derive(Debug)]
pub struct Rehearsal {
    /// All answers, by moment.
    pub answers: Vec<RehearsedAnswer>,
    /// The limits that all answers have earned by the end of the log.
    pub limits: AnswerLimits,
    /// The model that has learned from the whole log; `None` if no outcome is known.
    pub model: Option<AnswerModel>,
}

impl Rehearsal {
    /// Returns the model and the limits for questions after the log in `store`; `None` if nothing
    /// could be learned.
    pub fn answers_after(self, store: &EventStore) -> Option<LearnedAnswers> {
        Some(LearnedAnswers {
            model: self.model?,
            limits: self.limits,
            known_ms: store.summary.end_ms,
        })
    }
}

/// Replays `history` with `settings`. Calls `progress` after each model with its number, from 1.
///
/// # Errors
/// Fails once `stop` returns true, and if a model cannot be fitted.
pub fn rehearse(
    history: &HoldHistory<'_>,
    settings: &RehearsalSettings<'_>,
    stop: &(dyn Fn() -> bool + Sync),
    progress: impl Fn(u32),
) -> Result<Rehearsal> {
    let mut answers: Vec<RehearsedAnswer> = Vec::new();
    let mut trials = CalibrationTrials::default();
    for number in 0..settings.models {
        let first = number * MOMENTS_PER_MODEL;
        let known_ms = moment_ms(history, first, settings.models);
        let model = AnswerModel::learn(history, known_ms, settings.seed, stop)?;
        if let Some(mut model) = model {
            for moment in first..first + MOMENTS_PER_MODEL {
                let asked_ms = moment_ms(history, moment, settings.models);
                let settled = settled_record(history, &answers, asked_ms);
                model.calibration = trials.learn(moment, &settled.now);
                let asking = Asking {
                    history,
                    settings,
                    moment,
                    asked_ms,
                    limits: earned_limits(settled, &model.calibration, settings.advice),
                };
                answers.extend(asking.ask_all(&model)?);
            }
        }
        progress(number + 1);
    }

    let end_ms = history.store.summary.end_ms;
    let settled = settled_record(history, &answers, end_ms);
    let calibration = trials.learn(settings.models * MOMENTS_PER_MODEL, &settled.now);
    let limits = earned_limits(settled, &calibration, settings.advice);
    let mut model = AnswerModel::learn(history, end_ms, settings.seed, stop)?;
    if let Some(model) = &mut model {
        model.calibration = calibration;
    }
    Ok(Rehearsal {
        answers,
        limits,
        model,
    })
}

/// Returns the time of moment `moment` of a rehearsal with `models` models, epoch ms.
fn moment_ms(history: &HoldHistory<'_>, moment: u32, models: u32) -> i64 {
    let summary = &history.store.summary;
    let step = (1.0 - FIRST_SHARE) / f64::from(models * MOMENTS_PER_MODEL);
    let share = FIRST_SHARE + step * f64::from(moment);
    let span_ms = (summary.end_ms - summary.begin_ms) as f64;
    summary.begin_ms + (share * span_ms) as i64
}

/// Collects the `answers` whose outcomes were known at `known_ms`, with uncalibrated odds.
fn settled_record(
    history: &HoldHistory<'_>,
    answers: &[RehearsedAnswer],
    known_ms: i64,
) -> SettledRecord {
    let mut record = SettledRecord::default();
    for answer in answers {
        let hold = &history.holds[answer.hold];
        let truth = HoldTruth::known_at(history, hold, answer.asked_ms, known_ms);
        let settled = |probability, is_success| SettledAnswer {
            moment: answer.moment,
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
            record.rules.push(SettledRule {
                code: (hold.code, hold.subcode),
                is_right,
            });
            continue;
        }
        match answer.action {
            HoldAction::Fix | HoldAction::Remove => {
                record.later.push(settled(answer.odds.later, !is_right));
            }
            HoldAction::Later => record.later.push(settled(answer.odds.later, is_right)),
            HoldAction::Release | HoldAction::Probe | HoldAction::Leave | HoldAction::None => {}
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
        Ok(evidence
            .holds
            .iter()
            .map(|evidence| self.answer(evidence))
            .collect())
    }

    fn answer(&self, evidence: &HeldEvidence) -> RehearsedAnswer {
        let HeldAnswer {
            action,
            firmness,
            is_by_rule,
        } = held_answer(evidence, &self.limits, self.settings.advice);
        RehearsedAnswer {
            moment: self.moment,
            asked_ms: self.asked_ms,
            odds: evidence.odds,
            action,
            firmness,
            holds: self.history.holds[evidence.hold].cycle.earlier_holds + 1,
            hold: evidence.hold,
            evidence: *evidence,
            is_by_rule,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::test_log::{TestLog, log_with_outages};
    use crate::rehearsal::{RehearsalTally, SettledAnswers};
    use crate::test_config::TestConfig;

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
        let config = TestConfig::load(&[]).advice;
        let settings = RehearsalSettings {
            models: 6,
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
            let rehearsal = rehearse(&history, &settings, &|| false, |_| {}).expect("rehearsed");
            let settled = SettledAnswers::by_truth(&rehearsal, &history, |asked| {
                // Odd jobs use file 7, which is there in every second stretch of 1,000 s.
                let is_passing = asked.cluster % 2 == 1;
                let is_up = (asked.asked_ms / 1_000_000) % 2 == 1;
                Some(HoldTruth {
                    succeeds_now: Some(is_passing && is_up),
                    is_passing: Some(is_passing),
                })
            });
            let row = |answer: &RehearsedAnswer| (answer.moment, answer.action, answer.odds);
            (
                rehearsal.answers.iter().map(row).collect(),
                RehearsalTally::new(&settled),
            )
        })
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
        assert!(share(tally.kind_right) > 0.7, "{tally:?}");
        // Some moments are just after the server came back, when no outcome shows it yet.
        assert!(share(tally.advice.kept) > 0.4, "{tally:?}");
        assert!(share(tally.advice.wasted) < 0.2, "{tally:?}");
        assert_eq!(share(tally.release_all.kept), 1.0);
        assert_eq!(share(tally.release_all.wasted), 1.0);
    }

    #[test]
    fn stopped_rehearsal_is_an_error() {
        let store = log().store();
        let history = HoldHistory::new(&store);
        let config = TestConfig::load(&[]).advice;
        let settings = RehearsalSettings {
            models: 3,
            advice: &config,
            seed: 1,
        };
        assert!(rehearse(&history, &settings, &|| true, |_| {}).is_err());
    }
}
