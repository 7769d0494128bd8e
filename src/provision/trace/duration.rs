//! Parser of Slurm durations and time limits.

/// Parses a duration in a format of `sbatch --time`, and returns seconds. The formats are
/// `minutes`, `minutes:seconds`, `hours:minutes:seconds`, `days-hours`, `days-hours:minutes` and
/// `days-hours:minutes:seconds`.
pub(super) fn parse_duration_s(text: &str) -> Option<i64> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (Some(number(days)?), rest),
        None => (None, text),
    };
    let mut parts = [0i64; 3];
    let mut count = 0;
    for part in rest.split(':') {
        *parts.get_mut(count)? = number(part)?;
        count += 1;
    }

    let [a, b, c] = parts;
    let (hours, minutes, seconds) = match (days, count) {
        (Some(_), _) | (None, 3) => (a, b, c),
        (None, 2) => (0, a, b),
        (None, _) => (0, a, 0),
    };
    let days_s = days.unwrap_or(0).checked_mul(86_400)?;
    days_s.checked_add(hours * 3600 + minutes * 60 + seconds)
}

/// Parses digits into a number that is small enough for the sums above not to overflow.
fn number(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|n| is_number && *n <= 1 << 40)
}

/// A time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLimit {
    /// The limit in seconds.
    Seconds(i64),
    /// The job has no limit of its own: `UNLIMITED`, `Partition_Limit`, which a table cuts,
    /// `INFINITE`, or an unknown limit.
    None,
}

/// Parses the columns `Timelimit` and `TimelimitRaw` of `sacct`.
pub fn parse_time_limit(text: &str) -> Option<TimeLimit> {
    match text {
        "UNLIMITED" | "INFINITE" | "INVALID" | "NOT_SET" | "N/A" | "" => Some(TimeLimit::None),
        _ if text.starts_with("Partition") => Some(TimeLimit::None),
        _ => Some(TimeLimit::Seconds(parse_duration_s(text)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_slurm_durations_are_parsed() {
        for (text, seconds) in [
            ("90", Some(5400)),
            ("1:30", Some(90)),
            ("02:00:05", Some(7205)),
            ("2-00:00:00", Some(172_800)),
            ("1-12", Some(129_600)),
            ("1-00:01", Some(86_460)),
            ("", None),
            ("-5", None),
            ("1:2:3:4", None),
            ("1-", None),
            ("+5", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(parse_duration_s(text), seconds, "{text}");
        }
        assert_eq!(parse_time_limit("UNLIMITED"), Some(TimeLimit::None));
        assert_eq!(parse_time_limit("Partition_Limit"), Some(TimeLimit::None));
        assert_eq!(parse_time_limit("10"), Some(TimeLimit::Seconds(600)));
        assert_eq!(parse_time_limit("soon"), None);
    }
}
