//! Reads a W&B sweep file as it is: its keys become the keys of this program, with the meaning that
//! they have for W&B.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value, json};

use super::command::CommandParameter;
use poolcast_base::error::hinted;
use poolcast_base::escape;
use poolcast_config::layers::Dict;
use poolcast_config::{nearest, yaml};

/// Number of trials if the file has no `run_cap`. W&B draws further trials without an end.
const DEFAULT_TRIALS: usize = 20;

/// Number of trials of a larger grid in a file without `run_cap`. W&B tries all points.
const MAX_GRID: f64 = 100_000.0;

/// Maximum number of examples in a note.
const MAX_EXAMPLES: usize = 3;

/// The command of a file without `command`.
const DEFAULT_COMMAND: [&str; 4] = ["${env}", "${interpreter}", "${program}", "${args}"];

/// Keys that only a W&B sweep file has at its top level.
const MARKS: [&str; 7] = [
    "program",
    "method",
    "parameters",
    "job",
    "image_uri",
    "scheduler",
    "early_terminate",
];

/// Keys whose values are used.
const USED: [&str; 16] = [
    "program",
    "command",
    "method",
    "metric",
    "parameters",
    "early_terminate",
    "run_cap",
    "name",
    "description",
    "entity",
    "project",
    "seed",
    "out",
    "deterministic",
    "trials_per_round",
    "init_points",
];

/// Keys for W&B's servers: a search on them, jobs of W&B Launch, and versions of the format.
const UNUSED: [&str; 13] = [
    "controller",
    "scheduler",
    "job",
    "image_uri",
    "queue",
    "launch",
    "resource",
    "resource_args",
    "template_variables",
    "apiVersion",
    "kind",
    "metrics",
    "prior_runs",
];

/// A W&B sweep file, as a layer of the configuration.
pub(super) struct WandbFile {
    pub(super) layer: Dict,
    /// Notes on values that were read in another way than the user may expect.
    pub(super) notes: Vec<String>,
}

/// Returns true if `dict` has the keys of a W&B sweep file. In a configuration of this program, they
/// are in sections.
pub(super) fn is_wandb_file(dict: &Dict) -> bool {
    let is_command = |dict: &Dict| dict.get("command").is_some_and(|it| it.as_dict().is_none());
    is_command(dict) || MARKS.iter().any(|mark| dict.contains_key(*mark))
}

/// Reads the W&B sweep file at `path` with this `text`.
///
/// # Errors
/// Fails for a sweep that W&B's engine rejects, and for one that has no program to run here.
pub(super) fn read_wandb_file(text: &str, path: &Path) -> Result<WandbFile> {
    let mut reader = FileReader {
        text,
        keys: yaml::read_last(text)?,
        notes: Vec::new(),
    };
    // Only a key that occurs twice is an error in one of the two readings.
    if let Err(error) = yaml::read::<Value>(text) {
        reader.notes.push(format!(
            "{}; the last value of such a key counts, as for W&B",
            escape::value(&error.to_string())
        ));
    }
    reader.keys = reader.scalars(reader.keys.clone());
    let layer = reader.layer(path)?;
    Ok(WandbFile {
        layer: serde_json::from_value(layer)?,
        notes: reader.notes,
    })
}

struct FileReader<'a> {
    text: &'a str,
    keys: Map<String, Value>,
    notes: Vec<String>,
}

