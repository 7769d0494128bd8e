//! Numbers → the JSON of W&B's SDK, which has tokens for what JSON cannot say.

/// `value` as the SDK writes it: bare `NaN`, `Infinity` and `-Infinity` where it is none of JSON's
/// numbers, and else as few digits as give the same number again.
pub(super) fn number_text(value: f64) -> String {
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
    fn what_json_lacks_has_a_token() {
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
