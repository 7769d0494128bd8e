//! Events of many logs → event shards: columns sorted so that a job's history is one slice.

mod build;
mod columns;
mod rows;
mod runs;
mod store;

pub use build::Builder;
#[cfg(test)]
pub(crate) use build::tests::store_of;
pub(crate) use columns::TIMES_MS;
pub use columns::{History, Job};
pub use store::{EVENTS, Gap, Jobs, Source, Store, Summary};
