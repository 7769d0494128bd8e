//! The rows that teach an answer model: moments at which a hold could have been asked about, each
//! with a label that was known when the model learned.
//!
//! Hardly any release follows a question at once. So a moment is labelled by the hold's own release
//! only if that followed soon. Otherwise it is labelled by what happened to another job with the
//! same cause at about that time: its release, or a new hold, which is a failure.

use super::cause_kind::CauseKind;
use super::hold_history::{HoldHistory, LentOutcome};
use super::past_hold::{MAX_COUNTED, PastHold};

/// Number of moments at which each hold is asked about, besides its beginning and its end.
const MOMENTS_BETWEEN: u32 = 5;

/// Age of the first moment, in typical hold lengths.
const FIRST_AGE: f64 = 0.05;
/// Minimum age of the first moment, in ms.
const MIN_FIRST_AGE_MS: f64 = 1000.0;

/// Maximum time from the moment to the hold's own release, in typical hold lengths.
const OWN_RELEASE_WITHIN: f64 = 0.1;
/// Maximum time between the moment and another job's outcome, in typical hold lengths.
const LENT_WITHIN: f64 = 0.25;
/// Ratio of the distances of two outcomes from which on the nearer one counts although they differ.
const CLEARLY_NEARER: i64 = 4;
/// Time after the beginning of a hold within which another job's success shows that the fault
/// passes, in typical hold lengths.
pub(super) const PASSES_WITHIN: f64 = 8.0;
/// Weight of a lent outcome relative to the hold's own.
const LENT_WEIGHT: f64 = 3.0;

/// Share of the ages learned from that an age may not exceed.
const AGE_QUANTILE: f64 = 0.98;

/// Hold codes of holds on purpose: by a person, on submission, and for spooling.
const ON_PURPOSE: [i32; 3] = [1, 15, 16];

/// The way in which the labelled release came about. Owners repair faults before they release a job
/// by hand, and a log does not show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ReleaseWay {
    /// A person released the job.
    ByHand,
    /// The label is another job's outcome.
    Lent,
    /// A policy released the job, so nothing was repaired.
    ByItself,
}

impl ReleaseWay {
    /// The value of the column.
    pub(crate) fn value(self) -> f32 {
        match self {
            ReleaseWay::ByHand => 0.0,
            ReleaseWay::Lent => 0.5,
            ReleaseWay::ByItself => 1.0,
        }
    }

    fn new(is_automatic: bool) -> ReleaseWay {
        if is_automatic {
            ReleaseWay::ByItself
        } else {
            ReleaseWay::ByHand
        }
    }
}

/// A moment of a hold with its label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TaughtRow {
    /// Index of the hold.
    pub(crate) hold: usize,
    /// Prediction time, epoch ms.
    pub(crate) asked_ms: i64,
    pub(crate) is_success: bool,
    /// Time from which on the row can teach: its label is known, and the prediction time is over, epoch ms.
    pub(crate) decided_ms: i64,
    pub(crate) weight: f64,
    pub(crate) way: ReleaseWay,
}

/// A label, the certainty that it is the label of this moment, and its origin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MomentLabel {
    pub(crate) is_success: bool,
    /// Time of the release or of the hold that gave the label, epoch ms.
    at_ms: i64,
    /// Time at which it was known, epoch ms.
    decided_ms: i64,
    weight: f64,
    way: ReleaseWay,
}

impl MomentLabel {
    /// Returns true if nobody can have repaired the job before its release, because a policy released it.
    pub(crate) fn is_unrepaired(&self) -> bool {
        self.way == ReleaseWay::ByItself
    }

    /// Returns true if a person released the job, who may have repaired it before.
    pub(crate) fn is_by_hand(&self) -> bool {
        self.way == ReleaseWay::ByHand
    }
}

/// Rows for the two questions about a hold.
#[derive(Debug, Default)]
pub(crate) struct TaughtRows {
    /// Does it succeed if it is released now, unrepaired?
    pub(crate) now: Vec<TaughtRow>,
    /// Does it succeed if it is released later, unrepaired?
    pub(crate) later: Vec<TaughtRow>,
}

