//! What trains a network besides its gradient: the optimiser, early stopping, and the reasons why a
//! training ends without a model.

mod adam;
mod early_stopping;
mod stopped;

pub use adam::{Adam, AdamSettings};
pub use early_stopping::{EarlyStopping, WatchedEpochs};
pub use stopped::{NonFiniteLoss, TrainingStopped};
