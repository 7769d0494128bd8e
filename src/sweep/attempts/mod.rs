//! Runs one trial: its data, its fit, its deadline and its files.

mod answer_attempt;
mod command_attempt;
mod command_line;
mod deadline;
mod kept_trials;
mod network_attempt;
mod part;
mod permutation_importance;
mod pipeline_attempt;
mod pipeline_fit;
mod python_text;
mod report_line;
mod report_reader;
pub(crate) mod trial_data;
mod trial_duration;
mod trial_files;
mod trial_process;
mod wait_model_attempt;
mod wandb_files;
pub mod wandb_record;

pub(crate) use answer_attempt::score_as_member;
pub(crate) use command_attempt::{CommandAttempt, end_orphans};
pub(crate) use deadline::{AttemptDeadline, AttemptError};
pub(crate) use kept_trials::{ComparisonGroup, KeptTrials, MAX_COMPARED_TRIALS};
pub(crate) use network_attempt::{NetworkAttempt, trained_epochs};
pub use part::{PART_ROWS_FILE, PartEnd, SweepPart, part_at_work, part_rows};
pub use permutation_importance::{FeatureImportance, FeatureImportances};
pub(crate) use pipeline_attempt::PipelineAttempt;
pub(crate) use pipeline_fit::pooled_scores;
pub use pipeline_fit::{FitTables, PipelineFit, PipelineTask, TrialPredictions};
pub(crate) use trial_data::{SharedData, trial_dataset, trial_dataset_split};
pub use trial_duration::measure_trial;
pub(crate) use trial_files::{TrialFiles, publish_attempt};
pub(crate) use wait_model_attempt::WaitModelAttempt;
