//! The rank of a user → their habits.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::batch_names::BatchNaming;
use super::release_habit::ReleaseHabit;
use super::repair_habit::RepairHabit;

const NAMES: [&str; 16] = [
    "ada", "bela", "chen", "dara", "emil", "fatou", "goro", "hanna", "ines", "jonas", "kavya",
    "lena", "mira", "noor", "omar", "priya",
];
/// Names of files, some of them with a slip of the pen.
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
/// A user's files have so many names.
pub(super) const FILES_OF_USER: usize = 3;

/// Somebody who submits jobs, and how; all of it holds as long as the pool does.
#[derive(Debug)]
pub(super) struct PoolUser {
    pub(super) name: String,
    /// How batches are called.
    pub(super) naming: BatchNaming,
    /// The names of the files that jobs read.
    pub(super) files: [&'static str; FILES_OF_USER],
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
    /// What a person mends before releasing a job.
    pub(super) repair: RepairHabit,
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
    /// The file system of the access point that some clusters read from, if any does.
    pub(super) mount: Option<usize>,
    /// The median run, in seconds.
    pub(super) run_s: f64,
    pub(super) request_memory_mb: u32,
}

impl PoolUser {
    /// The user of this rank, in a pool of so many origins and shared file systems.
    pub(super) fn new(rank: u64, origins: usize, mounts: usize, rng: &mut ChaCha8Rng) -> PoolUser {
        let chance = |rng: &mut ChaCha8Rng, p: f64| rng.random::<f64>() < p;
        // Most people rarely make mistakes, few often.
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
}
