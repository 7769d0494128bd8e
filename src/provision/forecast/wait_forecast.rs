//! Forecasts the wait of a job by simulating the queue with drawn run times.

use rand::Rng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use super::queue_moment::{QueueTime, SeenRun, SeenWait};
use super::run_history::RunHistory;
use crate::scheduler::{
    CapacityStep, NEVER, NodePool, QueueJob, SchedulerSettings, SharedNodes, SimulatedCluster,
    WholeNodes,
};
use poolcast_base::parallel::map_numbers;
use poolcast_base::seed;

/// Forecaster of waits.
#[derive(Debug, Clone)]
pub struct WaitForecast {
    /// Settings of the simulated scheduler.
    pub settings: SchedulerSettings,
    /// Number of draws of run times.
    pub draws: usize,
    /// Seed of the draws.
    pub seed: u64,
}

/// Range of the waits that matter, and the rule for stopping early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitSpan {
    /// Maximum wait, in seconds. Longer waits are cut to this.
    pub most_s: i64,
    /// Threshold of interest, in seconds: the caller needs to know if waits reach it.
    pub needed_wait_s: i64,
    /// Minimum number of draws. If all of them are below the threshold, no more are made.
    pub min_draws: usize,
}

impl WaitSpan {
    /// Keeps all waits, cut to `most_s` seconds.
    pub fn up_to(most_s: i64) -> WaitSpan {
        WaitSpan {
            most_s,
            needed_wait_s: 0,
            min_draws: usize::MAX,
        }
    }

    /// Stops early if the wait's quantile `quantile`, or a lower one, hardly ever reaches
    /// `needed_wait_s`. That holds once the minimum number of draws were all shorter.
    pub fn with_early_stop(needed_wait_s: i64, most_s: i64, quantile: f64) -> WaitSpan {
        WaitSpan {
            most_s,
            needed_wait_s,
            min_draws: (MISS_PROBABILITY.ln() / quantile.ln()).ceil().min(1e6) as usize,
        }
    }
}

/// Probability that the forecast stops early although the quantile reaches the threshold.
const MISS_PROBABILITY: f64 = 0.003;

/// Drawn run times of all jobs.
struct DrawnRuns {
    /// Run times `[jobs][draws]`: running jobs first, then waiting jobs.
    runs_s: Vec<Vec<i64>>,
}

impl WaitForecast {
    /// Returns the waits of `job` if it were submitted at the time of `queue`, in seconds: one per
    /// draw, in ascending order. `span` limits the waits and the number of draws.
    pub fn waits_s(
        &self,
        queue: &QueueTime,
        history: &RunHistory,
        job: &SeenWait,
        span: WaitSpan,
    ) -> Vec<i64> {
        let settings = self.settings_at(queue);
        let drawn = self.draw_runs(queue, history);
        let wait_s = |draw: usize| {
            let run_s = |place: usize| drawn.runs_s[place][draw];
            simulated_wait_s(&settings, queue, job, span.most_s, run_s)
        };
        let mut waits_s = Vec::with_capacity(self.draws);
        if span.min_draws >= self.draws {
            waits_s = map_numbers(self.draws, wait_s);
        }
        let mut has_reached = false;
        for draw in waits_s.len()..self.draws {
            // All draws are shorter than the wait that matters. More draws would hardly change the
            // answer.
            if !has_reached && draw >= span.min_draws {
                break;
            }
            let wait_s = wait_s(draw);
            has_reached |= wait_s >= span.needed_wait_s;
            waits_s.push(wait_s);
        }
        waits_s.sort_unstable();
        waits_s
    }

    /// Returns the wait of `job` if all jobs ran to their limits, like `squeue --start`; at most
    /// `most_s`.
    pub fn wait_by_limits_s(&self, queue: &QueueTime, job: &SeenWait, most_s: i64) -> i64 {
        let limits_s = limits_s(queue);
        let settings = self.settings_at(queue);
        simulated_wait_s(&settings, queue, job, most_s, |place| limits_s[place])
    }

    /// Returns for each waiting job of `queue` whether it starts at once, if all jobs run to their limits.
    pub fn starts_at_once(&self, queue: &QueueTime) -> Vec<bool> {
        let settings = self.settings_at(queue);
        match &queue.shared {
            None => starts_on_nodes_at_once(WholeNodes::default(), &settings, queue),
            Some(shared) => starts_on_nodes_at_once(SharedNodes::new(shared), &settings, queue),
        }
    }

    /// Returns the scheduler settings with a constant number of nodes: later changes are not known
    /// yet.
    fn settings_at(&self, queue: &QueueTime) -> SchedulerSettings {
        SchedulerSettings {
            begin: queue.now_s,
            capacity: vec![CapacityStep {
                from: queue.now_s,
                nodes: queue.nodes,
            }],
            ..self.settings.clone()
        }
    }

