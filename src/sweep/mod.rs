//! Many trials → one best: draws of hyper-parameters from a search space, run on this machine.

mod best;
mod local;
pub mod queue;
mod space;

pub use best::{BEST_FILE, Best, choose, resolve};
pub use local::{TrialResult, run_trials, tensors_dir, trial_dir};
pub use space::draw;
