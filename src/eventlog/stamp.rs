//! Time stamps: `MM/DD hh:mm:ss` (legacy, no year) and `YYYY-MM-DD hh:mm:ss` with fraction, `Z` or offset → epoch time.

use serde::{Deserialize, Serialize};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Years that a stamp may name; HTCondor is younger than the epoch.
pub(super) const YEARS: std::ops::RangeInclusive<i64> = 1970..=2100;

/// The end of the last of [`YEARS`].
pub(super) const LAST_EPOCH_MS: i64 = 4_133_980_800_000;

/// No local time is further from UTC.
pub(super) const MOST_OFFSET_MS: i64 = 15 * HOUR_MS;

/// Several daemons write one log, and one may be late by so much. More is a change of the clock.
const MOST_DISORDER_MS: i64 = 10 * 60_000;

/// At the end of summer time the clock goes back by an hour; the first event after it may come later, or be late.
const MOST_ZONE_CHANGE_MS: i64 = HOUR_MS + 60_000;

/// A stamp this close to the one before the last continues that one, and the last alone is damaged.
const CLOSE_MS: i64 = 30_000;

/// A stamp without a year that lies further before the last one is of the next year.
const MOST_BACK_MS: i64 = MOST_OFFSET_MS;

/// So long a gap between two stamps without a year is worth saying: perhaps they are out of order.
const LONG_GAP_MS: i64 = 183 * DAY_MS;

/// What a stamp says about the clock it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Zone {
    /// Without `Z` or offset: the writing host's local time.
    Local,
    /// `Z` or a numeric offset: `ms` is epoch time.
    Known,
}

/// A time stamp as written; its year may have to be found from its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Milliseconds since the epoch, taken as UTC; without a year, milliseconds since 1 January of a leap year.
    pub(super) ms: i64,
    /// Whether the stamp names its year.
    pub(super) has_year: bool,
    /// Whether the stamp names its zone.
    pub(super) zone: Zone,
}

/// Reads a stamp at the start of `text`; returns it with the number of bytes it took.
#[inline(always)]
pub(super) fn parse(text: &[u8]) -> Option<(Stamp, usize)> {
    plain(text).or_else(|| any_form(text))
}

/// The two forms that nearly every stamp has, `MM/DD hh:mm:ss` and `YYYY-MM-DD hh:mm:ss`, without anything that follows.
#[inline(always)]
fn plain(text: &[u8]) -> Option<(Stamp, usize)> {
    let (date_ms, clock, length, has_year) = match text {
        [m, n, b'/', d, e, b' ', rest @ ..] => (
            month_start_ms(two(m, n)?, true)? + day_ms(two(d, e)?)?,
            rest,
            14,
            false,
        ),
        [y, z, v, w, b'-', m, n, b'-', d, e, b' ', rest @ ..] => {
            let year = Some(two(y, z)? * 100 + two(v, w)?).filter(|year| YEARS.contains(year))?;
            (
                year_start_ms(year)
                    + month_start_ms(two(m, n)?, is_leap(year))?
                    + day_ms(two(d, e)?)?,
                rest,
                19,
                true,
            )
        }
        _ => return None,
    };
    let [h, i, b':', m, n, b':', s, t, b' ' | b'\n', ..] = clock else {
        return None;
    };
    let (hour, minute, second) = (two(h, i)?, two(m, n)?, two(s, t)?);
    let ms = date_ms + ((hour * 60 + minute) * 60 + second) * 1000;
    (hour < 24 && minute < 60 && second < 60).then_some((
        Stamp {
            ms,
            has_year,
            zone: Zone::Local,
        },
        length,
    ))
}

/// A number of two digits.
#[inline(always)]
fn two(tens: &u8, ones: &u8) -> Option<i64> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| i64::from(tens * 10 + ones))
}

