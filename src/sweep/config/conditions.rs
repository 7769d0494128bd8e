//! Conditions between the parameters of a search: the keys `when` of their distributions.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde_json::Value;

use poolcast_base::error::hinted;
use poolcast_base::escape;
use poolcast_config::{Condition, Distribution, Parameter, nearest};

/// Rejects conditions on parameters that do not exist, on values that they never have, and conditions
/// in a circle. A search has the distributions `drawn` and the `constants`.
///
/// # Errors
/// Names the parameter whose condition is rejected.
pub(super) fn check_conditions(
    drawn: &BTreeMap<String, Distribution>,
    constants: &BTreeMap<String, Value>,
) -> Result<()> {
    for (name, condition) in conditions(drawn) {
        let shown = escape::value(name);
        let other = condition.parameter.as_str();
        let mut known = drawn.keys().chain(constants.keys()).map(String::as_str);
        let hint = match nearest(other, known.clone()) {
            Some(meant) => format!("did you mean `{}`?", escape::value(meant)),
            None => "name another parameter of the same search".to_owned(),
        };
        ensure!(
            known.any(|known| known == other),
            hinted(
                format!(
                    "`when` of `{shown}` names `{}`, which is not a parameter",
                    escape::value(other)
                ),
                hint
            )
        );
        for value in &condition.values {
            let has_value = drawn
                .get(other)
                .is_none_or(|other| other.accept(value).is_some());
            ensure!(
                has_value,
                hinted(
                    format!(
                        "`when` of `{shown}` never holds: `{}` is never {}",
                        escape::value(other),
                        escape::value(&value.to_string())
                    ),
                    "write a value of its distribution"
                )
            );
        }
        ensure!(
            !is_in_circle(name, drawn),
            hinted(
                format!("`{shown}` depends on itself, by way of `when`"),
                "remove one of the conditions"
            )
        );
    }
    Ok(())
}

/// Divides `parameters` into distributions and constants, by name.
pub(crate) fn drawn_and_constants<'a>(
    parameters: impl Iterator<Item = (&'a str, &'a Parameter)>,
) -> (BTreeMap<String, Distribution>, BTreeMap<String, Value>) {
    let (mut drawn, mut constants) = (BTreeMap::new(), BTreeMap::new());
    for (name, parameter) in parameters {
        match parameter {
            Parameter::Constant(value) => {
                constants.insert(name.to_owned(), value.clone());
            }
            Parameter::Drawn(distribution) => {
                drawn.insert(name.to_owned(), distribution.clone());
            }
        }
    }
    (drawn, constants)
}

/// Leaves out the distributions that no trial draws from, because their condition is on a constant with
/// another value, or on a parameter that is left out itself.
pub(crate) fn drawn_under(
    mut drawn: BTreeMap<String, Distribution>,
    constants: &BTreeMap<String, Value>,
) -> BTreeMap<String, Distribution> {
    loop {
        let never = conditions(&drawn).find_map(|(name, condition)| {
            let may_hold = match constants.get(&condition.parameter) {
                Some(value) => condition.holds(value),
                None => drawn.contains_key(&condition.parameter),
            };
            (!may_hold).then(|| name.clone())
        });
        let Some(never) = never else {
            return drawn;
        };
        drawn.remove(&never);
    }
}

fn conditions(
    drawn: &BTreeMap<String, Distribution>,
) -> impl Iterator<Item = (&String, &Condition)> {
    let all = drawn.iter();
    all.filter_map(|(name, distribution)| Some((name, distribution.condition()?)))
}

/// Returns true if the conditions of `name`, of the parameter that it depends on, and so on lead back to
/// it.
fn is_in_circle(name: &str, drawn: &BTreeMap<String, Distribution>) -> bool {
    let mut at = name;
    for _ in 0..drawn.len() {
        let Some(condition) = drawn.get(at).and_then(Distribution::condition) else {
            return false;
        };
        at = &condition.parameter;
        if at == name {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn drawn(parameters: Value) -> BTreeMap<String, Distribution> {
        serde_json::from_value(parameters).expect("distributions")
    }

    #[test]
    fn conditions_that_cannot_hold_are_rejected() {
        let constants = BTreeMap::from([("size".to_owned(), json!(5))]);
        let check = |parameters: Value| check_conditions(&drawn(parameters), &constants);
        let chain = json!({
            "a": {"values": ["x", "y"]},
            "b": {"values": [1, 2], "when": {"a": "x"}},
            "c": {"min": 0.0, "max": 1.0, "when": {"b": [1.0, 2]}},
            "d": {"values": [1], "when": {"size": 7}},
        });
        check(chain).expect("accepted");

        let refusal = |parameters: Value| check(parameters).expect_err("refused").to_string();
        let b = |when: Value| json!({"a": {"values": ["x"]}, "b": {"values": [1], "when": when}});
        insta::assert_snapshot!(
            [
                refusal(b(json!({"aa": "x"}))),
                refusal(b(json!({"a": ["x", "z"]}))),
                refusal(b(json!({"b": 1}))),
                refusal(json!({
                    "a": {"values": [1], "when": {"b": 2}},
                    "b": {"values": [2], "when": {"a": 1}},
                })),
            ]
            .join("\n"),
            @r#"
        `when` of `b` names `aa`, which is not a parameter
        `when` of `b` never holds: `a` is never "z"
        `b` depends on itself, by way of `when`
        `a` depends on itself, by way of `when`
        "#
        );
    }

    #[test]
    fn parameters_under_a_constant_are_drawn_or_left_out() {
        let constants = BTreeMap::from([("kind".to_owned(), json!("a"))]);
        let space = drawn(json!({
            "of_a": {"values": [1, 2], "when": {"kind": "a"}},
            "of_b": {"values": [1, 2], "when": {"kind": ["b", "c"]}},
            "below_b": {"values": [1, 2], "when": {"of_b": 1}},
        }));
        let left: Vec<String> = drawn_under(space, &constants).into_keys().collect();
        assert_eq!(left, ["of_a"]);
    }
}