impl FileReader<'_> {
    fn layer(&mut self, path: &Path) -> Result<Value> {
        self.check_program()?;
        self.note_other_keys()?;

        let method = self.method()?;
        let metric = self.metrics(&method)?;
        let command = self.command(path)?;
        let mut sweep = json!({"method": method, "metric": metric});
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let name = self.text_at("name")?.or(stem.map(str::to_owned));
        sweep["name"] = json!(name.unwrap_or_else(|| "sweep".to_owned()));
        for key in [
            "early_terminate",
            "run_cap",
            "deterministic",
            "trials_per_round",
            "init_points",
        ] {
            if let Some(value) = self.whole_numbers_at(key) {
                sweep[key] = value;
            }
        }
        ensure!(
            sweep.get("early_terminate").is_none()
                || metric.is_array()
                || metric.get("reported").is_some(),
            hinted(
                "`early_terminate` needs a metric to compare",
                "add `metric: {name: NAME, goal: minimize}`"
            )
        );

        let mut wandb = json!({"sweep": sweep});
        for key in ["entity", "project"] {
            wandb[key] = json!(self.text_at(key)?);
        }
        let mut layer = json!({"command": command, "wandb": wandb, "epochs": 1});
        let is_grid = method == "grid";
        let runs = self.whole_numbers_at("run_cap");
        if runs.is_none() && is_grid && grid_points(&layer["command"]["parameters"]) > MAX_GRID {
            layer["wandb"]["sweep"]["run_cap"] = json!(MAX_GRID as usize);
            self.notes.push(format!(
                "the first {MAX_GRID} points of the grid are planned; `run_cap: N` in the file plans N"
            ));
        }
        if runs.is_none() && !is_grid {
            self.notes.push(format!(
                "W&B draws trials without an end; {DEFAULT_TRIALS} are planned here. `run_cap: N` in the file plans N"
            ));
        }
        layer["runs"] = runs.unwrap_or(json!(DEFAULT_TRIALS));
        for key in ["seed", "out"] {
            if let Some(value) = self.keys.get(key) {
                layer[key] = value.clone();
            }
        }
        self.note_exponents();
        Ok(layer)
    }

    /// Rejects a file that names no program of the user.
    fn check_program(&self) -> Result<()> {
        if self.keys.contains_key("program") || self.keys.contains_key("command") {
            return Ok(());
        }
        let hint = "write the program that each trial runs, as `program: train.py`, beside `method` and `parameters`";
        let launched = ["job", "image_uri", "scheduler"];
        ensure!(
            !launched.iter().any(|key| self.keys.contains_key(*key)),
            hinted(
                "it is a sweep of W&B Launch, whose jobs run on W&B's queues; it names no program to run here",
                hint
            )
        );
        bail!(hinted(
            "it is a W&B sweep file without a program; a sweep of a Python function needs a script that calls it",
            hint
        ))
    }

    /// Notes the keys whose values have no effect here. Rejects a misspelt key.
    fn note_other_keys(&mut self) -> Result<()> {
        let mut others = Vec::new();
        for key in self.keys.keys() {
            if USED.contains(&key.as_str()) {
                continue;
            }
            let is_known = UNUSED.contains(&key.as_str());
            if !is_known && let Some(meant) = nearest(key, USED.into_iter().chain(UNUSED)) {
                bail!(hinted(
                    format!("it has an unknown key `{}`", escape::value(key)),
                    format!("did you mean `{meant}`?")
                ));
            }
            others.push(format!("`{}`", escape::value(key)));
        }
        if !others.is_empty() {
            self.notes.push(format!(
                "left out, because it has no meaning here: {}",
                others.join(", ")
            ));
        }
        Ok(())
    }

    fn method(&self) -> Result<String> {
        let methods = ["grid", "random", "bayes", "sobol"];
        let method = self.text_at("method")?.with_context(|| {
            hinted(
                "the W&B sweep file names no `method`",
                "write `method: random`, `method: bayes` or `method: grid`",
            )
        })?;
        if methods.contains(&method.as_str()) {
            return Ok(method);
        }
        let hint = match nearest(&method, methods.into_iter()) {
            Some(meant) => format!("write `method: {meant}`"),
            None => "`random` and `bayes` draw here; `custom` needs a program of W&B's".to_owned(),
        };
        bail!(hinted(
            format!(
                "`method` must be grid, random or bayes, got `{}`",
                escape::value(&method)
            ),
            hint
        ))
    }

    fn metrics(&mut self, method: &str) -> Result<Value> {
        let written = self.keys.get("metric").cloned();
        let Some(Value::Array(all)) = written else {
            return self.metric(method, written.as_ref());
        };
        let read = all.iter().map(|one| self.metric(method, Some(one)));
        Ok(Value::Array(read.collect::<Result<_>>()?))
    }

    fn metric(&mut self, method: &str, written: Option<&Value>) -> Result<Value> {
        let metric = match written {
            None | Some(Value::Null) => {
                ensure!(
                    method != "bayes",
                    hinted(
                        "`method: bayes` needs a metric to improve",
                        "add `metric: {name: NAME, goal: minimize}`"
                    )
                );
                return Ok(json!({"name": "reported", "goal": "minimize"}));
            }
            Some(metric) => metric.clone(),
        };
        let name = metric.get("name").and_then(Value::as_str);
        let name = name.filter(|name| !name.is_empty() && escape::value(name) == *name);
        let name = name.with_context(|| {
            hinted(
                "`metric` needs the name of a value that the program reports",
                "write `metric: {name: NAME, goal: minimize}`",
            )
        })?;

        // A failed trial counts as the worst, and a running one has no value.
        for (key, meaning) in [("impute", "worst"), ("impute_while_running", "false")] {
            if metric
                .get(key)
                .is_some_and(|it| *it != meaning && *it != false)
            {
                let note = format!("`metric.{key}` has no effect here; it is `{meaning}`");
                self.notes.push(note);
            }
        }
        let target = metric.get("target").filter(|target| !target.is_null());
        ensure!(
            target.is_none_or(Value::is_number),
            hinted(
                "`metric.target` must be a number",
                "write the value at which the sweep is over, as `target: 0.1`"
            )
        );
        let goal = metric.get("goal").filter(|goal| !goal.is_null());
        let goal = goal.cloned().unwrap_or(json!("minimize"));
        if !["minimize", "maximize"].iter().any(|known| goal == *known) {
            let goal = goal.as_str().unwrap_or_default();
            let meant = match goal.to_lowercase().starts_with("max") {
                true => "maximize",
                false => "minimize",
            };
            bail!(hinted(
                format!(
                    "`metric.goal` must be `minimize` or `maximize`, got `{}`",
                    escape::value(goal)
                ),
                format!("write `metric: {{name: {name}, goal: {meant}}}`")
            ));
        }
        Ok(json!({"name": "reported", "reported": name, "goal": goal, "target": target}))
    }

    fn command(&mut self, path: &Path) -> Result<Value> {
        let program = self.text_at("program")?;
        let words = match self.keys.get("command") {
            Some(Value::Array(words)) if !words.is_empty() => {
                words.iter().map(command_word).collect::<Result<_>>()?
            }
            None | Some(Value::Null | Value::Array(_)) => {
                DEFAULT_COMMAND.map(str::to_owned).to_vec()
            }
            Some(_) => bail!(hinted(
                "`command` must be a list of words",
                "write `command: [\"${env}\", \"${interpreter}\", \"${program}\", \"${args}\"]`"
            )),
        };
        let has_program = words.iter().any(|word| word == "${program}");
        ensure!(
            program.is_some() || !has_program,
            hinted(
                "the command runs `${program}`, but the W&B sweep file names no program",
                "add `program: train.py`"
            )
        );

        let directory = program_directory(path, program.as_deref())?;
        let Some(Value::Object(parameters)) = self.keys.get("parameters").cloned() else {
            bail!(hinted(
                "the W&B sweep file has no parameters to search",
                "write `parameters: {learning_rate: {min: 0.001, max: 0.1}}`"
            ));
        };
        let parameters = self.parameters("", parameters)?;
        Ok(json!({
            "directory": directory, "program": program, "words": words, "parameters": parameters,
        }))
    }

    /// Converts `parameters`, whose names continue the name `above`.
    fn parameters(
        &mut self,
        above: &str,
        parameters: Map<String, Value>,
    ) -> Result<Map<String, Value>> {
        let mut read = Map::new();
        for (name, parameter) in parameters {
            let full = format!("{above}{name}");
            let Value::Object(mut parameter) = parameter else {
                let instead = match &parameter {
                    Value::Array(_) => format!("{{values: {parameter}}}"),
                    _ => format!("{{value: {parameter}}}"),
                };
                bail!(hinted(
                    format!(
                        "`parameters.{}` is not a search space",
                        escape::value(&full)
                    ),
                    format!(
                        "write `{}: {}`",
                        escape::value(&name),
                        escape::value(&instead)
                    )
                ));
            };
            if let Some(Value::Object(nested)) = parameter.get("parameters").cloned() {
                let nested = self.parameters(&format!("{full}."), nested)?;
                parameter.insert("parameters".to_owned(), nested.into());
            } else {
                self.replace_exponents(&full, &mut parameter)?;
                self.drop_large_quantum(&full, &mut parameter);
                check_parameter(&full, &parameter)?;
            }
            read.insert(name, parameter.into());
        }
        Ok(read)
    }

    /// Converts the plain scalars in `keys` that are texts in YAML 1.2, but not for W&B's reader of
    /// YAML 1.1.
    fn scalars(&self, keys: Map<String, Value>) -> Map<String, Value> {
        let converted = keys
            .into_iter()
            .map(|(key, value)| (key, self.scalar(value)));
        converted.collect()
    }

    fn scalar(&self, value: Value) -> Value {
        match value {
            Value::Object(keys) => self.scalars(keys).into(),
            Value::Array(values) => values.into_iter().map(|one| self.scalar(one)).collect(),
            Value::String(text) if !self.is_quoted(&text) => plain_scalar(text),
            other => other,
        }
    }

    /// The value at `key`, in which numbers without a fraction are whole; `None` if it is missing or
    /// null.
    fn whole_numbers_at(&self, key: &str) -> Option<Value> {
        let whole = |value: &Value| match value.as_f64() {
            Some(number) if number.fract() == 0.0 && number.abs() < 1e15 => json!(number as i64),
            _ => value.clone(),
        };
        match self.keys.get(key)? {
            Value::Null => None,
            Value::Object(keys) => {
                let keys = keys.iter().map(|(key, value)| (key.clone(), whole(value)));
                Some(Value::Object(keys.collect()))
            }
            value => Some(whole(value)),
        }
    }

    /// Returns true if `word` stands in quotes somewhere in the file.
    fn is_quoted(&self, word: &str) -> bool {
        ['"', '\'']
            .iter()
            .any(|quote| self.text.contains(&format!("{quote}{word}{quote}")))
    }

    /// Replaces a distribution whose bounds are exponents with the same one with values as bounds.
    ///
    /// # Errors
    /// Fails if the values would be too large to be numbers.
    fn replace_exponents(&mut self, name: &str, parameter: &mut Map<String, Value>) -> Result<()> {
        let distribution = parameter.get("distribution").and_then(Value::as_str);
        let Some(distribution) = distribution.map(str::to_owned) else {
            return Ok(());
        };
        let is_inverse = distribution == "inv_log_uniform";
        if !is_inverse && !["log_uniform", "q_log_uniform"].contains(&&*distribution) {
            return Ok(());
        }
        let bound = |key: &str| parameter.get(key).and_then(Value::as_f64);
        let (Some(min), Some(max)) = (bound("min"), bound("max")) else {
            return Ok(());
        };
        let (min, max) = if is_inverse { (-max, -min) } else { (min, max) };
        let (low, high) = (min.exp(), max.exp());
        let meant = format!("if they are values, write `distribution: {distribution}_values`");
        ensure!(
            high.is_finite(),
            hinted(
                format!(
                    "`parameters.{}`: the bounds of `{distribution}` are exponents of e, and e to the {max} is too large",
                    escape::value(name)
                ),
                meant
            )
        );
        parameter.insert(
            "distribution".to_owned(),
            json!(format!("{distribution}_values")),
        );
        parameter.insert("min".to_owned(), json!(low));
        parameter.insert("max".to_owned(), json!(high));
        self.notes.push(format!(
            "`{}` is drawn from {low:.3e} to {high:.3e}: the bounds of `{distribution}` are exponents of e, as for W&B; {meant}",
            escape::value(name)
        ));
        Ok(())
    }

    /// Drops the rounding of a distribution whose bounds are closer than `q`, or have no multiple of it
    /// between them. W&B draws the multiples next to them then, mostly 0.
    fn drop_large_quantum(&mut self, name: &str, parameter: &mut Map<String, Value>) {
        let distribution = parameter.get("distribution").and_then(Value::as_str);
        let Some(unrounded) = distribution.and_then(|name| name.strip_prefix("q_")) else {
            return;
        };
        let unrounded = unrounded.to_owned();
        let number = |key: &str| parameter.get(key).and_then(Value::as_f64);
        let q = number("q").unwrap_or(1.0);
        let (Some(min), Some(max)) = (number("min"), number("max")) else {
            return;
        };
        if q <= 0.0 || q <= max - min && (max / q).floor() * q >= min {
            return;
        }
        parameter.insert("distribution".to_owned(), json!(unrounded));
        parameter.remove("q");
        self.notes.push(format!(
            "`{}` is not rounded: `q` is {q}, which is too large for a range from {min} to {max}",
            escape::value(name)
        ));
    }

    /// Notes numbers that W&B's reader of YAML takes for texts.
    fn note_exponents(&mut self) {
        let is_end = |c: char| c.is_whitespace() || ",[]{}\"'".contains(c);
        let uncommented = self.text.lines().filter_map(|line| line.split(" #").next());
        let found: BTreeSet<&str> = uncommented
            .flat_map(|line| line.split(is_end))
            .filter(|word| is_text_for_wandb(word))
            .collect();
        if found.is_empty() {
            return;
        }
        let examples: Vec<String> = found
            .iter()
            .take(MAX_EXAMPLES)
            .map(|word| format!("`{word}`"))
            .collect();
        self.notes.push(format!(
            "{} {} read as a number; W&B reads a text, because YAML 1.1 wants a point and a sign, as in `1.0e-3`",
            examples.join(", "),
            if examples.len() == 1 { "is" } else { "are each" }
        ));
    }

    fn text_at(&self, key: &str) -> Result<Option<String>> {
        match self.keys.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(_) => bail!("`{key}` must be a text"),
        }
    }
}

