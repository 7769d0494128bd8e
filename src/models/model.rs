//! Models: an architecture, the shapes of its weights, and its parameters in one flat vector.

use std::fmt;

use anyhow::{Result, bail, ensure};
use candle_core::Device;

use super::candle_graph::CandleGraph;
use super::engine::FusedLstm;
use super::records::FusedRecords;
use super::{AlignedFloats, Architecture, ModelShape, ParameterSpec, SampleBatch};
use crate::EngineChoice;
use poolcast_base::error::hinted;

/// A model for inference and training.
#[derive(Debug)]
pub struct Model {
    /// Architecture of the model.
    pub architecture: &'static dyn Architecture,
    /// Shapes of the weights.
    pub shape: ModelShape,
    /// Parameters, sorted by name.
    parameters: Vec<ParameterSpec>,
    flat: AlignedFloats,
    pub(super) engine: ModelEngine,
}

/// Engine that computes the logits of a model and their gradient.
pub(super) enum ModelEngine {
    Fused(FusedLstm),
    Records(Box<FusedRecords>),
    Candle(CandleGraph),
}

impl fmt::Debug for ModelEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ModelEngine::Fused(_) => "Fused",
            ModelEngine::Records(_) => "Records",
            ModelEngine::Candle(_) => "Candle",
        })
    }
}

impl ModelEngine {
    /// The number of elements of the flat vector.
    fn flat_len(&self) -> usize {
        match self {
            ModelEngine::Fused(lstm) => lstm.flat_len(),
            ModelEngine::Records(records) => records.flat_len(),
            ModelEngine::Candle(graph) => graph.flat_len,
        }
    }

    /// Indices in the flat vector of a parameter's elements, in row-major order of the parameter.
    fn element_positions(&self, parameter: usize) -> Box<dyn Iterator<Item = usize> + '_> {
        match self {
            ModelEngine::Fused(lstm) => Box::new(lstm.element_positions(parameter)),
            ModelEngine::Records(records) => Box::new(records.element_positions(parameter)),
            ModelEngine::Candle(graph) => Box::new(graph.element_positions(parameter)),
        }
    }

    /// Builds the flat vector from `parts`, the elements of each parameter in row-major order.
    fn flatten(&self, parts: &[impl AsRef<[f32]>]) -> AlignedFloats {
        let mut flat = AlignedFloats::zeros(self.flat_len());
        let numbers: &mut [f32] = &mut flat;
        for (parameter, part) in parts.iter().enumerate() {
            let positions = self.element_positions(parameter);
            for (position, &value) in positions.zip(part.as_ref()) {
                numbers[position] = value;
            }
        }
        flat
    }
}

/// Models with equal weights are equal, whatever computes them.
impl PartialEq for Model {
    fn eq(&self, other: &Model) -> bool {
        (self.architecture.name(), self.shape) == (other.architecture.name(), other.shape)
            && self.weights() == other.weights()
    }
}

impl Model {
    /// Creates a model with PyTorch's initial weights, drawn from `seed` by parameter name. The
    /// model runs on the CPU, in the fused engine if that supports the architecture.
    ///
    /// # Errors
    /// Fails when no model has that shape.
    pub fn new(
        architecture: &'static dyn Architecture,
        shape: ModelShape,
        seed: u64,
    ) -> Result<Model> {
        let parameters = sorted_parameters(architecture, shape)?;
        let weights: Vec<Vec<f32>> = parameters
            .iter()
            .map(|parameter| parameter.draw_weights(seed))
            .collect();
        Ok(Model::assemble(
            architecture,
            shape,
            parameters,
            &weights,
            None,
        ))
    }

