//! Outcomes of a sweep's ended trials: a short form of each in memory, and its whole row on
//! request. The rows of half a million trials are gigabytes.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::attempts::ComparisonGroup;
use crate::plan::ROWS_FILE;
use crate::plan::SweepFolder;
use crate::plan::{EarlierTrial, EndedTrial, Proposal, RowCompleter, TrialEnd, TrialRow};
use poolcast_base::files::open_regular;
use poolcast_config::MetricName;
use poolcast_holds::training::TrainingMetrics;
use poolcast_provision::wait_model::WaitModelScores;
use poolcast_queue::{ChunkEntry, JournalPosition, Queue, ResultReader, StoredResult, WorkItem};

/// The short form of a trial's result.
#[derive(Debug, Clone)]
pub struct TrialOutcome {
    /// The trial's number, from 1.
    pub trial: usize,
    /// The maximum number of epochs that the trial was given.
    pub budget: usize,
    /// The way in which the trial ended.
    pub ended: TrialEnd,
    /// The value by which the sweep chooses.
    pub value: Option<f64>,
    /// The values of the further metrics of the sweep, in their order.
    pub more_values: Vec<Option<f64>>,
    /// The trial's duration, in seconds.
    pub seconds: f64,
    /// The pipeline that the trial fits, or the network's model.
    pub pipeline: Arc<str>,
    /// The split that it learns from; only for tables.
    pub split: Option<Arc<str>>,
    /// True if it is a fit of a pipeline.
    pub is_fit: bool,
    tie_breaker: f64,
}

impl TrialOutcome {
    /// The keys by which trials are compared, if the trial has a value: the value, and the
    /// tie-breaker between equal values.
    pub fn rank(&self) -> Option<(f64, f64)> {
        Some((self.value?, self.tie_breaker))
    }

    /// The number of the trial, its value of the first metric, and those of the others, as
    /// [`pareto_front`](super::pareto_front()) takes them.
    pub fn metric_values(&self) -> (usize, Option<f64>, &[Option<f64>]) {
        (self.trial, self.value, &self.more_values)
    }

    /// The group of trials that it is compared with.
    pub(crate) fn comparison_group(&self) -> ComparisonGroup {
        ComparisonGroup {
            is_fit: self.is_fit,
            split: self.split.as_deref().map(str::to_owned),
        }
    }
}

/// The part of a [`TrialRow`] that becomes a [`TrialOutcome`].
#[derive(Deserialize)]
struct OutcomeFields {
    trial: usize,
    budget: usize,
    ended: TrialEnd,
    value: Option<f64>,
    #[serde(default)]
    more_values: Vec<Option<f64>>,
    seconds: f64,
    pipeline: String,
    split: Option<String>,
    metrics: Option<TrainingMetrics>,
    fit: Option<FitFields>,
    waits: Option<WaitModelScores>,
}

#[derive(Deserialize)]
struct FitFields {
    rolling: Option<TieScores>,
    mean: Option<TieScores>,
    validation: Option<TieScores>,
}

/// The scores that decide between trials of equal value.
#[derive(Default, Deserialize)]
struct TieScores {
    loss: Option<f64>,
    roc_auc: Option<f64>,
}

/// Interned names, which many outcomes share.
#[derive(Default)]
struct SharedNames(RefCell<HashSet<Arc<str>>>);

impl SharedNames {
    fn shared_name(&self, name: &str) -> Arc<str> {
        let mut known = self.0.borrow_mut();
        if let Some(name) = known.get(name) {
            return Arc::clone(name);
        }
        let name: Arc<str> = Arc::from(name);
        known.insert(Arc::clone(&name));
        name
    }

    /// Returns the outcome of a trial in a sweep that chooses by `metric`.
    fn outcome_of_fields(&self, row: OutcomeFields, metric: MetricName) -> TrialOutcome {
        let OutcomeFields {
            trial,
            budget,
            ended,
            value,
            seconds,
            ..
        } = row;
        let is_fit = row.fit.is_some();
        let of_fit = row
            .fit
            .and_then(|fit| fit.rolling.or(fit.mean).or(fit.validation));
        let of_network = || {
            let metrics = row.metrics?;
            Some(TieScores {
                loss: metrics.value(MetricName::ValidationLoss),
                roc_auc: metrics.value(MetricName::ValidationRocAuc),
            })
        };
        let scores = of_fit.or_else(of_network).unwrap_or_default();
        let loss = scores.loss.filter(|loss| loss.is_finite());
        let tie_breaker = match &row.waits {
            Some(waits) => waits.tie_breaker(metric),
            None => metric.tie_breaker(loss, scores.roc_auc),
        };
        let pipeline = self.shared_name(&row.pipeline);
        let split = row.split.map(|split| self.shared_name(&split));
        TrialOutcome {
            trial,
            budget,
            ended,
            value,
            seconds,
            pipeline,
            split,
            is_fit,
            tie_breaker,
            more_values: row.more_values,
        }
    }

