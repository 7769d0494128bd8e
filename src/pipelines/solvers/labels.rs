//! The targets and the weights of rows, and the outputs that a model needs for classes.

use poolcast_tables::NumberLoss;

/// What rows teach.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TrainingTargets<'a> {
    /// Their classes.
    Classes(ClassLabels<'a>),
    /// Their numbers.
    Numbers(NumberLabels<'a>),
}

/// The number of each row, and how much the row counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NumberLabels<'a> {
    /// The number of each row, `[n]`.
    pub(crate) y: &'a [f64],
    /// How many times each row counts in what a fit minimises, `[n]`: scikit-learn's
    /// `sample_weight`.
    pub(crate) weights: &'a [f64],
    /// What a fit minimises.
    pub(crate) loss: NumberLoss,
}

impl NumberLabels<'_> {
    /// The weight of the row that counts most.
    pub(crate) fn largest_weight(self) -> f64 {
        largest(self.weights)
    }

    /// The mean of the numbers.
    pub(crate) fn mean(self) -> f64 {
        let weighted = self.y.iter().zip(self.weights);
        let sum: f64 = weighted.map(|(y, weight)| weight * y).sum();
        sum / self.weights.iter().sum::<f64>()
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// The class of each row, and how much the row counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClassLabels<'a> {
    /// The class of each row `[n]`, below `class_count`.
    pub(crate) y: &'a [u32],
    /// How many classes there are.
    pub(crate) class_count: usize,
    /// How many times each row counts in what a fit minimises, `[n]`: scikit-learn's
    /// `sample_weight`.
    pub(crate) weights: &'a [f64],
}

impl ClassLabels<'_> {
    /// The weight of the row that counts most.
    pub(crate) fn largest_weight(self) -> f64 {
        largest(self.weights)
    }
}

/// The classes that a model has an output for: of two classes the second alone, else all of them.
/// The probability of the first of two classes follows from that of the second.
pub(crate) fn output_classes(class_count: usize) -> Vec<u32> {
    if class_count == 2 {
        vec![1]
    } else {
        (0..class_count as u32).collect()
    }
}

/// How many outputs a model has: see [`output_classes`].
pub(crate) fn output_count(class_count: usize) -> usize {
    if class_count == 2 { 1 } else { class_count }
}
