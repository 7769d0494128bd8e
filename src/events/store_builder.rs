//! Builds a store from the events of many logs: groups the events by job, and adds them to the jobs
//! of an earlier store.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::access_points::AccessPoints;
use super::earlier_shards::EarlierShards;
use super::format::EVENTS_FORMAT;
use super::job_row::{AdPart, AdRow, EventRow, InputRow, JobRow, LogStretch, StoredId};
use super::log_gaps::find_gaps;
use super::row_sorter::RowSorter;
use super::salted_names::SaltedNames;
use super::shard_sequence::{NextShard, SHARD_SIZES, ShardSequence, ShardSizes, TakeShard};
use super::store::{EventStore, StoreWriter};
use super::store_summary::{SourceLog, StoreSummary};
use htcondor_eventlog::{
    EventBatch, InputFile, JobEvent, LogGeneration, LogSummary, first_positions,
};
use poolcast_base::files::StagedDirectory;
use poolcast_base::shard::Shard;

/// A store under construction.
#[derive(Debug)]
pub struct EventStoreBuilder {
    salted_names: SaltedNames,
    rows: RowSorter,
    sizes: ShardSizes,
    /// The content of an earlier store that is not repeated in `rows`.
    earlier: EarlierShards,
    /// The access points, which the summary gets at the end.
    aps: AccessPoints,
    summary: StoreSummary,
    /// Number of the first stretch of the current log.
    first_stretch: u32,
    /// Number of its last stretch so far.
    last_stretch: u32,
    /// Events after this time are left out, epoch ms; `None` if the store gets all.
    until_ms: Option<i64>,
}

impl EventStoreBuilder {
    /// Creates an empty store for logs that are read with the options of `options_key`.
    ///
    /// The store keeps names, for instance of owners, only as hashes of `salt` and name. Rows that
    /// do not fit in memory are written to `dir`. Without `dir`, all rows stay in memory.
    pub fn new(salt: &str, options_key: &str, dir: Option<PathBuf>) -> EventStoreBuilder {
        EventStoreBuilder {
            salted_names: SaltedNames::new(salt),
            rows: RowSorter::new(dir),
            sizes: SHARD_SIZES,
            earlier: EarlierShards::default(),
            aps: AccessPoints::default(),
            summary: StoreSummary {
                options_key: options_key.to_owned(),
                owner_salt_digest: poolcast_base::salt::digest(salt),
                ..StoreSummary::default()
            },
            first_stretch: 0,
            last_stretch: 0,
            until_ms: None,
        }
    }

    /// Leaves out what happens after `until_ms`, epoch ms, as if the logs were read then.
    pub(super) fn leave_out_after(&mut self, until_ms: i64) {
        self.until_ms = Some(until_ms);
    }

    /// Adds events of one log. Events without a job (negative cluster or proc) are skipped, but
    /// stay in the counts.
    pub fn add_batch(&mut self, batch: &EventBatch<'_>) -> Result<()> {
        self.last_stretch = self.first_stretch + batch.stretch;
        let stretch = LogStretch::numbered(self.last_stretch);
        let until_ms = self.until_ms.unwrap_or(i64::MAX);
        let is_past = |event: &&JobEvent| event.time_ms <= until_ms;
        // An access point whose events are all left out is not known yet.
        if !batch.events.is_empty() && !batch.events.iter().any(|event| is_past(&event)) {
            return Ok(());
        }

        let ap = self.aps.index(batch.ap);
        for event in batch.events.iter().filter(is_past) {
            if event.cluster >= 0 && event.proc >= 0 {
                let facts = self.salted_names.of_event(event.number, event.facts);
                let row = EventRow::new(ap, stretch, &JobEvent { facts, ..*event });
                self.rows.push(JobRow::Event(row))?;
            }
        }

        for ad in batch.ads {
            if ad.cluster >= 0 && ad.proc >= 0 {
                let id = StoredId {
                    ap,
                    cluster: ad.cluster,
                    proc: ad.proc,
                };
                let submit_ms = ad.submit_s.saturating_mul(1000);
                let owner = ad
                    .owner
                    .as_deref()
                    .map_or(0, |name| self.salted_names.owner_hash(name));
                let names = self.salted_names.salted_submission(ad.names);
                let row = AdRow::new(id, submit_ms, owner, ad.request, names);
                self.rows.push(JobRow::Ad(AdPart::Main(row)))?;
                for &input in &ad.inputs {
                    let input = self.salted_names.salted_input(input);
                    self.add_input(id, submit_ms, input)?;
                }
            }
        }
        Ok(())
    }

