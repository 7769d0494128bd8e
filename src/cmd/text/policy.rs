//! Renders a learned release policy, as text for people and as a JSON document.

use serde::Serialize;

use poolcast_advice::policy::{
    AdviceContradiction, CodeFinding, CodeVerdict, ReleaseEvidence, ReleaseRule, ReleaseStudy,
    ReplayedPolicy, SumInterval, release_expression,
};
use poolcast_base::output;
use poolcast_events::{EventStore, HoldSource};
use poolcast_holds::decision::{answer_words, code_meaning};

/// Version of the JSON document.
pub(in crate::cmd) const SCHEMA_VERSION: u32 = 1;

/// Maximum number of codes in the table. The JSON document has all codes.
const MAX_CODES: usize = 12;

/// A policy as one JSON document.
#[derive(Debug, Serialize)]
pub(in crate::cmd) struct PolicyDocument<'a> {
    /// The source of the holds.
    source: HoldSource,
    /// First event, epoch ms.
    log_begin_ms: i64,
    /// Last event, epoch ms.
    log_end_ms: i64,
    /// Expression for `periodic_release` and `SYSTEM_PERIODIC_RELEASE`; null if no code pays, or
    /// with a `refusal`.
    expression: Option<String>,
    /// Reason why nothing was learned from the holds, although there are some: a history lacks too
    /// many.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a str>,
    /// Codes for which the policy and `advise` disagree on the held jobs; null without a run in
    /// this directory.
    contradictions: Option<&'a [AdviceContradiction]>,
    #[serde(flatten)]
    study: &'a ReleaseStudy,
}

/// The JSON document of `study`, whose jobs are in `store`.
pub(in crate::cmd) fn document<'a>(
    store: &EventStore,
    study: &'a ReleaseStudy,
    contradictions: Option<&'a [AdviceContradiction]>,
    refusal: Option<&'a str>,
) -> PolicyDocument<'a> {
    PolicyDocument {
        source: store.summary.source(),
        log_begin_ms: store.summary.begin_ms,
        log_end_ms: store.summary.end_ms,
        expression: release_expression(&study.rules),
        refusal,
        contradictions,
        study,
    }
}

/// The expression, ready to paste; or the reason why there is none.
pub(in crate::cmd) fn expressions(study: &ReleaseStudy) -> String {
    let Some(expression) = release_expression(&study.rules) else {
        return format!("no periodic_release: {}\n", no_expression_reason(study));
    };

    let mut text = String::new();
    for finding in &study.codes {
        if let CodeVerdict::Yes { rule, evidence } = &finding.verdict {
            text.push_str(&rule_comment(rule, evidence));
        }
    }
    let lines = continued_lines(&expression);
    text.push_str(&format!(
        "\n# in a submit file:\nperiodic_release = {lines}\n"
    ));
    text.push_str(&format!(
        "\n# or, for all jobs, in the configuration of the access point:\nSYSTEM_PERIODIC_RELEASE = {lines}\n"
    ));
    text
}

/// The text in place of an expression if nothing may be learned from the holds.
pub(in crate::cmd) fn refused(reason: &str) -> String {
    format!("no periodic_release: {reason}\n")
}

/// The source of the holds in `store`; empty for an event log.
pub(in crate::cmd) fn source(store: &EventStore) -> String {
    let words = store.summary.source().words();
    words.map_or(String::new(), |words| format!("\n{words}\n"))
}

/// The reason why no code qualifies.
fn no_expression_reason(study: &ReleaseStudy) -> String {
    let outcomes: usize = study.codes.iter().map(|code| code.released.outcomes).sum();
    if outcomes == 0 {
        return "no release in the log has an outcome to learn from".to_owned();
    }
    format!(
        "of {}, none was shown to succeed after at least {} of its releases, with 95 % confidence",
        output::counted(study.codes.len(), "hold code"),
        percent(study.required_share)
    )
}

