//! Formats advice as text: first the action, then the facts, then the commands.

use super::addresses::without_secrets;
use super::decide::percent_words;
use super::held_jobs::query_words;
use super::job_advice::{AdviceGround, JobAdvice};
use super::queue_facts::QueueFacts;
use super::thing_words::{settling_words, state_words, thing_name};
use poolcast_base::{escape, output};
use poolcast_holds::decision::{HoldAction, answer_words};

/// Formats the advice on one job in several lines. The prediction time is `at_ms`, or else the end
/// of the log.
pub fn advice_text(advice: &JobAdvice, at_ms: Option<i64>) -> String {
    let mut lines = vec![
        format!(
            "{}: {}",
            advice.job.id,
            answer_words(advice.verdict.action, advice.verdict.firmness)
        ),
        format!("  why: {}", escape::value(&all_reasons(advice))),
        format!("  because: {}", advice.verdict.because),
        format!(
            "  hold code {}/{}: {}",
            advice.hold.code, advice.hold.subcode, advice.hold.meaning
        ),
        format!(
            "  held since {}, {} {}",
            output::utc_time(advice.hold.since_ms),
            output::time_span(advice.hold.for_ms),
            query_words(at_ms)
        ),
        format!("  {}", hold_counts(advice)),
    ];
    lines.extend(probability_lines(advice));
    if let Some(reason) = &advice.hold.reason {
        lines.push(format!(
            "  hold reason: {}",
            escape::value(&without_secrets(&reason.to_string()))
        ));
    }
    if let Some(owner) = &advice.job.owner {
        lines.push(format!("  owner: {}", escape::value(owner)));
    }
    let queue = advice.job.queue.as_deref();
    lines.extend(submission_line(advice));
    lines.extend(queue.and_then(queue_line));
    if let Some(command) = &advice.verdict.command {
        lines.push(format!("  run: {command}"));
    } else if !advice.verdict.settled_by.is_empty() {
        lines.push(format!("  {}", settling_words(&advice.verdict.settled_by)));
    }
    if let Some(command) = &advice.verdict.then {
        lines.push(format!(
            "  {}: {command}",
            when_to_release(advice.verdict.action)
        ));
    }
    if let Some(removal) = &advice.removal() {
        lines.push(format!(
            "  {}: {removal}",
            removal_words(advice.verdict.then.is_some())
        ));
    }
    if let Some(plan) = &advice.verdict.memory_plan {
        let requests = plan.submit_lines().join(", ");
        lines.push(format!("  next submission: {requests}"));
        lines.push(format!("    {}", plan.outcome_words()));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Joins the reasons, and the state of the thing that failed.
fn all_reasons(advice: &JobAdvice) -> String {
    let mut reasons = advice.verdict.reasons.join("; ");
    if let Some(state) = &advice.forecast.state {
        let name = thing_name(advice, state.kind);
        let words = state_words(state, &output::utc_time(state.last_failure_ms));
        reasons.push_str(&format!("; {name}: {words}"));
    }
    reasons
}

/// Words before a command that removes jobs which may have to be submitted again.
pub fn removal_words(is_released_else: bool) -> &'static str {
    if is_released_else {
        "or remove and submit again"
    } else {
        "remove and submit again"
    }
}

fn when_to_release(action: HoldAction) -> &'static str {
    match action {
        HoldAction::Later => "once the fault has passed",
        HoldAction::Leave => "once the reason to hold it is gone",
        _ => "once it is fixed",
    }
}

fn hold_counts(advice: &JobAdvice) -> String {
    let times = |n: usize| {
        if n == 1 {
            "once".to_owned()
        } else {
            format!("{n} times")
        }
    };
    let siblings = match advice.hold.siblings_held {
        0 => "no other job of its cluster is".to_owned(),
        n => format!(
            "{} of its cluster {}",
            output::counted(n, "other job"),
            if n == 1 { "is" } else { "are" }
        ),
    };
    format!(
        "held {} so far, {} for this reason; {siblings} held for it now",
        times(advice.hold.holds as usize),
        times(advice.hold.holds_for_this_reason)
    )
}

