//! Compares earlier answers with a later log, and counts the correct ones.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use super::answer_ledger::{GivenAnswer, HoldKey};
use htcondor_eventlog::DecidedBy;
use poolcast_base::stats::wilson_lower;
use poolcast_config::LabelKind;
use poolcast_events::{EventStore, StoredJob};
use poolcast_holds::answers::{FAILED_RELEASES, RELEASES_UNTIL_PASSED, is_visibly_repaired};
use poolcast_holds::decision::{AnswerFirmness, HoldAction, answer_rank};
use poolcast_tensors::{ExclusionReason, HoldCycle, HoldOutcome, hold_cycles};

/// Outcomes of the holds that got one kind of answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnswerOutcomes {
    /// The action that was recommended.
    pub action: HoldAction,
    /// Certainty of the answer.
    pub firmness: Option<AnswerFirmness>,
    /// Holds that got this answer.
    pub given: usize,
    /// Holds among `given` that are missing from the log.
    pub not_in_log: usize,
    /// Holds among `given` that still last when the log ends.
    pub still_held: usize,
    /// Holds among `given` that ended in a release.
    pub released: usize,
    /// Holds among `given` with an outcome that settles the answer.
    pub decided: usize,
    /// Holds among `given` with a success that settles nothing: after `fix`, if no repair is known. A person may
    /// have done what was asked for where no log shows it.
    pub undecided: usize,
    /// Successes among `decided`.
    pub succeeded: usize,
    /// Successes among `decided` after a repair: the log shows that the job was changed, the answer
    /// printed the command that raises its request, or a look found its file missing and another
    /// one found it there.
    pub repaired: usize,
    /// Other successes among `decided`, after a release that no policy made. A person may have
    /// repaired these jobs where the log does not show it.
    pub maybe_repaired: usize,
    /// Clusters of the jobs in `decided`.
    pub clusters: usize,
    /// Correct answers among `decided` (see below). Absent for other actions than `release`, `fix`,
    /// `remove` and `later`.
    pub right: Option<usize>,
    /// Wilson's 95 % interval of the share of correct answers, where jobs of one cluster count as
    /// one. Absent without `right` or outcomes.
    pub interval: Option<(f64, f64)>,
    /// Shares of correct answers if all jobs in `maybe_repaired` and `undecided` were repaired, and if none was,
    /// in ascending order. Absent without `right` or outcomes.
    pub range: Option<(f64, f64)>,
}

/// The outcome that settles an answer.
#[derive(Debug, Clone, Copy)]
struct AnswerOutcome {
    is_success: bool,
    /// True if the job or its file is known to have been changed before it ran again.
    is_repaired: bool,
    /// True if a policy made the release.
    is_automatic: bool,
}

/// Outcomes of all answers.
#[derive(Debug, Clone, Serialize)]
pub struct AnswerCheck {
    /// Prediction time of the first answer, epoch ms; absent if there are no answers.
    pub since_ms: Option<i64>,
    /// End of the log, epoch ms.
    pub log_end_ms: i64,
    /// Totals over all answers, as on the page of `advise`; absent if no answer is settled.
    pub total: Option<AnswerTally>,
    /// Outcomes by kind of answer, in display order. Of several answers with one action for one
    /// hold, the last one counts.
    pub answers: Vec<AnswerOutcomes>,
}

/// Totals over all answers given earlier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AnswerTally {
    /// Prediction time of the first answer, epoch ms.
    pub since_ms: i64,
    /// Answers that are known to be right or wrong.
    pub decided: usize,
    /// Correct answers among `decided`.
    pub right: usize,
    /// Settled answers by action, in display order.
    pub kinds: Vec<ActionTally>,
}

/// Totals over the answers with one action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ActionTally {
    /// The action that was recommended.
    pub action: HoldAction,
    /// Settled answers.
    pub decided: usize,
    /// Jobs of these answers that succeeded.
    pub succeeded: usize,
    /// Correct answers among `decided`. Absent for probes, which are neither right nor wrong.
    pub right: Option<usize>,
}

