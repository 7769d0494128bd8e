//! Samples ⇄ a directory that workers share: numbers in a shard, names in its manifest.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::join::{JoinedTable, SplitRows};
use super::table::FeatureTable;
use crate::config::DataConfig;
use crate::files::StagedDirectory;
use crate::manifest::{self, Checksum};
use crate::shard::{ArtefactFormat, ShardColumn, ShardLayout};

/// Directories of joined tables.
pub const TABLE: ArtefactFormat = ArtefactFormat {
    name: "table",
    version: 2,
    rebuild: "poolcast sweep init CONFIG -o DIR",
};

const FILE: &str = "table.safetensors";

/// What the manifest says.
#[derive(Serialize, Deserialize)]
struct Body {
    /// The digest of the numbers' file.
    xxh3: String,
    features: Vec<String>,
    classes: Vec<String>,
    names: Vec<String>,
    splits: BTreeMap<String, SplitRows>,
}

/// The digest of everything that the samples of `data` come from: both files, and what is asked of them.
pub fn joined_table_key(data: &DataConfig) -> Result<String> {
    let checksum = |path: &Option<std::path::PathBuf>| {
        let mut checksum = Checksum::default();
        let path = path.as_ref().context("`data` names no tables")?;
        checksum.read(fs_err::File::open(path)?)?;
        anyhow::Ok(checksum.finish())
    };
    let DataConfig {
        index,
        target,
        group,
        time,
        splits,
        validate,
        ..
    } = data;
    let asked = (index, target, group, time, splits, validate, data.chosen()?);
    manifest::key(&(checksum(&data.features)?, checksum(&data.metadata)?, asked))
}

impl JoinedTable {
    /// Writes them to the directory `dir`, in place of others; `key` is that of what they were made from.
    pub fn write(&self, dir: &Path, key: &str) -> Result<()> {
        let JoinedTable {
            table,
            names,
            times,
            splits,
        } = self;
        let mut columns = vec![
            (
                "x".to_owned(),
                ShardColumn::new(&table.x, &[table.column_count(), table.row_count()]),
            ),
            ("y".to_owned(), ShardColumn::vector(&table.y)),
            ("groups".to_owned(), ShardColumn::vector(&table.groups)),
        ];
        columns.extend(
            times
                .as_ref()
                .map(|times| ("times".to_owned(), ShardColumn::vector(times))),
        );
        let (features, classes) = (table.features.clone(), table.classes.clone());
        let layout = ShardLayout::new(TABLE, &key, columns)?;
        let xxh3 = Checksum::of(layout.parts());
        let body = Body {
            xxh3,
            features,
            classes,
            names: names.clone(),
            splits: splits.clone(),
        };
        let staging = StagedDirectory::new(dir, true)?;
        layout.write(&staging.path().join(FILE))?;
        manifest::write(staging.path(), TABLE, key, &body)?;
        staging.commit()
    }

    /// Reads those in `dir`.
    ///
    /// # Errors
    /// Fails on a directory without samples, with those of another version, and with numbers that do not fit together.
    pub fn open(dir: &Path) -> Result<JoinedTable> {
        let Body {
            xxh3,
            features,
            classes,
            names,
            splits,
        } = manifest::read(dir, TABLE)?.body;
        let shard = manifest::open_shard(dir, FILE, &xxh3, TABLE)?;
        let times = shard
            .names()
            .any(|name| name == "times")
            .then(|| shard.column::<f64>("times"))
            .transpose()?;
        let table = FeatureTable {
            x: shard.column("x")?.to_vec(),
            y: shard.column("y")?.to_vec(),
            groups: shard.column("groups")?.to_vec(),
            features,
            classes,
        };
        let n = names.len();
        let fits = table.x.len() == n * table.column_count()
            && [
                table.y.len(),
                table.groups.len(),
                times.map_or(n, <[f64]>::len),
            ]
            .iter()
            .all(|len| *len == n)
            && table
                .y
                .iter()
                .all(|class| (*class as usize) < table.classes.len())
            && splits
                .values()
                .flat_map(SplitRows::all_rows)
                .all(|row| row < n);
        ensure!(
            fits,
            "the numbers and names in `{}` do not fit together",
            dir.display()
        );
        Ok(JoinedTable {
            table,
            names,
            times: times.map(<[f64]>::to_vec),
            splits,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_back() {
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
            y: vec![0, 1],
            classes,
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
                .contains("do not fit together")
        );
    }
}
