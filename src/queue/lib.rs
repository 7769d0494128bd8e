//! Trials ⇄ a shared folder, and nothing else: no server, no lock, no clock that two hosts would
//! have to share.
//!
//! Trials come in chunks: one alone, or up to 64 short ones in a row that a worker takes at once.
//! Each chunk is one empty file, and its name is its state ([`ChunkEntry`]): how many of its trials
//! have ended, and which worker has it. Every change of state is one rename of that file within its
//! directory. So there is always exactly one file for a chunk, and of several processes that want
//! to change its state one succeeds. A lease names its attempt and its worker: a worker that has
//! lost its lease can no longer rename the file, and so cannot acknowledge its results.
//!
//! Results come before names. A worker syncs the results of its trials, several at once where the
//! trials are short, and then renames the file of their chunk to say that so many have ended. A
//! killed worker loses what it had not acknowledged, and nothing else.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `item`, `chunk_entry`, `chunk_file`, `segment` | trials, chunks, their files and directories |
//! | `item_store` | the folder |
//! | `hand_out` | what is asked of it from afar |
//! | `journal`, `results` | results as workers write them, and those that count |
//! | `heartbeat`, `lease_monitor`, `leader` | which workers live, whose leases are lost, which manager leads |
//! | `claim`, `worker`, `manager` | the processes |

mod attempt_dirs;
mod backoff;
mod chunk_entry;
mod chunk_file;
mod claim;
mod hand_out;
mod heartbeat;
mod item;
mod item_store;
mod journal;
mod leader;
mod lease_monitor;
mod manager;
mod results;
mod segment;
mod settings;
mod state_counts;
mod worker;

pub use chunk_entry::{ChunkEntry, ChunkState};
pub use hand_out::HandOut;
pub use heartbeat::{ObservedHeartbeat, WorkProgress, WorkerHeartbeat};
pub use item::{MAX_CHUNK_TRIALS, TrialChunk, WorkItem};
pub use item_store::Queue;
pub use journal::{JournalPlace, ResultReader, StoredResult};
pub use lease_monitor::LostLease;
pub use manager::{ManagerEvent, ManagerOutcome, run_manager};
pub use settings::{QUEUE, QueueSettings};
pub use state_counts::ItemStateCounts;
pub use worker::{AttemptOutcome, TrialAttempt, WorkerTally, run_worker};
