//! Separates the jobs that used one id in turn, and drops duplicate events.

use super::job_row::{EventRow, LogStretch};
use super::near_events::NearEvents;
use htcondor_eventlog::{ABORTED, SUBMIT, TERMINATED};

/// Maximum time between two reports of the same submission, in ms. Two logs may report it.
const SAME_SUBMISSION_MS: i64 = 60_000;

/// Maximum number of events in one second that are compared one by one. Nearly all jobs have fewer.
const MAX_SCANNED_EVENTS: usize = 64;

/// Drops duplicate events of one id, which must be sorted by time; returns their number.
///
/// HTCondor writes an event at least once, and generations of a log may overlap. So the first of
/// several equal events of one time is kept. Within a stretch of a log, equal events are duplicates
/// only if the job did not change its state between them: a job can be held, released and held in
/// one second.
pub(super) fn drop_duplicates(events: &mut Vec<EventRow>) -> u64 {
    if is_crowded(events) {
        return drop_crowded_duplicates(events);
    }
    drop_found(events, |kept, event| {
        let duplicate = find_duplicate(kept, event)?;
        kept[duplicate].set_stretch(event.stretch());
        Some(duplicate)
    })
}

/// Returns true if more than [`MAX_SCANNED_EVENTS`] of the sorted `events` are in one second.
fn is_crowded(events: &[EventRow]) -> bool {
    let later = events.iter().skip(MAX_SCANNED_EVENTS);
    events
        .iter()
        .zip(later)
        .any(|(event, later)| later.is_near(event))
}

/// Like [`drop_duplicates`], but with an index of the last second. A damaged log may report a job
/// very often in one second.
fn drop_crowded_duplicates(events: &mut Vec<EventRow>) -> u64 {
    let mut near = NearEvents::default();
    drop_found(events, |kept, event| near.find_duplicate(kept, event))
}

/// Drops each event for which `find_duplicate` returns the index of an event in those kept so far;
/// returns their number. `find_duplicate` also notes that the stretch of the event reports the kept
/// event, too: if it reports an equal event again, that may be another event.
fn drop_found(
    events: &mut Vec<EventRow>,
    mut find_duplicate: impl FnMut(&mut [EventRow], &EventRow) -> Option<usize>,
) -> u64 {
    let mut kept = 0;
    for at in 0..events.len() {
        let event = events[at];
        if find_duplicate(&mut events[..kept], &event).is_none() {
            events[kept] = event;
            kept += 1;
        }
    }

    let doubles = events.len() - kept;
    events.truncate(kept);
    doubles as u64
}

/// Returns the index, in `kept`, of the event that `event` duplicates.
fn find_duplicate(kept: &[EventRow], event: &EventRow) -> Option<usize> {
    // The events are sorted by time, so only the last ones are close enough.
    let near = kept
        .iter()
        .rev()
        .take_while(|earlier| event.is_near(earlier));
    let first_candidate = kept.len() - near.count();

    (first_candidate..kept.len()).find(|&at| {
        let earlier = &kept[at];
        // An equal event from another log or generation is a duplicate. Within one stretch it is a
        // separate event if the stretch reports a change of state in between.
        earlier.text_key() == event.text_key()
            && (earlier.stretch() != event.stretch()
                || !changes_state(&kept[at + 1..], earlier.stretch()))
    })
}

/// Returns true if any of the `events` of `stretch` changes the state of the job.
fn changes_state(events: &[EventRow], stretch: LogStretch) -> bool {
    let mut own = events.iter().filter(|event| event.stretch() == stretch);
    own.any(EventRow::changes_state)
}

/// Splits the events of one id into jobs. After a job queue was wiped, an id can be used again: a
/// submission after an end, or long after another submission, begins a new job.
pub(super) fn split_at_submissions(same_id: &[EventRow]) -> Vec<&[EventRow]> {
    let mut jobs = Vec::new();
    let mut start = 0;
    let mut has_ended = false;
    let mut last_submit_ms = None;

    for (at, event) in same_id.iter().enumerate() {
        if event.number == SUBMIT {
            let is_resubmitted = last_submit_ms
                .is_some_and(|submit_ms| event.time_ms - submit_ms > SAME_SUBMISSION_MS);
            if has_ended || is_resubmitted {
                jobs.push(&same_id[start..at]);
                start = at;
                has_ended = false;
            }
            last_submit_ms = Some(event.time_ms);
        }
        has_ended |= matches!(event.number, TERMINATED | ABORTED);
    }

    if start < same_id.len() {
        jobs.push(&same_id[start..]);
    }
    jobs
}

/// Returns the time of a job's event 000, or of its first event if there is none, in epoch ms.
pub(super) fn submit_time_ms(job: &[EventRow]) -> i64 {
    let submission = job.iter().find(|event| event.number == SUBMIT);
    submission.unwrap_or(&job[0]).time_ms
}

#[cfg(test)]
mod tests {
    use super::super::job_row::tests::COMPARED_EVENTS;
    use super::*;
    use htcondor_eventlog::{EXECUTE, HELD, JobEvent, RELEASED};
    use proptest::prelude::*;

    fn row((time_ms, number, text_hash, stretch): (i64, u16, u32, u32)) -> EventRow {
        let event = JobEvent {
            time_ms,
            number,
            text_hash,
            ..JobEvent::default()
        };
        EventRow::new(0, LogStretch::numbered(stretch), &event)
    }

    proptest! {
        #[test]
        fn index_and_scan_find_the_same_duplicates(
            events in proptest::collection::vec((0..3000i64, prop_oneof![Just(HELD), Just(RELEASED), Just(6)], 0..2u32, 0..4u32), 0..200),
        ) {
            let mut scanned: Vec<EventRow> = events.into_iter().map(row).collect();
            scanned.sort_by_key(|event| event.time_ms);
            let mut indexed = scanned.clone();
            let dropped = drop_found(&mut scanned, |kept, event| {
                let duplicate = find_duplicate(kept, event)?;
                kept[duplicate].set_stretch(event.stretch());
                Some(duplicate)
            });
            prop_assert_eq!(drop_crowded_duplicates(&mut indexed), dropped);
            prop_assert_eq!(indexed, scanned);
        }
    }

    /// Returns the number of comparisons for a job with `count` events in one second, as `event`
    /// returns them.
    fn comparisons(count: u32, event: impl Fn(u32) -> (u16, u32, u32)) -> usize {
        let with_time = |at| {
            let (number, text_hash, stretch) = event(at);
            row((0, number, text_hash, stretch))
        };
        let mut events: Vec<EventRow> = (0..count).map(with_time).collect();
        let before = COMPARED_EVENTS.get();
        drop_duplicates(&mut events);
        COMPARED_EVENTS.get() - before
    }

    #[test]
    fn comparisons_grow_with_events_of_one_second() {
        let held_and_released =
            |at: u32| (if at.is_multiple_of(2) { HELD } else { RELEASED }, 0, 0);
        let held_for_many_reasons = |at: u32| (HELD, at, 0);
        let started_by_many_logs = |at: u32| (EXECUTE, at % 100, at / 100);
        for (few, many) in [
            (
                comparisons(1000, held_and_released),
                comparisons(4000, held_and_released),
            ),
            (
                comparisons(1000, held_for_many_reasons),
                comparisons(4000, held_for_many_reasons),
            ),
            (
                comparisons(1000, started_by_many_logs),
                comparisons(4000, started_by_many_logs),
            ),
        ] {
            assert!(
                many <= 5 * few,
                "{many} comparisons, and {few} for a quarter of the events"
            );
        }
    }
}
