//! `poolcast predict`: a fitted pipeline and new rows, or a network and the holds of a log →
//! probabilities.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::choices;
use super::logs::{find_logs, read_options};
use super::progress::StageBar;
use crate::cli::PredictArgs;
use crate::config::Config;
use crate::error::{EXIT_DONE, hinted};
use crate::events::{EVENTS_FORMAT, EventStore, IngestStep, read_into_memory};
use crate::pipelines::FittedPipeline;
use crate::sweep::{self, FIT, SWEEP, SweepFolder};
use crate::tables::{OutputCells, OutputTable, read_new_rows};
use crate::tensors::{Dataset, TENSORS_FORMAT};
use crate::training::{HoldPrediction, TrainingRun, predict_holds, predict_samples};
use crate::{condor, manifest, output};

/// What stands for standard output.
const STDOUT: &str = "-";

/// Asks the model, and writes what it says.
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
    let place = condor::results_directory(&args.run)?;
    let sheet = match fit(&place, args.split.as_deref())? {
        Some(dir) => of_table(&dir, args)?,
        None => of_network(&place, args)?,
    };
    match file {
        Some(file) => {
            sheet.write(file)?;
            output::print(&format!(
                "{} in {}\n",
                output::counted(sheet.row_count(), "row"),
                file.display()
            ))?;
        }
        None if args.json => output::print_json(&sheet.to_json())?,
        None if output::is_live() => output::print(&without_control_characters(&sheet.to_csv()?))?,
        None => output::print(&sheet.to_csv()?)?,
    }
    Ok(EXIT_DONE)
}

/// Names of rows are whatever a table says: nothing in them may command a terminal.
fn without_control_characters(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_command = |c: char| c.is_control() && c != '\n' || turns(c);
    text.chars()
        .map(|c| {
            if is_command(c) {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}

/// The fitted pipeline that `place` means: itself, or the best of a sweep over tables; none where
/// it holds networks.
fn fit(place: &Path, split: Option<&str>) -> Result<Option<PathBuf>> {
    let path = place.join(manifest::FILE);
    let found: serde_json::Value = if path.is_file() {
        manifest::read_json(&path)?
    } else {
        return Ok(None);
    };
    if found["format"] == FIT.name {
        return Ok(Some(place.to_owned()));
    }
    if found["format"] != SWEEP.name {
        return Ok(None);
    }
    let sweep = SweepFolder::open(place)?;
    if !sweep.config.data.is_given() {
        return Ok(None);
    }
    let choices = choices::of(&sweep, &mut sweep::TrialOutcomes::read(&sweep)?)?;
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
                place.display()
            ),
            format!("choose with `--split {}`", names.first().unwrap_or(&"NAME"))
        )),
    };
    let chosen = chosen.with_context(|| {
        hinted(
            format!("the sweep has no split `{}`", split.unwrap_or_default()),
            format!("its splits are {listed}"),
        )
    })?;
    Ok(Some(sweep::trial_dir(place, chosen.trial)))
}

/// What the pipeline in `dir` says of each row of a table.
fn of_table(dir: &Path, args: &PredictArgs) -> Result<OutputTable> {
    // Also says which version another one is of.
    manifest::read::<serde_json::Value>(dir, FIT)?;
    let config = Config::read(dir)?;
    ensure!(
        config.data.is_given(),
        hinted(
            format!(
                "the pipeline in `{}` was fitted on samples of logs",
                dir.display()
            ),
            "name a pipeline over tables, or a network"
        )
    );
    let table = args.input.as_deref().with_context(|| {
        hinted(
            "a pipeline over tables predicts the rows of a table, and no log",
            "name a CSV or Parquet file",
        )
    })?;
    let fitted = FittedPipeline::open(dir).with_context(|| {
        hinted(
            format!("`{}` has no model that can be used", dir.display()),
            "`sweep run --keep` removes all but the best; a trial's row makes its model again: docs/pipelines.md",
        )
    })?;
    let index = config
        .data
        .index
        .context("a pipeline over tables has an index")?;
    let (names, rows) = read_new_rows(table, &index, &fitted.features, &fitted.classes)?;
    let probabilities = fitted.probabilities(&rows)?;
    let k = fitted.classes.len();
    let of_class = |(class, name): (usize, &String)| {
        let cells = probabilities
            .iter()
            .skip(class)
            .step_by(k)
            .copied()
            .collect();
        (format!("probability_{name}"), OutputCells::Floats(cells))
    };
    let classes = fitted.classes.iter().enumerate().map(of_class);
    Ok(OutputTable {
        columns: std::iter::once((index, OutputCells::Texts(names)))
            .chain(classes)
            .collect(),
    })
}

