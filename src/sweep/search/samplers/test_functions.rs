//! Functions with known minima, for tests of samplers. `ci/bench/search` has the same ones.

use serde_json::Value;

use crate::search::space::SearchPoint;

/// A function over a search space.
pub(super) struct TestFunction {
    pub(super) name: &'static str,
    /// The parameters as W&B writes them, in JSON.
    pub(super) space: &'static str,
    pub(super) value: fn(&SearchPoint) -> f64,
    /// The largest median of the best of a hundred trials that a sampler which learns may have. It has a
    /// margin for other seeds.
    pub(super) largest_median: f64,
}

pub(super) const FUNCTIONS: [TestFunction; 5] = [
    TestFunction {
        name: "hartmann",
        space: r#"{"a": {"min": 0.0, "max": 1.0}, "b": {"min": 0.0, "max": 1.0},
            "c": {"min": 0.0, "max": 1.0}, "d": {"min": 0.0, "max": 1.0},
            "e": {"min": 0.0, "max": 1.0}, "f": {"min": 0.0, "max": 1.0}}"#,
        value: hartmann,
        largest_median: -3.15,
    },
    TestFunction {
        name: "mixed",
        space: r#"{"kind": {"values": ["a", "b", "c", "d", "e"]},
            "rate": {"distribution": "log_uniform_values", "min": 1e-5, "max": 1e-1},
            "layers": {"min": 1, "max": 16}}"#,
        value: mixed,
        largest_median: 0.001,
    },
    TestFunction {
        name: "branin",
        space: r#"{"x": {"min": -5.0, "max": 10.0}, "y": {"min": 0.0, "max": 15.0}}"#,
        value: branin,
        largest_median: 0.45,
    },
    TestFunction {
        name: "ackley",
        space: r#"{"a": {"min": -5.0, "max": 5.0}, "b": {"min": -5.0, "max": 5.0},
            "c": {"min": -5.0, "max": 5.0}, "d": {"min": -5.0, "max": 5.0},
            "e": {"min": -5.0, "max": 5.0}}"#,
        value: ackley,
        largest_median: 2.4,
    },
    TestFunction {
        name: "rosenbrock",
        space: r#"{"a": {"min": -2.048, "max": 2.048}, "b": {"min": -2.048, "max": 2.048},
            "c": {"min": -2.048, "max": 2.048}, "d": {"min": -2.048, "max": 2.048},
            "e": {"min": -2.048, "max": 2.048}}"#,
        value: rosenbrock,
        largest_median: 1.9,
    },
];

/// The numbers of `point`, in the order of their names.
fn numbers(point: &SearchPoint) -> Vec<f64> {
    point.values().filter_map(Value::as_f64).collect()
}

/// Hartmann's function in six dimensions, whose minimum is -3.322.
fn hartmann(point: &SearchPoint) -> f64 {
    const ALPHA: [f64; 4] = [1.0, 1.2, 3.0, 3.2];
    const A: [[f64; 6]; 4] = [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ];
    const P: [[f64; 6]; 4] = [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ];
    let x = numbers(point);
    let term = |i: usize| {
        ALPHA[i]
            * (-(0..6)
                .map(|j| A[i][j] * (x[j] - P[i][j]).powi(2))
                .sum::<f64>())
            .exp()
    };
    -(0..4).map(term).sum::<f64>()
}

/// A function of a category, which decides the best rate, a rate and a number of layers. Its
/// minimum is 0.
fn mixed(point: &SearchPoint) -> f64 {
    let number = |name: &str| point[name].as_f64().expect("a number");
    let (cost, rate) = match point["kind"].as_str() {
        Some("a") => (0.0, -3.0),
        Some("b") => (0.3, -2.0),
        Some("c") => (0.6, -4.0),
        Some("d") => (0.9, -1.5),
        _ => (1.2, -4.5),
    };
    cost + (number("rate").log10() - rate).powi(2) + ((number("layers") - 7.0) / 4.0).powi(2)
}

/// Branin's function, whose minimum is 0.398.
fn branin(point: &SearchPoint) -> f64 {
    use std::f64::consts::PI;
    let x = numbers(point);
    let valley = x[1] - 5.1 / (4.0 * PI * PI) * x[0] * x[0] + 5.0 / PI * x[0] - 6.0;
    valley * valley + 10.0 * (1.0 - 1.0 / (8.0 * PI)) * x[0].cos() + 10.0
}

/// Ackley's function in five dimensions, whose minimum is 0.
fn ackley(point: &SearchPoint) -> f64 {
    use std::f64::consts::{E, TAU};
    let x = numbers(point);
    let square = x.iter().map(|x| x * x).sum::<f64>() / 5.0;
    let waves = x.iter().map(|x| (TAU * x).cos()).sum::<f64>() / 5.0;
    -20.0 * (-0.2 * square.sqrt()).exp() - waves.exp() + 20.0 + E
}

/// The logarithm of Rosenbrock's function in five dimensions, whose minimum is 0.
fn rosenbrock(point: &SearchPoint) -> f64 {
    let x = numbers(point);
    let step =
        |pair: &[f64]| 100.0 * (pair[1] - pair[0] * pair[0]).powi(2) + (1.0 - pair[0]).powi(2);
    (1e-6 + x.windows(2).map(step).sum::<f64>()).ln()
}
