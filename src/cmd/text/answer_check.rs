//! The check of earlier answers against the outcomes of their jobs, as a table for people.

use poolcast_advice::{AnswerCheck, AnswerOutcomes, AnswerTally};
use poolcast_base::output;
use poolcast_holds::decision::AnswerFirmness;

/// Version of the JSON document.
pub(in crate::cmd) const SCHEMA_VERSION: u32 = 3;

/// The meaning of the columns.
const LEGEND: &str = "\
undecided: successes after fix without a repair that is known; the fault may have been fixed as the answer asks
repaired: the log shows that the job was changed before it succeeded, the answer printed the command that changes it, or looks found its file missing and then there
right: a success after release, a failure or a repair after fix, a failure after remove, and after later a success within three releases; after later, two failures among them are wrong, and one failure decides nothing
interval: jobs of one cluster count as one
with hidden repairs: the share of right answers if all undecided jobs, and all that succeeded after a release by hand for later, were repaired, and if none was
";

/// A table with one line per answer.
pub(in crate::cmd) fn summary(check: &AnswerCheck) -> String {
    let Some(since_ms) = check.since_ms else {
        return "no answer was given yet: `poolcast advise` gives and saves them\n".to_owned();
    };
    let names = [
        "answer",
        "given",
        "held",
        "released",
        "decided",
        "undecided",
        "succeeded",
        "repaired",
        "right",
        "95 % interval",
        "with hidden repairs",
    ];
    let mut table = vec![names.map(str::to_owned).to_vec()];
    for row in &check.answers {
        table.push(cells(row));
    }
    let mut text = format!(
        "Answers given since {}, and outcomes of the jobs until {}\n{}",
        output::utc_time(since_ms),
        output::utc_time(check.log_end_ms),
        output::aligned_table(&table)
    );
    let not_in_log: usize = check.answers.iter().map(|row| row.not_in_log).sum();
    if not_in_log > 0 {
        text.push_str(&format!(
            "the log does not contain {}\n",
            output::counted(not_in_log, "hold")
        ));
    }
    let judged = check.total.as_ref().filter(|total| total.decided > 0);
    if let Some(AnswerTally { decided, right, .. }) = judged {
        text.push_str(&format!(
            "{} of {} were right\n",
            output::with_commas(*right as u64),
            output::counted(*decided, "decided answer")
        ));
    }
    text.push_str(LEGEND);
    text
}

fn cells(row: &AnswerOutcomes) -> Vec<String> {
    let number = |n: usize| output::with_commas(n as u64);
    let word = match row.firmness {
        Some(AnswerFirmness::Firm) => "",
        Some(AnswerFirmness::Probable) => " (probably)",
        Some(AnswerFirmness::Possible) => " (possibly)",
        None => " (by rule)",
    };
    let is_answer = row.right.is_some();
    let right = row
        .right
        .filter(|_| row.decided > 0)
        .map_or("-".to_owned(), |right| {
            format!("{:.0} %", 100.0 * right as f64 / row.decided as f64)
        });
    let percent = |(low, high): (f64, f64)| format!("{:.0}-{:.0} %", 100.0 * low, 100.0 * high);
    let is_open = |(low, high): &(f64, f64)| low < high;
    vec![
        format!("{}{}", row.action.word(), if is_answer { word } else { "" }),
        number(row.given),
        number(row.still_held),
        number(row.released),
        number(row.decided),
        number(row.undecided),
        number(row.succeeded),
        number(row.repaired),
        right,
        row.interval.map_or("-".to_owned(), percent),
        row.range.filter(is_open).map_or("-".to_owned(), percent),
    ]
}
