//! Assembles the parsed pieces of one log, in order, into dated events per access point.

use std::iter::Peekable;
use std::path::Path;
use std::sync::Arc;

use super::anomaly::{Anomaly, AnomalyPosition, first_positions};
use super::anomaly_positions::{count_line_feeds, find_event_positions, find_lines};
use super::blocks::RecordBlock;
use super::calendar::{Calendar, ClockStep, resolve_backward, utc_offset_between};
use super::dates::{YEARS, year_of};
use super::event::JobEvent;
use super::event_text::EventText;
use super::global_header::{GenerationMark, GlobalHeader};
use super::job_ad::{AdKey, JobAd};
use super::log::{EventBatch, EventSink, LogGeneration, LogSummary, ReadOptions, ResumePoint};
use super::other_access_points::OtherAccessPoints;
use super::piece::{
    BeforeEvent, EarlierPieces, FoundHeader, ParsedPiece, YearAnchor, find_access_point,
};
use super::read_error::{BoxedResult, ReadError};
use super::source::changed_ms;
use super::stamp::{Stamp, StampZone};

/// Number of jobs that are remembered because their ad was read. If a pool has more jobs at a time,
/// the ads of some are read again.
const REMEMBERED_JOBS: usize = 1 << 16;

/// Maximum amount of leading junk, in bytes, before a file is rejected as not being a log.
const MAX_LEADING_JUNK_BYTES: u64 = 8 << 20;

/// Maximum number of submit hosts that are reported for a log of one access point.
const MAX_NAMED_HOSTS: usize = 8;

/// Assembles the pieces of one file, in order.
pub(super) struct LogAssembly {
    pub(super) log: LogSummary,
    calendar: Calendar,
    ap: Option<String>,
    /// True if `ap` is final because the caller gave it.
    is_ap_given: bool,
    /// Access point of other generations of the log.
    likely_ap: Option<String>,
    /// True if the file is known to be an event log.
    is_log: bool,
    events: Vec<JobEvent>,
    ads: Vec<JobAd>,
    texts: Vec<EventText>,
    /// Events and ads of other access points than `ap`.
    others: OtherAccessPoints,
    /// What is known from the pieces so far.
    earlier: Arc<EarlierPieces>,
    /// Events without a year, read before any stamp or header gave one.
    undated: Vec<UndatedEvent>,
    /// Anchors at the end of the pieces so far. The event after them is in the next piece.
    waiting: Vec<YearAnchor>,
    /// Last header of a global event log.
    header: Option<GenerationMark>,
    /// True if no record was read yet.
    is_at_start: bool,
    /// Number of the current log segment, as in [`EventBatch`].
    stretch: u32,
    /// True if the log cannot be read a second time to find line numbers.
    pub(super) is_read_once: bool,
    /// Number of line feeds read so far; counted only if the log is read once.
    lines: u64,
    /// Offset of the end of the last whole record; `None` if its last line feed is missing.
    whole_end: Option<u64>,
    /// Anomalies after `whole_end`.
    tail: Vec<Anomaly>,
    /// Local time minus UTC, in ms, where nothing in the log gives it.
    utc_offset_ms: i64,
    /// Year of the first event, as the caller named it.
    named_year: Option<i16>,
    /// True if an event contradicts the named year.
    contradicts_year: bool,
}

/// An event whose year is not known yet.
struct UndatedEvent {
    stamp: Stamp,
    event: JobEvent,
    /// Last submit host at that event, as in [`OtherAccessPoints`].
    last_host: Option<usize>,
}

impl LogAssembly {
    pub(super) fn new(options: &ReadOptions) -> LogAssembly {
        LogAssembly {
            log: LogSummary::default(),
            calendar: Calendar::in_year(options.year).with_offset(options.utc_offset_ms),
            ap: options.ap.clone(),
            is_ap_given: options.ap.is_some(),
            likely_ap: options.likely_ap.clone(),
            is_log: false,
            events: Vec::new(),
            ads: Vec::new(),
            texts: Vec::new(),
            others: OtherAccessPoints::default(),
            earlier: Arc::new(EarlierPieces::new(REMEMBERED_JOBS, options.has_texts)),
            undated: Vec::new(),
            waiting: Vec::new(),
            header: None,
            is_at_start: true,
            stretch: 0,
            is_read_once: false,
            lines: 0,
            whole_end: Some(0),
            tail: Vec::new(),
            utc_offset_ms: options.utc_offset_ms,
            named_year: options.year,
            contradicts_year: false,
        }
    }

