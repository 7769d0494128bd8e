//! The rows of a sweep → its results: a table for programs, one for spreadsheets, the best trial, and the models of the best.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::best_network::{BEST_FILE, BestNetwork, TrialResult};
use super::bestmodel_info::{INFO_FILE, write_best_network, write_split_choices};
use super::choice::{SELECTION_FILE, choose_pipelines, kept};
use super::folder::{SweepFolder, queue_dir};
use super::outcome::{TrialOutcomes, network_rows};
use super::trial_files::{publish, trial_dir, trial_dirs};
use super::trial_row::{CsvColumns, TrialEnd, TrialRow};
use crate::config::Config;
use crate::error::hinted;
use crate::files::AtomicFile;
use crate::output::counted;
use crate::queue::{
    ChunkEntry, ChunkState, ItemStateCounts, ManagerEvent, ManagerOutcome, Queue, run_manager,
};
use crate::{files, manifest, training};

/// One row a trial, one JSON document a line; there once all trials have ended.
pub const ROWS_FILE: &str = "results.jsonl";

pub(super) const TABLE_FILE: &str = "results.csv";

/// What the manager saw, a line each.
pub const LOG_FILE: &str = "status.log";

/// TrialEnd far the trials are is said so often.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// The models of so many of the best trials stay, unless it is said otherwise.
pub const DEFAULT_KEEP: usize = 1000;

/// Manages `sweep` until all its trials have ended or `stop` is set; then leaves the results, and removes the queue. Of
/// models those of the `keep` best trials stay. `prepare` is given the configurations of trials before anybody takes them,
/// and has to make their tensors; `say` hears of what happens, which [`LOG_FILE`] keeps.
pub fn manage_trials(
    sweep: &SweepFolder,
    queue: &Queue,
    keep: usize,
    stop: &std::sync::atomic::AtomicBool,
    prepare: impl Fn(&[Config]) -> Result<()>,
    say: impl Fn(&str),
) -> Result<ManagerOutcome> {
    let trials = sweep.plan.trials;
    let mut said: Option<Instant> = None;
    let hear = |news: ManagerEvent<'_>| {
        if matches!(news, ManagerEvent::ItemsEnded(_)) {
            // SweepTrials may end by the thousand a second.
            if said.is_some_and(|said| said.elapsed() < SAY_EVERY) {
                return;
            }
            said = Some(Instant::now());
        }
        let text = match news {
            ManagerEvent::BecameLeader(None) => format!("managing {}", counted(trials, "trial")),
            ManagerEvent::BecameLeader(Some(dead)) => format!(
                "managing {} in place of {dead}, which is dead",
                counted(trials, "trial")
            ),
            ManagerEvent::ItemsEnded(counts) => format!(
                "{} of {} have ended, {} run",
                counts.ended(),
                counts.total(),
                counts.leased
            ),
            ManagerEvent::LeaseLost(lost) => {
                let what = if lost.quarantined {
                    "it is quarantined"
                } else {
                    "it is ready again"
                };
                format!(
                    "trial {}: attempt {} was lost with {}; {what}",
                    lost.item.trial, lost.attempt, lost.worker
                )
            }
        };
        log(&sweep.dir, &text);
        say(&text);
    };
    let finish = |counts: &ItemStateCounts| {
        let outcomes = finish(sweep, queue, counts, keep)?;
        let count = |is: fn(TrialEnd) -> bool| {
            outcomes
                .all()
                .iter()
                .filter(|outcome| is(outcome.ended))
                .count()
        };
        let quarantined = count(|how| how == TrialEnd::Quarantined);
        let failed = count(|how| !matches!(how, TrialEnd::Done | TrialEnd::Quarantined));
        let done = count(|how| how == TrialEnd::Done);
        log(
            &sweep.dir,
            &format!("over: {done} done, {failed} failed, {quarantined} quarantined"),
        );
        queue.remove();
        Ok(())
    };
    // Before anybody takes a trial: which files workers keep.
    let fill = |queue: &Queue| {
        if queue.kept_trials() != Some(keep) {
            queue.set_kept_trials(keep)?;
        }
        sweep.fill(queue, &prepare)
    };
    match run_manager(queue, stop, fill, hear, finish) {
        // Another manager was faster, and has removed the queue.
        Err(_) if sweep.is_finished() => Ok(ManagerOutcome::AllEnded(ItemStateCounts::default())),
        managed => managed,
    }
}

