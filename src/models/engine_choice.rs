//! The choice between the engines that compute a network.

use serde::{Deserialize, Serialize};

/// The engine that computes a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum EngineChoice {
    /// The fused engine where it can, else candle.
    Auto,
    /// Kernels for an LSTM on a CPU.
    Fused,
    /// The operations of candle, for each architecture and device.
    Candle,
}
