//! A wish to stop → the error that ends a fit.

use anyhow::{Result, ensure};

/// The fit was asked to stop before its end.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the fit was stopped")]
pub struct FitStopped;

/// Says whether a fit should stop. Solvers ask it between iterations, trees and epochs.
#[derive(Clone, Copy)]
pub(crate) struct StopSignal<'a> {
    is_set: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> StopSignal<'a> {
    /// The signal that is set once `is_set` says so.
    pub(crate) fn new(is_set: &'a (dyn Fn() -> bool + Sync)) -> StopSignal<'a> {
        StopSignal { is_set }
    }

    /// Fails with [`FitStopped`] where the signal is set.
    pub(crate) fn check(self) -> Result<()> {
        ensure!(!(self.is_set)(), FitStopped);
        Ok(())
    }
}