    /// Restores the assembly to its state at `resume`, without the counts.
    pub(super) fn resume(options: &ReadOptions, resume: &ResumePoint) -> LogAssembly {
        let mut assembly = LogAssembly::new(options);
        assembly.ap.clone_from(&resume.ap);
        assembly.is_log = true;
        assembly.calendar = Calendar::resume(resume.clock);
        assembly.header.clone_from(&resume.header);
        assembly.is_at_start = false;
        assembly.others.first_host.clone_from(&resume.host);
        assembly.log.bytes = resume.offset;
        assembly.whole_end = Some(resume.offset);
        assembly
    }

    /// Returns what the next pieces can skip. When the log of another access
    /// point begins, this becomes a new object.
    pub(super) fn earlier_pieces(&self) -> &Arc<EarlierPieces> {
        &self.earlier
    }

    /// Fails if all of the text so far is junk, and it is at least [`MAX_LEADING_JUNK_BYTES`] long, or if
    /// an event contradicts the year that the caller named.
    pub(super) fn check_beginning(&self, path: &Path) -> BoxedResult<()> {
        if let Some(year) = self.named_year.filter(|_| self.contradicts_year) {
            let path = path.to_owned();
            return Err(ReadError::NoLeapDay { path, year }.into());
        }
        self.check_is_log(path, MAX_LEADING_JUNK_BYTES)
    }

    /// Fails if the whole file is junk.
    pub(super) fn check_whole(&self, path: &Path) -> BoxedResult<()> {
        self.check_is_log(path, 1)
    }

    /// Fails if at least `junk_bytes` bytes were read and all of them are junk.
    fn check_is_log(&self, path: &Path, junk_bytes: u64) -> BoxedResult<()> {
        let may_be_log = self.is_log
            || self.log.bytes < junk_bytes
            || !self.log.records_by_number.is_empty()
            || self.log.anomalies.keys().any(|kind| *kind != Anomaly::Junk);
        if !may_be_log {
            let path = path.to_owned();
            return Err(ReadError::NotALog { path }.into());
        }
        Ok(())
    }

    /// Determines the access point from the pieces of a block, before their events are emitted,
    /// unless it is known. The header at the beginning of the log has priority.
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