/// Adds a line to the log: a courtesy, which no full disk may make into an error.
fn log(dir: &Path, text: &str) {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    // Neither through a link, nor into a pipe that nobody reads.
    let file = files::open_to_append(&dir.join(LOG_FILE));
    let _ = file.map(|mut file| writeln!(file, "{now} {}", crate::escape::value(text)));
}

/// Leaves the results; the rows come last, and say that all is there.
fn finish(
    sweep: &SweepFolder,
    queue: &Queue,
    counts: &ItemStateCounts,
    keep: usize,
) -> Result<TrialOutcomes> {
    let entries = queue.chunk_entries()?;
    let ended: usize = entries.iter().map(|entry| entry.ended).sum();
    let are_all = counts.sealed.is_none_or(|sealed| ended >= sealed);
    ensure!(
        are_all,
        "the queue of `{}` changed while it was read",
        sweep.dir.display()
    );
    let mut outcomes = TrialOutcomes::from_queue(sweep, queue, &entries)?;
    publish_left(sweep, queue, &mut outcomes)?;
    let networks = network_rows(sweep, queue, &entries)?;
    for row in &networks {
        training::remove_checkpoint(&trial_dir(&sweep.dir, row.trial))?;
    }
    if let Ok(best) = choose_network(sweep, &of_trials(networks)) {
        write_best_network(&sweep.dir, &best)?;
    }
    if !sweep.config.pipelines.is_empty() {
        let choices = choose_pipelines(sweep, &mut outcomes)?;
        manifest::write_json(&sweep.dir.join(SELECTION_FILE), &choices)?;
        if sweep.config.data.is_given() {
            write_split_choices(&sweep.dir, &choices, &mut outcomes)?;
        }
    }
    prune(sweep, &outcomes, keep)?;
    write_table(&sweep.dir.join(TABLE_FILE), &mut outcomes)?;
    write_rows(&sweep.dir.join(ROWS_FILE), &mut outcomes)?;
    Ok(outcomes)
}

/// Gives what workers that were killed left their trials' names, and removes what an earlier sweep left there.
fn publish_left(sweep: &SweepFolder, queue: &Queue, outcomes: &mut TrialOutcomes) -> Result<()> {
    let left = queue
        .begun_trials()?
        .into_iter()
        .chain(trial_dirs(&sweep.dir)?.into_iter().map(|(trial, _)| trial));
    for trial in left.collect::<BTreeSet<usize>>() {
        let Some(row) = outcomes.row_of(trial)? else {
            continue;
        };
        let state = ChunkState::Leased(row.worker.clone());
        let entry = ChunkEntry {
            attempt: row.attempt,
            ..ChunkEntry::new(row.item()).with_state(state)
        };
        publish(sweep, queue, &entry, &row)?;
    }
    Ok(())
}

fn write_rows(path: &Path, outcomes: &mut TrialOutcomes) -> Result<()> {
    write_lines(path, outcomes, |row, line| {
        Ok(serde_json::to_writer(line, row)?)
    })
}

fn write_table(path: &Path, outcomes: &mut TrialOutcomes) -> Result<()> {
    let mut columns = CsvColumns::default();
    for at in 0..outcomes.all().len() {
        columns.add(&outcomes.row(at)?);
    }
    let mut head = Some(columns.head());
    write_lines(path, outcomes, |row, line| {
        line.extend(head.take().unwrap_or_default().into_bytes());
        line.extend(columns.line(row).trim_end_matches('\n').as_bytes());
        Ok(())
    })
}

