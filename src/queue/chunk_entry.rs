//! Trials in a row and how far they are ⇄ the name of their file.

use serde::{Deserialize, Serialize};

/// What is to be done: a trial, and how far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkItem {
    /// Counted from 1.
    pub trial: usize,
    /// The most epochs that the trial may have when it has ended.
    pub budget: usize,
}

impl WorkItem {
    /// What the beginning of a name says.
    pub(super) fn parse(name: &str) -> Option<WorkItem> {
        let (trial, budget) = name.strip_prefix('t')?.split_once("-e")?;
        Some(WorkItem {
            trial: trial.parse().ok()?,
            budget: budget.parse().ok()?,
        })
    }
}

impl std::fmt::Display for WorkItem {
    /// As names begin.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "t{:06}-e{:06}", self.trial, self.budget)
    }
}

/// The most trials of a chunk: as many as [`ChunkEntry::lost`] has bits.
pub const MAX_CHUNK_TRIALS: usize = 64;

/// Trials in a row, with one budget, that a worker takes at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrialChunk {
    /// The first.
    pub first: WorkItem,
    /// How many there are, from 1 to [`MAX_CHUNK_TRIALS`].
    pub count: usize,
}

impl TrialChunk {
    /// All of them.
    pub fn items(self) -> impl Iterator<Item = WorkItem> {
        (0..self.count).map(move |at| self.item_at(at))
    }

    /// The one at place `at`, from 0.
    pub(super) fn item_at(self, at: usize) -> WorkItem {
        WorkItem {
            trial: self.first.trial + at,
            ..self.first
        }
    }

    /// The place of `item`, if it is one of them.
    fn position_of(self, item: WorkItem) -> Option<usize> {
        let at = item.trial.checked_sub(self.first.trial)?;
        (at < self.count && item.budget == self.first.budget).then_some(at)
    }

    fn parse(name: &str) -> Option<TrialChunk> {
        let (first, count) = name
            .split_once("-n")
            .map_or((name, Some(1)), |(first, count)| {
                (first, count.parse().ok())
            });
        let (first, count) = (WorkItem::parse(first)?, count?);
        let is_known =
            (1..=MAX_CHUNK_TRIALS).contains(&count) && first.trial.checked_add(count).is_some();
        is_known.then_some(TrialChunk { first, count })
    }
}

impl From<WorkItem> for TrialChunk {
    fn from(first: WorkItem) -> TrialChunk {
        TrialChunk { first, count: 1 }
    }
}

/// Where a chunk stands. The words are a worker's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChunkState {
    /// Anybody may take it.
    Ready,
    /// A worker has it, for as long as its heart beats.
    Leased(String),
    /// All its trials have ended; who ended the last of them.
    Done(String),
}

impl ChunkState {
    /// Whether nothing more will happen to the chunk.
    pub fn is_final(&self) -> bool {
        matches!(self, ChunkState::Done(_))
    }

    /// The worker that it names.
    pub fn worker(&self) -> Option<&str> {
        self.parts().1
    }

    fn parts(&self) -> (&'static str, Option<&str>) {
        match self {
            ChunkState::Ready => ("ready", None),
            ChunkState::Leased(worker) => ("leased", Some(worker)),
            ChunkState::Done(worker) => ("done", Some(worker)),
        }
    }

    fn from_words(word: &str, worker: Option<&str>) -> Option<ChunkState> {
        let named: fn(String) -> ChunkState = match word {
            "ready" => return worker.is_none().then_some(ChunkState::Ready),
            "leased" => ChunkState::Leased,
            "done" => ChunkState::Done,
            _ => return None,
        };
        worker
            .filter(|name| is_worker_name(name))
            .map(|name| named(name.to_owned()))
    }
}

/// A chunk with its state: what the name of its file says, as `t000017-e000030.a2.leased.node7-4711-9f3c2a1b`, or
/// `t000065-e000001-n64.d8.q80.a1.ready` of 64 trials of which eight have ended, the last of them by killing its workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkEntry {
    /// The trials.
    pub chunk: TrialChunk,
    /// How many of them have ended, the first ones: their results are on disk, or they are among the lost.
    pub ended: usize,
    /// Those that too many workers died of, a bit each, the first trial's being the lowest.
    pub lost: u64,
    /// Which attempt at the next trial this is, counted from 1; one more each time a lease is lost.
    pub attempt: u32,
    /// Where the chunk stands.
    pub state: ChunkState,
}

