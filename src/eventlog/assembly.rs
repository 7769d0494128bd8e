//! The pieces of one log, in order → its events in time, for the access point that wrote them.

use std::iter::Peekable;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};

use super::anomaly::{Anomaly, AnomalyPlace, first_places};
use super::anomaly_positions::{find_event_positions, find_lines, line_feeds};
use super::blocks::RecordBlock;
use super::calendar::{Calendar, ClockStep, in_year_before, offset_between};
use super::event::JobEvent;
use super::global_header::{GenerationMark, GlobalHeader};
use super::job_ad::{AdKey, JobAd};
use super::log::{
    EventBatch, EventSink, HoldText, LogGeneration, LogSummary, ReadOptions, ResumePoint,
};
use super::other_access_points::OtherAccessPoints;
use super::piece::{
    BeforeEvent, EarlierPieces, FoundHeader, ParsedPiece, YearAnchor, find_access_point,
};
use super::source::FIND_LOG_HINT;
use super::stamp::{Stamp, StampZone};
use poolcast_base::error::hinted;

/// How many jobs are remembered as ones whose ad was read. With more of them in a pool at once, the
/// ads of some are read again.
const JOBS_AT_ONCE: usize = 1 << 16;

/// How much junk a file may begin with and still be searched for records.
const MOST_JUNK_BYTES: u64 = 8 << 20;

/// How many hosts are named that the jobs of one access point were submitted from.
const MOST_HOSTS: usize = 8;

/// Puts the pieces of one file together, in order.
pub(super) struct LogAssembly {
    pub(super) log: LogSummary,
    calendar: Calendar,
    ap: Option<String>,
    /// Whether `ap` is final: given by the caller.
    is_ap_given: bool,
    /// That of other generations.
    likely_ap: Option<String>,
    /// Whether the file is known to be an event log.
    is_log: bool,
    events: Vec<JobEvent>,
    ads: Vec<JobAd>,
    hold_texts: Vec<HoldText>,
    /// The jobs of other access points than `ap`.
    others: OtherAccessPoints,
    /// What the pieces so far said.
    earlier: Arc<EarlierPieces>,
    /// Events without a year from before anything told it.
    undated: Vec<UndatedEvent>,
    /// Anchors before an event that is still to come: it is in the next piece.
    waiting: Vec<YearAnchor>,
    /// The last header of a global event log.
    header: Option<GenerationMark>,
    /// Whether no record was read yet.
    at_begin: bool,
    /// As in [`EventBatch`].
    stretch: u32,
    /// Whether the log cannot be read again, to find the lines of places.
    pub(super) is_read_once: bool,
    /// How many lines end in what was read of such a log.
    lines: u64,
    /// The end of the last whole record; `None` if its last line feed is missing.
    whole_end: Option<u64>,
    /// The anomalies that were met after it.
    tail: Vec<Anomaly>,
}

/// An event whose year nothing has told yet.
struct UndatedEvent {
    stamp: Stamp,
    event: JobEvent,
    /// What was the last host then, as in [`OtherAccessPoints`].
    last_host: Option<usize>,
}

impl LogAssembly {
    pub(super) fn new(options: &ReadOptions) -> LogAssembly {
        LogAssembly {
            log: LogSummary::default(),
            calendar: Calendar::in_year(options.year),
            ap: options.ap.clone(),
            is_ap_given: options.ap.is_some(),
            likely_ap: options.likely_ap.clone(),
            is_log: false,
            events: Vec::new(),
            ads: Vec::new(),
            hold_texts: Vec::new(),
            others: OtherAccessPoints::default(),
            earlier: Arc::new(EarlierPieces::new(JOBS_AT_ONCE, options.has_hold_texts)),
            undated: Vec::new(),
            waiting: Vec::new(),
            header: None,
            at_begin: true,
            stretch: 0,
            is_read_once: false,
            lines: 0,
            whole_end: Some(0),
            tail: Vec::new(),
        }
    }

    /// As it was when `resume` was noted, but for the counts.
    pub(super) fn resume(options: &ReadOptions, resume: &ResumePoint) -> LogAssembly {
        let mut assembly = LogAssembly::new(options);
        assembly.ap.clone_from(&resume.ap);
        assembly.is_log = true;
        assembly.calendar = Calendar::resume(resume.clock);
        assembly.header.clone_from(&resume.header);
        assembly.at_begin = false;
        assembly.others.first_host.clone_from(&resume.host);
        assembly.log.bytes = resume.offset;
        assembly.whole_end = Some(resume.offset);
        assembly
    }

