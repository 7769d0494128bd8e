//! `poolcast predict`: predicts probabilities for the new rows of a table with a pipeline, or for
//! the holds of a log with a model.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Serialize;

use super::choices;
use super::logs::read_store;
use poolcast_base::error::{EXIT_DONE, hinted};
use poolcast_base::{manifest, output};
use poolcast_cli::PredictArgs;
use poolcast_events::{EVENTS_FORMAT, EventStore};
use poolcast_holds::training::{FIT, HoldPrediction, TrainedModel, predict_holds, predict_samples};
use poolcast_pipelines::FittedPipeline;
use poolcast_sweep::condor;
use poolcast_sweep::config::Config;
use poolcast_sweep::{self as sweep, SWEEP, SplitChoice, SweepFolder};
use poolcast_tables::DataConfig;
use poolcast_tables::{OutputCells, OutputTable, read_new_rows};
use poolcast_tensors::{Dataset, TENSORS_FORMAT};

/// The document that `--json` prints.
#[derive(Serialize)]
struct PrintedPredictions {
    rows: Vec<serde_json::Value>,
}

/// File name that stands for standard output.
const STDOUT: &str = "-";

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Computes the predictions, and writes or prints them.
pub fn run(args: &PredictArgs) -> Result<u8> {
    let file = args.out.as_deref().filter(|out| *out != Path::new(STDOUT));
    if let Some(file) = file {
        ensure!(
            args.overwrite || !file.exists(),
            hinted(
                format!("`{}` exists already", file.display()),
                "name another file; `--help` says how one is replaced"
            )
        );
    }

    let dir = condor::results_directory(&args.run)?;
    let table = match find_table_pipeline(&dir, args.split.as_deref())? {
        Some(dir) => predict_rows(&dir, args)?,
        None => predict_held_jobs(&dir, args)?,
    };

    match file {
        Some(file) => {
            table.write(file)?;
            let rows = output::counted(table.row_count(), "row");
            output::print(&format!("{rows} in {}\n", file.display()))?;
        }
        None if args.json => output::print_json(
            SCHEMA_VERSION,
            &PrintedPredictions {
                rows: table.to_json(),
            },
        )?,
        None if output::is_live() => output::print(&without_control_characters(&table.to_csv()?))?,
        None => output::print(&table.to_csv()?)?,
    }
    Ok(EXIT_DONE)
}

/// Replaces each character that a terminal could interpret as a command. Row names may contain any
/// characters of the user's table.
fn without_control_characters(text: &str) -> String {
    let is_command = |c: char| c.is_control() && c != '\n' || sets_direction(c);
    text.replace(is_command, "\u{fffd}")
}

/// Returns true if `c` changes the direction of the text after it.
fn sets_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Finds the directory of the pipeline over tables: `dir` itself, or the best trial of the sweep
/// over tables in `dir`. Returns `None` if `dir` is a model of held jobs.
fn find_table_pipeline(dir: &Path, split: Option<&str>) -> Result<Option<PathBuf>> {
    let format = manifest::format_name(dir)?;
    if format.as_deref() == Some(FIT.name) {
        // This read rejects a pipeline of another format version, with both versions in the
        // message.
        manifest::read::<serde_json::Value>(dir, FIT)?;
        let is_over_tables = Config::read(dir)?.data.is_given();
        return Ok(is_over_tables.then(|| dir.to_owned()));
    }
    if format.as_deref() != Some(SWEEP.name) {
        return Ok(None);
    }

    let sweep = SweepFolder::open(dir)?;
    if !sweep.config.data.is_given() {
        return Ok(None);
    }
    let choices = choices::split_choices(&sweep, &mut sweep::TrialOutcomes::read(&sweep)?)?;
    let chosen = choose_split(&choices, split, dir)?;
    Ok(Some(sweep::trial_dir(dir, chosen.trial)))
}

/// The choice for `split`, or the only choice of the sweep in `dir`.
fn choose_split<'a>(
    choices: &'a [SplitChoice],
    split: Option<&str>,
    dir: &Path,
) -> Result<&'a SplitChoice> {
    let names: Vec<&str> = choices
        .iter()
        .filter_map(|choice| choice.split.as_deref())
        .collect();
    let listed = names.join(", ");

    let chosen = match split {
        Some(split) => choices
            .iter()
            .find(|choice| choice.split.as_deref() == Some(split)),
        None if choices.len() == 1 => choices.first(),
        None => bail!(hinted(
            format!(
                "the sweep in `{}` has a best trial for each of the splits {listed}",
                dir.display()
            ),
            format!("choose with `--split {}`", names.first().unwrap_or(&"NAME"))
        )),
    };
    chosen.with_context(|| {
        hinted(
            format!("the sweep has no split `{}`", split.unwrap_or_default()),
            format!("its splits are {listed}"),
        )
    })
}

