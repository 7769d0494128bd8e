//! A fitted pipeline, and rows that it did not learn from → how much it depends on each feature.

use rand::seq::SliceRandom as _;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use poolcast_config::Metric;
use poolcast_pipelines::{ColumnImportances, FittedPipeline, ImportanceMeasure};
use poolcast_tables::FeatureTable;
use poolcast_holds::training::target_score;

/// How often the rows of a feature are put in another order.
const REPEATS: usize = 5;
/// The largest number of features that are permuted: those that matter most to the model itself.
const PERMUTED: usize = 100;

/// How much a model depends on its features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeatureImportances {
    /// What the model itself says; none of a network and of machines with a kernel.
    pub measure: Option<ImportanceMeasure>,
    /// The features that matter, the most important first: by the model itself, else by
    /// permutation.
    pub features: Vec<FeatureImportance>,
}

/// How much a model depends on one feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeatureImportance {
    /// The column of the table.
    pub feature: String,
    /// What the model itself makes of it, by the measure.
    pub own: Option<f64>,
    /// How much worse the sweep's metric is on rows held out once this feature's values are in
    /// another order, the mean over some orders.
    pub permutation: Option<f64>,
}

impl FeatureImportances {
    /// Those of `fitted`, permuted on `held_out`, by `metric`.
    pub(super) fn compute(
        fitted: &FittedPipeline,
        held_out: Option<&FeatureTable>,
        metric: &Metric,
        seed: u64,
    ) -> FeatureImportances {
        let own = fitted.importances();
        let mut places = own
            .as_ref()
            .map_or_else(|| fitted.used_features(), ColumnImportances::ranked);
        let permuted = &places[..places.len().min(PERMUTED)];
        let permuted: Vec<Option<f64>> = held_out.map_or(Vec::new(), |table| {
            permutations(fitted, table, permuted, metric, seed)
        });
        let mut features: Vec<FeatureImportance> = places
            .drain(..)
            .enumerate()
            .map(|(rank, place)| FeatureImportance {
                feature: fitted.features[place].clone(),
                own: own.as_ref().map(|own| own.values[place]),
                permutation: permuted.get(rank).copied().flatten(),
            })
            .collect();
        if own.is_none() {
            features.retain(|feature| feature.permutation.is_some());
            features.sort_by(|a, b| {
                b.permutation
                    .unwrap_or(0.0)
                    .total_cmp(&a.permutation.unwrap_or(0.0))
            });
        }
        FeatureImportances {
            measure: own.map(|own| own.measure),
            features,
        }
    }
}

/// What the metric loses by each of the features at `places`; none where it is not defined.
fn permutations(
    fitted: &FittedPipeline,
    table: &FeatureTable,
    places: &[usize],
    metric: &Metric,
    seed: u64,
) -> Vec<Option<f64>> {
    let n = table.row_count();
    let loss = |table: &FeatureTable| {
        let predicted = fitted.predict(table).ok()?;
        let value = target_score(metric.name, &predicted, &table.targets)?;
        Some(metric.goal.loss(value))
    };
    let Some(before) = loss(table) else {
        return Vec::new();
    };
    let permuted = |table: &mut FeatureTable, place: &usize| {
        let column = table.column(*place).to_vec();
        let mut sum = 0.0;
        for repeat in 0..REPEATS {
            let mut order = column.clone();
            order.shuffle(&mut poolcast_base::seed::generator(
                seed,
                "permutation",
                &[*place as i64, repeat as i64],
            ));
            table.x[place * n..][..n].copy_from_slice(&order);
            sum += loss(table)? - before;
        }
        table.x[place * n..][..n].copy_from_slice(&column);
        Some(sum / REPEATS as f64)
    };
    places
        .par_iter()
        .map_init(|| table.clone(), permuted)
        .collect()
}