/// A stamp of any form that HTCondor's own reader takes.
fn any_form(text: &[u8]) -> Option<(Stamp, usize)> {
    let mut cursor = Cursor { text, at: 0 };
    if text.get(8) == Some(&b'T') {
        return basic(text);
    }
    let (date_ms, has_year) = cursor.date()?;
    if !cursor.eat(b' ') && !cursor.eat(b'T') {
        return None;
    }
    let hour = cursor.digits(2)?;
    let minute = cursor.eat(b':').then(|| cursor.digits(2)).flatten()?;
    let second = if cursor.eat(b':') {
        cursor.digits(2)?
    } else {
        0
    };
    if hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let ms = date_ms + ((hour * 60 + minute) * 60 + second) * 1000 + cursor.fraction_ms();
    let (zone, offset_ms) = cursor.zone();
    Some((
        Stamp {
            ms: ms - offset_ms,
            has_year,
            zone,
        },
        cursor.at,
    ))
}

/// ISO 8601's basic form, `YYYYMMDDThhmmss`, read as the extended one.
fn basic(text: &[u8]) -> Option<(Stamp, usize)> {
    let digits = text.get(..15).filter(|text| {
        text.iter()
            .enumerate()
            .all(|(at, b)| at == 8 || b.is_ascii_digit())
    })?;
    let part = |from: usize, to: usize| &digits[from..to];
    let parts: [&[u8]; 11] = [
        part(0, 4),
        b"-",
        part(4, 6),
        b"-",
        part(6, 8),
        b"T",
        part(9, 11),
        b":",
        part(11, 13),
        b":",
        part(13, 15),
    ];
    let rest = &text[15..text.len().min(40)];
    let (stamp, taken) = any_form(&[&parts.concat(), rest].concat())?;
    Some((stamp, taken - 4))
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        let digits = self.text.get(self.at..self.at + count)?;
        let value = digits.iter().try_fold(0, |n, d| {
            d.is_ascii_digit().then(|| n * 10 + i64::from(d - b'0'))
        })?;
        self.at += count;
        Some(value)
    }

    /// `MM/DD` or `YYYY-MM-DD`, as milliseconds, and whether it had a year.
    fn date(&mut self) -> Option<(i64, bool)> {
        let first = self.digits(2)?;
        if self.eat(b'/') {
            let day = self.digits(2)?;
            return Some((month_start_ms(first, true)? + day_ms(day)?, false));
        }
        let year = Some(first * 100 + self.digits(2)?).filter(|year| YEARS.contains(year))?;
        let month = self.eat(b'-').then(|| self.digits(2)).flatten()?;
        let day = self.eat(b'-').then(|| self.digits(2)).flatten()?;
        Some((
            year_start_ms(year) + month_start_ms(month, is_leap(year))? + day_ms(day)?,
            true,
        ))
    }

    /// `.ddd` with any number of digits; what is finer than a millisecond is cut off.
    fn fraction_ms(&mut self) -> i64 {
        if self.peek() != Some(b'.') || !self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit)
        {
            return 0;
        }
        self.at += 1;
        let (mut ms, mut scale) = (0, 100);
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            ms += i64::from(digit - b'0') * scale;
            scale /= 10;
            self.at += 1;
        }
        ms
    }

    /// `Z`, `+hh:mm` or `+hhmm`; the offset in milliseconds east of UTC.
    fn zone(&mut self) -> (Zone, i64) {
        if self.eat(b'Z') {
            return (Zone::Known, 0);
        }
        let start = self.at;
        let sign = match self.peek() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return (Zone::Local, 0),
        };
        self.at += 1;
        let hours = self.digits(2);
        self.eat(b':');
        match hours.zip(self.digits(2)) {
            Some((hours, minutes)) => (Zone::Known, sign * (hours * 60 + minutes) * 60_000),
            None => {
                self.at = start;
                (Zone::Local, 0)
            }
        }
    }
}

/// HTCondor's reader takes days up to 32 and lets them roll over; so do we.
fn day_ms(day: i64) -> Option<i64> {
    (1..=32).contains(&day).then(|| (day - 1) * DAY_MS)
}

fn month_start_ms(month: i64, leap: bool) -> Option<i64> {
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let before = BEFORE.get(usize::try_from(month - 1).ok()?)?;
    Some((before + i64::from(leap && month > 2)) * DAY_MS)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn year_start_ms(year: i64) -> i64 {
    let before = year - 1;
    (year * 365 + before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400) - 719_527)
        * DAY_MS
}

fn year_of(ms: i64) -> i64 {
    let guess = 1970 + ms.div_euclid(DAY_MS * 365 + DAY_MS / 4);
    (guess - 1..=guess + 1)
        .rev()
        .find(|&year| year_start_ms(year) <= ms)
        .unwrap_or(guess)
}

