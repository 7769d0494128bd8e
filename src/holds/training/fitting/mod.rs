//! Trains a network: the loop over epochs, its samples, its checkpoint and when it stops.

mod batch_noise;
mod checkpoint;
mod cluster_weights;
mod cut_choice;
pub(crate) mod judged_epochs;
mod epoch;
mod epoch_times;
mod hold_learner;
mod progress;
mod samples;
mod score;
#[cfg(test)]
mod small_runs;
mod small_steps;
mod state;
mod static_range;
mod time_cuts;
mod train;
mod train_in_memory;

pub use checkpoint::{checkpoint_key, copy_checkpoint};
pub use cluster_weights::cluster_weights;
pub use epoch::{Epoch, PooledScores, read_history};
pub use epoch_times::{EpochTimes, read_epoch_times};
pub use poolcast_models::optim::TrainError;
pub use progress::TrainingUpdate;
pub(crate) use samples::{SampleSet, shared_bit_count, static_feature_count};
pub(crate) use score::score_samples;
#[cfg(test)]
pub(crate) use small_runs::{small_dataset, train_small};
pub use small_steps::train_beside_others;
pub use static_range::StaticRange;
pub(crate) use time_cuts::SampleTimes;
pub use time_cuts::{LEARNED_SPLITS, TimeCut, learned_splits, time_cuts};
pub(crate) use train::model_shape;
pub use train::{RunLocation, StartMode, train, train_until};
pub(crate) use train_in_memory::{TaughtHolds, train_in_memory};
