//! Columns of numbers and the sums over them that the models share.

/// Columns of numbers: `x` `[f, n]`, one column after another.
#[derive(Debug, Clone)]
pub(super) struct Matrix {
    /// Rows.
    pub(super) n: usize,
    /// Columns.
    pub(super) f: usize,
    /// The numbers.
    pub(super) x: Vec<f64>,
}

impl Matrix {
    /// One column, `[n]`.
    pub(super) fn column(&self, place: usize) -> &[f64] {
        &self.x[place * self.n..][..self.n]
    }

    /// The same numbers row by row, `[n, f]`.
    pub(super) fn by_rows(&self) -> Vec<f64> {
        let mut rows = vec![0.0; self.x.len()];
        for (place, column) in self.x.chunks_exact(self.n.max(1)).enumerate() {
            column
                .iter()
                .enumerate()
                .for_each(|(row, value)| rows[row * self.f + place] = *value);
        }
        rows
    }
}

/// The sum of products, in eight partial sums that a processor takes side by side: always in the same order.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a
        .remainder()
        .iter()
        .zip(b.remainder())
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in a.zip(b) {
        (0..8).for_each(|lane| sums[lane] += a[lane] * b[lane]);
    }
    sums.iter().sum::<f64>() + rest
}

/// Adds `factor` times `x` to `sum`.
pub(super) fn add(sum: &mut [f64], factor: f64, x: &[f64]) {
    sum.iter_mut()
        .zip(x)
        .for_each(|(sum, x)| *sum += factor * x);
}

/// `1 / (1 + exp(-logit))`, without overflow.
pub(super) fn sigmoid(logit: f64) -> f64 {
    if logit >= 0.0 {
        1.0 / (1.0 + (-logit).exp())
    } else {
        logit.exp() / (1.0 + logit.exp())
    }
}

/// Makes logits probabilities that sum to one.
pub(super) fn softmax(logits: &mut [f64]) {
    let most = logits
        .iter()
        .fold(f64::NEG_INFINITY, |most, logit| most.max(*logit));
    logits
        .iter_mut()
        .for_each(|logit| *logit = (*logit - most).exp());
    let sum: f64 = logits.iter().sum();
    logits.iter_mut().for_each(|logit| *logit /= sum);
}
