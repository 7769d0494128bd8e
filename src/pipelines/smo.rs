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
    let cache = Cache::new(kernel, rows, f);
    let own = (0..n).map(|i| cache.own(i)).collect();
    let may = sides.iter().map(|side| May::of(*side, 0.0, c)).collect();
    let mut problem = Problem { cache, sides, c, alphas: vec![0.0; n], pulls: sides.to_vec(), own, may };
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
    /// How much each row's `side * alpha` wants to grow: less `side` times the gradient of the objective, `[n]`.
    pulls: Vec<f64>,
    /// The likeness of each row to itself, `[n]`.
    own: Vec<f64>,
    /// `[n]`.
    may: Vec<May>,
}

/// Which way the bounds let `side * alpha` of a row go.
#[derive(Debug, Clone, Copy)]
struct May {
    grow: bool,
    shrink: bool,
}

impl May {
    fn of(side: f64, alpha: f64, c: f64) -> May {
        let (below, above) = (alpha < c, alpha > 0.0);
        if side > 0.0 { May { grow: below, shrink: above } } else { May { grow: above, shrink: below } }
    }
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
        let (mut first, mut most) = (None, f64::NEG_INFINITY);
        for (k, (pull, may)) in self.pulls.iter().zip(&self.may).enumerate() {
            if may.grow && *pull > most {
                (first, most) = (Some(k), *pull);
            }
        }
        let i = first?;
        let own_i = self.own[i];
        let likeness = self.cache.row(i);
        let (mut second, mut best, mut least) = (None, 0.0, f64::INFINITY);
        let rows = self.pulls.iter().zip(&self.may).zip(&self.own).zip(likeness).enumerate();
        for (j, (((pull, may), own), likeness)) in rows {
            if may.shrink {
                least = least.min(*pull);
                let gap = most - pull;
                if gap > 0.0 {
                    let gain = gap * gap / curvature(own_i, *own, *likeness);
                    if gain > best {
                        (second, best) = (Some(j), gain);
                    }
                }
            }
        }
        second.filter(|_| most - least >= TOLERANCE).map(|j| (i, j))
    }

    /// Moves `side * alpha` of `i` up and that of `j` down by as much, to the least of the form or to the nearest bound.
    fn improve(&mut self, i: usize, j: usize) {
        let (of_i, of_j) = self.cache.rows(i, j);
        let wanted = (self.pulls[i] - self.pulls[j]) / curvature(self.own[i], self.own[j], of_i[j]);
        let room = |side: f64, alpha: f64| if side > 0.0 { self.c - alpha } else { alpha };
        let (side_i, side_j) = (self.sides[i], self.sides[j]);
        let step = wanted.min(room(side_i, self.alphas[i])).min(room(-side_j, self.alphas[j]));
        for ((pull, of_i), of_j) in self.pulls.iter_mut().zip(of_i).zip(of_j) {
            *pull -= step * (f64::from(*of_i) - f64::from(*of_j));
        }
        for (k, change) in [(i, side_i * step), (j, -side_j * step)] {
            self.alphas[k] = (self.alphas[k] + change).clamp(0.0, self.c);
            self.may[k] = May::of(self.sides[k], self.alphas[k], self.c);
        }
    }

    /// The mean over rows between the bounds, where it is exact; without one the middle of what the others allow.
    fn rho(&self) -> f64 {
        let of = |chosen: fn(&May) -> bool| {
            let rows = self.pulls.iter().zip(&self.may).filter(move |(_, may)| chosen(may));
            rows.map(|(pull, _)| -pull).collect::<Vec<f64>>()
        };
        let free = of(|may| may.grow && may.shrink);
        if !free.is_empty() {
            return free.iter().sum::<f64>() / free.len() as f64;
        }
        let lower = of(|may| may.shrink).into_iter().fold(f64::NEG_INFINITY, f64::max);
        let upper = of(|may| may.grow).into_iter().fold(f64::INFINITY, f64::min);
        if lower.is_finite() && upper.is_finite() { f64::midpoint(lower, upper) } else { 0.0 }
    }
}
