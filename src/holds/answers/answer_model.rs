//! The model that answers: extremely randomised trees for each of the two questions about a hold.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::Result;
use rand::seq::index::sample;
use serde::{Deserialize, Serialize};

use super::answer_calibration::AnswerCalibration;
use super::cause_kind::CauseKind;
use super::columns::{column_names, columns};
use super::contribution::origin_of;
use super::hold_history::HoldHistory;
use super::named_fault::common_fault;
use super::past_hold::PastHold;
use super::prior::{OtherRows, Prior};
use super::reason_record::MIN_TAUGHT_OUTCOMES;
use super::shared_row::{SharedRow, digest, halved};
use super::taught_rows::{ReleaseWay, TaughtRow, TaughtRows, max_age};
use poolcast_base::parallel::map_items;
use poolcast_base::seed::generator;
use poolcast_pipelines::{
    FittedPipeline, HyperParameters, LearnedRows, ValuesBeyond, fit_pipeline,
};
use poolcast_tables::{FeatureTable, RowClasses, RowTargets};

/// Maximum number of rows that a forest learns from. More are drawn.
const MAX_ROWS: usize = 4_000;
/// Total weight of the prior beside an empty log, in local rows.
const PRIOR_WEIGHT: f64 = 400.0;
/// Local rows of a hold code that halve the weight of the prior's rows of that code: the prior
/// speaks for the codes that the log has not shown yet, and may harm where the log knows better.
const ROWS_THAT_HALVE_PRIOR: f64 = 20.0;
/// Number of local rows below which ages that other access points have seen count as learned, too.
const FEW_ROWS: usize = 100;
/// Minimum number of rows of each outcome without which there is no forest.
const MIN_ROWS_OF_OUTCOME: usize = 5;

/// The probabilities of success of a held job if it is released unrepaired.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HeldOdds {
    /// If it is released now.
    pub now: f64,
    /// The same before the calibration.
    pub uncalibrated: f64,
    /// If it is released later.
    pub later: f64,
    /// Where outcomes of such holds are known.
    pub learned_from: LearnedFrom,
}

/// Where outcomes of holds of the kind of one hold are known: with its code and class of subcodes and, where these do
/// not say what failed, with its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LearnedFrom {
    /// In the log that is asked about, or in that of the model.
    ThisLog,
    /// In the prior alone.
    OtherLogs,
    /// Nowhere. Odds would be of other kinds.
    Nothing,
}

impl HeldOdds {
    /// Returns the odds, none of them above `upper`.
    pub(crate) fn at_most(self, upper: f64) -> HeldOdds {
        HeldOdds {
            now: self.now.min(upper),
            uncalibrated: self.uncalibrated.min(upper),
            later: self.later.min(upper),
            ..self
        }
    }

    /// Returns the higher of the odds now before and after the calibration. The outcomes that
    /// calibrate are mostly of causes that go on failing, so they must not prevent a probe.
    pub(crate) fn higher_now(&self) -> f64 {
        self.now.max(self.uncalibrated)
    }
}

/// A model for both questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerModel {
    pub(super) now: LearnedQuestion,
    pub(super) later: LearnedQuestion,
    /// Maximum age of a hold that was learned from, in typical hold lengths.
    pub(super) max_age: f64,
    /// Faults that the log of the model has taught, sorted.
    pub(super) faults_here: Vec<u32>,
    /// Faults that other access points have taught, sorted.
    pub(super) faults_elsewhere: Vec<u32>,
    /// Calibration of the odds now, by the outcomes of earlier answers.
    pub calibration: AnswerCalibration,
}

/// A model for one question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum LearnedQuestion {
    /// A forest, whose second class is success.
    Forest(Box<FittedPipeline>),
    /// The success rate, where too few outcomes of one kind are known for a forest.
    Rate(f64),
}

