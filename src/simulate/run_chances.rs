//! The true probabilities of the outcomes of a job's next run, given its hidden condition.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::bad_hosts::{bad_host_failure_probability, expected_share_after};
use super::hold_cause::HoldCause;
use super::outages::{OutageLaw, OutageTimes};
use super::pool::{MOUNT_OUTAGES, ORIGIN_OUTAGES, SimulatedPool};
use super::pool_user::PoolUser;
use super::release_habit::ReleaseDecider;

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
/// Number of quantiles over which the distribution of the release delay is averaged.
const QUANTILES: u32 = 32;

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
    /// sent, and with the bad hosts at the former.
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
        JobCondition {
            down: DataOutages {
                input: is_down(input, input_ms),
                output: is_down(output, output_ms),
                mount: is_down(mount, input_ms),
            },
            bad_share: pool.bad_hosts.share(input_ms),
            ..*self
        }
    }

    /// Lists the times at which a resource of the job fails or recovers, or at which the share of
    /// bad hosts changes: after `after_ms` and up to `until_ms`, in no order.
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

/// Returns the probability that a release by `decider` comes with a repair of `cause`.
pub(super) fn repair_chance(user: &PoolUser, decider: ReleaseDecider, cause: HoldCause) -> f64 {
    if decider == ReleaseDecider::ByHand {
        user.repair.chance(cause)
    } else {
        0.0
    }
}

/// Returns the probability of success after a release, given the condition at the hold, while the
/// release time and the repair are still unknown. Shared resources continue as Markov chains, and
/// the delay has the distribution of the user's habit. The decision to release depends only on
/// facts up to the hold. The probability is therefore also valid for jobs that are never released.
pub(super) fn success_at_hold(
    state: &JobCondition,
    cause: HoldCause,
    decider: ReleaseDecider,
    hold_ms: i64,
    pool: &SimulatedPool,
    user: &PoolUser,
) -> f64 {
    let by_data = DataChances::new(
        state,
        repair_chance(user, decider, cause),
        cause,
        pool,
        user,
    );
    let mut sum = 0.0;
    for step in 0..QUANTILES {
        let quantile = (f64::from(step) + 0.5) / f64::from(QUANTILES);
        let delay_ms = user.release.delay_ms(decider, hold_ms, quantile);
        let bad_share = expected_share_after(state.bad_share, delay_ms);
        sum += (1.0 - bad_host_failure_probability(bad_share)) * by_data.mean(state, delay_ms);
    }
    sum / f64::from(QUANTILES)
}

/// Probabilities of success for all combinations of data outages, without faulty hosts.
struct DataChances {
    /// Possible combinations of outages, each with the probability of success.
    cases: Vec<(DataOutages, f64)>,
    has_input: bool,
    has_output: bool,
}

impl DataChances {
    fn new(
        state: &JobCondition,
        repair_probability: f64,
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
            cases.push((
                down,
                (1.0 - repair_probability) * as_is + repair_probability * after_repair,
            ));
        }
        DataChances {
            cases,
            has_input,
            has_output,
        }
    }

    /// Averages over the possible outages `delay_ms` after `state`.
    fn mean(&self, state: &JobCondition, delay_ms: i64) -> f64 {
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
        for (down, success) in &self.cases {
            let chance = chance_of(down.input, input)
                * chance_of(down.output, output)
                * chance_of(down.mount, mount);
            sum += chance * success;
        }
        sum
    }
}
