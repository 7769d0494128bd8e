//! Fits the members of an answer model to the rows of one question.

use std::collections::HashMap;

use anyhow::{Result, bail};

use super::columns::column_names;
use super::hold_history::HoldHistory;
use super::learned_member::{LearnedMember, LearnedQuestion, MemberNetwork};
use super::shared_row::{SharedRow, digest, halved};
use super::taught_rows::TaughtRow;
use crate::config::{AnswerMember, NetworkSettings};
use crate::training::{HoldEncoder, SampleTimes, TaughtHolds, train_in_memory};
use poolcast_base::error::hinted;
use poolcast_models::optim::TrainError;
use poolcast_pipelines::{LearnedRows, ValuesBeyond, fit_pipeline};
use poolcast_tables::{FeatureTable, RowClasses, RowTargets};
use poolcast_tensors::QueriedHold;

/// Total weight of the prior beside an empty log, in local rows.
const PRIOR_WEIGHT: f64 = 400.0;
/// Local rows of a hold code that halve the weight of the prior's rows of that code: the prior
/// speaks for the codes that the log has not shown yet, and may harm where the log knows better.
const ROWS_THAT_HALVE_PRIOR: f64 = 20.0;
/// Minimum number of rows of each outcome without which nothing is fitted.
const MIN_ROWS_OF_OUTCOME: usize = 5;

/// The rows of one question: local rows, and then rows of the prior.
#[derive(Default)]
pub(super) struct TeachingRows {
    /// Columns, `[n, f]`.
    pub(super) values: Vec<Vec<f32>>,
    pub(super) is_success: Vec<bool>,
    pub(super) weights: Vec<f64>,
    /// Total weight of the local rows of each packed kind of reason.
    pub(super) rows_of_kind: HashMap<u32, f64>,
    /// The moments of the local rows.
    pub(super) taught: Vec<TaughtRow>,
}

impl TeachingRows {
    /// Returns the digests of the rows, by which the prior recognises its own.
    pub(super) fn digests(&self) -> impl Iterator<Item = u64> {
        self.values.iter().map(|values| digest(&halved(values)))
    }

    /// Adds the rows of the prior, whose weights sum to 1. They weigh the less, the more local rows
    /// there are of their kind of reason.
    pub(super) fn add_prior(&mut self, rows: &[(&SharedRow, f64)]) {
        for (row, weight) in rows {
            let values = row.values.iter().map(|value| value.to_f32());
            self.values.push(values.collect());
            self.is_success.push(row.is_success);
            let local = self.rows_of_kind.get(&row.stated).copied().unwrap_or(0.0);
            let fading = ROWS_THAT_HALVE_PRIOR / (ROWS_THAT_HALVE_PRIOR + local);
            self.weights.push(PRIOR_WEIGHT * fading * weight);
        }
    }
}

/// The members to fit, and how.
pub(super) struct MemberFit<'a> {
    pub(super) members: &'a [AnswerMember],
    /// The log of the local rows; `None` for a prior alone.
    pub(super) history: Option<&'a HoldHistory<'a>>,
    pub(super) seed: u64,
    pub(super) stop: &'a (dyn Fn() -> bool + Sync),
}

impl MemberFit<'_> {
    /// Fits the members to the rows of one question.
    pub(super) fn question(&self, teaching: &TeachingRows) -> Result<LearnedQuestion> {
        let (successes, rate) = shrunk_success_rate(&teaching.is_success);
        let rows = teaching.is_success.len();
        if successes.min(rows - successes) < MIN_ROWS_OF_OUTCOME {
            return Ok(LearnedQuestion::Rate(rate));
        }
        let classes = teaching.is_success.iter();
        let classes = classes.map(|&success| u32::from(success));
        let table = table_of(&teaching.values, classes.collect());
        let rows = LearnedRows {
            table: &table,
            weights: Some(&teaching.weights),
            beyond: ValuesBeyond::Kept,
        };
        let fit = |member: &AnswerMember| match member {
            AnswerMember::Pipeline { name, parameters } => {
                let fitted = fit_pipeline(name, parameters, rows, self.seed, self.stop);
                fitted.map(LearnedMember::Pipeline)
            }
            AnswerMember::Resolved(settings) => self.network(settings, teaching),
            AnswerMember::Network { .. } | AnswerMember::BestOf(_) => bail!(hinted(
                format!("the settings of `{}` are not known here", member.name()),
                "name a pipeline in `advice.members` instead"
            )),
        };
        let members: Result<_> = self.members.iter().map(fit).collect();
        Ok(LearnedQuestion::Members(members?))
    }

    /// Trains a network on the local rows. The prior has no samples for it.
    fn network(
        &self,
        settings: &NetworkSettings,
        teaching: &TeachingRows,
    ) -> Result<LearnedMember> {
        let taught = &teaching.taught;
        let (_, rate) = shrunk_success_rate(&teaching.is_success[..taught.len()]);
        let name = settings.name().to_owned();
        let Some(history) = self.history else {
            return Ok(LearnedMember::Untrained { name, rate });
        };
        let asked = taught
            .iter()
            .map(|row| history.asked(row.hold, row.asked_ms));
        let asked: Vec<QueriedHold> = asked.collect();
        let times = taught.iter().map(|row| SampleTimes {
            asked_ms: row.asked_ms,
            decided_ms: row.decided_ms,
        });
        let taught = TaughtHolds {
            encoded: &HoldEncoder::of_network(history.store, settings)?.encode(&asked),
            labels: teaching.is_success[..asked.len()].to_vec(),
            weights: teaching.weights[..asked.len()].to_vec(),
            times: times.collect(),
        };
        let trained = match train_in_memory(taught, settings, self.stop) {
            Err(TrainError::NonFinite(_)) => None,
            trained => trained?,
        };
        Ok(match trained {
            Some(trained) => LearnedMember::Network(MemberNetwork::new(settings, trained)),
            None => LearnedMember::Untrained { name, rate },
        })
    }
}

/// Returns the number of successes, and their rate, shrunk to one half by one case of each outcome.
fn shrunk_success_rate(is_success: &[bool]) -> (usize, f64) {
    let successes = is_success.iter().filter(|&&success| success).count();
    let rate = (successes + 1) as f64 / (is_success.len() + 2) as f64;
    (successes, rate)
}

/// Transposes `rows` `[n, f]` into a table with these `classes`.
pub(super) fn table_of(rows: &[Vec<f32>], classes: Vec<u32>) -> FeatureTable {
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
