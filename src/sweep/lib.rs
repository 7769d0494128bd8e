//! Sweeps of hyper-parameters: many trials, from which the best is chosen. The trials run on this
//! machine, or on workers that share a folder.

pub mod config;
pub mod search;
pub mod condor;

mod attempts;
mod outcomes;
mod plan;
mod workers;

pub use attempts::wandb_record;
pub use attempts::{
    FeatureImportance, FeatureImportances, FitTables, PART_ROWS_FILE, PartEnd, PipelineFit,
    PipelineTask, SweepPart, TrialPredictions, measure_trial, part_at_work, part_rows,
};
pub use outcomes::{
    BestModel, BestTrial, EnsembleChoice, EvaluatedChoices, FMeasureThreshold, FrontTrial,
    InputKind, InputValue, ScoreEstimate, SplitChoice, TrialOfKind, TrialOutcome, TrialOutcomes,
    TrialResult, TrueTargets, best_model_info, best_outcome, best_trial, choose_model,
    choose_pipelines, clean_up, conclude_parts, csv_line, default_keep, evaluate_choices,
    find_members, lost_row, no_better_than_chance, pareto_front, probed_scores, resolve_run,
    trial_rows, write_best_model, write_ensemble,
};
pub use plan::{
    BEST_FILE, CHOSEN_FILE, EndedTrial, FEW_HOLDS_FILE, GivenPoint, GivenPoints, INFO_FILE,
    LOG_FILE, NETWORK_KIND, ParameterNames, PointAgent, ROWS_FILE, RepeatedDraw, ReportedValues,
    SELECTION_FILE, SWEEP, SweepFolder, SweepPlan, SweepTrials, TrialConfig, TrialEnd, TrialModel,
    TrialNumbers, TrialRow, answers_dir, check_sweep_dir, ensemble_dir, events_dir, has_no_model,
    hyper_parameters, is_usable_id, is_usable_run_id, network_trial_count, parameters_by_kind,
    plain_value, table_dir, tensors_dir, trial_dir, trial_kind,
};
pub use workers::{
    EarlierSweep, LiveProcess, LocalWorkers, PrepareListener, PrepareStep, RunningTrial,
    SweepStatus, TrialAtWork, TrialFailure, begin_sweep, make_tensors, manage_trials,
    prepare_events, prepare_tables, retry_failed, run_locally, sweep_status, trials_at_work,
    work_trials,
};
