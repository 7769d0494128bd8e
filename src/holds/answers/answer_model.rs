//! The model that answers: extremely randomised trees for each of the two questions about a hold.

use anyhow::Result;
use rand::seq::index::sample;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::answer_calibration::AnswerCalibration;
use super::columns::{column_names, columns};
use super::hold_history::HoldHistory;
use super::taught_rows::{ReleaseWay, TaughtRow, TaughtRows};
use poolcast_base::seed::generator;
use poolcast_pipelines::{
    FittedPipeline, HyperParameters, LearnedRows, ValuesBeyond, fit_pipeline,
};
use poolcast_tables::{FeatureTable, RowClasses, RowTargets};

/// Maximum number of rows that a forest learns from. More are drawn.
const MAX_ROWS: usize = 4_000;
/// Minimum number of rows of each outcome without which there is no forest.
const MIN_ROWS_OF_OUTCOME: usize = 5;
/// Share of the ages learned from that an age may not exceed.
const AGE_QUANTILE: f64 = 0.98;

/// The probabilities of success of a held job if it is released unrepaired.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HeldOdds {
    /// If it is released now.
    pub now: f64,
    /// The same before the calibration.
    pub uncalibrated: f64,
    /// If it is released later.
    pub later: f64,
}

impl HeldOdds {
    /// Returns the higher of the odds now before and after the calibration. The outcomes that
    /// calibrate are mostly of causes that go on failing, so they must not prevent a probe.
    pub(crate) fn higher_now(&self) -> f64 {
        self.now.max(self.uncalibrated)
    }
}

/// A model for both questions.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerModel {
    pub(super) now: LearnedQuestion,
    pub(super) later: LearnedQuestion,
    /// Maximum age of a hold that was learned from, in typical hold lengths.
    pub(super) max_age: f64,
    /// Calibration of the odds now, by the outcomes of earlier answers.
    pub calibration: AnswerCalibration,
}

/// A model for one question.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LearnedQuestion {
    /// A forest, whose second class is success.
    Forest(Box<FittedPipeline>),
    /// The success rate, where too few outcomes of one kind are known for a forest.
    Rate(f64),
}

impl AnswerModel {
    /// Learns from everything that was known at `known_ms`. The same seed gives the same model for
    /// any number of threads. Returns `None` if no outcome was known.
    ///
    /// # Errors
    /// Fails once `stop` returns true.
    pub fn learn(
        history: &HoldHistory<'_>,
        known_ms: i64,
        seed: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<AnswerModel>> {
        let rows = TaughtRows::until(history, known_ms);
        if rows.now.is_empty() || rows.later.is_empty() {
            return Ok(None);
        }
        let max_age = max_age(history, &rows.now);
        let learn = |rows: &[TaughtRow], name: &str| {
            let teaching = TeachingSet {
                history,
                max_age,
                seed,
                name,
            };
            teaching.learn(rows, stop)
        };
        Ok(Some(AnswerModel {
            now: learn(&rows.now, "answer now")?,
            later: learn(&rows.later, "answer later")?,
            max_age,
            calibration: AnswerCalibration::default(),
        }))
    }

    /// Returns the odds of each of `holds`, asked at `asked_ms`, `[n]`.
    ///
    /// # Errors
    /// Fails if the model has other columns than this program computes.
    pub fn odds(
        &self,
        history: &HoldHistory<'_>,
        holds: &[usize],
        asked_ms: i64,
    ) -> Result<Vec<HeldOdds>> {
        let rows: Vec<Vec<f32>> = holds
            .par_iter()
            .map(|&hold| columns(history, hold, asked_ms, ReleaseWay::ByItself, self.max_age))
            .collect();
        let table = table_of(&rows, vec![0; rows.len()]);
        let now = self.now.probabilities(&table)?;
        let later = self.later.probabilities(&table)?;
        let odds = now.into_iter().zip(later);
        Ok(odds
            .map(|(uncalibrated, later)| HeldOdds {
                now: self.calibration.probability(uncalibrated),
                uncalibrated,
                later,
            })
            .collect())
    }

    /// Returns true if the forests have learned from the columns that this program computes.
    pub(super) fn has_current_columns(&self) -> bool {
        let names = column_names();
        [&self.now, &self.later]
            .into_iter()
            .all(|question| match question {
                LearnedQuestion::Forest(forest) => {
                    forest.features == names && forest.classes().len() == 2
                }
                LearnedQuestion::Rate(_) => true,
            })
    }
}

/// Returns the age of a hold, in typical hold lengths, that few of the `rows` exceed.
fn max_age(history: &HoldHistory<'_>, rows: &[TaughtRow]) -> f64 {
    let age = |row: &TaughtRow| {
        let age_ms = row.asked_ms - history.holds[row.hold].hold_ms;
        age_ms as f64 / history.unit_ms(row.asked_ms)
    };
    let mut ages: Vec<f64> = rows.iter().map(age).collect();
    ages.sort_unstable_by(f64::total_cmp);
    ages[((ages.len() - 1) as f64 * AGE_QUANTILE) as usize]
}

/// The inputs of a fit besides its rows.
struct TeachingSet<'a> {
    history: &'a HoldHistory<'a>,
    max_age: f64,
    seed: u64,
    /// Name of the question, which seeds the draw of rows.
    name: &'a str,
}

