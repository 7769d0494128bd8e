//! An archive of global event logs: its generations, what is missing between them, and its
//! manifest.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use poolcast_base::error::hinted;
use crate::global_header::GlobalHeader;
use poolcast_base::files;
use poolcast_base::manifest;
use poolcast_base::shard::ArtefactFormat;

/// What an archive's manifest says it is.
const ARCHIVE: ArtefactFormat = ArtefactFormat {
    name: "archive",
    version: 1,
    rebuild: "poolcast collect LOG -o ARCHIVE",
};

/// One generation in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedGeneration {
    /// Its file in the archive.
    pub file: String,
    /// The access point, as the log's header names it.
    pub ap: String,
    /// What the header calls the generation.
    pub id: String,
    /// Grows by one with each rotation.
    pub sequence: u64,
    /// When it was created, epoch seconds.
    pub created_s: i64,
    /// The bytes of all generations before it, as the writer counted them.
    pub offset: u64,
    /// How much of it is in the archive.
    pub bytes: u64,
}

/// What was rotated away before it was collected, between two generations of one access point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostEvents {
    /// The access point.
    pub ap: String,
    /// The generation that the archive has the beginning of.
    pub after: u64,
    /// The next one that it has.
    pub before: u64,
    /// How much is missing; 0 if that is not known.
    pub bytes: u64,
}

/// What an archive holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogArchive {
    /// Its generations, by access point and in the order they were written.
    pub generations: Vec<ArchivedGeneration>,
    /// What is missing between them.
    pub lost: Vec<LostEvents>,
}

/// The files of the archive `dir`, whose last records may be unfinished.
///
/// # Errors
/// Fails for a directory that is no archive.
pub(in crate) fn archived_logs(dir: &Path) -> Result<Vec<PathBuf>> {
    let archive = manifest::read::<LogArchive>(dir, ARCHIVE)?.body;
    let mut logs = Vec::new();
    for generation in &archive.generations {
        logs.push(manifest::listed_path(dir, &generation.file)?);
    }
    Ok(logs)
}

/// Locks the archive `dir`, and reads what it holds; an empty or missing directory becomes one.
pub(super) fn open_archive(dir: &Path) -> Result<(fs_err::File, LogArchive)> {
    fs_err::create_dir_all(dir)?;
    let lock = files::lock_directory(dir)?;
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
                format!("`{}` is no archive", dir.display()),
                "name an empty or a new directory"
            )
        );
    }
    let archive = LogArchive::default();
    archive.commit(dir)?;
    Ok((lock, archive))
}

impl ArchivedGeneration {
    /// The generation of the log called `log` that `header` begins; nothing of it is copied yet.
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

    /// Orders generations by access point, and then as they were written.
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

    /// Takes back what a killed run has left beyond what counts.
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
                    format!("`{}` is shorter than its manifest says", path.display()),
                    "restore it, or collect into another directory"
                )
            );
            if size > known.bytes {
                file.file()
                    .set_len(known.bytes)
                    .with_context(|| format!("cannot cut `{}`", path.display()))?;
            }
        }
        Ok(())
    }

    /// The index of a generation. A new one is added, and known before its file is there.
    pub(super) fn index_of(&mut self, live: &ArchivedGeneration, dir: &Path) -> Result<usize> {
        let known = self
            .generations
            .iter()
            .position(|known| known.file == live.file);
        if let Some(index) = known {
            ensure!(
                self.generations[index].id == live.id,
                hinted(
                    format!("the archive has another log as `{}`", live.file),
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

    /// Finds what is missing: generations that nobody has seen, and the ends of those whose files
    /// are no longer there. `live_files` are the names in the archive of those that are.
    pub(super) fn find_lost(&mut self, live_files: &[&str]) {
        self.lost.clear();
        for (known, next) in self.generations.iter().zip(self.generations.iter().skip(1)) {
            if known.ap != next.ap {
                continue;
            }
            let bytes = next.offset.saturating_sub(known.offset + known.bytes);
            let is_next = next.sequence == known.sequence + 1;
            // As long as its file is there, what is not copied yet is copied by the next run.
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

    /// Makes what was copied count.
    pub(super) fn commit(&self, dir: &Path) -> Result<()> {
        manifest::write(dir, ARCHIVE, &manifest::key(self)?, self)
    }
}
