//! Tests of models against the same models in PyTorch. `tests/data/models/make.py` made the cases.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use poolcast_models::optim::{Adam, AdamSettings};
use poolcast_models::{
    Architecture, Device, Gradient, Model, ModelShape, SampleBatch, Targets, find_architecture,
};
use safetensors::SafeTensors;
use safetensors::tensor::Metadata;

const BATCH: usize = 4;
/// Weights of samples that all count once.
const ONCE: [f32; 64] = [1.0; 64];
const ADAM: AdamSettings = AdamSettings {
    learning_rate: 1e-2,
    weight_decay: 0.0,
    clip_grad_norm: 0.0,
};

/// A case in memory: its tensors and its model.
struct Case {
    architecture: &'static dyn Architecture,
    bytes: Vec<u64>,
    len: usize,
    shape: ModelShape,
}

impl Case {
    fn read(name: &str) -> Case {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../../tests/data/models/{name}.safetensors"));
        let file = fs_err::read(path).expect("read");
        // A vector of words keeps the numbers aligned.
        let mut bytes = vec![0u64; file.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut bytes)[..file.len()].copy_from_slice(&file);
        let (_, metadata) = SafeTensors::read_metadata(&file).expect("a header");
        let kind = name.split('-').next().expect("a model's name");
        let architecture = find_architecture(kind).expect("a model");
        Case {
            architecture,
            bytes,
            len: file.len(),
            shape: shape(&metadata),
        }
    }

    fn tensor(&self, name: &str) -> Result<&[u8]> {
        let tensors = SafeTensors::deserialize(&bytemuck::cast_slice(&self.bytes)[..self.len])?;
        Ok(tensors
            .tensor(name)
            .with_context(|| name.to_owned())?
            .data())
    }

    fn numbers(&self, name: &str) -> Result<&[f32]> {
        Ok(bytemuck::cast_slice(self.tensor(name)?))
    }

    /// Returns the model with the operations of candle, and the model as used on a CPU.
    fn models(&self) -> [Model; 2] {
        let weight = |name: &str| self.numbers(&format!("weight/{name}"));
        let model = Model::with_weights(self.architecture, self.shape, weight).expect("a model");
        [model.in_candle(&Device::Cpu), model]
    }

    fn batch(&self) -> SampleBatch<'_> {
        let (codes, statics) = (
            self.tensor("codes").expect("codes"),
            self.numbers("statics").expect("statics"),
        );
        SampleBatch::new(&self.shape, codes, statics).expect("samples")
    }

    fn targets(&self) -> Targets<'_> {
        let labels = self.numbers("targets").expect("targets");
        Targets {
            labels,
            weights: &ONCE[..labels.len()],
        }
    }

    /// Divides the samples into batches of `BATCH`, with their targets.
    fn batches(&self) -> Vec<(SampleBatch<'_>, Targets<'_>)> {
        let ModelShape { m, j, s, .. } = self.shape;
        let (codes, statics) = (
            self.tensor("codes").expect("codes"),
            self.numbers("statics").expect("statics"),
        );
        let batch = |(index, labels)| {
            let samples = index * BATCH..index * BATCH + <[f32]>::len(labels);
            let codes = &codes[samples.start * m * j..samples.end * m * j];
            let statics = &statics[samples.start * s..samples.end * s];
            (
                SampleBatch::new(&self.shape, codes, statics).expect("samples"),
                Targets {
                    labels,
                    weights: &ONCE[..labels.len()],
                },
            )
        };
        self.targets()
            .labels
            .chunks(BATCH)
            .enumerate()
            .map(batch)
            .collect()
    }

    fn assert_near(&self, found: &[f32], name: &str, tolerance: f32) {
        let expected = self.numbers(name).expect("a tensor");
        assert_eq!(found.len(), expected.len(), "{name}");
        for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert!(
                (found - expected).abs() <= tolerance,
                "{name}[{at}] is {found}, in PyTorch {expected}"
            );
        }
    }
}

fn shape(metadata: &Metadata) -> ModelShape {
    let dims = |name: &str| metadata.info(name).expect("a tensor").shape.clone();
    let sizes = metadata.metadata().as_ref().expect("notes")["sizes"]
        .split(' ')
        .map(|n| n.parse().expect("a number"));
    let [e, hidden_size, lstm_layers] = sizes
        .collect::<Vec<usize>>()
        .try_into()
        .expect("three sizes");
    let (codes, s) = (dims("codes"), dims("statics")[1]);
    ModelShape {
        e,
        m: codes[1],
        j: codes[2],
        s,
        shared_bits: 0,
        hidden_size,
        lstm_layers,
    }
}

fn cases() -> impl Iterator<Item = Case> {
    let lstm = [
        "one-layer",
        "two-layers",
        "three-layers",
        "four-layers",
        "one-of-each",
    ]
    .map(|name| format!("lstm-{name}"));
    let others = [
        "gru-one-layer",
        "gru-two-layers",
        "gru-one-of-each",
        "mlp-one-layer",
        "mlp-three-layers",
    ];
    lstm.into_iter()
        .chain(others.map(str::to_owned))
        .map(|name| Case::read(&name))
}

#[test]
fn logits_and_gradients_match_pytorch() {
    for case in cases() {
        for model in case.models() {
            case.assert_near(
                &model.logits(&case.batch()).expect("logits"),
                "logits",
                1e-6,
            );
            let mut gradient = Gradient::default();
            let loss = gradient
                .compute(&model, &case.batch(), &case.targets())
                .expect("a gradient");
            assert!((loss as f32 - case.numbers("loss").expect("losses")[0]).abs() < 1e-6);
            for (parameter, part) in model
                .parameters()
                .iter()
                .zip(model.split_by_parameter(gradient.values()))
            {
                case.assert_near(&part, &format!("gradient/{}", parameter.name), 1e-6);
            }
        }
    }
}

#[test]
fn loss_after_one_epoch_matches_pytorch() {
    for case in cases() {
        for mut model in case.models() {
            let (mut adam, mut gradient) =
                (Adam::new(model.flat_weights().len()), Gradient::default());
            for (batch, targets) in case.batches() {
                gradient
                    .compute(&model, &batch, &targets)
                    .expect("a gradient");
                adam.step(model.flat_weights_mut(), gradient.values(), &ADAM);
            }
            let loss = gradient
                .compute(&model, &case.batch(), &case.targets())
                .expect("a loss");
            let expected = case.numbers("loss").expect("losses")[1];
            assert!(
                (loss as f32 - expected).abs() < 1e-5,
                "{loss}, in PyTorch {expected}"
            );
        }
    }
}
