//! Events → columns: grouped by job, jobs told apart also where a cluster number was used again, doubles dropped.

use std::path::PathBuf;

use anyhow::Result;
use sha2::{Digest as _, Sha256};

use super::columns::Columns;
use super::rows::{Row, Rows, STRETCHES};
use super::store::{EVENTS_FORMAT, EventStore, LogGap, SourceLog, StoreSummary, Writer};
use crate::eventlog::{
    ABORTED, AD_INFORMATION, EXECUTE, EventBatch, HELD, JobEvent, LogGeneration, LogSummary,
    RELEASED, SUBMIT, TERMINATED, first_places,
};
use crate::files::StagedDirectory;
use crate::shard::Shard;

/// Two submissions of one id that are closer than this are one, told by two logs.
const SAME_SUBMISSION_MS: i64 = 60_000;

/// An event told twice has stamps this close; finer ones than seconds may differ.
const SAME_TIME_MS: i64 = 1000;

/// A store in the making.
#[derive(Debug)]
pub struct EventStoreBuilder {
    salt: String,
    rows: Rows,
    summary: StoreSummary,
    /// The number of the log's first stretch, and that of its last one so far.
    stretches: (u32, u32),
}

impl EventStoreBuilder {
    /// An empty store, of logs read with the options that `options_key` stands for. Owners are kept only as a hash of
    /// `salt` and name. What outgrows memory is put aside in `dir`; without it, everything stays in memory.
    pub fn new(salt: &str, options_key: &str, dir: Option<PathBuf>) -> EventStoreBuilder {
        let owner_salt_digest = crate::salt::digest(salt);
        let summary = StoreSummary {
            options_key: options_key.to_owned(),
            owner_salt_digest,
            ..StoreSummary::default()
        };
        EventStoreBuilder {
            salt: salt.to_owned(),
            rows: Rows::new(dir),
            summary,
            stretches: (0, 0),
        }
    }

    /// Adds events of one log. Those of no job (negative cluster or proc) are left out; they stay in the counts.
    pub fn add_batch(&mut self, batch: &EventBatch<'_>) -> Result<()> {
        let ap = self.ap(batch.ap);
        let own = |event: &&JobEvent| event.cluster >= 0 && event.proc >= 0;
        self.stretches.1 = self.stretches.0 + batch.stretch;
        let stretch = (self.stretches.1 % STRETCHES) as u8;
        for event in batch.events.iter().filter(own) {
            self.rows.push(Row::event(ap, stretch, event))?;
        }
        for ad in batch
            .ads
            .iter()
            .filter(|ad| ad.cluster >= 0 && ad.proc >= 0)
        {
            let owner = ad
                .owner
                .as_deref()
                .map_or(0, |name| owner_hash(&self.salt, name));
            let submit_ms = ad.submit_s.saturating_mul(1000);
            self.rows.push(Row::ad(
                ap,
                (ad.cluster, ad.proc),
                submit_ms,
                owner,
                ad.request,
            ))?;
        }
        Ok(())
    }

    /// Begins with all that `store` holds. If its last log has grown, that log is taken back up to where it can be read
    /// on, and is returned: what follows is to be added and ended next.
    pub fn continue_from(
        &mut self,
        store: &EventStore,
        last_has_grown: bool,
    ) -> Result<Option<SourceLog>> {
        self.summary = StoreSummary {
            jobs: 0,
            gaps: Vec::new(),
            shards: Vec::new(),
            ..store.summary.clone()
        };
        // What came after the ends of all other logs is of the last one, whose order goes on.
        let others = store.summary.sources.iter().rev().skip(1);
        let others_end_ms = others
            .filter_map(|source| source.end_ms)
            .max()
            .unwrap_or(i64::MIN);
        self.stretches = (1, 1);
        let stretch = |time_ms: i64| u8::from(last_has_grown && time_ms > others_end_ms);
        for job in store.jobs().iter() {
            if job.owner != 0 || job.global_submit_s != 0 {
                let submit_ms = job.global_submit_s * 1000;
                self.rows.push(Row::ad(
                    job.ap,
                    (job.cluster, job.proc),
                    submit_ms,
                    job.owner,
                    job.request,
                ))?;
            }
            let events = (0..job.history.number.len()).map(|at| job.event(at));
            events
                .map(|event| Row::event(job.ap, stretch(event.time_ms), &event))
                .try_for_each(|row| self.rows.push(row))?;
        }
        let Some(source) = last_has_grown.then(|| self.summary.sources.pop()).flatten() else {
            return Ok(None);
        };
        for anomaly in source.resume.iter().flat_map(|resume| &resume.tail) {
            self.summary
                .anomalies
                .entry(*anomaly)
                .and_modify(|n| *n = n.saturating_sub(1));
        }
        self.summary.anomalies.retain(|_, n| *n > 0);
        Ok(Some(source))
    }

