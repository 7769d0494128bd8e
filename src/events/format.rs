//! The format that all event shards share.

use std::ops::RangeInclusive;

use poolcast_base::shard::ArtefactFormat;

/// Format of event shards.
pub const EVENTS_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "events",
    version: 13,
    rebuild: "poolcast parse LOG... -o DIR",
};

/// Range of valid time stamps, in epoch ms: the years 1 to 9999. Sums of valid time stamps never
/// overflow.
pub const TIMESTAMPS_MS: RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;
