//! The section `command`: the program of the user that each trial runs, and the parameters that a
//! sweep draws for it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use poolcast_base::error::hinted;
use poolcast_config::Distribution;

/// The program of the user that each trial runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandConfig {
    /// Directory that the program runs in.
    pub directory: PathBuf,
    /// Value of the macro `${program}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Words of the command, with the macros of W&B.
    pub words: Vec<String>,
    /// Parameters by name.
    pub parameters: BTreeMap<String, CommandParameter>,
    /// Notes on the meaning of the file that the section was read from.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// A parameter of a program, in the form of a W&B sweep file. Numbers keep their form: a program
/// may tell `1` from `1.0`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
pub enum CommandParameter {
    /// The same value for every trial.
    Constant(Value),
    /// The distribution that the value of a trial is drawn from.
    Drawn(Distribution),
    /// Parameters that the program gets as one value with a key for each.
    Nested(BTreeMap<String, CommandParameter>),
}

impl CommandConfig {
    /// The program as people know it: the file of `${program}`, or the first word of the command
    /// that is not a macro.
    pub fn title(&self) -> &str {
        let is_plain = |word: &&String| !word.starts_with("${") && !word.starts_with('-');
        let first = self.words.iter().find(is_plain);
        let title = self.program.as_ref().or(first).or(self.words.first());
        title.map_or("", String::as_str)
    }

    /// Returns the parameters that a sweep draws, and those with one value, by name. The name of a nested
    /// parameter is dotted.
    pub(super) fn drawn_and_constants(
        &self,
    ) -> (BTreeMap<String, Distribution>, BTreeMap<String, Value>) {
        let (mut drawn, mut constants) = (BTreeMap::new(), BTreeMap::new());
        for (name, parameter) in self.all() {
            match parameter {
                CommandParameter::Drawn(distribution) => {
                    drawn.insert(name, distribution.clone());
                }
                CommandParameter::Constant(value) => {
                    constants.insert(name, value.clone());
                }
                CommandParameter::Nested(_) => {}
            }
        }
        (drawn, constants)
    }

    /// Lists all parameters that have a value of their own. The name of a nested parameter is
    /// dotted.
    pub fn all(&self) -> Vec<(String, &CommandParameter)> {
        let mut all = Vec::new();
        add_parameters(&mut all, "", &self.parameters);
        all
    }

    /// Replaces distributions with the values of `point`. Leaves out the parameters that it does not
    /// have, because their condition does not hold, and a nested map without any other parameter.
    pub fn with_point(&self, point: &BTreeMap<String, Value>) -> CommandConfig {
        CommandConfig {
            parameters: parameters_at(point, "", &self.parameters),
            ..self.clone()
        }
    }

    /// The values of a trial, as the program gets them.
    ///
    /// # Errors
    /// Fails for a distribution, because a trial has a value for each parameter.
    pub fn values(&self) -> Result<Map<String, Value>> {
        values_of(&self.parameters)
    }

    pub(super) fn check(&self) -> Result<()> {
        ensure!(
            self.directory.is_absolute(),
            "`command.directory` must be an absolute path"
        );
        ensure!(!self.words.is_empty(), "`command.words` is empty");
        let mut names = BTreeSet::new();
        for (name, _) in self.all() {
            ensure!(
                !name.contains(['=', '\0']) && poolcast_base::escape::value(&name) == name,
                "the name of a parameter has a character that cannot be passed on: `{}`",
                poolcast_base::escape::value(&name)
            );
            ensure!(
                names.insert(name.clone()),
                hinted(
                    format!("two parameters are called `{name}`"),
                    "rename the nested parameter, or the one with a dot in its name"
                )
            );
        }
        Ok(())
    }
}

fn add_parameters<'a>(
    all: &mut Vec<(String, &'a CommandParameter)>,
    above: &str,
    parameters: &'a BTreeMap<String, CommandParameter>,
) {
    for (name, parameter) in parameters {
        let name = format!("{above}{name}");
        match parameter {
            CommandParameter::Nested(nested) => add_parameters(all, &format!("{name}."), nested),
            _ => all.push((name, parameter)),
        }
    }
}

fn parameters_at(
    point: &BTreeMap<String, Value>,
    above: &str,
    parameters: &BTreeMap<String, CommandParameter>,
) -> BTreeMap<String, CommandParameter> {
    let at_point = |(name, parameter): (&String, &CommandParameter)| {
        let full = format!("{above}{name}");
        let parameter = match (parameter, point.get(&full)) {
            (CommandParameter::Nested(nested), _) => {
                let at_point = parameters_at(point, &format!("{full}."), nested);
                if at_point.is_empty() && !nested.is_empty() {
                    return None;
                }
                CommandParameter::Nested(at_point)
            }
            (CommandParameter::Drawn(_), Some(value)) => CommandParameter::Constant(value.clone()),
            (CommandParameter::Drawn(drawn), None) if drawn.condition().is_some() => return None,
            _ => parameter.clone(),
        };
        Some((name.clone(), parameter))
    };
    parameters.iter().filter_map(at_point).collect()
}

