//! Sorts rows by job, in memory or with sorted runs on disk if they do not fit.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::job_row::{JobRow, SameIdRows};
use super::sort_runs;

/// Rows per run, which is sorted in memory and then written. Longer runs would not save time: the
/// first touch of memory costs more than a merge of more runs.
const RUN_ROWS: usize = 1 << 18;

/// Runs of equal length before the length doubles. It doubles at most [`MAX_DOUBLINGS`] times.
/// Longer runs limit the number of files that the merge has open.
const RUNS_PER_DOUBLING: usize = 16;

const MAX_DOUBLINGS: usize = 4;

/// Takes rows in any order, and returns the rows of each job together.
#[derive(Debug, Default)]
pub(super) struct RowSorter {
    rows: Vec<JobRow>,
    /// Directory for runs; `None` keeps all rows in memory.
    dir: Option<PathBuf>,
    runs: Vec<PathBuf>,
    /// Bits in which the sort keys of `rows` differ.
    differing_bits: u128,
    /// Reused memory for [`group_by_id`].
    order: Vec<u64>,
}

impl RowSorter {
    pub(super) fn new(dir: Option<PathBuf>) -> RowSorter {
        RowSorter {
            dir,
            ..RowSorter::default()
        }
    }

    /// A lower bound for the number of pushed rows.
    pub(super) fn min_row_count(&self) -> usize {
        if self.runs.is_empty() {
            self.rows.len()
        } else {
            RUN_ROWS
        }
    }

    pub(super) fn push(&mut self, row: JobRow) -> Result<()> {
        if self.rows.is_empty() && self.dir.is_some() {
            // Reserve all at once: the first touch of memory costs more than parsing, and a growing
            // vector would touch it twice.
            self.rows.reserve_exact(self.next_run_rows());
        }

        let first = self.rows.first().unwrap_or(&row);
        self.differing_bits |= row.id().sort_key() ^ first.id().sort_key();
        self.rows.push(row);

        if self.rows.len() >= self.next_run_rows() && self.dir.is_some() {
            self.write_run()?;
        }
        Ok(())
    }

    /// The number of rows in the next run.
    fn next_run_rows(&self) -> usize {
        RUN_ROWS << (self.runs.len() / RUNS_PER_DOUBLING).min(MAX_DOUBLINGS)
    }

    fn write_run(&mut self) -> Result<()> {
        let dir = self.dir.as_deref().unwrap_or(Path::new("."));
        let path = dir.join(format!(".run-{:05}", self.runs.len()));
        let jobs = group_by_id(&self.rows, self.differing_bits, &mut self.order)?;
        sort_runs::write(&path, jobs)?;

        self.runs.push(path);
        self.rows.clear();
        self.differing_bits = 0;
        Ok(())
    }

    /// Calls `each` with the rows of every id, sorted by id. The rows of one id are in the order of
    /// pushing. Removes the runs.
    pub(super) fn for_each_id(
        mut self,
        mut each: impl FnMut(&mut SameIdRows) -> Result<()>,
    ) -> Result<()> {
        if self.runs.is_empty() {
            let mut same_id = SameIdRows::default();
            for rows in group_by_id(&self.rows, self.differing_bits, &mut self.order)? {
                same_id.replace_with(rows);
                each(&mut same_id)?;
            }
            return Ok(());
        }

        self.write_run()?;
        // Free the memory, which the merge needs.
        self.rows = Vec::new();
        self.order = Vec::new();
        sort_runs::merge(&self.runs, each)?;

        for path in &self.runs {
            fs_err::remove_file(path)?;
        }
        Ok(())
    }
}

/// Returns the rows of every id, sorted by id, rows of one id in order of pushing.
///
/// Rows are large, so numbers are sorted instead. Each number holds the bits of a row's sort key
/// that differ among `rows`, and below them the row's index. The index finds the row, and keeps the
/// order of equal ids.
///
/// The access points and clusters of one log are few or close to each other, so this nearly always
/// fits 64 bits. If it does not, indices are sorted by the keys of their rows, which is slower.
fn group_by_id<'a>(
    rows: &'a [JobRow],
    differing_bits: u128,
    order: &'a mut Vec<u64>,
) -> Result<impl Iterator<Item = impl Iterator<Item = &'a JobRow>>> {
    u32::try_from(rows.len()).context("too many events to hold in memory")?;
    let index_bits = bit_width(rows.len() as u128);
    let proc_bits = bit_width(differing_bits & u128::from(u32::MAX));
    // Differing bits of access point and cluster.
    let high_bits = bit_width(differing_bits >> 32);
    let row = move |number: &u64| &rows[(number & ((1 << index_bits) - 1)) as usize];

    order.clear();
    if high_bits + proc_bits + index_bits <= u64::BITS {
        order.reserve(rows.len());
        for (index, row) in (0u64..).zip(rows) {
            let key = row.id().sort_key();
            let high = key >> 32 & low_bits_mask(high_bits);
            let proc = key & low_bits_mask(proc_bits);
            order.push(((high << proc_bits | proc) as u64) << index_bits | index);
        }
        order.sort_unstable();
    } else {
        order.extend(0..rows.len() as u64);
        order.sort_by_key(|number| row(number).id().sort_key());
    }

    let jobs = order.chunk_by(move |a, b| row(a).id() == row(b).id());
    Ok(jobs.map(move |job| job.iter().map(row)))
}

