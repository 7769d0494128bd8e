//! Search for hyper-parameters: samplers choose the point of each trial, and pruners decide which
//! trials continue.

mod observed_trial;
pub mod pruners;
mod sampler;
mod samplers;
mod space;

pub use observed_trial::ObservedTrial;
pub use sampler::Sampler;
pub use samplers::grid::point_count as grid_point_count;
pub use space::{SearchPoint, SearchSpace};
