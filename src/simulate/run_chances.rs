//! The true probabilities of the outcomes of a job's next run, given its hidden condition.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::bad_hosts::{bad_host_failure_probability, expected_share_after};
use super::file_supply::{FileSupply, RELEASE_AFTER_SUPPLY_MS};
use super::hold_cause::HoldCause;
use super::outages::{OutageLaw, OutageTimes};
use super::pool::{MOUNT_OUTAGES, ORIGIN_OUTAGES, SimulatedPool};
use super::pool_user::PoolUser;
use super::release_habit::{DELAY_QUANTILES, ReleaseDecider};
use super::submissions::JobCluster;

/// Share of transfers that fail while an origin is down.
const OUTAGE_FAILURE_RATE: f64 = 0.85;
/// Share of jobs that miss their input while a shared file system is not mounted.
const UNMOUNTED_FAILURE_RATE: f64 = 0.97;
/// Share of transfers that fail while the origin is up.
const TRANSFER_FAILURE_RATE: f64 = 0.0015;
/// Maximum relative deviation of a run's memory from the mean; the deviation is uniform.
const MEMORY_SPREAD: f64 = 0.1;
/// Probability that a run exceeds its allowed duration.
const OVERRUN_PROBABILITY: f64 = 0.0002;
/// Probability that the access point removes a job during a run.
const POLICY_REMOVAL_PROBABILITY: f64 = 0.002;
/// Probability that a user's `periodic_remove` removes a job during a run, from the third hold on.
const PERIODIC_REMOVE_PROBABILITY: f64 = 0.3;

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunOutcome {
    Success,
    FailingExit,
    RemovedByPolicy,
    Held(HoldCause),
}

/// The outages that affect a job: of the origin of its input, of the origin of its output, and of
/// the shared file system that it reads from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DataOutages {
    pub(super) input: bool,
    pub(super) output: bool,
    pub(super) mount: bool,
}

/// The hidden condition of a job, which determines the probabilities of its next run.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobCondition {
    /// A fault that makes every run fail with a hold.
    pub(super) fault: Option<HoldCause>,
    /// Time at which the fault is repaired for all jobs of the cluster, epoch ms; `None` if it never is.
    pub(super) supplied_ms: Option<i64>,
    /// Mean memory need, relative to the request.
    pub(super) memory: f64,
    /// True if the job reads from its user's shared file system.
    pub(super) reads_mount: bool,
    pub(super) down: DataOutages,
    /// Share of the pool that is faulty.
    pub(super) bad_share: f64,
    /// Number of holds of the job so far.
    pub(super) holds: u32,
}

/// Returns the probability that a transfer fails without a permanent cause; 0 if there is no
/// origin.
fn transfer_chance(origin: Option<usize>) -> f64 {
    if origin.is_some() {
        TRANSFER_FAILURE_RATE
    } else {
        0.0
    }
}

impl JobCondition {
    /// Lists the outcomes other than success in the order in which a run can meet them. Each has
    /// its probability, given that no earlier one happened.
    fn stop_chances(&self, pool: &SimulatedPool, user: &PoolUser) -> [(RunOutcome, f64); 16] {
        let fault = |cause| {
            (
                RunOutcome::Held(cause),
                f64::from(u8::from(self.fault == Some(cause))),
            )
        };
        let outage = |is_down| if is_down { OUTAGE_FAILURE_RATE } else { 0.0 };
        let unmounted = if self.down.mount {
            UNMOUNTED_FAILURE_RATE
        } else {
            0.0
        };
        let given_up = if user.gives_up && self.holds >= 3 {
            PERIODIC_REMOVE_PROBABILITY
        } else {
            POLICY_REMOVAL_PROBABILITY
        };
        let (lost, fails) = (user.loses_output, user.fails);
        let memory = (self.memory - 1.0 + MEMORY_SPREAD) / (2.0 * MEMORY_SPREAD);
        let failing = if user.exit_hold.is_some() {
            RunOutcome::Held(HoldCause::Policy)
        } else {
            RunOutcome::FailingExit
        };
        [
            fault(HoldCause::MissingInput),
            (RunOutcome::Held(HoldCause::MountOutage), unmounted),
            (
                RunOutcome::Held(HoldCause::BadHost),
                bad_host_failure_probability(self.bad_share),
            ),
            fault(HoldCause::WrongUrl),
            (
                RunOutcome::Held(HoldCause::InputOutage),
                outage(self.down.input),
            ),
            (
                RunOutcome::Held(HoldCause::InputGlitch),
                transfer_chance(user.input),
            ),
            fault(HoldCause::MissingExecutable),
            (RunOutcome::Held(HoldCause::Site), pool.site_fault),
            (RunOutcome::Held(HoldCause::Person), user.holds),
            (RunOutcome::Held(HoldCause::Memory), memory.clamp(0.0, 1.0)),
            (RunOutcome::RemovedByPolicy, given_up),
            (failing, fails),
            fault(HoldCause::MissingOutput),
            (RunOutcome::Held(HoldCause::LostOutput), lost),
            (
                RunOutcome::Held(HoldCause::OutputOutage),
                outage(self.down.output),
            ),
            (
                RunOutcome::Held(HoldCause::OutputGlitch),
                transfer_chance(user.output),
            ),
        ]
    }

