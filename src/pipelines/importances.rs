//! What a model makes of each of its columns.

/// How [`ColumnImportances`] were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImportanceMeasure {
    /// What a logit or a decision changes by where the column grows by one after scaling, or by one
    /// standard deviation where the model sees components. Of several classes the change of the
    /// largest size counts.
    Coefficient,
    /// The share of what all splits of all trees gained. The shares sum to one.
    SplitGain,
}

/// The importance of every column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnImportances {
    /// How they were found.
    pub measure: ImportanceMeasure,
    /// The importance of each column, `[f]`.
    pub values: Vec<f64>,
}

impl ColumnImportances {
    /// The importances of `f` columns by the coefficients `[o, f]` of a linear model.
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

    /// The importances of columns by what the splits at each gained, `[f]`.
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

    /// The columns in order of importance, the largest first; those of no importance are left out.
    pub fn ranked(&self) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.values.len())
            .filter(|at| self.values[*at] != 0.0)
            .collect();
        // A stable sort: of equals the first column comes first.
        places.sort_by(|a, b| self.values[*b].abs().total_cmp(&self.values[*a].abs()));
        places
    }
}
