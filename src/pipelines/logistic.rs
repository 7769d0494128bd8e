//! Columns and classes → logistic regression with an L1, L2 or elastic net penalty.
//!
//! The objective is scikit-learn's: `C * sum of log losses + l1_ratio * |w|_1 + (1 - l1_ratio) / 2 * |w|²`, intercepts not
//! penalised; two classes have one logit, more have one each (softmax). It is minimised by Newton steps: around the weights
//! so far the loss is a quadratic form, whose penalised minimum coordinate descent finds (Friedman, Hastie and Tibshirani,
//! Journal of Statistical Software 33(1), 2010; Lee, Sun and Saunders, SIAM Journal on Optimization 24(3), 2014).

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::matrix::{Matrix, add, dot, sigmoid, softmax};
use super::model::Model;
use super::stop::{Stop, ask};

/// Newton steps at most: it is a handful unless classes can be told apart without error.
const STEPS: usize = 100;
/// Sweeps over the coordinates at most, within one Newton step.
const SWEEPS: usize = 1000;
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

/// A fitted logistic regression: one logit for two classes, else one for each, `o` in all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Logistic {
    /// `[o, f]`.
    pub(super) weights: Vec<f64>,
    /// `[o]`.
    pub(super) intercepts: Vec<f64>,
}

impl Logistic {
    /// Fits on `x` with classes `y` below `k`.
    pub(super) fn fit(x: &Matrix, y: &[u32], k: usize, penalty: Penalty, stop: Stop<'_>) -> Result<Logistic> {
        let means: Vec<f64> = (0..x.f).map(|j| x.column(j).iter().sum::<f64>() / x.n as f64).collect();
        let mut fit = Fit::new(centred(x, &means), y, k, penalty);
        for _ in 0..STEPS {
            ask(stop)?;
            if !fit.step(stop)? {
                break;
            }
        }
        let Fit { weights, mut intercepts, .. } = fit;
        for (o, intercept) in intercepts.iter_mut().enumerate() {
            *intercept -= dot(&weights[o * x.f..][..x.f], &means);
        }
        if k > 2 {
            // A softmax is blind to what all its logits share.
            let mean = intercepts.iter().sum::<f64>() / k as f64;
            intercepts.iter_mut().for_each(|intercept| *intercept -= mean);
        }
        Ok(Logistic { weights, intercepts })
    }
}

impl Model for Logistic {
    fn probabilities(&self, x: &Matrix) -> Vec<f64> {
        let outputs = self.intercepts.len();
        let mut logits = vec![0.0; x.n * outputs];
        for (o, logits) in logits.chunks_exact_mut(x.n.max(1)).enumerate() {
            logits.fill(self.intercepts[o]);
            (0..x.f).for_each(|j| add(logits, self.weights[o * x.f + j], x.column(j)));
        }
        if outputs == 1 {
            return logits.iter().flat_map(|logit| [sigmoid(-logit), sigmoid(*logit)]).collect();
        }
        let mut rows = Matrix { n: x.n, f: outputs, x: logits }.by_rows();
        rows.chunks_exact_mut(outputs).for_each(softmax);
        rows
    }

    fn check(&self, f: usize, k: usize) -> Result<()> {
        let outputs = if k == 2 { 1 } else { k };
        ensure!(self.intercepts.len() == outputs, "{} intercepts for {k} classes", self.intercepts.len());
        ensure!(self.weights.len() == outputs * f, "{} weights for {outputs} x {f}", self.weights.len());
        Ok(())
    }
}

/// With columns of mean 0 the intercepts hardly depend on the weights, so that fewer sweeps do.
fn centred(x: &Matrix, means: &[f64]) -> Matrix {
    let columns = means.iter().enumerate();
    let values = columns.flat_map(|(j, mean)| x.column(j).iter().map(move |value| value - mean)).collect();
    Matrix { n: x.n, f: x.f, x: values }
}

/// A fit at work, of `o` logits.
struct Fit {
    x: Matrix,
    penalty: Penalty,
    /// 1 where a row is of the logit's class, `[o, n]`.
    truth: Vec<f64>,
    /// `[o, f]`.
    weights: Vec<f64>,
    /// `[o]`.
    intercepts: Vec<f64>,
    /// `[o, n]`.
    logits: Vec<f64>,
    objective: f64,
}

