//! The file of a chunk: empty, in a directory of the queue, and renamed on each change of state.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::chunk_entry::{ChunkEntry, ChunkState};

/// The file of a chunk.
#[derive(Debug, Clone)]
pub(super) struct ChunkFile {
    /// The directory of the file.
    pub(super) dir: PathBuf,
    /// The chunk and its state, as encoded in the file's name.
    pub(super) entry: ChunkEntry,
}

impl ChunkFile {
    /// Claims a ready chunk for `worker`; `None` if another worker was faster.
    pub(super) fn claim(&self, worker: &str) -> Result<Option<ChunkFile>> {
        self.change_own_state(self.entry.with_state(ChunkState::Leased(worker.to_owned())))
    }

    /// Acknowledges the first `ended` trials of a lease, whose results must be on disk. Returns the
    /// lease in its new state, or the chunk in its final state. `None` if the lease was lost
    /// before.
    pub(super) fn acknowledge(&self, ended: usize) -> Result<Option<ChunkFile>> {
        let ChunkState::Leased(worker) = &self.entry.state else {
            return Ok(None);
        };
        self.change_own_state(self.entry.with_ended(ended, worker))
    }

    /// Gives a lease back. No worker died, so this attempt does not count.
    pub(super) fn give_back(&self) -> Result<bool> {
        self.change_state(&self.entry.with_state(ChunkState::Ready))
    }

    /// Revokes the lease of a dead worker. Its current trial gets another attempt, or is given up
    /// after `tries` attempts. Returns the new state; `None` if another process was faster.
    pub(super) fn revoke(&self, tries: u32) -> Result<Option<ChunkEntry>> {
        let ChunkState::Leased(worker) = &self.entry.state else {
            return Ok(None);
        };
        let next = if self.entry.attempt < tries {
            ChunkEntry {
                attempt: self.entry.attempt + 1,
                ..self.entry.with_state(ChunkState::Ready)
            }
        } else {
            self.entry.with_next_given_up(worker)
        };
        Ok(self.change_state(&next)?.then_some(next))
    }

    /// Changes the chunk to a state that other processes might also set. Returns false if another
    /// process was faster.
    pub(super) fn change_state(&self, next: &ChunkEntry) -> Result<bool> {
        let target = self.dir.join(next.file_name());
        match self.rename_to(&target) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => {
                Err(error).with_context(|| format!("cannot rename to `{}`", target.display()))
            }
        }
    }

    /// Changes the chunk to a state that only this worker sets; `None` if another process was
    /// faster.
    fn change_own_state(&self, next: ChunkEntry) -> Result<Option<ChunkFile>> {
        let target = self.dir.join(next.file_name());
        match self.rename_to(&target) {
            Ok(()) => {}
            // On NFS a rename can succeed but its reply can get lost. The client then retries and
            // finds nothing to rename. However, the target names this worker, so the rename was
            // this worker's.
            Err(_) if target.try_exists().unwrap_or(false) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot rename to `{}`", target.display()));
            }
        }
        Ok(Some(ChunkFile {
            dir: self.dir.clone(),
            entry: next,
        }))
    }

    fn rename_to(&self, target: &Path) -> std::io::Result<()> {
        std::fs::rename(self.dir.join(self.entry.file_name()), target)
    }
}

/// The chunk files in the directory `dir`. Files with other names are skipped.
pub(super) fn list_chunk_files(dir: &Path) -> Result<Vec<ChunkFile>> {
    let mut found = Vec::new();
    for file in fs_err::read_dir(dir)?.filter_map(|file| file.ok()) {
        if !file.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        if let Some(entry) = file.file_name().to_str().and_then(ChunkEntry::parse) {
            found.push(ChunkFile {
                dir: dir.to_owned(),
                entry,
            });
        }
    }
    Ok(found)
}

/// Makes the empty file of a chunk, which must not exist yet.
pub(super) fn create_empty(path: &Path) -> Result<()> {
    Ok(fs_err::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map(drop)?)
}