    /// Ends a log whose events were added; `begun` is what was known of it before, if it was read on.
    pub fn end_log(&mut self, name: &str, log: LogSummary, begun: Option<&SourceLog>) -> SourceLog {
        self.stretches = (self.stretches.1 + 1, self.stretches.1 + 1);
        let summary = &mut self.summary;
        for (number, n) in &log.records_by_number {
            *summary.events_by_number.entry(*number).or_default() += n;
        }
        for (anomaly, n) in &log.anomalies {
            *summary.anomalies.entry(*anomaly).or_default() += n;
        }
        summary.reasons.extend(log.reasons);
        let offset = begun
            .and_then(|begun| begun.resume.as_ref())
            .map_or(0, |resume| resume.offset);
        let earlier = begun
            .into_iter()
            .flat_map(|begun| &begun.places)
            .filter(|place| place.offset < offset);
        let begun_ms = begun.and_then(|begun| begun.begin_ms);
        let generation = begun
            .and_then(|begun| begun.generation.clone())
            .or(log.generation);
        let source = SourceLog {
            name: name.to_owned(),
            bytes: log.file_bytes,
            xxh3: log.file_xxh3,
            begin_ms: [begun_ms, log.begin_ms].into_iter().flatten().min(),
            end_ms: begun.and_then(|begun| begun.end_ms).max(log.end_ms),
            places: first_places(earlier.chain(&log.places)),
            hosts: begun
                .map(|begun| begun.hosts.clone())
                .unwrap_or_default()
                .into_iter()
                .chain(log.hosts)
                .collect(),
            generation: generation.map(|generation| LogGeneration {
                bytes: log.bytes,
                ..generation
            }),
            resume: log.resume,
        };
        summary.sources.push(source.clone());
        source
    }

    fn ap(&mut self, name: &str) -> u32 {
        let aps = &mut self.summary.aps;
        let index = aps
            .iter()
            .position(|known| known == name)
            .unwrap_or_else(|| {
                aps.push(name.to_owned());
                aps.len() - 1
            });
        index as u32
    }

    /// Where a generation is missing between two others, or the end of the first of them.
    fn gaps(&mut self) -> Vec<LogGap> {
        let mut generations = Vec::new();
        for source in self.summary.sources.clone() {
            if let Some(generation) = source.generation {
                let end_ms = source.end_ms.unwrap_or(generation.created_ms);
                generations.push((self.ap(&generation.ap), generation, end_ms));
            }
        }
        generations.sort_by_key(|(ap, generation, end_ms)| {
            (*ap, generation.sequence, generation.created_ms, *end_ms)
        });
        let pairs = generations.iter().zip(generations.iter().skip(1));
        let pairs =
            pairs.filter(|((ap, one, _), (other, next, _))| ap == other && lacks(one, next));
        pairs
            .map(|((ap, _, end), (_, next, _))| LogGap {
                ap: *ap,
                from_ms: *end,
                to_ms: next.created_ms.max(*end),
            })
            .collect()
    }

    /// Writes the store to `staging` and commits it.
    pub fn write_store(self, staging: StagedDirectory, key: &str) -> Result<StoreSummary> {
        let mut writer = Writer::new(staging);
        let mut summary = self.columns(|columns| writer.shard(columns))?;
        writer.commit(key, &mut summary)?;
        Ok(summary)
    }

