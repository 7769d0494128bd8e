//! Ready chunks → leases: the greatest priority first, then those added first, directory by directory, and at random within a
//! directory, so that workers seldom meet.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::Result;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use super::chunk_entry::ChunkState;
use super::item_store::{ChunkFile, Queue, segment_priority, segment_size};

/// What was ready so long ago is looked up anew.
const FRESH: Duration = Duration::from_secs(1);

/// After so many items in a row that others took, too.
const LOST: usize = 2;

/// Takes items for one worker.
#[derive(Debug)]
pub(super) struct ChunkClaimer<'a> {
    queue: &'a Queue,
    worker: String,
    random: ChaCha8Rng,
    /// The directory that this worker keeps to while something is ready there.
    home: String,
    /// What was ready when it was looked up.
    ready: Vec<ChunkFile>,
    looked: Instant,
    /// Directories in which nothing more will happen.
    closed: HashSet<String>,
}

impl<'a> ChunkClaimer<'a> {
    /// For the worker called `worker`. The order in which it takes items has no influence on results.
    pub(super) fn new(queue: &'a Queue, worker: &str) -> ChunkClaimer<'a> {
        let random = crate::seed::generator(0, worker, &[]);
        let (ready, looked, closed) = (Vec::new(), Instant::now(), HashSet::new());
        ChunkClaimer {
            queue,
            worker: worker.to_owned(),
            random,
            home: String::new(),
            ready,
            looked,
            closed,
        }
    }

    /// Takes a chunk; `None` if none is ready, or the queue is paused.
    pub(super) fn claim(&mut self) -> Result<Option<ChunkFile>> {
        if self.queue.is_paused() {
            return Ok(None);
        }
        if self.looked.elapsed() > FRESH {
            self.ready.clear();
        }
        loop {
            for _ in 0..LOST {
                let Some(file) = self.ready.pop() else {
                    break;
                };
                if let Some(lease) = file.claim(&self.worker)? {
                    return Ok(Some(lease));
                }
            }
            self.look()?;
            if self.ready.is_empty() {
                return Ok(None);
            }
        }
    }

    /// Looks up what is ready in a directory of the greatest priority that has something.
    fn look(&mut self) -> Result<()> {
        self.looked = Instant::now();
        self.ready.clear();
        let mut open: Vec<String> = self.queue.segment_names()?;
        open.retain(|name| !self.closed.contains(name));
        for group in open.chunk_by_mut(|a, b| segment_priority(a) == segment_priority(b)) {
            group.sort_by_key(|name| *name != self.home);
            for name in group.iter() {
                self.look_into(name)?;
                if !self.ready.is_empty() {
                    self.home.clone_from(name);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn look_into(&mut self, name: &str) -> Result<()> {
        let mut found = self.queue.chunk_files(name)?;
        let is_over = found.iter().all(|file| file.entry.state.is_final());
        if is_over && segment_size(name).is_some_and(|size| found.len() >= size) {
            self.closed.insert(name.to_owned());
        }
        found.retain(|file| file.entry.state == ChunkState::Ready);
        found.shuffle(&mut self.random);
        self.ready = found;
        Ok(())
    }
}
