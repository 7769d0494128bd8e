//! Reads limits and uses, with their units.

use super::facts::Amount;
use super::scan::Scan;

/// A bare number of memory or disk from which it counts KiB, as HTCondor's own attributes do.
const MIN_BARE_KIB: f64 = 1_000_000.0;

/// Reads the limit and the use of memory or disk that `scan` states.
pub(super) fn read_sizes(scan: &Scan<'_>) -> (Option<Amount>, Option<Amount>) {
    let used = [
        "last measured usage: ",
        "peak usage: ",
        "this file=",
        "memory usage of ",
        "memory usage ",
        "disk usage ",
        "used ",
        "using ",
    ];
    let limit = [
        "memory limit of ",
        "max=",
        "allocated disk (",
        "request_disk (",
        "request_memory (",
        "limit of ",
        "limit ",
        " of ",
    ];
    let used = size_after(scan, &used);
    let limit = size_after(scan, &limit);
    // `used 162 MB of 50` has one unit for both.
    let unit = used.as_ref().and_then(|(_, unit)| *unit);
    let to_amount = |found: (f64, Option<f64>)| Amount::Mib(to_mib(found.0, found.1));
    let limit = limit.map(|(number, own)| (number, own.or(unit)));
    (limit.map(to_amount), used.map(to_amount))
}

fn to_mib(number: f64, unit_mib: Option<f64>) -> u64 {
    let bare = if number >= MIN_BARE_KIB {
        1.0 / 1024.0
    } else {
        1.0
    };
    (number * unit_mib.unwrap_or(bare)).ceil().clamp(0.0, 1e12) as u64
}

/// Returns the number after the first of `words` that a number follows, and its unit in MiB.
fn size_after(scan: &Scan<'_>, words: &[&str]) -> Option<(f64, Option<f64>)> {
    words
        .iter()
        .find_map(|word| leading_size(scan.after(word)?))
}

fn leading_size(text: &str) -> Option<(f64, Option<f64>)> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let number = text.get(..end)?.trim_end_matches('.').parse().ok()?;
    let unit = text[end..].trim_start().to_ascii_lowercase();
    let units = [
        ("megabyte", 1.0),
        ("mb", 1.0),
        ("mib", 1.0),
        ("gigabyte", 1024.0),
        ("gb", 1024.0),
        ("gib", 1024.0),
        ("kilobyte", 1.0 / 1024.0),
        ("kb", 1.0 / 1024.0),
        ("kib", 1.0 / 1024.0),
        ("tb", 1_048_576.0),
        ("bytes", 1.0 / 1_048_576.0),
    ];
    let unit = units.iter().find(|(name, _)| unit.starts_with(name));
    Some((number, unit.map(|(_, mib)| *mib)))
}

/// Reads the time limit that `scan` states.
pub(super) fn read_time_limit(scan: &Scan<'_>) -> Option<Amount> {
    let words = [
        "duration of ",
        "maximum (",
        "complete in ",
        "more than ",
        "limit of ",
        "longer than ",
        "exceeded ",
        "(",
        "limit ",
    ];
    let mut found = words
        .iter()
        .filter_map(|word| leading_time(scan.after(word)?));
    found.next().map(Amount::Seconds)
}

/// Reads `1+02:03:04`, `20:00:00`, or a number with a unit of time. Returns seconds.
fn leading_time(text: &str) -> Option<u64> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '+' | ':' | '.')))
        .unwrap_or(text.len());
    let number = text.get(..end)?.trim_end_matches([':', '.']);
    if number.contains(':') {
        let (days, clock) = number.split_once('+').unwrap_or(("0", number));
        let mut seconds = 0_u64;
        for part in clock.split(':') {
            seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
        }
        return days
            .parse::<u64>()
            .ok()?
            .checked_mul(86_400)?
            .checked_add(seconds);
    }
    let number: f64 = number.parse().ok()?;
    let unit = text[end..]
        .trim_start_matches([' ', ')'])
        .to_ascii_lowercase();
    let seconds = match unit.as_str() {
        unit if unit.starts_with("hour") || unit.starts_with("hr") => 3600.0,
        unit if unit.starts_with("day") => 86_400.0,
        unit if unit.starts_with("min") => 60.0,
        unit if unit.starts_with("sec") || unit.starts_with("s)") => 1.0,
        _ => return None,
    };
    Some((number * seconds).clamp(0.0, 1e12) as u64)
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
        assert_eq!(
            sizes(
                "Job has gone over cgroup memory limit of 3000 megabytes. Last measured usage: 5100 megabytes."
            ),
            (Some(3000), Some(5100))
        );
        assert_eq!(sizes("used 300 MB of 128"), (Some(128), Some(300)));
        assert_eq!(sizes("due to memory usage 7340032."), (None, Some(7168)));
        assert_eq!(
            sizes("exceeded allocated disk (1.5 GB)."),
            (Some(1536), None)
        );
        assert_eq!(sizes("memory usage exceeded request_memory"), (None, None));
    }

    #[test]
    fn time_limits_are_read_in_any_form() {
        let limit = |text| read_time_limit(&Scan::new(text));
        let seconds = |s| Some(Amount::Seconds(s));
        assert_eq!(
            limit("exceeded allowed job duration of 0+20:00:00"),
            seconds(72_000)
        );
        assert_eq!(
            limit("runtime exceeded maximum (86400 seconds)"),
            seconds(86_400)
        );
        assert_eq!(limit("Job failed to complete in 48 hrs"), seconds(172_800));
        assert_eq!(limit("Maximum wallclock time exceeded"), None);
    }
}
