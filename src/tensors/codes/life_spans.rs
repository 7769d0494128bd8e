//! An index of the time ranges in which jobs exist. It draws random jobs that exist in a window
//! without a scan over all jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rand::Rng;
use rand::seq::SliceRandom as _;
use rayon::prelude::*;

use super::frames::SampleWindow;
use htcondor_eventlog::{ABORTED, EXECUTE, HELD, RELEASED, TERMINATED};
use poolcast_events::{JobHistory, StoredJobs};

/// Minimum number of changes between two checkpoints. A list for fewer changes costs more than it
/// saves.
const MIN_CHANGES: usize = 256;

/// A time range in which a job exists: from its first event, or the first one after an end, to its
/// next end.
#[derive(Debug, Clone, Copy)]
struct LifeSpan {
    job: u32,
    begin_ms: i64,
    /// End, in epoch ms; `i64::MAX` if the job has not ended.
    end_ms: i64,
    /// True if a later span of the same job exists.
    has_next: bool,
}

impl LifeSpan {
    fn new(job: u32, begin_ms: i64, end_ms: i64) -> LifeSpan {
        LifeSpan {
            job,
            begin_ms,
            end_ms,
            has_next: false,
        }
    }
}

/// The spans that exist at one time.
#[derive(Debug)]
struct ExistingSpans {
    at_ms: i64,
    /// Number of spans that began by this time.
    begun: usize,
    /// Indices of the begun spans that had not ended, ascending.
    alive: Vec<u32>,
}

/// Spans sorted by start, with checkpoints that list the existing spans.
///
/// Between two checkpoints at most half as many spans begin and end as existed at the first one. So
/// more than a third of the candidates for a window exist: the spans in the list, and the ones
/// begun since. Events after a window do not influence the jobs found for it.
#[derive(Debug)]
pub(crate) struct LifeSpans {
    spans: Vec<LifeSpan>,
    checkpoints: Vec<ExistingSpans>,
    /// Start of the next span of the same job, in epoch ms, by the index of the span. Few spans
    /// have one.
    next_begin_ms: BTreeMap<u32, i64>,
}

/// The indices of candidate spans. They include all spans that exist in a window.
#[derive(Debug, Clone)]
struct CandidateSpans<'a> {
    /// Spans that existed at the last checkpoint before the window.
    alive: &'a [u32],
    /// Spans that began since, up to the end of the window.
    begun_since: Range<usize>,
}

impl CandidateSpans<'_> {
    fn len(&self) -> usize {
        self.alive.len() + self.begun_since.len()
    }

    /// Returns candidate `at`, counted over both parts.
    #[inline]
    fn get(&self, at: usize) -> usize {
        match self.alive.get(at) {
            Some(&index) => index as usize,
            None => self.begun_since.start + at - self.alive.len(),
        }
    }
}

impl LifeSpans {
    /// Indexes the spans of all jobs.
    pub(crate) fn from_all_jobs(jobs: &StoredJobs<'_>) -> LifeSpans {
        let parts = jobs.map_ranges(|range| {
            // Nearly all jobs have one span, so this capacity is enough.
            let mut spans = Vec::with_capacity(range.len() + range.len() / 8);
            for job in range {
                add_spans(&mut spans, job as u32, jobs.history(job));
            }
            spans
        });
        LifeSpans::new(parts.concat())
    }

    /// Indexes the jobs of each known owner separately.
    pub(crate) fn by_owner(jobs: &StoredJobs<'_>) -> BTreeMap<u64, LifeSpans> {
        let mut spans_of: BTreeMap<u64, Vec<LifeSpan>> = BTreeMap::new();
        for (index, job) in jobs.iter().enumerate().filter(|(_, job)| job.owner != 0) {
            let spans = spans_of.entry(job.owner).or_default();
            add_spans(spans, index as u32, job.history);
        }
        spans_of
            .into_iter()
            .map(|(owner, spans)| (owner, LifeSpans::new(spans)))
            .collect()
    }

