//! Proposals: trials that are added one at a time, in a fixed order, each with a document that says
//! how it was chosen.
//!
//! The proposal with the number 17 is the segment `p200.b000017.s00000.n1`. Its directory appears with
//! its item and its document in one rename, and only once. So of two managers that propose different
//! trials under one number only one succeeds, and nothing about a proposal ever changes.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::chunk_entry::ChunkEntry;
use super::chunk_file::list_chunk_files;
use super::item::WorkItem;
use super::item_store::Queue;
use super::segment::segment_name;
use poolcast_base::files::read_regular;

/// The file with the document, beside the file of the item.
const PROPOSAL_FILE: &str = "proposal.json";

/// The priority of proposals. Later proposals depend on their results, so they come before all other
/// chunks.
const PRIORITY: u8 = 200;

/// The largest document, in bytes.
const MAX_BYTES: u64 = 64 << 20;

impl Queue {
    /// Adds `item` as the proposal `number`, counted from 0, with the document `proposal`. Returns
    /// false if there is already a proposal with this number, which then stays.
    ///
    /// # Errors
    /// Fails if the disk cannot be written.
    pub fn propose(
        &self,
        number: usize,
        item: WorkItem,
        proposal: &impl Serialize,
    ) -> Result<bool> {
        self.add_proposal(number, &ChunkEntry::new(item), proposal)
    }

    /// Like [`Queue::propose`], with the state of the item.
    pub(super) fn add_proposal(
        &self,
        number: usize,
        entry: &ChunkEntry,
        proposal: &impl Serialize,
    ) -> Result<bool> {
        let document = serde_json::to_vec(proposal)?;
        self.add_segment(
            &proposal_segment(number),
            std::slice::from_ref(entry),
            Some((PROPOSAL_FILE, &document)),
        )
    }

    /// Reads the document of the proposal `number`; `None` if there is no such proposal.
    ///
    /// # Errors
    /// Fails for a document that is damaged.
    pub fn proposal<P: DeserializeOwned>(&self, number: usize) -> Result<Option<P>> {
        read_proposal(&self.path("items").join(proposal_segment(number)))
    }

    /// The state of `item`, which is the proposal `number`; `None` if its file changes its name at
    /// this moment.
    ///
    /// # Errors
    /// Fails if the disk cannot be read.
    pub fn proposal_entry(&self, number: usize, item: WorkItem) -> Result<Option<ChunkEntry>> {
        let files = list_chunk_files(&self.path("items").join(proposal_segment(number)))?;
        let mut entries = files.into_iter().map(|file| file.entry);
        Ok(entries.find(|entry| entry.chunk.first == item))
    }
}

/// Reads the document of the proposal in the segment `dir`; `None` for a segment without one.
pub(super) fn read_proposal<P: DeserializeOwned>(dir: &Path) -> Result<Option<P>> {
    let path = dir.join(PROPOSAL_FILE);
    match read_regular(&path, MAX_BYTES) {
        Ok(text) => serde_json::from_slice(&text)
            .map(Some)
            .with_context(|| format!("cannot read `{}`", path.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn proposal_segment(number: usize) -> String {
    segment_name(PRIORITY, number, 0, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChunkState, QueueSettings, TrialChunk};

    #[test]
    fn first_proposal_of_a_number_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("queue");
        let queue = Queue::create(&path, QueueSettings::default()).expect("made");
        let item = |trial| WorkItem { trial, budget: 3 };
        let others: Vec<TrialChunk> = vec![item(8).into(), item(9).into()];
        queue.add_chunks(0, 100, &others).expect("added");

        assert!(queue.propose(0, item(1), &"first").expect("added"));
        assert!(!queue.propose(0, item(2), &"late").expect("asked"));
        assert!(queue.propose(1, item(2), &"second").expect("added"));
        let read = |number| queue.proposal::<String>(number).expect("read");
        assert_eq!(
            [0, 1, 2].map(read),
            [Some("first".to_owned()), Some("second".to_owned()), None]
        );
        let entry = queue
            .proposal_entry(0, item(1))
            .expect("listed")
            .expect("there");
        assert_eq!(
            (entry.next_item(), entry.state),
            (item(1), ChunkState::Ready)
        );
        assert_eq!(queue.chunk_entries().expect("listed").len(), 4);
        let first = &queue.segment_names().expect("listed")[0];
        assert_eq!(*first, proposal_segment(0), "it is claimed first");

        let damaged = queue.path("items").join(first).join(PROPOSAL_FILE);
        fs_err::write(damaged, "{").expect("written");
        assert!(queue.proposal::<String>(0).is_err());
    }
}