impl AnswerTally {
    /// Adds up the rows; `None` if no answer is settled.
    fn from_rows(since_ms: Option<i64>, rows: &[AnswerOutcomes]) -> Option<AnswerTally> {
        let kinds: Vec<ActionTally> = (HoldAction::COUNTED.into_iter())
            .filter_map(|action| ActionTally::from_rows(action, rows))
            .collect();
        let judged = || kinds.iter().filter(|kind| kind.right.is_some());
        (!kinds.is_empty()).then_some(AnswerTally {
            since_ms: since_ms?,
            decided: judged().map(|kind| kind.decided).sum(),
            right: judged().filter_map(|kind| kind.right).sum(),
            kinds: kinds.clone(),
        })
    }
}

impl ActionTally {
    /// Adds up the rows of `action`; `None` if none of its answers is settled, or if they are never
    /// counted.
    fn from_rows(action: HoldAction, rows: &[AnswerOutcomes]) -> Option<ActionTally> {
        let rows = || rows.iter().filter(|row| row.action == action);
        let decided = rows().map(|row| row.decided).sum();
        let is_counted = is_checkable(action) || action == HoldAction::Probe;
        (is_counted && decided > 0).then(|| ActionTally {
            action,
            decided,
            succeeded: rows().map(|row| row.succeeded).sum(),
            right: is_checkable(action).then(|| rows().filter_map(|row| row.right).sum()),
        })
    }
}

/// Earlier answers, each with its outcome in a later log.
#[derive(Debug)]
pub struct CheckedAnswers<'a> {
    answers: Vec<CheckedAnswer<'a>>,
    log_end_ms: i64,
}

/// An answer, with what the log shows of its hold.
#[derive(Debug, Clone, Copy)]
struct CheckedAnswer<'a> {
    answer: &'a GivenAnswer,
    /// The hold; `None` if it is not in the log.
    hold: Option<CheckedHold>,
}

/// The hold of an answer.
#[derive(Debug, Clone, Copy)]
struct CheckedHold {
    /// Access point and number of the job's cluster.
    cluster: (u32, i32),
    is_still_held: bool,
    is_released: bool,
    /// The outcome that settles the answer, if there is one.
    outcome: Option<AnswerOutcome>,
}

