//! Rows of one job after another ↔ a run on disk; many runs → one. A run says each job once, and of most rows only what
//! they have, as it goes through the page cache twice. It never outlives its program, so it has no version.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Result;
use bytemuck::{Pod, Zeroable};

use super::rows::Row;
use crate::eventlog::AD_INFORMATION;

/// How much of each run is held in memory.
const BUFFER_BYTES: usize = 1 << 18;

/// A job, and how many rows of it follow.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Head {
    ap: u32,
    cluster: i32,
    proc: i32,
    rows: u32,
}

/// What every row has.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Brief {
    time_ms: i64,
    text_hash: u32,
    number: u16,
    normal: u8,
    /// Whether [`Codes`] follow, and in the other bits the stretch of a log that an event is of.
    has_codes_and_stretch: u8,
}

/// What few rows have.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Codes {
    value: i32,
    hold_code: i32,
    hold_subcode: i32,
    cpus: u32,
}

/// Writes a run to `path`: the rows of each of `jobs`, which are in order.
pub(super) fn write<'a, J>(path: &Path, jobs: impl Iterator<Item = J>) -> Result<()>
where
    J: ExactSizeIterator<Item = &'a Row>,
{
    let mut file = BufWriter::with_capacity(BUFFER_BYTES, crate::files::create_new(path)?);
    for job in jobs {
        let mut job = job.peekable();
        let rows = u32::try_from(job.len())?;
        if let Some(&&Row {
            ap, cluster, proc, ..
        }) = job.peek()
        {
            file.write_all(bytemuck::bytes_of(&Head {
                ap,
                cluster,
                proc,
                rows,
            }))?;
        }
        job.try_for_each(|row| write_row(&mut file, row))?;
    }
    Ok(file.flush()?)
}

fn write_row(file: &mut BufWriter<fs_err::File>, row: &Row) -> std::io::Result<()> {
    let Row {
        time_ms,
        hold_code,
        hold_subcode,
        value,
        text_hash,
        number,
        normal,
        cpus_or_stretch,
        ..
    } = *row;
    let (cpus, stretch) = if number == AD_INFORMATION {
        (cpus_or_stretch, 0)
    } else {
        (0, cpus_or_stretch)
    };
    let codes = Codes {
        value,
        hold_code,
        hold_subcode,
        cpus: cpus.into(),
    };
    let has_codes = codes != Codes::zeroed();
    let has_codes_and_stretch = stretch << 1 | u8::from(has_codes);
    file.write_all(bytemuck::bytes_of(&Brief {
        time_ms,
        text_hash,
        number,
        normal,
        has_codes_and_stretch,
    }))?;
    if has_codes {
        file.write_all(bytemuck::bytes_of(&codes))
    } else {
        Ok(())
    }
}

/// Hands the rows of every job in the runs at `paths` to `each`, which may change them; those of an earlier run first.
pub(super) fn merge(
    paths: &[PathBuf],
    mut each: impl FnMut(&mut Vec<Row>) -> Result<()>,
) -> Result<()> {
    let mut runs: Vec<Run> = paths
        .iter()
        .map(|path| Run::open(path))
        .collect::<Result<_>>()?;
    let mut next = BinaryHeap::new();
    for (index, run) in runs.iter_mut().enumerate() {
        next.extend(run.next()?.map(|id| Reverse((id, index))));
    }
    let mut rows = Vec::new();
    while let Some(Reverse((id, index))) = next.pop() {
        runs[index].read(&mut rows)?;
        next.extend(
            runs[index]
                .next()?
                .map(|following| Reverse((following, index))),
        );
        if next
            .peek()
            .is_none_or(|Reverse((following, _))| *following != id)
        {
            each(&mut rows)?;
            rows.clear();
        }
    }
    Ok(())
}

/// A run, read from its beginning.
struct Run {
    file: BufReader<fs_err::File>,
    head: Head,
}

impl Run {
    fn open(path: &Path) -> Result<Run> {
        let file = BufReader::with_capacity(BUFFER_BYTES, fs_err::File::open(path)?);
        Ok(Run {
            file,
            head: Head::zeroed(),
        })
    }

    /// What names the next job.
    fn next(&mut self) -> Result<Option<u128>> {
        if self.file.fill_buf()?.is_empty() {
            return Ok(None);
        }
        self.file
            .read_exact(bytemuck::bytes_of_mut(&mut self.head))?;
        let Head {
            ap, cluster, proc, ..
        } = self.head;
        Ok(Some(
            Row {
                ap,
                cluster,
                proc,
                ..Row::default()
            }
            .id(),
        ))
    }

    /// Adds the rows of the job that [`Run::next`] found to `rows`.
    fn read(&mut self, rows: &mut Vec<Row>) -> Result<()> {
        let Head {
            ap, cluster, proc, ..
        } = self.head;
        for _ in 0..self.head.rows {
            let (mut brief, mut codes) = (Brief::zeroed(), Codes::zeroed());
            self.file.read_exact(bytemuck::bytes_of_mut(&mut brief))?;
            if brief.has_codes_and_stretch & 1 != 0 {
                self.file.read_exact(bytemuck::bytes_of_mut(&mut codes))?;
            }
            let Brief {
                time_ms,
                text_hash,
                number,
                normal,
                has_codes_and_stretch,
            } = brief;
            let Codes {
                value,
                hold_code,
                hold_subcode,
                cpus,
            } = codes;
            let cpus_or_stretch = if number == AD_INFORMATION {
                cpus as u8
            } else {
                has_codes_and_stretch >> 1
            };
            rows.push(Row {
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
            });
        }
        Ok(())
    }
}
