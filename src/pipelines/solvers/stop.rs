//! Stop signal: lets a caller end a fit early, with an error.

use anyhow::{Result, ensure};

/// Error of a fit that its caller stopped.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the fit was stopped")]
pub struct FitStopped;

/// Signal that a fit should stop. Solvers check it between iterations, trees and epochs.
#[derive(Clone, Copy)]
pub(crate) struct StopSignal<'a> {
    is_set: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> StopSignal<'a> {
    /// Creates a signal that is set once `is_set` returns true.
    pub(crate) fn new(is_set: &'a (dyn Fn() -> bool + Sync)) -> StopSignal<'a> {
        StopSignal { is_set }
    }

    /// Fails with [`FitStopped`] if the signal is set.
    pub(crate) fn check(self) -> Result<()> {
        ensure!(!(self.is_set)(), FitStopped);
        Ok(())
    }
}
