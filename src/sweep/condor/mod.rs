//! HTCondor DAGs of sweeps. Writes the DAG of a sweep, reads its progress from DAGMan, reads the
//! rows that its jobs leave, and cleans up its directory. Also finds the held jobs of a node of any
//! DAG.
//!
//! Only this module writes submit files and DAGs, and runs HTCondor's programs. The text of all
//! files is a pure function of a [`DagPlan`].

mod cleanup;
mod dag;
mod dag_directory;
mod dagman_node;
mod layout;
mod nodes;
mod parts;
mod plan;
mod results;
mod shared;
mod site;
mod submit;
mod syntax;
mod tools;

pub use cleanup::{CleanupPlan, plan_cleanup};
pub use dag_directory::{check_directory, write_dag};
pub use dagman_node::DagmanNode;
pub use layout::{DAG_FILE, is_dag, is_untidied, read_trial_seconds, results_directory};
pub use nodes::{DagProgress, NodeCounts, step_of_node};
pub use parts::{PlannedPart, TrialSeconds, parse_trial_ranges};
pub use plan::{DagPlan, SampleSource};
pub use results::{open_sweep, read_all_rows, read_rows};
pub use tools::{
    HistoryAds, ask_held_jobs, ask_latest_history, ask_slots, ask_unheld_jobs, configured_value,
    default_schedd_names, edit_jobs, pool_runs_images, queue_is_elsewhere, queue_super_users,
    read_held_jobs, read_held_values, read_history, read_own_history, read_own_jobs,
    read_unheld_jobs, submit_dag,
};
