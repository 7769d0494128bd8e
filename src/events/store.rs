//! The event store: shards of columns, written once, mapped to read; jobs and their histories as slices.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::rows::Row;
use crate::error::hinted;
use crate::eventlog::{Anomalies, Event, Generation, Place, Reasons, Resume};
use crate::files::Staging;
use crate::manifest;
use crate::shard::{Column, Format, Shard};

/// Event shards.
pub const EVENTS: Format = Format { name: "events", version: 3, rebuild: "poolcast parse LOG... -o DIR --overwrite" };

/// A shard is closed after the job that fills it; histories are never split.
const SHARD_EVENTS: usize = 4 << 20;

/// A log that went into a store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Its file name, without the directory.
    pub name: String,
    /// Its size on disk.
    pub bytes: u64,
    /// XXH3 of the file.
    pub xxh3: String,
    /// The first time stamp of an event, epoch ms.
    pub begin_ms: Option<i64>,
    /// The last one.
    pub end_ms: Option<i64>,
    /// The first anomalies, with their places.
    pub places: Vec<Place>,
    /// Its place among the generations of a global event log.
    pub generation: Option<Generation>,
    /// Where it can be read on when it has grown.
    pub resume: Option<Resume>,
}

/// A time in which events of an access point are missing: a generation of its log was not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The index of the access point.
    pub ap: u32,
    /// The last event before, epoch ms.
    pub from_ms: i64,
    /// When the generation after was created, epoch ms.
    pub to_ms: i64,
}

/// What a store says of itself in its manifest.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The digest of the options they were read with.
    pub options_key: String,
    /// The logs, in the order they were read.
    pub sources: Vec<Source>,
    /// The access points; jobs refer to them by index.
    pub aps: Vec<String>,
    /// Records of each event number, 008 and 028 included, which are not kept as events.
    pub events_by_number: BTreeMap<u16, u64>,
    /// What a sound log would not hold.
    pub anomalies: Anomalies,
    /// The templates of hold reasons.
    pub reasons: Reasons,
    /// The first time stamp, epoch ms.
    pub begin_ms: i64,
    /// The last time stamp, epoch ms: what is not known by then is not known.
    pub end_ms: i64,
    /// How many jobs.
    pub jobs: usize,
    /// Events that were there twice, and are kept once.
    pub doubles: u64,
    /// Where events are missing.
    pub gaps: Vec<Gap>,
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
    xxh3: String,
}

/// Events and jobs as they are written: `E` events sorted by job and time, `J` jobs.
#[derive(Debug, Default)]
pub(super) struct Columns {
    time_ms: Vec<i64>,
    hold_code: Vec<i32>,
    hold_subcode: Vec<i32>,
    value: Vec<i32>,
    text_hash: Vec<u32>,
    number: Vec<u16>,
    normal: Vec<u8>,
    /// `[J]`: where each job's events begin.
    first: Vec<u64>,
    submit_ms: Vec<i64>,
    global_submit_s: Vec<i64>,
    owner: Vec<u64>,
    ap: Vec<u32>,
    cluster: Vec<i32>,
    proc: Vec<i32>,
}

impl Columns {
    /// Adds a job that the id of `row` names, and what its ad says.
    pub(super) fn push_job(&mut self, row: &Row, submit_ms: i64, ad: Option<&Row>) {
        self.first.push(self.number.len() as u64);
        self.ap.push(row.ap);
        self.cluster.push(row.cluster);
        self.proc.push(row.proc);
        self.submit_ms.push(submit_ms);
        self.global_submit_s.push(ad.map_or(0, |ad| ad.time_ms / 1000));
        self.owner.push(ad.map_or(0, Row::owner));
    }

    /// Adds an event to the job pushed last.
    pub(super) fn push_event(&mut self, row: &Row) {
        self.time_ms.push(row.time_ms);
        self.hold_code.push(row.hold_code);
        self.hold_subcode.push(row.hold_subcode);
        self.value.push(row.value);
        self.text_hash.push(row.text_hash);
        self.number.push(row.number);
        self.normal.push(row.normal);
    }

