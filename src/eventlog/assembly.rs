//! The pieces of one log, in order → its events in time, for the access point that wrote them.

use std::collections::HashMap;
use std::iter::Peekable;
use std::num::NonZeroU64;
use std::path::Path;

use anyhow::{Result, bail, ensure};

use super::blocks::{Block, SIZES};
use super::event::{AD_INFORMATION, AdKey, GENERIC, JobAd, JobEvent, SUBMIT};
use super::header::{GenerationMark, GlobalHeader};
use super::known::Known;
use super::piece::{self, Anchor, FoundHeader, Piece, Told};
use super::reader::{
    AnomalyPlace, EventBatch, LogGeneration, LogSummary, ReadOptions, ResumePoint, first_places,
};
use super::record::{Anomaly, Records};
use super::source::{FIND, Source};
use super::stamp::{Calendar, Stamp, Step, Zone, in_year_before, offset_between};
use crate::error::hinted;

/// What is known of the time of the first event before it is read.
pub(super) fn first_calendar(options: &ReadOptions) -> Calendar {
    options
        .year
        .map_or(Calendar::new(None, 0), Calendar::in_year)
}

/// So many jobs may be in a pool at once until the ad of one is read again.
const JOBS_AT_ONCE: usize = 1 << 16;

/// A file that begins with so much that is no record is not searched further.
const MOST_JUNK_BYTES: u64 = 8 << 20;

/// So many hosts are named that jobs of one access point were submitted from.
const MOST_HOSTS: usize = 8;

/// Where the events of a log go.
pub(super) type Sink<'a> = dyn FnMut(EventBatch<'_>) -> Result<()> + Send + 'a;

/// Jobs that were submitted to other access points than that of their log, which has no header to say whose it is: users'
/// logs may be shared, and logs put together. Equal ids are told apart by the host in their last event 000.
#[derive(Default)]
struct Elsewhere {
    /// The host that the first job was submitted from.
    first_host: Option<String>,
    /// The others, with what was not yet handed over.
    hosts: Vec<(String, Vec<JobEvent>, Vec<JobAd>)>,
    /// The index in `hosts` of the last host that was named; `None` for the first.
    last: Option<usize>,
    /// The index in `hosts` for each job that was submitted from one.
    jobs: HashMap<(i32, i32), usize>,
}

impl Elsewhere {
    /// Jobs come from `host` from now on.
    fn enter(&mut self, host: &str) {
        let first = self.first_host.get_or_insert_with(|| host.to_owned());
        self.last = (host != first).then(|| {
            let known = self.hosts.iter().position(|(known, ..)| known == host);
            known.unwrap_or_else(|| {
                self.hosts.push((host.to_owned(), Vec::new(), Vec::new()));
                self.hosts.len() - 1
            })
        });
    }

    /// The events and ads of the host that `event` belongs to; `None` for the first.
    fn of(&mut self, event: &JobEvent) -> Option<&mut Vec<JobEvent>> {
        let job = (event.cluster, event.proc);
        if event.number == SUBMIT {
            match self.last {
                Some(host) => self.jobs.insert(job, host),
                None => self.jobs.remove(&job),
            };
        }
        self.jobs.get(&job).map(|host| &mut self.hosts[*host].1)
    }
}

/// Puts the pieces of one file together, in order.
pub(super) struct Assembly {
    pub(super) log: LogSummary,
    calendar: Calendar,
    ap: Option<String>,
    /// Whether `ap` is final: given by the caller.
    ap_given: bool,
    /// That of other generations.
    likely_ap: Option<String>,
    /// Whether the file is known to be an event log.
    is_log: bool,
    events: Vec<JobEvent>,
    ads: Vec<JobAd>,
    /// Jobs of other access points than `ap`.
    elsewhere: Elsewhere,
    /// Whose ads were read.
    known: Known<NonZeroU64>,
    /// Events without a year from before anything told it, each with what was the last host then.
    undated: Vec<(Stamp, JobEvent, Option<usize>)>,
    /// Anchors before an event that is still to come: it is in the next piece.
    waiting: Vec<Anchor>,
    /// The last header of a global event log.
    header: Option<GenerationMark>,
    /// Whether no record was read yet.
    at_begin: bool,
    /// As in [`EventBatch`].
    stretch: u32,
    /// Whether the log cannot be read again, to find the lines of places.
    pub(super) read_once: bool,
    /// How many lines end in what was read of such a log.
    lines: u64,
    /// The end of the last whole record; `None` if its last line feed is missing.
    whole_end: Option<u64>,
    /// What was met after it.
    tail: Vec<Anomaly>,
}

