//! The job list of advice: one line per job.

use super::advice::{AdviceView, action_colour, odds_words, owner_cell};
use poolcast_advice::{JobAdvice, fitting_cause, shown_cause};
use poolcast_base::output::{self, LineColour, PageLine};
use poolcast_holds::decision::AnswerFirmness;

const ANSWER_WIDTH: usize = 8;
const CODE_WIDTH: usize = 7;
const ODDS_WIDTH: usize = 4;
const MOMENT_WIDTH: usize = 6;
const HOLDS_WIDTH: usize = 5;
const OWNER_WIDTH: usize = 9;

/// The jobs of `view`, one line each, below the head.
pub(in crate::cmd) fn job_lines(view: &AdviceView<'_>) -> Vec<PageLine> {
    let mut lines = view.head();
    if view.chosen.is_empty() {
        return lines;
    }

    let columns = JobListColumns::from_view(view);
    lines.push(PageLine::plain(""));
    lines.push(PageLine::of(LineColour::Dim, columns.names(view)));
    for advice in &view.chosen {
        let line = columns.job_line(view, advice);
        lines.push(PageLine::of(action_colour(advice.verdict.action), line));
    }

    let firmness = view.chosen.iter().map(|one| one.verdict.firmness);
    let has = |wanted| firmness.clone().any(|found| found == Some(wanted));
    if has(AnswerFirmness::Probable) {
        lines.push(PageLine::of(LineColour::Dim, "? probably"));
    }
    if has(AnswerFirmness::Possible) {
        lines.push(PageLine::of(LineColour::Dim, "?? possibly"));
    }
    lines
}

/// Widths of the columns that depend on the view, in characters.
struct JobListColumns {
    id: usize,
    cause: usize,
}

impl JobListColumns {
    fn from_view(view: &AdviceView<'_>) -> JobListColumns {
        let ids = view
            .chosen
            .iter()
            .map(|advice| advice.job.id.to_string().len());
        let id = ids.max().unwrap_or(0).max(3);
        let others = [
            ANSWER_WIDTH,
            CODE_WIDTH,
            OWNER_WIDTH,
            HOLDS_WIDTH,
            ODDS_WIDTH,
            MOMENT_WIDTH,
        ];
        // Two blanks follow the id. One blank precedes each of the six columns after the answer.
        let taken = id + 2 + others.iter().sum::<usize>() + others.len();
        JobListColumns {
            id,
            cause: view.width.saturating_sub(taken).max(10),
        }
    }

    fn line(&self, cells: [&str; 8]) -> String {
        let [job, answer, code, cause, owner, holds, odds, moment] = cells;
        let id = self.id;
        let cause = output::left_aligned(cause, self.cause);
        let owner = output::left_aligned(owner, OWNER_WIDTH);
        format!(
            "{job:>id$}  {answer:<ANSWER_WIDTH$} {code:<CODE_WIDTH$} {cause} {owner} \
             {holds:>HOLDS_WIDTH$} {odds:>ODDS_WIDTH$} {moment:>MOMENT_WIDTH$}"
        )
        .trim_end()
        .to_owned()
    }

    fn names(&self, view: &AdviceView<'_>) -> String {
        self.line([
            "job",
            "answer",
            "code",
            "cause",
            "owner",
            "holds",
            "odds",
            view.time_heading(),
        ])
    }

    fn job_line(&self, view: &AdviceView<'_>, advice: &JobAdvice) -> String {
        let code = format!("{}/{}", advice.hold.code, advice.hold.subcode);
        let cause = fitting_cause(&shown_cause(advice), self.cause);
        self.line([
            &advice.job.id.to_string(),
            &answer_word(advice),
            &code,
            &output::cut(&cause, self.cause),
            &owner_cell(advice.job.owner.as_deref().into_iter(), OWNER_WIDTH),
            &advice.hold.holds.to_string(),
            &odds_words(advice.forecast.probability.map(|odds| (odds, odds))),
            &view.short_time(advice.hold.since_ms),
        ])
    }
}

/// The answer in one word: `release`, `release?` if it is only probable, or `release??` if it is
/// only possible.
fn answer_word(advice: &JobAdvice) -> String {
    let word = advice.verdict.action.word();
    match advice.verdict.firmness {
        Some(AnswerFirmness::Probable) => format!("{word}?"),
        Some(AnswerFirmness::Possible) => format!("{word}??"),
        _ => word.to_owned(),
    }
}
