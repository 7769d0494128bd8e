//! Schedules submissions: draws clusters in order of submission, with daily and weekly cycles.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::batch_names::{BatchNaming, DagPosition};
use super::file_supply::FileSupply;
use super::hold_cause::HoldCause;
use super::outages::draw_exponential;
use super::pool::SimulatedPool;
use super::pool_user::{FILES_PER_USER, PoolUser};
use super::settings::SimulationSettings;
use poolcast_base::moment::DAY_MS;
use poolcast_base::seed::generator;

/// One hour, in ms.
const HOUR_MS: i64 = 3_600_000;
/// Maximum number of jobs in a cluster.
const MAX_CLUSTER_JOBS: f64 = 500.0;
/// Probability that a user removes a cluster before it is done.
const REMOVAL_PROBABILITY: f64 = 0.06;

/// The properties that the jobs of a cluster share.
#[derive(Debug)]
pub(super) struct JobCluster {
    pub(super) id: u32,
    pub(super) user: usize,
    /// Submission time, epoch ms.
    pub(super) submit_ms: i64,
    pub(super) size: u32,
    /// Batch name by the user or DAGMan, if there is one.
    pub(super) batch: Option<String>,
    /// The node of a DAG that the cluster belongs to, and the name of that node.
    pub(super) dag: Option<(DagPosition, String)>,
    /// True if the cluster is DAGMan's own job.
    pub(super) is_dagman: bool,
    /// Name of the user's directory for this work, on the access point and on origins. Several
    /// clusters have the same one.
    pub(super) directory: String,
    /// Directory in which the jobs start, on the access point.
    pub(super) iwd: String,
    /// Name of a file that the jobs read. Several clusters read one of the same name.
    pub(super) file: &'static str,
    /// True if that file is on the user's shared file system.
    pub(super) reads_mount: bool,
    /// A fault that makes jobs fail with a hold until a person fixes it. It affects `faulty_share`
    /// of the jobs.
    pub(super) fault: Option<HoldCause>,
    pub(super) faulty_share: f64,
    /// The supply of the missing file, if all jobs miss the same one.
    pub(super) supply: Option<FileSupply>,
    /// Mean memory need of a job, relative to the request.
    pub(super) memory: f64,
    /// Median run time, s.
    pub(super) run_s: f64,
    pub(super) request_cpus: u32,
    pub(super) request_memory_mb: u32,
    pub(super) request_disk_kb: u64,
    /// Time at which the user removes jobs that were never held and are not done, epoch ms.
    pub(super) removed_ms: Option<i64>,
}

impl JobCluster {
    /// Draws the properties that the submission lacks. Returns the cluster and the random generator
    /// of its jobs.
    pub(super) fn new(
        submission: &ClusterSubmission,
        seed: u64,
        pool: &SimulatedPool,
    ) -> (Arc<JobCluster>, ChaCha8Rng) {
        let mut rng = generator(seed, "cluster", &[submission.id.into()]);
        let user = &pool.users[submission.user];
        let chance = |rng: &mut ChaCha8Rng, p: f64| rng.random::<f64>() < p;
        let is_tight = chance(&mut rng, user.tight_memory);
        let fault =
            chance(&mut rng, user.faults).then(|| draw_fault(user.input.is_some(), &mut rng));
        let removed = chance(&mut rng, REMOVAL_PROBABILITY);
        let (directory, file) = draw_work(user, &mut rng);
        let batch = user.naming.batch_name(submission.dag, &mut rng);
        let reads_mount = user.mount.is_some() && chance(&mut rng, 0.6);
        let faulty_share = draw_faulty_share(fault, &mut rng);
        let is_one_file = faulty_share == 1.0 && fault.is_some_and(|fault| fault.is_missing_file());
        let supply = is_one_file.then(|| {
            let mut rng = generator(seed, "file supply", &[submission.id.into()]);
            FileSupply::draw(user, submission.submit_ms, &mut rng)
        });

        let cluster = JobCluster {
            id: submission.id,
            user: submission.user,
            submit_ms: submission.submit_ms,
            size: submission.size,
            batch: batch.filter(|_| !submission.is_dagman),
            dag: submission.dag.map(|dag| (dag, dag.node_name())),
            is_dagman: submission.is_dagman,
            directory,
            iwd: user.home_directory(),
            file,
            reads_mount,
            fault,
            faulty_share,
            supply,
            memory: if is_tight {
                rng.random_range(1.0..1.6)
            } else {
                rng.random_range(0.2..0.85)
            },
            run_s: user.run_s * 3f64.powf(rng.random_range(-1.0..1.0)),
            request_cpus: if chance(&mut rng, 0.85) { 1 } else { 4 },
            request_memory_mb: user.request_memory_mb,
            request_disk_kb: 1 << rng.random_range(20..24),
            removed_ms: removed.then(|| {
                submission.submit_ms
                    + 1000
                    + draw_exponential(&mut rng, 2.0 * HOUR_MS as f64) as i64
            }),
        };
        (Arc::new(cluster), rng)
    }
}

