//! Columns and classes → the weights of logits at the least sum of log losses and penalties.
//!
//! The objective is scikit-learn's: `C * sum of log losses + l1_ratio * |w|_1 + (1 - l1_ratio) / 2 * |w|²`, intercepts not
//! penalised. It is minimised by Newton steps: around the weights so far the loss is a quadratic form, whose penalised minimum
//! coordinate descent finds (Friedman, Hastie and Tibshirani, Journal of Statistical Software 33(1), 2010; Lee, Sun and
//! Saunders, SIAM Journal on Optimization 24(3), 2014).
//!
//! Of four classes or another even number an L1 penalty alone has many minima: it does not change while the weights of a column
//! move together between the middle two.

use anyhow::Result;

use super::matrix::{Matrix, add, dot, sigmoid, softmax};
use super::stop::{Stop, ask};

/// Newton steps at most: it is a handful unless classes can be told apart without error.
const STEPS: usize = 100;
/// Sweeps over the coordinates at most, within one Newton step.
const SWEEPS: usize = 10_000;
/// The fit ends where a step can gain no more than this share of the objective.
const TOLERANCE: f64 = 1e-13;
/// A step's quadratic form is minimised until a sweep gains no more than this share of what its first gained.
const SHARE: f64 = 1e-5;

/// What to fit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Penalty {
    /// The weight of the losses beside the penalty.
    pub(super) c: f64,
    /// From 0, L2 alone, to 1, L1 alone.
    pub(super) l1_ratio: f64,
}

/// The values `[o, w]` of least objective: for each logit of classes `y` below `k` the weights of the columns of `x` and, last,
/// the intercept, whose column is the last and all ones.
pub(super) fn minimise(
    x: Matrix,
    y: &[u32],
    k: usize,
    penalty: Penalty,
    stop: Stop<'_>,
) -> Result<Vec<f64>> {
    let mut fit = Fit::new(x, y, k, penalty);
    for _ in 0..STEPS {
        ask(stop)?;
        if !fit.step(stop)? {
            break;
        }
    }
    Ok(fit.values)
}

/// A fit at work, of `o` logits over `w` columns, the last of them for the intercepts.
struct Fit {
    x: Matrix,
    penalty: Penalty,
    /// 1 where a row is of the logit's class, `[o, n]`.
    truth: Vec<f64>,
    /// The weights and, last, the intercept of each logit: `[o, w]`.
    values: Vec<f64>,
    /// `[o, n]`.
    logits: Vec<f64>,
    objective: f64,
}

impl Fit {
    fn new(x: Matrix, y: &[u32], k: usize, penalty: Penalty) -> Fit {
        let classes: Vec<usize> = if k == 2 { vec![1] } else { (0..k).collect() };
        let truth = classes
            .iter()
            .flat_map(|class| y.iter().map(move |y| f64::from(*y as usize == *class)))
            .collect();
        let (values, logits) = (
            vec![0.0; classes.len() * x.f],
            vec![0.0; classes.len() * x.n],
        );
        let mut fit = Fit {
            x,
            penalty,
            truth,
            values,
            logits,
            objective: 0.0,
        };
        fit.objective = fit.objective_of(&fit.logits, &fit.values);
        fit
    }

    fn outputs(&self) -> usize {
        self.values.len() / self.x.f
    }

    /// One Newton step; says whether another may gain something.
    fn step(&mut self, stop: Stop<'_>) -> Result<bool> {
        let mut quadratic = Quadratic::new(self);
        quadratic.minimise(stop)?;
        let expected = quadratic.expected();
        if expected.is_nan() || expected >= -TOLERANCE * self.objective.abs() {
            return Ok(false);
        }
        let step: Vec<f64> = quadratic
            .values
            .iter()
            .zip(&self.values)
            .map(|(to, from)| to - from)
            .collect();
        let change = self.logits_of(&step);
        let moved = |from: &[f64], by: &[f64], t: f64| -> Vec<f64> {
            from.iter()
                .zip(by)
                .map(|(from, by)| from + t * by)
                .collect()
        };
        let mut t = 1.0;
        while t > 1e-10 {
            let (values, logits) = (
                moved(&self.values, &step, t),
                moved(&self.logits, &change, t),
            );
            let objective = self.objective_of(&logits, &values);
            if objective <= self.objective + 0.01 * t * expected {
                (self.values, self.logits, self.objective) = (values, logits, objective);
                return Ok(true);
            }
            t /= 2.0;
        }
        Ok(false)
    }