    fn outcome_of_row(&self, row: &TrialRow) -> TrialOutcome {
        let (value, tie_breaker) = match row.rank() {
            Some((value, tie_breaker)) => (Some(value), tie_breaker),
            None => (None, f64::INFINITY),
        };
        let EndedTrial {
            trial,
            budget,
            ended,
            seconds,
            ..
        } = row.result;
        let pipeline = self.shared_name(&row.pipeline);
        let split = row.split.as_deref().map(|split| self.shared_name(split));
        TrialOutcome {
            trial,
            budget,
            ended,
            value,
            seconds,
            pipeline,
            split,
            is_fit: row.fit.is_some(),
            tie_breaker,
            more_values: row.more_values.clone(),
        }
    }
}

/// The location of a whole row.
#[derive(Debug)]
enum RowIndex {
    /// In a worker's journal.
    Journal(JournalPosition),
    /// In the file of all rows, at this offset.
    Line { first_byte: u64, bytes: usize },
    /// In memory.
    Memory(Box<TrialRow>),
}

/// The outcomes of the ended trials, in the order of trials. A trial that is promoted from rung to
/// rung has its last outcome.
#[derive(Debug)]
pub struct TrialOutcomes {
    all: Vec<TrialOutcome>,
    places: Vec<RowIndex>,
    reader: ResultReader,
    file: Option<(PathBuf, fs_err::File)>,
    /// Completes the rows that are not in memory.
    completer: Option<RowCompleter>,
}

impl TrialOutcomes {
    /// Reads the outcomes of `sweep` so far.
    pub fn read(sweep: &SweepFolder) -> Result<TrialOutcomes> {
        match sweep.queue()? {
            Some(queue) => TrialOutcomes::from_queue(sweep, &queue, &queue.chunk_entries()?),
            None => TrialOutcomes::from_results_file(sweep),
        }
    }

    /// Makes outcomes from `rows`, which are in the order of trials.
    pub fn from_rows(rows: Vec<TrialRow>) -> TrialOutcomes {
        let names = SharedNames::default();
        let all = rows.iter().map(|row| names.outcome_of_row(row)).collect();
        let places = rows
            .into_iter()
            .map(|row| RowIndex::Memory(Box::new(row)))
            .collect();
        TrialOutcomes {
            all,
            places,
            reader: ResultReader::default(),
            file: None,
            completer: None,
        }
    }

    /// Reads the outcomes of the trials of `entries`, which are chunks of `queue`.
    pub(crate) fn from_queue(
        sweep: &SweepFolder,
        queue: &Queue,
        entries: &[ChunkEntry],
    ) -> Result<TrialOutcomes> {
        let names = SharedNames::default();
        let metric = sweep.config.wandb.sweep.metric.name;
        let outcome = |row: OutcomeFields| names.outcome_of_fields(row, metric);
        let found = queue.find_results(entries, outcome)?;
        let mut last = BTreeMap::new();
        for (item, found) in found {
            let StoredResult {
                kept: outcome,
                place,
            } = found;
            last.insert(item.trial, (item, outcome, RowIndex::Journal(place)));
        }

        // A trial may have ended at one rung, and been given up at the next.
        for row in given_up_rows(sweep, queue, entries)? {
            let item = row.item();
            if last
                .get(&item.trial)
                .is_none_or(|(known, ..)| *known < item)
            {
                last.insert(
                    item.trial,
                    (
                        item,
                        names.outcome_of_row(&row),
                        RowIndex::Memory(Box::new(row)),
                    ),
                );
            }
        }

        let (all, places) = last
            .into_values()
            .map(|(_, outcome, place)| (outcome, place))
            .unzip();
        Ok(TrialOutcomes {
            all,
            places,
            reader: ResultReader::default(),
            file: None,
            completer: Some(RowCompleter::new(&sweep.config)),
        })
    }

