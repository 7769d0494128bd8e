//! Events of many logs → event shards: columns sorted so that a job's history is one slice.

mod build;
mod store;

pub use build::build;
pub use store::{EVENTS, History, Job, Source, Store, Summary};