fn draw_fault(has_origin: bool, rng: &mut ChaCha8Rng) -> HoldCause {
    match rng.random_range(0..100) {
        0..45 if has_origin => HoldCause::WrongUrl,
        0..62 => HoldCause::MissingInput,
        62..72 => HoldCause::MissingExecutable,
        72..97 => HoldCause::MissingOutput,
        _ => HoldCause::Duration,
    }
}

/// Draws the share of the jobs of a cluster that have its `fault`.
fn draw_faulty_share(fault: Option<HoldCause>, rng: &mut ChaCha8Rng) -> f64 {
    let has_all = rng.random::<f64>() < 0.6;
    let share = if has_all {
        1.0
    } else {
        rng.random_range(0.1..0.9)
    };
    // All jobs of a cluster start the same program.
    if fault == Some(HoldCause::MissingExecutable) {
        1.0
    } else {
        share
    }
}

/// Draws the directory and the file of a cluster. Each user has only a few of both.
fn draw_work(user: &PoolUser, rng: &mut ChaCha8Rng) -> (String, &'static str) {
    let file = user.files[rng.random_range(0..FILES_PER_USER)];
    let directory = ["maps", "tiles", "scan"][rng.random_range(0..3)];
    (directory.to_owned(), file)
}

/// The submission of one cluster.
pub(super) struct ClusterSubmission {
    id: u32,
    user: usize,
    submit_ms: i64,
    size: u32,
    dag: Option<DagPosition>,
    is_dagman: bool,
}

/// A DAG whose nodes are being submitted.
struct OpenDag {
    dagman_cluster: u32,
    next_node: u32,
    nodes: u32,
}

/// The schedule of all submissions.
pub(super) struct SubmissionSchedule {
    jobs: u64,
    start_ms: i64,
    rng: ChaCha8Rng,
    /// Cumulative share of jobs submitted by the end of each hour.
    shares: Vec<f64>,
    submitted: u64,
    next_id: u32,
    now_ms: i64,
    /// Open DAGs by user.
    open_dags: BTreeMap<usize, OpenDag>,
}

impl SubmissionSchedule {
    pub(super) fn new(settings: &SimulationSettings) -> SubmissionSchedule {
        let start_ms = settings.start_ms;
        let hours = i64::from(settings.days) * 24;
        let sums = (0..hours).scan(0.0, |sum, hour| {
            *sum += submission_rate(start_ms + hour * HOUR_MS);
            Some(*sum)
        });
        let mut shares: Vec<f64> = sums.collect();
        let total = shares.last().copied().unwrap_or(1.0);
        shares.iter_mut().for_each(|share| *share /= total);

        SubmissionSchedule {
            jobs: settings.jobs,
            start_ms,
            rng: generator(settings.seed, "submissions", &[]),
            shares,
            submitted: 0,
            next_id: 1,
            now_ms: start_ms,
            open_dags: BTreeMap::new(),
        }
    }

