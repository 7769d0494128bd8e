//! Events in any order → events by job and time: sorted in memory, or in runs on disk where they outgrow it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::runs;
use crate::eventlog::{AD_INFORMATION, JobEvent, ResourceRequest};

/// How many rows are held in memory before they are sorted and written as a run. More would not save time: what is touched
/// for the first time costs more than a merge of more runs.
const RUN_ROWS: usize = 1 << 18;

/// After so many runs they become twice as long, [`DOUBLINGS`] times, as all are open when they are merged.
const RUNS_OF_ONE_LENGTH: usize = 16;

const DOUBLINGS: usize = 4;

/// One event, or what one 028 record says of its job, with the job it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Row {
    pub(super) time_ms: i64,
    pub(super) ap: u32,
    pub(super) cluster: i32,
    pub(super) proc: i32,
    pub(super) hold_code: i32,
    pub(super) hold_subcode: i32,
    pub(super) value: i32,
    pub(super) text_hash: u32,
    pub(super) number: u16,
    pub(super) normal: u8,
    /// Of an ad, `RequestCpus`. Of an event, the stretch of a log that it is of, one of [`STRETCHES`]: a row has no place for
    /// both.
    pub(super) cpus_or_stretch: u8,
}

/// The stretches of logs have so many numbers in turn. Those of one job's events that follow each other differ.
pub(super) const STRETCHES: u32 = 128;

impl Row {
    /// `event` in one of [`STRETCHES`].
    pub(super) fn event(ap: u32, stretch: u8, event: &JobEvent) -> Row {
        let JobEvent {
            time_ms,
            cluster,
            proc,
            number,
            normal,
            value,
            hold_code,
            hold_subcode,
            text_hash,
        } = *event;
        let cpus_or_stretch = stretch;
        Row {
            time_ms,
            ap,
            cluster,
            proc,
            hold_code,
            hold_subcode,
            value,
            text_hash,
            number,
            normal,
            cpus_or_stretch,
        }
    }

    /// What the ad of a job says: its submission by the clock of the access point, its owner, hashed, and its request.
    pub(super) fn ad(
        ap: u32,
        (cluster, proc): (i32, i32),
        submit_ms: i64,
        owner: u64,
        request: ResourceRequest,
    ) -> Row {
        let mut row = Row::event(
            ap,
            0,
            &JobEvent {
                time_ms: submit_ms,
                cluster,
                proc,
                ..JobEvent::default()
            },
        );
        row.number = AD_INFORMATION;
        (row.hold_code, row.hold_subcode) = (owner as u32 as i32, (owner >> 32) as u32 as i32);
        (row.cpus_or_stretch, row.normal) = (request.cpus, request.gpus);
        (row.value, row.text_hash) = (request.memory_mb.cast_signed(), request.disk_mb);
        row
    }

    /// The request in a row that [`Row::ad`] made.
    pub(super) fn request(&self) -> ResourceRequest {
        let (cpus, gpus) = (self.cpus_or_stretch, self.normal);
        ResourceRequest {
            cpus,
            gpus,
            memory_mb: self.value.cast_unsigned(),
            disk_mb: self.text_hash,
        }
    }

    /// The owner in a row that [`Row::ad`] made.
    pub(super) fn owner(&self) -> u64 {
        u64::from(self.hold_code as u32) | u64::from(self.hold_subcode as u32) << 32
    }

    /// What names the job, up to numbers used again: 96 bits in the order of access point, cluster and proc. They are not
    /// negative, so they compare as unsigned.
    pub(super) fn id(&self) -> u128 {
        u128::from(self.ap) << 64
            | u128::from(self.cluster as u32) << 32
            | u128::from(self.proc as u32)
    }
}

/// Rows on their way to their order.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    /// Where runs may be written; without it, everything stays in memory.
    dir: Option<PathBuf>,
    runs: Vec<PathBuf>,
    /// The bits in which the ids of `rows` differ.
    differing: u128,
    /// Memory for [`by_job`].
    order: Vec<u64>,
}

impl Rows {
    pub(super) fn new(dir: Option<PathBuf>) -> Rows {
        Rows {
            dir,
            ..Rows::default()
        }
    }

    /// How many rows were pushed, at least.
    pub(super) fn count(&self) -> usize {
        if self.runs.is_empty() {
            self.rows.len()
        } else {
            RUN_ROWS
        }
    }

