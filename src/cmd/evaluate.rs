//! `poolcast evaluate`: scores a model on a split, beside baselines.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::{text, trained_run};
use poolcast_base::error::{EXIT_DONE, hinted};
use poolcast_base::output;
use poolcast_cli::EvaluateArgs;
use poolcast_config::WindowPosition;
use poolcast_holds::training::TrainedModel;
use poolcast_simulate as simulate;
use poolcast_simulate::HoldTruth;
use poolcast_sweep as sweep;
use poolcast_sweep::condor;
use poolcast_sweep::config::Config;
use poolcast_tensors::{Dataset, Split};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Scores the model, writes the scores next to it and prints them.
pub fn run(args: &EvaluateArgs) -> Result<u8> {
    let dir = sweep::resolve_run(&condor::results_directory(&args.run)?)?;
    let dataset = Dataset::open(&args.tensors)?;
    let resamples = match args.resamples {
        Some(resamples) => resamples,
        None => Config::read(&dir)?.evaluation.resamples,
    };
    let planted = match &args.truth {
        Some(truth) => Some(planted_probabilities(truth, &dataset, args.side)?),
        None => None,
    };

    let model = TrainedModel::open(&dir)?.computed_by(args.engine, &args.device.open()?)?;
    let evaluation = trained_run::score(&model, &dir, &dataset, args.side, resamples, planted)?;

    if args.json {
        output::print_json(SCHEMA_VERSION, &evaluation)?
    } else {
        output::print(&text::evaluation::summary(&evaluation))?
    }
    Ok(EXIT_DONE)
}

/// The true success probabilities of the holds in one split, from the truth file `truth`. For
/// windows at the release they are those at the release, if the file has them for all holds;
/// otherwise they are those at the hold.
fn planted_probabilities(truth: &Path, dataset: &Dataset, split: Split) -> Result<Vec<f64>> {
    let known = simulate::read_truth(truth)?;
    let at_hold =
        truth_probabilities(&known, dataset, split, simulate::p_hold)?.with_context(|| {
            let message = format!("`{}` lacks some holds of these tensors", truth.display());
            hinted(
                message,
                "name the truth file that `poolcast simulate` wrote beside the log",
            )
        })?;
    if dataset.summary.settings.window != WindowPosition::Release {
        return Ok(at_hold);
    }

    let at_release = truth_probabilities(&known, dataset, split, simulate::p_release)?;
    Ok(at_release.unwrap_or_else(|| {
        output::note(&format!(
            "note: `{}` lacks the probability at release of some holds; the best possible prediction is that at the hold",
            truth.display()
        ));
        at_hold
    }))
}

/// Applies `chance` to each hold of one split; `None` if it has no value for some hold.
fn truth_probabilities(
    known: &[HoldTruth],
    dataset: &Dataset,
    split: Split,
    chance: impl Fn(&[HoldTruth], (i32, i32), u32) -> Option<f64>,
) -> Result<Option<Vec<f64>>> {
    let cluster: Vec<i32> = dataset.column(split, "cluster")?;
    let proc: Vec<i32> = dataset.column(split, "proc")?;
    let earlier_holds: Vec<u32> = dataset.column(split, "earlier_holds")?;
    let holds = cluster.into_iter().zip(proc).zip(earlier_holds);
    Ok(holds
        .map(|((cluster, proc), earlier)| chance(known, (cluster, proc), earlier))
        .collect())
}
