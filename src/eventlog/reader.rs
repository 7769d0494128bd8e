//! A log file → its events: blocks of bounded size, parsed in parallel, put together in file order.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context as _, Result, bail, ensure};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::event::{self, AD_INFORMATION, Ad, Event, GENERIC, GlobalHeader, SUBMIT};
use super::record::{Anomaly, Records, begins_record, last_cut, next_cut};
use super::source::{FIND, Source};
use super::stamp::{Calendar, Stamp, Zone, offset_between};
use crate::error::hinted;

/// How a log is cut; it has no influence on what is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// How much of a log is read at once, and held in memory.
    block_bytes: usize,
    /// The piece that one thread parses at a time.
    piece_bytes: usize,
}

/// Pieces fit a core's cache; blocks keep all cores busy.
pub(super) const SIZES: Sizes = Sizes { block_bytes: 8 << 20, piece_bytes: 1 << 20 };

/// So many anomalies of a log are reported with their place; the others are only counted.
pub const PLACES: usize = 20;

/// What the log itself does not say.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Options {
    /// The name of the access point; without it the log is asked.
    pub ap: Option<String>,
    /// The year of the first event, for legacy stamps in a log that says nothing of its year.
    pub year: Option<i16>,
}

/// Events of one access point, in file order; 008 and 028 are none.
#[derive(Debug)]
pub struct Batch<'a> {
    /// The access point.
    pub ap: &'a str,
    /// The events.
    pub events: &'a [Event],
    /// What 028 records say of their jobs; a job may come several times.
    pub ads: &'a [Ad],
}

/// Where in a log an anomaly was met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// What was met.
    pub anomaly: Anomaly,
    /// The line, counted from 1.
    pub line: u64,
    /// The byte in the decompressed log, counted from 0.
    pub offset: u64,
}

/// The place of a log among the generations of an access point's global event log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// The access point.
    pub ap: String,
    /// Grows by one with each rotation.
    pub sequence: u64,
    /// When the file was created, epoch ms.
    pub created_ms: i64,
}

/// How often each anomaly was met.
pub type Anomalies = BTreeMap<Anomaly, u64>;

/// Where a log that grows can be read on, and what is known there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The end of the last whole record.
    pub offset: u64,
    /// The access point of the events there.
    ap: Option<String>,
    /// The time of the last event, epoch ms.
    near_ms: i64,
    /// Local time minus UTC, ms.
    zone_ms: i64,
    /// What was met after the last whole record, and is met again.
    pub tail: Vec<Anomaly>,
}

/// A whole log, read.
#[derive(Debug, Clone, Default)]
pub struct Log {
    /// How many records of each event number.
    pub records_by_number: BTreeMap<u16, u64>,
    /// What a sound log would not hold.
    pub anomalies: Anomalies,
    /// The first of them, with their places.
    pub places: Vec<Place>,
    /// The earliest time stamp of an event.
    pub begin_ms: Option<i64>,
    /// The latest one.
    pub end_ms: Option<i64>,
    /// The decompressed size.
    pub bytes: u64,
    /// The size of the file.
    pub file_bytes: u64,
    /// The checksum of the file.
    pub file_xxh3: String,
    /// What its first header says, if that numbers generations.
    pub generation: Option<Generation>,
    /// Where it can be read on, if it can.
    pub resume: Option<Resume>,
}

