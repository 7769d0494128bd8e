//! The event store: shards of columns, written once, mapped to read; jobs and their histories as slices.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::error::hinted;
use crate::eventlog::{Anomalies, Event};
use crate::files::Staging;
use crate::manifest;
use crate::shard::{Column, Format, Shard};

/// Event shards.
pub const EVENTS: Format = Format { name: "events", version: 1, rebuild: "poolcast parse LOG... -o DIR --overwrite" };

/// A shard is closed after the job that fills it; histories are never split.
const SHARD_EVENTS: usize = 4 << 20;

/// A log that went into a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Its file name, without the directory.
    pub name: String,
    /// Its size on disk.
    pub bytes: u64,
    /// SHA-256 of the file.
    pub sha256: String,
}

/// What a store says of itself in its manifest.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The logs, in the order given.
    pub sources: Vec<Source>,
    /// The access points; jobs refer to them by index.
    pub aps: Vec<String>,
    /// Records of each event number, 008 and 028 included, which are not kept as events.
    pub events_by_number: BTreeMap<u16, u64>,
    /// What a sound log would not hold.
    pub anomalies: Anomalies,
    /// The first time stamp, epoch ms.
    pub begin_ms: i64,
    /// The last time stamp, epoch ms: what is not known by then is not known.
    pub end_ms: i64,
    /// How many jobs.
    pub jobs: usize,
    /// The shards; none in memory.
    #[serde(default)]
    pub(super) shards: Vec<Listed>,
}

impl Summary {
    /// Records of every number.
    pub fn records(&self) -> u64 {
        self.events_by_number.values().sum()
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Listed {
    file: String,
    jobs: usize,
    events: usize,
    sha256: String,
}

/// Events and jobs as they are written: `E` events sorted by job and time, `J` jobs.
#[derive(Debug, Default)]
pub(super) struct Columns {
    time_ms: Vec<i64>,
    hold_code: Vec<i32>,
    hold_subcode: Vec<i32>,
    value: Vec<i32>,
    number: Vec<u16>,
    normal: Vec<u8>,
    /// `[J]`: where each job's events begin.
    first: Vec<u64>,
    submit_ms: Vec<i64>,
    owner: Vec<u64>,
    ap: Vec<u32>,
    cluster: Vec<i32>,
    proc: Vec<i32>,
}

impl Columns {
    pub(super) fn push_job(&mut self, ap: u32, cluster: i32, proc: i32, submit_ms: i64, owner: u64) {
        self.first.push(self.number.len() as u64);
        self.ap.push(ap);
        self.cluster.push(cluster);
        self.proc.push(proc);
        self.submit_ms.push(submit_ms);
        self.owner.push(owner);
    }

    /// Adds an event to the job pushed last.
    pub(super) fn push_event(&mut self, event: &Event) {
        self.time_ms.push(event.time_ms);
        self.hold_code.push(event.hold_code);
        self.hold_subcode.push(event.hold_subcode);
        self.value.push(event.value);
        self.number.push(event.number);
        self.normal.push(event.normal);
    }

    /// The bytes of a shard that holds jobs `from..to`.
    fn encode(&self, from: usize, to: usize) -> Result<Vec<u8>> {
        let event = |job: usize| self.first.get(job).map_or(self.number.len(), |&at| at as usize);
        let (start, end) = (event(from), event(to));
        let mut bounds: Vec<u64> = self.first[from..to].iter().map(|&at| at - start as u64).collect();
        bounds.push((end - start) as u64);
        let columns = [
            ("time_ms", Column::vector(&self.time_ms[start..end])),
            ("hold_code", Column::vector(&self.hold_code[start..end])),
            ("hold_subcode", Column::vector(&self.hold_subcode[start..end])),
            ("value", Column::vector(&self.value[start..end])),
            ("number", Column::vector(&self.number[start..end])),
            ("normal", Column::vector(&self.normal[start..end])),
            ("bounds", Column::vector(&bounds)),
            ("submit_ms", Column::vector(&self.submit_ms[from..to])),
            ("owner", Column::vector(&self.owner[from..to])),
            ("ap", Column::vector(&self.ap[from..to])),
            ("cluster", Column::vector(&self.cluster[from..to])),
            ("proc", Column::vector(&self.proc[from..to])),
        ];
        let columns = columns.map(|(name, column)| (name.to_owned(), column)).to_vec();
        crate::shard::encode(EVENTS, &serde_json::json!({}), columns)
    }

    /// Jobs `from..to` of each shard.
    fn cuts(&self) -> Vec<(usize, usize)> {
        let jobs = self.first.len();
        let mut cuts = Vec::new();
        let mut from = 0;
        for job in 1..jobs {
            if (self.first[job] - self.first[from]) as usize >= SHARD_EVENTS {
                cuts.push((from, job));
                from = job;
            }
        }
        cuts.push((from, jobs));
        cuts
    }
}

/// All jobs of some logs, sorted by access point, cluster, proc and submit time.
#[derive(Debug)]
pub struct Store {
    /// What the manifest says.
    pub summary: Summary,
    shards: Vec<Shard>,
    /// The first job of each shard, and the number of all jobs.
    starts: Vec<usize>,
}

/// A job and its history.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The index of its access point in [`Summary::aps`].
    pub ap: u32,
    /// Its cluster.
    pub cluster: i32,
    /// Its proc.
    pub proc: i32,
    /// The time of its event 000, else of its first event; epoch ms.
    pub submit_ms: i64,
    /// A salted hash of its owner; 0 if unknown.
    pub owner: u64,
    /// Its events.
    pub history: History<'a>,
}

impl Job<'_> {
    /// `cluster.proc`.
    pub fn id(&self) -> String {
        format!("{}.{}", self.cluster, self.proc)
    }
}