impl ChunkEntry {
    /// A chunk before anybody took it.
    pub fn new(chunk: impl Into<TrialChunk>) -> ChunkEntry {
        ChunkEntry {
            chunk: chunk.into(),
            ended: 0,
            lost: 0,
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

    /// The same lease, or the last state, once the first `ended` trials have ended.
    pub(super) fn with_ended(&self, ended: usize, worker: &str) -> ChunkEntry {
        let (state, attempt): (fn(String) -> ChunkState, u32) = if ended == self.chunk.count {
            (ChunkState::Done, self.attempt)
        } else {
            (ChunkState::Leased, 1)
        };
        ChunkEntry {
            ended,
            attempt,
            state: state(worker.to_owned()),
            ..self.clone()
        }
    }

    /// What it is after a lease was lost for the last time that counts: the next trial is given up.
    pub(super) fn with_lost(&self, worker: &str) -> ChunkEntry {
        let (lost, ended) = (self.lost | 1 << self.ended, self.ended + 1);
        let state = if ended == self.chunk.count {
            ChunkState::Done(worker.to_owned())
        } else {
            ChunkState::Ready
        };
        // Of a chunk that ends with it the name says how often it was tried.
        let attempt = if state.is_final() { self.attempt } else { 1 };
        ChunkEntry {
            lost,
            ended,
            attempt,
            state,
            ..self.clone()
        }
    }

    /// The trial at place `at` of the chunk, as if it were alone.
    pub(super) fn single_item(&self, at: usize) -> ChunkEntry {
        // Only the next trial was begun by those who lost the lease.
        let attempt = if at == self.ended { self.attempt } else { 1 };
        ChunkEntry {
            attempt,
            state: self.state.clone(),
            ..ChunkEntry::new(self.chunk.item_at(at))
        }
    }

    /// The trial that is next: all those before it have ended. Of a chunk of one, that one.
    pub fn next_item(&self) -> WorkItem {
        self.chunk.item_at(self.ended.min(self.chunk.count - 1))
    }

    /// The trials that have results.
    pub fn items_with_results(&self) -> impl Iterator<Item = WorkItem> {
        (0..self.ended)
            .filter(|at| self.lost >> at & 1 == 0)
            .map(|at| self.chunk.item_at(at))
    }

    /// The trials that were given up.
    pub fn given_up_items(&self) -> impl Iterator<Item = WorkItem> {
        (0..self.ended)
            .filter(|at| self.lost >> at & 1 == 1)
            .map(|at| self.chunk.item_at(at))
    }

    /// The trials that have not ended.
    pub fn open_items(&self) -> impl Iterator<Item = WorkItem> {
        (self.ended..self.chunk.count).map(|at| self.chunk.item_at(at))
    }

    /// Whether `item` is one of its trials that have results.
    pub(super) fn has_result(&self, item: WorkItem) -> bool {
        self.chunk
            .position_of(item)
            .is_some_and(|at| at < self.ended && self.lost >> at & 1 == 0)
    }

    /// The name of its file.
    pub fn file_name(&self) -> String {
        let ChunkEntry {
            chunk,
            ended,
            lost,
            attempt,
            state,
        } = self;
        let (word, worker) = state.parts();
        let count = if chunk.count > 1 {
            format!("-n{}", chunk.count)
        } else {
            String::new()
        };
        let ended = if *ended > 0 && !state.is_final() {
            format!(".d{ended}")
        } else {
            String::new()
        };
        let lost = if *lost > 0 {
            format!(".q{lost:x}")
        } else {
            String::new()
        };
        let worker = worker.map_or(String::new(), |worker| format!(".{worker}"));
        format!(
            "{}{count}{ended}{lost}.a{attempt}.{word}{worker}",
            chunk.first
        )
    }

    /// Whether nothing more will happen to the chunk.
    pub fn has_ended(&self) -> bool {
        self.state.is_final()
    }

    /// What the file `name` says; `None` for any other file.
    pub fn parse(name: &str) -> Option<ChunkEntry> {
        let mut parts = name.split('.').peekable();
        let chunk = TrialChunk::parse(parts.next()?)?;
        let mut optional = |letter| {
            parts
                .next_if(|part| part.starts_with(letter))
                .map(|part| part.split_at(1).1)
        };
        let (ended, lost) = (optional('d'), optional('q'));
        let (ended, lost) = (
            ended.map_or(Some(0), |n| n.parse().ok()),
            lost.map_or(Some(0), |n| u64::from_str_radix(n, 16).ok()),
        );
        let attempt = parts.next()?.strip_prefix('a')?.parse().ok()?;
        let state = ChunkState::from_words(parts.next()?, parts.next())?;
        let ended = if state.is_final() {
            chunk.count
        } else {
            ended?
        };
        let entry = ChunkEntry {
            chunk,
            ended,
            lost: lost?,
            attempt,
            state,
        };
        let is_known = entry.has_ended() || entry.ended < chunk.count;
        let lost_have_ended = entry.lost.checked_shr(entry.ended as u32).unwrap_or(0) == 0;
        // Numbers that are written in another way would be another file.
        Some(entry).filter(|entry| is_known && lost_have_ended && entry.file_name() == name)
    }
}

/// Whether `name` can be that of a worker, and so of a file.
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

    use crate::process::Process;

    fn any_token() -> impl Strategy<Value = ChunkEntry> {
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
                let (ended, lost, attempt) = far;
                let ended = if state.is_final() {
                    count
                } else {
                    ended.index(count)
                };
                let lost = if ended == MAX_CHUNK_TRIALS {
                    lost
                } else {
                    lost & ((1 << ended) - 1)
                };
                ChunkEntry {
                    chunk: TrialChunk {
                        first: WorkItem { trial, budget },
                        count,
                    },
                    ended,
                    lost,
                    attempt,
                    state,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn names_are_read_back(entry in any_token()) {
            prop_assert_eq!(ChunkEntry::parse(&entry.file_name()), Some(entry));
        }

        #[test]
        fn no_name_is_read_as_another(name in "\\PC{0,60}|t[0-9]{0,8}-e[0-9]{0,8}(-n[0-9]{0,3})?(\\.d[0-9]{0,2})?(\\.q[0-9a-fA-F]{0,17})?\\.a[0-9]{0,3}\\.[a-z]{0,9}(\\.[a-z/.]{0,5})?") {
            if let Some(entry) = ChunkEntry::parse(&name) {
                prop_assert_eq!(entry.file_name(), name);
            }
        }
    }

    #[test]
    fn strange_names_are_no_tokens() {
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
    fn names_of_workers_differ_and_are_names() {
        let mut current = Process::current();
        current.host = "über.example.org".to_owned();
        let (a, b) = (current.worker_name(), current.worker_name());
        assert!(a != b && is_worker_name(&a), "{a} {b}");
        assert!(a.starts_with("ber-"), "{a}");
    }
}