    /// Draws run times for all jobs in `queue`.
    fn draw_runs(&self, queue: &QueueTime, history: &RunHistory) -> DrawnRuns {
        let mut generator = seed::generator(self.seed, "run times", &[queue.now_s]);
        let mut runs_s = Vec::with_capacity(queue.running.len() + queue.waiting.len());
        for run in &queue.running {
            let elapsed_s = queue.now_s - run.start_s;
            let likely = match run.end_s {
                Some(end_s) => vec![end_s - run.start_s],
                None => history.likely_runs_s(run.user, run.limit_s, elapsed_s),
            };
            runs_s.push(draw_stratified(&likely, self.draws, &mut generator));
        }
        for wait in &queue.waiting {
            let likely = history.likely_runs_s(wait.user, wait.limit_s, 0);
            runs_s.push(draw_stratified(&likely, self.draws, &mut generator));
        }
        DrawnRuns { runs_s }
    }
}

/// Draws `draws` values from `sorted`, in random order: one from each of `draws` equal parts. They
/// are spread more evenly than independent draws (Latin hypercube sampling).
fn draw_stratified(sorted: &[i64], draws: usize, generator: &mut ChaCha8Rng) -> Vec<i64> {
    let mut drawn = Vec::with_capacity(draws);
    for part in 0..draws {
        let place = (part as f64 + generator.random::<f64>()) / draws as f64;
        let place = (place * sorted.len() as f64) as usize;
        drawn.push(sorted[place.min(sorted.len() - 1)]);
    }
    drawn.shuffle(generator);
    drawn
}

/// Simulates the wait of `job`, at most `most_s`. `run_s` returns the total run time of each job in
/// `queue`, running jobs first.
fn simulated_wait_s(
    settings: &SchedulerSettings,
    queue: &QueueTime,
    job: &SeenWait,
    most_s: i64,
    run_s: impl Fn(usize) -> i64,
) -> i64 {
    match &queue.shared {
        None => wait_on_nodes_s(WholeNodes::default(), settings, queue, job, most_s, run_s),
        Some(shared) => {
            let nodes = SharedNodes::new(shared);
            wait_on_nodes_s(nodes, settings, queue, job, most_s, run_s)
        }
    }
}

/// Like [`simulated_wait_s`], on the nodes `pool`.
fn wait_on_nodes_s(
    pool: impl NodePool,
    settings: &SchedulerSettings,
    queue: &QueueTime,
    job: &SeenWait,
    most_s: i64,
    run_s: impl Fn(usize) -> i64,
) -> i64 {
    let now_s = queue.now_s;
    let jobs = waiting_jobs(queue, &run_s);
    let mut cluster = cluster_on_nodes(pool, settings, queue, &jobs, job.user, &run_s);
    // The job's own run time does not affect its wait.
    let added = cluster.submit(&waiting_job(job, job.limit_s, now_s));
    let start_s = cluster.run_until_start(added, now_s.saturating_add(most_s));
    start_s.map_or(most_s, |start_s| start_s - now_s)
}

/// Like [`WaitForecast::starts_at_once`], on the nodes `pool`.
fn starts_on_nodes_at_once(
    pool: impl NodePool,
    settings: &SchedulerSettings,
    queue: &QueueTime,
) -> Vec<bool> {
    let limits_s = limits_s(queue);
    let run_s = |place: usize| limits_s[place];
    let jobs = waiting_jobs(queue, run_s);
    let mut cluster = cluster_on_nodes(pool, settings, queue, &jobs, 0, run_s);
    cluster.run_until(queue.now_s);
    let runs = cluster.runs().iter();
    runs.map(|run| run.start.is_some()).collect()
}

/// Returns the time limits of the jobs in `queue`, in seconds: running jobs first, then waiting jobs.
fn limits_s(queue: &QueueTime) -> Vec<i64> {
    let running = queue.running.iter().map(|run| run.limit_s);
    let waiting = queue.waiting.iter().map(|wait| wait.limit_s);
    running.chain(waiting).collect()
}

/// Returns the waiting jobs of `queue`, whose run times `run_s` returns as for [`simulated_wait_s`].
fn waiting_jobs(queue: &QueueTime, run_s: impl Fn(usize) -> i64) -> Vec<QueueJob> {
    let first = queue.running.len();
    let waiting = queue.waiting.iter().enumerate();
    let job = |(number, wait)| waiting_job(wait, run_s(first + number), queue.now_s);
    waiting.map(job).collect()
}

/// Returns the cluster of `queue` at its time, on the nodes `pool`. `jobs` are its waiting jobs, and `user` is the
/// number of another user.
fn cluster_on_nodes<'a, P: NodePool>(
    pool: P,
    settings: &'a SchedulerSettings,
    queue: &QueueTime,
    jobs: &'a [QueueJob],
    user: u32,
    run_s: impl Fn(usize) -> i64,
) -> SimulatedCluster<'a, P> {
    let waiting = queue.waiting.iter().map(|wait| wait.user);
    let running = queue.running.iter().map(|run| run.user);
    // The simulation needs the highest user number.
    let users = waiting.chain(running).fold(user, u32::max);

    let mut cluster = SimulatedCluster::on_nodes(pool, settings, jobs, users as usize + 1);
    for (number, run) in queue.running.iter().enumerate() {
        let job = running_job(run, run_s(number), queue.now_s);
        cluster.add_running(&job, run.start_s);
    }
    cluster
}

