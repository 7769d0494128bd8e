//! A seed → the pool: who submits, where jobs run, which data they share.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::bad_hosts::{BAD_HOST, BadHosts};
use super::outages::{OutageLaw, OutageTimes};
use super::pool_user::PoolUser;
use super::settings::{DAY_MS, SimulationSettings};
use poolcast_base::seed::generator;

/// The name of the access point and of its schedd.
pub(super) const SCHEDD: &str = "ap40.pool.example";
/// The address of its schedd.
pub(super) const SCHEDD_ADDRESS: &str =
    "10.128.4.40:9618?addrs=10.128.4.40-9618&alias=ap40.pool.example&noUDP&sock=schedd_2058_43af";

/// How an origin of data fails.
pub(super) const ORIGIN: OutageLaw = OutageLaw::hours(84.0, 3.0);
/// How a shared file system of the access point is lost, and mounted again.
pub(super) const MOUNT: OutageLaw = OutageLaw::hours(60.0, 2.5);
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
/// One user for so many jobs, but at least so many.
const JOBS_PER_USER: u64 = 150;
const FEWEST_USERS: u64 = 12;
/// Runs that the log no longer shows are followed, too.
const FOLLOWED_MS: i64 = 60 * DAY_MS;

/// Everything that does not change while the pool runs.
#[derive(Debug)]
pub(super) struct SimulatedPool {
    /// What happens from here on is not in the log.
    pub(super) end_ms: i64,
    pub(super) users: Vec<PoolUser>,
    /// The cumulative activity of the users.
    activity: Vec<f64>,
    pub(super) sites: Vec<PoolSite>,
    /// Servers that many users' files come from or go to.
    pub(super) origins: Vec<DataPlace>,
    /// File systems on the access point that many users' files are on.
    pub(super) mounts: Vec<DataPlace>,
    /// The chance that a run meets a fault of its site.
    pub(super) site_fault: f64,
    pub(super) bad_hosts: BadHosts,
}

/// A place of data that many jobs share.
#[derive(Debug)]
pub(super) struct DataPlace {
    pub(super) name: &'static str,
    pub(super) outages: OutageTimes,
}

/// A place where jobs run.
#[derive(Debug)]
pub(super) struct PoolSite {
    pub(super) name: &'static str,
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
    /// When it spoils runs.
    pub(super) outages: OutageTimes,
    /// What goes wrong then.
    pub(super) fault: HostFault,
}

/// What is out of order on an execution point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostFault {
    /// A file system with software is not there.
    BrokenMount,
    /// The disk of the job's directory is full.
    FullScratch,
}

impl SimulatedPool {
    /// The pool that `settings` describe.
    pub(super) fn new(settings: &SimulationSettings) -> SimulatedPool {
        let mut rng = generator(settings.seed, "pool", &[]);
        let start_ms = settings.start_ms;
        let end_ms = start_ms + i64::from(settings.days) * DAY_MS;
        let span_ms = (start_ms, end_ms + FOLLOWED_MS);

        let origins = shared_data(&ORIGINS, 3, ORIGIN, span_ms, &mut rng);
        let mounts = shared_data(&MOUNTS, 2, MOUNT, span_ms, &mut rng);
        let sites = (0..rng.random_range(8..=SITES.len()))
            .map(|at| PoolSite::new(at, span_ms, &mut rng))
            .collect::<Vec<_>>();
        let site_fault = sites.iter().map(|site| site.fault).sum::<f64>() / sites.len() as f64;

        let count = (settings.jobs / JOBS_PER_USER).max(FEWEST_USERS);
        let mut users = Vec::new();
        for rank in 0..count {
            let mut rng = generator(settings.seed, "user", &[rank.cast_signed()]);
            users.push(PoolUser::new(rank, origins.len(), mounts.len(), &mut rng));
        }
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
        }
    }

    /// A user, the more likely the more active.
    pub(super) fn any_user(&self, rng: &mut ChaCha8Rng) -> usize {
        let at = rng.random::<f64>() * self.activity.last().copied().unwrap_or(0.0);
        self.activity
            .partition_point(|sum| *sum <= at)
            .min(self.users.len() - 1)
    }

    /// A site where a job just failed to start.
    pub(super) fn any_faulty_site(&self, rng: &mut ChaCha8Rng) -> usize {
        let mut left = rng.random::<f64>() * self.site_fault * self.sites.len() as f64;
        let passed = |site: &PoolSite| {
            left -= site.fault;
            left < 0.0
        };
        self.sites.iter().position(passed).unwrap_or(0)
    }

    /// The sites and hosts that spoil runs at `time_ms`, each with its part of all runs.
    pub(super) fn bad_hosts_at(&self, time_ms: i64) -> Vec<(usize, usize, f64)> {
        let mut bad = Vec::new();
        for (site_number, site) in self.sites.iter().enumerate() {
            for (host_number, host) in site.hosts.iter().enumerate() {
                if host.outages.is_down(time_ms) {
                    bad.push((site_number, host_number, host_part(&self.sites, site)));
                }
            }
        }
        bad
    }
}

/// The places of these names, at least `fewest` of them.
fn shared_data(
    names: &[&'static str],
    fewest: usize,
    law: OutageLaw,
    (from_ms, to_ms): (i64, i64),
    rng: &mut ChaCha8Rng,
) -> Vec<DataPlace> {
    let count = rng.random_range(fewest..=names.len());
    let mut all = Vec::new();
    for name in &names[..count] {
        let outages = OutageTimes::draw(law, from_ms, to_ms, rng);
        all.push(DataPlace { name, outages });
    }
    all
}

/// The share of hosts that spoil runs, over time.
fn bad_hosts(sites: &[PoolSite]) -> BadHosts {
    let hosts = sites.iter().flat_map(|site| {
        let part = host_part(sites, site);
        site.hosts.iter().map(move |host| (part, &host.outages))
    });
    BadHosts::new(hosts)
}

/// The part of all runs that a host of `site` has: sites share evenly, and so do the hosts of each.
fn host_part(sites: &[PoolSite], site: &PoolSite) -> f64 {
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
                outages: OutageTimes::draw(BAD_HOST, from_ms, to_ms, rng),
                fault: if rng.random() {
                    HostFault::BrokenMount
                } else {
                    HostFault::FullScratch
                },
            });
        }
        let evicts = if is_bad { 0.08 } else { 0.02 };
        let fault = if is_bad { 0.012 } else { 0.0002 };
        PoolSite {
            name,
            hosts,
            evicts,
            fault,
            is_pilot: rng.random::<f64>() < 0.6,
        }
    }
}
