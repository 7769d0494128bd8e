//! Stamps, in the order of their log → their place in time: the year and the zone that they do not
//! name.

use serde::{Deserialize, Serialize};

use super::dates::{DAY_MS, HOUR_MS, MOST_OFFSET_MS, is_leap_year, year_of, year_start_ms};
use super::stamp::{Stamp, StampZone};

/// How late an event may be written: several daemons write one log. More is a change of the clock.
const MOST_DISORDER_MS: i64 = 10 * 60_000;

/// How far the clock may seem to go back at the end of summer time: by an hour, and a minute more
/// where the last event before it was early or the first one after it is late.
const MOST_ZONE_CHANGE_MS: i64 = HOUR_MS + 60_000;

/// How close a stamp has to follow the one before the last to show that the last alone is damaged.
const CLOSE_MS: i64 = 30_000;

/// How far a stamp without a year may lie before the last one and be of the same year. One that
/// lies further before it is of the next year.
const MOST_BACK_MS: i64 = MOST_OFFSET_MS;

/// How long a gap between two stamps without a year is worth saying: perhaps they are out of order.
const LONG_GAP_MS: i64 = 183 * DAY_MS;

/// How soon a stamp without a year has to follow the one before the last to show that the last one,
/// which jumped ahead, alone is damaged.
const MOST_AFTER_DAMAGE_MS: i64 = 7 * DAY_MS;

/// A time before every other.
const NEVER_MS: i64 = i64::MIN / 2;

/// How a stamp follows the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClockStep {
    /// Time moved on, or back by a little, as several daemons write one log.
    On,
    /// The clock went back by about an hour: summer time has ended, and the stamps that follow are
    /// of another zone.
    ZoneChange,
    /// The zone has not changed: the stamp before this one, which seemed to show that, is damaged.
    NoZoneChange,
    /// More than half a year has passed, which the stamp does not say itself.
    LongGap,
    /// The clock was set back, or another log begins here.
    Back,
}

/// Gives stamps their place in time, in the order of the log.
///
/// A stamp without a year falls into the first year in which it does not lie before the one before
/// it: time moves on. Small steps back stay in their year, also across its turn. A single stamp
/// that is far from both its neighbours is taken for damage, and has no influence on the year and
/// the zone of the next.
#[derive(Debug, Clone)]
pub(super) struct Calendar {
    /// The last time placed, or one that the first event does not lie before; epoch ms.
    near_ms: Option<i64>,
    /// Local time minus UTC, in ms.
    offset_ms: i64,
    /// The latest time placed since the clock was set back last, epoch ms.
    latest_ms: i64,
    /// The latest one before that, epoch ms.
    earlier_ms: i64,
    /// The change of zone that the last stamp seemed to show; the next one tells whether it did.
    zone_change: Option<ZoneChange>,
    /// The last jump ahead.
    jump: Option<JumpAhead>,
    /// The last stamp without a year.
    last_legacy: LegacyPlacement,
}

/// What a stamp an hour before the one before it was taken for.
#[derive(Debug, Clone, Copy)]
struct ZoneChange {
    /// The latest time before it, epoch ms.
    latest_ms: i64,
}

/// A jump ahead of more than a day, in local time.
#[derive(Debug, Clone, Copy)]
struct JumpAhead {
    before_ms: i64,
    after_ms: i64,
}

/// A stamp without a year, and where it was placed.
#[derive(Debug, Clone, Copy)]
struct LegacyPlacement {
    /// The stamp: milliseconds since 1 January of a leap year.
    within_ms: i64,
    /// Where it was placed, in local time.
    placed_ms: i64,
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

impl Calendar {
    /// A calendar that knows a time that the first event does not lie before, and the offset of
    /// local time.
    pub(super) fn new(near_ms: Option<i64>, offset_ms: i64) -> Calendar {
        Calendar {
            near_ms,
            offset_ms,
            latest_ms: NEVER_MS,
            earlier_ms: NEVER_MS,
            zone_change: None,
            jump: None,
            last_legacy: LegacyPlacement {
                within_ms: i64::MIN,
                placed_ms: 0,
            },
        }
    }

