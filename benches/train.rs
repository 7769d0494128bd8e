//! Measures how fast a model trains and scores, in samples per second of processor time, and the
//! peak memory.
//!
//! `cargo bench --bench train -- SIZE EPOCHS [MODEL|FILE]` prints one line for scoring and one for
//! training. SIZE is S, M or L. The model is an LSTM unless MODEL names another. With FILE, the
//! program only writes the samples to it, as `ci/bench/train` passes them to PyTorch: codes `[n, m,
//! j]`, then labels `[n]`, a byte each.

mod passes;
mod processor;

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use passes::fastest_pass;
use poolcast_base::{files, output, seed};
use poolcast_models::optim::{Adam, AdamSettings};
use poolcast_models::{Gradient, Model, ModelShape, SampleBatch, Targets, find_architecture};
use rand::Rng as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Fraction of cells that are drawn again in each frame. In real logs it is 0.02 to 0.24.
const CHANGED_FRACTION: f64 = 0.2;
/// Codes of common states. Most jobs are in one of these.
const COMMON_STATES: std::ops::Range<u8> = 0..9;
/// Fraction of draws that use all states, not only the common ones.
const RARE_FRACTION: f64 = 0.08;
const ADAM: AdamSettings = AdamSettings {
    learning_rate: 1e-3,
    weight_decay: 0.0,
    clip_grad_norm: 0.0,
};

/// A benchmark size: the shape of the model, the number of samples, and the batch size.
struct Size {
    shape: ModelShape,
    n: usize,
    batch_size: usize,
}

impl Size {
    fn of(name: &str) -> Result<Size> {
        let shape = |m, j, hidden_size, lstm_layers| ModelShape {
            e: 48,
            m,
            j,
            s: 0,
            shared_bits: 0,
            hidden_size,
            lstm_layers,
        };
        Ok(match name {
            "S" => Size {
                shape: shape(20, 20, 32, 1),
                n: 16_384,
                batch_size: 64,
            },
            "M" => Size {
                shape: shape(60, 50, 64, 2),
                n: 2048,
                batch_size: 64,
            },
            "L" => Size {
                shape: shape(100, 100, 128, 4),
                n: 512,
                batch_size: 128,
            },
            _ => bail!("`{name}` is none of S, M, L"),
        })
    }

    /// Draws codes `[n, m, j]` of jobs that keep their state for some frames.
    fn codes(&self) -> Vec<u8> {
        let ModelShape { e, m, j, .. } = self.shape;
        let mut generator = seed::generator(1, "bench", &[]);
        let mut codes = vec![0; self.n * m * j];
        for cell in 0..codes.len() {
            let is_first = cell % (m * j) < j;
            codes[cell] = match is_first || generator.random_bool(CHANGED_FRACTION) {
                true if generator.random_bool(RARE_FRACTION) => generator.random_range(0..e as u8),
                true => generator.random_range(COMMON_STATES),
                false => codes[cell - j],
            };
        }
        codes
    }
}

/// Prints the samples per second of the fastest of `epochs` passes, the result of the last pass,
/// and the peak memory.
fn measure(
    what: &str,
    samples: usize,
    epochs: usize,
    pass: impl FnMut() -> Result<f64> + Send,
) -> Result<()> {
    let (best, result) = fastest_pass(epochs, pass)?;
    output::print(&format!(
        "{what} {:.1} {result:.7} {:.1}\n",
        samples as f64 / best,
        peak_mb()?
    ))
}

/// Returns the peak memory of this process, in MB.
fn peak_mb() -> Result<f64> {
    let status = fs_err::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .context("no such field")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024.0 / 1e6)
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let [name, epochs, rest @ ..] = args.as_slice() else {
        bail!("name a size and a number of epochs")
    };
    let (size, epochs) = (Size::of(name)?, epochs.parse()?);
    let Size {
        shape,
        n,
        batch_size,
    } = size;
    let codes = size.codes();
    let labels: Vec<u8> = (0..n).map(|sample| u8::from(sample % 5 < 2)).collect();
    let model = match rest {
        [] => "lstm",
        [model] if find_architecture(model).is_ok() => model,
        [file, ..] => return files::write_atomic(Path::new(file), &[codes, labels].concat()),
    };
    let targets: Vec<f32> = labels.iter().map(|&label| f32::from(label)).collect();
    let once = vec![1.0; batch_size];
    let batches: Vec<(SampleBatch<'_>, Targets<'_>)> = codes
        .chunks(batch_size * shape.m * shape.j)
        .map(|codes| SampleBatch::new(&shape, codes, &[]))
        .zip(targets.chunks(batch_size))
        .map(|(batch, labels)| {
            let weights = &once[..labels.len()];
            Ok((batch?, Targets { labels, weights }))
        })
        .collect::<Result<_>>()?;
    let mut model = Model::new(find_architecture(model)?, shape, 1)?;
    measure("infer", n, epochs, || {
        let sum = |(batch, _): &(SampleBatch<'_>, _)| {
            Ok(model
                .logits(batch)?
                .iter()
                .map(|&x| f64::from(x))
                .sum::<f64>())
        };
        Ok(batches.iter().map(sum).sum::<Result<f64>>()? / n as f64)
    })?;
    let (mut adam, mut gradient) = (Adam::new(model.flat_weights().len()), Gradient::default());
    measure("train", n, epochs, || {
        let mut total = 0.0;
        for (batch, targets) in &batches {
            total += gradient.compute(&model, batch, targets)? * batch.len() as f64;
            adam.step(model.flat_weights_mut(), gradient.values(), &ADAM);
        }
        Ok(total / n as f64)
    })
}
