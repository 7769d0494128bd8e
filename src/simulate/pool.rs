//! Draws a pool from a seed: its users, its sites and hosts, and the data that jobs share.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::bad_hosts::{BAD_HOST_OUTAGES, BadHosts};
use super::outages::{OutageLaw, OutageTimes};
use super::pool_user::PoolUser;
use super::settings::SimulationSettings;
use poolcast_base::moment::DAY_MS;
use poolcast_base::seed::generator;

/// Name of the access point and of its schedd.
pub(super) const SCHEDD: &str = "ap40.pool.example";
/// Address of the schedd.
pub(super) const SCHEDD_ADDRESS: &str =
    "10.128.4.40:9618?addrs=10.128.4.40-9618&alias=ap40.pool.example&noUDP&sock=schedd_2058_43af";

/// Outages of a data origin.
pub(super) const ORIGIN_OUTAGES: OutageLaw = OutageLaw::hours(84.0, 3.0);
/// Unmounted periods of a shared file system on the access point.
pub(super) const MOUNT_OUTAGES: OutageLaw = OutageLaw::hours(60.0, 2.5);
const ORIGINS: [&str; 6] = [
    "ospool/ap40",
    "ospool/uw-shared",
    "igwn",
    "path-facility",
    "chtc/staging",
    "ncar",
];
const MOUNTS: [&str; 4] = ["gwave", "climate", "xray", "genomes"];
const SITES: [&str; 15] = [
    "aurora", "birch", "cedar", "delta", "ember", "fjord", "glacier", "harbor", "iris", "juniper",
    "krill", "lagoon", "mesa", "nimbus", "orchid",
];
/// Jobs per user, unless this gives fewer than [`MIN_USERS`].
const JOBS_PER_USER: u64 = 150;
/// Minimum number of users.
const MIN_USERS: u64 = 12;
/// Time after the end of the log for which outages are drawn, in ms. Runs that begin in the log may
/// end after it.
const OUTAGE_TAIL_MS: i64 = 60 * DAY_MS;

/// The parts of the pool that do not change during the simulation.
#[derive(Debug)]
pub(super) struct SimulatedPool {
    /// End of the log, epoch ms. The log omits all later events.
    pub(super) end_ms: i64,
    pub(super) users: Vec<PoolUser>,
    /// Cumulative activity of the users.
    activity: Vec<f64>,
    pub(super) sites: Vec<PoolSite>,
    /// Servers that supply input to many users or take their output.
    pub(super) origins: Vec<SharedPlace>,
    /// File systems on the access point that supply files to many users.
    pub(super) mounts: Vec<SharedPlace>,
    /// Probability that a run fails because of a fault of its site.
    pub(super) site_fault: f64,
    pub(super) bad_hosts: BadHosts,
    /// True if the log has the input files of jobs, as at half of all access points.
    pub(super) lists_inputs: bool,
}

/// A data source or destination that many jobs share.
#[derive(Debug)]
pub(super) struct SharedPlace {
    pub(super) name: &'static str,
    pub(super) outages: OutageTimes,
}

/// Returns the name of a shared data source, or `otherwise` for a user without one.
pub(super) fn shared_name<'a>(
    places: &'a [SharedPlace],
    place: Option<usize>,
    otherwise: &'a str,
) -> &'a str {
    place.map_or(otherwise, |place| places[place].name)
}

/// A site that runs jobs.
#[derive(Debug)]
pub(super) struct PoolSite {
    pub(super) name: &'static str,
    pub(super) hosts: Vec<PoolHost>,
    /// Probability that a first run is evicted; a job is evicted at most once.
    pub(super) eviction_probability: f64,
    /// Probability that a job cannot be started at this site.
    pub(super) fault: f64,
    /// True if pilots limit memory at this site (code 21), false if the starter does (code 34).
    pub(super) is_pilot: bool,
}

/// An execution point.
#[derive(Debug)]
pub(super) struct PoolHost {
    pub(super) name: String,
    pub(super) address: String,
    /// Periods during which the host makes runs fail.
    pub(super) outages: OutageTimes,
    /// The fault of the host during its outages.
    pub(super) fault: HostFault,
}

/// A fault of an execution point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostFault {
    /// A file system with software is not mounted.
    BrokenMount,
    /// The disk of the job's directory is full.
    FullScratch,
}

