//! Parses JSON that a server has sent. The depth of a document and its number of values are bounded,
//! because a small text may take a hundred times its size in memory.

use serde_json::Value;

/// Maximum number of values in a document.
const MAX_VALUES: usize = 200_000;

/// Parses `text`. Returns `None` if it is not JSON, is nested too deeply or has too many values.
pub(crate) fn parse_answer(text: &[u8]) -> Option<Value> {
    if value_count(text) > MAX_VALUES {
        return None;
    }
    serde_json::from_slice(text).ok()
}

/// Returns an upper bound of the number of values in `text`: each but the first one follows a comma
/// or a bracket outside of strings.
fn value_count(text: &[u8]) -> usize {
    let (mut count, mut is_in_string, mut is_escaped) = (1, false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_in_string => is_escaped = true,
            b'"' => is_in_string = !is_in_string,
            b',' | b'[' | b'{' if !is_in_string => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_with_too_many_or_too_deep_values_are_rejected() {
        let commas = ",".repeat(MAX_VALUES);
        let text = format!("{{\"a\\\"{commas}\": [1, {{}}, \"{commas}\"]}}");
        let parsed = parse_answer(text.as_bytes()).expect("commas in strings do not count");
        assert_eq!(parsed.as_object().map(serde_json::Map::len), Some(1));
        assert_eq!(value_count(b"{\"a\": [1, {}, \"[,\\\"{\"], \"b\": 2}"), 7);

        for item in ["[],", "{},", "1,"] {
            let many = format!("[{}1]", item.repeat(MAX_VALUES));
            assert!(parse_answer(many.as_bytes()).is_none(), "{item}");
            let some = format!("[{}1]", item.repeat(1000));
            assert!(parse_answer(some.as_bytes()).is_some(), "{item}");
        }
        let deep = "[".repeat(1000) + &"]".repeat(1000);
        assert!(parse_answer(deep.as_bytes()).is_none());
        assert!(parse_answer(b"<html>").is_none());
    }
}