impl Fit {
    fn new(x: Matrix, y: &[u32], k: usize, penalty: Penalty) -> Fit {
        let (n, f) = (x.n, x.f);
        let classes: Vec<usize> = if k == 2 { vec![1] } else { (0..k).collect() };
        let outputs = classes.len();
        let truth = classes
            .iter()
            .flat_map(|class| y.iter().map(move |y| f64::from(*y as usize == *class)))
            .collect::<Vec<_>>();
        let (weights, logits) = (vec![0.0; outputs * f], vec![0.0; outputs * n]);
        let mut fit = Fit { x, penalty, truth, weights, intercepts: vec![0.0; outputs], logits, objective: 0.0 };
        fit.objective = fit.objective_of(&fit.logits, &fit.weights);
        fit
    }

    /// One Newton step; says whether another may gain something.
    fn step(&mut self, stop: Stop<'_>) -> Result<bool> {
        let mut quadratic = Quadratic::new(self);
        quadratic.minimise(stop)?;
        let expected = quadratic.expected();
        let Quadratic { weights, intercepts, logits: change, .. } = quadratic;
        // Written so that no number leads to the end, too.
        if !(expected < -TOLERANCE * self.objective.abs()) {
            return Ok(false);
        }
        let between = |from: &[f64], to: &[f64], t: f64| -> Vec<f64> {
            from.iter().zip(to).map(|(from, to)| from + t * (to - from)).collect()
        };
        let mut t = 1.0;
        while t > 1e-10 {
            let trial: Vec<f64> = self.logits.iter().zip(&change).map(|(logit, change)| logit + t * change).collect();
            let trial_weights = between(&self.weights, &weights, t);
            let objective = self.objective_of(&trial, &trial_weights);
            if objective <= self.objective + 0.01 * t * expected {
                self.intercepts = between(&self.intercepts, &intercepts, t);
                (self.weights, self.logits, self.objective) = (trial_weights, trial, objective);
                return Ok(true);
            }
            t /= 2.0;
        }
        Ok(false)
    }

    fn objective_of(&self, logits: &[f64], weights: &[f64]) -> f64 {
        let Penalty { c, l1_ratio } = self.penalty;
        c * self.loss(logits) + penalty_of(weights, l1_ratio)
    }

    /// The sum of the log losses: the logarithm of the sum of exponentials less the logit of the true class, where the first
    /// of two classes has the logit 0.
    fn loss(&self, logits: &[f64]) -> f64 {
        let (n, outputs) = (self.x.n, self.intercepts.len());
        let row = |i: usize| {
            let base = if outputs == 1 { 0.0 } else { f64::NEG_INFINITY };
            let of = |o: usize| logits[o * n + i];
            let most = (0..outputs).fold(base, |most, o| most.max(of(o)));
            let sum: f64 = (base - most).exp() + (0..outputs).map(|o| (of(o) - most).exp()).sum::<f64>();
            most + sum.ln() - (0..outputs).map(|o| self.truth[o * n + i] * of(o)).sum::<f64>()
        };
        (0..n).map(row).sum()
    }

    /// The probability of each logit's class, `[o, n]`.
    fn probabilities(&self) -> Vec<f64> {
        let (n, outputs) = (self.x.n, self.intercepts.len());
        if outputs == 1 {
            return self.logits.iter().map(|logit| sigmoid(*logit)).collect();
        }
        let mut rows = Matrix { n, f: outputs, x: self.logits.clone() }.by_rows();
        rows.chunks_exact_mut(outputs).for_each(softmax);
        Matrix { n: outputs, f: n, x: rows }.by_rows()
    }
}

fn penalty_of(weights: &[f64], l1_ratio: f64) -> f64 {
    let (l1, l2): (f64, f64) = (weights.iter().map(|w| w.abs()).sum(), dot(weights, weights));
    l1_ratio * l1 + (1.0 - l1_ratio) / 2.0 * l2
}

/// The objective around the weights of a [`Fit`], its loss taken as a quadratic form.
struct Quadratic<'a> {
    fit: &'a Fit,
    /// `[o, n]`.
    probabilities: Vec<f64>,
    /// The gradient of the loss by the logits, at the weights so far: `[o, n]`.
    slopes: Vec<f64>,
    /// The second derivative by each weight, `[o, f]`, and by each intercept, `[o]`.
    curvatures: (Vec<f64>, Vec<f64>),
    weights: Vec<f64>,
    intercepts: Vec<f64>,
    /// The change of the logits, `[o, n]`.
    logits: Vec<f64>,
}

