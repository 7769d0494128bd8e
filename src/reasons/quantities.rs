//! Reads limits and uses, with their units: a number is a limit or a use by the words before it.

use super::facts::Amount;
use super::scan::Scan;

/// A bare number of memory or disk from which it counts KiB, as HTCondor's own attributes do.
const MIN_BARE_KIB: f64 = 1_000_000.0;

/// The role of a number in a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Limit,
    Use,
    /// No word before it says what it is.
    Unsaid,
    /// A number of something else, such as a status or a code.
    Other,
}

/// The unit of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    Bare,
    /// MiB in one of it.
    Size(f64),
    /// Seconds in one of it.
    Time(f64),
    Percent,
}

/// A number with its unit and its role.
#[derive(Debug, Clone, Copy)]
struct Quantity {
    value: f64,
    unit: Unit,
    role: Role,
}

/// Words before a number, in lower case, by the role that they give it. The last one before it counts.
#[rustfmt::skip]
const ROLE_WORDS: &[(Role, &[&str])] = &[
    (Role::Limit, &[
        "limit", "max", "allow", "request", "than", "above", "over ", "exceed", "only", "allocated", "reserved",
        "quota", "granted", "beyond", "minimum", ">",
    ]),
    (Role::Use, &[
        "usage", "used", "uses", "using", "measured", "peak", "this file", "size", "consum", "running",
        "ran for", "rss", "took",
    ]),
    (Role::Other, &[
        "status", "code", "signal", "errno", "error", "exit", "version", "attempt", "pid ", "for the last",
    ]),
];

/// Reads the limit and the use of memory or disk that `scan` states.
pub(super) fn read_sizes(scan: &Scan<'_>) -> (Option<Amount>, Option<Amount>) {
    let sizes: Vec<Quantity> = quantities(scan)
        .into_iter()
        .filter(|one| matches!(one.unit, Unit::Size(_) | Unit::Bare))
        .collect();
    // `used 162 MB of 50` has one unit for both.
    let unit = |one: &Quantity| match one.unit {
        Unit::Size(mib) => Some(mib),
        _ => None,
    };
    let shared = sizes.iter().find_map(unit);
    let amount = |one: Quantity| {
        let bare = if one.value >= MIN_BARE_KIB {
            1.0 / 1024.0
        } else {
            1.0
        };
        let mib = unit(&one).or(shared).unwrap_or(bare);
        Amount::Mib((one.value * mib).ceil().clamp(0.0, 1e12) as u64)
    };
    let (limit, used) = limit_and_use(&sizes);
    (limit.map(amount), used.map(amount))
}

/// Reads the limit and the use of time that `scan` states.
pub(super) fn read_times(scan: &Scan<'_>) -> (Option<Amount>, Option<Amount>) {
    let times: Vec<Quantity> = quantities(scan)
        .into_iter()
        .filter(|one| matches!(one.unit, Unit::Time(_)))
        .collect();
    let amount = |one: Quantity| match one.unit {
        Unit::Time(seconds) => Amount::Seconds((one.value * seconds).clamp(0.0, 1e12) as u64),
        _ => Amount::Seconds(0),
    };
    let (limit, used) = limit_and_use(&times);
    (limit.map(amount), used.map(amount))
}

/// Returns the limit and the use. A number with a unit whose role is unsaid takes the role that no other number has.
fn limit_and_use(all: &[Quantity]) -> (Option<Quantity>, Option<Quantity>) {
    let first = |role: Role| all.iter().find(|one| one.role == role).copied();
    let unsaid = all
        .iter()
        .find(|one| one.role == Role::Unsaid && one.unit != Unit::Bare)
        .copied();
    match (first(Role::Limit), first(Role::Use)) {
        (None, used) => (unsaid, used),
        (limit, used) => (limit, used.or(unsaid)),
    }
}

/// Returns the numbers in `scan` that are no part of a name.
fn quantities(scan: &Scan<'_>) -> Vec<Quantity> {
    let text = scan.lower();
    let mut found: Vec<Quantity> = Vec::new();
    let mut at = 0;
    let mut context = 0;
    while let Some(digit) = text[at..].find(|c: char| c.is_ascii_digit()) {
        let begin = at + digit;
        let rest = &text[begin..];
        let length = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '+' | '_')))
            .unwrap_or(rest.len());
        at = begin + length;
        let is_part_of_name = text[..begin]
            .ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '/' | '@' | '.' | '-'));
        let number_length = rest
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ':' | '+')))
            .unwrap_or(rest.len());
        let number = rest[..number_length].trim_end_matches(['.', ':']);
        let Some((value, clock)) = number_value(number).filter(|_| !is_part_of_name) else {
            continue;
        };
        let unit = clock.unwrap_or_else(|| leading_unit(&rest[number_length..]));
        let before = &text[context..begin];
        // `used 162 MB of 50`, `using 9 GB / 8 GB`
        let is_share = [" of", " /"]
            .iter()
            .any(|end| before.trim_end().ends_with(end));
        let after = rest[number_length..].trim_start();
        let is_factor =
            after.starts_with('*') || after.starts_with("times ") || after.starts_with("x ");
        // `exit code (134) > 128` compares two codes.
        let is_joined = !before.contains(char::is_alphanumeric);
        let role = match found.last() {
            _ if is_factor => Role::Other,
            Some(last) if is_joined && last.role == Role::Other => Role::Other,
            Some(last) if is_share && last.role == Role::Use => Role::Limit,
            _ => role_of(before),
        };
        context = begin + number_length;
        found.push(Quantity { value, unit, role });
    }
    found
}

