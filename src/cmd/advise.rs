//! `poolcast advise`: a model and a log → what to do with each held job.

use anyhow::Result;

use super::logs::read_store;
use super::{text, trained_run};
use crate::advice::{self, JobSelection};
use crate::cli::AdviseArgs;
use crate::config::Config;
use crate::training::TrainedModel;
use crate::{condor, output, sweep};

/// Reads the logs, judges the held jobs, prints the advice; the exit code says what it is.
pub fn run(args: &AdviseArgs) -> Result<u8> {
    let selections: Vec<JobSelection> = args
        .jobs
        .iter()
        .map(|job| job.parse())
        .collect::<Result<_>>()?;

    let dir = sweep::resolve_run(&condor::results_directory(&args.run)?)?;
    let model = TrainedModel::open(&dir)?;
    let config = Config::read(&dir)?;
    let store = read_store(&args.logs, args.year, &config)?;
    let advice = trained_run::judge(&store, &model, &dir, &config, &selections, args.at)?;

    if args.json {
        output::print_json(&text::advice::document(&store, &model, &advice, args.at))?
    } else {
        output::print(&text::advice::summary(&advice, args.at))?
    }

    Ok(advice::exit_code(&advice))
}
