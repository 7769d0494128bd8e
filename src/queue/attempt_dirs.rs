//! The directories of workers' attempts at trials.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Result;

use super::chunk_entry::ChunkEntry;
use super::item::WorkItem;
use super::item_store::Queue;

impl Queue {
    /// The directory of the attempt of `entry`, which no other attempt uses.
    pub fn work_dir(&self, entry: &ChunkEntry) -> PathBuf {
        let worker = entry.state.worker().unwrap_or("nobody");
        let name = format!("{}.a{}.{worker}", entry.chunk.first, entry.attempt);
        self.path("running").join(name)
    }

    /// The directories of other attempts at the trial of `entry`, with any budget, the latest
    /// first.
    pub fn other_attempt_dirs(&self, entry: &ChunkEntry) -> Result<Vec<PathBuf>> {
        let own = self.work_dir(entry);
        let trial = entry.chunk.first.trial;

        let mut found: Vec<(WorkItem, u32, String)> = Vec::new();
        for name in self.attempt_names()? {
            if let Some((item, attempt)) = parse_attempt_name(&name)
                && item.trial == trial
            {
                found.push((item, attempt, name));
            }
        }
        found.sort_by(|a, b| b.cmp(a));

        Ok(found
            .into_iter()
            .map(|(_, _, name)| self.path("running").join(name))
            .filter(|dir| *dir != own)
            .collect())
    }

    /// The directories of all attempts whose files still exist.
    pub fn attempt_dirs(&self) -> Result<Vec<PathBuf>> {
        let names = self.attempt_names()?;
        Ok(names.map(|name| self.path("running").join(name)).collect())
    }

    /// The trials that a worker has begun and whose files still exist.
    pub fn begun_trials(&self) -> Result<BTreeSet<usize>> {
        let mut trials = BTreeSet::new();
        for name in self.attempt_names()? {
            let item = name.split('.').next().and_then(WorkItem::parse);
            trials.extend(item.map(|item| item.trial));
        }
        Ok(trials)
    }

    fn attempt_names(&self) -> Result<impl Iterator<Item = String>> {
        let entries = fs_err::read_dir(self.path("running"))?;
        Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()))
    }
}

/// Parses the item and the attempt from a directory's name.
fn parse_attempt_name(name: &str) -> Option<(WorkItem, u32)> {
    let mut parts = name.split('.');
    let item = WorkItem::parse(parts.next()?)?;
    let attempt = parts.next()?.strip_prefix('a')?.parse().ok()?;
    Some((item, attempt))
}
