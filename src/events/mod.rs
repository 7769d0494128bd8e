//! Events of many logs → event shards: columns sorted so that a job's history is one slice.

mod build;
mod columns;
mod ingest;
mod rows;
mod runs;
mod store;

pub use build::EventStoreBuilder;
#[cfg(test)]
pub(crate) use build::tests::store_of;
pub(crate) use columns::TIMESTAMPS_MS;
pub use columns::{JobHistory, StoredJob};
pub use ingest::{
    IngestListener, IngestStep, LogIngest, event_store_key, identify_logs, read_into_memory,
};
pub use store::{EVENTS_FORMAT, EventStore, LogGap, SourceLog, StoreSummary, StoredJobs};
