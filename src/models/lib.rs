//! Models: codes and static features of a batch → one logit per sample, and the gradient of the
//! loss.
//!
//! An [`Architecture`] defines the computation of a model in candle's operations. A [`Model`] is an
//! architecture with weights. For the LSTM on a CPU there is a fused engine, which computes the
//! same many times as fast.

mod architecture;
mod architectures;
mod batch;
mod candle_graph;
mod cross_entropy;
mod device;
mod engine;
mod engine_choice;
mod floats;
mod gradient;
mod input;
mod labelled_chunk;
mod model;
mod parameter;
mod recipe;
mod records;
mod shape;
mod token_batch;
pub mod layers;
pub mod optim;
pub mod simd;

/// The code of a frame before a job's first event.
pub const EMPTY_CELL: u8 = 255;

pub use architecture::{Architecture, Weights};
pub use architectures::{ARCHITECTURES, find_architecture};
pub use batch::SampleBatch;
pub use device::{Device, DeviceName};
pub use engine_choice::EngineChoice;
pub use floats::AlignedFloats;
pub use gradient::Gradient;
pub use input::ModelInput;
pub use labelled_chunk::Targets;
pub use model::Model;
pub use parameter::{IndexedParameter, ParameterSpec, place_parameters};
pub use recipe::{RateSchedule, TrainingRecipe};
pub use shape::ModelShape;
pub use token_batch::{
    FIRST_NUMBER, FIRST_STATE, QUESTION_FEATURES, REASON_WORDS, TOKEN_CODES, TOKEN_FEATURES,
    TOKEN_STATES, TOKENS, TokenBatch, TokenColumns,
};
