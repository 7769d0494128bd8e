//! What trains a network besides its gradient: the loop over epochs, the optimiser, early stopping,
//! checkpoints, and the reasons why a training ends without a model.

mod adam;
mod checkpoint;
mod early_stopping;
mod flat_network;
mod stopped;
mod training_loop;
mod training_state;

pub use adam::{Adam, AdamSettings};
pub use checkpoint::{
    Checkpoint, CheckpointFormat, CheckpointLayout, CheckpointSummary, LearnerState,
};
pub use early_stopping::{EarlyStopping, WatchedEpochs};
pub use flat_network::FlatNetwork;
pub use stopped::{NonFiniteLoss, TrainError, TrainingStopped};
pub use training_loop::{
    BatchProgress, LearnedEpoch, Learner, LossGradient, StateOf, TrainingLoop,
};
pub use training_state::{NetworkState, TrainingState};