impl TaughtRows {
    /// Collects the rows whose labels were known at `known_ms`.
    pub(crate) fn until(history: &HoldHistory<'_>, known_ms: i64) -> TaughtRows {
        let mut rows = TaughtRows::default();
        for index in teaching_holds(history, known_ms) {
            rows.add_hold(history, index, known_ms);
        }
        rows
    }

    /// Returns true if the label of any row was known at `known_ms`.
    pub(crate) fn exist(history: &HoldHistory<'_>, known_ms: i64) -> bool {
        let mut rows = TaughtRows::default();
        teaching_holds(history, known_ms).any(|index| {
            rows.add_hold(history, index, known_ms);
            !rows.now.is_empty() || !rows.later.is_empty()
        })
    }

    /// Returns the ages of the holds at the moments of the question about now, in typical hold
    /// lengths, `[n]`.
    pub(crate) fn ages(&self, history: &HoldHistory<'_>) -> Vec<f64> {
        let age = |row: &TaughtRow| {
            let age_ms = row.asked_ms - history.holds[row.hold].hold_ms;
            age_ms as f64 / history.unit_ms(row.asked_ms)
        };
        self.now.iter().map(age).collect()
    }

    fn add_hold(&mut self, history: &HoldHistory<'_>, index: usize, known_ms: i64) {
        let hold = &history.holds[index];
        let moments = moments_of(history, hold, known_ms);
        let of_cluster = history.known_cause(CauseKind::ClusterReason, &hold.causes, known_ms);
        let share = 1.0 / (moments.len() as f64 * (of_cluster.held.len() as f64).sqrt());
        let row = |asked_ms, label: MomentLabel| TaughtRow {
            hold: index,
            asked_ms,
            is_success: label.is_success,
            decided_ms: label.decided_ms.max(asked_ms),
            weight: share * label.weight,
            way: label.way,
        };

        let passes = label_later(history, hold, known_ms);
        for asked_ms in moments {
            let now = label_now(history, hold, asked_ms, known_ms);
            self.now.extend(now.map(|label| row(asked_ms, label)));
            self.later.extend(passes.map(|label| row(asked_ms, label)));
        }
    }
}

/// Returns the indices of the holds before `known_ms` whose outcomes teach something.
fn teaching_holds(history: &HoldHistory<'_>, known_ms: i64) -> impl Iterator<Item = usize> {
    let holds = history.holds.iter().enumerate();
    let teaches = move |(_, hold): &(usize, &PastHold)| {
        hold.hold_ms < known_ms && !ON_PURPOSE.contains(&hold.code) && !hold.is_across_gap
    };
    holds.filter(teaches).map(|(index, _)| index)
}

/// Returns the age that few of `ages` exceed; 0 if there are none.
pub(crate) fn max_age(mut ages: Vec<f64>) -> f64 {
    ages.sort_unstable_by(f64::total_cmp);
    let last = ages.len().saturating_sub(1);
    let quantile = ages.get((last as f64 * AGE_QUANTILE) as usize);
    quantile.copied().unwrap_or(0.0)
}

/// Returns the label of `hold` for a release later, from what was known at `known_ms`. A job that
/// was given up says little about its fault if another job with the same cause succeeded soon after.
pub(crate) fn label_later(
    history: &HoldHistory<'_>,
    hold: &PastHold,
    known_ms: i64,
) -> Option<MomentLabel> {
    let own = hold.passes_later(known_ms);
    let label = |is_success, decided_ms, way| MomentLabel {
        is_success,
        at_ms: hold.hold_ms,
        decided_ms,
        weight: 1.0,
        way,
    };
    if own.is_none_or(|own| !own.is_success)
        && let Some(lent) = passes_for_others(history, hold, known_ms)
    {
        let way = if lent.is_by_hand {
            ReleaseWay::ByHand
        } else {
            ReleaseWay::Lent
        };
        return Some(label(true, lent.outcome.decided_ms(), way));
    }
    own.map(|own| {
        let way = ReleaseWay::new(own.is_automatic);
        label(own.is_success, own.decided_ms, way)
    })
}

