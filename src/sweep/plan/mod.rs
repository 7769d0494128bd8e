//! What a sweep is to do, written before its first trial: its folder, its trials and their draws.

mod earlier_trial;
mod folder;
mod given_points;
mod network_draws;
mod parameter_names;
mod paths;
mod pipeline_draws;
mod proposal;
mod reported_values;
mod row_completer;
pub(crate) mod schedule;
mod same_trials;
mod trial_config;
mod trial_numbers;
mod trial_row;
mod trials;

pub(crate) use earlier_trial::EarlierTrial;
pub(crate) use folder::sweep_key;
pub use folder::{SWEEP, SweepFolder, SweepPlan, check_sweep_dir};
pub use given_points::{GivenPoint, GivenPoints, PointAgent, is_usable_id, is_usable_run_id};
pub use network_draws::{RepeatedDraw, network_trial_count};
pub use parameter_names::{NETWORK_KIND, ParameterNames, parameters_by_kind, trial_kind};
pub use paths::{
    BEST_FILE, CHOSEN_FILE, FEW_HOLDS_FILE, INFO_FILE, LOG_FILE, ROWS_FILE, SELECTION_FILE,
    answers_dir, ensemble_dir, events_dir, has_no_model, table_dir, tensors_dir, trial_dir,
};
pub(crate) use paths::{
    PREDICTIONS_FILE, TABLE_FILE, TrialDir, existing_trial_dirs, publish_lock_file, queue_dir,
    wait_samples_dir,
};
pub(crate) use proposal::Proposal;
pub use reported_values::ReportedValues;
pub(crate) use row_completer::RowCompleter;
pub(crate) use same_trials::{first_difference, trial_key};
pub use trial_config::{TrialConfig, TrialModel};
pub use trial_numbers::TrialNumbers;
pub(crate) use trial_row::whole_budget;
pub use trial_row::{EndedTrial, TrialEnd, TrialRow, hyper_parameters, plain_value};
pub use trials::SweepTrials;
