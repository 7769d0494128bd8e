//! Measures how fast outcome tokens are made, and how fast the model that reads them scores and
//! trains, per second of processor time.
//!
//! `cargo bench --bench outcomes -- EVENTS TENSORS EPOCHS` prints one line each. `tokens` is the
//! whole build of the samples in TENSORS, in samples per second, and writes TENSORS if it does not
//! exist. The other lines have the samples per second of the fastest of EPOCHS passes, and the
//! result of the last pass. `ci/bench/outcomes` runs PyTorch on the same samples.

mod passes;
mod processor;

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use half::f16;
use passes::fastest_pass;
use poolcast_base::{output, seed};
use poolcast_config::{DEFAULT, yaml};
use poolcast_events::EventStore;
use poolcast_models::optim::{Adam, AdamSettings};
use poolcast_models::{
    Gradient, Model, ModelShape, REASON_WORDS, SampleBatch, Targets, TokenBatch, TrainingRecipe,
    find_architecture,
};
use poolcast_tensors::{Dataset, PreprocessingConfig, Split, TensorSettings, build};
use processor::processor_s;
use rand::Rng as _;
use serde::Deserialize;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Rounds of the build. The first one pays for memory that it touches for the first time.
const BUILDS: usize = 5;

const BATCH_SIZE: usize = 64;

const SHAPE: ModelShape = ModelShape {
    e: 48,
    m: 1,
    j: 1,
    s: 0,
    shared_bits: 0,
    hidden_size: 32,
    lstm_layers: 1,
};

/// The keys of the configuration that determine samples.
#[derive(Deserialize)]
struct SampleKeys {
    seed: u64,
    preprocessing: PreprocessingConfig,
}

/// Builds the samples in `tensors`, and prints the rate of the fastest build.
fn measure_build(store: &EventStore, tensors: &Path) -> Result<()> {
    let SampleKeys {
        seed,
        mut preprocessing,
    } = yaml::read(DEFAULT)?;
    preprocessing.outcomes = true;
    let mut settings = TensorSettings::new(&preprocessing, seed)?;
    (settings.j, settings.m, settings.timeframe_len_s) = (1, 1, 60);

    let (mut best, mut samples) = (f64::INFINITY, 0);
    for _ in 0..BUILDS {
        let start = processor_s();
        let summary = build(store, &settings, "bench", tensors, true, None, |_| {})?;
        best = best.min(processor_s() - start);
        samples = summary.splits.values().map(|side| side.samples).sum();
    }
    print_rate("tokens", samples, best, samples as f64)
}

fn print_rate(what: &str, samples: usize, processor_s: f64, result: f64) -> Result<()> {
    let rate = samples as f64 / processor_s;
    output::print(&format!("{what} {rate:.1} {result:.7}\n"))
}

/// The samples that are learned from.
struct TokenSamples {
    tokens: Vec<f32>,
    mask: Vec<f32>,
    question: Vec<f32>,
    codes: Vec<u8>,
    token_codes: Vec<u8>,
    words: Vec<f32>,
    labels: Vec<f32>,
}

impl TokenSamples {
    fn read(tensors: &Path) -> Result<TokenSamples> {
        let dataset = Dataset::open(tensors)?;
        let side = Split::Train;
        let tokens: Vec<f16> = dataset.column(side, "tokens")?;
        let mask: Vec<u8> = dataset.column(side, "token_mask")?;
        let labels: Vec<u8> = dataset.column(side, "label")?;
        let reasons: Vec<u16> = dataset.column(side, "question_reason")?;
        // Each shard has the same table.
        let table: Vec<f32> = dataset.column(side, "reason_words")?;
        let mut words = Vec::with_capacity(reasons.len() * REASON_WORDS);
        for row in reasons {
            let of_reason = table.chunks_exact(REASON_WORDS).nth(row.into());
            words.extend(of_reason.context("no such reason")?);
        }
        Ok(TokenSamples {
            tokens: tokens.iter().map(|number| number.to_f32()).collect(),
            mask: mask.into_iter().map(f32::from).collect(),
            question: dataset.column(side, "question")?,
            codes: dataset.column(side, "question_code")?,
            token_codes: dataset.column(side, "token_code")?,
            words,
            labels: labels.into_iter().map(f32::from).collect(),
        })
    }