        // The access point of other generations applies only to global event logs, which have a
        // header.
        self.ap = first_header
            .and_then(creator)
            .or_else(|| find_access_point(pieces))
            .or_else(|| headers().find_map(creator))
            .or_else(|| {
                let has_header = headers().next().is_some();
                self.likely_ap.clone().filter(|_| has_header)
            });
    }

    /// Adds the next piece, parsed from `block`. Returns the memory of its events for reuse.
    pub(super) fn add_piece(
        &mut self,
        block: &RecordBlock<'_>,
        mut piece: ParsedPiece,
        sink: &mut EventSink<'_>,
    ) -> BoxedResult<Vec<(Stamp, JobEvent)>> {
        self.check_headers(&mut piece);
        self.texts.append(&mut piece.texts);
        let steps = self.date_events(&mut piece, sink)?;
        if !steps.is_empty() {
            piece.anomalies.extend(find_event_positions(block, &steps));
        }
        piece.anomalies.sort_by_key(|(_, at)| *at);

        self.is_at_start &= piece.records_by_number.is_empty();
        for (number, count) in &piece.records_by_number {
            *self.log.records_by_number.entry(*number).or_default() += count;
        }
        self.update_whole_end(&piece);
        self.add_anomalies(block, &piece.anomalies);

        self.lines += piece.lines;
        self.log.bytes += piece.bytes;
        Ok(piece.events)
    }

    /// Skips `bytes` NULs, which belong to the damage at the end of the last piece.
    pub(super) fn skip_hole(&mut self, bytes: u64) {
        self.log.bytes += bytes;
    }

    /// Removes the headers in `piece` that do not begin a generation. A header begins one if it is
    /// the first record of the log, or if it can follow the previous header. The others become
    /// anomalies.
    fn check_headers(&mut self, piece: &mut ParsedPiece) {
        let is_at_start = self.is_at_start;
        let last_header = &mut self.header;
        let anomalies = &mut piece.anomalies;
        piece.anchors.retain(|anchor| {
            let YearAnchor::Header(found) = &anchor.item else {
                return true;
            };
            let begins_generation = (found.is_first && is_at_start)
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

    /// Dates the events of `piece` and processes the anchors, hosts and ads between them, in order.
    /// Returns the clock anomalies, each with the index of its event.
    fn date_events(
        &mut self,
        piece: &mut ParsedPiece,
        sink: &mut EventSink<'_>,
    ) -> BoxedResult<Vec<(Anomaly, usize)>> {
        let waiting = std::mem::take(&mut self.waiting)
            .into_iter()
            .map(|item| BeforeEvent { index: 0, item });
        let mut anchors = waiting.chain(std::mem::take(&mut piece.anchors)).peekable();
        let mut ads = std::mem::take(&mut piece.ads).into_iter().peekable();
        let mut hosts = std::mem::take(&mut piece.hosts).into_iter().peekable();
        let mut steps = Vec::new();

        for (index, (stamp, event)) in piece.events.drain(..).enumerate() {
            // An anchor or a host may begin another log segment or access point. Ads before it
            // belong to the old one, so they are added first.
            while let Some(anchor) = anchors.next_if(|anchor| anchor.index <= index) {
                self.add_ads(&mut ads, index);
                self.apply_anchor(&anchor.item, stamp, sink)?;
            }
            if let Some(host) = hosts.next_if(|host| host.index <= index) {
                self.add_ads(&mut ads, index);
                self.switch_host(&host.item);
            }

            match self.date_event(stamp, event, sink)? {
                ClockStep::On | ClockStep::Back => {}
                ClockStep::ZoneChange => steps.push((Anomaly::ZoneChange, index)),
                ClockStep::LongGap => steps.push((Anomaly::LongGap, index)),
                ClockStep::NoLeapDay => self.contradicts_year = true,
                ClockStep::NoZoneChange => {
                    let last_step = steps.pop_if(|(anomaly, _)| *anomaly == Anomaly::ZoneChange);
                    if last_step.is_none() {
                        self.forget_zone_change();
                    }
                }
            }
        }

        // The remaining anchors have no event after them in this piece; the next piece has it.
        self.waiting = anchors.map(|anchor| anchor.item).collect();
        self.add_ads(&mut ads, usize::MAX);
        Ok(steps)
    }

    /// Updates the offset of the last whole record, and the anomalies after it.
    fn update_whole_end(&mut self, piece: &ParsedPiece) {
        // A piece without a whole record has the offset 0 and does not move the end.
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

    /// Counts the anomalies in the piece of `block`, and adds their positions.
    fn add_anomalies(&mut self, block: &RecordBlock<'_>, anomalies: &[(Anomaly, usize)]) {
        if anomalies.is_empty() {
            return;
        }
        for (anomaly, at) in anomalies {
            *self.log.anomalies.entry(*anomaly).or_default() += 1;
            let place = AnomalyPosition {
                anomaly: *anomaly,
                line: self.line_number_at(block, *at),
                offset: self.log.bytes + *at as u64,
            };
            self.log.places.push(place);
        }
        self.log.places = first_positions(self.log.places.iter());
    }

    /// Returns the line number of offset `at` in the piece of `block`; 0 if lines are not counted.
    fn line_number_at(&self, block: &RecordBlock<'_>, at: usize) -> u64 {
        if self.is_read_once {
            self.lines + count_line_feeds(&block.text[..at]) + 1
        } else {
            0
        }
    }

    /// Removes the last counted zone change, which is in an earlier piece: the next stamp has
    /// disproved it.
    fn forget_zone_change(&mut self) {
        if let Some(count) = self.log.anomalies.get_mut(&Anomaly::ZoneChange) {
            *count -= 1;
            let places = &mut self.log.places;
            let is_change = |place: &AnomalyPosition| place.anomaly == Anomaly::ZoneChange;
            let placed = places.iter().filter(|place| is_change(place)).count() as u64;
            // Only the first anomalies of a kind have positions, so the last zone change may have
            // none.
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

    /// Dates one event and appends it to the events of its access point. Returns the clock's step.
    fn date_event(
        &mut self,
        stamp: Stamp,
        event: JobEvent,
        sink: &mut EventSink<'_>,
    ) -> BoxedResult<ClockStep> {
        // The first stamp with a year dates all undated events before it.
        if stamp.has_year && !self.undated.is_empty() {
            self.date_undated_events(stamp, sink)?;
        }
        let Some((time_ms, step)) = self.calendar.resolve_stamp(stamp) else {
            self.undated.push(UndatedEvent {
                stamp,
                event,
                last_host: self.others.last_host,
            });
            return Ok(ClockStep::On);
        };
        if step == ClockStep::Back {
            // Within a segment, events are in the order in which they happened.
            self.begin_stretch(sink)?;
        }

        let event = JobEvent { time_ms, ..event };
        // Nearly every log has one access point, so this avoids a look-up in the job table.
        if self.others.is_empty() {
            self.events.push(event);
        } else {
            let of_other = self.others.events_for(&event);
            of_other.unwrap_or(&mut self.events).push(event);
        }
        Ok(step)
    }

    /// Adds the ads before event `index` that are not known yet.
    fn add_ads(
        &mut self,
        ads: &mut Peekable<impl Iterator<Item = BeforeEvent<(AdKey, JobAd)>>>,
        index: usize,
    ) {
        while let Some(found) = ads.next_if(|ad| ad.index <= index) {
            let (key, ad) = found.item;
            if !self.earlier.ads.insert(key.hash, key.spread) {
                let of_other = self.others.ads_for((ad.cluster, ad.proc));
                of_other.unwrap_or(&mut self.ads).push(ad);
            }
        }
    }

    /// Sets the host from which later jobs are submitted. If a header or the caller names the
    /// access point, the host does not change it, and several hosts are only reported.
    fn switch_host(&mut self, host: &str) {
        if self.header.is_none() && !self.is_ap_given {
            self.others.switch_host(host);
            return;
        }
        let first = self
            .others
            .first_host
            .get_or_insert_with(|| host.to_owned());
        if first != host && self.log.hosts.len() < MAX_NAMED_HOSTS {
            self.log.hosts.extend([first.clone(), host.to_owned()]);
        }
    }

    /// Dates the undated events before `anchor`, the first time with a year. It first walks back to
    /// find the year of the earliest event, then dates all of them in order.
    fn date_undated_events(&mut self, anchor: Stamp, sink: &mut EventSink<'_>) -> BoxedResult<()> {
        let undated = std::mem::take(&mut self.undated);
        let mut first_ms = anchor.ms;
        // Backwards: each stamp lies in the last year that does not put it after the following
        // stamp.
        for earlier in undated.iter().rev() {
            first_ms = resolve_backward(earlier.stamp.ms, first_ms);
        }
        self.calendar = Calendar::new(Some(first_ms), self.utc_offset_ms);

        let last_host = self.others.last_host;
        for earlier in undated {
            self.others.last_host = earlier.last_host;
            match self.date_event(earlier.stamp, earlier.event, sink)? {
                ClockStep::On | ClockStep::Back => {}
                ClockStep::ZoneChange => self.count_anomaly(Anomaly::ZoneChange),
                ClockStep::LongGap => self.count_anomaly(Anomaly::LongGap),
                ClockStep::NoLeapDay => self.contradicts_year = true,
                ClockStep::NoZoneChange => self.forget_zone_change(),
            }
        }
        self.others.last_host = last_host;
        Ok(())
    }

    /// Dates the undated events of the log at `path`, in which nothing gives the year: the last of
    /// them is not after the last change of the file.
    fn date_by_change_time(&mut self, path: &Path, sink: &mut EventSink<'_>) -> BoxedResult<()> {
        let changed_ms = changed_ms(path).filter(|ms| YEARS.contains(&year_of(*ms)));
        let changed_ms = changed_ms.ok_or_else(|| ReadError::UnknownYear {
            path: path.to_owned(),
        })?;
        let changed = Stamp {
            ms: changed_ms,
            has_year: true,
            zone: StampZone::Known,
        };
        self.date_undated_events(changed, sink)
    }

    /// Counts an anomaly whose position is no longer known.
    fn count_anomaly(&mut self, anomaly: Anomaly) {
        *self.log.anomalies.entry(anomaly).or_default() += 1;
    }

    /// Begins a new log segment. Emits the events of the current one first.
    fn begin_stretch(&mut self, sink: &mut EventSink<'_>) -> BoxedResult<()> {
        if !self.events.is_empty() || !self.ads.is_empty() || !self.others.is_empty() {
            self.flush(sink)?;
        }
        self.stretch += 1;
        Ok(())
    }

    /// Applies an anchor. A header gives the year by its creation time, and the zone by comparison
    /// with a local stamp. The stamp of a rotated file's header is its rotation time, so there the
    /// first event gives the zone. Without a header, the first job ad gives the year.
    fn apply_anchor(
        &mut self,
        anchor: &YearAnchor,
        first_stamp: Stamp,
        sink: &mut EventSink<'_>,
    ) -> BoxedResult<()> {
        match anchor {
            YearAnchor::Header(FoundHeader { stamp, header, .. }) => {
                let local = if header.is_live { *stamp } else { first_stamp };
                self.begin_generation(header, local, sink)
            }
            YearAnchor::Ad(stamp) if !self.calendar.is_set() => {
                self.date_undated_events(*stamp, sink)?;
                self.calendar.resolve_stamp(*stamp);
                Ok(())
            }
            YearAnchor::Ad(_) => Ok(()),
        }
    }

    /// Begins the generation of `header`, which was created at the local time `local`.
    fn begin_generation(
        &mut self,
        header: &GlobalHeader,
        local: Stamp,
        sink: &mut EventSink<'_>,
    ) -> BoxedResult<()> {
        let created_ms = header.created_s.saturating_mul(1000);
        let offset_ms = utc_offset_between(local, created_ms).unwrap_or(0);
        if !self.undated.is_empty() {
            // This file was created after all events of the previous files.
            let created = Stamp {
                ms: created_ms + offset_ms,
                has_year: true,
                zone: StampZone::Known,
            };
            self.date_undated_events(created, sink)?;
        }
        self.begin_stretch(sink)?;
        self.others.begin_log();

        if !self.is_ap_given
            && let Some(creator) = &header.creator
            && self.ap.as_ref() != Some(creator)
        {
            // Equal ids belong to other jobs at another access point, so no ad is known.
            self.ap = Some(creator.clone());
            let wants_texts = self.earlier.wants_texts;
            self.earlier = Arc::new(EarlierPieces::new(REMEMBERED_JOBS, wants_texts));
        }
        if self.log.generation.is_none() {
            self.log.generation = Some(LogGeneration {
                ap: self.ap.clone().unwrap_or_default(),
                sequence: header.sequence,
                created_ms,
                offset: header.offset,
                bytes: 0,
                missing_holds: header.missing_holds,
            });
        }
        self.calendar = Calendar::new(Some(created_ms), offset_ms);
        Ok(())
    }

    /// Emits the events and ads of all access points.
    pub(super) fn flush(&mut self, sink: &mut EventSink<'_>) -> BoxedResult<()> {
        let batch = EventBatch {
            ap: self.ap.as_deref().unwrap_or("unknown"),
            events: &self.events,
            ads: &self.ads,
            texts: &self.texts,
            stretch: self.stretch,
        };
        emit_batch(batch, &mut self.log, sink)?;
        self.events.clear();
        self.ads.clear();
        self.texts.clear();

        let (log, stretch) = (&mut self.log, self.stretch);
        self.others.emit_pending(|host| {
            let batch = EventBatch {
                ap: &host.name,
                events: &host.events,
                ads: &host.ads,
                texts: &[],
                stretch,
            };
            emit_batch(batch, log, sink)
        })
    }

    /// Emits the remaining events and returns the summary of the log at `path`.
    ///
    /// # Errors
    /// Fails if nothing gives the year of its events, not even the file's change time, if the log
    /// cannot be read again for line numbers, and if `sink` fails.
    pub(super) fn finish(
        mut self,
        path: &Path,
        sink: &mut EventSink<'_>,
    ) -> BoxedResult<LogSummary> {
        // No event follows these anchors, so each one uses its own stamp.
        for anchor in std::mem::take(&mut self.waiting) {
            let (YearAnchor::Header(FoundHeader { stamp, .. }) | YearAnchor::Ad(stamp)) = &anchor;
            self.apply_anchor(&anchor, *stamp, sink)?;
        }
        let lacks_year = !self.undated.is_empty();
        if lacks_year {
            self.date_by_change_time(path, sink)?;
        }
        self.flush(sink)?;
        if lacks_year {
            self.log.assumed_year = self.log.begin_ms.map(year_of);
        }

        if !self.is_read_once {
            find_lines(path, &mut self.log.places)?;
        }
        if let Some(generation) = &mut self.log.generation {
            generation.bytes = self.log.bytes;
        }
        Ok(self.into_summary())
    }

    fn into_summary(mut self) -> LogSummary {
        // A resume point does not store the access point of each job.
        let can_resume = self.others.is_empty() && !self.calendar.may_be_wrong();
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

/// Emits `batch`, and extends the time range in `log` by its events.
fn emit_batch(
    batch: EventBatch<'_>,
    log: &mut LogSummary,
    sink: &mut EventSink<'_>,
) -> BoxedResult<()> {
    let times = || batch.events.iter().map(|event| event.time_ms);
    log.begin_ms = times().chain(log.begin_ms).min();
    log.end_ms = times().max().max(log.end_ms);
    sink(batch).map_err(|error| ReadError::Sink(error).into())
}
