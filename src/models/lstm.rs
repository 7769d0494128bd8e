//! PyTorch's `nn.LSTM`: gates in the order input, forget, cell, output.

use candle_core::{Result, Tensor};
use candle_nn::ops::sigmoid;

use super::recurrent::Recurrent;

pub(super) const LSTM: Recurrent = Recurrent {
    name: "lstm",
    about: "An LSTM over the frames",
    module: "lstm",
    takes_statics: false,
    is_fused: true,
    gates: 4,
    states: 2,
    step,
};

pub(super) const LSTM_STATIC: Recurrent = Recurrent {
    name: "lstm+static",
    about: "The same, with what else is known of the held job joined before the last layer",
    takes_statics: true,
    ..LSTM
};

/// The state and the cell after a frame.
fn step(inputs: &Tensor, hidden: &Tensor, states: &[Tensor]) -> Result<Vec<Tensor>> {
    let gates = (inputs + hidden)?.chunk(4, 1)?;
    let (input, forget, output) = (
        sigmoid(&gates[0])?,
        sigmoid(&gates[1])?,
        sigmoid(&gates[3])?,
    );
    let cell = ((forget * &states[1])? + (input * gates[2].tanh()?)?)?;
    Ok(vec![(output * cell.tanh()?)?, cell])
}
