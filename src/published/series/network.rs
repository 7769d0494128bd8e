//! Networks over frames with their parameters: outputs of samples, and the gradient of any loss of
//! these outputs, computed by candle.
//!
//! On a CPU a batch is cut into chunks, whose gradients are computed in parallel and added in
//! order. Outputs are computed one sample at a time, so that they are the same in every batch.

use std::borrow::Cow;

use anyhow::{Context as _, Result, ensure};
use candle_core::{Device, Tensor, Var};
use rayon::prelude::*;

use super::design::{SeriesDesign, SeriesKind};
use super::dropout::{DropoutMasks, DropoutSeed};
use super::{convolution, dense, mixture, recurrence, transformer};
use poolcast_models::optim::FlatNetwork;
use poolcast_models::{AlignedFloats, IndexedParameter, ParameterSpec, Weights, place_parameters};

/// Samples per chunk of a gradient. The number affects the result, because sums are taken chunk by
/// chunk.
const CHUNK_SAMPLES: usize = 8;

/// A network in training.
#[derive(Debug)]
pub struct SeriesNetwork {
    design: SeriesDesign,
    device: Device,
    parameters: Vec<IndexedParameter>,
    flat: AlignedFloats,
}

/// A checkpoint has the whole vector, without a name.
impl FlatNetwork for SeriesNetwork {
    fn flat_weights(&self) -> &[f32] {
        self.flat_weights()
    }

    fn flat_weights_mut(&mut self) -> &mut [f32] {
        self.flat_weights_mut()
    }

    fn split<'a>(&self, flat: &'a [f32]) -> Vec<(&str, Cow<'a, [f32]>)> {
        vec![("", Cow::Borrowed(flat))]
    }

    fn join<'a>(&self, part: impl Fn(&str) -> Result<&'a [f32]>) -> Result<AlignedFloats> {
        let flat = part("")?;
        let count = self.flat_weights().len();
        ensure!(
            flat.len() == count,
            "the network has {count} weights, got {}",
            flat.len()
        );
        let mut joined = AlignedFloats::zeros(count);
        joined.copy_from_slice(flat);
        Ok(joined)
    }
}

/// A network for inference, with fixed weights.
#[derive(Debug)]
pub struct FrozenNetwork {
    design: SeriesDesign,
    device: Device,
    weights: Weights,
}

/// Loss and gradient of a batch.
#[derive(Debug)]
pub struct BatchGradient {
    /// Sum of the losses of the samples.
    pub loss: f64,
    /// Gradient of the mean loss, in the order of [`SeriesNetwork::flat_weights`].
    pub values: AlignedFloats,
}

/// Loss function of one sample. Its arguments are the sample's index in the batch, the outputs
/// `[k]`, and a slice `[k]` to which it writes the derivatives with respect to the outputs.
pub type OutputLoss<'a> = dyn Fn(usize, &[f32], &mut [f32]) -> f64 + Sync + 'a;

impl SeriesNetwork {
    /// Creates a network with PyTorch's initial weights, drawn from `seed` by parameter name.
    ///
    /// # Errors
    /// Fails when the design has an invalid shape.
    pub fn new(design: SeriesDesign, seed: u64, device: &Device) -> Result<SeriesNetwork> {
        let mut network = SeriesNetwork::empty(design, device)?;
        for IndexedParameter { spec, start } in &network.parameters {
            let first = spec.draw_weights(seed);
            network.flat[*start..][..first.len()].copy_from_slice(&first);
        }
        Ok(network)
    }

    /// Creates a network with the given weights, in the order of [`SeriesNetwork::flat_weights`].
    ///
    /// # Errors
    /// Fails when the design has an invalid shape, and when the number of weights differs.
    pub fn with_weights(
        design: SeriesDesign,
        weights: &[f32],
        device: &Device,
    ) -> Result<SeriesNetwork> {
        let mut network = SeriesNetwork::empty(design, device)?;
        ensure!(
            weights.len() == network.flat.len(),
            "the network has {} weights, got {}",
            network.flat.len(),
            weights.len()
        );
        network.flat.copy_from_slice(weights);
        Ok(network)
    }

