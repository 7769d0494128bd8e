//! Pruners: decide from the values after some epochs which trials continue.

pub mod asha;
pub mod hyperband;
