//! The state of a chunk, and its encoding as a file name.

use super::item::{TrialChunk, WorkItem};

/// The state of a chunk. The strings are names of workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChunkState {
    /// Any worker may claim it.
    Ready,
    /// This worker has leased it, for as long as its heartbeat continues.
    Leased(String),
    /// All its trials have ended. This worker ended the last one.
    Done(String),
}

impl ChunkState {
    /// Returns true if the chunk's state will not change again.
    pub fn is_final(&self) -> bool {
        matches!(self, ChunkState::Done(_))
    }

    /// The worker that the state names.
    pub fn worker(&self) -> Option<&str> {
        match self {
            ChunkState::Ready => None,
            ChunkState::Leased(worker) | ChunkState::Done(worker) => Some(worker),
        }
    }

    /// The word for the state in file names.
    fn word(&self) -> &'static str {
        match self {
            ChunkState::Ready => "ready",
            ChunkState::Leased(_) => "leased",
            ChunkState::Done(_) => "done",
        }
    }

    /// Parses the state from the last parts of a file name.
    fn parse(word: &str, worker: Option<&str>) -> Option<ChunkState> {
        match (word, worker) {
            ("ready", None) => Some(ChunkState::Ready),
            ("leased", Some(worker)) if is_worker_name(worker) => {
                Some(ChunkState::Leased(worker.to_owned()))
            }
            ("done", Some(worker)) if is_worker_name(worker) => {
                Some(ChunkState::Done(worker.to_owned()))
            }
            _ => None,
        }
    }
}

/// A chunk with its state, as encoded in the name of its file.
///
/// `t000017-e000030.a2.leased.node7-4711-9f3c2a1b` is the second attempt at trial 17, up to 30
/// epochs. `t000065-e000001-n64.d8.q80.a1.ready` is a chunk of 64 trials. Eight of them have ended;
/// the last of these eight was given up because it killed its workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkEntry {
    /// The trials.
    pub chunk: TrialChunk,
    /// Number of ended trials, which are the first ones of the chunk. Their results are on disk, or
    /// they were given up.
    pub ended: usize,
    /// The trials that were given up because too many workers died of them: one bit per trial, the
    /// lowest bit for the first trial.
    pub given_up: u64,
    /// The number of the attempt at the next trial, from 1. It increases each time a lease is lost.
    pub attempt: u32,
    /// The state of the chunk.
    pub state: ChunkState,
}

impl ChunkEntry {
    /// A chunk that no worker has claimed yet.
    pub fn new(chunk: impl Into<TrialChunk>) -> ChunkEntry {
        ChunkEntry {
            chunk: chunk.into(),
            ended: 0,
            given_up: 0,
            attempt: 1,
            state: ChunkState::Ready,
        }
    }

    /// The same attempt in another state.
    pub fn with_state(&self, state: ChunkState) -> ChunkEntry {
        ChunkEntry {
            state,
            ..self.clone()
        }
    }

    /// The state of a lease by `worker` once the first `ended` trials have ended: still a lease, or
    /// done.
    pub(super) fn with_ended(&self, ended: usize, worker: &str) -> ChunkEntry {
        let worker = worker.to_owned();
        if ended == self.chunk.count {
            ChunkEntry {
                ended,
                state: ChunkState::Done(worker),
                ..self.clone()
            }
        } else {
            ChunkEntry {
                ended,
                attempt: 1,
                state: ChunkState::Leased(worker),
                ..self.clone()
            }
        }
    }

    /// The chunk after `worker` has lost the lease in the last allowed attempt: the next trial is
    /// given up.
    pub(super) fn with_next_given_up(&self, worker: &str) -> ChunkEntry {
        let ended = self.ended + 1;
        let given_up = self.given_up | 1 << self.ended;
        if ended == self.chunk.count {
            // If the chunk ends with this trial, the name keeps the number of attempts.
            ChunkEntry {
                ended,
                given_up,
                state: ChunkState::Done(worker.to_owned()),
                ..self.clone()
            }
        } else {
            ChunkEntry {
                ended,
                given_up,
                attempt: 1,
                state: ChunkState::Ready,
                ..self.clone()
            }
        }
    }

    /// The trial with the index `at` in the chunk, as a chunk of its own.
    pub(super) fn single_item(&self, at: usize) -> ChunkEntry {
        // Only the next trial was begun by the workers that lost the lease.
        let attempt = if at == self.ended { self.attempt } else { 1 };
        ChunkEntry {
            attempt,
            state: self.state.clone(),
            ..ChunkEntry::new(self.chunk.item_at(at))
        }
    }

    /// Returns true if the chunk's state will not change again.
    pub fn has_ended(&self) -> bool {
        self.state.is_final()
    }

    /// The next trial: the first one that has not ended, or the last one if all have ended.
    pub fn next_item(&self) -> WorkItem {
        self.chunk.item_at(self.ended.min(self.chunk.count - 1))
    }

    /// The trials that have results.
    pub fn items_with_results(&self) -> impl Iterator<Item = WorkItem> {
        (0..self.ended)
            .filter(|at| !self.is_given_up(*at))
            .map(|at| self.chunk.item_at(at))
    }

    /// The trials that were given up.
    pub fn given_up_items(&self) -> impl Iterator<Item = WorkItem> {
        (0..self.ended)
            .filter(|at| self.is_given_up(*at))
            .map(|at| self.chunk.item_at(at))
    }

    /// The trials that have not ended.
    pub fn open_items(&self) -> impl Iterator<Item = WorkItem> {
        (self.ended..self.chunk.count).map(|at| self.chunk.item_at(at))
    }

