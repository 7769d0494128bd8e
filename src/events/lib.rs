//! Stores the events of many logs in shards: columns sorted so that a job's history is one slice.

mod access_points;
mod earlier_shards;
mod fact_tables;
mod format;
mod ingest;
mod input_table;
mod job_history;
mod job_row;
mod later_events;
mod log_files;
mod log_gaps;
mod near_events;
mod read_log;
mod row_sorter;
mod salted_names;
mod same_id_jobs;
mod shard_columns;
mod shard_sequence;
mod sort_runs;
mod store;
mod store_builder;
mod store_summary;

pub use format::{EVENTS_FORMAT, TIMESTAMPS_MS};
pub use ingest::{
    BatchListener, IngestListener, IngestStep, LogIngest, event_store_key, identify_logs,
    read_into_memory,
};
pub use job_history::{JobHistory, StoredJob};
pub use store::{EventStore, StoredJobs};
pub use store_builder::EventStoreBuilder;
pub use store_summary::{HoldSource, LogGap, SourceLog, StoreSummary};
