//! What runs, sweeps and DAGs have left → the same in experiment trackers, sent or as their files.
//!
//! Training never talks to a tracker. A sender reads what is on disk and sends what the server
//! lacks; to follow a run is to do that again and again. So jobs need no key and no network.

mod source;
mod sweep_space;
mod tracked_run;
mod tracked_trial;

pub use source::TrackedSource;
pub use tracked_run::{RunOutcome, TrackedEpoch, TrackedRun};
