//! What a site contributes to the prior of others: the rows that its log teaches, without names, hashes
//! of names and times. Only faults that several owners had are in it, and several owners are behind
//! each combination of numbers.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::{Result, ensure};
use rand::seq::index::sample;
use serde::{Deserialize, Serialize};

use super::coarse_rows::CoarseRows;
use super::columns::{COLUMNS_VERSION, column_names, columns};
use super::hold_history::HoldHistory;
use super::shared_row::{RowTensors, SharedRow, halved, read_rows};
use super::taught_rows::{TaughtRow, TaughtRows, max_age};
use half::f16;
use htcondor_eventlog::ReasonKind;
use htcondor_holdreasons::explain;
use poolcast_base::error::unavailable;
use poolcast_base::manifest;
use poolcast_base::parallel::map_items;
use poolcast_base::seed::generator;
use poolcast_base::shard::{self, ArtefactFormat, Shard};
use poolcast_events::EventStore;

/// Format of contributions. The columns give it their version.
pub const CONTRIBUTION_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "contribution",
    version: COLUMNS_VERSION,
    rebuild: "poolcast share RUN -o FILE",
};

/// Minimum number of owners behind the rows of one question about one fault, and behind each
/// combination of numbers in them.
pub const MIN_OWNERS: usize = 3;

/// Maximum number of rows for one question. More are drawn.
const MAX_ROWS: usize = 6_000;

/// Length of the mark of a site.
const ORIGIN_CHARACTERS: usize = 16;

/// Rows for both questions about a hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contribution {
    pub(crate) now: Vec<SharedRow>,
    pub(crate) later: Vec<SharedRow>,
    /// Mark of the site, as of [`origin_of`]; empty if its rows are as its log teaches them.
    pub(crate) origin: String,
}

/// One of the two questions about a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HoldQuestion {
    /// Does the job succeed if it is released now, unrepaired?
    Now,
    /// Does it if it is released later?
    Later,
}

/// The rows of one question about one fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedGroup {
    /// The question.
    pub question: HoldQuestion,
    /// What the reasons of the holds state, in words.
    pub stated: String,
    /// Known owners of the held jobs.
    pub owners: usize,
    /// Moments of their holds.
    pub rows: usize,
    /// Moments at which a release succeeds.
    pub successes: usize,
    /// Different combinations of numbers, each with enough owners behind it: three or more.
    pub combinations: usize,
    /// Rows whose numbers were replaced by means.
    pub coarse_rows: usize,
}

/// What a contribution has, in counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContributionSummary {
    /// Version of the columns.
    pub columns_version: u32,
    /// The names of the columns of a row.
    pub columns: Vec<String>,
    /// Groups in the contribution, by question and fault.
    pub groups: Vec<SharedGroup>,
    /// Groups that too few owners are behind: fewer than three.
    pub groups_left_out: usize,
    /// Rows of these groups.
    pub rows_left_out: usize,
}

/// The notes of the file.
#[derive(Debug, Serialize, Deserialize)]
struct ContributionNotes {
    columns: Vec<String>,
    #[serde(default)]
    origin: String,
}

impl Contribution {
    /// Collects the rows that the log of `history` teaches at its end, with their counts. Leaves out
    /// groups that fewer than `min_owners` known owners are behind, and makes rows coarser until as many
    /// are behind each combination of numbers. With 0, the rows stay as they are. The same log gives the
    /// same rows for any number of threads.
    pub fn collect(
        history: &HoldHistory<'_>,
        min_owners: usize,
    ) -> (Contribution, ContributionSummary) {
        let rows = TaughtRows::until(history, history.store.summary.end_ms);
        let mut collected = ContributionRows {
            history,
            min_owners,
            max_age: max_age(rows.ages(history)),
            summary: ContributionSummary {
                columns_version: COLUMNS_VERSION,
                columns: column_names(),
                groups: Vec::new(),
                groups_left_out: 0,
                rows_left_out: 0,
            },
        };
        let contribution = Contribution {
            now: collected.share(&rows.now, HoldQuestion::Now),
            later: collected.share(&rows.later, HoldQuestion::Later),
            origin: if min_owners > 0 {
                origin_of(history.store)
            } else {
                String::new()
            },
        };
        (contribution, collected.summary)
    }

    /// Writes the rows to the file `path`, which is replaced.
    pub fn write(&self, path: &Path) -> Result<()> {
        let notes = ContributionNotes {
            columns: column_names(),
            origin: self.origin.clone(),
        };
        let [now, later] =
            [&self.now, &self.later].map(|rows| RowTensors::new(rows, notes.columns.len()));
        let tensors = [now.named("now"), later.named("later")].concat();
        shard::write(path, CONTRIBUTION_FORMAT, &notes, tensors)
    }

