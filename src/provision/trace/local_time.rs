//! Converts local stamps to seconds of the epoch. When daylight saving time ends, one hour occurs
//! twice. The other times of a job then decide which of the two a stamp means.

use anyhow::Result;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use poolcast_base::error::hinted;

/// Maximum delay, in seconds, between the time limit of a job and its end by that limit.
const KILL_S: i64 = 300;

/// The time zone of a cluster's stamps.
#[derive(Debug, Clone)]
pub struct TraceZone {
    zone: TimeZone,
    /// The IANA name, such as `America/Chicago`.
    pub name: String,
}

impl TraceZone {
    /// Looks up the zone `name`.
    ///
    /// # Errors
    /// Fails if there is no such zone.
    pub fn named(name: &str) -> Result<TraceZone> {
        let zone = TimeZone::get(name).map_err(|_| {
            hinted(
                format!("`{name}` is not a time zone"),
                "give a zone of the IANA database, such as `America/Chicago`",
            )
        })?;
        Ok(TraceZone {
            zone,
            name: name.to_owned(),
        })
    }

    /// Returns UTC.
    pub fn utc() -> TraceZone {
        TraceZone {
            zone: TimeZone::UTC,
            name: "UTC".to_owned(),
        }
    }

    /// Returns the wall-clock time at `moment_s`, as seconds of the epoch as if it were UTC.
    pub fn wall_s(&self, moment_s: i64) -> i64 {
        let Ok(moment) = jiff::Timestamp::from_second(moment_s) else {
            return moment_s;
        };
        moment_s + i64::from(self.zone.to_offset(moment).seconds())
    }

    /// Formats the wall-clock time at `moment_s` to the minute, like an argument of `--start-time`.
    pub fn wall_minute(&self, moment_s: i64) -> String {
        let wall = jiff::Timestamp::from_second(self.wall_s(moment_s)).unwrap_or_default();
        wall.strftime("%Y-%m-%dT%H:%M").to_string()
    }

    /// Converts the wall-clock time `wall_s`, in seconds of the epoch as if it were UTC, to seconds
    /// of the epoch. Returns the first of two times in the hour that occurs twice.
    pub fn time_of_wall_s(&self, wall_s: i64) -> i64 {
        let civil = jiff::Timestamp::from_second(wall_s)
            .map(|moment| moment.to_zoned(TimeZone::UTC).datetime());
        let readings = civil.ok().and_then(|civil| self.readings(civil));
        readings.map_or(wall_s, |readings| readings.first_s)
    }

    /// Parses a local date, or a local date and time of day, to seconds of the epoch.
    pub fn moment_s(&self, text: &str) -> Option<i64> {
        let civil: DateTime = text.parse().ok()?;
        Some(self.readings(civil)?.first_s)
    }

    /// Returns the times at which a wall clock shows `civil`.
    fn readings(&self, civil: DateTime) -> Option<StampReadings> {
        let moment = |offset: jiff::tz::Offset| {
            let moment = offset.to_timestamp(civil).ok()?;
            Some(moment.as_second())
        };
        let readings = match self.zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => StampReadings::once(moment(offset)?),
            // Clocks skip this hour. Use the offset from before the change.
            AmbiguousOffset::Gap { before, .. } => StampReadings::once(moment(before)?),
            AmbiguousOffset::Fold { before, after } => StampReadings {
                first_s: moment(before)?,
                second_s: moment(after)?,
            },
        };
        Some(readings)
    }
}

/// The times that a stamp may mean, in seconds of the epoch and in order. They differ only in the
/// hour that occurs twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StampReadings {
    first_s: i64,
    second_s: i64,
}

impl StampReadings {
    /// Creates an unambiguous reading.
    pub(super) fn once(moment_s: i64) -> StampReadings {
        StampReadings {
            first_s: moment_s,
            second_s: moment_s,
        }
    }

    /// Returns the first time if it is not before `least_s`, or else the second.
    pub(super) fn not_before(self, least_s: i64) -> i64 {
        if self.first_s >= least_s {
            self.first_s
        } else {
            self.second_s
        }
    }

