//! Parses the text of a time stamp: `MM/DD hh:mm:ss` (legacy, no year), and `YYYY-MM-DD hh:mm:ss`
//! with a fraction, `Z` or an offset.
//!
//! [`super::calendar`] finds the year of a stamp without one.

use super::dates::{YEARS, day_ms, is_leap_year, month_start_ms, year_start_ms};

/// Zone of the clock from which a stamp was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StampZone {
    /// Local time of the writing host: the stamp has neither `Z` nor an offset.
    Local,
    /// UTC: the stamp has `Z` or a numeric offset, so `ms` is epoch time.
    Known,
}

/// A time stamp as written. If it has no year, the year may follow from its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Milliseconds since the epoch, read as UTC; without a year, milliseconds since 1 January of a
    /// leap year.
    pub(super) ms: i64,
    /// True if the stamp has a year.
    pub(super) has_year: bool,
    /// Zone of the stamp, if it has one.
    pub(super) zone: StampZone,
}

/// Parses a stamp at the start of `text`. Returns it with its length in bytes.
#[inline(always)]
pub(super) fn parse_stamp(text: &[u8]) -> Option<(Stamp, usize)> {
    parse_plain_form(text).or_else(|| parse_any_form(text))
}

/// Parses the two formats of nearly every stamp, `MM/DD hh:mm:ss` and `YYYY-MM-DD hh:mm:ss`,
/// without anything after them. Their digits are at fixed offsets, so one pattern per format checks
/// the length once and needs no cursor.
#[inline(always)]
fn parse_plain_form(text: &[u8]) -> Option<(Stamp, usize)> {
    let (date_ms, clock, length, has_year) = match text {
        [m, n, b'/', d, e, b' ', clock @ ..] => {
            let month = two_digits(m, n)?;
            let day = two_digits(d, e)?;
            let date_ms = month_start_ms(month, true)? + day_ms(day)?;
            (date_ms, clock, 14, false)
        }
        [y, z, v, w, b'-', m, n, b'-', d, e, b' ', clock @ ..] => {
            let year = two_digits(y, z)? * 100 + two_digits(v, w)?;
            if !YEARS.contains(&year) {
                return None;
            }
            let month = two_digits(m, n)?;
            let day = two_digits(d, e)?;
            let month_ms = month_start_ms(month, is_leap_year(year))?;
            let date_ms = year_start_ms(year) + month_ms + day_ms(day)?;
            (date_ms, clock, 19, true)
        }
        _ => return None,
    };

    // In other formats a fraction or a zone may follow. A blank or the end of the line shows that
    // there is none.
    let [h, i, b':', m, n, b':', s, t, b' ' | b'\n', ..] = clock else {
        return None;
    };
    let hour = two_digits(h, i)?;
    let minute = two_digits(m, n)?;
    let second = two_digits(s, t)?;
    let stamp = Stamp {
        ms: date_ms + ((hour * 60 + minute) * 60 + second) * 1000,
        has_year,
        zone: StampZone::Local,
    };
    (hour < 24 && minute < 60 && second < 60).then_some((stamp, length))
}

/// Parses a number of two digits.
#[inline(always)]
fn two_digits(tens: &u8, ones: &u8) -> Option<i64> {
    let tens = tens.wrapping_sub(b'0');
    let ones = ones.wrapping_sub(b'0');
    (tens < 10 && ones < 10).then(|| i64::from(tens * 10 + ones))
}

/// Parses a stamp of any format that HTCondor's own reader accepts.
fn parse_any_form(text: &[u8]) -> Option<(Stamp, usize)> {
    if text.get(8) == Some(&b'T') {
        return parse_basic_form(text);
    }

    let mut cursor = StampCursor { text, at: 0 };
    let (date_ms, has_year) = cursor.read_date()?;
    if !cursor.eat(b' ') && !cursor.eat(b'T') {
        return None;
    }
    let hour = cursor.read_digits(2)?;
    let minute = cursor.read_digits_after(b':')?;
    let second = if cursor.eat(b':') {
        cursor.read_digits(2)?
    } else {
        0
    };
    if hour > 24 || minute > 59 || second > 60 {
        return None;
    }

    let clock_ms = ((hour * 60 + minute) * 60 + second) * 1000 + cursor.read_fraction_ms();
    let (zone, offset_ms) = cursor.read_zone();
    let stamp = Stamp {
        ms: date_ms + clock_ms - offset_ms,
        has_year,
        zone,
    };
    Some((stamp, cursor.at))
}

