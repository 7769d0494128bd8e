//! The text of a rehearsal: its counts as a table.

use poolcast_base::output;
use poolcast_holds::rehearsal::{
    KindTally, LossChange, MemberTally, Proportion, RehearsalTally, StrategyTally,
};

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
    lines.push(share_line(
        "told release, would succeed now",
        tally.succeeding_release,
    ));
    lines.push(format!(
        "{:<42} {:>7}",
        "  stated for these, on the mean",
        percent(tally.stated_for_release)
    ));
    lines.push(String::new());
    lines.push(strategies_table(tally));
    lines.extend(members_table(tally));
    lines.join("\n")
}

/// Returns the table of the strategies.
pub(in crate::cmd) fn strategies_table(tally: &RehearsalTally) -> String {
    let StrategyTally {
        kept,
        wasted,
        kind_right,
    } = tally.advice;
    let mut lines = vec![
        format!(
            "{:<33} {:>14} {:>14} {:>14}",
            "", "successes kept", "runs wasted", "kind right"
        ),
        format!(
            "{:<33} {:>14} {:>14} {:>14}",
            "",
            of_words(kept),
            of_words(wasted),
            of_words(kind_right)
        ),
    ];
    lines.extend(tally.strategies().map(|(name, strategy)| {
        format!(
            "{name:<33} {:>14} {:>14} {:>14}",
            percent(strategy.kept.share()),
            percent(strategy.wasted.share()),
            percent(strategy.kind_right.share())
        )
    }));
    lines.push(String::new());
    lines.join("\n")
}

/// Returns the table of the members of the answers; `None` if the base is the only one.
pub(in crate::cmd) fn members_table(tally: &RehearsalTally) -> Option<String> {
    let all = tally.members.last()?;
    let mut lines = vec![
        format!(
            "{:<22} {:>16} {:>16}   {}",
            "which models answer", "if released now", "released later", "log loss beside the base"
        ),
        format!(
            "{:<22} {:>16} {:>16}   {}",
            "",
            of_count(all.now.settled),
            of_count(all.later.settled),
            "now and later, 95 % interval"
        ),
        format!(
            "{:<22} {:>8} {:>7} {:>8} {:>7}",
            "", "log loss", "AUC", "log loss", "AUC"
        ),
    ];
    lines.extend(tally.members.iter().map(member_line));
    lines.push(String::new());
    Some(lines.join("\n"))
}

fn member_line(member: &MemberTally) -> String {
    let [name] = &member.members[..] else {
        return score_columns("all together", member).trim_end().to_owned();
    };
    let verdict = match member.change {
        None if member.answers => "answers".to_owned(),
        None => "too few outcomes".to_owned(),
        Some(LossChange {
            change,
            lower,
            upper,
        }) => {
            let verdict = if member.answers {
                "answers"
            } else {
                "does not help"
            };
            format!("{change:+.3} [{lower:+.3}, {upper:+.3}]: {verdict}")
        }
    };
    format!("{}   {verdict}", score_columns(name, member))
}

fn score_columns(name: &str, member: &MemberTally) -> String {
    let number = |score: Option<f64>| score.map_or("-".to_owned(), |score| format!("{score:.3}"));
    format!(
        "{name:<22} {:>8} {:>7} {:>8} {:>7}",
        number(member.now.log_loss),
        number(member.now.roc_auc),
        number(member.later.log_loss),
        number(member.later.roc_auc)
    )
}

fn of_words(share: Proportion) -> String {
    of_count(share.of)
}

fn of_count(count: usize) -> String {
    format!("of {}", output::with_commas(count as u64))
}

fn kind_line(kind: &KindTally) -> String {
    format!(
        "{:<37} {:>7} {:>9} {:>7} {:>9}",
        kind.words(),
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

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", 100.0 * share))
}
