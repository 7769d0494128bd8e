//! Reads one line of a program's report: JSON as Python writes it.

use serde_json::{Map, Value};

/// Reads a line of a report; `None` if it is not a JSON object.
pub(super) fn parse_line(line: &[u8]) -> Option<Map<String, Value>> {
    let line = line.trim_ascii();
    if line.first() != Some(&b'{') {
        return None;
    }
    match parse_value(std::str::from_utf8(line).ok()?)? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// Reads a value; `None` if it is not JSON. Python writes `NaN` and `Infinity`, which become null.
pub(super) fn parse_value(text: &str) -> Option<Value> {
    let parsed = serde_json::from_str(text);
    parsed
        .or_else(|_| serde_json::from_str(&without_infinities(text)))
        .ok()
}

/// Replaces `NaN`, `Infinity` and `-Infinity` outside of strings with null.
fn without_infinities(text: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    let mut is_string = false;
    while let Some(c) = rest.chars().next() {
        let token = ["NaN", "-Infinity", "Infinity"]
            .into_iter()
            .find(|token| rest.starts_with(token));
        if let Some(token) = token.filter(|_| !is_string) {
            replaced.push_str("null");
            rest = &rest[token.len()..];
            continue;
        }
        let mut length = c.len_utf8();
        if is_string && c == '\\' {
            length += rest[length..].chars().next().map_or(0, char::len_utf8);
        } else if c == '"' {
            is_string = !is_string;
        }
        replaced.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    replaced
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn infinite_values_become_null() {
        let line = r#"{"loss": NaN, "note": "NaN \" Infinity", "a": -Infinity, "b": 1}"#;
        let object = parse_line(line.as_bytes()).expect("an object");
        let wanted = json!({"loss": null, "note": "NaN \" Infinity", "a": null, "b": 1});
        assert_eq!(Value::Object(object), wanted);
        for other in ["NaN", "[1]", "{1}", "loss: 3", ""] {
            assert!(parse_line(other.as_bytes()).is_none(), "{other}");
        }
    }
}
