//! Adds the state of the senders to tracking servers to the status of a sweep.

use serde::Serialize;

use super::status_page::StatusPage;
use poolcast_base::escape;
use poolcast_base::output::{self, LineColour, PageLine};
use poolcast_sweep::config::Tracker;
use poolcast_tracking::TrackerState;

/// A status as JSON, with the state of the trackers.
#[derive(Serialize)]
pub(super) struct TrackedStatus<S> {
    #[serde(flatten)]
    pub(super) status: S,
    /// State of the sender to each tracker; empty if nothing was sent.
    pub(super) trackers: Vec<TrackerState>,
}

/// Adds a line about each sender to `page`.
pub(super) fn add_trackers(page: &mut StatusPage, states: &[TrackerState], columns: usize) {
    for state in states {
        let line = tracker_line(state);
        page.text += &format!("{line}\n");
        let mut colour = LineColour::Plain;
        if state.silent_since.is_some() {
            colour = LineColour::Yellow;
            page.state += &format!("; {} does not answer", name(state));
        }
        // The running trials follow an empty line, so the tracker lines go before it.
        let at = page
            .head
            .iter()
            .position(Vec::is_empty)
            .unwrap_or(page.head.len());
        let lines = output::wrapped(&line, columns);
        let coloured = lines
            .into_iter()
            .map(|part| vec![PageLine::of(colour, part)]);
        page.head.splice(at..at, coloured);
    }
}

fn name(state: &TrackerState) -> Tracker {
    if state.tracker == Tracker::Mlflow.word() {
        Tracker::Mlflow
    } else {
        Tracker::Wandb
    }
}

fn tracker_line(state: &TrackerState) -> String {
    let mut line = format!(
        "{} has {}",
        name(state),
        output::counted(state.ended, "finished run")
    );
    if state.running > 0 {
        line += &format!(
            ", and {} running",
            output::with_commas(state.running as u64)
        );
    }
    let shown = |moment: &str| moment.replace('T', " ").replace('Z', " UTC");
    match (&state.silent_since, &state.answered) {
        (Some(since), _) => {
            let why = escape::value(state.why.as_deref().unwrap_or_default());
            format!(
                "{line}; {} does not answer since {}: {why}",
                escape::value(&state.server),
                shown(since)
            )
        }
        (None, Some(answered)) => format!("{line}; last answer at {}", shown(answered)),
        (None, None) => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_silent_is_told_on_every_page() {
        let mut page = StatusPage {
            text: "all\n".to_owned(),
            state: "state".to_owned(),
            remaining: String::new(),
            is_over: false,
            head: vec![vec![PageLine::plain("head")], Vec::new()],
            rows: Vec::new(),
        };
        let mut state = TrackerState {
            tracker: "wandb".to_owned(),
            server: "api.wandb.ai".to_owned(),
            ended: 1234,
            running: 2,
            answered: Some("2026-11-23T04:00:00Z".to_owned()),
            ..TrackerState::default()
        };
        add_trackers(&mut page, std::slice::from_ref(&state), 80);
        state.silent_since = Some("2026-11-23T04:05:00Z".to_owned());
        state.why = Some("no \u{1b}[31m route".to_owned());
        add_trackers(&mut page, &[state], 40);
        insta::assert_snapshot!(page.text, @r"
        all
        W&B has 1,234 finished runs, and 2 running; last answer at 2026-11-23 04:00:00 UTC
        W&B has 1,234 finished runs, and 2 running; api.wandb.ai does not answer since 2026-11-23 04:05:00 UTC: no \u{1b}[31m route
        ");
        assert_eq!(page.state, "state; W&B does not answer");
        assert!(page.head.last().is_some_and(Vec::is_empty) && page.head.len() > 5);
    }
}