    /// What the next pieces need not say again. It is another one from the piece on in which the
    /// log of another access point begins.
    pub(super) fn earlier_pieces(&self) -> &Arc<EarlierPieces> {
        &self.earlier
    }

    /// Refuses a file that begins with so much of nothing but junk that it is no event log.
    pub(super) fn check_beginning(&self, path: &Path) -> Result<()> {
        self.check_is_log(path, MOST_JUNK_BYTES)
    }

    /// Refuses a file that holds nothing but junk.
    pub(super) fn check_whole(&self, path: &Path) -> Result<()> {
        self.check_is_log(path, 1)
    }

    /// Fails if `junk_bytes` were read, and all was junk.
    fn check_is_log(&self, path: &Path, junk_bytes: u64) -> Result<()> {
        let may_be_log = self.is_log
            || self.log.bytes < junk_bytes
            || !self.log.records_by_number.is_empty()
            || self.log.anomalies.keys().any(|kind| *kind != Anomaly::Junk);
        ensure!(
            may_be_log,
            hinted(
                format!("`{}` is no HTCondor event log", path.display()),
                format!(
                    "an event log's records begin like `012 (123.000.000) 11/21 01:49:47`; {FIND_LOG_HINT}"
                )
            )
        );
        Ok(())
    }

    /// Before the first events: asks the first block for the access point. A header that the log
    /// begins with comes before all.
    pub(super) fn find_access_point(&mut self, pieces: &[ParsedPiece]) {
        if self.ap.is_some() {
            return;
        }
        let first_piece = pieces
            .iter()
            .find(|piece| !piece.records_by_number.is_empty());
        let first_header =
            first_piece.and_then(|piece| piece.headers().find(|found| found.is_first));
        let headers = || pieces.iter().flat_map(ParsedPiece::headers);
        let creator = |found: &FoundHeader| found.header.creator.clone();

        // Other generations say it only of a global event log, which has a header.
        self.ap = first_header
            .and_then(creator)
            .or_else(|| find_access_point(pieces))
            .or_else(|| headers().find_map(creator))
            .or_else(|| {
                let has_header = headers().next().is_some();
                self.likely_ap.clone().filter(|_| has_header)
            });
    }

    /// Adds the next piece, which is that of `block`; gives back the memory of its events.
    pub(super) fn add_piece(
        &mut self,
        block: &RecordBlock<'_>,
        mut piece: ParsedPiece,
        sink: &mut EventSink<'_>,
    ) -> Result<Vec<(Stamp, JobEvent)>> {
        self.check_headers(&mut piece);
        self.hold_texts.append(&mut piece.hold_texts);
        let steps = self.place_events(&mut piece, sink)?;
        if !steps.is_empty() {
            piece.anomalies.extend(find_event_positions(block, &steps));
        }
        piece.anomalies.sort_by_key(|(_, at)| *at);

        self.at_begin &= piece.records_by_number.is_empty();
        for (number, count) in &piece.records_by_number {
            *self.log.records_by_number.entry(*number).or_default() += count;
        }
        self.add_whole_end(&piece);
        self.add_anomalies(block, &piece.anomalies);

        self.lines += piece.lines;
        self.earlier.add_reasons(piece.reasons);
        self.log.bytes += piece.bytes;
        Ok(piece.events)
    }

    /// Leaves of the headers in `piece` those that begin a generation: the first record of the log,
    /// and what can follow it.
    fn check_headers(&mut self, piece: &mut ParsedPiece) {
        let at_begin = self.at_begin;
        let last_header = &mut self.header;
        let anomalies = &mut piece.anomalies;
        piece.anchors.retain(|anchor| {
            let YearAnchor::Header(found) = &anchor.item else {
                return true;
            };
            let begins_generation = (found.is_first && at_begin)
                || found
                    .header
                    .begins_generation(found.stamp, last_header.as_ref());
            if begins_generation {
                *last_header = Some(found.header.mark());
            } else {
                anomalies.push((Anomaly::MisplacedHeader, found.at));
            }
            begins_generation
        });
    }