/// Rejects the search space `parameter` of the parameter `name` if it is not one of W&B's.
fn check_parameter(name: &str, parameter: &Map<String, Value>) -> Result<()> {
    let Err(error) = CommandParameter::try_from(parameter.clone()) else {
        return Ok(());
    };
    let name = escape::value(name);
    let known = ["value", "values", "distribution", "min", "max"];
    let is_nested = !known.iter().any(|key| parameter.contains_key(*key))
        && parameter.values().any(Value::is_object);
    let hint = if is_nested {
        "nested parameters are in a map of their own: `{parameters: {...}}`"
    } else if parameter.contains_key("step") {
        "for steps, write `distribution: q_uniform` and `q` in place of `step`"
    } else {
        "write `value: 1`, `values: [1, 2]`, `min` and `max`, or a `distribution` with its keys"
    };
    bail!(hinted(
        format!("`parameters.{name}`: {}", escape::value(&error)),
        hint
    ))
}

/// A plain scalar as YAML 1.1 reads it: some words are truth values, numbers may have underscores, and
/// whole numbers that begin with 0 are octal.
fn plain_scalar(text: String) -> Value {
    match text.as_str() {
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" => return true.into(),
        "no" | "No" | "NO" | "off" | "Off" | "OFF" => return false.into(),
        _ => {}
    }
    let is_octal = text.len() > 1 && text.starts_with('0');
    if is_octal && let Ok(number) = u64::from_str_radix(&text, 8) {
        return number.into();
    }
    let has_digits = text.starts_with(|first: char| first.is_ascii_digit());
    let real = text.replace('_', "").parse::<f64>();
    match real {
        Ok(real) if has_digits && text.contains('_') && text.contains('.') => real.into(),
        _ => text.into(),
    }
}

