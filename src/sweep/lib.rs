//! Sweeps of hyper-parameters: many trials, from which the best is chosen. The trials run on this
//! machine, or on workers that share a folder.

pub mod config;
pub mod search;
pub mod condor;

mod bbc_cv;
mod best_model;
mod best_trial;
mod bestmodel_info;
mod chance;
mod choice;
mod conclude;
mod csv_table;
mod deadline;
mod ensemble_choice;
mod fill_queue;
mod folder;
mod given_points;
mod kept_trials;
mod local;
mod manager;
mod network_attempt;
mod network_draws;
mod outcome;
mod part;
mod paths;
mod permutation_importance;
mod pipeline_attempt;
mod pipeline_draws;
mod pipeline_fit;
mod prepare;
mod refit;
mod results;
mod rounds;
mod status;
mod trial_config;
mod trial_data;
mod trial_duration;
mod trial_files;
mod trial_row;
mod trials;
mod trials_at_work;
mod wait_model_attempt;
mod worker;

pub use bbc_cv::{FMeasureCutoff, ScoreEstimate, TrueTargets};
pub use best_model::{BestModel, TrialResult, resolve_run};
pub use best_trial::{BestTrial, best_outcome, best_trial};
pub use bestmodel_info::{best_model_info, write_best_model};
pub use chance::no_better_than_chance;
pub use choice::{SplitChoice, choose_pipelines};
pub use conclude::{EvaluatedChoices, conclude_parts, evaluate_choices, lost_row};
pub use csv_table::csv_line;
pub use ensemble_choice::{EnsembleChoice, TrialOfKind};
pub use folder::{SWEEP, SweepFolder, SweepPlan, check_sweep_place};
pub use given_points::{GivenPoint, GivenPoints, PointAgent, is_usable_id, is_usable_run_id};
pub use local::{LocalWorkers, run_locally};
pub use manager::manage_trials;
pub use network_draws::{RepeatedDraw, network_trial_count};
pub use outcome::{TrialOutcome, TrialOutcomes};
pub use part::{PART_ROWS_FILE, PartEnd, SweepPart, part_at_work, part_rows};
pub use paths::{
    BEST_FILE, CHOSEN_FILE, INFO_FILE, LOG_FILE, ROWS_FILE, SELECTION_FILE, ensemble_dir,
    events_dir, table_dir, tensors_dir, trial_dir,
};
pub use permutation_importance::{FeatureImportance, FeatureImportances};
pub use pipeline_fit::{FitTables, PipelineFit, PipelineTask, TrialPredictions};
pub use prepare::{
    PrepareListener, PrepareStep, begin_sweep, make_tensors, prepare_events, prepare_tables,
};
pub use refit::refit_best;
pub use results::{DEFAULT_KEEP, choose_model, clean_up, trial_rows};
pub use status::{HeardProcess, RunningTrial, SweepStatus, sweep_status};
pub use trial_config::{TrialConfig, TrialModel};
pub use trial_duration::measure_trial;
pub use trial_row::{TrialEnd, TrialRow, hyper_parameters, plain_value};
pub use trials::SweepTrials;
pub use trials_at_work::{TrialAtWork, trials_at_work};
pub use worker::work_trials;