/// Writes a file row by row, as all of them may not fit into memory.
fn write_lines(
    path: &Path,
    outcomes: &mut TrialOutcomes,
    mut write: impl FnMut(&TrialRow, &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let mut file = AtomicFile::new(path)?;
    let mut waiting = Vec::new();
    for at in 0..outcomes.all().len() {
        write(&outcomes.row(at)?, &mut waiting)?;
        waiting.push(b'\n');
        if waiting.len() >= 1 << 16 {
            file.file().write_all(&waiting)?;
            waiting.clear();
        }
    }
    file.file().write_all(&waiting)?;
    file.commit(path)
}

/// The rows of the trials that have ended, in their order; of a trial that is promoted from rung to rung the last.
pub fn trial_rows(sweep: &SweepFolder) -> Result<Vec<TrialRow>> {
    let mut outcomes = TrialOutcomes::read(sweep)?;
    (0..outcomes.all().len())
        .map(|at| outcomes.row(at))
        .collect()
}

/// The last row of each trial.
fn of_trials(rows: Vec<TrialRow>) -> Vec<TrialRow> {
    let last: BTreeMap<usize, TrialRow> = rows.into_iter().map(|row| (row.trial, row)).collect();
    last.into_values().collect()
}

/// The best network of the trials that have ended.
///
/// # Errors
/// Fails when none has a value.
pub fn choose_network(sweep: &SweepFolder, rows: &[TrialRow]) -> Result<BestNetwork> {
    let networks = rows.iter().filter(|row| row.config.pipelines.is_empty());
    let trials = networks.map(|row| {
        let (metrics, error) = (row.metrics.clone(), row.error.clone());
        TrialResult {
            trial: row.trial,
            error,
            metrics,
        }
    });
    BestNetwork::choose(&sweep.config.wandb.sweep.metric, trials.collect())
}

/// Removes the models of all but the `keep` best networks, and all that the fits of pipelines left, but for the `keep` best of each
/// split.
fn prune(sweep: &SweepFolder, outcomes: &TrialOutcomes, keep: usize) -> Result<()> {
    let all = outcomes.all();
    let kept = kept(sweep, all, keep);
    for (trial, dir) in trial_dirs(&sweep.dir)? {
        let Ok(at) = all.binary_search_by_key(&trial, |outcome| outcome.trial) else {
            continue;
        };
        match all[at].value.is_some() && !kept.contains(&trial) {
            true if all[at].is_fit => files::remove_all([dir])?,
            true => training::remove_model(&dir)?,
            false => {}
        }
    }
    Ok(())
}

/// Tidies the folder of a finished sweep: what a killed manager left of the queue, and the models of all but the `keep` best.
///
/// # Errors
/// Fails while trials have not ended.
pub fn clean_up(sweep: &SweepFolder, keep: Option<usize>) -> Result<()> {
    ensure!(
        sweep.is_finished(),
        hinted(
            format!("the sweep in `{}` has not finished", sweep.dir.display()),
            "finish it with `poolcast sweep run DIR`; `poolcast sweep status DIR` shows how far it is"
        )
    );
    if let Some(keep) = keep {
        prune(sweep, &TrialOutcomes::read(sweep)?, keep)?;
    }
    files::remove_all([queue_dir(&sweep.dir)])
}

/// Removes what an earlier sweep in `dir` came to and its queue, but not its trials, which a new one may find done.
pub(super) fn clear(dir: &Path) -> Result<()> {
    let names = [
        manifest::FILE,
        ROWS_FILE,
        TABLE_FILE,
        BEST_FILE,
        SELECTION_FILE,
        INFO_FILE,
        LOG_FILE,
    ];
    let of_results = names.map(|name| dir.join(name));
    files::remove_all(of_results.into_iter().chain([queue_dir(dir)]))
}
