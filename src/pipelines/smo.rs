//! Rows of two classes → the support vector machine that parts them.
//!
//! Sequential minimal optimisation of the dual, `min 1/2 a'Qa - sum(a)` with `0 <= a <= C` and `y'a = 0`, the two variables of
//! each step chosen by second order information (Fan, Chen and Lin, Journal of Machine Learning Research 6, 2005: WSS 2).
//! With shrinking, rows that will probably stay at their bound are left out meanwhile (Chang and Lin, "LIBSVM: a library for
//! support vector machines", ACM Transactions on Intelligent Systems and Technology 2(3), 2011, section 5.1): the same machine,
//! up to the tolerance, in less time.

use anyhow::Result;

use super::kernel::{Cache, Kernel};
use super::stop::{Stop, ask};

/// The gap between the two sides of the optimality condition at which a fit ends: scikit-learn's `tol`.
const TOLERANCE: f64 = 1e-3;
/// Steps between two questions whether to stop.
const ASKED: usize = 64;
/// Steps between two looks for rows to leave out, at most.
const SHRUNK: usize = 1000;
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

/// How rows are parted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// The cost of a row on the wrong side.
    pub(super) c: f64,
    /// Whether rows at their bound are left out meanwhile.
    pub(super) shrinking: bool,
}

/// Parts `rows` `[n, f]`, whose side is 1 or -1.
pub(super) fn solve(
    kernel: Kernel,
    rows: &[f64],
    f: usize,
    sides: &[f64],
    part: Part,
    stop: Stop<'_>,
) -> Result<Solution> {
    let (n, c) = (sides.len(), part.c);
    let cache = Cache::new(kernel, rows, f);
    let own = (0..n).map(|i| cache.own(i)).collect();
    let may = sides.iter().map(|side| May::of(*side, 0.0, c)).collect();
    let (alphas, active) = (vec![0.0; n], (0..n).collect());
    let mut problem = Problem {
        cache,
        sides,
        c,
        alphas,
        pulls: sides.to_vec(),
        own,
        may,
        active,
        is_nearly_done: false,
    };
    let mut until_shrinking = n.min(SHRUNK);
    // As libsvm: far more than any sound problem takes.
    for step in 0..10_000_000.max(100 * n) {
        if step % ASKED == 0 {
            ask(stop)?;
        }
        if part.shrinking {
            until_shrinking -= 1;
            if until_shrinking == 0 {
                until_shrinking = n.min(SHRUNK);
                problem.shrink();
            }
        }
        match problem.worst_pair() {
            Some((i, j)) => problem.improve(i, j),
            None if problem.active.len() == n => break,
            None => {
                problem.take_all();
                // A step among all rows comes first, so that every round gets somewhere.
                until_shrinking = 2;
            }
        }
    }
    problem.take_all();
    let rho = problem.rho();
    let weights = problem
        .alphas
        .iter()
        .zip(sides)
        .map(|(alpha, side)| alpha * side)
        .collect();
    Ok(Solution { weights, rho })
}

