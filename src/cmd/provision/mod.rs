//! The steps of `poolcast provision`, one file each.

mod advise;
mod chain;
mod check;
mod link;
mod live_sources;
mod replay;
mod samples;
mod score;
mod shared_flags;
mod slurm_keys;
mod start;
mod trace;
mod train;
mod validate;
mod window_progress;

use anyhow::Result;

use poolcast_cli::ProvisionStep;

/// Runs `step`.
pub fn run(step: &ProvisionStep) -> Result<u8> {
    match step {
        ProvisionStep::Trace(args) => trace::run(args),
        ProvisionStep::Replay(args) => replay::run(args),
        ProvisionStep::Samples(args) => samples::run(args),
        ProvisionStep::Train(args) => train::run(args),
        ProvisionStep::Validate(args) => validate::run(args),
        ProvisionStep::Advise(args) => advise::run(args),
        ProvisionStep::Check(args) => check::run(args),
        ProvisionStep::Start(args) => start::run(args),
        ProvisionStep::Score(args) => score::run(args),
        ProvisionStep::Chain(args) => chain::run(args),
        ProvisionStep::Link(args) => link::run(args),
    }
}
