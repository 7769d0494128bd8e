//! Validation on a trace: compares submission policies on simulated windows, and wait forecasts
//! with real waits.

mod block_draws;
mod gap_scores;
mod learned_policies;
mod real_waits;
mod reward_log;
mod trace_sweep;
mod validate;
mod validation_store;
mod window_outcome;

pub use block_draws::DrawnInterval;
pub use gap_scores::PolicyScores;
pub use learned_policies::LearnedScores;
pub use real_waits::{ForecastScores, QuantileScores, RealWaitScores};
pub use validate::{
    RealWaits, ValidationSettings, ValidationSummary, ValidationWindows, validate_policies,
};
pub use validation_store::{VALIDATION_FORMAT, read_validation, write_validation};
