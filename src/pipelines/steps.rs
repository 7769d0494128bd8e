//! Preprocessing of a table: fills missing values, selects columns or computes components, and
//! scales them. All of it is learnt from the training rows alone.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::classifier::FitRun;
use super::importances::{ColumnImportances, ImportanceMeasure};
use super::scaler::{ColumnScaling, ScalerKind};
use super::selection::{FeatureSelection, SelectionRows, ThresholdMode, select_columns};
use super::solvers::labels::TrainingTargets;
use super::solvers::matrix::{ColumnMatrix, add_scaled};
use super::solvers::svd::singular_vectors;
use super::statistics::{MeanSpread, mean_of_known, median_of_known};
use poolcast_base::error::hinted;
use poolcast_base::output::counted;
use poolcast_tables::FeatureTable;

/// Hyper-parameters of the preprocessing steps.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct StepSettings {
    #[serde(default)]
    scaler: ScalerKind,
    #[serde(default)]
    imputer: Imputer,
    #[serde(flatten)]
    pub(super) selection: FeatureSelection,
}

/// What a missing value becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Imputer {
    /// The median of the column.
    #[default]
    Median,
    /// The mean of the column.
    Mean,
    /// 0.
    Zero,
}

impl Imputer {
    /// Returns what stands for the missing values among `column`; 0 if all are missing.
    fn fill_for(self, column: &[f64]) -> f64 {
        match self {
            Imputer::Median => median_of_known(column),
            Imputer::Mean => mean_of_known(column),
            Imputer::Zero => 0.0,
        }
    }
}

/// Treatment of missing values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingValues {
    /// They are replaced by a number of the column.
    Filled,
    /// They stay NaN, and the model handles them.
    Kept,
}

/// Treatment of values outside the range of the training rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValuesBeyond {
    /// The model sees them as they are, as scikit-learn's models do.
    Kept,
    /// The model sees the lowest or the highest value of the training rows in their place. A linear
    /// model then does not extrapolate. For trees it makes no difference.
    Clipped,
}

/// Fitted preprocessing steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PreprocessingSteps {
    threshold: Option<ValueThreshold>,
    /// Columns that the model sees, in this order, or that its components consist of.
    columns: Vec<SelectedColumn>,
    /// Components that the model sees in place of the columns.
    components: Option<Vec<SvdComponent>>,
}

/// A component: a weighted sum of the columns, which the model sees as `(value - shift) / scale`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SvdComponent {
    /// Weight of each column, `[columns]`.
    loadings: Vec<f64>,
    shift: f64,
    scale: f64,
}

/// Threshold that replaces small values by 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct ValueThreshold {
    /// Threshold. Values with a smaller absolute value become 0.
    at: f64,
    /// True if the other values move towards 0 by the threshold.
    soft: bool,
}

/// A column of the table that the model sees as `(value - shift) / scale`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct SelectedColumn {
    /// Index of the column in the table.
    place: usize,
    /// Replacement for missing values, by the training rows. `None` keeps them missing.
    fill: Option<f64>,
    shift: f64,
    scale: f64,
    /// Standard deviation in the training rows.
    spread: f64,
    /// Lowest and highest value in the training rows, if values outside are clipped to them.
    range: Option<[f64; 2]>,
}

