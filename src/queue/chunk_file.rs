//! The file of a chunk: empty, in a directory of the queue, and renamed whenever its state changes.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::chunk_entry::{ChunkEntry, ChunkState};

/// The file of a chunk.
#[derive(Debug, Clone)]
pub(super) struct ChunkFile {
    /// The directory that the file stands in.
    pub(super) dir: PathBuf,
    /// The chunk and its state, as the file's name says.
    pub(super) entry: ChunkEntry,
}

impl ChunkFile {
    /// Takes a ready chunk for `worker`; `None` if another worker was faster.
    pub(super) fn claim(&self, worker: &str) -> Result<Option<ChunkFile>> {
        self.change_own_state(self.entry.with_state(ChunkState::Leased(worker.to_owned())))
    }

    /// Says that the first `ended` trials of a lease have ended, after their results are on disk.
    /// Returns the lease as it is then, or the chunk in its last state; `None` if the lease was
    /// lost before.
    pub(super) fn acknowledge(&self, ended: usize) -> Result<Option<ChunkFile>> {
        let ChunkState::Leased(worker) = &self.entry.state else {
            return Ok(None);
        };
        self.change_own_state(self.entry.with_ended(ended, worker))
    }

    /// Gives a lease back. Nobody died, so this attempt does not count.
    pub(super) fn give_back(&self) -> Result<bool> {
        self.change_state(&self.entry.with_state(ChunkState::Ready))
    }

    /// Takes a lease from a worker that is dead. The trial that it was at gets another attempt, or
    /// is given up after `tries`. Returns the new state; `None` if somebody was faster.
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

    /// Gives the chunk a state that others might give it, too; `false` if somebody was faster.
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

    /// Gives the chunk a state that only this worker gives it; `None` if somebody was faster.
    fn change_own_state(&self, next: ChunkEntry) -> Result<Option<ChunkFile>> {
        let target = self.dir.join(next.file_name());
        match self.rename_to(&target) {
            Ok(()) => {}
            // On NFS a rename can succeed and its answer get lost. The client then tries again and
            // finds nothing to rename, but the target names this worker: the rename was ours.
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

/// The files of chunks in the directory `dir`; files with other names are passed over.
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

/// Makes the empty file of a chunk, which must not be there yet.
pub(super) fn create_empty(path: &Path) -> Result<()> {
    Ok(fs_err::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map(drop)?)
}
