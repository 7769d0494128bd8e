//! Turns samples into a table for classical models, with a named column for each fact known at a
//! hold.

use anyhow::Result;

use poolcast_config::FeatureGroup;
use poolcast_models::EMPTY_CELL;
use poolcast_tables::{FeatureTable, RowClasses, RowTargets};
use poolcast_tensors::{Dataset, Split, TensorSettings, static_names};

/// Classes of the samples: the outcome of a released job.
const CLASSES: [&str; 2] = ["failure", "success"];

/// Returns the samples of one split as rows, for models that do not see the order of time. For each
/// state, `frames_012` is the number of frames that the held job spent in it. `last_012` is 1 if it
/// was the job's last state. `share_012` is the share of the context jobs in the state, in the last
/// frame. The other facts known at the hold follow, with the names of [`static_names`]. A state is
/// an event number, or a number that stands for a hold with its code. The classes are `failure` and
/// `success`. A group is a cluster.
///
/// # Errors
/// Fails if a shard cannot be read.
pub fn sample_features(dataset: &Dataset, split: Split) -> Result<FeatureTable> {
    let states = dataset.summary.e;
    let jobs = dataset.summary.settings.j;
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for at in 0..dataset.len(split) {
        let statics = dataset.statics(split, at);
        rows.push(sample_row(dataset.codes(split, at), jobs, states, statics));
    }

    let labels = dataset.column::<u8>(split, "label")?;
    let clusters = dataset.column::<u32>(split, "group")?;
    Ok(FeatureTable {
        features: column_names(states, &dataset.summary.settings.features),
        x: columns_of_rows(&rows),
        targets: outcomes(labels.into_iter().map(u32::from).collect()),
        groups: clusters.into_iter().map(u64::from).collect(),
    })
}

/// Returns the outcome of each sample as a target. `y` `[n]` has indices into [`CLASSES`].
fn outcomes(y: Vec<u32>) -> RowTargets {
    RowTargets::Classes(RowClasses {
        names: CLASSES.map(str::to_owned).to_vec(),
        y,
    })
}

/// Returns holds with unknown outcomes as rows with the same columns, from `codes` `[n, m, j]` and
/// `statics` `[n, s]`. Their classes and groups are placeholders.
pub fn hold_features(tensors: &TensorSettings, codes: &[u8], statics: &[f32]) -> FeatureTable {
    let states = tensors.e();
    let features = column_names(states, &tensors.features);
    let s = features.len() - KINDS.len() * states;
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for (at, codes) in codes.chunks_exact(tensors.m * tensors.j).enumerate() {
        let statics = &statics[at * s..][..s];
        rows.push(sample_row(codes, tensors.j, states, statics));
    }

    let count = rows.len();
    FeatureTable {
        features,
        x: columns_of_rows(&rows),
        targets: outcomes(vec![0; count]),
        groups: vec![0; count],
    }
}

fn sample_row(codes: &[u8], jobs: usize, states: usize, statics: &[f32]) -> Vec<f64> {
    let mut row = state_columns(codes, jobs, states);
    row.extend(statics.iter().map(|&number| f64::from(number)));
    row
}

/// Transposes rows `[n, f]` into columns `[f, n]`.
fn columns_of_rows(rows: &[Vec<f64>]) -> Vec<f64> {
    let columns = rows.first().map_or(0, Vec::len);
    let mut x = Vec::with_capacity(columns * rows.len());
    for column in 0..columns {
        x.extend(rows.iter().map(|row| row[column]));
    }
    x
}

/// Statistics of each state.
const KINDS: [&str; 3] = ["frames", "last", "share"];

/// Returns the names of the columns, for `e` states and the static features of `groups`.
fn column_names(e: usize, groups: &[FeatureGroup]) -> Vec<String> {
    let mut names = Vec::new();
    for kind in KINDS {
        names.extend((0..e).map(|state| format!("{kind}_{state:03}")));
    }
    names.extend(static_names(groups));
    names
}

/// Summarises codes `[m, j]` below `e` without the order of time, `[3 * e]`: the columns `frames`,
/// `last` and `share` of each state. The held job comes first in each frame.
fn state_columns(codes: &[u8], j: usize, e: usize) -> Vec<f64> {
    let mut columns = vec![0.0; 3 * e];
    let (frames, rest) = columns.split_at_mut(e);
    let (last, shares) = rest.split_at_mut(e);

    for frame in codes.chunks_exact(j) {
        count_state(frames, frame[0], 1.0);
    }

    let last_frame = codes.chunks_exact(j).next_back();
    if let Some((held, context)) = last_frame.and_then(<[u8]>::split_first) {
        count_state(last, *held, 1.0);
        let known = context.iter().filter(|code| **code != EMPTY_CELL).count();
        for code in context {
            count_state(shares, *code, 1.0 / known as f64);
        }
    }
    columns
}

/// Adds `amount` to the sum of a state. An empty cell has no state.
fn count_state(sums: &mut [f64], code: u8, amount: f64) {
    if code != EMPTY_CELL {
        sums[usize::from(code)] += amount;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::test_config::TestConfig;
    use poolcast_tensors as tensors;
    use test_stores::store_of_held_jobs;

    #[test]
    fn states_are_counted_in_all_frames_and_in_the_last() {
        let codes = [
            [0, EMPTY_CELL, 1],
            [2, 1, EMPTY_CELL],
            [2, EMPTY_CELL, EMPTY_CELL],
            [1, 2, 2],
        ]
        .concat();
        let columns = state_columns(&codes, 3, 3);
        assert_eq!(columns, [1.0, 1.0, 2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn empty_cells_do_not_count() {
        assert_eq!(state_columns(&[EMPTY_CELL; 6], 3, 2), [0.0; 6]);
        assert_eq!(
            state_columns(&[1, EMPTY_CELL, 0, 1], 4, 2),
            [0.0, 1.0, 0.0, 1.0, 0.5, 0.5]
        );
        assert_eq!(state_columns(&[1, 1], 1, 2), [0.0, 2.0, 0.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn each_sample_is_a_row() {
        let store = store_of_held_jobs(|_| 5);
        let settings = TestConfig::load(&[
            ("preprocessing.parameters.j", 2.into()),
            ("preprocessing.parameters.m", 3.into()),
            ("preprocessing.parameters.timeframe_len", 5.into()),
            ("preprocessing.window", "hold".into()),
        ])
        .tensor_settings();
        let dir = tempfile::tempdir().expect("a directory");
        tensors::build(
            &store,
            &settings,
            "events",
            &dir.path().join("tensors"),
            false,
            None,
            |_| {},
        )
        .expect("built");
        let dataset = Dataset::open(&dir.path().join("tensors")).expect("opened");
        let table = sample_features(&dataset, Split::Train).expect("a table");
        assert_eq!(
            (table.row_count(), table.column_count()),
            (dataset.len(Split::Train), table.features.len())
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
        let classes = table.targets.classes();
        assert!(classes.contains(&0) && classes.contains(&1));
    }

    #[test]
    fn column_names_are_unique() {
        use clap::ValueEnum as _;
        let names = column_names(49, FeatureGroup::value_variants());
        let statics = static_names(FeatureGroup::value_variants());
        assert_eq!(names[3 * 49..], statics);
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }
}
