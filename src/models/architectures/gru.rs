//! PyTorch's `nn.GRU`. Gates are in the order reset, update, new.

use candle_core::{Result, Tensor};
use candle_nn::ops::sigmoid;

use super::recurrent::Recurrent;

pub(super) const GRU: Recurrent = Recurrent {
    name: "gru",
    about: "A GRU over the frames",
    module: "gru",
    takes_statics: false,
    is_fused: false,
    gates: 3,
    states: 1,
    step: gru_cell,
};

/// Computes the state after a frame.
fn gru_cell(inputs: &Tensor, hidden: &Tensor, states: &[Tensor]) -> Result<Vec<Tensor>> {
    let x = inputs.chunk(3, 1)?;
    let h = hidden.chunk(3, 1)?;

    let reset = sigmoid(&(&x[0] + &h[0])?)?;
    let update = sigmoid(&(&x[1] + &h[1])?)?;
    // Like in PyTorch, the reset gate also scales the recurrent bias, which is part of `h`.
    let new = (&x[2] + (reset * &h[2])?)?.tanh()?;

    let state = (&new + (update * (&states[0] - &new)?)?)?;
    Ok(vec![state])
}