    fn empty(design: SeriesDesign, device: &Device) -> Result<SeriesNetwork> {
        design.check()?;
        let mut specs = parameters(&design);
        specs.sort_by(|a, b| a.name.cmp(&b.name));
        let (parameters, flat_len) = place_parameters(specs);
        Ok(SeriesNetwork {
            design,
            device: device.clone(),
            parameters,
            flat: AlignedFloats::zeros(flat_len),
        })
    }

    /// Extracts one transformer of a mixture as a network with a copy of its current weights.
    ///
    /// # Errors
    /// Fails if the network has no such expert.
    pub fn expert(&self, expert: usize) -> Result<SeriesNetwork> {
        let design = SeriesDesign {
            kind: SeriesKind::Expert,
            ..self.design
        };
        let mut alone = SeriesNetwork::empty(design, &self.device)?;
        for IndexedParameter { spec, start } in &alone.parameters {
            let place = self.expert_parameter(expert, spec)?;
            let numbers = &self.flat[place..][..spec.len()];
            alone.flat[*start..][..spec.len()].copy_from_slice(numbers);
        }
        Ok(alone)
    }

    /// Sets the weights of one transformer of a mixture to those in `alone`.
    ///
    /// # Errors
    /// Fails like [`SeriesNetwork::expert`].
    pub fn set_expert(&mut self, expert: usize, alone: &SeriesNetwork) -> Result<()> {
        for IndexedParameter { spec, start } in &alone.parameters {
            let place = self.expert_parameter(expert, spec)?;
            let numbers = &alone.flat[*start..][..spec.len()];
            self.flat[place..][..spec.len()].copy_from_slice(numbers);
        }
        Ok(())
    }

    /// The start of an expert's parameter in the flat vector.
    fn expert_parameter(&self, expert: usize, spec: &ParameterSpec) -> Result<usize> {
        let name = format!("{}{}", mixture::expert_prefix(expert), spec.name);
        let found = self
            .parameters
            .iter()
            .find(|placed| placed.spec.name == name);
        let found = found.with_context(|| format!("the network has no parameter `{name}`"))?;
        Ok(found.start)
    }

    /// The design of the network.
    pub fn design(&self) -> &SeriesDesign {
        &self.design
    }

    /// The device that computes the network.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The number of parameters.
    pub fn parameter_count(&self) -> usize {
        self.parameters.iter().map(|placed| placed.spec.len()).sum()
    }

    /// All parameters, sorted by name, each in row-major order, then zeros up to a whole vector.
    pub fn flat_weights(&self) -> &[f32] {
        &self.flat
    }

    /// Like [`SeriesNetwork::flat_weights`], but mutable. The padding must stay zero. It does if
    /// each change is a multiple of a gradient, whose padding is zero.
    pub fn flat_weights_mut(&mut self) -> &mut [f32] {
        &mut self.flat
    }

    /// Copies the network in its current state, for inference.
    ///
    /// # Errors
    /// Fails when the device fails.
    pub fn freeze(&self) -> Result<FrozenNetwork> {
        let weights =
            self.make_weights(|numbers, dims| Tensor::from_slice(numbers, dims, &self.device))?;
        Ok(FrozenNetwork {
            design: self.design,
            device: self.device.clone(),
            weights,
        })
    }