/// The events of one job in order of time; slices of equal length. The fields mean what they mean in [`Event`].
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "named as the fields of Event")]
pub struct History<'a> {
    pub time_ms: &'a [i64],
    pub number: &'a [u16],
    pub hold_code: &'a [i32],
    pub hold_subcode: &'a [i32],
    pub value: &'a [i32],
    pub normal: &'a [u8],
}

impl Store {
    pub(super) fn in_memory(columns: Columns, summary: Summary) -> Store {
        let jobs = columns.first.len();
        let shards = columns.cuts().into_iter().map(|(from, to)| {
            let bytes = columns.encode(from, to).expect("vectors of numbers always encode");
            Shard::from_bytes(&bytes, EVENTS).expect("what was just encoded is sound")
        });
        let shards = shards.collect();
        let starts = columns.cuts().into_iter().map(|(from, _)| from).chain([jobs]).collect();
        Store { summary: Summary { jobs, ..summary }, shards, starts }
    }

    /// Writes the store to `dir`, its manifest last; an earlier store there is replaced if `replace` is set.
    pub fn write(&self, dir: &Path, key: &str, replace: bool) -> Result<()> {
        let staging = Staging::new(dir, replace)?;
        let mut shards = Vec::new();
        for (index, shard) in self.shards.iter().enumerate() {
            let file = format!("events-{index:05}.safetensors");
            crate::files::write_atomic(&staging.path().join(&file), shard.bytes())?;
            let jobs = self.starts[index + 1] - self.starts[index];
            let events = shard.shape("number")?[0];
            shards.push(Listed { file, jobs, events, sha256: manifest::digest(shard.bytes()) });
        }
        manifest::write(staging.path(), EVENTS, key, &Summary { shards, ..self.summary.clone() })?;
        staging.commit()
    }

    /// Maps the store in `dir` and checks that its shards are those its manifest lists.
    pub fn open(dir: &Path) -> Result<Store> {
        let mut summary: Summary = manifest::read(dir, EVENTS)?.body;
        let listing = std::mem::take(&mut summary.shards);
        let mut store = Store { summary, shards: Vec::new(), starts: vec![0] };
        for listed in &listing {
            let path = dir.join(&listed.file);
            let inside = Path::new(&listed.file).components().count() == 1 && !listed.file.starts_with("..");
            ensure!(inside, "`{}` lists `{}`, which is outside it", dir.display(), listed.file);
            let shard = Shard::open(&path, EVENTS)?;
            check(&shard, listed, store.summary.aps.len()).with_context(|| {
                hinted(
                    format!("`{}` does not hold what its manifest says", path.display()),
                    format!("make it anew with `{}`", EVENTS.rebuild),
                )
            })?;
            store.starts.push(store.starts[store.starts.len() - 1] + listed.jobs);
            store.shards.push(shard);
        }
        ensure!(
            store.jobs() == store.summary.jobs,
            "`{}` lists {} jobs and says {}",
            dir.display(),
            store.jobs(),
            store.summary.jobs
        );
        Ok(store)
    }

