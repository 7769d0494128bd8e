//! Events in any order → events by job and time: sorted runs, on disk where they outgrow memory, and their merge.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

use crate::eventlog::{AD_INFORMATION, Event, Request};

/// How many rows are held in memory before they are sorted and written as a run.
const RUN_ROWS: usize = 6 << 20;
/// How many rows of each run are held in memory while runs are merged.
const MERGE_ROWS: usize = 1 << 15;

/// One event, or what one 028 record says of its job, with the job it belongs to. Plain bytes: runs are written as is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Row {
    pub(super) time_ms: i64,
    /// The place in the logs, which orders events of one time.
    sequence: u64,
    pub(super) ap: u32,
    pub(super) cluster: i32,
    pub(super) proc: i32,
    pub(super) hold_code: i32,
    pub(super) hold_subcode: i32,
    pub(super) value: i32,
    pub(super) text_hash: u32,
    pub(super) number: u16,
    pub(super) normal: u8,
    cpus: u8,
}

impl Row {
    pub(super) fn event(ap: u32, event: &Event) -> Row {
        let Event { time_ms, cluster, proc, number, normal, value, hold_code, hold_subcode, text_hash } = *event;
        Row {
            time_ms,
            sequence: 0,
            ap,
            cluster,
            proc,
            hold_code,
            hold_subcode,
            value,
            text_hash,
            number,
            normal,
            cpus: 0,
        }
    }

    /// What the ad of a job says: its submission by the clock of the access point, its owner, hashed, and its request.
    pub(super) fn ad(ap: u32, (cluster, proc): (i32, i32), submit_ms: i64, owner: u64, request: Request) -> Row {
        let mut row = Row::event(ap, &Event { time_ms: submit_ms, cluster, proc, ..Event::default() });
        row.number = AD_INFORMATION;
        (row.hold_code, row.hold_subcode) = (owner as u32 as i32, (owner >> 32) as u32 as i32);
        (row.cpus, row.normal) = (request.cpus, request.gpus);
        (row.value, row.text_hash) = (request.memory_mb.cast_signed(), request.disk_mb);
        row
    }

    /// The request in a row that [`Row::ad`] made.
    pub(super) fn request(&self) -> Request {
        Request { cpus: self.cpus, gpus: self.normal, memory_mb: self.value.cast_unsigned(), disk_mb: self.text_hash }
    }

    /// The owner in a row that [`Row::ad`] made.
    pub(super) fn owner(&self) -> u64 {
        u64::from(self.hold_code as u32) | u64::from(self.hold_subcode as u32) << 32
    }

    /// What names the job, up to numbers used again.
    pub(super) fn id(&self) -> (u32, i32, i32) {
        (self.ap, self.cluster, self.proc)
    }

    /// The order of rows: by job, then time, then place in the logs. Ids are not negative, so they compare as unsigned.
    fn key(&self) -> (u64, u64, u64) {
        let job = u64::from(self.ap) << 32 | u64::from(self.cluster as u32);
        let moment = u64::from(self.proc as u32) << 32;
        (job, moment, self.time_ms as u64 ^ 1 << 63)
    }

    fn full_key(&self) -> ((u64, u64, u64), u64) {
        (self.key(), self.sequence)
    }
}

/// Rows on their way to their order.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    count: u64,
    /// Where runs may be written; without it, everything stays in memory.
    dir: Option<PathBuf>,
    runs: Vec<PathBuf>,
}

impl Rows {
    pub(super) fn new(dir: Option<PathBuf>) -> Rows {
        Rows { dir, ..Rows::default() }
    }

    pub(super) fn push(&mut self, row: Row) -> Result<()> {
        if self.rows.is_empty() && self.dir.is_some() {
            // At once: the first touch of memory costs more than parsing, and growing would touch it twice.
            self.rows.reserve_exact(RUN_ROWS);
        }
        self.rows.push(Row { sequence: self.count, ..row });
        self.count += 1;
        if self.rows.len() >= RUN_ROWS && self.dir.is_some() {
            self.write_run()?;
        }
        Ok(())
    }

    fn sort(&mut self) {
        self.rows.par_sort_unstable_by_key(Row::full_key);
    }

