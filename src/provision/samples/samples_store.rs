//! Stores samples on disk: shards of windows, and the manifest last.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::wait_samples::{SamplesDescription, WaitSamples, WindowSamples};
use crate::model_inputs::{CHAIN_COLUMNS, QUEUE_COLUMNS, SNAPSHOTS};
use poolcast_base::error::hinted;
use poolcast_base::files::{AtomicFile, StagedDirectory};
use poolcast_base::manifest::{self, Checksum};
use poolcast_base::shard::{ArtefactFormat, Shard, ShardColumn, ShardLayout};

/// Format of a samples directory.
pub const SAMPLES_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "samples",
    version: 1,
    rebuild: "poolcast provision samples TRACE -o SAMPLES",
};

/// Contents of the manifest.
#[derive(Debug, Serialize, Deserialize)]
struct SamplesManifest {
    #[serde(flatten)]
    description: SamplesDescription,
    shards: Vec<ListedSamplesShard>,
}

/// A shard of samples, as listed in the manifest.
#[derive(Debug, Serialize, Deserialize)]
struct ListedSamplesShard {
    file: String,
    rows: usize,
    xxh3: String,
}

/// Writes samples in shards of several windows.
pub struct SamplesWriter {
    staging: StagedDirectory,
    shards: Vec<ListedSamplesShard>,
    /// Description of the samples written so far.
    pub description: SamplesDescription,
}

impl SamplesWriter {
    /// Creates a writer for samples in the directory `out`. With `overwrite`, replaces earlier
    /// samples there. The counts of rows in `description` must be 0.
    ///
    /// # Errors
    /// Fails if `out` holds something else, or cannot be written.
    pub fn new(
        description: SamplesDescription,
        out: &Path,
        overwrite: bool,
    ) -> Result<SamplesWriter> {
        Ok(SamplesWriter {
            staging: StagedDirectory::new(out, overwrite)?,
            shards: Vec::new(),
            description,
        })
    }

    /// Writes the rows of `windows` as a shard.
    ///
    /// # Errors
    /// Fails if the shard cannot be written.
    pub fn write(&mut self, windows: &[WindowSamples]) -> Result<()> {
        let part = WaitSamples::from_windows(self.description.clone(), windows);
        if part.is_empty() {
            return Ok(());
        }
        self.description.known_until_s = part.description.known_until_s;
        let file = format!("samples-{:05}.safetensors", self.shards.len());
        let layout = ShardLayout::new(SAMPLES_FORMAT, &"samples", columns(&part))?;
        layout.write(&self.staging.path().join(&file))?;
        self.shards.push(ListedSamplesShard {
            file,
            rows: part.len(),
            xxh3: Checksum::of(layout.parts()),
        });
        self.description.rows += part.len();
        Ok(())
    }

    /// Writes the manifest with the key `key`, and moves the finished samples to their directory.
    ///
    /// # Errors
    /// Fails if the directory cannot be written.
    pub fn commit(self, key: &str) -> Result<()> {
        let manifest = SamplesManifest {
            description: self.description,
            shards: self.shards,
        };
        manifest::write(self.staging.path(), SAMPLES_FORMAT, key, &manifest)?;
        self.staging.commit()
    }
}

fn columns(part: &WaitSamples) -> Vec<(String, ShardColumn<'_>)> {
    let rows = part.len();
    let width = part.description.feature_names.len();
    let snapshots = part.snapshots.len() / QUEUE_COLUMNS;
    let named = [
        ("window", ShardColumn::vector(&part.window)),
        ("moment_s", ShardColumn::vector(&part.moment_s)),
        ("left_s", ShardColumn::vector(&part.left_s)),
        ("wait_s", ShardColumn::vector(&part.wait_s)),
        ("features", ShardColumn::new(&part.features, &[rows, width])),
        (
            "chain",
            ShardColumn::new(&part.chain, &[rows, CHAIN_COLUMNS]),
        ),
        (
            "snapshots",
            ShardColumn::new(&part.snapshots, &[snapshots, QUEUE_COLUMNS]),
        ),
        ("last_snapshot", ShardColumn::vector(&part.last_snapshot)),
    ];
    named.map(|(name, column)| (name.to_owned(), column)).into()
}

