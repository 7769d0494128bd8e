//! A piece of a log → its events, whose stamps are not yet placed in time, and what tells the year. One thread a piece.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use super::blocks::Block;
use super::event::{self, AD_INFORMATION, AdKey, GENERIC, HELD, JobAd, JobEvent, SUBMIT};
use super::header::{GlobalHeader, global_header, overwritten};
use super::known::Known;
use super::reason::{self, ReasonTemplates};
use super::record::{Anomaly, Content, Record, Records, headline};
use super::stamp::Stamp;

/// So many new jobs may take turns in a piece until one is forgotten.
const JOBS_AT_ONCE: usize = 1 << 8;

/// What tells the year.
pub(super) enum Anchor {
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

/// What one thread made of one piece; stamps are not yet placed in time.
#[derive(Default)]
pub(super) struct Piece {
    pub(super) bytes: u64,
    /// How many lines end in it, where the log cannot be read again to find out.
    pub(super) lines: u64,
    pub(super) events: Vec<(Stamp, JobEvent)>,
    /// Each with the number of events before it.
    pub(super) anchors: Vec<(usize, Anchor)>,
    /// Each with the number of events before it.
    pub(super) ads: Vec<(usize, AdKey, JobAd)>,
    pub(super) reasons: ReasonTemplates,
    /// The hosts that jobs were submitted from, each with the first event 000 that names it after another.
    pub(super) hosts: Vec<(usize, String)>,
    pub(super) records_by_number: BTreeMap<u16, u64>,
    pub(super) anomalies: Vec<(Anomaly, usize)>,
    /// Where the last whole record ends; `None` if its last line feed is missing.
    pub(super) whole_end: Option<usize>,
}

/// Records that say more than an event does, most with the number of events before them. They are read after all events,
/// so that the loop over all records stays small.
#[derive(Default)]
pub(super) struct Telling<'a> {
    /// The first ad of each job, as far as it is not known.
    ads: Vec<(usize, AdKey, Record<'a>)>,
    first_ad: Option<(usize, Record<'a>)>,
    /// Whether each is the first record, too.
    generic: Vec<(usize, Record<'a>, bool)>,
    holds: Vec<(usize, Record<'a>)>,
    /// Those events 000 whose first line is not that of the one before.
    submits: Vec<(usize, Record<'a>)>,
}

/// What was met before a piece, and need not be told again.
#[derive(Clone, Copy)]
pub(super) struct Told<'a> {
    pub(super) ads: &'a Known<NonZeroU64>,
    pub(super) reasons: &'a ReasonTemplates,
}

/// Whose ads were met: one follows every event, and the first of a job says it all.
struct Met<'a> {
    /// Before the piece.
    before: &'a Known<NonZeroU64>,
    here: Known<NonZeroU64>,
}

impl<'a> Telling<'a> {
    /// Takes the ad after `at` events. It is looked at at once, while the processor has it at hand.
    #[inline(never)]
    fn ad(&mut self, at: usize, record: &Record<'a>, met: &mut Met<'_>) {
        if self.first_ad.is_none() {
            self.first_ad = Some((at, *record));
        }
        let Some(key) = event::ad_key(record) else {
            return;
        };
        // First where it is looked for faster.
        if !met.here.meet(key.hash, key.spread) && !met.before.knows(key.hash, key.spread) {
            self.ads.push((at, key, *record));
        }
    }
}

impl<'a> Telling<'a> {
    /// Takes the event 000 that is the event `at`.
    fn submit(&mut self, at: usize, record: &Record<'a>) {
        let is_same = |(_, last): &(usize, Record<'_>)| match (last.content, record.content) {
            (Content::Text(last), Content::Text(text)) => headline(last) == headline(text),
            _ => false,
        };
        if !self.submits.last().is_some_and(is_same) {
            self.submits.push((at, *record));
        }
    }
}

/// The access point, as job ads or, without any, submit events name it.
pub(super) fn access_point(pieces: &[Piece]) -> Option<String> {
    let schedd = pieces
        .iter()
        .flat_map(|piece| &piece.ads)
        .map(|(.., ad)| ad.schedd.clone())
        .next();
    schedd.or_else(|| {
        pieces
            .iter()
            .find_map(|piece| Some(piece.hosts.first()?.1.clone()))
    })
}

impl Piece {
    /// The headers of global event logs in it.
    pub(super) fn headers(&self) -> impl Iterator<Item = &FoundHeader> {
        self.anchors.iter().filter_map(|(_, anchor)| match anchor {
            Anchor::Header(found) => Some(found),
            Anchor::Ad(_) => None,
        })
    }

    /// Parses one piece, but for what was `told` before; the memory of `events` is used again.
    pub(super) fn parse(
        block: &Block<'_>,
        told: Told<'_>,
        events: Vec<(Stamp, JobEvent)>,
    ) -> Piece {
        let (mut piece, telling) = Piece::scan(block, Some(told.ads), events);
        piece.hosts.extend(
            telling
                .submits
                .iter()
                .filter_map(|(at, record)| Some((*at, event::submit_host(record)?))),
        );
        piece.hosts.dedup_by(|next, last| next.1 == last.1);
        for (at, record) in &telling.holds {
            let text = event::hold(record).1;
            let hash = reason::hash(&text);
            piece.events[*at].1.value = hash.cast_signed();
            if !told.reasons.settles(hash) {
                piece.reasons.add(hash, || reason::template(&text));
            }
        }
        for (at, record, is_first) in &telling.generic {
            let Some(header) = global_header(record) else {
                continue;
            };
            let (stamp, is_first) = (record.header.stamp, *is_first);
            let lost =
                overwritten(record).map(|within| (Anomaly::OverwrittenEvent, record.at + within));
            piece.anomalies.extend(lost);
            piece.anchors.push((
                *at,
                Anchor::Header(FoundHeader {
                    stamp,
                    header,
                    is_first,
                    at: record.at,
                }),
            ));
        }
        let stamped = telling
            .first_ad
            .as_ref()
            .and_then(|(at, record)| Some((*at, Anchor::Ad(event::ad_stamp(record)?))));
        piece.anchors.extend(stamped);
        piece.anchors.sort_by_key(|(at, _)| *at);
        piece.ads.extend(
            telling
                .ads
                .iter()
                .filter_map(|(at, key, record)| Some((*at, *key, event::ad(record)?))),
        );
        piece
    }

    /// The events of one piece, but for the reasons of holds: header, stamp, job, hold codes, ends. Without `known`, ads are
    /// not looked at.
    pub(super) fn scan<'a>(
        Block { text, ends_log }: &Block<'a>,
        known: Option<&Known<NonZeroU64>>,
        mut events: Vec<(Stamp, JobEvent)>,
    ) -> (Piece, Telling<'a>) {
        events.clear();
        let mut telling = Telling::default();
        let mut records = Records::new(text, *ends_log);
        let mut counts = [0u32; 1000];
        let mut met = known.map(|before| Met {
            before,
            here: Known::new(JOBS_AT_ONCE),
        });
        let mut out_of_range = Vec::new();
        records.each(|record| {
            let header = record.header;
            counts[usize::from(header.number)] += 1;
            let at = events.len();
            match header.number {
                AD_INFORMATION => met.iter_mut().for_each(|met| telling.ad(at, record, met)),
                GENERIC => {
                    let is_first =
                        at == 0 && telling.generic.is_empty() && telling.first_ad.is_none();
                    telling.generic.push((at, *record, is_first));
                }
                number => {
                    events.push((header.stamp, event::event(record)));
                    match number {
                        HELD => telling.holds.push((at, *record)),
                        SUBMIT => telling.submit(at, record),
                        _ => {}
                    }
                }
            }
            if event::job(&header).is_none() {
                out_of_range.push((Anomaly::JobIdOutOfRange, record.at));
            }
        });
        let mut anomalies = records.anomalies;
        anomalies.extend(out_of_range);
        anomalies.sort_by_key(|(_, at)| *at);
        let records_by_number = (0u16..)
            .zip(counts.map(u64::from))
            .filter(|(_, count)| *count > 0)
            .collect();
        let (bytes, whole_end) = (text.len() as u64, records.whole_end);
        (
            Piece {
                bytes,
                events,
                records_by_number,
                anomalies,
                whole_end,
                ..Piece::default()
            },
            telling,
        )
    }
}