    /// Places the events of `piece` in time, and what stands between them in order. Returns the
    /// steps of the clock that are worth saying, each with the index of its event.
    fn place_events(
        &mut self,
        piece: &mut ParsedPiece,
        sink: &mut EventSink<'_>,
    ) -> Result<Vec<(Anomaly, usize)>> {
        let waiting = std::mem::take(&mut self.waiting)
            .into_iter()
            .map(|item| BeforeEvent { index: 0, item });
        let mut anchors = waiting.chain(std::mem::take(&mut piece.anchors)).peekable();
        let mut ads = std::mem::take(&mut piece.ads).into_iter().peekable();
        let mut hosts = std::mem::take(&mut piece.hosts).into_iter().peekable();
        let mut steps = Vec::new();

        for (index, (stamp, event)) in piece.events.drain(..).enumerate() {
            // An anchor or a host may begin another stretch or access point: ads before it belong
            // to the old one.
            while let Some(anchor) = anchors.next_if(|anchor| anchor.index <= index) {
                self.add_ads(&mut ads, index);
                self.enter_anchor(&anchor.item, stamp, sink)?;
            }
            if let Some(host) = hosts.next_if(|host| host.index <= index) {
                self.add_ads(&mut ads, index);
                self.enter_host(&host.item);
            }

            match self.place_event(stamp, event, sink)? {
                ClockStep::On | ClockStep::Back => {}
                ClockStep::ZoneChange => steps.push((Anomaly::ZoneChange, index)),
                ClockStep::LongGap => steps.push((Anomaly::LongGap, index)),
                ClockStep::NoZoneChange => {
                    let last_step = steps.pop_if(|(anomaly, _)| *anomaly == Anomaly::ZoneChange);
                    if last_step.is_none() {
                        self.forget_zone_change();
                    }
                }
            }
        }

        // The event that the other anchors stand before is in the next piece.
        self.waiting = anchors.map(|anchor| anchor.item).collect();
        self.add_ads(&mut ads, usize::MAX);
        Ok(steps)
    }

    /// Notes where the last whole record ends, and what was met after it.
    fn add_whole_end(&mut self, piece: &ParsedPiece) {
        // 0 is that of a piece without a whole record, which ends nothing.
        if piece.whole_end != Some(0) {
            self.whole_end = piece.whole_end.map(|end| self.log.bytes + end as u64);
            self.tail.clear();
        }

        let whole_end = self.whole_end.unwrap_or(0);
        for (anomaly, at) in &piece.anomalies {
            if self.log.bytes + *at as u64 >= whole_end {
                self.tail.push(*anomaly);
            }
        }
    }

    /// Counts and places what was met in the piece of `block`.
    fn add_anomalies(&mut self, block: &RecordBlock<'_>, anomalies: &[(Anomaly, usize)]) {
        if anomalies.is_empty() {
            return;
        }
        for (anomaly, at) in anomalies {
            *self.log.anomalies.entry(*anomaly).or_default() += 1;
            let place = AnomalyPlace {
                anomaly: *anomaly,
                line: self.line_of(block, *at),
                offset: self.log.bytes + *at as u64,
            };
            self.log.places.push(place);
        }
        self.log.places = first_places(self.log.places.iter());
    }

    /// The line that begins at `at` in the piece of `block`, if those before it were counted.
    fn line_of(&self, block: &RecordBlock<'_>, at: usize) -> u64 {
        if self.is_read_once {
            self.lines + line_feeds(&block.text[..at]) + 1
        } else {
            0
        }
    }

    /// Forgets the last change of zone, of an earlier piece: there was none.
    fn forget_zone_change(&mut self) {
        if let Some(count) = self.log.anomalies.get_mut(&Anomaly::ZoneChange) {
            *count -= 1;
            let places = &mut self.log.places;
            let is_change = |place: &AnomalyPlace| place.anomaly == Anomaly::ZoneChange;
            let placed = places.iter().filter(|place| is_change(place)).count() as u64;
            // Only the first of a kind have places, so the last change may have none.
            if *count < placed
                && let Some(last) = places.iter().rposition(is_change)
            {
                places.remove(last);
            }
            self.log.anomalies.retain(|_, count| *count > 0);
        }

        let is_change = |anomaly: &Anomaly| *anomaly == Anomaly::ZoneChange;
        if let Some(last) = self.tail.iter().rposition(is_change) {
            self.tail.remove(last);
        }
    }