impl Assembly {
    pub(super) fn new(options: &ReadOptions) -> Assembly {
        Assembly {
            log: LogSummary::default(),
            calendar: first_calendar(options),
            ap: options.ap.clone(),
            ap_given: options.ap.is_some(),
            likely_ap: options.likely_ap.clone(),
            is_log: false,
            events: Vec::new(),
            ads: Vec::new(),
            elsewhere: Elsewhere::default(),
            known: Known::new(JOBS_AT_ONCE),
            undated: Vec::new(),
            waiting: Vec::new(),
            header: None,
            at_begin: true,
            stretch: 0,
            read_once: false,
            lines: 0,
            whole_end: Some(0),
            tail: Vec::new(),
        }
    }

    /// As it was when `resume` was noted, but for the counts.
    pub(super) fn resume(options: &ReadOptions, resume: &ResumePoint) -> Assembly {
        let mut assembly = Assembly::new(options);
        (assembly.ap, assembly.is_log) = (resume.ap.clone(), true);
        assembly.calendar = Calendar::resume(resume.clock);
        (assembly.header, assembly.at_begin) = (resume.header.clone(), false);
        assembly.elsewhere.first_host = resume.host.clone();
        assembly.log.bytes = resume.offset;
        assembly.whole_end = Some(resume.offset);
        assembly
    }

