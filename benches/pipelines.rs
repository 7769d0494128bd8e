//! Fits the pipelines that `ci/proof/pipelines_peer.py make DIR` requests, and writes the results
//! beside its tables.
//!
//! `cargo bench --bench pipelines -- DIR` reads `cases.json`, a list of `{table, pipeline,
//! parameters, rows, loss}`, and the tables `TABLE-train.csv` and `TABLE-test.csv`. These have
//! numbers without a header, with the class or the number to predict last. For case 3 it writes
//! `3/pipeline.json` and `3/scores.json`. The scores are the predictions of the test rows, as
//! probabilities `[n, classes]` or numbers `[n]`, and the processor time of the fit.

mod processor;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use poolcast_base::manifest::{read_json, write_json};
use poolcast_pipelines::{HyperParameters, LearnedRows, fit_pipeline};
use poolcast_tables::{FeatureTable, NumberLoss, RowClasses, RowNumbers, RowTargets};
use processor::processor_s;
use serde::{Deserialize, Serialize};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Maximum number of fits of a case, and the processor time after which no further one begins, in s.
const MAX_REPEATS: usize = 10;
const REPEATED_UP_TO_S: f64 = 0.5;

#[derive(Deserialize)]
struct PeerCase {
    table: String,
    pipeline: String,
    parameters: HyperParameters,
    /// Number of training rows to fit on, from the first.
    rows: usize,
    /// Loss for numbers; `None` for classes.
    loss: Option<NumberLoss>,
}

#[derive(Serialize)]
struct CaseScores {
    predictions: Vec<f64>,
    cpu_s: f64,
}

fn main() -> Result<()> {
    // Cargo also passes `--bench` to a benchmark.
    let arguments = std::env::args()
        .skip(1)
        .find(|argument| argument != "--bench");
    let dir = PathBuf::from(arguments.context("usage: cargo bench --bench pipelines -- DIR")?);
    let cases: Vec<PeerCase> = read_json(&dir.join("cases.json"))?;
    for (number, case) in cases.iter().enumerate() {
        let train = read_table(&dir.join(format!("{}-train.csv", case.table)), case.loss)?;
        let train = train.select_rows(&(0..case.rows.min(train.row_count())).collect::<Vec<_>>());
        let test = read_table(&dir.join(format!("{}-test.csv", case.table)), case.loss)?;

        let fit = || {
            fit_pipeline(
                &case.pipeline,
                &case.parameters,
                LearnedRows::from_table(&train),
                1,
                &|| false,
            )
        };
        let (fitted, cpu_s) = fastest(fit)?;

        let out = dir.join(number.to_string());
        fs_err::create_dir_all(&out)?;
        fitted.write(&out)?;
        write_json(
            &out.join("scores.json"),
            &CaseScores {
                predictions: fitted.predict(&test)?,
                cpu_s,
            },
        )?;
    }
    Ok(())
}

/// Repeats short work; returns its result and the shortest processor time.
fn fastest<T>(work: impl Fn() -> Result<T>) -> Result<(T, f64)> {
    let mut times: Vec<f64> = Vec::new();
    loop {
        let begun = processor_s();
        let result = work()?;
        times.push(processor_s() - begun);
        if times.len() == MAX_REPEATS || times.iter().sum::<f64>() > REPEATED_UP_TO_S {
            return Ok((result, times.into_iter().fold(f64::INFINITY, f64::min)));
        }
    }
}

/// Reads numbers without a header, with the class or the number to predict last.
fn read_table(path: &Path, loss: Option<NumberLoss>) -> Result<FeatureTable> {
    let text = fs_err::read_to_string(path)?;
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for line in text.lines() {
        let row: Result<Vec<f64>, _> = line.split(',').map(str::parse).collect();
        rows.push(row.with_context(|| format!("cannot read `{}`", path.display()))?);
    }

    let f = rows.first().map_or(0, |row| row.len().saturating_sub(1));
    let last: Vec<f64> = rows.iter().filter_map(|row| row.last()).copied().collect();
    let mut x = Vec::with_capacity(f * rows.len());
    for column in 0..f {
        x.extend(rows.iter().map(|row| row[column]));
    }
    Ok(FeatureTable {
        features: numbered_names(f),
        x,
        groups: vec![0; last.len()],
        targets: row_targets(last, loss),
    })
}

/// Converts the last column of a table: to numbers to predict if there is a loss, otherwise to
/// classes.
fn row_targets(y: Vec<f64>, loss: Option<NumberLoss>) -> RowTargets {
    if let Some(loss) = loss {
        return RowTargets::Numbers(RowNumbers { y, loss });
    }
    let y: Vec<u32> = y.into_iter().map(|class| class as u32).collect();
    let class_count = y.iter().max().map_or(0, |most| *most as usize + 1);
    RowTargets::Classes(RowClasses {
        names: numbered_names(class_count),
        y,
    })
}

fn numbered_names(count: usize) -> Vec<String> {
    (0..count).map(|at| at.to_string()).collect()
}
