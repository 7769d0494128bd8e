//! Windows of a trace: a predecessor enters a simulated queue, and its successor can be submitted
//! at a sequence of decision times.

#[cfg(test)]
pub(crate) mod busy_world;
mod observed_cluster;
mod open_window;
mod running_window;
mod window_plan;

pub(crate) use open_window::{OpenWindow, WindowOpener};
pub(crate) use running_window::{RunningWindow, SuccessorStart};
pub use window_plan::WindowPlan;