    fn write_run(&mut self) -> Result<()> {
        self.sort();
        let dir = self.dir.as_deref().unwrap_or(Path::new("."));
        let path = dir.join(format!(".run-{:05}", self.runs.len()));
        let mut file = fs_err::File::create(&path)?;
        file.write_all(bytemuck::cast_slice(&self.rows))?;
        self.runs.push(path);
        self.rows.clear();
        Ok(())
    }

    /// Hands every row to `each`, in order, and removes the runs.
    pub(super) fn for_each(mut self, mut each: impl FnMut(Row) -> Result<()>) -> Result<()> {
        if self.runs.is_empty() {
            self.sort();
            return self.rows.iter().try_for_each(|row| each(*row));
        }
        self.write_run()?;
        self.rows = Vec::new();
        let mut runs: Vec<Run> = self.runs.iter().map(|path| Run::open(path)).collect::<Result<_>>()?;
        let mut heads = BinaryHeap::new();
        for (index, run) in runs.iter_mut().enumerate() {
            heads.extend(run.next()?.map(|row| Reverse((row.full_key(), index))));
        }
        while let Some(Reverse((_, index))) = heads.pop() {
            each(runs[index].current())?;
            heads.extend(runs[index].next()?.map(|row| Reverse((row.full_key(), index))));
        }
        self.runs.iter().try_for_each(|path| Ok(fs_err::remove_file(path)?))
    }
}

/// A sorted run on disk, read from its beginning.
struct Run {
    file: fs_err::File,
    buffer: Vec<Row>,
    /// The row after the current one.
    at: usize,
}

impl Run {
    fn open(path: &Path) -> Result<Run> {
        Ok(Run { file: fs_err::File::open(path)?, buffer: Vec::new(), at: 0 })
    }

    fn next(&mut self) -> Result<Option<Row>> {
        if self.at == self.buffer.len() {
            self.fill()?;
        }
        self.at += 1;
        Ok(self.buffer.get(self.at - 1).copied())
    }

    /// The row that [`Run::next`] gave last.
    fn current(&self) -> Row {
        self.buffer[self.at - 1]
    }

    fn fill(&mut self) -> Result<()> {
        self.buffer.resize(MERGE_ROWS, Row::zeroed());
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.buffer);
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read(&mut bytes[filled..])? {
                0 => break,
                n => filled += n,
            }
        }
        self.buffer.truncate(filled / size_of::<Row>());
        self.at = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(rows: &[(i32, i64)], run_every: usize) -> Vec<(i32, i64, u64)> {
        let dir = tempfile::tempdir().expect("a directory");
        let mut all = Rows::new(Some(dir.path().to_owned()));
        for (index, &(cluster, time_ms)) in rows.iter().enumerate() {
            all.push(Row::event(0, &Event { cluster, time_ms, ..Event::default() })).expect("pushed");
            if index % run_every == run_every - 1 {
                all.write_run().expect("written");
            }
        }
        let mut found = Vec::new();
        let collect = |row: Row| {
            found.push((row.cluster, row.time_ms, row.sequence));
            Ok(())
        };
        all.for_each(collect).expect("merged");
        assert_eq!(fs_err::read_dir(dir.path()).expect("listed").count(), 0, "no run is left");
        found
    }

    proptest! {
        #[test]
        fn runs_make_no_difference(rows in proptest::collection::vec((0..5i32, -9..9i64), 0..200), every in 1..50usize) {
            let mut expected: Vec<_> = rows.iter().zip(0u64..).map(|(&(cluster, time), at)| (cluster, time, at)).collect();
            expected.sort_unstable();
            prop_assert_eq!(&sorted(&rows, usize::MAX), &expected);
            prop_assert_eq!(&sorted(&rows, every), &expected);
        }
    }

    #[test]
    fn owners_fit() {
        let request = Request { cpus: 255, gpus: 1, memory_mb: u32::MAX, disk_mb: 1 << 31 };
        assert_eq!(Row::ad(0, (1, 2), 3, 0xfedc_ba98_7654_3210, request).owner(), 0xfedc_ba98_7654_3210);
        assert_eq!(Row::ad(0, (1, 2), 3, 0, request).request(), request);
    }
}
