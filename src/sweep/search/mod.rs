//! A search space and what is known of earlier trials → the point that a trial tries, and which
//! trials are pruned.

mod observed_trial;
pub mod pruners;
mod sampler;
mod samplers;
mod space;

pub use observed_trial::ObservedTrial;
pub use sampler::Sampler;
pub use samplers::grid::point_count as grid_point_count;
pub use space::{SearchPoint, SearchSpace};
