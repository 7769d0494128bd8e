//! Life spans of jobs → an index: which jobs exist in a window, drawn from without looking at all of them.

use std::collections::{BTreeMap, BTreeSet};

use rand::Rng;
use rayon::prelude::*;

use crate::eventlog::{ABORTED, EXECUTE, HELD, RELEASED, TERMINATED};
use crate::events::{JobHistory, StoredJobs};

/// Fewer changes than this are not worth a list of their own.
const MIN_CHANGES: usize = 256;

/// A stretch of a job's life: from its first event, or its first one after an end, to its next end.
#[derive(Debug, Clone, Copy)]
struct Span {
    job: u32,
    begin_ms: i64,
    /// `i64::MAX` if it has none.
    end_ms: i64,
    /// Whether its job begins another one later.
    has_next: bool,
}

impl Span {
    fn new(job: u32, begin_ms: i64, end_ms: i64) -> Span {
        Span {
            job,
            begin_ms,
            end_ms,
            has_next: false,
        }
    }
}

/// The spans that exist at some moment.
#[derive(Debug)]
struct Checkpoint {
    at_ms: i64,
    /// How many spans had begun by then.
    begun: usize,
    /// Those of them that had not ended, in order.
    alive: Vec<u32>,
}

/// Spans in the order they begin, and at some moments lists of those that exist. Between two such moments at most half as
/// many spans begin and end as existed at the first, so that a span picked among its list and those begun since exists
/// more often than once in three times. What comes after a window has no influence on what is found for it.
#[derive(Debug)]
pub(super) struct Spans {
    spans: Vec<Span>,
    checkpoints: Vec<Checkpoint>,
    /// When a span's job begins another one, which is rare.
    again_ms: BTreeMap<u32, i64>,
}

/// A stretch of time that a sample sees, epoch ms, both ends included.
pub(super) type Stretch = (i64, i64);

impl Spans {
    /// The spans of all jobs.
    pub(super) fn of(jobs: &StoredJobs<'_>) -> Spans {
        let spans = (0..jobs.len())
            .into_par_iter()
            .fold(Vec::new, |mut spans, job| {
                add_spans(&mut spans, job as u32, jobs.history(job));
                spans
            });
        Spans::new(spans.collect::<Vec<_>>().concat())
    }

    /// The same for the jobs of each owner that is known.
    pub(super) fn by_owner(jobs: &StoredJobs<'_>) -> BTreeMap<u64, Spans> {
        let mut own: BTreeMap<u64, Vec<Span>> = BTreeMap::new();
        for (index, job) in jobs.iter().enumerate().filter(|(_, job)| job.owner != 0) {
            add_spans(own.entry(job.owner).or_default(), index as u32, job.history);
        }
        own.into_iter()
            .map(|(owner, spans)| (owner, Spans::new(spans)))
            .collect()
    }

    /// `spans` are in order of their jobs, those of one job in order of time.
    fn new(mut spans: Vec<Span>) -> Spans {
        for at in 1..spans.len() {
            spans[at - 1].has_next = spans[at - 1].job == spans[at].job;
        }
        let revived: BTreeSet<u32> = spans
            .iter()
            .filter(|span| span.has_next)
            .map(|span| span.job)
            .collect();
        // The order of equals is that of the jobs.
        spans.par_sort_by_key(|span| span.begin_ms);
        let (mut again_ms, mut last) = (BTreeMap::new(), BTreeMap::new());
        for (index, span) in (0u32..)
            .zip(&spans)
            .filter(|(_, span)| revived.contains(&span.job))
        {
            if let Some(earlier) = last.insert(span.job, index) {
                again_ms.insert(earlier, span.begin_ms);
            }
        }
        Spans {
            checkpoints: checkpoints(&spans),
            spans,
            again_ms,
        }
    }

