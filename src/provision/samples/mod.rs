//! Training samples for wait models: simulated submissions of a successor at several times of each
//! window of a trace, with the resulting waits.

mod sample_window;
mod samples_store;
mod samples_summary;
mod wait_samples;
mod write_samples;

pub use samples_store::{SAMPLES_FORMAT, SamplesWriter, copy_samples};
pub use samples_summary::{ProbeWaits, SamplesSummary};
pub use wait_samples::{SamplesDescription, WaitSampleRow, WaitSamples, WindowSamples};
pub use write_samples::write_samples;
