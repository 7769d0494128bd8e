//! Reads a log file into events. Many threads read and parse blocks of bounded size; the blocks are
//! assembled in file order.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::assembly::LogAssembly;
use super::block_parser::{BlockParser, ParsedBlock, SpareMemory};
use super::blocks::{BLOCK_SIZES, BlockReader, BlockSizes, LogBlock, ReadBlock, RecordBlock};
use super::log::{EventSink, LogSummary, ReadOptions, ResumePoint};
use super::log_order::{LogOrder, NO_PANIC};
use super::piece::{EarlierPieces, ParsedPiece};
use super::read_error::{BoxedResult, ReadError};
use super::record_cuts::begins_record;
use super::source::{LogSource, is_read_once};

/// Reads the log at `path`; `-` is standard input. Passes its events to `sink`, and the bytes of
/// every disk read, in file order and still compressed, to `on_read`, for example to show progress
/// or to compute a checksum.
///
/// The log is parsed on as many threads as the current rayon pool has.
///
/// # Errors
/// Fails if the file cannot be read, is empty, a directory, a damaged archive or not an event log,
/// and if `sink` fails. Damage within the log is not an error; it is counted in
/// [`LogSummary::anomalies`].
pub fn read(
    path: &Path,
    options: &ReadOptions,
    on_read: impl FnMut(&[u8]) + Send + 'static,
    sink: &mut EventSink<'_>,
) -> Result<LogSummary, ReadError> {
    let source = LogSource::open(path, on_read)?;
    let assembly = LogAssembly::new(options);
    read_source(BLOCK_SIZES, path, source, assembly, sink).map_err(|error| *error)
}

/// Returns true if the log at `path` can be read further from `resume`: nothing follows, or a
/// record begins there. Otherwise the apparent end of a record may have been a line of its text.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn can_read_on(path: &Path, resume: &ResumePoint) -> Result<bool, ReadError> {
    let mut source = LogSource::open_at(path, resume.offset, |_| {})?;
    let mut head = [0; 256];
    let filled = source.fill(&mut head)?;
    Ok(filled == 0 || begins_record(&head[..filled]))
}

/// Reads the log at `path` from `resume` on, like [`read`] reads a whole log. The counts cover only
/// this new part, and `on_read` receives only its bytes.
///
/// # Errors
/// Fails like [`read`]. The caller must make sure that the log still has the content before
/// `resume` that it had: see [`can_read_on`].
pub fn read_on(
    path: &Path,
    options: &ReadOptions,
    resume: &ResumePoint,
    on_read: impl FnMut(&[u8]) + Send + 'static,
    sink: &mut EventSink<'_>,
) -> Result<LogSummary, ReadError> {
    let source = LogSource::open_at(path, resume.offset, on_read)?;
    let assembly = LogAssembly::resume(options, resume);
    read_source(BLOCK_SIZES, path, source, assembly, sink).map_err(|error| *error)
}

/// Parses a log in memory on this thread, with stamp, job, hold codes and terminations. Returns the
/// number of events. In contrast, [`read`] also reads the file, parses ads and reasons, and
/// converts stamps to times.
pub fn scan(text: &[u8]) -> usize {
    let whole = RecordBlock {
        text,
        is_at_log_end: true,
    };
    let mut events = Vec::new();
    let mut count = 0;
    for piece in whole.split(BLOCK_SIZES.piece_bytes) {
        let (parsed, _) = ParsedPiece::scan(&piece, None, events);
        events = parsed.events;
        count += events.len();
    }
    count
}

/// Maximum number of blocks that may be parsed ahead of the next one to add. It is close to the
/// number that is parsed while rows are sorted. A larger number gains little and costs memory.
const MAX_BLOCKS_AHEAD: usize = 64;

/// State that the threads of one log share. Each thread reads and parses its own blocks, and adds
/// the next ones in log order. So no thread waits for another while there is other work.
struct SharedReading<'a> {
    path: &'a Path,
    parser: BlockParser,
    blocks: Mutex<BlockReader>,
    order: LogOrder<Result<ParsedBlock, ReadError>>,
    added: Mutex<AddedBlocks<'a>>,
    /// Data of the added blocks, shared with the parsing threads; equal to the assembly's own.
    earlier: Mutex<Arc<EarlierPieces>>,
    spare_texts: SpareMemory<u8>,
}

/// Assembly of the blocks that were added, and the receiver of their events.
struct AddedBlocks<'a> {
    assembly: LogAssembly,
    sink: &'a mut EventSink<'a>,
}

