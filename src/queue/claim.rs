//! Claims ready chunks for a worker. The highest priority comes first, then the order in which
//! segments were added. Within a segment the order is random, so that workers seldom compete for
//! the same chunk.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::Result;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use super::chunk_entry::ChunkState;
use super::chunk_file::ChunkFile;
use super::hand_out::Dispatch;
use super::item_store::Queue;
use super::segment::{segment_priority, segment_size};

/// Time until a listing of ready chunks is outdated and the folder is listed again.
const LISTING_LIFETIME: Duration = Duration::from_secs(1);

/// Number of consecutive lost claims after which a listing counts as outdated.
const MAX_LOST_CLAIMS: usize = 2;

/// Claims chunks for one worker.
#[derive(Debug)]
pub(super) struct ChunkClaimer<'a> {
    queue: &'a Queue,
    worker: String,
    random: ChaCha8Rng,
    /// The segment from which this worker claims chunks, as long as one is ready there.
    home: String,
    /// The ready chunks at the last listing.
    ready: Vec<ChunkFile>,
    last_look: Instant,
    /// Segments whose chunks have all ended.
    closed: HashSet<String>,
}

impl<'a> ChunkClaimer<'a> {
    /// Claims chunks for the worker `worker`. The order of its claims has no influence on results.
    pub(super) fn new(queue: &'a Queue, worker: &str) -> ChunkClaimer<'a> {
        ChunkClaimer {
            queue,
            worker: worker.to_owned(),
            random: poolcast_base::seed::generator(0, worker, &[]),
            home: String::new(),
            ready: Vec::new(),
            last_look: Instant::now(),
            closed: HashSet::new(),
        }
    }

    /// Claims a chunk; `None` if no chunk is ready or handed out.
    pub(super) fn claim(&mut self) -> Result<Option<ChunkFile>> {
        if self.queue.is_paused() || self.queue.hand_out() != Dispatch::Open {
            return Ok(None);
        }
        if self.last_look.elapsed() > LISTING_LIFETIME {
            self.ready.clear();
        }

        loop {
            // Try the known chunks first, because listing a shared folder is slow.
            for _ in 0..MAX_LOST_CLAIMS {
                let Some(file) = self.ready.pop() else {
                    break;
                };
                if let Some(lease) = file.claim(&self.worker)? {
                    return Ok(Some(lease));
                }
            }

            self.find_ready()?;
            if self.ready.is_empty() {
                return Ok(None);
            }
        }
    }

    /// Lists the ready chunks of a segment with the highest priority that has any.
    fn find_ready(&mut self) -> Result<()> {
        self.last_look = Instant::now();
        self.ready.clear();

        let mut open: Vec<String> = self.queue.segment_names()?;
        open.retain(|name| !self.closed.contains(name));
        for group in open.chunk_by_mut(|a, b| segment_priority(a) == segment_priority(b)) {
            group.sort_by_key(|name| *name != self.home);
            for name in group.iter() {
                self.find_ready_in(name)?;
                if !self.ready.is_empty() {
                    self.home.clone_from(name);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn find_ready_in(&mut self, segment: &str) -> Result<()> {
        let mut files = self.queue.chunk_files(segment)?;
        let is_over = files.iter().all(|file| file.entry.state.is_final());
        if is_over && segment_size(segment).is_some_and(|size| files.len() >= size) {
            self.closed.insert(segment.to_owned());
        }

        files.retain(|file| file.entry.state == ChunkState::Ready);
        files.shuffle(&mut self.random);
        self.ready = files;
        Ok(())
    }
}
