//! Many trials → one best: draws of hyper-parameters from a search space, run on this machine.

mod asha;
mod bayes;
mod best;
mod hyperband;
mod local;
mod rounds;
mod space;
mod suggest;

pub use asha::{Done, Item, promoted};
pub use best::{BEST_FILE, Best, choose, resolve};
pub use hyperband::{Trajectory, stopped};
pub use local::{TrialResult, tensors_dir, trial_dir};
pub use rounds::run_sweep;
pub use space::{Point, Space, point};
pub use suggest::{Observed, count, draw, suggest};
