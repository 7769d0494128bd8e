//! Trials ⇄ a shared folder, and nothing else: no server, no lock, no clock that two hosts would have to share.
//!
//! Trials come in chunks: one alone, or up to 64 short ones in a row that a worker takes at once. Each chunk is one empty file,
//! and its name is its state ([`Token`]): how many of its trials have ended, and who has it. Every change of state is one
//! rename of that file within its directory, so there is always exactly one file for a chunk, and of several processes that
//! want to change its state one succeeds. A lease names its attempt and its worker: who has lost it can no longer rename it,
//! and so cannot acknowledge.
//!
//! Results come before names: a worker syncs what its trials came to, of several at once where they are short, and then renames
//! the file of their chunk to say that so many have ended. A killed worker loses what it had not said yet, and nothing else.

mod claim;
mod folder;
mod journal;
mod manager;
mod patience;
mod pulse;
mod seat;
mod token;
mod watch;
mod worker;

pub use folder::{QUEUE, Queue, Settings};
pub use journal::{Found, Reader};
pub use manager::{Managed, News, manage};
pub use patience::Pace;
pub use pulse::{Beat, Work};
pub use token::{Chunk, Item, MOST_OF_CHUNK, State, Token};
pub use watch::{Census, Lost};
pub use worker::{Attempt, Ended, Tally, work};
