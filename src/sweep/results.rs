//! The rows of a sweep → its results: a table for programs, one for spreadsheets, the best trial, and the models of the best.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};

use super::best::{BEST_FILE, Best, TrialResult};
use super::choice::{SELECTION_FILE, choices, kept};
use super::fits;
use super::folder::{Sweep, queue_dir};
use super::info::{INFO_FILE, write_best};
use super::queue::{Census, Managed, News, Queue, State, Token, manage};
use super::row::{Row, csv};
use super::trial::{publish, trial_dir};
use crate::config::Config;
use crate::error::hinted;
use crate::output::many;
use crate::{files, manifest, training};

/// One row a trial, one JSON document a line; there once all trials have ended.
pub const ROWS_FILE: &str = "results.jsonl";

pub(super) const TABLE_FILE: &str = "results.csv";

/// What the manager saw, a line each.
pub const LOG_FILE: &str = "status.log";

/// Manages `sweep` until all its trials have ended or `stop` is set; then leaves the results, and removes the queue. Of
/// models those of the `keep` best trials stay. `prepare` is given the configurations of trials before anybody takes them,
/// and has to make their tensors; `say` hears of what happens, which [`LOG_FILE`] keeps.
pub fn manage_trials(
    sweep: &Sweep,
    queue: &Queue,
    keep: Option<usize>,
    stop: &std::sync::atomic::AtomicBool,
    prepare: impl Fn(&[Config]) -> Result<()>,
    say: impl Fn(&str),
) -> Result<Managed> {
    let trials = sweep.plan.trials;
    let hear = |news: News<'_>| {
        let text = match news {
            News::Seated(None) => format!("managing {}", many(trials, "trial")),
            News::Seated(Some(dead)) => format!("managing {} in place of {dead}, which is dead", many(trials, "trial")),
            News::Ended(census) => format!("{} of {} have ended, {} run", census.ended(), census.all(), census.leased),
            News::Lost(lost) => {
                let what = if lost.quarantined { "it is quarantined" } else { "it is ready again" };
                format!("trial {}: attempt {} was lost with {}; {what}", lost.item.trial, lost.attempt, lost.worker)
            }
        };
        log(&sweep.dir, &text);
        say(&text);
    };
    let finish = |census: &Census| {
        finish(sweep, queue, census, keep)?;
        let Census { done, failed, quarantined, .. } = census;
        log(&sweep.dir, &format!("over: {done} done, {failed} failed, {quarantined} quarantined"));
        queue.remove();
        Ok(())
    };
    match manage(queue, stop, |queue| sweep.fill(queue, &prepare), hear, finish) {
        // Another manager was faster, and has removed the queue.
        Err(_) if sweep.is_finished() => Ok(Managed::Over(Census::default())),
        managed => managed,
    }
}

/// Adds a line to the log: a courtesy, which no full disk may make into an error.
fn log(dir: &Path, text: &str) {
    use std::io::Write as _;

    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    // Neither through a link, nor into a pipe that nobody reads.
    let file = files::open_to_append(&dir.join(LOG_FILE));
    let _ = file.map(|mut file| writeln!(file, "{now} {}", crate::escape::value(text)));
}

/// Leaves the results; the rows come last, and say that all is there.
fn finish(sweep: &Sweep, queue: &Queue, census: &Census, keep: Option<usize>) -> Result<()> {
    let tokens = queue.items()?;
    let rows = rows_of(sweep, queue, &tokens)?;
    let are_all = census.sealed.is_none_or(|sealed| rows.len() >= sealed);
    ensure!(are_all, "the queue of `{}` changed while it was read", sweep.dir.display());
    let rows = of_trials(rows);
    let by_item: BTreeMap<_, &Row> = rows.iter().map(|row| (row.item(), row)).collect();
    for token in tokens.iter().filter(|token| matches!(token.state, State::Done(_) | State::Failed(_))) {
        by_item.get(&token.item).map_or(Ok(()), |row| publish(sweep, queue, token, row))?;
    }
    if let Ok(best) = choose(sweep, &rows) {
        write_best(&sweep.dir, &best)?;
    }
    if !sweep.config.pipelines.is_empty() {
        manifest::write_json(&sweep.dir.join(SELECTION_FILE), &choices(sweep, &rows)?)?;
    }
    prune(sweep, &rows, keep)?;
    files::write_atomic(&sweep.dir.join(TABLE_FILE), csv(&rows).as_bytes())?;
    manifest::write_json_lines(&sweep.dir.join(ROWS_FILE), &rows)
}