    /// Creates a model with given weights. `weight` returns the elements of the parameter with a
    /// given name, in row-major order.
    ///
    /// # Errors
    /// Fails when no model has that shape, and when a parameter is missing or has another size.
    pub fn with_weights<'a>(
        architecture: &'static dyn Architecture,
        shape: ModelShape,
        weight: impl Fn(&str) -> Result<&'a [f32]>,
    ) -> Result<Model> {
        let parameters = sorted_parameters(architecture, shape)?;
        let weights = checked_parts(&parameters, weight)?;
        Ok(Model::assemble(
            architecture,
            shape,
            parameters,
            &weights,
            None,
        ))
    }

    /// Returns the same model, computed by `engine` on `device`.
    ///
    /// # Errors
    /// Fails when the engine does not support the architecture or the device.
    pub fn computed_by(self, engine: EngineChoice, device: &Device) -> Result<Model> {
        let is_fused = self.architecture.is_fused() && device.is_cpu();
        match engine {
            EngineChoice::Auto if device.is_cpu() => Ok(self),
            EngineChoice::Auto | EngineChoice::Candle => Ok(self.in_candle(device)),
            EngineChoice::Fused if is_fused => Ok(self),
            EngineChoice::Fused => {
                let name = self.architecture.name();
                let message = format!("the fused engine does not support `{name}` on this device");
                bail!(hinted(
                    message,
                    "set `training.engine: auto`, which uses candle where the fused engine cannot be used"
                ))
            }
        }
    }

    /// Returns the same model in candle's operations on `device`. Tests compare the fused engine
    /// with it, and devices that the fused engine does not support need it.
    pub fn in_candle(&self, device: &Device) -> Model {
        let parameters = self.parameters.clone();
        Model::assemble(
            self.architecture,
            self.shape,
            parameters,
            &self.weights(),
            Some(device),
        )
    }

    fn assemble(
        architecture: &'static dyn Architecture,
        shape: ModelShape,
        parameters: Vec<ParameterSpec>,
        weights: &[impl AsRef<[f32]>],
        device: Option<&Device>,
    ) -> Model {
        let engine = match device {
            None if architecture.is_fused() && architecture.takes_tokens() => {
                ModelEngine::Records(Box::new(FusedRecords::new(shape, &parameters)))
            }
            None if architecture.is_fused() => ModelEngine::Fused(FusedLstm::new(shape)),
            _ => ModelEngine::Candle(CandleGraph::new(
                architecture,
                shape,
                &parameters,
                device.unwrap_or(&Device::Cpu),
            )),
        };
        let flat = engine.flatten(weights);
        Model {
            architecture,
            shape,
            parameters,
            flat,
            engine,
        }
    }

    /// All parameters, sorted by name.
    pub fn parameters(&self) -> &[ParameterSpec] {
        &self.parameters
    }

    /// Copies every parameter's elements, in the order of [`Model::parameters`].
    pub fn weights(&self) -> Vec<Vec<f32>> {
        self.split_by_parameter(&self.flat)
    }

    /// All parameters in the order in which the engine reads them. The padding in between is zero.
    pub fn flat_weights(&self) -> &[f32] {
        &self.flat
    }

    /// Like [`Model::flat_weights`], but mutable. The padding must stay zero. It does if each
    /// change is a multiple of a gradient, whose padding is zero.
    pub fn flat_weights_mut(&mut self) -> &mut [f32] {
        &mut self.flat
    }

    /// Splits a vector in the order of [`Model::flat_weights`], such as a gradient, into the
    /// elements of each parameter.
    pub fn split_by_parameter(&self, flat: &[f32]) -> Vec<Vec<f32>> {
        let mut parts = Vec::with_capacity(self.parameters.len());
        for parameter in 0..self.parameters.len() {
            let positions = self.engine.element_positions(parameter);
            parts.push(positions.map(|position| flat[position]).collect());
        }
        parts
    }

    /// Builds a vector in the order of [`Model::flat_weights`]. `part` returns the elements of the
    /// parameter with a given name.
    ///
    /// # Errors
    /// Fails when a part is missing or has another size.
    pub fn join_parameters<'a>(
        &self,
        part: impl Fn(&str) -> Result<&'a [f32]>,
    ) -> Result<AlignedFloats> {
        let parts = checked_parts(&self.parameters, part)?;
        Ok(self.engine.flatten(&parts))
    }

    /// Computes the logits `[b]` of success for the samples of `batch`.
    ///
    /// Row `b` of the result depends neither on other rows nor on the number of threads.
    ///
    /// # Errors
    /// Fails when the device fails.
    pub fn logits(&self, batch: &SampleBatch<'_>) -> Result<Vec<f32>> {
        match &self.engine {
            ModelEngine::Fused(lstm) => Ok(lstm.logits(&self.flat, batch)),
            ModelEngine::Records(records) => records.logits(&self.flat, batch),
            ModelEngine::Candle(graph) => graph.logits(&self.flat, batch),
        }
    }
}

