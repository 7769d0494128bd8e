//! The clock: whether the newest event is in the future, and whether the year of events is known.

use poolcast_base::finding::Finding;
use poolcast_base::output::{time_span, utc_time};
use poolcast_collect::LogState;

/// Difference of two clocks that is ignored, in ms. Access points and file servers have clocks of
/// their own.
const MAX_SKEW_MS: i64 = 120_000;

/// Compares the times in a log with the clock of this machine.
pub(super) fn findings(state: &LogState, now_ms: i64) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(end_ms) = state.end_ms {
        findings.push(newest_event_finding(end_ms, now_ms));
    }
    findings.push(year_finding(state));
    findings
}

fn newest_event_finding(end_ms: i64, now_ms: i64) -> Finding {
    let ahead_ms = end_ms.saturating_sub(now_ms);
    if ahead_ms > MAX_SKEW_MS {
        return Finding::bad(
            "clock",
            format!(
                "the newest event, {}, is {} in the future",
                utc_time(end_ms),
                time_span(ahead_ms)
            ),
            "compare the clock (timedatectl) and the time zone of this machine with those of the access point",
        );
    }
    let ago_ms = now_ms.saturating_sub(end_ms);
    Finding::good(
        "clock",
        format!("the newest event is {} old", time_span(ago_ms)),
    )
}

fn year_finding(state: &LogState) -> Finding {
    match (state.has_years, state.has_header) {
        (true, _) => Finding::good("years", "time stamps have a year"),
        (false, true) => Finding::good(
            "years",
            "time stamps have no year, and the header of the log gives it",
        ),
        (false, false) => Finding::bad(
            "years",
            "time stamps have no year, and only the last change of the log gives it",
            "as an administrator, in the configuration of HTCondor: EVENT_LOG_FORMAT_OPTIONS = ISO_DATE; for this log, name the year: --year",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_base::finding::FindingState;

    #[test]
    fn events_of_the_future_are_bad() {
        let state = |ahead_ms| newest_event_finding(1_000_000 + ahead_ms, 1_000_000).state;
        assert_eq!(state(MAX_SKEW_MS), FindingState::Good);
        assert_eq!(state(MAX_SKEW_MS + 1), FindingState::Bad);
        assert_eq!(state(-500_000), FindingState::Good);
        let extreme = newest_event_finding(i64::MIN, i64::MAX);
        assert_eq!(extreme.state, FindingState::Good);
    }
}
