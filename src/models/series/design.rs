//! What a network over frames is: its kind, its size and its shape.

use std::fmt;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// Small networks see the means of so many frames in a row, where these come out even.
const POOLED_FRAMES: usize = 6;

/// The most transformers that a mixture has.
pub const MOST_EXPERTS: usize = 10;

/// Frames and columns of each kernel of convolutions.
pub(super) const KERNELS: [(usize, usize); 2] = [(4, 4), (8, 4)];

/// By how many frames and columns both of them shorten a sample.
pub(super) const KERNELS_SPAN: (usize, usize) = (
    KERNELS[0].0 + KERNELS[1].0 - 2,
    KERNELS[0].1 + KERNELS[1].1 - 2,
);

/// A kind of network over frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeriesKind {
    /// Linear layers over all numbers.
    Dense,
    /// A transformer's encoder.
    Transformer,
    /// A mixture of transformers, weighted by a gate.
    Mixture,
    /// One of the transformers of a mixture, by itself.
    Expert,
    /// Two layers of convolutions over frames and columns.
    Convolution,
    /// An LSTM.
    Recurrence,
}

/// How large a network is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkSize {
    /// For processors.
    Small,
    /// As the project Mirage published it.
    Published,
}

impl fmt::Display for NetworkSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NetworkSize::Small => "small",
            NetworkSize::Published => "published",
        })
    }
}

/// What a network is, but for its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesDesign {
    /// Its kind.
    pub kind: SeriesKind,
    /// How large it is.
    pub size: NetworkSize,
    /// Frames of a sample, `t`.
    pub frames: usize,
    /// Numbers of a frame, `c`.
    pub columns: usize,
    /// Outputs, `k`.
    pub outputs: usize,
}

/// The widths of a transformer's encoder.
#[derive(Debug, Clone, Copy)]
pub(super) struct EncoderWidths {
    /// Of what a frame becomes, `d`.
    pub(super) model: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    /// Of the layer between the two linear ones of an encoder layer.
    pub(super) feedforward: usize,
}

/// The widths of two layers of convolutions and the linear one after them.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConvolutionWidths {
    pub(super) first: usize,
    pub(super) second: usize,
    pub(super) linear: usize,
}

impl SeriesDesign {
    /// Frames that are left after those in a row were averaged.
    pub(super) fn steps(&self) -> usize {
        self.frames / self.pooled_frames()
    }

    /// How many frames in a row are averaged.
    pub(super) fn pooled_frames(&self) -> usize {
        let is_even = self.frames.is_multiple_of(POOLED_FRAMES);
        match self.size {
            NetworkSize::Small if is_even => POOLED_FRAMES,
            _ => 1,
        }
    }

    /// The widths of a transformer, or of one of a mixture.
    pub(super) fn encoder_widths(&self) -> EncoderWidths {
        let is_of_mixture = matches!(self.kind, SeriesKind::Mixture | SeriesKind::Expert);
        match (self.size, is_of_mixture) {
            (NetworkSize::Published, false) => EncoderWidths {
                model: 512,
                layers: 2,
                heads: 2,
                feedforward: 128,
            },
            (NetworkSize::Published, true) => EncoderWidths {
                model: 512,
                layers: 1,
                heads: 1,
                feedforward: 128,
            },
            (NetworkSize::Small, false) => EncoderWidths {
                model: 64,
                layers: 1,
                heads: 2,
                feedforward: 128,
            },
            (NetworkSize::Small, true) => EncoderWidths {
                model: 32,
                layers: 1,
                heads: 1,
                feedforward: 64,
            },
        }
    }

    /// How many transformers a mixture has.
    pub fn experts(&self) -> usize {
        match self.size {
            NetworkSize::Small => 4,
            NetworkSize::Published => MOST_EXPERTS,
        }
    }

    /// The widths of convolutions.
    pub(super) fn convolution_widths(&self) -> ConvolutionWidths {
        match self.size {
            NetworkSize::Small => ConvolutionWidths {
                first: 8,
                second: 16,
                linear: 32,
            },
            NetworkSize::Published => ConvolutionWidths {
                first: 64,
                second: 128,
                linear: 128,
            },
        }
    }

    /// The width of an LSTM's state, and of the linear layer after it.
    pub(super) fn state_width(&self) -> usize {
        match self.size {
            NetworkSize::Small => 64,
            NetworkSize::Published => 128,
        }
    }

    /// The widths of linear layers over all numbers, but for the last.
    pub(super) fn dense_widths(&self) -> &'static [usize] {
        match self.size {
            NetworkSize::Small => &[64, 64],
            NetworkSize::Published => &[512, 256, 128, 64],
        }
    }

    /// How many numbers are behind the outputs: those of each network of a mixture; of others the
    /// outputs themselves.
    pub fn inner_outputs(&self) -> usize {
        match self.kind {
            SeriesKind::Mixture => self.experts() * self.outputs,
            _ => self.outputs,
        }
    }

    /// How many numbers a sample has.
    pub fn sample_len(&self) -> usize {
        self.frames * self.columns
    }

    /// # Errors
    /// Fails for a shape that no network of the kind has.
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
            let (frames, columns) = KERNELS_SPAN;
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