/// The year, month and day of an epoch time, in UTC.
pub(super) fn civil(ms: i64) -> (i64, u32, u32) {
    // Years are counted from March here, so that a leap day is a year's last; an era has 400 of them.
    let days = ms.div_euclid(DAY_MS) + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    (
        era * 400 + year + i64::from(month <= 2),
        month as u32,
        day as u32,
    )
}

/// Where a stamp without a year follows so closely the one before the last, the last one alone is damaged.
const MOST_AFTER_DAMAGE_MS: i64 = 7 * DAY_MS;

/// How a stamp follows the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Later, or a little earlier, as several daemons write one log.
    On,
    /// The clock went back by about an hour: summer time has ended, and the stamps that follow are of another zone.
    ZoneChange,
    /// It did not: the stamp before this one, which seemed so, is damaged.
    NoZoneChange,
    /// More than half a year has passed, which the stamp does not say itself.
    LongGap,
    /// The clock was set back, or another log begins here.
    Back,
}

/// Gives stamps their place in time, in the order of the log.
///
/// A stamp without a year falls into the first year in which it does not lie before the one before it: time moves on. Small
/// steps back stay in their year, also across its turn. A single stamp that is far from both its neighbours is taken for
/// damage, and has no influence on the year and the zone of the next.
#[derive(Debug, Clone)]
pub(super) struct Calendar {
    /// The last time placed, or one that the first event does not lie before; epoch ms.
    near_ms: Option<i64>,
    /// Local time minus UTC, in ms.
    offset_ms: i64,
    /// The latest time placed since the clock was set back last, and the latest one before that; epoch ms.
    latest_ms: i64,
    earlier_ms: i64,
    /// Before the last change of zone, and where the stamp that showed it was placed; epoch ms.
    change: Option<(i64, i64)>,
    /// Before the last jump ahead and right after it, in local time.
    jump: Option<(i64, i64)>,
    /// The last stamp without a year, and where it was placed, in local time.
    last: (i64, i64),
}

/// What a calendar knows after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CalendarState {
    /// The time of the last event, epoch ms.
    pub(super) near_ms: i64,
    /// Local time minus UTC, ms.
    pub(super) zone_ms: i64,
    /// The latest time since the clock was set back last, epoch ms.
    #[serde(default)]
    latest_ms: Option<i64>,
    /// The latest time before that one, epoch ms.
    #[serde(default)]
    earlier_ms: Option<i64>,
    /// Before the last jump ahead and right after it, in local time.
    #[serde(default)]
    jump: Option<(i64, i64)>,
}

/// Before every time.
const NEVER_MS: i64 = i64::MIN / 2;

impl Calendar {
    /// A calendar that knows a time that the first event does not lie before, and the offset of local time.
    pub(super) fn new(near_ms: Option<i64>, offset_ms: i64) -> Calendar {
        let (latest_ms, earlier_ms, last) = (NEVER_MS, NEVER_MS, (i64::MIN, 0));
        Calendar {
            near_ms,
            offset_ms,
            latest_ms,
            earlier_ms,
            change: None,
            jump: None,
            last,
        }
    }

    /// A calendar whose first event falls into `year`.
    pub(super) fn in_year(year: i16) -> Calendar {
        Calendar::new(Some(year_start_ms(year.into()) + MOST_BACK_MS), 0)
    }

    /// As it was when [`Calendar::state`] was asked for.
    pub(super) fn resume(state: CalendarState) -> Calendar {
        let CalendarState {
            near_ms,
            zone_ms,
            latest_ms,
            earlier_ms,
            jump,
        } = state;
        let [latest_ms, earlier_ms] = [latest_ms, earlier_ms].map(|ms| ms.unwrap_or(NEVER_MS));
        Calendar {
            latest_ms,
            earlier_ms,
            jump,
            ..Calendar::new(Some(near_ms), zone_ms)
        }
    }

    /// Whether legacy stamps can be placed.
    pub(super) fn is_set(&self) -> bool {
        self.near_ms.is_some()
    }

    /// Whether the last stamp seemed to show a change of zone: the next one tells whether it did.
    pub(super) fn may_be_wrong(&self) -> bool {
        self.change
            .is_some_and(|(_, placed_ms)| self.near_ms == Some(placed_ms))
    }

