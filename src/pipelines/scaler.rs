//! Scaling of columns: learns a shift and a scale from a column of training rows.

use serde::Deserialize;

use super::statistics::MeanSpread;

/// Minimum scale, relative to the shift. A smaller scale is the rounding error of a constant
/// column.
const ROUNDING: f64 = 1e-12;

/// Method of scaling columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ScalerKind {
    /// No scaling. Pipelines of trees support only this.
    #[default]
    None,
    /// Mean 0 and standard deviation 1: scikit-learn's `StandardScaler`.
    Standard,
    /// Smallest value 0 and largest value 1: scikit-learn's `MinMaxScaler`.
    MinMax,
}

/// Scaling of a column. The model sees `(value - shift) / scale`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ColumnScaling {
    pub(super) shift: f64,
    pub(super) scale: f64,
}

impl ScalerKind {
    /// Learns the scaling of `column`. A constant column is shifted but not scaled.
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
