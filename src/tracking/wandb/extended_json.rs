//! Formats numbers as W&B's SDK does: JSON, with extra tokens for NaN and infinities.

/// Formats `value` like the SDK: bare `NaN`, `Infinity` and `-Infinity` for values that JSON lacks,
/// else the fewest digits that parse to the same number.
pub(crate) fn number_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}Infinity");
    }
    serde_json::Value::from(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_and_infinities_are_tokens() {
        let expected = [
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (0.1, "0.1"),
            (-0.0, "-0.0"),
            (1e300, "1e+300"),
        ];
        for (value, text) in expected {
            assert_eq!(number_text(value), text);
        }
    }
}
