//! The arguments of `poolcast provision check`.

use clap::Args;

/// Arguments of `provision check`.
#[derive(Debug, Args)]
pub struct ProvisionCheckArgs {
    /// Partition of your jobs [default: the default partition of the cluster]
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}