    /// Adds an input file of a job, whose hashes must be salted.
    fn add_input(&mut self, id: StoredId, submit_ms: i64, input: InputFile) -> Result<()> {
        let row = InputRow {
            id,
            submit_ms,
            input,
        };
        self.rows.push(JobRow::Ad(AdPart::Input(row)))
    }

    /// Starts from all content of the store in `dir`, whose manifest is `store`. If its last log has
    /// grown, rolls that log back to its resume point and returns it. The caller must add the rest
    /// of that log next, and end it.
    pub fn continue_from(
        &mut self,
        dir: &Path,
        store: &StoreSummary,
        last_has_grown: bool,
    ) -> Option<SourceLog> {
        self.summary = StoreSummary {
            jobs: 0,
            gaps: Vec::new(),
            shards: Vec::new(),
            ..store.clone()
        };
        self.aps = AccessPoints::new(&store.aps);
        self.earlier = EarlierShards::new(dir, store, last_has_grown);
        self.first_stretch = 1;
        self.last_stretch = 1;

        if !last_has_grown {
            return None;
        }
        let source = self.summary.sources.pop()?;
        // The anomalies after the last whole record will be found again.
        for anomaly in source.resume.iter().flat_map(|resume| &resume.tail) {
            if let Some(count) = self.summary.anomalies.get_mut(anomaly) {
                *count = count.saturating_sub(1);
            }
        }
        self.summary.anomalies.retain(|_, count| *count > 0);
        Some(source)
    }

    /// Gives the logs of the earlier store the `names` that they have now.
    pub(super) fn rename_logs(&mut self, names: impl IntoIterator<Item = String>) {
        for (source, name) in self.summary.sources.iter_mut().zip(names) {
            source.name = name;
        }
    }

    /// Ends a log whose events were added. `name` and `xxh3` are the name and the checksum of its
    /// file. `begun` is the earlier summary of the log, if its reading was resumed.
    pub fn end_log(
        &mut self,
        name: &str,
        xxh3: &str,
        log: LogSummary,
        begun: Option<&SourceLog>,
    ) -> SourceLog {
        self.first_stretch = self.last_stretch + 1;
        self.last_stretch = self.first_stretch;

        let summary = &mut self.summary;
        for (number, n) in &log.records_by_number {
            *summary.events_by_number.entry(*number).or_default() += n;
        }
        for (anomaly, n) in &log.anomalies {
            *summary.anomalies.entry(*anomaly).or_default() += n;
        }

        // Without an earlier summary, the log begins now.
        let unknown = SourceLog::default();
        let before = begun.unwrap_or(&unknown);
        let read_on_from = before.resume.as_ref().map_or(0, |resume| resume.offset);
        let places_before = before
            .places
            .iter()
            .filter(|place| place.offset < read_on_from);
        let generation = before.generation.clone().or(log.generation);
        let source = SourceLog {
            name: name.to_owned(),
            bytes: log.file_bytes,
            xxh3: xxh3.to_owned(),
            begin_ms: [before.begin_ms, log.begin_ms].into_iter().flatten().min(),
            end_ms: before.end_ms.max(log.end_ms),
            places: first_positions(places_before.chain(&log.places)),
            hosts: before.hosts.union(&log.hosts).cloned().collect(),
            generation: generation.map(|generation| LogGeneration {
                bytes: log.bytes,
                ..generation
            }),
            resume: log.resume,
        };
        summary.sources.push(source.clone());
        source
    }

    /// Writes the store to `staging`, and commits it.
    pub fn write_store(self, staging: StagedDirectory, key: &str) -> Result<StoreSummary> {
        let mut writer = StoreWriter::new(staging);
        let mut summary = writer.write_shards(|take_shard| self.for_each_shard(take_shard))?;
        writer.commit(key, &mut summary)?;
        Ok(summary)
    }