/// Returns the success of another job with the same cause that was released after `hold` began, within a few typical
/// hold lengths; `None` if none was. A release by a person counts if there is no other one.
fn passes_for_others<'a>(
    history: &'a HoldHistory<'_>,
    hold: &PastHold,
    known_ms: i64,
) -> Option<&'a LentOutcome> {
    let kind = hold.causes.narrowest_kind();
    let lent = history.lent_successes(kind, &hold.causes);
    let until_ms = hold.hold_ms + (PASSES_WITHIN * history.unit_ms(hold.hold_ms)) as i64;
    let after = lent.partition_point(|one| one.at_ms <= hold.hold_ms);
    let soon = lent[after..].iter().take_while(|one| one.at_ms <= until_ms);
    let is_usable =
        |one: &&LentOutcome| one.job != hold.job && one.outcome.decided_ms() <= known_ms;
    let usable = soon.take(MAX_COUNTED).filter(is_usable);
    usable.min_by_key(|one| one.is_by_hand)
}

/// Returns the moments at which `hold` is asked about: soon after it begins, at ages spread evenly
/// in their logarithm, and at its end, which is at most `known_ms`.
fn moments_of(history: &HoldHistory<'_>, hold: &PastHold, known_ms: i64) -> Vec<i64> {
    let end_ms = match hold.end_ms {
        // Nothing of the second of the release is known, as at the end of a real question.
        Some(end_ms) if end_ms <= known_ms => end_ms.div_euclid(1000) * 1000 - 1,
        _ => known_ms,
    };
    let longest = (end_ms - hold.hold_ms).max(0) as f64;
    let first = (FIRST_AGE * history.unit_ms(hold.hold_ms)).max(MIN_FIRST_AGE_MS);
    let mut moments = Vec::new();
    if longest > first {
        // Each age is at least twice the one before it.
        let between = ((longest / first).log2() as u32).min(MOMENTS_BETWEEN);
        let steps = f64::from(between + 1);
        for step in 0..=between {
            let age = first * (longest / first).powf(f64::from(step) / steps);
            moments.push(hold.hold_ms + age as i64);
        }
    }
    moments.push(end_ms.max(hold.hold_ms));
    moments
}

/// Returns the outcome that settles an answer about `hold` at `asked_ms`: its label, unless that is a
/// later success and the last failure was about as near. The fault ended in between, and the log
/// does not show on which side of the question.
pub(crate) fn settled_outcome(
    history: &HoldHistory<'_>,
    hold: &PastHold,
    asked_ms: i64,
    known_ms: i64,
) -> Option<bool> {
    let label = label_now(history, hold, asked_ms, known_ms)?;
    let to_success_ms = label.at_ms - asked_ms;
    if !label.is_success || to_success_ms <= 0 {
        return Some(label.is_success);
    }
    let since_failure_ms = asked_ms - last_failure_ms(history, hold, asked_ms);
    (since_failure_ms >= CLEARLY_NEARER * to_success_ms).then_some(true)
}

/// Returns the time of the last failure with the cause of `hold` by `asked_ms`: of its own hold, of
/// another one, or of a run after a release.
fn last_failure_ms(history: &HoldHistory<'_>, hold: &PastHold, asked_ms: i64) -> i64 {
    let kind = hold.causes.narrowest_kind();
    let known = history.known_cause(kind, &hold.causes, asked_ms);
    let held_ms = known.held.last().copied().unwrap_or(hold.hold_ms);
    (known.last_decided_ms(false)).map_or(held_ms, |failed_ms| failed_ms.max(held_ms))
}

