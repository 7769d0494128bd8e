//! The words of the section `preprocessing`: what a sample shows, how it is labelled, and how samples
//! are divided.

use serde::{Deserialize, Serialize};

/// Where a sample's frames stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum WindowPlace {
    /// They end just before the release.
    Release,
    /// They end at the hold.
    Hold,
    /// They begin at the submission.
    Life,
}

/// Which other jobs a sample shows, of those that exist in its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ContextChoice {
    /// Drawn, each as likely.
    Uniform,
    /// Those whose last events are the latest.
    Recent,
    /// Drawn among the owner's jobs, then among the others.
    SameOwnerFirst,
}

/// The states of a job that a sample tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Vocabulary {
    /// One for each event number.
    Events,
    /// The same, and one for each hold code in place of event 012.
    HoldCodes,
}

/// What a sample is labelled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LabelKind {
    /// Whether the job succeeds next after this hold's release.
    Next,
    /// Whether the job terminated normally in the end, as published.
    Final,
}

/// What is known of a hold beside the frames: a group of static features.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureGroup {
    /// The hold itself: its code, the kind of its subcode, earlier holds, times.
    Hold,
    /// What the job asked for when it was submitted.
    Request,
    /// What became of holds for the same reason.
    RecordReason,
    /// Of those of the same cluster.
    RecordCluster,
    /// Of those of the same owner and batch.
    RecordBatch,
    /// Of those of the same owner with the same code and subcode.
    RecordOwner,
    /// Of those with the same code and subcode.
    RecordCode,
    /// Of all.
    RecordPool,
    /// Of those whose last run was on the same machine.
    RecordHost,
    /// And in the same slot of it.
    RecordSlot,
    /// How jobs ended that had not been held: of the cluster, the batch, the machine and the pool.
    FirstRuns,
    /// Whether the runs after the releases of like holds got past the point of the hold.
    NextRuns,
    /// How many jobs of the cluster are in each state.
    ClusterState,
    /// What was held, released and submitted in the last frames.
    RecentEvents,
    /// The run that ended with the hold.
    LastRun,
}

/// Which holds of a job become samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum HoldCycles {
    All,
    First,
}

/// How samples are divided into train, validate and test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum SplitMethod {
    /// By the moment of asking: learn from what was decided before the next side begins.
    Time,
    /// By cluster, at random.
    Cluster,
    /// By sample, at random, as published.
    Random,
}

/// Whether a cluster may have samples on two sides of a split by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SplitClusters {
    /// It may, as it may where the model is used.
    #[default]
    Keep,
    /// What it has on earlier sides than its latest is left out. That depends on the outcome: a job
    /// that fails is held again, later.
    Separate,
}

/// Shows words as they are written in a file.
macro_rules! shown_as_written {
    ($($name:ty),+) => {$(
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.serialize(f)
            }
        }
    )+};
}
shown_as_written!(
    ContextChoice,
    Vocabulary,
    WindowPlace,
    LabelKind,
    SplitMethod
);
