//! What a model makes of each of its columns.

/// How [`ColumnImportances`] were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImportanceMeasure {
    /// What a logit or a decision changes by where the column grows by one after scaling, or by one standard deviation where
    /// the model sees components; of several classes that of the largest size.
    Coefficient,
    /// The share of what all splits of all trees gained: they sum to one.
    SplitGain,
}

/// The importance of every column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnImportances {
    /// How it was found.
    pub measure: ImportanceMeasure,
    /// `[f]`.
    pub values: Vec<f64>,
}

impl ColumnImportances {
    /// Of coefficients `[o, f]`.
    pub(super) fn of_coefficients(coefficients: &[f64], f: usize) -> ColumnImportances {
        let largest = |most: f64, next: &f64| if next.abs() > most.abs() { *next } else { most };
        let of = |column: usize| {
            coefficients
                .iter()
                .skip(column)
                .step_by(f.max(1))
                .fold(0.0, largest)
        };
        ColumnImportances {
            measure: ImportanceMeasure::Coefficient,
            values: (0..f).map(of).collect(),
        }
    }

    /// Of what splits gained, `[f]`.
    pub(super) fn of_gains(gains: &[f64]) -> ColumnImportances {
        let sum: f64 = gains.iter().sum();
        let share = |gain: &f64| if sum > 0.0 { gain / sum } else { 0.0 };
        ColumnImportances {
            measure: ImportanceMeasure::SplitGain,
            values: gains.iter().map(share).collect(),
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