    fn place_event(
        &mut self,
        stamp: Stamp,
        event: JobEvent,
        sink: &mut EventSink<'_>,
    ) -> Result<ClockStep> {
        // The first stamp with a year tells the year of all events before it.
        if stamp.has_year && !self.undated.is_empty() {
            self.date_back(stamp, sink)?;
        }
        let Some((time_ms, step)) = self.calendar.place_stamp(stamp) else {
            self.undated.push(UndatedEvent {
                stamp,
                event,
                last_host: self.others.last_host,
            });
            return Ok(ClockStep::On);
        };
        if step == ClockStep::Back {
            // Within a stretch, events are in the order in which they happened.
            self.begin_stretch(sink)?;
        }

        let event = JobEvent { time_ms, ..event };
        // Nearly every log is of one access point, and needs no look at the table of jobs.
        if self.others.hosts.is_empty() {
            self.events.push(event);
        } else {
            self.others
                .host_of_event(&event)
                .map_or(&mut self.events, |host| &mut host.events)
                .push(event);
        }
        Ok(step)
    }

    /// Adds those of `ads` that stand before the event `index`, as far as they are new.
    fn add_ads(
        &mut self,
        ads: &mut Peekable<impl Iterator<Item = BeforeEvent<(AdKey, JobAd)>>>,
        index: usize,
    ) {
        while let Some(found) = ads.next_if(|ad| ad.index <= index) {
            let (key, ad) = found.item;
            if !self.earlier.ads.insert(key.hash, key.spread) {
                self.others
                    .host_of((ad.cluster, ad.proc))
                    .map_or(&mut self.ads, |host| &mut host.ads)
                    .push(ad);
            }
        }
    }

    /// Jobs are submitted from `host` from now on. A header says whose log it is, whatever the
    /// address of its host.
    fn enter_host(&mut self, host: &str) {
        if self.header.is_none() && !self.is_ap_given {
            self.others.enter_host(host);
            return;
        }
        let first = self
            .others
            .first_host
            .get_or_insert_with(|| host.to_owned());
        if first != host && self.log.hosts.len() < MOST_HOSTS {
            self.log.hosts.extend([first.clone(), host.to_owned()]);
        }
    }

    /// Places the events before the first time with a year: back to the first, whose year that
    /// tells, and from there on in order.
    fn date_back(&mut self, anchor: Stamp, sink: &mut EventSink<'_>) -> Result<()> {
        let undated = std::mem::take(&mut self.undated);
        let mut first_ms = anchor.ms;
        // Backwards, as each stamp lies in the last year that is not after the one that follows it.
        for earlier in undated.iter().rev() {
            first_ms = in_year_before(earlier.stamp.ms, first_ms);
        }
        self.calendar = Calendar::new(Some(first_ms), 0);

        let last_host = self.others.last_host;
        for earlier in undated {
            self.others.last_host = earlier.last_host;
            match self.place_event(earlier.stamp, earlier.event, sink)? {
                ClockStep::On | ClockStep::Back => {}
                ClockStep::ZoneChange => self.count_anomaly(Anomaly::ZoneChange),
                ClockStep::LongGap => self.count_anomaly(Anomaly::LongGap),
                ClockStep::NoZoneChange => self.forget_zone_change(),
            }
        }
        self.others.last_host = last_host;
        Ok(())
    }

    /// Counts an anomaly whose place is no longer known.
    fn count_anomaly(&mut self, anomaly: Anomaly) {
        *self.log.anomalies.entry(anomaly).or_default() += 1;
    }

    fn begin_stretch(&mut self, sink: &mut EventSink<'_>) -> Result<()> {
        if !self.events.is_empty() || !self.ads.is_empty() || !self.others.hosts.is_empty() {
            self.flush(sink)?;
        }
        self.stretch += 1;
        Ok(())
    }

    /// A header begins a file: its creation time gives the year, and the zone of the stamps around
    /// it. The stamp of a rotated file's header is that of its rotation, so there the first event
    /// has to tell. Without a header, the first job ad tells the year.
    fn enter_anchor(
        &mut self,
        anchor: &YearAnchor,
        first_stamp: Stamp,
        sink: &mut EventSink<'_>,
    ) -> Result<()> {
        match anchor {
            YearAnchor::Header(FoundHeader { stamp, header, .. }) => {
                let local = if header.is_live { *stamp } else { first_stamp };
                self.enter_header(header, local, sink)
            }
            YearAnchor::Ad(stamp) if !self.calendar.is_set() => {
                self.date_back(*stamp, sink)?;
                self.calendar.place_stamp(*stamp);
                Ok(())
            }
            YearAnchor::Ad(_) => Ok(()),
        }
    }