/// Reads the log at `path`; `sink` takes its events, `progress` hears of every read from the disk, in bytes.
///
/// # Errors
/// Fails when the file cannot be read, is empty, a directory, a damaged archive or no event log, and when `sink` fails.
/// Damage within the log is counted in [`Log::anomalies`] and is no error.
pub fn read(
    path: &Path,
    options: &Options,
    progress: impl Fn(u64) + Send + 'static,
    sink: &mut dyn FnMut(Batch<'_>) -> Result<()>,
) -> Result<Log> {
    read_in(SIZES, path, Assembly::new(options), progress, sink)
}

/// Whether the log at `path` can be read on after `resume`: nothing follows, or a record begins there. What looked like the
/// end of a record may have been a line of its text.
pub fn can_read_on(path: &Path, resume: &Resume) -> Result<bool> {
    let mut source = Source::open(path, |_| {})?;
    let mut head = [0; 256];
    let filled =
        if source.is_compressed() { 0 } else { source.skip(resume.offset).and_then(|()| source.fill(&mut head))? };
    Ok(!source.is_compressed() && (filled == 0 || begins_record(&head[..filled])))
}

/// Reads what follows `resume` in the log at `path`, as [`read`] reads a whole log. The counts are those of what follows.
pub fn read_on(
    path: &Path,
    resume: &Resume,
    progress: impl Fn(u64) + Send + 'static,
    sink: &mut dyn FnMut(Batch<'_>) -> Result<()>,
) -> Result<Log> {
    read_in(SIZES, path, Assembly::resume(resume), progress, sink)
}

/// Reads the text of a log in memory, on this thread; returns the number of events. What [`read`] does apart from this is
/// to read the file and to place events in time.
pub fn scan(text: &[u8]) -> usize {
    let pieces = split(text, SIZES);
    let last = pieces.len().saturating_sub(1);
    let (mut events, mut count) = (Vec::new(), 0);
    for (at, text) in pieces.into_iter().enumerate() {
        let piece = Piece::parse(text, at == last, events);
        count += piece.events.len();
        events = piece.events;
    }
    count
}

fn read_in(
    sizes: Sizes,
    path: &Path,
    mut assembly: Assembly,
    progress: impl Fn(u64) + Send + 'static,
    sink: &mut dyn FnMut(Batch<'_>) -> Result<()>,
) -> Result<Log> {
    let mut blocks = Blocks::open(path, sizes, progress)?;
    blocks.source.skip(assembly.log.bytes)?;
    // Fresh memory costs more than parsing into it, so that of one block serves the next.
    let spares: Mutex<Vec<Vec<(Stamp, Event)>>> = Mutex::default();
    let spare = || spares.lock().expect("no thread panics with the lock").pop().unwrap_or_default();
    while let Some(block) = blocks.next()? {
        let texts = split(block.text, sizes);
        let last = block.ends_log.then_some(texts.len() - 1);
        let parse = |(at, text)| Piece::parse(text, Some(at) == last, spare());
        let pieces: Vec<Piece> = texts.into_par_iter().enumerate().map(parse).collect();
        assembly.find_ap(&pieces);
        for piece in pieces {
            let events = assembly.add(piece, sink)?;
            spares.lock().expect("no thread panics with the lock").push(events);
        }
        assembly.check_is_log(path)?;
        assembly.flush(sink)?;
    }
    let (file_bytes, file_xxh3) = blocks.source.checksum();
    let can_resume = !blocks.source.is_compressed();
    let log = assembly.finish(path)?;
    let resume = log.resume.filter(|_| can_resume);
    Ok(Log { file_bytes, file_xxh3, resume, ..log })
}

/// A log as stretches of whole records.
pub(super) struct Blocks {
    source: Source,
    sizes: Sizes,
    /// Holds a block and what was read beyond it. It is filled again and again, as fresh memory costs more than reading.
    buffer: Vec<u8>,
    filled: usize,
    /// Where the last block ended.
    taken: usize,
    at_end: bool,
    place: String,
}

/// A stretch of whole records.
pub(super) struct Block<'a> {
    pub(super) text: &'a [u8],
    /// Whether the log ends with it.
    pub(super) ends_log: bool,
}

impl Blocks {
    pub(super) fn open(path: &Path, sizes: Sizes, progress: impl Fn(u64) + Send + 'static) -> Result<Blocks> {
        let source = Source::open(path, progress)?;
        let place = path.display().to_string();
        Ok(Blocks { source, sizes, buffer: Vec::new(), filled: 0, taken: 0, at_end: false, place })
    }

    pub(super) fn next(&mut self) -> Result<Option<Block<'_>>> {
        self.buffer.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        self.taken = 0;
        while self.taken == 0 && !self.at_end {
            self.read()?;
            self.taken = if self.at_end { self.filled } else { last_cut(&self.buffer[..self.filled]).unwrap_or(0) };
        }
        let text = &self.buffer[..self.taken];
        Ok((!text.is_empty()).then_some(Block { text, ends_log: self.at_end }))
    }

    /// Reads as much as a block holds.
    fn read(&mut self) -> Result<()> {
        let wanted = self.filled + self.sizes.block_bytes;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        let read = self.source.fill(&mut self.buffer[self.filled..wanted]);
        let read = read.with_context(|| format!("cannot read the log `{}`", self.place))?;
        self.filled += read;
        self.at_end = read < self.sizes.block_bytes;
        Ok(())
    }
}

pub(super) fn split(block: &[u8], sizes: Sizes) -> Vec<&[u8]> {
    let mut pieces = Vec::with_capacity(block.len() / sizes.piece_bytes + 1);
    let mut start = 0;
    while start < block.len() {
        let end = next_cut(block, (start + sizes.piece_bytes).min(block.len()));
        pieces.push(&block[start..end]);
        start = end;
    }
    pieces
}

/// What is known of the time of the first event before it is read.
pub(super) fn first_calendar(options: &Options) -> Calendar {
    let near_ms = options.year.and_then(|year| {
        // From noon of 2 July both ends of the year are equally far, so the first event falls into it.
        let middle = jiff::civil::Date::new(year, 7, 2).ok()?.at(12, 0, 0, 0);
        Some(middle.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_millisecond())
    });
    Calendar::new(near_ms, 0)
}

/// What tells the year: before which event of its piece it stands, and what it says.
enum Anchor {
    Header(Stamp, GlobalHeader),
    Ad(Stamp),
}

/// What one thread made of one piece; stamps are not yet placed in time.
#[derive(Default)]
struct Piece {
    bytes: u64,
    events: Vec<(Stamp, Event)>,
    anchors: Vec<(usize, Anchor)>,
    ads: Vec<Ad>,
    submit_host: Option<String>,
    records_by_number: BTreeMap<u16, u64>,
    anomalies: Vec<(Anomaly, usize)>,
    /// Where the last whole record ends; `None` if its last line feed is missing.
    whole_end: Option<usize>,
}

impl Piece {
    /// Parses `text`; the memory of `events` is used again.
    fn parse(text: &[u8], ends_log: bool, mut events: Vec<(Stamp, Event)>) -> Piece {
        events.clear();
        let mut piece = Piece { bytes: text.len() as u64, events, ..Piece::default() };
        let mut records = Records::new(text, ends_log);
        let mut counts = vec![0u64; 1000];
        let mut known = Known::default();
        let mut out_of_range = Vec::new();
        for record in records.by_ref() {
            let header = record.header;
            counts[usize::from(header.number)] += 1;
            let place = piece.events.len();
            match header.number {
                AD_INFORMATION if known.meet((header.cluster, header.proc)) => {}
                AD_INFORMATION => {
                    piece.ads.extend(event::ad(&record));
                    if !piece.anchors.iter().any(|(_, anchor)| matches!(anchor, Anchor::Ad(_))) {
                        piece.anchors.extend(event::ad_stamp(&record).map(|stamp| (place, Anchor::Ad(stamp))));
                    }
                }
                GENERIC => {
                    let global = event::global_header(&record);
                    piece.anchors.extend(global.map(|global| (place, Anchor::Header(header.stamp, global))));
                }
                _ => piece.events.push((header.stamp, event::event(&record))),
            }
            if event::job(&header).is_none() {
                out_of_range.push((Anomaly::JobIdOutOfRange, record.at));
            }
            if header.number == SUBMIT && piece.submit_host.is_none() {
                piece.submit_host = event::submit_host(&record);
            }
        }
        piece.records_by_number = (0u16..).zip(counts).filter(|(_, count)| *count > 0).collect();
        piece.whole_end = records.whole_end;
        piece.anomalies = records.anomalies;
        piece.anomalies.extend(out_of_range);
        piece.anomalies.sort_by_key(|(_, at)| *at);
        piece
    }
}

/// Jobs whose ad was read: it says the same after every event. Forgets some, as reading an ad twice does no harm.
struct Known(Vec<(i64, i64)>);

impl Default for Known {
    fn default() -> Known {
        Known(vec![(-1, -1); 1 << 9])
    }
}

impl Known {
    /// Whether `job` is known; from now on it is.
    fn meet(&mut self, job: (i64, i64)) -> bool {
        let slot = (job.0.wrapping_mul(31).wrapping_add(job.1)) as usize % self.0.len();
        std::mem::replace(&mut self.0[slot], job) == job
    }
}

/// Puts the pieces of one file together, in order.
struct Assembly {
    log: Log,
    calendar: Calendar,
    ap: Option<String>,
    /// Whether `ap` is final: given by the caller.
    ap_given: bool,
    /// Whether the file is known to be an event log.
    is_log: bool,
    events: Vec<Event>,
    ads: Vec<Ad>,
    /// Events without a year from before anything told it.
    undated: Vec<(Stamp, Event)>,
    /// The end of the last whole record; `None` if its last line feed is missing.
    whole_end: Option<u64>,
    /// What was met after it.
    tail: Vec<Anomaly>,
}

impl Assembly {
    fn new(options: &Options) -> Assembly {
        Assembly {
            log: Log::default(),
            calendar: first_calendar(options),
            ap: options.ap.clone(),
            ap_given: options.ap.is_some(),
            is_log: false,
            events: Vec::new(),
            ads: Vec::new(),
            undated: Vec::new(),
            whole_end: Some(0),
            tail: Vec::new(),
        }
    }

    /// As it was when `resume` was noted, but for the counts.
    fn resume(resume: &Resume) -> Assembly {
        let mut assembly = Assembly::new(&Options { ap: resume.ap.clone(), year: None });
        (assembly.ap_given, assembly.is_log) = (false, true);
        assembly.calendar = Calendar::new(Some(resume.near_ms), resume.zone_ms);
        assembly.log.bytes = resume.offset;
        assembly.whole_end = Some(resume.offset);
        assembly
    }

    /// A file that begins with a whole block of nothing but junk is no event log.
    fn check_is_log(&self, path: &Path) -> Result<()> {
        let sound = self.is_log
            || !self.log.records_by_number.is_empty()
            || self.log.anomalies.keys().any(|kind| *kind != Anomaly::Junk);
        ensure!(
            sound,
            hinted(
                format!("`{}` is no HTCondor event log", path.display()),
                format!("an event log's records begin like `012 (123.000.000) 11/21 01:49:47`; {FIND}")
            )
        );
        Ok(())
    }

    /// Before the first events: asks the first block for the access point. A header that names it comes before all.
    fn find_ap(&mut self, pieces: &[Piece]) {
        if self.ap.is_some() {
            return;
        }
        let creator = pieces.iter().flat_map(|piece| &piece.anchors).find_map(|(_, anchor)| match anchor {
            Anchor::Header(_, header) => header.creator.clone(),
            Anchor::Ad(_) => None,
        });
        let schedd = || pieces.iter().flat_map(|piece| &piece.ads).map(|ad| ad.schedd.clone()).next();
        let host = || pieces.iter().find_map(|piece| piece.submit_host.clone());
        self.ap = creator.or_else(schedd).or_else(host);
    }

    /// Adds the next piece; gives back the memory of its events.
    fn add(&mut self, mut piece: Piece, sink: &mut dyn FnMut(Batch<'_>) -> Result<()>) -> Result<Vec<(Stamp, Event)>> {
        let mut anchors = piece.anchors.into_iter().peekable();
        for (index, (stamp, event)) in piece.events.drain(..).enumerate() {
            while let Some((_, anchor)) = anchors.next_if(|(at, _)| *at <= index) {
                self.enter(&anchor, stamp, sink)?;
            }
            self.place(stamp, event);
        }
        for (_, anchor) in anchors {
            let (Anchor::Header(stamp, _) | Anchor::Ad(stamp)) = &anchor;
            self.enter(&anchor, *stamp, sink)?;
        }
        for (number, count) in piece.records_by_number {
            *self.log.records_by_number.entry(number).or_default() += count;
        }
        if piece.whole_end != Some(0) {
            self.whole_end = piece.whole_end.map(|end| self.log.bytes + end as u64);
            self.tail.clear();
        }
        let whole_end = self.whole_end.unwrap_or(0);
        self.tail.extend(
            piece
                .anomalies
                .iter()
                .filter(|(_, at)| self.log.bytes + *at as u64 >= whole_end)
                .map(|(anomaly, _)| *anomaly),
        );
        for (anomaly, at) in piece.anomalies {
            *self.log.anomalies.entry(anomaly).or_default() += 1;
            if self.log.places.len() < PLACES {
                self.log.places.push(Place { anomaly, line: 0, offset: self.log.bytes + at as u64 });
            }
        }
        self.ads.extend(piece.ads);
        self.log.bytes += piece.bytes;
        Ok(piece.events)
    }

    fn place(&mut self, stamp: Stamp, event: Event) {
        if stamp.has_year && !self.undated.is_empty() {
            self.date_back(stamp);
        }
        match self.calendar.place(stamp) {
            Some(time_ms) => self.keep(Event { time_ms, ..event }),
            None => self.undated.push((stamp, event)),
        }
    }

    fn keep(&mut self, event: Event) {
        self.log.begin_ms = Some(self.log.begin_ms.map_or(event.time_ms, |begin| begin.min(event.time_ms)));
        self.log.end_ms = self.log.end_ms.max(Some(event.time_ms));
        self.events.push(event);
    }

    /// Places the events before the first time with a year, from the last back to the first.
    fn date_back(&mut self, anchor: Stamp) {
        let mut calendar = Calendar::new(None, 0);
        calendar.place(anchor);
        let mut undated = std::mem::take(&mut self.undated);
        for (stamp, event) in undated.iter_mut().rev() {
            event.time_ms = calendar.place(*stamp).unwrap_or_default();
        }
        undated.into_iter().for_each(|(_, event)| self.keep(event));
    }

    /// A header begins a file: its creation time gives the year, and the zone of the stamps around it. The stamp of a
    /// rotated file's header is that of its rotation, so there the first event has to tell. Without a header, the first
    /// job ad tells the year.
    fn enter(
        &mut self,
        anchor: &Anchor,
        first_stamp: Stamp,
        sink: &mut dyn FnMut(Batch<'_>) -> Result<()>,
    ) -> Result<()> {
        let (header_stamp, header) = match anchor {
            Anchor::Header(stamp, header) => (*stamp, header),
            Anchor::Ad(stamp) => {
                if !self.calendar.is_set() {
                    self.date_back(*stamp);
                    self.calendar.place(*stamp);
                }
                return Ok(());
            }
        };
        if let Some(creator) = header.creator.as_ref().filter(|name| !self.ap_given && self.ap.as_ref() != Some(*name))
        {
            self.flush(sink)?;
            self.ap = Some(creator.clone());
        }
        let created_ms = header.created_s.saturating_mul(1000);
        if self.log.generation.is_none() && header.sequence > 0 {
            let ap = self.ap.clone().unwrap_or_default();
            self.log.generation = Some(Generation { ap, sequence: header.sequence, created_ms });
        }
        let local = if header.is_live { header_stamp } else { first_stamp };
        let offset_ms = offset_between(local, created_ms).unwrap_or(0);
        if !self.undated.is_empty() {
            self.date_back(Stamp { ms: created_ms + offset_ms, has_year: true, zone: Zone::Known });
        }
        self.calendar = Calendar::new(Some(created_ms), offset_ms);
        Ok(())
    }

    fn flush(&mut self, sink: &mut dyn FnMut(Batch<'_>) -> Result<()>) -> Result<()> {
        let ap = self.ap.as_deref().unwrap_or("unknown");
        sink(Batch { ap, events: &self.events, ads: &self.ads })?;
        self.events.clear();
        self.ads.clear();
        Ok(())
    }

    fn finish(mut self, path: &Path) -> Result<Log> {
        if !self.undated.is_empty() {
            bail!(hinted(
                format!("`{}` has time stamps without a year, and nothing in it tells which", path.display()),
                "name the year of its first event, for instance `--year 2026`"
            ));
        }
        find_lines(path, &mut self.log.places)?;
        self.log.resume = self.whole_end.zip(self.calendar.state()).map(|(offset, (near_ms, zone_ms))| Resume {
            offset,
            ap: self.ap,
            near_ms,
            zone_ms,
            tail: self.tail,
        });
        Ok(self.log)
    }
}

/// Finds the lines of `places`, which are in order of their offsets.
fn find_lines(path: &Path, places: &mut [Place]) -> Result<()> {
    let Some(last) = places.last().map(|place| place.offset) else { return Ok(()) };
    let mut source = Source::open(path, |_| {})?;
    let mut block = vec![0; SIZES.piece_bytes];
    let (mut start, mut line, mut next) = (0u64, 1u64, 0);
    while start <= last && next < places.len() {
        let filled = source.fill(&mut block)?;
        let mut counted = 0;
        while let Some(place) = places.get_mut(next).filter(|place| place.offset < start + filled as u64) {
            let at = (place.offset - start) as usize;
            line += memchr::memchr_iter(b'\n', &block[counted..at]).count() as u64;
            (place.line, counted, next) = (line, at, next + 1);
        }
        if filled == 0 {
            break;
        }
        line += memchr::memchr_iter(b'\n', &block[counted..filled]).count() as u64;
        start += filled as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eventlog::RemovedBy;
    use proptest::prelude::*;

    /// What was read of a log.
    #[derive(Debug, Clone, PartialEq)]
    struct Found {
        events: Vec<(String, Event)>,
        anomalies: Anomalies,
        places: Vec<Place>,
    }

    impl Found {
        fn times(&self) -> Vec<String> {
            self.events.iter().map(|(_, event)| crate::output::utc(event.time_ms)).collect()
        }
    }

    fn read_text(text: impl AsRef<[u8]>, options: &Options, sizes: Sizes) -> Result<(Found, Log)> {
        read_with(text, Assembly::new(options), sizes)
    }

    fn read_with(text: impl AsRef<[u8]>, assembly: Assembly, sizes: Sizes) -> Result<(Found, Log)> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("log");
        fs_err::write(&path, text)?;
        let mut events = Vec::new();
        let log = read_in(sizes, &path, assembly, |_| {}, &mut |batch| {
            events.extend(batch.events.iter().map(|event| (batch.ap.to_owned(), *event)));
            Ok(())
        })?;
        Ok((Found { events, anomalies: log.anomalies.clone(), places: log.places.clone() }, log))
    }

    fn found(text: impl AsRef<[u8]>) -> Found {
        read_text(text, &Options::default(), SIZES).expect("read").0
    }

    const HEADER: &str = "008 (-01.-01.-01) 12/31 17:59:00 Global JobLog: ctime=1704067140 id=0 sequence=1 size=0 events=0 offset=0 event_off=0 max_rotation=5 creator_name=<ap@x>\n...\n";

    #[test]
    fn year_and_zone_come_from_the_header() {
        // ctime is 2023-12-31 23:59:00 UTC, the stamp says 17:59: six hours west of UTC.
        let text = format!(
            "{HEADER}000 (1.0.0) 12/31 17:59:30 s\n...\n012 (1.0.0) 12/31 18:00:10 h\n\tCode 3 Subcode 1\n...\n"
        );
        let (found, log) = read_text(text, &Options::default(), SIZES).expect("read");
        let times: Vec<i64> = found.events.iter().map(|(_, event)| event.time_ms).collect();
        assert_eq!(times, [1_704_067_170_000, 1_704_067_210_000]);
        assert_eq!((found.events[0].0.as_str(), log.end_ms), ("ap@x", Some(1_704_067_210_000)));
        assert_eq!(log.records_by_number, BTreeMap::from([(0, 1), (8, 1), (12, 1)]));
        assert_eq!(log.generation, Some(Generation { ap: "ap@x".into(), sequence: 1, created_ms: 1_704_067_140_000 }));
        assert!(log.anomalies.is_empty());
    }

    #[test]
    fn a_year_is_never_guessed() {
        let text = "000 (1.0.0) 12/31 17:59:30 s\n...\n";
        let error = read_text(text, &Options::default(), SIZES).expect_err("no year");
        assert!(crate::error::render(&error).contains("--year"));
        let given = Options { year: Some(2019), ..Options::default() };
        assert_eq!(read_text(text, &given, SIZES).expect("read").0.times(), ["2019-12-31 17:59:30 UTC"]);
    }

    #[test]
    fn later_stamps_and_ads_tell_the_year_of_earlier_ones() {
        let legacy = "000 (1.0.0) 12/31 23:59:58 s\n...\n001 (1.0.0) 01/01 00:00:01 x\n...\n";
        let iso = "006 (1.0.0) 2022-01-01 00:00:09 i\n...\n";
        let ad = "028 (1.0.0) 01/01 00:00:09 Job ad information event triggered.\nEventTime = \"2022-01-01T00:00:09.123\"\n...\n";
        let expected = ["2021-12-31 23:59:58 UTC", "2022-01-01 00:00:01 UTC"];
        assert_eq!(found(format!("{legacy}{iso}")).times()[..2], expected);
        assert_eq!(found(format!("{legacy}{ad}")).times(), expected);
    }

    #[test]
    fn the_access_point_is_the_headers_then_the_ads_then_the_hosts() {
        let submit =
            "000 (1.0.0) 2024-01-01 00:00:01 Job submitted from host: <10.0.0.1:9618?alias=host.example>\n...\n";
        let ad = "028 (1.0.0) 2024-01-01 00:00:01 Job ad information event triggered.\nGlobalJobId = \"schedd#1.0#7\"\n...\n";
        let ap = |text: String| found(text).events[0].0.clone();
        assert_eq!(ap(submit.to_owned()), "host.example");
        assert_eq!(ap(format!("{submit}{ad}")), "schedd");
        assert_eq!(ap(format!("{HEADER}{submit}{ad}")), "ap@x");
        assert_eq!(ap("001 (1.0.0) 2024-01-01 00:00:01 x\n...\n".to_owned()), "unknown");
        let other = HEADER.replace("ap@x", "ap@y");
        let both = found(format!("{HEADER}{submit}{other}{submit}"));
        assert_eq!([&both.events[0].0, &both.events[1].0], ["ap@x", "ap@y"], "two logs put together");
    }

    #[test]
    fn json_and_xml_stand_beside_text() {
        let text = "012 (1.0.0) 2024-01-02 03:04:05 h\n\tCode 3 Subcode 1\n...\n";
        let json = "{\n  \"EventTypeNumber\": 5,\n  \"Cluster\": 1,\n  \"Proc\": 0,\n  \"EventTime\": \"2024-01-02T03:04:06\",\n  \"TerminatedNormally\": true,\n  \"ReturnValue\": 7\n}\n";
        let xml = "<?xml version=\"1.0\"?>\n<!DOCTYPE classads SYSTEM \"classads.dtd\">\n<classads>\n<c>\n    <a n=\"EventTypeNumber\"><i>12</i></a>\n    <a n=\"Cluster\"><i>1</i></a>\n    <a n=\"Proc\"><i>0</i></a>\n    <a n=\"HoldReasonCode\"><i>13</i></a>\n    <a n=\"HoldReasonSubCode\"><i>2</i></a>\n    <a n=\"EventTime\"><s>2024-01-02T03:04:07</s></a>\n</c>\n</classads>\n";
        let all = found(format!("{text}{json}{xml}{text}"));
        let said: Vec<_> =
            all.events.iter().map(|(_, e)| (e.number, e.hold_code, e.hold_subcode, e.normal, e.value)).collect();
        assert_eq!(said, [(12, 3, 1, 0, 0), (5, 0, 0, 1, 7), (12, 13, 2, 0, 0), (12, 3, 1, 0, 0)]);
        assert!(all.anomalies.is_empty(), "{:?}", all.anomalies);
        assert_eq!(found(xml).events.len(), 1, "a log that begins with a prolog");
    }

    #[test]
    fn what_is_no_log_is_refused() {
        for text in ["hello\nworld\n", "{\n}\n", "<c></c>", "{\n  \"a\": 1\n}\n"] {
            let error = read_text(text, &Options::default(), SIZES).expect_err("refused");
            assert!(error.to_string().contains("no HTCondor event log"), "{error}");
        }
        assert!(read_text("012 (12.0", &Options::default(), SIZES).is_ok(), "a log cut in its first line is a log");
    }

    #[test]
    fn anomalies_have_their_places() {
        let sound = "001 (1.0.0) 2024-01-02 03:04:05 x\n...\n";
        let all =
            found(format!("{sound}\n{sound}junk\nmore\n{sound}012 (1.x.0) 2024-01-02 03:04:05 h\n...\n{sound}013 (1."));
        let places: Vec<_> = all.places.iter().map(|place| (place.anomaly, place.line, place.offset)).collect();
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

    /// Sound and damaged stretches of a log.
    const PARTS: [&str; 14] = [
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
    ];

    /// `event` as HTCondor writes it; `form` chooses among stamps with and without milliseconds and zone.
    fn text_of(event: &Event, form: usize) -> String {
        let precise = ["%Y-%m-%d %H:%M:%S.%3f", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%3fZ", "%Y-%m-%dT%H:%M:%SZ"];
        let stamp = jiff::Timestamp::from_millisecond(event.time_ms).expect("in range").strftime(precise[form]);
        let Event { number, cluster, proc, hold_code, hold_subcode, value, .. } = event;
        let rest = match (number, event.normal) {
            (12, _) => format!("Job was held.\n\tsome reason\n\tCode {hold_code} Subcode {hold_subcode}"),
            (5, 1) => format!("Job terminated.\n\t(1) Normal termination (return value {value})\n\t(0) No core file"),
            (5, _) => format!("Job terminated.\n\t(0) Abnormal termination (signal {value})\n\t(0) No core file"),
            (9, _) => "Job was aborted.\n\tvia condor_rm (by user ada)".to_owned(),
            _ => "Job executing on host: <10.0.0.1:9618>".to_owned(),
        };
        format!("{number:03} ({cluster:03}.{proc:03}.000) {stamp} {rest}\n...\n")
    }

    proptest! {
        /// However a log is cut, the same is read.
        #[test]
        fn cuts_make_no_difference(
            parts in proptest::collection::vec(0..PARTS.len(), 0..40),
            block_bytes in 1..900usize,
            piece_bytes in 1..300usize,
        ) {
            let text: String = parts.iter().map(|&part| PARTS[part]).collect();
            let text = format!("{}{text}", PARTS[0]);
            let whole = read_text(&text, &Options::default(), SIZES).expect("read").0;
            let cut = read_text(&text, &Options::default(), Sizes { block_bytes, piece_bytes }).expect("read").0;
            prop_assert_eq!(whole, cut);
        }

        /// What is written as HTCondor writes it is read as it was.
        #[test]
        fn events_come_back_from_their_text(
            jobs in proptest::collection::vec((0..i32::MAX, 0..i32::MAX), 1..20),
            kind in 0..5usize,
            value in -300..300i32,
            time_ms in 946_684_800_000..4_102_444_800_000i64,
            form in 0..4usize,
        ) {
            let number = [12u16, 5, 5, 9, 1][kind];
            let precise_ms = if form % 2 == 0 { time_ms } else { time_ms / 1000 * 1000 };
            let events: Vec<Event> = jobs.iter().map(|&(cluster, proc)| Event {
                time_ms: precise_ms,
                cluster,
                proc,
                number,
                normal: u8::from(kind == 1),
                value: match kind { 1 => value, 2 => value.abs(), 3 => RemovedBy::Person as i32, _ => 0 },
                hold_code: if number == 12 { value.abs() } else { 0 },
                hold_subcode: if number == 12 { value } else { 0 },
                text_hash: 0,
            }).collect();
            let text: String = events.iter().map(|event| text_of(event, form)).collect();
            let options = Options { year: None, ..Options::default() };
            let read = read_text(text, &options, SIZES).expect("read").0;
            let back: Vec<Event> = read.events.into_iter().map(|(_, event)| Event { text_hash: 0, ..event }).collect();
            prop_assert_eq!(back, events);
            prop_assert!(read.anomalies.is_empty());
        }

        /// A log that is read, grows and is read on gives what one reading gives.
        #[test]
        fn reading_on_makes_no_difference(parts in proptest::collection::vec(0..PARTS.len(), 1..20), cut in 0..2000usize) {
            let text: String = parts.iter().map(|&part| PARTS[part]).collect();
            let text = format!("{}{text}", PARTS[0]);
            let (whole, whole_log) = read_text(&text, &Options::default(), SIZES).expect("read");
            let cut = (PARTS[0].len() + cut).min(text.len());
            let (first, first_log) = read_text(&text.as_bytes()[..cut], &Options::default(), SIZES).expect("read");
            let begins = |resume: &Resume| {
                let rest = &text.as_bytes()[resume.offset as usize..];
                rest.is_empty() || begins_record(rest)
            };
            if let Some(resume) = first_log.resume.filter(begins) {
                let (second, second_log) = read_with(&text, Assembly::resume(&resume), SIZES).expect("read");
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
                prop_assert_eq!(second_log.file_xxh3, whole_log.file_xxh3);
            }
        }

        /// A log that is cut off gives the events of its whole records.
        #[test]
        fn truncation_loses_no_whole_record(parts in proptest::collection::vec(0..3usize, 1..8), cut in 0..400usize) {
            let records: Vec<&str> = parts.iter().map(|&part| PARTS[part]).collect();
            let text = records.concat();
            let cut = cut.min(text.len());
            let mut end = 0;
            let mut whole = 0;
            for record in &records {
                end += record.len();
                // The line feed of the last terminator may be missing.
                whole += usize::from(end <= cut + 1);
            }
            if let Ok((found, _)) = read_text(&text.as_bytes()[..cut], &Options::default(), SIZES) {
                // A cut in the middle of a reason that holds a terminator looks like an end.
                let early = found.events.len() - whole;
                prop_assert!(early <= usize::from(parts.contains(&2)), "{} events of {whole} records", found.events.len());
            } else {
                prop_assert!(cut < 6, "{cut}");
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), parts in proptest::collection::vec(0..PARTS.len(), 0..4)) {
            let mut text: Vec<u8> = parts.iter().flat_map(|&part| PARTS[part].bytes()).collect();
            text.extend(bytes);
            drop(read_text(&text, &Options { year: Some(2024), ..Options::default() }, Sizes { block_bytes: 100, piece_bytes: 30 }));
        }
    }
}
