//! A piece of a log → its events, whose stamps are not yet placed in time, and what tells the year.
//! One thread a piece.

use std::collections::BTreeMap;
use std::sync::RwLock;

use super::anomaly::Anomaly;
use super::blocks::RecordBlock;
use super::event::{JobEvent, parse_event, parse_hold, parse_submit_host};
use super::event_facts::EventFacts;
use super::event_number::{AD_INFORMATION, GENERIC, HELD, SUBMIT};
use super::global_header::{GlobalHeader, overwritten_event, parse_global_header};
use super::job_ad::{AdKey, JobAd, parse_ad, parse_ad_key, parse_ad_stamp};
use super::log::HoldText;
use super::log_order::NO_PANIC;
use super::reason::{ReasonTemplates, reason_template, template_hash};
use super::reason_identity::read_hold_reason;
use super::recent_keys::RecentKeys;
use super::record::{LogRecord, RecordContent, headline};
use super::record_scan::RecordScan;
use super::stamp::Stamp;

/// How many jobs are remembered in a piece as ones whose ad was met.
const JOBS_AT_ONCE: usize = 1 << 8;

/// HTCondor's event numbers have three digits.
const EVENT_NUMBERS: usize = 1000;

/// Something in a piece, with the number of events before it.
#[derive(Clone, Copy)]
pub(super) struct BeforeEvent<T> {
    pub(super) index: usize,
    pub(super) item: T,
}

/// What tells the year.
pub(super) enum YearAnchor {
    Header(FoundHeader),
    Ad(Stamp),
}

/// A header of a global event log, as far as a piece tells.
pub(super) struct FoundHeader {
    pub(super) stamp: Stamp,
    pub(super) header: GlobalHeader,
    /// Whether no record of the piece stands before it.
    pub(super) is_first: bool,
    /// Where it begins in its piece.
    pub(super) at: usize,
}

/// What one thread made of one piece. The stamps are not yet placed in time.
#[derive(Default)]
pub(super) struct ParsedPiece {
    pub(super) bytes: u64,
    /// How many lines end in it, where the log cannot be read again to find out.
    pub(super) lines: u64,
    pub(super) events: Vec<(Stamp, JobEvent)>,
    pub(super) anchors: Vec<BeforeEvent<YearAnchor>>,
    pub(super) ads: Vec<BeforeEvent<(AdKey, JobAd)>>,
    pub(super) reasons: ReasonTemplates,
    /// The reasons of holds as they are, where they are asked for.
    pub(super) hold_texts: Vec<HoldText>,
    /// The hosts that jobs were submitted from, each with the first event 000 that names it after
    /// another.
    pub(super) hosts: Vec<BeforeEvent<String>>,
    pub(super) records_by_number: BTreeMap<u16, u64>,
    pub(super) anomalies: Vec<(Anomaly, usize)>,
    /// Where the last whole record ends; `None` if its last line feed is missing.
    pub(super) whole_end: Option<usize>,
}

/// What the pieces before one said, and need not be read again; what else is asked for. One thread
/// adds to it in the order of the log while others parse: who sees less of it does more than
/// needed, and the same comes of it.
pub(super) struct EarlierPieces {
    /// The jobs whose ads were read.
    pub(super) ads: RecentKeys,
    pub(super) reasons: RwLock<ReasonTemplates>,
    /// Whether the texts of hold reasons are wanted.
    pub(super) wants_hold_texts: bool,
}

impl EarlierPieces {
    /// Nothing was said, and `ads_at_once` jobs are remembered as ones whose ad was read. With more
    /// of them in a pool at once, the ads of some are read again.
    pub(super) fn new(ads_at_once: usize, wants_hold_texts: bool) -> EarlierPieces {
        EarlierPieces {
            ads: RecentKeys::new(ads_at_once),
            reasons: RwLock::default(),
            wants_hold_texts,
        }
    }

    /// Adds what a piece said for the first time.
    pub(super) fn add_reasons(&self, new: ReasonTemplates) {
        if !new.is_empty() {
            self.reasons.write().expect(NO_PANIC).extend(new);
        }
    }

    /// Takes all templates.
    pub(super) fn take_reasons(&self) -> ReasonTemplates {
        std::mem::take(&mut *self.reasons.write().expect(NO_PANIC))
    }
}

/// Records that say more than an event does. They are read after all events, so that the loop over
/// all records stays small.
#[derive(Default)]
pub(super) struct DeferredRecords<'a> {
    /// The first ad of each job, as far as it is not known.
    ads: Vec<BeforeEvent<(AdKey, LogRecord<'a>)>>,
    first_ad: Option<BeforeEvent<LogRecord<'a>>>,
    generic: Vec<GenericRecord<'a>>,
    holds: Vec<BeforeEvent<LogRecord<'a>>>,
    /// Those events 000 whose first line is not that of the one before.
    submits: Vec<BeforeEvent<LogRecord<'a>>>,
}

