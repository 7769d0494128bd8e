//! Finds the time ranges of missing generations of event logs.

use super::access_points::AccessPoints;
use super::store_summary::{LogGap, SourceLog};
use htcondor_eventlog::LogGeneration;

/// Returns the gaps between consecutive generations of each access point: a generation is missing
/// between them, or the end of the first one is. Adds the access points that are not known yet.
pub(super) fn find_gaps(sources: &[SourceLog], aps: &mut AccessPoints) -> Vec<LogGap> {
    let mut generations = Vec::new();
    for source in sources {
        if let Some(generation) = &source.generation {
            let ap = aps.index(&generation.ap);
            let end_ms = source.end_ms.unwrap_or(generation.created_ms);
            generations.push((ap, generation, end_ms));
        }
    }
    generations.sort_by_key(|(ap, generation, end_ms)| {
        (*ap, generation.sequence, generation.created_ms, *end_ms)
    });

    let mut gaps = Vec::new();
    for pair in generations.windows(2) {
        let (ap, earlier, earlier_end_ms) = &pair[0];
        let (later_ap, later, _) = &pair[1];
        if ap == later_ap && is_gap_between(earlier, later) {
            gaps.push(LogGap {
                ap: *ap,
                from_ms: *earlier_end_ms,
                to_ms: later.created_ms.max(*earlier_end_ms),
            });
        }
    }
    gaps
}

/// Returns true if events are missing between two generations. The header of each generation states
/// its sequence number and offset.
fn is_gap_between(earlier: &LogGeneration, later: &LogGeneration) -> bool {
    let ends_early = earlier.bytes > 0 && earlier.offset + earlier.bytes < later.offset;
    later.sequence > earlier.sequence + 1 || (later.sequence == earlier.sequence + 1 && ends_early)
}