    /// Begins the generation of `header`, which was created at the local time `local`.
    fn enter_header(
        &mut self,
        header: &GlobalHeader,
        local: Stamp,
        sink: &mut EventSink<'_>,
    ) -> Result<()> {
        let created_ms = header.created_s.saturating_mul(1000);
        let offset_ms = offset_between(local, created_ms).unwrap_or(0);
        if !self.undated.is_empty() {
            // The creation of this file comes after all events of the files before it.
            let created = Stamp {
                ms: created_ms + offset_ms,
                has_year: true,
                zone: StampZone::Known,
            };
            self.date_back(created, sink)?;
        }
        self.begin_stretch(sink)?;
        self.others.begin_log();

        if !self.is_ap_given
            && let Some(creator) = &header.creator
            && self.ap.as_ref() != Some(creator)
        {
            // Equal ids are of other jobs there, so no ad is known.
            self.ap = Some(creator.clone());
            let known = EarlierPieces::new(JOBS_AT_ONCE, self.earlier.wants_hold_texts);
            known.add_reasons(self.earlier.take_reasons());
            self.earlier = Arc::new(known);
        }
        if self.log.generation.is_none() {
            self.log.generation = Some(LogGeneration {
                ap: self.ap.clone().unwrap_or_default(),
                sequence: header.sequence,
                created_ms,
                offset: header.offset,
                bytes: 0,
            });
        }
        self.calendar = Calendar::new(Some(created_ms), offset_ms);
        Ok(())
    }

    /// Hands over the events and ads of all access points.
    pub(super) fn flush(&mut self, sink: &mut EventSink<'_>) -> Result<()> {
        let batch = EventBatch {
            ap: self.ap.as_deref().unwrap_or("unknown"),
            events: &self.events,
            ads: &self.ads,
            hold_texts: &self.hold_texts,
            stretch: self.stretch,
        };
        hand_over(batch, &mut self.log, sink)?;
        self.events.clear();
        self.ads.clear();
        self.hold_texts.clear();

        for host in &mut self.others.hosts {
            let batch = EventBatch {
                ap: &host.name,
                events: &host.events,
                ads: &host.ads,
                hold_texts: &[],
                stretch: self.stretch,
            };
            hand_over(batch, &mut self.log, sink)?;
            host.events.clear();
            host.ads.clear();
        }
        Ok(())
    }

    /// Hands over what is left; returns what there is to say of the log at `path`.
    pub(super) fn finish(mut self, path: &Path, sink: &mut EventSink<'_>) -> Result<LogSummary> {
        // No event follows these anchors, so each has its own stamp in its place.
        for anchor in std::mem::take(&mut self.waiting) {
            let (YearAnchor::Header(FoundHeader { stamp, .. }) | YearAnchor::Ad(stamp)) = &anchor;
            self.enter_anchor(&anchor, *stamp, sink)?;
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

        if !self.is_read_once {
            find_lines(path, &mut self.log.places)?;
        }
        if let Some(generation) = &mut self.log.generation {
            generation.bytes = self.log.bytes;
        }
        self.log.reasons = self.earlier.take_reasons();
        Ok(self.into_summary())
    }

    fn into_summary(mut self) -> LogSummary {
        // Which job was submitted to which of several access points is not kept.
        let can_resume = self.others.hosts.is_empty() && !self.calendar.may_be_wrong();
        if can_resume
            && let Some(offset) = self.whole_end
            && let Some(clock) = self.calendar.state()
        {
            self.log.resume = Some(ResumePoint {
                offset,
                ap: self.ap,
                clock,
                header: self.header,
                host: self.others.first_host,
                tail: self.tail,
            });
        }
        self.log
    }
}

/// Hands over `batch`, and notes in `log` over what time its events reach.
fn hand_over(batch: EventBatch<'_>, log: &mut LogSummary, sink: &mut EventSink<'_>) -> Result<()> {
    let times = || batch.events.iter().map(|event| event.time_ms);
    log.begin_ms = times().chain(log.begin_ms).min();
    log.end_ms = times().max().max(log.end_ms);
    sink(batch)
}