    /// Returns the probability that the next run succeeds.
    pub(super) fn success_probability(&self, pool: &SimulatedPool, user: &PoolUser) -> f64 {
        (1.0 - self.overrun_probability())
            * self
                .stop_chances(pool, user)
                .iter()
                .map(|(_, chance)| 1.0 - chance)
                .product::<f64>()
    }

    /// Draws the outcome of the next run.
    pub(super) fn draw_outcome(
        &self,
        pool: &SimulatedPool,
        user: &PoolUser,
        rng: &mut ChaCha8Rng,
    ) -> RunOutcome {
        if rng.random::<f64>() < self.overrun_probability() {
            return RunOutcome::Held(HoldCause::Duration);
        }
        let chances = self.stop_chances(pool, user);
        let met = chances
            .into_iter()
            .find(|(_, chance)| *chance > 0.0 && rng.random::<f64>() < *chance);
        met.map_or(RunOutcome::Success, |(outcome, _)| outcome)
    }

    fn overrun_probability(&self) -> f64 {
        if self.fault == Some(HoldCause::Duration) {
            0.95
        } else {
            OVERRUN_PROBABILITY
        }
    }

    /// Returns the condition with the outages at the times when input is fetched and when output is
    /// sent, and with the bad hosts and the missing file at the former.
    pub(super) fn with_resources_at(
        &self,
        input_ms: i64,
        output_ms: i64,
        pool: &SimulatedPool,
        user: &PoolUser,
    ) -> JobCondition {
        let [input, output, mount] = self.resource_outages(pool, user);
        let is_down = |outages: Option<&OutageTimes>, time_ms| {
            outages.is_some_and(|outages| outages.is_down(time_ms))
        };
        let is_supplied = self.supplied_ms.is_some_and(|at_ms| at_ms <= input_ms);
        JobCondition {
            fault: self.fault.filter(|_| !is_supplied),
            down: DataOutages {
                input: is_down(input, input_ms),
                output: is_down(output, output_ms),
                mount: is_down(mount, input_ms),
            },
            bad_share: pool.bad_hosts.share(input_ms),
            ..*self
        }
    }

