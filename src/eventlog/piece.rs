//! A piece of a log → its events, whose stamps are not yet placed in time, and what tells the year. One thread a piece.

use std::collections::BTreeMap;

use super::blocks::Block;
use super::event::{self, AD_INFORMATION, Ad, Event, GENERIC, GlobalHeader, HELD, SUBMIT};
use super::reason::{self, Reasons};
use super::record::{Anomaly, Records};
use super::stamp::Stamp;

/// What tells the year: before which event of its piece it stands, and what it says.
pub(super) enum Anchor {
    Header(Stamp, GlobalHeader),
    Ad(Stamp),
}

/// What one thread made of one piece; stamps are not yet placed in time.
#[derive(Default)]
pub(super) struct Piece {
    pub(super) bytes: u64,
    pub(super) events: Vec<(Stamp, Event)>,
    pub(super) anchors: Vec<(usize, Anchor)>,
    pub(super) ads: Vec<Ad>,
    pub(super) reasons: Reasons,
    pub(super) submit_host: Option<String>,
    pub(super) records_by_number: BTreeMap<u16, u64>,
    pub(super) anomalies: Vec<(Anomaly, usize)>,
    /// Where the last whole record ends; `None` if its last line feed is missing.
    pub(super) whole_end: Option<usize>,
}

impl Piece {
    /// Parses one piece; the memory of `events` is used again.
    pub(super) fn parse(Block { text, ends_log }: &Block<'_>, mut events: Vec<(Stamp, Event)>) -> Piece {
        events.clear();
        let mut piece = Piece { bytes: text.len() as u64, events, ..Piece::default() };
        let mut records = Records::new(text, *ends_log);
        let mut counts = vec![0u64; 1000];
        let mut known = Known::default();
        let mut out_of_range = Vec::new();
        records.each(|record| {
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
                _ => {
                    let event = event::event(&record);
                    if header.number == HELD {
                        let reason = || reason::template(&event::hold(&record).1);
                        piece.reasons.add(event.value.cast_unsigned(), reason);
                    }
                    piece.events.push((header.stamp, event));
                }
            }
            if event::job(&header).is_none() {
                out_of_range.push((Anomaly::JobIdOutOfRange, record.at));
            }
            if header.number == SUBMIT && piece.submit_host.is_none() {
                piece.submit_host = event::submit_host(&record);
            }
        });
        piece.records_by_number = (0u16..).zip(counts).filter(|(_, count)| *count > 0).collect();
        piece.whole_end = records.whole_end;
        piece.anomalies = records.anomalies;
        piece.anomalies.extend(out_of_range);
        piece.anomalies.sort_by_key(|(_, at)| *at);
        piece
    }
}

/// Jobs whose ad was read: it says the same after every event. Forgets some, as reading an ad twice does no harm.
struct Known(Box<[(i64, i64); 1 << 9]>);

impl Default for Known {
    fn default() -> Known {
        Known(Box::new([(-1, -1); 1 << 9]))
    }
}

impl Known {
    /// Whether `job` is known; from now on it is.
    fn meet(&mut self, job: (i64, i64)) -> bool {
        let slot = (job.0.wrapping_mul(31).wrapping_add(job.1)) as usize % self.0.len();
        std::mem::replace(&mut self.0[slot], job) == job
    }
}
