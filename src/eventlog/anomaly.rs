//! Anomalies of a log: their kinds, counts and positions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A kind of damage or irregularity in a log. Anomalies are counted and are never fatal, unless the
/// caller decides so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Anomaly {
    /// Bytes between records that belong to no record: blank lines, NULs, text, or the tail of a
    /// record whose head is missing.
    Junk,
    /// A record without its line `...`; the next header follows directly.
    LostTerminator,
    /// A line `...` with the next header on the same line.
    GluedHeader,
    /// A record whose header cannot be read, or whose text belongs to another event than its number
    /// says. The reader skips it.
    DamagedRecord,
    /// A job number that does not fit HTCondor's 32 bits. The event is counted, but belongs to no
    /// job.
    JobIdOutOfRange,
    /// The log ends within a record. That record is not counted as an event.
    UnfinishedRecord,
    /// An event whose beginning was overwritten by a longer header of a global event log.
    OverwrittenEvent,
    /// A header of a global event log at a position where no header can stand. It counts as an
    /// event.
    MisplacedHeader,
    /// The stamps went back by about an hour. Later stamps are in another time zone.
    ZoneChange,
    /// More than half a year lies between two stamps that have no year.
    LongGap,
}

/// Number of occurrences of each anomaly.
pub type AnomalyCounts = BTreeMap<Anomaly, u64>;

/// Position of one anomaly in a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnomalyPosition {
    /// Kind of the anomaly.
    pub anomaly: Anomaly,
    /// Line number, counted from 1.
    pub line: u64,
    /// Byte offset in the decompressed log, counted from 0.
    pub offset: u64,
}

/// Maximum number of reported positions per kind of anomaly. Further ones are only counted.
const MAX_PLACES_PER_KIND: u64 = 20;

impl Anomaly {
    /// Describes the anomaly in words.
    pub fn describe(self) -> &'static str {
        match self {
            Anomaly::Junk => "blank lines, text or NULs between records",
            Anomaly::LostTerminator => "a record without its end",
            Anomaly::GluedHeader => "a header glued to the end of a record",
            Anomaly::DamagedRecord => {
                "a record whose header cannot be read or contradicts its text, skipped"
            }
            Anomaly::JobIdOutOfRange => "a job number that is out of range, ignored",
            Anomaly::UnfinishedRecord => "an unfinished last record, skipped",
            Anomaly::OverwrittenEvent => "an event overwritten by the log's header, skipped",
            Anomaly::MisplacedHeader => {
                "a log header at an impossible position, counted as an event"
            }
            Anomaly::ZoneChange => "a change of time zone: local time went back by about an hour",
            Anomaly::LongGap => {
                "a gap of more than half a year, or stamps without a year out of order"
            }
        }
    }

    /// Returns true if the anomaly is damage. Unfinished records, zone changes and long gaps are
    /// not damage: a live log may end anywhere, and clocks go back in autumn.
    pub fn is_damage(self) -> bool {
        !matches!(
            self,
            Anomaly::UnfinishedRecord | Anomaly::ZoneChange | Anomaly::LongGap
        )
    }
}

/// Returns the first 20 of `places` of each kind.
pub fn first_positions<'a>(
    places: impl Iterator<Item = &'a AnomalyPosition>,
) -> Vec<AnomalyPosition> {
    let mut counts = AnomalyCounts::new();
    let mut first = Vec::new();

    for place in places {
        let count = counts.entry(place.anomaly).or_default();
        *count += 1;
        if *count <= MAX_PLACES_PER_KIND {
            first.push(place.clone());
        }
    }
    first
}
