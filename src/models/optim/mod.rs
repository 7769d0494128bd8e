//! What trains a network besides its gradient: the optimiser, and the reasons why a training ends early.

mod adam;
mod stopped;

pub use adam::{Adam, AdamSettings};
pub use stopped::{NonFiniteLoss, TrainingStopped};
