//! Draws the habits of one user of the pool.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::batch_names::BatchNaming;
use super::release_habit::ReleaseHabit;
use super::repair_habit::RepairHabit;

const NAMES: [&str; 16] = [
    "ada", "bela", "chen", "dara", "emil", "fatou", "goro", "hanna", "ines", "jonas", "kavya",
    "lena", "mira", "noor", "omar", "priya",
];
/// File names, some of them misspelled.
const FILES: [&str; 12] = [
    "deck.inp",
    "site.dat",
    "params.json",
    "grid.nc",
    "seeds.txt",
    "model.pkl",
    "table.dat",
    "deck.imp",
    "stie.dat",
    "parms.json",
    "gird.nc",
    "seed.txt",
];
/// File names per user.
pub(super) const FILES_PER_USER: usize = 3;

/// A user who submits jobs. The habits of a user do not change during the simulation.
#[derive(Debug)]
pub(super) struct PoolUser {
    pub(super) name: String,
    /// Habit of naming batches.
    pub(super) naming: BatchNaming,
    /// Names of the files that jobs read.
    pub(super) files: [&'static str; FILES_PER_USER],
    /// Probability that a cluster has a permanent fault.
    pub(super) faults: f64,
    /// Probability that a run exits with a failure.
    pub(super) fails: f64,
    /// Probability that a run fails to write its output.
    pub(super) loses_output: f64,
    /// Habit of releasing held jobs.
    pub(super) release: ReleaseHabit,
    /// Probability that the user removes a held job, where a person decides.
    pub(super) removes_held: f64,
    /// Habit of fixing faults before a release.
    pub(super) repair: RepairHabit,
    /// True if the memory request grows after a hold for memory.
    pub(super) grows: bool,
    /// Probability that a cluster's memory request is too small for some of its runs.
    pub(super) tight_memory: f64,
    /// Probability that the user holds a job during a run.
    pub(super) holds: f64,
    /// Subcode of the user's `on_exit_hold`, which turns failing exits into holds; `None` without
    /// one.
    pub(super) exit_hold: Option<i32>,
    /// True if the user's `periodic_remove` removes jobs that were held often.
    pub(super) gives_up: bool,
    /// Index of the origin of the input; `None` if the access point supplies it.
    pub(super) input: Option<usize>,
    /// Index of the origin that output goes to, which differs from `input`; `None` if output goes
    /// to the access point.
    pub(super) output: Option<usize>,
    /// Index of the file system on the access point that some clusters read from; `None` if they
    /// read from no such file system.
    pub(super) mount: Option<usize>,
    /// Median run time, s.
    pub(super) run_s: f64,
    pub(super) request_memory_mb: u32,
}

impl PoolUser {
    /// Draws the user with index `rank`. `origins` and `mounts` are the numbers of origins and
    /// shared file systems in the pool.
    pub(super) fn new(rank: u64, origins: usize, mounts: usize, rng: &mut ChaCha8Rng) -> PoolUser {
        let chance = |rng: &mut ChaCha8Rng, p: f64| rng.random::<f64>() < p;
        // Most users rarely make mistakes, and a few often do.
        let rare = |rng: &mut ChaCha8Rng, most: f64| most * rng.random::<f64>().powi(4);
        let one_of = |rng: &mut ChaCha8Rng, p: f64, count: usize| {
            chance(rng, p).then(|| rng.random_range(0..count))
        };
        let input = one_of(rng, 0.45, origins);
        let output = one_of(rng, 0.15, origins);
        let mount = one_of(rng, 0.45, mounts);
        let fails = rare(rng, 0.35);
        let first_file = rng.random_range(0..FILES.len());

        PoolUser {
            name: format!(
                "{}{:02}",
                NAMES[rank as usize % NAMES.len()],
                rank / NAMES.len() as u64
            ),
            naming: BatchNaming::new(rng),
            files: std::array::from_fn(|at| FILES[(first_file + 5 * at) % FILES.len()]),
            faults: 0.003 + rare(rng, 0.05),
            fails,
            loses_output: rare(rng, 0.01),
            release: ReleaseHabit::new(rng),
            removes_held: rng.random_range(0.05..0.35),
            repair: RepairHabit::new(rng),
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
            mount,
            run_s: 600.0 * 12f64.powf(rng.random()),
            request_memory_mb: 1 << rng.random_range(10..14),
        }
    }

    /// The user's directory on the access point, in which the jobs start.
    pub(super) fn home_directory(&self) -> String {
        format!("/home/{}", self.name)
    }
}
