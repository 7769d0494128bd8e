//! A line a job.

use super::advice::{AdviceView, action_colour, action_word, odds_words, owner_words};
use crate::advice::{AnswerFirmness, JobAdvice, fitting_cause, shown_cause};
use crate::output::{self, LineColour, PageLine};

const ANSWER_WIDTH: usize = 8;
const CODE_WIDTH: usize = 7;
const ODDS_WIDTH: usize = 4;
const MOMENT_WIDTH: usize = 6;
const HOLDS_WIDTH: usize = 5;
const OWNER_WIDTH: usize = 9;

/// The jobs of `view`, a line each.
pub(in crate::cmd) fn job_lines(view: &AdviceView<'_>) -> Vec<PageLine> {
    let mut lines = view.head();
    if view.chosen.is_empty() {
        return lines;
    }
    let ids = view.chosen.iter().map(|one| one.job.len());
    let id_width = ids.max().unwrap_or(0).max(3);
    let others = id_width
        + 2
        + ANSWER_WIDTH
        + 1
        + CODE_WIDTH
        + 1
        + 1
        + OWNER_WIDTH
        + 1
        + HOLDS_WIDTH
        + 1
        + ODDS_WIDTH
        + 1
        + MOMENT_WIDTH;
    let cause_width = view.width.saturating_sub(others).max(10);
    let line = |cells: [&str; 8]| {
        let [job, answer, code, cause, owner, holds, odds, moment] = cells;
        format!(
            "{job:>id_width$}  {answer:<ANSWER_WIDTH$} {code:<CODE_WIDTH$} {cause:<cause_width$} {owner:<OWNER_WIDTH$} \
             {holds:>HOLDS_WIDTH$} {odds:>ODDS_WIDTH$} {moment:>MOMENT_WIDTH$}"
        )
        .trim_end()
        .to_owned()
    };

    lines.push(PageLine::plain(""));
    let names = line([
        "job",
        "answer",
        "code",
        "cause",
        "owner",
        "holds",
        "odds",
        view.moment_head(),
    ]);
    lines.push(PageLine::of(LineColour::Dim, names));
    for one in &view.chosen {
        let code = format!("{}/{}", one.hold_code, one.hold_subcode);
        let cells = [
            one.job.as_str(),
            &answer_word(one),
            &code,
            &output::cut(&fitting_cause(&shown_cause(one), cause_width), cause_width),
            &owner_words(
                one.owner
                    .as_deref()
                    .into_iter()
                    .collect::<Vec<_>>()
                    .into_iter(),
                OWNER_WIDTH,
            ),
            &one.holds.to_string(),
            &odds_words(one.probability.map(|odds| (odds, odds))),
            &view.short_moment(one.held_since_ms),
        ];
        lines.push(PageLine::of(action_colour(one.action), line(cells)));
    }
    if view
        .chosen
        .iter()
        .any(|one| one.firmness == Some(AnswerFirmness::Probable))
    {
        lines.push(PageLine::of(LineColour::Dim, "? probably"));
    }
    lines
}

/// `release`, or `release?` where it is only probable.
fn answer_word(advice: &JobAdvice) -> String {
    let word = action_word(advice.action);
    match advice.firmness {
        Some(AnswerFirmness::Probable) => format!("{word}?"),
        _ => word.to_owned(),
    }
}
