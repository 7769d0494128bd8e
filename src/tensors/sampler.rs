//! A hold of a job → its sample: the states of that job and of the jobs around it, `[m, j]`.

use super::context::{self, Activity, Context};
use super::cycles::HoldCycle;
use super::settings::TensorSettings;
use super::window::{Frames, States};
use crate::config::WindowPlace;
use crate::events::{EventStore, JobHistory, StoredJob, StoredJobs};

/// So many samples are made at once: the histories of their jobs fit a core's own cache.
const TOGETHER: usize = 16;

/// Makes the codes of samples.
#[derive(Debug)]
pub struct SampleEncoder<'a> {
    jobs: StoredJobs<'a>,
    settings: TensorSettings,
    states: States,
    context: Context,
}

impl<'a> SampleEncoder<'a> {
    /// A sampler over all jobs of `store`.
    pub fn new(store: &'a EventStore, settings: TensorSettings) -> SampleEncoder<'a> {
        let jobs = store.jobs();
        let states = States::new(&settings);
        SampleEncoder {
            context: Context::new(settings.context, &jobs),
            jobs,
            settings,
            states,
        }
    }

    /// Writes the codes `[m, j]` of one hold of job `job`: column 0 is that job, the others are jobs that exist in its
    /// window, and are empty where there are too few. With `window = hold` nothing after the hold has any influence.
    pub fn encode_hold(&self, job: usize, cycle: &HoldCycle, codes: &mut [u8]) {
        let hold = (job, *cycle);
        self.batch(&[hold], &self.activity([hold].into_iter()), codes);
    }

    /// What is looked up once for many samples, which are best near in time.
    pub(super) fn activity(&self, samples: impl Iterator<Item = (usize, HoldCycle)>) -> Activity {
        let windows =
            samples.map(|(index, cycle)| self.frames(&self.jobs.get(index), &cycle).stretch());
        self.context.activity(&self.jobs, windows, self.settings.j)
    }

    /// Writes the codes of several samples, `[n, m, j]`, which are among those of `activity`.
    pub(super) fn batch(
        &self,
        samples: &[(usize, HoldCycle)],
        activity: &Activity,
        codes: &mut [u8],
    ) {
        let framed: Vec<(StoredJob<'_>, HoldCycle, Frames)> = samples
            .iter()
            .map(|&(index, cycle)| {
                let job = self.jobs.get(index);
                (job, cycle, self.frames(&job, &cycle))
            })
            .collect();
        let TensorSettings { j, m, .. } = self.settings;
        let mut jobs = vec![Vec::new(); TOGETHER];
        let mut histories = vec![Vec::new(); TOGETHER];
        let together = codes
            .chunks_mut(TOGETHER * m * j)
            .zip(samples.chunks(TOGETHER))
            .zip(framed.chunks(TOGETHER));
        for ((codes, samples), framed) in together {
            for ((jobs, &(index, _)), sample) in jobs.iter_mut().zip(samples).zip(framed) {
                self.choose(index, sample, activity, jobs);
            }
            let (jobs, histories) = (&jobs[..samples.len()], &mut histories[..samples.len()]);
            fetch(jobs.iter().flatten(), |&job| self.jobs.begin(job as usize));
            for ((histories, jobs), sample) in histories.iter_mut().zip(jobs).zip(framed) {
                self.look_up(sample, jobs, histories);
            }
            fetch(histories.iter().flatten(), first_looks);
            for ((codes, histories), (.., frames)) in
                codes.chunks_exact_mut(m * j).zip(histories).zip(framed)
            {
                self.states.fill(codes, histories, *frames);
            }
        }
    }

    fn frames(&self, job: &StoredJob<'_>, cycle: &HoldCycle) -> Frames {
        let TensorSettings {
            m,
            window,
            timeframe_len_s,
            ..
        } = self.settings;
        Frames::new(
            window,
            job.history.time_ms[cycle.hold],
            job.submit_ms,
            m,
            timeframe_len_s,
        )
    }

    /// The jobs of a sample, the held one first.
    fn choose(
        &self,
        index: usize,
        sample: &(StoredJob<'a>, HoldCycle, Frames),
        activity: &Activity,
        jobs: &mut Vec<u32>,
    ) {
        let (primary, cycle, frames) = sample;
        let mut generator = context::generator(self.settings.seed, primary, cycle.earlier_holds);
        jobs.clear();
        jobs.push(index as u32);
        self.context.choose(
            primary.owner,
            frames.stretch(),
            self.settings.j,
            activity,
            &mut generator,
            jobs,
        );
    }

    /// What is known of the jobs in a sample, the held one first.
    fn look_up(
        &self,
        (primary, cycle, _): &(StoredJob<'a>, HoldCycle, Frames),
        jobs: &[u32],
        histories: &mut Vec<JobHistory<'a>>,
    ) {
        let visible = match self.settings.window {
            WindowPlace::Hold => cycle.hold + 1,
            WindowPlace::Life => primary.history.number.len(),
        };
        histories.clear();
        histories.push(primary.history.slice(0..visible));
        histories.extend(jobs[1..].iter().map(|&job| self.jobs.history(job as usize)));
    }
}

/// Reads what is needed soon, with nothing between: the processor waits for the memory of it all together.
fn fetch<T>(of: impl Iterator<Item = T>, read: impl Fn(T) -> u64) {
    std::hint::black_box(of.map(read).fold(0, |all, one| all ^ one));
}

/// Of a history, what the search for a time and the states after it begin with.
fn first_looks(history: &JobHistory<'_>) -> u64 {
    let times = [
        history.time_ms.first(),
        history.time_ms.get(history.time_ms.len() / 2),
        history.time_ms.last(),
    ];
    times.into_iter().flatten().fold(
        history.number.first().map_or(0, |&number| number.into()),
        |all, time_ms| all ^ time_ms.cast_unsigned(),
    )
}
