//! An ended trial of a network or of a program, as later trials see it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::trial_row::EndedTrial;
use poolcast_queue::WorkItem;

/// The part of an [`EndedTrial`] that later trials depend on: each reads the results of all earlier
/// ones.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct EarlierTrial {
    /// The trial's number, from 1.
    pub(crate) trial: usize,
    /// The maximum number of epochs that it was given.
    pub(crate) budget: usize,
    /// True if a user requested its end.
    #[serde(default)]
    pub(crate) ended_on_request: bool,
    /// The reason for its failure.
    pub(crate) error: Option<String>,
    /// The value by which the sweep chooses.
    pub(crate) value: Option<f64>,
    /// This value after each epoch, where it was defined.
    pub(crate) values: Vec<Option<f64>>,
    /// Every hyper-parameter.
    pub(crate) parameters: BTreeMap<String, Value>,
}

impl EarlierTrial {
    pub(crate) fn item(&self) -> WorkItem {
        WorkItem {
            trial: self.trial,
            budget: self.budget,
        }
    }
}

impl From<EndedTrial> for EarlierTrial {
    fn from(row: EndedTrial) -> EarlierTrial {
        EarlierTrial {
            trial: row.trial,
            budget: row.budget,
            ended_on_request: row.ended_on_request,
            error: row.error,
            value: row.value,
            values: row.values,
            parameters: row.parameters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::plan::TrialRow;
    use poolcast_queue::ChunkEntry;

    #[test]
    fn earlier_trial_is_read_from_a_row() {
        let config = Config::load_built_in(&BTreeMap::new()).expect("a configuration");
        let item = WorkItem {
            trial: 7,
            budget: 3,
        };
        let mut row = TrialRow::begin(&ChunkEntry::new(item), "worker", &config);
        row.error = Some("the loss became NaN".to_owned());
        row.value = Some(0.5);
        row.values = vec![Some(0.25), None];
        let written = serde_json::to_string(&row).expect("JSON");
        let read: EarlierTrial = serde_json::from_str(&written).expect("read");
        assert_eq!(read, EarlierTrial::from(row.result));
        assert_eq!(read.item(), item);
        assert!(!read.parameters.is_empty(), "{read:?}");
    }
}