    pub(super) fn push(&mut self, row: Row) -> Result<()> {
        if self.rows.is_empty() && self.dir.is_some() {
            // At once: the first touch of memory costs more than parsing, and growing would touch it twice.
            self.rows.reserve_exact(self.run_rows());
        }
        self.differing |= row.id() ^ self.rows.first().unwrap_or(&row).id();
        self.rows.push(row);
        if self.rows.len() >= self.run_rows() && self.dir.is_some() {
            self.write_run()?;
        }
        Ok(())
    }

    /// How many rows the next run has.
    fn run_rows(&self) -> usize {
        RUN_ROWS << (self.runs.len() / RUNS_OF_ONE_LENGTH).min(DOUBLINGS)
    }

    fn write_run(&mut self) -> Result<()> {
        let dir = self.dir.as_deref().unwrap_or(Path::new("."));
        let path = dir.join(format!(".run-{:05}", self.runs.len()));
        runs::write(&path, by_job(&self.rows, self.differing, &mut self.order)?)?;
        self.runs.push(path);
        self.rows.clear();
        self.differing = 0;
        Ok(())
    }

    /// Hands the rows of every id to `each`, in order of time and then as they were pushed, those of one stretch of a log as
    /// they were pushed; removes the runs.
    pub(super) fn each_job(
        mut self,
        mut each: impl FnMut(&mut Vec<Row>) -> Result<()>,
    ) -> Result<()> {
        let mut in_time = |rows: &mut Vec<Row>| {
            keep_order(rows);
            rows.sort_by_key(|row| row.time_ms);
            each(rows)
        };
        if self.runs.is_empty() {
            let mut job = Vec::new();
            return by_job(&self.rows, self.differing, &mut self.order)?.try_for_each(|rows| {
                job.clear();
                job.extend(rows);
                in_time(&mut job)
            });
        }
        self.write_run()?;
        (self.rows, self.order) = (Vec::new(), Vec::new());
        runs::merge(&self.runs, in_time)?;
        self.runs
            .iter()
            .try_for_each(|path| Ok(fs_err::remove_file(path)?))
    }
}

/// Within a stretch of a log its own order holds: an event that is stamped before the one it follows gets the time of that
/// one.
fn keep_order(rows: &mut [Row]) {
    let (mut stretch, mut latest_ms) = (None, i64::MIN);
    for row in rows.iter_mut().filter(|row| row.number != AD_INFORMATION) {
        if stretch != Some(row.cpus_or_stretch) {
            (stretch, latest_ms) = (Some(row.cpus_or_stretch), i64::MIN);
        }
        latest_ms = latest_ms.max(row.time_ms);
        row.time_ms = latest_ms;
    }
}

