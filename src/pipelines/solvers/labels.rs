//! Targets and weights of training rows, and the outputs that a model needs for classes.

use poolcast_tables::NumberLoss;

/// Targets of training rows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TrainingTargets<'a> {
    /// Classes of the rows.
    Classes(ClassLabels<'a>),
    /// Numbers of the rows.
    Numbers(NumberLabels<'a>),
}

/// Numbers and weights of training rows, and the loss to minimise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NumberLabels<'a> {
    /// Number of each row, `[n]`.
    pub(crate) y: &'a [f64],
    /// Weight of each row in the loss, `[n]`: scikit-learn's `sample_weight`.
    pub(crate) weights: &'a [f64],
    /// Loss that a fit minimises.
    pub(crate) loss: NumberLoss,
}

impl NumberLabels<'_> {
    /// Returns the largest weight of a row.
    pub(crate) fn largest_weight(self) -> f64 {
        largest(self.weights)
    }

    /// Returns the weighted mean of the numbers.
    pub(crate) fn mean(self) -> f64 {
        let weighted = self.y.iter().zip(self.weights);
        let sum: f64 = weighted.map(|(y, weight)| weight * y).sum();
        sum / self.weights.iter().sum::<f64>()
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// Classes and weights of training rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClassLabels<'a> {
    /// Class of each row, `[n]`, below `class_count`.
    pub(crate) y: &'a [u32],
    /// Number of classes.
    pub(crate) class_count: usize,
    /// Weight of each row in the loss, `[n]`: scikit-learn's `sample_weight`.
    pub(crate) weights: &'a [f64],
}

impl ClassLabels<'_> {
    /// Returns the weights of the rows times a factor for each class, with which the classes weigh the same, and all
    /// of them as much as before, `[n]`.
    pub(crate) fn balanced_weights(self) -> Vec<f64> {
        let mut of_class = vec![0.0; self.class_count];
        for (class, weight) in self.y.iter().zip(self.weights) {
            of_class[*class as usize] += weight;
        }
        let share = of_class.iter().sum::<f64>() / self.class_count as f64;
        let rows = self.y.iter().zip(self.weights);
        // A class whose rows all weigh 0 keeps this weight.
        let of_class = |class: u32| f64::max(of_class[class as usize], f64::MIN_POSITIVE);
        rows.map(|(class, weight)| weight * share / of_class(*class))
            .collect()
    }

    /// Returns the largest weight of a row.
    pub(crate) fn largest_weight(self) -> f64 {
        largest(self.weights)
    }
}

/// Returns the classes that a model has an output for: only the second of two classes, otherwise
/// all. The probability of the first of two classes follows from the second.
pub(crate) fn output_classes(class_count: usize) -> Vec<u32> {
    if class_count == 2 {
        vec![1]
    } else {
        (0..class_count as u32).collect()
    }
}

/// Returns the number of outputs of a model: see [`output_classes`].
pub(crate) fn output_count(class_count: usize) -> usize {
    if class_count == 2 { 1 } else { class_count }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_classes_weigh_the_same_unless_one_weighs_nothing() {
        let labels = |weights| ClassLabels {
            y: &[0, 0, 0, 1],
            class_count: 2,
            weights,
        };
        let even = labels(&[1.0; 4]).balanced_weights();
        assert_eq!(even, [2.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0, 2.0]);
        let without = labels(&[1.0, 1.0, 2.0, 0.0]).balanced_weights();
        assert_eq!(without, [0.5, 0.5, 1.0, 0.0]);
    }
}
