//! Stores joined tables in a directory that workers share: numbers in a shard, names in its
//! manifest.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::feature_table::FeatureTable;
use super::joined_table::JoinedTable;
use super::row_targets::{NumberLoss, RowClasses, RowNumbers, RowTargets};
use super::split_rows::SplitRows;
use crate::DataConfig;
use poolcast_base::files::StagedDirectory;
use poolcast_base::manifest::{self, Checksum};
use poolcast_base::shard::{ArtefactFormat, Shard, ShardColumn, ShardLayout};

/// Format of the directories of joined tables.
pub const TABLE: ArtefactFormat = ArtefactFormat {
    name: "table",
    version: 3,
    rebuild: "poolcast sweep init CONFIG -o DIR",
};

const NUMBERS_FILE: &str = "table.safetensors";

/// Body of the manifest.
#[derive(Serialize, Deserialize)]
struct TableManifest {
    /// Digest of the file of numbers.
    xxh3: String,
    features: Vec<String>,
    target: TargetKind,
    names: Vec<String>,
    splits: BTreeMap<String, SplitRows>,
}

/// Kind of target in the column `y`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TargetKind {
    /// Classes: `y` has indices into these names.
    Classes(Vec<String>),
    /// Numbers to predict: `y` has the numbers.
    Numbers(NumberLoss),
}

impl TargetKind {
    fn new(targets: &RowTargets) -> TargetKind {
        match targets {
            RowTargets::Classes(classes) => TargetKind::Classes(classes.names.clone()),
            RowTargets::Numbers(numbers) => TargetKind::Numbers(numbers.loss),
        }
    }

    /// Reads the targets of this kind from the column `y` of `shard`.
    fn read(self, shard: &Shard) -> Result<RowTargets> {
        Ok(match self {
            TargetKind::Classes(names) => RowTargets::Classes(RowClasses {
                names,
                y: shard.column("y")?.to_vec(),
            }),
            TargetKind::Numbers(loss) => RowTargets::Numbers(RowNumbers {
                y: shard.column("y")?.to_vec(),
                loss,
            }),
        })
    }
}

/// Returns the digest of all inputs of the joined table of `data`: both files, and the settings
/// that select and label their rows.
pub fn joined_table_key(data: &DataConfig) -> Result<String> {
    let DataConfig {
        index,
        target,
        task,
        quantile,
        group,
        time,
        splits,
        validate,
        ..
    } = data;
    let predicted = (target, task, quantile);
    let asked = (
        index,
        predicted,
        group,
        time,
        splits,
        validate,
        data.chosen()?,
    );
    let features = size_and_checksum(data.features.as_deref())?;
    let metadata = size_and_checksum(data.metadata.as_deref())?;
    manifest::key(&(features, metadata, asked))
}

/// Returns the size of a file and its checksum.
fn size_and_checksum(path: Option<&Path>) -> Result<(u64, String)> {
    let path = path.context("`data` names no tables")?;
    let mut checksum = Checksum::default();
    checksum.read(fs_err::File::open(path)?)?;
    Ok(checksum.finish())
}

impl JoinedTable {
    /// Writes the table to the directory `dir`, and replaces an existing one. `key` is the digest
    /// of its inputs.
    pub fn write(&self, dir: &Path, key: &str) -> Result<()> {
        let table = &self.table;
        let shape = [table.column_count(), table.row_count()];
        let mut columns = vec![
            ("x".to_owned(), ShardColumn::new(&table.x, &shape)),
            ("y".to_owned(), target_column(&table.targets)),
            ("groups".to_owned(), ShardColumn::vector(&table.groups)),
        ];
        if let Some(times) = &self.times {
            columns.push(("times".to_owned(), ShardColumn::vector(times)));
        }

        let layout = ShardLayout::new(TABLE, &key, columns)?;
        let body = TableManifest {
            xxh3: Checksum::of(layout.parts()),
            features: table.features.clone(),
            target: TargetKind::new(&table.targets),
            names: self.names.clone(),
            splits: self.splits.clone(),
        };
        let staging = StagedDirectory::new(dir, true)?;
        layout.write(&staging.path().join(NUMBERS_FILE))?;
        manifest::write(staging.path(), TABLE, key, &body)?;
        staging.commit()
    }

    /// Reads the table in `dir`.
    ///
    /// # Errors
    /// Fails if the directory has no table, if the table has another version, or if its numbers do
    /// not fit together.
    pub fn open(dir: &Path) -> Result<JoinedTable> {
        let TableManifest {
            xxh3,
            features,
            target,
            names,
            splits,
        } = manifest::read(dir, TABLE)?.body;
        let shard = manifest::open_shard(dir, NUMBERS_FILE, &xxh3, TABLE)?;
        let times = if shard.names().any(|name| name == "times") {
            Some(shard.column::<f64>("times")?.to_vec())
        } else {
            None
        };

        let joined = JoinedTable {
            table: FeatureTable {
                x: shard.column("x")?.to_vec(),
                targets: target.read(&shard)?,
                groups: shard.column("groups")?.to_vec(),
                features,
            },
            names,
            times,
            splits,
        };
        ensure!(
            joined.is_consistent(),
            "the numbers and names in `{}` do not match",
            dir.display()
        );
        Ok(joined)
    }

    /// Returns true if all columns have one row per name, all indices of classes and rows are in
    /// range, and all numbers to predict are finite.
    fn is_consistent(&self) -> bool {
        let n = self.names.len();
        let table = &self.table;
        let lengths = [
            table.row_count(),
            table.groups.len(),
            self.times.as_ref().map_or(n, Vec::len),
        ];
        let mut split_rows = self.splits.values().flat_map(SplitRows::all_rows);

        table.x.len() == n * table.column_count()
            && lengths == [n; 3]
            && are_sound(&table.targets)
            && split_rows.all(|row| row < n)
    }
}

fn are_sound(targets: &RowTargets) -> bool {
    match targets {
        RowTargets::Classes(RowClasses { names, y }) => {
            y.iter().all(|class| (*class as usize) < names.len())
        }
        RowTargets::Numbers(numbers) => numbers.y.iter().all(|number| number.is_finite()),
    }
}

fn target_column(targets: &RowTargets) -> ShardColumn<'_> {
    match targets {
        RowTargets::Classes(classes) => ShardColumn::vector(&classes.y),
        RowTargets::Numbers(numbers) => ShardColumn::vector(&numbers.y),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_tables_are_read_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<String>>()
        };
        let x = vec![1.0, 2.0, 3.0, 4.0];
        let (features, classes) = (words(&["a", "b"]), words(&["-", "+"]));
        let table = FeatureTable {
            features,
            x,
            targets: RowTargets::Classes(RowClasses {
                names: classes,
                y: vec![0, 1],
            }),
            groups: vec![7, 7],
        };
        let splits = BTreeMap::from([(
            "A".to_owned(),
            SplitRows {
                train: vec![0, 1],
                ..SplitRows::default()
            },
        )]);
        let samples = JoinedTable {
            table,
            names: words(&["r", "s"]),
            times: Some(vec![0.5, 1.5]),
            splits,
        };
        let path = dir.path().join("table");
        samples.write(&path, "k").expect("written");
        assert_eq!(JoinedTable::open(&path).expect("read"), samples);
        assert_eq!(manifest::finished_key(&path, TABLE).as_deref(), Some("k"));
        let broken = JoinedTable {
            names: words(&["r"]),
            ..samples
        };
        broken.write(&path, "k").expect("written");
        assert!(
            JoinedTable::open(&path)
                .expect_err("refused")
                .to_string()
                .contains("do not match")
        );
    }
}
