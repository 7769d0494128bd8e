//! Dates stamps in log order: finds the year and the time zone that a stamp does not name.

use serde::{Deserialize, Serialize};

use super::dates::{DAY_MS, HOUR_MS, MAX_UTC_OFFSET_MS, is_leap_year, year_of, year_start_ms};
use super::stamp::{Stamp, StampZone};

/// Maximum delay, in ms, of a late event: several daemons write one log. A larger step back means
/// that the clock changed.
const MAX_DISORDER_MS: i64 = 10 * 60_000;

/// Maximum step back, in ms, at the end of summer time. It is an hour, plus a minute in case the
/// last event before the change was early or the first one after it is late.
const MAX_ZONE_STEP_MS: i64 = HOUR_MS + 60_000;

/// Maximum gap, in ms, at which a stamp directly follows the one before the previous stamp. Then
/// only the previous stamp is damaged.
const MAX_CONFIRMING_GAP_MS: i64 = 30_000;

/// Maximum step back, in ms, of a stamp without a year that stays in the same year. A stamp further
/// back belongs to the next year.
const MAX_STEP_BACK_MS: i64 = MAX_UTC_OFFSET_MS;

/// Gap, in ms, between two stamps without a year that is reported as an anomaly. The stamps may be
/// out of order.
const LONG_GAP_MS: i64 = 183 * DAY_MS;

/// Maximum gap, in ms, that disproves a jump ahead. If a stamp without a year follows the stamp
/// before the jump within this gap, only the stamp that jumped is damaged.
const MAX_GAP_AFTER_JUMP_MS: i64 = 7 * DAY_MS;

/// Placeholder for a missing time, before every other time.
const NO_TIME_MS: i64 = i64::MIN / 2;

/// Relation of a stamp to the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClockStep {
    /// Time moved on, or back by a little because several daemons write one log.
    On,
    /// The clock went back by about an hour: summer time has ended. Later stamps are in another
    /// zone.
    ZoneChange,
    /// The zone has not changed after all. The previous stamp, which indicated a change, is
    /// damaged.
    NoZoneChange,
    /// More than half a year has passed, and the stamp has no year.
    LongGap,
    /// The stamp is on 29 February, which the year that the caller named does not have, nor any year
    /// soon after it.
    NoLeapDay,
    /// The clock was set back, or another log begins here.
    Back,
}

/// Converts stamps to epoch times, in log order.
///
/// A stamp without a year falls into the first year that does not put it before the previous stamp,
/// because time moves on. Small steps back stay in their year, also across the turn of the year. A
/// single stamp that is far from both its neighbours counts as damage, and does not affect the year
/// and the zone of the next one.
#[derive(Debug, Clone)]
pub(super) struct Calendar {
    /// Last converted time, or a lower bound of the first event's time; epoch ms.
    near_ms: Option<i64>,
    /// Local time minus UTC, in ms.
    offset_ms: i64,
    /// Latest time since the clock was last set back, epoch ms.
    latest_ms: i64,
    /// Previous value of `latest_ms`, epoch ms.
    earlier_ms: i64,
    /// Zone change that the last stamp indicated. The next stamp confirms or disproves it.
    zone_change: Option<ZoneChange>,
    /// Last jump ahead.
    jump: Option<JumpAhead>,
    /// Last stamp without a year.
    last_legacy: ResolvedLegacyStamp,
    /// True if the year is known only because the caller named it.
    has_named_year: bool,
}

/// A provisional zone change: a stamp about an hour before the previous one.
#[derive(Debug, Clone, Copy)]
struct ZoneChange {
    /// Latest time before the change, epoch ms.
    latest_ms: i64,
}

/// A jump ahead of more than a day, in local time.
#[derive(Debug, Clone, Copy)]
struct JumpAhead {
    before_ms: i64,
    after_ms: i64,
}

/// A stamp without a year, and its assigned time.
#[derive(Debug, Clone, Copy)]
struct ResolvedLegacyStamp {
    /// Stamp, in ms since 1 January of a leap year.
    within_ms: i64,
    /// Assigned local time, in ms.
    resolved_ms: i64,
}

/// State of a calendar after an event, as stored in a resume point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CalendarState {
    /// Time of the last event, epoch ms.
    pub(super) near_ms: i64,
    /// Local time minus UTC, in ms.
    pub(super) zone_ms: i64,
    /// Latest time since the clock was last set back, epoch ms.
    #[serde(default)]
    latest_ms: Option<i64>,
    /// Previous value of `latest_ms`, epoch ms.
    #[serde(default)]
    earlier_ms: Option<i64>,
    /// Local times, in ms, before and after the last jump ahead.
    #[serde(default)]
    jump: Option<(i64, i64)>,
}

