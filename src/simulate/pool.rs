//! A seed → the pool: who submits and with what habits, where jobs run, which origins their data
//! are on.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::outages::DataOrigin;
use super::release_habit::ReleaseHabit;
use super::settings::{DAY_MS, SimulationSettings};
use crate::seed::generator;

/// The name of the access point and of its schedd.
pub(super) const SCHEDD: &str = "ap40.pool.example";
/// The address of its schedd.
pub(super) const SCHEDD_ADDRESS: &str =
    "10.128.4.40:9618?addrs=10.128.4.40-9618&alias=ap40.pool.example&noUDP&sock=schedd_2058_43af";

const ORIGINS: [&str; 6] = [
    "ospool/ap40",
    "ospool/uw-shared",
    "igwn",
    "path-facility",
    "chtc/staging",
    "ncar",
];
const SITES: [&str; 15] = [
    "aurora", "birch", "cedar", "delta", "ember", "fjord", "glacier", "harbor", "iris", "juniper",
    "krill", "lagoon", "mesa", "nimbus", "orchid",
];
const NAMES: [&str; 16] = [
    "ada", "bela", "chen", "dara", "emil", "fatou", "goro", "hanna", "ines", "jonas", "kavya",
    "lena", "mira", "noor", "omar", "priya",
];
/// One user for so many jobs, but at least so many.
const JOBS_PER_USER: u64 = 150;
const FEWEST_USERS: u64 = 12;

/// Everything that does not change while the pool runs.
#[derive(Debug)]
pub(super) struct SimulatedPool {
    /// What happens from here on is not in the log.
    pub(super) end_ms: i64,
    pub(super) users: Vec<PoolUser>,
    /// The cumulative activity of the users.
    activity: Vec<f64>,
    pub(super) sites: Vec<PoolSite>,
    pub(super) origins: Vec<DataOrigin>,
    /// The chance that a run meets a fault of its site.
    pub(super) site_fault: f64,
}

/// Somebody who submits jobs, and how; all of it holds as long as the pool does.
#[derive(Debug)]
pub(super) struct PoolUser {
    pub(super) name: String,
    /// The chance that a cluster carries a permanent fault.
    pub(super) faults: f64,
    /// The chance that a run ends with a failing exit.
    pub(super) fails: f64,
    /// The chance that a run fails to write its output.
    pub(super) loses_output: f64,
    /// How held jobs are released.
    pub(super) release: ReleaseHabit,
    /// The chance that a held job is removed, where a person decides.
    pub(super) removes_held: f64,
    /// The chance that a person mends what held a job before releasing it.
    pub(super) fixes: f64,
    /// Whether the memory request grows after a hold for memory.
    pub(super) grows: bool,
    /// The chance that a cluster's memory request is too small for some of its runs.
    pub(super) tight_memory: f64,
    /// The chance that the user holds a run.
    pub(super) holds: f64,
    /// The subcode of the user's `on_exit_hold`: failing exits become holds.
    pub(super) exit_hold: Option<i32>,
    /// Whether `periodic_remove` ends jobs that were held often.
    pub(super) gives_up: bool,
    /// The origin of the input; the access point if none.
    pub(super) input: Option<usize>,
    /// The origin that output goes to, another one than that of the input; the access point if
    /// none.
    pub(super) output: Option<usize>,
    /// The median run, in seconds.
    pub(super) run_s: f64,
    pub(super) request_memory_mb: u32,
}

/// A place where jobs run.
#[derive(Debug)]
pub(super) struct PoolSite {
    pub(super) hosts: Vec<PoolHost>,
    /// The chance that a run is evicted, once.
    pub(super) evicts: f64,
    /// The chance that a job cannot be started here.
    pub(super) fault: f64,
    /// Whether pilots watch memory here (code 21), or the starter itself (34).
    pub(super) is_pilot: bool,
}

/// An execution point.
#[derive(Debug)]
pub(super) struct PoolHost {
    pub(super) name: String,
    pub(super) address: String,
}

