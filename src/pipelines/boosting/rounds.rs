//! What the rounds of boosting share, whatever the loss: the rows and columns of each, and the tree
//! that is grown on them.

use rand::seq::index::sample;
use serde::Deserialize;

use crate::solvers::matrix::ColumnMatrix;
use crate::trees::bins::{BinnedColumn, bin_columns};
use crate::trees::grow::{GrowSettings, GrownTree, SplitColumns, grow_tree};
use crate::trees::histogram::{DerivativeUnits, SampledRow};
use crate::trees::split::SplitRule;

/// What derivatives are multiples of, by the largest of a round.
pub(super) const DERIVATIVE_UNIT: f64 = 1.0 / (1 << 30) as f64;
/// A split that gains less does so by rounding: xgboost's `kRtEps`.
const MIN_GAIN: f64 = 1e-6;

/// The hyper-parameters of the pipeline `xgb`.
#[derive(Debug, Clone, Deserialize)]
pub(in crate) struct BoostingSettings {
    pub(super) n_estimators: usize,
    max_depth: Option<usize>,
    pub(super) learning_rate: f64,
    reg_lambda: f64,
    reg_alpha: f64,
    gamma: f64,
    min_child_weight: f64,
    subsample: f64,
    colsample_bytree: f64,
}

/// The first and the second derivative of a row's loss by its score, both times its weight.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowDerivatives {
    pub(super) gradient: f64,
    pub(super) hessian: f64,
}

/// The rows and the columns that a round looks at, each ascending.
pub(super) struct RoundSample {
    pub(super) rows: Vec<usize>,
    columns: Vec<usize>,
}

/// What all rounds share.
pub(super) struct RoundGrower<'a> {
    settings: &'a BoostingSettings,
    columns: Vec<BinnedColumn>,
    n: usize,
}

impl RoundGrower<'_> {
    pub(super) fn new<'a>(settings: &'a BoostingSettings, x: &ColumnMatrix) -> RoundGrower<'a> {
        RoundGrower {
            settings,
            columns: bin_columns(x),
            n: x.n,
        }
    }

    pub(super) fn sample_round(&self, seed: u64, round: usize) -> RoundSample {
        let f = self.columns.len();
        let rows = share_of(self.settings.subsample, self.n);
        let columns = share_of(self.settings.colsample_bytree, f);
        RoundSample {
            rows: sample_places(self.n, rows, seed, "boosted rows", round),
            columns: sample_places(f, columns, seed, "boosted columns", round),
        }
    }

    /// A tree on a round's rows and columns, where the loss of a row has the derivatives that
    /// `derivatives_of` tells, as multiples of `units`.
    pub(super) fn grow_tree(
        &self,
        sample: &RoundSample,
        units: DerivativeUnits,
        derivatives_of: impl Fn(usize) -> RowDerivatives,
    ) -> GrownTree {
        let sampled = sample.rows.iter().map(|row| {
            let RowDerivatives { gradient, hessian } = derivatives_of(*row);
            SampledRow::new(*row, gradient, hessian, units)
        });
        let choice = SplitColumns::Fixed(&sample.columns);
        let settings = self.settings.grow_settings(units);
        grow_tree(&settings, &self.columns, choice, sampled.collect())
    }
}

impl BoostingSettings {
    fn grow_settings(&self, units: DerivativeUnits) -> GrowSettings {
        GrowSettings {
            max_depth: self.max_depth.unwrap_or(usize::MAX),
            rule: SplitRule {
                reg_lambda: self.reg_lambda,
                reg_alpha: self.reg_alpha,
                min_gain: self.gamma.max(MIN_GAIN),
                min_child_weight: self.min_child_weight,
                units,
            },
            learning_rate: self.learning_rate,
        }
    }
}

/// How many of `count` a share is; one at least.
fn share_of(share: f64, count: usize) -> usize {
    ((share * count as f64) as usize).max(1)
}

/// The places below `count` that are drawn for a round, ascending.
fn sample_places(count: usize, drawn: usize, seed: u64, name: &str, round: usize) -> Vec<usize> {
    if drawn == count {
        return (0..count).collect();
    }
    let mut generator = poolcast_base::seed::generator(seed, name, &[round as i64]);
    let mut places = sample(&mut generator, count, drawn).into_vec();
    places.sort_unstable();
    places
}