impl SimulatedPool {
    /// Draws the pool that `settings` describe.
    pub(super) fn new(settings: &SimulationSettings) -> SimulatedPool {
        let mut rng = generator(settings.seed, "pool", &[]);
        let start_ms = settings.start_ms;
        let end_ms = start_ms + i64::from(settings.days) * DAY_MS;
        let span_ms = (start_ms, end_ms + OUTAGE_TAIL_MS);

        let origins = shared_data(&ORIGINS, 3, ORIGIN_OUTAGES, span_ms, &mut rng);
        let mounts = shared_data(&MOUNTS, 2, MOUNT_OUTAGES, span_ms, &mut rng);
        let sites = (0..rng.random_range(8..=SITES.len()))
            .map(|at| PoolSite::new(at, span_ms, &mut rng))
            .collect::<Vec<_>>();
        let site_fault = sites.iter().map(|site| site.fault).sum::<f64>() / sites.len() as f64;

        let count = (settings.jobs / JOBS_PER_USER).max(MIN_USERS);
        let mut users = Vec::new();
        for rank in 0..count {
            let mut rng = generator(settings.seed, "user", &[rank.cast_signed()]);
            users.push(PoolUser::new(rank, origins.len(), mounts.len(), &mut rng));
        }
        // Zipf-like activity: few users submit most jobs.
        let weights = (0..count).scan(0.0, |sum, rank| {
            *sum += 1.0 / (rank as f64 + 4.0);
            Some(*sum)
        });
        SimulatedPool {
            end_ms,
            users,
            activity: weights.collect(),
            bad_hosts: bad_hosts(&sites),
            sites,
            origins,
            mounts,
            site_fault,
            lists_inputs: generator(settings.seed, "listed inputs", &[]).random(),
        }
    }

    /// Draws a user, with a probability in proportion to the user's activity.
    pub(super) fn draw_user(&self, rng: &mut ChaCha8Rng) -> usize {
        let at = rng.random::<f64>() * self.activity.last().copied().unwrap_or(0.0);
        self.activity
            .partition_point(|sum| *sum <= at)
            .min(self.users.len() - 1)
    }

    /// Draws the site of a job that just failed to start, weighted by the sites' faults.
    pub(super) fn draw_faulty_site(&self, rng: &mut ChaCha8Rng) -> usize {
        let mut left = rng.random::<f64>() * self.site_fault * self.sites.len() as f64;
        let passed = |site: &PoolSite| {
            left -= site.fault;
            left < 0.0
        };
        self.sites.iter().position(passed).unwrap_or(0)
    }

    /// Lists the site and host indices of all faulty hosts at `time_ms`, each with the host's share
    /// of all runs.
    pub(super) fn bad_hosts_at(&self, time_ms: i64) -> Vec<(usize, usize, f64)> {
        let mut bad = Vec::new();
        for (site_number, site) in self.sites.iter().enumerate() {
            for (host_number, host) in site.hosts.iter().enumerate() {
                if host.outages.is_down(time_ms) {
                    bad.push((site_number, host_number, host_share(&self.sites, site)));
                }
            }
        }
        bad
    }
}

/// Draws the outages of the first few `names`, at least `min_count` of them.
fn shared_data(
    names: &[&'static str],
    min_count: usize,
    law: OutageLaw,
    (from_ms, to_ms): (i64, i64),
    rng: &mut ChaCha8Rng,
) -> Vec<SharedPlace> {
    let count = rng.random_range(min_count..=names.len());
    let mut all = Vec::new();
    for name in &names[..count] {
        let outages = OutageTimes::draw(law, from_ms, to_ms, rng);
        all.push(SharedPlace { name, outages });
    }
    all
}

/// Computes the share of faulty hosts over time.
fn bad_hosts(sites: &[PoolSite]) -> BadHosts {
    let hosts = sites.iter().flat_map(|site| {
        let part = host_share(sites, site);
        site.hosts.iter().map(move |host| (part, &host.outages))
    });
    BadHosts::new(hosts)
}

/// Returns the share of all runs on one host of `site`. All sites have equal shares, and so do all
/// hosts of a site.
fn host_share(sites: &[PoolSite], site: &PoolSite) -> f64 {
    1.0 / (sites.len() * site.hosts.len()) as f64
}

impl PoolSite {
    fn new(at: usize, (from_ms, to_ms): (i64, i64), rng: &mut ChaCha8Rng) -> PoolSite {
        let name = SITES[at];
        let is_bad = rng.random::<f64>() < 0.25;
        let mut hosts = Vec::new();
        for host in 0..rng.random_range(6..30) {
            let address = format!("10.{}.{}.{}", 16 + at, host / 8, 10 + host % 8);
            let host = format!("e{:04}.{name}.example", 2000 + 7 * host);
            let pid = rng.random_range(1000..90_000);
            let address = format!(
                "{address}:9618?addrs={address}-9618&alias={host}&noUDP&sock=startd_{pid}_43af"
            );
            hosts.push(PoolHost {
                name: host,
                address,
                outages: OutageTimes::draw(BAD_HOST_OUTAGES, from_ms, to_ms, rng),
                fault: if rng.random() {
                    HostFault::BrokenMount
                } else {
                    HostFault::FullScratch
                },
            });
        }
        let eviction_probability = if is_bad { 0.08 } else { 0.02 };
        let fault = if is_bad { 0.012 } else { 0.0002 };
        PoolSite {
            name,
            hosts,
            eviction_probability,
            fault,
            is_pilot: rng.random::<f64>() < 0.6,
        }
    }
}