/// An event 008: perhaps the header of a global event log.
struct GenericRecord<'a> {
    /// The number of events before it.
    index: usize,
    record: LogRecord<'a>,
    /// Whether it is the first record of the piece.
    is_first: bool,
}

/// The jobs whose ads were met. An ad follows every event, and the first of a job says it all.
struct AdFilter<'a> {
    /// `None` after a header: the log may be of another access point from there on.
    before_piece: Option<&'a RecentKeys>,
    in_piece: RecentKeys,
}

impl<'a> AdFilter<'a> {
    fn new(before_piece: Option<&'a RecentKeys>) -> AdFilter<'a> {
        AdFilter {
            before_piece,
            in_piece: RecentKeys::new(JOBS_AT_ONCE),
        }
    }

    /// Whether no ad of this key was met; from now on one was.
    fn is_new(&mut self, key: AdKey) -> bool {
        // The table of the piece comes first: it is small, and in the core's own cache.
        !self.in_piece.insert(key.hash, key.spread)
            && !self
                .before_piece
                .is_some_and(|known| known.contains(key.hash, key.spread))
    }
}

impl<'a> DeferredRecords<'a> {
    /// Takes the ad after `index` events. It is looked at at once, while the processor has it at
    /// hand.
    #[inline(never)]
    fn add_ad(&mut self, index: usize, record: &LogRecord<'a>, filter: &mut AdFilter<'_>) {
        if self.first_ad.is_none() {
            self.first_ad = Some(BeforeEvent {
                index,
                item: *record,
            });
        }
        if let Some(key) = parse_ad_key(record)
            && filter.is_new(key)
        {
            self.ads.push(BeforeEvent {
                index,
                item: (key, *record),
            });
        }
    }

    /// Takes the event 008 after `index` events.
    fn add_generic(&mut self, index: usize, record: &LogRecord<'a>) {
        let is_first = index == 0 && self.generic.is_empty() && self.first_ad.is_none();
        self.generic.push(GenericRecord {
            index,
            record: *record,
            is_first,
        });
    }

    /// Takes the event 012 that is the event `index`.
    fn add_hold(&mut self, index: usize, record: &LogRecord<'a>) {
        self.holds.push(BeforeEvent {
            index,
            item: *record,
        });
    }

    /// Takes the event 000 that is the event `index`.
    fn add_submit(&mut self, index: usize, record: &LogRecord<'a>) {
        let last = self.submits.last().map(|last| last.item.content);
        // Nearly all name the same host, so their lines are compared and not parsed.
        if let (Some(RecordContent::Text(last)), RecordContent::Text(text)) = (last, record.content)
            && headline(last) == headline(text)
        {
            return;
        }
        self.submits.push(BeforeEvent {
            index,
            item: *record,
        });
    }
}

/// The access point, as job ads or, without any, submit events name it.
pub(super) fn find_access_point(pieces: &[ParsedPiece]) -> Option<String> {
    for ad in pieces.iter().flat_map(|piece| &piece.ads) {
        let (_, ad) = &ad.item;
        if ad.schedd.is_some() {
            return ad.schedd.clone();
        }
    }
    let first_host = pieces.iter().find_map(|piece| piece.hosts.first());
    first_host.map(|host| host.item.clone())
}

impl ParsedPiece {
    /// The headers of global event logs in it.
    pub(super) fn headers(&self) -> impl Iterator<Item = &FoundHeader> {
        self.anchors.iter().filter_map(|anchor| match &anchor.item {
            YearAnchor::Header(found) => Some(found),
            YearAnchor::Ad(_) => None,
        })
    }

    /// Parses one piece, but for what `earlier` pieces said; the memory of `events` is used again.
    pub(super) fn parse(
        block: &RecordBlock<'_>,
        earlier: &EarlierPieces,
        events: Vec<(Stamp, JobEvent)>,
    ) -> ParsedPiece {
        // The events come first, in a loop that is as small as it can be. What few records say
        // beyond their event is read after that.
        let (mut piece, deferred) = ParsedPiece::scan(block, Some(&earlier.ads), events);
        piece.add_hosts(&deferred.submits);
        piece.add_hold_reasons(&deferred.holds, &earlier.reasons.read().expect(NO_PANIC));
        if earlier.wants_hold_texts {
            piece.add_hold_texts(&deferred.holds);
        }
        piece.add_headers(&deferred.generic);

        if let Some(first) = &deferred.first_ad {
            piece.add_ad_stamp(first);
        }
        piece.anchors.sort_by_key(|anchor| anchor.index);

        for BeforeEvent { index, item } in &deferred.ads {
            let (key, record) = item;
            if let Some(ad) = parse_ad(record) {
                piece.ads.push(BeforeEvent {
                    index: *index,
                    item: (*key, ad),
                });
            }
        }
        piece
    }

