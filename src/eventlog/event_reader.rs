//! Iterator over the events of a log, on the caller's thread.

use std::collections::VecDeque;
use std::iter::FusedIterator;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::assembly::LogAssembly;
use super::block_parser::BlockParser;
use super::blocks::{BLOCK_SIZES, BlockReader, BlockSizes};
use super::event::JobEvent;
use super::log::{EventBatch, LogSummary, ReadOptions};
use super::read_error::{BoxedResult, ReadError};
use super::reader::finish_log;
use super::source::{LogSource, is_read_once};

/// An event, with the access point of its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEvent {
    /// Name of the access point; `unknown` if the log does not give it. Jobs of two access points
    /// may have equal ids.
    pub ap: Arc<str>,
    /// The event.
    pub event: JobEvent,
}

/// Iterator over the events of a log, in file order, without events 008 and 028. It parses on the
/// caller's thread.
///
/// It holds the events of one block of the log, of about a megabyte, in memory. Only the events
/// before the first stamp with a year are all kept until that stamp, unless
/// [`ReadOptions::year`] is set. After an error, the iterator ends.
///
/// [`read`](crate::read) gives the same events, and also job ads and the texts of hold reasons. It
/// uses all cores.
///
/// ```
/// # use htcondor_eventlog::{EventReader, HELD, ReadError};
/// # fn print_holds(log: &str) -> Result<(), ReadError> {
/// let mut reader = EventReader::open(log)?;
/// for found in &mut reader {
///     let event = found?.event;
///     if event.number == HELD {
///         println!("{}.{}: code {}", event.cluster, event.proc, event.hold_code);
///     }
/// }
/// if let Some(summary) = reader.summary() {
///     println!("{} bytes, damage: {:?}", summary.bytes, summary.anomalies);
/// }
/// # Ok(())
/// # }
/// ```
pub struct EventReader {
    path: PathBuf,
    parser: BlockParser,
    /// Rest of the log; `None` after its end and after an error.
    rest: Option<LogRest>,
    events: VecDeque<LogEvent>,
    /// Memory of the last block, for reuse.
    memory: Vec<u8>,
    /// Summary, once the log was read to its end.
    summary: Option<LogSummary>,
}

/// The part of a log that was not parsed yet, and the state after the part that was.
struct LogRest {
    blocks: BlockReader,
    assembly: LogAssembly,
}

impl EventReader {
    /// Opens the log at `path`; `-` is standard input.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is empty or a directory.
    pub fn open(path: impl AsRef<Path>) -> Result<EventReader, ReadError> {
        EventReader::with_options(path, &ReadOptions::default())
    }

    /// Like [`EventReader::open`], with options for data that the log itself may lack.
    ///
    /// # Errors
    /// Fails like [`EventReader::open`].
    pub fn with_options(
        path: impl AsRef<Path>,
        options: &ReadOptions,
    ) -> Result<EventReader, ReadError> {
        EventReader::with_sizes(path.as_ref(), options, BLOCK_SIZES)
    }

    fn with_sizes(
        path: &Path,
        options: &ReadOptions,
        sizes: BlockSizes,
    ) -> Result<EventReader, ReadError> {
        let is_read_once = is_read_once(path);
        let source = LogSource::open(path, |_| {})?;
        let mut assembly = LogAssembly::new(options);
        assembly.is_read_once = is_read_once;
        Ok(EventReader {
            path: path.to_owned(),
            parser: BlockParser::new(sizes.piece_bytes, is_read_once),
            rest: Some(LogRest {
                blocks: BlockReader::new(source, sizes),
                assembly,
            }),
            events: VecDeque::new(),
            memory: Vec::new(),
            summary: None,
        })
    }

    /// Returns the summary of the log, with its anomalies; `None` until all events were returned, and
    /// after an error.
    pub fn summary(&self) -> Option<&LogSummary> {
        self.summary.as_ref().filter(|_| self.events.is_empty())
    }

    /// Adds the events of the next block of `log`, or those at its end.
    fn read_block(&mut self, mut log: LogRest) -> BoxedResult<()> {
        let events = &mut self.events;
        let sink = &mut |batch: EventBatch<'_>| {
            let ap: Arc<str> = batch.ap.into();
            events.extend(batch.events.iter().map(|event| LogEvent {
                ap: Arc::clone(&ap),
                event: *event,
            }));
            Ok(())
        };

