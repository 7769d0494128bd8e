//! `poolcast learn`: learns from logs what becomes of held jobs, and advises. It trains no models of trials.

use anyhow::Result;

use super::learned_report::conclude;
use super::progress::{Progress, Stage};
use super::run_config::begin_run;
use super::whole_sweep::learn_answers;
use poolcast_base::error::{EXIT_DONE, EXIT_RETRY};
use poolcast_base::files;
use poolcast_cli::RunArgs;
use poolcast_sweep as sweep;

/// Learns from the logs that `args` name, and advises on the jobs that are still held.
pub fn run(args: &RunArgs) -> Result<u8> {
    let progress = Progress::new(&[Stage::Read, Stage::Answers, Stage::Page]);
    progress.show(|| learn(args, &progress))
}

fn learn(args: &RunArgs, progress: &Progress) -> Result<u8> {
    // Until the end, no other call may replace the events that this one works on.
    let (config, sweep, _lock) = begin_run(args, progress)?;
    if args.overwrite {
        files::remove_all([sweep::answers_dir(&config.out)])?;
    }
    if !learn_answers(&sweep, &config.out, progress)? {
        return Ok(EXIT_RETRY);
    }
    conclude(None, &config, args.output.json, progress)?;
    Ok(EXIT_DONE)
}