fn waiting_job(wait: &SeenWait, run_s: i64, now_s: i64) -> QueueJob {
    QueueJob {
        enter: now_s,
        since: wait.since_s,
        cancel: NEVER,
        run: run_s.max(1),
        limit: wait.limit_s,
        nodes: wait.nodes,
        user: wait.user,
    }
}

fn running_job(run: &SeenRun, run_s: i64, now_s: i64) -> QueueJob {
    QueueJob {
        enter: run.start_s,
        since: run.start_s,
        cancel: NEVER,
        // The job has not ended yet.
        run: run_s.max(now_s + 1 - run.start_s),
        limit: run.limit_s,
        nodes: run.nodes,
        user: run.user,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::EndedRun;

    const HOUR_S: i64 = 3600;

    fn forecast() -> WaitForecast {
        WaitForecast {
            settings: SchedulerSettings::small_cluster(9),
            draws: 40,
            seed: 1,
        }
    }

    /// Creates two nodes: one job has used them for an hour, and another one waits for them.
    fn queue() -> QueueTime {
        let run = SeenRun {
            start_s: 9 * HOUR_S,
            limit_s: 10 * HOUR_S,
            nodes: 2,
            user: 1,
            end_s: None,
        };
        let wait = SeenWait {
            since_s: 9 * HOUR_S,
            limit_s: 20 * HOUR_S,
            nodes: 2,
            user: 2,
        };
        QueueTime {
            now_s: 10 * HOUR_S,
            nodes: 2,
            running: vec![run],
            waiting: vec![wait],
            shared: None,
        }
    }

    fn successor() -> SeenWait {
        SeenWait {
            since_s: 10 * HOUR_S,
            limit_s: HOUR_S,
            nodes: 1,
            user: 3,
        }
    }

    fn ended(user: u32, limit_h: i64, run_h: i64) -> impl Iterator<Item = EndedRun> {
        let run = EndedRun {
            user,
            limit_s: limit_h * HOUR_S,
            run_s: run_h * HOUR_S,
        };
        std::iter::repeat_n(run, 20)
    }

    #[test]
    fn runs_are_drawn_from_similar_jobs() {
        // One hour has passed, so the user's shorter runs do not count for the job.
        let runs = ended(1, 10, 3)
            .chain(ended(1, 10, 0))
            .chain(ended(7, 18, 5));
        let history = RunHistory::of(runs);
        let span = WaitSpan::up_to(100 * HOUR_S);
        let waits_s = forecast().waits_s(&queue(), &history, &successor(), span);
        assert_eq!(waits_s.len(), 40);
        for wait_s in waits_s {
            assert!((7 * HOUR_S..=7 * HOUR_S + 60).contains(&wait_s), "{wait_s}");
        }

        let by_limits_s = forecast().wait_by_limits_s(&queue(), &successor(), 100 * HOUR_S);
        assert!(
            (29 * HOUR_S..=29 * HOUR_S + 600).contains(&by_limits_s),
            "{by_limits_s}"
        );
        // Without a history, only the limits are known.
        let unknown = RunHistory::default();
        let waits_s = forecast().waits_s(&queue(), &unknown, &successor(), span);
        assert_eq!(waits_s, [by_limits_s; 40]);
    }

    #[test]
    fn known_end_of_the_own_job_is_used() {
        let mut queue = queue();
        queue.waiting.clear();
        queue.running[0].end_s = Some(12 * HOUR_S);
        let span = WaitSpan::up_to(100 * HOUR_S);
        let waits_s = forecast().waits_s(&queue, &RunHistory::default(), &successor(), span);
        assert_eq!(waits_s, [2 * HOUR_S; 40]);
    }

    #[test]
    fn clear_answers_take_few_draws() {
        let history = RunHistory::of(ended(1, 10, 3).chain(ended(2, 18, 5)));
        let clear = WaitSpan::with_early_stop(9 * HOUR_S, 10 * HOUR_S, 0.5);
        assert_eq!(clear.min_draws, 9);
        assert_eq!(
            forecast()
                .waits_s(&queue(), &history, &successor(), clear)
                .len(),
            9
        );
        let reached = WaitSpan::with_early_stop(7 * HOUR_S, 7 * HOUR_S, 0.5);
        let waits_s = forecast().waits_s(&queue(), &history, &successor(), reached);
        assert_eq!(waits_s, [7 * HOUR_S; 40], "no longer than asked for");
    }

    #[test]
    fn draws_are_spread_evenly() {
        let mut generator = seed::generator(1, "draws", &[]);
        let mut drawn = draw_stratified(&[1, 2, 3, 4], 8, &mut generator);
        drawn.sort_unstable();
        assert_eq!(drawn, [1, 1, 2, 2, 3, 3, 4, 4]);
    }
}