    fn all(self) -> [i64; 2] {
        [self.first_s, self.second_s]
    }
}

/// Parses a `sacct` stamp: `2023-03-01T00:00:00` in local time, the same with an offset, or seconds
/// of the epoch. Returns `Some(None)` if the stamp says that the time is unknown, and `None` if it
/// is invalid.
///
/// # Errors
/// Fails for local time if `zone` is `None`.
pub(super) fn parse_stamp(
    text: &str,
    zone: Option<&TraceZone>,
) -> Result<Option<Option<StampReadings>>> {
    if matches!(text, "" | "Unknown" | "None" | "N/A" | "-" | "0") {
        return Ok(Some(None));
    }
    if let Some(civil) = parse_civil(text) {
        let Some(zone) = zone else {
            let message = format!("the stamp `{text}` is local, and its time zone is unknown");
            let hint = "give the cluster's zone, such as `--tz America/Chicago`";
            return Err(hinted(message, hint).into());
        };
        return Ok(zone.readings(civil).map(Some));
    }
    let moment_s = match text.parse::<i64>() {
        Ok(moment_s) => Some(moment_s),
        Err(_) => offset_time_s(text),
    };
    let is_in_range = |s: &i64| jiff::Timestamp::from_second(*s).is_ok();
    Ok(moment_s
        .filter(is_in_range)
        .map(|s| Some(StampReadings::once(s))))
}

/// Parses `2023-03-01T00:00:00-0600`, `-06:00` or `Z` to seconds of the epoch.
fn offset_time_s(text: &str) -> Option<i64> {
    if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        return Some(moment.as_second());
    }
    let moment = jiff::fmt::strtime::parse("%Y-%m-%dT%H:%M:%S%z", text).ok()?;
    Some(moment.to_timestamp().ok()?.as_second())
}

/// Parses `2023-03-01T00:00:00`. Written by hand for speed, because each row has several stamps.
fn parse_civil(text: &str) -> Option<DateTime> {
    let bytes = text.as_bytes();
    let is_form = bytes.len() == 19
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && matches!(bytes[10], b'T' | b' ')
        && bytes[13] == b':'
        && bytes[16] == b':';
    if !is_form {
        return None;
    }
    let number = |at: std::ops::Range<usize>| {
        let mut value = 0i16;
        for byte in &bytes[at] {
            if !byte.is_ascii_digit() {
                return None;
            }
            value = value * 10 + i16::from(byte - b'0');
        }
        Some(value)
    };
    let small = |at| number(at).map(|value| value as i8);
    DateTime::new(
        number(0..4)?,
        small(5..7)?,
        small(8..10)?,
        small(11..13)?,
        small(14..16)?,
        small(17..19)?,
        0,
    )
    .ok()
}

/// The submission, start and end of a job, in seconds of the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JobMoments {
    pub(super) submit_s: i64,
    pub(super) start_s: i64,
    pub(super) end_s: i64,
}

