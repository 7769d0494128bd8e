//! The key `init_points` of a search: points that it tries first.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use serde_json::{Map, Value};

use poolcast_base::error::hinted;
use poolcast_base::escape;
use poolcast_config::{Distribution, nearest};

/// Points in a configuration: values by the name of a parameter. The names of nested parameters are
/// dotted, or in maps of their own.
pub type InitPoints = Vec<Map<String, Value>>;

/// Returns `points` by the full names of parameters, with each value in the form in which it is drawn
/// from the space `drawn`. `key` names the list in messages.
///
/// # Errors
/// Fails for a parameter that is not drawn, and for a value that is never drawn.
pub(crate) fn read_init_points(
    key: &str,
    points: &InitPoints,
    drawn: &BTreeMap<String, Distribution>,
) -> Result<Vec<BTreeMap<String, Value>>> {
    let mut read = Vec::new();
    for (at, point) in points.iter().enumerate() {
        let mut values = BTreeMap::new();
        let place = format!("{key}[{at}]");
        add_values(&mut values, &place, "", point, drawn)?;
        check_conditions_hold(&values, &place, drawn)?;
        read.push(values);
    }
    Ok(read)
}

/// Rejects a value of a parameter whose condition the other values do not fulfil.
fn check_conditions_hold(
    values: &BTreeMap<String, Value>,
    place: &str,
    drawn: &BTreeMap<String, Distribution>,
) -> Result<()> {
    for name in values.keys() {
        let condition = drawn.get(name).and_then(Distribution::condition);
        let Some(condition) = condition.filter(|known| drawn.contains_key(&known.parameter)) else {
            continue;
        };
        let other = values.get(&condition.parameter);
        ensure!(
            other.is_some_and(|other| condition.holds(other)),
            hinted(
                format!(
                    "`{place}.{}` needs a value of `{}` with which its `when` holds",
                    escape::value(name),
                    escape::value(&condition.parameter)
                ),
                "give both values, or remove this one"
            )
        );
    }
    Ok(())
}

/// Rejects `points` for a grid.
pub(super) fn check_no_grid(key: &str, points: &InitPoints, is_grid: bool) -> Result<()> {
    ensure!(
        !is_grid || points.is_empty(),
        hinted(
            format!("`{key}` has no effect on a grid, which tries all points"),
            "remove it, or use `method: random`"
        )
    );
    Ok(())
}

/// Adds the values of `written`, whose names continue the name `above`.
fn add_values(
    values: &mut BTreeMap<String, Value>,
    place: &str,
    above: &str,
    written: &Map<String, Value>,
    drawn: &BTreeMap<String, Distribution>,
) -> Result<()> {
    for (name, value) in written {
        let name = format!("{above}{name}");
        let shown = escape::value(&name);
        let Some(distribution) = drawn.get(&name) else {
            let Value::Object(nested) = value else {
                let hint = match nearest(&name, drawn.keys().map(String::as_str)) {
                    Some(meant) => format!("did you mean `{}`?", escape::value(meant)),
                    None => {
                        "name parameters that have a distribution; others need no value".to_owned()
                    }
                };
                bail!(hinted(
                    format!("`{place}.{shown}` is not a parameter that the search draws"),
                    hint
                ));
            };
            add_values(values, place, &format!("{name}."), nested, drawn)?;
            continue;
        };
        let Some(value) = distribution.accept(value) else {
            bail!(hinted(
                format!(
                    "`{place}.{shown}` is {}, which the search never draws",
                    escape::value(&value.to_string())
                ),
                "write a value of its distribution, or widen the distribution"
            ));
        };
        values.insert(name, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(points: Value) -> Result<Vec<BTreeMap<String, Value>>> {
        let drawn = json!({
            "rate": {"min": 0.0, "max": 1.0},
            "optimizer.name": {"values": ["adam", "sgd"]},
            "layers": {"values": [{"size": 8}, {"size": 16}]},
            "momentum": {"min": 0.0, "max": 1.0, "when": {"optimizer.name": "sgd"}},
        });
        let drawn = serde_json::from_value(drawn).expect("distributions");
        let points = serde_json::from_value(points).expect("points");
        read_init_points("init_points", &points, &drawn)
    }

    #[test]
    fn points_have_full_names_and_drawn_values() {
        let points = read(json!([
            {"rate": 1, "optimizer": {"name": "sgd"}, "momentum": 0.5},
            {"optimizer.name": "adam", "layers": {"size": 16}},
            {},
        ]));
        assert_eq!(
            json!(points.expect("points")),
            json!([
                {"rate": 1.0, "optimizer.name": "sgd", "momentum": 0.5},
                {"optimizer.name": "adam", "layers": {"size": 16}},
                {},
            ])
        );
    }

    #[test]
    fn points_outside_of_the_space_are_rejected() {
        let refusal = |point: Value| read(json!([{}, point])).expect_err("refused").to_string();
        insta::assert_snapshot!(
            [
                refusal(json!({"rate": 1.5})),
                refusal(json!({"rate": "high"})),
                refusal(json!({"rates": 0.5})),
                refusal(json!({"optimizer": {"name": "lion"}})),
                refusal(json!({"optimizer": {"nesterov": true}})),
                refusal(json!({"layers": {"size": 9}})),
                refusal(json!({"momentum": 0.5, "optimizer": {"name": "adam"}})),
            ]
            .join("\n"),
            @r#"
        `init_points[1].rate` is 1.5, which the search never draws
        `init_points[1].rate` is "high", which the search never draws
        `init_points[1].rates` is not a parameter that the search draws
        `init_points[1].optimizer.name` is "lion", which the search never draws
        `init_points[1].optimizer.nesterov` is not a parameter that the search draws
        `init_points[1].layers` is {"size":9}, which the search never draws
        `init_points[1].momentum` needs a value of `optimizer.name` with which its `when` holds
        "#
        );
    }
}
