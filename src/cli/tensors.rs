//! The arguments of `poolcast tensors`.

use std::path::PathBuf;

use clap::Args;

use super::shards::ShardArgs;
use super::shared_flags::{JsonFlag, OverwriteFlag};
use poolcast_config::{
    ContextChoice, HoldCycles, LabelKind, SplitMethod, StateEvent, Vocabulary, WindowPosition,
};

/// Arguments of `tensors`.
#[derive(Debug, Args)]
pub struct TensorsArgs {
    /// Directory of event shards that `parse` wrote
    pub events: PathBuf,
    /// Directory of tensors to write
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Configuration file
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Number of jobs in a sample, including the held one
    #[arg(long)]
    pub j: Option<u32>,
    /// Number of time frames in a sample
    #[arg(long)]
    pub m: Option<u32>,
    /// Length of a time frame, in seconds
    #[arg(long, value_name = "SECONDS")]
    pub timeframe_len: Option<u32>,
    /// Time range that the frames cover
    #[arg(long, value_enum)]
    pub window: Option<WindowPosition>,
    /// Other jobs that a sample shows beside the held one
    #[arg(long, value_enum)]
    pub context: Option<ContextChoice>,
    /// Job states that a sample distinguishes
    #[arg(long, value_enum)]
    pub vocabulary: Option<Vocabulary>,
    /// Events that count as states, such as 0,1,5,12,13,input-transfer,output-transfer [default:
    /// every event number]
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    pub states: Option<Vec<StateEvent>>,
    /// Outcome to predict
    #[arg(long, value_enum)]
    pub label: Option<LabelKind>,
    /// Holds of a job that become samples
    #[arg(long, value_enum)]
    pub cycles: Option<HoldCycles>,
    /// Method that divides the samples into train, validation and test
    #[arg(long, value_enum)]
    pub split: Option<SplitMethod>,
    /// Seed of every random choice
    #[arg(long)]
    pub seed: Option<u64>,
    /// Also print possible leaks from the train samples into the test samples
    #[arg(long)]
    pub audit: bool,
    /// Tar file to unpack into the working directory first; existing files are kept
    #[arg(long, value_name = "FILE")]
    pub unpack: Option<PathBuf>,
    /// Treatment of an earlier result.
    #[command(flatten)]
    pub earlier: OverwriteFlag,
    /// Format of the output.
    #[command(flatten)]
    pub output: JsonFlag,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub shards: ShardArgs,
}