impl Calendar {
    /// Creates a calendar from a lower bound of the first event's time and the offset of local
    /// time.
    pub(super) fn new(near_ms: Option<i64>, offset_ms: i64) -> Calendar {
        Calendar {
            near_ms,
            offset_ms,
            latest_ms: NO_TIME_MS,
            earlier_ms: NO_TIME_MS,
            zone_change: None,
            jump: None,
            last_legacy: ResolvedLegacyStamp {
                within_ms: i64::MIN,
                resolved_ms: 0,
            },
            has_named_year: false,
        }
    }

    /// Creates a calendar whose first event falls into `year`. Without a year, the calendar has no
    /// time.
    pub(super) fn in_year(year: Option<i16>) -> Calendar {
        let near_ms = year.map(|year| year_start_ms(year.into()) + MAX_STEP_BACK_MS);
        Calendar {
            has_named_year: year.is_some(),
            ..Calendar::new(near_ms, 0)
        }
    }

    /// Sets local time minus UTC, in ms.
    pub(super) fn with_offset(self, offset_ms: i64) -> Calendar {
        Calendar { offset_ms, ..self }
    }

    /// Restores the calendar from the result of [`Calendar::state`].
    pub(super) fn resume(state: CalendarState) -> Calendar {
        let jump = state.jump.map(|(before_ms, after_ms)| JumpAhead {
            before_ms,
            after_ms,
        });
        Calendar {
            latest_ms: state.latest_ms.unwrap_or(NO_TIME_MS),
            earlier_ms: state.earlier_ms.unwrap_or(NO_TIME_MS),
            jump,
            ..Calendar::new(Some(state.near_ms), state.zone_ms)
        }
    }

    /// Returns the state to store; `None` if the calendar has no time yet.
    pub(super) fn state(&self) -> Option<CalendarState> {
        Some(CalendarState {
            near_ms: self.near_ms?,
            zone_ms: self.offset_ms,
            latest_ms: (self.latest_ms > NO_TIME_MS).then_some(self.latest_ms),
            earlier_ms: (self.earlier_ms > NO_TIME_MS).then_some(self.earlier_ms),
            jump: self.jump.map(|jump| (jump.before_ms, jump.after_ms)),
        })
    }

    /// Returns true if stamps without a year can be converted.
    pub(super) fn is_set(&self) -> bool {
        self.near_ms.is_some()
    }

    /// Returns true if the last stamp indicated a zone change that the next stamp must still
    /// confirm.
    pub(super) fn may_be_wrong(&self) -> bool {
        self.zone_change.is_some()
    }

    /// Returns local time minus UTC, in ms.
    pub(super) fn offset_ms(&self) -> i64 {
        self.offset_ms
    }

    /// Returns the epoch time of `stamp`, in ms, and its relation to the previous stamp. Returns
    /// `None` for a stamp without a year while no year is known.
    #[inline]
    pub(super) fn resolve_stamp(&mut self, stamp: Stamp) -> Option<(i64, ClockStep)> {
        let offset_ms = if stamp.zone == StampZone::Local {
            self.offset_ms
        } else {
            0
        };
        let (local_ms, step) = match (stamp.has_year, self.near_ms) {
            (true, _) => (stamp.ms, ClockStep::On),
            (false, Some(near_ms)) => self.resolve_without_year(stamp.ms, near_ms + offset_ms),
            (false, None) => return None,
        };
        let ms = local_ms - offset_ms;

        // As an unsigned number, a step back is larger than any step ahead. So one comparison finds
        // a step back and a large step ahead.
        if (ms - self.latest_ms).cast_unsigned() > MAX_DISORDER_MS.cast_unsigned() {
            return Some(self.resolve_out_of_order(ms, stamp.zone, step));
        }
        self.near_ms = Some(ms);
        self.earlier_ms = self.latest_ms;
        self.latest_ms = ms;
        self.zone_change = None;
        Some((ms, step))
    }

