//! Parses a piece of a log on one thread: its events with unconverted stamps, and the data that
//! gives their year.

use std::collections::BTreeMap;

use super::anomaly::Anomaly;
use super::blocks::RecordBlock;
use super::event::{JobEvent, parse_event, parse_hold, parse_submit_host};
use super::event_facts::EventFacts;
use super::event_number::{AD_INFORMATION, GENERIC, HELD, SUBMIT};
use super::event_text::{EventText, EventTextKind, may_have_text, parse_text};
use super::global_header::{GlobalHeader, overwritten_event, parse_global_header};
use super::job_ad::{AdKey, JobAd, parse_ad, parse_ad_key, parse_ad_stamp};
use super::reason_identity::read_hold_reason;
use super::recent_keys::RecentKeys;
use super::record::{LogRecord, RecordContent, headline};
use super::record_scan::RecordScan;
use super::stamp::Stamp;

/// Number of jobs per piece that are remembered because their ad was read.
const REMEMBERED_JOBS: usize = 1 << 8;

/// Number of possible event numbers; HTCondor's have three digits.
const EVENT_NUMBERS: usize = 1000;

/// An item in a piece, with the number of events before it.
#[derive(Clone, Copy)]
pub(super) struct BeforeEvent<T> {
    pub(super) index: usize,
    pub(super) item: T,
}

/// Source of the year of an event.
pub(super) enum YearAnchor {
    Header(FoundHeader),
    Ad(Stamp),
}

/// A header of a global event log that a piece contains. Only the assembly can decide whether it
/// begins a generation.
pub(super) struct FoundHeader {
    pub(super) stamp: Stamp,
    pub(super) header: GlobalHeader,
    /// True if it is the first record of the piece.
    pub(super) is_first: bool,
    /// Offset in the piece.
    pub(super) at: usize,
}

/// Result of parsing one piece on one thread. The stamps are not converted to times yet.
#[derive(Default)]
pub(super) struct ParsedPiece {
    pub(super) bytes: u64,
    /// Number of line feeds in the piece; counted only if the log cannot be read again.
    pub(super) lines: u64,
    pub(super) events: Vec<(Stamp, JobEvent)>,
    pub(super) anchors: Vec<BeforeEvent<YearAnchor>>,
    pub(super) ads: Vec<BeforeEvent<(AdKey, JobAd)>>,
    /// Unmodified texts of events, if requested.
    pub(super) texts: Vec<EventText>,
    /// Submit hosts, each at the first event 000 that names it after another host.
    pub(super) hosts: Vec<BeforeEvent<String>>,
    pub(super) records_by_number: BTreeMap<u16, u64>,
    pub(super) anomalies: Vec<(Anomaly, usize)>,
    /// Offset of the end of the last whole record; `None` if its last line feed is missing.
    pub(super) whole_end: Option<usize>,
}

/// Data from earlier pieces that need not be read again, and options. One thread adds to it in log
/// order while others parse. A thread that sees less of it does more work than necessary, with the
/// same result.
pub(super) struct EarlierPieces {
    /// Jobs whose ads were read.
    pub(super) ads: RecentKeys,
    /// True if the texts of events are requested.
    pub(super) wants_texts: bool,
}

impl EarlierPieces {
    /// Creates an empty object that remembers `ads_at_once` jobs whose ad was read. If a pool has
    /// more jobs at a time, the ads of some are read again.
    pub(super) fn new(ads_at_once: usize, wants_texts: bool) -> EarlierPieces {
        EarlierPieces {
            ads: RecentKeys::new(ads_at_once),
            wants_texts,
        }
    }
}

/// Records with more data than their event has. They are read after all events, so that the loop
/// over all records stays small.
#[derive(Default)]
pub(super) struct DeferredRecords<'a> {
    /// First ad of each job, unless it is already known.
    ads: Vec<BeforeEvent<(AdKey, LogRecord<'a>)>>,
    first_ad: Option<BeforeEvent<LogRecord<'a>>>,
    generic: Vec<GenericRecord<'a>>,
    holds: Vec<BeforeEvent<LogRecord<'a>>>,
    /// Events 000 whose first line differs from the previous event 000.
    submits: Vec<BeforeEvent<LogRecord<'a>>>,
    /// Other events that may have texts, if these are requested.
    with_texts: Vec<BeforeEvent<LogRecord<'a>>>,
}

/// An event 008, which may be the header of a global event log.
struct GenericRecord<'a> {
    /// Number of events before it.
    index: usize,
    record: LogRecord<'a>,
    /// True if it is the first record of the piece.
    is_first: bool,
}

/// Filters out the ads of jobs that already have one. An ad follows every event, and the first ad
/// of a job is enough.
struct AdFilter<'a> {
    /// Jobs of earlier pieces. `None` after a header, because the log may belong to another access
    /// point from there on.
    known_before_piece: Option<&'a RecentKeys>,
    known_in_piece: RecentKeys,
}

impl<'a> AdFilter<'a> {
    fn new(known_before_piece: Option<&'a RecentKeys>) -> AdFilter<'a> {
        AdFilter {
            known_before_piece,
            known_in_piece: RecentKeys::new(REMEMBERED_JOBS),
        }
    }

    /// Returns true if `key` is new, and adds it.
    fn is_new(&mut self, key: AdKey) -> bool {
        // The table of the piece is checked first: it is small, and in the core's own cache.
        !self.known_in_piece.insert(key.hash, key.spread)
            && !self
                .known_before_piece
                .is_some_and(|known| known.contains(key.hash, key.spread))
    }
}

impl<'a> DeferredRecords<'a> {
    /// Adds the ad after `index` events. Its key is parsed now, while the text is in the
    /// processor's cache.
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

