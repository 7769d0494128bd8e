//! Baselines for a model: the majority class, and the success rate of each hold code and subcode.
//! They learn from the same samples as the model.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use poolcast_tensors::{Dataset, Split};

/// Success rate of holds of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SuccessRate {
    /// Hold code.
    pub hold_code: i32,
    /// Hold subcode.
    pub hold_subcode: i32,
    /// Labelled holds of this kind.
    pub holds: usize,
    /// Holds among them that were followed by success.
    pub successes: usize,
}

impl SuccessRate {
    /// The share of successes. 0 if there are no holds.
    pub fn share(&self) -> f64 {
        self.successes as f64 / self.holds.max(1) as f64
    }
}

/// Success rates on the training samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuccessRates {
    /// Rate over all codes.
    pub overall: SuccessRate,
    /// Rates by code and subcode, sorted.
    pub by_code: Vec<SuccessRate>,
    /// First training hold, in epoch ms.
    pub from_ms: i64,
    /// Last training hold, in epoch ms.
    pub to_ms: i64,
}

impl SuccessRates {
    /// Learns the rates on `splits` of `dataset`. With `split = time`, these contain only outcomes
    /// that were decided before the first prediction time of later splits.
    pub fn learn(dataset: &Dataset, splits: &[Split]) -> Result<SuccessRates> {
        let mut rates = SuccessRates {
            overall: SuccessRate::default(),
            by_code: Vec::new(),
            from_ms: i64::MAX,
            to_ms: i64::MIN,
        };
        let mut by_code = BTreeMap::new();
        for &split in splits {
            let codes: Vec<i32> = dataset.column(split, "hold_code")?;
            let subcodes: Vec<i32> = dataset.column(split, "hold_subcode")?;
            let labels: Vec<u8> = dataset.column(split, "label")?;
            for ((hold_code, hold_subcode), label) in codes.into_iter().zip(subcodes).zip(labels) {
                let empty = SuccessRate {
                    hold_code,
                    hold_subcode,
                    ..SuccessRate::default()
                };
                let own = by_code.entry((hold_code, hold_subcode)).or_insert(empty);
                for rate in [own, &mut rates.overall] {
                    rate.holds += 1;
                    rate.successes += usize::from(label);
                }
            }

            let summary = &dataset.summary.splits[&split];
            rates.from_ms = rates.from_ms.min(summary.from_ms);
            rates.to_ms = rates.to_ms.max(summary.to_ms);
        }

        rates.by_code = by_code.into_values().collect();
        Ok(rates)
    }

    /// The rate of one kind of hold. `None` if the training samples have none.
    pub fn get(&self, hold_code: i32, hold_subcode: i32) -> Option<&SuccessRate> {
        self.by_code
            .iter()
            .find(|rate| (rate.hold_code, rate.hold_subcode) == (hold_code, hold_subcode))
    }
}
