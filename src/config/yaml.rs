//! Reads and writes YAML. Input may be untrusted, so its size, depth and aliases are bounded, and
//! duplicate keys are rejected.

use anyhow::{Result, anyhow, ensure};
use figment::value::Value;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Budget, Error, MessageFormatter as _, UserMessageFormatter};

use poolcast_base::error::hinted;
use poolcast_base::escape;

/// Maximum size of a YAML document, in bytes.
pub const MAX_BYTES: u64 = 4 << 20;

/// Maximum depth of nested collections.
const MAX_YAML_DEPTH: usize = 32;

/// Maximum number of collections and scalars, including those that aliases repeat.
const MAX_NODES: usize = 150_000;

/// Reads one document; an empty document is null.
///
/// # Errors
/// The error gives the line and column if the text is not YAML, and names a duplicate key.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T> {
    // With a plain value in between, a YAML reader is compiled only once.
    Ok(read_value(text, DuplicateKeyPolicy::Error)?.deserialize()?)
}

/// Like [`read`], but the last value of a duplicate key counts, as for most YAML readers.
///
/// # Errors
/// Fails like [`read`].
pub fn read_last<T: DeserializeOwned>(text: &str) -> Result<T> {
    Ok(read_value(text, DuplicateKeyPolicy::LastWins)?.deserialize()?)
}

/// Reads a field of another document like a YAML document, by way of a plain value, so that no more
/// readers of `T` are compiled: `#[serde(deserialize_with = "yaml::read_field")]`.
///
/// # Errors
/// Fails if the field is no `T`.
pub fn read_field<'de, D: Deserializer<'de>, T: DeserializeOwned>(field: D) -> Result<T, D::Error> {
    let value: Value = Deserialize::deserialize(field)?;
    value.deserialize().map_err(D::Error::custom)
}

fn read_value(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Value> {
    ensure!(
        text.len() as u64 <= MAX_BYTES,
        "it is larger than {MAX_BYTES} bytes"
    );
    let mut budget = Budget::default();
    (budget.max_depth, budget.max_nodes) = (MAX_YAML_DEPTH, MAX_NODES);
    (budget.max_aliases, budget.max_anchors) = (1000, 1000);
    let options = serde_saphyr::options! {
        budget: Some(budget),
        duplicate_keys: duplicate_keys,
        with_snippet: false,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
    };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| explain_error(error.without_snippet()))
}

fn explain_error(error: &Error) -> anyhow::Error {
    let place = error.location().map_or(String::new(), |at| {
        format!("line {}, column {}: ", at.line(), at.column())
    });
    match error {
        Error::DuplicateMappingKey { key, .. } => {
            let key = key
                .as_ref()
                .map_or("a key".to_owned(), |key| format!("the key `{key}`"));
            hinted(
                format!("{place}{key} occurs twice"),
                "remove one of the two",
            )
            .into()
        }
        Error::Budget { .. } => anyhow!("{place}it is too deep or too large"),
        _ => match UserMessageFormatter.format_message(error) {
            text if text.contains("recursion limit") => {
                anyhow!("{place}it is too deep or too large")
            }
            text => hinted(
                format!("{place}{text}"),
                "indent with blanks, and quote a text with special characters, such as `'a: b'`",
            )
            .into(),
        },
    }
}

/// Writes one document that [`read`] can read.
pub fn write(value: &impl Serialize) -> Result<String> {
    // A call through a pointer, so that only this crate compiles a YAML writer.
    write_dynamic(value)
}

fn write_dynamic(value: &dyn erased_serde::Serialize) -> Result<String> {
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = serde_saphyr::to_string_with_options(&value, options)?;
    if !text.contains(|c| escape::is_hidden(c) && c != '\n') {
        return Ok(text);
    }
    // YAML writers leave some hidden characters unescaped. JSON escapes them, and JSON is valid
    // YAML.
    Ok(escape::json(&serde_json::to_string_pretty(&value)?).into_owned() + "\n")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refusal(text: &str) -> String {
        poolcast_base::error::render(&read::<Value>(text).expect_err("must be refused"))
    }

    #[test]
    fn scalars_follow_yaml_1_2_except_for_underscores() {
        let text = "{a: True, b: None, c: 1.0e-3, d: ~, e: 010, f: yes, g: 1_000, h: 'x', i: , j: -3, k: 2026-01-01, l: on}";
        let read: Value = read(text).expect("read");
        let wanted = json!({"a": true, "b": "None", "c": 0.001, "d": null, "e": "010", "f": "yes", "g": 1000, "h": "x",
            "i": null, "j": -3, "k": "2026-01-01", "l": "on"});
        assert_eq!(read, wanted);
    }

    #[test]
    fn duplicate_keys_are_rejected() {
        let refused = refusal("a: 1\nb:\n  c: 2\n  'c': 3\n");
        assert_eq!(
            refused,
            "error: line 4, column 3: the key `c` occurs twice\n\nhint: remove one of the two\n"
        );
        assert!(refusal("{a: 1, a: 1}").contains("the key `a`"));
    }

    #[test]
    fn yaml_bombs_are_rejected() {
        let bomb = (1..30).fold("a0: &a0 [x, x]\n".to_owned(), |text, n| {
            format!("{text}a{n}: &a{n} [*a{0}, *a{0}, *a{0}]\n", n - 1)
        });
        for text in ["[", "{", "- ", "? ", "[{", "a: {", "&a [", "!t ["]
            .map(|part| part.repeat(100_000 / part.len()))
        {
            refusal(&text);
        }
        for text in [
            bomb,
            format!("a: {}", "x".repeat(5 << 20)),
            format!("[{}]", "1,".repeat(200_000)),
        ] {
            assert!(refusal(&text).contains("large"), "{:.80}", text);
        }
        assert!(
            !refusal("a: [1\nb: \"secret").contains("secret"),
            "values are not repeated"
        );
    }

    #[test]
    fn written_yaml_round_trips_without_hidden_characters() {
        let long = "cohort in ['USA', 'China'] and age >= 18 and not antibiotics ".repeat(5);
        let value = json!({"a": null, "b": 0.003, "c": [1, {"d": "true"}], "e": {}, "f": "x: y\nz", "long": long, "g": 1e-7});
        assert_eq!(
            read::<Value>(&write(&value).expect("written")).expect("read"),
            value
        );
        let hostile = json!({"a": "\u{1b}[31m\u{202e}\u{9b}", "\u{200b}": 1});
        let text = write(&hostile).expect("written");
        assert!(
            !text.contains(|c| escape::is_hidden(c) && c != '\n'),
            "{text}"
        );
        assert_eq!(read::<Value>(&text).expect("read"), hostile);
    }
}
