//! Loss of a batch and the gradient of all parameters, in chunks that run in parallel and are added
//! in order.

use anyhow::{Result, ensure};

use super::engine::FusedGradient;
use super::model::ModelEngine;
use super::{AlignedFloats, Model, SampleBatch, Targets};
use poolcast_base::output;

/// The gradient of a model's loss, with reusable working memory.
#[derive(Debug, Default)]
pub struct Gradient {
    values: AlignedFloats,
    fused: FusedGradient,
}

impl Gradient {
    /// Computes the gradient of the mean cross-entropy of `batch` against `targets`. Returns the
    /// mean.
    ///
    /// The result does not depend on the number of threads.
    ///
    /// # Errors
    /// Fails for an empty batch, when a sample lacks a label or a weight, and when the device
    /// fails.
    pub fn compute(
        &mut self,
        model: &Model,
        batch: &SampleBatch<'_>,
        targets: &Targets<'_>,
    ) -> Result<f64> {
        let counts = [
            (targets.labels.len(), "label"),
            (targets.weights.len(), "weight"),
        ];
        for (count, name) in counts {
            ensure!(
                count == batch.len(),
                "{} for {}",
                output::counted(count, name),
                output::counted(batch.len(), "sample")
            );
        }
        ensure!(!batch.is_empty(), "there is no sample to learn from");

        let flat = model.flat_weights();
        if self.values.len() == flat.len() {
            self.values.fill(0.0);
        } else {
            self.values = AlignedFloats::zeros(flat.len());
        }
        let loss = match &model.engine {
            ModelEngine::Fused(lstm) => {
                self.fused
                    .add_gradient(lstm, flat, batch, targets, &mut self.values)
            }
            ModelEngine::Records(records) => {
                records.add_gradient(flat, batch, targets, &mut self.values)?
            }
            ModelEngine::Candle(graph) => {
                graph.add_gradient(flat, batch, targets, &mut self.values)?
            }
        };
        Ok(loss / batch.len() as f64)
    }

    /// The last computed gradient, in the order of [`Model::flat_weights`].
    pub fn values(&self) -> &[f32] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;
    use proptest::prelude::*;
    use rand::Rng as _;

    use super::*;
    use crate::EMPTY_CELL;
    use crate::architectures::lstm::LSTM;
    use crate::labelled_chunk::TRAINED_ROWS;
    use crate::token_batch::TokenColumns;
    use crate::token_batch::tests::random_tokens;
    use crate::{ARCHITECTURES, ModelShape, find_architecture};

    /// Samples of a shape. Codes stay the same for a while, and one frame of each sample is empty.
    struct RandomSamples {
        shape: ModelShape,
        codes: Vec<u8>,
        shared: Vec<u8>,
        statics: Vec<f32>,
        tokens: TokenColumns,
        labels: Vec<f32>,
        weights: Vec<f32>,
    }

    impl RandomSamples {
        fn new(shape: ModelShape, b: usize, seed: u64) -> RandomSamples {
            let mut generator = poolcast_base::seed::generator(seed, "samples", &[]);
            let mut codes = vec![EMPTY_CELL; b * shape.m * shape.j];
            for sample in codes.chunks_exact_mut(shape.m * shape.j) {
                let changes = generator.random_range(0.0..0.6);
                for cell in 0..sample.len() {
                    let is_new = cell < shape.j || generator.random_bool(changes);
                    let drawn = generator.random_range(0..=shape.e);
                    let drawn = if drawn == shape.e {
                        EMPTY_CELL
                    } else {
                        drawn as u8
                    };
                    sample[cell] = if is_new {
                        drawn
                    } else {
                        sample[cell - shape.j]
                    };
                }
                let empty = generator.random_range(0..shape.m);
                sample[empty * shape.j..][..shape.j].fill(EMPTY_CELL);
            }
            let statics = (0..b * shape.s)
                .map(|_| generator.random_range(-1.0..1.0))
                .collect();
            let shared = (0..b * shape.shared_bytes())
                .map(|_| generator.random())
                .collect();
            let labels = (0..b)
                .map(|_| f32::from(u8::from(generator.random_bool(0.4))))
                .collect();
            let weights = (0..b).map(|_| generator.random_range(0.1..4.0)).collect();
            RandomSamples {
                shape,
                codes,
                shared,
                statics,
                tokens: random_tokens(b, 0, seed),
                labels,
                weights,
            }
        }