    /// What it knows, if it knows any time.
    pub(super) fn state(&self) -> Option<CalendarState> {
        let Calendar {
            offset_ms: zone_ms,
            jump,
            ..
        } = *self;
        let [latest_ms, earlier_ms] =
            [self.latest_ms, self.earlier_ms].map(|ms| (ms > NEVER_MS).then_some(ms));
        self.near_ms.map(|near_ms| CalendarState {
            near_ms,
            zone_ms,
            latest_ms,
            earlier_ms,
            jump,
        })
    }

    /// Local time minus UTC, in ms.
    pub(super) fn offset_ms(&self) -> i64 {
        self.offset_ms
    }

    /// The epoch time of `stamp`, and how it follows the one before it; `None` for a legacy stamp while no year is known.
    #[inline]
    pub(super) fn place(&mut self, stamp: Stamp) -> Option<(i64, Step)> {
        let offset_ms = if stamp.zone == Zone::Local {
            self.offset_ms
        } else {
            0
        };
        let (local_ms, step) = match (stamp.has_year, self.near_ms) {
            (true, _) => (stamp.ms, Step::On),
            (false, Some(near_ms)) => self.in_next_year(stamp.ms, near_ms + offset_ms),
            (false, None) => return None,
        };
        let ms = local_ms - offset_ms;
        if (ms - self.latest_ms).cast_unsigned() > MOST_DISORDER_MS.cast_unsigned() {
            return Some(self.leap(ms, stamp.zone, step));
        }
        (self.near_ms, self.earlier_ms, self.latest_ms) = (Some(ms), self.latest_ms, ms);
        Some((ms, step))
    }

    /// Places `ms`, which lies before what was placed already, or far behind it.
    #[cold]
    fn leap(&mut self, ms: i64, zone: Zone, step: Step) -> (i64, Step) {
        let back_ms = self.latest_ms - ms;
        let (ms, step) = if back_ms < 0 {
            match self.before_false_change(ms, zone) {
                Some(latest_ms) => {
                    self.offset_ms += HOUR_MS;
                    (self.earlier_ms, self.latest_ms) = (latest_ms, latest_ms.max(ms - HOUR_MS));
                    (ms - HOUR_MS, Step::NoZoneChange)
                }
                None => {
                    (self.earlier_ms, self.latest_ms) = (self.latest_ms, ms);
                    (ms, step)
                }
            }
        } else if back_ms <= MOST_DISORDER_MS {
            (ms, Step::On)
        } else if zone == Zone::Known || back_ms > MOST_ZONE_CHANGE_MS {
            (self.earlier_ms, self.latest_ms) = (NEVER_MS, ms);
            (ms, Step::Back)
        } else if (ms - self.earlier_ms).abs() <= CLOSE_MS {
            // It follows the one before the last, which alone was ahead.
            self.latest_ms = ms.max(self.earlier_ms);
            (ms, Step::On)
        } else {
            let placed_ms = ms + HOUR_MS;
            self.offset_ms -= HOUR_MS;
            self.change = Some((self.latest_ms, placed_ms));
            (self.earlier_ms, self.latest_ms) = (self.latest_ms, self.latest_ms.max(placed_ms));
            (placed_ms, Step::ZoneChange)
        };
        self.near_ms = Some(ms);
        (ms, step)
    }

    /// The latest time before the change of zone that the last stamp seemed to show, if `ms`, read as if there was none,
    /// follows that time at once: then the last stamp alone was behind.
    fn before_false_change(&self, ms: i64, zone: Zone) -> Option<i64> {
        let (latest_ms, placed_ms) = self.change.filter(|_| zone == Zone::Local)?;
        let follows = (ms - HOUR_MS - latest_ms).abs() <= CLOSE_MS;
        (self.near_ms == Some(placed_ms) && follows).then_some(latest_ms)
    }

