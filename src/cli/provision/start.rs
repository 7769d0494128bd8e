//! The arguments of `poolcast provision start` and `score`.

use std::path::PathBuf;

use clap::Args;

use super::cluster_args::{ClusterArgs, QueueArgs};
use poolcast_provision::trace::{TimeLimit, parse_time_limit};
use poolcast_slurm::live::AskedShape;

/// Arguments of `provision start`.
#[derive(Debug, Args)]
pub struct ProvisionStartArgs {
    /// Pending job: `4711`, or the element `4711_3` of an array
    pub job: String,
    /// Another shape of the job, to compare: a time limit as for `sbatch --time`, or nodes and a limit, such as
    /// `2x12:00:00`; repeat the option for more
    #[arg(long, value_name = "[NODESx]TIME", value_parser = asked_shape)]
    pub shape: Vec<AskedShape>,
    /// Trace that `provision trace` wrote, the source of the run times of jobs [default: the
    /// accounting of the last 30 days from `sacct`]
    #[arg(long, value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    /// The queue.
    #[command(flatten)]
    pub queue: QueueArgs,
    /// Facts about the cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Print the forecast as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `provision score`.
#[derive(Debug, Args)]
pub struct ProvisionScoreArgs {
    /// Trace that `provision trace` wrote, with the jobs of the forecasts [default: the accounting of the last 30 days
    /// from `sacct`]
    pub trace: Option<PathBuf>,
    /// Print the comparison as JSON
    #[arg(long)]
    pub json: bool,
}

fn asked_shape(text: &str) -> Result<AskedShape, String> {
    let invalid = || {
        format!(
            "`{text}` is not a time limit such as 12:00:00, or nodes and a limit such as 2x12:00:00"
        )
    };
    let (nodes, limit) = match text.split_once('x') {
        None => (None, text),
        Some((nodes, limit)) => (Some(nodes.parse().map_err(|_| invalid())?), limit),
    };
    match parse_time_limit(limit) {
        Some(TimeLimit::Seconds(limit_s)) if limit_s > 0 && nodes != Some(0) => {
            Ok(AskedShape { nodes, limit_s })
        }
        _ => Err(invalid()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_nodes_and_a_limit() {
        let shape = |nodes, limit_s| Some(AskedShape { nodes, limit_s });
        for (text, expected) in [
            ("90", shape(None, 5400)),
            ("2x12:00:00", shape(Some(2), 43_200)),
            ("4x1-00", shape(Some(4), 86_400)),
            ("0x60", None),
            ("2x", None),
            ("x60", None),
            ("2x0", None),
            ("UNLIMITED", None),
            ("2x60x", None),
        ] {
            assert_eq!(asked_shape(text).ok(), expected, "{text}");
        }
    }
}
