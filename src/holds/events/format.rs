//! What every shard of events has in common.

use std::ops::RangeInclusive;

use poolcast_base::shard::ArtefactFormat;

/// Event shards.
pub const EVENTS_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "events",
    version: 5,
    rebuild: "poolcast parse LOG... -o DIR",
};

/// No stamp of a log is before the year 1 or after the year 9999, epoch ms: sums of them never
/// overflow.
pub(crate) const TIMESTAMPS_MS: RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;
