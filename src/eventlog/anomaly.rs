//! What a log holds that a sound log would not hold: its kinds, how often each was met, and where.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Something in a log that a sound log would not hold; counted, never fatal unless the caller says
/// so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Anomaly {
    /// Bytes between records that belong to none: blank lines, NULs, text, the tail of a record
    /// whose head is missing.
    Junk,
    /// A record without its line `...`; the next header follows directly.
    LostTerminator,
    /// A line `...` with the next header on the same line.
    GluedHeader,
    /// A record whose header cannot be read; it is left out.
    DamagedRecord,
    /// A job number that HTCondor's 32 bits cannot hold; the event is counted and belongs to no
    /// job.
    JobIdOutOfRange,
    /// The log ends within a record; that record is not counted as an event.
    UnfinishedRecord,
    /// A header of a global event log that was written anew over the beginning of the event after
    /// it.
    OverwrittenEvent,
    /// A header of a global event log where none can stand; it is taken for an event.
    MisplacedHeader,
    /// The stamps went back by about an hour: they are of another zone from there on.
    ZoneChange,
    /// More than half a year lies between two stamps that have no year.
    LongGap,
}

/// How often each anomaly was met.
pub type AnomalyCounts = BTreeMap<Anomaly, u64>;

/// Where in a log an anomaly was met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnomalyPlace {
    /// What was met.
    pub anomaly: Anomaly,
    /// The line, counted from 1.
    pub line: u64,
    /// The byte in the decompressed log, counted from 0.
    pub offset: u64,
}

/// How many anomalies of each kind are reported with their place. The others are only counted.
const MOST_PLACES: u64 = 20;

impl Anomaly {
    /// What was met, in words.
    pub fn describe(self) -> &'static str {
        match self {
            Anomaly::Junk => "blank lines, text or NULs between records",
            Anomaly::LostTerminator => "a record without its end",
            Anomaly::GluedHeader => "a header glued to the end of a record",
            Anomaly::DamagedRecord => "a record whose header cannot be read, left out",
            Anomaly::JobIdOutOfRange => "a job number that is out of range, left out",
            Anomaly::UnfinishedRecord => "an unfinished last record, left out",
            Anomaly::OverwrittenEvent => {
                "an event that the log's header was written over, left out"
            }
            Anomaly::MisplacedHeader => {
                "a header of a log where none can stand, taken for an event"
            }
            Anomaly::ZoneChange => "a change of zone: local time went back by about an hour",
            Anomaly::LongGap => {
                "a gap of more than half a year, or stamps without a year out of order"
            }
        }
    }

    /// Whether it is damage. A log that is being written ends anywhere, and clocks go back in
    /// autumn.
    pub fn is_damage(self) -> bool {
        !matches!(
            self,
            Anomaly::UnfinishedRecord | Anomaly::ZoneChange | Anomaly::LongGap
        )
    }
}

/// The first 20 of `places` of each kind.
pub fn first_places<'a>(places: impl Iterator<Item = &'a AnomalyPlace>) -> Vec<AnomalyPlace> {
    let mut counts = AnomalyCounts::new();
    let mut first = Vec::new();

    for place in places {
        let count = counts.entry(place.anomaly).or_default();
        *count += 1;
        if *count <= MOST_PLACES {
            first.push(place.clone());
        }
    }
    first
}