/// What the network that `place` means says of each hold.
fn of_network(place: &Path, args: &PredictArgs) -> Result<OutputTable> {
    ensure!(
        args.split.is_none(),
        hinted(
            "`--split` is for sweeps over tables",
            "leave it out; a network is one for all holds"
        )
    );
    let dir = sweep::resolve_run(place)?;
    let run = TrainingRun::open(&dir)?;
    let Some(input) = &args.input else {
        let config = Config::read(&dir)?;
        let logs = find_logs(&args.logs)?;
        let options = read_options(
            config.parse.ap.clone(),
            args.year.or(config.parse.year),
            &logs,
        )?;
        let bar = StageBar::default();
        let on_step = |step: IngestStep<'_>| bar.show_ingest(step);
        let store = read_into_memory(&logs, &options, &bar.ingest_listener(&on_step))?;
        return Ok(prediction_sheet(&predict_holds(&store, &run)?));
    };
    let found: serde_json::Value = Some(input.join(manifest::FILE))
        .filter(|path| path.is_file())
        .map_or(Ok(serde_json::Value::Null), |path| {
            manifest::read_json(&path)
        })?;
    let predictions = match found["format"].as_str() {
        Some(name) if name == TENSORS_FORMAT.name => predict_samples(&Dataset::open(input)?, &run)?,
        Some(name) if name == EVENTS_FORMAT.name => predict_holds(&EventStore::open(input)?, &run)?,
        _ => bail!(hinted(
            format!(
                "`{}` holds neither events nor tensors, and a network predicts holds",
                input.display()
            ),
            "name a directory that `poolcast parse` or `poolcast tensors` wrote, or logs with `--log LOG`"
        )),
    };
    Ok(prediction_sheet(&predictions))
}

/// A row a hold.
fn prediction_sheet(holds: &[HoldPrediction]) -> OutputTable {
    let texts =
        |of: &dyn Fn(&HoldPrediction) -> String| OutputCells::Texts(holds.iter().map(of).collect());
    let wholes = |of: fn(&HoldPrediction) -> i32| {
        OutputCells::Integers(holds.iter().map(|hold| of(hold).into()).collect())
    };
    let mut columns = Vec::new();
    if holds.iter().any(|hold| hold.side.is_some()) {
        let side = |hold: &HoldPrediction| {
            hold.side
                .map_or(String::new(), |side| side.name().to_owned())
        };
        columns.push(("side", texts(&side)));
    }
    if holds.iter().any(|hold| hold.ap.is_some()) {
        columns.push(("ap", texts(&|hold| hold.ap.clone().unwrap_or_default())));
    }
    columns.extend([
        (
            "job",
            texts(&|hold| format!("{}.{}", hold.cluster, hold.proc)),
        ),
        ("held_at", texts(&|hold| utc_moment(hold.hold_time_ms))),
        ("asked_at", texts(&|hold| utc_moment(hold.asked_time_ms))),
        ("hold_code", wholes(|hold| hold.hold_code)),
        ("hold_subcode", wholes(|hold| hold.hold_subcode)),
        (
            "probability",
            OutputCells::Floats(holds.iter().map(|hold| hold.probability).collect()),
        ),
    ]);
    OutputTable {
        columns: columns
            .into_iter()
            .map(|(name, cells)| (name.to_owned(), cells))
            .collect(),
    }
}

/// Epoch milliseconds as `2026-11-21T02:26:06.000Z`.
fn utc_moment(ms: i64) -> String {
    let text = |time: jiff::Timestamp| time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| format!("{ms} ms"), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_commands_a_terminal() {
        assert_eq!(
            without_control_characters("run,p\na\u{1b}[2J\u{9b}\u{202e}b,1\n"),
            "run,p\na\u{fffd}[2J\u{fffd}\u{fffd}b,1\n"
        );
    }
}
