//! Events of one id, in order of time → the jobs that it named in turn, without events that were
//! written twice.

use super::job_row::EventRow;
use htcondor_eventlog::{ABORTED, EXECUTE, HELD, RELEASED, SUBMIT, TERMINATED};

/// Two submissions of one id that are closer than this are one, told by two logs.
const SAME_SUBMISSION_MS: i64 = 60_000;

/// An event told twice has stamps this close; finer ones than seconds may differ.
const SAME_TIME_MS: i64 = 1000;

/// HTCondor writes an event at least once, and generations of a log may overlap: of equal events of
/// one time, the first stays. In one stretch of a log they are one only if the job was in no other
/// state between them: it can be held, released and held in one second. Returns how many were
/// dropped.
pub(super) fn drop_doubles(events: &mut Vec<EventRow>) -> u64 {
    let mut kept = 0;
    for at in 0..events.len() {
        let event = events[at];
        match find_double(&events[..kept], &event) {
            // Told by this stretch, too: what it tells once more may be another event.
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

/// The place of the event that `event` tells again, among those `kept` before it.
fn find_double(kept: &[EventRow], event: &EventRow) -> Option<usize> {
    let is_near = |earlier: &&EventRow| event.time_ms - earlier.time_ms < SAME_TIME_MS;
    let first_near = kept.len() - kept.iter().rev().take_while(is_near).count();

    (first_near..kept.len()).find(|&at| {
        let earlier = &kept[at];
        let is_equal = earlier.number == event.number && earlier.text_hash == event.text_hash;
        // Another log, or another generation, tells the same event. Within one stretch, an equal
        // event is another one if the stretch itself tells that the job changed its state in
        // between.
        is_equal
            && (earlier.stretch != event.stretch
                || !changes_state(&kept[at + 1..], earlier.stretch))
    })
}

/// Whether any of `events` that are of `stretch` brings the job into another state.
fn changes_state(events: &[EventRow], stretch: super::job_row::LogStretch) -> bool {
    let mut own = events.iter().filter(|event| event.stretch == stretch);
    own.any(|event| {
        matches!(
            event.number,
            SUBMIT | EXECUTE | TERMINATED | ABORTED | HELD | RELEASED
        )
    })
}

/// One id can name several jobs in turn, after a job queue was wiped: a submission after an end, or
/// long after another submission, begins a new one.
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

/// The time of a job's event 000, else of its first event; epoch ms.
pub(super) fn submit_time_ms(job: &[EventRow]) -> i64 {
    let submission = job.iter().find(|event| event.number == SUBMIT);
    submission.unwrap_or(&job[0]).time_ms
}