/// A rule and its evidence, as comment lines.
fn rule_comment(rule: &ReleaseRule, evidence: &ReleaseEvidence) -> String {
    format!(
        "# hold code {}, {}:\n# {} of {} releases succeeded ({}, at least {}); after {}, NumHolds up to {}\n",
        code_words(rule.hold_code, rule.hold_subcode, rule.owner.as_deref()),
        code_meaning(rule.hold_code, rule.hold_subcode),
        output::with_commas(evidence.successes as u64),
        output::with_commas(evidence.outcomes as u64),
        percent(evidence.share()),
        percent(evidence.lower),
        wait_words(rule.wait_s),
        rule.most_holds
    )
}

/// A code and subcode, with the owner whose jobs are meant.
fn code_words(code: i32, subcode: i32, owner: Option<&str>) -> String {
    let owner = owner.map_or(String::new(), |owner| format!(" of {owner}"));
    format!("{code}/{subcode}{owner}")
}

/// The codes for which the policy and `advise` disagree about held jobs; empty if there are none.
pub(in crate::cmd) fn contradicted(contradictions: &[AdviceContradiction]) -> String {
    let mut text = String::new();
    for one in contradictions {
        let code = code_words(one.hold_code, one.hold_subcode, one.owner.as_deref());
        let policy = if one.is_released {
            "releases them"
        } else {
            "never releases them"
        };
        text.push_str(&format!(
            "  {code}: {}: `advise` says {}, and this policy {policy}\n",
            output::counted(one.jobs, "held job"),
            answer_words(one.answer, None)
        ));
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "\n`poolcast advise` contradicts this policy on the same log: look at these jobs before you use it\n{text}"
    )
}

/// Splits the expression into lines of less than 80 characters, with the continuation marks of
/// submit files and configurations.
fn continued_lines(expression: &str) -> String {
    let clauses = expression.replace(" || ", " || \\\n  ");
    format!(
        "\\\n  {}",
        clauses
            .replace(" && (time()", " && \\\n    (time()")
            .replace("\" && HoldReasonCode", "\" && \\\n    HoldReasonCode")
    )
}