    /// [`in_next_year`], at once for a stamp of the same day as the last one.
    #[inline]
    fn in_next_year(&mut self, within_ms: i64, near_ms: i64) -> (i64, Step) {
        let (last_within_ms, last_ms) = self.last;
        let same_day = within_ms.div_euclid(DAY_MS) == last_within_ms.div_euclid(DAY_MS);
        let placed = last_ms + within_ms.wrapping_sub(last_within_ms);
        let found =
            if same_day && (last_ms - near_ms).abs() < DAY_MS && placed >= near_ms - MOST_BACK_MS {
                (placed, Step::On)
            } else {
                self.on_another_day(within_ms, near_ms)
            };
        self.last = (within_ms, found.0);
        found
    }

    #[inline(never)]
    fn on_another_day(&mut self, within_ms: i64, near_ms: i64) -> (i64, Step) {
        let placed = in_next_year(within_ms, near_ms);
        if placed - near_ms <= DAY_MS {
            return (placed, Step::On);
        }
        let before_jump = self
            .jump
            .filter(|jump| jump.1 == near_ms)
            .map(|jump| jump.0);
        let alone = before_jump.map(|before_ms| (before_ms, in_next_year(within_ms, before_ms)));
        if let Some((_, on)) =
            alone.filter(|(before_ms, on)| on - before_ms <= MOST_AFTER_DAMAGE_MS)
        {
            return (on, Step::On);
        }
        self.jump = Some((near_ms, placed));
        let is_long = placed - near_ms > LONG_GAP_MS && self.latest_ms > NEVER_MS;
        (placed, if is_long { Step::LongGap } else { Step::On })
    }
}

/// The first time that `within_ms` may stand for and that lies not far before `near_ms`. `within_ms` counts from 1 January of
/// a leap year; in other years, days after 28 February come one day earlier.
fn in_next_year(within_ms: i64, near_ms: i64) -> i64 {
    let mut years = in_years(within_ms, near_ms);
    years
        .find(|ms| *ms >= near_ms - MOST_BACK_MS)
        .unwrap_or(near_ms)
}

/// The last such time that lies not far after `near_ms`.
pub(super) fn in_year_before(within_ms: i64, near_ms: i64) -> i64 {
    let years = in_years(within_ms, near_ms);
    years
        .filter(|ms| *ms <= near_ms + MOST_BACK_MS)
        .last()
        .unwrap_or(near_ms)
}

/// Such a time as near as can be to `near_ms`.
pub(super) fn in_nearest_year(within_ms: i64, near_ms: i64) -> i64 {
    in_years(within_ms, near_ms)
        .min_by_key(|ms| (ms - near_ms).abs())
        .unwrap_or(near_ms)
}

/// Such times in the years around `near_ms`. 29 February comes again after eight years at most.
fn in_years(within_ms: i64, near_ms: i64) -> impl Iterator<Item = i64> {
    const MARCH_MS: i64 = 60 * DAY_MS;
    let centre = year_of(near_ms);
    let exists =
        move |year: &i64| is_leap(*year) || !(MARCH_MS - DAY_MS..MARCH_MS).contains(&within_ms);
    (centre - 8..=centre + 8).filter(exists).map(move |year| {
        let skipped = if !is_leap(year) && within_ms >= MARCH_MS {
            DAY_MS
        } else {
            0
        };
        year_start_ms(year) + within_ms - skipped
    })
}

