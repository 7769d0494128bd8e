//! Pairwise coupling: probabilities of pairs of classes → probabilities of all classes.
//!
//! This is the second method of Wu, Lin and Weng, "Probability estimates for multi-class
//! classification by pairwise coupling", Journal of Machine Learning Research 5, 2004: libsvm's
//! `multiclass_probability`.

use super::matrix::dot_product;

/// Computes the probabilities of `k` classes `[k]` from `pairs` `[k, k]`. `pairs[a * k + b]` is the
/// probability of `a` if the row is of `a` or `b`. The result agrees best with all pairs: it
/// minimises `p'Qp` where `p` sums to one, by the fixed point iteration of the paper's algorithm 2.
pub(crate) fn couple_pairs(pairs: &[f64], k: usize) -> Vec<f64> {
    let q = quadratic_form(pairs, k);
    let mut p = vec![1.0 / k as f64; k];

    for _ in 0..100.max(k) {
        // At the minimum, `(Qp)_a` equals `p'Qp` for every class. libsvm uses the same tolerance.
        let product = multiply(&q, &p, k);
        let mean = dot_product(&product, &p);
        if product
            .iter()
            .all(|product| (product - mean).abs() < 0.005 / k as f64)
        {
            break;
        }

        for a in 0..k {
            let product = multiply(&q, &p, k);
            let mean = dot_product(&product, &p);
            p[a] += (mean - product[a]) / q[a * k + a];
            let sum: f64 = p.iter().sum();
            p.iter_mut().for_each(|p| *p /= sum);
        }
    }
    p
}

/// Returns the paper's `Q` `[k, k]`. The diagonal has the sum of the squares of `r[c, a]` over the
/// other classes `c`. The other entries are `-r[b, a] * r[a, b]`.
fn quadratic_form(pairs: &[f64], k: usize) -> Vec<f64> {
    let mut q = Vec::with_capacity(k * k);
    for a in 0..k {
        for b in 0..k {
            q.push(if a == b {
                (0..k)
                    .filter(|c| *c != a)
                    .map(|c| pairs[c * k + a] * pairs[c * k + a])
                    .sum()
            } else {
                -pairs[b * k + a] * pairs[a * k + b]
            });
        }
    }
    q
}

/// Multiplies `q` `[k, k]` by `p` `[k]`.
fn multiply(q: &[f64], p: &[f64], k: usize) -> Vec<f64> {
    q.chunks_exact(k).map(|row| dot_product(row, p)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_probabilities_are_recovered_from_their_pairs() {
        let known = [0.5, 0.3, 0.15, 0.05];
        let pairs: Vec<f64> = (0..16)
            .map(|at| known[at / 4] / (known[at / 4] + known[at % 4]))
            .collect();
        let p = couple_pairs(&pairs, 4);
        assert!(
            p.iter()
                .zip(known)
                .all(|(p, known)| (p - known).abs() < 0.01),
            "{p:?}"
        );
    }
}