    /// Converts `ms`, which lies before the latest time or far after it.
    #[cold]
    fn resolve_out_of_order(
        &mut self,
        ms: i64,
        zone: StampZone,
        step: ClockStep,
    ) -> (i64, ClockStep) {
        let back_ms = self.latest_ms - ms;
        let last_change = self.zone_change.take();

        let (ms, step) = if back_ms < 0 {
            let last_change = last_change.filter(|_| zone == StampZone::Local);
            self.resolve_far_ahead(ms, last_change, step)
        } else if back_ms <= MAX_DISORDER_MS {
            // A daemon wrote late. The latest time stays the same.
            (ms, ClockStep::On)
        } else if zone == StampZone::Known || back_ms > MAX_ZONE_STEP_MS {
            // No zone change explains this step, so the order of time starts from scratch here.
            self.earlier_ms = NO_TIME_MS;
            self.latest_ms = ms;
            (ms, ClockStep::Back)
        } else if (ms - self.earlier_ms).abs() <= MAX_CONFIRMING_GAP_MS {
            // It follows the stamp before the previous one. Only the previous stamp was ahead.
            self.latest_ms = ms.max(self.earlier_ms);
            (ms, ClockStep::On)
        } else {
            // Summer time has ended: the local clock repeats the same hour.
            let resolved_ms = ms + HOUR_MS;
            self.offset_ms -= HOUR_MS;
            self.zone_change = Some(ZoneChange {
                latest_ms: self.latest_ms,
            });
            self.earlier_ms = self.latest_ms;
            self.latest_ms = self.latest_ms.max(resolved_ms);
            (resolved_ms, ClockStep::ZoneChange)
        };

        self.near_ms = Some(ms);
        (ms, step)
    }

    /// Converts `ms`, which lies more than [`MAX_DISORDER_MS`] after the latest time. If it
    /// disproves the zone change of the last stamp, the zone is restored and the added hour is
    /// removed.
    fn resolve_far_ahead(
        &mut self,
        ms: i64,
        last_change: Option<ZoneChange>,
        step: ClockStep,
    ) -> (i64, ClockStep) {
        // In the old zone, the stamp directly follows the time before the change. Then only the
        // stamp that indicated the change was behind.
        let resolved_ms = ms - HOUR_MS;
        if let Some(change) = last_change
            && (resolved_ms - change.latest_ms).abs() <= MAX_CONFIRMING_GAP_MS
        {
            self.offset_ms += HOUR_MS;
            self.earlier_ms = change.latest_ms;
            self.latest_ms = change.latest_ms.max(resolved_ms);
            return (resolved_ms, ClockStep::NoZoneChange);
        }
        self.earlier_ms = self.latest_ms;
        self.latest_ms = ms;
        (ms, step)
    }

    /// Like [`resolve_forward`], but fast for a stamp of the same day as the last one. Nearly all
    /// stamps are, and for them only the distance to the last stamp is added.
    #[inline]
    fn resolve_without_year(&mut self, within_ms: i64, near_ms: i64) -> (i64, ClockStep) {
        let last = self.last_legacy;
        let is_same_day = within_ms.div_euclid(DAY_MS) == last.within_ms.div_euclid(DAY_MS);
        let resolved_ms = last.resolved_ms + within_ms.wrapping_sub(last.within_ms);

        let is_near = (last.resolved_ms - near_ms).abs() < DAY_MS;
        let found = if is_same_day && is_near && resolved_ms >= near_ms - MAX_STEP_BACK_MS {
            (resolved_ms, ClockStep::On)
        } else {
            self.resolve_on_another_day(within_ms, near_ms)
        };

        self.last_legacy = ResolvedLegacyStamp {
            within_ms,
            resolved_ms: found.0,
        };
        found
    }

    /// Converts a stamp without a year that is not on the day of the last one. Checks for a single
    /// stamp that jumped ahead, and for a long gap.
    #[inline(never)]
    fn resolve_on_another_day(&mut self, within_ms: i64, near_ms: i64) -> (i64, ClockStep) {
        let resolved_ms = resolve_forward(within_ms, near_ms);
        if resolved_ms - near_ms <= DAY_MS {
            return (resolved_ms, ClockStep::On);
        }

        // Perhaps only the last stamp jumped ahead. Then this one follows the stamp before it.
        if let Some(jump) = self.jump.filter(|jump| jump.after_ms == near_ms) {
            let after_damage_ms = resolve_forward(within_ms, jump.before_ms);
            if after_damage_ms - jump.before_ms <= MAX_GAP_AFTER_JUMP_MS {
                return (after_damage_ms, ClockStep::On);
            }
        }

        self.jump = Some(JumpAhead {
            before_ms: near_ms,
            after_ms: resolved_ms,
        });
        let is_long = resolved_ms - near_ms > LONG_GAP_MS;
        let step = if is_long && self.has_named_year && is_leap_day(within_ms) {
            ClockStep::NoLeapDay
        } else if is_long && self.latest_ms > NO_TIME_MS {
            ClockStep::LongGap
        } else {
            ClockStep::On
        };
        (resolved_ms, step)
    }
}

