//! Networks over frames of numbers `[b, t, c]`, such as snapshots of a queue: their design, their
//! outputs `[b, k]`, and the gradient of any loss of the outputs.

mod convolution;
mod dense;
mod design;
mod dropout;
mod mixture;
mod network;
mod recurrence;
mod transformer;

pub use design::{MAX_EXPERTS, SeriesDesign, SeriesKind};
pub use dropout::DropoutSeed;
pub use network::{BatchGradient, FrozenNetwork, OutputLoss, SeriesNetwork};
