//! A parameter of a model: its name, its dimensions, and the range of its first values.

use rand::Rng as _;

use super::simd::LANES;

/// What a parameter is, named as PyTorch names it; its values are the model's.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterSpec {
    /// The name it has in files, and by which [`super::Weights::get`] finds it.
    pub name: String,
    /// Its dimensions, in row-major order.
    pub dims: Vec<usize>,
    /// Its first values are drawn uniformly from `centre ± bound`.
    pub bound: f32,
    /// What these lie around: 0 for most parameters.
    pub centre: f32,
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
            centre: 0.0,
            is_table: false,
        }
    }

    /// A parameter all of whose first values are `value`.
    pub fn constant(name: impl Into<String>, dims: &[usize], value: f32) -> ParameterSpec {
        ParameterSpec {
            bound: 0.0,
            centre: value,
            ..ParameterSpec::new(name, dims, 1)
        }
    }

    /// The same, with first values drawn uniformly from `±bound`.
    pub fn within(self, bound: f32) -> ParameterSpec {
        ParameterSpec { bound, ..self }
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
        if self.bound == 0.0 {
            return vec![self.centre; self.len()];
        }
        let mut generator = poolcast_base::seed::generator(seed, &format!("weights {}", self.name), &[]);
        let range = self.centre - self.bound..self.centre + self.bound;
        (0..self.len())
            .map(|_| generator.random_range(range.clone()))
            .collect()
    }
}

/// A parameter, and where it begins in a flat vector.
#[derive(Debug)]
pub(super) struct PlacedParameter {
    pub(super) spec: ParameterSpec,
    pub(super) start: usize,
}

/// Places parameters one after another. Returns also how many numbers the flat vector has, padded to
/// whole vectors.
pub(super) fn place_parameters(
    specs: impl IntoIterator<Item = ParameterSpec>,
) -> (Vec<PlacedParameter>, usize) {
    let mut end = 0;
    let mut placed = Vec::new();
    for spec in specs {
        let start = end;
        end += spec.len();
        placed.push(PlacedParameter { spec, start });
    }
    (placed, end.next_multiple_of(LANES))
}
