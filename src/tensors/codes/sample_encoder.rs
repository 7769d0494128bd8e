//! Encodes the sample of a hold: the states of its job and of context jobs, `[m, j]`.

use super::context_jobs::{ContextJobs, SampledHold, context_generator};
use super::frames::Frames;
use super::recent_activity::RecentActivity;
use super::state_codes::StateEncoder;
use crate::cycles::QueriedHold;
use crate::shards::TensorSettings;
use poolcast_config::WindowPosition;
use poolcast_events::{EventStore, JobHistory, StoredJob, StoredJobs};

/// Samples per batch. The histories of their jobs fit the private cache of a core.
const SAMPLES_PER_BATCH: usize = 16;

/// Encodes the codes of samples.
#[derive(Debug)]
pub struct SampleEncoder<'a> {
    jobs: StoredJobs<'a>,
    settings: TensorSettings,
    states: StateEncoder,
    context: ContextJobs,
}

/// A hold to encode, with its job and frames.
struct FramedHold<'a> {
    asked: QueriedHold,
    job: StoredJob<'a>,
    frames: Frames,
}

impl<'a> SampleEncoder<'a> {
    /// Creates an encoder for holds among all jobs of `store`.
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

    /// Writes the codes `[m, j]` of one hold, and what each job shares with it, `[j]`, which is empty
    /// unless related jobs are chosen. Column 0 is its job. The others are jobs that exist
    /// in its window; they are empty if there are too few. Unless `window = life`, events after
    /// prediction time have no influence.
    pub fn encode_hold(&self, hold: QueriedHold, codes: &mut [u8], shared: &mut [u8]) {
        let activity = self.activity([hold].into_iter());
        self.encode_batch(&[hold], &activity, codes, shared);
    }

    /// Looks up the activity that the samples of `holds` share. The holds should be close in time.
    pub(crate) fn activity(&self, holds: impl Iterator<Item = QueriedHold>) -> RecentActivity {
        let windows = holds.map(|asked| {
            let job = self.jobs.get(asked.job as usize);
            self.frames(&job, asked.asked_ms).window()
        });
        self.context.activity(&self.jobs, windows, self.settings.j)
    }

    /// Writes the codes `[n, m, j]` of several samples, and what their jobs share, `[n, j]` or empty.
    /// They must be among the samples of `activity`.
    pub(crate) fn encode_batch(
        &self,
        holds: &[QueriedHold],
        activity: &RecentActivity,
        codes: &mut [u8],
        shared: &mut [u8],
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
        let mut jobs = vec![Vec::new(); SAMPLES_PER_BATCH];
        let mut histories = vec![Vec::new(); SAMPLES_PER_BATCH];
        let mut shared = shared.chunks_exact_mut(j);
        let together = codes
            .chunks_mut(SAMPLES_PER_BATCH * m * j)
            .zip(framed.chunks(SAMPLES_PER_BATCH));

        // Nearly all the time is spent waiting for memory, because jobs are spread over the whole
        // store. So each step runs for several samples before the next step. In between, the data
        // of the next step is prefetched for all of them.
        for (codes, holds) in together {
            for (jobs, hold) in jobs.iter_mut().zip(holds) {
                self.choose_jobs(hold, activity, jobs);
                if let Some(shared) = shared.next() {
                    (self.context).write_shared(&self.jobs, &hold.asked, jobs, shared);
                }
            }
            let jobs = &jobs[..holds.len()];
            let histories = &mut histories[..holds.len()];

            prefetch(jobs.iter().flatten(), |&job| {
                self.jobs.first_event(job as usize)
            });
            for ((histories, jobs), hold) in histories.iter_mut().zip(jobs).zip(holds) {
                self.look_up_histories(hold, jobs, histories);
            }

            prefetch(histories.iter().flatten(), read_search_points);
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

    /// Chooses the jobs of a sample, the held one first.
    fn choose_jobs(&self, hold: &FramedHold<'_>, activity: &RecentActivity, chosen: &mut Vec<u32>) {
        let seed = self.settings.seed;
        let mut generator = context_generator(seed, &hold.job, hold.asked.cycle.earlier_holds);
        chosen.clear();
        chosen.push(hold.asked.job);
        let sampled = SampledHold {
            hold: hold.asked,
            window: hold.frames.window(),
            count: self.settings.j,
        };
        self.context
            .choose(&self.jobs, sampled, activity, &mut generator, chosen);
    }

    /// Looks up the histories of the jobs in a sample, the held one first.
    fn look_up_histories(
        &self,
        hold: &FramedHold<'a>,
        jobs: &[u32],
        histories: &mut Vec<JobHistory<'a>>,
    ) {
        // Events after the last frame have no cell. But with `window = hold`, events in the second
        // of the hold may follow it and must be cut off.
        let own = &hold.job.history;
        let visible = match self.settings.window {
            WindowPosition::Hold => hold.asked.cycle.hold + 1,
            WindowPosition::Release | WindowPosition::Life => own.number.len(),
        };
        histories.clear();
        histories.push(own.slice(0..visible));
        for &job in &jobs[1..] {
            histories.push(self.jobs.history(job as usize));
        }
    }
}

/// Reads data that is needed soon, in a tight loop, so that the memory accesses overlap.
fn prefetch<T>(items: impl Iterator<Item = T>, read: impl Fn(T) -> u64) {
    std::hint::black_box(items.map(read).fold(0, |all, one| all ^ one));
}

/// Reads the parts of a history that a binary search by time and the encoding access first.
fn read_search_points(history: &JobHistory<'_>) -> u64 {
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
