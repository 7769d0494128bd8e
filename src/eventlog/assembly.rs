//! The pieces of one log, in order → its events in time, for the access point that wrote them.

use std::num::NonZeroU64;
use std::path::Path;

use anyhow::{Result, bail, ensure};

use super::blocks::SIZES;
use super::event::{Ad, Event};
use super::known::Known;
use super::piece::{self, Anchor, Piece, Told};
use super::reader::{Batch, Generation, Log, Options, PLACES, Place, Resume};
use super::record::Anomaly;
use super::source::{FIND, Source};
use super::stamp::{Calendar, Stamp, Zone, offset_between};
use crate::error::hinted;

/// What is known of the time of the first event before it is read.
pub(super) fn first_calendar(options: &Options) -> Calendar {
    let near_ms = options.year.and_then(|year| {
        // From noon of 2 July both ends of the year are equally far, so the first event falls into it.
        let middle = jiff::civil::Date::new(year, 7, 2).ok()?.at(12, 0, 0, 0);
        Some(middle.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_millisecond())
    });
    Calendar::new(near_ms, 0)
}

/// So many jobs may be in a pool at once until the ad of one is read again.
const JOBS_AT_ONCE: usize = 1 << 16;

/// A file that begins with so much that is no record is not searched further.
const MOST_JUNK_BYTES: u64 = 8 << 20;

/// Where the events of a log go.
pub(super) type Sink<'a> = dyn FnMut(Batch<'_>) -> Result<()> + Send + 'a;

/// Puts the pieces of one file together, in order.
pub(super) struct Assembly {
    pub(super) log: Log,
    calendar: Calendar,
    ap: Option<String>,
    /// Whether `ap` is final: given by the caller.
    ap_given: bool,
    /// That of other generations.
    likely_ap: Option<String>,
    /// Whether the file is known to be an event log.
    is_log: bool,
    events: Vec<Event>,
    ads: Vec<Ad>,
    /// Whose ads were read.
    known: Known<NonZeroU64>,
    /// Events without a year from before anything told it.
    undated: Vec<(Stamp, Event)>,
    /// Anchors before an event that is still to come: it is in the next piece.
    waiting: Vec<Anchor>,
    /// The end of the last whole record; `None` if its last line feed is missing.
    whole_end: Option<u64>,
    /// What was met after it.
    tail: Vec<Anomaly>,
}

impl Assembly {
    pub(super) fn new(options: &Options) -> Assembly {
        Assembly {
            log: Log::default(),
            calendar: first_calendar(options),
            ap: options.ap.clone(),
            ap_given: options.ap.is_some(),
            likely_ap: options.likely_ap.clone(),
            is_log: false,
            events: Vec::new(),
            ads: Vec::new(),
            known: Known::new(JOBS_AT_ONCE),
            undated: Vec::new(),
            waiting: Vec::new(),
            whole_end: Some(0),
            tail: Vec::new(),
        }
    }

    /// As it was when `resume` was noted, but for the counts.
    pub(super) fn resume(options: &Options, resume: &Resume) -> Assembly {
        let mut assembly = Assembly::new(options);
        (assembly.ap, assembly.is_log) = (resume.ap.clone(), true);
        assembly.calendar = Calendar::new(Some(resume.near_ms), resume.zone_ms);
        assembly.log.bytes = resume.offset;
        assembly.whole_end = Some(resume.offset);
        assembly
    }

