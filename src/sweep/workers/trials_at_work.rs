//! The running trainings of a sweep, found in its folder.

use std::path::PathBuf;

use anyhow::Result;

use crate::config::Config;
use crate::plan::SweepFolder;
use poolcast_holds::training::checkpoint_key;
use poolcast_queue::ChunkState;

/// A running training.
#[derive(Debug)]
pub struct TrialAtWork {
    /// The trial's number, from 1.
    pub trial: usize,
    /// The directory of its files until it ends.
    pub dir: PathBuf,
    /// The digest of everything that determines its result.
    pub key: String,
    /// Its configuration.
    pub config: Config,
}

/// Finds the running trials of `sweep` that have a checkpoint.
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
        // The training may end, or another worker may claim it, while this reads its files.
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