/// `ms` as `YYYY-MM-DDThh:mm:ss`, with `.mmm` if it has milliseconds.
pub(super) fn date_time(ms: i64) -> String {
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

/// Local time minus UTC, from one moment known both ways; `None` unless it is a plausible whole quarter of an hour.
pub(super) fn offset_between(local: Stamp, epoch_ms: i64) -> Option<i64> {
    const QUARTER_MS: i64 = 15 * 60_000;
    let local_ms = if local.has_year {
        local.ms
    } else {
        in_nearest_year(local.ms, epoch_ms)
    };
    let quarters = (local_ms - epoch_ms + QUARTER_MS / 2).div_euclid(QUARTER_MS);
    let off = (local_ms - epoch_ms - quarters * QUARTER_MS).abs();
    (local.zone == Zone::Local && off <= 2_000 && quarters.abs() <= 4 * 15)
        .then_some(quarters * QUARTER_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn full(text: &str) -> Option<i64> {
        parse(text.as_bytes())
            .filter(|(_, n)| *n == text.len())
            .map(|(stamp, _)| stamp.ms)
    }

    #[test]
    fn stamps_of_every_form() {
        let base = 1_704_164_645_000; // 2024-01-02 03:04:05 UTC
        assert_eq!(full("2024-01-02 03:04:05"), Some(base));
        assert_eq!(full("2024-01-02T03:04:05Z"), Some(base));
        assert_eq!(full("2024-01-02 03:04:05.123456Z"), Some(base + 123));
        assert_eq!(
            full("2024-01-02 03:04:05+05:00"),
            Some(base - 5 * 3_600_000)
        );
        assert_eq!(full("2024-01-02 03:04:05-0530"), Some(base + 19_800_000));
        assert_eq!(full("20240102T030405Z"), Some(base));
        assert_eq!(full("20240102T030405.5+0100"), Some(base + 500 - 3_600_000));
        assert_eq!(full("2024-01-02 24:00:00"), full("2024-01-03 00:00:00"));
        assert_eq!(full("2024-02-30 00:00:00"), full("2024-03-01 00:00:00"));
        for bad in [
            "13/01 00:00:00",
            "00/10 00:00:00",
            "2024-01-02 25:00:00",
            "2101-01-01 00:00:00",
            "0000-01-01 00:00:00Z",
            "1/2 03:04:05",
            "2024/01/02 03:04:05",
            "x",
        ] {
            assert_eq!(full(bad), None, "{bad}");
        }
    }

    fn stamp(text: &str) -> Stamp {
        parse(text.as_bytes()).expect("valid").0
    }

    /// Places stamps one after another, the first not before `near`.
    fn placed(near: &str, stamps: &[&str]) -> Vec<String> {
        let mut calendar = Calendar::new(full(near), 0);
        let place = |text: &&str| date_time(calendar.place(stamp(text)).expect("a year").0);
        stamps.iter().map(place).collect()
    }

    #[test]
    fn legacy_stamps_cross_the_year_both_ways() {
        let stamps = [
            "12/31 23:59:59",
            "01/01 00:00:01",
            "12/31 23:59:58",
            "01/01 00:00:02",
            "02/29 10:00:00",
            "03/01 10:00:00",
        ];
        let expected = [
            "2023-12-31T23:59:59",
            "2024-01-01T00:00:01",
            "2023-12-31T23:59:58",
            "2024-01-01T00:00:02",
            "2024-02-29T10:00:00",
            "2024-03-01T10:00:00",
        ];
        assert_eq!(placed("2023-12-31 23:00:00", &stamps), expected);
        assert_eq!(Calendar::new(None, 0).place(stamp("03/01 10:00:00")), None);
        assert_eq!(
            placed("2025-01-10 00:00:00", &["03/01 10:00:00"]),
            ["2025-03-01T10:00:00"]
        );
    }

    #[test]
    fn time_moves_on_over_more_than_half_a_year() {
        for (second, expected) in [
            ("09/05 10:00:00", "2023-09-05T10:00:00"),
            ("12/31 10:00:00", "2023-12-31T10:00:00"),
            ("02/28 10:00:00", "2024-02-28T10:00:00"),
        ] {
            let mut calendar = Calendar::new(full("2023-03-01 09:00:00"), 0);
            assert_eq!(
                calendar.place(stamp("03/01 10:00:00")),
                Some((full("2023-03-01 10:00:00").unwrap(), Step::On))
            );
            let found = calendar
                .place(stamp(second))
                .map(|(ms, step)| (date_time(ms), step));
            assert_eq!(found, Some((expected.to_owned(), Step::LongGap)));
        }
        let mut calendar = Calendar::in_year(2019);
        assert_eq!(
            calendar.place(stamp("12/31 23:00:00")).map(|(ms, _)| ms),
            full("2019-12-31 23:00:00")
        );
        assert_eq!(
            Calendar::in_year(2019)
                .place(stamp("01/01 00:00:00"))
                .map(|(ms, _)| ms),
            full("2019-01-01 00:00:00")
        );
    }

    #[test]
    fn one_damaged_stamp_does_not_move_the_year() {
        let stamps = [
            "05/01 10:00:00",
            "12/01 10:00:01",
            "05/01 10:00:02",
            "09/01 10:00:03",
            "05/02 10:00:04",
        ];
        let found = placed("2024-05-01 00:00:00", &stamps);
        assert_eq!(
            [&found[2], &found[4]],
            ["2024-05-01T10:00:02", "2024-05-02T10:00:04"]
        );
        let gap = [
            "05/01 10:00:00",
            "09/01 10:00:00",
            "09/01 10:00:01",
            "05/02 10:00:00",
        ];
        assert_eq!(
            placed("2024-05-01 00:00:00", &gap)[3],
            "2025-05-02T10:00:00",
            "two stamps of September"
        );
    }

    #[test]
    fn one_damaged_stamp_does_not_change_the_zone() {
        for damaged in ["11:35:02", "10:05:02"] {
            let times = [
                "10:50:00", "10:50:01", damaged, "10:50:03", "10:50:04", "12:00:00",
            ];
            let mut calendar = Calendar::new(Some(0), 0);
            let place = |time: &str| {
                calendar
                    .place(stamp(&format!("2026-11-01 {time}")))
                    .expect("placed")
            };
            let found = times.map(place).map(|(ms, _)| date_time(ms));
            for at in [0, 1, 3, 4, 5] {
                assert_eq!(found[at], format!("2026-11-01T{}", times[at]), "{damaged}");
            }
        }
    }

    #[test]
    fn the_clock_goes_back_in_autumn() {
        for stamps in [
            [
                "11/01 01:50:00",
                "11/01 01:05:00",
                "11/01 01:10:00",
                "11/01 03:00:00",
            ],
            [
                "2026-11-01 01:50:00",
                "2026-11-01 01:05:00",
                "2026-11-01 01:10:00",
                "2026-11-01 03:00:00",
            ],
        ] {
            // Central Daylight Time, five hours west of UTC.
            let mut calendar = Calendar::new(full("2026-11-01 05:00:00"), -5 * HOUR_MS);
            let found = stamps.map(|text| calendar.place(stamp(text)).expect("placed"));
            let times = found.map(|(ms, _)| date_time(ms));
            let expected = ["06:50:00", "07:05:00", "07:10:00", "09:00:00"]
                .map(|time| format!("2026-11-01T{time}"));
            assert_eq!(times, expected);
            assert_eq!(
                found.map(|(_, step)| step),
                [Step::On, Step::ZoneChange, Step::On, Step::On]
            );
        }
        let step = |first: &str, second: &str| {
            let mut calendar = Calendar::new(Some(0), 0);
            calendar.place(stamp(first));
            calendar.place(stamp(second)).expect("placed").1
        };
        assert_eq!(
            step("2026-11-01 01:59:59", "2026-11-01 01:00:00"),
            Step::ZoneChange
        );
        assert_eq!(
            step("2026-11-01 01:59:59", "2026-11-01 01:59:00"),
            Step::On,
            "daemons that write one log"
        );
        assert_eq!(
            step("2026-11-01 05:00:00", "2026-11-01 01:00:00"),
            Step::Back,
            "the clock was set"
        );
        assert_eq!(
            step("2026-11-01 01:50:00Z", "2026-11-01 01:05:00Z"),
            Step::Back,
            "no zone changes in UTC"
        );
    }

    #[test]
    fn the_header_tells_the_zone() {
        let local = parse(b"11/21 01:49:47").expect("valid").0;
        assert_eq!(offset_between(local, 1_795_225_787_000), Some(0));
        assert_eq!(
            offset_between(local, 1_795_225_787_000 + 6 * 3_600_000),
            Some(-6 * 3_600_000)
        );
        assert_eq!(
            offset_between(local, 1_795_225_787_000 + 400_000),
            None,
            "a rotation time tells nothing"
        );
    }

    proptest! {
        #[test]
        fn dates_agree_with_a_calendar_library(ms in 0..=LAST_EPOCH_MS - 1) {
            let time = jiff::Timestamp::from_millisecond(ms).expect("in range");
            let text = time.strftime("%Y-%m-%d %H:%M:%S.%3f").to_string();
            prop_assert_eq!(full(&text), Some(ms));
            let date = time.to_zoned(jiff::tz::TimeZone::UTC).date();
            prop_assert_eq!(year_of(ms), i64::from(date.year()));
            let (month, day) = (date.month().cast_unsigned().into(), date.day().cast_unsigned().into());
            prop_assert_eq!(civil(ms), (i64::from(date.year()), month, day));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse(&bytes);
        }
    }
}
