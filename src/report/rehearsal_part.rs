//! The part on the rehearsal: how right the answers about held jobs would have been on the log.

use super::document::{ReportBlock, ReportPart, ReportTable};
use poolcast_base::output;
use poolcast_holds::decision::HoldAction;
use poolcast_holds::rehearsal::{Proportion, RehearsalTally};

/// Makes the part.
pub(super) fn rehearsal_part(tally: &RehearsalTally) -> ReportPart {
    let mut blocks = vec![ReportBlock::paragraph(format!(
        "The log was replayed as if poolcast had been used: at times through it, poolcast learned from what was known by then, and \
         was asked about all jobs that were held. It gave {}. Each is settled by what the log shows about the second of the question.",
        output::counted(tally.answers, "answer")
    ))];
    blocks.extend(released_sentence(tally).map(ReportBlock::paragraph));
    blocks.push(ReportBlock::Table(kind_table(tally)));
    blocks.push(ReportBlock::Table(strategy_table(tally)));
    if !tally.members.is_empty() {
        blocks.push(ReportBlock::Table(member_table(tally)));
    }
    ReportPart {
        id: "rehearsal",
        title: "Rehearsal: how right the answers were",
        blocks,
    }
}

/// Says how many of the released jobs ended well; `None` without a settled release.
fn released_sentence(tally: &RehearsalTally) -> Option<String> {
    let (mut right, mut settled) = (0, 0);
    for kind in &tally.kinds {
        if kind.action == HoldAction::Release {
            right += kind.right.count;
            settled += kind.right.of;
        }
    }
    let share = Proportion {
        count: right,
        of: settled,
    };
    let of_100 = 100.0 * share.share()?;
    let mut sentence =
        format!("Of 100 jobs told to be released as they are, {of_100:.0} would have ended well.");
    let succeeding = tally.succeeding_release.share();
    if let Some((stated, succeeding)) = tally.stated_for_release.zip(succeeding) {
        sentence.push_str(&format!(
            " Where a probability was stated for them, it was {:.0} % on the mean, and {:.0} % would have ended well.",
            100.0 * stated,
            100.0 * succeeding
        ));
    }
    Some(sentence)
}

fn kind_table(tally: &RehearsalTally) -> ReportTable {
    let columns = [
        ("answer", 0),
        ("given", 0),
        ("with a known outcome", 0),
        ("right of these, %", 0),
        ("at least, with 90 % confidence, %", 0),
    ];
    let mut table = ReportTable::new("Right answers by kind", &columns);
    for kind in &tally.kinds {
        table.push([
            kind.words().into(),
            kind.given.into(),
            kind.right.of.into(),
            percent(kind.right.share()).into(),
            percent(kind.lower).into(),
        ]);
    }
    table
}

fn strategy_table(tally: &RehearsalTally) -> ReportTable {
    let columns = [
        ("strategy", 0),
        ("jobs that would succeed", 0),
        ("released of these, %", 0),
        ("jobs that would fail", 0),
        ("released of these, %", 0),
        ("faults of a known kind", 0),
        ("right about these, %", 0),
    ];
    let mut table = ReportTable::new("Successes kept, and runs wasted", &columns);
    for (name, strategy) in tally.strategies() {
        table.push([
            name.into(),
            strategy.kept.of.into(),
            percent(strategy.kept.share()).into(),
            strategy.wasted.of.into(),
            percent(strategy.wasted.share()).into(),
            strategy.kind_right.of.into(),
            percent(strategy.kind_right.share()).into(),
        ]);
    }
    table
}

fn member_table(tally: &RehearsalTally) -> ReportTable {
    let columns = [
        ("members", 0),
        ("log loss, released now", 3),
        ("ROC-AUC, released now", 3),
        ("log loss, released later", 3),
        ("ROC-AUC, released later", 3),
        ("change of the base's log loss", 3),
        ("at least", 3),
        ("at most", 3),
        ("answers", 0),
    ];
    let mut table = ReportTable::new("Which models answer", &columns);
    for member in &tally.members {
        table.push([
            member.members.join(", ").into(),
            member.now.log_loss.into(),
            member.now.roc_auc.into(),
            member.later.log_loss.into(),
            member.later.roc_auc.into(),
            member.change.map(|loss| loss.change).into(),
            member.change.map(|loss| loss.lower).into(),
            member.change.map(|loss| loss.upper).into(),
            if member.answers { "yes" } else { "no" }.into(),
        ]);
    }
    table
}

fn percent(share: Option<f64>) -> Option<f64> {
    share.map(|share| 100.0 * share)
}