    /// Lists the times at which a resource of the job fails or recovers, at which its file is supplied, or at
    /// which the share of bad hosts changes: after `after_ms` and up to `until_ms`, in no order.
    pub(super) fn switches_ms<'a>(
        &self,
        after_ms: i64,
        until_ms: i64,
        pool: &'a SimulatedPool,
        user: &PoolUser,
    ) -> impl Iterator<Item = i64> + use<'a> {
        self.resource_outages(pool, user)
            .into_iter()
            .flatten()
            .flat_map(move |outages| outages.switches_between(after_ms, until_ms))
            .copied()
            .chain(pool.bad_hosts.changes_between(after_ms, until_ms))
            .chain(
                self.supplied_ms
                    .filter(|at_ms| (after_ms + 1..=until_ms).contains(at_ms)),
            )
    }

    /// The outages of the origins of the job's input and output, and of its shared file system.
    fn resource_outages<'a>(
        &self,
        pool: &'a SimulatedPool,
        user: &PoolUser,
    ) -> [Option<&'a OutageTimes>; 3] {
        let origin = |place: usize| &pool.origins[place].outages;
        let mount = user.mount.filter(|_| self.reads_mount);
        [
            user.input.map(origin),
            user.output.map(origin),
            mount.map(|place| &pool.mounts[place].outages),
        ]
    }

    /// Returns true if the job mostly fails until somebody fixes it: it has a permanent fault, or
    /// its mean memory need is above the request.
    pub(super) fn is_permanent(&self) -> bool {
        self.fault.is_some() || self.memory > 1.0
    }

    /// Returns the condition after a person fixed `cause`.
    pub(super) fn after_repair(&self, cause: HoldCause) -> JobCondition {
        match cause {
            HoldCause::Memory => JobCondition {
                memory: self.memory / 2.0,
                ..*self
            },
            _ if self.fault == Some(cause) && cause != HoldCause::Duration => JobCondition {
                fault: None,
                ..*self
            },
            _ => *self,
        }
    }
}

/// The repair of a held job that may come before its release.
#[derive(Debug, Clone, Copy)]
pub(super) struct PossibleRepair<'a> {
    /// The repaired thing.
    pub(super) cause: HoldCause,
    /// Who releases the job.
    decider: ReleaseDecider,
    /// Probability that the release itself comes with the repair of this one job.
    pub(super) with_release: f64,
    /// The supply of the file that the job misses, if that is the repair.
    supply: Option<&'a FileSupply>,
}

impl<'a> PossibleRepair<'a> {
    /// Returns the repair of a job of `cluster` in `state`, which is held for `cause`, before a release by
    /// `decider`.
    pub(super) fn new(
        state: &JobCondition,
        cause: HoldCause,
        decider: ReleaseDecider,
        cluster: &'a JobCluster,
        user: &PoolUser,
    ) -> PossibleRepair<'a> {
        let supply = cluster.supply.as_ref();
        if let (Some(fault), Some(_)) = (state.fault, supply) {
            return PossibleRepair {
                cause: fault,
                decider,
                with_release: 0.0,
                supply,
            };
        }
        let is_by_hand = decider == ReleaseDecider::ByHand;
        PossibleRepair {
            cause,
            decider,
            with_release: if is_by_hand {
                user.repair.chance(cause)
            } else {
                0.0
            },
            supply: None,
        }
    }

    /// Returns the probability that a job that is held at `hold_ms` is repaired by its release at
    /// `release_ms`. Whoever supplies a file releases the jobs by hand then, so only releases by a policy
    /// come before.
    pub(super) fn chance(&self, hold_ms: i64, release_ms: i64) -> f64 {
        let Some(supply) = self.supply else {
            return self.with_release;
        };
        match self.decider {
            ReleaseDecider::Automatic => supply.chance(hold_ms, release_ms),
            ReleaseDecider::ByHand => supply.chance(hold_ms, i64::MAX),
        }
    }

    /// Returns the time at which the job, held at `hold_ms`, is due for a release by hand because its file
    /// is there, epoch ms.
    pub(super) fn due_ms(&self, hold_ms: i64) -> Option<i64> {
        let supplied_ms = self.awaited()?.supplied_ms;
        let pending = supplied_ms.filter(|at_ms| *at_ms > hold_ms);
        pending.map(|at_ms| at_ms + RELEASE_AFTER_SUPPLY_MS)
    }

    /// The supply for which a release by hand waits.
    fn awaited(&self) -> Option<&'a FileSupply> {
        self.supply
            .filter(|_| self.decider == ReleaseDecider::ByHand)
    }

    /// Lists the possible releases of a job of `user` that is held at `hold_ms`.
    fn releases(&self, hold_ms: i64, user: &PoolUser) -> Vec<PossibleRelease> {
        let mut releases = Vec::new();
        let awaited = self.awaited();
        if let Some(supply) = awaited {
            let (times_ms, probability) = supply.times_after(hold_ms);
            releases.extend(times_ms.map(|time_ms| PossibleRelease {
                probability,
                delay_ms: time_ms + RELEASE_AFTER_SUPPLY_MS - hold_ms,
                repaired: 1.0,
            }));
        }

        let supplied: f64 = releases.iter().map(|release| release.probability).sum();
        let delays_ms = user.release.delays_ms(self.decider, hold_ms);
        releases.extend(delays_ms.map(|delay_ms| PossibleRelease {
            probability: (1.0 - supplied) / DELAY_QUANTILES as f64,
            delay_ms,
            repaired: match awaited {
                Some(_) => 0.0,
                None => self.chance(hold_ms, hold_ms + delay_ms),
            },
        }));
        releases
    }
}