/// Estimates the number of points of a grid over `parameters`, from listed values and whole numbers.
fn grid_points(parameters: &Value) -> f64 {
    let parameters = parameters.as_object().into_iter().flat_map(Map::values);
    let points = parameters.map(|parameter| {
        let bound = |key: &str| parameter.get(key).and_then(Value::as_f64);
        match (
            parameter.get("values").and_then(Value::as_array),
            bound("min"),
            bound("max"),
        ) {
            (Some(values), ..) => values.len() as f64,
            (None, Some(min), Some(max)) => (max - min) / bound("q").unwrap_or(1.0) + 1.0,
            _ => grid_points(parameter.get("parameters").unwrap_or(&Value::Null)),
        }
    });
    points.product()
}

/// A word of the command as a text. W&B also takes numbers and truth values, in Python's words.
fn command_word(word: &Value) -> Result<String> {
    Ok(match word {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Null => "None".to_owned(),
        Value::Array(_) | Value::Object(_) => bail!(hinted(
            "`command` has a list or a map where a word is expected",
            "write each word as its own element"
        )),
    })
}

/// The directory that the program runs in: the directory of the sweep file, or the current one if
/// only that has the program.
fn program_directory(path: &Path, program: Option<&str>) -> Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    let of_file = absolute.parent().unwrap_or(Path::new("/")).to_owned();
    let current = std::env::current_dir()?;
    let is_there = |directory: &Path| program.is_some_and(|it| directory.join(it).is_file());
    if !is_there(&of_file) && is_there(&current) {
        return Ok(current);
    }
    Ok(of_file)
}

