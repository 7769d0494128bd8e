//! The grid sampler: every combination of values, in W&B's order.

use anyhow::{Result, ensure};

use crate::search::space::{SearchPoint, SearchSpace};
use poolcast_base::error::hinted;

/// Returns the number of points of a grid over `space`: one for a space without parameters.
///
/// # Errors
/// Fails for a distribution whose values cannot be counted.
pub fn point_count(space: &SearchSpace) -> Result<u64> {
    let mut points = 1u64;
    for (name, distribution) in space.parameters() {
        let refusal = || {
            let hint = "give `values`, `int_uniform` or `q_uniform`, or use `method: random`";
            hinted(
                format!("a grid cannot search `{name}`, because its values cannot be counted"),
                hint,
            )
        };
        points = points.saturating_mul(distribution.grid_len().ok_or_else(refusal)?);
    }
    Ok(points)
}

/// Returns the point of trial `trial`, counted from 1. The last parameter by name varies fastest,
/// as in W&B's grids.
pub(in crate::search) fn point(space: &SearchSpace, trial: usize) -> Result<SearchPoint> {
    let points = point_count(space)?;
    let mut rest = trial.saturating_sub(1) as u64;
    ensure!(
        rest < points,
        "the grid has {}, and no point {trial}",
        poolcast_base::output::counted(points as usize, "point")
    );

    let mut point = SearchPoint::new();
    // The number of the trial, in digits: each parameter is a digit, and the last one is the
    // lowest.
    for (name, distribution) in space.parameters().iter().rev() {
        let values = distribution.grid_len().unwrap_or(1);
        point.insert(name.clone(), distribution.grid_value(rest % values));
        rest /= values;
    }
    Ok(point)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::space::space_of;
    use serde_json::Value;

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
