//! A wish to stop → the error that ends a fit.

use anyhow::{Result, ensure};

/// The fit was asked to stop before its end.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the fit was stopped")]
pub struct FitStopped;

/// Says whether to stop; asked between iterations, trees and epochs.
pub(super) type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// Fails with [`FitStopped`] where `stop` says so.
pub(super) fn ask(stop: Stop<'_>) -> Result<()> {
    ensure!(!stop(), FitStopped);
    Ok(())
}
