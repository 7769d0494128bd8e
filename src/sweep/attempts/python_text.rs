//! Values as Python writes them: W&B's agent formats the arguments of a program in Python.

use serde_json::{Map, Number, Value};

/// Formats `value` like Python's `str`, which is the form of a value in an argument.
pub(super) fn python_str(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        _ => python_repr(value),
    }
}

/// Formats `value` like Python's `repr`: the form of values in a list or a dictionary.
fn python_repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => python_number(number),
        Value::String(text) => quoted_text(text),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(python_repr).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(values) => {
            let mut pairs = Vec::new();
            for (key, value) in values {
                pairs.push(format!("{}: {}", quoted_text(key), python_repr(value)));
            }
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

fn python_number(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(real) => python_float(real),
        None => number.to_string(),
    }
}

/// Formats `real` like Python: the shortest digits that round to it, with an exponent of two digits
/// or more below 1e-4 and from 1e16 on.
fn python_float(real: f64) -> String {
    let scientific = format!("{real:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        return format!("{real:?}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// Quotes `text` like Python: in single quotes, or in double quotes if it has only single ones.
fn quoted_text(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut quoted = String::from(quote);
    for c in text.chars() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\\' => quoted.push_str("\\\\"),
            c if c == quote => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push(quote);
    quoted
}

/// Formats `values` like Python's `json.dumps`.
pub(super) fn python_json(values: &Map<String, Value>) -> String {
    object_text(values, &python_number)
}

/// Formats `values` as JSON that a reader of YAML 1.1 also understands: it takes `1e-05` for a text.
pub(super) fn yaml_json(values: &Map<String, Value>) -> String {
    object_text(values, &|number| {
        let text = python_number(number);
        match text.split_once('e') {
            Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0e{exponent}"),
            _ => text,
        }
    })
}

fn object_text(values: &Map<String, Value>, number: &dyn Fn(&Number) -> String) -> String {
    let mut pairs = Vec::new();
    for (key, value) in values {
        pairs.push(format!(
            "{}: {}",
            json_string(key),
            json_text(value, number)
        ));
    }
    format!("{{{}}}", pairs.join(", "))
}

fn json_text(value: &Value, number: &dyn Fn(&Number) -> String) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(of_value) => number(of_value),
        Value::String(text) => json_string(text),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(|one| json_text(one, number)).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(values) => object_text(values, number),
    }
}

/// A JSON string of ASCII characters alone.
fn json_string(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            ' '..='~' => quoted.push(c),
            c => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    quoted.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn small_numbers_are_numbers_in_yaml_1_1() {
        let values = json!({"a": 1e-5, "b": 2.5e-7, "c": 1e16, "d": 3, "e": 0.5, "f": [1e-9]});
        let text = yaml_json(values.as_object().expect("an object"));
        assert_eq!(
            text,
            r#"{"a": 1.0e-05, "b": 2.5e-07, "c": 1.0e+16, "d": 3, "e": 0.5, "f": [1.0e-09]}"#
        );
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), values);
    }
}