    /// The store in memory.
    pub fn into_store(self) -> Result<EventStore> {
        let mut shards = Vec::new();
        let summary = self.columns(|columns| {
            shards.push(Shard::from_bytes(
                &columns.layout()?.bytes(),
                EVENTS_FORMAT,
            )?);
            Ok(())
        })?;
        EventStore::in_memory(shards, summary)
    }

    /// Puts the rows together by job; `shard` takes columns whenever a shard is full, and at the end.
    fn columns(mut self, mut shard: impl FnMut(&Columns) -> Result<()>) -> Result<StoreSummary> {
        let gaps = self.gaps();
        let sources = &self.summary.sources;
        let begin_ms = sources
            .iter()
            .filter_map(|source| source.begin_ms)
            .min()
            .unwrap_or(0);
        let end_ms = sources
            .iter()
            .filter_map(|source| source.end_ms)
            .max()
            .unwrap_or(0);
        let mut summary = StoreSummary {
            gaps,
            begin_ms,
            end_ms,
            ..self.summary
        };
        let mut columns = Columns::new(self.rows.count());
        let mut ads = Vec::new();
        self.rows.each_job(|same_id| {
            ads.clear();
            ads.extend(same_id.extract_if(.., |row| row.number == AD_INFORMATION));
            let (jobs, doubles) = push_jobs(same_id, &ads, &mut columns);
            summary.jobs += jobs;
            summary.doubles += doubles;
            if columns.is_full() {
                shard(&columns)?;
                columns.clear();
            }
            Ok(())
        })?;
        shard(&columns)?;
        Ok(summary)
    }
}

/// Adds the jobs that one id named, of which `ads` tell; returns how many, and how many events were there twice.
fn push_jobs(same_id: &mut Vec<Row>, ads: &[Row], columns: &mut Columns) -> (usize, u64) {
    let doubles = drop_doubles(same_id);
    let lives = lives(same_id);
    for job in &lives {
        let submit_ms = job
            .iter()
            .find(|row| row.number == SUBMIT)
            .unwrap_or(&job[0])
            .time_ms;
        let ad = ads.iter().min_by_key(|ad| (ad.time_ms - submit_ms).abs());
        columns.push_job(job, submit_ms, ad);
    }
    (lives.len(), doubles)
}

/// HTCondor writes an event at least once, and generations of a log may overlap: of equal events of one time, the first
/// stays. In one stretch of a log they are one only if the job was in no other state between them: it can be held, released
/// and held in one second. Returns how many were dropped.
fn drop_doubles(events: &mut Vec<Row>) -> u64 {
    let mut kept = 0;
    for at in 0..events.len() {
        let row = events[at];
        match is_double(&events[..kept], &row) {
            // Told by this stretch, too: what it tells once more may be another event.
            Some(earlier) => events[earlier].cpus_or_stretch = row.cpus_or_stretch,
            None => {
                events[kept] = row;
                kept += 1;
            }
        }
    }
    let doubles = events.len() - kept;
    events.truncate(kept);
    doubles as u64
}

/// The place of the event that `row` tells again, among those `kept` before it.
fn is_double(kept: &[Row], row: &Row) -> Option<usize> {
    let is_near = |earlier: &&Row| row.time_ms - earlier.time_ms < SAME_TIME_MS;
    let near = kept.len() - kept.iter().rev().take_while(is_near).count();
    let said = |row: &Row| (row.number, row.text_hash);
    (near..kept.len())
        .filter(|&at| said(&kept[at]) == said(row))
        .find(|&at| {
            let other_log = kept[at].cpus_or_stretch != row.cpus_or_stretch;
            let same_log = || {
                kept[at + 1..]
                    .iter()
                    .filter(|between| between.cpus_or_stretch == row.cpus_or_stretch)
            };
            other_log || !same_log().any(|between| is_state(between.number))
        })
}

/// Whether a job is in another state after an event of this number.
fn is_state(number: u16) -> bool {
    matches!(
        number,
        SUBMIT | EXECUTE | TERMINATED | ABORTED | HELD | RELEASED
    )
}

