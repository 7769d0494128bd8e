//! A hold of a job → its sample: the states of that job and of the jobs around it, `[m, j]`.

use super::context::{self, Activity, Context};
use super::cycles::Cycle;
use super::settings::Settings;
use super::window::{EMPTY, Frames, States};
use crate::config::Window;
use crate::events::{History, Job, Jobs, Store};

/// So many samples are made at once: the histories of their jobs fit a core's own cache.
const TOGETHER: usize = 16;

/// Makes the codes of samples.
#[derive(Debug)]
pub struct Sampler<'a> {
    jobs: Jobs<'a>,
    settings: Settings,
    states: States,
    context: Context,
}

impl<'a> Sampler<'a> {
    /// A sampler over all jobs of `store`.
    pub fn new(store: &'a Store, settings: Settings) -> Sampler<'a> {
        let jobs = store.jobs();
        let states = States::new(settings.vocabulary, &settings.ignore_events);
        Sampler { context: Context::new(settings.context, &jobs), jobs, settings, states }
    }

    /// Writes the codes `[m, j]` of one hold of job `job`: column 0 is that job, the others are jobs that exist in its
    /// window, and are empty where there are too few. With `window = hold` nothing after the hold has any influence.
    pub fn codes(&self, job: usize, cycle: &Cycle, codes: &mut [u8]) {
        self.batch(&[(job, *cycle)], codes);
    }

    /// The same for several samples, `[n, m, j]`; their order has no influence, but near in time is faster.
    pub(super) fn batch(&self, samples: &[(usize, Cycle)], codes: &mut [u8]) {
        let framed: Vec<(Job<'_>, Cycle, Frames)> = samples
            .iter()
            .map(|&(index, cycle)| {
                let job = self.jobs.get(index);
                (job, cycle, self.frames(&job, &cycle))
            })
            .collect();
        let from_ms = framed.iter().map(|(.., frames)| frames.stretch().0).min().unwrap_or(0);
        let to_ms = framed.iter().map(|(.., frames)| frames.stretch().1).max().unwrap_or(0);
        let activity = self.context.activity(&self.jobs, (from_ms, to_ms));
        let Settings { j, m, .. } = self.settings;
        let mut states = vec![EMPTY; j * m];
        let together = codes.chunks_mut(TOGETHER * m * j).zip(samples.chunks(TOGETHER)).zip(framed.chunks(TOGETHER));
        for ((codes, samples), framed) in together {
            let chosen = |(&(index, _), sample)| self.histories(index, sample, &activity);
            let chosen: Vec<Vec<History<'_>>> = samples.iter().zip(framed).map(chosen).collect();
            fetch(&chosen);
            for ((codes, histories), (.., frames)) in codes.chunks_exact_mut(m * j).zip(chosen).zip(framed) {
                let (rows, empty) = states.split_at_mut(histories.len() * m);
                for (row, history) in rows.chunks_exact_mut(m).zip(&histories) {
                    self.states.fill(row, history, *frames);
                }
                empty.fill(EMPTY);
                transpose(&states, m, codes);
            }
        }
    }

    fn frames(&self, job: &Job<'_>, cycle: &Cycle) -> Frames {
        let Settings { m, window, timeframe_len_s, .. } = self.settings;
        Frames::new(window, job.history.time_ms[cycle.hold], job.submit_ms, m, timeframe_len_s)
    }

    /// What is known of the jobs in a sample, the held one first.
    fn histories(
        &self,
        index: usize,
        (primary, cycle, frames): &(Job<'a>, Cycle, Frames),
        activity: &Activity,
    ) -> Vec<History<'a>> {
        let Settings { j, window, seed, .. } = self.settings;
        let visible = match window {
            Window::Hold => cycle.hold + 1,
            Window::Life => primary.history.number.len(),
        };
        let mut generator = context::generator(seed, primary, cycle.earlier_holds);
        let own = (index as u32, primary.owner);
        let others = self.context.choose(own, frames.stretch(), j - 1, activity, &mut generator);
        let mut histories = Vec::with_capacity(j);
        histories.push(primary.history.slice(0..visible));
        histories.extend(others.iter().map(|&other| self.jobs.history(other as usize)));
        histories
    }
}

/// Reads of each history what is needed soon, without a look at it: the processor waits for all that memory together.
fn fetch(histories: &[Vec<History<'_>>]) {
    let touch = |history: &History<'_>| {
        let (first, last) = (history.time_ms.first(), history.time_ms.last());
        first.unwrap_or(&0) ^ last.unwrap_or(&0) ^ i64::from(*history.number.first().unwrap_or(&0))
    };
    std::hint::black_box(histories.iter().flatten().map(touch).fold(0, |all, one| all ^ one));
}

/// Turns `states` `[j, m]` into `codes` `[m, j]`.
fn transpose(states: &[u8], m: usize, codes: &mut [u8]) {
    let j = states.len() / m;
    for (frame, row) in codes.chunks_exact_mut(j).enumerate() {
        for (cell, job) in row.iter_mut().zip(states.chunks_exact(m)) {
            *cell = job[frame];
        }
    }
}