impl PreprocessingSteps {
    /// Learns the steps from `table`, whose rows have these `targets`.
    pub(super) fn fit(
        settings: StepSettings,
        missing: MissingValues,
        table: &FeatureTable,
        beyond: ValuesBeyond,
        targets: TrainingTargets<'_>,
        run: FitRun<'_>,
    ) -> Result<PreprocessingSteps> {
        let mut steps = PreprocessingSteps::unscaled(settings.selection, table.column_count());
        steps.learn_fills(settings.imputer, table);
        if beyond == ValuesBeyond::Clipped {
            steps.learn_ranges(table);
        }

        // Selections and components need numbers everywhere, even if the model sees missing values.
        let filled = steps.apply(table);
        for (place, column) in steps.columns.iter_mut().enumerate() {
            column.spread = MeanSpread::new(filled.column(place)).standard_deviation();
        }

        if let FeatureSelection::Svd { components } = settings.selection {
            let components = fit_components(components, settings.scaler, &filled, run)?;
            steps.components = Some(components);
            return Ok(steps);
        }

        let rows = SelectionRows {
            x: &filled,
            targets,
        };
        let kept = select_columns(settings.selection, rows, run)?;
        ensure!(
            !kept.is_empty(),
            hinted(
                format!(
                    "the selection keeps none of {}",
                    counted(table.column_count(), "feature")
                ),
                "keep more: increase `selection_C`, or lower the limits"
            )
        );
        steps.columns = kept.iter().map(|place| steps.columns[*place]).collect();
        for (column, place) in steps.columns.iter_mut().zip(kept) {
            let scaling = settings.scaler.learn(filled.column(place));
            column.shift = scaling.shift;
            column.scale = scaling.scale;
            if missing == MissingValues::Kept {
                column.fill = None;
            }
        }
        Ok(steps)
    }

    /// Returns steps that show a model all `f` columns of a table as they are, except for a
    /// threshold.
    fn unscaled(selection: FeatureSelection, f: usize) -> PreprocessingSteps {
        let threshold = match selection {
            FeatureSelection::Threshold { limit, mode } => Some(ValueThreshold {
                at: limit,
                soft: mode == ThresholdMode::Soft,
            }),
            _ => None,
        };
        let columns = (0..f)
            .map(|place| SelectedColumn {
                place,
                fill: None,
                shift: 0.0,
                scale: 1.0,
                spread: 0.0,
                range: None,
            })
            .collect();
        PreprocessingSteps {
            threshold,
            columns,
            components: None,
        }
    }

    fn learn_fills(&mut self, imputer: Imputer, table: &FeatureTable) {
        let threshold = self.threshold;
        for column in &mut self.columns {
            let raw = table.column(column.place).iter();
            let seen: Vec<f64> = raw.map(|value| column.apply(*value, threshold)).collect();
            column.fill = Some(imputer.fill_for(&seen));
        }
    }

    fn learn_ranges(&mut self, table: &FeatureTable) {
        let filled = self.apply(table);
        for (place, column) in self.columns.iter_mut().enumerate() {
            column.range = Some(range_of(filled.column(place)));
        }
    }

    /// Returns the columns of `table` as the model sees them.
    pub(super) fn apply(&self, table: &FeatureTable) -> ColumnMatrix {
        let mut values = Vec::with_capacity(self.columns.len() * table.row_count());
        for column in &self.columns {
            let raw = table.column(column.place);
            values.extend(raw.iter().map(|value| column.apply(*value, self.threshold)));
        }
        let columns = ColumnMatrix {
            n: table.row_count(),
            f: self.columns.len(),
            values,
        };

        match &self.components {
            None => columns,
            Some(components) => component_columns(components, &columns),
        }
    }

    /// Number of columns that the model sees.
    pub(super) fn column_count(&self) -> usize {
        match &self.components {
            None => self.columns.len(),
            Some(components) => components.len(),
        }
    }

    /// Converts the importances of the columns that the model sees to importances of the `f`
    /// columns of the table.
    pub(super) fn importances_of_table(
        &self,
        seen: &ColumnImportances,
        f: usize,
    ) -> ColumnImportances {
        let measure = seen.measure;
        let mut values = vec![0.0; f];
        match &self.components {
            None => {
                for (column, value) in self.columns.iter().zip(&seen.values) {
                    values[column.place] = *value;
                }
            }
            Some(components) => {
                // A component is a weighted sum, so a column gets its share of every component.
                for (component, value) in components.iter().zip(&seen.values) {
                    for (column, loading) in self.columns.iter().zip(&component.loadings) {
                        values[column.place] += match measure {
                            // One standard deviation of the column counts: the raw columns under a
                            // component are not scaled.
                            ImportanceMeasure::Coefficient => {
                                value / component.scale * loading * column.spread
                            }
                            // The squares of a component's loadings sum to one.
                            ImportanceMeasure::SplitGain => value * loading * loading,
                        };
                    }
                }
            }
        }
        ColumnImportances { measure, values }
    }