/// Names the node, the program and the submit file of a job, and the site of its run; `None` if none is known.
fn submission_line(advice: &JobAdvice) -> Option<String> {
    let facts = advice.job.queue.as_deref();
    let names = [
        ("node", advice.job.dag_node.as_ref()),
        ("program", facts.and_then(|facts| facts.program.as_ref())),
        (
            "submit file",
            facts.and_then(|facts| facts.submit_file.as_ref()),
        ),
        ("site", advice.job.site.as_ref().map(|site| &site.name)),
    ];
    let known = names.iter().filter_map(|(what, name)| {
        let name = name.as_ref()?;
        Some(format!("{what} {}", escape::value(name)))
    });
    let parts: Vec<String> = known.collect();
    (!parts.is_empty()).then(|| format!("  {}", parts.join(", ")))
}

/// Formats the facts from the queue; `None` if there are none.
fn queue_line(facts: &QueueFacts) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(request) = &facts.request_memory {
        parts.push(format!("RequestMemory {}", escape::value(request)));
    }
    if let Some(used_mb) = facts.memory_usage_mb {
        parts.push(format!("MemoryUsage {used_mb}"));
    }
    if let Some(resident_kib) = facts.resident_set_kib {
        parts.push(format!("ResidentSetSize {resident_kib} KiB"));
    }
    if let Some(starts) = facts.job_starts {
        parts.push(format!("NumJobStarts {starts}"));
    }
    if let Some(rule) = &facts.periodic_release {
        parts.push(format!("PeriodicRelease {}", escape::value(rule)));
    }
    (!parts.is_empty()).then(|| format!("  queue: {}", parts.join(", ")))
}

fn probability_lines(advice: &JobAdvice) -> Vec<String> {
    let ground = advice.verdict.ground;
    let is_by_odds = !matches!(ground, AdviceGround::Rule | AdviceGround::Look);
    let Some(probability) = advice.forecast.probability.filter(|_| is_by_odds) else {
        return Vec::new();
    };
    let mut lines = vec![format!(
        "  probability of success if released unchanged: {}",
        percent_words(probability)
    )];
    if let Some(evidence) = &advice.verdict.evidence {
        lines.push(format!(
            "  similar earlier answers: {} of {} were right ({:.0} %, at least {:.0} %)",
            output::with_commas(evidence.right as u64),
            output::with_commas(evidence.answers as u64),
            100.0 * evidence.precision(),
            100.0 * evidence.lower
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use poolcast_holds::answers::{ThingKind, ThingState};

    fn advice() -> JobAdvice {
        JobAdvice::of_test_job()
    }

    #[test]
    fn the_action_comes_first_and_the_command_last() {
        insta::assert_snapshot!(advice_text(&advice(), None), @r#"
        12.0: PROBABLY RELEASE AS IT IS
          why: so
          because: odds_reach_the_limit
          hold code 12/2: output files could not be transferred back: no such file or directory
          held since 2026-11-21 02:26:06 UTC, 1 min 1 s when the log ends
          held 3 times so far, once for this reason; 2 other jobs of its cluster are held for it now
          probability of success if released unchanged: 73 %
          similar earlier answers: 960 of 1,200 were right (80 %, at least 75 %)
          hold reason: no file\u{1b}
          owner: ada
          queue: RequestMemory 64, ResidentSetSize 4872 KiB, NumJobStarts 3
          run: condor_release -constraint 'JobStatus==5 && EnteredCurrentStatus<=1795227968 && Owner=="ada" && ClusterId==12 && ProcId==0'
        "#);
    }

    #[test]
    fn state_of_the_named_file_is_a_reason() {
        let state = ThingState {
            kind: ThingKind::File,
            last_failure_ms: 1_795_227_966_000,
            successes_since: 3,
            owners_since: 2,
            by_hand_of: None,
            success_lower: Some(0.46),
            reads_since: 0,
        };
        let why = |reason: Option<&str>| {
            let held = advice().with(|one| {
                one.forecast.state = Some(Arc::new(state));
                one.hold.reason = reason.map(Into::into);
            });
            let text = advice_text(&held, None);
            text.lines().nth(1).expect("a line").to_owned()
        };
        let since = "last failure 2026-11-21 02:26:06 UTC, 3 successes since, of 2 owners";
        assert_eq!(
            why(Some(
                "Details: reading from file /home/ada/a\u{1b}[31m.dat: (errno 2) No such file"
            )),
            format!("  why: so; /home/ada/a\\u{{1b}}[31m.dat: {since}")
        );
        assert_eq!(why(None), format!("  why: so; this file: {since}"));
    }

    #[test]
    fn rules_give_no_probability() {
        let ruled = advice().with(|one| one.verdict.ground = AdviceGround::Rule);
        assert!(!advice_text(&ruled, None).contains('%'));
    }
}
