//! An archive of global event logs: its generations, the gaps between them, and its manifest.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use htcondor_eventlog::GlobalHeader;
use poolcast_base::error::hinted;
use poolcast_base::files;
use poolcast_base::manifest;
use poolcast_base::shard::ArtefactFormat;
use poolcast_base::temporary;

/// Format in the manifest of an archive.
const ARCHIVE: ArtefactFormat = ArtefactFormat {
    name: "archive",
    version: 1,
    rebuild: "poolcast collect LOG -o ARCHIVE",
};

/// One generation in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedGeneration {
    /// Name of its file in the archive.
    pub file: String,
    /// Access point, as named in the log's header; empty if it is not named there.
    pub ap: String,
    /// Id of the generation in the header.
    pub id: String,
    /// Sequence number; grows by one with each rotation.
    pub sequence: u64,
    /// Creation time, epoch seconds.
    pub created_s: i64,
    /// Total size of all previous generations, in bytes, as counted by the writer.
    pub offset: u64,
    /// Size of the archived part, in bytes.
    pub bytes: u64,
}

/// A gap between two archived generations of one access point: events that were rotated away before
/// they were collected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostEvents {
    /// Access point.
    pub ap: String,
    /// Sequence number of the generation before the gap; the archive may have only its beginning.
    pub after: u64,
    /// Sequence number of the next archived generation.
    pub before: u64,
    /// Number of missing bytes; 0 if not known.
    pub bytes: u64,
}

/// Contents of an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogArchive {
    /// Generations, by access point and in the order in which they were written.
    pub generations: Vec<ArchivedGeneration>,
    /// Gaps between them.
    pub lost: Vec<LostEvents>,
}

/// Reads the manifest of the archive `dir`.
///
/// # Errors
/// Fails if the directory is not an archive.
pub fn read_archive(dir: &Path) -> Result<LogArchive> {
    Ok(manifest::read::<LogArchive>(dir, ARCHIVE)?.body)
}

/// Returns the files of the archive `dir`. Their last records may be unfinished.
///
/// # Errors
/// Fails if the directory is not an archive.
pub(super) fn archived_logs(dir: &Path) -> Result<Vec<PathBuf>> {
    let archive = read_archive(dir)?;
    let mut logs = Vec::new();
    for generation in &archive.generations {
        logs.push(manifest::listed_path(dir, &generation.file)?);
    }
    Ok(logs)
}

/// Locks the archive `dir` and reads its manifest. An empty or missing directory becomes an
/// archive.
pub(super) fn open_archive(dir: &Path) -> Result<(fs_err::File, LogArchive)> {
    fs_err::create_dir_all(dir)?;
    let lock = files::lock_directory(dir)?;
    // A run that was killed while it wrote the manifest may have been the last with anything new.
    temporary::remove_leftovers(dir);
    if dir.join(manifest::FILE).exists() {
        let mut archive = manifest::read::<LogArchive>(dir, ARCHIVE)?.body;
        for generation in &archive.generations {
            manifest::listed_path(dir, &generation.file)?;
        }
        archive.restore(dir)?;
        return Ok((lock, archive));
    }

    for entry in fs_err::read_dir(dir)? {
        let is_hidden = entry?.file_name().as_encoded_bytes().starts_with(b".");
        ensure!(
            is_hidden,
            hinted(
                format!("`{}` is not an archive", dir.display()),
                "name an empty or a new directory"
            )
        );
    }
    let archive = LogArchive::default();
    archive.commit(dir)?;
    Ok((lock, archive))
}

impl ArchivedGeneration {
    /// Creates the entry of the generation that `header` begins, in the log named `log`. Nothing is
    /// copied yet.
    pub(super) fn new(log: &str, header: GlobalHeader) -> ArchivedGeneration {
        ArchivedGeneration {
            file: format!("{log}.{}.{}", header.created_s, header.sequence),
            ap: header.creator.unwrap_or_default(),
            id: header.id,
            sequence: header.sequence,
            created_s: header.created_s,
            offset: header.offset,
            bytes: 0,
        }
    }

    /// Returns a sort key: access point, then the order in which generations were written.
    pub(super) fn sort_key(&self) -> (String, i64, u64) {
        (self.ap.clone(), self.created_s, self.sequence)
    }

    fn path_in(&self, dir: &Path) -> PathBuf {
        dir.join(&self.file)
    }
}

impl LogArchive {
    pub(super) fn bytes(&self) -> u64 {
        self.generations.iter().map(|known| known.bytes).sum()
    }

    /// Rolls back to the manifest: removes or cuts the data that a killed run has left beyond it.
    /// Fails if a file is shorter than the manifest says.
    fn restore(&mut self, dir: &Path) -> Result<()> {
        let empty = self
            .generations
            .extract_if(.., |known| known.bytes == 0)
            .map(|known| known.path_in(dir));
        files::remove_all(empty)?;

        for known in &self.generations {
            let path = known.path_in(dir);
            files::open_artefact(&path, u64::MAX)?;
            let file = fs_err::OpenOptions::new().write(true).open(&path)?;
            let size = file.metadata()?.len();
            ensure!(
                size >= known.bytes,
                hinted(
                    format!(
                        "`{}` is shorter than stated in its manifest",
                        path.display()
                    ),
                    "restore it, or collect into another directory"
                )
            );
            if size > known.bytes {
                file.file()
                    .set_len(known.bytes)
                    .with_context(|| format!("cannot truncate `{}`", path.display()))?;
            }
        }
        Ok(())
    }

    /// Returns the index of a generation. A new one is added to the manifest before its file
    /// exists.
    pub(super) fn find_or_add(&mut self, live: &ArchivedGeneration, dir: &Path) -> Result<usize> {
        let known = self
            .generations
            .iter()
            .position(|known| known.file == live.file);
        if let Some(index) = known {
            ensure!(
                self.generations[index].id == live.id,
                hinted(
                    format!("the archive has another log named `{}`", live.file),
                    "collect it into another directory"
                )
            );
            return Ok(index);
        }

        let index = self
            .generations
            .partition_point(|known| known.sort_key() < live.sort_key());
        self.generations.insert(index, live.clone());
        self.commit(dir)?;
        Ok(index)
    }

    /// Finds the gaps: generations that were never collected, and uncollected ends of generations
    /// whose files no longer exist. `live_files` are the archive names of the generations whose
    /// files still exist.
    pub(super) fn find_lost(&mut self, live_files: &[&str]) {
        self.lost.clear();
        for (known, next) in self.generations.iter().zip(self.generations.iter().skip(1)) {
            if known.ap != next.ap {
                continue;
            }
            let bytes = next.offset.saturating_sub(known.offset + known.bytes);
            let is_next = next.sequence == known.sequence + 1;
            // While the file exists, the next run copies the rest.
            let ends_early = bytes > 0 && is_next && !live_files.contains(&&*known.file);
            if next.sequence > known.sequence + 1 || ends_early {
                self.lost.push(LostEvents {
                    ap: known.ap.clone(),
                    after: known.sequence,
                    before: next.sequence,
                    bytes,
                });
            }
        }
    }

    /// Writes the manifest, which makes the copied data valid.
    pub(super) fn commit(&self, dir: &Path) -> Result<()> {
        manifest::write(dir, ARCHIVE, &manifest::key(self)?, self)
    }
}