    /// Builds the index. `spans` must be sorted by job, and by time within a job.
    fn new(mut spans: Vec<LifeSpan>) -> LifeSpans {
        for at in 1..spans.len() {
            spans[at - 1].has_next = spans[at - 1].job == spans[at].job;
        }
        let revived: BTreeSet<u32> = spans
            .iter()
            .filter(|span| span.has_next)
            .map(|span| span.job)
            .collect();

        // Spans that begin at the same time are in the order of their jobs, and of their ends.
        spans.par_sort_unstable_by_key(|span| {
            (span.begin_ms, span.job, span.end_ms, !span.has_next)
        });

        let mut next_begin_ms = BTreeMap::new();
        let mut last_span_of = BTreeMap::new();
        for (index, span) in (0u32..).zip(&spans) {
            if !revived.contains(&span.job) {
                continue;
            }
            if let Some(earlier) = last_span_of.insert(span.job, index) {
                next_begin_ms.insert(earlier, span.begin_ms);
            }
        }
        LifeSpans {
            checkpoints: checkpoints(&spans),
            spans,
            next_begin_ms,
        }
    }

    fn candidates(&self, window: SampleWindow) -> CandidateSpans<'_> {
        let begun = self
            .spans
            .partition_point(|span| span.begin_ms <= window.to_ms);
        let passed = self
            .checkpoints
            .partition_point(|checkpoint| checkpoint.at_ms <= window.from_ms);
        match passed.checked_sub(1).map(|last| &self.checkpoints[last]) {
            None => CandidateSpans {
                alive: &[],
                begun_since: 0..begun,
            },
            Some(checkpoint) => CandidateSpans {
                alive: &checkpoint.alive,
                begun_since: checkpoint.begun..begun,
            },
        }
    }

    /// Returns the job of span `index` if it exists in `window`, as known at the end of the window:
    /// submitted by then, and not ended before its start. If a job has several such spans, only the
    /// last one counts.
    fn existing(&self, index: u32, window: SampleWindow) -> Option<u32> {
        let span = &self.spans[index as usize];
        let is_last = || {
            // Most jobs have one span, and need no lookup in the map.
            !span.has_next
                || self
                    .next_begin_ms
                    .get(&index)
                    .is_none_or(|&next_begin_ms| next_begin_ms > window.to_ms)
        };
        (span.end_ms >= window.from_ms && is_last()).then_some(span.job)
    }

    /// Returns all jobs that exist in `window`, in the order of their spans.
    pub(crate) fn all(&self, window: SampleWindow) -> impl Iterator<Item = u32> {
        let CandidateSpans { alive, begun_since } = self.candidates(window);
        let begun_since = begun_since.map(|index| index as u32);
        let indices = alive.iter().copied().chain(begun_since);
        indices.filter_map(move |index| self.existing(index, window))
    }

    /// Draws jobs that exist in `window`, uniformly and without replacement, until `drawn` has
    /// `count` jobs or all. `drawn` may hold some jobs already.
    ///
    /// Candidates are picked with replacement, and rejected if they do not exist or were drawn
    /// before. This looks at a few spans instead of all. If candidates are few, or too many were
    /// rejected, the rest is drawn from a list of all existing jobs. Both methods draw each
    /// remaining job with the same probability, so the switch between them does not bias the
    /// result.
    pub(crate) fn draw(
        &self,
        window: SampleWindow,
        count: usize,
        generator: &mut impl Rng,
        drawn: &mut Vec<u32>,
    ) {
        let candidates = self.candidates(window);
        let total = candidates.len();
        // Few candidates make a short list, so rejection sampling would not save time.
        let mut tries = if total > 4 * count { 8 * count } else { 0 };
        let mut picked = Vec::with_capacity(count);
        let mut found = Vec::with_capacity(count);

        while drawn.len() < count && tries > 0 {
            // Pick all missing candidates first, then look them up in a tight loop, so that their
            // memory accesses overlap.
            let missing = (count - drawn.len()).min(tries);
            tries -= missing;
            picked.extend((0..missing).map(|_| generator.random_range(0..total)));
            for at in &mut picked {
                *at = candidates.get(*at);
            }
            for index in picked.drain(..) {
                found.push(self.existing(index as u32, window));
            }
            for job in found.drain(..).flatten() {
                if !drawn.contains(&job) {
                    drawn.push(job);
                }
            }
        }

        if drawn.len() < count {
            let mut rest: Vec<u32> = self
                .all(window)
                .filter(|job| !drawn.contains(job))
                .collect();
            let missing = (count - drawn.len()).min(rest.len());
            let (chosen, _) = rest.partial_shuffle(generator, missing);
            drawn.extend_from_slice(chosen);
        }
    }
}

