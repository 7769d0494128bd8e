//! Support vector machine for two classes, by sequential minimal optimisation.
//!
//! The dual problem is `min 1/2 a'Qa - sum(a)` with `0 <= a <= w C` and `y'a = 0`, where
//! `Q_ij = y_i y_j K_ij` and `w` is the row's weight. Each step changes two variables, chosen by
//! second order information (Fan, Chen and Lin, "Working set selection using second order
//! information for training support vector machines", Journal of Machine Learning Research 6, 2005:
//! WSS 2).
//!
//! With shrinking, the solver temporarily skips rows that will probably stay at their bound (Chang
//! and Lin, "LIBSVM: a library for support vector machines", ACM Transactions on Intelligent
//! Systems and Technology 2(3), 2011, section 5.1). This finds the same machine, up to the
//! tolerance, in less time. Names in parentheses below are from libsvm's `Solver`.

use anyhow::Result;

use super::kernel::{KernelCache, KernelFunction};
use super::stop::StopSignal;

/// Gap in the optimality condition at which a fit stops: `tol` of scikit-learn, `eps` of libsvm.
const TOLERANCE: f64 = 1e-3;
/// Steps between two checks of the stop signal.
const STEPS_BETWEEN_CHECKS: usize = 64;
/// Maximum number of steps between two shrinkings, as in libsvm.
const STEPS_BETWEEN_SHRINKS: usize = 1000;
/// Replacement for a curvature that is not above 0 (`TAU`).
const MIN_CURVATURE: f64 = 1e-12;

/// Training rows of two classes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TwoClassRows<'a> {
    /// Rows, `[n, f]`.
    pub(crate) rows: &'a [f64],
    /// Number of columns.
    pub(crate) f: usize,
    /// Class of each row, 1 or -1, `[n]`.
    pub(crate) signs: &'a [f64],
    /// Weight of each row, `[n]`.
    pub(crate) weights: &'a [f64],
}

/// Settings of a support vector machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SmoSettings {
    /// Kernel of the machine.
    pub(crate) kernel: KernelFunction,
    /// Cost of a row of weight 1 on the wrong side: `C`.
    pub(crate) c: f64,
    /// True if rows at their bound are skipped temporarily.
    pub(crate) shrinking: bool,
}

/// A decision function: the sum of each row's weight times its kernel, minus `rho`.
#[derive(Debug, Clone)]
pub(crate) struct SmoSolution {
    /// `y * a` of each row, `[n]`: 0 for all but the support vectors.
    pub(crate) weights: Vec<f64>,
    /// Threshold of the decision.
    pub(crate) rho: f64,
}

/// Finds the machine that separates rows of two classes.
pub(crate) fn solve_dual(
    training: TwoClassRows<'_>,
    settings: SmoSettings,
    stop: StopSignal<'_>,
) -> Result<SmoSolution> {
    let n = training.signs.len();
    let mut problem = DualProblem::new(training, settings);
    let mut steps_to_shrink = n.min(STEPS_BETWEEN_SHRINKS);

    // The limit is libsvm's: far more steps than any sound problem needs.
    for step in 0..10_000_000.max(100 * n) {
        if step % STEPS_BETWEEN_CHECKS == 0 {
            stop.check()?;
        }

        if settings.shrinking {
            steps_to_shrink -= 1;
            if steps_to_shrink == 0 {
                steps_to_shrink = n.min(STEPS_BETWEEN_SHRINKS);
                problem.shrink();
            }
        }

        match problem.select_pair() {
            Some((i, j)) => problem.update_pair(i, j),
            None if problem.active.len() == n => break,
            None => {
                problem.restore_all_rows();
                // A step over all rows comes first, so every round makes progress.
                steps_to_shrink = 2;
            }
        }
    }

    problem.restore_all_rows();
    Ok(problem.solution())
}

/// The dual problem and its current solution. All vectors are `[n]`.
struct DualProblem<'a> {
    cache: KernelCache<'a>,
    signs: &'a [f64],
    /// Upper bound of `a` for each row: its weight times `C`.
    costs: Vec<f64>,
    alphas: Vec<f64>,
    /// `-y * G` of each row, where `G` is the gradient of the dual: the decrease of the objective
    /// when `y * a` grows. Only the pulls of active rows are up to date.
    pulls: Vec<f64>,
    /// Kernel of each row with itself (`QD`).
    diagonal: Vec<f64>,
    bounds: Vec<BoundStatus>,
    /// Indices of the rows that are not skipped, ascending (`active_set`).
    active: Vec<usize>,
    /// True if all rows were already restored once because the gap was small (`unshrink`).
    was_restored: bool,
}

/// Directions in which the bounds let `y * a` of a row move.
#[derive(Debug, Clone, Copy)]
struct BoundStatus {
    can_grow: bool,
    can_shrink: bool,
}

impl BoundStatus {
    fn new(sign: f64, alpha: f64, c: f64) -> BoundStatus {
        let below_c = alpha < c;
        let above_zero = alpha > 0.0;
        if sign > 0.0 {
            BoundStatus {
                can_grow: below_c,
                can_shrink: above_zero,
            }
        } else {
            BoundStatus {
                can_grow: above_zero,
                can_shrink: below_c,
            }
        }
    }
}

