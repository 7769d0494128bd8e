//! A hold of a job → its sample: the states of that job and of the jobs around it, `[m, j]`.

use super::asked_hold::AskedHold;
use super::context_jobs::{ContextJobs, context_generator};
use super::frames::Frames;
use super::recent_activity::RecentActivity;
use super::settings::TensorSettings;
use super::state_codes::StateEncoder;
use poolcast_config::WindowPlace;
use crate::events::{EventStore, JobHistory, StoredJob, StoredJobs};

/// So many samples are made at once: the histories of their jobs fit a core's own cache.
const TOGETHER: usize = 16;

/// Makes the codes of samples.
#[derive(Debug)]
pub struct SampleEncoder<'a> {
    jobs: StoredJobs<'a>,
    settings: TensorSettings,
    states: StateEncoder,
    context: ContextJobs,
}

/// A hold whose sample is made.
struct FramedHold<'a> {
    asked: AskedHold,
    job: StoredJob<'a>,
    frames: Frames,
}

impl<'a> SampleEncoder<'a> {
    /// An encoder of holds among all jobs of `store`.
    pub fn new(store: &'a EventStore, settings: TensorSettings) -> SampleEncoder<'a> {
        let jobs = store.jobs();
        let states = StateEncoder::new(&settings);
        SampleEncoder {
            context: ContextJobs::new(settings.context, &jobs),
            jobs,
            settings,
            states,
        }
    }

    /// Writes the codes `[m, j]` of one hold: column 0 is its job, the others are jobs that exist
    /// in its window, and are empty where there are too few. Unless `window = life`, nothing after
    /// the moment of asking has any influence.
    pub fn encode_hold(&self, hold: AskedHold, codes: &mut [u8]) {
        self.encode_batch(&[hold], &self.activity([hold].into_iter()), codes);
    }

    /// What is looked up once for many samples, which are best near in time.
    pub(super) fn activity(&self, holds: impl Iterator<Item = AskedHold>) -> RecentActivity {
        let windows = holds.map(|asked| {
            let job = self.jobs.get(asked.job as usize);
            self.frames(&job, asked.asked_ms).window()
        });
        self.context.activity(&self.jobs, windows, self.settings.j)
    }

    /// Writes the codes of several samples, `[n, m, j]`, which are among those of `activity`.
    pub(super) fn encode_batch(
        &self,
        holds: &[AskedHold],
        activity: &RecentActivity,
        codes: &mut [u8],
    ) {
        let framed: Vec<FramedHold<'_>> = holds
            .iter()
            .map(|&asked| {
                let job = self.jobs.get(asked.job as usize);
                FramedHold {
                    asked,
                    job,
                    frames: self.frames(&job, asked.asked_ms),
                }
            })
            .collect();

        let TensorSettings { j, m, .. } = self.settings;
        let mut jobs = vec![Vec::new(); TOGETHER];
        let mut histories = vec![Vec::new(); TOGETHER];
        let together = codes
            .chunks_mut(TOGETHER * m * j)
            .zip(framed.chunks(TOGETHER));

        // Nearly all the time goes into waiting for memory: jobs lie all over the store. So every
        // step is done for several samples before the next, and what the next step reads is fetched
        // for all of them in between.
        for (codes, holds) in together {
            for (jobs, hold) in jobs.iter_mut().zip(holds) {
                self.choose_jobs(hold, activity, jobs);
            }
            let jobs = &jobs[..holds.len()];
            let histories = &mut histories[..holds.len()];

            fetch(jobs.iter().flatten(), |&job| {
                self.jobs.first_event(job as usize)
            });
            for ((histories, jobs), hold) in histories.iter_mut().zip(jobs).zip(holds) {
                self.look_up_histories(hold, jobs, histories);
            }

            fetch(histories.iter().flatten(), first_looks);
            let samples = codes.chunks_exact_mut(m * j);
            for ((codes, histories), hold) in samples.zip(histories).zip(holds) {
                self.states.fill(codes, histories, hold.frames);
            }
        }
    }

    fn frames(&self, job: &StoredJob<'_>, asked_ms: i64) -> Frames {
        let settings = &self.settings;
        Frames::new(
            settings.window,
            asked_ms,
            job.submit_ms,
            settings.m,
            settings.timeframe_len_s,
        )
    }

    /// The jobs of a sample, the held one first.
    fn choose_jobs(&self, hold: &FramedHold<'_>, activity: &RecentActivity, chosen: &mut Vec<u32>) {
        let seed = self.settings.seed;
        let mut generator = context_generator(seed, &hold.job, hold.asked.cycle.earlier_holds);
        chosen.clear();
        chosen.push(hold.asked.job);
        self.context.choose(
            hold.job.owner,
            hold.frames.window(),
            self.settings.j,
            activity,
            &mut generator,
            chosen,
        );
    }

    /// What is known of the jobs in a sample, the held one first.
    fn look_up_histories(
        &self,
        hold: &FramedHold<'a>,
        jobs: &[u32],
        histories: &mut Vec<JobHistory<'a>>,
    ) {
        // What is after the last frame has no cell. But where it is asked at the hold, events of
        // the hold's own second may stand after it.
        let own = &hold.job.history;
        let visible = match self.settings.window {
            WindowPlace::Hold => hold.asked.cycle.hold + 1,
            WindowPlace::Release | WindowPlace::Life => own.number.len(),
        };
        histories.clear();
        histories.push(own.slice(0..visible));
        for &job in &jobs[1..] {
            histories.push(self.jobs.history(job as usize));
        }
    }
}

/// Reads what is needed soon, with nothing between: the processor waits for the memory of it all
/// together.
fn fetch<T>(items: impl Iterator<Item = T>, read: impl Fn(T) -> u64) {
    std::hint::black_box(items.map(read).fold(0, |all, one| all ^ one));
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