    /// Whether they fill a shard.
    pub(super) fn is_full(&self) -> bool {
        self.number.len() >= SHARD_EVENTS
    }

    /// The bytes of their shard.
    fn encode(&self) -> Result<Vec<u8>> {
        let mut bounds = self.first.clone();
        bounds.push(self.number.len() as u64);
        let columns = [
            ("time_ms", Column::vector(&self.time_ms)),
            ("hold_code", Column::vector(&self.hold_code)),
            ("hold_subcode", Column::vector(&self.hold_subcode)),
            ("value", Column::vector(&self.value)),
            ("text_hash", Column::vector(&self.text_hash)),
            ("number", Column::vector(&self.number)),
            ("normal", Column::vector(&self.normal)),
            ("bounds", Column::vector(&bounds)),
            ("submit_ms", Column::vector(&self.submit_ms)),
            ("global_submit_s", Column::vector(&self.global_submit_s)),
            ("owner", Column::vector(&self.owner)),
            ("ap", Column::vector(&self.ap)),
            ("cluster", Column::vector(&self.cluster)),
            ("proc", Column::vector(&self.proc)),
        ];
        let columns = columns.map(|(name, column)| (name.to_owned(), column)).to_vec();
        crate::shard::encode(EVENTS, &serde_json::json!({}), columns)
    }
}

/// A store on its way to the disk: shards first, the manifest last.
#[derive(Debug)]
pub(super) struct Writer {
    staging: Staging,
    shards: Vec<Listed>,
}

impl Writer {
    pub(super) fn new(staging: Staging) -> Writer {
        Writer { staging, shards: Vec::new() }
    }

    pub(super) fn shard(&mut self, columns: &Columns) -> Result<()> {
        let file = format!("events-{:05}.safetensors", self.shards.len());
        let bytes = columns.encode()?;
        crate::files::write_atomic(&self.staging.path().join(&file), &bytes)?;
        let (jobs, events) = (columns.first.len(), columns.number.len());
        self.shards.push(Listed { file, jobs, events, xxh3: manifest::checksum(&bytes) });
        Ok(())
    }

    pub(super) fn commit(self, key: &str, summary: &mut Summary) -> Result<()> {
        summary.shards = self.shards;
        manifest::write(self.staging.path(), EVENTS, key, summary)?;
        self.staging.commit()
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
    /// The gaps of each access point.
    gaps: Vec<Vec<(i64, i64)>>,
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
    /// The submit time in its `GlobalJobId`, epoch s, which is `AP#cluster.proc#` and this; 0 if unknown.
    pub global_submit_s: i64,
    /// A salted hash of its owner; 0 if unknown.
    pub owner: u64,
    /// Its events.
    pub history: History<'a>,
}

impl Job<'_> {
    /// Event `at` of its history.
    pub fn event(&self, at: usize) -> Event {
        let History { time_ms, number, hold_code, hold_subcode, value, normal, text_hash } = self.history;
        Event {
            time_ms: time_ms[at],
            cluster: self.cluster,
            proc: self.proc,
            number: number[at],
            normal: normal[at],
            value: value[at],
            hold_code: hold_code[at],
            hold_subcode: hold_subcode[at],
            text_hash: text_hash[at],
        }
    }

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
    pub text_hash: &'a [u32],
}

impl Store {
    fn empty(summary: Summary) -> Store {
        let own = |ap: usize| summary.gaps.iter().filter(move |gap| gap.ap as usize == ap);
        let times = |ap: usize| own(ap).map(|gap| (gap.from_ms, gap.to_ms)).collect();
        let gaps = (0..summary.aps.len()).map(times).collect();
        Store { summary, shards: Vec::new(), starts: vec![0], gaps }
    }

    pub(super) fn in_memory(columns: &[Columns], summary: Summary) -> Result<Store> {
        let mut store = Store::empty(summary);
        for part in columns {
            store.starts.push(store.jobs() + part.first.len());
            store.shards.push(Shard::from_bytes(&part.encode()?, EVENTS)?);
        }
        Ok(store)
    }

