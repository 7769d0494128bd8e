//! The answers as two attributes of the held jobs in the queue, where every user sees them. Only
//! changes are written, in batches.

use std::collections::BTreeMap;
use std::io::BufRead;

use anyhow::Result;

use poolcast_advice::{JobAdvice, JobId};
use poolcast_sweep::condor;

/// Attribute with the recommended action.
const ADVICE: &str = "PoolcastAdvice";

/// Attribute with the probability of success in two digits; undefined where a rule decides.
const PROBABILITY: &str = "PoolcastProbability";

/// Maximum number of jobs that are edited at once. The constraint names each of them.
const JOBS_PER_EDIT: usize = 200;

/// Maximum number of edits of one call. What is left is edited by the next call.
const MAX_EDITS: usize = 50;

/// The value of an attribute that a job does not have, as HTCondor prints it.
const UNDEFINED: &str = "undefined";

/// One edit of the queue: jobs that get the same values.
#[derive(Debug, PartialEq, Eq)]
struct QueueEdit {
    constraint: String,
    advice: &'static str,
    probability: String,
}

/// Writes the answers in `all` to the held jobs of this access point's queue, where they differ from
/// those that are there. Returns the number of edits.
///
/// # Errors
/// Fails if the queue does not answer, and with the first edit that fails: by default, only HTCondor's
/// own users may edit the jobs of others.
pub fn mark_held_jobs(all: &[JobAdvice]) -> Result<usize> {
    let attributes = ["ClusterId", "ProcId", ADVICE, PROBABILITY];
    let marks = condor::read_held_values(&attributes, |output| read_marks(output))?;
    let edits = edits(all, &marks);
    for edit in &edits {
        let advice = format!("\"{}\"", edit.advice);
        let values = [(ADVICE, &*advice), (PROBABILITY, &*edit.probability)];
        condor::edit_jobs(&edit.constraint, &values)?;
    }
    Ok(edits.len())
}

/// Reads the values of both attributes of each held job. Lines that are not about a job are skipped.
fn read_marks(output: &mut dyn BufRead) -> Result<BTreeMap<JobId, String>> {
    let mut marks = BTreeMap::new();
    for line in output.lines() {
        let line = line?;
        let mut words = line.splitn(3, ' ');
        let mut number = || words.next()?.parse().ok();
        if let (Some(cluster), Some(proc)) = (number(), number()) {
            let values = words.next().unwrap_or_default().to_owned();
            marks.insert(JobId { cluster, proc }, values);
        }
    }
    Ok(marks)
}

/// The edits that give the jobs in `marks` the answers in `all`.
fn edits(all: &[JobAdvice], marks: &BTreeMap<JobId, String>) -> Vec<QueueEdit> {
    let mut by_values: BTreeMap<(&'static str, String), Vec<JobId>> = BTreeMap::new();
    for one in all {
        let probability = one.forecast.probability.filter(|p| p.is_finite());
        let probability = probability.map_or(UNDEFINED.to_owned(), |p| format!("{p:.2}"));
        let advice = one.verdict.action.word();
        let is_other = marks
            .get(&one.job.id)
            .is_some_and(|mark| *mark != format!("{advice} {}", shown_number(&probability)));
        if is_other {
            by_values
                .entry((advice, probability))
                .or_default()
                .push(one.job.id);
        }
    }

    let mut edits = Vec::new();
    for ((advice, probability), jobs) in by_values {
        for batch in jobs.chunks(JOBS_PER_EDIT) {
            edits.push(QueueEdit {
                constraint: constraint_of(batch),
                advice,
                probability: probability.clone(),
            });
        }
    }
    edits.truncate(MAX_EDITS);
    edits
}

/// The number as HTCondor prints it: without zeros at the end.
fn shown_number(number: &str) -> String {
    let digits = number.parse::<f64>().ok();
    digits.map_or_else(
        || number.to_owned(),
        |digits| {
            let text = digits.to_string();
            if text.contains('.') {
                text
            } else {
                text + ".0"
            }
        },
    )
}

/// The constraint that names `jobs`, as long as they are held.
fn constraint_of(jobs: &[JobId]) -> String {
    let mut by_cluster: BTreeMap<i32, Vec<String>> = BTreeMap::new();
    for job in jobs {
        let procs = by_cluster.entry(job.cluster).or_default();
        procs.push(job.proc.to_string());
    }
    let clusters: Vec<String> = (by_cluster.iter())
        .map(|(cluster, procs)| {
            format!(
                "(ClusterId == {cluster} && member(ProcId, {{{}}}))",
                procs.join(",")
            )
        })
        .collect();
    format!("JobStatus == 5 && ({})", clusters.join(" || "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_name_held_jobs_only() {
        let job = |cluster, proc| JobId { cluster, proc };
        assert_eq!(
            constraint_of(&[job(7, 0), job(9, 4), job(7, 2)]),
            "JobStatus == 5 && ((ClusterId == 7 && member(ProcId, {0,2})) || (ClusterId == 9 && member(ProcId, {4})))"
        );
    }

    #[test]
    fn marks_of_others_are_any_text() {
        let text = b"7 0 fix 0.12\n7 1 undefined undefined\n\nno job\n8 0 a b\" c\n9 0\n";
        let marks = read_marks(&mut &text[..]).expect("read");
        let found: Vec<(i32, &str)> = marks
            .iter()
            .map(|(job, mark)| (job.cluster, &**mark))
            .collect();
        assert_eq!(
            found,
            [
                (7, "fix 0.12"),
                (7, "undefined undefined"),
                (8, "a b\" c"),
                (9, "")
            ]
        );
    }

    #[test]
    fn numbers_are_compared_as_they_are_printed() {
        let shown = ["0.50", "1.00", "0.07", "undefined"].map(shown_number);
        assert_eq!(shown, ["0.5", "1.0", "0.07", "undefined"]);
    }
}
