//! A log file → its events: blocks of bounded size, parsed in parallel, put together in file order.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use rayon::prelude::*;

use super::event::{self, AD_INFORMATION, Ad, Event, GENERIC, GlobalHeader, SUBMIT};
use super::record::{Anomalies, Anomaly, Records, last_cut, next_cut, parse_header};
use super::source::{FIND, Source};
use super::stamp::{Calendar, Stamp, offset_between};
use crate::error::hinted;

/// How much of a log is held in memory at once.
const BLOCK_BYTES: usize = 64 << 20;
/// The piece that one thread parses at a time.
const PIECE_BYTES: usize = 1 << 20;
/// A file without a single record in its first bytes is no event log.
const PROBE_BYTES: usize = 1 << 20;

/// What the log itself does not say.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The name of the access point; without it the log is asked.
    pub ap: Option<String>,
    /// The year of the first event, for legacy stamps in a log without a header.
    pub year: Option<i16>,
}

/// A whole log, read.
#[derive(Debug, Default)]
pub struct Log {
    /// The access point.
    pub ap: String,
    /// Every event but 008 and 028, in file order.
    pub events: Vec<Event>,
    /// What the 028 records say of their jobs, each job once.
    pub ads: Vec<Ad>,
    /// How many records of each event number.
    pub records_by_number: BTreeMap<u16, u64>,
    /// What a sound log would not hold.
    pub anomalies: Anomalies,
    /// The latest time stamp.
    pub end_ms: Option<i64>,
    /// The decompressed size.
    pub bytes: u64,
}

/// Reads the log at `path`; `progress` hears of every read from the disk, in bytes.
///
/// # Errors
/// Fails when the file cannot be read, is empty, a directory, a damaged archive or no text event log. Damage within the
/// log is counted in [`Log::anomalies`] and is no error.
pub fn read(path: &Path, options: &Options, progress: impl Fn(u64) + Send + 'static) -> Result<Log> {
    let source = Source::open(path, progress)?;
    let mut assembly = Assembly::new(options.clone());
    let mut blocks = Blocks { source, carry: Vec::new(), at_end: false, place: path.display().to_string() };
    while let Some(block) = blocks.next()? {
        let pieces: Vec<Piece> = split(&block).into_par_iter().map(Piece::parse).collect();
        assembly.log.bytes += block.len() as u64;
        pieces.into_iter().for_each(|piece| assembly.add(piece));
    }
    assembly.finish(path)
}

struct Blocks {
    source: Source,
    carry: Vec<u8>,
    at_end: bool,
    place: String,
}

impl Blocks {
    /// The next stretch of whole records; the last one ends with the log.
    fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let mut block = std::mem::take(&mut self.carry);
        let first = block.is_empty();
        while !self.at_end {
            let start = block.len();
            block.resize(start + BLOCK_BYTES, 0);
            let filled = self.source.fill(&mut block[start..]);
            let filled = filled.with_context(|| format!("cannot read the log `{}`", self.place))?;
            block.truncate(start + filled);
            self.at_end = filled < BLOCK_BYTES;
            if first && start == 0 {
                check_is_event_log(&block, &self.place)?;
            }
            if let Some(cut) = last_cut(&block).filter(|_| !self.at_end) {
                self.carry = block.split_off(cut);
                break;
            }
        }
        Ok((!block.is_empty()).then_some(block))
    }
}

fn check_is_event_log(text: &[u8], place: &str) -> Result<()> {
    let head = &text[..text.len().min(PROBE_BYTES)];
    let starts = std::iter::once(0).chain(memchr::memchr_iter(b'\n', head).map(|at| at + 1));
    let any = starts.map(|at| &text[at..]).any(|line| parse_header(line).is_some() || is_cut_header(line));
    let form = match head.iter().find(|b| !b.is_ascii_whitespace()) {
        Some(b'{') => "; JSON event logs are not read yet",
        Some(b'<') => "; XML event logs are not read yet",
        _ => "",
    };
    ensure!(
        any,
        hinted(
            format!("`{place}` is no HTCondor event log{form}"),
            format!("an event log's records begin like `012 (123.000.000) 11/21 01:49:47`; {FIND}")
        )
    );
    Ok(())
}

