//! A parameter of a model: its name, its dimensions, and where its first values are drawn from.

use rand::Rng as _;

/// A parameter, named as PyTorch names it.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// The name it has in files; what [`super::Weights::get`] finds it by.
    pub name: String,
    /// Its dimensions, in row-major order.
    pub dims: Vec<usize>,
    /// Its first values are uniform in `±bound`.
    pub bound: f32,
    /// Whether a model sees it turned, so that what one input adds is a row: [`Parameter::table`].
    pub is_table: bool,
}

impl Parameter {
    /// A parameter whose first values are uniform in `±1/sqrt(fan)`.
    pub fn new(name: impl Into<String>, dims: &[usize], fan: usize) -> Parameter {
        Parameter {
            name: name.into(),
            dims: dims.to_vec(),
            bound: 1.0 / (fan as f32).sqrt(),
            is_table: false,
        }
    }

    /// The same, for a weight `[outputs, inputs]` of which a model gathers the columns of some inputs: in memory it is
    /// `[inputs, outputs]`, in files it is as it was.
    pub fn table(self) -> Parameter {
        Parameter {
            is_table: true,
            ..self
        }
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its first values, in row-major order: they follow from `seed` and its name.
    pub(super) fn draw(&self, seed: u64) -> Vec<f32> {
        let mut generator = crate::seed::generator(seed, &format!("weights {}", self.name), &[]);
        (0..self.len())
            .map(|_| generator.random_range(-self.bound..self.bound))
            .collect()
    }
}
