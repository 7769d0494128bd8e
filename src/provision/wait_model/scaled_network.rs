//! A network with the scales of its inputs and of what it says.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::column_scales::ColumnScales;
use poolcast_base::manifest;
use poolcast_models::Device;
use poolcast_models::series::{FrozenNetwork, SeriesDesign, SeriesNetwork};
use poolcast_base::shard::{ArtefactFormat, ShardColumn, ShardLayout};

/// Its file in a model.
pub(super) const NETWORK_FILE: &str = "network.safetensors";

/// A network that answers on the processor.
#[derive(Debug)]
pub(super) struct ScaledNetwork {
    scales: NetworkScales,
    weights: Vec<f32>,
    parameter_count: usize,
    network: FrozenNetwork,
}

/// By what a network's inputs and outputs are normalised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct NetworkScales {
    /// Of each column of a frame.
    pub(super) inputs: ColumnScales,
    /// Of what is learned, one column.
    pub(super) target: ColumnScales,
}

/// What the file says beside the weights.
#[derive(Serialize, Deserialize)]
struct NetworkNotes {
    design: SeriesDesign,
    scales: NetworkScales,
}

impl ScaledNetwork {
    /// # Errors
    /// Fails where `weights` are not those of a network of this design.
    pub(super) fn new(
        design: SeriesDesign,
        scales: NetworkScales,
        weights: &[f32],
    ) -> Result<ScaledNetwork> {
        let network = SeriesNetwork::with_weights(design, weights, &Device::Cpu)?;
        ensure!(
            scales.inputs.len() == design.columns && scales.target.len() == 1,
            "a network of {} columns has scales of {}",
            design.columns,
            scales.inputs.len()
        );
        Ok(ScaledNetwork {
            scales,
            network: network.freeze()?,
            parameter_count: network.parameter_count(),
            weights: weights.to_vec(),
        })
    }

    /// How many parameters it has.
    pub(super) fn parameter_count(&self) -> usize {
        self.parameter_count
    }

    /// Writes the network into `dir`; returns the digest of its file.
    pub(super) fn write(&self, dir: &Path, format: ArtefactFormat) -> Result<String> {
        let notes = NetworkNotes {
            design: *self.network.design(),
            scales: self.scales.clone(),
        };
        let columns = vec![("weights".to_owned(), ShardColumn::vector(&self.weights))];
        let layout = ShardLayout::new(format, &notes, columns)?;
        layout.write(&dir.join(NETWORK_FILE))?;
        Ok(manifest::Checksum::of(layout.parts()))
    }

    /// Reads the network in `dir`, whose file has the digest `xxh3`.
    pub(super) fn read(dir: &Path, xxh3: &str, format: ArtefactFormat) -> Result<ScaledNetwork> {
        let shard = manifest::open_shard(dir, NETWORK_FILE, xxh3, format)?;
        let notes: NetworkNotes = shard.notes()?;
        ScaledNetwork::new(notes.design, notes.scales, shard.column("weights")?)
            .with_context(|| format!("cannot use `{}`", shard.path().display()))
    }

    /// What it says of a sample, in the unit of what was learned.
    ///
    /// # Errors
    /// Fails for a sample of another length.
    pub(super) fn outputs(&self, sample: &[f32]) -> Result<Vec<f64>> {
        let outputs = self.network.outputs(&self.normalised(sample))?;
        Ok(self.restored(&outputs))
    }

    /// How many numbers [`ScaledNetwork::inner_outputs`] has.
    pub(super) fn inner_output_count(&self) -> usize {
        self.network.design().inner_outputs()
    }

    /// The same of each network of a mixture; of others as [`ScaledNetwork::outputs`].
    pub(super) fn inner_outputs(&self, sample: &[f32]) -> Result<Vec<f64>> {
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