/// Picks a consistent combination of the times that three stamps may mean: submission, start and
/// end must be in this order.
///
/// Returns `None` if there is none. Of several combinations it prefers the one whose duration is
/// closest to the logged run time `run_s`. Without `run_s` it prefers one that ends at the limit
/// `limit_s`, and then the earliest.
pub(super) fn choose_readings(
    submit: StampReadings,
    start: StampReadings,
    end: StampReadings,
    run_s: Option<i64>,
    limit_s: Option<i64>,
) -> Option<JobMoments> {
    let mut best: Option<(i64, JobMoments)> = None;
    for submit_s in submit.all() {
        for start_s in start.all() {
            for end_s in end.all() {
                if start_s < submit_s || end_s < start_s {
                    continue;
                }
                let ran_s = end_s - start_s;
                let score = match (run_s, limit_s) {
                    (Some(run_s), _) => (ran_s - run_s).abs(),
                    (None, Some(limit_s)) if (0..=KILL_S).contains(&(ran_s - limit_s)) => 0,
                    _ => 1,
                };
                if best.is_none_or(|(least, _)| score < least) {
                    let moments = JobMoments {
                        submit_s,
                        start_s,
                        end_s,
                    };
                    best = Some((score, moments));
                }
            }
        }
    }
    best.map(|(_, moments)| moments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> StampReadings {
        let zone = TraceZone::named("America/Chicago").expect("a zone");
        parse_stamp(text, Some(&zone))
            .expect("read")
            .expect("a stamp")
            .expect("a moment")
    }

    fn run_s(start: &str, end: &str, run_s: Option<i64>, limit_s: i64) -> Option<i64> {
        let submit = read("2022-11-01T00:00:00");
        let found = choose_readings(submit, read(start), read(end), run_s, Some(limit_s))?;
        Some(found.end_s - found.start_s)
    }

    #[test]
    fn days_of_clock_changes_have_23_or_25_hours() {
        let two_days = 172_800;
        let over_march = (read("2023-03-11T00:00:00"), read("2023-03-13T01:00:00"));
        assert_eq!(over_march.1.first_s - over_march.0.first_s, two_days);
        let over_november = ("2022-11-05T12:00:00", "2022-11-07T11:00:00");
        assert_eq!(
            run_s(over_november.0, over_november.1, None, two_days),
            Some(two_days)
        );
    }

    #[test]
    fn ambiguous_stamps_are_resolved_by_order_limit_or_run_time() {
        let hour = read("2022-11-06T01:30:00");
        assert_eq!(hour.second_s - hour.first_s, 3600);
        // Resolved by the order of start and end.
        let (late, early) = ("2022-11-06T01:50:00", "2022-11-06T01:10:00");
        assert_eq!(run_s(late, early, None, 7200), Some(1200));
        assert_eq!(run_s(early, late, None, 7200), Some(2400));
        // Resolved by the limit.
        assert_eq!(
            run_s("2022-11-06T00:30:00", "2022-11-06T01:30:10", None, 7200),
            Some(7210)
        );
        // Resolved by the logged run time.
        assert_eq!(run_s(early, late, Some(6000), 86_400), Some(6000));
        assert_eq!(
            run_s("2022-11-06T03:00:00", early, None, 7200),
            None,
            "no reading ends after the start"
        );
    }

    #[test]
    fn stamps_of_every_kind_are_read() {
        assert_eq!(read("2022-11-01T00:00:00").first_s, 1_667_278_800);
        assert_eq!(read("2022-11-01T00:00:00-0500").first_s, 1_667_278_800);
        assert_eq!(read("2022-11-01T00:00:00-05:00").first_s, 1_667_278_800);
        assert_eq!(read("2022-11-01T05:00:00Z").first_s, 1_667_278_800);
        assert_eq!(read("1667278800").first_s, 1_667_278_800);
        for unknown in ["Unknown", "None", "N/A", ""] {
            assert_eq!(parse_stamp(unknown, None).expect("read"), Some(None));
        }
        for none in ["2022-13-01T00:00:00", "now", "99999999999999"] {
            assert_eq!(
                parse_stamp(none, Some(&TraceZone::utc())).expect("read"),
                None
            );
        }
        let error = parse_stamp("2022-11-01T00:00:00", None).expect_err("no zone");
        assert!(
            poolcast_base::error::render(&error).contains("--tz"),
            "{error:?}"
        );
        assert!(TraceZone::named("Mars/Olympus").is_err());
    }

    #[test]
    fn wall_s_inverts_parse_stamp() {
        let zone = TraceZone::named("America/Chicago").expect("a zone");
        let civil_s = TraceZone::utc();
        for text in [
            "2022-11-06T01:30:00",
            "2023-03-12T03:00:00",
            "2023-01-01T00:00:00",
        ] {
            let as_universal = parse_stamp(text, Some(&civil_s)).expect("read");
            let as_universal = as_universal.expect("a stamp").expect("a moment").first_s;
            for moment_s in read(text).all() {
                assert_eq!(zone.wall_s(moment_s), as_universal, "{text}");
            }
        }
    }
}