fn values_of(parameters: &BTreeMap<String, CommandParameter>) -> Result<Map<String, Value>> {
    let mut values = Map::new();
    for (name, parameter) in parameters {
        let value = match parameter {
            CommandParameter::Constant(value) => value.clone(),
            CommandParameter::Nested(nested) => Value::Object(values_of(nested)?),
            CommandParameter::Drawn(_) => bail!("the parameter `{name}` has no value yet"),
        };
        values.insert(name.clone(), value);
    }
    Ok(values)
}

impl From<CommandParameter> for Map<String, Value> {
    fn from(parameter: CommandParameter) -> Map<String, Value> {
        match parameter {
            CommandParameter::Drawn(distribution) => distribution.into(),
            CommandParameter::Constant(value) => Map::from_iter([("value".to_owned(), value)]),
            CommandParameter::Nested(nested) => {
                Map::from_iter([("parameters".to_owned(), json!(nested))])
            }
        }
    }
}

impl TryFrom<Map<String, Value>> for CommandParameter {
    type Error = String;

    fn try_from(mut written: Map<String, Value>) -> Result<CommandParameter, String> {
        if written.contains_key("when") && written.contains_key("parameters") {
            return Err("`when` belongs to each of the nested `parameters`".to_owned());
        }
        if written.len() == 1
            && let Some(nested) = written.remove("parameters")
        {
            return nested_parameters(nested).map(CommandParameter::Nested);
        }
        let is_constant = match written.get("distribution") {
            None => written.len() == 1,
            Some(name) => written.len() == 2 && name == "constant",
        };
        match written.remove("value") {
            Some(value) if is_constant => Ok(CommandParameter::Constant(value)),
            value => {
                written.extend(value.map(|value| ("value".to_owned(), value)));
                Distribution::try_from(written).map(CommandParameter::Drawn)
            }
        }
    }
}

/// Reads nested parameters one by one, so that an error names the parameter.
fn nested_parameters(written: Value) -> Result<BTreeMap<String, CommandParameter>, String> {
    let Value::Object(written) = written else {
        return Err("`parameters` must have a key for each parameter".to_owned());
    };
    let mut nested = BTreeMap::new();
    for (name, parameter) in written {
        let Value::Object(parameter) = parameter else {
            return Err(format!(
                "`{name}` needs `value`, `values` or a distribution"
            ));
        };
        let parameter = CommandParameter::try_from(parameter);
        let parameter = parameter.map_err(|error| format!("`{name}`: {error}"))?;
        nested.insert(name, parameter);
    }
    Ok(nested)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(parameters: Value) -> CommandConfig {
        let section = json!({
            "directory": "/work", "program": "train.py", "words": ["${program}"],
            "parameters": parameters,
        });
        serde_json::from_value(section).expect("a section")
    }

    #[test]
    fn points_replace_nested_distributions() {
        let command = command(json!({
            "rate": {"values": [0.1, 0.2]},
            "optimizer": {"parameters": {
                "name": {"value": "adam"},
                "schedule": {"parameters": {"gamma": {"min": 0.5, "max": 0.9}}},
            }},
            "size": {"value": 1.0},
        }));
        let (drawn, _) = command.drawn_and_constants();
        let names: Vec<String> = drawn.into_keys().collect();
        assert_eq!(names, ["optimizer.schedule.gamma", "rate"]);

        let point = BTreeMap::from([
            ("rate".to_owned(), json!(0.2)),
            ("optimizer.schedule.gamma".to_owned(), json!(0.75)),
        ]);
        assert!(command.values().is_err());
        let values = command.with_point(&point).values().expect("values");
        let wanted = json!({
            "optimizer": {"name": "adam", "schedule": {"gamma": 0.75}}, "rate": 0.2, "size": 1.0,
        });
        assert_eq!(Value::Object(values), wanted);
    }

    #[test]
    fn parameters_without_a_value_are_left_out() {
        let command = command(json!({
            "optimizer": {"values": ["adam", "sgd"]},
            "momentum": {"min": 0.0, "max": 1.0, "when": {"optimizer": "sgd"}},
            "decay": {"value": 0.1, "when": {"optimizer": "adam"}},
            "schedule": {"parameters": {"gamma": {"values": [1, 2], "when": {"optimizer": "sgd"}}}},
        }));
        let point = BTreeMap::from([
            ("optimizer".to_owned(), json!("adam")),
            ("decay".to_owned(), json!(0.1)),
        ]);
        let values = command.with_point(&point).values().expect("values");
        let wanted = json!({"optimizer": "adam", "decay": 0.1});
        assert_eq!(Value::Object(values), wanted);

        let group = json!({"parameters": {"gamma": {"value": 1}}, "when": {"a": 1}});
        let refused = serde_json::from_value::<CommandParameter>(group).expect_err("refused");
        assert!(
            refused.to_string().contains("each of the nested"),
            "{refused}"
        );
    }

    #[test]
    fn sections_round_trip() {
        let parameters = json!({
            "a": {"value": null},
            "b": {"parameters": {"c": {"values": [[1], [2.0]]}}},
            "d": {"distribution": "normal", "mu": 0.5},
        });
        let written = json!(command(parameters.clone()));
        assert_eq!(written["parameters"], parameters);
    }

    #[test]
    fn equal_dotted_names_are_rejected() {
        let twice = command(json!({"a.b": {"value": 1}, "a": {"parameters": {"b": {"value": 2}}}}));
        let error = twice.check().expect_err("must be rejected");
        assert!(error.to_string().contains("`a.b`"), "{error}");
    }
}
