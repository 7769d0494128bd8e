//! The text of a rehearsal: its counts as a table.

use poolcast_base::output;
use poolcast_holds::advice::answer_words;
use poolcast_holds::rehearsal::{KindTally, Proportion, RehearsalTally, StrategyTally};

/// Version of the JSON document.
pub(in crate::cmd) const SCHEMA_VERSION: u32 = 1;

/// Returns the counts for people.
pub(in crate::cmd) fn page(tally: &RehearsalTally) -> String {
    let mut lines = vec![
        format!(
            "{} about held jobs",
            output::counted(tally.answers, "answer")
        ),
        String::new(),
        format!(
            "{:<37} {:>7} {:>9} {:>7} {:>9}",
            "answer", "given", "settled", "right", "at least"
        ),
    ];
    lines.extend(tally.kinds.iter().map(kind_line));
    lines.push(String::new());
    lines.push(share_line("the kind of fault was right", tally.kind_right));
    lines.push(share_line(
        "  by the rules for hold codes alone",
        tally.rules_right,
    ));
    lines.push(share_line("firm answers", tally.firm));
    lines.push(share_line("  right among them", tally.firm_right));
    lines.push(share_line(
        "permanent faults told to release",
        tally.permanent_released,
    ));
    lines.push(share_line(
        "permanent faults released as a probe",
        tally.permanent_probed,
    ));
    lines.push(share_line(
        "would succeed now, told release or probe",
        tally.told,
    ));
    lines.push(String::new());
    lines.push(format!(
        "{:<40} {:>16} {:>16}",
        "", "successes kept", "runs wasted"
    ));
    lines.push(strategy_line("this advice, after its probes", tally.advice));
    lines.push(strategy_line(
        "periodic_release, NumHolds < 4",
        tally.periodic_release,
    ));
    lines.push(strategy_line("release all", tally.release_all));
    lines.push(String::new());
    lines.join("\n")
}

fn kind_line(kind: &KindTally) -> String {
    let mut words = answer_words(kind.action, kind.firmness);
    if kind.is_by_rule {
        words.push_str(" (by rule)");
    }
    format!(
        "{words:<37} {:>7} {:>9} {:>7} {:>9}",
        kind.given,
        kind.right.of,
        percent(kind.right.share()),
        percent(kind.lower)
    )
}

fn share_line(words: &str, share: Proportion) -> String {
    format!(
        "{words:<42} {:>7}  ({} of {})",
        percent(share.share()),
        share.count,
        share.of
    )
}

fn strategy_line(words: &str, strategy: StrategyTally) -> String {
    format!(
        "{words:<40} {:>16} {:>16}",
        percent(strategy.kept.share()),
        percent(strategy.wasted.share())
    )
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", 100.0 * share))
}