/// Appends the spans of one job.
fn add_spans(spans: &mut Vec<LifeSpan>, job: u32, history: JobHistory<'_>) {
    // The first event may not be event 000: a damaged log may place event 000 after other events.
    spans.push(LifeSpan::new(job, history.time_ms[0], i64::MAX));
    let mut had_ended = false;
    for (at, &number) in history.number.iter().enumerate() {
        let has_ended = has_ended_after(had_ended, number);
        let last = spans.len() - 1;
        match (had_ended, has_ended) {
            (false, true) => spans[last].end_ms = history.time_ms[at],
            (true, false) => spans.push(LifeSpan::new(job, history.time_ms[at], i64::MAX)),
            _ => {}
        }
        had_ended = has_ended;
    }
}

/// Returns true if a job has ended after an event `number`, given its state `had_ended` before it.
/// Only an execution, a hold or a release revives a job that has ended.
pub(crate) fn has_ended_after(had_ended: bool, number: u16) -> bool {
    match number {
        TERMINATED | ABORTED => true,
        EXECUTE | HELD | RELEASED => false,
        _ => had_ended,
    }
}

/// Returns the checkpoints of `spans`, which must be sorted by start.
fn checkpoints(spans: &[LifeSpan]) -> Vec<ExistingSpans> {
    let mut ends_ms: Vec<i64> = spans
        .iter()
        .map(|span| span.end_ms)
        .filter(|&end_ms| end_ms != i64::MAX)
        .collect();
    ends_ms.par_sort_unstable();

    let mut checkpoints: Vec<ExistingSpans> = Vec::new();
    let mut begun = 0;
    let mut ended = 0;
    let mut next_at_changes = MIN_CHANGES;
    // Merge starts and ends in order of time; each is one change. Count all changes of one time
    // before making a list, because the list describes that time.
    while let Some(at_ms) = next_change_ms(&spans[begun..], &ends_ms[ended..]) {
        begun += spans[begun..]
            .iter()
            .take_while(|span| span.begin_ms <= at_ms)
            .count();
        ended += ends_ms[ended..]
            .iter()
            .take_while(|&&end_ms| end_ms <= at_ms)
            .count();
        if begun + ended < next_at_changes {
            continue;
        }

        // The existing spans existed at the last checkpoint or began since.
        let (alive_before, begun_before) = match checkpoints.last() {
            Some(last) => (&last.alive[..], last.begun),
            None => (&[][..], 0),
        };
        let begun_since = (begun_before..begun).map(|index| index as u32);
        let alive: Vec<u32> = alive_before
            .iter()
            .copied()
            .chain(begun_since)
            .filter(|&index| spans[index as usize].end_ms >= at_ms)
            .collect();

        next_at_changes = begun + ended + MIN_CHANGES.max(alive.len() / 2);
        checkpoints.push(ExistingSpans {
            at_ms,
            begun,
            alive,
        });
    }
    checkpoints
}