    /// Maps the store in `dir` and checks that its shards are those its manifest lists.
    pub fn open(dir: &Path) -> Result<Store> {
        let mut summary: Summary = manifest::read(dir, EVENTS)?.body;
        let listing = std::mem::take(&mut summary.shards);
        let mut store = Store::empty(summary);
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
            global_submit_s: column(shard, "global_submit_s")[at],
            owner: column(shard, "owner")[at],
            history: History {
                time_ms: &column(shard, "time_ms")[range.clone()],
                number: &column(shard, "number")[range.clone()],
                hold_code: &column(shard, "hold_code")[range.clone()],
                hold_subcode: &column(shard, "hold_subcode")[range.clone()],
                value: &column(shard, "value")[range.clone()],
                normal: &column(shard, "normal")[range.clone()],
                text_hash: &column(shard, "text_hash")[range],
            },
        }
    }

    /// Where events of the access point `ap` are missing: from and to, epoch ms.
    pub fn gaps(&self, ap: u32) -> &[(i64, i64)] {
        self.gaps.get(ap as usize).map_or(&[], Vec::as_slice)
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
        (shard.column::<i64>("global_submit_s")?.len(), jobs),
        (shard.column::<u64>("owner")?.len(), jobs),
        (shard.column::<i64>("time_ms")?.len(), events),
        (shard.column::<u16>("number")?.len(), events),
        (shard.column::<i32>("hold_code")?.len(), events),
        (shard.column::<i32>("hold_subcode")?.len(), events),
        (shard.column::<i32>("value")?.len(), events),
        (shard.column::<u32>("text_hash")?.len(), events),
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
        for cluster in 0..jobs as i32 {
            let row =
                |number: u16| Row::event(0, &Event { cluster, number, time_ms: i64::from(number), ..Event::default() });
            columns.push_job(&row(0), i64::from(cluster), Some(&Row::ad(0, (cluster, 0), 5000, 7)));
            (0..cluster % 3).for_each(|n| columns.push_event(&row(n as u16)));
        }
        columns
    }

    fn summary(jobs: usize) -> Summary {
        Summary { aps: vec!["ap".into()], events_by_number: [(12, 3)].into(), jobs, ..Summary::default() }
    }

    fn write(path: &Path, parts: &[Columns]) {
        let mut writer = Writer::new(Staging::new(path, false).expect("staged"));
        parts.iter().for_each(|part| writer.shard(part).expect("written"));
        let jobs = parts.iter().map(|part| part.first.len()).sum();
        writer.commit("key", &mut summary(jobs)).expect("committed");
    }

    #[test]
    fn a_written_store_is_the_one_in_memory() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("events");
        let parts = [columns(10), columns(4)];
        write(&path, &parts);
        let (mapped, store) =
            (Store::open(&path).expect("opened"), Store::in_memory(&parts, summary(14)).expect("made"));
        assert_eq!((mapped.jobs(), mapped.job(12).cluster, mapped.job(12).owner), (14, 2, 7));
        for (a, b) in store.iter().zip(mapped.iter()) {
            assert_eq!(format!("{a:?}"), format!("{b:?}"));
        }
    }

    #[test]
    fn foreign_and_corrupt_stores_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(Store::open(dir.path()).is_err(), "no manifest");
        let path = dir.path().join("events");
        write(&path, &[columns(10)]);
        let shard = path.join("events-00000.safetensors");
        fs_err::write(&shard, columns(9).encode().expect("encoded")).expect("written");
        let error = Store::open(&path).expect_err("other columns");
        assert!(crate::error::render(&error).contains("poolcast parse"), "{error:?}");
        let text = fs_err::read_to_string(path.join("manifest.json")).expect("read");
        fs_err::write(path.join("manifest.json"), text.replace("events-00000", "../events-00000")).expect("written");
        assert!(Store::open(&path).expect_err("outside").to_string().contains("outside it"));
    }
}