    /// Computes the gradient of the mean `loss` of `samples`, each `[t * c]`. Dropout masks depend
    /// only on `dropout`. Without it nothing is dropped.
    ///
    /// The result does not depend on the number of threads.
    ///
    /// # Errors
    /// Fails for an empty batch, for a sample of another length, and when the device fails.
    pub fn gradient(
        &self,
        samples: &[&[f32]],
        dropout: Option<DropoutSeed>,
        loss: &OutputLoss<'_>,
    ) -> Result<BatchGradient> {
        ensure!(!samples.is_empty(), "there is no sample to learn from");
        let weights = self.make_weights(|numbers, dims| {
            let var = Var::from_slice(numbers, dims, &self.device)?;
            Ok(var.as_tensor().clone())
        })?;
        let rows = if self.device.is_cpu() {
            CHUNK_SAMPLES
        } else {
            samples.len()
        };

        let chunks: Vec<(usize, &[&[f32]])> = samples.chunks(rows).enumerate().collect();
        let mut sum = BatchGradient {
            loss: 0.0,
            values: AlignedFloats::zeros(self.flat.len()),
        };
        // Process as many chunks at a time as there are threads, because each part is as large as
        // all parameters.
        for chunks in chunks.chunks(rayon::current_num_threads()) {
            let parts = chunks.par_iter().map(|(number, chunk)| {
                let masks = DropoutMasks::for_chunk(dropout, *number);
                let loss = |place: usize, outputs: &[f32], slopes: &mut [f32]| {
                    loss(number * rows + place, outputs, slopes)
                };
                self.chunk_gradient(&weights, chunk, masks, &loss)
            });
            for part in parts.collect::<Result<Vec<BatchGradient>>>()? {
                sum.loss += part.loss;
                for (sum, d) in sum.values.iter_mut().zip(part.values.iter()) {
                    *sum += d;
                }
            }
        }

        let share = 1.0 / samples.len() as f32;
        sum.values.iter_mut().for_each(|d| *d *= share);
        Ok(sum)
    }

    /// The sum of the losses of a chunk, and the gradient of this sum.
    fn chunk_gradient(
        &self,
        weights: &Weights,
        chunk: &[&[f32]],
        mut masks: DropoutMasks,
        loss: &OutputLoss<'_>,
    ) -> Result<BatchGradient> {
        let samples = sample_tensor(&self.design, chunk, &self.device)?;
        let outputs = outputs(&self.design, weights, &samples, &mut masks)?;

        let k = self.design.outputs;
        let numbers = outputs.flatten_all()?.to_vec1::<f32>()?;
        let mut slopes = vec![0f32; numbers.len()];
        let mut loss_sum = 0.0;
        let rows = numbers.chunks_exact(k).zip(slopes.chunks_exact_mut(k));
        for (place, (outputs, slopes)) in rows.enumerate() {
            loss_sum += loss(place, outputs, slopes);
        }

        // Backpropagate through a weighted sum of the outputs. The slopes are constants in its
        // graph, so its gradient equals the gradient of the loss.
        let slopes = Tensor::from_vec(slopes, outputs.shape(), &self.device)?;
        let store = (outputs * slopes)?.sum_all()?.backward()?;
        let mut values = AlignedFloats::zeros(self.flat.len());
        for IndexedParameter { spec, start } in &self.parameters {
            if let Some(d) = store.get(weights.get(&spec.name)?) {
                let d = d.flatten_all()?.to_vec1::<f32>()?;
                values[*start..][..d.len()].copy_from_slice(&d);
            }
        }
        Ok(BatchGradient {
            loss: loss_sum,
            values,
        })
    }

    /// Builds the parameters. `tensor` makes each from its numbers and dimensions.
    fn make_weights(
        &self,
        tensor: impl Fn(&[f32], Vec<usize>) -> candle_core::Result<Tensor>,
    ) -> Result<Weights> {
        let tensors = self
            .parameters
            .iter()
            .map(|IndexedParameter { spec, start }| {
                let numbers = &self.flat[*start..][..spec.len()];
                Ok((spec.name.clone(), tensor(numbers, spec.dims.clone())?))
            });
        Weights::new(tensors)
    }
}

impl FrozenNetwork {
    /// The design of the network.
    pub fn design(&self) -> &SeriesDesign {
        &self.design
    }

