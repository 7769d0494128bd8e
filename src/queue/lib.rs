//! A queue of trials in a shared folder. It needs no server, no lock, and no synchronized clocks.
//!
//! Trials come in chunks: a single trial, or up to 64 short consecutive ones that a worker claims
//! together. Each chunk is one empty file. The file's name is the chunk's state ([`ChunkEntry`]):
//! the number of its ended trials, and the worker that has leased it. Every change of state is one
//! rename of that file within its directory. So a chunk always has exactly one file, and only one
//! of several processes that try to change its state succeeds. A lease names its attempt and its
//! worker. A worker that has lost its lease can no longer rename the file, and so cannot
//! acknowledge its results.
//!
//! Results are written before the file is renamed. A worker writes and fsyncs the results of its
//! trials, several together if the trials are short. It then renames the file of their chunk, which
//! states the number of ended trials. A killed worker loses only the results that it had not
//! acknowledged.
//!
//! | file | contents |
//! | --- | --- |
//! | `item`, `chunk_entry`, `chunk_file`, `segment` | trials, chunks, their files and directories |
//! | `item_store` | the folder of the queue |
//! | `ended_items` | trials that an earlier queue has ended |
//! | `proposal` | trials that are added during a search, with the reason for each |
//! | `hand_out` | remote requests to the queue |
//! | `journal`, `results` | results as workers write them, and the results that count |
//! | `heartbeat`, `lease_monitor`, `leader` | live workers, lost leases, the leading manager |
//! | `claim`, `worker`, `manager` | the processes |

mod attempt_dirs;
mod backoff;
mod chunk_entry;
mod chunk_file;
mod claim;
mod ended_items;
mod hand_out;
mod heartbeat;
mod item;
mod item_store;
mod journal;
mod leader;
mod lease_monitor;
mod manager;
mod proposal;
mod results;
mod segment;
mod settings;
mod state_counts;
mod worker;

pub use chunk_entry::{ChunkEntry, ChunkState};
pub use ended_items::EndedItem;
pub use hand_out::Dispatch;
pub use heartbeat::{ObservedHeartbeat, WorkProgress, WorkerHeartbeat};
pub use item::{MAX_CHUNK_TRIALS, TrialChunk, WorkItem};
pub use item_store::Queue;
pub use journal::{JournalPosition, ResultReader, StoredResult};
pub use lease_monitor::LostLease;
pub use manager::{ManagerEvent, ManagerOutcome, run_manager};
pub use settings::{QUEUE, QueueSettings};
pub use state_counts::ItemStateCounts;
pub use worker::{AttemptOutcome, TrialAttempt, WorkerTally, run_worker};
