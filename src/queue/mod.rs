//! Trials ⇄ a shared folder, and nothing else: no server, no lock, no clock that two hosts would have to share.
//!
//! Trials come in chunks: one alone, or up to 64 short ones in a row that a worker takes at once. Each chunk is one empty file,
//! and its name is its state ([`ChunkEntry`]): how many of its trials have ended, and who has it. Every change of state is one
//! rename of that file within its directory, so there is always exactly one file for a chunk, and of several processes that
//! want to change its state one succeeds. A lease names its attempt and its worker: who has lost it can no longer rename it,
//! and so cannot acknowledge.
//!
//! Results come before names: a worker syncs what its trials came to, of several at once where they are short, and then renames
//! the file of their chunk to say that so many have ended. A killed worker loses what it had not said yet, and nothing else.

mod claim;
mod item_store;
mod journal;
mod manager;
mod backoff;
mod heartbeat;
mod leader;
mod chunk_entry;
mod lease_monitor;
mod worker;

pub use chunk_entry::{ChunkEntry, ChunkState, MAX_CHUNK_TRIALS, TrialChunk, WorkItem};
pub use heartbeat::{ObservedHeartbeat, WorkProgress, WorkerHeartbeat};
pub use item_store::{QUEUE, Queue, QueueSettings};
pub use journal::{JournalPlace, ResultReader, StoredResult};
pub use lease_monitor::{ItemStateCounts, LostLease};
pub use manager::{ManagerEvent, ManagerOutcome, run_manager};
pub use worker::{AttemptOutcome, TrialAttempt, WorkerTally, run_worker};
