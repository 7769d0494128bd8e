//! Outcomes of a policy in the format of the published reward.log.

use std::fmt::Write as _;

use super::window_outcome::WindowOutcome;
use crate::trace::TraceZone;
use crate::window::SuccessorStart;

/// Job ids that the published program writes for every predecessor and every successor.
const JOB_IDS: &str = "1000000,1000001";

/// Time that the published program writes for a job that was not backfilled.
const NOT_BACKFILLED: &str = "2077-01-01 01:00:00";

/// Returns the file for the policy `number`. `outcomes` are by window number; a window in which a
/// chained job never starts is `None`. Times are local.
pub(super) fn reward_log(
    outcomes: &[Option<WindowOutcome>],
    number: usize,
    zone: &TraceZone,
) -> String {
    let mut text = format!("{}Reward Logs{}\n", "-".repeat(42), "-".repeat(49));
    text.push_str(
        "pred_job_id,succ_job_id,expected_reward,actual_reward,reward_gen_time,index,backfill,submission\n",
    );
    for (index, outcome) in outcomes.iter().enumerate() {
        match outcome {
            Some(outcome) => push_row(&mut text, index, &outcome.policies[number], zone),
            None => text.push_str("None\n"),
        }
    }
    text.push_str(&"-".repeat(99));
    text
}

fn push_row(text: &mut String, index: usize, start: &SuccessorStart, zone: &TraceZone) {
    let expected_h = start.expected_h.unwrap_or(0.0);
    let actual_h = start.gap_s as f64 / 3600.0;
    let started = wall_time(start.start_s, zone);
    let backfilled = if start.is_backfilled {
        &started
    } else {
        NOT_BACKFILLED
    };
    let submitted = wall_time(start.submit_s, zone);
    // `{:?}` writes numbers like Python does.
    let _ = writeln!(
        text,
        "{JOB_IDS},{expected_h:?},{actual_h:?},{started},{index},{backfilled},{submitted}"
    );
}

fn wall_time(moment_s: i64, zone: &TraceZone) -> String {
    let wall = jiff::Timestamp::from_second(zone.wall_s(moment_s)).unwrap_or_default();
    wall.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_published() {
        let start = SuccessorStart {
            submit_s: 3600,
            expected_h: Some(-0.25),
            start_s: 5400,
            is_backfilled: true,
            gap_s: 600,
        };
        let reactive = SuccessorStart {
            expected_h: None,
            is_backfilled: false,
            gap_s: 0,
            ..start
        };
        let outcome = WindowOutcome {
            begin_s: 0,
            policies: vec![start, reactive],
            best_probe: start,
            best_moment: start,
        };
        let outcomes = [Some(outcome), None];
        let zone = TraceZone::utc();
        assert_eq!(
            reward_log(&outcomes, 0, &zone),
            "------------------------------------------Reward Logs-------------------------------------------------\n\
             pred_job_id,succ_job_id,expected_reward,actual_reward,reward_gen_time,index,backfill,submission\n\
             1000000,1000001,-0.25,0.16666666666666666,1970-01-01 01:30:00,0,1970-01-01 01:30:00,1970-01-01 01:00:00\n\
             None\n\
             ---------------------------------------------------------------------------------------------------"
        );
        let reactive = reward_log(&outcomes, 1, &zone);
        let row = "\n1000000,1000001,0.0,0.0,1970-01-01 01:30:00,0,2077-01-01 01:00:00,1970-01-01 01:00:00\n";
        assert!(reactive.contains(row), "{reactive}");
    }
}