/// One id can name several jobs in turn, after a job queue was wiped: a submission after an end, or long after another
/// submission, begins a new one.
fn lives(same_id: &[Row]) -> Vec<&[Row]> {
    let mut lives = Vec::new();
    let (mut start, mut ended, mut submit_ms) = (0, false, None);
    for (i, row) in same_id.iter().enumerate() {
        if row.number == SUBMIT {
            let again =
                submit_ms.is_some_and(|submit_ms| row.time_ms - submit_ms > SAME_SUBMISSION_MS);
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

/// Whether something is missing between the generations `one` and `next`, of which the writer has said where it begins.
fn lacks(one: &LogGeneration, next: &LogGeneration) -> bool {
    let ends_early = one.bytes > 0 && one.offset + one.bytes < next.offset;
    next.sequence > one.sequence + 1 || (next.sequence == one.sequence + 1 && ends_early)
}

/// Never 0, which stands for an unknown owner.
fn owner_hash(salt: &str, owner: &str) -> u64 {
    let digest = Sha256::new()
        .chain_update(salt)
        .chain_update([0])
        .chain_update(owner)
        .finalize();
    u64::from_le_bytes(digest[..8].try_into().expect("eight bytes")).max(1)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::eventlog::{JobAd, ResourceRequest};

    /// A store in memory of `events`, all of one log; for tests of other modules, too.
    pub(crate) fn store_of(events: &[JobEvent]) -> EventStore {
        let mut builder = EventStoreBuilder::new("", "", None);
        let mut in_time = events.to_vec();
        in_time.sort_by_key(|event| event.time_ms);
        builder
            .add_batch(&EventBatch {
                ap: "ap",
                events: &in_time,
                ads: &[],
                stretch: 0,
            })
            .expect("added");
        let times = || events.iter().map(|event| event.time_ms);
        let log = LogSummary {
            begin_ms: times().min(),
            end_ms: times().max(),
            ..LogSummary::default()
        };
        builder.end_log("log", log, None);
        builder.into_store().expect("built")
    }

    fn store(events: &[(i32, i64, u16)]) -> EventStore {
        let event = |&(cluster, time_ms, number): &(i32, i64, u16)| JobEvent {
            cluster,
            time_ms,
            number,
            ..JobEvent::default()
        };
        store_of(&events.iter().map(event).collect::<Vec<_>>())
    }

    #[test]
    fn histories_are_in_time_order() {
        let store = store(&[(2, 7, 0), (1, 10, 0), (-1, 5, 8), (1, 20, 1), (1, 30, 5)]);
        assert_eq!(store.jobs().len(), 2);
        let job = store.jobs().get(0);
        assert_eq!(
            (job.cluster, job.submit_ms, job.history.number),
            (1, 10, &[0u16, 1, 5][..])
        );
    }

    #[test]
    fn a_number_used_again_is_another_job() {
        let events = [
            (1, 10, 0),
            (1, 20, 5),
            (1, 21, 12),
            (1, 22, 13),
            (1, 23, 5),
            (1, 500, 0),
            (1, 510, 12),
        ];
        let reused = store(&events);
        assert_eq!(
            reused.jobs().len(),
            2,
            "a hold after an end is the same job, a submission is another"
        );
        assert_eq!(
            (
                reused.jobs().get(1).submit_ms,
                reused.jobs().get(1).history.number
            ),
            (500, &[0u16, 12][..])
        );
        assert_eq!(
            store(&[(1, 10, 0), (1, 900, 0)]).jobs().len(),
            1,
            "one submission, told by two logs"
        );
        assert_eq!(
            store(&[(1, 10, 0), (1, 90_000, 0)]).jobs().len(),
            2,
            "the end of the first was not seen"
        );
    }

    #[test]
    fn doubles_are_dropped_and_counted() {
        let found = store(&[
            (1, 10, 0),
            (1, 20, 12),
            (1, 20, 4),
            (1, 20, 12),
            (1, 3000, 12),
        ]);
        assert_eq!(found.jobs().get(0).history.number, [0u16, 12, 4, 12]);
        assert_eq!(found.summary.doubles, 1);
    }

    /// Logs of one job, each of (time in ms, number): what is kept, and how many doubles were dropped.
    fn told(logs: &[&[(i64, u16)]]) -> (Vec<u16>, u64) {
        let mut builder = EventStoreBuilder::new("", "", None);
        for log in logs {
            let event = |&(time_ms, number)| JobEvent {
                cluster: 1,
                time_ms,
                number,
                ..JobEvent::default()
            };
            let events: Vec<JobEvent> = log.iter().map(event).collect();
            builder
                .add_batch(&EventBatch {
                    ap: "ap",
                    events: &events,
                    ads: &[],
                    stretch: 0,
                })
                .expect("added");
            builder.end_log("log", LogSummary::default(), None);
        }
        let store = builder.into_store().expect("built");
        (
            store.jobs().get(0).history.number.to_vec(),
            store.summary.doubles,
        )
    }

    #[test]
    fn held_released_and_held_in_one_second_are_two_holds() {
        let burst = &[(5, 0), (20, 12), (20, 13), (20, 12)];
        assert_eq!(told(&[burst]), (vec![0, 12, 13, 12], 0));
        assert_eq!(
            told(&[burst, burst]),
            (vec![0, 12, 13, 12], 4),
            "told by two logs"
        );
        assert_eq!(
            told(&[burst, &[(20, 13), (20, 12)]]),
            (vec![0, 12, 13, 12], 2),
            "the end of it"
        );
        assert_eq!(
            told(&[&[(20, 12), (20, 12), (20, 13), (20, 12), (20, 13), (20, 13)]]),
            (vec![12, 13, 12, 13], 2)
        );
    }

    #[test]
    fn a_hold_told_twice_within_a_second_is_one() {
        assert_eq!(
            told(&[&[(5, 0), (20_123, 12), (20_124, 12), (30_000, 13)]]),
            (vec![0, 12, 13], 1)
        );
        assert_eq!(
            told(&[&[(20_123, 12), (20_124, 13), (20_125, 12)]]),
            (vec![12, 13, 12], 0)
        );
        assert_eq!(
            told(&[&[(20_123, 12), (21_123, 12)]]),
            (vec![12, 12], 0),
            "a second apart"
        );
        assert_eq!(
            told(&[&[(20_123, 12)], &[(20_000, 12), (22_000, 13)]]),
            (vec![12, 13], 1),
            "stamps of two forms"
        );
    }

    #[test]
    fn ads_tell_the_owner_and_when_each_job_was_submitted() {
        let mut builder = EventStoreBuilder::new("salt", "", None);
        let event = |time_ms, number| JobEvent {
            cluster: 1,
            time_ms,
            number,
            ..JobEvent::default()
        };
        let request = |memory_mb| ResourceRequest {
            memory_mb,
            ..ResourceRequest::default()
        };
        let ad = |submit_s, owner: &str, memory_mb| JobAd {
            cluster: 1,
            proc: 0,
            schedd: "s".into(),
            submit_s,
            owner: Some(owner.into()),
            request: request(memory_mb),
        };
        let events = [event(10_000, 0), event(20_000, 5), event(500_000, 0)];
        let ads = [ad(500, "eve", 7), ad(9, "ada", 100), ad(9, "ada", 200)];
        builder
            .add_batch(&EventBatch {
                ap: "s",
                events: &events,
                ads: &ads,
                stretch: 0,
            })
            .expect("added");
        let store = builder.into_store().expect("built");
        let known: Vec<_> = store
            .jobs()
            .iter()
            .map(|job| (job.global_submit_s, job.owner, job.request))
            .collect();
        let first = "what it asked for first: later requests would tell what came after";
        let expected = [
            (9, owner_hash("salt", "ada"), request(100)),
            (500, owner_hash("salt", "eve"), request(7)),
        ];
        assert_eq!(known, expected, "{first}");
    }

    #[test]
    fn a_missing_generation_is_a_gap_and_so_is_a_missing_end() {
        let gaps = |generations: &[(u64, i64, i64, u64, u64)]| {
            let mut builder = EventStoreBuilder::new("", "", None);
            for &(sequence, created_ms, end_ms, offset, bytes) in generations {
                let generation = Some(LogGeneration {
                    ap: "ap".into(),
                    sequence,
                    created_ms,
                    offset,
                    bytes,
                });
                let log = LogSummary {
                    generation,
                    bytes,
                    begin_ms: Some(created_ms),
                    end_ms: Some(end_ms),
                    ..LogSummary::default()
                };
                builder.end_log("log", log, None);
            }
            let store = builder.into_store().expect("built");
            assert_eq!((store.summary.begin_ms, store.summary.end_ms), (100, 700));
            store.summary.gaps
        };
        let gap = |from_ms, to_ms| LogGap {
            ap: 0,
            from_ms,
            to_ms,
        };
        assert_eq!(
            gaps(&[
                (5, 600, 700, 0, 9),
                (2, 100, 200, 0, 9),
                (3, 201, 300, 0, 9)
            ]),
            [gap(300, 600)]
        );
        assert_eq!(
            gaps(&[
                (1, 100, 200, 0, 90),
                (2, 201, 300, 90, 9),
                (3, 301, 700, 99, 9)
            ]),
            []
        );
        assert_eq!(
            gaps(&[
                (1, 100, 200, 0, 80),
                (2, 250, 300, 90, 9),
                (3, 301, 700, 99, 9)
            ]),
            [gap(200, 250)]
        );
    }

    #[test]
    fn going_on_gives_what_one_reading_gives() {
        let event = |cluster, time_ms, number, text_hash| JobEvent {
            cluster,
            time_ms,
            number,
            text_hash,
            ..JobEvent::default()
        };
        let ad = JobAd {
            cluster: 1,
            proc: 0,
            schedd: "s".into(),
            submit_s: 0,
            owner: Some("ada".into()),
            request: ResourceRequest::default(),
        };
        let first = [
            event(1, 10, 0, 1),
            event(1, 20, 12, 2),
            event(2, 5, 0, 3),
            event(2, 5, 1, 3),
        ];
        // A double of what was there before, an event of the same time, and a new job before an old one.
        let second = [
            event(1, 20, 12, 2),
            event(1, 20, 13, 4),
            event(1, 30, 5, 5),
            event(0, 9, 0, 6),
        ];
        let end = |builder: &mut EventStoreBuilder, begin_ms, end_ms| {
            builder.end_log(
                "log",
                LogSummary {
                    begin_ms: Some(begin_ms),
                    end_ms: Some(end_ms),
                    ..LogSummary::default()
                },
                None,
            );
        };
        let mut whole = EventStoreBuilder::new("", "", None);
        whole
            .add_batch(&EventBatch {
                ap: "s",
                events: &first,
                ads: std::slice::from_ref(&ad),
                stretch: 0,
            })
            .expect("added");
        end(&mut whole, 5, 20);
        let mut builder = EventStoreBuilder::new("", "", None);
        builder
            .add_batch(&EventBatch {
                ap: "s",
                events: &first,
                ads: &[ad],
                stretch: 0,
            })
            .expect("added");
        end(&mut builder, 5, 20);
        let store = builder.into_store().expect("built");
        let mut on = EventStoreBuilder::new("", "", None);
        assert_eq!(on.continue_from(&store, false).expect("begun"), None);
        for builder in [&mut whole, &mut on] {
            builder
                .add_batch(&EventBatch {
                    ap: "s",
                    events: &second,
                    ads: &[],
                    stretch: 0,
                })
                .expect("added");
            end(builder, 9, 30);
        }
        let (whole, on) = (
            whole.into_store().expect("built"),
            on.into_store().expect("built"),
        );
        assert_eq!(format!("{:?}", whole.summary), format!("{:?}", on.summary));
        assert_eq!(
            whole
                .jobs()
                .iter()
                .map(|job| format!("{job:?}"))
                .collect::<Vec<_>>(),
            on.jobs()
                .iter()
                .map(|job| format!("{job:?}"))
                .collect::<Vec<_>>()
        );
        assert_eq!(
            (on.jobs().len(), on.summary.doubles, on.jobs().get(1).owner),
            (3, 1, owner_hash("", "ada"))
        );
    }

    #[test]
    fn owners_are_salted() {
        assert_ne!(owner_hash("a", "ada"), owner_hash("b", "ada"));
        assert_eq!(owner_hash("a", "ada"), owner_hash("a", "ada"));
    }
}