    /// Builds the store in memory.
    pub fn into_store(self) -> Result<EventStore> {
        let mut shards = Vec::new();
        let summary = self.for_each_shard(&mut |next| {
            match next {
                NextShard::New(columns) => {
                    let bytes = columns.layout()?.bytes();
                    shards.push(Shard::from_bytes(&bytes, EVENTS_FORMAT)?);
                    columns.clear();
                }
                NextShard::Kept(kept) => shards.push(Shard::open(&kept.path, EVENTS_FORMAT)?),
            }
            Ok(())
        })?;
        EventStore::in_memory(shards, summary)
    }

    /// Groups the rows by job, and merges them with the earlier store. Calls `take_shard` with each
    /// shard.
    fn for_each_shard(mut self, take_shard: &mut TakeShard<'_>) -> Result<StoreSummary> {
        let gaps = find_gaps(&self.summary.sources, &mut self.aps);
        let sources = &self.summary.sources;
        let begin_ms = sources.iter().filter_map(|source| source.begin_ms).min();
        let end_ms = sources.iter().filter_map(|source| source.end_ms).max();
        let mut summary = StoreSummary {
            gaps,
            aps: self.aps.into_names(),
            begin_ms: begin_ms.unwrap_or(0),
            end_ms: end_ms.unwrap_or(0),
            ..self.summary
        };
        if let Some(until_ms) = self.until_ms {
            summary.forget_gaps_after(until_ms)?;
        }

        let mut shards = ShardSequence::new(self.sizes, self.rows.min_row_count(), take_shard);
        let mut earlier = self.earlier;
        self.rows.for_each_id(|same_id| {
            earlier.add_jobs_before(same_id.id(), &mut shards)?;
            earlier.prepend_rows(same_id)?;
            shards.push(same_id)
        })?;
        earlier.add_jobs_before(None, &mut shards)?;

        let counts = shards.finish()?;
        summary.jobs = counts.jobs;
        summary.doubles += counts.doubles;
        Ok(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::super::store_summary::{ListedEventShard, LogGap};
    use super::*;
    use htcondor_eventlog::{JobAd, ResourceRequest, SubmissionNames};
    use proptest::prelude::*;

    /// Returns a store in memory of events, all from one log, as cluster, time in ms and number.
    fn store(events: &[(i32, i64, u16)]) -> EventStore {
        let event = |&(cluster, time_ms, number): &(i32, i64, u16)| JobEvent {
            cluster,
            time_ms,
            number,
            ..JobEvent::default()
        };
        let mut in_time: Vec<JobEvent> = events.iter().map(event).collect();
        in_time.sort_by_key(|event| event.time_ms);
        store_of_logs(&[in_time])
    }

    /// Returns a store in memory of the events of `logs`.
    fn store_of_logs(logs: &[Vec<JobEvent>]) -> EventStore {
        let mut builder = EventStoreBuilder::new("", "", None);
        for events in logs {
            let batch = EventBatch {
                ap: "ap",
                events,
                ads: &[],
                texts: &[],
                stretch: 0,
            };
            builder.add_batch(&batch).expect("added");
            builder.end_log("log", "", LogSummary::default(), None);
        }
        builder.into_store().expect("built")
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
    fn reused_ids_are_separate_jobs() {
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
    fn duplicates_are_dropped_and_counted() {
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

    /// Builds a store from logs of one job, each of (time in ms, number). Returns the kept event
    /// numbers and the number of dropped duplicates.
    fn told(logs: &[&[(i64, u16)]]) -> (Vec<u16>, u64) {
        let event = |&(time_ms, number): &(i64, u16)| JobEvent {
            cluster: 1,
            time_ms,
            number,
            ..JobEvent::default()
        };
        let of_log = |log: &&[(i64, u16)]| log.iter().map(event).collect();
        let logs: Vec<Vec<JobEvent>> = logs.iter().map(of_log).collect();
        let store = store_of_logs(&logs);
        (
            store.jobs().get(0).history.number.to_vec(),
            store.summary.doubles,
        )
    }

    #[test]
    fn second_hold_within_one_second_is_kept() {
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
    fn duplicates_in_distant_logs_are_dropped() {
        let burst = &[(5, 0), (20, 12), (20, 13), (20, 12)][..];
        for logs_between in [126, 127, 255] {
            let mut logs = vec![burst];
            logs.extend(std::iter::repeat_n(&[][..], logs_between));
            logs.push(burst);
            assert_eq!(told(&logs), (vec![0, 12, 13, 12], 4), "{logs_between}");
        }
    }

    #[test]
    fn events_of_distant_logs_keep_their_times() {
        let mut logs = vec![&[(0, 0), (90_000, 12)][..]];
        logs.extend(std::iter::repeat_n(&[][..], 127));
        logs.push(&[(50_000, 1)]);
        assert_eq!(told(&logs).0, [0, 1, 12]);
    }

    #[test]
    fn repeated_hold_within_one_second_is_dropped() {
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
    fn ads_are_matched_to_jobs_by_submit_time() {
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
            schedd: Some("s".into()),
            submit_s,
            owner: Some(owner.into()),
            request: request(memory_mb),
            names: SubmissionNames::default(),
            inputs: Vec::new(),
        };
        let events = [event(10_000, 0), event(20_000, 5), event(500_000, 0)];
        let ads = [ad(500, "eve", 7), ad(9, "ada", 100), ad(9, "ada", 200)];
        builder
            .add_batch(&EventBatch {
                ap: "s",
                events: &events,
                ads: &ads,
                texts: &[],
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
            (9, SaltedNames::new("salt").owner_hash("ada"), request(100)),
            (500, SaltedNames::new("salt").owner_hash("eve"), request(7)),
        ];
        assert_eq!(known, expected, "{first}");
    }

    #[test]
    fn missing_generations_and_ends_are_gaps() {
        let gaps = |generations: &[(u64, i64, i64, u64, u64)]| {
            let mut builder = EventStoreBuilder::new("", "", None);
            for &(sequence, created_ms, end_ms, offset, bytes) in generations {
                let generation = Some(LogGeneration {
                    ap: "ap".into(),
                    sequence,
                    created_ms,
                    offset,
                    bytes,
                    missing_holds: None,
                });
                let log = LogSummary {
                    generation,
                    bytes,
                    begin_ms: Some(created_ms),
                    end_ms: Some(end_ms),
                    ..LogSummary::default()
                };
                builder.end_log("log", "", log, None);
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
    fn resumed_store_equals_store_from_one_reading() {
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
            schedd: Some("s".into()),
            submit_s: 0,
            owner: Some("ada".into()),
            request: ResourceRequest::default(),
            names: SubmissionNames::default(),
            inputs: vec![
                InputFile { file: 5, origin: 6 },
                InputFile { file: 3, origin: 4 },
            ],
        };
        let first = [
            event(1, 10, 0, 1),
            event(1, 20, 12, 2),
            event(2, 5, 0, 3),
            event(2, 5, 1, 3),
        ];
        // A duplicate of an earlier event, an event of the same time, and a new job before an old
        // one.
        let second = [
            event(1, 20, 12, 2),
            event(1, 20, 13, 4),
            event(1, 30, 5, 5),
            event(0, 9, 0, 6),
        ];
        let end = |builder: &mut EventStoreBuilder, begin_ms, end_ms| {
            builder.end_log(
                "log",
                "",
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
                texts: &[],
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
                texts: &[],
                stretch: 0,
            })
            .expect("added");
        end(&mut builder, 5, 20);
        let dir = tempfile::tempdir().expect("a directory");
        let earlier = dir.path().join("earlier");
        let summary = write(builder, &earlier);
        let mut on = EventStoreBuilder::new("", "", None);
        assert_eq!(on.continue_from(&earlier, &summary, false), None);
        for builder in [&mut whole, &mut on] {
            builder
                .add_batch(&EventBatch {
                    ap: "s",
                    events: &second,
                    ads: &[],
                    texts: &[],
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
        let inputs = |store: &EventStore| Vec::from_iter(store.jobs().inputs(1));
        assert_eq!(inputs(&on).len(), 2);
        assert_eq!(inputs(&whole), inputs(&on));
        assert_eq!(on.jobs().inputs(0).count(), 0, "of another job");
        assert_eq!(
            (on.jobs().len(), on.summary.doubles, on.jobs().get(1).owner),
            (3, 1, SaltedNames::new("").owner_hash("ada"))
        );
    }
    fn write(builder: EventStoreBuilder, dir: &Path) -> StoreSummary {
        let staging = StagedDirectory::new(dir, false).expect("staged");
        builder.write_store(staging, "key").expect("written")
    }

    /// Small shards, so that a test has many.
    const SMALL: ShardSizes = ShardSizes {
        min_events: 30,
        max_events: 90,
        ids_per_end: 4,
    };

    /// Returns a builder of a store in small shards that continues `earlier`, a directory and its
    /// manifest, with a log of each of `logs`: cluster and second of each event.
    fn small(earlier: Option<(&Path, &StoreSummary)>, logs: &[&[(i32, i64)]]) -> EventStoreBuilder {
        let mut builder = EventStoreBuilder::new("", "", None);
        builder.sizes = SMALL;
        if let Some((dir, summary)) = earlier {
            builder.continue_from(dir, summary, false);
        }
        for log in logs {
            let event = |&(cluster, s)| JobEvent {
                cluster,
                time_ms: 1000 * s,
                number: 6,
                ..JobEvent::default()
            };
            let events: Vec<JobEvent> = log.iter().map(event).collect();
            let batch = EventBatch {
                ap: "ap",
                events: &events,
                ads: &[],
                texts: &[],
                stretch: 0,
            };
            builder.add_batch(&batch).expect("added");
            builder.end_log("log", "", LogSummary::default(), None);
        }
        builder
    }

    /// Identities of the files of shards, and what is in them.
    fn shards(dir: &Path, summary: &StoreSummary) -> Vec<(String, u64, std::time::SystemTime)> {
        use std::os::unix::fs::MetadataExt as _;
        let found = |listed: &ListedEventShard| {
            let file = fs_err::metadata(dir.join(&listed.file)).expect("there");
            let written = file.modified().expect("a time");
            (listed.xxh3.clone(), file.ino(), written)
        };
        summary.shards.iter().map(found).collect()
    }

    fn bytes(dir: &Path) -> std::collections::BTreeMap<std::ffi::OsString, Vec<u8>> {
        let entries = fs_err::read_dir(dir).expect("listed");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let read = |path: PathBuf| (path.file_name().map(Into::into), fs_err::read(&path));
        let named = paths.map(read);
        named
            .map(|(name, bytes)| (name.expect("a name"), bytes.expect("read")))
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn equal_shards_of_an_earlier_store_are_kept(
            first in proptest::collection::vec((0..400i32, 0..500i64), 0..1500),
            second in proptest::collection::vec((0..500i32, 0..900i64), 0..8),
        ) {
            let dir = tempfile::tempdir().expect("a directory");
            let path = |name: &str| dir.path().join(name);
            let earlier = write(small(None, &[&first]), &path("earlier"));
            let before = shards(&path("earlier"), &earlier);

            let continued = small(Some((&path("earlier"), &earlier)), &[&second]);
            let continued = write(continued, &path("continued"));
            write(small(None, &[&first, &second]), &path("anew"));
            prop_assert_eq!(bytes(&path("continued")), bytes(&path("anew")));

            // A shard that gets a repeated event is written again, with the same content.
            let is_repeated = |event: &(i32, i64)| first.contains(event);
            prop_assume!(!second.iter().any(is_repeated));
            let after = shards(&path("continued"), &continued);
            let (_last, closed) = before.split_last().expect("a shard");
            for (at, shard) in closed.iter().enumerate() {
                let same = after.iter().find(|other| other.0 == shard.0);
                prop_assert!(same.is_none_or(|same| same == shard), "shard {}", at);
            }
        }
    }

    #[test]
    fn an_event_of_an_old_job_changes_one_shard() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        let log: Vec<(i32, i64)> = (0..4000).map(|at| (at / 4, i64::from(at))).collect();
        let earlier = write(small(None, &[&log]), &path("earlier"));
        let before = shards(&path("earlier"), &earlier);
        assert!(before.len() > 60, "{}", before.len());

        let new = [(300, 5000), (1000, 5000)];
        let continued = small(Some((&path("earlier"), &earlier)), &[&new]);
        let continued = write(continued, &path("continued"));
        let after = shards(&path("continued"), &continued);
        let changed = before.iter().filter(|shard| !after.contains(shard));
        assert_eq!(
            changed.count(),
            2,
            "the shard of the old job, and the last one"
        );
        write(small(None, &[&log, &new]), &path("anew"));
        assert_eq!(bytes(&path("continued")), bytes(&path("anew")));
    }
}
