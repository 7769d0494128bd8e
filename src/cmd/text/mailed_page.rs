//! The page about the held jobs for a mail: the things of the terminal's first screen, without its width.

use super::advice::AdviceView;
use super::advice_page::AdvicePage;
use super::things_page::{COLUMNS, MAX_THINGS, foot, head, hidden_line, thing_rows};
use poolcast_base::output::PageLine;
use poolcast_site::notices::MailedPage;

/// Returns the page about the jobs of `view` for a mail, in the words of the terminal.
pub(in crate::cmd) fn mailed_page(view: &AdviceView<'_>) -> MailedPage {
    let view = &AdviceView {
        width: usize::MAX,
        shows_ages: false,
        terminal_rows: None,
        ..view.of_jobs(view.chosen.clone())
    };
    let page = AdvicePage::new(view);
    let things = page.things();
    let shown = &things[..things.len().min(MAX_THINGS)];
    let texts = |lines: Vec<PageLine>| lines.into_iter().map(|line| line.text).collect();
    let mut rows = vec![COLUMNS.map(str::to_owned).to_vec()];
    rows.extend(
        thing_rows(view, things)
            .into_iter()
            .take(MAX_THINGS)
            .map(|row| {
                let what = [row.what].into_iter().chain(row.notes);
                vec![
                    row.number.to_string(),
                    row.jobs,
                    row.sum,
                    row.answers.join(", "),
                    what.collect::<Vec<_>>().join(", "),
                    row.who,
                    row.held,
                ]
            }),
    );
    // Things have no numbers if the page states each cause in full.
    let hidden = hidden_line(view, &things[shown.len()..]);
    let foot = hidden.into_iter().chain(foot(view, page.numbered_things()));
    MailedPage {
        head: texts(head(view)),
        rows,
        foot: texts(foot.collect()),
    }
}
