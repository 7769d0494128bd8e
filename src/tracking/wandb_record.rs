//! The records of a `.wandb` file, as far as poolcast writes them: the messages of W&B's
//! `wandb_internal.proto` with its numbers of fields.

use prost::{Message, Oneof};

/// One record of a file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Record {
    /// Counted from 1.
    #[prost(int64, tag = "1")]
    pub(super) num: i64,
    /// What it is about.
    #[prost(oneof = "RecordKind", tags = "2, 3, 7, 17, 18, 21")]
    pub(super) kind: Option<RecordKind>,
}

/// What a record is about.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum RecordKind {
    /// One line of the history.
    #[prost(message, tag = "2")]
    History(HistoryRecord),
    /// What is known of the run as a whole.
    #[prost(message, tag = "3")]
    Summary(SummaryRecord),
    /// What it costs.
    #[prost(message, tag = "7")]
    Stats(StatsRecord),
    /// The run.
    #[prost(message, tag = "17")]
    Run(RunRecord),
    /// Its end.
    #[prost(message, tag = "18")]
    Exit(RunExitRecord),
    /// Who wrote the file.
    #[prost(message, tag = "21")]
    Header(HeaderRecord),
}

/// Who wrote the file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HeaderRecord {
    #[prost(message, optional, tag = "1")]
    pub(super) version_info: Option<VersionInfo>,
}

/// The program that wrote the file, and the oldest SDK that may read it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct VersionInfo {
    #[prost(string, tag = "1")]
    pub(super) producer: String,
    #[prost(string, tag = "2")]
    pub(super) min_consumer: String,
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
    #[prost(string, tag = "8")]
    pub(super) display_name: String,
    #[prost(string, repeated, tag = "10")]
    pub(super) tags: Vec<String>,
    #[prost(message, optional, tag = "17")]
    pub(super) start_time: Option<Timestamp>,
}

/// A moment, as in protobuf's own `timestamp.proto`.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Timestamp {
    /// Since 1970, in UTC.
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}

/// What a run was made with.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ConfigRecord {
    #[prost(message, repeated, tag = "1")]
    pub(super) update: Vec<RecordItem>,
}

/// What is known of the run as a whole.
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

/// What a run costs at a moment. Its items are of the system, which is kind 0 and not written.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StatsRecord {
    #[prost(message, optional, tag = "2")]
    pub(super) timestamp: Option<Timestamp>,
    /// Their names get `system.` before them.
    #[prost(message, repeated, tag = "3")]
    pub(super) item: Vec<RecordItem>,
}

/// The number of a line of the history.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct HistoryStep {
    #[prost(int64, tag = "1")]
    pub(super) num: i64,
}

/// A name and its value. W&B calls it `ConfigItem`, `SummaryItem`, `HistoryItem` or
/// `StatsItem`; all have these fields.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RecordItem {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    /// JSON, in which `NaN`, `Infinity` and `-Infinity` may stand, too.
    #[prost(string, tag = "16")]
    pub(super) value_json: String,
}

/// The end of a run.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct RunExitRecord {
    #[prost(int32, tag = "1")]
    pub(super) exit_code: i32,
    /// In seconds.
    #[prost(int32, tag = "2")]
    pub(super) runtime: i32,
}
