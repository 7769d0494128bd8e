//! What is hidden about a job → the chances of each way its next run can end: the planted probabilities.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::habits::Way;
use super::outages::down_chance;
use super::pool::{Pool, User};

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

/// Why a job is held: what the truth knows, and the code often does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The user held it.
    Person,
    /// Its input is missing on the access point, until somebody puts it there.
    MissingInput,
    /// The address of its input is wrong, until somebody corrects it.
    WrongUrl,
    /// The origin of its input is down.
    InputOutage,
    /// The transfer of its input failed without a lasting reason.
    InputGlitch,
    /// Its executable is missing, until somebody puts it there.
    MissingExecutable,
    /// The site could not start it.
    Site,
    /// It used more memory than it asked for.
    Memory,
    /// It ran longer than allowed.
    Duration,
    /// The user's policy holds failing exits.
    Policy,
    /// It never writes the output it declares, until somebody corrects that.
    MissingOutput,
    /// This run did not write its output.
    LostOutput,
    /// The origin of its output is down.
    OutputOutage,
    /// The transfer of its output failed without a lasting reason.
    OutputGlitch,
}

impl Cause {
    /// All causes; a truth file holds their places in this list.
    pub const ALL: [Cause; 14] = [
        Cause::Person,
        Cause::MissingInput,
        Cause::WrongUrl,
        Cause::InputOutage,
        Cause::InputGlitch,
        Cause::MissingExecutable,
        Cause::Site,
        Cause::Memory,
        Cause::Duration,
        Cause::Policy,
        Cause::MissingOutput,
        Cause::LostOutput,
        Cause::OutputOutage,
        Cause::OutputGlitch,
    ];

    /// Its name in truth files.
    pub fn name(self) -> String {
        let pieces = format!("{self:?}");
        let dashed = pieces.chars().enumerate().flat_map(|(at, letter)| {
            let dash = (at > 0 && letter.is_ascii_uppercase()).then_some('-');
            dash.into_iter().chain([letter.to_ascii_lowercase()])
        });
        dashed.collect()
    }
}

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Success,
    FailingExit,
    RemovedByPolicy,
    Held(Cause),
}

/// What decides about a job's next run.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    /// A fault that holds every run.
    pub(super) fault: Option<Cause>,
    /// The memory that the job needs on average, over what it asks for.
    pub(super) memory: f64,
    /// Whether the origins of input and output are down.
    pub(super) down: (bool, bool),
    /// How often the job was held so far.
    pub(super) holds: u32,
}

impl State {
    /// The chances of what can stop a run, each given that nothing before it did, in the order a run meets them.
    fn chances(&self, pool: &Pool, user: &User) -> [(Outcome, f64); 14] {
        let fault = |cause| {
            (
                Outcome::Held(cause),
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
            Outcome::Held(Cause::Policy)
        } else {
            Outcome::FailingExit
        };
        [
            fault(Cause::MissingInput),
            fault(Cause::WrongUrl),
            (Outcome::Held(Cause::InputOutage), outage(self.down.0)),
            (Outcome::Held(Cause::InputGlitch), glitch(user.input)),
            fault(Cause::MissingExecutable),
            (Outcome::Held(Cause::Site), pool.site_fault),
            (Outcome::Held(Cause::Person), user.holds),
            (Outcome::Held(Cause::Memory), memory.clamp(0.0, 1.0)),
            (Outcome::RemovedByPolicy, given_up),
            (failing, fails),
            fault(Cause::MissingOutput),
            (Outcome::Held(Cause::LostOutput), lost),
            (Outcome::Held(Cause::OutputOutage), outage(self.down.1)),
            (Outcome::Held(Cause::OutputGlitch), glitch(user.output)),
        ]
    }

    /// The probability that the next run ends well.
    pub(super) fn success(&self, pool: &Pool, user: &User) -> f64 {
        (1.0 - self.too_long())
            * self
                .chances(pool, user)
                .iter()
                .map(|(_, chance)| 1.0 - chance)
                .product::<f64>()
    }

    /// Draws how the next run ends.
    pub(super) fn draw(&self, pool: &Pool, user: &User, rng: &mut ChaCha8Rng) -> Outcome {
        if rng.random::<f64>() < self.too_long() {
            return Outcome::Held(Cause::Duration);
        }
        let chances = self.chances(pool, user);
        let met = chances
            .into_iter()
            .find(|(_, chance)| *chance > 0.0 && rng.random::<f64>() < *chance);
        met.map_or(Outcome::Success, |(outcome, _)| outcome)
    }

    fn too_long(&self) -> f64 {
        if self.fault == Some(Cause::Duration) {
            0.95
        } else {
            TOO_LONG
        }
    }

    /// The state after somebody mended what `cause` was.
    pub(super) fn mended(&self, cause: Cause) -> State {
        match cause {
            Cause::Memory => State {
                memory: self.memory / 2.0,
                ..*self
            },
            _ if self.fault == Some(cause) && cause != Cause::Duration => State {
                fault: None,
                ..*self
            },
            _ => *self,
        }
    }
}

/// The chance that a release in `way` comes with a repair.
pub(super) fn mend_chance(user: &User, way: Way) -> f64 {
    if way == Way::ByHand { user.fixes } else { 0.0 }
}

/// The probability of success after a release whose moment and whose repair are not known yet, given the state at the
/// hold: the origins go on as Markov chains, and the delay has the distribution of the user's habit.
pub(super) fn success_at_hold(
    state: &State,
    cause: Cause,
    way: Way,
    hold_ms: i64,
    pool: &Pool,
    user: &User,
) -> f64 {
    let mend = mend_chance(user, way);
    let at = |down| {
        let state = State { down, ..*state };
        (1.0 - mend) * state.success(pool, user) + mend * state.mended(cause).success(pool, user)
    };
    let ends = [
        at((false, false)),
        at((false, true)),
        at((true, false)),
        at((true, true)),
    ];
    let given = |origin: Option<usize>, is_down, delay_ms| {
        origin.map_or(0.0, |_| down_chance(is_down, delay_ms))
    };
    let one = |step: u32| {
        let quantile = (f64::from(step) + 0.5) / f64::from(QUANTILES);
        let delay_ms = user.release.delay_ms(way, hold_ms, quantile);
        let input = given(user.input, state.down.0, delay_ms);
        let output = given(user.output, state.down.1, delay_ms);
        (1.0 - input) * ((1.0 - output) * ends[0] + output * ends[1])
            + input * ((1.0 - output) * ends[2] + output * ends[3])
    };
    (0..QUANTILES).map(one).sum::<f64>() / f64::from(QUANTILES)
}