    /// Returns the indices of the table's columns that the model depends on.
    pub(super) fn used_columns(&self) -> Vec<usize> {
        self.columns.iter().map(|column| column.place).collect()
    }

    /// Rejects columns outside a table of `f`, and numbers that fitting never produces.
    pub(super) fn check(&self, f: usize) -> Result<()> {
        ensure!(self.column_count() > 0, "the model has no columns");
        ensure!(
            self.columns.iter().all(|column| column.is_sound(f)),
            "a column is not below {f}, or its scale is not a number above 0"
        );
        ensure!(
            self.components
                .iter()
                .flatten()
                .all(|component| component.is_sound(self.columns.len())),
            "a component does not have one number per column"
        );
        Ok(())
    }
}

/// Returns the lowest and the highest of some values.
fn range_of(values: &[f64]) -> [f64; 2] {
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    [lowest, highest]
}

/// Fits the first `wanted` components of the columns of `x`, with their scaling.
fn fit_components(
    wanted: usize,
    scaler: ScalerKind,
    x: &ColumnMatrix,
    run: FitRun<'_>,
) -> Result<Vec<SvdComponent>> {
    ensure!(
        wanted <= x.f,
        hinted(
            format!(
                "`selection_n_components` is {wanted}, but the table has only {}",
                counted(x.f, "feature")
            ),
            "set it to at most the number of features"
        )
    );

    let mut components = Vec::new();
    for loadings in singular_vectors(x, wanted, run.seed, run.stop)? {
        let ColumnScaling { shift, scale } = scaler.learn(&weighted_sum(x, &loadings));
        components.push(SvdComponent {
            loadings,
            shift,
            scale,
        });
    }
    Ok(components)
}

fn component_columns(components: &[SvdComponent], columns: &ColumnMatrix) -> ColumnMatrix {
    let mut values = Vec::with_capacity(components.len() * columns.n);
    for component in components {
        let sum = weighted_sum(columns, &component.loadings);
        values.extend(
            sum.into_iter()
                .map(|value| (value - component.shift) / component.scale),
        );
    }
    ColumnMatrix {
        n: columns.n,
        f: components.len(),
        values,
    }
}

/// Returns the sum of the columns, each times its loading, `[n]`.
fn weighted_sum(x: &ColumnMatrix, loadings: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; x.n];
    for (place, loading) in loadings.iter().enumerate() {
        add_scaled(&mut sum, *loading, x.column(place));
    }
    sum
}

impl SelectedColumn {
    /// Returns the value that the model sees in place of `value`.
    fn apply(&self, value: f64, threshold: Option<ValueThreshold>) -> f64 {
        let value = threshold.map_or(value, |threshold| threshold.apply(value));
        let filled = if value.is_nan() {
            self.fill.unwrap_or(value)
        } else {
            value
        };
        // A missing value stays missing.
        let seen = self
            .range
            .map_or(filled, |[lowest, highest]| filled.clamp(lowest, highest));
        (seen - self.shift) / self.scale
    }

    fn is_sound(&self, f: usize) -> bool {
        let numbers = [
            self.fill.unwrap_or(0.0),
            self.shift,
            self.scale,
            self.spread,
        ];
        self.place < f
            && self.scale > 0.0
            && numbers.iter().all(|number| number.is_finite())
            && self.range.is_none_or(|[lowest, highest]| lowest <= highest)
    }
}

