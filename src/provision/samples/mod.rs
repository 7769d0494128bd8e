//! A trace → what models of waits learn from: moments of simulated windows at which a successor
//! could have been submitted, and how long it then waited.

mod sample_window;
mod samples_store;
mod samples_summary;
mod wait_samples;
mod write_samples;

pub use samples_store::{SAMPLES_FORMAT, SamplesWriter, copy_samples};
pub use samples_summary::{ProbeWaits, SamplesSummary};
pub use wait_samples::{SamplesDescription, WaitSampleRow, WaitSamples, WindowSamples};
pub use write_samples::write_samples;
