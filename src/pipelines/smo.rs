//! Rows of two classes → the support vector machine that parts them.
//!
//! Sequential minimal optimisation of the dual, `min 1/2 a'Qa - sum(a)` with `0 <= a <= C` and `y'a = 0`, the two variables of
//! each step chosen by second order information (Fan, Chen and Lin, Journal of Machine Learning Research 6, 2005: WSS 2).

use anyhow::Result;

use super::kernel::{Cache, Kernel};
use super::stop::{Stop, ask};

/// The gap between the two sides of the optimality condition at which a fit ends: scikit-learn's `tol`.
const TOLERANCE: f64 = 1e-3;
/// Steps between two questions whether to stop.
const ASKED: usize = 64;
/// What stands for a curvature that is not above 0.
const FLAT: f64 = 1e-12;

/// The decision function of a fit: the weight of each row, and what to take off.
#[derive(Debug, Clone)]
pub(super) struct Solution {
    /// `y * a` of each row, `[n]`: 0 for all but the support vectors.
    pub(super) weights: Vec<f64>,
    /// The threshold of the decision.
    pub(super) rho: f64,
}

/// Parts `rows` `[n, f]`, whose side is 1 or -1, at the cost `c` of a row on the wrong one.
pub(super) fn solve(kernel: Kernel, rows: &[f64], f: usize, sides: &[f64], c: f64, stop: Stop<'_>) -> Result<Solution> {
    let n = sides.len();
    let mut problem = Problem {
        cache: Cache::new(kernel, rows, f),
        sides,
        c,
        alphas: vec![0.0; n],
        gradient: vec![-1.0; n],
        own: Vec::new(),
    };
    problem.own = (0..n).map(|i| problem.cache.own(i)).collect();
    // As libsvm: far more than any sound problem takes.
    for step in 0..10_000_000.max(100 * n) {
        if step % ASKED == 0 {
            ask(stop)?;
        }
        let Some((i, j)) = problem.worst_pair() else { break };
        problem.improve(i, j);
    }
    let rho = problem.rho();
    let weights = problem.alphas.iter().zip(sides).map(|(alpha, side)| alpha * side).collect();
    Ok(Solution { weights, rho })
}

struct Problem<'a> {
    cache: Cache<'a>,
    /// 1 or -1, `[n]`.
    sides: &'a [f64],
    c: f64,
    /// `[n]`.
    alphas: Vec<f64>,
    /// Of the objective by each alpha, `[n]`.
    gradient: Vec<f64>,
    /// The likeness of each row to itself, `[n]`.
    own: Vec<f64>,
}

/// Whether `side * alpha` of a row may grow.
fn may_grow(side: f64, alpha: f64, c: f64) -> bool {
    if side > 0.0 { alpha < c } else { alpha > 0.0 }
}

/// Whether `side * alpha` of a row may shrink.
fn may_shrink(side: f64, alpha: f64, c: f64) -> bool {
    may_grow(-side, alpha, c)
}

/// How fast the objective curves along a pair.
fn curvature(own_i: f64, own_j: f64, likeness: f32) -> f64 {
    let curvature = own_i + own_j - 2.0 * f64::from(likeness);
    if curvature > 0.0 { curvature } else { FLAT }
}

impl Problem<'_> {
    /// The pair whose change promises the most: first the row that violates the condition most, then the one with which the
    /// quadratic form falls most. None when the condition holds.
    fn worst_pair(&mut self) -> Option<(usize, usize)> {
        let Problem { cache, sides, c, alphas, gradient, own } = self;
        let pull = |k: usize| -sides[k] * gradient[k];
        let growing = (0..sides.len()).filter(|k| may_grow(sides[*k], alphas[*k], *c));
        let (i, most) = growing.map(|k| (k, pull(k))).reduce(|a, b| if b.1 > a.1 { b } else { a })?;
        let likeness = cache.row(i);
        let mut least = f64::INFINITY;
        let mut best: Option<(usize, f64)> = None;
        for j in (0..sides.len()).filter(|k| may_shrink(sides[*k], alphas[*k], *c)) {
            least = least.min(pull(j));
            let gap = most - pull(j);
            if gap > 0.0 {
                let gain = gap * gap / curvature(own[i], own[j], likeness[j]);
                if best.is_none_or(|(_, known)| gain > known) {
                    best = Some((j, gain));
                }
            }
        }
        best.filter(|_| most - least >= TOLERANCE).map(|(j, _)| (i, j))
    }

    /// Moves `side * alpha` of `i` up and that of `j` down by as much, to the least of the form or to the nearest bound.
    fn improve(&mut self, i: usize, j: usize) {
        let (of_i, of_j) = self.cache.rows(i, j);
        let gap = self.sides[j] * self.gradient[j] - self.sides[i] * self.gradient[i];
        let wanted = gap / curvature(self.own[i], self.own[j], of_i[j]);
        let room = |side: f64, alpha: f64| if side > 0.0 { self.c - alpha } else { alpha };
        let (side_i, side_j) = (self.sides[i], self.sides[j]);
        let step = wanted.min(room(side_i, self.alphas[i])).min(room(-side_j, self.alphas[j]));
        for (k, gradient) in self.gradient.iter_mut().enumerate() {
            *gradient += step * self.sides[k] * (f64::from(of_i[k]) - f64::from(of_j[k]));
        }
        let bounded = |alpha: f64| if alpha >= self.c { self.c } else { alpha.max(0.0) };
        self.alphas[i] = bounded(self.alphas[i] + side_i * step);
        self.alphas[j] = bounded(self.alphas[j] - side_j * step);
    }

    /// The mean over rows between the bounds, where it is exact; without one the middle of what the others allow.
    fn rho(&self) -> f64 {
        let pull = |i: usize| self.sides[i] * self.gradient[i];
        let grows = |i: &usize| may_grow(self.sides[*i], self.alphas[*i], self.c);
        let shrinks = |i: &usize| may_shrink(self.sides[*i], self.alphas[*i], self.c);
        let free: Vec<usize> = (0..self.sides.len()).filter(|i| grows(i) && shrinks(i)).collect();
        if !free.is_empty() {
            return free.iter().map(|i| pull(*i)).sum::<f64>() / free.len() as f64;
        }
        let rows = || 0..self.sides.len();
        let lower = rows().filter(shrinks).map(pull).fold(f64::NEG_INFINITY, f64::max);
        let upper = rows().filter(grows).map(pull).fold(f64::INFINITY, f64::min);
        if lower.is_finite() && upper.is_finite() { f64::midpoint(lower, upper) } else { 0.0 }
    }
}