    /// A calendar whose first event falls into `year`; without one, the calendar knows no time.
    pub(super) fn in_year(year: Option<i16>) -> Calendar {
        let near_ms = year.map(|year| year_start_ms(year.into()) + MOST_BACK_MS);
        Calendar::new(near_ms, 0)
    }

    /// As it was when [`Calendar::state`] was asked for.
    pub(super) fn resume(state: CalendarState) -> Calendar {
        let jump = state.jump.map(|(before_ms, after_ms)| JumpAhead {
            before_ms,
            after_ms,
        });
        Calendar {
            latest_ms: state.latest_ms.unwrap_or(NEVER_MS),
            earlier_ms: state.earlier_ms.unwrap_or(NEVER_MS),
            jump,
            ..Calendar::new(Some(state.near_ms), state.zone_ms)
        }
    }

    /// What it knows, if it knows any time.
    pub(super) fn state(&self) -> Option<CalendarState> {
        Some(CalendarState {
            near_ms: self.near_ms?,
            zone_ms: self.offset_ms,
            latest_ms: (self.latest_ms > NEVER_MS).then_some(self.latest_ms),
            earlier_ms: (self.earlier_ms > NEVER_MS).then_some(self.earlier_ms),
            jump: self.jump.map(|jump| (jump.before_ms, jump.after_ms)),
        })
    }

    /// Whether legacy stamps can be placed.
    pub(super) fn is_set(&self) -> bool {
        self.near_ms.is_some()
    }

    /// Whether the last stamp seemed to show a change of zone: the next one tells whether it did.
    pub(super) fn may_be_wrong(&self) -> bool {
        self.zone_change.is_some()
    }

    /// Local time minus UTC, in ms.
    pub(super) fn offset_ms(&self) -> i64 {
        self.offset_ms
    }

    /// The epoch time of `stamp`, and how it follows the one before it; `None` for a legacy stamp
    /// while no year is known.
    #[inline]
    pub(super) fn place_stamp(&mut self, stamp: Stamp) -> Option<(i64, ClockStep)> {
        let offset_ms = if stamp.zone == StampZone::Local {
            self.offset_ms
        } else {
            0
        };
        let (local_ms, step) = match (stamp.has_year, self.near_ms) {
            (true, _) => (stamp.ms, ClockStep::On),
            (false, Some(near_ms)) => self.place_without_year(stamp.ms, near_ms + offset_ms),
            (false, None) => return None,
        };
        let ms = local_ms - offset_ms;

        // As an unsigned number, a step back is larger than any step ahead: one comparison finds
        // both.
        if (ms - self.latest_ms).cast_unsigned() > MOST_DISORDER_MS.cast_unsigned() {
            return Some(self.place_out_of_order(ms, stamp.zone, step));
        }
        self.near_ms = Some(ms);
        self.earlier_ms = self.latest_ms;
        self.latest_ms = ms;
        self.zone_change = None;
        Some((ms, step))
    }

    /// Places `ms`, which lies before what was placed already, or far behind it.
    #[cold]
    fn place_out_of_order(
        &mut self,
        ms: i64,
        zone: StampZone,
        step: ClockStep,
    ) -> (i64, ClockStep) {
        let back_ms = self.latest_ms - ms;
        let last_change = self.zone_change.take();

        let (ms, step) = if back_ms < 0 {
            let last_change = last_change.filter(|_| zone == StampZone::Local);
            self.place_far_ahead(ms, last_change, step)
        } else if back_ms <= MOST_DISORDER_MS {
            // A daemon wrote late. The latest time stays what it is.
            (ms, ClockStep::On)
        } else if zone == StampZone::Known || back_ms > MOST_ZONE_CHANGE_MS {
            // No change of zone explains it, so time begins anew here.
            self.earlier_ms = NEVER_MS;
            self.latest_ms = ms;
            (ms, ClockStep::Back)
        } else if (ms - self.earlier_ms).abs() <= CLOSE_MS {
            // It follows the one before the last, which alone was ahead.
            self.latest_ms = ms.max(self.earlier_ms);
            (ms, ClockStep::On)
        } else {
            // Summer time has ended: the local clock says the same hour again, an hour later.
            let placed_ms = ms + HOUR_MS;
            self.offset_ms -= HOUR_MS;
            self.zone_change = Some(ZoneChange {
                latest_ms: self.latest_ms,
            });
            self.earlier_ms = self.latest_ms;
            self.latest_ms = self.latest_ms.max(placed_ms);
            (placed_ms, ClockStep::ZoneChange)
        };

        self.near_ms = Some(ms);
        (ms, step)
    }