impl TeachingSet<'_> {
    fn learn(
        &self,
        rows: &[TaughtRow],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<LearnedQuestion> {
        let drawn = self.draw(rows);
        let successes = drawn.iter().filter(|row| row.is_success).count();
        if successes.min(drawn.len() - successes) < MIN_ROWS_OF_OUTCOME {
            return Ok(LearnedQuestion::Rate(success_rate(&drawn)));
        }

        let values: Vec<Vec<f32>> = drawn
            .par_iter()
            .map(|row| columns(self.history, row.hold, row.asked_ms, row.way, self.max_age))
            .collect();
        let classes = drawn.iter().map(|row| u32::from(row.is_success)).collect();
        let table = table_of(&values, classes);
        let rows = LearnedRows {
            table: &table,
            weights: Some(&mean_one(&drawn)),
            beyond: ValuesBeyond::Kept,
        };
        let forest = fit_pipeline("et", &forest_parameters(), rows, self.seed, stop)?;
        Ok(LearnedQuestion::Forest(Box::new(forest)))
    }

    /// Draws [`MAX_ROWS`] of `rows`, or returns all if there are fewer.
    fn draw(&self, rows: &[TaughtRow]) -> Vec<TaughtRow> {
        if rows.len() <= MAX_ROWS {
            return rows.to_vec();
        }
        let mut generator = generator(self.seed, self.name, &[]);
        let mut places = sample(&mut generator, rows.len(), MAX_ROWS).into_vec();
        places.sort_unstable();
        places.into_iter().map(|place| rows[place]).collect()
    }
}

/// Returns the success rate of `rows`, shrunk to one half by one case of each outcome.
fn success_rate(rows: &[TaughtRow]) -> f64 {
    let successes = rows.iter().filter(|row| row.is_success).count();
    (successes + 1) as f64 / (rows.len() + 2) as f64
}

/// Returns the weights of `rows`, scaled so that their mean is 1: a leaf of a tree then has as many
/// rows as its minimum weight says.
fn mean_one(rows: &[TaughtRow]) -> Vec<f64> {
    let mean = rows.iter().map(|row| row.weight).sum::<f64>() / rows.len() as f64;
    let scale = if mean > 0.0 { 1.0 / mean } else { 1.0 };
    rows.iter().map(|row| row.weight * scale).collect()
}

fn forest_parameters() -> HyperParameters {
    let parameters = serde_json::json!({
        "n_estimators": 60,
        "min_samples_leaf": 4,
        "max_features": 0.15,
    });
    serde_json::from_value(parameters).unwrap_or_default()
}

/// Transposes `rows` `[n, f]` into a table with these `classes`.
fn table_of(rows: &[Vec<f32>], classes: Vec<u32>) -> FeatureTable {
    let features = column_names();
    let mut x = Vec::with_capacity(features.len() * rows.len());
    for column in 0..features.len() {
        x.extend(rows.iter().map(|row| f64::from(row[column])));
    }
    FeatureTable {
        features,
        x,
        groups: vec![0; classes.len()],
        targets: RowTargets::Classes(RowClasses {
            names: ["failure", "success"].map(str::to_owned).to_vec(),
            y: classes,
        }),
    }
}

impl LearnedQuestion {
    /// Returns the probability of success of each row, `[n]`.
    fn probabilities(&self, table: &FeatureTable) -> Result<Vec<f64>> {
        match self {
            LearnedQuestion::Rate(rate) => Ok(vec![*rate; table.row_count()]),
            LearnedQuestion::Forest(_) if table.row_count() == 0 => Ok(Vec::new()),
            LearnedQuestion::Forest(forest) => {
                let both = forest.predict(table)?;
                // Rounding leaves some means of trees just outside of the range.
                let success = both.chunks_exact(2).map(|pair| pair[1].clamp(0.0, 1.0));
                Ok(success.map(|p| if p == 0.0 { 0.0 } else { p }).collect())
            }
        }
    }
}
