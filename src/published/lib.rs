//! The models of Slurm waits that the project Mirage published, and variants of them: networks over
//! snapshots of a queue, a policy head on such a network, and action values.
//!
//! `poolcast-provision` trains them and compares them with its own models. Here are their outputs,
//! their losses and their gradients, for rows of numbers.

mod action_values;
mod column_scales;
mod policy_head;
mod scaled_network;
pub mod series;
mod wait_losses;

pub use action_values::{ActionValues, ReplayMemory, ReplayRows};
pub use column_scales::ColumnScales;
pub use policy_head::{HeadEpisode, HeadEpoch, PolicyHead, learn_head};
pub use scaled_network::{NETWORK_FILE, NetworkScales, ScaledNetwork};
pub use wait_losses::WaitLoss;
