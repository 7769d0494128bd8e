//! The Pareto front of a sweep with several metrics: the trials that no other trial dominates.

use serde::{Deserialize, Serialize};

use poolcast_config::{Metric, SweepMetrics};

/// A trial of the Pareto front.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrontTrial {
    /// The trial's number, from 1.
    pub trial: usize,
    /// Its value of each metric, in the order of the configuration.
    pub values: Vec<f64>,
}

/// Returns the Pareto front of `trials`, for a sweep with several `metrics`; otherwise it is empty. Each trial
/// has its number, its value of the first metric, and those of the others. A trial dominates another one if
/// it is better in one metric and not worse in any. Trials without a value of each metric are left out. The
/// front is in the order of the first metric, then of the next ones, then of the numbers of trials.
pub fn pareto_front<'a>(
    metrics: &SweepMetrics,
    trials: impl IntoIterator<Item = (usize, Option<f64>, &'a [Option<f64>])>,
) -> Vec<FrontTrial> {
    if metrics.others().is_empty() {
        return Vec::new();
    }
    let values = trials.into_iter().filter_map(|(trial, first, others)| {
        let values = std::iter::once(&first).chain(others).copied();
        let values: Vec<f64> = values.collect::<Option<_>>()?;
        let is_whole = values.len() == metrics.all().count();
        let is_finite = values.iter().all(|value| value.is_finite());
        (is_whole && is_finite).then_some(FrontTrial { trial, values })
    });
    let metrics: Vec<&Metric> = metrics.all().collect();
    front_of(&metrics, values.collect())
}

/// The trials of `all` that no other one dominates.
fn front_of(metrics: &[&Metric], mut all: Vec<FrontTrial>) -> Vec<FrontTrial> {
    let losses = |one: &FrontTrial| -> Vec<f64> {
        let values = metrics.iter().zip(&one.values);
        // A zero has one sign, so that equal values compare as equal.
        values
            .map(|(metric, value)| metric.goal.loss(*value) + 0.0)
            .collect()
    };
    all.sort_by(|a, b| {
        let (of_a, of_b) = (losses(a), losses(b));
        let pairs = of_a.iter().zip(&of_b);
        let order = pairs
            .map(|(a, b)| a.total_cmp(b))
            .find(|order| order.is_ne());
        order.unwrap_or_else(|| a.trial.cmp(&b.trial))
    });

    // A dominated trial comes after one of the front that dominates it.
    let mut front: Vec<FrontTrial> = Vec::new();
    let mut of_front: Vec<Vec<f64>> = Vec::new();
    for one in all {
        let own = losses(&one);
        let is_dominated = of_front
            .iter()
            .any(|known| *known != own && known.iter().zip(&own).all(|(known, own)| known <= own));
        if !is_dominated {
            of_front.push(own);
            front.push(one);
        }
    }
    front
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn metrics() -> SweepMetrics {
        let loss = json!({"name": "validation_loss", "goal": "minimize"});
        let area = json!({"name": "validation_roc_auc", "goal": "maximize"});
        serde_json::from_value(json!([loss, area])).expect("metrics")
    }

    fn front(values: &[[f64; 2]]) -> Vec<usize> {
        let all = values.iter().zip(1..).map(|(values, trial)| FrontTrial {
            trial,
            values: values.to_vec(),
        });
        let metrics = metrics();
        let metrics: Vec<&Metric> = metrics.all().collect();
        let front = front_of(&metrics, all.collect());
        front.into_iter().map(|one| one.trial).collect()
    }

    #[test]
    fn front_has_the_trials_that_no_other_one_dominates() {
        let values = [
            [0.5, 0.9],
            [0.2, 0.7],
            [0.2, 0.6],
            [0.6, 0.9],
            [0.1, 0.5],
            [0.2, 0.7],
        ];
        assert_eq!(front(&values), [5, 2, 6, 1]);
        assert_eq!(front(&[[0.0, 1.0], [-0.0, 1.0]]), [1, 2]);
        assert!(front(&[]).is_empty());
    }

    proptest! {
        /// The front is what the definition says, whatever the order of trials.
        #[test]
        fn front_follows_the_definition(values in prop::collection::vec(prop::array::uniform2(0..4_u8), 0..12)) {
            let values: Vec<[f64; 2]> = values.iter().map(|pair| pair.map(f64::from)).collect();
            let dominates = |a: &[f64; 2], b: &[f64; 2]| a != b && a[0] <= b[0] && a[1] >= b[1];
            let wanted: Vec<usize> = (0..values.len())
                .filter(|at| !values.iter().any(|other| dominates(other, &values[*at])))
                .map(|at| at + 1)
                .collect();
            let mut found = front(&values);
            found.sort_unstable();
            prop_assert_eq!(found, wanted);
        }
    }
}