    /// What the next pieces need not tell again.
    pub(super) fn told(&self) -> Told<'_> {
        Told {
            ads: &self.known,
            reasons: &self.log.reasons,
        }
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
                format!(
                    "an event log's records begin like `012 (123.000.000) 11/21 01:49:47`; {FIND}"
                )
            )
        );
        Ok(())
    }

    /// Before the first events: asks the first block for the access point. A header that the log begins with comes before all.
    pub(super) fn find_ap(&mut self, pieces: &[Piece]) {
        if self.ap.is_some() {
            return;
        }
        let first = pieces
            .iter()
            .find(|piece| !piece.records_by_number.is_empty());
        let begins = first.and_then(|piece| piece.headers().find(|found| found.is_first));
        let later = || pieces.iter().flat_map(Piece::headers);
        let creator = |found: &FoundHeader| found.header.creator.clone();
        let likely = || self.likely_ap.clone().filter(|_| later().next().is_some());
        self.ap = begins
            .and_then(creator)
            .or_else(|| piece::access_point(pieces))
            .or_else(|| later().find_map(creator))
            .or_else(likely);
    }

    /// Adds the next piece, which is that of `block`; gives back the memory of its events.
    pub(super) fn add(
        &mut self,
        block: &Block<'_>,
        mut piece: Piece,
        sink: &mut Sink<'_>,
    ) -> Result<Vec<(Stamp, JobEvent)>> {
        self.check_headers(&mut piece);
        let waiting = std::mem::take(&mut self.waiting)
            .into_iter()
            .map(|anchor| (0, anchor));
        let mut anchors = waiting.chain(piece.anchors).peekable();
        let mut ads = piece.ads.into_iter().peekable();
        let mut hosts = piece.hosts.into_iter().peekable();
        let mut steps = Vec::new();
        for (index, (stamp, event)) in piece.events.drain(..).enumerate() {
            while let Some((_, anchor)) = anchors.next_if(|(at, _)| *at <= index) {
                self.add_ads(&mut ads, index);
                self.enter(&anchor, stamp, sink)?;
            }
            if let Some((_, host)) = hosts.next_if(|(at, _)| *at <= index) {
                self.add_ads(&mut ads, index);
                self.enter_host(&host);
            }
            match self.place(stamp, event, sink)? {
                Step::On | Step::Back => {}
                Step::ZoneChange => steps.push((Anomaly::ZoneChange, index)),
                Step::LongGap => steps.push((Anomaly::LongGap, index)),
                Step::NoZoneChange => {
                    if steps
                        .pop_if(|(anomaly, _)| *anomaly == Anomaly::ZoneChange)
                        .is_none()
                    {
                        self.forget_zone_change();
                    }
                }
            }
        }
        self.waiting = anchors.map(|(_, anchor)| anchor).collect();
        self.add_ads(&mut ads, usize::MAX);
        if !steps.is_empty() {
            piece.anomalies.extend(with_places(block, &steps));
        }
        piece.anomalies.sort_by_key(|(_, at)| *at);
        self.at_begin &= piece.records_by_number.is_empty();
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
        for (anomaly, at) in &piece.anomalies {
            *self.log.anomalies.entry(*anomaly).or_default() += 1;
            let (line, offset) = (self.line_of(block, *at), self.log.bytes + *at as u64);
            self.log.places.push(AnomalyPlace {
                anomaly: *anomaly,
                line,
                offset,
            });
        }
        if !piece.anomalies.is_empty() {
            self.log.places = first_places(self.log.places.iter());
        }
        self.lines += piece.lines;
        self.log.reasons.extend(piece.reasons);
        self.log.bytes += piece.bytes;
        Ok(piece.events)
    }

    /// The line that begins at `at` in the piece of `block`, if those before it were counted.
    fn line_of(&self, block: &Block<'_>, at: usize) -> u64 {
        let within = || memchr::memchr_iter(b'\n', &block.text[..at]).count() as u64;
        if self.read_once {
            self.lines + within() + 1
        } else {
            0
        }
    }

    /// Forgets the last change of zone, of an earlier piece: there was none.
    fn forget_zone_change(&mut self) {
        let is_change = |anomaly: &Anomaly| *anomaly == Anomaly::ZoneChange;
        if let Some(count) = self.log.anomalies.get_mut(&Anomaly::ZoneChange) {
            *count -= 1;
            let all_placed = *count
                < self
                    .log
                    .places
                    .iter()
                    .filter(|place| is_change(&place.anomaly))
                    .count() as u64;
            let last = self
                .log
                .places
                .iter()
                .rposition(|place| is_change(&place.anomaly))
                .filter(|_| all_placed);
            last.map(|at| self.log.places.remove(at));
            self.log.anomalies.retain(|_, count| *count > 0);
        }
        self.tail
            .iter()
            .rposition(is_change)
            .map(|at| self.tail.remove(at));
    }

    /// Leaves of the headers in `piece` those that begin a generation: the first record of the log, and what can follow it.
    fn check_headers(&mut self, piece: &mut Piece) {
        let (anomalies, at_begin) = (&mut piece.anomalies, self.at_begin);
        let before = &mut self.header;
        piece.anchors.retain(|(_, anchor)| {
            let Anchor::Header(FoundHeader {
                stamp,
                header,
                is_first,
                at,
            }) = anchor
            else {
                return true;
            };
            let begins =
                (*is_first && at_begin) || header.begins_generation(*stamp, before.as_ref());
            if begins {
                *before = Some(header.mark());
            } else {
                anomalies.push((Anomaly::MisplacedHeader, *at));
            }
            begins
        });
    }

    fn place(&mut self, stamp: Stamp, event: JobEvent, sink: &mut Sink<'_>) -> Result<Step> {
        if stamp.has_year && !self.undated.is_empty() {
            self.date_back(stamp, sink)?;
        }
        let Some((time_ms, step)) = self.calendar.place(stamp) else {
            self.undated.push((stamp, event, self.elsewhere.last));
            return Ok(Step::On);
        };
        if step == Step::Back {
            self.begin_stretch(sink)?;
        }
        let event = JobEvent { time_ms, ..event };
        if self.elsewhere.hosts.is_empty() {
            self.events.push(event);
        } else {
            self.elsewhere
                .of(&event)
                .unwrap_or(&mut self.events)
                .push(event);
        }
        Ok(step)
    }

    /// Adds those of `ads` that stand before the event `index`, as far as they are new.
    fn add_ads(
        &mut self,
        ads: &mut Peekable<impl Iterator<Item = (usize, AdKey, JobAd)>>,
        index: usize,
    ) {
        while let Some((_, key, ad)) = ads.next_if(|(at, ..)| *at <= index) {
            if !self.known.meet(key.hash, key.spread) {
                let elsewhere = self.elsewhere.jobs.get(&(ad.cluster, ad.proc));
                elsewhere
                    .map_or(&mut self.ads, |host| &mut self.elsewhere.hosts[*host].2)
                    .push(ad);
            }
        }
    }

    /// Jobs are submitted from `host` from now on. A header says whose log it is, whatever the address of its host.
    fn enter_host(&mut self, host: &str) {
        if self.header.is_none() && !self.ap_given {
            return self.elsewhere.enter(host);
        }
        let first = self
            .elsewhere
            .first_host
            .get_or_insert_with(|| host.to_owned());
        if first != host && self.log.hosts.len() < MOST_HOSTS {
            self.log.hosts.extend([first.clone(), host.to_owned()]);
        }
    }

    /// Places the events before the first time with a year: back to the first, whose year that tells, and from there on in
    /// order.
    fn date_back(&mut self, anchor: Stamp, sink: &mut Sink<'_>) -> Result<()> {
        let undated = std::mem::take(&mut self.undated);
        let stamps = undated.iter().rev().map(|(stamp, ..)| stamp.ms);
        let first_ms = stamps.fold(anchor.ms, |near_ms, within_ms| {
            in_year_before(within_ms, near_ms)
        });
        self.calendar = Calendar::new(Some(first_ms), 0);
        let last_host = self.elsewhere.last;
        for (stamp, event, host) in undated {
            self.elsewhere.last = host;
            let anomaly = match self.place(stamp, event, sink)? {
                Step::On | Step::Back => continue,
                Step::ZoneChange => Anomaly::ZoneChange,
                Step::LongGap => Anomaly::LongGap,
                Step::NoZoneChange => {
                    self.forget_zone_change();
                    continue;
                }
            };
            *self.log.anomalies.entry(anomaly).or_default() += 1;
        }
        self.elsewhere.last = last_host;
        Ok(())
    }

    fn begin_stretch(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        if !self.events.is_empty() || !self.ads.is_empty() || !self.elsewhere.hosts.is_empty() {
            self.flush(sink)?;
        }
        self.stretch += 1;
        Ok(())
    }

    /// A header begins a file: its creation time gives the year, and the zone of the stamps around it. The stamp of a
    /// rotated file's header is that of its rotation, so there the first event has to tell. Without a header, the first
    /// job ad tells the year.
    fn enter(&mut self, anchor: &Anchor, first_stamp: Stamp, sink: &mut Sink<'_>) -> Result<()> {
        match anchor {
            Anchor::Header(FoundHeader { stamp, header, .. }) => {
                self.enter_header(*stamp, header, first_stamp, sink)
            }
            Anchor::Ad(stamp) if !self.calendar.is_set() => {
                self.date_back(*stamp, sink)?;
                self.calendar.place(*stamp);
                Ok(())
            }
            Anchor::Ad(_) => Ok(()),
        }
    }

    fn enter_header(
        &mut self,
        stamp: Stamp,
        header: &GlobalHeader,
        first_stamp: Stamp,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let created_ms = header.created_s.saturating_mul(1000);
        let local = if header.is_live { stamp } else { first_stamp };
        let offset_ms = offset_between(local, created_ms).unwrap_or(0);
        if !self.undated.is_empty() {
            self.date_back(
                Stamp {
                    ms: created_ms + offset_ms,
                    has_year: true,
                    zone: Zone::Known,
                },
                sink,
            )?;
        }
        self.begin_stretch(sink)?;
        (self.elsewhere.first_host, self.elsewhere.last) = (None, None);
        self.elsewhere.jobs.clear();
        if let Some(creator) = header
            .creator
            .as_ref()
            .filter(|name| !self.ap_given && self.ap.as_ref() != Some(*name))
        {
            self.ap = Some(creator.clone());
            self.known = Known::new(JOBS_AT_ONCE);
        }
        if self.log.generation.is_none() {
            let ap = self.ap.clone().unwrap_or_default();
            self.log.generation = Some(LogGeneration {
                ap,
                sequence: header.sequence,
                created_ms,
                offset: header.offset,
                bytes: 0,
            });
        }
        self.calendar = Calendar::new(Some(created_ms), offset_ms);
        Ok(())
    }

    pub(super) fn flush(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        let stretch = self.stretch;
        let ap = self.ap.as_deref().unwrap_or("unknown");
        let mut hand_over = |ap: &str, events: &mut Vec<JobEvent>, ads: &mut Vec<JobAd>| {
            let times = || events.iter().map(|event| event.time_ms);
            self.log.begin_ms = times().chain(self.log.begin_ms).min();
            self.log.end_ms = times().max().max(self.log.end_ms);
            sink(EventBatch {
                ap,
                events,
                ads,
                stretch,
            })?;
            events.clear();
            ads.clear();
            anyhow::Ok(())
        };
        hand_over(ap, &mut self.events, &mut self.ads)?;
        self.elsewhere
            .hosts
            .iter_mut()
            .try_for_each(|(host, events, ads)| hand_over(host, events, ads))
    }

    pub(super) fn finish(mut self, path: &Path, sink: &mut Sink<'_>) -> Result<LogSummary> {
        for anchor in std::mem::take(&mut self.waiting) {
            let (Anchor::Header(FoundHeader { stamp, .. }) | Anchor::Ad(stamp)) = &anchor;
            self.enter(&anchor, *stamp, sink)?;
        }
        self.flush(sink)?;
        if !self.undated.is_empty() {
            bail!(hinted(
                format!(
                    "`{}` has time stamps without a year, and nothing in it tells which",
                    path.display()
                ),
                "name the year of its first event, for instance `--year 2026`"
            ));
        }
        if !self.read_once {
            find_lines(path, &mut self.log.places)?;
        }
        self.log
            .generation
            .iter_mut()
            .for_each(|generation| generation.bytes = self.log.bytes);
        // Which job was submitted to which of several access points is not kept.
        let can_resume = self.elsewhere.hosts.is_empty() && !self.calendar.may_be_wrong();
        let whole_end = self.whole_end.filter(|_| can_resume);
        self.log.resume = whole_end
            .zip(self.calendar.state())
            .map(|(offset, clock)| ResumePoint {
                offset,
                ap: self.ap,
                clock,
                header: self.header,
                host: self.elsewhere.first_host,
                tail: self.tail,
            });
        Ok(self.log)
    }
}

