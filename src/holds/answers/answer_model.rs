//! The model that answers: the members, fitted to the same rows, for each of the two questions about a hold.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::Result;
use rand::seq::index::sample;
use serde::{Deserialize, Serialize};

use super::answer_calibration::AnswerCalibration;
use super::cause_kind::CauseKind;
use super::columns::columns;
use super::contribution::origin_of;
use super::hold_history::HoldHistory;
use super::learned_member::{AskedRows, LearnedQuestion};
use super::member_fit::{MemberFit, TeachingRows, table_of};
use super::member_mean::mean_in_logit;
use super::named_fault::common_fault;
use super::past_hold::PastHold;
use super::prior::{OtherRows, Prior};
use super::reason_record::MIN_TAUGHT_OUTCOMES;
use super::taught_rows::{ReleaseWay, TaughtRow, TaughtRows, max_age};
use crate::config::{AdviceConfig, AnswerMember};
use poolcast_base::parallel::map_items;
use poolcast_base::seed::generator;

/// Maximum number of rows that a member learns from. More are drawn.
const MAX_ROWS: usize = 4_000;
/// Number of local rows below which ages that other access points have seen count as learned, too.
const FEW_ROWS: usize = 100;

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
    /// In the log of the question, or in the log of the model.
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

/// The uncalibrated probabilities of one member.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MemberOdds {
    /// If the job is released now.
    pub now: f64,
    /// If it is released later.
    pub later: f64,
}

/// A model for both questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerModel {
    /// Indices of the members that answer, ascending.
    pub(super) answering: Vec<usize>,
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