/// The rows of the trials that have ended, in their order; of a trial that is promoted from rung to rung the last.
pub fn rows(sweep: &Sweep) -> Result<Vec<Row>> {
    match sweep.queue()? {
        Some(queue) => Ok(of_trials(rows_of(sweep, &queue, &queue.items()?)?)),
        None => finished_rows(sweep),
    }
}

/// The rows of items that have ended, in the order of their trials.
pub(super) fn rows_of(sweep: &Sweep, queue: &Queue, tokens: &[Token]) -> Result<Vec<Row>> {
    let mut rows: BTreeMap<_, Row> = queue.results::<Row>(tokens)?.into_iter().collect();
    let mut lost: Vec<&Token> = tokens.iter().filter(|token| matches!(token.state, State::Quarantined(_))).collect();
    lost.sort_by_key(|token| token.item);
    for token in lost {
        let earlier: Vec<Row> = rows.range(..token.item).map(|(_, row)| row.clone()).collect();
        let row = sweep.quarantined(token, &earlier)?;
        rows.entry(token.item).or_insert(row);
    }
    Ok(rows.into_values().collect())
}

/// The last row of each trial.
pub(super) fn of_trials(rows: Vec<Row>) -> Vec<Row> {
    let last: BTreeMap<usize, Row> = rows.into_iter().map(|row| (row.trial, row)).collect();
    last.into_values().collect()
}

fn finished_rows(sweep: &Sweep) -> Result<Vec<Row>> {
    manifest::read_json_lines(&sweep.dir.join(ROWS_FILE))
}

/// The best network of the trials that have ended.
///
/// # Errors
/// Fails when none has a value.
pub fn choose(sweep: &Sweep, rows: &[Row]) -> Result<Best> {
    let networks = rows.iter().filter(|row| row.config.pipelines.is_empty());
    let trials = networks.map(|row| {
        let (metrics, error) = (row.metrics.clone(), row.error.clone());
        TrialResult { trial: row.trial, error, metrics }
    });
    Best::of(&sweep.config.wandb.sweep.metric, trials.collect())
}

/// Removes the models and predictions of all but the `keep` best trials; of networks, and of the pipelines of each split.
fn prune(sweep: &Sweep, rows: &[Row], keep: Option<usize>) -> Result<()> {
    let kept = kept(sweep, rows, keep.unwrap_or(usize::MAX));
    for row in rows.iter().filter(|row| row.value.is_some() && !kept.contains(&row.trial)) {
        let dir = trial_dir(&sweep.dir, row.trial);
        training::remove_model(&dir)?;
        fits::remove(&dir)?;
    }
    Ok(())
}

/// Tidies the folder of a finished sweep: what a killed manager left of the queue, and the models of all but the `keep` best.
///
/// # Errors
/// Fails while trials have not ended.
pub fn cleanup(sweep: &Sweep, keep: Option<usize>) -> Result<()> {
    ensure!(
        sweep.is_finished(),
        hinted(
            format!("the sweep in `{}` has not finished", sweep.dir.display()),
            "finish it with `poolcast sweep run DIR`; `poolcast sweep status DIR` shows how far it is"
        )
    );
    prune(sweep, &finished_rows(sweep)?, keep)?;
    files::remove([queue_dir(&sweep.dir)])
}

/// Removes what an earlier sweep in `dir` came to and its queue, but not its trials, which a new one may find done.
pub(super) fn clear(dir: &Path) -> Result<()> {
    let names = [manifest::FILE, ROWS_FILE, TABLE_FILE, BEST_FILE, SELECTION_FILE, INFO_FILE, LOG_FILE];
    let of_results = names.map(|name| dir.join(name));
    files::remove(of_results.into_iter().chain([queue_dir(dir)]))
}