impl<'a> Quadratic<'a> {
    fn new(fit: &'a Fit) -> Quadratic<'a> {
        let n = fit.x.n;
        let probabilities = fit.probabilities();
        let slopes = probabilities.iter().zip(&fit.truth).map(|(p, y)| fit.penalty.c * (p - y)).collect();
        let spread: Vec<f64> = probabilities.iter().map(|p| fit.penalty.c * p * (1.0 - p)).collect();
        let of_weight = |spread: &[f64], j: usize| -> f64 {
            fit.x.column(j).iter().zip(spread).map(|(x, spread)| x * x * spread).sum()
        };
        let by_output = || spread.chunks_exact(n);
        let of_weights = by_output().flat_map(|spread| (0..fit.x.f).map(move |j| of_weight(spread, j))).collect();
        let of_intercepts = by_output().map(|spread| spread.iter().sum()).collect();
        Quadratic {
            fit,
            slopes,
            probabilities,
            curvatures: (of_weights, of_intercepts),
            weights: fit.weights.clone(),
            intercepts: fit.intercepts.clone(),
            logits: vec![0.0; fit.logits.len()],
        }
    }

    /// Goes over all coordinates, then over those that are not 0 until they rest, and again, until all rest.
    fn minimise(&mut self, stop: Stop<'_>) -> Result<()> {
        let all: Vec<usize> = (0..self.weights.len()).collect();
        let first = self.sweep(&all);
        let mut sweeps = 1;
        while sweeps < SWEEPS {
            let active: Vec<usize> = all.iter().copied().filter(|at| self.weights[*at] != 0.0).collect();
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

    /// Puts each of these weights, and each intercept, where the form is least; gives the largest gain of one.
    fn sweep(&mut self, places: &[usize]) -> f64 {
        let of_intercepts = (0..self.intercepts.len()).map(|o| self.move_intercept(o)).fold(0.0, f64::max);
        places.iter().map(|at| self.move_weight(*at)).fold(of_intercepts, f64::max)
    }

    fn move_weight(&mut self, at: usize) -> f64 {
        let fit = self.fit;
        let (output, column) = (at / fit.x.f, fit.x.column(at % fit.x.f));
        let l1_ratio = fit.penalty.l1_ratio;
        let curvature = self.curvatures.0[at] + (1.0 - l1_ratio);
        if curvature <= f64::MIN_POSITIVE {
            return 0.0;
        }
        let before = self.weights[at];
        let slope = dot(column, self.slopes_of(output)) + (1.0 - l1_ratio) * before;
        let target = curvature * before - slope;
        let after = target.signum() * (target.abs() - l1_ratio).max(0.0) / curvature;
        if after != before {
            self.weights[at] = after;
            self.shift(output, after - before, Some(column));
        }
        curvature * (after - before).powi(2)
    }

    fn move_intercept(&mut self, output: usize) -> f64 {
        let curvature = self.curvatures.1[output];
        if curvature <= f64::MIN_POSITIVE {
            return 0.0;
        }
        let change = -self.slopes_of(output).iter().sum::<f64>() / curvature;
        self.intercepts[output] += change;
        self.shift(output, change, None);
        curvature * change * change
    }

    fn slopes_of(&self, output: usize) -> &[f64] {
        &self.slopes[output * self.fit.x.n..][..self.fit.x.n]
    }

    /// Moves one logit of every row, by `change` times a column or by `change`, and the slopes with it.
    fn shift(&mut self, output: usize, change: f64, column: Option<&[f64]>) {
        let n = self.fit.x.n;
        let own = &self.probabilities[output * n..][..n];
        let moved = &mut self.logits[output * n..][..n];
        let by = |i: usize| change * column.map_or(1.0, |column| column[i]);
        moved.iter_mut().enumerate().for_each(|(i, logit)| *logit += by(i));
        let c = self.fit.penalty.c;
        for (other, slopes) in self.slopes.chunks_exact_mut(n).enumerate() {
            let p = &self.probabilities[other * n..][..n];
            if other == output {
                slopes.iter_mut().enumerate().for_each(|(i, slope)| *slope += c * p[i] * (1.0 - p[i]) * by(i));
            } else {
                slopes.iter_mut().enumerate().for_each(|(i, slope)| *slope -= c * p[i] * own[i] * by(i));
            }
        }
    }

    /// What the step should change the objective by, to first order in the loss: never above 0.
    fn expected(&self) -> f64 {
        let fit = self.fit;
        let slopes = fit.truth.iter().zip(&self.probabilities).map(|(y, p)| fit.penalty.c * (p - y));
        let loss: f64 = slopes.zip(&self.logits).map(|(slope, change)| slope * change).sum();
        loss + penalty_of(&self.weights, fit.penalty.l1_ratio) - penalty_of(&fit.weights, fit.penalty.l1_ratio)
    }
}
