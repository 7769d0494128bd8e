//! The words of the section `preprocessing`: enums for the content of samples, their labels, and
//! their splits.

use serde::{Deserialize, Serialize};

/// The time range that a sample's frames cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum WindowPosition {
    /// The frames end just before the release.
    Release,
    /// The frames end at the hold.
    Hold,
    /// The frames begin at the submission.
    Life,
}

/// The rule by which other jobs in the window are chosen for a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ContextChoice {
    /// Drawn at random, all equally likely.
    Uniform,
    /// The most recently active jobs.
    Recent,
    /// Drawn from the owner's jobs first, then from the others.
    SameOwnerFirst,
    /// The jobs that share most with the held one, also ended ones.
    Related,
}

/// The kind of states of a job that a sample distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Vocabulary {
    /// One state per event number.
    Events,
    /// The same, but one state per hold code instead of event 012.
    HoldCodes,
}

/// The label of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LabelKind {
    /// The outcome of this hold's release.
    Next,
    /// The final outcome of the job, as published.
    Final,
}

/// A group of static features: facts about a hold that are given beside the frames.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureGroup {
    /// The hold itself: its code, the kind of its subcode, earlier holds, times.
    Hold,
    /// CPUs, GPUs, memory and disk that the job requested at submission.
    Request,
    /// Outcomes of earlier holds for the same reason.
    RecordReason,
    /// Outcomes of earlier holds of the same cluster.
    RecordCluster,
    /// Outcomes of earlier holds of the same owner and batch.
    RecordBatch,
    /// Outcomes of earlier holds of the same owner with the same code and subcode.
    RecordOwner,
    /// Outcomes of earlier holds with the same code and subcode.
    RecordCode,
    /// Outcomes of all earlier holds.
    RecordPool,
    /// Outcomes of earlier holds whose last run was on the same machine.
    RecordHost,
    /// Outcomes of earlier holds whose last run was in the same slot of the same machine.
    RecordSlot,
    /// Outcomes of jobs that were not held before they ended: of the cluster, the batch, the
    /// machine and the pool.
    FirstRuns,
    /// Share of runs after the release of similar holds that got past the point of the hold.
    NextRuns,
    /// Shares of the cluster's jobs in each state, and the number of its jobs.
    ClusterState,
    /// Holds, releases and submissions in the last frames.
    RecentEvents,
    /// The run that ended with the hold.
    LastRun,
}

/// The holds of a job that become samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum HoldCycles {
    All,
    First,
}

/// The rule by which samples are split into train, validation and test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum SplitMethod {
    /// By prediction time: learn from outcomes decided before the next split begins.
    Time,
    /// By cluster, at random.
    Cluster,
    /// By sample, at random, as published.
    Random,
}

/// The treatment of clusters with samples in several splits, for splits by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SplitClusters {
    /// The samples stay in their splits: a model in use may see earlier samples of a cluster, too.
    #[default]
    Keep,
    /// Only the samples in the cluster's latest split are kept; those in earlier splits are
    /// dropped. This selects by the outcome, because a job that fails is held again later.
    Separate,
}

/// Implements `Display` with the words that a configuration file uses.
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
    WindowPosition,
    LabelKind,
    SplitMethod
);
