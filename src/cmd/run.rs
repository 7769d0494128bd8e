//! `poolcast run`: runs all stages on this machine, from the logs that a configuration names to the
//! advice.

use anyhow::Result;

use super::choices;
use super::learned_report::conclude;
use super::progress::{Progress, Stage};
use super::run_config::begin_run;
use super::study::Study;
use super::whole_sweep::learn_answers;
use poolcast_base::error::{EXIT_DONE, EXIT_RETRY};
use poolcast_base::files;
use poolcast_cli::RunArgs;

/// Runs every stage. Results of an earlier run are kept, unless their inputs have changed.
pub fn run(args: &RunArgs, threads: usize) -> Result<u8> {
    use Stage::{Answers, Page, Read, Scores, Trials};
    let progress = Progress::new(&[Read, Trials, Scores, Answers, Page]);
    progress.show(|| run_stages(args, threads, &progress))
}

fn run_stages(args: &RunArgs, threads: usize, progress: &Progress) -> Result<u8> {
    // Until the end, no other call may replace the events and trials that this one works on.
    let (config, sweep, _lock) = begin_run(args, progress)?;
    if args.overwrite {
        files::remove_all(["trials", "tensors"].map(|name| config.out.join(name)))?;
    }
    choices::note_repeats(&sweep)?;
    let Some(study) = Study::of_trials(&sweep, &config, threads, progress)? else {
        return Ok(EXIT_RETRY);
    };
    if !learn_answers(&sweep, &config.out, progress)? {
        return Ok(EXIT_RETRY);
    }
    conclude(Some(&study), &config, args.output.json, progress)?;
    Ok(EXIT_DONE)
}
