//! The findings of an examination, one below the other.

use poolcast_base::finding::{Finding, FindingState};
use poolcast_base::output::{self, LineColour, PageLine};

/// The lines of all findings, at most `width` columns wide where they can be broken.
pub(in crate::cmd) fn page(findings: &[Finding], width: usize) -> Vec<PageLine> {
    let names = findings.iter().map(|one| output::columns_of(one.check));
    let columns = names.max().unwrap_or(0);
    let mut lines = Vec::new();
    for finding in findings {
        let (word, colour) = state_words(finding.state);
        let name = output::left_aligned(finding.check, columns);
        let begin = format!("{word:4}  {name}  ");
        let indent = " ".repeat(output::columns_of(&begin));
        let rest = width.saturating_sub(indent.len()).max(20);
        for (at, words) in output::wrapped(&finding.words, rest)
            .into_iter()
            .enumerate()
        {
            let begin = if at == 0 { &begin } else { &indent };
            let text = format!("{begin}{}", words.trim_start());
            lines.push(PageLine::of(colour, text));
        }
        // A command is not broken, so that it can be copied.
        let todo = finding.todo.as_ref();
        lines.extend(todo.map(|todo| PageLine::plain(format!("      -> {todo}"))));
    }
    let bad = findings.iter().filter(|one| one.state == FindingState::Bad);
    let end = match bad.count() {
        0 => "nothing is to be done".to_owned(),
        count => format!("to do: {}", output::counted(count, "thing")),
    };
    lines.push(PageLine::plain(""));
    lines.push(PageLine::plain(end));
    lines
}

fn state_words(state: FindingState) -> (&'static str, LineColour) {
    match state {
        FindingState::Good => ("good", LineColour::Plain),
        FindingState::Bad => ("BAD", LineColour::Yellow),
        FindingState::Fact => ("-", LineColour::Dim),
    }
}