/// Returns the first time that matches `within_ms` and is at most [`MAX_STEP_BACK_MS`] before
/// `near_ms`. `within_ms` counts from 1 January of a leap year. In other years, days after 28
/// February are one day earlier.
fn resolve_forward(within_ms: i64, near_ms: i64) -> i64 {
    matching_times(within_ms, near_ms)
        .find(|ms| *ms >= near_ms - MAX_STEP_BACK_MS)
        .unwrap_or(near_ms)
}

/// Like [`resolve_forward`], but returns the last time that is at most [`MAX_STEP_BACK_MS`] after
/// `near_ms`.
pub(super) fn resolve_backward(within_ms: i64, near_ms: i64) -> i64 {
    matching_times(within_ms, near_ms)
        .filter(|ms| *ms <= near_ms + MAX_STEP_BACK_MS)
        .last()
        .unwrap_or(near_ms)
}

/// Like [`resolve_forward`], but returns the time nearest to `near_ms`.
pub(super) fn resolve_nearest(within_ms: i64, near_ms: i64) -> i64 {
    matching_times(within_ms, near_ms)
        .min_by_key(|ms| (ms - near_ms).abs())
        .unwrap_or(near_ms)
}

/// Begin of March in a leap year, in ms.
const MARCH_MS: i64 = 60 * DAY_MS;

/// Returns true if `within_ms`, which counts from 1 January of a leap year, is on 29 February.
fn is_leap_day(within_ms: i64) -> bool {
    (MARCH_MS - DAY_MS..MARCH_MS).contains(&within_ms)
}

/// Returns the times that match `within_ms` in the years around `near_ms`. The gap between two 29
/// February is at most eight years.
fn matching_times(within_ms: i64, near_ms: i64) -> impl Iterator<Item = i64> {
    let is_leap_day = is_leap_day(within_ms);
    let near_year = year_of(near_ms);

    (near_year - 8..=near_year + 8)
        .filter(move |year| is_leap_year(*year) || !is_leap_day)
        .map(move |year| {
            let skipped_ms = if !is_leap_year(year) && within_ms >= MARCH_MS {
                DAY_MS
            } else {
                0
            };
            year_start_ms(year) + within_ms - skipped_ms
        })
}

