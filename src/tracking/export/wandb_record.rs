//! The records of a `.wandb` file: the messages of W&B's `wandb_internal.proto` that poolcast
//! writes, with the same field numbers.

use prost::{Message, Oneof};

/// One record of a file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Record {
    /// Record number, counted from 1.
    #[prost(int64, tag = "1")]
    pub(super) num: i64,
    /// Content of the record.
    #[prost(oneof = "RecordKind", tags = "2, 3, 7, 12, 17, 18, 21")]
    pub(super) kind: Option<RecordKind>,
}

/// Content of a record.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum RecordKind {
    /// One line of the history.
    #[prost(message, tag = "2")]
    History(HistoryRecord),
    /// The summary of the run.
    #[prost(message, tag = "3")]
    Summary(SummaryRecord),
    /// Resource usage of the run.
    #[prost(message, tag = "7")]
    Stats(StatsRecord),
    /// The definition of a metric.
    #[prost(message, tag = "12")]
    Metric(MetricRecord),
    /// The run.
    #[prost(message, tag = "17")]
    Run(RunRecord),
    /// The end of the run.
    #[prost(message, tag = "18")]
    Exit(RunExitRecord),
    /// The program that wrote the file.
    #[prost(message, tag = "21")]
    Header(HeaderRecord),
}

/// The program that wrote the file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HeaderRecord {
    #[prost(message, optional, tag = "1")]
    pub(super) version_info: Option<VersionInfo>,
}

/// Versions of the program that wrote the file and of the oldest SDK that can read it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct VersionInfo {
    #[prost(string, tag = "1")]
    pub(super) producer: String,
    #[prost(string, tag = "2")]
    pub(super) min_consumer: String,
}

/// The definition of a metric.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricRecord {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "6")]
    pub(super) options: Option<MetricOptions>,
    #[prost(message, optional, tag = "7")]
    pub(super) summary: Option<MetricSummary>,
    /// 1 to minimize, 2 to maximize.
    #[prost(int32, tag = "8")]
    pub(super) goal: i32,
}

/// The origin of a metric.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct MetricOptions {
    /// True if the program has defined it.
    #[prost(bool, tag = "3")]
    pub(super) defined: bool,
}

/// What a table shows of a metric.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct MetricSummary {
    #[prost(bool, tag = "1")]
    pub(super) min: bool,
    #[prost(bool, tag = "2")]
    pub(super) max: bool,
}

/// A run.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RunRecord {
    #[prost(string, tag = "1")]
    pub(super) run_id: String,
    #[prost(string, tag = "2")]
    pub(super) entity: String,
    #[prost(string, tag = "3")]
    pub(super) project: String,
    #[prost(message, optional, tag = "4")]
    pub(super) config: Option<ConfigRecord>,
    #[prost(string, tag = "6")]
    pub(super) run_group: String,
    #[prost(string, tag = "7")]
    pub(super) job_type: String,
    #[prost(string, tag = "8")]
    pub(super) display_name: String,
    #[prost(string, repeated, tag = "10")]
    pub(super) tags: Vec<String>,
    #[prost(message, optional, tag = "17")]
    pub(super) start_time: Option<Timestamp>,
}

/// A point in time, as in protobuf's `timestamp.proto`.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Timestamp {
    /// Seconds since 1970, in UTC.
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}

/// The configuration of a run.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ConfigRecord {
    #[prost(message, repeated, tag = "1")]
    pub(super) update: Vec<RecordItem>,
}

/// The summary of a run.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SummaryRecord {
    #[prost(message, repeated, tag = "1")]
    pub(super) update: Vec<RecordItem>,
}

/// One line of the history.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HistoryRecord {
    #[prost(message, repeated, tag = "1")]
    pub(super) item: Vec<RecordItem>,
    #[prost(message, optional, tag = "2")]
    pub(super) step: Option<HistoryStep>,
}

/// Resource usage of a run at one time. Its kind is 0 (system), which protobuf does not encode.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StatsRecord {
    #[prost(message, optional, tag = "2")]
    pub(super) timestamp: Option<Timestamp>,
    /// W&B prefixes their names with `system.`.
    #[prost(message, repeated, tag = "3")]
    pub(super) item: Vec<RecordItem>,
}

/// Number of a line of the history.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct HistoryStep {
    #[prost(int64, tag = "1")]
    pub(super) num: i64,
}

/// A name and its value. W&B has `ConfigItem`, `SummaryItem`, `HistoryItem` and `StatsItem` for it;
/// all have these fields.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RecordItem {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    /// JSON, extended by `NaN`, `Infinity` and `-Infinity`.
    #[prost(string, tag = "16")]
    pub(super) value_json: String,
}

/// The end of a run.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct RunExitRecord {
    #[prost(int32, tag = "1")]
    pub(super) exit_code: i32,
    /// Run time in seconds.
    #[prost(int32, tag = "2")]
    pub(super) runtime: i32,
}