fn wait_words(wait_s: u32) -> String {
    if wait_s < 3600 {
        format!("{} min", wait_s / 60)
    } else {
        format!("{} h", wait_s / 3600)
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// The results of the policies on the later holds.
pub(in crate::cmd) fn replay(study: &ReleaseStudy) -> String {
    let later = study.later;
    let outcomes = later.successes + later.failures;
    if outcomes == 0 {
        return "\nThere are no later releases to compare policies on.\n".to_owned();
    }

    let mut table = vec![
        ["", "successes kept", "failed runs caused", "hours wasted"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for replayed in &study.replay {
        table.push(replay_row(replayed));
    }
    format!(
        "\nReplayed on the {} of later holds, of which {} succeeded:\n{}{}",
        output::counted(outcomes, "release"),
        output::with_commas(later.successes as u64),
        output::aligned_table(&table),
        replay_note(study)
    )
}

fn replay_row(replayed: &ReplayedPolicy) -> Vec<String> {
    vec![
        replayed.policy.clone(),
        sum_cell(
            output::with_commas(replayed.successes.sum as u64),
            &replayed.successes,
        ),
        sum_cell(
            output::with_commas(replayed.failures.sum as u64),
            &replayed.failures,
        ),
        sum_cell(
            format!("{:.1}", replayed.wasted_ms.sum as f64 / 3_600_000.0),
            &replayed.wasted_ms,
        ),
    ]
}

/// A sum, its share, and the interval of the share. A share of zero and an empty interval are
/// omitted.
fn sum_cell(sum: String, of: &SumInterval) -> String {
    match (of.share, of.interval) {
        (None | Some(0.0), _) => sum,
        (Some(share), Some((low, high))) if low < high => format!(
            "{sum}, {} [{:.0}, {:.0}]",
            percent(share),
            100.0 * low,
            100.0 * high
        ),
        (Some(share), _) => format!("{sum}, {}", percent(share)),
    }
}

/// The limits of the replay, and the result of the learned policy.
fn replay_note(study: &ReleaseStudy) -> String {
    let later = study.later;
    let known = later.successes + later.failures;
    let mut note = format!(
        "Only released holds have a known outcome: {} of {} later ones.\n\
         An automatic release is assumed to end like the manual one, even if the user fixed something first.\n",
        output::with_commas(known as u64),
        output::with_commas(later.holds as u64),
    );
    note.push_str(&learned_note(study));
    note
}

/// The result of the learned policy on later holds; empty if there is no policy.
fn learned_note(study: &ReleaseStudy) -> String {
    let Some(learned) = study.replay.last().filter(|_| !study.rules.is_empty()) else {
        return String::new();
    };
    let released = learned.successes.sum + learned.failures.sum;
    let unknown = format!(
        "it would also have released {} that were not released",
        output::counted(learned.unknown, "job")
    );
    if released == 0 {
        return format!("The learned policy releases none of these; {unknown}.\n");
    }

    let share = learned.successes.sum as f64 / released as f64;
    let warning = if share < study.required_share {
        format!(
            "That is less than the required {}: do not use it as it is.\n",
            percent(study.required_share)
        )
    } else {
        String::new()
    };
    format!(
        "Of {} by the learned policy, {} succeeded ({}); {unknown}.\n{warning}",
        output::counted(released as usize, "release"),
        output::with_commas(learned.successes.sum as u64),
        percent(share)
    )
}

/// A table of the codes, with the evidence and the verdict for each.
pub(in crate::cmd) fn codes(study: &ReleaseStudy) -> String {
    let outcomes: usize = study.codes.iter().map(|code| code.released.outcomes).sum();
    if outcomes == 0 {
        return String::new();
    }

    let mut table = vec![
        ["hold code", "holds", "releases", "succeeded", "at least"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for finding in study.codes.iter().take(MAX_CODES) {
        table.push(code_row(finding));
    }
    let left_out = study.codes.len().saturating_sub(MAX_CODES);
    let more = if left_out > 0 {
        format!(
            "and {} with fewer releases; --json has all\n",
            output::counted(left_out, "code")
        )
    } else {
        String::new()
    };
    let until = study.learned_until_ms.map_or(String::new(), |until_ms| {
        format!(" until {}", output::utc_time(until_ms))
    });
    format!(
        "\nLearned from {}{until}; a code pays from {}:\n{}{more}",
        output::counted(outcomes, "release"),
        percent(study.required_share),
        output::aligned_table(&table)
    )
}

fn code_row(finding: &CodeFinding) -> Vec<String> {
    let released = finding.released;
    let has_outcome = released.outcomes > 0;
    let share = |share: f64| {
        if has_outcome {
            percent(share)
        } else {
            "-".to_owned()
        }
    };
    vec![
        format!(
            "{} {}",
            code_words(
                finding.hold_code,
                finding.hold_subcode,
                finding.owner.as_deref()
            ),
            verdict_words(&finding.verdict)
        ),
        output::with_commas(finding.holds as u64),
        output::with_commas(released.outcomes as u64),
        share(released.share()),
        share(released.lower),
    ]
}

fn verdict_words(verdict: &CodeVerdict) -> &'static str {
    match verdict {
        CodeVerdict::Yes { .. } => "yes, as above",
        CodeVerdict::OnPurpose => "no: held on purpose",
        CodeVerdict::NeedsRepair => "no: a user has to repair it",
        CodeVerdict::OwnerUnknown => "no: each owner gives it a meaning, and has no name here",
        CodeVerdict::TooFew => "no: too few releases",
        CodeVerdict::NotShown => "no: it was not shown to pay",
    }
}