    fn from_results_file(sweep: &SweepFolder) -> Result<TrialOutcomes> {
        let names = SharedNames::default();
        let metric = sweep.config.wandb.sweep.metric.name;
        let path = sweep.dir.join(ROWS_FILE);
        let mut lines = BufReader::with_capacity(1 << 16, open_regular(&path, u64::MAX)?);
        let mut line = Vec::new();
        let mut first_byte = 0;

        let mut all = Vec::new();
        let mut places = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            let row = serde_json::from_slice::<OutcomeFields>(&line);
            let broken = || {
                format!(
                    "cannot read `{}`, line {}",
                    path.display(),
                    places.len() + 1
                )
            };
            all.push(names.outcome_of_fields(row.with_context(broken)?, metric));
            places.push(RowIndex::Line {
                first_byte,
                bytes: line.len(),
            });
            first_byte += line.len() as u64;
            line.clear();
        }

        let file = lines.into_inner();
        Ok(TrialOutcomes {
            all,
            places,
            reader: ResultReader::default(),
            file: Some((path, file)),
            completer: Some(RowCompleter::new(&sweep.config)),
        })
    }

    /// All outcomes, in short form.
    pub fn all(&self) -> &[TrialOutcome] {
        &self.all
    }

    /// Reads the whole row of the outcome at index `at` of [`TrialOutcomes::all`].
    pub fn row(&mut self, at: usize) -> Result<TrialRow> {
        if let RowIndex::Memory(row) = &self.places[at] {
            return Ok(TrialRow::clone(row));
        }
        let trial = self.ended_trial(at)?;
        let completer = self.completer.as_ref();
        completer.context("the rows have no sweep")?.row(trial)
    }

    /// Reads the row of the outcome at index `at` without its configuration.
    pub fn ended_trial(&mut self, at: usize) -> Result<EndedTrial> {
        use fs_err::os::unix::fs::FileExt as _;
        match &self.places[at] {
            RowIndex::Journal(place) => self.reader.read(place),
            RowIndex::Memory(row) => Ok(row.result.clone()),
            RowIndex::Line { first_byte, bytes } => {
                let (path, file) = self.file.as_ref().context("the rows have no file")?;
                let mut line = vec![0; *bytes];
                file.read_exact_at(&mut line, *first_byte)?;
                serde_json::from_slice(&line)
                    .with_context(|| format!("cannot read `{}`", path.display()))
            }
        }
    }

    /// Reads the whole row of `trial`; `None` if it has not ended.
    pub fn row_of(&mut self, trial: usize) -> Result<Option<TrialRow>> {
        let at = self
            .all
            .binary_search_by_key(&trial, |outcome| outcome.trial);
        at.ok().map(|at| self.row(at)).transpose()
    }
}

/// The ended network trials among `entries`, in order. A trial occurs once for each rung.
pub(crate) fn earlier_trials(
    sweep: &SweepFolder,
    queue: &Queue,
    entries: &[ChunkEntry],
) -> Result<Vec<EarlierTrial>> {
    let trials = sweep.trials()?;
    let entries: Vec<ChunkEntry> = entries
        .iter()
        .filter(|entry| trials.is_network(entry.chunk.first.trial))
        .cloned()
        .collect();
    if entries.is_empty() {
        return Ok(Vec::new());
    }

    let found = queue.find_results(&entries, |row: EarlierTrial| row)?;
    let mut ended: BTreeMap<WorkItem, EarlierTrial> = found
        .into_iter()
        .map(|(item, found)| (item, found.kept))
        .collect();
    for row in given_up_rows(sweep, queue, &entries)? {
        ended.entry(row.item()).or_insert_with(|| row.result.into());
    }
    Ok(ended.into_values().collect())
}

/// The rows of the trials that were given up because too many workers died of them.
fn given_up_rows(
    sweep: &SweepFolder,
    queue: &Queue,
    entries: &[ChunkEntry],
) -> Result<Vec<TrialRow>> {
    let items = entries.iter().flat_map(ChunkEntry::given_up_items);
    items
        .map(|item| quarantined_row(sweep, queue, item))
        .collect()
}

/// The row of an item that was given up because too many workers died of it.
pub(crate) fn quarantined_row(
    sweep: &SweepFolder,
    queue: &Queue,
    item: WorkItem,
) -> Result<TrialRow> {
    let is_proposed = sweep.is_proposed(item.trial)?;
    let proposal = is_proposed
        .then(|| Proposal::find(queue, item))
        .transpose()?;
    let config = sweep.trial_config(item.trial, proposal.as_ref())?;
    let mut row =
        TrialRow::quarantined(item, queue.settings.tries, &config).without_missing(&sweep.config);
    row.unseen = proposal.and_then(|proposal| proposal.unseen);
    Ok(row)
}
