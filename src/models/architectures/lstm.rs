//! PyTorch's `nn.LSTM`. Gates are in the order input, forget, cell, output.

use candle_core::{Result, Tensor};
use candle_nn::ops::sigmoid;

use super::recurrent::Recurrent;

/// An LSTM that reads only the frames.
pub(crate) const LSTM: Recurrent = Recurrent {
    name: "lstm",
    about: "An LSTM over the frames",
    module: "lstm",
    takes_statics: false,
    is_fused: true,
    gates: 4,
    states: 2,
    step: lstm_cell,
};

/// An LSTM that also reads the static features.
pub(super) const LSTM_STATIC: Recurrent = Recurrent {
    name: "lstm+static",
    about: "An LSTM over the frames, with the static features joined before the last layer",
    takes_statics: true,
    ..LSTM
};

/// Computes the state and the cell after a frame.
fn lstm_cell(inputs: &Tensor, hidden: &Tensor, states: &[Tensor]) -> Result<Vec<Tensor>> {
    let gates = (inputs + hidden)?.chunk(4, 1)?;
    let input = sigmoid(&gates[0])?;
    let forget = sigmoid(&gates[1])?;
    let new = gates[2].tanh()?;
    let output = sigmoid(&gates[3])?;

    let cell = ((forget * &states[1])? + (input * new)?)?;
    let state = (output * cell.tanh()?)?;
    Ok(vec![state, cell])
}