    /// Spans among which are all that exist in `window`: the list of a checkpoint, and a range of spans begun since.
    fn candidates(&self, (from_ms, to_ms): Stretch) -> (&[u32], std::ops::Range<usize>) {
        let begun = self.spans.partition_point(|span| span.begin_ms <= to_ms);
        match self
            .checkpoints
            .partition_point(|checkpoint| checkpoint.at_ms <= from_ms)
        {
            0 => (&[], 0..begun),
            n => (
                &self.checkpoints[n - 1].alive,
                self.checkpoints[n - 1].begun..begun,
            ),
        }
    }

    /// The job of span `index`, if it exists in `window` by what is known at its end: submitted by then, and not ended
    /// before its beginning. Of a job with several such spans, only the last counts.
    fn existing(&self, index: u32, (from_ms, to_ms): Stretch) -> Option<u32> {
        let span = &self.spans[index as usize];
        let is_last = || {
            !span.has_next
                || self
                    .again_ms
                    .get(&index)
                    .is_none_or(|&again_ms| again_ms > to_ms)
        };
        (span.end_ms >= from_ms && is_last()).then_some(span.job)
    }

    /// All jobs that exist in `window`, in order.
    pub(super) fn all(&self, window: Stretch) -> impl Iterator<Item = u32> {
        let (alive, since) = self.candidates(window);
        let indices = alive.iter().copied().chain(since.map(|index| index as u32));
        indices.filter_map(move |index| self.existing(index, window))
    }

    /// Draws jobs that exist in `window` without replacement, each as likely, until `drawn` has `count` of them or all;
    /// `drawn` may hold some already.
    pub(super) fn draw(
        &self,
        window: Stretch,
        count: usize,
        generator: &mut impl Rng,
        drawn: &mut Vec<u32>,
    ) {
        let (alive, since) = self.candidates(window);
        let total = alive.len() + since.len();
        let mut tries = if total > 4 * count { 8 * count } else { 0 };
        let (mut picked, mut found) = (Vec::with_capacity(count), Vec::with_capacity(count));
        while drawn.len() < count && tries > 0 {
            // As many as are missing are picked at once, and looked up one after another with little between, so that the
            // processor waits for the memory of all together.
            let missing = (count - drawn.len()).min(tries);
            tries -= missing;
            picked.extend((0..missing).map(|_| generator.random_range(0..total)));
            for at in &mut picked {
                *at = alive
                    .get(*at)
                    .map_or_else(|| since.start + *at - alive.len(), |&index| index as usize);
            }
            found.extend(
                picked
                    .drain(..)
                    .map(|index| self.existing(index as u32, window)),
            );
            for job in found.drain(..).flatten() {
                drawn.extend((!drawn.contains(&job)).then_some(job));
            }
        }
        if drawn.len() < count {
            let mut rest: Vec<u32> = self
                .all(window)
                .filter(|job| !drawn.contains(job))
                .collect();
            let missing = (count - drawn.len()).min(rest.len());
            let (chosen, _) =
                rand::seq::SliceRandom::partial_shuffle(&mut rest[..], generator, missing);
            drawn.extend_from_slice(chosen);
        }
    }
}

/// Adds the stretches of one job's life.
fn add_spans(spans: &mut Vec<Span>, job: u32, history: JobHistory<'_>) {
    // Not the time of event 000, which a damaged log may place after other events.
    spans.push(Span::new(job, history.time_ms[0], i64::MAX));
    let mut has_ended = false;
    for (at, &number) in history.number.iter().enumerate() {
        let had_ended = has_ended;
        has_ended = ended(had_ended, number);
        let last = spans.len() - 1;
        match (had_ended, has_ended) {
            (false, true) => spans[last].end_ms = history.time_ms[at],
            (true, false) => spans.push(Span::new(job, history.time_ms[at], i64::MAX)),
            _ => {}
        }
    }
}

/// Whether a job has ended after an event `number`, if it had before as `had_ended` says. What is written about a job that
/// has ended brings it back only if it runs, is held or is released.
pub(super) fn ended(had_ended: bool, number: u16) -> bool {
    match number {
        TERMINATED | ABORTED => true,
        EXECUTE | HELD | RELEASED => false,
        _ => had_ended,
    }
}

