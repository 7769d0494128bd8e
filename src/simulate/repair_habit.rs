//! A user's habit of fixing faults before a release.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::hold_cause::HoldCause;

/// Probabilities that a user fixes kinds of faults before a release by hand.
#[derive(Debug, Clone, Copy)]
pub(super) struct RepairHabit {
    /// Missing files.
    pub(super) files: f64,
    /// Wrong URLs.
    addresses: f64,
    /// Programs that do not write the declared output.
    programs: f64,
    /// Memory requests that are too low.
    memory: f64,
}

impl RepairHabit {
    /// Draws a habit. Most users fix either nearly every or nearly no fault, with one or two
    /// exceptions.
    pub(super) fn new(rng: &mut ChaCha8Rng) -> RepairHabit {
        let is_diligent = rng.random::<f64>() < 0.5;
        RepairHabit {
            files: draw_repair_share(is_diligent, rng),
            addresses: draw_repair_share(is_diligent, rng),
            programs: draw_repair_share(is_diligent, rng),
            memory: draw_repair_share(is_diligent, rng),
        }
    }

    /// Returns the probability that the user fixes `cause` before a release. Transient causes are
    /// never fixed.
    pub(super) fn chance(&self, cause: HoldCause) -> f64 {
        match cause {
            _ if cause.is_missing_file() => self.files,
            HoldCause::WrongUrl => self.addresses,
            HoldCause::MissingOutput => self.programs,
            HoldCause::Memory => self.memory,
            _ => 0.0,
        }
    }
}

fn draw_repair_share(is_diligent: bool, rng: &mut ChaCha8Rng) -> f64 {
    let as_usual = rng.random::<f64>() < 0.75;
    if is_diligent == as_usual {
        rng.random_range(0.75..1.0)
    } else {
        rng.random_range(0.0..0.15)
    }
}