    /// Returns the submissions before `to_ms` that were not returned before.
    pub(super) fn submitted_until(
        &mut self,
        to_ms: i64,
        pool: &SimulatedPool,
    ) -> Vec<ClusterSubmission> {
        let wanted = (self.share(to_ms) * self.jobs as f64).round() as u64;
        let mut found = Vec::new();
        while self.submitted < wanted.min(self.jobs) {
            let submit_ms = self.rng.random_range(self.now_ms..to_ms);
            let user = pool.draw_user(&mut self.rng);
            // Cluster sizes have a Pareto distribution.
            let size = (1.0 - self.rng.random::<f64>())
                .powf(-1.0 / 1.15)
                .min(MAX_CLUSTER_JOBS) as u64;
            let size = size.min(self.jobs - self.submitted);
            self.submitted += size;
            found.push(ClusterSubmission {
                id: 0,
                user,
                submit_ms,
                size: size as u32,
                dag: None,
                is_dagman: false,
            });
        }

        self.now_ms = to_ms;
        // Assign ids in order of submission time, as a schedd does.
        found.sort_by_key(|submission| submission.submit_ms);
        let mut named = Vec::with_capacity(found.len());
        for mut submission in found {
            if pool.users[submission.user].naming == BatchNaming::Dags {
                named.extend(self.begin_dag(&mut submission));
                submission.dag = self.next_node(submission.user);
            }
            submission.id = self.next_id();
            named.push(submission);
        }
        named
    }

    /// Opens a DAG if the user has none, and returns the submission of DAGMan's own job. That job
    /// counts as one of the jobs of `submission`.
    fn begin_dag(&mut self, submission: &mut ClusterSubmission) -> Option<ClusterSubmission> {
        if self.open_dags.contains_key(&submission.user) || submission.size < 2 {
            return None;
        }
        let dagman_cluster = self.next_id();
        let open = OpenDag {
            dagman_cluster,
            next_node: 0,
            nodes: 4 + dagman_cluster % 23,
        };
        self.open_dags.insert(submission.user, open);
        submission.size -= 1;
        Some(ClusterSubmission {
            id: dagman_cluster,
            size: 1,
            dag: None,
            is_dagman: true,
            ..*submission
        })
    }

    /// Returns the next node of the user's DAG; `None` if the user has no open DAG.
    fn next_node(&mut self, user: usize) -> Option<DagPosition> {
        let open = self.open_dags.get_mut(&user)?;
        let place = DagPosition {
            dagman_cluster: open.dagman_cluster,
            node: open.next_node,
        };
        open.next_node += 1;
        if open.next_node == open.nodes {
            self.open_dags.remove(&user);
        }
        Some(place)
    }

    fn next_id(&mut self) -> u32 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// Returns the share of all jobs that are submitted before `time_ms`.
    fn share(&self, time_ms: i64) -> f64 {
        let hours = (time_ms - self.start_ms) as f64 / HOUR_MS as f64;
        let whole = (hours as usize).min(self.shares.len());
        let at = |hour: usize| {
            if hour == 0 {
                0.0
            } else {
                self.shares[hour - 1]
            }
        };
        if whole == self.shares.len() {
            return 1.0;
        }
        at(whole) + (at(whole + 1) - at(whole)) * (hours - whole as f64)
    }
}

/// Returns the relative rate of submissions at `time_ms`. It is low at night (UTC is five hours
/// ahead of most users) and on weekends.
fn submission_rate(time_ms: i64) -> f64 {
    let hour = time_ms.rem_euclid(DAY_MS) as f64 / HOUR_MS as f64;
    let day = 1.0 - 0.6 * ((hour - 7.0) / 24.0 * std::f64::consts::TAU).cos();
    let is_weekend = (time_ms.div_euclid(DAY_MS) + 3).rem_euclid(7) >= 5;
    if is_weekend { 0.5 * day } else { day }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submissions_have_the_requested_job_count_in_time_order() {
        let settings = SimulationSettings {
            seed: 3,
            jobs: 5000,
            days: 7,
            start_ms: 1_767_571_200_000,
            rotate_bytes: None,
        };
        let pool = SimulatedPool::new(&settings);
        let mut submissions = SubmissionSchedule::new(&settings);
        let mut all = Vec::new();
        for hour in 1..=7 * 24 {
            let made = submissions.submitted_until(settings.start_ms + hour * HOUR_MS, &pool);
            all.extend(
                made.iter()
                    .map(|submission| JobCluster::new(submission, settings.seed, &pool).0),
            );
        }
        assert_eq!(
            all.iter()
                .map(|cluster| u64::from(cluster.size))
                .sum::<u64>(),
            5000
        );
        assert!(
            all.windows(2)
                .all(|two| two[0].submit_ms <= two[1].submit_ms && two[0].id + 1 == two[1].id)
        );
    }
}