    /// Places `ms`, which lies more than [`MOST_DISORDER_MS`] after the latest time. Where that
    /// shows that the zone did not change with the last stamp, the hour that was added is taken
    /// back.
    fn place_far_ahead(
        &mut self,
        ms: i64,
        last_change: Option<ZoneChange>,
        step: ClockStep,
    ) -> (i64, ClockStep) {
        // Read as if the zone had not changed, it follows the time before the change at once: then
        // the stamp that showed the change was alone behind.
        let placed_ms = ms - HOUR_MS;
        if let Some(change) = last_change
            && (placed_ms - change.latest_ms).abs() <= CLOSE_MS
        {
            self.offset_ms += HOUR_MS;
            self.earlier_ms = change.latest_ms;
            self.latest_ms = change.latest_ms.max(placed_ms);
            return (placed_ms, ClockStep::NoZoneChange);
        }
        self.earlier_ms = self.latest_ms;
        self.latest_ms = ms;
        (ms, step)
    }

    /// [`in_next_year`], at once for a stamp of the same day as the last one. Nearly all are, and
    /// for these the distance to the last stamp is all that has to be added.
    #[inline]
    fn place_without_year(&mut self, within_ms: i64, near_ms: i64) -> (i64, ClockStep) {
        let last = self.last_legacy;
        let is_same_day = within_ms.div_euclid(DAY_MS) == last.within_ms.div_euclid(DAY_MS);
        let placed_ms = last.placed_ms + within_ms.wrapping_sub(last.within_ms);

        let is_near = (last.placed_ms - near_ms).abs() < DAY_MS;
        let found = if is_same_day && is_near && placed_ms >= near_ms - MOST_BACK_MS {
            (placed_ms, ClockStep::On)
        } else {
            self.place_on_another_day(within_ms, near_ms)
        };

        self.last_legacy = LegacyPlacement {
            within_ms,
            placed_ms: found.0,
        };
        found
    }

