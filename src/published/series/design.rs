//! Design of a network over frames: its kind, its size and its shape.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use poolcast_config::WaitModelSize;

/// Consecutive frames that small networks average, if this divides the number of frames.
const POOLED_FRAMES: usize = 6;

/// Maximum number of transformers in a mixture.
pub const MAX_EXPERTS: usize = 10;

/// Frames and columns of each convolution kernel.
pub(super) const KERNELS: [(usize, usize); 2] = [(4, 4), (8, 4)];

/// Frames and columns by which both kernels together shorten a sample.
pub(super) const KERNEL_REDUCTION: (usize, usize) = (
    KERNELS[0].0 + KERNELS[1].0 - 2,
    KERNELS[0].1 + KERNELS[1].1 - 2,
);

/// A kind of network over frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeriesKind {
    /// Linear layers over all numbers.
    Dense,
    /// A transformer encoder.
    Transformer,
    /// A mixture of transformers, weighted by a gate.
    Mixture,
    /// A single transformer of a mixture.
    Expert,
    /// Two convolution layers over frames and columns.
    Convolution,
    /// An LSTM.
    Recurrence,
}

/// The design of a network, without its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesDesign {
    /// Kind of the network.
    pub kind: SeriesKind,
    /// Size of the network.
    pub size: WaitModelSize,
    /// Frames of a sample, `t`.
    pub frames: usize,
    /// Numbers per frame, `c`.
    pub columns: usize,
    /// Outputs, `k`.
    pub outputs: usize,
}

/// The widths of a transformer encoder.
#[derive(Debug, Clone, Copy)]
pub(super) struct EncoderWidths {
    /// Width of an embedded frame, `d`.
    pub(super) model: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    /// Width between the two linear layers of an encoder layer.
    pub(super) feedforward: usize,
}

/// Channels of two convolution layers, and the width of the linear layer after them.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConvolutionWidths {
    pub(super) first: usize,
    pub(super) second: usize,
    pub(super) linear: usize,
}

impl SeriesDesign {
    /// The number of frames after averaging.
    pub(super) fn steps(&self) -> usize {
        self.frames / self.pooled_frames()
    }

    /// The number of consecutive frames to average.
    pub(super) fn pooled_frames(&self) -> usize {
        let is_even = self.frames.is_multiple_of(POOLED_FRAMES);
        match self.size {
            WaitModelSize::Small if is_even => POOLED_FRAMES,
            _ => 1,
        }
    }

    /// The widths of a transformer, or of each transformer of a mixture.
    pub(super) fn encoder_widths(&self) -> EncoderWidths {
        let is_in_mixture = matches!(self.kind, SeriesKind::Mixture | SeriesKind::Expert);
        match (self.size, is_in_mixture) {
            (WaitModelSize::Published, false) => EncoderWidths {
                model: 512,
                layers: 2,
                heads: 2,
                feedforward: 128,
            },
            (WaitModelSize::Published, true) => EncoderWidths {
                model: 512,
                layers: 1,
                heads: 1,
                feedforward: 128,
            },
            (WaitModelSize::Small, false) => EncoderWidths {
                model: 64,
                layers: 1,
                heads: 2,
                feedforward: 128,
            },
            (WaitModelSize::Small, true) => EncoderWidths {
                model: 32,
                layers: 1,
                heads: 1,
                feedforward: 64,
            },
        }
    }

    /// The number of transformers in a mixture.
    pub fn experts(&self) -> usize {
        match self.size {
            WaitModelSize::Small => 4,
            WaitModelSize::Published => MAX_EXPERTS,
        }
    }

    /// The widths of a convolution network.
    pub(super) fn convolution_widths(&self) -> ConvolutionWidths {
        match self.size {
            WaitModelSize::Small => ConvolutionWidths {
                first: 8,
                second: 16,
                linear: 32,
            },
            WaitModelSize::Published => ConvolutionWidths {
                first: 64,
                second: 128,
                linear: 128,
            },
        }
    }

    /// The width of an LSTM's state, and of the linear layer after it.
    pub(super) fn state_width(&self) -> usize {
        match self.size {
            WaitModelSize::Small => 64,
            WaitModelSize::Published => 128,
        }
    }

    /// The widths of the linear layers over all numbers, except the last.
    pub(super) fn dense_widths(&self) -> &'static [usize] {
        match self.size {
            WaitModelSize::Small => &[64, 64],
            WaitModelSize::Published => &[512, 256, 128, 64],
        }
    }

    /// The number of outputs of all experts of a mixture together. For other networks, the number
    /// of outputs.
    pub fn inner_outputs(&self) -> usize {
        match self.kind {
            SeriesKind::Mixture => self.experts() * self.outputs,
            _ => self.outputs,
        }
    }

    /// The number of numbers in a sample.
    pub fn sample_len(&self) -> usize {
        self.frames * self.columns
    }

    /// Checks the shape.
    ///
    /// # Errors
    /// Fails for a shape that no network of this kind can have.
    pub(super) fn check(&self) -> Result<()> {
        for (name, size) in [
            ("frames", self.frames),
            ("columns", self.columns),
            ("outputs", self.outputs),
        ] {
            ensure!(
                (1..=10_000).contains(&size),
                "a network cannot have {size} {name}"
            );
        }
        if self.kind == SeriesKind::Convolution {
            let (frames, columns) = KERNEL_REDUCTION;
            ensure!(
                self.steps() > frames && self.columns > columns,
                "convolutions need more than {frames} frames and {columns} columns, not {} and {}",
                self.steps(),
                self.columns
            );
        }
        Ok(())
    }
}
