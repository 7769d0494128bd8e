//! The values of trials after some of their epochs → which of them go on.

pub mod asha;
pub mod hyperband;