    /// Returns true if `item` is one of the trials that have results.
    pub(super) fn has_result(&self, item: WorkItem) -> bool {
        self.chunk
            .position_of(item)
            .is_some_and(|at| at < self.ended && !self.is_given_up(at))
    }

    fn is_given_up(&self, at: usize) -> bool {
        self.given_up >> at & 1 == 1
    }

    /// The name of its file.
    pub fn file_name(&self) -> String {
        let mut name = self.chunk.first.to_string();
        if self.chunk.count > 1 {
            name += &format!("-n{}", self.chunk.count);
        }
        if self.ended > 0 && !self.has_ended() {
            name += &format!(".d{}", self.ended);
        }
        if self.given_up > 0 {
            name += &format!(".q{:x}", self.given_up);
        }
        name += &format!(".a{}.{}", self.attempt, self.state.word());
        if let Some(worker) = self.state.worker() {
            name += &format!(".{worker}");
        }
        name
    }

    /// Parses the chunk and its state from the file name `name`; `None` for any other name.
    pub fn parse(name: &str) -> Option<ChunkEntry> {
        let mut parts = name.split('.').peekable();
        let chunk = TrialChunk::parse(parts.next()?)?;

        let mut ended = 0;
        if let Some(part) = parts.next_if(|part| part.starts_with('d')) {
            ended = part[1..].parse().ok()?;
        }
        let mut given_up = 0;
        if let Some(part) = parts.next_if(|part| part.starts_with('q')) {
            given_up = u64::from_str_radix(&part[1..], 16).ok()?;
        }

        let attempt = parts.next()?.strip_prefix('a')?.parse().ok()?;
        let state = ChunkState::parse(parts.next()?, parts.next())?;
        if state.is_final() {
            ended = chunk.count;
        }

        let entry = ChunkEntry {
            chunk,
            ended,
            given_up,
            attempt,
            state,
        };
        let is_known = entry.has_ended() || entry.ended < chunk.count;
        let given_up_have_ended = entry.given_up.checked_shr(entry.ended as u32).unwrap_or(0) == 0;
        // The same numbers in another spelling would be the name of another file.
        (is_known && given_up_have_ended && entry.file_name() == name).then_some(entry)
    }
}

/// Returns true if `name` can be a worker's name, and so part of a file name.
pub(super) fn is_worker_name(name: &str) -> bool {
    (1..=100).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::item::MAX_CHUNK_TRIALS;
    use poolcast_base::process::Process;

    fn any_chunk_entry() -> impl Strategy<Value = ChunkEntry> {
        let chunks = (
            0..usize::MAX - MAX_CHUNK_TRIALS,
            any::<usize>(),
            1..=MAX_CHUNK_TRIALS,
        );
        let far = (any::<prop::sample::Index>(), any::<u64>(), any::<u32>());
        (chunks, far, 0..3_usize, "[a-zA-Z0-9_-]{1,100}").prop_map(
            |((trial, budget, count), far, state, worker)| {
                let state =
                    [|_| ChunkState::Ready, ChunkState::Leased, ChunkState::Done][state](worker);
                let (ended, given_up, attempt) = far;
                let ended = if state.is_final() {
                    count
                } else {
                    ended.index(count)
                };
                let given_up = if ended == MAX_CHUNK_TRIALS {
                    given_up
                } else {
                    given_up & ((1 << ended) - 1)
                };
                ChunkEntry {
                    chunk: TrialChunk {
                        first: WorkItem { trial, budget },
                        count,
                    },
                    ended,
                    given_up,
                    attempt,
                    state,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn chunk_file_names_round_trip(entry in any_chunk_entry()) {
            prop_assert_eq!(ChunkEntry::parse(&entry.file_name()), Some(entry));
        }

        #[test]
        fn parsed_chunk_file_names_are_canonical(name in "\\PC{0,60}|t[0-9]{0,8}-e[0-9]{0,8}(-n[0-9]{0,3})?(\\.d[0-9]{0,2})?(\\.q[0-9a-fA-F]{0,17})?\\.a[0-9]{0,3}\\.[a-z]{0,9}(\\.[a-z/.]{0,5})?") {
            if let Some(entry) = ChunkEntry::parse(&name) {
                prop_assert_eq!(entry.file_name(), name);
            }
        }
    }

    #[test]
    fn invalid_chunk_file_names_are_rejected() {
        let worker = "t000001-e000002.a1.leased.";
        for name in [
            "",
            ".nfs000000000012",
            "t1-e2.a1.ready",
            "t000001-e000002.a1.ready.w",
            "t000001-e000002.a1.leased",
            "t000001-e000002.a1.leased.",
            "t000001-e000002.a1.leased.a.b",
            "t000001-e000002.a+1.ready",
            "t000001-e000002-n1.a1.ready",
            "t000001-e000002-n65.a1.ready",
            "t18446744073709551615-e000002-n2.a1.ready",
            "t000001-e000002-n2.d2.a1.ready",
            "t000001-e000002-n2.d1.a1.done.w",
            "t000001-e000002-n2.d1.q2.a1.ready",
            "t000001-e000002.q1.a1.ready",
            "t000001-e000002-n2.d1.q01.a1.ready",
            "t000001-e000002.a1.failed.w",
            &format!("{worker}../../x"),
            &format!("{worker}{}", "x".repeat(101)),
        ] {
            assert_eq!(ChunkEntry::parse(name), None, "{name}");
        }
    }

    #[test]
    fn worker_names_are_unique_and_valid() {
        let mut current = Process::current();
        current.host = "über.example.org".to_owned();
        let (a, b) = (current.worker_name(), current.worker_name());
        assert!(a != b && is_worker_name(&a), "{a} {b}");
        assert!(a.starts_with("ber-"), "{a}");
    }
}
