//! Reads accounting files of several formats into a trace: the jobs of a cluster by submission
//! time, stored in shards.

mod accounting_json;
mod accounting_row;
mod accounting_text;
mod array_elements;
mod daily_load;
mod duration;
mod export_overlap;
mod local_time;
mod row_collector;
mod row_fault;
mod source_file;
mod text_lines;
mod trace_columns;
mod trace_job;
mod trace_reader;
mod trace_statistics;
mod trace_store;
mod user_load;
mod workload_format;

pub use array_elements::elements_of_array;
pub(crate) use daily_load::{DailyLoad, daily_loads};
pub use duration::{TimeLimit, parse_time_limit};
pub use local_time::TraceZone;
pub use row_collector::hash_user;
pub use row_fault::{RejectedRows, RowFault};
pub use source_file::{SourceForm, TraceSource};
pub use trace_job::{JobFate, JobNumber, JobPart, OptionalSeconds, TraceJob};
pub use trace_reader::{ReadTrace, TraceOptions, read_accounting, read_trace, trace_key};
pub(crate) use trace_statistics::month_of;
pub use trace_statistics::{
    ArrivalsPerDay, CancelledWaits, LimitShare, MonthlyWaits, NamedQuantiles, NodeCountShare,
    TraceStatistics, trace_statistics,
};
pub use trace_store::{JobTrace, TRACE_FORMAT, TraceSummary, write_trace};
pub use user_load::{BusiestUsers, busiest_users};
