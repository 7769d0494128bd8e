//! A network together with the scales of its inputs and outputs.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::column_scales::ColumnScales;
use super::series::{FrozenNetwork, SeriesDesign, SeriesNetwork};
use poolcast_base::manifest;
use poolcast_base::shard::{ArtefactFormat, ShardColumn, ShardLayout};
use poolcast_models::Device;

/// Name of the network's file in a model directory.
pub const NETWORK_FILE: &str = "network.safetensors";

/// A network for predictions on the CPU.
#[derive(Debug)]
pub struct ScaledNetwork {
    scales: NetworkScales,
    weights: Vec<f32>,
    parameter_count: usize,
    network: FrozenNetwork,
}

/// Scales that normalise a network's inputs and outputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkScales {
    /// Scales of the columns of a frame.
    pub inputs: ColumnScales,
    /// Scale of the target, one column.
    pub target: ColumnScales,
}

/// Metadata in the network's file, next to the weights.
#[derive(Serialize, Deserialize)]
struct NetworkNotes {
    design: SeriesDesign,
    scales: NetworkScales,
}

impl ScaledNetwork {
    /// Creates the network from its weights.
    ///
    /// # Errors
    /// Fails if `weights` or `scales` do not fit the design.
    pub fn new(
        design: SeriesDesign,
        scales: NetworkScales,
        weights: &[f32],
    ) -> Result<ScaledNetwork> {
        let network = SeriesNetwork::with_weights(design, weights, &Device::Cpu)?;
        ensure!(
            scales.inputs.column_count() == design.columns && scales.target.column_count() == 1,
            "the network has {} columns, and scales for {}",
            design.columns,
            scales.inputs.column_count()
        );
        Ok(ScaledNetwork {
            scales,
            network: network.freeze()?,
            parameter_count: network.parameter_count(),
            weights: weights.to_vec(),
        })
    }

    /// Returns the number of parameters.
    pub fn parameter_count(&self) -> usize {
        self.parameter_count
    }

    /// Writes the network into `dir` and returns the digest of its file.
    pub fn write(&self, dir: &Path, format: ArtefactFormat) -> Result<String> {
        let notes = NetworkNotes {
            design: *self.network.design(),
            scales: self.scales.clone(),
        };
        let columns = vec![("weights".to_owned(), ShardColumn::vector(&self.weights))];
        let layout = ShardLayout::new(format, &notes, columns)?;
        layout.write(&dir.join(NETWORK_FILE))?;
        Ok(manifest::Checksum::of(layout.parts()))
    }

    /// Reads the network in `dir`, whose file must have the digest `xxh3`.
    pub fn read(dir: &Path, xxh3: &str, format: ArtefactFormat) -> Result<ScaledNetwork> {
        let shard = manifest::open_shard(dir, NETWORK_FILE, xxh3, format)?;
        let notes: NetworkNotes = shard.notes()?;
        ScaledNetwork::new(notes.design, notes.scales, shard.column("weights")?)
            .with_context(|| format!("cannot use `{}`", shard.path().display()))
    }

    /// Predicts the outputs for a sample, in the unit of the target.
    ///
    /// # Errors
    /// Fails for a sample of another length.
    pub fn outputs(&self, sample: &[f32]) -> Result<Vec<f64>> {
        let outputs = self.network.outputs(&self.normalised(sample))?;
        Ok(self.restored(&outputs))
    }

    /// Returns the length of [`ScaledNetwork::inner_outputs`].
    pub fn inner_output_count(&self) -> usize {
        self.network.design().inner_outputs()
    }

    /// Like [`ScaledNetwork::outputs`], but for a mixture returns the outputs of each of its
    /// networks.
    pub fn inner_outputs(&self, sample: &[f32]) -> Result<Vec<f64>> {
        let outputs = self.network.inner_outputs(&self.normalised(sample))?;
        Ok(self.restored(&outputs))
    }

    fn normalised(&self, sample: &[f32]) -> Vec<f32> {
        let mut sample = sample.to_vec();
        self.scales.inputs.normalise(&mut sample);
        sample
    }

    fn restored(&self, outputs: &[f32]) -> Vec<f64> {
        let restored = outputs.iter().map(|x| self.scales.target.restore(*x));
        restored.collect()
    }
}
