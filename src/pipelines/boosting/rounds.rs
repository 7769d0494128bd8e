//! Boosting rounds, for any loss: samples the rows and columns of a round, and grows its tree.

use rand::seq::index::sample;
use serde::Deserialize;

use crate::solvers::matrix::ColumnMatrix;
use crate::trees::bins::{BinnedColumn, bin_columns};
use crate::trees::grow::{GrowSettings, GrownTree, SplitColumns, grow_tree};
use crate::trees::sampled_rows::{DerivativeUnits, SampledRow};
use crate::trees::split::SplitRule;

/// Unit of derivatives, relative to the largest derivative of a round.
pub(super) const DERIVATIVE_UNIT: f64 = 1.0 / (1 << 30) as f64;
/// Minimum gain of a split: xgboost's `kRtEps`. Smaller gains are rounding errors.
const MIN_GAIN: f64 = 1e-6;

/// Hyper-parameters of the pipeline `xgb`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct BoostingSettings {
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

/// First and second derivative of a row's loss with respect to its score, both multiplied by the
/// row's weight.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowDerivatives {
    pub(super) gradient: f64,
    pub(super) hessian: f64,
}

/// Rows and columns that a round uses, each ascending.
pub(super) struct RoundSample {
    pub(super) rows: Vec<usize>,
    columns: Vec<usize>,
}

/// Data that all rounds share.
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
        let rows = count_for_share(self.settings.subsample, self.n);
        let columns = count_for_share(self.settings.colsample_bytree, f);
        RoundSample {
            rows: draw_indices(self.n, rows, seed, "boosted rows", round),
            columns: draw_indices(f, columns, seed, "boosted columns", round),
        }
    }

    /// Grows a tree on a round's rows and columns. `derivatives_of` returns the derivatives of a
    /// row's loss, which are stored as multiples of `units`.
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

/// Returns `share` times `count`, rounded down, but at least 1.
fn count_for_share(share: f64, count: usize) -> usize {
    ((share * count as f64) as usize).max(1)
}

/// Draws `drawn` indices below `count` for a round; returns them ascending.
fn draw_indices(count: usize, drawn: usize, seed: u64, name: &str, round: usize) -> Vec<usize> {
    if drawn == count {
        return (0..count).collect();
    }
    let mut generator = poolcast_base::seed::generator(seed, name, &[round as i64]);
    let mut places = sample(&mut generator, count, drawn).into_vec();
    places.sort_unstable();
    places
}
