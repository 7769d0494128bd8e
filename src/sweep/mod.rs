//! Many trials → one best: draws of hyper-parameters from a search space, on this machine or by workers that share a folder.

mod asha;
mod bayes;
mod best;
mod folder;
mod here;
mod hyperband;
pub mod queue;
mod results;
mod rounds;
mod row;
mod space;
mod status;
mod suggest;
mod trial;

pub use best::{BEST_FILE, Best, TrialResult, resolve};
pub use folder::{Plan, SWEEP, Sweep, check_place};
pub use here::{Hands, run_here};
pub use results::{LOG_FILE, ROWS_FILE, choose, cleanup, manage_trials, rows};
pub use row::{How, Row};
pub use space::{Point, Space, point};
pub use status::{Heard, Leader, Running, Status, status};
pub use suggest::{Observed, count, draw, suggest};
pub use trial::{tensors_dir, trial_dir, work_trials};