/// Copies the samples in `from` to `to`, and replaces samples there.
///
/// # Errors
/// Fails if there are no samples, if `to` holds something else, or if the disk is full.
pub fn copy_samples(from: &Path, to: &Path) -> Result<()> {
    let listed = manifest::read::<SamplesManifest>(from, SAMPLES_FORMAT)?
        .body
        .shards;
    let staging = StagedDirectory::new(to, true)?;
    let shards = listed.iter().map(|shard| shard.file.as_str());
    for name in shards.chain([manifest::FILE]) {
        let target = staging.path().join(name);
        let mut copy = AtomicFile::new(&target)?;
        let mut original = fs_err::File::open(from.join(name))?;
        std::io::copy(&mut original, copy.file())?;
        copy.commit(&target)?;
    }
    staging.commit()
}

impl WaitSamples {
    /// Reads the samples in `dir`, and checks their shards against the manifest.
    ///
    /// # Errors
    /// Fails if there are no samples, or samples of another version.
    pub fn open(dir: &Path) -> Result<WaitSamples> {
        let found = manifest::read::<SamplesManifest>(dir, SAMPLES_FORMAT)?;
        let mut samples = WaitSamples::empty(found.body.description, found.key);
        for listed in &found.body.shards {
            let shard = manifest::open_shard(dir, &listed.file, &listed.xxh3, SAMPLES_FORMAT)?;
            samples.read_shard(&shard, listed.rows).with_context(|| {
                hinted(
                    format!("`{}` is not usable", shard.path().display()),
                    format!("recreate it with `{}`", SAMPLES_FORMAT.rebuild),
                )
            })?;
        }
        ensure!(
            samples.len() == samples.description.rows,
            "the number of rows in `{}` differs from its manifest",
            dir.display()
        );
        Ok(samples)
    }

