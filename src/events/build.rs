//! Events → columns: grouped by job, jobs told apart also where a cluster number was used again, doubles dropped.

use std::path::PathBuf;

use anyhow::Result;
use sha2::{Digest as _, Sha256};

use super::rows::{Row, Rows};
use super::store::{Columns, Gap, Source, Store, Summary, Writer};
use crate::eventlog::{ABORTED, AD_INFORMATION, Batch, Event, Log, SUBMIT, TERMINATED};
use crate::files::Staging;

/// Two submissions of one id that are closer than this are one, told by two logs.
const SAME_SUBMISSION_MS: i64 = 60_000;

/// A store in the making.
#[derive(Debug)]
pub struct Builder {
    salt: String,
    rows: Rows,
    summary: Summary,
    /// What ends each log that named its place among the generations of a global event log.
    generations: Vec<(u32, u64, i64, i64)>,
}

impl Builder {
    /// An empty store. Owners are kept only as a hash of `salt` and name. What outgrows memory is put aside in `dir`;
    /// without it, everything stays in memory.
    pub fn new(salt: &str, dir: Option<PathBuf>) -> Builder {
        Builder { salt: salt.to_owned(), rows: Rows::new(dir), summary: Summary::default(), generations: Vec::new() }
    }

    /// Adds events of one log. Those of no job (negative cluster or proc) are left out; they stay in the counts.
    pub fn add(&mut self, batch: &Batch<'_>) -> Result<()> {
        let ap = self.ap(batch.ap);
        let own = |event: &&Event| event.cluster >= 0 && event.proc >= 0;
        for event in batch.events.iter().filter(own) {
            self.rows.push(Row::event(ap, event))?;
        }
        for ad in batch.ads.iter().filter(|ad| ad.cluster >= 0 && ad.proc >= 0) {
            let owner = ad.owner.as_deref().map_or(0, |name| owner_hash(&self.salt, name));
            self.rows.push(Row::ad(ap, (ad.cluster, ad.proc), ad.submit_s.saturating_mul(1000), owner))?;
        }
        Ok(())
    }

    /// Ends a log whose events were added.
    pub fn end_log(&mut self, source: Source, log: &Log) {
        let summary = &mut self.summary;
        for (number, n) in &log.records_by_number {
            *summary.events_by_number.entry(*number).or_default() += n;
        }
        for (anomaly, n) in &log.anomalies {
            *summary.anomalies.entry(*anomaly).or_default() += n;
        }
        if let Some((begin_ms, end_ms)) = log.begin_ms.zip(log.end_ms) {
            let first = summary.sources.iter().all(|source| source.begin_ms.is_none());
            summary.begin_ms = if first { begin_ms } else { summary.begin_ms.min(begin_ms) };
            summary.end_ms = if first { end_ms } else { summary.end_ms.max(end_ms) };
        }
        if let Some(generation) = &log.generation {
            let ap = self.ap(&generation.ap);
            let end_ms = log.end_ms.unwrap_or(generation.created_ms);
            self.generations.push((ap, generation.sequence, generation.created_ms, end_ms));
        }
        self.summary.sources.push(Source { begin_ms: log.begin_ms, places: log.places.clone(), ..source });
    }

    fn ap(&mut self, name: &str) -> u32 {
        let aps = &mut self.summary.aps;
        let index = aps.iter().position(|known| known == name).unwrap_or_else(|| {
            aps.push(name.to_owned());
            aps.len() - 1
        });
        index as u32
    }

    /// Where a generation is missing between two others.
    fn gaps(&mut self) -> Vec<Gap> {
        self.generations.sort_unstable();
        let pairs = self.generations.windows(2).filter(|pair| pair[0].0 == pair[1].0 && pair[1].1 > pair[0].1 + 1);
        pairs.map(|pair| Gap { ap: pair[0].0, from_ms: pair[0].3, to_ms: pair[1].2.max(pair[0].3) }).collect()
    }

    /// Writes the store to `staging` and commits it.
    pub fn write(self, staging: Staging, key: &str) -> Result<Summary> {
        let mut writer = Writer::new(staging);
        let mut summary = self.columns(|columns| writer.shard(&columns))?;
        writer.commit(key, &mut summary)?;
        Ok(summary)
    }