impl AnswerModel {
    /// Learns from everything that was known at `known_ms`, and from the `prior`, which stands beside
    /// it. The same seed gives the same model for any number of threads. Returns `None` if there is
    /// nothing to learn from.
    ///
    /// # Errors
    /// Fails once `stop` returns true.
    pub fn learn(
        history: &HoldHistory<'_>,
        known_ms: i64,
        seed: u64,
        prior: Option<&Prior>,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<AnswerModel>> {
        let rows = TaughtRows::until(history, known_ms);
        let local = LocalLog {
            history,
            max_age: max_age(rows.ages(history)),
            seed,
        };
        let now = local.teach(&rows.now, "answer now");
        let later = local.teach(&rows.later, "answer later");
        let others = prior.map_or_else(OtherRows::default, |prior| {
            let digests = now.digests().chain(later.digests()).collect();
            prior.of_others(&digests, &origin_of(history.store))
        });
        let model = AnswerModel::fit(now, later, &others, seed, stop)?;
        Ok(model.map(|model| AnswerModel {
            max_age: if rows.now.len() < FEW_ROWS {
                local.max_age.max(model.max_age)
            } else {
                local.max_age
            },
            faults_here: known_faults(history, known_ms),
            ..model
        }))
    }

    /// Learns from the `prior` alone, like [`AnswerModel::learn`].
    pub(super) fn learn_prior(prior: &Prior, seed: u64) -> Result<Option<AnswerModel>> {
        let others = prior.of_others(&HashSet::new(), "");
        let [now, later] = [TeachingRows::default(), TeachingRows::default()];
        AnswerModel::fit(now, later, &others, seed, &|| false)
    }

    /// Fits a forest for each question to the local rows and to those of `others`.
    fn fit(
        mut now: TeachingRows,
        mut later: TeachingRows,
        others: &OtherRows<'_>,
        seed: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<AnswerModel>> {
        now.add_prior(&others.now());
        later.add_prior(&others.later());
        if now.values.is_empty() || later.values.is_empty() {
            return Ok(None);
        }
        Ok(Some(AnswerModel {
            now: now.fit(seed, stop)?,
            later: later.fit(seed, stop)?,
            max_age: max_age(others.ages()),
            faults_here: Vec::new(),
            faults_elsewhere: others.known_faults(),
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
        let rows: Vec<Vec<f32>> = map_items(holds, |&hold| {
            columns(history, hold, asked_ms, ReleaseWay::ByItself, self.max_age)
        });
        let table = table_of(&rows, vec![0; rows.len()]);
        let now = self.now.probabilities(&table)?;
        let later = self.later.probabilities(&table)?;
        let odds = now.into_iter().zip(later).zip(holds);
        Ok(odds
            .map(|((uncalibrated, later), &hold)| HeldOdds {
                now: self.calibration.probability(uncalibrated),
                uncalibrated,
                later,
                learned_from: self.learned_from(history, hold, asked_ms),
            })
            .collect())
    }

    /// Returns where outcomes of such holds as `hold` are known at `asked_ms`.
    fn learned_from(&self, history: &HoldHistory<'_>, hold: usize, asked_ms: i64) -> LearnedFrom {
        let PastHold { stated, causes, .. } = &history.holds[hold];
        let known = history.known_cause(CauseKind::Stated, causes, asked_ms);
        let here = known.outcomes.len();
        let fault = common_fault(*stated);
        let is_among =
            |faults: &[u32]| fault.is_some_and(|fault| faults.binary_search(&fault).is_ok());
        let is_elsewhere = is_among(&self.faults_elsewhere);
        // The log of a user seldom shows what the log of the model does.
        let is_taught = is_among(&self.faults_here);
        if is_taught || here >= MIN_TAUGHT_OUTCOMES || here > 0 && is_elsewhere {
            LearnedFrom::ThisLog
        } else if is_elsewhere {
            LearnedFrom::OtherLogs
        } else {
            LearnedFrom::Nothing
        }
    }

    /// Returns true if it learned from other access points, too.
    pub fn uses_prior(&self) -> bool {
        !self.faults_elsewhere.is_empty()
    }

    /// Returns true if both questions have a forest. A rate alone is the same for every cause.
    pub(super) fn tells_causes_apart(&self) -> bool {
        [&self.now, &self.later]
            .into_iter()
            .all(|question| matches!(question, LearnedQuestion::Forest(_)))
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

/// Returns the faults with enough outcomes known at `known_ms`, sorted.
fn known_faults(history: &HoldHistory<'_>, known_ms: i64) -> Vec<u32> {
    let mut seen = HashSet::new();
    let mut outcomes: BTreeMap<u32, usize> = BTreeMap::new();
    for hold in &history.holds {
        // One fault may be stated in several ways, each of which has a record of its own.
        let is_new = seen.insert(hold.causes.get(CauseKind::Stated));
        if let Some(fault) = common_fault(hold.stated).filter(|_| is_new) {
            let stated = history.known_cause(CauseKind::Stated, &hold.causes, known_ms);
            *outcomes.entry(fault).or_default() += stated.outcomes.len();
        }
    }
    outcomes.retain(|_, outcomes| *outcomes >= MIN_TAUGHT_OUTCOMES);
    outcomes.into_keys().collect()
}

/// A log as a source of rows.
struct LocalLog<'a> {
    history: &'a HoldHistory<'a>,
    max_age: f64,
    seed: u64,
}

impl LocalLog<'_> {
    /// Returns [`MAX_ROWS`] of `rows`, drawn by the `name` of the question, or all if there are
    /// fewer. Their weights have a mean of 1: a leaf of a tree then has as many rows as its minimum
    /// weight says.
    fn teach(&self, rows: &[TaughtRow], name: &str) -> TeachingRows {
        let drawn = self.draw(rows, name);
        let columns_of =
            |row: &TaughtRow| columns(self.history, row.hold, row.asked_ms, row.way, self.max_age);
        let sum: f64 = drawn.iter().map(|row| row.weight).sum();
        let scale = if sum > 0.0 {
            drawn.len() as f64 / sum
        } else {
            1.0
        };
        let weights: Vec<f64> = drawn.iter().map(|row| row.weight * scale).collect();

        let mut rows_of_kind = HashMap::new();
        for (row, weight) in drawn.iter().zip(&weights) {
            let kind = self.history.holds[row.hold].stated.packed_fault();
            *rows_of_kind.entry(kind).or_insert(0.0) += weight;
        }
        TeachingRows {
            values: map_items(&drawn, columns_of),
            is_success: drawn.iter().map(|row| row.is_success).collect(),
            weights,
            rows_of_kind,
        }
    }

    fn draw(&self, rows: &[TaughtRow], name: &str) -> Vec<TaughtRow> {
        if rows.len() <= MAX_ROWS {
            return rows.to_vec();
        }
        let mut generator = generator(self.seed, name, &[]);
        let mut places = sample(&mut generator, rows.len(), MAX_ROWS).into_vec();
        places.sort_unstable();
        places.into_iter().map(|place| rows[place]).collect()
    }
}

/// The rows of one question.
#[derive(Default)]
struct TeachingRows {
    /// Columns, `[n, f]`.
    values: Vec<Vec<f32>>,
    is_success: Vec<bool>,
    weights: Vec<f64>,
    /// Total weight of the local rows of each packed kind of reason.
    rows_of_kind: HashMap<u32, f64>,
}

impl TeachingRows {
    /// Returns the digests of the rows, by which the prior recognises its own.
    fn digests(&self) -> impl Iterator<Item = u64> {
        self.values.iter().map(|values| digest(&halved(values)))
    }

    /// Adds the rows of the prior, whose weights sum to 1. They weigh the less, the more local rows
    /// there are of their kind of reason.
    fn add_prior(&mut self, rows: &[(&SharedRow, f64)]) {
        for (row, weight) in rows {
            let values = row.values.iter().map(|value| value.to_f32());
            self.values.push(values.collect());
            self.is_success.push(row.is_success);
            let local = self.rows_of_kind.get(&row.stated).copied().unwrap_or(0.0);
            let fading = ROWS_THAT_HALVE_PRIOR / (ROWS_THAT_HALVE_PRIOR + local);
            self.weights.push(PRIOR_WEIGHT * fading * weight);
        }
    }

    fn fit(&self, seed: u64, stop: &(dyn Fn() -> bool + Sync)) -> Result<LearnedQuestion> {
        let rows = self.is_success.len();
        let successes = self.is_success.iter().filter(|&&success| success).count();
        if successes.min(rows - successes) < MIN_ROWS_OF_OUTCOME {
            // Shrunk to one half by one case of each outcome.
            let rate = (successes + 1) as f64 / (rows + 2) as f64;
            return Ok(LearnedQuestion::Rate(rate));
        }
        let classes = self.is_success.iter().map(|&success| u32::from(success));
        let table = table_of(&self.values, classes.collect());
        let rows = LearnedRows {
            table: &table,
            weights: Some(&self.weights),
            beyond: ValuesBeyond::Kept,
        };
        let forest = fit_pipeline("et", &forest_parameters(), rows, seed, stop)?;
        Ok(LearnedQuestion::Forest(Box::new(forest)))
    }
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
