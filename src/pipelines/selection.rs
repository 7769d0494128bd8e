//! Columns and classes → the columns worth keeping.

use anyhow::{Result, bail};

use super::forest::importances;
use super::logistic::Logistic;
use super::matrix::Matrix;
use super::model::Fitting;
use super::newton::Penalty;
use super::stop::Stop;

/// The places of the columns that the chosen selection keeps, ascending: under `none` all; under `threshold` those that are
/// not 0 everywhere; under `lasso` those with a coefficient in a logistic regression on standardised columns; under
/// `forest` those that matter in a random forest.
pub(super) fn select(x: &Matrix, fitting: Fitting<'_>) -> Result<Vec<usize>> {
    let Fitting {
        settings,
        y,
        k,
        seed,
        stop,
    } = fitting;
    let worth: Vec<f64> = match settings.word("selection")? {
        "none" => return Ok((0..x.f).collect()),
        "threshold" => {
            return Ok((0..x.f)
                .filter(|j| x.column(*j).iter().any(|value| *value != 0.0))
                .collect());
        }
        "lasso" => coefficients(x, (y, k), settings.real("selection_C")?, stop)?,
        "forest" => importances(
            x,
            (y, k),
            settings.whole("selection_n_estimators")?,
            seed,
            stop,
        )?,
        other => bail!("there is no selection `{other}`"),
    };
    let least = settings
        .number("selection_min_coefficient")
        .or(settings.number("selection_min_importance"));
    Ok((0..x.f)
        .filter(|j| worth[*j] > least.unwrap_or(0.0))
        .collect())
}

/// The largest absolute coefficient of each column over the logits, `[f]`.
fn coefficients(x: &Matrix, (y, k): (&[u32], usize), c: f64, stop: Stop<'_>) -> Result<Vec<f64>> {
    let n = x.n as f64;
    let spread = |column: &[f64]| {
        let mean = column.iter().sum::<f64>() / n;
        (column
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
            / n)
            .sqrt()
    };
    let scaled = (0..x.f).flat_map(|j| {
        let spread = spread(x.column(j));
        x.column(j)
            .iter()
            .map(move |value| if spread > 0.0 { value / spread } else { 0.0 })
    });
    let scaled = Matrix {
        n: x.n,
        f: x.f,
        x: scaled.collect(),
    };
    let fitted = Logistic::fit(&scaled, y, k, Penalty { c, l1_ratio: 1.0 }, stop)?;
    let of = |j: usize| {
        fitted
            .weights
            .iter()
            .skip(j)
            .step_by(x.f)
            .fold(0.0, |most: f64, w| most.max(w.abs()))
    };
    Ok((0..x.f).map(of).collect())
}
