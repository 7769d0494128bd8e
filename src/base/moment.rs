//! Parses a date or a time into epoch milliseconds.

/// A day, in ms.
pub const DAY_MS: i64 = 86_400_000;

/// Parses a time in ISO 8601, or a date, into epoch milliseconds. Without a time zone, it is UTC.
pub fn parse_time_ms(text: &str) -> Option<i64> {
    let moment = match text.parse::<jiff::Timestamp>() {
        Ok(moment) => moment,
        Err(_) => {
            let civil: jiff::civil::DateTime = text.parse().ok()?;
            civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp()
        }
    };
    Some(moment.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_without_a_zone_are_utc() {
        let expected = [
            ("1970-01-01T00:00:01.5Z", Some(1_500)),
            ("1970-01-01T01:00:00+01:00", Some(0)),
            ("1970-01-01 00:01:00", Some(60_000)),
            ("1970-01-02", Some(86_400_000)),
            ("yesterday", None),
            ("", None),
        ];
        for (text, moment_ms) in expected {
            assert_eq!(parse_time_ms(text), moment_ms, "{text}");
        }
    }
}
