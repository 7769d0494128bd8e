//! The command line of a trial's program: replaces the macros of W&B's agent.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Map, Value};

use super::python_text::{python_json, python_str};
use crate::config::CommandConfig;
use poolcast_base::error::hinted;

/// The values of the macros that do not come from the sweep.
#[derive(Clone, Copy)]
pub(super) struct CommandPlace<'a> {
    /// Value of `${interpreter}`.
    pub(super) interpreter: &'a str,
    /// Value of `${args_json_file}`: a file with the parameters.
    pub(super) json_file: &'a Path,
    /// Looks up an environment variable.
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
}

/// Returns the words of the command of a trial with these `values`. A word that is a whole macro
/// becomes any number of words, none for an unknown macro, as for W&B.
///
/// # Errors
/// Fails if no word remains.
pub(super) fn command_line(
    command: &CommandConfig,
    values: &Map<String, Value>,
    place: CommandPlace<'_>,
) -> Result<Vec<String>> {
    let mut line = Vec::new();
    for word in &command.words {
        let word = with_variables(word, place.variable);
        match word
            .strip_prefix("${")
            .and_then(|rest| rest.strip_suffix('}'))
        {
            Some(name) => line.extend(macro_words(name, command, values, place)),
            None => line.push(word),
        }
    }
    ensure!(
        line.first().is_some_and(|program| !program.is_empty()),
        hinted(
            "the command of the trial has no words",
            "write the program in `program`, and its command line in `command`"
        )
    );
    Ok(line)
}

fn macro_words(
    name: &str,
    command: &CommandConfig,
    values: &Map<String, Value>,
    place: CommandPlace<'_>,
) -> Vec<String> {
    let each = |form: fn(&str, &Value) -> Vec<String>| -> Vec<String> {
        values
            .iter()
            .flat_map(|(name, value)| form(name, value))
            .collect()
    };
    match name {
        "env" => vec!["/usr/bin/env".to_owned()],
        "interpreter" => vec![place.interpreter.to_owned()],
        "program" => command.program.iter().cloned().collect(),
        "args" => each(|name, value| vec![format!("--{name}={}", python_str(value))]),
        "args_no_hyphens" => each(|name, value| vec![format!("{name}={}", python_str(value))]),
        "args_no_equals" => each(|name, value| vec![format!("--{name}"), python_str(value)]),
        "args_no_boolean_flags" => each(|name, value| match value {
            Value::Bool(true) => vec![format!("--{name}")],
            Value::Bool(false) => Vec::new(),
            _ => vec![format!("--{name}={}", python_str(value))],
        }),
        "args_append_hydra" => each(|name, value| vec![format!("+{name}={}", python_str(value))]),
        "args_override_hydra" => {
            each(|name, value| vec![format!("++{name}={}", python_str(value))])
        }
        "args_json" => vec![python_json(values)],
        "args_json_file" => vec![place.json_file.to_string_lossy().into_owned()],
        _ => Vec::new(),
    }
}

/// Replaces each `${envvar:NAME}` in `word` with the environment variable, or with its name if it
/// is not set, as for W&B.
fn with_variables(word: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    const BEGIN: &str = "${envvar:";
    let is_name = |name: &str| {
        let is_letter = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        name.chars().all(is_letter)
    };

    let mut replaced = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        replaced.push_str(before);
        match after.split_once('}') {
            Some((name, after)) if is_name(name) => {
                replaced += &variable(name).unwrap_or_else(|| name.to_owned());
                rest = after;
            }
            _ => {
                replaced.push_str(BEGIN);
                rest = after;
            }
        }
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn line_of(words: &[&str], values: &Value) -> Result<Vec<String>> {
        let command = CommandConfig {
            directory: PathBuf::from("/work"),
            program: Some("train.py".to_owned()),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            parameters: std::collections::BTreeMap::new(),
            notes: Vec::new(),
        };
        let place = CommandPlace {
            interpreter: "python",
            json_file: Path::new("FILE"),
            variable: &|name| (name == "HOME_OF_DATA").then(|| "/data dir".to_owned()),
        };
        command_line(&command, values.as_object().expect("an object"), place)
    }

    #[test]
    fn command_lines_match_wandb() {
        let vectors = include_str!("../../../tests/data/wandb/commands.json");
        let vectors: Value = serde_json::from_str(vectors).expect("JSON");
        let default = ["${env}", "${interpreter}", "${program}", "${args}"];
        for case in vectors["commands"].as_array().expect("cases") {
            let words = case["command"]
                .as_array()
                .map_or(default.to_vec(), |words| {
                    words.iter().filter_map(Value::as_str).collect()
                });
            let found = line_of(&words, &vectors["values"]).expect("a line");
            assert_eq!(serde_json::json!(found), case["line"], "{words:?}");
        }
    }

    #[test]
    fn empty_commands_are_rejected() {
        let nothing = Value::Object(Map::new());
        for words in [&["${other}"][..], &["${args}"], &[""], &[]] {
            assert!(line_of(words, &nothing).is_err(), "{words:?}");
        }
    }
}