struct Problem<'a> {
    cache: Cache<'a>,
    /// 1 or -1, `[n]`.
    sides: &'a [f64],
    c: f64,
    /// `[n]`.
    alphas: Vec<f64>,
    /// How much each row's `side * alpha` wants to grow: less `side` times the gradient of the objective, `[n]`; of rows that
    /// are left out what it was.
    pulls: Vec<f64>,
    /// The likeness of each row to itself, `[n]`.
    own: Vec<f64>,
    /// `[n]`.
    may: Vec<May>,
    /// The rows that are not left out, ascending.
    active: Vec<usize>,
    /// Whether the gap was small once, and all rows were taken again.
    is_nearly_done: bool,
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
        if side > 0.0 {
            May {
                grow: below,
                shrink: above,
            }
        } else {
            May {
                grow: above,
                shrink: below,
            }
        }
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
        for k in &self.active {
            if self.may[*k].grow && self.pulls[*k] > most {
                (first, most) = (Some(*k), self.pulls[*k]);
            }
        }
        let i = first?;
        let own_i = self.own[i];
        let likeness = self.cache.row(i);
        let (mut second, mut best, mut least) = (None, 0.0, f64::INFINITY);
        for j in &self.active {
            let pull = self.pulls[*j];
            if self.may[*j].shrink {
                least = least.min(pull);
                let gap = most - pull;
                if gap > 0.0 {
                    let gain = gap * gap / curvature(own_i, self.own[*j], likeness[*j]);
                    if gain > best {
                        (second, best) = (Some(*j), gain);
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
        let step = wanted
            .min(room(side_i, self.alphas[i]))
            .min(room(-side_j, self.alphas[j]));
        for k in &self.active {
            self.pulls[*k] -= step * (f64::from(of_i[*k]) - f64::from(of_j[*k]));
        }
        for (k, change) in [(i, side_i * step), (j, -side_j * step)] {
            self.alphas[k] = (self.alphas[k] + change).clamp(0.0, self.c);
            self.may[k] = May::of(self.sides[k], self.alphas[k], self.c);
        }
    }

    /// Leaves out the rows at a bound that pull further into it than any other row pulls.
    fn shrink(&mut self) {
        let (mut most, mut least) = (f64::NEG_INFINITY, f64::INFINITY);
        for k in &self.active {
            let (pull, may) = (self.pulls[*k], self.may[*k]);
            most = if may.grow { most.max(pull) } else { most };
            least = if may.shrink { least.min(pull) } else { least };
        }
        if !self.is_nearly_done && most - least <= 10.0 * TOLERANCE {
            self.is_nearly_done = true;
            self.take_all();
        }
        let (pulls, may) = (&self.pulls, &self.may);
        self.active.retain(|k| match may[*k] {
            May { grow: false, .. } => pulls[*k] <= most,
            May { shrink: false, .. } => pulls[*k] >= least,
            _ => true,
        });
    }

    /// Takes all rows again: those that were left out pull as the support vectors make them.
    fn take_all(&mut self) {
        let n = self.sides.len();
        if self.active.len() == n {
            return;
        }
        let mut is_left_out = vec![true; n];
        self.active.iter().for_each(|k| is_left_out[*k] = false);
        let left_out: Vec<usize> = (0..n).filter(|k| is_left_out[*k]).collect();
        left_out
            .iter()
            .for_each(|k| self.pulls[*k] = self.sides[*k]);
        for j in (0..n).filter(|j| self.alphas[*j] > 0.0) {
            let weight = self.sides[j] * self.alphas[j];
            let likeness = self.cache.row(j);
            left_out
                .iter()
                .for_each(|k| self.pulls[*k] -= weight * f64::from(likeness[*k]));
        }
        self.active = (0..n).collect();
    }

    /// The mean over rows between the bounds, where it is exact; without one the middle of what the others allow.
    fn rho(&self) -> f64 {
        let of = |chosen: fn(&May) -> bool| {
            let rows = self
                .pulls
                .iter()
                .zip(&self.may)
                .filter(move |(_, may)| chosen(may));
            rows.map(|(pull, _)| -pull).collect::<Vec<f64>>()
        };
        let free = of(|may| may.grow && may.shrink);
        if !free.is_empty() {
            return free.iter().sum::<f64>() / free.len() as f64;
        }
        let lower = of(|may| may.shrink)
            .into_iter()
            .fold(f64::NEG_INFINITY, f64::max);
        let upper = of(|may| may.grow).into_iter().fold(f64::INFINITY, f64::min);
        if lower.is_finite() && upper.is_finite() {
            f64::midpoint(lower, upper)
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng as _;

    /// Two clouds that overlap, by rows `[n, 2]`, and their sides.
    fn clouds(n: usize) -> (Vec<f64>, Vec<f64>) {
        let mut random = crate::seed::generator(1, "clouds", &[]);
        let sides: Vec<f64> = (0..n)
            .map(|at| if at % 2 == 0 { 1.0 } else { -1.0 })
            .collect();
        let rows = sides.iter().flat_map(|side| {
            [0.6 * side, 0.0].map(|centre| centre + random.random_range(-2.0..2.0))
        });
        let rows = rows.collect();
        (rows, sides)
    }

    #[test]
    fn shrinking_finds_the_same_machine() {
        let (rows, sides) = clouds(600);
        for kernel in [Kernel::Linear, Kernel::Rbf { gamma: 0.7 }] {
            for c in [0.01, 1.0, 100.0] {
                let of = |shrinking| {
                    solve(kernel, &rows, 2, &sides, Part { c, shrinking }, &|| false)
                        .expect("solved")
                };
                let (with, without) = (of(true), of(false));
                let decision = |solution: &Solution, row: &[f64]| {
                    let all = rows.chunks_exact(2).zip(&solution.weights);
                    all.map(|(other, weight)| weight * kernel.of(other, row))
                        .sum::<f64>()
                        - solution.rho
                };
                for row in rows.chunks_exact(2).take(50) {
                    let (ours, theirs) = (decision(&with, row), decision(&without, row));
                    assert!(
                        (ours - theirs).abs() < 0.02 * theirs.abs().max(1.0),
                        "{kernel:?} {c}: {ours} {theirs}"
                    );
                }
            }
        }
    }

    #[test]
    fn rows_at_their_bound_are_left_out_and_taken_again() {
        let (rows, sides) = clouds(200);
        let (n, c) = (sides.len(), 0.5);
        let cache = Cache::new(Kernel::Linear, &rows, 2);
        let own = (0..n).map(|i| cache.own(i)).collect();
        let may = sides.iter().map(|side| May::of(*side, 0.0, c)).collect();
        let (alphas, active) = (vec![0.0; n], (0..n).collect());
        let pulls = sides.clone();
        let mut problem = Problem {
            cache,
            sides: &sides,
            c,
            alphas,
            pulls,
            own,
            may,
            active,
            is_nearly_done: false,
        };
        for _ in 0..150 {
            let (i, j) = problem.worst_pair().expect("far from the end");
            problem.improve(i, j);
        }
        let before = problem.pulls.clone();
        problem.shrink();
        assert!(
            (1..n).contains(&problem.active.len()),
            "{} of {n} stay",
            problem.active.len()
        );
        problem.take_all();
        assert_eq!(problem.active.len(), n);
        let apart = before
            .iter()
            .zip(&problem.pulls)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max);
        assert!(apart < 1e-4, "{apart}");
    }
}