    /// The store in memory.
    pub fn store(self) -> Result<Store> {
        let mut shards = Vec::new();
        let summary = self.columns(|columns| {
            shards.push(columns);
            Ok(())
        })?;
        Store::in_memory(&shards, summary)
    }

    /// Puts the rows together by job; `shard` takes columns whenever a shard is full, and at the end.
    fn columns(mut self, mut shard: impl FnMut(Columns) -> Result<()>) -> Result<Summary> {
        let mut summary = Summary { gaps: self.gaps(), ..self.summary };
        let mut columns = Columns::default();
        let mut same_id: Vec<Row> = Vec::new();
        let mut end_id = |same_id: &mut Vec<Row>, columns: &mut Columns| {
            let (jobs, doubles) = push_jobs(same_id, columns);
            summary.jobs += jobs;
            summary.doubles += doubles;
            same_id.clear();
            if columns.is_full() { shard(std::mem::take(columns)) } else { Ok(()) }
        };
        self.rows.for_each(|row| {
            if same_id.first().is_some_and(|first| first.id() != row.id()) {
                end_id(&mut same_id, &mut columns)?;
            }
            same_id.push(row);
            Ok(())
        })?;
        end_id(&mut same_id, &mut columns)?;
        shard(columns)?;
        Ok(summary)
    }
}

/// Adds the jobs that one id named; returns how many, and how many events were there twice.
fn push_jobs(same_id: &[Row], columns: &mut Columns) -> (usize, u64) {
    let (ads, events): (Vec<Row>, Vec<Row>) = same_id.iter().partition(|row| row.number == AD_INFORMATION);
    let once = without_doubles(&events);
    let lives = lives(&once);
    for job in &lives {
        let submit_ms = job.iter().find(|row| row.number == SUBMIT).unwrap_or(&job[0]).time_ms;
        let ad = ads.iter().min_by_key(|ad| (ad.time_ms - submit_ms).abs());
        columns.push_job(&job[0], submit_ms, ad);
        job.iter().for_each(|row| columns.push_event(row));
    }
    (lives.len(), (events.len() - once.len()) as u64)
}

/// HTCondor writes an event at least once, and generations of a log may overlap: of equal events of one time, the first.
fn without_doubles(events: &[Row]) -> Vec<Row> {
    let mut once: Vec<Row> = Vec::with_capacity(events.len());
    for row in events {
        let same_time = once.iter().rev().take_while(|earlier| earlier.time_ms == row.time_ms);
        let said = |row: &Row| (row.number, row.text_hash);
        if !same_time.into_iter().any(|earlier| said(earlier) == said(row)) {
            once.push(*row);
        }
    }
    once
}

/// One id can name several jobs in turn, after a job queue was wiped: a submission after an end, or long after another
/// submission, begins a new one.
fn lives(same_id: &[Row]) -> Vec<&[Row]> {
    let mut lives = Vec::new();
    let (mut start, mut ended, mut submit_ms) = (0, false, None);
    for (i, row) in same_id.iter().enumerate() {
        if row.number == SUBMIT {
            let again = submit_ms.is_some_and(|submit_ms| row.time_ms - submit_ms > SAME_SUBMISSION_MS);
            if ended || again {
                lives.push(&same_id[start..i]);
                (start, ended) = (i, false);
            }
            submit_ms = Some(row.time_ms);
        }
        ended |= matches!(row.number, TERMINATED | ABORTED);
    }
    lives.extend((start < same_id.len()).then(|| &same_id[start..]));
    lives
}

