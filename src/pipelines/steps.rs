//! What stands before a model: missing values filled, columns selected or turned into components, and scaled. Learnt from
//! training rows alone.

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::importances::{ColumnImportances, ImportanceMeasure};
use super::matrix::{Matrix, add};
use super::model::Fitting;
use super::parameters::Settings;
use super::selection::select;
use super::svd;
use crate::error::hinted;
use crate::tables::FeatureTable;

/// The steps, fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Steps {
    threshold: Option<Threshold>,
    /// Those that the model sees, in this order, or that its components are made of.
    columns: Vec<Column>,
    /// What the model sees in place of the columns.
    components: Option<Vec<Component>>,
}

/// A sum of the columns, which the model sees as `(value - shift) / scale`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Component {
    /// What of each column is in it, `[columns]`.
    loadings: Vec<f64>,
    shift: f64,
    scale: f64,
}

/// Makes what is small 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Threshold {
    at: f64,
    /// Draws the rest towards 0 by as much.
    soft: bool,
}

/// One column of the table that the model sees, as `(value - shift) / scale`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Column {
    place: usize,
    /// The median of the training rows, for what is missing; without it, missing it remains.
    fill: Option<f64>,
    shift: f64,
    scale: f64,
    /// The standard deviation in the training rows.
    spread: f64,
}

impl Steps {
    /// Learns the steps from `table`. Where `fills` says no, the model sees what is missing as NaN.
    pub(super) fn fit(table: &FeatureTable, fitting: Fitting<'_>, fills: bool) -> Result<Steps> {
        let settings = fitting.settings;
        let threshold = match settings.word("selection")? {
            "threshold" => Some(Threshold {
                at: settings.real("selection_threshold")?,
                soft: settings.word("selection_mode")? == "soft",
            }),
            _ => None,
        };
        let all = (0..table.column_count())
            .map(|place| Column {
                place,
                fill: None,
                shift: 0.0,
                scale: 1.0,
                spread: 0.0,
            })
            .collect();
        let mut steps = Steps {
            threshold,
            columns: all,
            components: None,
        };
        let raw = steps.apply(table);
        for (place, column) in steps.columns.iter_mut().enumerate() {
            column.fill = Some(median(raw.column(place)));
        }
        let filled = steps.apply(table);
        for (place, column) in steps.columns.iter_mut().enumerate() {
            column.spread = deviation(filled.column(place)).1;
        }
        if settings.word("selection")? == "svd" {
            steps.components = Some(components(&filled, fitting)?);
            return Ok(steps);
        }
        let kept = select(&filled, fitting)?;
        ensure!(
            !kept.is_empty(),
            hinted(
                format!(
                    "the table has {}, and the selection leaves none",
                    crate::output::counted(table.column_count(), "feature")
                ),
                "let it keep more: a larger `selection_C`, or smaller limits"
            )
        );
        steps.columns = kept.iter().map(|place| steps.columns[*place]).collect();
        for (column, place) in steps.columns.iter_mut().zip(kept) {
            (column.shift, column.scale) = scaler(settings, filled.column(place))?;
            column.fill = column.fill.filter(|_| fills);
        }
        Ok(steps)
    }

    /// The columns as the model sees them.
    pub(super) fn apply(&self, table: &FeatureTable) -> Matrix {
        let value = |column: &Column, value: f64| {
            let value = self
                .threshold
                .map_or(value, |threshold| threshold.apply(value));
            let filled = if value.is_nan() {
                column.fill.unwrap_or(value)
            } else {
                value
            };
            (filled - column.shift) / column.scale
        };
        let columns = self.columns.iter();
        let x = columns.flat_map(|column| {
            table
                .column(column.place)
                .iter()
                .map(move |x| value(column, *x))
        });
        let columns = Matrix {
            n: table.row_count(),
            f: self.columns.len(),
            x: x.collect(),
        };
        let Some(components) = &self.components else {
            return columns;
        };
        let x = components.iter().flat_map(|component| {
            let sum = sum_of(&columns, &component.loadings);
            sum.into_iter()
                .map(|value| (value - component.shift) / component.scale)
        });
        Matrix {
            n: table.row_count(),
            f: components.len(),
            x: x.collect(),
        }
    }

    /// How many columns the model sees.
    pub(super) fn column_count(&self) -> usize {
        self.components
            .as_ref()
            .map_or(self.columns.len(), Vec::len)
    }

    /// What is known of the columns that the model sees, said of the `f` columns of the table.
    pub(super) fn of_table(&self, importances: &ColumnImportances, f: usize) -> ColumnImportances {
        let mut values = vec![0.0; f];
        let Some(components) = &self.components else {
            self.columns
                .iter()
                .zip(&importances.values)
                .for_each(|(column, value)| values[column.place] = *value);
            return ColumnImportances {
                measure: importances.measure,
                values,
            };
        };
        for (component, value) in components.iter().zip(&importances.values) {
            for (column, loading) in self.columns.iter().zip(&component.loadings) {
                values[column.place] += match importances.measure {
                    ImportanceMeasure::Coefficient => {
                        value / component.scale * loading * column.spread
                    }
                    // The squares of a component's loadings sum to one.
                    ImportanceMeasure::SplitGain => value * loading * loading,
                };
            }
        }
        ColumnImportances {
            measure: importances.measure,
            values,
        }
    }

    /// The places of the table's columns that the model depends on.
    pub(super) fn places(&self) -> Vec<usize> {
        self.columns.iter().map(|column| column.place).collect()
    }

