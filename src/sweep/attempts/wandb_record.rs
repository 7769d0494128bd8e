//! The records of a `.wandb` file: the messages of W&B's `wandb_internal.proto` that poolcast writes or
//! reads, with the same field numbers.

#![expect(missing_docs, reason = "the fields have the names that W&B gives them")]

use prost::{Message, Oneof};

/// One record of a file.
#[derive(Clone, PartialEq, Message)]
pub struct Record {
    /// Record number, counted from 1.
    #[prost(int64, tag = "1")]
    pub num: i64,
    /// Content of the record.
    #[prost(oneof = "RecordKind", tags = "2, 3, 7, 12, 17, 18, 21")]
    pub kind: Option<RecordKind>,
}

/// Content of a record.
#[derive(Clone, PartialEq, Oneof)]
pub enum RecordKind {
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
pub struct HeaderRecord {
    #[prost(message, optional, tag = "1")]
    pub version_info: Option<VersionInfo>,
}

/// Versions of the program that wrote the file and of the oldest SDK that can read it.
#[derive(Clone, PartialEq, Message)]
pub struct VersionInfo {
    #[prost(string, tag = "1")]
    pub producer: String,
    #[prost(string, tag = "2")]
    pub min_consumer: String,
}

/// The definition of a metric.
#[derive(Clone, PartialEq, Message)]
pub struct MetricRecord {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "6")]
    pub options: Option<MetricOptions>,
    #[prost(message, optional, tag = "7")]
    pub summary: Option<MetricSummary>,
    /// 1 to minimize, 2 to maximize.
    #[prost(int32, tag = "8")]
    pub goal: i32,
}

/// The origin of a metric.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct MetricOptions {
    /// True if the program has defined it.
    #[prost(bool, tag = "3")]
    pub defined: bool,
}

/// What a table shows of a metric.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct MetricSummary {
    #[prost(bool, tag = "1")]
    pub min: bool,
    #[prost(bool, tag = "2")]
    pub max: bool,
}

/// A run.
#[derive(Clone, PartialEq, Message)]
pub struct RunRecord {
    #[prost(string, tag = "1")]
    pub run_id: String,
    #[prost(string, tag = "2")]
    pub entity: String,
    #[prost(string, tag = "3")]
    pub project: String,
    #[prost(message, optional, tag = "4")]
    pub config: Option<ConfigRecord>,
    #[prost(string, tag = "6")]
    pub run_group: String,
    #[prost(string, tag = "7")]
    pub job_type: String,
    #[prost(string, tag = "8")]
    pub display_name: String,
    #[prost(string, repeated, tag = "10")]
    pub tags: Vec<String>,
    #[prost(message, optional, tag = "17")]
    pub start_time: Option<Timestamp>,
}

/// A point in time, as in protobuf's `timestamp.proto`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Timestamp {
    /// Seconds since 1970, in UTC.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// The configuration of a run.
#[derive(Clone, PartialEq, Message)]
pub struct ConfigRecord {
    #[prost(message, repeated, tag = "1")]
    pub update: Vec<RecordItem>,
}

/// The summary of a run.
#[derive(Clone, PartialEq, Message)]
pub struct SummaryRecord {
    #[prost(message, repeated, tag = "1")]
    pub update: Vec<RecordItem>,
}

/// One line of the history.
#[derive(Clone, PartialEq, Message)]
pub struct HistoryRecord {
    #[prost(message, repeated, tag = "1")]
    pub item: Vec<RecordItem>,
    #[prost(message, optional, tag = "2")]
    pub step: Option<HistoryStep>,
}

/// Resource usage of a run at one time. Its kind is 0 (system), which protobuf does not encode.
#[derive(Clone, PartialEq, Message)]
pub struct StatsRecord {
    #[prost(message, optional, tag = "2")]
    pub timestamp: Option<Timestamp>,
    /// W&B prefixes their names with `system.`.
    #[prost(message, repeated, tag = "3")]
    pub item: Vec<RecordItem>,
}

/// Number of a line of the history.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct HistoryStep {
    #[prost(int64, tag = "1")]
    pub num: i64,
}

/// A name and its value. W&B has `ConfigItem`, `SummaryItem`, `HistoryItem` and `StatsItem` for it;
/// all have these fields.
#[derive(Clone, PartialEq, Message)]
pub struct RecordItem {
    #[prost(string, tag = "1")]
    pub key: String,
    /// The names of a nested value, from the outside in, in place of the key; none in what poolcast writes.
    #[prost(string, repeated, tag = "2")]
    pub nested_key: Vec<String>,
    /// JSON, extended by `NaN`, `Infinity` and `-Infinity`.
    #[prost(string, tag = "16")]
    pub value_json: String,
}

/// The end of a run.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct RunExitRecord {
    #[prost(int32, tag = "1")]
    pub exit_code: i32,
    /// Run time in seconds.
    #[prost(int32, tag = "2")]
    pub runtime: i32,
}