        match log.blocks.next_block(std::mem::take(&mut self.memory)) {
            Some(read) => {
                let earlier = Arc::clone(log.assembly.earlier_pieces());
                let parsed = self.parser.parse_block(read.block?, earlier);
                self.memory = self
                    .parser
                    .add_block(parsed, &mut log.assembly, &self.path, sink)?;
                self.rest = Some(log);
            }
            None => {
                let summary = finish_log(log.blocks.source, log.assembly, &self.path, sink)?;
                self.summary = Some(summary);
            }
        }
        Ok(())
    }
}

impl Iterator for EventReader {
    type Item = Result<LogEvent, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            let log = self.rest.take()?;
            if let Err(error) = self.read_block(log) {
                return Some(Err(*error));
            }
        }
    }
}

impl FusedIterator for EventReader {}

impl std::fmt::Debug for EventReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventReader")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HELD, read};

    const TWO_ACCESS_POINTS: &str = "\
        008 (-01.-01.-01) 12/31 17:59:00 Global JobLog: ctime=1704067140 id=0 sequence=1 size=0 creator_name=<ap@x>\n...\n\
        000 (1.0.0) 12/31 17:59:30 s\n...\n\
        028 (1.0.0) 12/31 17:59:30 Job ad information event triggered.\nOwner = \"ada\"\n...\n\
        junk\n\
        012 (1.0.0) 12/31 18:00:10 h\n\treason\n\tCode 3 Subcode 1\n...\n\
        008 (-01.-01.-01) 12/31 18:59:00 Global JobLog: ctime=1704070740 id=0 sequence=1 size=0 creator_name=<ap@y>\n...\n\
        000 (1.0.0) 12/31 18:59:30 s\n...\n\
        013 (1.0.0) 12/31 19";

    fn write(text: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs_err::write(file.path(), text).expect("written");
        file
    }

    #[test]
    fn pulled_events_equal_pushed_events() {
        let file = write(TWO_ACCESS_POINTS.as_bytes());
        let options = ReadOptions::default();
        let mut pushed = Vec::new();
        let whole = read(file.path(), &options, |_| {}, &mut |batch| {
            let events = batch.events.iter();
            pushed.extend(events.map(|event| (batch.ap.to_owned(), *event)));
            Ok(())
        });
        let whole = whole.expect("read");
        assert_eq!(pushed.len(), 3);

        for bytes in [1 << 20, 64] {
            let sizes = BlockSizes {
                first_bytes: bytes,
                block_bytes: bytes,
                piece_bytes: bytes / 2,
            };
            let reader = EventReader::with_sizes(file.path(), &options, sizes);
            let mut reader = reader.expect("opened");
            let mut pulled = Vec::new();
            for found in reader.by_ref() {
                let LogEvent { ap, event } = found.expect("read");
                pulled.push((ap.to_string(), event));
            }
            assert_eq!(pulled, pushed);
            let summary = reader.summary().expect("at the end");
            assert_eq!(summary.anomalies, whole.anomalies);
            assert_eq!(summary.places, whole.places);
            assert_eq!(summary.resume, whole.resume);
            assert_eq!(summary.file_bytes, whole.file_bytes);
        }
    }

    #[test]
    fn the_iterator_ends_after_an_error() {
        let record = "012 (1.0.0) 2024-01-02 03:04:05 h\n\treason\n\tCode 3 Subcode 1\n...\n";
        let whole = zstd::encode_all(record.repeat(100_000).as_bytes(), 1).expect("encoded");
        let file = write(&whole[..whole.len() - 9]);
        let mut reader = EventReader::open(file.path()).expect("opened");
        let found: Vec<_> = reader.by_ref().collect();
        let (last, events) = found.split_last().expect("an error");
        assert!(matches!(last, Err(ReadError::DamagedArchive { .. })));
        assert!(!events.is_empty());
        for found in events {
            assert_eq!(found.as_ref().expect("read").event.number, HELD);
        }
        assert!(reader.next().is_none() && reader.summary().is_none());

        let file = write(b"hello\nworld\n");
        let mut reader = EventReader::open(file.path()).expect("opened");
        let error = reader.next().expect("an error").expect_err("refused");
        assert!(matches!(error, ReadError::NotALog { .. }));
        assert!(reader.next().is_none());
    }
}
