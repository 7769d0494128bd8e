//! The settings of a rehearsal, and the times at which its models learn and are asked.

use anyhow::{Result, ensure};
use serde::Serialize;

use crate::answers::HoldHistory;
use crate::config::AdviceConfig;
use poolcast_base::error::hinted;

/// Share of the log's time before the first model. Earlier, too little is known.
const FIRST_SHARE: f64 = 0.3;
/// Number of moments with questions to each model: when it has learned, and later, as by users of a
/// model that learns each night.
const MOMENTS_PER_MODEL: u32 = 3;
/// Maximum number of moments.
const MAX_MOMENTS: i64 = 10_000;

/// The moments and the settings of a rehearsal.
#[derive(Debug, Clone, Copy)]
pub struct RehearsalSettings<'a> {
    /// The times at which models learn and are asked.
    pub times: RehearsalTimes,
    /// Precisions of firm and of probable answers, and when to remove.
    pub advice: &'a AdviceConfig,
    /// Root seed.
    pub seed: u64,
}

/// The times at which models learn and are asked, from 30 % of the log's time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RehearsalTimes {
    /// The number of models, which learn at times spread evenly over the rest of the log. Each is
    /// asked at three moments.
    Models(u32),
    /// Fixed intervals: the latest model answers.
    Every {
        /// Time between two models, in ms.
        learn_ms: i64,
        /// Time between two moments, in ms.
        ask_ms: i64,
    },
}

/// A model of a rehearsal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScheduledModel {
    /// Time at which it learns, epoch ms.
    pub(crate) known_ms: i64,
    /// Index of the first moment at which it is asked.
    pub(crate) first_moment: u32,
    /// Times at which it is asked, epoch ms.
    pub(crate) asked_ms: Vec<i64>,
}

impl ScheduledModel {
    /// The moments at which the model is asked, with their times.
    pub(crate) fn moments(&self) -> impl Iterator<Item = (u32, i64)> {
        (self.first_moment..).zip(self.asked_ms.iter().copied())
    }
}

impl RehearsalTimes {
    /// Returns the number of models of a rehearsal of `history`.
    ///
    /// # Errors
    /// Fails like a rehearsal.
    pub fn models(self, history: &HoldHistory<'_>) -> Result<usize> {
        Ok(self.schedule(history)?.len())
    }

    /// Returns the models of a rehearsal of `history`, in order of time.
    ///
    /// # Errors
    /// Fails if the intervals are not positive, or so short that there are too many moments.
    pub(crate) fn schedule(self, history: &HoldHistory<'_>) -> Result<Vec<ScheduledModel>> {
        let summary = &history.store.summary;
        match self {
            RehearsalTimes::Models(models) => {
                Ok(even_schedule(summary.begin_ms, summary.end_ms, models))
            }
            RehearsalTimes::Every { learn_ms, ask_ms } => {
                schedule_every(summary.begin_ms, summary.end_ms, learn_ms, ask_ms)
            }
        }
    }
}

/// Returns `models` models at times spread evenly from 30 % of the time between `begin_ms` and `end_ms` on.
pub(super) fn even_schedule(begin_ms: i64, end_ms: i64, models: u32) -> Vec<ScheduledModel> {
    let step = (1.0 - FIRST_SHARE) / f64::from(models * MOMENTS_PER_MODEL);
    let moment_ms = |moment: u32| time_at(begin_ms, end_ms, FIRST_SHARE + step * f64::from(moment));
    let model = |number: u32| {
        let first_moment = number * MOMENTS_PER_MODEL;
        let moments = first_moment..first_moment + MOMENTS_PER_MODEL;
        ScheduledModel {
            known_ms: moment_ms(first_moment),
            first_moment,
            asked_ms: moments.map(moment_ms).collect(),
        }
    };
    (0..models).map(model).collect()
}

fn schedule_every(
    begin_ms: i64,
    end_ms: i64,
    learn_ms: i64,
    ask_ms: i64,
) -> Result<Vec<ScheduledModel>> {
    ensure!(
        learn_ms > 0 && ask_ms > 0,
        hinted(
            "a rehearsal needs intervals longer than 0",
            "name a longer time, such as `--learn-every 1d`"
        )
    );
    let first_ms = time_at(begin_ms, end_ms, FIRST_SHARE);
    let moments = (end_ms - first_ms) / ask_ms + 1;
    ensure!(
        moments <= MAX_MOMENTS,
        hinted(
            format!("the rehearsal would ask at {moments} moments, and {MAX_MOMENTS} is the most"),
            "name a longer time for `--ask-every`"
        )
    );

    let mut models: Vec<ScheduledModel> = Vec::new();
    for moment in 0..moments as u32 {
        let asked_ms = first_ms + i64::from(moment) * ask_ms;
        let known_ms = asked_ms - (asked_ms - first_ms) % learn_ms;
        match models.last_mut().filter(|model| model.known_ms == known_ms) {
            Some(model) => model.asked_ms.push(asked_ms),
            None => models.push(ScheduledModel {
                known_ms,
                first_moment: moment,
                asked_ms: vec![asked_ms],
            }),
        }
    }
    Ok(models)
}

/// Returns the time after a `share` of the log's time, epoch ms.
fn time_at(begin_ms: i64, end_ms: i64, share: f64) -> i64 {
    begin_ms + (share * (end_ms - begin_ms) as f64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_model_is_asked_at_each_moment() {
        let models = schedule_every(0, 1000, 300, 200).expect("a schedule");
        let rows: Vec<_> = models
            .iter()
            .map(|model| (model.known_ms, model.first_moment, &*model.asked_ms))
            .collect();
        assert_eq!(
            rows,
            [
                (300, 0, &[300, 500][..]),
                (600, 2, &[700]),
                (900, 3, &[900])
            ]
        );
    }

    #[test]
    fn models_that_nobody_asks_do_not_learn() {
        let models = schedule_every(0, 1000, 100, 300).expect("a schedule");
        let known: Vec<i64> = models.iter().map(|model| model.known_ms).collect();
        assert_eq!(known, [300, 600, 900]);
    }

    #[test]
    fn even_moments_end_before_the_log() {
        let models = even_schedule(0, 1_000, 2);
        let asked: Vec<i64> = models
            .iter()
            .flat_map(|model| model.asked_ms.clone())
            .collect();
        assert_eq!(asked, [300, 416, 533, 649, 766, 883]);
        assert_eq!((models[1].known_ms, models[1].first_moment), (649, 3));
    }

    #[test]
    fn intervals_must_be_positive_and_not_too_short() {
        assert!(schedule_every(0, 1000, 0, 1).is_err());
        assert!(schedule_every(0, 1000, 1, 0).is_err());
        assert!(schedule_every(0, 1_000_000, 1000, 1).is_err());
    }
}