    /// Reads the contribution in the file `path`.
    ///
    /// # Errors
    /// Fails if the file is damaged, or has other columns than this program computes.
    pub fn read(path: &Path) -> Result<Contribution> {
        let shard = Shard::open(path, CONTRIBUTION_FORMAT)?;
        let notes: ContributionNotes = shard.notes()?;
        ensure!(
            notes.columns == column_names(),
            unavailable(
                format!("`{}` has other columns", path.display()),
                format!("write it again with `{}`", CONTRIBUTION_FORMAT.rebuild)
            )
        );
        let rows = |name| read_rows(&shard, name, notes.columns.len());
        Ok(Contribution {
            now: rows("now")?,
            later: rows("later")?,
            origin: notes.origin,
        })
    }
}

/// Returns a mark of the site of `store`, by which it knows its own rows again although they are coarser.
/// It follows from the secret that owners are hashed with, and says nothing to others.
pub(super) fn origin_of(store: &EventStore) -> String {
    let secret = &store.summary.owner_salt_digest;
    let digest = manifest::sha256(format!("contribution of {secret}").as_bytes());
    digest.chars().take(ORIGIN_CHARACTERS).collect()
}

/// Returns `count` of `rows`, drawn by the name of the choice, or all if there are fewer.
pub(crate) fn drawn<T: Clone>(rows: &[T], count: usize, name: &str, parts: &[i64]) -> Vec<T> {
    if rows.len() <= count {
        return rows.to_vec();
    }
    let mut places = sample(&mut generator(0, name, parts), rows.len(), count).into_vec();
    places.sort_unstable();
    places.into_iter().map(|at| rows[at].clone()).collect()
}

/// Collects rows, and counts them.
struct ContributionRows<'a> {
    history: &'a HoldHistory<'a>,
    min_owners: usize,
    max_age: f64,
    summary: ContributionSummary,
}

impl ContributionRows<'_> {
    /// Returns the `rows` of the groups that enough owners are behind, in an order that says
    /// nothing about when they were.
    fn share(&mut self, rows: &[TaughtRow], question: HoldQuestion) -> Vec<SharedRow> {
        let mut by_stated: BTreeMap<u32, Vec<TaughtRow>> = BTreeMap::new();
        for row in drawn(rows, MAX_ROWS, "contribution", &[]) {
            let stated = self.history.holds[row.hold].stated.packed_fault();
            by_stated.entry(stated).or_default().push(row);
        }
        let mut shared = Vec::new();
        for (stated, rows) in by_stated {
            let owner = |row: &TaughtRow| self.history.holds[row.hold].owner;
            let owners: Vec<u64> = rows.iter().map(owner).collect();
            let known: HashSet<u64> = owners.iter().copied().filter(|&owner| owner != 0).collect();
            if known.len() < self.min_owners {
                self.summary.groups_left_out += 1;
                self.summary.rows_left_out += rows.len();
                continue;
            }
            let exact = map_items(&rows, |row| self.shared_row(row));
            let coarse = if self.min_owners > 0 {
                CoarseRows::new(exact, &owners, self.min_owners)
            } else {
                CoarseRows::of_exact(exact)
            };
            self.summary.groups.push(SharedGroup {
                question,
                stated: explain(&ReasonKind::from_packed(stated).into()).meaning,
                owners: known.len(),
                rows: rows.len(),
                successes: rows.iter().filter(|row| row.is_success).count(),
                combinations: coarse.parts,
                coarse_rows: coarse.changed,
            });
            shared.extend(coarse.rows);
        }
        shared.sort_by_cached_key(SharedRow::order);
        shared
    }

    fn shared_row(&self, row: &TaughtRow) -> SharedRow {
        let hold = &self.history.holds[row.hold];
        let values = columns(self.history, row.hold, row.asked_ms, row.way, self.max_age);
        SharedRow {
            stated: hold.stated.packed_fault(),
            values: halved(&values),
            is_success: row.is_success,
            weight: f16::from_f64(row.weight),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_stores::log_with_outages;

    #[test]
    fn groups_with_few_owners_are_left_out() {
        let store = log_with_outages(8).store();
        let history = HoldHistory::new(&store);
        let (all, counts) = Contribution::collect(&history, 0);
        assert_eq!(counts.groups.len(), 2, "one fault, two questions");
        assert_eq!(counts.groups[0].rows, all.now.len());
        assert_eq!(counts.groups_left_out, 0);

        // The log names no owner.
        let (none, counts) = Contribution::collect(&history, 1);
        assert!(none.now.is_empty() && none.later.is_empty());
        assert_eq!(counts.groups_left_out, 2);
        assert_eq!(counts.rows_left_out, all.now.len() + all.later.len());
    }

    #[test]
    fn written_rows_are_read_back() {
        let store = log_with_outages(8).store();
        let (written, _) = Contribution::collect(&HoldHistory::new(&store), 0);
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("contribution");
        written.write(&file).expect("written");
        assert_eq!(Contribution::read(&file).expect("read"), written);
        assert!(written.later.is_sorted_by_key(SharedRow::order));
    }
}
