//! What is hidden about a job → the chances of each way its next run can end: the planted
//! probabilities.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::hold_cause::HoldCause;
use super::outages::down_probability;
use super::pool::{PoolUser, SimulatedPool};
use super::release_habit::ReleaseWay;

/// While an origin is down, so many transfers fail.
const OUTAGE_FAILS: f64 = 0.85;
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

/// Which of the origins that a job's data are on are down.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OriginsDown {
    pub(super) input: bool,
    pub(super) output: bool,
}

/// What decides about a job's next run.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobCondition {
    /// A fault that holds every run.
    pub(super) fault: Option<HoldCause>,
    /// The memory that the job needs on average, over what it asks for.
    pub(super) memory: f64,
    pub(super) down: OriginsDown,
    /// How often the job was held so far.
    pub(super) holds: u32,
}

impl JobCondition {
    /// The chances of what can stop a run, each given that nothing before it did, in the order a
    /// run meets them.
    fn stop_chances(&self, pool: &SimulatedPool, user: &PoolUser) -> [(RunOutcome, f64); 14] {
        let fault = |cause| {
            (
                RunOutcome::Held(cause),
                f64::from(u8::from(self.fault == Some(cause))),
            )
        };
        let outage = |is_down| if is_down { OUTAGE_FAILS } else { 0.0 };
        let glitch = |origin: Option<usize>| {
            if origin.is_some() {
                TRANSFER_FAILS
            } else {
                0.0
            }
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
            fault(HoldCause::WrongUrl),
            (
                RunOutcome::Held(HoldCause::InputOutage),
                outage(self.down.input),
            ),
            (RunOutcome::Held(HoldCause::InputGlitch), glitch(user.input)),
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
                glitch(user.output),
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

/// The chance that a release in `way` comes with a repair.
pub(super) fn repair_chance(user: &PoolUser, way: ReleaseWay) -> f64 {
    if way == ReleaseWay::ByHand {
        user.fixes
    } else {
        0.0
    }
}

/// The probability of success after a release whose moment and whose repair are not known yet,
/// given the state at the hold: the origins go on as Markov chains, and the delay has the
/// distribution of the user's habit.
pub(super) fn success_at_hold(
    state: &JobCondition,
    cause: HoldCause,
    way: ReleaseWay,
    hold_ms: i64,
    pool: &SimulatedPool,
    user: &PoolUser,
) -> f64 {
    let mend = repair_chance(user, way);
    let at = |input, output| {
        let down = OriginsDown { input, output };
        let state = JobCondition { down, ..*state };
        (1.0 - mend) * state.success_probability(pool, user)
            + mend * state.after_repair(cause).success_probability(pool, user)
    };
    let ends = [
        at(false, false),
        at(false, true),
        at(true, false),
        at(true, true),
    ];
    let given = |origin: Option<usize>, is_down, delay_ms| {
        origin.map_or(0.0, |_| down_probability(is_down, delay_ms))
    };
    let one = |step: u32| {
        let quantile = (f64::from(step) + 0.5) / f64::from(QUANTILES);
        let delay_ms = user.release.delay_ms(way, hold_ms, quantile);
        let input = given(user.input, state.down.input, delay_ms);
        let output = given(user.output, state.down.output, delay_ms);
        (1.0 - input) * ((1.0 - output) * ends[0] + output * ends[1])
            + input * ((1.0 - output) * ends[2] + output * ends[3])
    };
    (0..QUANTILES).map(one).sum::<f64>() / f64::from(QUANTILES)
}
