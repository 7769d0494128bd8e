//! Measures how much a fitted pipeline depends on each feature, on rows that it did not learn from.

use rand::seq::SliceRandom as _;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use poolcast_config::Metric;
use poolcast_holds::training::target_score;
use poolcast_pipelines::{ColumnImportances, FittedPipeline, ImportanceMeasure};
use poolcast_tables::FeatureTable;

/// Number of times that the values of a feature are permuted.
const PERMUTATIONS_PER_FEATURE: usize = 5;
/// The largest number of features that are permuted: those with the largest importance in the model
/// itself.
const MAX_PERMUTED_FEATURES: usize = 100;

/// The importance of a model's features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeatureImportances {
    /// The measure of the model's own importances; `None` for a network and for kernel machines.
    pub measure: Option<ImportanceMeasure>,
    /// The important features, the most important first: by the model itself, else by permutation.
    pub features: Vec<FeatureImportance>,
}

/// The importance of one feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeatureImportance {
    /// The column of the table.
    pub feature: String,
    /// The model's own importance of the feature, by the measure.
    pub own: Option<f64>,
    /// The mean decrease in quality by the sweep's metric on held-out rows, over some permutations
    /// of this feature's values.
    pub permutation: Option<f64>,
}

impl FeatureImportances {
    /// Computes the importances of `fitted`: its own, and by permutation on `held_out` with
    /// `metric`.
    pub(crate) fn compute(
        fitted: &FittedPipeline,
        held_out: Option<&FeatureTable>,
        metric: &Metric,
        seed: u64,
    ) -> FeatureImportances {
        let own = fitted.importances();
        let mut places = own
            .as_ref()
            .map_or_else(|| fitted.used_features(), ColumnImportances::ranked);
        let permuted = &places[..places.len().min(MAX_PERMUTED_FEATURES)];
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
        // Without importances of its own, the model is described by the permutations.
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

/// The mean increase of the metric's loss for a permutation of each feature at `places`. An entry
/// is `None` if it is not defined; empty if the metric is not defined at all.
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
        for repeat in 0..PERMUTATIONS_PER_FEATURE {
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
        Some(sum / PERMUTATIONS_PER_FEATURE as f64)
    };
    places
        .par_iter()
        .map_init(|| table.clone(), permuted)
        .collect()
}
