//! Many trials → one best: draws of hyper-parameters from a search space, run by any number of workers that share a folder.

mod best;
mod folder;
mod here;
pub mod queue;
mod results;
mod row;
mod space;
mod status;
mod trial;

pub use best::{BEST_FILE, Best, TrialResult, resolve};
pub use folder::{Plan, SWEEP, Sweep, check_place};
pub use here::{Hands, run_here};
pub use results::{LOG_FILE, ROWS_FILE, choose, cleanup, manage_trials, rows};
pub use row::{How, Row};
pub use space::draw;
pub use status::{Heard, Leader, Running, Status, status};
pub use trial::{tensors_dir, trial_dir, work_trials};
