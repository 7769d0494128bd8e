//! The arguments of `poolcast tensors`.

use std::path::PathBuf;

use clap::Args;

use super::shards::ShardArgs;
use crate::config::{
    ContextChoice, HoldCycles, LabelKind, SplitMethod, StateEvent, Vocabulary, WindowPlace,
};

/// Arguments of `tensors`.
#[derive(Debug, Args)]
pub struct TensorsArgs {
    /// A directory that `parse` wrote
    pub events: PathBuf,
    /// The directory to write
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// A configuration file
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Jobs in a sample, the held one included
    #[arg(long)]
    pub j: Option<u32>,
    /// Time frames in a sample
    #[arg(long)]
    pub m: Option<u32>,
    /// Seconds per frame
    #[arg(long, value_name = "SECONDS")]
    pub timeframe_len: Option<u32>,
    /// Where the frames stand
    #[arg(long, value_enum)]
    pub window: Option<WindowPlace>,
    /// Which other jobs stand beside the held one
    #[arg(long, value_enum)]
    pub context: Option<ContextChoice>,
    /// The states of a job that are told apart
    #[arg(long, value_enum)]
    pub vocabulary: Option<Vocabulary>,
    /// The events that are states, such as 0,1,5,12,13,input-transfer,output-transfer [default: every number]
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    pub states: Option<Vec<StateEvent>>,
    /// What is predicted
    #[arg(long, value_enum)]
    pub label: Option<LabelKind>,
    /// Which holds of a job
    #[arg(long, value_enum)]
    pub cycles: Option<HoldCycles>,
    /// How samples are divided
    #[arg(long, value_enum)]
    pub split: Option<SplitMethod>,
    /// The root of every random choice
    #[arg(long)]
    pub seed: Option<u64>,
    /// Also print what could leak from the samples that are learned from into those that are tested
    #[arg(long)]
    pub audit: bool,
    /// Unpack this tar file first, where the program runs; what is there already stays as it is
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