    /// Adds an event 008 after `index` events.
    fn add_generic(&mut self, index: usize, record: &LogRecord<'a>) {
        let is_first = index == 0 && self.generic.is_empty() && self.first_ad.is_none();
        self.generic.push(GenericRecord {
            index,
            record: *record,
            is_first,
        });
    }

    /// Adds the event 012 that has the index `index`.
    fn add_hold(&mut self, index: usize, record: &LogRecord<'a>) {
        self.holds.push(BeforeEvent {
            index,
            item: *record,
        });
    }

    /// Adds the event 000 that has the index `index`, unless its first line equals the previous
    /// one.
    fn add_submit(&mut self, index: usize, record: &LogRecord<'a>) {
        let last = self.submits.last().map(|last| last.item.content);
        // Nearly all events 000 name the same host. Comparing their lines is faster than parsing
        // them.
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

/// Finds the access point in the job ads or, if there are none, in the submit events.
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
    /// Returns the headers of global event logs in the piece.
    pub(super) fn headers(&self) -> impl Iterator<Item = &FoundHeader> {
        self.anchors.iter().filter_map(|anchor| match &anchor.item {
            YearAnchor::Header(found) => Some(found),
            YearAnchor::Ad(_) => None,
        })
    }

    /// Parses one piece, except for the data that `earlier` pieces have. Reuses the memory of
    /// `events`.
    pub(super) fn parse(
        block: &RecordBlock<'_>,
        earlier: &EarlierPieces,
        events: Vec<(Stamp, JobEvent)>,
    ) -> ParsedPiece {
        // The events are parsed first, in a loop that is as small as possible. The additional data
        // of a few records is read after that.
        let (mut piece, deferred) = ParsedPiece::scan(block, Some(earlier), events);
        piece.add_texts(&deferred.with_texts);
        piece.add_hosts(&deferred.submits);
        piece.add_holds(&deferred.holds, earlier.wants_texts);
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

    /// Adds the texts of other events than holds.
    fn add_texts(&mut self, records: &[BeforeEvent<LogRecord<'_>>]) {
        for BeforeEvent { index, item } in records {
            let (_, event) = &self.events[*index];
            self.texts.extend(parse_text(item, event));
        }
    }

    /// Adds the submit hosts, without repetitions.
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

    /// Sets the facts of holds from their reasons, and keeps the texts if `wants_texts`.
    fn add_holds(&mut self, holds: &[BeforeEvent<LogRecord<'_>>], wants_texts: bool) {
        let mut scratch = Vec::new();
        for hold in holds {
            let reason = parse_hold(&hold.item).reason;
            let (_, event) = &mut self.events[hold.index];
            let codes = (event.hold_code, event.hold_subcode);
            let facts = read_hold_reason(&reason, codes, &mut scratch);
            event.facts = EventFacts::from_hold(facts);
            if wants_texts {
                let text_hash = event.text_hash;
                self.texts.push(EventText {
                    cluster: event.cluster,
                    proc: event.proc,
                    kind: EventTextKind::HoldReason { text_hash },
                    text: String::from_utf8_lossy(&reason).into_owned(),
                });
            }
        }
    }

    /// Adds the headers of global event logs, and the anomalies of events that they overwrote.
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

    /// Adds the stamp of the first ad as a source of the year.
    fn add_ad_stamp(&mut self, ad: &BeforeEvent<LogRecord<'_>>) {
        if let Some(stamp) = parse_ad_stamp(&ad.item) {
            self.anchors.push(BeforeEvent {
                index: ad.index,
                item: YearAnchor::Ad(stamp),
            });
        }
    }

    /// Parses the events of one piece: header, stamp, job, hold codes and terminations, but not the
    /// reasons of holds. Ads and texts are skipped if `earlier` is `None`.
    pub(super) fn scan<'a>(
        block: &RecordBlock<'a>,
        earlier: Option<&EarlierPieces>,
        mut events: Vec<(Stamp, JobEvent)>,
    ) -> (ParsedPiece, DeferredRecords<'a>) {
        events.clear();
        let mut deferred = DeferredRecords::default();
        let mut ad_filter = earlier.map(|earlier| AdFilter::new(Some(&earlier.ads)));
        let wants_texts = earlier.is_some_and(|earlier| earlier.wants_texts);
        // An array: for most records a map would cost more than the rest of the loop.
        let mut counts = [0u32; EVENT_NUMBERS];
        let mut out_of_range = Vec::new();

        let mut records = RecordScan::new(block.text, block.is_at_log_end);
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
                    // No job can write such a record. After it, an equal id may be another job.
                    if header.cluster < 0 && ad_filter.is_some() {
                        ad_filter = Some(AdFilter::new(None));
                    }
                }
                number => {
                    events.push((header.stamp, parse_event(record)));
                    if wants_texts && may_have_text(number) {
                        let item = *record;
                        deferred.with_texts.push(BeforeEvent { index, item });
                    }
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
