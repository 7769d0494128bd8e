//! Samples → a table with a named column for each thing known at a hold.

use anyhow::Result;

use super::FeatureTable;
use crate::tensors::{Dataset, EMPTY_CELL, HoldFacts, SplitSide};

/// The samples of one side as rows, for models that see no order of time: of each state the frames that the held job spent in
/// it (`frames_012`), whether it was its last (`last_012`), and the share of the context jobs in it in the last frame
/// (`share_012`); then what else is known at the hold, by the names of [`HoldFacts::names`]. A state is an event number, or what
/// stands for a hold with its code. The classes are `failure` and `success`, a group is a cluster.
///
/// # Errors
/// Fails when a shard cannot be read.
pub fn sample_features(dataset: &Dataset, side: SplitSide) -> Result<FeatureTable> {
    let settings = &dataset.summary.settings;
    let (e, j) = (dataset.summary.e, settings.j);
    let rows: Vec<Vec<f64>> = dataset
        .facts(side)?
        .iter()
        .enumerate()
        .map(|(at, facts)| {
            let states = of_codes(dataset.codes(side, at), j, e);
            states
                .into_iter()
                .chain(facts.static_features().map(f64::from))
                .collect()
        })
        .collect();
    let features = names(e);
    let x = (0..features.len())
        .flat_map(|column| rows.iter().map(move |row| row[column]))
        .collect();
    Ok(FeatureTable {
        features,
        x,
        y: dataset
            .column::<u8>(side, "label")?
            .into_iter()
            .map(u32::from)
            .collect(),
        classes: ["failure", "success"].map(str::to_owned).to_vec(),
        groups: dataset
            .column::<u32>(side, "group")?
            .into_iter()
            .map(u64::from)
            .collect(),
    })
}

/// The names of the columns.
fn names(e: usize) -> Vec<String> {
    let states = ["frames", "last", "share"]
        .into_iter()
        .flat_map(|kind| (0..e).map(move |state| format!("{kind}_{state:03}")));
    states.chain(HoldFacts::static_names()).collect()
}

/// What codes `[m, j]` below `e` tell without the order of time, `[3 * e]`; the held job comes first in each frame.
fn of_codes(codes: &[u8], j: usize, e: usize) -> Vec<f64> {
    let mut columns = vec![0.0; 3 * e];
    let (frames, rest) = columns.split_at_mut(e);
    let (last, shares) = rest.split_at_mut(e);
    let count = |sums: &mut [f64], code: u8, by: f64| {
        if code != EMPTY_CELL {
            sums[usize::from(code)] += by;
        }
    };
    codes
        .chunks_exact(j)
        .for_each(|frame| count(frames, frame[0], 1.0));
    if let Some((held, context)) = codes
        .chunks_exact(j)
        .next_back()
        .and_then(<[u8]>::split_first)
    {
        count(last, *held, 1.0);
        let known = context.iter().filter(|code| **code != EMPTY_CELL).count();
        context
            .iter()
            .for_each(|code| count(shares, *code, 1.0 / known as f64));
    }
    columns
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::config::Config;
    use crate::eventlog::JobEvent;
    use crate::{events, tensors};

    #[test]
    fn frames_are_counted_and_the_last_is_looked_at() {
        let codes = [
            [0, EMPTY_CELL, 1],
            [2, 1, EMPTY_CELL],
            [2, EMPTY_CELL, EMPTY_CELL],
            [1, 2, 2],
        ]
        .concat();
        let columns = of_codes(&codes, 3, 3);
        assert_eq!(columns, [1.0, 1.0, 2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn empty_places_are_no_state() {
        assert_eq!(of_codes(&[EMPTY_CELL; 6], 3, 2), [0.0; 6]);
        assert_eq!(
            of_codes(&[1, EMPTY_CELL, 0, 1], 4, 2),
            [0.0, 1.0, 0.0, 1.0, 0.5, 0.5]
        );
        assert_eq!(of_codes(&[1, 1], 1, 2), [0.0, 2.0, 0.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn a_row_is_a_sample() {
        let event = |cluster: i32, s: i64, number: u16| JobEvent {
            cluster,
            time_ms: 1000 * (100 * i64::from(cluster) + s),
            number,
            normal: u8::from(number == 5),
            hold_code: if number == 12 { 13 } else { 0 },
            ..JobEvent::default()
        };
        let life = |job: i32| {
            let last = if job % 3 == 0 { 12 } else { 5 };
            [(0, 0), (5, 1), (20, 12), (30, 13), (40, last)]
                .map(|(s, number)| event(job, s, number))
        };
        let store = events::store_of(&(1..=60).flat_map(life).collect::<Vec<JobEvent>>());
        let keys = [("j", 2), ("m", 3), ("timeframe_len", 5)];
        let keys =
            keys.map(|(key, value)| (["preprocessing.parameters.", key].concat(), value.into()));
        let keys: BTreeMap<String, serde_json::Value> = keys.into_iter().collect();
        let keys = keys
            .iter()
            .map(|(key, value)| (&**key, value.clone()))
            .collect();
        let settings = tensors::TensorSettings::from_config(
            &Config::load(None, &keys).expect("a configuration"),
        )
        .expect("settings");
        let dir = tempfile::tempdir().expect("a directory");
        tensors::build(
            &store,
            &settings,
            "events",
            &dir.path().join("tensors"),
            false,
            |_| {},
        )
        .expect("built");
        let dataset = Dataset::open(&dir.path().join("tensors")).expect("opened");
        let table = sample_features(&dataset, SplitSide::Train).expect("a table");
        assert_eq!(
            (table.row_count(), table.column_count()),
            (dataset.len(SplitSide::Train), table.features.len())
        );
        let column = |name: &str| {
            table.column(
                table
                    .features
                    .iter()
                    .position(|known| known == name)
                    .expect(name),
            )
        };
        assert!(
            column("frames_001").iter().all(|frames| *frames == 2.0),
            "run for two frames, then held"
        );
        assert!(
            column("last_012")
                .iter()
                .chain(column("hold_code_13"))
                .all(|last| *last == 1.0)
        );
        assert_eq!(
            table.groups.iter().collect::<BTreeSet<_>>().len(),
            table.row_count(),
            "a cluster each"
        );
        assert!(table.y.contains(&0) && table.y.contains(&1));
    }

    #[test]
    fn every_column_has_a_name_of_its_own() {
        let names = names(49);
        assert_eq!(names.len(), 3 * 49 + crate::tensors::STATIC_FEATURES);
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }
}