    /// Computes the outputs `[k]` of a sample `[t * c]`.
    ///
    /// # Errors
    /// Fails for a sample of another length, and when the device fails.
    pub fn outputs(&self, sample: &[f32]) -> Result<Vec<f32>> {
        let samples = sample_tensor(&self.design, &[sample], &self.device)?;
        let mut masks = DropoutMasks::none();
        let outputs = outputs(&self.design, &self.weights, &samples, &mut masks)?;
        Ok(outputs.flatten_all()?.to_vec1()?)
    }

    /// Computes the outputs of each expert of a mixture, one after another. For other networks,
    /// these are the outputs themselves.
    ///
    /// # Errors
    /// Fails like [`FrozenNetwork::outputs`].
    pub fn inner_outputs(&self, sample: &[f32]) -> Result<Vec<f32>> {
        if self.design.kind != SeriesKind::Mixture {
            return self.outputs(sample);
        }
        let samples = sample_tensor(&self.design, &[sample], &self.device)?;
        let mut masks = DropoutMasks::none();
        let said = mixture::expert_outputs(&self.design, &self.weights, &samples, &mut masks)?;
        Ok(said.flatten_all()?.to_vec1()?)
    }
}

/// All parameters of a network, in any order.
fn parameters(design: &SeriesDesign) -> Vec<ParameterSpec> {
    match design.kind {
        SeriesKind::Dense => dense::parameters(design),
        SeriesKind::Transformer | SeriesKind::Expert => transformer::parameters(design, ""),
        SeriesKind::Mixture => mixture::parameters(design),
        SeriesKind::Convolution => convolution::parameters(design),
        SeriesKind::Recurrence => recurrence::parameters(design),
    }
}

/// Computes `[b, t, c] → [b, k]`.
fn outputs(
    design: &SeriesDesign,
    weights: &Weights,
    samples: &Tensor,
    masks: &mut DropoutMasks,
) -> Result<Tensor> {
    match design.kind {
        SeriesKind::Dense => dense::outputs(design, weights, samples),
        SeriesKind::Transformer | SeriesKind::Expert => {
            transformer::outputs(design, weights, "", samples, masks)
        }
        SeriesKind::Mixture => mixture::outputs(design, weights, samples, masks),
        SeriesKind::Convolution => convolution::outputs(weights, samples, masks),
        SeriesKind::Recurrence => recurrence::outputs(weights, samples),
    }
}

/// Builds a tensor `[b, steps, c]` of samples. Averages consecutive frames if the design pools
/// them.
fn sample_tensor(design: &SeriesDesign, samples: &[&[f32]], device: &Device) -> Result<Tensor> {
    let (steps, pooled, columns) = (design.steps(), design.pooled_frames(), design.columns);
    let mut numbers = Vec::with_capacity(samples.len() * steps * columns);
    for sample in samples {
        ensure!(
            sample.len() == design.sample_len(),
            "a sample has {} numbers, expected {}",
            sample.len(),
            design.sample_len()
        );
        for frames in sample.chunks_exact(pooled * columns) {
            for column in 0..columns {
                let sum: f32 = frames.iter().skip(column).step_by(columns).sum();
                numbers.push(sum / pooled as f32);
            }
        }
    }
    let dims = (samples.len(), steps, columns);
    Tensor::from_vec(numbers, dims, device).context("cannot copy samples to the device")
}

#[cfg(test)]
mod tests {
    use rand::Rng as _;

    use super::*;
    use poolcast_config::WaitModelSize;

    const KINDS: [SeriesKind; 6] = [
        SeriesKind::Dense,
        SeriesKind::Transformer,
        SeriesKind::Mixture,
        SeriesKind::Expert,
        SeriesKind::Convolution,
        SeriesKind::Recurrence,
    ];

    fn design(kind: SeriesKind, size: WaitModelSize) -> SeriesDesign {
        SeriesDesign {
            kind,
            size,
            frames: 144,
            columns: 42,
            outputs: 1,
        }
    }

