//! Items of work ⇄ a shared folder, and nothing else: no server, no lock, no clock that two hosts would have to share.
//!
//! Each item is one empty file, and its name is its state ([`Token`]). Every change of state is one rename of that file
//! within its directory, so there is always exactly one file for an item, and of several processes that want to change its
//! state one succeeds. A lease names its attempt and its worker: who has lost it can no longer rename it, and so cannot
//! acknowledge.

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
pub use manager::{Managed, News, manage};
pub use patience::Pace;
pub use pulse::{Beat, Work};
pub use token::{Item, State, Token};
pub use watch::{Census, Lost};
pub use worker::{Attempt, Ended, Tally, work};