/// Returns the value of a number; a clock time such as `1+02:03:04` has its unit.
fn number_value(number: &str) -> Option<(f64, Option<Unit>)> {
    if !number.contains(':') {
        return number.parse().ok().map(|value| (value, None));
    }
    let (days, clock) = number.split_once('+').unwrap_or(("0", number));
    let mut seconds = days.parse::<f64>().ok()?;
    let parts: Vec<&str> = clock.split(':').collect();
    if parts.len() != 3 {
        return None;
    }
    for (part, of_whole) in parts.iter().zip([24.0, 60.0, 60.0]) {
        seconds = seconds * of_whole + part.parse::<f64>().ok()?;
    }
    Some((seconds, Some(Unit::Time(1.0))))
}

/// Units by the letters that they begin with; a unit of one letter stands alone.
const UNITS: &[(&[&str], Unit)] = &[
    (&["%", "percent"], Unit::Percent),
    (&["megabyte", "mb", "mib", "m"], Unit::Size(1.0)),
    (&["gigabyte", "gb", "gib", "g"], Unit::Size(1024.0)),
    (&["terabyte", "tb", "tib", "t"], Unit::Size(1_048_576.0)),
    (&["kilobyte", "kb", "kib", "k"], Unit::Size(1.0 / 1024.0)),
    (&["bytes", "b"], Unit::Size(1.0 / 1_048_576.0)),
    (&["hour", "hr", "h"], Unit::Time(3600.0)),
    (&["day", "d"], Unit::Time(86_400.0)),
    (&["min"], Unit::Time(60.0)),
    (&["sec", "s"], Unit::Time(1.0)),
];

/// Returns the unit that `text` begins with, after at most one sign.
fn leading_unit(text: &str) -> Unit {
    let text = text.trim_start_matches([' ', '-', ')']);
    let word = text
        .split(|c: char| !(c.is_ascii_alphabetic() || c == '%'))
        .next()
        .unwrap_or_default();
    let is_unit = |name: &&str| match name.len() {
        1 => word == *name,
        _ => word.starts_with(name),
    };
    let found = UNITS.iter().find(|(names, _)| names.iter().any(is_unit));
    found.map_or(Unit::Bare, |(_, unit)| *unit)
}

/// Returns the role that the last word in `before` gives.
fn role_of(before: &str) -> Role {
    let last = |words: &[&str]| words.iter().filter_map(|word| before.rfind(word)).max();
    let found = ROLE_WORDS
        .iter()
        .filter_map(|(role, words)| Some((last(words)?, *role)))
        .max_by_key(|(at, _)| *at);
    found.map_or(Role::Unsaid, |(_, role)| role)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_uses_have_one_unit() {
        let sizes = |text| {
            let (limit, used) = read_sizes(&Scan::new(text));
            (limit.and_then(Amount::mib), used.and_then(Amount::mib))
        };
        for (text, expected) in [
            (
                "Job has gone over cgroup memory limit of 3000 megabytes. Last measured usage: 5100 megabytes.",
                (Some(3000), Some(5100)),
            ),
            ("used 300 MB of 128", (Some(128), Some(300))),
            (
                "job in status 2 held due to memory usage 7340032.",
                (None, Some(7168)),
            ),
            ("exceeded allocated disk (1.5 GB).", (Some(1536), None)),
            ("memory usage exceeded request_memory", (None, None)),
            (
                "RSS of 6.5G is above the 4G that slot1_9@w3 allows",
                (Some(4096), Some(6656)),
            ),
            (
                "disk usage 4194304 greater than requested 2097152 (code 7)",
                (Some(2048), Some(4096)),
            ),
            ("wasting 90% of 4 GB", (Some(4096), None)),
            ("memory limit exceeded for 3 hours", (None, None)),
        ] {
            assert_eq!(sizes(text), expected, "{text}");
        }
    }

    #[test]
    fn time_limits_are_read_in_any_form() {
        let limit = |text| read_times(&Scan::new(text));
        let seconds = |s| Some(Amount::Seconds(s));
        for (text, expected) in [
            (
                "exceeded allowed job duration of 0+20:00:00",
                (seconds(72_000), None),
            ),
            (
                "runtime exceeded maximum (86400 seconds)",
                (seconds(86_400), None),
            ),
            ("Job failed to complete in 48 hrs", (seconds(172_800), None)),
            ("Maximum wallclock time exceeded", (None, None)),
            ("over the 3-hour limit", (seconds(10_800), None)),
            (
                "running 90 min, longer than 1.5h or 2024.5.6",
                (seconds(5400), seconds(5400)),
            ),
        ] {
            assert_eq!(limit(text), expected, "{text}");
        }
    }
}
