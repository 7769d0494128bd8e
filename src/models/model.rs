//! A model: an architecture, the shapes of its weights, and its parameters in one flat vector.

use std::fmt;

use anyhow::{Result, ensure};
use candle_core::Device;

use super::fused::Fused;
use super::graph::Graph;
use super::{Architecture, Batch, Floats, Parameter, Shape};

/// A model, ready to score and to be trained.
#[derive(Debug)]
pub struct Model {
    /// What kind it is.
    pub architecture: &'static dyn Architecture,
    /// The shapes of its weights.
    pub shape: Shape,
    /// Sorted by name.
    parameters: Vec<Parameter>,
    flat: Floats,
    pub(super) engine: Engine,
}

/// What computes.
pub(super) enum Engine {
    Fused(Fused),
    Graph(Graph),
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Engine::Fused(_) => "Fused",
            Engine::Graph(_) => "Graph",
        })
    }
}

impl Engine {
    /// Numbers in the flat vector.
    fn len(&self) -> usize {
        match self {
            Engine::Fused(fused) => fused.layout.len,
            Engine::Graph(graph) => graph.len,
        }
    }

    /// Where each element of a parameter is in the flat vector, in its row-major order.
    fn places(&self, parameter: usize) -> Box<dyn Iterator<Item = usize> + '_> {
        match self {
            Engine::Fused(fused) => Box::new(fused.layout.places(parameter)),
            Engine::Graph(graph) => Box::new(graph.places(parameter)),
        }
    }
}

impl Model {
    /// A model with PyTorch's first weights, drawn from `seed` by parameter name; on a CPU, in the fused engine if that
    /// knows the architecture.
    ///
    /// # Errors
    /// Fails when no model has that shape.
    pub fn new(architecture: &'static dyn Architecture, shape: Shape, seed: u64) -> Result<Model> {
        let parameters = parameters(architecture, shape)?;
        let weights: Vec<Vec<f32>> = parameters
            .iter()
            .map(|parameter| parameter.draw(seed))
            .collect();
        Ok(Model::assemble(
            architecture,
            shape,
            parameters,
            &weights,
            None,
        ))
    }

    /// A model with given weights; `weight` returns the elements of the parameter of a name, in row-major order.
    ///
    /// # Errors
    /// Fails when no model has that shape, and when a parameter is missing or of another size.
    pub fn with_weights<'a>(
        architecture: &'static dyn Architecture,
        shape: Shape,
        weight: impl Fn(&str) -> Result<&'a [f32]>,
    ) -> Result<Model> {
        let parameters = parameters(architecture, shape)?;
        let weights = parts(&parameters, weight)?;
        Ok(Model::assemble(
            architecture,
            shape,
            parameters,
            &weights,
            None,
        ))
    }

    /// The same model on `device`.
    pub fn on(self, device: &Device) -> Model {
        if device.is_cpu() {
            self
        } else {
            self.in_candle(device)
        }
    }

    /// The same model in candle's operations on `device`: what the fused engine is tested against, and the way to devices
    /// that it does not know.
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
        shape: Shape,
        parameters: Vec<Parameter>,
        weights: &[impl AsRef<[f32]>],
        device: Option<&Device>,
    ) -> Model {
        let engine = match device {
            None if architecture.is_fused() => Engine::Fused(Fused::new(shape)),
            _ => Engine::Graph(Graph::new(
                architecture,
                shape,
                &parameters,
                device.unwrap_or(&Device::Cpu),
            )),
        };
        let flat = flatten(&engine, weights);
        Model {
            architecture,
            shape,
            parameters,
            flat,
            engine,
        }
    }

    /// Every parameter, sorted by name.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// A copy of every parameter's elements, in the order of [`Model::parameters`].
    pub fn weights(&self) -> Vec<Vec<f32>> {
        self.split(&self.flat)
    }

    /// Takes every parameter's elements from `weights`, which are as [`Model::weights`] returned them.
    pub fn set_weights(&mut self, weights: &[Vec<f32>]) {
        self.flat = flatten(&self.engine, weights);
    }

    /// All parameters in the order in which the model reads them; padding in between is zero.
    pub fn flat(&self) -> &[f32] {
        &self.flat
    }

    /// The same, to be changed. Padding has to stay zero, as it does where its gradient is.
    pub fn flat_mut(&mut self) -> &mut [f32] {
        &mut self.flat
    }

    /// The parts of a vector in the order of [`Model::flat`], such as a gradient, that belong to each parameter.
    pub fn split(&self, flat: &[f32]) -> Vec<Vec<f32>> {
        let of = |parameter| {
            self.engine
                .places(parameter)
                .map(|place| flat[place])
                .collect()
        };
        (0..self.parameters.len()).map(of).collect()
    }

    /// A vector in the order of [`Model::flat`] from the parts that belong to each parameter, by name.
    ///
    /// # Errors
    /// Fails when a part is missing or of another size.
    pub fn join<'a>(&self, part: impl Fn(&str) -> Result<&'a [f32]>) -> Result<Floats> {
        Ok(flatten(&self.engine, &parts(&self.parameters, part)?))
    }

    /// The logits `[b]` of the success of the samples of `batch`.
    ///
    /// Row `b` of the result depends on no other row, and not on the number of threads.
    ///
    /// # Errors
    /// Fails where a device does.
    pub fn logits(&self, batch: &Batch<'_>) -> Result<Vec<f32>> {
        match &self.engine {
            Engine::Fused(fused) => Ok(fused.logits(&self.flat, batch)),
            Engine::Graph(graph) => graph.logits(&self.flat, batch),
        }
    }
}