/// Predicts each row of a table with the pipeline in `dir`.
fn predict_rows(dir: &Path, args: &PredictArgs) -> Result<OutputTable> {
    let config = Config::read(dir)?;
    let table = args.input.as_deref().with_context(|| {
        hinted(
            "a pipeline over tables predicts the rows of a table, not the jobs of a log",
            "name a CSV or Parquet file",
        )
    })?;
    let fitted = FittedPipeline::open(dir).with_context(|| {
        hinted(
            format!("`{}` has no usable model", dir.display()),
            "`sweep run --keep` removes all but the best; a trial's row makes its model again: docs/pipelines.md",
        )
    })?;

    let DataConfig { index, target, .. } = config.data;
    let index = index.context("the pipeline has no `data.index`")?;
    let (names, rows) = read_new_rows(table, &index, &fitted.features)?;
    let predicted = fitted.predict(&rows)?;

    let mut columns = vec![(index, OutputCells::Texts(names))];
    let class_count = fitted.classes().len();
    for (class, name) in fitted.classes().iter().enumerate() {
        let cells = predicted.iter().skip(class).step_by(class_count);
        let cells = OutputCells::Floats(cells.copied().collect());
        columns.push((format!("probability_{name}"), cells));
    }
    if class_count == 0 {
        let target = target.context("the pipeline has no `data.target`")?;
        columns.push((
            format!("predicted_{target}"),
            OutputCells::Floats(predicted),
        ));
    }
    Ok(OutputTable { columns })
}

/// Predicts each hold with the model in `dir`.
fn predict_held_jobs(dir: &Path, args: &PredictArgs) -> Result<OutputTable> {
    ensure!(
        args.split.is_none(),
        hinted(
            "`--split` is for sweeps over tables",
            "omit it; one model predicts all holds"
        )
    );

    let dir = sweep::resolve_run(dir)?;
    let model = TrainedModel::open(&dir)?;
    let Some(input) = &args.input else {
        let store = read_store(&args.logs, args.year, &Config::read(&dir)?, None)?;
        return Ok(hold_table(&predict_holds(&store, &model)?));
    };

    let format = manifest::format_name(input)?;
    let predictions = match format.as_deref() {
        Some(name) if name == TENSORS_FORMAT.name => {
            predict_samples(&Dataset::open(input)?, &model)?
        }
        Some(name) if name == EVENTS_FORMAT.name => {
            predict_holds(&EventStore::open(input)?, &model)?
        }
        _ => bail!(hinted(
            format!(
                "`{}` contains neither events nor tensors, and the model predicts holds",
                input.display()
            ),
            "name a directory that `poolcast parse` or `poolcast tensors` wrote, or logs with `--log LOG`"
        )),
    };
    Ok(hold_table(&predictions))
}

/// The predictions as a table with one row per hold.
fn hold_table(holds: &[HoldPrediction]) -> OutputTable {
    let mut columns = Vec::new();
    if holds.iter().any(|hold| hold.split.is_some()) {
        let split = |hold: &HoldPrediction| hold.split.map_or("", |split| split.name()).to_owned();
        columns.push(("side", text_cells(holds, split)));
    }
    if holds.iter().any(|hold| hold.ap.is_some()) {
        let ap = |hold: &HoldPrediction| hold.ap.clone().unwrap_or_default();
        columns.push(("ap", text_cells(holds, ap)));
    }

    let job = |hold: &HoldPrediction| format!("{}.{}", hold.cluster, hold.proc);
    let held_at = |hold: &HoldPrediction| utc_moment(hold.hold_time_ms);
    let asked_at = |hold: &HoldPrediction| utc_moment(hold.asked_time_ms);
    let hold_codes = holds.iter().map(|hold| hold.hold_code.into());
    let hold_subcodes = holds.iter().map(|hold| hold.hold_subcode.into());
    let probabilities = holds.iter().map(|hold| hold.probability);
    columns.extend([
        ("job", text_cells(holds, job)),
        ("held_at", text_cells(holds, held_at)),
        ("asked_at", text_cells(holds, asked_at)),
        ("hold_code", OutputCells::Integers(hold_codes.collect())),
        (
            "hold_subcode",
            OutputCells::Integers(hold_subcodes.collect()),
        ),
        ("probability", OutputCells::Floats(probabilities.collect())),
    ]);

    let named = columns
        .into_iter()
        .map(|(name, cells)| (name.to_owned(), cells));
    OutputTable {
        columns: named.collect(),
    }
}

fn text_cells(holds: &[HoldPrediction], cell: impl Fn(&HoldPrediction) -> String) -> OutputCells {
    OutputCells::Texts(holds.iter().map(cell).collect())
}

/// Formats epoch milliseconds like `2026-11-21T02:26:06.000Z`.
fn utc_moment(ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        Err(_) => format!("{ms} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(
            without_control_characters("run,p\na\u{1b}[2J\u{9b}\u{202e}b,1\n"),
            "run,p\na\u{fffd}[2J\u{fffd}\u{fffd}b,1\n"
        );
    }
}
