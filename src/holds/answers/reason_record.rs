//! What became of all jobs that were held for one reason, and the highest chance of success that it allows.

use super::cause_kind::CauseKind;
use super::hold_history::HoldHistory;
use super::past_hold::PastHold;
use super::taught_rows::PASSES_WITHIN;
use super::thing_state::success_lower;

/// Decided outcomes from which on something is known: about a kind of reason, the owner with a code, or a named
/// file. With fewer, one case could decide.
pub const MIN_TAUGHT_OUTCOMES: usize = 3;

/// The outcomes of the holds for one reason that are known at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReasonRecord {
    /// Outcomes of holds whose reasons state the same.
    pub outcomes: usize,
    /// Failures after a release, if no job got past such a hold: one for the same reason, or one whose reason
    /// states the same; there are more of the latter. 0 if a job did.
    pub failures: usize,
    /// Those of them that are longer ago than a fault takes to pass. All failures of one outage say the same, and
    /// these say that the fault has stayed since.
    pub lasting_failures: usize,
}

impl ReasonRecord {
    /// Returns what is known at `asked_ms` about the reason of `hold`.
    pub(crate) fn known(history: &HoldHistory<'_>, hold: &PastHold, asked_ms: i64) -> ReasonRecord {
        let known = |kind| history.known_cause(kind, &hold.causes, asked_ms);
        let of_stated = known(CauseKind::Stated);
        let is_file_read = hold.causes.names_file() && !known(CauseKind::File).passes.is_empty();
        let passes_within_ms = (PASSES_WITHIN * history.unit_ms(asked_ms)) as i64;
        let failures_by = |time_ms| {
            let of_kinds = [of_stated, known(CauseKind::Reason)];
            let unbroken = of_kinds.iter().filter(|_| !is_file_read);
            let failures = unbroken.filter(|known| known.passes.is_empty());
            let failures = failures.map(|known| known.failures_by(time_ms));
            failures.max().unwrap_or(0)
        };
        ReasonRecord {
            outcomes: of_stated.outcomes.len(),
            failures: failures_by(asked_ms),
            lasting_failures: failures_by(asked_ms - passes_within_ms),
        }
    }

    /// Returns true if enough outcomes of holds whose reasons state the same are known.
    pub fn is_known(&self) -> bool {
        self.outcomes >= MIN_TAUGHT_OUTCOMES
    }

    /// Returns true if enough released jobs failed again, and none is known to have got past such a hold.
    pub fn never_passed(&self) -> bool {
        self.failures >= MIN_TAUGHT_OUTCOMES
    }

    /// Returns the highest chance of success, now or later, that the failures leave: the upper end of the one-sided
    /// 90 % interval of Clopper and Pearson (1934) for no success among them; 1 without any.
    pub(crate) fn success_upper(&self) -> f64 {
        1.0 - success_lower(self.lasting_failures).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_stores::TestLog;

    /// Returns the record of the reason of the last hold of `log`, asked about at second `asked_s`.
    fn record(log: &TestLog, asked_s: i64) -> ReasonRecord {
        let store = log.store();
        let history = HoldHistory::new(&store);
        let hold = history.holds.last().expect("a hold");
        ReasonRecord::known(&history, hold, asked_s * 1000)
    }

    /// Returns a log of `failures` jobs that were released after a minute, one every two minutes, and held again,
    /// and of one that is held at second 10,000.
    fn log_of_failures(failures: i64) -> TestLog {
        let mut log = TestLog::default();
        for at in 0..failures {
            log.add_released(7, 100 + 120 * at, 160 + 120 * at, false);
        }
        log.add_held(7, 10_000);
        log
    }

    #[test]
    fn failures_without_a_success_bound_the_odds() {
        let never = record(&log_of_failures(26), 10_060);
        assert_eq!(
            (never.outcomes, never.failures, never.lasting_failures),
            (26, 26, 26)
        );
        assert!(never.is_known() && never.never_passed());
        // 0.915 of 26 jobs that succeed with this probability would all fail in one of ten cases.
        assert!((never.success_upper() - 0.085).abs() < 0.001, "{never:?}");
        assert_eq!(ReasonRecord::default().success_upper(), 1.0);

        let few = record(&log_of_failures(2), 10_060);
        assert!(!few.is_known() && !few.never_passed());
    }

    #[test]
    fn failures_of_one_outage_bound_no_odds() {
        // A typical hold lasts a minute, so that the failures of the last eight minutes say nothing yet.
        let record = record(&log_of_failures(26), 180 + 25 * 120);
        assert_eq!(record.failures, 26);
        assert!((20..24).contains(&record.lasting_failures), "{record:?}");
    }

    #[test]
    fn one_success_refutes_all_failures() {
        let passed = |file| {
            let mut log = log_of_failures(26);
            log.add_released(file, 9_000, 9_060, true);
            log.add_held(7, 10_001);
            record(&log, 10_060)
        };
        assert_eq!((passed(7).failures, passed(7).outcomes), (0, 27));
        // The words are the same, and the reason with its names is another one.
        assert_eq!(passed(8).failures, 26);
    }
}