    fn add_hosts(&mut self, submits: &[BeforeEvent<LogRecord<'_>>]) {
        for submit in submits {
            if let Some(host) = parse_submit_host(&submit.item) {
                self.hosts.push(BeforeEvent {
                    index: submit.index,
                    item: host,
                });
            }
        }
        self.hosts.dedup_by(|next, last| next.item == last.item);
    }

    /// Gives holds what their reasons say, and keeps the templates that are not known.
    fn add_hold_reasons(&mut self, holds: &[BeforeEvent<LogRecord<'_>>], known: &ReasonTemplates) {
        let mut scratch = Vec::new();
        for hold in holds {
            let text = parse_hold(&hold.item).reason;
            let hash = template_hash(&text);
            let (_, event) = &mut self.events[hold.index];
            event.value = hash.cast_signed();
            let facts = read_hold_reason(&text, event.hold_code, &mut scratch);
            event.facts = EventFacts::of_hold(facts);
            if !known.is_settled(hash) {
                self.reasons.add(hash, || reason_template(&text));
            }
        }
    }

    fn add_hold_texts(&mut self, holds: &[BeforeEvent<LogRecord<'_>>]) {
        for hold in holds {
            let (_, event) = &self.events[hold.index];
            let reason = parse_hold(&hold.item).reason;
            self.hold_texts.push(HoldText {
                cluster: event.cluster,
                proc: event.proc,
                text_hash: event.text_hash,
                reason: String::from_utf8_lossy(&reason).into_owned(),
            });
        }
    }

    fn add_headers(&mut self, generic: &[GenericRecord<'_>]) {
        for found in generic {
            let record = &found.record;
            let Some(header) = parse_global_header(record) else {
                continue;
            };
            if let Some(within) = overwritten_event(record) {
                self.anomalies
                    .push((Anomaly::OverwrittenEvent, record.at + within));
            }
            self.anchors.push(BeforeEvent {
                index: found.index,
                item: YearAnchor::Header(FoundHeader {
                    stamp: record.header.stamp,
                    header,
                    is_first: found.is_first,
                    at: record.at,
                }),
            });
        }
    }

    fn add_ad_stamp(&mut self, ad: &BeforeEvent<LogRecord<'_>>) {
        if let Some(stamp) = parse_ad_stamp(&ad.item) {
            self.anchors.push(BeforeEvent {
                index: ad.index,
                item: YearAnchor::Ad(stamp),
            });
        }
    }

    /// The events of one piece, but for the reasons of holds: header, stamp, job, hold codes, ends.
    /// Without `known_ads`, ads are not looked at.
    pub(super) fn scan<'a>(
        block: &RecordBlock<'a>,
        known_ads: Option<&RecentKeys>,
        mut events: Vec<(Stamp, JobEvent)>,
    ) -> (ParsedPiece, DeferredRecords<'a>) {
        events.clear();
        let mut deferred = DeferredRecords::default();
        let mut ad_filter = known_ads.map(|known| AdFilter::new(Some(known)));
        // An array, as a map would cost more than the rest of the loop does for most records.
        let mut counts = [0u32; EVENT_NUMBERS];
        let mut out_of_range = Vec::new();

        let mut records = RecordScan::new(block.text, block.ends_log);
        records.for_each_record(|record| {
            let header = record.header;
            counts[usize::from(header.number)] += 1;
            let index = events.len();
            match header.number {
                AD_INFORMATION => {
                    if let Some(filter) = &mut ad_filter {
                        deferred.add_ad(index, record, filter);
                    }
                }
                GENERIC => {
                    deferred.add_generic(index, record);
                    // No job writes such a record. Equal ids may be of other jobs after it.
                    if header.cluster < 0 && ad_filter.is_some() {
                        ad_filter = Some(AdFilter::new(None));
                    }
                }
                number => {
                    events.push((header.stamp, parse_event(record)));
                    match number {
                        HELD => deferred.add_hold(index, record),
                        SUBMIT => deferred.add_submit(index, record),
                        _ => {}
                    }
                }
            }
            if header.job_id().is_none() {
                out_of_range.push((Anomaly::JobIdOutOfRange, record.at));
            }
        });

        let mut anomalies = records.anomalies;
        anomalies.extend(out_of_range);
        anomalies.sort_by_key(|(_, at)| *at);
        let piece = ParsedPiece {
            bytes: block.text.len() as u64,
            events,
            records_by_number: nonzero_counts(&counts),
            anomalies,
            whole_end: records.whole_end,
            ..ParsedPiece::default()
        };
        (piece, deferred)
    }
}

fn nonzero_counts(counts: &[u32; EVENT_NUMBERS]) -> BTreeMap<u16, u64> {
    (0u16..)
        .zip(counts.map(u64::from))
        .filter(|(_, count)| *count > 0)
        .collect()
}
