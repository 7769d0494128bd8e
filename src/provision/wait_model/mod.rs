//! Trained models for chained jobs. They learn from samples of a simulated queue how long a
//! successor submitted now would wait, or whether to submit it.

mod episodes;
mod expert_training;
mod feature_pipelines;
mod held_back_scores;
mod learned_model;
mod learning_state;
mod model_scores;
mod model_search;
mod model_settings;
mod network_training;
mod sample_checks;
mod submission_replay;
mod train_wait_model;
mod training_checkpoint;
mod value_training;
mod wait_estimator;
mod wait_model_store;

pub use held_back_scores::{ComparedCost, HeldBackPolicy, HeldBackScores, QuantileScore};
pub use learned_model::ModelAnswer;
pub use learning_state::LearningEpoch;
pub use model_scores::WaitModelScores;
pub use model_search::check_model_search;
pub use model_settings::{WaitModelSettings, effective_parameters};
pub use network_training::LearningUpdate;
pub use sample_checks::check_learnable;
pub use train_wait_model::{TrainedWaitModel, WaitTrainingTask, train_wait_model, wait_model_key};
pub use training_checkpoint::read_wait_checkpoint;
pub use wait_model_store::{
    WAIT_MODEL_FORMAT, WaitModel, WaitModelDescription, WaitModelSummary, finished_summary,
};
