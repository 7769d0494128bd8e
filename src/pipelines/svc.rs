//! Columns and classes → support vector machines with probabilities.
//!
//! One machine for each pair of classes, and a sigmoid over its decision values, which is learnt from rows held out in five
//! folds: as scikit-learn's `SVC(probability=True)`.

use anyhow::{Context as _, Result, ensure};
use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};

use super::importances::ColumnImportances;
use super::kernel::Kernel;
use super::matrix::{Matrix, sigmoid};
use super::model::{Fitting, Model};
use super::platt;
use super::smo::{Part, Solution, solve};
use super::stop::Stop;

const FOLDS: usize = 5;
/// A pair is never quite certain, or coupling would divide by 0.
const CERTAIN: f64 = 1e-7;

/// The machines of all pairs of classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Svc {
    kernel: Kernel,
    /// Of classes 0 and 1, 0 and 2, ... 1 and 2, ...
    machines: Vec<Machine>,
}

/// The machine of one pair of classes: its decision is above 0 for the second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Machine {
    /// The support vectors, `[s, f]`; a linear machine has their weighted sum as its only one.
    vectors: Vec<f64>,
    /// `[s]`.
    weights: Vec<f64>,
    rho: f64,
    /// The logit is `slope * decision + offset`.
    slope: f64,
    offset: f64,
}

impl Svc {
    /// Fits on `x` with classes `y` below `k`.
    pub(super) fn fit(x: &Matrix, fitting: Fitting<'_>) -> Result<Svc> {
        let Fitting {
            settings,
            y,
            k,
            seed,
            stop,
        } = fitting;
        let kernel = match settings.word("kernel")? {
            "linear" => Kernel::Linear,
            _ => Kernel::Rbf {
                gamma: settings.number("gamma").unwrap_or_else(|| scale(x)),
            },
        };
        let (fit, rows) = (
            Part {
                c: settings.real("C")?,
                shrinking: settings.flag("shrinking")?,
            },
            x.by_rows(),
        );
        let mut machines = Vec::new();
        for (a, b) in pairs(k) {
            let pair = Pair::new(kernel, fit, (&rows, x.f), y, (a as u32, b as u32));
            let (slope, offset) = pair.sigmoid(seed, stop)?;
            let all: Vec<usize> = (0..pair.sides.len()).collect();
            machines.push(Machine {
                slope,
                offset,
                ..pair.machine(&all, stop)?
            });
        }
        Ok(Svc { kernel, machines })
    }
}

impl Model for Svc {
    fn probabilities(&self, x: &Matrix) -> Vec<f64> {
        let k = classes(self.machines.len());
        x.by_rows()
            .chunks_exact(x.f)
            .flat_map(|row| self.row(row, k))
            .collect()
    }

    fn importances(&self, f: usize) -> Option<ColumnImportances> {
        // A linear machine has its coefficients as its only vector; one that never saw two classes has none.
        let coefficients = |machine: &Machine| match machine.vectors.len() {
            0 => vec![0.0; f],
            _ => machine
                .vectors
                .iter()
                .map(|value| value * machine.weights[0])
                .collect(),
        };
        let all: Vec<f64> = self.machines.iter().flat_map(coefficients).collect();
        (self.kernel == Kernel::Linear).then(|| ColumnImportances::of_coefficients(&all, f))
    }

    fn check(&self, f: usize, k: usize) -> Result<()> {
        ensure!(
            self.machines.len() == k * (k - 1) / 2,
            "{} for {k} classes",
            crate::output::counted(self.machines.len(), "machine")
        );
        let sound = |machine: &Machine| machine.vectors.len() == machine.weights.len() * f;
        ensure!(
            self.machines.iter().all(sound),
            "a machine has other support vectors than weights"
        );
        Ok(())
    }
}

impl Svc {
    /// The probability of each class for one row, `[k]`.
    fn row(&self, row: &[f64], k: usize) -> Vec<f64> {
        let second = |machine: &Machine| {
            let p = sigmoid(machine.slope * machine.decision(self.kernel, row) + machine.offset);
            if k == 2 {
                p
            } else {
                p.clamp(CERTAIN, 1.0 - CERTAIN)
            }
        };
        if k == 2 {
            let p = second(&self.machines[0]);
            return vec![1.0 - p, p];
        }
        let mut r = vec![0.5; k * k];
        for ((a, b), machine) in pairs(k).zip(&self.machines) {
            let p = second(machine);
            (r[b * k + a], r[a * k + b]) = (p, 1.0 - p);
        }
        platt::couple(&r, k)
    }
}

impl Machine {
    fn decision(&self, kernel: Kernel, row: &[f64]) -> f64 {
        let vectors = self.vectors.chunks_exact(row.len()).zip(&self.weights);
        vectors
            .map(|(vector, weight)| weight * kernel.of(vector, row))
            .sum::<f64>()
            - self.rho
    }
}

