//! The arguments of `poolcast tensors`.

use std::path::PathBuf;

use clap::Args;

use super::shards::ShardArgs;
use poolcast_config::{
    ContextChoice, HoldCycles, LabelKind, SplitMethod, StateEvent, Vocabulary, WindowPlace,
};

/// Arguments of `tensors`.
#[derive(Debug, Args)]
pub struct TensorsArgs {
    /// The directory of event shards that `parse` wrote
    pub events: PathBuf,
    /// The directory of tensors to write
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// The configuration file
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The number of jobs in a sample, the held one included
    #[arg(long)]
    pub j: Option<u32>,
    /// The number of time frames in a sample
    #[arg(long)]
    pub m: Option<u32>,
    /// The length of a time frame, in seconds
    #[arg(long, value_name = "SECONDS")]
    pub timeframe_len: Option<u32>,
    /// Which time the frames cover
    #[arg(long, value_enum)]
    pub window: Option<WindowPlace>,
    /// Which other jobs a sample shows beside the held one
    #[arg(long, value_enum)]
    pub context: Option<ContextChoice>,
    /// Which states of a job are told apart
    #[arg(long, value_enum)]
    pub vocabulary: Option<Vocabulary>,
    /// The events that count as states, such as 0,1,5,12,13,input-transfer,output-transfer [default: every event number]
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    pub states: Option<Vec<StateEvent>>,
    /// The outcome that is predicted
    #[arg(long, value_enum)]
    pub label: Option<LabelKind>,
    /// Which holds of a job become samples
    #[arg(long, value_enum)]
    pub cycles: Option<HoldCycles>,
    /// How samples are divided into train, validation and test
    #[arg(long, value_enum)]
    pub split: Option<SplitMethod>,
    /// The seed of every random choice
    #[arg(long)]
    pub seed: Option<u64>,
    /// Also print what could leak from the train samples into the test samples
    #[arg(long)]
    pub audit: bool,
    /// First unpack this tar file into the working directory; files that exist stay as they are
    #[arg(long, value_name = "FILE")]
    pub unpack: Option<PathBuf>,
    /// Replace an earlier result
    #[arg(long)]
    pub overwrite: bool,
    /// Print the counts as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub shards: ShardArgs,
}