fn parameters(architecture: &dyn Architecture, shape: Shape) -> Result<Vec<Parameter>> {
    shape.check()?;
    let mut parameters = architecture.parameters(&shape);
    parameters.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(parameters)
}

/// The elements of each parameter, checked before any memory is taken: a damaged file cannot ask for more than there is.
fn parts<'a>(
    parameters: &[Parameter],
    part: impl Fn(&str) -> Result<&'a [f32]>,
) -> Result<Vec<&'a [f32]>> {
    let checked = |parameter: &Parameter| {
        let Parameter { name, dims, .. } = parameter;
        let (values, count) = (part(name)?, parameter.len());
        ensure!(
            values.len() == count,
            "`{name}` has {} elements, expected {count} for {dims:?}",
            values.len()
        );
        Ok(values)
    };
    parameters.iter().map(checked).collect()
}

fn flatten(engine: &Engine, parts: &[impl AsRef<[f32]>]) -> Floats {
    let mut flat = Floats::zeros(engine.len());
    let numbers: &mut [f32] = &mut flat;
    for (parameter, part) in parts.iter().enumerate() {
        engine
            .places(parameter)
            .zip(part.as_ref())
            .for_each(|(place, &value)| numbers[place] = value);
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::chunk::SCORED_ROWS;
    use crate::models::{ARCHITECTURES, architecture};
    use crate::tensors::EMPTY_CELL;

    const SHAPE: Shape = Shape {
        e: 49,
        m: 5,
        j: 3,
        s: 2,
        hidden_size: 4,
        lstm_layers: 2,
    };

    fn model(name: &str, shape: Shape, seed: u64) -> Model {
        Model::new(architecture(name).expect("a model"), shape, seed).expect("a model")
    }

    fn logits(model: &Model, codes: &[u8], statics: &[f32]) -> Vec<f32> {
        model
            .logits(&Batch::new(&model.shape, codes, statics).expect("a batch"))
            .expect("logits")
    }

    #[test]
    fn rows_do_not_touch_each_other() {
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
        for &architecture in ARCHITECTURES {
            let model = model(architecture.name(), SHAPE, 1);
            let together = logits(&model, &codes, &statics);
            let samples = codes.chunks(15).zip(statics.chunks(2));
            let alone: Vec<f32> = samples
                .flat_map(|(codes, statics)| logits(&model, codes, statics))
                .collect();
            assert_eq!(together, alone, "{}", architecture.name());
            assert_ne!(together[0], together[1]);
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
                    values.iter().all(|w| w.abs() <= parameter.bound),
                    "{}",
                    parameter.name
                );
            }
        }
    }

    #[test]
    fn parameters_are_sorted_and_come_back_from_the_flat_vector() {
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
            assert_eq!(&*model.join(find).expect("joined"), model.flat());
            assert_eq!(
                model.flat().len() % 8,
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

    /// A step by hand, by the equations of `nn.LSTM`.
    #[test]
    fn one_cell_by_hand() {
        let shape = Shape {
            e: 49,
            m: 2,
            j: 1,
            s: 1,
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
    fn weights_of_another_shape_and_foreign_codes_are_refused() {
        let short = [0f32; 3];
        for &architecture in ARCHITECTURES {
            assert!(Model::with_weights(architecture, SHAPE, |_| Ok(&short)).is_err());
        }
        let lstm = architecture("lstm").expect("a model");
        for shape in [
            Shape {
                lstm_layers: 0,
                ..SHAPE
            },
            Shape {
                j: usize::MAX,
                ..SHAPE
            },
            Shape { m: 0, ..SHAPE },
        ] {
            assert!(
                Model::with_weights(lstm, shape, |_| Ok(&short)).is_err()
                    && Batch::new(&shape, &[], &[]).is_err()
            );
        }
        let refused = |codes: &[u8], statics: &[f32]| Batch::new(&SHAPE, codes, statics).is_err();
        assert!(!refused(&[48; 15], &[0.0; 2]) && refused(&[49; 15], &[0.0; 2]));
        assert!(refused(&[0; 14], &[0.0; 2]) && refused(&[0; 15], &[0.0; 3]));
    }
}
