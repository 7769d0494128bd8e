//! The folder of a sweep → the trainings in it that go on.

use std::path::PathBuf;

use anyhow::Result;

use super::folder::SweepFolder;
use poolcast_config::Config;
use poolcast_queue::ChunkState;
use poolcast_holds::training::checkpoint_key;

/// A training that goes on.
#[derive(Debug)]
pub struct TrialAtWork {
    /// Counted from 1.
    pub trial: usize,
    /// Where it has its files until it ends.
    pub dir: PathBuf,
    /// The digest of everything that decides what comes of it.
    pub key: String,
    /// What it is.
    pub config: Config,
}

/// The trials of `sweep` that go on and have come to a checkpoint.
pub fn trials_at_work(sweep: &SweepFolder) -> Result<Vec<TrialAtWork>> {
    let Some(queue) = sweep.queue()? else {
        return Ok(Vec::new());
    };

    let mut found = Vec::new();
    for entry in queue.chunk_entries()? {
        if !matches!(entry.state, ChunkState::Leased(_)) {
            continue;
        }
        let dir = queue.work_dir(&entry);
        // It may end, or be taken by another worker, while it is looked at.
        let (Some(key), Ok(config)) = (checkpoint_key(&dir), Config::read(&dir)) else {
            continue;
        };
        found.push(TrialAtWork {
            trial: entry.next_item().trial,
            dir,
            key,
            config,
        });
    }
    Ok(found)
}