/// Returns the label of `hold` for a release at `asked_ms`, from what was known at `known_ms`:
/// its own outcome if it was released soon after, or else the nearest outcome that another hold
/// with the same cause lends. Returns `None` if there is neither.
pub(crate) fn label_now(
    history: &HoldHistory<'_>,
    hold: &PastHold,
    asked_ms: i64,
    known_ms: i64,
) -> Option<MomentLabel> {
    let unit_ms = history.unit_ms(asked_ms);
    let within = OWN_RELEASE_WITHIN * unit_ms;
    if let Some((release_ms, outcome)) = hold.release_ms.zip(hold.unrepaired_outcome()) {
        let gap = (release_ms - asked_ms) as f64;
        if gap <= within.max(MIN_FIRST_AGE_MS) && outcome.decided_ms() <= known_ms {
            return Some(MomentLabel {
                is_success: outcome.is_success(),
                at_ms: release_ms,
                decided_ms: outcome.decided_ms(),
                weight: (-gap.max(0.0) / within.max(1.0)).exp(),
                way: ReleaseWay::new(hold.is_automatic),
            });
        }
    }

    let kinds = [CauseKind::File, CauseKind::ClusterReason];
    let nearest = kinds.into_iter().find_map(|kind| {
        let lent = history.lent(kind, &hold.causes);
        nearest_outcome(lent, hold.job, asked_ms, known_ms, LENT_WITHIN * unit_ms)
    });
    nearest.map(|nearest| MomentLabel {
        is_success: nearest.outcome.is_success(),
        at_ms: nearest.at_ms,
        decided_ms: nearest.outcome.decided_ms(),
        weight: LENT_WEIGHT,
        way: ReleaseWay::Lent,
    })
}

