//! Many trials → one best: draws of hyper-parameters from a search space, on this machine or by workers that share a folder.

mod asha;
mod bayes;
mod best;
mod choice;
mod fit_trial;
mod fits;
mod folder;
mod here;
mod hyperband;
pub mod queue;
mod results;
mod rounds;
mod row;
mod selection;
mod source;
mod space;
mod status;
mod suggest;
mod trial;
mod trials;

pub use best::{BEST_FILE, Best, TrialResult, resolve};
pub use choice::{Choice, SELECTION_FILE, choices};
pub use fits::{FIT, Fit, FitScores, Predictions, Rows, Task};
pub use folder::{Plan, SWEEP, Sweep, check_place};
pub use here::{Hands, run_here};
pub use results::{LOG_FILE, ROWS_FILE, choose, cleanup, manage_trials, rows};
pub use row::{How, Row};
pub use selection::{Estimate, Truth};
pub use source::table_dir;
pub use space::{Point, Space, point};
pub use status::{Heard, Leader, Running, Status, status};
pub use suggest::count as networks;
pub use suggest::{Observed, suggest};
pub use trial::{tensors_dir, trial_dir, work_trials};
pub use trials::{check_pipeline, count, draw};