    fn network(kind: SeriesKind, outputs: usize) -> SeriesNetwork {
        let design = SeriesDesign {
            frames: 72,
            columns: 8,
            outputs,
            ..design(kind, WaitModelSize::Small)
        };
        SeriesNetwork::new(design, 1, &Device::Cpu).expect("a network")
    }

    fn samples(design: &SeriesDesign, count: usize) -> Vec<Vec<f32>> {
        let mut random = poolcast_base::seed::generator(5, "samples", &[]);
        let mut sample = || {
            (0..design.sample_len())
                .map(|_| random.random_range(-1.0..1.0))
                .collect()
        };
        (0..count).map(|_| sample()).collect()
    }

    fn slices(samples: &[Vec<f32>]) -> Vec<&[f32]> {
        samples.iter().map(Vec::as_slice).collect()
    }

    /// The squared distance to a target that differs from sample to sample.
    fn squared(place: usize, outputs: &[f32], slopes: &mut [f32]) -> f64 {
        let mut loss = 0.0;
        for (output, slope) in outputs.iter().zip(slopes) {
            let error = output - place as f32 / 4.0;
            *slope = 2.0 * error;
            loss += f64::from(error * error);
        }
        loss
    }

    #[test]
    fn published_networks_have_the_published_number_of_parameters() {
        let counts = [
            // 6048 → 512 → 256 → 128 → 64 → 1.
            (SeriesKind::Dense, 3_269_633),
            (SeriesKind::Transformer, 2_464_513),
            // Ten experts of 1,280,129 parameters, and a gate 6048 → 32 → 10.
            (SeriesKind::Mixture, 10 * 1_280_129 + 193_568 + 330),
            (SeriesKind::Expert, 1_280_129),
            // Two convolutions, then 617,472 → 128 → 1.
            (SeriesKind::Convolution, 1_088 + 262_272 + 79_036_544 + 129),
            (SeriesKind::Recurrence, 88_064 + 16_512 + 129),
        ];
        for (kind, count) in counts {
            let specs = parameters(&design(kind, WaitModelSize::Published));
            let found: usize = specs.iter().map(ParameterSpec::len).sum();
            assert_eq!(found, count, "{kind:?}");
        }
    }

    #[test]
    fn an_extracted_expert_has_the_outputs_of_its_mixture() {
        let mut mixture = network(SeriesKind::Mixture, 2);
        let sample = &samples(mixture.design(), 1)[0];
        let inner = |mixture: &SeriesNetwork| {
            let frozen = mixture.freeze().expect("frozen");
            frozen.inner_outputs(sample).expect("outputs")
        };
        let before = inner(&mixture);
        for expert in 0..4 {
            let alone = mixture.expert(expert).expect("an expert");
            let outputs = alone.freeze().expect("frozen").outputs(sample);
            assert_eq!(outputs.expect("outputs"), before[2 * expert..][..2]);
        }

        let last = mixture.expert(3).expect("an expert");
        mixture.set_expert(1, &last).expect("set");
        let after = inner(&mixture);
        assert_eq!(after[2..4], before[6..]);
        assert_eq!((&after[..2], &after[4..]), (&before[..2], &before[4..]));
        assert!(mixture.expert(4).is_err() && last.expert(0).is_err());
    }

    #[test]
    fn every_network_has_outputs_of_its_shape() {
        for kind in KINDS {
            let network = network(kind, 3);
            let samples = samples(network.design(), 2);
            let frozen = network.freeze().expect("frozen");
            let [first, second] = [0, 1].map(|row| frozen.outputs(&samples[row]).expect("outputs"));
            assert_eq!(first.len(), 3, "{kind:?}");
            assert!(first.iter().all(|output| output.is_finite()) && first != second);

            let inner = frozen.inner_outputs(&samples[0]).expect("outputs");
            let is_mixture = kind == SeriesKind::Mixture;
            assert_eq!(inner.len(), if is_mixture { 12 } else { 3 }, "{kind:?}");
            assert_eq!(inner.len(), network.design().inner_outputs());
            let error = frozen.outputs(&samples[0][1..]).expect_err("too short");
            assert!(error.to_string().contains("575 numbers"), "{error}");
        }
    }