/// Returns true if `word` is a number with an exponent that YAML 1.1 does not accept as one: it
/// has no point, or its exponent has no sign.
fn is_text_for_wandb(word: &str) -> bool {
    let Some((mantissa, exponent)) = word.split_once(['e', 'E']) else {
        return false;
    };
    let mantissa = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
    let is_number = mantissa.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && word.parse::<f64>().is_ok();
    is_number && !(mantissa.contains('.') && exponent.starts_with(['-', '+']))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<WandbFile> {
        read_wandb_file(text, Path::new("sweep.yaml"))
    }

    /// The values of the parameter `a` in a file with the search space `written`.
    fn parameter(written: &str) -> Value {
        let text = format!("{{program: p.py, method: grid, parameters: {{a: {written}}}}}");
        let layer = json!(read(&text).expect("read").layer);
        layer["command"]["parameters"]["a"].clone()
    }

    #[test]
    fn scalars_are_those_of_yaml_1_1() {
        let found = parameter(
            "{values: [yes, Off, 'no', \"on\", 400_000, 1e-4, '1_0', True, None, ~, y, 010, 08, 1_000.5, '07']}",
        );
        let wanted = json!([
            true, false, "no", "on", 400_000, 1e-4, "1_0", true, "None", null, "y", 8, "08",
            1000.5, "07"
        ]);
        assert_eq!(found["values"], wanted);

        let text = "{program: p.py, method: random, metric: {name: loss}, parameters: {a: {value: 1}}, run_cap: 3.0, early_terminate: {type: hyperband, min_iter: 2.0, eta: 2.5, strict: yes}}";
        let sweep = json!(read(text).expect("read").layer)["wandb"]["sweep"].clone();
        let wanted = json!({"type": "hyperband", "min_iter": 2, "eta": 2.5, "strict": true});
        assert_eq!(
            (&sweep["run_cap"], &sweep["early_terminate"]),
            (&json!(3), &wanted)
        );
    }

    #[test]
    fn last_value_of_a_repeated_key_counts() {
        let text = "program: p.py\nmethod: grid\nparameters:\n  a: {values: [1, 2]}\n  b: &b {value: 0, value: 1}\n  c: {<<: *b, value: 2}\n  a: {values: [3]}\n";
        let file = read(text).expect("read");
        let parameters = &json!(file.layer)["command"]["parameters"];
        let wanted = json!({"a": {"values": [3]}, "b": {"value": 1}, "c": {"value": 2}});
        assert_eq!(parameters, &wanted);
        assert_eq!(
            file.notes,
            [
                "line 5, column 20: the key `value` occurs twice; the last value of such a key counts, as for W&B"
            ]
        );
    }

    #[test]
    fn invalid_search_spaces_are_rejected_with_a_hint() {
        let refusal = |keys: &str| {
            let text = format!("program: p.py\n{keys}");
            poolcast_base::error::render(&read(&text).err().expect("must be rejected"))
        };
        for (keys, hint) in [
            ("parameters: {}", "write `method: random`"),
            ("method: Bayes", "write `method: bayes`"),
            ("method: custom", "`random` and `bayes` draw here"),
            (
                "method: grid\nparameters: {opt: {lr: {value: 1}}}",
                "`{parameters: {...}}`",
            ),
            (
                "method: grid\nparameters: {a: {min: 0, max: 9, step: 3}}",
                "`distribution: q_uniform`",
            ),
            (
                "method: grid\nparameters: {a: {distribution: log_uniform, min: 1, max: 1000}}",
                "`distribution: log_uniform_values`",
            ),
        ] {
            let text = refusal(keys);
            assert!(text.contains(hint), "{text}");
        }
    }

    #[test]
    fn bounds_that_are_exponents_become_values() {
        let found = parameter("{distribution: inv_log_uniform, min: 0, max: 1}");
        let wanted =
            json!({"distribution": "inv_log_uniform_values", "min": (-1f64).exp(), "max": 1.0});
        assert_eq!(found, wanted);
    }

    #[test]
    fn texts_of_yaml_1_1_are_known() {
        for text in ["1e-4", "1E5", "-3e2", "1.5e3", ".5e3"] {
            assert!(is_text_for_wandb(text), "{text}");
        }
        for number in ["1.0e-4", "1.5E+3", "0.1", "3", "e5", "text-1e5", "1e", "x"] {
            assert!(!is_text_for_wandb(number), "{number}");
        }
    }

    #[test]
    fn large_grids_are_cut() {
        let values = (0..400)
            .map(|value| value.to_string())
            .collect::<Vec<_>>()
            .join(",");
        let parameters = format!(
            "{{a: {{values: [{values}]}}, b: {{parameters: {{c: {{min: 1, max: 400}}}}}}}}"
        );
        let text = format!("{{program: p.py, method: grid, parameters: {parameters}}}");
        let file = read(&text).expect("read");
        assert_eq!(json!(file.layer)["wandb"]["sweep"]["run_cap"], 100_000);
        assert!(
            file.notes[0].contains("the first 100000 points"),
            "{:?}",
            file.notes
        );
    }

    proptest! {
        /// Any value of any key is read or rejected.
        #[test]
        fn nothing_panics(key in prop::sample::select(&USED[..]), value in "[-a-z0-9{}\\[\\]:, '\"$_.e]{0,40}") {
            let keys: Vec<String> = ["program: p", "method: grid", "parameters: {a: {value: 1}}"]
                .into_iter()
                .filter(|line| !line.starts_with(key))
                .map(str::to_owned)
                .chain([format!("{key}: {value}")])
                .collect();
            let _ = read(&keys.join("\n"));
        }
    }
}