/// Parses ISO 8601's basic format, `YYYYMMDDThhmmss`, by conversion to the extended one.
fn parse_basic_form(text: &[u8]) -> Option<(Stamp, usize)> {
    let digits = text.get(..15).filter(|text| {
        text.iter()
            .enumerate()
            .all(|(at, byte)| at == 8 || byte.is_ascii_digit())
    })?;
    let extended: [&[u8]; 11] = [
        &digits[0..4],
        b"-",
        &digits[4..6],
        b"-",
        &digits[6..8],
        b"T",
        &digits[9..11],
        b":",
        &digits[11..13],
        b":",
        &digits[13..15],
    ];

    // A fraction and a zone may follow. The four inserted signs are not part of the text.
    let rest = &text[15..text.len().min(40)];
    let (stamp, length) = parse_any_form(&[&extended.concat(), rest].concat())?;
    Some((stamp, length - 4))
}

struct StampCursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl StampCursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_found = self.peek() == Some(byte);
        self.at += usize::from(is_found);
        is_found
    }

    fn read_digits(&mut self, count: usize) -> Option<i64> {
        let digits = self.text.get(self.at..self.at + count)?;
        let mut value = 0;
        for digit in digits {
            if !digit.is_ascii_digit() {
                return None;
            }
            value = value * 10 + i64::from(digit - b'0');
        }
        self.at += count;
        Some(value)
    }

    /// Parses two digits after `separator`.
    fn read_digits_after(&mut self, separator: u8) -> Option<i64> {
        if self.eat(separator) {
            self.read_digits(2)
        } else {
            None
        }
    }

    /// Parses `MM/DD` or `YYYY-MM-DD`. Returns it in milliseconds, and true if it has a year.
    fn read_date(&mut self) -> Option<(i64, bool)> {
        let first = self.read_digits(2)?;
        if self.eat(b'/') {
            let day = self.read_digits(2)?;
            return Some((month_start_ms(first, true)? + day_ms(day)?, false));
        }

        let year = first * 100 + self.read_digits(2)?;
        if !YEARS.contains(&year) {
            return None;
        }
        let month = self.read_digits_after(b'-')?;
        let day = self.read_digits_after(b'-')?;
        let month_ms = month_start_ms(month, is_leap_year(year))?;
        Some((year_start_ms(year) + month_ms + day_ms(day)?, true))
    }

    /// Parses `.ddd` with any number of digits. Cuts off everything finer than a millisecond.
    fn read_fraction_ms(&mut self) -> i64 {
        let has_digit = self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit);
        if self.peek() != Some(b'.') || !has_digit {
            return 0;
        }
        self.at += 1;

        let mut ms = 0;
        let mut scale = 100;
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            ms += i64::from(digit - b'0') * scale;
            scale /= 10;
            self.at += 1;
        }
        ms
    }

    /// Parses `Z`, `+hh:mm` or `+hhmm`. The offset is in milliseconds east of UTC.
    fn read_zone(&mut self) -> (StampZone, i64) {
        if self.eat(b'Z') {
            return (StampZone::Known, 0);
        }
        let start = self.at;
        let sign = match self.peek() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return (StampZone::Local, 0),
        };
        self.at += 1;

        let hours = self.read_digits(2);
        self.eat(b':');
        match hours.zip(self.read_digits(2)) {
            Some((hours, minutes)) => {
                let offset_ms = sign * (hours * 60 + minutes) * 60_000;
                (StampZone::Known, offset_ms)
            }
            None => {
                // The sign belongs to the text after the stamp.
                self.at = start;
                (StampZone::Local, 0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dates::{LAST_EPOCH_MS, civil_date, year_of};
    use proptest::prelude::*;

    fn full(text: &str) -> Option<i64> {
        parse_stamp(text.as_bytes())
            .filter(|(_, length)| *length == text.len())
            .map(|(stamp, _)| stamp.ms)
    }

    #[test]
    fn every_stamp_format_is_parsed() {
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

    proptest! {
        #[test]
        fn dates_agree_with_a_calendar_library(ms in 0..=LAST_EPOCH_MS - 1) {
            let time = jiff::Timestamp::from_millisecond(ms).expect("in range");
            let text = time.strftime("%Y-%m-%d %H:%M:%S.%3f").to_string();
            prop_assert_eq!(full(&text), Some(ms));
            let date = time.to_zoned(jiff::tz::TimeZone::UTC).date();
            prop_assert_eq!(year_of(ms), i64::from(date.year()));
            let (month, day) = (date.month().cast_unsigned().into(), date.day().cast_unsigned().into());
            prop_assert_eq!(civil_date(ms), (i64::from(date.year()), month, day));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse_stamp(&bytes);
        }
    }
}