    /// Refuses columns outside a table of `f`, and numbers that no fit leaves.
    pub(super) fn check(&self, f: usize) -> Result<()> {
        ensure!(self.column_count() > 0, "the model sees no column");
        let sound = |column: &Column| {
            let numbers = [
                column.fill.unwrap_or(0.0),
                column.shift,
                column.scale,
                column.spread,
            ];
            column.place < f
                && column.scale > 0.0
                && numbers.iter().all(|number| number.is_finite())
        };
        ensure!(
            self.columns.iter().all(sound),
            "a column is not one of its {f}, or its scale is not a number above 0"
        );
        let sound = |component: &Component| {
            let numbers = component
                .loadings
                .iter()
                .chain([&component.shift, &component.scale]);
            component.loadings.len() == self.columns.len()
                && component.scale > 0.0
                && numbers.into_iter().all(|number| number.is_finite())
        };
        ensure!(
            self.components.iter().flatten().all(sound),
            "a component has not a number for each column"
        );
        Ok(())
    }
}

/// As many components of the columns of `x` as are asked for.
fn components(x: &Matrix, fitting: Fitting<'_>) -> Result<Vec<Component>> {
    let Fitting {
        settings,
        seed,
        stop,
        ..
    } = fitting;
    let wanted = settings.whole("selection_n_components")?;
    ensure!(
        wanted <= x.f,
        hinted(
            format!(
                "`selection_n_components` is {wanted}, and the table has {}",
                crate::output::counted(x.f, "feature")
            ),
            "ask for as many components as there are features at most"
        )
    );
    let component = |loadings: Vec<f64>| {
        let (shift, scale) = scaler(settings, &sum_of(x, &loadings))?;
        Ok(Component {
            loadings,
            shift,
            scale,
        })
    };
    svd::components(x, wanted, seed, stop)?
        .into_iter()
        .map(component)
        .collect()
}

/// The sum of columns, each as often as `loadings` say: `[n]`.
fn sum_of(x: &Matrix, loadings: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; x.n];
    loadings
        .iter()
        .enumerate()
        .for_each(|(place, loading)| add(&mut sum, *loading, x.column(place)));
    sum
}

/// The mean and the standard deviation.
fn deviation(column: &[f64]) -> (f64, f64) {
    let n = column.len() as f64;
    let mean = column.iter().sum::<f64>() / n;
    (
        mean,
        (column
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
            / n)
            .sqrt(),
    )
}

impl Threshold {
    fn apply(self, value: f64) -> f64 {
        // Missing stays missing.
        let small = value.abs() < self.at;
        match (small, self.soft) {
            (true, _) => 0.0,
            (false, true) => value.signum() * (value.abs() - self.at),
            (false, false) => value,
        }
    }
}

/// The middle of the values that are there, the mean of the two middle ones where their number is even; 0 of none.
fn median(column: &[f64]) -> f64 {
    let mut known: Vec<f64> = column
        .iter()
        .copied()
        .filter(|value| !value.is_nan())
        .collect();
    known.sort_unstable_by(f64::total_cmp);
    match known.len() {
        0 => 0.0,
        n if n % 2 == 1 => known[n / 2],
        n => f64::midpoint(known[n / 2 - 1], known[n / 2]),
    }
}

/// The shift and the scale of a column; one that never varies is shifted alone.
fn scaler(settings: Settings<'_>, column: &[f64]) -> Result<(f64, f64)> {
    let (shift, scale) = match settings.0.get("scaler").and_then(|word| word.as_str()) {
        None | Some("none") => (0.0, 1.0),
        Some("standard") => deviation(column),
        Some("minmax") => {
            let least = column.iter().copied().fold(f64::INFINITY, f64::min);
            (
                least,
                column.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least,
            )
        }
        Some(other) => bail!("there is no scaler `{other}`"),
    };
    // What rounding leaves of a column that never varies is no spread.
    Ok((
        shift,
        if scale > 1e-12 * shift.abs() {
            scale
        } else {
            1.0
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipelines::effective_hyper_parameters;
    use serde_json::json;

    fn steps(parameters: serde_json::Value, x: &[[f64; 4]]) -> (Steps, Vec<f64>) {
        let names = |n: usize| (0..n).map(|at| at.to_string()).collect();
        let x = FeatureTable {
            features: names(x.len()),
            x: x.concat(),
            y: vec![0, 1, 0, 1],
            classes: names(2),
            groups: vec![0; 4],
        };
        let parameters = effective_hyper_parameters(
            "lasso",
            &serde_json::from_value(parameters).expect("an object"),
        )
        .expect("accepted");
        let fitting = Fitting {
            settings: Settings(&parameters),
            y: &x.y,
            k: 2,
            seed: 1,
            stop: &|| false,
        };
        let steps = Steps::fit(&x, fitting, true).expect("fitted");
        let seen = steps.apply(&x).x;
        (steps, seen)
    }

    #[test]
    fn the_missing_take_the_median() {
        let x = [[1.0, f64::NAN, 2.0, 9.0], [f64::NAN; 4]];
        assert_eq!(
            steps(json!({"scaler": "none"}), &x).1,
            [1.0, 2.0, 2.0, 9.0, 0.0, 0.0, 0.0, 0.0]
        );
    }

    #[test]
    fn scalers_are_those_of_scikit_learn() {
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
    fn a_threshold_makes_the_small_zero_and_drops_what_is_zero_then() {
        let x = [[0.0, 1.0, 2.0, 3.0], [0.5, 0.0, -1.0, 0.0]];
        let of = |mode: &str| {
            let parameters = json!({"scaler": "none", "selection": "threshold", "selection_threshold": 2, "selection_mode": mode});
            steps(parameters, &x).1
        };
        assert_eq!(of("hard"), [0.0, 0.0, 2.0, 3.0]);
        assert_eq!(of("soft"), [0.0, 0.0, 0.0, 1.0]);
    }
}