/// What was met at events of the piece of `block`, each with its index, by where they begin in it.
fn with_places(block: &Block<'_>, met: &[(Anomaly, usize)]) -> Vec<(Anomaly, usize)> {
    let (mut events, mut met, mut found) = (0, met.iter().peekable(), Vec::new());
    Records::new(block.text, block.ends_log).each(|record| {
        if !matches!(record.header.number, AD_INFORMATION | GENERIC) {
            found.extend(
                met.next_if(|(_, index)| *index == events)
                    .map(|(anomaly, _)| (*anomaly, record.at)),
            );
            events += 1;
        }
    });
    found
}

/// Finds the lines of `places`, which are in order of their offsets.
fn find_lines(path: &Path, places: &mut [AnomalyPlace]) -> Result<()> {
    let Some(last) = places.last().map(|place| place.offset) else {
        return Ok(());
    };
    let mut source = Source::open(path, |_| {})?;
    let mut block = vec![0; SIZES.piece_bytes];
    let (mut start, mut line, mut next) = (0u64, 1u64, 0);
    while start <= last && next < places.len() {
        let filled = source.fill(&mut block)?;
        let mut counted = 0;
        while let Some(place) = places
            .get_mut(next)
            .filter(|place| place.offset < start + filled as u64)
        {
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
