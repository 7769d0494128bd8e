//! The words of the section `provision.model`: enums for the kind, the size and the target of a
//! wait model.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kinds of wait models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[clap(rename_all = "snake_case")]
pub enum WaitModelName {
    /// Gradient boosted trees on the features
    Xgb,
    /// A random forest on the features
    Rf,
    /// A multilayer perceptron on the features
    Nn,
    /// A transformer on the snapshots
    Transformer,
    /// A mixture of transformers on the snapshots
    Moe,
    /// Convolutions over the snapshots
    Convolution,
    /// An LSTM over the snapshots
    Lstm,
    /// A head on a given model, trained by policy gradient
    PolicyGradient,
    /// The values of submitting now and of continuing, on the features, by Q-learning
    Dqn,
}

impl fmt::Display for WaitModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The size of the network of a wait model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum WaitModelSize {
    /// For CPUs
    Small,
    /// The size that the project Mirage published
    Published,
}

/// The quantity that a wait model predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum WaitModelTarget {
    /// Quantiles of the wait
    Wait,
    /// Time from the predecessor's end to the successor's start, as published
    Reward,
}