/// Returns the time of the next start or end, whichever comes first.
fn next_change_ms(spans: &[LifeSpan], ends_ms: &[i64]) -> Option<i64> {
    let begin_ms = spans.first().map(|span| span.begin_ms);
    let end_ms = ends_ms.first().copied();
    [begin_ms, end_ms].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng as _;

    fn generator(seed: u64) -> rand_chacha::ChaCha8Rng {
        rand_chacha::ChaCha8Rng::seed_from_u64(seed)
    }

    fn spans(of: &[(i64, Option<i64>)]) -> LifeSpans {
        let span = |(job, &(begin_ms, length)): (u32, &(i64, Option<i64>))| {
            LifeSpan::new(
                job,
                begin_ms,
                length.map_or(i64::MAX, |length| begin_ms + length),
            )
        };
        LifeSpans::new((0..).zip(of).map(span).collect())
    }

    proptest! {
        /// The index finds the same jobs as a scan over all spans, and draws no others.
        #[test]
        fn index_agrees_with_a_full_scan(
            of in proptest::collection::vec((0..9000i64, proptest::option::of(0..800i64)), 0..3000),
            (from_ms, length_ms) in (-10..9800i64, 0..600i64),
            count in 0..30usize,
        ) {
            let window = SampleWindow { from_ms, to_ms: from_ms + length_ms };
            let found = spans(&of);
            let exists = |&(_, (begin, length)): &(u32, &(i64, Option<i64>))| {
                *begin <= window.to_ms && length.is_none_or(|length| begin + length >= from_ms)
            };
            let mut expected: Vec<u32> = (0..).zip(&of).filter(exists).map(|(job, _)| job).collect();
            let mut all: Vec<u32> = found.all(window).collect();
            all.sort_unstable();
            prop_assert_eq!(&all, &expected);
            let mut drawn = Vec::new();
            found.draw(window, count, &mut generator(1), &mut drawn);
            prop_assert_eq!(drawn.len(), count.min(expected.len()));
            expected.retain(|job| drawn.contains(job));
            prop_assert_eq!(expected.len(), drawn.len(), "each once, and all exist");
        }

        /// Facts that are unknown at the end of the window do not change a draw.
        #[test]
        fn draws_ignore_events_after_the_window(
            of in proptest::collection::vec((0..900i64, proptest::option::of(0..400i64)), 300..900),
            later in proptest::collection::vec((501..900i64, proptest::option::of(0..400i64)), 0..600),
        ) {
            let window = SampleWindow { from_ms: 450, to_ms: 500 };
            let known: Vec<(i64, Option<i64>)> = of.iter().filter(|(begin, _)| *begin <= 500)
                .map(|&(begin, length)| (begin, length.filter(|length| begin + length <= 500))).collect();
            let whole: Vec<(i64, Option<i64>)> = of.iter().filter(|(begin, _)| *begin <= 500).chain(&later).copied().collect();
            let draw = |of: &[(i64, Option<i64>)]| {
                let mut drawn = Vec::new();
                spans(of).draw(window, 20, &mut generator(3), &mut drawn);
                drawn
            };
            prop_assert_eq!(draw(&known), draw(&whole));
        }
    }

    #[test]
    fn existing_jobs_are_drawn_uniformly() {
        // Every 40th of 4,000 jobs lives on. Most picks are rejected until the list is small.
        let of: Vec<(i64, Option<i64>)> = (0..4000)
            .map(|job| (job, (job % 40 != 0).then_some(300)))
            .collect();
        let found = spans(&of);
        let window = SampleWindow {
            from_ms: 5000,
            to_ms: 5010,
        };
        let mut counts = [0usize; 4000];
        for seed in 0..4000 {
            let mut drawn = Vec::new();
            found.draw(window, 10, &mut generator(seed), &mut drawn);
            drawn.iter().for_each(|&job| counts[job as usize] += 1);
        }
        let drawn: Vec<usize> = counts.into_iter().filter(|&n| n > 0).collect();
        assert_eq!(drawn.len(), 100);
        assert!(
            drawn.iter().all(|&n| (300..500).contains(&n)),
            "400 on average, 20 the standard deviation: {drawn:?}"
        );
    }

    #[test]
    fn revived_jobs_count_once() {
        let twice = |end_ms: i64| {
            let span = |begin_ms, end_ms| LifeSpan::new(0, begin_ms, end_ms);
            LifeSpans::new(vec![span(0, 10), span(20, end_ms)])
        };
        let count = |end_ms, from_ms, to_ms| {
            let window = SampleWindow { from_ms, to_ms };
            twice(end_ms).all(window).count()
        };
        assert_eq!(count(30, 5, 25), 1);
        assert_eq!(count(30, 5, 15), 1);
        assert_eq!(count(30, 12, 15), 0);
        assert_eq!(count(30, 31, 35), 0);
        assert_eq!(count(i64::MAX, 31, 35), 1);
    }
}
