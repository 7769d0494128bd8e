//! What is hidden about a job → the chances of each way its next run can end: the planted
//! probabilities.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::bad_hosts::{later_share, spoiling_chance};
use super::hold_cause::HoldCause;
use super::outages::OutageLaw;
use super::pool::{MOUNT, ORIGIN, SimulatedPool};
use super::pool_user::PoolUser;
use super::release_habit::ReleaseWay;

/// While an origin is down, so many transfers fail.
const OUTAGE_FAILS: f64 = 0.85;
/// While a shared file system is not mounted, so many jobs miss their input.
const UNMOUNTED_FAILS: f64 = 0.97;
/// Transfers of an origin that is up fail now and then.
const TRANSFER_FAILS: f64 = 0.0015;
/// Memory varies between runs by so much, evenly.
const MEMORY_SPREAD: f64 = 0.1;
/// A run beyond its allowed duration.
const TOO_LONG: f64 = 0.0002;
/// The access point removes a job.
const REMOVED_BY_POLICY: f64 = 0.002;
/// A user's `periodic_remove`, from the third hold on.
const GIVEN_UP: f64 = 0.3;
/// The release delay's distribution is averaged over so many quantiles.
const QUANTILES: u32 = 32;

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunOutcome {
    Success,
    FailingExit,
    RemovedByPolicy,
    Held(HoldCause),
}

/// Which of the places that a job's data are on are down: the origin of its input, that of its
/// output, the shared file system that it reads from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DataDown {
    pub(super) input: bool,
    pub(super) output: bool,
    pub(super) mount: bool,
}

/// What decides about a job's next run.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobCondition {
    /// A fault that holds every run.
    pub(super) fault: Option<HoldCause>,
    /// The memory that the job needs on average, over what it asks for.
    pub(super) memory: f64,
    /// Whether the job reads from its user's shared file system.
    pub(super) reads_mount: bool,
    pub(super) down: DataDown,
    /// The share of the pool that spoils runs.
    pub(super) bad_share: f64,
    /// How often the job was held so far.
    pub(super) holds: u32,
}

/// The chance that a transfer fails without a lasting reason, if there is one.
fn transfer_chance(origin: Option<usize>) -> f64 {
    if origin.is_some() {
        TRANSFER_FAILS
    } else {
        0.0
    }
}

impl JobCondition {
    /// The chances of what can stop a run, each given that nothing before it did, in the order a
    /// run meets them.
    fn stop_chances(&self, pool: &SimulatedPool, user: &PoolUser) -> [(RunOutcome, f64); 16] {
        let fault = |cause| {
            (
                RunOutcome::Held(cause),
                f64::from(u8::from(self.fault == Some(cause))),
            )
        };
        let outage = |is_down| if is_down { OUTAGE_FAILS } else { 0.0 };
        let unmounted = if self.down.mount {
            UNMOUNTED_FAILS
        } else {
            0.0
        };
        let given_up = if user.gives_up && self.holds >= 3 {
            GIVEN_UP
        } else {
            REMOVED_BY_POLICY
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
                spoiling_chance(self.bad_share),
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

    /// The probability that the next run ends well.
    pub(super) fn success_probability(&self, pool: &SimulatedPool, user: &PoolUser) -> f64 {
        (1.0 - self.too_long())
            * self
                .stop_chances(pool, user)
                .iter()
                .map(|(_, chance)| 1.0 - chance)
                .product::<f64>()
    }

    /// Draws how the next run ends.
    pub(super) fn draw_outcome(
        &self,
        pool: &SimulatedPool,
        user: &PoolUser,
        rng: &mut ChaCha8Rng,
    ) -> RunOutcome {
        if rng.random::<f64>() < self.too_long() {
            return RunOutcome::Held(HoldCause::Duration);
        }
        let chances = self.stop_chances(pool, user);
        let met = chances
            .into_iter()
            .find(|(_, chance)| *chance > 0.0 && rng.random::<f64>() < *chance);
        met.map_or(RunOutcome::Success, |(outcome, _)| outcome)
    }

    fn too_long(&self) -> f64 {
        if self.fault == Some(HoldCause::Duration) {
            0.95
        } else {
            TOO_LONG
        }
    }

    /// The state after somebody mended what `cause` was.
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

/// The chance that a release in `way` comes with a repair of what `cause` was.
pub(super) fn repair_chance(user: &PoolUser, way: ReleaseWay, cause: HoldCause) -> f64 {
    if way == ReleaseWay::ByHand {
        user.repair.chance(cause)
    } else {
        0.0
    }
}

/// The probability of success after a release whose moment and whose repair are not known yet,
/// given the state at the hold: what is shared goes on as Markov chains, and the delay has the
/// distribution of the user's habit. Whether a user releases the job at all depends on nothing that
/// comes after the hold, so the same holds for jobs that are never released.
pub(super) fn success_at_hold(
    state: &JobCondition,
    cause: HoldCause,
    way: ReleaseWay,
    hold_ms: i64,
    pool: &SimulatedPool,
    user: &PoolUser,
) -> f64 {
    let by_data = DataChances::new(state, repair_chance(user, way, cause), cause, pool, user);
    let mut sum = 0.0;
    for step in 0..QUANTILES {
        let quantile = (f64::from(step) + 0.5) / f64::from(QUANTILES);
        let delay_ms = user.release.delay_ms(way, hold_ms, quantile);
        let bad_share = later_share(state.bad_share, delay_ms);
        sum += (1.0 - spoiling_chance(bad_share)) * by_data.mean(state, delay_ms);
    }
    sum / f64::from(QUANTILES)
}

/// The probability of success, bad hosts aside, for every state of what holds a job's data.
struct DataChances {
    /// What is down, and how probably the job then ends well.
    cases: Vec<(DataDown, f64)>,
    has_input: bool,
    has_output: bool,
}

impl DataChances {
    fn new(
        state: &JobCondition,
        mended: f64,
        cause: HoldCause,
        pool: &SimulatedPool,
        user: &PoolUser,
    ) -> DataChances {
        let has_input = user.input.is_some();
        let has_output = user.output.is_some();
        let mut cases = Vec::with_capacity(8);
        for number in 0..8 {
            let down = DataDown {
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
            cases.push((down, (1.0 - mended) * as_is + mended * after_repair));
        }
        DataChances {
            cases,
            has_input,
            has_output,
        }
    }

    /// The mean over what may be down `delay_ms` after `state`.
    fn mean(&self, state: &JobCondition, delay_ms: i64) -> f64 {
        let later = |exists: bool, law: OutageLaw, is_down| {
            if exists {
                law.down_probability(is_down, delay_ms)
            } else {
                0.0
            }
        };
        let input = later(self.has_input, ORIGIN, state.down.input);
        let output = later(self.has_output, ORIGIN, state.down.output);
        let mount = later(state.reads_mount, MOUNT, state.down.mount);
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
