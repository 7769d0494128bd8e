//! Sends a run or a sweep to all trackers that the user has chosen, once or until it ends.

mod dagman_keys;
mod run_sender;
mod send_runs;
mod sender_lock;
mod tracking_thread;

pub use dagman_keys::missing_under_dagman;
pub use send_runs::{SendTime, send_runs};
pub use tracking_thread::TrackingThread;
