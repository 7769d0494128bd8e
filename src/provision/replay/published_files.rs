//! Parser of the two settings files that the project Mirage publishes.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use poolcast_base::{escape, manifest, output};

/// The settings of `slurm_config.json` that the simulator uses.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "the names are Slurm's")]
pub struct SlurmFile {
    #[serde(rename = "PriorityWeightAge")]
    pub priority_weight_age: i64,
    #[serde(rename = "PriorityWeightJobSize")]
    pub priority_weight_job_size: i64,
    /// Value in days.
    #[serde(rename = "PriorityMaxAge")]
    pub priority_max_age: i64,
    /// Number of nodes.
    #[serde(default)]
    pub nodes: Option<u32>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// The settings of `backfill_config.json` that the simulator uses.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "the names are Slurm's")]
pub struct BackfillFile {
    /// Value in ticks, which are minutes.
    pub bf_interval: i64,
    pub bf_max_job_test: usize,
    /// Value in seconds.
    pub bf_resolution: i64,
    /// Value in minutes.
    pub bf_window: i64,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// The contents of both files.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the names say it")]
pub struct PublishedFiles {
    pub slurm: SlurmFile,
    pub backfill: BackfillFile,
}

/// Keys of the published files that have no effect.
const UNUSED_KEYS: [&str; 9] = [
    "PriorityDecayHalfLife",
    "PriorityWeightFairshare",
    "PriorityWeightPartition",
    "PriorityWeightQOS",
    "default_queue_depth",
    "bf_continue",
    "disable_user_top",
    "bf_max_time",
    "bf_job_part_count_reserve",
];

impl PublishedFiles {
    /// Reads the given files. A file that is not given has the published values.
    ///
    /// # Errors
    /// Fails for a file that cannot be read or lacks a value, and for a value out of range.
    pub fn read(slurm: Option<&Path>, backfill: Option<&Path>) -> Result<PublishedFiles> {
        let published_slurm = SlurmFile {
            priority_weight_age: 7000,
            priority_weight_job_size: 100,
            priority_max_age: 7,
            nodes: None,
            others: BTreeMap::new(),
        };
        let published_backfill = BackfillFile {
            bf_interval: 10,
            bf_max_job_test: 3000,
            bf_resolution: 600,
            bf_window: 2880,
            others: BTreeMap::new(),
        };
        let files = PublishedFiles {
            slurm: read_or_default(slurm, published_slurm)?,
            backfill: read_or_default(backfill, published_backfill)?,
        };
        files.check()?;
        files.warn_of_unknown_keys();
        Ok(files)
    }

    fn check(&self) -> Result<()> {
        let backfill = &self.backfill;
        for (name, value, most) in [
            ("PriorityWeightAge", self.slurm.priority_weight_age, 1 << 31),
            (
                "PriorityWeightJobSize",
                self.slurm.priority_weight_job_size,
                1 << 31,
            ),
            ("PriorityMaxAge", self.slurm.priority_max_age, 36_500),
            ("bf_interval", backfill.bf_interval, 1_000_000),
            ("bf_resolution", backfill.bf_resolution, 86_400),
            ("bf_window", backfill.bf_window, 1_000_000),
        ] {
            let least = i64::from(name != "PriorityWeightAge" && name != "PriorityWeightJobSize");
            ensure!(
                (least..=most).contains(&value),
                "`{name}` must be between {least} and {most}, got {value}"
            );
        }
        ensure!(
            backfill.bf_resolution % 60 == 0,
            "`bf_resolution` must be whole minutes, got {} s",
            backfill.bf_resolution
        );
        Ok(())
    }

    fn warn_of_unknown_keys(&self) {
        for key in self.slurm.others.keys().chain(self.backfill.others.keys()) {
            if !UNUSED_KEYS.contains(&key.as_str()) {
                let key = escape::value(key);
                output::note(&format!("warning: the key `{key}` has no effect"));
            }
        }
    }
}

fn read_or_default<T: DeserializeOwned>(path: Option<&Path>, published: T) -> Result<T> {
    let Some(path) = path else {
        return Ok(published);
    };
    let document: Value = manifest::read_json(path)?;
    T::deserialize(document).with_context(|| format!("cannot use `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files as the project publishes them.
    const SLURM: &str = r#"{
  "PriorityDecayHalfLife": "2-0",
  "PriorityWeightFairshare": 4000,
  "PriorityWeightAge": 7000,
  "PriorityWeightPartition": 3000,
  "PriorityWeightQOS": 4000,
  "PriorityWeightJobSize": 100,
  "PriorityMaxAge": 7
}"#;
    const BACKFILL: &str = r#"{
  "default_queue_depth": 1000,
  "bf_continue": true,
  "bf_max_job_test": 3000,
  "bf_window": 2880,
  "bf_resolution": 600,
  "disable_user_top": true,
  "bf_max_time": 600,
  "bf_job_part_count_reserve": 100,
  "bf_interval": 10
}"#;

    fn read(slurm: &str, backfill: &str) -> Result<PublishedFiles> {
        let dir = tempfile::tempdir()?;
        let (slurm_path, backfill_path) = (dir.path().join("slurm"), dir.path().join("backfill"));
        fs_err::write(&slurm_path, slurm)?;
        fs_err::write(&backfill_path, backfill)?;
        PublishedFiles::read(Some(&slurm_path), Some(&backfill_path))
    }

    #[test]
    fn default_settings_equal_the_published_files() {
        let read = read(SLURM, BACKFILL).expect("read");
        let published = PublishedFiles::read(None, None).expect("the values");
        assert_eq!(
            (read.slurm.priority_weight_age, read.slurm.priority_max_age),
            (
                published.slurm.priority_weight_age,
                published.slurm.priority_max_age
            )
        );
        assert_eq!(
            (read.backfill.bf_interval, read.backfill.bf_window),
            (published.backfill.bf_interval, published.backfill.bf_window)
        );
        let used = read.slurm.others.keys().chain(read.backfill.others.keys());
        for key in used {
            assert!(UNUSED_KEYS.contains(&key.as_str()), "{key}");
        }
    }

    #[test]
    fn invalid_settings_are_rejected_by_name() {
        let refused = |slurm: &str, backfill: &str| {
            format!("{:#}", read(slurm, backfill).expect_err("refused"))
        };
        let without = SLURM.replace("PriorityWeightAge", "Other");
        assert!(refused(&without, BACKFILL).contains("missing field `PriorityWeightAge`"));
        let zero = BACKFILL.replace("\"bf_interval\": 10", "\"bf_interval\": 0");
        assert!(refused(SLURM, &zero).contains("`bf_interval` must be between 1"));
        let odd = BACKFILL.replace("600,\n  \"disable", "90,\n  \"disable");
        assert!(refused(SLURM, &odd).contains("whole minutes"));
    }
}
