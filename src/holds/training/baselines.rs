//! What a model has to beat: the majority, and the success rate of each hold code and subcode,
//! learned on what the model learned from.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::tensors::{Dataset, SplitSide};

/// How often holds of one kind were followed by success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SuccessRate {
    /// The hold code.
    pub hold_code: i32,
    /// The hold subcode.
    pub hold_subcode: i32,
    /// Labelled holds of this kind.
    pub holds: usize,
    /// Those followed by success.
    pub successes: usize,
}

impl SuccessRate {
    /// The share of successes; 0 of 0 is 0.
    pub fn share(&self) -> f64 {
        self.successes as f64 / self.holds.max(1) as f64
    }
}

/// The rates on the training samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuccessRates {
    /// Over all codes.
    pub overall: SuccessRate,
    /// By code and subcode, sorted.
    pub by_code: Vec<SuccessRate>,
    /// The first training hold, epoch ms.
    pub from_ms: i64,
    /// The last training hold, epoch ms.
    pub to_ms: i64,
}

impl SuccessRates {
    /// Learns the rates on `sides` of `dataset`, which with `split = time` have only what was decided
    /// before anything of later sides is asked.
    pub fn learn(dataset: &Dataset, sides: &[SplitSide]) -> Result<SuccessRates> {
        let mut rates = SuccessRates {
            overall: SuccessRate::default(),
            by_code: Vec::new(),
            from_ms: i64::MAX,
            to_ms: i64::MIN,
        };
        let mut by_code = BTreeMap::new();
        for &side in sides {
            let codes: Vec<i32> = dataset.column(side, "hold_code")?;
            let subcodes: Vec<i32> = dataset.column(side, "hold_subcode")?;
            let labels: Vec<u8> = dataset.column(side, "label")?;
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

            let split = &dataset.summary.splits[&side];
            rates.from_ms = rates.from_ms.min(split.from_ms);
            rates.to_ms = rates.to_ms.max(split.to_ms);
        }

        rates.by_code = by_code.into_values().collect();
        Ok(rates)
    }

    /// The rate of one kind of hold; `None` if training saw none.
    pub fn get(&self, hold_code: i32, hold_subcode: i32) -> Option<&SuccessRate> {
        self.by_code
            .iter()
            .find(|rate| (rate.hold_code, rate.hold_subcode) == (hold_code, hold_subcode))
    }
}