impl AnswerModel {
    /// Learns from everything that was known at `known_ms`, and from the prior beside it, if `advice`
    /// asks for one. The base alone answers until a rehearsal names further members. The same seed gives
    /// the same model for any number of threads. Returns `None` if there is nothing to learn from.
    ///
    /// # Errors
    /// Fails once `stop` returns true, and if a member cannot be fitted.
    pub fn learn(
        history: &HoldHistory<'_>,
        known_ms: i64,
        advice: &AdviceConfig,
        seed: u64,
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
        let others = Prior::wanted(advice)?.map_or_else(OtherRows::default, |prior| {
            let digests = now.digests().chain(later.digests()).collect();
            prior.of_others(&digests, &origin_of(history.store))
        });
        let fit = MemberFit {
            members: &advice.members,
            history: Some(history),
            seed,
            stop,
        };
        let model = AnswerModel::fit(now, later, &others, &fit)?;
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

    /// Fits `members` to the `prior` alone, like [`AnswerModel::learn`].
    pub(super) fn learn_prior(
        prior: &Prior,
        members: &[AnswerMember],
        seed: u64,
    ) -> Result<Option<AnswerModel>> {
        let others = prior.of_others(&HashSet::new(), "");
        let [now, later] = [TeachingRows::default(), TeachingRows::default()];
        let fit = MemberFit {
            members,
            history: None,
            seed,
            stop: &|| false,
        };
        AnswerModel::fit(now, later, &others, &fit)
    }

    /// Fits the members for each question to the local rows and to the rows of `others`.
    fn fit(
        mut now: TeachingRows,
        mut later: TeachingRows,
        others: &OtherRows<'_>,
        fit: &MemberFit<'_>,
    ) -> Result<Option<AnswerModel>> {
        now.add_prior(&others.now());
        later.add_prior(&others.later());
        if now.values.is_empty() || later.values.is_empty() {
            return Ok(None);
        }
        // A small network keeps one thread busy.
        let (now, later) = rayon::join(|| fit.question(&now), || fit.question(&later));
        Ok(Some(AnswerModel {
            answering: vec![0],
            now: now?,
            later: later?,
            max_age: max_age(others.ages()),
            faults_here: Vec::new(),
            faults_elsewhere: others.known_faults(),
            calibration: AnswerCalibration::default(),
        }))
    }

    /// Returns the odds of each of `holds`, asked at `asked_ms`, `[n]`: the mean in logit of the members
    /// that answer.
    ///
    /// # Errors
    /// Fails if the model has other columns than this program computes.
    pub fn odds(
        &self,
        history: &HoldHistory<'_>,
        holds: &[usize],
        asked_ms: i64,
    ) -> Result<Vec<HeldOdds>> {
        let of_members = self.odds_of(&self.answering, history, holds, asked_ms)?;
        let odds = of_members.iter().zip(holds).map(|(of_hold, &hold)| {
            let mean = MemberOdds::mean(of_hold.iter());
            HeldOdds {
                now: self.calibration.probability(mean.now),
                uncalibrated: mean.now,
                later: mean.later,
                learned_from: self.learned_from(history, hold, asked_ms),
            }
        });
        Ok(odds.collect())
    }

    /// Returns the odds of every member for each of `holds`, asked at `asked_ms`, `[n, members]`; nothing
    /// for each hold if the base is the only member.
    ///
    /// # Errors
    /// Fails like [`AnswerModel::odds`].
    pub(crate) fn odds_of_members(
        &self,
        history: &HoldHistory<'_>,
        holds: &[usize],
        asked_ms: i64,
    ) -> Result<Vec<Vec<MemberOdds>>> {
        let all = every_member(&self.now, &self.later);
        if all.len() < 2 {
            return Ok(vec![Vec::new(); holds.len()]);
        }
        self.odds_of(&all, history, holds, asked_ms)
    }

    /// Returns the odds of the members with these indices, `[n, members]`.
    fn odds_of(
        &self,
        members: &[usize],
        history: &HoldHistory<'_>,
        holds: &[usize],
        asked_ms: i64,
    ) -> Result<Vec<Vec<MemberOdds>>> {
        let values: Vec<Vec<f32>> = map_items(holds, |&hold| {
            columns(history, hold, asked_ms, ReleaseWay::ByItself, self.max_age)
        });
        let rows = AskedRows {
            history,
            table: table_of(&values, vec![0; values.len()]),
            asked: (holds.iter())
                .map(|&hold| history.asked(hold, asked_ms))
                .collect(),
        };
        let mut odds = vec![Vec::with_capacity(members.len()); holds.len()];
        for &member in members {
            let now = self.now.probabilities(member, &rows)?;
            let later = self.later.probabilities(member, &rows)?;
            for (of_hold, (now, later)) in odds.iter_mut().zip(now.into_iter().zip(later)) {
                of_hold.push(MemberOdds { now, later });
            }
        }
        Ok(odds)
    }

    /// Lets the members with the ascending indices `answering` answer.
    pub(crate) fn set_answering(&mut self, answering: Vec<usize>) {
        self.answering = answering;
    }

    /// Returns the names of the models that answer, the base first.
    pub fn members(&self) -> Vec<String> {
        let names = [&self.now, &self.later].map(LearnedQuestion::names);
        let names = names.into_iter().max_by_key(Vec::len).unwrap_or_default();
        let answering = self.answering.iter().filter_map(|&index| names.get(index));
        answering.map(|name| (*name).to_owned()).collect()
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

    /// Returns true if the base answers both questions. A rate alone is the same for every cause.
    pub(super) fn tells_causes_apart(&self) -> bool {
        [&self.now, &self.later]
            .into_iter()
            .all(LearnedQuestion::tells_causes_apart)
    }

    /// Returns true if the members that answer are there, and all have learned from the columns that this
    /// program computes.
    pub(super) fn has_current_columns(&self) -> bool {
        [&self.now, &self.later]
            .into_iter()
            .all(|question| question.is_current(&self.answering))
    }
}

/// Returns the faults with enough outcomes known at `known_ms`, sorted.
fn known_faults(history: &HoldHistory<'_>, known_ms: i64) -> Vec<u32> {
    let mut seen = HashSet::new();
    let mut outcomes: BTreeMap<u32, usize> = BTreeMap::new();
    for hold in &history.holds {
        // One fault may be stated in several ways, and each has a record of its own.
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
            taught: drawn,
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

/// Returns the indices of all members of the models for both questions; the base's for rates.
pub(super) fn every_member(now: &LearnedQuestion, later: &LearnedQuestion) -> Vec<usize> {
    let count = now.names().len().max(later.names().len());
    (0..count.max(1)).collect()
}

impl MemberOdds {
    /// Returns the mean in logit of `members`, for each question.
    pub(crate) fn mean<'a>(members: impl Iterator<Item = &'a MemberOdds> + Clone) -> MemberOdds {
        MemberOdds {
            now: mean_in_logit(members.clone().map(|one| one.now)),
            later: mean_in_logit(members.map(|one| one.later)),
        }
    }
}
