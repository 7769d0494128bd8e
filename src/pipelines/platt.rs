//! Decision values → probabilities: a sigmoid for two classes (Lin, Lin and Weng, Machine Learning 68, 2007), and pairs of
//! classes coupled (Wu, Lin and Weng, Journal of Machine Learning Research 5, 2004, its second method).

use super::matrix::sigmoid;

/// Newton steps at most, and the gradient at which they end.
const STEPS: usize = 100;
const TOLERANCE: f64 = 1e-5;
/// Keeps the second derivative above 0.
const RIDGE: f64 = 1e-12;

/// The slope and the offset of the logit over decision values, from values of rows whose side is 1 or -1.
pub(super) fn fit(values: &[f64], sides: &[f64]) -> (f64, f64) {
    let (ones, others) = (count(sides, true), count(sides, false));
    // A little short of 1 and 0, so that classes told apart without error give no infinite slope.
    let (high, low) = ((ones + 1.0) / (ones + 2.0), 1.0 / (others + 2.0));
    let targets: Vec<f64> = sides
        .iter()
        .map(|side| if *side > 0.0 { high } else { low })
        .collect();
    let loss = |(slope, offset): (f64, f64)| -> f64 {
        let row = |(value, target): (&f64, &f64)| {
            let logit = slope * value + offset;
            logit.max(0.0) + (-logit.abs()).exp().ln_1p() - target * logit
        };
        values.iter().zip(&targets).map(row).sum()
    };
    let mut at = (0.0, ((ones + 1.0) / (others + 1.0)).ln());
    let mut least = loss(at);
    for _ in 0..STEPS {
        let ((by_slope, by_offset), (ss, so, oo)) = derivatives(values, &targets, at);
        if by_slope.abs() < TOLERANCE && by_offset.abs() < TOLERANCE {
            break;
        }
        let determinant = ss * oo - so * so;
        let step = (
            (so * by_offset - oo * by_slope) / determinant,
            (so * by_slope - ss * by_offset) / determinant,
        );
        let expected = by_slope * step.0 + by_offset * step.1;
        let halves = std::iter::successors(Some(1.0), |t| Some(t / 2.0)).take_while(|t| *t > 1e-10);
        let better = halves.map(|t: f64| (t, (at.0 + t * step.0, at.1 + t * step.1)));
        let better = better
            .map(|(t, at)| (t, at, loss(at)))
            .find(|(t, _, loss)| *loss < least + 1e-4 * t * expected);
        let Some((_, next, loss)) = better else { break };
        (at, least) = (next, loss);
    }
    at
}

fn count(sides: &[f64], ones: bool) -> f64 {
    sides.iter().filter(|side| (**side > 0.0) == ones).count() as f64
}

/// The gradient by slope and offset, and the second derivatives.
fn derivatives(
    values: &[f64],
    targets: &[f64],
    (slope, offset): (f64, f64),
) -> ((f64, f64), (f64, f64, f64)) {
    let (mut first, mut second) = ((0.0, 0.0), (RIDGE, 0.0, RIDGE));
    for (value, target) in values.iter().zip(targets) {
        let p = sigmoid(slope * value + offset);
        first.0 += value * (p - target);
        first.1 += p - target;
        let spread = p * (1.0 - p);
        second.0 += value * value * spread;
        second.1 += value * spread;
        second.2 += spread;
    }
    (first, second)
}

/// Probabilities of `k` classes `[k]` from `r` `[k, k]`, where `r[a * k + b]` is that of `a` when the row is of `a` or `b`: those
/// that agree best with all pairs, found by the fixed point iteration of the paper.
pub(super) fn couple(r: &[f64], k: usize) -> Vec<f64> {
    let q = |a: usize, b: usize| {
        if a == b {
            (0..k)
                .filter(|c| *c != a)
                .map(|c| r[c * k + a] * r[c * k + a])
                .sum()
        } else {
            -r[b * k + a] * r[a * k + b]
        }
    };
    let q: Vec<f64> = (0..k * k).map(|at| q(at / k, at % k)).collect();
    let mut p = vec![1.0 / k as f64; k];
    for _ in 0..100.max(k) {
        let qp = |p: &[f64]| -> Vec<f64> {
            q.chunks_exact(k)
                .map(|row| super::matrix::dot(row, p))
                .collect()
        };
        let of = qp(&p);
        let mean = super::matrix::dot(&of, &p);
        if of.iter().all(|of| (of - mean).abs() < 0.005 / k as f64) {
            break;
        }
        for a in 0..k {
            let of = qp(&p);
            let mean = super::matrix::dot(&of, &p);
            p[a] += (mean - of[a]) / q[a * k + a];
            let sum: f64 = p.iter().sum();
            p.iter_mut().for_each(|p| *p /= sum);
        }
    }
    p
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sigmoid_finds_the_slope_that_made_the_rows() {
        // Of 20 rows at each value as many are of side 1 as a slope of 2 and an offset of -1 expect.
        let grid: Vec<f64> = (-20..=20).map(|at| f64::from(at) / 10.0).collect();
        let ones = |value: f64| (200.0 * sigmoid(2.0 * value - 1.0)).round() as usize;
        let rows = grid.iter().flat_map(|value| {
            (0..200).map(move |row| (*value, if row < ones(*value) { 1.0 } else { -1.0 }))
        });
        let (values, sides): (Vec<f64>, Vec<f64>) = rows.unzip();
        let (slope, offset) = fit(&values, &sides);
        assert!(
            (slope - 2.0).abs() < 0.02 && (offset + 1.0).abs() < 0.02,
            "{slope} {offset}"
        );
    }

    #[test]
    fn pairs_of_known_probabilities_give_them_back() {
        let known = [0.5, 0.3, 0.15, 0.05];
        let r: Vec<f64> = (0..16)
            .map(|at| known[at / 4] / (known[at / 4] + known[at % 4]))
            .collect();
        let p = couple(&r, 4);
        assert!(
            p.iter()
                .zip(known)
                .all(|(p, known)| (p - known).abs() < 0.01),
            "{p:?}"
        );
    }
}
