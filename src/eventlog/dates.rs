//! Conversions between Gregorian dates and milliseconds since the epoch.

pub(super) const HOUR_MS: i64 = 3_600_000;
pub(super) const DAY_MS: i64 = 24 * HOUR_MS;

/// Years that a stamp may have. HTCondor is younger than the epoch.
pub(super) const YEARS: std::ops::RangeInclusive<i64> = 1970..=2100;

/// End of the last of [`YEARS`], epoch ms.
pub(super) const LAST_EPOCH_MS: i64 = 4_133_980_800_000;

/// Maximum distance of local time from UTC, in ms.
pub(super) const MAX_UTC_OFFSET_MS: i64 = 15 * HOUR_MS;

/// Returns the offset of a day within its month, in ms; `None` unless `day` is from 1 to 32. Like
/// in HTCondor's reader, days after the end of the month roll over into the next one.
#[inline]
pub(super) fn day_ms(day: i64) -> Option<i64> {
    (1..=32).contains(&day).then(|| (day - 1) * DAY_MS)
}

/// Returns the offset of a month within its year, in ms; `None` unless `month` is from 1 to 12.
#[inline]
pub(super) fn month_start_ms(month: i64, is_leap: bool) -> Option<i64> {
    const DAYS_BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let days_before = DAYS_BEFORE.get(usize::try_from(month - 1).ok()?)?;
    Some((days_before + i64::from(is_leap && month > 2)) * DAY_MS)
}

#[inline]
pub(super) fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

#[inline]
pub(super) fn year_start_ms(year: i64) -> i64 {
    // The year 1 begins 719,527 - 365 days before the epoch.
    let before = year - 1;
    let leap_days = before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400);
    (year * 365 + leap_days - 719_527) * DAY_MS
}

/// Returns the UTC year of an epoch time.
pub(super) fn year_of(ms: i64) -> i64 {
    let guess = 1970 + ms.div_euclid(DAY_MS * 365 + DAY_MS / 4);
    (guess - 1..=guess + 1)
        .rev()
        .find(|&year| year_start_ms(year) <= ms)
        .unwrap_or(guess)
}

/// Returns the UTC year, month and day of an epoch time.
pub(super) fn civil_date(ms: i64) -> (i64, u32, u32) {
    // Years begin in March here, so that a leap day is the last day of a year. An era has 400
    // years.
    let days = ms.div_euclid(DAY_MS) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);

    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month as u32, day as u32)
}

/// Formats epoch milliseconds as `YYYY-MM-DDThh:mm:ss`, with `.mmm` unless the milliseconds are 0.
pub(super) fn format_date_time(ms: i64) -> String {
    let Ok(time) = jiff::Timestamp::from_millisecond(ms) else {
        return format!("{ms} ms");
    };
    let form = if ms.rem_euclid(1000) == 0 {
        "%Y-%m-%dT%H:%M:%S"
    } else {
        "%Y-%m-%dT%H:%M:%S.%3f"
    };
    time.strftime(form).to_string()
}