/// Returns the outcome in `lent` that is nearest to `asked_ms` and at most `within_ms` away. It is one of
/// another job than `job`, and was known at `known_ms`. If the nearest outcomes on both
/// sides differ, one must be clearly nearer.
fn nearest_outcome(
    lent: &[LentOutcome],
    job: u32,
    asked_ms: i64,
    known_ms: i64,
    within_ms: f64,
) -> Option<&LentOutcome> {
    // What happens later cannot be known yet.
    let lent = &lent[..lent.partition_point(|one| one.at_ms <= known_ms)];
    let is_usable = |one: &&LentOutcome| one.job != job && one.outcome.decided_ms() <= known_ms;
    let middle = lent.partition_point(|one| one.at_ms <= asked_ms);
    let distance = |one: &LentOutcome| (one.at_ms - asked_ms).abs();
    let is_near = |one: &&LentOutcome| distance(one) as f64 <= within_ms;

    let before = lent[..middle]
        .iter()
        .rev()
        .take_while(is_near)
        .find(is_usable);
    let after = lent[middle..].iter().take_while(is_near).find(is_usable);
    let success = |one: &LentOutcome| one.outcome.is_success();
    match (before, after) {
        // The fault began or ended in between, and the log does not show on which side of it.
        (Some(before), Some(after)) if success(before) != success(after) => {
            let (near, far) = if distance(before) < distance(after) {
                (before, after)
            } else {
                (after, before)
            };
            (distance(far) >= CLEARLY_NEARER * distance(near)).then_some(near)
        }
        (Some(before), Some(after)) if distance(after) < distance(before) => Some(after),
        (Some(one), _) | (None, Some(one)) => Some(one),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_stores::{TestLog, log_with_outages};

    /// Returns the label of the first hold of job `cluster`, asked at second `asked_s`.
    fn label(log: &TestLog, cluster: i32, asked_s: i64, known_s: i64) -> Option<bool> {
        let store = log.store();
        let history = HoldHistory::new(&store);
        let jobs = store.jobs();
        let is_job = |hold: &&PastHold| jobs.get(hold.job as usize).cluster == cluster;
        let hold = history.holds.iter().find(is_job).expect("a hold");
        let label = label_now(&history, hold, asked_s * 1000, known_s * 1000)?;
        Some(label.is_success)
    }

    /// Returns a log whose typical hold lasts 1,000 s.
    fn log_of_long_holds() -> TestLog {
        let mut log = TestLog::default();
        for at in 0..9 {
            log.add_released(1, 100 + at, 1_100 + at, true);
        }
        log
    }

    #[test]
    fn own_release_labels_only_the_moments_just_before_it() {
        let mut log = log_of_long_holds();
        let job = log.add_released(7, 5_000, 6_000, true);
        assert_eq!(label(&log, job, 5_950, 9_000), Some(true));
        assert_eq!(
            label(&log, job, 5_800, 9_000),
            None,
            "200 s before the release"
        );
        assert_eq!(label(&log, job, 5_950, 6_005), None, "not decided yet");
    }

    #[test]
    fn other_jobs_of_the_cause_lend_their_outcomes() {
        let mut log = log_of_long_holds();
        let job = log.add_held(7, 5_000);
        log.add_released(7, 5_100, 6_000, true);
        assert_eq!(label(&log, job, 6_100, 9_000), Some(true));
        assert_eq!(label(&log, job, 7_000, 9_000), None, "1,000 s later");
        assert_eq!(
            label(&log, job, 5_090, 9_000),
            Some(false),
            "another hold begins"
        );
        log.add_released(8, 6_190, 6_195, false);
        assert_eq!(label(&log, job, 6_100, 9_000), Some(true), "another file");
    }

    #[test]
    fn outcomes_that_differ_on_both_sides_give_no_label() {
        let mut log = log_of_long_holds();
        let job = log.add_held(7, 5_000);
        log.add_released(7, 5_900, 6_200, true);
        assert_eq!(label(&log, job, 6_050, 9_000), None);
        assert_eq!(label(&log, job, 6_190, 9_000), Some(true), "clearly nearer");
        assert_eq!(label(&log, job, 5_910, 9_000), Some(false));
    }

    #[test]
    fn later_success_settles_an_answer_only_if_the_last_failure_is_far() {
        let mut log = log_of_long_holds();
        let job = log.add_held(7, 5_000);
        log.add_released(7, 5_900, 6_200, true);
        let store = log.store();
        let history = HoldHistory::new(&store);
        let jobs = store.jobs();
        let is_job = |hold: &&PastHold| jobs.get(hold.job as usize).cluster == job;
        let hold = history.holds.iter().find(is_job).expect("a hold");
        let settled = |asked_s: i64| settled_outcome(&history, hold, asked_s * 1000, 9_000_000);
        // The other job is held at 5,900 s, and succeeds after its release at 6,200 s.
        assert_eq!(settled(6_150), Some(true));
        assert_eq!(settled(6_130), None);
        assert_eq!(settled(5_910), Some(false));
        assert_eq!(settled(6_300), Some(true), "after the success");
    }

    #[test]
    fn success_after_a_repair_by_hand_is_not_one_by_itself() {
        let mut log = log_of_long_holds();
        log.add_held(7, 5_000);
        log.add_released(7, 5_100, 6_000, true);
        let way = |log: &TestLog| {
            let store = log.store();
            let history = HoldHistory::new(&store);
            let is_first = |hold: &&PastHold| hold.hold_ms == 5_000_000;
            let hold = history.holds.iter().find(is_first).expect("a hold");
            let label = label_later(&history, hold, 9_000_000).expect("a label");
            (label.is_success, label.way)
        };
        assert_eq!(way(&log), (true, ReleaseWay::Lent));
        log.release_last_job_by_hand();
        assert_eq!(way(&log), (true, ReleaseWay::ByHand));
        log.add_released(7, 5_200, 6_100, true);
        assert_eq!(way(&log), (true, ReleaseWay::Lent), "one by a policy");
    }

    #[test]
    fn every_label_was_known_when_it_teaches() {
        let store = log_with_outages(6).store();
        let history = HoldHistory::new(&store);
        for known_s in [11_000, 12_345, 14_000] {
            let known_ms = known_s * 1000;
            let rows = TaughtRows::until(&history, known_ms);
            assert!(!rows.now.is_empty() && !rows.later.is_empty());
            for row in rows.now.iter().chain(&rows.later) {
                assert!(
                    row.asked_ms <= known_ms && row.asked_ms >= history.holds[row.hold].hold_ms
                );
                assert!((row.asked_ms..=known_ms).contains(&row.decided_ms));
                assert!(row.weight > 0.0);
            }
            // The events after that time teach nothing.
            let end_ms = store.summary.end_ms;
            assert!(TaughtRows::until(&history, end_ms).now.len() > rows.now.len());
        }
    }
}