/// Returns local time minus UTC, in ms, from one time known in both. Returns `None` unless the
/// stamp is in local time, and the result is within 2 s of a whole quarter of an hour and at most
/// 15 hours.
pub(super) fn utc_offset_between(local: Stamp, epoch_ms: i64) -> Option<i64> {
    const QUARTER_MS: i64 = 15 * 60_000;
    let local_ms = if local.has_year {
        local.ms
    } else {
        resolve_nearest(local.ms, epoch_ms)
    };

    let quarters = (local_ms - epoch_ms + QUARTER_MS / 2).div_euclid(QUARTER_MS);
    let error_ms = (local_ms - epoch_ms - quarters * QUARTER_MS).abs();
    let is_plausible =
        local.zone == StampZone::Local && error_ms <= 2_000 && quarters.abs() <= 4 * 15;
    is_plausible.then_some(quarters * QUARTER_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dates::format_date_time;
    use crate::stamp::parse_stamp;

    fn full(text: &str) -> Option<i64> {
        parse_stamp(text.as_bytes())
            .filter(|(_, length)| *length == text.len())
            .map(|(stamp, _)| stamp.ms)
    }

    fn stamp(text: &str) -> Stamp {
        parse_stamp(text.as_bytes()).expect("valid").0
    }

    /// Converts stamps one after another. The first one is not before `near`.
    fn placed(near: &str, stamps: &[&str]) -> Vec<String> {
        let mut calendar = Calendar::new(full(near), 0);
        let place =
            |text: &&str| format_date_time(calendar.resolve_stamp(stamp(text)).expect("a year").0);
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
        assert_eq!(
            Calendar::new(None, 0).resolve_stamp(stamp("03/01 10:00:00")),
            None
        );
        assert_eq!(
            placed("2025-01-10 00:00:00", &["03/01 10:00:00"]),
            ["2025-03-01T10:00:00"]
        );
    }

    #[test]
    fn long_gaps_advance_the_year() {
        for (second, expected) in [
            ("09/05 10:00:00", "2023-09-05T10:00:00"),
            ("12/31 10:00:00", "2023-12-31T10:00:00"),
            ("02/28 10:00:00", "2024-02-28T10:00:00"),
        ] {
            let mut calendar = Calendar::new(full("2023-03-01 09:00:00"), 0);
            assert_eq!(
                calendar.resolve_stamp(stamp("03/01 10:00:00")),
                Some((
                    full("2023-03-01 10:00:00").expect("a sound stamp"),
                    ClockStep::On
                ))
            );
            let found = calendar
                .resolve_stamp(stamp(second))
                .map(|(ms, step)| (format_date_time(ms), step));
            assert_eq!(found, Some((expected.to_owned(), ClockStep::LongGap)));
        }
        let mut calendar = Calendar::in_year(Some(2019));
        assert_eq!(
            calendar
                .resolve_stamp(stamp("12/31 23:00:00"))
                .map(|(ms, _)| ms),
            full("2019-12-31 23:00:00")
        );
        assert_eq!(
            Calendar::in_year(Some(2019))
                .resolve_stamp(stamp("01/01 00:00:00"))
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
                    .resolve_stamp(stamp(&format!("2026-11-01 {time}")))
                    .expect("placed")
            };
            let found = times.map(place).map(|(ms, _)| format_date_time(ms));
            for at in [0, 1, 3, 4, 5] {
                assert_eq!(found[at], format!("2026-11-01T{}", times[at]), "{damaged}");
            }
        }
    }

    #[test]
    fn zone_changes_are_provisional_until_the_next_stamp() {
        let mut calendar = Calendar::new(Some(0), 0);
        let mut place = |text: &str| {
            calendar.resolve_stamp(stamp(text)).expect("placed");
            calendar.may_be_wrong()
        };
        assert!(!place("2026-11-01 03:04:11"));
        assert!(place("2026-11-01 02:20:00"), "placed at 03:20:00");
        assert!(!place("2026-11-01 03:50:00"));
        assert!(!place("2026-11-01 02:20:00"), "there once more");
    }

    #[test]
    fn autumn_clock_change_shifts_the_zone() {
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
            let found = stamps.map(|text| calendar.resolve_stamp(stamp(text)).expect("placed"));
            let times = found.map(|(ms, _)| format_date_time(ms));
            let expected = ["06:50:00", "07:05:00", "07:10:00", "09:00:00"]
                .map(|time| format!("2026-11-01T{time}"));
            assert_eq!(times, expected);
            assert_eq!(
                found.map(|(_, step)| step),
                [
                    ClockStep::On,
                    ClockStep::ZoneChange,
                    ClockStep::On,
                    ClockStep::On
                ]
            );
        }
        let step = |first: &str, second: &str| {
            let mut calendar = Calendar::new(Some(0), 0);
            calendar.resolve_stamp(stamp(first));
            calendar.resolve_stamp(stamp(second)).expect("placed").1
        };
        assert_eq!(
            step("2026-11-01 01:59:59", "2026-11-01 01:00:00"),
            ClockStep::ZoneChange
        );
        assert_eq!(
            step("2026-11-01 01:59:59", "2026-11-01 01:59:00"),
            ClockStep::On,
            "daemons that write one log"
        );
        assert_eq!(
            step("2026-11-01 05:00:00", "2026-11-01 01:00:00"),
            ClockStep::Back,
            "the clock was set"
        );
        assert_eq!(
            step("2026-11-01 01:50:00Z", "2026-11-01 01:05:00Z"),
            ClockStep::Back,
            "no zone changes in UTC"
        );
    }

    #[test]
    fn header_gives_the_utc_offset() {
        let local = parse_stamp(b"11/21 01:49:47").expect("valid").0;
        assert_eq!(utc_offset_between(local, 1_795_225_787_000), Some(0));
        assert_eq!(
            utc_offset_between(local, 1_795_225_787_000 + 6 * 3_600_000),
            Some(-6 * 3_600_000)
        );
        assert_eq!(
            utc_offset_between(local, 1_795_225_787_000 + 400_000),
            None,
            "a rotation time tells nothing"
        );
    }
}