/// A possible time of a release.
#[derive(Debug, Clone, Copy)]
struct PossibleRelease {
    probability: f64,
    /// Time since the hold, ms.
    delay_ms: i64,
    /// Probability that the job is repaired by then.
    repaired: f64,
}

/// Returns the probability of success after a release, given the condition at the hold, while the
/// release time and the repair are still unknown. Shared resources continue as Markov chains, and
/// the delay has the distribution of the user's habit. The decision to release depends only on
/// facts up to the hold. The probability is therefore also valid for jobs that are never released.
pub(super) fn success_at_hold(
    state: &JobCondition,
    repair: &PossibleRepair<'_>,
    hold_ms: i64,
    pool: &SimulatedPool,
    user: &PoolUser,
) -> f64 {
    let by_data = DataChances::new(state, repair.cause, pool, user);
    let chances = repair.releases(hold_ms, user).into_iter().map(|release| {
        let bad_share = expected_share_after(state.bad_share, release.delay_ms);
        let is_sound = 1.0 - bad_host_failure_probability(bad_share);
        release.probability * is_sound * by_data.mean(state, release.delay_ms, release.repaired)
    });
    chances.sum()
}

/// Probabilities of success for all combinations of data outages, without faulty hosts.
struct DataChances {
    /// Possible combinations of outages, each with the probabilities of success as it is and after a
    /// repair.
    cases: Vec<(DataOutages, [f64; 2])>,
    has_input: bool,
    has_output: bool,
}

impl DataChances {
    fn new(
        state: &JobCondition,
        cause: HoldCause,
        pool: &SimulatedPool,
        user: &PoolUser,
    ) -> DataChances {
        let has_input = user.input.is_some();
        let has_output = user.output.is_some();
        let mut cases = Vec::with_capacity(8);
        for number in 0..8 {
            let down = DataOutages {
                input: number & 1 != 0,
                output: number & 2 != 0,
                mount: number & 4 != 0,
            };
            let is_impossible = down.input && !has_input
                || down.output && !has_output
                || down.mount && !state.reads_mount;
            if is_impossible {
                continue;
            }

            let state = JobCondition {
                down,
                bad_share: 0.0,
                ..*state
            };
            let as_is = state.success_probability(pool, user);
            let after_repair = state.after_repair(cause).success_probability(pool, user);
            cases.push((down, [as_is, after_repair]));
        }
        DataChances {
            cases,
            has_input,
            has_output,
        }
    }

    /// Averages over the possible outages `delay_ms` after `state`, with the probability `repaired` of a
    /// repair by then.
    fn mean(&self, state: &JobCondition, delay_ms: i64, repaired: f64) -> f64 {
        let later = |exists: bool, law: OutageLaw, is_down| {
            if exists {
                law.down_probability(is_down, delay_ms)
            } else {
                0.0
            }
        };
        let input = later(self.has_input, ORIGIN_OUTAGES, state.down.input);
        let output = later(self.has_output, ORIGIN_OUTAGES, state.down.output);
        let mount = later(state.reads_mount, MOUNT_OUTAGES, state.down.mount);
        let chance_of = |is_down, down: f64| if is_down { down } else { 1.0 - down };

        let mut sum = 0.0;
        for (down, [as_is, after_repair]) in &self.cases {
            let success = (1.0 - repaired) * as_is + repaired * after_repair;
            let chance = chance_of(down.input, input)
                * chance_of(down.output, output)
                * chance_of(down.mount, mount);
            sum += chance * success;
        }
        sum
    }
}