    /// Calls `with` for each batch, with a share of its tokens and hidden units left out at random.
    fn for_each_batch(
        &self,
        units: usize,
        recipe: &TrainingRecipe,
        mut with: impl FnMut(&SampleBatch<'_>, &Targets<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut generator = seed::generator(1, "bench", &[]);
        let n = self.labels.len();
        for start in (0..n).step_by(BATCH_SIZE) {
            let range = start..n.min(start + BATCH_SIZE);
            let mut mask = rows(&self.mask, &range, n).to_vec();
            for is_token in &mut mask {
                if generator.random::<f32>() < recipe.token_dropout as f32 {
                    *is_token = 0.0;
                }
            }
            let factor = 1.0 / (1.0 - recipe.dropout as f32);
            let kept: Vec<f32> = (0..range.len() * units)
                .map(|_| f32::from(generator.random::<f32>() >= recipe.dropout as f32) * factor)
                .collect();
            let codes = vec![0; range.len()];
            let batch = SampleBatch::new(&SHAPE, &codes, &[])?.with_tokens(TokenBatch {
                tokens: rows(&self.tokens, &range, n),
                mask: &mask,
                question: rows(&self.question, &range, n),
                codes: rows(&self.codes, &range, n),
                token_codes: rows(&self.token_codes, &range, n),
                words: rows(&self.words, &range, n),
                kept: &kept,
            })?;
            let weights = vec![1.0; range.len()];
            let labels = rows(&self.labels, &range, n);
            with(
                &batch,
                &Targets {
                    labels,
                    weights: &weights,
                },
            )?;
        }
        Ok(())
    }
}

/// Returns the elements of the samples `range` of `n`.
fn rows<'a, T>(all: &'a [T], range: &std::ops::Range<usize>, n: usize) -> &'a [T] {
    let width = all.len() / n;
    &all[range.start * width..range.end * width]
}

/// Prints the samples per second of the fastest of `epochs` passes.
fn measure(
    what: &str,
    samples: usize,
    epochs: usize,
    pass: impl FnMut() -> Result<f64> + Send,
) -> Result<()> {
    let (best, result) = fastest_pass(epochs, pass)?;
    print_rate(what, samples, best, result)
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let [events, tensors, epochs] = args.as_slice() else {
        bail!("name events, tensors and a number of epochs")
    };
    let (tensors, epochs) = (Path::new(tensors), epochs.parse()?);
    measure_build(&EventStore::open(Path::new(events))?, tensors)?;

    let samples = TokenSamples::read(tensors)?;
    let n = samples.labels.len();
    let architecture = find_architecture("outcomes")?;
    let recipe = architecture.recipe();
    let mut model = Model::new(architecture, SHAPE, 1)?;
    measure("infer", n, epochs, || {
        let mut sum = 0.0;
        samples.for_each_batch(0, &TrainingRecipe::default(), |batch, _| {
            let logits = model.logits(batch)?;
            sum += logits.into_iter().map(f64::from).sum::<f64>();
            Ok(())
        })?;
        Ok(sum / n as f64)
    })?;

    let adam_settings = AdamSettings {
        learning_rate: 3e-3,
        weight_decay: recipe.weight_decay,
        clip_grad_norm: recipe.clip_grad_norm,
    };
    let (mut adam, mut gradient) = (Adam::new(model.flat_weights().len()), Gradient::default());
    measure("train", n, epochs, || {
        let mut total = 0.0;
        let units = architecture.dropout_units(&SHAPE);
        samples.for_each_batch(units, &recipe, |batch, targets| {
            total += gradient.compute(&model, batch, targets)? * batch.len() as f64;
            adam.step(model.flat_weights_mut(), gradient.values(), &adam_settings);
            Ok(())
        })?;
        Ok(total / n as f64)
    })
}
