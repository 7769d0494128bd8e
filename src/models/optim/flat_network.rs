//! Networks as flat vectors of parameters, which the optimiser moves and checkpoints contain.

use std::borrow::Cow;

use anyhow::Result;

use crate::{AlignedFloats, Model};

/// A network whose parameters are one flat vector.
pub trait FlatNetwork {
    /// All parameters.
    fn flat_weights(&self) -> &[f32];

    /// All parameters, to be moved by multiples of a gradient.
    fn flat_weights_mut(&mut self) -> &mut [f32];

    /// Splits a vector in the order of the parameters, such as a gradient, into the parts of a
    /// checkpoint, with their names.
    fn split<'a>(&self, flat: &'a [f32]) -> Vec<(&str, Cow<'a, [f32]>)>;

    /// Reverses [`FlatNetwork::split`]. `part` returns the part with a given name.
    ///
    /// # Errors
    /// Fails when a part is missing or has another size.
    fn join<'a>(&self, part: impl Fn(&str) -> Result<&'a [f32]>) -> Result<AlignedFloats>;
}

/// A checkpoint has one part for each parameter, because the order differs between engines.
impl FlatNetwork for Model {
    fn flat_weights(&self) -> &[f32] {
        self.flat_weights()
    }

    fn flat_weights_mut(&mut self) -> &mut [f32] {
        self.flat_weights_mut()
    }

    fn split<'a>(&self, flat: &'a [f32]) -> Vec<(&str, Cow<'a, [f32]>)> {
        let names = self.parameters().iter().map(|spec| spec.name.as_str());
        let parts = self.split_by_parameter(flat).into_iter().map(Cow::Owned);
        names.zip(parts).collect()
    }

    fn join<'a>(&self, part: impl Fn(&str) -> Result<&'a [f32]>) -> Result<AlignedFloats> {
        self.join_parameters(part)
    }
}