/// All pairs of classes below `k`.
fn pairs(k: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..k).flat_map(move |a| (a + 1..k).map(move |b| (a, b)))
}

/// How many classes have this many pairs.
fn classes(pairs: usize) -> usize {
    (2..).find(|k| k * (k - 1) / 2 >= pairs).unwrap_or(2)
}

/// scikit-learn's `gamma="scale"`: one over the number of columns times the variance of all numbers.
fn scale(x: &Matrix) -> f64 {
    let n = x.x.len() as f64;
    let mean = x.x.iter().sum::<f64>() / n;
    let variance = x.x.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
    if variance > 0.0 {
        1.0 / (x.f as f64 * variance)
    } else {
        1.0
    }
}

/// The rows of two classes.
struct Pair {
    kernel: Kernel,
    fit: Part,
    /// `[n, f]`.
    rows: Vec<f64>,
    f: usize,
    /// -1 for the first class, 1 for the second, `[n]`.
    sides: Vec<f64>,
    classes: (u32, u32),
}

impl Pair {
    fn new(
        kernel: Kernel,
        fit: Part,
        (rows, f): (&[f64], usize),
        y: &[u32],
        classes: (u32, u32),
    ) -> Pair {
        let own = |y: u32| y == classes.0 || y == classes.1;
        let chosen = rows
            .chunks_exact(f)
            .zip(y)
            .filter(|(_, y)| own(**y))
            .flat_map(|(row, _)| row);
        let rows = chosen.copied().collect();
        let sides = y
            .iter()
            .filter(|y| own(**y))
            .map(|y| if *y == classes.1 { 1.0 } else { -1.0 })
            .collect();
        Pair {
            kernel,
            fit,
            rows,
            f,
            sides,
            classes,
        }
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.rows[i * self.f..][..self.f]
    }

    /// The machine of these rows, without its sigmoid. Rows of one class alone all get that class.
    fn machine(&self, places: &[usize], stop: Stop<'_>) -> Result<Machine> {
        let rows: Vec<f64> = places.iter().flat_map(|i| self.row(*i)).copied().collect();
        let sides: Vec<f64> = places.iter().map(|i| self.sides[*i]).collect();
        let Solution { weights, rho } = if sides.windows(2).all(|pair| pair[0] == pair[1]) {
            Solution {
                weights: Vec::new(),
                rho: -*sides.first().context("no rows to fit")?,
            }
        } else {
            solve(self.kernel, &rows, self.f, &sides, self.fit, stop)?
        };
        let mut machine = Machine {
            vectors: Vec::new(),
            weights: Vec::new(),
            rho,
            slope: 1.0,
            offset: 0.0,
        };
        for (row, weight) in rows
            .chunks_exact(self.f)
            .zip(weights)
            .filter(|(_, weight)| *weight != 0.0)
        {
            machine.vectors.extend_from_slice(row);
            machine.weights.push(weight);
        }
        if self.kernel == Kernel::Linear {
            let mut sum = vec![0.0; self.f];
            let vectors = machine.vectors.chunks_exact(self.f).zip(&machine.weights);
            vectors.for_each(|(vector, weight)| super::matrix::add(&mut sum, *weight, vector));
            (machine.vectors, machine.weights) = (sum, vec![1.0]);
        }
        Ok(machine)
    }

    /// The slope and offset of the probability, from decision values of machines that did not see the row.
    fn sigmoid(&self, seed: u64, stop: Stop<'_>) -> Result<(f64, f64)> {
        let folds = self.folds(seed);
        let mut decisions = vec![0.0; self.sides.len()];
        for fold in 0..FOLDS {
            let (held, others): (Vec<usize>, Vec<usize>) =
                (0..folds.len()).partition(|i| folds[*i] == fold);
            if held.is_empty() || others.is_empty() {
                continue;
            }
            let machine = self.machine(&others, stop)?;
            held.iter()
                .for_each(|i| decisions[*i] = machine.decision(self.kernel, self.row(*i)));
        }
        Ok(platt::fit(&decisions, &self.sides))
    }

    /// The fold of each row, `[n]`, each class dealt out evenly.
    fn folds(&self, seed: u64) -> Vec<usize> {
        let parts = [i64::from(self.classes.0), i64::from(self.classes.1)];
        let mut generator = crate::seed::generator(seed, "svc folds", &parts);
        let mut folds = vec![0; self.sides.len()];
        for side in [-1.0, 1.0] {
            let mut rows: Vec<usize> = (0..folds.len())
                .filter(|i| self.sides[*i] == side)
                .collect();
            rows.shuffle(&mut generator);
            rows.iter()
                .enumerate()
                .for_each(|(at, row)| folds[*row] = at % FOLDS);
        }
        folds
    }
}
