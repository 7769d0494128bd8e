//! Sort runs: files with the rows of one job after another, and the merge of many such files.
//!
//! A run stores each job id once, and only the nonzero fields of most events, because it goes
//! through the page cache twice. It never outlives its program, so it has no version.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Result;
use bytemuck::{Pod, Zeroable};

use super::job_row::{AdRow, EventRow, InputRow, JobRow, LogStretch, SameIdRows, StoredId};
use htcondor_eventlog::{EventFacts, InputFile, JobEvent, ResourceRequest, SubmissionNames};

/// Buffer size of each run, in bytes.
const BUFFER_BYTES: usize = 1 << 18;

/// A job, and the number of its rows that follow: its events, then its ads, then its inputs.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct JobHeader {
    ap: u32,
    cluster: i32,
    proc: i32,
    events: u32,
    ads: u32,
    inputs: u32,
}

impl JobHeader {
    fn id(&self) -> StoredId {
        StoredId {
            ap: self.ap,
            cluster: self.cluster,
            proc: self.proc,
        }
    }
}

/// The fields that every event has.
// Packed, because millions of records go to the disk and back.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, packed(2))]
struct EventRecord {
    time_ms: i64,
    text_hash: u32,
    number: u16,
    /// Number of the event's stretch.
    stretch: u16,
    /// The low bit is set if the event is normal. The other bits are the number of words of facts,
    /// which follow last.
    normal_and_fact_words: u8,
    /// 1 if [`EventCodes`] follow.
    has_codes: u8,
}