impl<'a> CheckedAnswers<'a> {
    /// Looks up the outcome of each answer in `given` by the end of `store`. If a hold got several
    /// answers, the last one with each action counts.
    pub fn new(given: &'a [GivenAnswer], store: &EventStore) -> CheckedAnswers<'a> {
        let log_end_ms = store.summary.end_ms;
        let mut answers = Vec::new();
        if given.is_empty() {
            return CheckedAnswers {
                answers,
                log_end_ms,
            };
        }
        let by_hold = answers_by_hold(given);
        let mut found: HashSet<&HoldKey> = HashSet::new();
        for job in store.jobs().iter() {
            let ap = &store.summary.aps[job.ap as usize];
            let cycles = hold_cycles(job.history, LabelKind::Next, store.gaps(job.ap));
            for (at, cycle) in cycles.iter().enumerate() {
                let key = (
                    ap.clone(),
                    job.cluster,
                    job.proc,
                    job.submit_ms,
                    job.history.time_ms[cycle.hold],
                );
                let Some((key, of_hold)) = by_hold.get_key_value(&key) else {
                    continue;
                };
                // Several holds of a job may begin in one second. The last of them counts.
                let is_again = !found.insert(key);
                if is_again {
                    answers.truncate(answers.len() - of_hold.len());
                }
                for (index, &answer) in of_hold.iter().enumerate() {
                    let hold = CheckedHold::new(answer, &job, &cycles[at..], &of_hold[index + 1..]);
                    answers.push(CheckedAnswer {
                        answer,
                        hold: Some(hold),
                    });
                }
            }
        }
        let missing = by_hold.iter().filter(|(key, _)| !found.contains(key));
        answers.extend(
            missing
                .flat_map(|(_, of_hold)| of_hold)
                .map(|&answer| CheckedAnswer { answer, hold: None }),
        );
        CheckedAnswers {
            answers,
            log_end_ms,
        }
    }

    /// Counts the outcomes by kind of answer.
    pub fn check(&self) -> AnswerCheck {
        self.check_of(|_| true)
    }

    /// Like [`CheckedAnswers::check`], but only for answers that were given at `from_ms` or later,
    /// and not by a look at a file: a model and rules have promised nothing about these.
    pub fn check_since(&self, from_ms: i64) -> AnswerCheck {
        self.check_of(|answer| answer.asked_ms >= from_ms && !answer.is_looked)
    }

    /// Like [`CheckedAnswers::check`], but only for the answers that `is_chosen` selects.
    fn check_of(&self, is_chosen: impl Fn(&GivenAnswer) -> bool) -> AnswerCheck {
        let chosen = || {
            let answers = self.answers.iter();
            answers.filter(|checked| is_chosen(checked.answer))
        };
        let mut counts: BTreeMap<u8, RowCounts> = BTreeMap::new();
        for checked in chosen() {
            let GivenAnswer {
                action, firmness, ..
            } = *checked.answer;
            let rank = 2 * answer_rank(action, firmness) + u8::from(firmness.is_none());
            let row = counts
                .entry(rank)
                .or_insert_with(|| RowCounts::none(action, firmness));
            row.add(checked.hold);
        }
        let since_ms = chosen().map(|checked| checked.answer.asked_ms).min();
        let answers: Vec<AnswerOutcomes> = counts.into_values().map(RowCounts::finish).collect();
        AnswerCheck {
            since_ms,
            log_end_ms: self.log_end_ms,
            total: AnswerTally::from_rows(since_ms, &answers),
            answers,
        }
    }
}

/// Returns the last answer with each action that a hold got, in the order in which they were given.
fn answers_by_hold(given: &[GivenAnswer]) -> HashMap<HoldKey, Vec<&GivenAnswer>> {
    let mut by_hold: HashMap<HoldKey, Vec<&GivenAnswer>> = HashMap::new();
    for answer in given {
        let of_hold = by_hold.entry(answer.hold()).or_default();
        of_hold.retain(|before| before.action != answer.action);
        of_hold.push(answer);
    }
    by_hold
}

impl CheckedHold {
    /// Looks at the hold of `answer`, which is the first of `cycles`. The answers `next` have replaced this one.
    fn new(
        answer: &GivenAnswer,
        job: &StoredJob<'_>,
        cycles: &[HoldCycle],
        next: &[&GivenAnswer],
    ) -> CheckedHold {
        let cycle = &cycles[0];
        let is_current = next.is_empty();
        let outcome = match answer.action {
            // It is about the moment in which it was given: another answer came before the release.
            HoldAction::Release if !is_current => None,
            HoldAction::Probe if !is_current || !answer.is_probe() => None,
            HoldAction::Later => AnswerOutcome::of_next_releases(job, cycles),
            HoldAction::Fix => AnswerOutcome::of_release(job, cycle)
                .map(|outcome| outcome.after_repair(answer.is_obeyed(next))),
            _ => AnswerOutcome::of_release(job, cycle),
        };
        CheckedHold {
            cluster: (job.ap, job.cluster),
            is_still_held: cycle.outcome == HoldOutcome::LeftOut(ExclusionReason::StillHeld),
            is_released: cycle.is_released(&job.history),
            outcome,
        }
    }
}

impl AnswerOutcome {
    /// Returns the outcome of the release that ended the hold of `cycle`, if it is known.
    fn of_release(job: &StoredJob<'_>, cycle: &HoldCycle) -> Option<AnswerOutcome> {
        let HoldOutcome::Label(is_success) = cycle.outcome else {
            return None;
        };
        let by_policy = |end: usize| job.history.value[end] == DecidedBy::Policy as i32;
        Some(AnswerOutcome {
            is_success,
            is_repaired: is_success && is_visibly_repaired(job, cycle),
            is_automatic: cycle.is_released(&job.history) && cycle.end.is_some_and(by_policy),
        })
    }