/// The parameters of a model, sorted by name.
fn sorted_parameters(
    architecture: &dyn Architecture,
    shape: ModelShape,
) -> Result<Vec<ParameterSpec>> {
    shape.check_sizes()?;
    let mut parameters = architecture.parameters(&shape);
    parameters.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(parameters)
}

/// The elements of each parameter. Their sizes are checked before any memory is allocated, so that
/// a damaged file cannot request excessive memory.
fn checked_parts<'a>(
    parameters: &[ParameterSpec],
    part: impl Fn(&str) -> Result<&'a [f32]>,
) -> Result<Vec<&'a [f32]>> {
    let mut parts = Vec::with_capacity(parameters.len());
    for parameter in parameters {
        let ParameterSpec { name, dims, .. } = parameter;
        let values = part(name)?;
        let count = parameter.len();
        ensure!(
            values.len() == count,
            "`{name}` has {} elements, expected {count} for {dims:?}",
            values.len()
        );
        parts.push(values);
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EMPTY_CELL;
    use crate::labelled_chunk::SCORED_ROWS;
    use crate::token_batch::tests::random_tokens;
    use crate::{ARCHITECTURES, find_architecture};

    const SHAPE: ModelShape = ModelShape {
        e: 49,
        m: 5,
        j: 3,
        s: 2,
        shared_bits: 0,
        hidden_size: 4,
        lstm_layers: 2,
    };

    fn model(name: &str, shape: ModelShape, seed: u64) -> Model {
        Model::new(find_architecture(name).expect("a model"), shape, seed).expect("a model")
    }

    fn logits(model: &Model, codes: &[u8], statics: &[f32]) -> Vec<f32> {
        let batch = SampleBatch::new(&model.shape, codes, statics).expect("a batch");
        model.logits(&batch).expect("logits")
    }

    #[test]
    fn rows_do_not_affect_each_other() {
        let samples = 2 * SCORED_ROWS + 3;
        let codes: Vec<u8> = (0..samples * 15)
            .map(|i| {
                if i % 7 == 0 {
                    EMPTY_CELL
                } else {
                    (i % 49) as u8
                }
            })
            .collect();
        let statics: Vec<f32> = (0..samples * 2).map(|i| i as f32 / 64.0).collect();
        let tokens = random_tokens(samples, 0, 1);
        for &architecture in ARCHITECTURES {
            let model = model(architecture.name(), SHAPE, 1);
            let logits = |codes, statics, tokens| {
                let batch = SampleBatch::new(&SHAPE, codes, statics).expect("a batch");
                let batch = batch.with_tokens(tokens).expect("tokens");
                model.logits(&batch).expect("logits")
            };
            let together = logits(&codes, &statics, tokens.batch());
            let inputs = codes.chunks(15).zip(statics.chunks(2)).enumerate();
            let alone: Vec<f32> = inputs
                .flat_map(|(at, (codes, statics))| {
                    logits(codes, statics, tokens.batch().slice(at, at + 1, samples))
                })
                .collect();
            assert_eq!(together, alone, "{}", architecture.name());
            assert_ne!(together[0], together[1]);
        }
    }

    #[test]
    fn the_fused_engine_rejects_unsupported_architectures() {
        for &architecture in ARCHITECTURES {
            let name = architecture.name();
            let auto = model(name, SHAPE, 1).computed_by(EngineChoice::Auto, &Device::Cpu);
            let engine = auto.expect("computed").engine;
            let is_fused = !matches!(engine, ModelEngine::Candle(_));
            assert_eq!(is_fused, architecture.is_fused(), "{name}");

            let candle = model(name, SHAPE, 1).computed_by(EngineChoice::Candle, &Device::Cpu);
            let engine = candle.expect("computed").engine;
            assert!(matches!(engine, ModelEngine::Candle(_)), "{name}");

            let fused = model(name, SHAPE, 1).computed_by(EngineChoice::Fused, &Device::Cpu);
            assert_eq!(fused.is_ok(), architecture.is_fused(), "{name}");
        }
    }

    #[test]
    fn weights_depend_on_seed_and_name_alone() {
        for &architecture in ARCHITECTURES {
            let weights = |seed| model(architecture.name(), SHAPE, seed).weights();
            assert_eq!(weights(1), weights(1));
            assert_ne!(weights(1), weights(2));
            let model = model(architecture.name(), SHAPE, 1);
            for (parameter, values) in model.parameters().iter().zip(model.weights()) {
                assert_eq!(values.len(), parameter.len());
                assert!(
                    values.iter().enumerate().all(|(at, w)| {
                        (w - parameter.centre_of(at)).abs() <= parameter.bound + 1e-6
                    }),
                    "{}",
                    parameter.name
                );
            }
        }
    }

    #[test]
    fn parameters_are_sorted_and_round_trip_through_the_flat_vector() {
        for &architecture in ARCHITECTURES {
            let model = model(architecture.name(), SHAPE, 1);
            assert!(model.parameters().is_sorted_by(|a, b| a.name < b.name));
            let weights = model.weights();
            let find = |name: &str| {
                let at = model
                    .parameters()
                    .iter()
                    .position(|parameter| parameter.name == name)
                    .expect("a parameter");
                Ok(&weights[at][..])
            };
            assert_eq!(
                &*model.join_parameters(find).expect("joined"),
                model.flat_weights()
            );
            assert_eq!(
                model.flat_weights().len() % 8,
                0,
                "an optimiser goes by whole vectors"
            );
            let again = Model::with_weights(architecture, SHAPE, find).expect("a model");
            assert_eq!(
                (again.weights(), again.in_candle(&Device::Cpu).weights()),
                (weights.clone(), weights.clone())
            );
        }
    }

    /// One step by hand, by the equations of `nn.LSTM`.
    #[test]
    fn one_cell_by_hand() {
        let shape = ModelShape {
            e: 49,
            m: 2,
            j: 1,
            s: 1,
            shared_bits: 0,
            hidden_size: 1,
            lstm_layers: 1,
        };
        let model = model("lstm+static", shape, 3);
        let names = model
            .parameters()
            .iter()
            .map(|parameter| parameter.name.clone());
        let weights: std::collections::BTreeMap<String, Vec<f32>> =
            names.zip(model.weights()).collect();
        let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
        let (mut state, mut cell) = (0f32, 0f32);
        for code in [0usize, 12] {
            let gate = |k: usize| {
                weights["lstm.weight_ih_l0"][k * 49 + code]
                    + weights["lstm.weight_hh_l0"][k] * state
                    + weights["lstm.bias_ih_l0"][k]
                    + weights["lstm.bias_hh_l0"][k]
            };
            cell = sigmoid(gate(1)) * cell + sigmoid(gate(0)) * gate(2).tanh();
            state = sigmoid(gate(3)) * cell.tanh();
        }
        let head = &weights["linear.weight"];
        let expected = head[0] * state + head[1] * 0.25 + weights["linear.bias"][0];
        assert!((logits(&model, &[0, 12], &[0.25])[0] - expected).abs() < 1e-6);
    }

    #[test]
    fn wrong_shapes_and_unknown_codes_are_rejected() {
        let short = [0f32; 3];
        for &architecture in ARCHITECTURES {
            assert!(Model::with_weights(architecture, SHAPE, |_| Ok(&short)).is_err());
        }
        let lstm = find_architecture("lstm").expect("a model");
        for shape in [
            ModelShape {
                lstm_layers: 0,
                ..SHAPE
            },
            ModelShape {
                j: usize::MAX,
                ..SHAPE
            },
            ModelShape { m: 0, ..SHAPE },
        ] {
            assert!(
                Model::with_weights(lstm, shape, |_| Ok(&short)).is_err()
                    && SampleBatch::new(&shape, &[], &[]).is_err()
            );
        }
        let refused =
            |codes: &[u8], statics: &[f32]| SampleBatch::new(&SHAPE, codes, statics).is_err();
        assert!(!refused(&[48; 15], &[0.0; 2]) && refused(&[49; 15], &[0.0; 2]));
        assert!(refused(&[0; 14], &[0.0; 2]) && refused(&[0; 15], &[0.0; 3]));
    }
}
