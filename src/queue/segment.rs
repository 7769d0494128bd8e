//! Segments: the directories of a queue's items. Chunks are added and listed one directory at a
//! time.
//!
//! A segment has a name such as `p100.b000000.s00003.n64`. Its parts are its priority, the call
//! that added it, its number within that call, and its number of chunks.

use anyhow::Result;

use super::chunk_entry::ChunkEntry;
use super::chunk_file::{ChunkFile, create_empty, list_chunk_files};
use super::item::{TrialChunk, WorkItem};
use super::item_store::Queue;
use poolcast_base::files::{sync_directory, write_atomic};
use poolcast_base::temporary;

/// Maximum number of chunks in a segment.
const MAX_SEGMENT_CHUNKS: usize = 1000;

/// Minimum number of chunks in a segment, if at least as many are added.
const MIN_SEGMENT_CHUNKS: usize = 64;

/// Maximum number of segments per call, unless each would have more than [`MAX_SEGMENT_CHUNKS`].
const MAX_SEGMENTS: usize = 500;

impl Queue {
    /// Adds `chunks` with one priority; chunks of higher priority are claimed first. `batch`
    /// identifies the call. Equal calls add their chunks only once, even if several processes make
    /// them or are killed in between.
    pub fn add_chunks(&self, batch: usize, priority: u8, chunks: &[TrialChunk]) -> Result<()> {
        let entries: Vec<ChunkEntry> = chunks.iter().copied().map(ChunkEntry::new).collect();
        self.add_entries(batch, priority, &entries)
    }

    /// Like [`Queue::add_chunks`], with the state of each chunk.
    pub(super) fn add_entries(
        &self,
        batch: usize,
        priority: u8,
        entries: &[ChunkEntry],
    ) -> Result<()> {
        // Workers finish one segment after another. Small segments preserve the order of chunks,
        // but there must not be too many segments.
        let size = entries
            .len()
            .div_ceil(MAX_SEGMENTS)
            .clamp(MIN_SEGMENT_CHUNKS, MAX_SEGMENT_CHUNKS);
        for (number, entries) in entries.chunks(size).enumerate() {
            let name = segment_name(priority, batch, number, entries.len());
            self.add_segment(&name, entries, None)?;
        }
        Ok(())
    }

    /// Adds a whole segment atomically, and only once. A segment never becomes empty, so renaming
    /// another directory cannot replace it. `document` is the name and the text of a file beside the
    /// chunks. Returns false if there is already a segment with this name.
    pub(super) fn add_segment(
        &self,
        name: &str,
        entries: &[ChunkEntry],
        document: Option<(&str, &[u8])>,
    ) -> Result<bool> {
        let target = self.path("items").join(name);
        if target.exists() {
            return Ok(false);
        }

        temporary::remove_leftovers(&self.path("items"));
        let (temporary, ()) =
            temporary::make_beside(&target, "tmp", |path| fs_err::create_dir(path))?;
        let made = document
            .map_or(Ok(()), |(file, text)| {
                write_atomic(&temporary.join(file), text)
            })
            .and_then(|()| {
                entries
                    .iter()
                    .try_for_each(|entry| create_empty(&temporary.join(entry.file_name())))
            })
            .and_then(|()| sync_directory(&temporary));

        // The rename makes the complete segment visible at once. If it fails because another
        // process has added the same segment, this is a success too.
        if let Err(error) = made.and_then(|()| Ok(fs_err::rename(&temporary, &target)?)) {
            let _ = fs_err::remove_dir_all(&temporary);
            return if target.exists() {
                Ok(false)
            } else {
                Err(error)
            };
        }
        sync_directory(&self.path("items"))?;
        Ok(true)
    }

    /// The names of the segments, the highest priority first.
    pub(super) fn segment_names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for found in fs_err::read_dir(self.path("items"))?.filter_map(|found| found.ok()) {
            let Ok(name) = found.file_name().into_string() else {
                continue;
            };
            if segment_size(&name).is_none() {
                continue;
            }
            match found.file_type() {
                Ok(kind) if kind.is_dir() => names.push(name),
                _ => self.warn_skipped(&found.path(), "it is not a directory of items"),
            }
        }
        names.sort_by(|a, b| {
            segment_priority(b)
                .cmp(segment_priority(a))
                .then_with(|| a.cmp(b))
        });
        Ok(names)
    }

    /// The chunk files in one of [`Queue::segment_names`].
    pub(super) fn chunk_files(&self, segment: &str) -> Result<Vec<ChunkFile>> {
        let mut found = list_chunk_files(&self.path("items").join(segment))?;
        found.retain(|file| {
            let is_known = self.can_contain(file.entry.chunk);
            if !is_known {
                self.warn_skipped(
                    &file.dir.join(file.entry.file_name()),
                    "the sweep has no such item",
                );
            }
            is_known
        });
        Ok(found)
    }

    /// Returns true if `chunk` can belong to the queue. A process outside the sweep has added any
    /// other chunk.
    fn can_contain(&self, chunk: TrialChunk) -> bool {
        let WorkItem { trial, budget } = chunk.first;
        let last = trial.saturating_add(chunk.count - 1);
        trial >= 1 && last <= self.largest_item.trial && budget <= self.largest_item.budget
    }

    /// All chunks of the queue, with their states.
    pub fn chunk_entries(&self) -> Result<Vec<ChunkEntry>> {
        let mut entries = Vec::new();
        for name in self.segment_names()? {
            let files = self.chunk_files(&name)?;
            entries.extend(files.into_iter().map(|file| file.entry));
        }
        Ok(entries)
    }

    /// The number of chunks added so far.
    pub fn added_chunks(&self) -> Result<usize> {
        let names = self.segment_names()?;
        Ok(names.iter().filter_map(|name| segment_size(name)).sum())
    }
}

/// The name of a segment of `count` chunks.
pub(super) fn segment_name(priority: u8, batch: usize, number: usize, count: usize) -> String {
    format!("p{priority:03}.b{batch:06}.s{number:05}.n{count}")
}

/// The priority part of a segment's name.
pub(super) fn segment_priority(segment: &str) -> &str {
    segment.split('.').next().unwrap_or("")
}

/// The number of chunks of a segment, according to its name; `None` for other names. A listing
/// during renames may show more or fewer chunks.
pub(super) fn segment_size(segment: &str) -> Option<usize> {
    let parts: Vec<&str> = segment.split('.').collect();
    let [priority, batch, number, count] = parts[..] else {
        return None;
    };
    let is_known = is_number_after('p', priority)
        && is_number_after('b', batch)
        && is_number_after('s', number);
    if !is_known {
        return None;
    }
    let count: usize = count.strip_prefix('n')?.parse().ok()?;
    (count <= MAX_SEGMENT_CHUNKS).then_some(count)
}

fn is_number_after(letter: char, part: &str) -> bool {
    part.strip_prefix(letter)
        .is_some_and(|rest| rest.parse::<usize>().is_ok())
}