impl SharedReading<'_> {
    /// Reads, parses and adds all blocks, on as many threads as the pool has. This uses separate
    /// threads, because they wait for each other.
    fn read_all(&self) -> BoxedResult<()> {
        let _stop = self.order.stop_on_panic();
        let Some(first) = self.next_block() else {
            return Ok(());
        };
        // A small log is a single block, which needs no other thread.
        let is_whole = first.block.as_ref().is_ok_and(LogBlock::is_at_log_end);
        let others = if is_whole {
            0
        } else {
            rayon::current_num_threads() - 1
        };

        std::thread::scope(|scope| {
            let others = Vec::from_iter((0..others).map(|_| scope.spawn(|| self.read_blocks())));
            let first = self.finish_block(first);
            let own = first.and_then(|_| self.read_blocks());
            others.into_iter().fold(own, |result, other| {
                result.and(other.join().unwrap_or_else(|panic| resume_unwind(panic)))
            })
        })
    }

    /// Reads, parses and adds blocks until the log ends or an error occurs.
    fn read_blocks(&self) -> BoxedResult<()> {
        let _stop = self.order.stop_on_panic();
        while let Some(read) = self.next_block() {
            if !self.finish_block(read)? {
                break;
            }
        }
        Ok(())
    }

    fn next_block(&self) -> Option<ReadBlock> {
        let mut blocks = self.blocks.lock().expect(NO_PANIC);
        blocks.next_block(self.spare_texts.take())
    }

    /// Parses a block. Adds it, and the blocks that follow it, if it is the next one. Returns true
    /// if the thread may continue.
    fn finish_block(&self, read: ReadBlock) -> BoxedResult<bool> {
        // A read error is submitted in order, too, so that all previous blocks are added first.
        let parsed = read.block.map(|block| self.parse_block(block));
        self.order
            .hand_in(read.number, parsed, |next| self.add_block(next?))
    }

    /// Parses a block.
    fn parse_block(&self, block: LogBlock) -> ParsedBlock {
        let earlier = Arc::clone(&self.earlier.lock().expect(NO_PANIC));
        self.parser.parse_block(block, earlier)
    }

    /// Adds the next block in log order.
    fn add_block(&self, parsed: ParsedBlock) -> BoxedResult<()> {
        let mut added = self.added.lock().expect(NO_PANIC);
        let AddedBlocks { assembly, sink } = &mut *added;
        let memory = self.parser.add_block(parsed, assembly, self.path, *sink)?;

        let mut earlier = self.earlier.lock().expect(NO_PANIC);
        if !Arc::ptr_eq(assembly.earlier_pieces(), &earlier) {
            *earlier = Arc::clone(assembly.earlier_pieces());
        }
        self.spare_texts.give_back(memory);
        Ok(())
    }
}

/// Reads `source`, which is the log at `path`.
fn read_source<'a>(
    sizes: BlockSizes,
    path: &'a Path,
    source: LogSource,
    mut assembly: LogAssembly,
    sink: &'a mut EventSink<'a>,
) -> BoxedResult<LogSummary> {
    assembly.is_read_once = is_read_once(path);
    let reading = SharedReading {
        path,
        parser: BlockParser::new(sizes.piece_bytes, assembly.is_read_once),
        blocks: Mutex::new(BlockReader::new(source, sizes)),
        order: LogOrder::new(MAX_BLOCKS_AHEAD),
        earlier: Mutex::new(Arc::clone(assembly.earlier_pieces())),
        added: Mutex::new(AddedBlocks { assembly, sink }),
        spare_texts: SpareMemory::new(),
    };

    reading.read_all()?;

    let AddedBlocks { assembly, sink } = reading.added.into_inner().expect(NO_PANIC);
    let source = reading.blocks.into_inner().expect(NO_PANIC).source;
    finish_log(source, assembly, path, sink)
}

