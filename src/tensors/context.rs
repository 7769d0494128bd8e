//! Context jobs: which other jobs exist in a window, and a seeded draw among them.

use rand::seq::index;

use crate::eventlog::{ABORTED, TERMINATED};
use crate::events::{History, Store};

/// When each job of a store begins and ends, in the order the jobs begin.
#[derive(Debug)]
pub(super) struct Spans {
    spans: Vec<Span>,
}

#[derive(Debug)]
struct Span {
    job: usize,
    begin_ms: i64,
    /// Its first end; `i64::MAX` if it has none.
    end_ms: i64,
    /// It has events after that end.
    revived: bool,
}

impl Spans {
    pub(super) fn new(store: &Store) -> Spans {
        let span = |(job, history): (usize, History<'_>)| {
            let end = history.number.iter().position(|number| matches!(*number, TERMINATED | ABORTED));
            Span {
                job,
                // Not the time of event 000, which a damaged log may place after other events.
                begin_ms: history.time_ms[0],
                end_ms: end.map_or(i64::MAX, |at| history.time_ms[at]),
                revived: end.is_some_and(|at| at + 1 < history.number.len()),
            }
        };
        let mut spans: Vec<Span> = store.iter().map(|job| job.history).enumerate().map(span).collect();
        spans.sort_by_key(|span| (span.begin_ms, span.job));
        Spans { spans }
    }

    /// Draws up to `count` jobs other than `primary` without replacement, each as likely, from those that exist between
    /// `from_ms` and `to_ms`: submitted by `to_ms`, and not ended before `from_ms`. What happens after `to_ms` has no
    /// influence on the draw.
    pub(super) fn draw(
        &self,
        store: &Store,
        primary: usize,
        (from_ms, to_ms): (i64, i64),
        count: usize,
        generator: &mut impl rand::Rng,
    ) -> Vec<usize> {
        let begun = self.spans.partition_point(|span| span.begin_ms <= to_ms);
        let exists = |span: &&Span| {
            span.job != primary
                && (span.end_ms >= from_ms || (span.revived && lives(store.job(span.job).history, from_ms, to_ms)))
        };
        let existing: Vec<usize> = self.spans[..begun].iter().filter(exists).map(|span| span.job).collect();
        let drawn = index::sample(generator, existing.len(), count.min(existing.len()));
        drawn.into_iter().map(|at| existing[at]).collect()
    }
}

/// Whether a job with events after an end exists in the window, by what is known at `to_ms`.
fn lives(history: History<'_>, from_ms: i64, to_ms: i64) -> bool {
    let known = history.time_ms.partition_point(|&time_ms| time_ms <= to_ms);
    let Some(last) = known.checked_sub(1) else { return false };
    history.time_ms[last] >= from_ms || !matches!(history.number[last], TERMINATED | ABORTED)
}

/// The generator for the context of one sample: it depends on the seed and on which hold of which job it is.
pub(super) fn generator(seed: u64, job: &crate::events::Job<'_>, earlier_holds: u32) -> impl rand::Rng + use<> {
    let parts = [
        i64::from(job.ap),
        i64::from(job.cluster),
        i64::from(job.proc),
        job.history.time_ms[0],
        i64::from(earlier_holds),
    ];
    crate::seed::generator(seed, "context", &parts)
}
