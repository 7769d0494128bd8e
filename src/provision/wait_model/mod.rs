//! Samples of a simulated queue → a model that says how long a successor submitted now would wait,
//! or whether to submit it.

mod action_values;
mod column_scales;
mod episodes;
mod feature_pipelines;
mod held_back_scores;
mod learned_model;
mod learning_state;
mod network_training;
mod policy_head;
mod sample_checks;
mod scaled_network;
mod submission_replay;
mod train_wait_model;
mod training_checkpoint;
mod wait_estimator;
mod wait_losses;
mod wait_model_store;

pub use held_back_scores::{ComparedCost, HeldBackPolicy, HeldBackScores, QuantileScore};
pub use learned_model::ModelAnswer;
pub use learning_state::LearningEpoch;
pub use network_training::LearningUpdate;
pub use train_wait_model::{
    TrainedWaitModel, WaitModelSettings, WaitTrainingTask, train_wait_model,
};
pub use wait_model_store::{WAIT_MODEL_FORMAT, WaitModel, WaitModelDescription, WaitModelSummary};