/// Returns the second derivative of the objective along a pair: `K_ii + K_jj - 2 K_ij`.
fn pair_curvature(diagonal_i: f64, diagonal_j: f64, kernel: f32) -> f64 {
    let curvature = diagonal_i + diagonal_j - 2.0 * f64::from(kernel);
    if curvature > 0.0 {
        curvature
    } else {
        MIN_CURVATURE
    }
}

/// Returns the amount by which `sign * alpha` of a row can grow until it reaches its bound.
fn room_to_grow(sign: f64, alpha: f64, c: f64) -> f64 {
    if sign > 0.0 { c - alpha } else { alpha }
}

impl<'a> DualProblem<'a> {
    /// Creates the problem at `a = 0`, where the gradient is -1 and so the pull of each row is its
    /// sign.
    fn new(training: TwoClassRows<'a>, settings: SmoSettings) -> DualProblem<'a> {
        let TwoClassRows {
            rows,
            f,
            signs,
            weights,
        } = training;
        let n = signs.len();
        let cache = KernelCache::new(settings.kernel, rows, f);
        let diagonal = (0..n).map(|i| cache.diagonal(i)).collect();
        let costs: Vec<f64> = weights.iter().map(|weight| weight * settings.c).collect();
        let bounds = signs
            .iter()
            .zip(&costs)
            .map(|(sign, cost)| BoundStatus::new(*sign, 0.0, *cost))
            .collect();

        DualProblem {
            cache,
            signs,
            costs,
            alphas: vec![0.0; n],
            pulls: signs.to_vec(),
            diagonal,
            bounds,
            active: (0..n).collect(),
            was_restored: false,
        }
    }

    /// Selects the pair that promises the largest gain (`select_working_set`). The first row
    /// violates the optimality condition most. The second row gives the largest decrease of the
    /// quadratic form. Returns `None` if the condition holds.
    fn select_pair(&mut self) -> Option<(usize, usize)> {
        let mut first = None;
        let mut largest = f64::NEG_INFINITY;
        for k in &self.active {
            if self.bounds[*k].can_grow && self.pulls[*k] > largest {
                first = Some(*k);
                largest = self.pulls[*k];
            }
        }

        let i = first?;
        let diagonal_i = self.diagonal[i];
        let kernel = self.cache.row(i);
        let mut second = None;
        let mut best_gain = 0.0;
        let mut smallest = f64::INFINITY;
        for j in &self.active {
            if !self.bounds[*j].can_shrink {
                continue;
            }
            let pull = self.pulls[*j];
            smallest = smallest.min(pull);
            let gap = largest - pull;
            if gap > 0.0 {
                // Twice the decrease of the form along the pair, if the bounds are ignored.
                let gain = gap * gap / pair_curvature(diagonal_i, self.diagonal[*j], kernel[*j]);
                if gain > best_gain {
                    second = Some(*j);
                    best_gain = gain;
                }
            }
        }
        second
            .filter(|_| largest - smallest >= TOLERANCE)
            .map(|j| (i, j))
    }

    /// Raises `y * a` of `i` and lowers `y * a` of `j` by the same amount, which keeps `y'a = 0`.
    /// The step ends at the minimum of the form or at the nearest bound.
    fn update_pair(&mut self, i: usize, j: usize) {
        let (kernel_i, kernel_j) = self.cache.two_rows(i, j);
        let sign_i = self.signs[i];
        let sign_j = self.signs[j];
        let unbounded = (self.pulls[i] - self.pulls[j])
            / pair_curvature(self.diagonal[i], self.diagonal[j], kernel_i[j]);
        let step = unbounded
            .min(room_to_grow(sign_i, self.alphas[i], self.costs[i]))
            .min(room_to_grow(-sign_j, self.alphas[j], self.costs[j]));

        for k in &self.active {
            self.pulls[*k] -= step * (f64::from(kernel_i[*k]) - f64::from(kernel_j[*k]));
        }
        self.change_alpha(i, sign_i * step);
        self.change_alpha(j, -sign_j * step);
    }

    fn change_alpha(&mut self, k: usize, change: f64) {
        let cost = self.costs[k];
        self.alphas[k] = (self.alphas[k] + change).clamp(0.0, cost);
        self.bounds[k] = BoundStatus::new(self.signs[k], self.alphas[k], cost);
    }

    /// Skips the rows at a bound that pull further into it than any other row pulls
    /// (`do_shrinking`).
    fn shrink(&mut self) {
        let mut largest = f64::NEG_INFINITY;
        let mut smallest = f64::INFINITY;
        for k in &self.active {
            if self.bounds[*k].can_grow {
                largest = largest.max(self.pulls[*k]);
            }
            if self.bounds[*k].can_shrink {
                smallest = smallest.min(self.pulls[*k]);
            }
        }

        // Close to the solution, guess again from all rows: the guess is better by then.
        if !self.was_restored && largest - smallest <= 10.0 * TOLERANCE {
            self.was_restored = true;
            self.restore_all_rows();
        }

        let pulls = &self.pulls;
        let bounds = &self.bounds;
        // Skip a row that can only shrink, if it pulls up more than any row that can grow. Treat a
        // row that can only grow likewise.
        self.active.retain(|k| match bounds[*k] {
            BoundStatus {
                can_grow: false, ..
            } => pulls[*k] <= largest,
            BoundStatus {
                can_shrink: false, ..
            } => pulls[*k] >= smallest,
            _ => true,
        });
    }

    /// Restores the rows that were skipped, and computes their pulls from the support vectors
    /// (`reconstruct_gradient`).
    fn restore_all_rows(&mut self) {
        let n = self.signs.len();
        if self.active.len() == n {
            return;
        }

        let mut is_active = vec![false; n];
        for k in &self.active {
            is_active[*k] = true;
        }
        let left_out: Vec<usize> = (0..n).filter(|k| !is_active[*k]).collect();
        for k in &left_out {
            self.pulls[*k] = self.signs[*k];
        }

        // Only support vectors enter the gradient, and they are fewer than the rows.
        for j in (0..n).filter(|j| self.alphas[*j] > 0.0) {
            let weight = self.signs[j] * self.alphas[j];
            let kernel = self.cache.row(j);
            for k in &left_out {
                self.pulls[*k] -= weight * f64::from(kernel[*k]);
            }
        }
        self.active = (0..n).collect();
    }

    fn solution(&self) -> SmoSolution {
        let weights = self
            .alphas
            .iter()
            .zip(self.signs)
            .map(|(alpha, sign)| alpha * sign)
            .collect();
        SmoSolution {
            weights,
            rho: self.rho(),
        }
    }

    /// Returns the threshold (`calculate_rho`): the mean over the rows between their bounds, where
    /// it is exact. Without such a row, it is the middle of the range that the other rows allow.
    fn rho(&self) -> f64 {
        let mut free_sum = -0.0;
        let mut free_count = 0;
        let mut lower = f64::NEG_INFINITY;
        let mut upper = f64::INFINITY;
        for (pull, bound) in self.pulls.iter().zip(&self.bounds) {
            if bound.can_grow && bound.can_shrink {
                free_sum += -pull;
                free_count += 1;
            }
            if bound.can_shrink {
                lower = lower.max(-pull);
            }
            if bound.can_grow {
                upper = upper.min(-pull);
            }
        }

        if free_count > 0 {
            free_sum / f64::from(free_count)
        } else if lower.is_finite() && upper.is_finite() {
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

    /// Returns two clouds that overlap: their rows `[n, 2]`, and the rows' signs.
    fn overlapping_clouds(n: usize) -> (Vec<f64>, Vec<f64>) {
        let mut random = poolcast_base::seed::generator(1, "clouds", &[]);
        let signs: Vec<f64> = (0..n)
            .map(|at| if at % 2 == 0 { 1.0 } else { -1.0 })
            .collect();
        let rows = signs.iter().flat_map(|sign| {
            [0.6 * sign, 0.0].map(|centre| centre + random.random_range(-2.0..2.0))
        });
        let rows = rows.collect();
        (rows, signs)
    }

    #[test]
    fn shrinking_finds_the_same_machine() {
        let (rows, signs) = overlapping_clouds(600);
        let training = TwoClassRows {
            rows: &rows,
            f: 2,
            signs: &signs,
            weights: &[1.0; 600],
        };
        for kernel in [KernelFunction::Linear, KernelFunction::Rbf { gamma: 0.7 }] {
            for c in [0.01, 1.0, 100.0] {
                let solved = |shrinking| {
                    let settings = SmoSettings {
                        kernel,
                        c,
                        shrinking,
                    };
                    solve_dual(training, settings, StopSignal::new(&|| false)).expect("solved")
                };
                let (with, without) = (solved(true), solved(false));
                let decision = |solution: &SmoSolution, row: &[f64]| {
                    let all = rows.chunks_exact(2).zip(&solution.weights);
                    all.map(|(other, weight)| weight * kernel.evaluate(other, row))
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
    fn rows_at_their_bound_are_skipped_and_restored() {
        let (rows, signs) = overlapping_clouds(200);
        let n = signs.len();
        let training = TwoClassRows {
            rows: &rows,
            f: 2,
            signs: &signs,
            weights: &[1.0; 200],
        };
        let settings = SmoSettings {
            kernel: KernelFunction::Linear,
            c: 0.5,
            shrinking: true,
        };
        let mut problem = DualProblem::new(training, settings);
        for _ in 0..150 {
            let (i, j) = problem.select_pair().expect("far from the end");
            problem.update_pair(i, j);
        }
        let before = problem.pulls.clone();
        problem.shrink();
        assert!(
            (1..n).contains(&problem.active.len()),
            "{} of {n} stay",
            problem.active.len()
        );
        problem.restore_all_rows();
        assert_eq!(problem.active.len(), n);
        let apart = before
            .iter()
            .zip(&problem.pulls)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max);
        assert!(apart < 1e-4, "{apart}");
    }
}
