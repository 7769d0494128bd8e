//! Separates the jobs that used one id in turn, and drops duplicate events.

use super::job_row::EventRow;
use htcondor_eventlog::{ABORTED, EXECUTE, HELD, RELEASED, SUBMIT, TERMINATED};

/// Maximum time between two reports of the same submission, in ms. Two logs may report it.
const SAME_SUBMISSION_MS: i64 = 60_000;

/// Time stamps of duplicate events differ by less than this, in ms. The formats of logs have
/// different precision.
const SAME_TIME_MS: i64 = 1000;

/// Drops duplicate events of one id, which must be sorted by time; returns their number.
///
/// HTCondor writes an event at least once, and generations of a log may overlap. So the first of
/// several equal events of one time is kept. Within a stretch of a log, equal events are duplicates
/// only if the job did not change its state between them: a job can be held, released and held in
/// one second.
pub(super) fn drop_duplicates(events: &mut Vec<EventRow>) -> u64 {
    let mut kept = 0;
    for at in 0..events.len() {
        let event = events[at];
        match find_duplicate(&events[..kept], &event) {
            // This stretch reports the event, too. If it reports an equal event again, that may be
            // another event.
            Some(earlier) => events[earlier].stretch = event.stretch,
            None => {
                events[kept] = event;
                kept += 1;
            }
        }
    }

    let doubles = events.len() - kept;
    events.truncate(kept);
    doubles as u64
}

/// Returns the index, in `kept`, of the event that `event` duplicates.
fn find_duplicate(kept: &[EventRow], event: &EventRow) -> Option<usize> {
    let is_near = |earlier: &&EventRow| event.time_ms - earlier.time_ms < SAME_TIME_MS;
    // The events are sorted by time, so only the last ones are close enough.
    let first_candidate = kept.len() - kept.iter().rev().take_while(is_near).count();

    (first_candidate..kept.len()).find(|&at| {
        let earlier = &kept[at];
        let is_equal = earlier.number == event.number && earlier.text_hash == event.text_hash;
        // An equal event from another log or generation is a duplicate. Within one stretch it is a
        // separate event if the stretch reports a change of state in between.
        is_equal
            && (earlier.stretch != event.stretch
                || !changes_state(&kept[at + 1..], earlier.stretch))
    })
}

/// Returns true if any of the `events` of `stretch` changes the state of the job.
fn changes_state(events: &[EventRow], stretch: super::job_row::LogStretch) -> bool {
    let mut own = events.iter().filter(|event| event.stretch == stretch);
    own.any(|event| {
        matches!(
            event.number,
            SUBMIT | EXECUTE | TERMINATED | ABORTED | HELD | RELEASED
        )
    })
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
