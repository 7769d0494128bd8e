//! Many trials → one best: draws of hyper-parameters from a search space, on this machine or by workers that share a folder.

mod best_network;
mod choice;
mod conclude;
mod pipeline_attempt;
mod pipeline_fit;
mod folder;
mod local;
mod permutation_importance;
mod bestmodel_info;
mod kept_trials;
mod trial_duration;
mod network_draws;
mod outcome;
mod part;
mod pipeline_draws;
mod prepare;
mod results;
mod rounds;
mod trial_row;
mod bbc_cv;
mod trial_data;
mod status;
mod deadline;
mod network_attempt;
mod trial_files;
mod trials;

pub use bbc_cv::{ScoreEstimate, TrueClasses};
pub use best_network::{BEST_FILE, BestNetwork, TrialResult, resolve_run};
pub use bestmodel_info::{INFO_FILE, best_model_info, write_best_network};
pub use choice::{SELECTION_FILE, SplitChoice, choose_pipelines};
pub use conclude::{CHOSEN_FILE, EvaluatedChoices, conclude_parts, evaluate_choices, lost_row};
pub use folder::{SWEEP, SweepFolder, SweepPlan, check_sweep_place};
pub use local::{LocalWorkers, run_locally};
pub use network_attempt::{tensors_dir, work_trials};
pub use network_draws::network_trial_count;
pub use outcome::{TrialOutcome, TrialOutcomes};
pub use part::{PART_ROWS, Part, PartEnd, part_at_work, part_rows};
pub use permutation_importance::{FeatureImportance, FeatureImportances};
pub use pipeline_fit::{FIT, FitScores, FitTables, PipelineFit, PipelineTask, TrialPredictions};
pub use prepare::{
    PrepareListener, PrepareStep, begin_sweep, events_dir, make_tensors, prepare_events,
    prepare_tables,
};
pub use results::{
    DEFAULT_KEEP, LOG_FILE, ROWS_FILE, choose_network, clean_up, manage_trials, trial_rows,
};
pub use status::{BestTrial, RunningTrial, SweepStatus, WorkerHeartbeat, best_trial, sweep_status};
pub use trial_data::table_dir;
pub use trial_duration::measure_trial;
pub use trial_files::trial_dir;
pub use trial_row::{TrialEnd, TrialRow, csv_line, plain_value};
pub use trials::{SweepTrials, check_pipeline};