/// The rows of every id, ids in order, those of one as they were pushed. Not the rows are sorted, but numbers made of place
/// and the bits in which ids differ, which nearly always fit 64.
fn by_job<'a>(
    rows: &'a [Row],
    differing: u128,
    order: &'a mut Vec<u64>,
) -> Result<impl Iterator<Item = impl ExactSizeIterator<Item = &'a Row>>> {
    u32::try_from(rows.len()).context("too many events to hold in memory")?;
    let bits = |number: u128| u128::BITS - number.leading_zeros();
    let (place_bits, proc_bits) = (
        bits(rows.len() as u128),
        bits(differing & u128::from(u32::MAX)),
    );
    let (high_bits, low_bits) = (bits(differing >> 32), place_bits + proc_bits);
    let row = move |key: &u64| &rows[(key & ((1 << place_bits) - 1)) as usize];
    order.clear();
    if high_bits + low_bits <= u64::BITS {
        let low = |bits: u32| (1u128 << bits) - 1;
        let brief = |id: u128| (id >> 32 & low(high_bits)) << proc_bits | id & low(proc_bits);
        order.extend(
            (0u64..)
                .zip(rows)
                .map(|(at, row)| (brief(row.id()) as u64) << place_bits | at),
        );
        order.sort_unstable();
    } else {
        order.extend(0..rows.len() as u64);
        order.sort_by_key(|key| row(key).id());
    }
    let jobs = order.chunk_by(move |a, b| row(a).id() == row(b).id());
    Ok(jobs.map(move |job| job.iter().map(row)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(rows: &[Row], run_every: usize) -> Vec<Vec<Row>> {
        let dir = tempfile::tempdir().expect("a directory");
        let mut all = Rows::new(Some(dir.path().to_owned()));
        for (index, row) in rows.iter().enumerate() {
            all.push(*row).expect("pushed");
            if index % run_every == run_every - 1 {
                all.write_run().expect("written");
            }
        }
        let mut found = Vec::new();
        let collect = |job: &mut Vec<Row>| {
            found.push(job.clone());
            Ok(())
        };
        all.each_job(collect).expect("merged");
        assert_eq!(
            fs_err::read_dir(dir.path()).expect("listed").count(),
            0,
            "no run is left"
        );
        found
    }

    /// Row `at`, of one of few jobs; what most rows lack is there in some.
    fn row(at: usize, (cluster, time_ms, code): (i32, i64, i32)) -> Row {
        let proc = cluster % 2;
        if code == 0 {
            let request = ResourceRequest {
                cpus: 3,
                ..ResourceRequest::default()
            };
            return Row::ad(1, (cluster, proc), time_ms, at as u64, request);
        }
        let (hold_code, text_hash) = (code % 2 * i32::MAX, at as u32);
        let stretch = if code < 3 { 5 } else { 127 };
        Row::event(
            1,
            stretch,
            &JobEvent {
                cluster,
                proc,
                time_ms,
                hold_code,
                text_hash,
                ..JobEvent::default()
            },
        )
    }

    proptest! {
        #[test]
        fn runs_make_no_difference(
            rows in proptest::collection::vec((0..5i32, -9..9i64, 0..5i32), 0..200),
            every in 1..50usize,
        ) {
            let rows: Vec<Row> = rows.into_iter().enumerate().map(|(at, said)| row(at, said)).collect();
            let mut expected = rows.clone();
            expected.sort_by_key(|row| (row.ap, row.cluster, row.proc));
            let mut expected: Vec<Vec<Row>> = expected.chunk_by(|a, b| a.id() == b.id()).map(<[Row]>::to_vec).collect();
            for job in &mut expected {
                keep_order(job);
                job.sort_by_key(|row| row.time_ms);
            }
            prop_assert_eq!(&sorted(&rows, usize::MAX), &expected);
            prop_assert_eq!(&sorted(&rows, every), &expected);
        }
    }

    #[test]
    fn ids_that_differ_in_all_bits_are_sorted_too() {
        let ids = [
            (7, i32::MAX, 0),
            (0, 1, i32::MAX),
            (u32::MAX, 0, 1),
            (0, 1, 0),
            (7, i32::MAX, 0),
        ];
        let row = |(ap, cluster, proc)| {
            Row::event(
                ap,
                0,
                &JobEvent {
                    cluster,
                    proc,
                    ..JobEvent::default()
                },
            )
        };
        let found: Vec<usize> = sorted(&ids.map(row), usize::MAX)
            .iter()
            .map(Vec::len)
            .collect();
        let mut expected = ids.map(row);
        expected.sort_by_key(Row::id);
        assert_eq!(sorted(&ids.map(row), 2).concat(), expected);
        assert_eq!(found, [1, 1, 2, 1]);
    }

    #[test]
    fn the_order_of_a_log_holds_within_a_stretch_of_it() {
        let row = |(stretch, time_ms)| {
            Row::event(
                0,
                stretch,
                &JobEvent {
                    time_ms,
                    ..JobEvent::default()
                },
            )
        };
        let ad = Row::ad(0, (0, 0), 1, 0, ResourceRequest::default());
        let mut rows = [(1, 10), (1, 30), (1, 20), (2, 5), (2, 40), (1, 7)]
            .map(row)
            .to_vec();
        rows.insert(1, ad);
        keep_order(&mut rows);
        assert_eq!(
            rows.iter().map(|row| row.time_ms).collect::<Vec<_>>(),
            [10, 1, 30, 30, 5, 40, 7]
        );
    }

    #[test]
    fn owners_fit() {
        let request = ResourceRequest {
            cpus: 255,
            gpus: 1,
            memory_mb: u32::MAX,
            disk_mb: 1 << 31,
        };
        assert_eq!(
            Row::ad(0, (1, 2), 3, 0xfedc_ba98_7654_3210, request).owner(),
            0xfedc_ba98_7654_3210
        );
        assert_eq!(Row::ad(0, (1, 2), 3, 0, request).request(), request);
    }
}