impl SvdComponent {
    fn is_sound(&self, columns: usize) -> bool {
        let mut numbers = self.loadings.iter().chain([&self.shift, &self.scale]);
        self.loadings.len() == columns
            && self.scale > 0.0
            && numbers.all(|number| number.is_finite())
    }
}

impl ValueThreshold {
    fn apply(self, value: f64) -> f64 {
        // NaN is not smaller than any number, so missing values stay missing.
        if value.abs() < self.at {
            0.0
        } else if self.soft {
            value.signum() * (value.abs() - self.at)
        } else {
            value
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hyper_parameters::{effective_hyper_parameters, read_settings};
    use crate::solvers::labels::ClassLabels;
    use crate::solvers::stop::StopSignal;
    use poolcast_tables::{RowClasses, RowTargets};
    use serde_json::json;

    fn steps(parameters: serde_json::Value, x: &[[f64; 4]]) -> (PreprocessingSteps, Vec<f64>) {
        let names = |n: usize| (0..n).map(|at| at.to_string()).collect();
        let x = FeatureTable {
            features: names(x.len()),
            x: x.concat(),
            targets: RowTargets::Classes(RowClasses {
                names: names(2),
                y: vec![0, 1, 0, 1],
            }),
            groups: vec![0; 4],
        };
        let parameters = effective_hyper_parameters(
            "lasso",
            &serde_json::from_value(parameters).expect("an object"),
        )
        .expect("accepted");
        let labels = ClassLabels {
            y: x.targets.classes(),
            class_count: 2,
            weights: &[1.0; 4],
        };
        let run = FitRun {
            seed: 1,
            stop: StopSignal::new(&|| false),
        };
        let settings = read_settings(&parameters).expect("settings");
        let steps = PreprocessingSteps::fit(
            settings,
            MissingValues::Filled,
            &x,
            ValuesBeyond::Kept,
            TrainingTargets::Classes(labels),
            run,
        )
        .expect("fitted");
        let seen = steps.apply(&x).values;
        (steps, seen)
    }

    #[test]
    fn missing_values_become_what_the_imputer_says() {
        let missing = f64::NAN;
        let x = [[1.0, 2.0, 9.0, missing], [missing; 4]];
        for (imputer, expected) in [("median", 2.0), ("mean", 4.0), ("zero", 0.0)] {
            let parameters = json!({"imputer": imputer, "scaler": "none"});
            let (_, seen) = steps(parameters, &x);
            assert_eq!(seen[3..], [expected, 0.0, 0.0, 0.0, 0.0], "{imputer}");
        }
    }

    #[test]
    fn missing_values_become_the_median() {
        let x = [[1.0, f64::NAN, 2.0, 9.0], [f64::NAN; 4]];
        assert_eq!(
            steps(json!({"scaler": "none"}), &x).1,
            [1.0, 2.0, 2.0, 9.0, 0.0, 0.0, 0.0, 0.0]
        );
    }

    #[test]
    fn scalers_match_scikit_learn() {
        let x = [[1.0, 3.0, 1.0, 3.0], [5.0; 4]];
        assert_eq!(
            steps(json!({"scaler": "standard"}), &x).1,
            [-1.0, 1.0, -1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
        );
        assert_eq!(
            steps(json!({"scaler": "minmax"}), &x).1,
            [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
        );
    }

    #[test]
    fn threshold_zeroes_small_values_and_drops_zero_columns() {
        let x = [[0.0, 1.0, 2.0, 3.0], [0.5, 0.0, -1.0, 0.0]];
        let of = |mode: &str| {
            let parameters = json!({"scaler": "none", "selection": "threshold", "selection_threshold": 2, "selection_mode": mode});
            steps(parameters, &x).1
        };
        assert_eq!(of("hard"), [0.0, 0.0, 2.0, 3.0]);
        assert_eq!(of("soft"), [0.0, 0.0, 0.0, 1.0]);
    }
}