/// A log so young that not even its first header line is whole.
fn is_cut_header(line: &[u8]) -> bool {
    line.len() < 40 && line.len() > 5 && line[..3].iter().all(u8::is_ascii_digit) && line[3..].starts_with(b" (")
}

fn split(block: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::with_capacity(block.len() / PIECE_BYTES + 1);
    let mut start = 0;
    while start < block.len() {
        let end = next_cut(block, (start + PIECE_BYTES).min(block.len()));
        pieces.push(&block[start..end]);
        start = end;
    }
    pieces
}

/// What one thread made of one piece; stamps are not yet placed in time.
#[derive(Default)]
struct Piece {
    events: Vec<(Stamp, Event)>,
    headers: Vec<(usize, Stamp, GlobalHeader)>,
    ads: HashSet<Ad>,
    submit_host: Option<String>,
    records_by_number: BTreeMap<u16, u64>,
    anomalies: Anomalies,
}

impl Piece {
    fn parse(text: &[u8]) -> Piece {
        let mut piece = Piece::default();
        let mut records = Records::new(text);
        let mut counts = vec![0u64; 1000];
        for record in records.by_ref() {
            let header = record.header;
            counts[usize::from(header.number)] += 1;
            match header.number {
                AD_INFORMATION => piece.ads.extend(event::ad(&record)),
                GENERIC => {
                    let global = event::global_header(&record);
                    piece.headers.extend(global.map(|global| (piece.events.len(), header.stamp, global)));
                }
                _ => piece.events.push((header.stamp, event::event(&record))),
            }
            if header.number == SUBMIT && piece.submit_host.is_none() {
                piece.submit_host = event::submit_host(&record);
            }
        }
        let met = (0u16..).zip(counts).filter(|(_, count)| *count > 0);
        piece.records_by_number = met.collect();
        piece.anomalies = records.anomalies;
        piece
    }
}

/// Puts the pieces of one file together, in order.
struct Assembly {
    options: Options,
    log: Log,
    calendar: Calendar,
    creator: Option<String>,
    submit_host: Option<String>,
    ads: HashSet<Ad>,
    without_year: u64,
}

impl Assembly {
    fn new(options: Options) -> Assembly {
        let near_ms = options.year.and_then(|year| {
            // From noon of 2 July both ends of the year are equally far, so the first event falls into it.
            let middle = jiff::civil::Date::new(year, 7, 2).ok()?.at(12, 0, 0, 0);
            Some(middle.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_millisecond())
        });
        Assembly {
            options,
            log: Log::default(),
            calendar: Calendar::new(near_ms, 0),
            creator: None,
            submit_host: None,
            ads: HashSet::new(),
            without_year: 0,
        }
    }

    fn add(&mut self, piece: Piece) {
        let mut headers = piece.headers.into_iter().peekable();
        for (index, (stamp, event)) in piece.events.iter().enumerate() {
            while let Some((_, header_stamp, header)) = headers.next_if(|(at, ..)| *at <= index) {
                self.enter(header_stamp, *stamp, header);
            }
            match self.calendar.place(*stamp) {
                Some(time_ms) => {
                    self.log.end_ms = self.log.end_ms.max(Some(time_ms));
                    self.log.events.push(Event { time_ms, ..*event });
                }
                None => self.without_year += 1,
            }
        }
        headers.for_each(|(_, header_stamp, header)| self.enter(header_stamp, header_stamp, header));
        for (number, count) in piece.records_by_number {
            *self.log.records_by_number.entry(number).or_default() += count;
        }
        for (anomaly, count) in piece.anomalies {
            *self.log.anomalies.entry(anomaly).or_default() += count;
        }
        self.ads.extend(piece.ads);
        self.submit_host = self.submit_host.take().or(piece.submit_host);
    }

