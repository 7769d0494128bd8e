//! A parameter of a model: its name, its dimensions, and the range of its first values.

use rand::Rng as _;

/// What a parameter is, named as PyTorch names it; its values are the model's.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterSpec {
    /// The name it has in files, and by which [`super::Weights::get`] finds it.
    pub name: String,
    /// Its dimensions, in row-major order.
    pub dims: Vec<usize>,
    /// Its first values are drawn uniformly from `±bound`.
    pub bound: f32,
    /// Whether a model sees it transposed, so that what one input adds is a row:
    /// [`ParameterSpec::as_table`].
    pub is_table: bool,
}

impl ParameterSpec {
    /// A parameter whose first values are drawn uniformly from `±1/sqrt(fan_in)`.
    pub fn new(name: impl Into<String>, dims: &[usize], fan_in: usize) -> ParameterSpec {
        ParameterSpec {
            name: name.into(),
            dims: dims.to_vec(),
            bound: 1.0 / (fan_in as f32).sqrt(),
            is_table: false,
        }
    }

    /// The same, for a weight `[outputs, inputs]` of which a model gathers the columns of some
    /// inputs. In memory it is `[inputs, outputs]`; in files it is as it was.
    pub fn as_table(self) -> ParameterSpec {
        ParameterSpec {
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

    /// Its first values, in row-major order. They follow from `seed` and its name.
    pub(super) fn draw_weights(&self, seed: u64) -> Vec<f32> {
        let mut generator = crate::seed::generator(seed, &format!("weights {}", self.name), &[]);
        (0..self.len())
            .map(|_| generator.random_range(-self.bound..self.bound))
            .collect()
    }
}
