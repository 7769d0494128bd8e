//! A user and a fault → how often the user mends it before a release.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::hold_cause::HoldCause;

/// How often a user mends what before a release by hand.
#[derive(Debug, Clone, Copy)]
pub(super) struct RepairHabit {
    /// Files that are not there.
    files: f64,
    /// Addresses that are wrong.
    addresses: f64,
    /// Programs that do not write what they declare.
    programs: f64,
    /// Requests for too little memory.
    memory: f64,
}

impl RepairHabit {
    /// Most people mend either nearly everything or nearly nothing; each has a fault or two that
    /// they treat otherwise.
    pub(super) fn new(rng: &mut ChaCha8Rng) -> RepairHabit {
        let mends = rng.random::<f64>() < 0.5;
        RepairHabit {
            files: share_mended(mends, rng),
            addresses: share_mended(mends, rng),
            programs: share_mended(mends, rng),
            memory: share_mended(mends, rng),
        }
    }

    /// The chance that the user mends what `cause` was; nobody mends what passes by itself.
    pub(super) fn chance(&self, cause: HoldCause) -> f64 {
        match cause {
            HoldCause::MissingInput | HoldCause::MissingExecutable => self.files,
            HoldCause::WrongUrl => self.addresses,
            HoldCause::MissingOutput => self.programs,
            HoldCause::Memory => self.memory,
            _ => 0.0,
        }
    }
}

fn share_mended(mends: bool, rng: &mut ChaCha8Rng) -> f64 {
    let as_usual = rng.random::<f64>() < 0.75;
    if mends == as_usual {
        rng.random_range(0.75..1.0)
    } else {
        rng.random_range(0.0..0.15)
    }
}