    /// Returns what the next releases of the job show of its fault: a success if one of three
    /// succeeded, or else a failure if two failed. A repair that the log shows hides if the fault
    /// has passed.
    fn of_next_releases(job: &StoredJob<'_>, cycles: &[HoldCycle]) -> Option<AnswerOutcome> {
        let next = cycles.iter().take(RELEASES_UNTIL_PASSED);
        let outcomes = next.filter_map(|cycle| AnswerOutcome::of_release(job, cycle));
        let mut failures = Vec::new();
        for outcome in outcomes {
            if outcome.is_success {
                return Some(outcome).filter(|outcome| !outcome.is_repaired);
            }
            failures.push(outcome);
        }
        let is_refuted = failures.len() >= FAILED_RELEASES as usize;
        failures.first().filter(|_| is_refuted).copied()
    }

    /// Returns the outcome, with a success as one after a repair if `is_repaired`.
    fn after_repair(self, is_repaired: bool) -> AnswerOutcome {
        AnswerOutcome {
            is_repaired: self.is_repaired || self.is_success && is_repaired,
            ..self
        }
    }

    /// Returns true if `action` was right, and `None` if the outcome does not show it. `release` and `later` are
    /// right if the job succeeded, and `remove` if it did not. `fix` is right if it failed, or succeeded after a
    /// repair. Any other success may be one, too: the fault may have been fixed as the answer asks.
    fn is_right(self, action: HoldAction) -> Option<bool> {
        match action {
            HoldAction::Release | HoldAction::Probe | HoldAction::Later => Some(self.is_success),
            HoldAction::Fix => (!self.is_success || self.is_repaired).then_some(true),
            HoldAction::Remove | HoldAction::Leave | HoldAction::None => Some(!self.is_success),
        }
    }
}

/// Returns true if answers with `action` are right or wrong. A probe is a question.
fn is_checkable(action: HoldAction) -> bool {
    !matches!(
        action,
        HoldAction::Probe | HoldAction::Leave | HoldAction::None
    )
}

/// The counts of one kind of answer.
struct RowCounts {
    row: AnswerOutcomes,
    /// Clusters of the jobs with an outcome.
    clusters: HashSet<(u32, i32)>,
}

impl RowCounts {
    fn none(action: HoldAction, firmness: Option<AnswerFirmness>) -> RowCounts {
        let row = AnswerOutcomes {
            action,
            firmness,
            given: 0,
            not_in_log: 0,
            still_held: 0,
            released: 0,
            decided: 0,
            undecided: 0,
            succeeded: 0,
            repaired: 0,
            maybe_repaired: 0,
            clusters: 0,
            right: is_checkable(action).then_some(0),
            interval: None,
            range: None,
        };
        RowCounts {
            row,
            clusters: HashSet::new(),
        }
    }

    /// Adds an answer. `hold` is `None` if its hold is not in the log.
    fn add(&mut self, hold: Option<CheckedHold>) {
        self.row.given += 1;
        let Some(hold) = hold else {
            self.row.not_in_log += 1;
            return;
        };
        self.row.still_held += usize::from(hold.is_still_held);
        self.row.released += usize::from(hold.is_released);
        if let Some(outcome) = hold.outcome {
            self.add_outcome(outcome, hold.cluster);
        }
    }

    fn add_outcome(&mut self, outcome: AnswerOutcome, cluster: (u32, i32)) {
        let row = &mut self.row;
        let Some(is_right) = outcome.is_right(row.action) else {
            row.undecided += 1;
            return;
        };
        let is_maybe_repaired = outcome.is_success && !outcome.is_repaired && !outcome.is_automatic;
        row.decided += 1;
        row.succeeded += usize::from(outcome.is_success);
        row.repaired += usize::from(outcome.is_repaired);
        row.maybe_repaired += usize::from(is_maybe_repaired);
        if let Some(right) = &mut row.right {
            *right += usize::from(is_right);
        }
        self.clusters.insert(cluster);
    }