    /// What the next pieces need not tell again.
    pub(super) fn told(&self) -> Told<'_> {
        Told { ads: &self.known, reasons: &self.log.reasons }
    }

    /// A file that begins with so much of nothing but junk, or holds nothing else, is no event log.
    pub(super) fn check_is_log(&self, path: &Path, at_end: bool) -> Result<()> {
        let sound = self.is_log
            || self.log.bytes < if at_end { 1 } else { MOST_JUNK_BYTES }
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
    pub(super) fn find_ap(&mut self, pieces: &[Piece]) {
        if self.ap.is_some() {
            return;
        }
        let header = pieces.iter().find_map(Piece::header);
        let creator = header.and_then(|header| header.creator.clone());
        let likely = || self.likely_ap.clone().filter(|_| header.is_some());
        self.ap = creator.or_else(|| piece::access_point(pieces)).or_else(likely);
    }

    /// Adds the next piece; gives back the memory of its events.
    pub(super) fn add(&mut self, mut piece: Piece, sink: &mut Sink<'_>) -> Result<Vec<(Stamp, Event)>> {
        let waiting = std::mem::take(&mut self.waiting).into_iter().map(|anchor| (0, anchor));
        let mut anchors = waiting.chain(piece.anchors).peekable();
        for (index, (stamp, event)) in piece.events.drain(..).enumerate() {
            while let Some((_, anchor)) = anchors.next_if(|(at, _)| *at <= index) {
                self.enter(&anchor, stamp, sink)?;
            }
            self.place(stamp, event);
        }
        self.waiting = anchors.map(|(_, anchor)| anchor).collect();
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
        self.log.reasons.extend(piece.reasons);
        let new = piece.ads.into_iter().filter(|(key, _)| !self.known.meet(key.hash, key.spread));
        self.ads.extend(new.map(|(_, ad)| ad));
        self.log.bytes += piece.bytes;
        Ok(piece.events)
    }

    fn place(&mut self, stamp: Stamp, event: Event) {
        if stamp.has_year && !self.undated.is_empty() {
            self.date_back(stamp);
        }
        match self.calendar.place(stamp) {
            Some(time_ms) => self.events.push(Event { time_ms, ..event }),
            None => self.undated.push((stamp, event)),
        }
    }

    /// Places the events before the first time with a year, from the last back to the first.
    fn date_back(&mut self, anchor: Stamp) {
        let mut calendar = Calendar::new(None, 0);
        calendar.place(anchor);
        let mut undated = std::mem::take(&mut self.undated);
        for (stamp, event) in undated.iter_mut().rev() {
            event.time_ms = calendar.place(*stamp).unwrap_or_default();
        }
        self.events.extend(undated.into_iter().map(|(_, event)| event));
    }

    /// A header begins a file: its creation time gives the year, and the zone of the stamps around it. The stamp of a
    /// rotated file's header is that of its rotation, so there the first event has to tell. Without a header, the first
    /// job ad tells the year.
    fn enter(&mut self, anchor: &Anchor, first_stamp: Stamp, sink: &mut Sink<'_>) -> Result<()> {
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
            self.known = Known::new(JOBS_AT_ONCE);
        }
        let created_ms = header.created_s.saturating_mul(1000);
        if self.log.generation.is_none() && header.sequence > 0 {
            let ap = self.ap.clone().unwrap_or_default();
            self.log.generation =
                Some(Generation { ap, sequence: header.sequence, created_ms, offset: header.offset, bytes: 0 });
        }
        let local = if header.is_live { header_stamp } else { first_stamp };
        let offset_ms = offset_between(local, created_ms).unwrap_or(0);
        if !self.undated.is_empty() {
            self.date_back(Stamp { ms: created_ms + offset_ms, has_year: true, zone: Zone::Known });
        }
        self.calendar = Calendar::new(Some(created_ms), offset_ms);
        Ok(())
    }

    pub(super) fn flush(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        let ap = self.ap.as_deref().unwrap_or("unknown");
        let times = || self.events.iter().map(|event| event.time_ms);
        self.log.begin_ms = times().chain(self.log.begin_ms).min();
        self.log.end_ms = times().max().max(self.log.end_ms);
        sink(Batch { ap, events: &self.events, ads: &self.ads })?;
        self.events.clear();
        self.ads.clear();
        Ok(())
    }

    pub(super) fn finish(mut self, path: &Path, sink: &mut Sink<'_>) -> Result<Log> {
        for anchor in std::mem::take(&mut self.waiting) {
            let (Anchor::Header(stamp, _) | Anchor::Ad(stamp)) = &anchor;
            self.enter(&anchor, *stamp, sink)?;
        }
        self.flush(sink)?;
        if !self.undated.is_empty() {
            bail!(hinted(
                format!("`{}` has time stamps without a year, and nothing in it tells which", path.display()),
                "name the year of its first event, for instance `--year 2026`"
            ));
        }
        find_lines(path, &mut self.log.places)?;
        self.log.generation.iter_mut().for_each(|generation| generation.bytes = self.log.bytes);
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
