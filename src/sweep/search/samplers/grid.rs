//! The grid sampler: every combination of values, in W&B's order.

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::search::space::{SearchPoint, SearchSpace};
use poolcast_base::error::hinted;

/// Maximum number of values of a parameter that conditions are on.
const MAX_PARENT_VALUES: u64 = 100_000;

/// Returns the number of points of a grid over `space`: one for a space without parameters. Points that
/// differ only in parameters whose condition does not hold are one.
///
/// # Errors
/// Fails for a distribution whose values cannot be counted.
pub fn point_count(space: &SearchSpace) -> Result<u64> {
    for (at, (name, distribution)) in space.parameters().iter().enumerate() {
        let refusal = || {
            let hint = "give `values`, `int_uniform` or `q_uniform`, or use `method: random`";
            hinted(
                format!("a grid cannot search `{name}`, because its values cannot be counted"),
                hint,
            )
        };
        let values = distribution.grid_len().ok_or_else(refusal)?;
        ensure!(
            values <= MAX_PARENT_VALUES || children(space, Some(at)).is_empty(),
            hinted(
                format!(
                    "a grid cannot search `{name}`, because other parameters depend on its {values} values"
                ),
                "give it fewer values, or use `method: random`"
            )
        );
    }
    Ok(points_of_all(space, &children(space, None)))
}

/// Returns the point of trial `trial`, counted from 1. The last parameter by name varies fastest,
/// as in W&B's grids. A parameter with a condition varies while the value that it depends on stays.
pub(in crate::search) fn point(space: &SearchSpace, trial: usize) -> Result<SearchPoint> {
    let points = point_count(space)?;
    let number = trial.saturating_sub(1) as u64;
    ensure!(
        number < points,
        "the grid has {}, and no point {trial}",
        poolcast_base::output::counted(points as usize, "point")
    );

    let mut point = SearchPoint::new();
    add_values(&mut point, space, &children(space, None), number);
    Ok(point)
}

/// Adds the values of the point `number`, from 0, of the grid over the parameters `all` and those that
/// depend on them.
fn add_values(point: &mut SearchPoint, space: &SearchSpace, all: &[usize], number: u64) {
    let mut rest = number;
    // The number of the point, in digits: each parameter is a digit, and the last one is the lowest.
    for at in all.iter().rev() {
        let points = points_of(space, *at);
        let digit = rest % points;
        rest /= points;

        let (name, distribution) = &space.parameters()[*at];
        let below = children(space, Some(*at));
        if below.is_empty() {
            point.insert(name.clone(), distribution.grid_value(digit));
            continue;
        }
        let mut left = digit;
        for value in (0..distribution.grid_len().unwrap_or(1)).map(|at| distribution.grid_value(at))
        {
            let held = held_children(space, &below, &value);
            let points = points_of_all(space, &held);
            if left < points {
                point.insert(name.clone(), value);
                add_values(point, space, &held, left);
                break;
            }
            left -= points;
        }
    }
}

/// The number of points of a grid over the parameter `at`, and those that depend on it.
fn points_of(space: &SearchSpace, at: usize) -> u64 {
    let distribution = &space.parameters()[at].1;
    let values = distribution.grid_len().unwrap_or(1);
    let below = children(space, Some(at));
    if below.is_empty() {
        return values;
    }
    let of_value = |value: u64| {
        let held = held_children(space, &below, &distribution.grid_value(value));
        points_of_all(space, &held)
    };
    (0..values).map(of_value).fold(0, u64::saturating_add)
}

/// The number of points of a grid over the parameters `all`, and those that depend on them.
fn points_of_all(space: &SearchSpace, all: &[usize]) -> u64 {
    let points = all.iter().map(|at| points_of(space, *at));
    points.fold(1, u64::saturating_mul)
}

/// The parameters whose condition is on the parameter `parent`; for `None`, those without a condition.
fn children(space: &SearchSpace, parent: Option<usize>) -> Vec<usize> {
    let all = 0..space.parameters().len();
    all.filter(|at| space.parent(*at) == parent).collect()
}

/// Those of the parameters `below` whose condition holds for `value`.
fn held_children(space: &SearchSpace, below: &[usize], value: &Value) -> Vec<usize> {
    let holds = |at: &usize| {
        let condition = space.parameters()[*at].1.condition();
        condition.is_none_or(|condition| condition.holds(value))
    };
    below.iter().copied().filter(holds).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::space::space_of;
    use serde_json::json;

    #[test]
    fn grid_does_not_multiply_by_parameters_without_a_value() {
        let space = space_of(&json!({
            "beta": {"values": [7, 8], "when": {"optimizer": "adam"}},
            "layers": {"values": [1, 2]},
            "nesterov": {"values": [true], "when": {"momentum": 0.9}},
            "momentum": {"values": [0, 0.9], "when": {"optimizer": "sgd"}},
            "optimizer": {"values": ["adam", "sgd", "lion"]},
        }));
        let points = point_count(&space).expect("a grid");
        assert_eq!(points, 2 * (2 + 2 + 1));
        let all: Vec<SearchPoint> = (1..=points as usize)
            .map(|trial| point(&space, trial).expect("a point"))
            .collect();
        assert_eq!(
            json!(all[..5]),
            json!([
                {"layers": 1, "optimizer": "adam", "beta": 7},
                {"layers": 1, "optimizer": "adam", "beta": 8},
                {"layers": 1, "optimizer": "sgd", "momentum": 0},
                {"layers": 1, "optimizer": "sgd", "momentum": 0.9, "nesterov": true},
                {"layers": 1, "optimizer": "lion"},
            ])
        );
        assert!(all[5..].iter().all(|point| point["layers"] == json!(2)));
        assert!(point(&space, 11).is_err());
    }

    #[test]
    fn grids_with_conditions_on_too_many_values_are_rejected() {
        let space = space_of(&json!({
            "a": {"min": 1, "max": 1_000_000_000},
            "b": {"values": [1, 2], "when": {"a": 5}},
        }));
        let refused = point_count(&space).expect_err("refused").to_string();
        assert!(
            refused.contains("depend on its 1000000000 values"),
            "{refused}"
        );
    }

    #[test]
    fn grid_order_matches_wandb() {
        let vectors = include_str!("../../../../tests/data/wandb/sweeps_vectors.json");
        let vectors: Value = serde_json::from_str(vectors).expect("JSON");
        let parameters = &vectors["grid"]["config"]["parameters"];
        let space = space_of(parameters);
        let order = vectors["grid"]["order"].as_array().expect("an order");
        assert_eq!(
            point_count(&space).expect("a grid"),
            order.len() as u64 - 1,
            "the last one says that there are no more"
        );
        for (at, wanted) in order.iter().enumerate().take(order.len() - 1) {
            let found = point(&space, at + 1).expect("a point");
            let name = |name: &str| {
                name.split('.').fold(wanted.clone(), |above, part| {
                    above.get("value").unwrap_or(&above)[part].clone()
                })
            };
            for (key, value) in found {
                let wanted = name(&key);
                assert_eq!(
                    &value,
                    wanted.get("value").unwrap_or(&wanted),
                    "{key} of point {}",
                    at + 1
                );
            }
        }
        assert!(point(&space, order.len()).is_err());
    }
}