/// Returns the number of bits that `number` needs.
fn bit_width(number: u128) -> u32 {
    u128::BITS - number.leading_zeros()
}

fn low_bits_mask(bits: u32) -> u128 {
    (1 << bits) - 1
}

#[cfg(test)]
mod tests {
    use super::super::job_row::{AdPart, AdRow, EventRow, InputRow, LogStretch, StoredId};
    use super::*;
    use htcondor_eventlog::{EventFacts, InputFile, JobEvent, ResourceRequest, SubmissionNames};
    use proptest::prelude::*;

    fn sorted(rows: &[JobRow], run_every: usize) -> Vec<SameIdRows> {
        let dir = tempfile::tempdir().expect("a directory");
        let mut sorter = RowSorter::new(Some(dir.path().to_owned()));
        for (index, row) in rows.iter().enumerate() {
            sorter.push(*row).expect("pushed");
            if index % run_every == run_every - 1 {
                sorter.write_run().expect("written");
            }
        }
        let mut found = Vec::new();
        let collect = |same_id: &mut SameIdRows| {
            found.push(same_id.clone());
            Ok(())
        };
        sorter.for_each_id(collect).expect("merged");
        assert_eq!(
            fs_err::read_dir(dir.path()).expect("listed").count(),
            0,
            "no run is left"
        );
        found
    }

    /// Returns row `at`, of one of a few jobs. Some rows have the values that most rows lack.
    fn row(at: usize, (cluster, time_ms, code): (i32, i64, i32)) -> JobRow {
        let proc = cluster % 2;
        let id = StoredId {
            ap: 1,
            cluster,
            proc,
        };
        let request = ResourceRequest {
            cpus: 3,
            ..ResourceRequest::default()
        };
        let names = SubmissionNames {
            batch: at as u32,
            dag_node: 1,
        };
        let input = InputRow {
            id,
            submit_ms: time_ms,
            input: InputFile {
                file: at as u32 % 3,
                origin: 1,
            },
        };
        match code {
            0 => {
                let ad = AdRow::new(id, time_ms, at as u64, request, names);
                return JobRow::Ad(AdPart::Main(ad));
            }
            1 => return JobRow::Ad(AdPart::Input(input)),
            _ => {}
        }
        let stretch = LogStretch::numbered(if code < 3 { 5 } else { 32_766 });
        let event = JobEvent {
            cluster,
            proc,
            time_ms,
            hold_code: code % 2 * i32::MAX,
            text_hash: at as u32,
            facts: EventFacts::from_words(code as usize, |words| words.fill(at as u32)),
            ..JobEvent::default()
        };
        JobRow::Event(EventRow::new(1, stretch, &event))
    }

    proptest! {
        #[test]
        fn rows_do_not_depend_on_runs(
            rows in proptest::collection::vec((0..5i32, -9..9i64, 0..6i32), 0..200),
            every in 1..50usize,
        ) {
            let rows: Vec<JobRow> = rows.into_iter().enumerate().map(|(at, said)| row(at, said)).collect();
            let mut in_order = rows.clone();
            in_order.sort_by_key(|row| row.id().sort_key());
            let mut expected = Vec::new();
            for job in in_order.chunk_by(|a, b| a.id() == b.id()) {
                let mut same_id = SameIdRows::default();
                same_id.replace_with(job.iter());
                expected.push(same_id);
            }
            prop_assert_eq!(&sorted(&rows, usize::MAX), &expected);
            prop_assert_eq!(&sorted(&rows, every), &expected);
        }
    }

    #[test]
    fn wide_ids_are_sorted_by_the_slow_path() {
        let ids = [
            (7, i32::MAX, 0),
            (0, 1, i32::MAX),
            (u32::MAX, 0, 1),
            (0, 1, 0),
            (7, i32::MAX, 0),
        ];
        let row = |(ap, cluster, proc)| {
            let event = JobEvent {
                cluster,
                proc,
                ..JobEvent::default()
            };
            JobRow::Event(EventRow::new(ap, LogStretch::numbered(0), &event))
        };
        let found: Vec<usize> = sorted(&ids.map(row), usize::MAX)
            .iter()
            .map(|same_id| same_id.events.len())
            .collect();
        assert_eq!(found, [1, 1, 2, 1]);

        let mut expected = ids.map(row);
        expected.sort_by_key(|row| row.id().sort_key());
        let merged: Vec<JobRow> = sorted(&ids.map(row), 2)
            .into_iter()
            .flat_map(|same_id| same_id.events)
            .map(JobRow::Event)
            .collect();
        assert_eq!(merged, expected);
    }
}