    /// The logits that values `[o, w]` make, `[o, n]`.
    fn logits_of(&self, values: &[f64]) -> Vec<f64> {
        let mut logits = vec![0.0; self.logits.len()];
        for (logits, values) in logits
            .chunks_exact_mut(self.x.n)
            .zip(values.chunks_exact(self.x.f))
        {
            let moving = values
                .iter()
                .enumerate()
                .filter(|(_, value)| **value != 0.0);
            moving.for_each(|(j, value)| add(logits, *value, self.x.column(j)));
        }
        logits
    }

    fn objective_of(&self, logits: &[f64], values: &[f64]) -> f64 {
        self.penalty.c * self.loss(logits) + self.penalty_of(values)
    }

    /// The sum of the log losses: the logarithm of the sum of exponentials less the logit of the true class, where the first
    /// of two classes has the logit 0.
    fn loss(&self, logits: &[f64]) -> f64 {
        let (n, outputs) = (self.x.n, self.outputs());
        let row = |i: usize| {
            let base = if outputs == 1 { 0.0 } else { f64::NEG_INFINITY };
            let of = |o: usize| logits[o * n + i];
            let most = (0..outputs).fold(base, |most, o| most.max(of(o)));
            let sum: f64 =
                (base - most).exp() + (0..outputs).map(|o| (of(o) - most).exp()).sum::<f64>();
            most + sum.ln()
                - (0..outputs)
                    .map(|o| self.truth[o * n + i] * of(o))
                    .sum::<f64>()
        };
        (0..n).map(row).sum()
    }

    fn penalty_of(&self, values: &[f64]) -> f64 {
        let of = |(at, value): (usize, &f64)| {
            let (l1, l2) = self.penalties(at);
            l1 * value.abs() + l2 / 2.0 * value * value
        };
        values.iter().enumerate().map(of).sum()
    }

    /// The factors of both penalties of one value; intercepts have none.
    fn penalties(&self, at: usize) -> (f64, f64) {
        let l1_ratio = self.penalty.l1_ratio;
        if self.is_intercept(at) {
            (0.0, 0.0)
        } else {
            (l1_ratio, 1.0 - l1_ratio)
        }
    }

    fn is_intercept(&self, at: usize) -> bool {
        at % self.x.f + 1 == self.x.f
    }

    /// The probability of each logit's class, `[o, n]`.
    fn probabilities(&self) -> Vec<f64> {
        let (n, outputs) = (self.x.n, self.outputs());
        if outputs == 1 {
            return self.logits.iter().map(|logit| sigmoid(*logit)).collect();
        }
        let mut rows = Matrix {
            n,
            f: outputs,
            x: self.logits.clone(),
        }
        .by_rows();
        rows.chunks_exact_mut(outputs).for_each(softmax);
        Matrix {
            n: outputs,
            f: n,
            x: rows,
        }
        .by_rows()
    }
}

/// The objective around the values of a [`Fit`], its loss taken as a quadratic form.
struct Quadratic<'a> {
    fit: &'a Fit,
    /// `[o, n]`.
    probabilities: Vec<f64>,
    /// The gradient of the loss by each value, where the step began and where it is now: `[o, w]`.
    begun: Vec<f64>,
    slopes: Vec<f64>,
    /// The second derivative of the loss by each value, `[o, w]`.
    curvatures: Vec<f64>,
    /// The second derivatives by each value and all others, once it has moved: `[o, w]` of `[o, w]`. Few ever move under an L1
    /// penalty, and a sweep costs no more than these numbers however many rows there are.
    mixed: Vec<Option<Box<[f64]>>>,
    values: Vec<f64>,
}

