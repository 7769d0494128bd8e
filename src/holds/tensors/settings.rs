//! A configuration → what decides the samples of a log.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::format::TENSORS_FORMAT;
use super::static_features::static_feature_count;
use poolcast_config::parameters::MOST_JOBS_OR_FRAMES;
use poolcast_config::{
    Config, ContextChoice, FeatureGroup, HoldCycles, LabelKind, SampleParameters, SplitClusters,
    SplitMethod, StateEvents, Vocabulary, WindowPlace,
};
use poolcast_base::error::hinted;
use poolcast_base::manifest;

/// The most cells of one sample, 16 MiB: more than a thousand times as many as the published search
/// space has at most.
const MOST_CELLS: usize = 1 << 24;

/// Everything that decides what the samples of a log are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TensorSettings {
    /// Jobs in a sample, the primary one included.
    pub j: usize,
    /// Frames in a sample.
    pub m: usize,
    /// Seconds per frame.
    #[serde(rename = "timeframe_len")]
    pub timeframe_len_s: u32,
    /// Which other jobs stand beside the held one.
    pub context: ContextChoice,
    /// The states of a job.
    pub vocabulary: Vocabulary,
    /// The events that are states.
    #[serde(default)]
    pub states: StateEvents,
    /// Where the frames stand.
    pub window: WindowPlace,
    /// What a sample is labelled with.
    pub label: LabelKind,
    /// Which holds become samples.
    pub cycles: HoldCycles,
    /// What stands beside the frames, in the order of the groups and each once.
    pub features: Vec<FeatureGroup>,
    /// How samples are divided.
    pub split: SplitMethod,
    /// Whether a cluster may have samples on two sides.
    #[serde(default)]
    pub split_clusters: SplitClusters,
    /// The shares of train, validate and test.
    pub fractions: [f64; 3],
    /// Event numbers that are no state.
    pub ignore_events: Vec<u16>,
    /// Hold codes that nobody asks a model about.
    pub exclude_hold_codes: Vec<i32>,
    /// The root seed.
    pub seed: u64,
}

impl TensorSettings {
    /// The settings in `config`, whose samples must leave nothing to draw.
    ///
    /// # Errors
    /// Fails for a distribution, for a value out of range, and for samples of a size that nobody
    /// means.
    pub fn from_config(config: &Config) -> Result<TensorSettings> {
        let preprocessing = &config.preprocessing;
        let SampleParameters {
            j,
            m,
            timeframe_len_s,
            context,
            vocabulary,
            states,
        } = preprocessing.parameters.trial()?;
        states.check(&preprocessing.ignore_events)?;
        let mut features = preprocessing.features.clone();
        features.sort_unstable();
        features.dedup();
        let settings = TensorSettings {
            j,
            m,
            timeframe_len_s,
            context,
            vocabulary,
            states,
            window: preprocessing.window,
            label: preprocessing.label,
            cycles: preprocessing.cycles,
            features,
            split: preprocessing.split,
            split_clusters: preprocessing.split_clusters,
            fractions: preprocessing.fractions,
            ignore_events: preprocessing.ignore_events.clone(),
            exclude_hold_codes: preprocessing.exclude_hold_codes.clone(),
            seed: config.seed,
        };
        settings.check()?;
        Ok(settings)
    }

    /// `s`: how many static features a sample has.
    pub fn s(&self) -> usize {
        static_feature_count(&self.features)
    }

    /// Fails for samples of a size that nobody means.
    pub(super) fn check(&self) -> Result<()> {
        let TensorSettings {
            j,
            m,
            timeframe_len_s,
            ..
        } = *self;
        let range = 1..=MOST_JOBS_OR_FRAMES as usize;
        ensure!(
            range.contains(&j) && range.contains(&m) && timeframe_len_s > 0,
            "`j` and `m` must be between 1 and {MOST_JOBS_OR_FRAMES}, and a frame has a second at least"
        );
        ensure!(
            j * m <= MOST_CELLS,
            hinted(
                format!(
                    "samples of {} and {} have {} each, and {} are the most",
                    poolcast_base::output::counted(j, "job"),
                    poolcast_base::output::counted(m, "frame"),
                    poolcast_base::output::counted(j * m, "cell"),
                    poolcast_base::output::with_commas(MOST_CELLS as u64)
                ),
                "choose a smaller `j` or `m`; the published search space has 100 each at most"
            )
        );
        Ok(())
    }

    /// The digest of everything that tensors made from the events `events_key` depend on.
    pub fn key(&self, events_key: &str) -> Result<String> {
        manifest::key(&(TENSORS_FORMAT.version, self, events_key))
    }
}