    #[test]
    fn the_published_transformer_computes() {
        let design = design(SeriesKind::Transformer, WaitModelSize::Published);
        let network = SeriesNetwork::new(design, 1, &Device::Cpu).expect("a network");
        let samples = samples(&design, 1);
        let outputs = network.freeze().expect("frozen").outputs(&samples[0]);
        assert!(outputs.expect("outputs")[0].is_finite());
    }

    /// Compares along the gradient's direction, so that a single difference checks all parameters.
    #[test]
    fn gradients_are_slopes() {
        for kind in KINDS {
            let mut network = network(kind, 2);
            let samples = samples(network.design(), 3);
            let gradient = network.gradient(&slices(&samples), None, &squared);
            let gradient = gradient.expect("a gradient").values;

            let norm: f32 = gradient.iter().map(|d| d * d).sum::<f32>().sqrt();
            let step = 2e-3 / norm;
            let mut loss_after = |by: f32| {
                for (weight, d) in network.flat_weights_mut().iter_mut().zip(gradient.iter()) {
                    *weight += by * d;
                }
                let again = network.gradient(&slices(&samples), None, &squared);
                again.expect("a gradient").loss / 3.0
            };
            let above = loss_after(step);
            let below = loss_after(-2.0 * step);
            let slope = (above - below) / f64::from(2.0 * step);
            let expected = f64::from(norm * norm);
            assert!(
                (slope - expected).abs() < 0.03 * expected,
                "{kind:?}: {slope} instead of {expected}"
            );
        }
    }

    #[test]
    fn dropout_depends_on_the_seed_and_not_on_threads() {
        let with_threads = |threads: usize, step: u64| {
            let network = network(SeriesKind::Transformer, 1);
            let samples = samples(network.design(), 2 * CHUNK_SAMPLES + 1);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().expect("a pool").install(|| {
                let seed = DropoutSeed { seed: 3, step };
                let found = network.gradient(&slices(&samples), Some(seed), &squared);
                found.expect("a gradient")
            })
        };
        let one = with_threads(1, 0);
        let three = with_threads(3, 0);
        assert_eq!((one.loss, &one.values), (three.loss, &three.values));
        assert_ne!(one.values, with_threads(1, 1).values);
    }

    /// Candle traverses a graph by recursion, so the depth of the graph is limited by the stack.
    /// 144 frames must fit into the stack of a worker thread, which is twice as large as the one
    /// here.
    #[test]
    fn the_published_lstm_fits_into_a_stack() {
        let learn = || {
            let design = design(SeriesKind::Recurrence, WaitModelSize::Published);
            let network = SeriesNetwork::new(design, 1, &Device::Cpu).expect("a network");
            let samples = samples(&design, 1);
            let gradient = network.gradient(&slices(&samples), None, &squared);
            assert!(gradient.expect("a gradient").loss.is_finite());
        };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .stack_size(1 << 20);
        pool.build().expect("a pool").install(learn);
    }

    #[test]
    fn invalid_network_shapes_are_rejected() {
        let small = SeriesDesign {
            frames: 9,
            columns: 42,
            ..design(SeriesKind::Convolution, WaitModelSize::Published)
        };
        let error = SeriesNetwork::new(small, 1, &Device::Cpu).expect_err("too few frames");
        assert!(error.to_string().contains("more than 10 frames"), "{error}");
        let none = SeriesDesign {
            outputs: 0,
            ..design(SeriesKind::Dense, WaitModelSize::Small)
        };
        assert!(SeriesNetwork::new(none, 1, &Device::Cpu).is_err());
        let weights = [0.0; 8];
        let few = SeriesNetwork::with_weights(
            design(SeriesKind::Recurrence, WaitModelSize::Small),
            &weights,
            &Device::Cpu,
        );
        assert!(few.expect_err("too few").to_string().contains("got 8"));
    }
}