/// Emits the remaining events, once all blocks were added. Returns the summary of the log at `path`,
/// which was read from `source`.
///
/// # Errors
/// Fails if the file is not an event log, and like [`LogAssembly::finish`].
pub(super) fn finish_log(
    source: LogSource,
    assembly: LogAssembly,
    path: &Path,
    sink: &mut EventSink<'_>,
) -> BoxedResult<LogSummary> {
    assembly.check_whole(path)?;
    // A compressed file cannot be read from its middle.
    let can_resume = !source.is_compressed();
    let log = assembly.finish(path, sink)?;
    let resume = log.resume.filter(|_| can_resume);
    Ok(LogSummary {
        file_bytes: source.file_bytes(),
        resume,
        ..log
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DecidedBy;
    use crate::JobEvent;
    use crate::anomaly::{Anomaly, AnomalyCounts, AnomalyPosition};
    use crate::dates::format_date_time;
    use crate::event_facts::{EventFacts, ExecutionHost, HoldFacts, name_hash};
    use crate::log::{EventBatch, LogGeneration};
    use htcondor_holdreasons::read_reason;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// Result of reading a log.
    #[derive(Debug, Clone, PartialEq)]
    struct Found {
        events: Vec<(String, JobEvent)>,
        anomalies: AnomalyCounts,
        places: Vec<AnomalyPosition>,
    }

    impl Found {
        fn times(&self) -> Vec<String> {
            self.events
                .iter()
                .map(|(_, event)| utc_time(event.time_ms))
                .collect()
        }
    }

    fn utc_time(ms: i64) -> String {
        format_date_time(ms).replace('T', " ") + " UTC"
    }

    fn read_text(
        text: impl AsRef<[u8]>,
        options: &ReadOptions,
        sizes: BlockSizes,
    ) -> BoxedResult<(Found, LogSummary)> {
        read_with(text, LogAssembly::new(options), sizes)
    }

    fn read_with(
        text: impl AsRef<[u8]>,
        assembly: LogAssembly,
        sizes: BlockSizes,
    ) -> BoxedResult<(Found, LogSummary)> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        fs_err::write(&path, &text).expect("written");
        let begin = assembly.log.bytes;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let on_read = {
            let seen = Arc::clone(&seen);
            move |bytes: &[u8]| seen.lock().expect("whole").extend_from_slice(bytes)
        };
        let mut events = Vec::new();
        let source = if begin == 0 {
            LogSource::open(&path, on_read)?
        } else {
            LogSource::open_at(&path, begin, on_read)?
        };
        let log = read_source(sizes, &path, source, assembly, &mut |batch| {
            events.extend(
                batch
                    .events
                    .iter()
                    .map(|event| (batch.ap.to_owned(), *event)),
            );
            Ok(())
        })?;
        assert_eq!(
            *seen.lock().expect("whole"),
            text.as_ref()[begin as usize..]
        );
        Ok((
            Found {
                events,
                anomalies: log.anomalies.clone(),
                places: log.places.clone(),
            },
            log,
        ))
    }

    fn for_each_batch(text: &str, sizes: BlockSizes, mut each: impl FnMut(EventBatch<'_>) + Send) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        fs_err::write(&path, text).expect("written");
        let source = LogSource::open(&path, |_| {}).expect("opened");
        let assembly = LogAssembly::new(&ReadOptions::default());
        let read = read_source(sizes, &path, source, assembly, &mut |batch| {
            each(batch);
            Ok(())
        });
        read.expect("read");
    }

    fn found(text: impl AsRef<[u8]>) -> Found {
        read_text(text, &ReadOptions::default(), BLOCK_SIZES)
            .expect("read")
            .0
    }

    const HEADER: &str = "008 (-01.-01.-01) 12/31 17:59:00 Global JobLog: ctime=1704067140 id=0 sequence=1 size=0 events=0 offset=0 event_off=0 max_rotation=5 creator_name=<ap@x>\n...\n";

    #[test]
    fn year_and_zone_come_from_the_header() {
        // ctime is 2023-12-31 23:59:00 UTC and the stamp is 17:59, so local time is six hours west
        // of UTC.
        let text = format!(
            "{HEADER}000 (1.0.0) 12/31 17:59:30 s\n...\n012 (1.0.0) 12/31 18:00:10 h\n\tCode 3 Subcode 1\n...\n"
        );
        let (found, log) = read_text(text, &ReadOptions::default(), BLOCK_SIZES).expect("read");
        let times: Vec<i64> = found
            .events
            .iter()
            .map(|(_, event)| event.time_ms)
            .collect();
        assert_eq!(times, [1_704_067_170_000, 1_704_067_210_000]);
        assert_eq!(
            (found.events[0].0.as_str(), log.end_ms),
            ("ap@x", Some(1_704_067_210_000))
        );
        assert_eq!(
            log.records_by_number,
            BTreeMap::from([(0, 1), (8, 1), (12, 1)])
        );
        assert_eq!(
            log.generation,
            Some(LogGeneration {
                ap: "ap@x".into(),
                sequence: 1,
                created_ms: 1_704_067_140_000,
                offset: 0,
                bytes: log.bytes,
                missing_holds: None,
            })
        );
        assert!(log.anomalies.is_empty());
    }

    #[test]
    fn zone_of_a_rotated_file_comes_from_its_first_event() {
        let header = HEADER
            .replace("12/31 17:59:00", "12/31 22:00:00")
            .replace("size=0", "size=5000");
        let text = format!("{header}000 (1.0.0) 12/31 17:59:01 s\n...\n");
        for sizes in [
            BLOCK_SIZES,
            BlockSizes {
                first_bytes: 64,
                block_bytes: 64,
                piece_bytes: 1,
            },
        ] {
            let found = read_text(&text, &ReadOptions::default(), sizes)
                .expect("read")
                .0;
            assert_eq!(found.times(), ["2023-12-31 23:59:01 UTC"]);
        }
    }

    #[test]
    fn each_submission_is_reported_once() {
        let ad = |id: &str| {
            format!(
                "028 (1.0.0) 2024-01-01 00:00:01 Job ad information event triggered.\n{id}Proc = 0\n...\n"
            )
        };
        let submitted = |submit_s: i64| ad(&format!("GlobalJobId = \"schedd#1.0#{submit_s}\"\n"));
        let text = [
            ad(""),
            submitted(5),
            submitted(5),
            ad(""),
            submitted(9),
            submitted(9),
        ]
        .concat();
        for sizes in [
            BLOCK_SIZES,
            BlockSizes {
                first_bytes: 64,
                block_bytes: 64,
                piece_bytes: 1,
            },
        ] {
            let mut told = Vec::new();
            for_each_batch(&text, sizes, |batch| {
                told.extend(batch.ads.iter().map(|ad| ad.submit_s));
            });
            assert_eq!(told, [5, 9]);
        }
    }

    /// Jobs of another access point have their own ids, wherever its log begins: in the same piece,
    /// or in a piece that was parsed before the change was known.
    #[test]
    fn ads_of_another_access_point_are_read_despite_equal_ids() {
        let ads: String = (1..40)
            .map(|cluster| {
                format!("028 ({cluster}.0.0) 2024-01-01 00:00:01 Job ad information event triggered.\nOwner = \"ada\"\n...\n")
            })
            .collect();
        let other = HEADER.replace("ap@x", "ap@y");
        let submitted = "000 (1.0.0) 2024-01-01 00:00:01 s\n...\n";
        let text = [HEADER, submitted, &ads, &other, submitted, &ads].concat();
        for piece_bytes in [1, 1 << 17] {
            for block_bytes in [64, 1000, 1 << 20] {
                let sizes = BlockSizes {
                    first_bytes: block_bytes,
                    block_bytes,
                    piece_bytes,
                };
                let mut told = BTreeMap::new();
                for_each_batch(&text, sizes, |batch| {
                    *told.entry(batch.ap.to_owned()).or_default() += batch.ads.len();
                });
                assert_eq!(
                    told,
                    BTreeMap::from([("ap@x".to_owned(), 39), ("ap@y".to_owned(), 39)])
                );
            }
        }
    }

    #[test]
    fn truncated_archives_fail_on_any_number_of_threads() {
        let text = format!(
            "{HEADER}{}",
            "000 (1.0.0) 12/31 17:59:30 s\n...\n".repeat(10_000)
        );
        let whole = zstd::encode_all(text.as_bytes(), 1).expect("encoded");
        let sizes = BlockSizes {
            first_bytes: 1000,
            block_bytes: 1000,
            piece_bytes: 300,
        };
        for threads in [1, 4] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let error = pool.build().expect("threads").install(|| {
                let cut = &whole[..whole.len() - 9];
                read_text(cut, &ReadOptions::default(), sizes).expect_err("cut short")
            });
            assert!(error.to_string().contains("cut short"), "{error}");
        }
    }

    /// The last stamp is in the newest year in which it is not after the change of the file, in any
    /// time zone.
    #[test]
    fn the_last_change_of_the_file_gives_the_year() {
        let text = "000 (1.0.0) 12/30 17:59:30 s\n...\n001 (1.0.0) 01/02 09:00:00 x\n...\n";
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        fs_err::write(&path, text).expect("written");
        for (changed, first_year) in [
            ("2026-01-02 09:00:01", Some(2025)),
            ("2026-01-01 23:00:00", Some(2025)),
            ("2026-01-01 08:00:00", Some(2024)),
            ("2025-11-29 11:00:00", Some(2024)),
            ("1969-11-29 11:00:00", None),
        ] {
            let changed_at: jiff::Timestamp = format!("{changed}Z").parse().expect("a time");
            let file = std::fs::File::open(&path).expect("opened");
            file.set_modified(changed_at.into()).expect("set");
            let read = super::read(&path, &ReadOptions::default(), |_| {}, &mut |_| Ok(()));
            match first_year {
                Some(_) => assert_eq!(read.expect("read").assumed_year, first_year, "{changed}"),
                None => assert!(matches!(read, Err(ReadError::UnknownYear { .. }))),
            }
        }
    }

    #[test]
    fn a_given_year_is_that_of_the_first_event() {
        let text = "000 (1.0.0) 12/31 17:59:30 s\n...\n";
        let given = ReadOptions {
            year: Some(2019),
            ..ReadOptions::default()
        };
        assert_eq!(
            read_text(text, &given, BLOCK_SIZES)
                .expect("read")
                .0
                .times(),
            ["2019-12-31 17:59:30 UTC"]
        );
    }

    #[test]
    fn later_stamps_and_ads_date_earlier_events() {
        let legacy = "000 (1.0.0) 12/31 23:59:58 s\n...\n001 (1.0.0) 01/01 00:00:01 x\n...\n";
        let iso = "006 (1.0.0) 2022-01-01 00:00:09 i\n...\n";
        let ad = "028 (1.0.0) 01/01 00:00:09 Job ad information event triggered.\nEventTime = \"2022-01-01T00:00:09.123\"\n...\n";
        let expected = ["2021-12-31 23:59:58 UTC", "2022-01-01 00:00:01 UTC"];
        assert_eq!(found(format!("{legacy}{iso}")).times()[..2], expected);
        assert_eq!(found(format!("{legacy}{ad}")).times(), expected);
    }

    #[test]
    fn access_point_comes_from_header_then_ads_then_hosts() {
        let submit = "000 (1.0.0) 2024-01-01 00:00:01 Job submitted from host: <10.0.0.1:9618?alias=host.example>\n...\n";
        let ad = "028 (1.0.0) 2024-01-01 00:00:01 Job ad information event triggered.\nGlobalJobId = \"schedd#1.0#7\"\n...\n";
        let ap = |text: String| found(text).events[0].0.clone();
        assert_eq!(ap(submit.to_owned()), "host.example");
        assert_eq!(ap(format!("{submit}{ad}")), "schedd");
        assert_eq!(ap(format!("{HEADER}{submit}{ad}")), "ap@x");
        assert_eq!(
            ap("001 (1.0.0) 2024-01-01 00:00:01 x\n...\n".to_owned()),
            "unknown"
        );
        let other = HEADER.replace("ap@x", "ap@y");
        let both = found(format!("{HEADER}{submit}{other}{submit}"));
        assert_eq!(
            [&both.events[0].0, &both.events[1].0],
            ["ap@x", "ap@y"],
            "two logs put together"
        );
        let given = ReadOptions {
            ap: Some("mine".into()),
            ..ReadOptions::default()
        };
        let first = read_text(HEADER, &given, BLOCK_SIZES)
            .expect("read")
            .1
            .resume
            .expect("whole records");
        let rest = LogAssembly::resume(&given, &first);
        let later = read_with(format!("{HEADER}{other}{submit}"), rest, BLOCK_SIZES)
            .expect("read")
            .0;
        assert_eq!(
            later.events[0].0, "mine",
            "a name that was given stays, also when a log is read on"
        );
    }

    /// Any job can write an event 008 of any text, with `condor_chirp ulog`.
    #[test]
    fn jobs_cannot_forge_headers() {
        let forged = "Global JobLog: ctime=1600000000 id=0 sequence=9 size=0 creator_name=<evil>";
        let submit = "000 (1.0.0) 12/31 17:59:30 s\n...\n";
        let held = "012 (1.0.0) 12/31 18:00:10 h\n\tCode 3 Subcode 1\n...\n";
        let read = |between: &str| {
            read_text(
                format!("{HEADER}{submit}{between}{held}"),
                &ReadOptions::default(),
                BLOCK_SIZES,
            )
        };
        let (sound, _) = read("").expect("read");
        let forged_by_job = format!("008 (1.0.0) 12/31 18:00:00 {forged}\n...\n");
        let (found, log) = read(&forged_by_job).expect("read");
        assert_eq!(
            (&found, log.records_by_number[&8]),
            (&sound, 2),
            "it is an event like any other"
        );
        let forged_without_job = format!("008 (-01.-01.-01) 12/31 18:00:00 {forged}\n...\n");
        let (found, log) = read(&forged_without_job).expect("read");
        assert_eq!(
            (&found.events, log.generation.expect("one").sequence),
            (&sound.events, 1),
            "of another time"
        );
        assert_eq!(
            found.anomalies,
            BTreeMap::from([(Anomaly::MisplacedHeader, 1)])
        );
        assert_eq!(found.places[0].offset, (HEADER.len() + submit.len()) as u64);
        let given = ReadOptions {
            year: Some(2023),
            ..ReadOptions::default()
        };
        let first = read_text(
            format!("{forged_by_job}{submit}{held}"),
            &given,
            BLOCK_SIZES,
        )
        .expect("read")
        .0;
        assert_eq!(
            (first.events[0].0.as_str(), &first.times()[0][..4]),
            ("unknown", "2023"),
            "nor as the first record"
        );
    }

    #[test]
    fn overwritten_events_are_counted() {
        let header = HEADER.replace("size=0", "size=1234567");
        let rest = "01.000.000) 12/31 17:59:01 Job submitted from host: <10.0.0.1:9618>\n...\n";
        let event = "001 (1.0.0) 12/31 17:59:02 x\n...\n";
        let (found, _) = read_text(
            format!("{header}{rest}{event}"),
            &ReadOptions::default(),
            BLOCK_SIZES,
        )
        .expect("read");
        assert_eq!(found.events.len(), 1);
        let place = AnomalyPosition {
            anomaly: Anomaly::OverwrittenEvent,
            line: 3,
            offset: header.len() as u64,
        };
        assert_eq!(found.places, [place]);
    }

    #[test]
    fn end_of_summer_time_is_reported_as_an_anomaly() {
        let header = HEADER
            .replace("12/31 17:59:00", "11/01 00:30:00")
            .replace("1704067140", "1793511000");
        let record = |number: &str, time: &str| format!("{number} (1.0.0) 11/01 {time} x\n...\n");
        let events = [
            ("000", "01:00:00"),
            ("012", "01:50:00"),
            ("013", "01:05:00"),
            ("005", "01:10:00"),
        ];
        let records: Vec<String> = events
            .iter()
            .map(|(number, time)| record(number, time))
            .collect();
        let text = format!("{header}{}", records.concat());
        for sizes in [
            BLOCK_SIZES,
            BlockSizes {
                first_bytes: 64,
                block_bytes: 64,
                piece_bytes: 1,
            },
        ] {
            let (found, log) = read_text(&text, &ReadOptions::default(), sizes).expect("read");
            let times = ["06:00:00", "06:50:00", "07:05:00", "07:10:00"]
                .map(|time| format!("2026-11-01 {time} UTC"));
            assert_eq!(found.times(), times);
            let offset = (header.len() + records[0].len() + records[1].len()) as u64;
            assert_eq!(
                found.places,
                [AnomalyPosition {
                    anomaly: Anomaly::ZoneChange,
                    line: 7,
                    offset
                }]
            );
            assert_eq!(
                log.resume.expect("whole records").clock.zone_ms,
                -6 * 3_600_000
            );
        }
        let iso = records.concat().replace("11/01", "2026-11-01");
        assert_eq!(
            found(iso).times()[1..3],
            ["2026-11-01 01:50:00 UTC", "2026-11-01 02:05:00 UTC"]
        );
    }

    #[test]
    fn jobs_of_two_access_points_are_separated() {
        let record = |number: &str, rest: &str| {
            format!("{number} (1.0.0) 2024-01-01 00:00:01 {rest}\n...\n")
        };
        let submit = |host: &str| {
            record(
                "000",
                &format!("Job submitted from host: <10.0.0.1:9618?alias={host}&sock=x>"),
            )
        };
        let (held, ended) = (record("012", "h"), record("005", "e"));
        let ad = |schedd: &str| {
            record(
                "028",
                &format!(
                    "Job ad information event triggered.\nGlobalJobId = \"{schedd}#1.0#7\"\nProc = 0"
                ),
            )
        };
        let one = |host: &str| [submit(host), ad(host), held.clone()].concat();
        let text = [one("a"), one("b"), ended.clone(), submit("a"), held.clone()].concat();
        for sizes in [
            BLOCK_SIZES,
            BlockSizes {
                first_bytes: 400,
                block_bytes: 64,
                piece_bytes: 1,
            },
        ] {
            let (found, log) = read_text(&text, &ReadOptions::default(), sizes).expect("read");
            let of = |ap: &str| {
                let own = found.events.iter().filter(|(found, _)| found == ap);
                own.map(|(_, event)| event.number).collect::<Vec<_>>()
            };
            assert_eq!((of("a"), of("b")), (vec![0, 12, 0, 12], vec![0, 12, 5]));
            assert_eq!(log.resume, None, "it is read from scratch");
        }
        let log = read_text(
            format!("{HEADER}{text}"),
            &ReadOptions::default(),
            BLOCK_SIZES,
        )
        .expect("read")
        .1;
        assert_eq!(
            log.hosts,
            BTreeSet::from(["a".to_owned(), "b".to_owned()]),
            "and that it may be wrong is said"
        );
        let with_header = found(format!("{HEADER}{text}"));
        assert!(
            with_header.events.iter().all(|(ap, _)| ap == "ap@x"),
            "a header says whose log it is"
        );
        let given = ReadOptions {
            ap: Some("mine".into()),
            ..ReadOptions::default()
        };
        assert!(
            read_text(&text, &given, BLOCK_SIZES)
                .expect("read")
                .0
                .events
                .iter()
                .all(|(ap, _)| ap == "mine")
        );
    }

    /// Each record is a block of its own, which is emitted alone.
    #[test]
    fn emitted_batches_grow_with_records_not_with_hosts() {
        let one_record_each = BlockSizes {
            first_bytes: 1,
            block_bytes: 1,
            piece_bytes: 1,
        };
        let batches_of = |hosts: usize| {
            let text: String = (0..hosts)
                .map(|host| format!("000 ({host}.0.0) 2024-01-01 00:00:01 Job submitted from host: <10.0.0.1:9618?alias=h{host}&sock=x>\n...\n"))
                .collect();
            let mut batches = 0;
            for_each_batch(&text, one_record_each, |_| batches += 1);
            batches
        };
        let (few, many) = (batches_of(50), batches_of(200));
        assert!(
            many <= 4 * few + 4,
            "{many} batches, and {few} for a quarter of the hosts"
        );
    }

    #[test]
    fn json_xml_and_text_can_share_a_log() {
        let text = "012 (1.0.0) 2024-01-02 03:04:05 h\n\tCode 3 Subcode 1\n...\n";
        let json = "{\n  \"EventTypeNumber\": 5,\n  \"Cluster\": 1,\n  \"Proc\": 0,\n  \"EventTime\": \"2024-01-02T03:04:06\",\n  \"TerminatedNormally\": true,\n  \"ReturnValue\": 7\n}\n";
        let xml = "<?xml version=\"1.0\"?>\n<!DOCTYPE classads SYSTEM \"classads.dtd\">\n<classads>\n<c>\n    <a n=\"EventTypeNumber\"><i>12</i></a>\n    <a n=\"Cluster\"><i>1</i></a>\n    <a n=\"Proc\"><i>0</i></a>\n    <a n=\"HoldReasonCode\"><i>13</i></a>\n    <a n=\"HoldReasonSubCode\"><i>2</i></a>\n    <a n=\"EventTime\"><s>2024-01-02T03:04:07</s></a>\n</c>\n</classads>\n";
        let all = found(format!("{text}{json}{xml}{text}"));
        let said: Vec<_> = all
            .events
            .iter()
            .map(|(_, e)| (e.number, e.hold_code, e.hold_subcode, e.normal, e.value))
            .collect();
        assert_eq!(
            said,
            [
                (12, 3, 1, 0, 0),
                (5, 0, 0, 1, 7),
                (12, 13, 2, 0, 0),
                (12, 3, 1, 0, 0)
            ]
        );
        assert!(all.anomalies.is_empty(), "{:?}", all.anomalies);
        assert_eq!(
            found(xml).events.len(),
            1,
            "a log that begins with a prolog"
        );
    }

    #[test]
    fn files_without_records_are_rejected() {
        for text in ["hello\nworld\n", "{\n}\n", "<c></c>", "{\n  \"a\": 1\n}\n"] {
            let error = read_text(text, &ReadOptions::default(), BLOCK_SIZES).expect_err("refused");
            assert!(
                error.to_string().contains("not an HTCondor event log"),
                "{error}"
            );
        }
        assert!(
            read_text("012 (12.0", &ReadOptions::default(), BLOCK_SIZES).is_ok(),
            "a log cut in its first line is a log"
        );
    }

    #[test]
    fn anomalies_report_line_and_offset() {
        let sound = "001 (1.0.0) 2024-01-02 03:04:05 x\n...\n";
        let all = found(format!(
            "{sound}\n{sound}junk\nmore\n{sound}012 (1.x.0) 2024-01-02 03:04:05 h\n...\n{sound}013 (1."
        ));
        let places: Vec<_> = all
            .places
            .iter()
            .map(|place| (place.anomaly, place.line, place.offset))
            .collect();
        let length = sound.len() as u64;
        let expected = [
            (Anomaly::Junk, 3, length),
            (Anomaly::Junk, 6, 2 * length + 1),
            (Anomaly::DamagedRecord, 10, 3 * length + 11),
            (Anomaly::UnfinishedRecord, 14, 4 * length + 11 + 38),
        ];
        assert_eq!(places, expected);
        assert_eq!(all.events.len(), 4);
    }

    /// A long run of NULs is not kept in memory; it has the same effect as a short one.
    #[test]
    fn a_hole_is_one_anomaly_and_counts_in_offsets() {
        let sound = "001 (1.0.0) 2024-01-02 03:04:05 x\n...\n";
        let length = sound.len() as u64;
        let small_blocks = BlockSizes {
            first_bytes: 999,
            block_bytes: 999,
            piece_bytes: 99,
        };
        for hole in [9, 5 << 20] {
            let nuls = "\0".repeat(hole);
            for (tail, kept, last) in [
                (format!("{sound}\n{sound}"), 3, Some(Anomaly::Junk)),
                (
                    format!("{sound}013 (1."),
                    2,
                    Some(Anomaly::UnfinishedRecord),
                ),
                (String::new(), 1, None),
            ] {
                for sizes in [BLOCK_SIZES, small_blocks] {
                    let text = format!("{sound}{nuls}{tail}");
                    let (all, log) =
                        read_text(&text, &ReadOptions::default(), sizes).expect("read");
                    let places = all.places.iter().map(|place| (place.anomaly, place.offset));
                    let after_record = 2 * length + hole as u64;
                    let expected = std::iter::once((Anomaly::Junk, length));
                    assert_eq!(
                        Vec::from_iter(places),
                        Vec::from_iter(expected.chain(last.map(|last| (last, after_record)))),
                        "{hole} NULs"
                    );
                    assert_eq!((all.events.len(), log.bytes), (kept, text.len() as u64));
                }
            }
        }
    }

    /// Valid and damaged parts of a log.
    const LOG_FRAGMENTS: [&str; 21] = [
        "001 (1.0.0) 2024-01-02 03:04:05 a\n...\n",
        "012 (2.0.0) 2024-01-02 03:04:06 b\n\treason\n\tCode 1 Subcode 2\n...\n",
        "012 (2.0.0) 2024-01-02 03:04:07 b\n\treason\n...\n\tmore\n\tCode 1 Subcode 2\n...\n",
        "junk\n",
        "\n",
        "...\n",
        "005 (1.0.0) 2024-01-02 03:04:08 lost\n",
        "...013 (1.0.0) 2024-01-02 03:04:09 glued\n...\n",
        "012 (1.x.0) 2024-01-02 03:04:10 damaged\n...\n",
        "\0\0\0\0",
        "{\n  \"EventTypeNumber\": 13,\n  \"EventTime\": \"2024-01-02T03:04:11\"\n}\n",
        "<c>\n<a n=\"EventTypeNumber\"><i>1</i></a>\n<a n=\"EventTime\"><s>2024-01-02T03:04:12</s></a>\n</c>\n",
        "{\n  \"EventTypeNumber\": 13,\n  \"Eve",
        "<c>\n<a n=\"EventTypeNumber\"><i>1<",
        "013 (2.0.0) 2024-01-02 02:20:00 an hour before, or damage\n...\n",
        "001 (2.0.0) 01/02 03:50:00 without a year\n...\n",
        "008 (-01.-01.-01) 01/01 21:04:00 Global JobLog: ctime=1704164640 id=0 sequence=7 size=0\n...\n",
        "000 (1.0.0) 2024-01-02 03:04:13 c\n    [ DAGNodeName = \"a_1\"; JobBatchName = \"b\" ]\n...\n",
        "001 (1.0.0) 2024-01-02 03:04:14 Job executing on host: <10.0.0.1:9618?alias=h>\n\tSlotName: slot1_2@h\n...\n",
        "004 (1.0.0) 2024-01-02 03:04:15 Job was evicted.\n\t7  -  Run Bytes Sent By Job\n\t2048  -  Run Bytes Received By Job\n\t\
         Partitionable Resources :    Usage  Request Allocated \n\t   Memory (MB)          :        5       64       128 \n...\n",
        "012 (2.0.0) 2024-01-02 03:04:16 b\n\tError from slot1_2@h: no file /a/b1.dat\n\tCode 6 Subcode 2\n...\n",
    ];

    /// Formats `event` like HTCondor. `form` selects a stamp with or without milliseconds and zone.
    fn text_of(event: &JobEvent, form: usize) -> String {
        let precise = [
            "%Y-%m-%d %H:%M:%S.%3f",
            "%Y-%m-%d %H:%M:%S",
            "%Y-%m-%d %H:%M:%S.%3fZ",
            "%Y-%m-%dT%H:%M:%SZ",
        ];
        let stamp = jiff::Timestamp::from_millisecond(event.time_ms)
            .expect("in range")
            .strftime(precise[form]);
        let JobEvent {
            number,
            cluster,
            proc,
            hold_code,
            hold_subcode,
            value,
            ..
        } = event;
        let rest = match (number, event.normal) {
            (12, _) => {
                format!("Job was held.\n\tsome reason\n\tCode {hold_code} Subcode {hold_subcode}")
            }
            (5, 1) => format!(
                "Job terminated.\n\t(1) Normal termination (return value {value})\n\t(0) No core file"
            ),
            (5, _) => format!(
                "Job terminated.\n\t(0) Abnormal termination (signal {value})\n\t(0) No core file"
            ),
            (9, _) => "Job was aborted.\n\tvia condor_rm (by user ada)".to_owned(),
            _ => "Job executing on host: <10.0.0.1:9618>".to_owned(),
        };
        format!("{number:03} ({cluster:03}.{proc:03}.000) {stamp} {rest}\n...\n")
    }

    proptest! {
        /// The result does not depend on the block sizes and the number of threads.
        #[test]
        fn events_do_not_depend_on_block_sizes_or_threads(
            parts in proptest::collection::vec(0..LOG_FRAGMENTS.len(), 0..40),
            block_bytes in 1..900usize,
            piece_bytes in 1..300usize,
            threads in 1..5usize,
        ) {
            let text: String = parts.iter().map(|&part| LOG_FRAGMENTS[part]).collect();
            let text = format!("{}{text}", LOG_FRAGMENTS[0]);
            let whole = read_text(&text, &ReadOptions::default(), BLOCK_SIZES).expect("read").0;
            let sizes = BlockSizes { first_bytes: block_bytes, block_bytes, piece_bytes };
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            let cut = pool.install(|| read_text(&text, &ReadOptions::default(), sizes)).expect("read").0;
            prop_assert_eq!(whole, cut);
        }

        /// Events in HTCondor's format are read back unchanged.
        #[test]
        fn written_events_are_read_back_unchanged(
            jobs in proptest::collection::vec((0..i32::MAX, 0..i32::MAX), 1..20),
            kind in 0..5usize,
            value in -300..300i32,
            time_ms in 946_684_800_000..4_102_444_800_000i64,
            form in 0..4usize,
        ) {
            let number = [12u16, 5, 5, 9, 1][kind];
            let precise_ms = if form % 2 == 0 { time_ms } else { time_ms / 1000 * 1000 };
            let events: Vec<JobEvent> = jobs.iter().map(|&(cluster, proc)| JobEvent {
                time_ms: precise_ms,
                cluster,
                proc,
                number,
                normal: u8::from(kind == 1),
                value: match kind { 1 => value, 2 => value.abs(), 3 => DecidedBy::Person as i32, _ => 0 },
                hold_code: if number == 12 { value.abs() } else { 0 },
                hold_subcode: if number == 12 { value } else { 0 },
                text_hash: 0,
                facts: match number {
                    12 => EventFacts::from_hold(HoldFacts {
                        reason: name_hash(b"some reason"),
                        kind: read_reason("some reason", Some((value.abs(), value))).kind,
                        ..HoldFacts::default()
                    }),
                    1 => EventFacts::from_execution(ExecutionHost { host: name_hash(b"10.0.0.1"), slot: 0 }),
                    _ => EventFacts::default(),
                },
            }).collect();
            let text: String = events.iter().map(|event| text_of(event, form)).collect();
            let options = ReadOptions { year: None, ..ReadOptions::default() };
            let read = read_text(text, &options, BLOCK_SIZES).expect("read").0;
            let back: Vec<JobEvent> = read.events.into_iter().map(|(_, event)| JobEvent { text_hash: 0, ..event }).collect();
            prop_assert_eq!(back, events);
            prop_assert!(read.anomalies.is_empty());
        }

        /// Reading a log, letting it grow and reading further gives the same result as one read.
        #[test]
        fn resumed_reads_equal_one_read(parts in proptest::collection::vec(0..LOG_FRAGMENTS.len(), 1..20), cut in 0..2000usize) {
            let text: String = parts.iter().map(|&part| LOG_FRAGMENTS[part]).collect();
            let text = format!("{}{text}", LOG_FRAGMENTS[0]);
            let (whole, whole_log) = read_text(&text, &ReadOptions::default(), BLOCK_SIZES).expect("read");
            let cut = (LOG_FRAGMENTS[0].len() + cut).min(text.len());
            let (first, first_log) = read_text(&text.as_bytes()[..cut], &ReadOptions::default(), BLOCK_SIZES).expect("read");
            let begins = |resume: &ResumePoint| {
                let rest = &text.as_bytes()[resume.offset as usize..];
                rest.is_empty() || begins_record(rest)
            };
            if let Some(resume) = first_log.resume.filter(begins) {
                let (second, second_log) = read_with(&text, LogAssembly::resume(&ReadOptions::default(), &resume), BLOCK_SIZES).expect("read");
                let mut events = first.events;
                events.extend(second.events);
                prop_assert_eq!(events, whole.events);
                let mut anomalies = first.anomalies;
                for (anomaly, n) in second.anomalies {
                    *anomalies.entry(anomaly).or_default() += n;
                }
                for anomaly in &resume.tail {
                    *anomalies.entry(*anomaly).or_default() -= 1;
                }
                anomalies.retain(|_, n| *n > 0);
                prop_assert_eq!(anomalies, whole.anomalies);
                prop_assert_eq!(second_log.resume, whole_log.resume);
                prop_assert_eq!(second_log.file_bytes, whole_log.file_bytes);
            }
        }

        /// A truncated log gives the events of its whole records.
        #[test]
        fn truncation_loses_no_whole_record(parts in proptest::collection::vec(0..3usize, 1..8), cut in 0..400usize) {
            let records: Vec<&str> = parts.iter().map(|&part| LOG_FRAGMENTS[part]).collect();
            let text = records.concat();
            let cut = cut.min(text.len());
            let mut end = 0;
            let mut whole = 0;
            for record in &records {
                end += record.len();
                // The line feed of the last terminator may be missing.
                whole += usize::from(end <= cut + 1);
            }
            if let Ok((found, _)) = read_text(&text.as_bytes()[..cut], &ReadOptions::default(), BLOCK_SIZES) {
                // If the cut is within a reason that contains a terminator, the record looks
                // complete.
                let early = found.events.len() - whole;
                prop_assert!(early <= usize::from(parts.contains(&2)), "{} events of {whole} records", found.events.len());
            } else {
                prop_assert!(cut < 6, "{cut}");
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), parts in proptest::collection::vec(0..LOG_FRAGMENTS.len(), 0..4)) {
            let mut text: Vec<u8> = parts.iter().flat_map(|&part| LOG_FRAGMENTS[part].bytes()).collect();
            text.extend(bytes);
            drop(read_text(&text, &ReadOptions { year: Some(2024), ..ReadOptions::default() }, BlockSizes { first_bytes: 100, block_bytes: 100, piece_bytes: 30 }));
        }
    }
}