    /// How many jobs there are.
    pub fn jobs(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// Job `index` of [`Store::jobs`].
    ///
    /// # Panics
    /// Panics when there is no such job.
    pub fn job(&self, index: usize) -> Job<'_> {
        let shard_index = self.starts.partition_point(|&start| start <= index) - 1;
        let shard = &self.shards[shard_index];
        let at = index - self.starts[shard_index];
        let bounds: &[u64] = column(shard, "bounds");
        let range = bounds[at] as usize..bounds[at + 1] as usize;
        Job {
            ap: column(shard, "ap")[at],
            cluster: column(shard, "cluster")[at],
            proc: column(shard, "proc")[at],
            submit_ms: column(shard, "submit_ms")[at],
            owner: column(shard, "owner")[at],
            history: History {
                time_ms: &column(shard, "time_ms")[range.clone()],
                number: &column(shard, "number")[range.clone()],
                hold_code: &column(shard, "hold_code")[range.clone()],
                hold_subcode: &column(shard, "hold_subcode")[range.clone()],
                value: &column(shard, "value")[range.clone()],
                normal: &column(shard, "normal")[range],
            },
        }
    }

    /// Every job, in order.
    pub fn iter(&self) -> impl Iterator<Item = Job<'_>> {
        (0..self.jobs()).map(|index| self.job(index))
    }
}

fn column<'a, T: crate::shard::Element>(shard: &'a Shard, name: &str) -> &'a [T] {
    shard.column(name).expect("every column was checked when the shard was opened")
}

/// Checks everything that [`Store::job`] relies on, so that no file can make it panic.
fn check(shard: &Shard, listed: &Listed, aps: usize) -> Result<()> {
    let (jobs, events) = (listed.jobs, listed.events);
    let bounds: &[u64] = shard.column("bounds")?;
    let lengths = [
        (bounds.len(), jobs + 1),
        (shard.column::<u32>("ap")?.len(), jobs),
        (shard.column::<i32>("cluster")?.len(), jobs),
        (shard.column::<i32>("proc")?.len(), jobs),
        (shard.column::<i64>("submit_ms")?.len(), jobs),
        (shard.column::<u64>("owner")?.len(), jobs),
        (shard.column::<i64>("time_ms")?.len(), events),
        (shard.column::<u16>("number")?.len(), events),
        (shard.column::<i32>("hold_code")?.len(), events),
        (shard.column::<i32>("hold_subcode")?.len(), events),
        (shard.column::<i32>("value")?.len(), events),
        (shard.column::<u8>("normal")?.len(), events),
    ];
    ensure!(lengths.iter().all(|(found, expected)| found == expected), "its columns have other lengths");
    ensure!(bounds.is_sorted() && bounds.last() == Some(&(events as u64)), "its job bounds are out of order");
    ensure!(shard.column::<u32>("ap")?.iter().all(|&ap| (ap as usize) < aps), "it names an unknown access point");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(jobs: usize) -> Columns {
        let mut columns = Columns::default();
        for job in 0..jobs as i32 {
            columns.push_job(0, job, 0, i64::from(job), 7);
            (0..job % 3).for_each(|n| {
                columns.push_event(&Event { number: n as u16, time_ms: i64::from(n), ..Event::default() })
            });
        }
        columns
    }

    fn summary() -> Summary {
        Summary { aps: vec!["ap".into()], events_by_number: [(12, 3)].into(), ..Summary::default() }
    }

    #[test]
    fn a_written_store_is_the_one_in_memory() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("events");
        let store = Store::in_memory(columns(10), summary());
        store.write(&path, "key", false).expect("written");
        let mapped = Store::open(&path).expect("opened");
        assert_eq!(mapped.jobs(), 10);
        for (a, b) in store.iter().zip(mapped.iter()) {
            assert_eq!(format!("{a:?}"), format!("{b:?}"));
        }
        assert!(store.write(&path, "key", false).is_err(), "an earlier store is not replaced unasked");
    }

    #[test]
    fn foreign_and_corrupt_stores_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(Store::open(dir.path()).is_err(), "no manifest");
        let path = dir.path().join("events");
        Store::in_memory(columns(10), summary()).write(&path, "key", false).expect("written");
        let shard = path.join("events-00000.safetensors");
        let other = columns(9).encode(0, 9).expect("encoded");
        fs_err::write(&shard, other).expect("written");
        let error = Store::open(&path).expect_err("other columns");
        assert!(crate::error::render(&error).contains("poolcast parse"), "{error:?}");
        let text = fs_err::read_to_string(path.join("manifest.json")).expect("read");
        fs_err::write(path.join("manifest.json"), text.replace("events-00000", "../events-00000")).expect("written");
        assert!(Store::open(&path).expect_err("outside").to_string().contains("outside it"));
    }
}