        fn batch(&self) -> SampleBatch<'_> {
            let batch =
                SampleBatch::with_shared(&self.shape, &self.codes, &self.shared, &self.statics);
            let batch = batch.expect("a batch").with_tokens(self.tokens.batch());
            batch.expect("tokens")
        }

        fn targets(&self) -> Targets<'_> {
            Targets {
                labels: &self.labels,
                weights: &self.weights,
            }
        }
    }

    fn shapes() -> impl Strategy<Value = ModelShape> {
        let sizes = (
            1usize..8,
            1usize..70,
            1usize..20,
            0usize..4,
            prop_oneof![Just(0usize), 1usize..7],
            1usize..45,
            1usize..5,
        );
        sizes.prop_map(
            |(e, m, j, s, shared_bits, hidden_size, lstm_layers)| ModelShape {
                e,
                m,
                j,
                s,
                shared_bits,
                hidden_size,
                lstm_layers,
            },
        )
    }

    fn assert_near(found: &[f32], expected: &[f32], tolerance: f32, what: &str) {
        assert_eq!(found.len(), expected.len());
        for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert!(
                (found - expected).abs() <= tolerance,
                "{what}[{at}]: {found}, expected {expected}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn the_engine_agrees_with_the_reference(shape in shapes(), b in 1usize..80, seed: u64) {
            assert_engines_agree(shape, b, seed);
        }
    }

    /// Asserts that both engines return the same logits, loss and gradient for `b` samples, within
    /// 1e-5, 2e-5 and 1e-5.
    fn assert_engines_agree(shape: ModelShape, b: usize, seed: u64) {
        let samples = RandomSamples::new(shape, b, seed);
        let batch = samples.batch();
        let targets = samples.targets();
        let model = Model::new(&LSTM, shape, seed).expect("a model");
        let reference = model.in_candle(&Device::Cpu);
        let expected = reference.logits(&batch).expect("logits");
        assert_near(
            &model.logits(&batch).expect("logits"),
            &expected,
            1e-5,
            "logits",
        );

        let mut gradient = Gradient::default();
        let found = gradient.compute(&reference, &batch, &targets);
        let expected_loss = found.expect("a gradient");
        let expected = reference.split_by_parameter(gradient.values());
        let loss = gradient
            .compute(&model, &batch, &targets)
            .expect("a gradient");
        assert!(
            (loss - expected_loss).abs() < 2e-5,
            "loss {loss}, expected {expected_loss}"
        );
        let found = model.split_by_parameter(gradient.values());
        for ((parameter, found), expected) in model.parameters().iter().zip(&found).zip(&expected) {
            assert_near(found, expected, 1e-5, &parameter.name);
        }

        let padding = gradient.values().iter().filter(|g| **g != 0.0).count();
        let nonzero_parameters = found.iter().flatten().filter(|g| **g != 0.0).count();
        assert_eq!(padding, nonzero_parameters, "padding has a gradient");
    }

    /// With dropout, and more hidden units than fit in a buffer of the engine.
    #[test]
    fn the_engine_of_outcomes_agrees_with_candle() {
        for (b, hidden_size) in [(1, 3), (37, 32), (20, 70)] {
            let shape = ModelShape {
                e: 2,
                m: 1,
                j: 1,
                s: 0,
                shared_bits: 0,
                hidden_size,
                lstm_layers: 1,
            };
            let outcomes = find_architecture("outcomes").expect("a model");
            let units = outcomes.dropout_units(&shape);
            let samples = RandomSamples {
                tokens: random_tokens(b, units, 3),
                ..RandomSamples::new(shape, b, 3)
            };
            let model = Model::new(outcomes, shape, 3).expect("a model");
            let reference = model.in_candle(&Device::Cpu);
            let logits = |model: &Model| model.logits(&samples.batch()).expect("logits");
            assert_near(&logits(&model), &logits(&reference), 2e-5, "logits");

            let compute = |model: &Model| {
                let mut gradient = Gradient::default();
                let loss = gradient.compute(model, &samples.batch(), &samples.targets());
                let parts = model.split_by_parameter(gradient.values());
                (loss.expect("a gradient"), parts)
            };
            let ((loss, found), (expected_loss, expected)) = (compute(&model), compute(&reference));
            assert!(
                (loss - expected_loss).abs() < 2e-5,
                "{loss} {expected_loss}"
            );
            for ((spec, found), expected) in model.parameters().iter().zip(&found).zip(&expected) {
                assert!(found.iter().any(|d| *d != 0.0), "{}", spec.name);
                assert_near(found, expected, 2e-5, &spec.name);
            }
        }
    }

    /// The sizes S, M and L of `ci/bench/train`.
    #[test]
    fn the_engine_agrees_with_candle_at_the_sizes_of_the_bench() {
        for (m, j, hidden_size, lstm_layers) in
            [(20, 20, 32, 1), (60, 50, 64, 2), (100, 100, 128, 4)]
        {
            let shape = ModelShape {
                e: 48,
                m,
                j,
                s: 0,
                shared_bits: 0,
                hidden_size,
                lstm_layers,
            };
            assert_engines_agree(shape, 5, 1);
        }
    }

    #[test]
    fn gradients_do_not_depend_on_thread_count() {
        let shape = ModelShape {
            e: 9,
            m: 11,
            j: 6,
            s: 1,
            shared_bits: 0,
            hidden_size: 20,
            lstm_layers: 3,
        };
        let samples = RandomSamples::new(shape, 19 * TRAINED_ROWS + 5, 1);
        for &architecture in ARCHITECTURES {
            let model = Model::new(architecture, shape, 1).expect("a model");
            let find = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .expect("a pool");
                pool.install(|| {
                    let mut gradient = Gradient::default();
                    let loss = gradient
                        .compute(&model, &samples.batch(), &samples.targets())
                        .expect("a gradient");
                    (
                        loss,
                        gradient.values().to_vec(),
                        model.logits(&samples.batch()).expect("logits"),
                    )
                })
            };
            let one = find(1);
            assert!(find(2) == one && find(8) == one, "{}", architecture.name());
        }
    }

    #[test]
    fn a_gradient_does_not_depend_on_the_previous_one() {
        let shape = ModelShape {
            e: 5,
            m: 40,
            j: 3,
            s: 1,
            shared_bits: 0,
            hidden_size: 9,
            lstm_layers: 2,
        };
        let (many, few) = (
            RandomSamples::new(shape, 70, 1),
            RandomSamples::new(shape, 2, 2),
        );
        for &architecture in ARCHITECTURES {
            let model = Model::new(architecture, shape, 1).expect("a model");
            let mut gradient = Gradient::default();
            let mut compute = |samples: &RandomSamples| {
                let loss = gradient
                    .compute(&model, &samples.batch(), &samples.targets())
                    .expect("a gradient");
                (loss, gradient.values().to_vec())
            };
            let first = compute(&few);
            compute(&many);
            assert_eq!(compute(&few), first);
            let one_label = Targets {
                labels: &[1.0],
                ..few.targets()
            };
            let one_weight = Targets {
                weights: &[1.0],
                ..few.targets()
            };
            let no_label = Targets {
                labels: &[],
                weights: &[],
            };
            for wrong in [&one_label, &one_weight] {
                assert!(gradient.compute(&model, &few.batch(), wrong).is_err());
            }
            let none = RandomSamples::new(shape, 0, 1);
            let none = none.batch();
            assert!(
                gradient.compute(&model, &none, &no_label).is_err()
                    && model.logits(&none).expect("none").is_empty()
            );
        }
    }

    /// Compares the gradient with the change of the loss along it, over more frames than one graph
    /// has.
    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        let shape = ModelShape {
            e: 4,
            m: 37,
            j: 3,
            s: 2,
            shared_bits: 0,
            hidden_size: 5,
            lstm_layers: 2,
        };
        let samples = RandomSamples::new(shape, 7, 4);
        for &architecture in ARCHITECTURES {
            let mut model = Model::new(architecture, shape, 4).expect("a model");
            let mut gradient = Gradient::default();
            gradient
                .compute(&model, &samples.batch(), &samples.targets())
                .expect("a gradient");
            let slope = gradient.values().to_vec();
            let square: f64 = slope.iter().map(|g| f64::from(*g).powi(2)).sum();
            let mut loss_at = |step: f32| {
                model
                    .flat_weights_mut()
                    .iter_mut()
                    .zip(&slope)
                    .for_each(|(weight, g)| *weight += step * g);
                let loss = gradient
                    .compute(&model, &samples.batch(), &samples.targets())
                    .expect("a gradient");
                model
                    .flat_weights_mut()
                    .iter_mut()
                    .zip(&slope)
                    .for_each(|(weight, g)| *weight -= step * g);
                loss
            };
            // The loss is curved, so a long gradient needs a short step.
            let step = 0.02 / square.max(1.0);
            let found = (loss_at(step as f32) - loss_at(-step as f32)) / (2.0 * step);
            assert!(
                (found / square - 1.0).abs() < 2e-3,
                "{}: {found} and {square}",
                architecture.name()
            );
        }
    }

    /// Takes the largest depth and many frames, on a thread's default stack.
    #[test]
    fn many_layers_and_frames_do_not_exhaust_the_stack() {
        let shape = ModelShape {
            e: 2,
            m: 300,
            j: 1,
            s: 1,
            shared_bits: 0,
            hidden_size: 2,
            lstm_layers: 16,
        };
        let samples = RandomSamples::new(shape, 1, 1);
        for &architecture in ARCHITECTURES {
            let model = Model::new(architecture, shape, 1)
                .expect("a model")
                .in_candle(&Device::Cpu);
            let loss = Gradient::default()
                .compute(&model, &samples.batch(), &samples.targets())
                .expect("a gradient");
            assert!(loss.is_finite());
        }
    }

    /// Expected values by hand. All weights are zero, so every logit is 0. The slope of the bias is
    /// the sum of 1/2 per failure and -w/2 per success, divided by the number of samples.
    #[test]
    fn samples_count_by_their_weight() {
        let shape = ModelShape {
            e: 3,
            m: 2,
            j: 1,
            s: 0,
            shared_bits: 0,
            hidden_size: 2,
            lstm_layers: 1,
        };
        let batch = SampleBatch::new(&shape, &[0, 1, 2, 0, 1, 1], &[]).expect("a batch");
        let targets = Targets {
            labels: &[1.0, 0.0, 1.0],
            weights: &[3.0, 1.0, 3.0],
        };
        let fused = Model::new(&LSTM, shape, 1).expect("a model");
        for mut model in [fused.in_candle(&Device::Cpu), fused] {
            model.flat_weights_mut().fill(0.0);
            let mut gradient = Gradient::default();
            let loss = gradient
                .compute(&model, &batch, &targets)
                .expect("a gradient");
            assert!((loss - 7.0 * 2f64.ln() / 3.0).abs() < 1e-12, "{loss}");
            let bias = model.split_by_parameter(gradient.values())[0][0];
            assert!((bias - (0.5 - 1.5 - 1.5) / 3.0).abs() < 1e-7, "{bias}");
        }
    }
}
