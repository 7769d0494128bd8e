//! A column of training rows → the shift and the scale that a model sees it by.

use serde::Deserialize;

use super::statistics::MeanSpread;

/// A scale that is a smaller share of the shift is what rounding leaves of a constant column.
const ROUNDING: f64 = 1e-12;

/// How columns are scaled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ScalerKind {
    /// Not at all; pipelines of trees know no other.
    #[default]
    None,
    /// To mean 0 and standard deviation 1: scikit-learn's `StandardScaler`.
    Standard,
    /// To 0 for the smallest value and 1 for the largest: scikit-learn's `MinMaxScaler`.
    MinMax,
}

/// A column is seen as `(value - shift) / scale`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ColumnScaling {
    pub(super) shift: f64,
    pub(super) scale: f64,
}

impl ScalerKind {
    /// The scaling learnt from `column`; a column that never varies is shifted alone.
    pub(super) fn learn(self, column: &[f64]) -> ColumnScaling {
        let mut scaling = match self {
            ScalerKind::None => ColumnScaling {
                shift: 0.0,
                scale: 1.0,
            },
            ScalerKind::Standard => {
                let spread = MeanSpread::new(column);
                ColumnScaling {
                    shift: spread.mean,
                    scale: spread.standard_deviation(),
                }
            }
            ScalerKind::MinMax => {
                let smallest = column.iter().copied().fold(f64::INFINITY, f64::min);
                let largest = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                ColumnScaling {
                    shift: smallest,
                    scale: largest - smallest,
                }
            }
        };

        let varies = scaling.scale > ROUNDING * scaling.shift.abs();
        if !varies {
            scaling.scale = 1.0;
        }
        scaling
    }
}