    /// A header begins a file: its creation time gives the year, and the zone of the stamps around it. The stamp of a
    /// rotated file's header is that of its rotation, so there the first event has to tell.
    fn enter(&mut self, header_stamp: Stamp, first_stamp: Stamp, header: GlobalHeader) {
        let created_ms = header.created_s.saturating_mul(1000);
        let local = if header.is_live { header_stamp } else { first_stamp };
        let offset_ms = offset_between(local, created_ms).unwrap_or(0);
        self.calendar = Calendar::new(Some(created_ms), offset_ms);
        self.creator = self.creator.take().or(header.creator);
    }

    fn finish(mut self, path: &Path) -> Result<Log> {
        ensure!(
            self.without_year == 0 || !self.log.events.is_empty(),
            hinted(
                format!("`{}` has time stamps without a year, and nothing in it tells which", path.display()),
                "name the year of its first event, for instance `--year 2026`"
            )
        );
        if self.without_year > 0 {
            self.log.anomalies.insert(Anomaly::NoYear, self.without_year);
        }
        let schedd = self.ads.iter().map(|ad| &ad.schedd).min().cloned();
        let known = self.options.ap.or(self.creator).or(schedd).or(self.submit_host);
        self.log.ap = known.unwrap_or_else(|| "unknown".to_owned());
        self.log.ads = self.ads.into_iter().collect();
        self.log.ads.par_sort_unstable_by(|a, b| (a.cluster, a.proc, a.submit_s).cmp(&(b.cluster, b.proc, b.submit_s)));
        Ok(self.log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str, options: &Options) -> Result<Log> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("log");
        fs_err::write(&path, text)?;
        read(&path, options, |_| {})
    }

    const HEADER: &str = "008 (-01.-01.-01) 12/31 17:59:00 Global JobLog: ctime=1704067140 id=0 sequence=1 size=0 events=0 offset=0 event_off=0 max_rotation=5 creator_name=<ap@x>\n...\n";

    #[test]
    fn year_and_zone_come_from_the_header() {
        // ctime is 2023-12-31 23:59:00 UTC, the stamp says 17:59: six hours west of UTC.
        let text = format!(
            "{HEADER}000 (1.0.0) 12/31 17:59:30 s\n...\n012 (1.0.0) 12/31 18:00:10 h\n\tCode 3 Subcode 1\n...\n"
        );
        let log = read_text(&text, &Options::default()).expect("read");
        let times: Vec<i64> = log.events.iter().map(|event| event.time_ms).collect();
        assert_eq!(times, [1_704_067_170_000, 1_704_067_210_000]);
        assert_eq!((log.ap.as_str(), log.end_ms), ("ap@x", Some(1_704_067_210_000)));
        assert_eq!(log.records_by_number, BTreeMap::from([(0, 1), (8, 1), (12, 1)]));
        assert!(log.anomalies.is_empty());
    }

    #[test]
    fn a_year_is_never_guessed() {
        let text = "000 (1.0.0) 12/31 17:59:30 s\n...\n";
        let error = read_text(text, &Options::default()).expect_err("no year");
        assert!(crate::error::render(&error).contains("--year"));
        let log = read_text(text, &Options { year: Some(2019), ..Options::default() }).expect("read");
        assert_eq!(crate::output::utc(log.events[0].time_ms), "2019-12-31 17:59:30 UTC");
    }

    #[test]
    fn what_is_no_log_is_refused() {
        for (text, word) in [("hello\nworld\n", "no HTCondor event log"), ("{\n}\n", "JSON"), ("<c></c>", "XML")] {
            let error = read_text(text, &Options::default()).expect_err("refused");
            assert!(error.to_string().contains(word), "{error}");
        }
        assert!(read_text("012 (12.0", &Options::default()).is_ok(), "a log cut in its first line is a log");
    }

    #[test]
    fn pieces_cover_a_block_whatever_their_size() {
        let text = "001 (1.0.0) 2024-01-02 03:04:05 x\n\ty\n...\n".repeat(60_000);
        let pieces = split(text.as_bytes());
        assert!(pieces.len() > 1);
        assert_eq!(pieces.concat(), text.as_bytes());
        assert_eq!(pieces.iter().map(|p| Records::new(p).count()).sum::<usize>(), 60_000);
    }
}
