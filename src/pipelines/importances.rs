//! Importance of each column in a fitted model.

/// Measure of [`ColumnImportances`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImportanceMeasure {
    /// Change of a logit or a decision value if the column grows by one after scaling, or by one
    /// standard deviation if the model sees components. With several classes, the largest absolute
    /// change counts.
    Coefficient,
    /// Share in the gain of all splits of all trees. The shares sum to one.
    SplitGain,
}

/// Importance of every column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnImportances {
    /// Measure of the importances.
    pub measure: ImportanceMeasure,
    /// Importance of each column, `[f]`.
    pub values: Vec<f64>,
}

impl ColumnImportances {
    /// Returns the importances of `f` columns from the coefficients `[o, f]` of a linear model.
    pub(super) fn from_coefficients(coefficients: &[f64], f: usize) -> ColumnImportances {
        let mut values = vec![0.0; f];
        for of_output in coefficients.chunks_exact(f.max(1)) {
            for (value, coefficient) in values.iter_mut().zip(of_output) {
                if coefficient.abs() > f64::abs(*value) {
                    *value = *coefficient;
                }
            }
        }
        ColumnImportances {
            measure: ImportanceMeasure::Coefficient,
            values,
        }
    }

    /// Returns the importances of columns from the total split gain at each, `[f]`.
    pub(super) fn from_gains(gains: &[f64]) -> ColumnImportances {
        let sum: f64 = gains.iter().sum();
        let values = gains
            .iter()
            .map(|gain| if sum > 0.0 { gain / sum } else { 0.0 })
            .collect();
        ColumnImportances {
            measure: ImportanceMeasure::SplitGain,
            values,
        }
    }

    /// Returns the indices of the columns, the most important first. Columns without any importance
    /// are skipped.
    pub fn ranked(&self) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.values.len())
            .filter(|at| self.values[*at] != 0.0)
            .collect();
        // The sort is stable, so equally important columns keep their order.
        places.sort_by(|a, b| self.values[*b].abs().total_cmp(&self.values[*a].abs()));
        places
    }
}
