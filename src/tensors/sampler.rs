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

    /// So many samples, which are near in time, are best made together.
    pub(super) fn batch_len(&self) -> usize {
        self.context.batch_len()
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
            let others = |(&(index, _), sample)| self.others(index, sample, &activity);
            let others: Vec<Vec<u32>> = samples.iter().zip(framed).map(others).collect();
            fetch(others.iter().flatten(), |&other| self.jobs.begin(other as usize));
            let histories = |(sample, others): (_, &Vec<u32>)| self.histories(sample, others);
            let histories: Vec<Vec<History<'_>>> = framed.iter().zip(&others).map(histories).collect();
            fetch(histories.iter().flatten(), first_looks);
            for ((codes, histories), (.., frames)) in codes.chunks_exact_mut(m * j).zip(histories).zip(framed) {
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

    /// The jobs that stand beside the held one.
    fn others(&self, index: usize, sample: &(Job<'a>, Cycle, Frames), activity: &Activity) -> Vec<u32> {
        let (primary, cycle, frames) = sample;
        let mut generator = context::generator(self.settings.seed, primary, cycle.earlier_holds);
        let own = (index as u32, primary.owner);
        self.context.choose(own, frames.stretch(), self.settings.j - 1, activity, &mut generator)
    }

    /// What is known of the jobs in a sample, the held one first.
    fn histories(&self, (primary, cycle, _): &(Job<'a>, Cycle, Frames), others: &[u32]) -> Vec<History<'a>> {
        let visible = match self.settings.window {
            Window::Hold => cycle.hold + 1,
            Window::Life => primary.history.number.len(),
        };
        let mut histories = Vec::with_capacity(others.len() + 1);
        histories.push(primary.history.slice(0..visible));
        histories.extend(others.iter().map(|&other| self.jobs.history(other as usize)));
        histories
    }
}

/// Reads what is needed soon, with nothing between: the processor waits for the memory of it all together.
fn fetch<T>(of: impl Iterator<Item = T>, read: impl Fn(T) -> u64) {
    std::hint::black_box(of.map(read).fold(0, |all, one| all ^ one));
}

/// Of a history, what the search for a time and the states after it begin with.
fn first_looks(history: &History<'_>) -> u64 {
    let times = [history.time_ms.first(), history.time_ms.get(history.time_ms.len() / 2), history.time_ms.last()];
    times
        .into_iter()
        .flatten()
        .fold(history.number.first().map_or(0, |&number| number.into()), |all, time_ms| all ^ time_ms.cast_unsigned())
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
