//! The LSTM does what PyTorch's does: `tests/data/lstm/make.py` made the cases.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use candle_core::Device;
use poolcast::models::{Batch, Gradient, Lstm, Parameter, Reference, Shape};
use poolcast::training::{Adam, Rule};
use safetensors::SafeTensors;
use safetensors::tensor::Metadata;

const BATCH: usize = 4;
const RULE: Rule = Rule { learning_rate: 1e-2, weight_decay: 0.0, clip_grad_norm: 0.0 };

/// A case in memory: its tensors and the number of event types.
struct Case {
    bytes: Vec<u64>,
    len: usize,
    shape: Shape,
}

impl Case {
    fn read(name: &str) -> Case {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/lstm/{name}.safetensors"));
        let file = fs_err::read(path).expect("read");
        // Words keep the numbers aligned.
        let mut bytes = vec![0u64; file.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut bytes)[..file.len()].copy_from_slice(&file);
        let (_, metadata) = SafeTensors::read_metadata(&file).expect("a header");
        Case { bytes, len: file.len(), shape: shape(&metadata) }
    }

    fn tensor(&self, name: &str) -> Result<&[u8]> {
        let tensors = SafeTensors::deserialize(&bytemuck::cast_slice(&self.bytes)[..self.len])?;
        Ok(tensors.tensor(name).with_context(|| name.to_owned())?.data())
    }

    fn numbers(&self, name: &str) -> Result<&[f32]> {
        Ok(bytemuck::cast_slice(self.tensor(name)?))
    }

    fn model(&self) -> Lstm {
        Lstm::with_weights(self.shape, |name| self.numbers(&format!("weight/{name}"))).expect("a model")
    }

    fn batch(&self) -> Batch<'_> {
        let (codes, statics) = (self.tensor("codes").expect("codes"), self.numbers("statics").expect("statics"));
        Batch::new(&self.shape, codes, statics).expect("samples")
    }

    fn targets(&self) -> &[f32] {
        self.numbers("targets").expect("targets")
    }

    /// Samples `BATCH` at a time, with their targets.
    fn batches(&self) -> Vec<(Batch<'_>, &[f32])> {
        let Shape { m, j, s, .. } = self.shape;
        let (codes, statics) = (self.tensor("codes").expect("codes"), self.numbers("statics").expect("statics"));
        let batch = |(index, targets)| {
            let samples = index * BATCH..index * BATCH + <[f32]>::len(targets);
            let codes = &codes[samples.start * m * j..samples.end * m * j];
            let statics = &statics[samples.start * s..samples.end * s];
            (Batch::new(&self.shape, codes, statics).expect("samples"), targets)
        };
        self.targets().chunks(BATCH).enumerate().map(batch).collect()
    }

    fn assert_near(&self, found: &[f32], name: &str, tolerance: f32) {
        let expected = self.numbers(name).expect("a tensor");
        assert_eq!(found.len(), expected.len(), "{name}");
        for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert!((found - expected).abs() <= tolerance, "{name}[{at}] is {found}, in PyTorch {expected}");
        }
    }
}

fn shape(metadata: &Metadata) -> Shape {
    let dims = |name: &str| metadata.info(name).expect("a tensor").shape.clone();
    let e = metadata.metadata().as_ref().expect("notes")["e"].parse().expect("a number");
    let (codes, s) = (dims("codes"), dims("statics")[1]);
    let hidden_size = dims("weight/lstm.weight_hh_l0")[1];
    let has_layer = |layer: &usize| metadata.info(&format!("weight/lstm.weight_hh_l{layer}")).is_some();
    Shape { e, m: codes[1], j: codes[2], s, hidden_size, lstm_layers: (0..).take_while(has_layer).count() }
}

fn cases() -> impl Iterator<Item = Case> {
    ["one-layer", "two-layers", "three-layers", "four-layers", "one-of-each"].into_iter().map(Case::read)
}

/// The gradient's parts, each under the name of its parameter.
fn assert_gradient(case: &Case, gradient: &[Vec<f32>]) {
    for (parameter, part) in case.shape.parameters().iter().zip(gradient) {
        case.assert_near(part, &format!("gradient/{}", Parameter::name(parameter)), 1e-6);
    }
}

#[test]
fn logits_and_gradients_are_those_of_pytorch() {
    for case in cases() {
        let model = case.model();
        case.assert_near(&model.logits(&case.batch()), "logits", 1e-6);
        let mut gradient = Gradient::default();
        let loss = gradient.find(&model, &case.batch(), case.targets(), 1.0).expect("a gradient");
        assert!((loss as f32 - case.numbers("loss").expect("losses")[0]).abs() < 1e-6);
        assert_gradient(&case, &model.split(gradient.values()));
    }
}

#[test]
fn the_reference_is_what_pytorch_is() {
    for case in cases() {
        let reference = Reference::new(&case.model(), &Device::Cpu).expect("a model");
        let logits: Vec<f32> = reference.logits(&case.batch()).expect("logits").to_vec1().expect("a vector");
        case.assert_near(&logits, "logits", 1e-6);
        let (_, gradient) = reference.gradient(&case.batch(), case.targets(), 1.0).expect("a gradient");
        assert_gradient(&case, &gradient);
    }
}

#[test]
fn an_epoch_ends_where_that_of_pytorch_ends() {
    for case in cases() {
        let mut model = case.model();
        let (mut adam, mut gradient) = (Adam::new(model.flat().len()), Gradient::default());
        for (batch, targets) in case.batches() {
            gradient.find(&model, &batch, targets, 1.0).expect("a gradient");
            adam.step(model.flat_mut(), gradient.values(), &RULE);
        }
        let loss = gradient.find(&model, &case.batch(), case.targets(), 1.0).expect("a loss");
        let expected = case.numbers("loss").expect("losses")[1];
        assert!((loss as f32 - expected).abs() < 1e-5, "{loss}, in PyTorch {expected}");
    }
}