/// Never 0, which stands for an unknown owner.
fn owner_hash(salt: &str, owner: &str) -> u64 {
    let digest = Sha256::new().chain_update(salt).chain_update([0]).chain_update(owner).finalize();
    u64::from_le_bytes(digest[..8].try_into().expect("eight bytes")).max(1)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::eventlog::{Ad, Generation};

    /// A store in memory of `events`, all of one log; for tests of other modules, too.
    pub(crate) fn store_of(events: &[Event]) -> Store {
        let mut builder = Builder::new("", None);
        builder.add(&Batch { ap: "ap", events, ads: &[] }).expect("added");
        let times = || events.iter().map(|event| event.time_ms);
        let log = Log { begin_ms: times().min(), end_ms: times().max(), ..Log::default() };
        builder.end_log(Source::default(), &log);
        builder.store().expect("built")
    }

    fn store(events: &[(i32, i64, u16)]) -> Store {
        let event =
            |&(cluster, time_ms, number): &(i32, i64, u16)| Event { cluster, time_ms, number, ..Event::default() };
        store_of(&events.iter().map(event).collect::<Vec<_>>())
    }

    #[test]
    fn histories_are_in_time_order() {
        let store = store(&[(1, 30, 5), (2, 7, 0), (1, 10, 0), (1, 20, 1), (-1, 5, 8)]);
        assert_eq!(store.jobs(), 2);
        let job = store.job(0);
        assert_eq!((job.cluster, job.submit_ms, job.history.number), (1, 10, &[0u16, 1, 5][..]));
    }

    #[test]
    fn a_number_used_again_is_another_job() {
        let events = [(1, 10, 0), (1, 20, 5), (1, 21, 12), (1, 22, 13), (1, 23, 5), (1, 500, 0), (1, 510, 12)];
        let reused = store(&events);
        assert_eq!(reused.jobs(), 2, "a hold after an end is the same job, a submission is another");
        assert_eq!((reused.job(1).submit_ms, reused.job(1).history.number), (500, &[0u16, 12][..]));
        assert_eq!(store(&[(1, 10, 0), (1, 900, 0)]).jobs(), 1, "one submission, told by two logs");
        assert_eq!(store(&[(1, 10, 0), (1, 90_000, 0)]).jobs(), 2, "the end of the first was not seen");
    }

    #[test]
    fn doubles_are_dropped_and_counted() {
        let found = store(&[(1, 10, 0), (1, 20, 12), (1, 20, 4), (1, 20, 12), (1, 30, 12)]);
        assert_eq!(found.job(0).history.number, [0u16, 12, 4, 12]);
        assert_eq!(found.summary.doubles, 1);
    }

    #[test]
    fn ads_tell_the_owner_and_when_each_job_was_submitted() {
        let mut builder = Builder::new("salt", None);
        let event = |time_ms, number| Event { cluster: 1, time_ms, number, ..Event::default() };
        let ad =
            |submit_s, owner: &str| Ad { cluster: 1, proc: 0, schedd: "s".into(), submit_s, owner: Some(owner.into()) };
        let events = [event(10_000, 0), event(20_000, 5), event(500_000, 0)];
        builder.add(&Batch { ap: "s", events: &events, ads: &[ad(500, "eve"), ad(9, "ada")] }).expect("added");
        let store = builder.store().expect("built");
        let known: Vec<_> = store.iter().map(|job| (job.global_submit_s, job.owner)).collect();
        assert_eq!(known, [(9, owner_hash("salt", "ada")), (500, owner_hash("salt", "eve"))]);
    }

    #[test]
    fn a_missing_generation_is_a_gap() {
        let mut builder = Builder::new("", None);
        let mut end = |sequence, created_ms, end_ms| {
            let generation = Some(Generation { ap: "ap".into(), sequence, created_ms });
            let log = Log { generation, begin_ms: Some(created_ms), end_ms: Some(end_ms), ..Log::default() };
            builder.end_log(Source::default(), &log);
        };
        end(5, 600, 700);
        end(2, 100, 200);
        end(3, 201, 300);
        let store = builder.store().expect("built");
        assert_eq!(store.summary.gaps, [Gap { ap: 0, from_ms: 300, to_ms: 600 }]);
        assert_eq!((store.summary.begin_ms, store.summary.end_ms), (100, 700));
    }

    #[test]
    fn owners_are_salted() {
        assert_ne!(owner_hash("a", "ada"), owner_hash("b", "ada"));
        assert_eq!(owner_hash("a", "ada"), owner_hash("a", "ada"));
    }
}