impl SimulatedPool {
    /// The pool that `settings` describe.
    pub(super) fn new(settings: &SimulationSettings) -> SimulatedPool {
        let mut rng = generator(settings.seed, "pool", &[]);
        let end_ms = settings.start_ms + i64::from(settings.days) * DAY_MS;
        let origins = (0..rng.random_range(3..=ORIGINS.len()))
            // Runs that the log no longer shows are followed, too.
            .map(|at| {
                DataOrigin::new(
                    ORIGINS[at],
                    settings.start_ms,
                    end_ms + 60 * DAY_MS,
                    &mut rng,
                )
            })
            .collect::<Vec<_>>();
        let sites = (0..rng.random_range(8..=SITES.len()))
            .map(|at| PoolSite::new(at, &mut rng))
            .collect::<Vec<_>>();
        let site_fault = sites.iter().map(|site| site.fault).sum::<f64>() / sites.len() as f64;
        let count = (settings.jobs / JOBS_PER_USER).max(FEWEST_USERS);
        let users = (0..count).map(|at| {
            PoolUser::new(
                at,
                origins.len(),
                &mut generator(settings.seed, "user", &[at.cast_signed()]),
            )
        });
        let weights = (0..count).scan(0.0, |sum, rank| {
            *sum += 1.0 / (rank as f64 + 4.0);
            Some(*sum)
        });
        SimulatedPool {
            end_ms,
            users: users.collect(),
            activity: weights.collect(),
            sites,
            origins,
            site_fault,
        }
    }

    /// A user, the more likely the more active.
    pub(super) fn any_user(&self, rng: &mut ChaCha8Rng) -> usize {
        let at = rng.random::<f64>() * self.activity.last().copied().unwrap_or(0.0);
        self.activity
            .partition_point(|sum| *sum <= at)
            .min(self.users.len() - 1)
    }

    /// A site, or one where a job just failed to start.
    pub(super) fn any_site(&self, faulty: bool, rng: &mut ChaCha8Rng) -> usize {
        if !faulty {
            return rng.random_range(0..self.sites.len());
        }
        let mut left = rng.random::<f64>() * self.site_fault * self.sites.len() as f64;
        let passed = |site: &PoolSite| {
            left -= site.fault;
            left < 0.0
        };
        self.sites.iter().position(passed).unwrap_or(0)
    }

    /// Whether the origin at `at` is down.
    pub(super) fn is_down(&self, at: Option<usize>, time_ms: i64) -> bool {
        at.is_some_and(|at| self.origins[at].is_down(time_ms))
    }
}

impl PoolUser {
    fn new(rank: u64, origins: usize, rng: &mut ChaCha8Rng) -> PoolUser {
        let chance = |rng: &mut ChaCha8Rng, p: f64| rng.random::<f64>() < p;
        // Most people rarely make mistakes, few often.
        let rare = |rng: &mut ChaCha8Rng, most: f64| most * rng.random::<f64>().powi(4);
        let origin =
            |rng: &mut ChaCha8Rng, p: f64| chance(rng, p).then(|| rng.random_range(0..origins));
        let (input, output) = (origin(rng, 0.45), origin(rng, 0.15));
        let fails = rare(rng, 0.35);
        PoolUser {
            name: format!(
                "{}{:02}",
                NAMES[rank as usize % NAMES.len()],
                rank / NAMES.len() as u64
            ),
            faults: 0.003 + rare(rng, 0.05),
            fails,
            loses_output: rare(rng, 0.01),
            release: ReleaseHabit::new(rng),
            removes_held: rng.random_range(0.05..0.35),
            fixes: if chance(rng, 0.5) {
                rng.random_range(0.0..0.15)
            } else {
                rng.random_range(0.8..1.0)
            },
            grows: chance(rng, 0.45),
            tight_memory: rare(rng, 0.06),
            holds: if chance(rng, 0.2) {
                rng.random_range(0.002..0.03)
            } else {
                0.0
            },
            exit_hold: chance(rng, 0.12).then(|| rng.random_range(1..4)),
            gives_up: chance(rng, 0.2),
            input,
            output: output.filter(|at| input != Some(*at)),
            run_s: 600.0 * 12f64.powf(rng.random()),
            request_memory_mb: 1 << rng.random_range(10..14),
        }
    }
}

impl PoolSite {
    fn new(at: usize, rng: &mut ChaCha8Rng) -> PoolSite {
        let name = SITES[at];
        let is_bad = rng.random::<f64>() < 0.25;
        let hosts = (0..rng.random_range(6..30)).map(|host| {
            let address = format!("10.{}.{}.{}", 16 + at, host / 8, 10 + host % 8);
            let host = format!("e{:04}.{name}.example", 2000 + 7 * host);
            let pid = rng.random_range(1000..90_000);
            let address = format!(
                "{address}:9618?addrs={address}-9618&alias={host}&noUDP&sock=startd_{pid}_43af"
            );
            PoolHost {
                name: host,
                address,
            }
        });
        let hosts = hosts.collect();
        let evicts = if is_bad { 0.08 } else { 0.02 };
        let fault = if is_bad { 0.012 } else { 0.0002 };
        PoolSite {
            hosts,
            evicts,
            fault,
            is_pilot: rng.random::<f64>() < 0.6,
        }
    }
}
