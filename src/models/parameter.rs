//! Specification of a model parameter: its name, its dimensions, and the range of its initial
//! values.

use rand::Rng as _;

use super::simd::LANES;

/// Specification of a parameter, with PyTorch's name. The model holds its values.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterSpec {
    /// Name in files and in [`super::Weights::get`].
    pub name: String,
    /// Dimensions, in row-major order.
    pub dims: Vec<usize>,
    /// Half-width of the range of initial values, which are drawn uniformly from `centre ± bound`.
    pub bound: f32,
    /// Centre of the range of initial values: 0 for most parameters.
    pub centre: f32,
    /// Centre of the range of each element, in row-major order; empty if all have the same.
    pub centres: Vec<f32>,
    /// True if a model reads it transposed, so that each row is the contribution of one input: see
    /// [`ParameterSpec::as_table`].
    pub is_table: bool,
}

impl ParameterSpec {
    /// A parameter whose initial values are drawn uniformly from `±1/sqrt(fan_in)`.
    pub fn new(name: impl Into<String>, dims: &[usize], fan_in: usize) -> ParameterSpec {
        ParameterSpec {
            name: name.into(),
            dims: dims.to_vec(),
            bound: 1.0 / (fan_in as f32).sqrt(),
            centre: 0.0,
            centres: Vec::new(),
            is_table: false,
        }
    }

    /// A parameter with all initial values equal to `value`.
    pub fn constant(name: impl Into<String>, dims: &[usize], value: f32) -> ParameterSpec {
        ParameterSpec {
            bound: 0.0,
            centre: value,
            ..ParameterSpec::new(name, dims, 1)
        }
    }

    /// Returns the parameter with initial values drawn uniformly from `±bound`.
    pub fn within(self, bound: f32) -> ParameterSpec {
        ParameterSpec { bound, ..self }
    }

    /// Returns the parameter with initial values around `centres`, one for each element.
    pub fn around(self, centres: Vec<f32>) -> ParameterSpec {
        ParameterSpec { centres, ..self }
    }

    /// The centre of the range of element `at`.
    pub fn centre_of(&self, at: usize) -> f32 {
        self.centres.get(at).copied().unwrap_or(self.centre)
    }

    /// Returns the parameter as a table: a weight `[outputs, inputs]` from which a model gathers
    /// the columns of some inputs. In memory it is `[inputs, outputs]`. In files it is unchanged.
    pub fn as_table(self) -> ParameterSpec {
        ParameterSpec {
            is_table: true,
            ..self
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Returns true if the parameter has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Draws the initial values, in row-major order. They depend only on `seed` and the parameter's
    /// name.
    pub fn draw_weights(&self, seed: u64) -> Vec<f32> {
        if self.bound == 0.0 {
            return vec![self.centre; self.len()];
        }
        let mut generator =
            poolcast_base::seed::generator(seed, &format!("weights {}", self.name), &[]);
        let mut draw =
            |centre: f32| generator.random_range(centre - self.bound..centre + self.bound);
        (0..self.len()).map(|at| draw(self.centre_of(at))).collect()
    }
}

/// A parameter, with its start in a flat vector.
#[derive(Debug)]
pub struct IndexedParameter {
    /// Specification.
    pub spec: ParameterSpec,
    /// Index of its first element in the flat vector.
    pub start: usize,
}

impl IndexedParameter {
    /// Indices in the flat vector of the elements, in row-major order of the parameter.
    pub(super) fn element_positions(&self) -> impl Iterator<Item = usize> + use<> {
        let IndexedParameter { spec, start } = self;
        let start = *start;
        let columns = spec.dims[spec.dims.len() - 1];
        let rows = spec.len() / columns.max(1);
        let is_table = spec.is_table;

        (0..spec.len()).map(move |element| {
            if is_table {
                start + element % columns * rows + element / columns
            } else {
                start + element
            }
        })
    }
}

/// Places parameters one after another. Also returns the length of the flat vector, padded to whole
/// vectors.
pub fn place_parameters(
    specs: impl IntoIterator<Item = ParameterSpec>,
) -> (Vec<IndexedParameter>, usize) {
    let mut end = 0;
    let mut placed = Vec::new();
    for spec in specs {
        let start = end;
        end += spec.len();
        placed.push(IndexedParameter { spec, start });
    }
    (placed, end.next_multiple_of(LANES))
}
