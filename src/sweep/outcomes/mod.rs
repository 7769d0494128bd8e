//! Scores trials, chooses the best and trains it again.

mod bbc_cv;
mod best_model;
mod best_trial;
mod bestmodel_info;
mod chance;
mod choice;
mod conclude;
mod csv_table;
mod ensemble_choice;
mod ensemble_model;
mod found_members;
mod input_values;
mod outcome;
mod pareto_front;
mod probed_scores;
mod results;
mod rolling_truth;

pub use bbc_cv::{FMeasureThreshold, ScoreEstimate, TrueTargets};
pub use best_model::{BestModel, TrialResult, resolve_run};
pub use best_trial::{BestTrial, best_outcome, best_trial};
pub use bestmodel_info::{best_model_info, write_best_model};
pub use chance::no_better_than_chance;
pub use choice::{SplitChoice, choose_pipelines};
pub use conclude::{EvaluatedChoices, conclude_parts, evaluate_choices, lost_row};
pub use csv_table::csv_line;
pub use ensemble_choice::{EnsembleChoice, TrialOfKind};
pub use ensemble_model::write_ensemble;
pub use found_members::find_members;
pub use input_values::{InputKind, InputValue};
pub(crate) use outcome::earlier_trials;
#[cfg(test)]
pub(crate) use outcome::quarantined_row;
pub use outcome::{TrialOutcome, TrialOutcomes};
pub use pareto_front::{FrontTrial, pareto_front};
pub use probed_scores::probed_scores;
pub use results::{choose_model, clean_up, default_keep, trial_rows};
pub(crate) use results::{write_results, write_rows};