/// The fields that few events have.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct EventCodes {
    value: i32,
    hold_code: i32,
    hold_subcode: i32,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct AdRecord {
    submit_ms: i64,
    owner: u64,
    memory_mb: u32,
    disk_mb: u32,
    batch: u32,
    dag_node: u32,
    cpus: u8,
    gpus: u8,
    unused: [u8; 6],
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct InputRecord {
    submit_ms: i64,
    file: u32,
    origin: u32,
}

/// Writes a run to `path`: the rows of each of `jobs`, which must be sorted.
pub(super) fn write<'a, J>(path: &Path, jobs: impl Iterator<Item = J>) -> Result<()>
where
    J: Iterator<Item = &'a JobRow>,
{
    let mut file = BufWriter::with_capacity(BUFFER_BYTES, poolcast_base::files::create_new(path)?);
    let mut rows = SameIdRows::default();

    for job in jobs {
        let mut job = job.peekable();
        let Some(first) = job.peek() else {
            continue;
        };
        let StoredId { ap, cluster, proc } = first.id();
        rows.replace_with(job);

        let header = JobHeader {
            ap,
            cluster,
            proc,
            events: u32::try_from(rows.events.len())?,
            ads: u32::try_from(rows.ads.len())?,
            inputs: u32::try_from(rows.inputs.len())?,
        };
        file.write_all(bytemuck::bytes_of(&header))?;
        for event in &rows.events {
            write_event(&mut file, event)?;
        }
        for ad in &rows.ads {
            write_ad(&mut file, ad)?;
        }
        for input in &rows.inputs {
            write_input(&mut file, input)?;
        }
    }

    Ok(file.flush()?)
}

fn write_event(file: &mut BufWriter<fs_err::File>, event: &EventRow) -> std::io::Result<()> {
    let codes = EventCodes {
        value: event.value,
        hold_code: event.hold_code,
        hold_subcode: event.hold_subcode,
    };
    let has_codes = codes != EventCodes::zeroed();
    let facts = event.facts.words();
    let record = EventRecord {
        time_ms: event.time_ms,
        text_hash: event.text_hash,
        number: event.number,
        stretch: event.stretch().number(),
        normal_and_fact_words: (facts.len() as u8) << 1 | event.normal(),
        has_codes: u8::from(has_codes),
    };

    file.write_all(bytemuck::bytes_of(&record))?;
    if has_codes {
        file.write_all(bytemuck::bytes_of(&codes))?;
    }
    file.write_all(bytemuck::cast_slice(facts))
}

fn write_ad(file: &mut BufWriter<fs_err::File>, ad: &AdRow) -> std::io::Result<()> {
    let request = ad.request();
    let names = ad.names();
    let record = AdRecord {
        submit_ms: ad.submit_ms,
        owner: ad.owner,
        memory_mb: request.memory_mb,
        disk_mb: request.disk_mb,
        batch: names.batch,
        dag_node: names.dag_node,
        cpus: request.cpus,
        gpus: request.gpus,
        unused: [0; 6],
    };
    file.write_all(bytemuck::bytes_of(&record))
}

fn write_input(file: &mut BufWriter<fs_err::File>, row: &InputRow) -> std::io::Result<()> {
    let record = InputRecord {
        submit_ms: row.submit_ms,
        file: row.input.file,
        origin: row.input.origin,
    };
    file.write_all(bytemuck::bytes_of(&record))
}

/// Calls `each` with the rows of every id in the runs at `paths`; it may change them. Rows of
/// earlier runs come first.
pub(super) fn merge(
    paths: &[PathBuf],
    mut each: impl FnMut(&mut SameIdRows) -> Result<()>,
) -> Result<()> {
    let mut runs: Vec<RunReader> = paths
        .iter()
        .map(|path| RunReader::open(path))
        .collect::<Result<_>>()?;

    // The heap holds the next job of every run that has one. Equal ids leave the heap in the order
    // of their runs.
    let mut next_jobs = BinaryHeap::new();
    for (index, run) in runs.iter_mut().enumerate() {
        next_jobs.extend(run.next_id()?.map(|id| Reverse((id, index))));
    }

    let mut rows = SameIdRows::default();
    while let Some(Reverse((id, index))) = next_jobs.pop() {
        let run = &mut runs[index];
        run.read_rows(&mut rows)?;
        next_jobs.extend(run.next_id()?.map(|next| Reverse((next, index))));

        // Rows of one id accumulate until no other run has that id.
        let is_last_run = next_jobs
            .peek()
            .is_none_or(|Reverse((next, _))| *next != id);
        if is_last_run {
            each(&mut rows)?;
            rows.clear();
        }
    }
    Ok(())
}

/// Reads a run from its beginning.
struct RunReader {
    file: BufReader<fs_err::File>,
    header: JobHeader,
}

impl RunReader {
    fn open(path: &Path) -> Result<RunReader> {
        let file = BufReader::with_capacity(BUFFER_BYTES, fs_err::File::open(path)?);
        Ok(RunReader {
            file,
            header: JobHeader::zeroed(),
        })
    }

    /// Reads the header of the next job; returns its sort key, or `None` at the end of the run.
    fn next_id(&mut self) -> Result<Option<u128>> {
        if self.file.fill_buf()?.is_empty() {
            return Ok(None);
        }
        self.file
            .read_exact(bytemuck::bytes_of_mut(&mut self.header))?;
        Ok(Some(self.header.id().sort_key()))
    }

    /// Appends to `rows` the rows of the job that [`RunReader::next_id`] found.
    fn read_rows(&mut self, rows: &mut SameIdRows) -> Result<()> {
        for _ in 0..self.header.events {
            let event = self.read_event()?;
            rows.events.push(event);
        }
        for _ in 0..self.header.ads {
            let ad = self.read_ad()?;
            rows.ads.push(ad);
        }
        for _ in 0..self.header.inputs {
            let input = self.read_input()?;
            rows.inputs.push(input);
        }
        Ok(())
    }

    #[inline]
    fn read_event(&mut self) -> Result<EventRow> {
        let mut record = EventRecord::zeroed();
        self.file.read_exact(bytemuck::bytes_of_mut(&mut record))?;
        let mut codes = EventCodes::zeroed();
        if record.has_codes != 0 {
            self.file.read_exact(bytemuck::bytes_of_mut(&mut codes))?;
        }
        let facts = self.read_facts(usize::from(record.normal_and_fact_words >> 1))?;

        let JobHeader {
            ap, cluster, proc, ..
        } = self.header;
        let event = JobEvent {
            time_ms: record.time_ms,
            cluster,
            proc,
            number: record.number,
            normal: record.normal_and_fact_words & 1,
            value: codes.value,
            hold_code: codes.hold_code,
            hold_subcode: codes.hold_subcode,
            text_hash: record.text_hash,
            facts,
        };
        let stretch = LogStretch::numbered(u32::from(record.stretch));
        Ok(EventRow::new(ap, stretch, &event))
    }

    /// Reads facts of `words` words.
    #[inline]
    fn read_facts(&mut self, words: usize) -> Result<EventFacts> {
        let mut read = Ok(());
        let facts = EventFacts::from_words(words, |words| {
            read = self.file.read_exact(bytemuck::cast_slice_mut(words));
        });
        read?;
        Ok(facts)
    }

    fn read_ad(&mut self) -> Result<AdRow> {
        let mut record = AdRecord::zeroed();
        self.file.read_exact(bytemuck::bytes_of_mut(&mut record))?;

        let request = ResourceRequest {
            cpus: record.cpus,
            gpus: record.gpus,
            memory_mb: record.memory_mb,
            disk_mb: record.disk_mb,
        };
        Ok(AdRow::new(
            self.header.id(),
            record.submit_ms,
            record.owner,
            request,
            SubmissionNames {
                batch: record.batch,
                dag_node: record.dag_node,
            },
        ))
    }
    fn read_input(&mut self) -> Result<InputRow> {
        let mut record = InputRecord::zeroed();
        self.file.read_exact(bytemuck::bytes_of_mut(&mut record))?;
        let InputRecord {
            submit_ms,
            file,
            origin,
        } = record;
        Ok(InputRow {
            id: self.header.id(),
            submit_ms,
            input: InputFile { file, origin },
        })
    }
}