    fn read_shard(&mut self, shard: &Shard, rows: usize) -> Result<()> {
        let width = self.description.feature_names.len();
        let snapshots: &[f32] = shard.column("snapshots")?;
        for (name, shape) in [
            ("window", vec![rows]),
            ("moment_s", vec![rows]),
            ("left_s", vec![rows]),
            ("wait_s", vec![rows]),
            ("features", vec![rows, width]),
            ("chain", vec![rows, CHAIN_COLUMNS]),
            (
                "snapshots",
                vec![snapshots.len() / QUEUE_COLUMNS, QUEUE_COLUMNS],
            ),
            ("last_snapshot", vec![rows]),
        ] {
            ensure!(
                shard.shape(name)? == shape,
                "tensor `{name}` has the shape {:?}, expected {shape:?}",
                shard.shape(name)?
            );
        }

        // Indices in a shard are relative to its own snapshots: shift them by the snapshots read
        // before.
        let known = (self.snapshots.len() / QUEUE_COLUMNS) as u64;
        let last: &[u64] = shard.column("last_snapshot")?;
        let places = SNAPSHOTS as u64 - 1..(snapshots.len() / QUEUE_COLUMNS) as u64;
        ensure!(
            last.iter().all(|place| places.contains(place)),
            "a row lacks snapshots of the preceding day"
        );
        self.last_snapshot
            .extend(last.iter().map(|place| known + place));
        self.snapshots.extend_from_slice(snapshots);
        self.window.extend_from_slice(shard.column("window")?);
        self.moment_s.extend_from_slice(shard.column("moment_s")?);
        self.features.extend_from_slice(shard.column("features")?);
        self.chain.extend_from_slice(shard.column("chain")?);

        let (left_s, wait_s): (&[i64], &[i64]) = (shard.column("left_s")?, shard.column("wait_s")?);
        for (left_s, wait_s) in left_s.iter().zip(wait_s) {
            self.gap_s.push(wait_s.saturating_sub(*left_s));
        }
        self.left_s.extend_from_slice(left_s);
        self.wait_s.extend_from_slice(wait_s);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model_inputs::{SNAPSHOT_COLUMNS, chain_columns};
    use crate::samples::WaitSampleRow;

    fn description() -> SamplesDescription {
        SamplesDescription {
            job_nodes: 1,
            windows: 2,
            feature_names: vec!["a".to_owned(), "b".to_owned()],
            ..SamplesDescription::default()
        }
    }

    /// Creates two rows, whose snapshots count up from `first`.
    fn window(number: u32, first: f32) -> WindowSamples {
        let row = |moment_s: i64, left_s: i64, last_snapshot: usize| WaitSampleRow {
            moment_s,
            left_s,
            wait_s: 500,
            features: vec![number as f32, moment_s as f32],
            chain: chain_columns(3600, 1, moment_s, 0),
            last_snapshot,
        };
        let mut snapshots = Vec::new();
        for snapshot in 0..SNAPSHOTS + 6 {
            snapshots.extend([first + snapshot as f32; QUEUE_COLUMNS]);
        }
        WindowSamples {
            window: number,
            rows: vec![row(60, 3600, SNAPSHOTS - 1), row(3660, 0, SNAPSHOTS + 5)],
            snapshots,
        }
    }

    fn write(dir: &Path) -> Vec<WindowSamples> {
        let windows = vec![window(0, 0.0), window(1, 1000.0)];
        let mut writer = SamplesWriter::new(description(), dir, false).expect("begun");
        for window in &windows {
            writer.write(std::slice::from_ref(window)).expect("written");
        }
        writer.write(&[]).expect("nothing to write");
        writer.commit("the key").expect("committed");
        windows
    }

    #[test]
    fn written_samples_are_read_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let out = dir.path().join("samples");
        let windows = write(&out);
        let samples = WaitSamples::open(&out).expect("read");
        let in_memory = WaitSamples::from_windows(description(), &windows);
        assert_eq!(
            samples,
            WaitSamples {
                key: "the key".to_owned(),
                ..in_memory
            }
        );

        assert_eq!((samples.len(), samples.gap_s[2]), (4, -3100));
        assert_eq!(samples.description.known_until_s, 3660 + 500);
        assert_eq!(samples.features(3), [1.0, 3660.0]);
        let snapshots = samples.snapshots(3);
        assert_eq!(snapshots.len(), SNAPSHOTS * SNAPSHOT_COLUMNS);
        assert_eq!((snapshots[0], snapshots[QUEUE_COLUMNS]), (1006.0, 60.0));
        let last = &snapshots[(SNAPSHOTS - 1) * SNAPSHOT_COLUMNS..];
        assert_eq!(last[0], 1149.0);
        assert_eq!(last[QUEUE_COLUMNS..], chain_columns(3600, 1, 3660, 0));
    }

    #[test]
    fn mismatches_with_the_manifest_are_rejected() {
        let refusal = |from: &str, to: &str| {
            let dir = tempfile::tempdir().expect("a directory");
            let out = dir.path().join("samples");
            write(&out);
            let path = out.join(manifest::FILE);
            let text = fs_err::read_to_string(&path).expect("read");
            assert!(text.contains(from), "{text}");
            fs_err::write(&path, text.replace(from, to)).expect("written");
            format!("{:#}", WaitSamples::open(&out).expect_err("refused"))
        };
        let version = refusal("\"format_version\": 1", "\"format_version\": 9");
        assert!(
            version.contains("has samples format version 9, and this program reads version 1"),
            "{version}"
        );
        let shape = refusal("\"rows\": 2", "\"rows\": 3");
        assert!(
            shape.contains("tensor `window` has the shape [2], expected [3]"),
            "{shape}"
        );
        let rows = refusal("\"rows\": 4", "\"rows\": 5");
        assert!(rows.contains("the number of rows in `"), "{rows}");
        let width = refusal("\"a\",", "");
        assert!(width.contains("tensor `features` has the shape"), "{width}");
    }
}
