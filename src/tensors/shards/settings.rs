//! The settings that determine the samples of a log, read from a configuration.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::format::TENSORS_FORMAT;
use crate::codes::SHARED_BITS;
use crate::history::static_feature_count;
use crate::preprocessing_config::PreprocessingConfig;
use poolcast_base::error::hinted;
use poolcast_base::manifest;
use poolcast_config::parameters::MAX_JOBS_OR_FRAMES;
use poolcast_config::{
    ContextChoice, FeatureGroup, HoldCycles, LabelKind, SampleParameters, SplitClusters,
    SplitMethod, StateEvents, Vocabulary, WindowPosition,
};

/// Maximum number of cells per sample, 16 MiB. The published search space needs less than a
/// thousandth of this.
const MAX_CELLS: usize = 1 << 24;

/// All settings that determine the samples of a log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TensorSettings {
    /// Jobs in a sample, the primary one included.
    pub j: usize,
    /// Frames in a sample.
    pub m: usize,
    /// Seconds per frame.
    #[serde(rename = "timeframe_len")]
    pub timeframe_len_s: u32,
    /// Choice of the other jobs in a sample.
    pub context: ContextChoice,
    /// The states of a job.
    pub vocabulary: Vocabulary,
    /// The events that count as states; `None` if all do.
    #[serde(default)]
    pub states: StateEvents,
    /// Position of the frames.
    pub window: WindowPosition,
    /// Rule for the labels of samples.
    pub label: LabelKind,
    /// The holds that become samples.
    pub cycles: HoldCycles,
    /// Groups of static features, in their order and without duplicates.
    pub features: Vec<FeatureGroup>,
    /// True if samples also have outcome tokens.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outcomes: bool,
    /// Method of splitting the samples.
    pub split: SplitMethod,
    /// Rule for clusters with samples in two splits.
    #[serde(default)]
    pub split_clusters: SplitClusters,
    /// The shares of train, validation and test.
    pub fractions: [f64; 3],
    /// Event numbers that are not a state.
    pub ignore_events: Vec<u16>,
    /// Hold codes that get no prediction.
    pub exclude_hold_codes: Vec<i32>,
    /// The root seed.
    pub seed: u64,
}

impl TensorSettings {
    /// Reads the settings in `preprocessing`, whose sample parameters must all be single values.
    ///
    /// # Errors
    /// Fails for a distribution, for a value out of range, and for samples of an unreasonable size.
    pub fn new(preprocessing: &PreprocessingConfig, seed: u64) -> Result<TensorSettings> {
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
            outcomes: preprocessing.outcomes,
            split: preprocessing.split,
            split_clusters: preprocessing.split_clusters,
            fractions: preprocessing.fractions,
            ignore_events: preprocessing.ignore_events.clone(),
            exclude_hold_codes: preprocessing.exclude_hold_codes.clone(),
            seed,
        };
        settings.check()?;
        Ok(settings)
    }

    /// Returns `s`, the number of static features of a sample.
    pub fn s(&self) -> usize {
        static_feature_count(&self.features)
    }

    /// Returns the number of bits for each job that say what it shares with the held one; 0 if the
    /// samples do not have them.
    pub fn shared_bits(&self) -> usize {
        match self.context {
            ContextChoice::Related => SHARED_BITS,
            ContextChoice::Uniform | ContextChoice::Recent | ContextChoice::SameOwnerFirst => 0,
        }
    }

    /// Returns the number of bytes of a sample that say what its jobs share.
    pub fn shared_bytes(&self) -> usize {
        if self.shared_bits() > 0 { self.j } else { 0 }
    }

    /// Rejects samples of an unreasonable size.
    ///
    /// # Errors
    /// Fails if the numbers of jobs or frames, or their product, are out of range.
    pub fn check(&self) -> Result<()> {
        let TensorSettings {
            j,
            m,
            timeframe_len_s,
            ..
        } = *self;
        let range = 1..=MAX_JOBS_OR_FRAMES as usize;
        ensure!(
            range.contains(&j) && range.contains(&m) && timeframe_len_s > 0,
            "`j` and `m` must be between 1 and {MAX_JOBS_OR_FRAMES}, and a frame at least 1 second long"
        );
        ensure!(
            j * m <= MAX_CELLS,
            hinted(
                format!(
                    "samples of {} and {} have {} each, and the maximum is {}",
                    poolcast_base::output::counted(j, "job"),
                    poolcast_base::output::counted(m, "frame"),
                    poolcast_base::output::counted(j * m, "cell"),
                    poolcast_base::output::with_commas(MAX_CELLS as u64)
                ),
                "choose a smaller `j` or `m`; the published search space has at most 100 of each"
            )
        );
        Ok(())
    }

    /// Returns the digest of all inputs of tensors that are made from the events `events_key`.
    pub fn key(&self, events_key: &str) -> Result<String> {
        manifest::key(&(TENSORS_FORMAT.version, self, events_key))
    }
}

#[cfg(test)]
impl TensorSettings {
    /// Returns the settings in the default configuration.
    pub(crate) fn of_defaults() -> TensorSettings {
        use poolcast_config::{DEFAULT, yaml};

        /// The keys of the configuration that determine samples.
        #[derive(Deserialize)]
        struct SampleKeys {
            seed: u64,
            preprocessing: PreprocessingConfig,
        }

        let keys: SampleKeys = yaml::read(DEFAULT).expect("the defaults");
        TensorSettings::new(&keys.preprocessing, keys.seed).expect("settings")
    }
}