/// The checkpoints of `spans`, which are in order of their beginnings.
fn checkpoints(spans: &[Span]) -> Vec<Checkpoint> {
    let mut ends: Vec<i64> = spans
        .iter()
        .map(|span| span.end_ms)
        .filter(|&end_ms| end_ms != i64::MAX)
        .collect();
    ends.par_sort_unstable();
    let mut checkpoints: Vec<Checkpoint> = Vec::new();
    let (mut begun, mut ended, mut next) = (0, 0, MIN_CHANGES);
    while let Some(begin_ms) = spans
        .get(begun)
        .map(|span| span.begin_ms)
        .or(ends.get(ended).copied())
    {
        let at_ms = ends
            .get(ended)
            .map_or(begin_ms, |&end_ms| end_ms.min(begin_ms));
        begun += spans[begun..]
            .iter()
            .take_while(|span| span.begin_ms <= at_ms)
            .count();
        ended += ends[ended..]
            .iter()
            .take_while(|&&end_ms| end_ms <= at_ms)
            .count();
        if begun + ended < next {
            continue;
        }
        let (alive, since) = checkpoints
            .last()
            .map_or((&[][..], 0), |last| (&last.alive[..], last.begun));
        let candidates = alive
            .iter()
            .copied()
            .chain((since..begun).map(|index| index as u32));
        let alive: Vec<u32> = candidates
            .filter(|&index| spans[index as usize].end_ms >= at_ms)
            .collect();
        next = begun + ended + MIN_CHANGES.max(alive.len() / 2);
        checkpoints.push(Checkpoint {
            at_ms,
            begun,
            alive,
        });
    }
    checkpoints
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng as _;

    fn generator(seed: u64) -> rand_chacha::ChaCha8Rng {
        rand_chacha::ChaCha8Rng::seed_from_u64(seed)
    }

    fn spans(of: &[(i64, Option<i64>)]) -> Spans {
        let span = |(job, &(begin_ms, length)): (u32, &(i64, Option<i64>))| {
            Span::new(
                job,
                begin_ms,
                length.map_or(i64::MAX, |length| begin_ms + length),
            )
        };
        Spans::new((0..).zip(of).map(span).collect())
    }

    proptest! {
        /// The index finds what a look at every span finds, and draws nothing else.
        #[test]
        fn the_index_finds_every_existing_job(
            of in proptest::collection::vec((0..9000i64, proptest::option::of(0..800i64)), 0..3000),
            (from_ms, length_ms) in (-10..9800i64, 0..600i64),
            count in 0..30usize,
        ) {
            let window = (from_ms, from_ms + length_ms);
            let found = spans(&of);
            let exists = |&(_, (begin, length)): &(u32, &(i64, Option<i64>))| {
                *begin <= window.1 && length.is_none_or(|length| begin + length >= from_ms)
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

        /// What is not known at the end of the window changes no draw.
        #[test]
        fn the_future_changes_no_draw(
            of in proptest::collection::vec((0..900i64, proptest::option::of(0..400i64)), 300..900),
            later in proptest::collection::vec((501..900i64, proptest::option::of(0..400i64)), 0..600),
        ) {
            let window = (450, 500);
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
    fn each_existing_job_is_as_likely() {
        // 4,000 jobs of which every 40th lives on: picks among them are mostly rejected until the list is small.
        let of: Vec<(i64, Option<i64>)> = (0..4000)
            .map(|job| (job, (job % 40 != 0).then_some(300)))
            .collect();
        let (found, window) = (spans(&of), (5000, 5010));
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
    fn a_job_that_lives_again_counts_once() {
        let twice = |end_ms: i64| {
            let span = |begin_ms, end_ms| Span::new(0, begin_ms, end_ms);
            Spans::new(vec![span(0, 10), span(20, end_ms)])
        };
        assert_eq!(twice(30).all((5, 25)).count(), 1);
        assert_eq!(twice(30).all((5, 15)).count(), 1);
        assert_eq!(twice(30).all((12, 15)).count(), 0);
        assert_eq!(twice(30).all((31, 35)).count(), 0);
        assert_eq!(twice(i64::MAX).all((31, 35)).count(), 1);
    }
}
