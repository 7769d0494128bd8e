//! The time that the stages of a command still take, from the work that is counted and the time so far.

use poolcast_base::output;

/// Factor by which a time that is measured within a stage may be wrong.
const MEASURED_SPREAD: f64 = 1.2;
/// Factor by which a time that is foreseen from other stages may be wrong.
const FORESEEN_SPREAD: f64 = 1.6;
/// Share of a stage after which its own speed counts as much as what was foreseen.
const HALF_TRUSTED: f64 = 0.1;
/// Seconds of work at the expected speed that count beside the measured stages: a short stage says little.
const EXPECTED_BESIDE_S: f64 = 2.0;

/// The work of one stage, and what of it is done.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct StageWork {
    /// Time that the counted work takes on the machine on which the costs were measured, in seconds; `None` as long
    /// as the work is not counted.
    pub(super) expected_s: Option<f64>,
    /// Share of the work that is done, 0 to 1.
    pub(super) done: f64,
    /// Time that this share took, in seconds.
    pub(super) spent_s: f64,
    /// Time since, which went into the next part, in seconds.
    pub(super) since_s: f64,
}

/// Returns the bounds of the time until all of `stages` are done, in seconds; `None` if the work of one that has not
/// begun is unknown. A stage is foreseen at the speed of the stages before it, relative to the expected one. Its own
/// speed replaces that as it is measured.
pub(super) fn time_left(stages: &[StageWork]) -> Option<(f64, f64)> {
    let slowness = slowness(stages);
    let mut bounds = (0.0, 0.0);
    for stage in stages.iter().filter(|stage| stage.done < 1.0) {
        let rest = 1.0 - stage.done;
        let foreseen_s = stage.expected_s.map(|seconds| seconds * slowness * rest);
        let measured_s = (stage.done > 0.0).then(|| stage.spent_s * rest / stage.done);
        let (seconds, spread) = match (measured_s, foreseen_s) {
            (None, None) => return None,
            (Some(measured_s), None) => (measured_s, MEASURED_SPREAD),
            (None, Some(foreseen_s)) => (foreseen_s, FORESEEN_SPREAD),
            (Some(measured_s), Some(foreseen_s)) => {
                let trust = stage.done / (stage.done + HALF_TRUSTED);
                let mix = |measured: f64, foreseen: f64| {
                    measured.powf(trust) * foreseen.powf(1.0 - trust)
                };
                (
                    mix(measured_s, foreseen_s),
                    mix(MEASURED_SPREAD, FORESEEN_SPREAD),
                )
            }
        };
        // A part that takes longer than it should is never nearly done.
        let seconds = (seconds - stage.since_s).max(seconds / 2.0);
        bounds.0 += seconds / spread;
        bounds.1 += seconds * spread;
    }
    Some(bounds)
}

/// Returns the time that the work so far took, relative to the expected one.
fn slowness(stages: &[StageWork]) -> f64 {
    let (mut spent_s, mut expected_s) = (EXPECTED_BESIDE_S, EXPECTED_BESIDE_S);
    for stage in stages.iter().filter(|stage| stage.done > 0.0) {
        if let Some(seconds) = stage.expected_s {
            spent_s += stage.spent_s;
            expected_s += seconds * stage.done;
        }
    }
    spent_s / expected_s
}

/// Words for the `bounds` of a time, such as `40 s to 1 min 5 s left`.
pub(super) fn time_words((low_s, high_s): (f64, f64)) -> String {
    let [low, high] = [low_s, high_s].map(|seconds| {
        let step = match seconds {
            ..20.0 => 1.0,
            ..120.0 => 5.0,
            ..1200.0 => 30.0,
            _ => 300.0,
        };
        output::time_span(((seconds / step).round() * step * 1000.0) as i64)
    });
    if low == high {
        format!("about {high} left")
    } else {
        format!("{low} to {high} left")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(expected_s: Option<f64>, done: f64, spent_s: f64) -> StageWork {
        StageWork {
            expected_s,
            done,
            spent_s,
            since_s: 0.0,
        }
    }

    /// Returns the geometric middle of the bounds.
    fn middle(stages: &[StageWork]) -> f64 {
        let (low, high) = time_left(stages).expect("the work is known");
        (low * high).sqrt()
    }

    #[test]
    fn later_stages_are_foreseen_at_the_speed_of_earlier_ones() {
        let later = stage(Some(100.0), 0.0, 0.0);
        assert!((middle(&[later]) - 100.0).abs() < 1e-9);
        let slow = middle(&[stage(Some(50.0), 1.0, 150.0), later]);
        assert!((280.0..300.0).contains(&slow), "{slow}");
        let short = middle(&[stage(Some(0.1), 1.0, 0.3), later]);
        assert!((100.0..115.0).contains(&short), "{short}");
    }

    #[test]
    fn measured_speed_replaces_the_expected_one() {
        let of = |done: f64| middle(&[stage(Some(10.0), done, 100.0 * done)]);
        assert!((55.0..60.0).contains(&of(0.1)), "{}", of(0.1));
        assert!((47.0..50.0).contains(&of(0.5)), "{}", of(0.5));
        assert_eq!(time_left(&[stage(Some(10.0), 1.0, 99.0)]), Some((0.0, 0.0)));
    }

    #[test]
    fn time_within_a_part_of_the_work_counts() {
        let after = |since_s| {
            let half = stage(None, 0.5, 50.0);
            middle(&[StageWork { since_s, ..half }])
        };
        assert!((after(10.0) - 40.0).abs() < 1e-9, "{}", after(10.0));
        assert!((after(1000.0) - 25.0).abs() < 1e-9, "{}", after(1000.0));
    }

    #[test]
    fn time_is_unknown_until_the_work_is_counted() {
        let counted = stage(Some(1.0), 0.5, 1.0);
        assert_eq!(time_left(&[counted, stage(None, 0.0, 0.0)]), None);
        let measured = middle(&[stage(None, 0.25, 10.0)]);
        assert!((measured - 30.0).abs() < 1e-9, "{measured}");
    }

    #[test]
    fn times_are_rounded_like_their_precision() {
        assert_eq!(time_words((3.2, 3.4)), "about 3 s left");
        assert_eq!(time_words((41.0, 66.0)), "40 s to 1 min 5 s left");
        assert_eq!(
            time_words((1000.0, 5000.0)),
            "16 min 30 s to 1 h 25 min left"
        );
        assert!(time_words((f64::INFINITY, f64::INFINITY)).ends_with(" left"));
    }
}