impl<'a> Quadratic<'a> {
    fn new(fit: &'a Fit) -> Quadratic<'a> {
        let (n, c) = (fit.x.n, fit.penalty.c);
        let probabilities = fit.probabilities();
        let errors: Vec<f64> = probabilities
            .iter()
            .zip(&fit.truth)
            .map(|(p, y)| c * (p - y))
            .collect();
        let spreads: Vec<f64> = probabilities.iter().map(|p| c * p * (1.0 - p)).collect();
        let columns = || (0..fit.x.f).map(|j| fit.x.column(j));
        let square = |column: &[f64], spread: &[f64]| {
            column.iter().zip(spread).map(|(x, s)| x * x * s).sum()
        };
        let begun: Vec<f64> = errors
            .chunks_exact(n)
            .flat_map(|errors| columns().map(move |column| dot(column, errors)))
            .collect();
        let curvatures = spreads
            .chunks_exact(n)
            .flat_map(|spread| columns().map(move |column| square(column, spread)))
            .collect();
        let mixed = vec![None; fit.values.len()];
        Quadratic {
            slopes: begun.clone(),
            begun,
            probabilities,
            curvatures,
            mixed,
            values: fit.values.clone(),
            fit,
        }
    }

    /// Goes over all values, then over those that are not 0 until they rest, and again, until all rest.
    fn minimise(&mut self, stop: Stop<'_>) -> Result<()> {
        let all: Vec<usize> = (0..self.values.len()).collect();
        let first = self.sweep(&all);
        let mut sweeps = 1;
        while sweeps < SWEEPS {
            let moves = |at: &usize| self.values[*at] != 0.0 || self.fit.is_intercept(*at);
            let active: Vec<usize> = all.iter().copied().filter(moves).collect();
            loop {
                ask(stop)?;
                sweeps += 1;
                if self.sweep(&active) <= SHARE * first || sweeps >= SWEEPS {
                    break;
                }
            }
            sweeps += 1;
            if self.sweep(&all) <= SHARE * first {
                break;
            }
        }
        Ok(())
    }

    /// Puts each of these values where the form is least; gives the largest gain of one.
    fn sweep(&mut self, places: &[usize]) -> f64 {
        places.iter().map(|at| self.settle(*at)).fold(0.0, f64::max)
    }

    fn settle(&mut self, at: usize) -> f64 {
        let (l1, l2) = self.fit.penalties(at);
        let curvature = self.curvatures[at] + l2;
        if curvature <= f64::MIN_POSITIVE {
            return 0.0;
        }
        let before = self.values[at];
        let target = self.curvatures[at] * before - self.slopes[at];
        let after = target.signum() * (target.abs() - l1).max(0.0) / curvature;
        if after != before {
            self.values[at] = after;
            let Quadratic {
                fit,
                probabilities,
                mixed,
                slopes,
                ..
            } = self;
            add(
                slopes,
                after - before,
                mixed[at].get_or_insert_with(|| mixed_of(fit, probabilities, at)),
            );
        }
        curvature * (after - before).powi(2)
    }

    /// What the step should change the objective by, to first order in the loss: never above 0.
    fn expected(&self) -> f64 {
        let moved = self
            .values
            .iter()
            .zip(&self.fit.values)
            .map(|(to, from)| to - from);
        let loss: f64 = self
            .begun
            .iter()
            .zip(moved)
            .map(|(slope, moved)| slope * moved)
            .sum();
        loss + self.fit.penalty_of(&self.values) - self.fit.penalty_of(&self.fit.values)
    }
}

/// The second derivatives of the loss by value `at` and each other, `[o, w]`.
fn mixed_of(fit: &Fit, probabilities: &[f64], at: usize) -> Box<[f64]> {
    let Fit { x, penalty, .. } = fit;
    let (output, column) = (at / x.f, x.column(at % x.f));
    let own = &probabilities[output * x.n..][..x.n];
    let of_output = |(other, p): (usize, &[f64])| {
        let spread = |i: usize| {
            if other == output {
                p[i] * (1.0 - p[i])
            } else {
                -p[i] * own[i]
            }
        };
        let factors: Vec<f64> = (0..x.n)
            .map(|i| penalty.c * column[i] * spread(i))
            .collect();
        (0..x.f).map(move |j| dot(&factors, x.column(j)))
    };
    probabilities
        .chunks_exact(x.n)
        .enumerate()
        .flat_map(of_output)
        .collect()
}