    /// Completes the row with the intervals.
    fn finish(self) -> AnswerOutcomes {
        let RowCounts { mut row, clusters } = self;
        row.clusters = clusters.len();
        if let Some(right) = row.right.filter(|_| row.decided > 0) {
            let share = |right: usize| right as f64 / row.decided as f64;
            let upper = 1.0 - wilson_lower(1.0 - share(right), clusters.len());
            row.interval = Some((wilson_lower(share(right), clusters.len()), upper));
            let all = (row.decided + row.undecided) as f64;
            row.range = Some(match row.action {
                HoldAction::Later => (share(right - row.maybe_repaired), share(right)),
                _ => (right as f64 / all, (right + row.undecided) as f64 / all),
            });
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::super::job_command::{JobId, RaisedRequest, RequestAttribute};
    use super::*;
    use htcondor_eventlog::ATTRIBUTE_UPDATE;
    use htcondor_eventlog::{ABORTED, EXECUTE, HELD, RELEASED, SUBMIT, TERMINATED};
    use test_stores::TestLog;

    const FIRM: Option<AnswerFirmness> = Some(AnswerFirmness::Firm);

    /// Returns the outcome of one answer, after a release by a person.
    fn outcome(is_success: bool, is_repaired: bool) -> AnswerOutcome {
        AnswerOutcome {
            is_success,
            is_repaired,
            is_automatic: false,
        }
    }

    /// Returns a row of answers about jobs of different clusters.
    fn row(action: HoldAction, outcomes: &[AnswerOutcome]) -> AnswerOutcomes {
        let mut counts = RowCounts::none(action, None);
        for (outcome, cluster) in outcomes.iter().zip(0..) {
            counts.add(Some(CheckedHold {
                cluster: (0, cluster),
                is_still_held: false,
                is_released: true,
                outcome: Some(*outcome),
            }));
        }
        counts.finish()
    }

    #[test]
    fn every_decided_answer_counts() {
        let (succeeded, failed) = (outcome(true, false), outcome(false, false));
        let rows = [
            row(HoldAction::Release, &[succeeded, succeeded, failed]),
            row(HoldAction::Probe, &[succeeded, failed]),
            row(HoldAction::Fix, &[succeeded, succeeded, failed]),
            row(HoldAction::Later, &[succeeded, failed]),
            row(HoldAction::Remove, &[succeeded, failed, failed]),
            row(HoldAction::None, &[succeeded, failed]),
        ];
        let tally = AnswerTally::from_rows(Some(7), &rows).expect("decided");
        assert_eq!((tally.since_ms, tally.decided), (7, 3 + 1 + 2 + 3));
        assert_eq!(tally.right, 2 + 1 + 1 + 2);
        let kinds = tally.kinds.iter();
        let kinds: Vec<_> = kinds
            .map(|kind| (kind.action, kind.decided, kind.succeeded, kind.right))
            .collect();
        assert_eq!(
            kinds,
            [
                (HoldAction::Release, 3, 2, Some(2)),
                (HoldAction::Probe, 2, 1, None),
                (HoldAction::Fix, 1, 0, Some(1)),
                (HoldAction::Remove, 3, 1, Some(2)),
                (HoldAction::Later, 2, 1, Some(1)),
            ]
        );
    }

    #[test]
    fn success_after_fix_is_right_if_repaired_and_never_wrong() {
        let is_right =
            |is_success, is_repaired| outcome(is_success, is_repaired).is_right(HoldAction::Fix);
        assert_eq!(
            [
                is_right(true, false),
                is_right(true, true),
                is_right(false, false)
            ],
            [None, Some(true), Some(true)]
        );
    }

    #[test]
    fn hidden_repairs_leave_a_range() {
        let by_policy = AnswerOutcome {
            is_automatic: true,
            ..outcome(true, false)
        };
        let (by_hand, seen, failed) = (
            outcome(true, false),
            outcome(true, true),
            outcome(false, false),
        );
        let fix = row(HoldAction::Fix, &[by_policy, by_hand, seen, failed]);
        assert_eq!((fix.decided, fix.right, fix.undecided), (2, Some(2), 2));
        assert_eq!(fix.range, Some((0.5, 1.0)));
        let later = row(HoldAction::Later, &[by_policy, by_hand, failed, failed]);
        assert_eq!(later.range, Some((0.25, 0.5)));
        let release = row(HoldAction::Release, &[by_hand, failed]);
        assert_eq!(release.range, Some((0.5, 0.5)));
    }

    #[test]
    fn jobs_of_one_cluster_count_as_one_in_the_interval() {
        let failed = outcome(false, false);
        let many = row(HoldAction::Fix, &[failed; 10]).interval.expect("some");
        assert!(
            (many.0 - 0.722_467).abs() < 1e-6 && many.1 > 0.999,
            "{many:?}"
        );
        let mut counts = RowCounts::none(HoldAction::Fix, FIRM);
        for _ in 0..10 {
            counts.add_outcome(failed, (0, 1));
        }
        let one = counts.finish();
        assert_eq!((one.decided, one.clusters), (10, 1));
        assert!(one.interval.expect("some").0 < 0.21, "{:?}", one.interval);
    }

    #[test]
    fn tally_is_none_without_decided_answers() {
        let tally = |rows: &[AnswerOutcomes]| AnswerTally::from_rows(Some(7), rows);
        assert_eq!(tally(&[]), None);
        assert_eq!(
            tally(&[row(HoldAction::None, &[outcome(true, false)])]),
            None
        );
        assert_eq!(tally(&[row(HoldAction::Release, &[])]), None);
    }

    /// Returns the row of one answer `action` about the first hold of a job, which is held at second
    /// 100 and whose releases end like `releases`: a success, a failure, or unknown at the end.
    fn checked(action: HoldAction, releases: &[Option<bool>]) -> AnswerOutcomes {
        let mut log = TestLog::default();
        let mut events = vec![(91, SUBMIT, 0), (98, EXECUTE, 0), (100, HELD, 7)];
        for (release, at) in releases.iter().zip(1..) {
            let released_s = 100 * (at + 1);
            events.extend([(released_s, RELEASED, 0), (released_s + 1, EXECUTE, 0)]);
            let end = (*release).map(|is_success| if is_success { TERMINATED } else { HELD });
            events.extend(end.map(|number| (released_s + 9, number, 7)));
        }
        log.add(&events);
        log.add_held(9, 5_000);
        let given = [GivenAnswer::of_test_job(1, 100, action)];
        let check = CheckedAnswers::new(&given, &log.store()).check();
        let [row] = &check.answers[..] else {
            panic!("one kind of answer: {check:?}");
        };
        row.clone()
    }

    #[test]
    fn later_is_settled_by_the_next_three_releases() {
        let settled = |releases: &[Option<bool>]| {
            let row = checked(HoldAction::Later, releases);
            (row.decided, row.right)
        };
        assert_eq!(settled(&[Some(true)]), (1, Some(1)));
        assert_eq!(settled(&[Some(false)]), (0, Some(0)), "it may still pass");
        assert_eq!(settled(&[Some(false), Some(true)]), (1, Some(1)));
        let third = [Some(false), Some(false), Some(true)];
        assert_eq!(settled(&third), (1, Some(1)));
        assert_eq!(settled(&third[..2]), (1, Some(0)));
        let fourth = [Some(false), Some(false), Some(false), Some(true)];
        assert_eq!(settled(&fourth), (1, Some(0)));
        assert_eq!(settled(&[None]), (0, Some(0)));
    }

    #[test]
    fn fix_is_settled_by_the_next_release() {
        let settled = |releases: &[Option<bool>]| {
            let row = checked(HoldAction::Fix, releases);
            (row.decided, row.right)
        };
        assert_eq!(settled(&[Some(true)]), (0, Some(0)));
        assert_eq!(settled(&[Some(false), Some(true)]), (1, Some(1)));
    }

    #[test]
    fn success_after_fix_is_a_repair_if_what_was_asked_for_was_done() {
        let mut log = TestLog::default();
        log.add_released(7, 100, 200, true);
        let store = log.store();
        let fix = || GivenAnswer::of_test_job(1, 100, HoldAction::Fix);
        let looked = |answer| GivenAnswer {
            is_looked: true,
            ..answer
        };
        let release = || GivenAnswer::of_test_job(1, 100, HoldAction::Release);
        let settled = |given: &[GivenAnswer]| {
            let check = CheckedAnswers::new(given, &store).check();
            let row = &check.answers[check.answers.len() - 1];
            assert_eq!(row.action, HoldAction::Fix);
            (row.undecided, row.repaired, row.right)
        };
        let (unknown, repaired) = ((1, 0, Some(0)), (0, 1, Some(1)));
        assert_eq!(settled(&[fix()]), unknown);
        let raised = GivenAnswer {
            raise: Some(RaisedRequest {
                attribute: RequestAttribute::RequestMemory,
                number: 3072,
            }),
            ..fix()
        };
        assert_eq!(settled(&[raised]), repaired, "the command was printed");
        assert_eq!(settled(&[looked(fix())]), unknown, "nobody looked again");
        let found = [looked(fix()), looked(release())];
        assert_eq!(settled(&found), repaired, "it was missing, and then there");
        assert_eq!(settled(&[looked(fix()), release()]), unknown);
        assert_eq!(settled(&[fix(), looked(release())]), unknown);
        assert_eq!(settled(&[looked(release()), looked(fix())]), unknown);
    }

    #[test]
    fn repair_hides_if_the_fault_has_passed() {
        let mut log = TestLog::default();
        log.add(&[
            (91, SUBMIT, 0),
            (98, EXECUTE, 0),
            (100, HELD, 7),
            (150, ATTRIBUTE_UPDATE, 0),
            (200, RELEASED, 0),
            (209, TERMINATED, 0),
        ]);
        let store = log.store();
        for (action, expected) in [(HoldAction::Later, 0), (HoldAction::Fix, 1)] {
            let given = [GivenAnswer::of_test_job(1, 100, action)];
            let check = CheckedAnswers::new(&given, &store).check();
            assert_eq!(check.answers[0].decided, expected, "{action:?}");
        }
    }

    #[test]
    fn replaced_answers_count_only_if_they_are_about_the_fault() {
        let mut log = TestLog::default();
        log.add_released(7, 100, 200, true);
        let store = log.store();
        let given = [
            HoldAction::Release,
            HoldAction::Fix,
            HoldAction::Later,
            HoldAction::Fix,
            HoldAction::None,
        ]
        .map(|action| GivenAnswer::of_test_job(1, 100, action));
        let check = CheckedAnswers::new(&given, &store).check();
        let rows = check.answers.iter();
        let rows: Vec<_> = rows
            .map(|row| (row.action, row.given, row.decided, row.right))
            .collect();
        assert_eq!(
            rows,
            [
                (HoldAction::Release, 1, 0, Some(0)),
                (HoldAction::Fix, 1, 0, Some(0)),
                (HoldAction::Later, 1, 1, Some(1)),
                (HoldAction::None, 1, 1, None),
            ]
        );
    }

    #[test]
    fn only_the_released_jobs_of_a_probe_count() {
        let mut log = TestLog::default();
        log.add_released(7, 100, 200, true);
        log.add_released(7, 100, 300, true);
        let store = log.store();
        let given = [1, 2].map(|cluster| GivenAnswer {
            probes: vec![JobId {
                cluster: 1,
                proc: 0,
            }],
            ..GivenAnswer::of_test_job(cluster, 100, HoldAction::Probe)
        });
        let check = CheckedAnswers::new(&given, &store).check();
        let row = &check.answers[0];
        assert_eq!((row.given, row.decided, row.succeeded), (2, 1, 1));
        assert_eq!((row.right, row.interval), (None, None));
        let total = check.total.expect("settled");
        assert_eq!((total.decided, total.kinds.len()), (0, 1));
    }

    #[test]
    fn answers_before_a_time_are_left_out() {
        let mut log = TestLog::default();
        log.add_released(7, 100, 200, true);
        log.add_released(7, 100, 200, true);
        log.add(&[(91, SUBMIT, 0), (100, HELD, 7), (160, ABORTED, 0)]);
        let store = log.store();
        let given = [(1, 110), (2, 120), (3, 130), (9, 140)].map(|(cluster, asked_s)| {
            let asked_ms = 1000 * asked_s;
            GivenAnswer {
                asked_ms,
                ..GivenAnswer::of_test_job(cluster, 100, HoldAction::Release)
            }
        });
        let answers = CheckedAnswers::new(&given, &store);
        let counts = |from_ms| {
            let check = answers.check_since(from_ms);
            let row = &check.answers[0];
            (check.since_ms, row.given, row.decided, row.not_in_log)
        };
        assert_eq!(counts(i64::MIN), (Some(110_000), 4, 2, 1));
        assert_eq!(counts(120_000), (Some(120_000), 3, 1, 1));
    }
}