    #[inline(never)]
    fn place_on_another_day(&mut self, within_ms: i64, near_ms: i64) -> (i64, ClockStep) {
        let placed_ms = in_next_year(within_ms, near_ms);
        if placed_ms - near_ms <= DAY_MS {
            return (placed_ms, ClockStep::On);
        }

        // It may follow what stood before the last stamp, if that jumped ahead alone.
        if let Some(jump) = self.jump.filter(|jump| jump.after_ms == near_ms) {
            let after_damage_ms = in_next_year(within_ms, jump.before_ms);
            if after_damage_ms - jump.before_ms <= MOST_AFTER_DAMAGE_MS {
                return (after_damage_ms, ClockStep::On);
            }
        }

        self.jump = Some(JumpAhead {
            before_ms: near_ms,
            after_ms: placed_ms,
        });
        let is_long = placed_ms - near_ms > LONG_GAP_MS && self.latest_ms > NEVER_MS;
        let step = if is_long {
            ClockStep::LongGap
        } else {
            ClockStep::On
        };
        (placed_ms, step)
    }
}

/// The first time that `within_ms` may stand for and that lies not far before `near_ms`.
/// `within_ms` counts from 1 January of a leap year; in other years, days after 28 February come
/// one day earlier.
fn in_next_year(within_ms: i64, near_ms: i64) -> i64 {
    in_years_around(within_ms, near_ms)
        .find(|ms| *ms >= near_ms - MOST_BACK_MS)
        .unwrap_or(near_ms)
}

/// The last such time that lies not far after `near_ms`.
pub(super) fn in_year_before(within_ms: i64, near_ms: i64) -> i64 {
    in_years_around(within_ms, near_ms)
        .filter(|ms| *ms <= near_ms + MOST_BACK_MS)
        .last()
        .unwrap_or(near_ms)
}

/// Such a time as near as can be to `near_ms`.
pub(super) fn in_nearest_year(within_ms: i64, near_ms: i64) -> i64 {
    in_years_around(within_ms, near_ms)
        .min_by_key(|ms| (ms - near_ms).abs())
        .unwrap_or(near_ms)
}

/// Such times in the years around `near_ms`. 29 February comes again after eight years at most.
fn in_years_around(within_ms: i64, near_ms: i64) -> impl Iterator<Item = i64> {
    const MARCH_MS: i64 = 60 * DAY_MS;
    let is_leap_day = (MARCH_MS - DAY_MS..MARCH_MS).contains(&within_ms);
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

/// Local time minus UTC, from one moment known both ways; `None` unless it is a plausible whole
/// quarter of an hour.
pub(super) fn offset_between(local: Stamp, epoch_ms: i64) -> Option<i64> {
    const QUARTER_MS: i64 = 15 * 60_000;
    let local_ms = if local.has_year {
        local.ms
    } else {
        in_nearest_year(local.ms, epoch_ms)
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

    /// Places stamps one after another, the first not before `near`.
    fn placed(near: &str, stamps: &[&str]) -> Vec<String> {
        let mut calendar = Calendar::new(full(near), 0);
        let place =
            |text: &&str| format_date_time(calendar.place_stamp(stamp(text)).expect("a year").0);
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
            Calendar::new(None, 0).place_stamp(stamp("03/01 10:00:00")),
            None
        );
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
                calendar.place_stamp(stamp("03/01 10:00:00")),
                Some((
                    full("2023-03-01 10:00:00").expect("a sound stamp"),
                    ClockStep::On
                ))
            );
            let found = calendar
                .place_stamp(stamp(second))
                .map(|(ms, step)| (format_date_time(ms), step));
            assert_eq!(found, Some((expected.to_owned(), ClockStep::LongGap)));
        }
        let mut calendar = Calendar::in_year(Some(2019));
        assert_eq!(
            calendar
                .place_stamp(stamp("12/31 23:00:00"))
                .map(|(ms, _)| ms),
            full("2019-12-31 23:00:00")
        );
        assert_eq!(
            Calendar::in_year(Some(2019))
                .place_stamp(stamp("01/01 00:00:00"))
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
                    .place_stamp(stamp(&format!("2026-11-01 {time}")))
                    .expect("placed")
            };
            let found = times.map(place).map(|(ms, _)| format_date_time(ms));
            for at in [0, 1, 3, 4, 5] {
                assert_eq!(found[at], format!("2026-11-01T{}", times[at]), "{damaged}");
            }
        }
    }

    #[test]
    fn only_the_next_stamp_tells_whether_the_zone_changed() {
        let mut calendar = Calendar::new(Some(0), 0);
        let mut place = |text: &str| {
            calendar.place_stamp(stamp(text)).expect("placed");
            calendar.may_be_wrong()
        };
        assert!(!place("2026-11-01 03:04:11"));
        assert!(place("2026-11-01 02:20:00"), "placed at 03:20:00");
        assert!(!place("2026-11-01 03:50:00"));
        assert!(!place("2026-11-01 02:20:00"), "there once more");
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
            let found = stamps.map(|text| calendar.place_stamp(stamp(text)).expect("placed"));
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
            calendar.place_stamp(stamp(first));
            calendar.place_stamp(stamp(second)).expect("placed").1
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
    fn the_header_tells_the_zone() {
        let local = parse_stamp(b"11/21 01:49:47").expect("valid").0;
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
}
