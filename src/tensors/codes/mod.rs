//! The codes of a sample: a held job among context jobs, one byte for each event type, time frame and job.

mod context_jobs;
mod frames;
mod life_spans;
mod recent_activity;
mod related_jobs;
mod sample_encoder;
mod state_codes;

pub(crate) use frames::Frames;
pub(crate) use recent_activity::RecentActivity;
pub(crate) use related_jobs::SHARED_BITS;
pub use sample_encoder::SampleEncoder;
