//! Renders a report as one HTML page. The page contains its style sheet and its script; its
//! security policy forbids all others.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::document::{
    Figure, HeldCause, MissingInput, Report, ReportBlock, ReportCell, ReportPart, ReportTable,
};
use poolcast_base::output;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Number of causes that are shown with their commands. The others are shown on demand.
pub(super) const MAX_OPEN_CAUSES: usize = 9;

/// Maximum length of a text that stays on one line of a cell, in characters.
const MAX_LINE_CHARACTERS: usize = 30;

/// Renders the page.
pub fn page(report: &Report) -> String {
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        digest_base64(STYLE),
        digest_base64(SCRIPT)
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                title { (report.title) }
                style { (PreEscaped(STYLE)) }
                @if let Some(seconds) = report.reload_s {
                    noscript { meta http-equiv="refresh" content=(seconds); }
                }
            }
            body data-reload=[report.reload_s] {
                a class="skip" href="#main" { "Skip to the report" }
                header {
                    h1 { (report.title) }
                    @for line in &report.about { p class="about" { (line) } }
                }
                nav aria-label="Parts" {
                    ul { @for part in &report.parts { li { a href={ "#" (part.id) } { (part.title) } } } }
                }
                main id="main" { @for part in &report.parts { (part_section(part)) } }
                footer { p { "Made by " code { "poolcast" } ". The page loads nothing and sends nothing. All times are in UTC." } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn part_section(part: &ReportPart) -> Markup {
    let mut sections = Vec::new();
    let mut at = 0;
    while at < part.blocks.len() {
        let rest = &part.blocks[at..];
        let is_figure = |block: &&ReportBlock| matches!(block, ReportBlock::Figure(_));
        let figures = rest.iter().take_while(is_figure).count();
        if figures > 0 {
            sections.push(figure_grid(&rest[..figures]));
        } else {
            sections.push(block_markup(&rest[0]));
        }
        at += figures.max(1);
    }
    html! {
        section id=(part.id) aria-labelledby={ (part.id) "-h" } {
            h2 id={ (part.id) "-h" } { (part.title) }
            @for section in sections { (section) }
        }
    }
}

fn figure_grid(blocks: &[ReportBlock]) -> Markup {
    html! { div class="figures" { @for block in blocks { (block_markup(block)) } } }
}

fn block_markup(block: &ReportBlock) -> Markup {
    match block {
        ReportBlock::Paragraph { text } => html! { p { (text) } },
        ReportBlock::Notice { text } => html! { p class="notice" { (text) } },
        ReportBlock::Missing(missing) => missing_markup(missing),
        ReportBlock::Table(table) => table_markup(table),
        ReportBlock::Figure(figure) => figure_markup(figure),
        ReportBlock::Causes { causes } => causes_markup(causes),
        ReportBlock::Lines { title, text } => html! {
            details { summary { (title) } pre tabindex="0" { (text) } }
        },
    }
}

fn missing_markup(missing: &MissingInput) -> Markup {
    html! {
        div class="missing" {
            p { (missing.text) }
            @if let Some(command) = &missing.command { pre { (command) } }
        }
    }
}

fn figure_markup(figure: &Figure) -> Markup {
    html! {
        figure id=(figure.id) {
            figcaption {
                h3 { (figure.title) }
                p { (figure.see) }
            }
            (figure.drawing.svg(&figure.id, &figure.title, &figure.see))
            ul class="legend" {
                @for entry in figure.drawing.legend() { li { (entry.swatch()) (entry.name) } }
            }
            @if !figure.table.rows.is_empty() {
                details { summary { "The numbers of " q { (figure.title) } } (table_markup(&figure.table)) }
            }
        }
    }
}

fn table_markup(table: &ReportTable) -> Markup {
    let is_words = words_columns(table);
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(table.title) {
            table class=[table.is_sortable.then_some("sortable")] {
                caption { (table.title) }
                thead {
                    tr {
                        @for (column, is_words) in table.columns.iter().zip(&is_words) {
                            th scope="col" class=[is_words.then_some("t")] { (column.name) }
                        }
                    }
                }
                tbody { (rows_markup(table)) }
            }
        }
    }
}

/// Returns true for each column that contains words.
fn words_columns(table: &ReportTable) -> Vec<bool> {
    let mut is_words = vec![false; table.columns.len()];
    for row in &table.rows {
        for (at, cell) in row.iter().enumerate().take(is_words.len()) {
            is_words[at] |= matches!(cell, ReportCell::Words(_));
        }
    }
    is_words
}

/// Renders the rows of a table. Optional HTML end tags are omitted: for ten thousand trials they
/// would be most of the page.
fn rows_markup(table: &ReportTable) -> PreEscaped<String> {
    let mut rows = String::new();
    for row in &table.rows {
        rows.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let decimals = table.columns.get(at).map_or(0, |column| column.decimals);
            push_cell(&mut rows, cell, decimals);
        }
    }
    PreEscaped(rows)
}

fn push_cell(rows: &mut String, cell: &ReportCell, decimals: usize) {
    match cell {
        ReportCell::Words(words) => {
            let is_long = words.chars().count() > MAX_LINE_CHARACTERS;
            rows.push_str(if is_long {
                "<td class=\"t w\">"
            } else {
                "<td class=t>"
            });
            rows.push_str(&html! { (words) }.into_string());
        }
        ReportCell::Count(count) => {
            rows.push_str("<td>");
            rows.push_str(&output::with_commas(*count));
        }
        ReportCell::Number(number) => {
            rows.push_str("<td>");
            rows.push_str(&number_text(*number, decimals));
        }
        ReportCell::Empty => rows.push_str("<td>"),
    }
}

/// Formats a number with `decimals` digits after the decimal point; in scientific notation if it is
/// too small or too large for that.
fn number_text(number: f64, decimals: usize) -> String {
    let least = 10f64.powi(-(decimals as i32));
    if number != 0.0 && (number.abs() < least || number.abs() >= 1e9) {
        return format!("{number:.2e}");
    }
    format!("{number:.decimals$}")
}

/// Shows the first causes openly and the others on demand.
fn causes_markup(causes: &[HeldCause]) -> Markup {
    let (first, others) = causes.split_at(causes.len().min(MAX_OPEN_CAUSES));
    let list = |some: &[HeldCause]| html! { ul class="causes" { @for cause in some { li { (cause_markup(cause)) } } } };
    html! {
        (list(first))
        @if !others.is_empty() {
            details { summary { "Commands for " (output::counted(others.len(), "more cause")) } (list(others)) }
        }
    }
}

fn cause_markup(cause: &HeldCause) -> Markup {
    let answer = format!("{}{}", cause.certainty_words(), cause.action);
    let mut letters = answer.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    let heading: String = first.into_iter().chain(letters).collect();
    html! {
        h3 { (heading) ": " (output::counted(cause.jobs, "job")) }
        p { (cause.cause.as_ref().unwrap_or(&cause.meaning)) }
        dl {
            dt { "hold code" } dd { (cause.code) @if cause.cause.is_some() { ", " (cause.meaning) } }
            dt { "jobs" } dd { (jobs_words(cause)) }
            dt { "held since" } dd { (output::utc_time(cause.held_since_ms)) }
            @if let Some(range) = cause.odds { dt { "probability of success" } dd { (probability_words(range)) } }
            @if let Some(note) = &cause.note { dt { "known outcomes" } dd { (note) } }
            @if let Some((successes, holds)) = cause.base_rate {
                dt { "similar holds" } dd { (output::with_commas(successes as u64)) " of " (output::with_commas(holds as u64)) " succeeded" }
            }
        }
        @if let Some(command) = &cause.command { p { "Run:" } pre { (command) } }
        @if let Some(then) = &cause.then { p { "Once the fault is fixed or has passed:" } pre { (then) } }
    }
}

fn jobs_words(cause: &HeldCause) -> String {
    let clusters = output::counted(cause.clusters, "cluster");
    if cause.first_jobs.is_empty() {
        return format!("in {clusters}");
    }
    let rest = cause.jobs - cause.first_jobs.len();
    let more = if rest > 0 {
        format!(" and {} more", output::with_commas(rest as u64))
    } else {
        String::new()
    };
    format!("{}{more}, in {clusters}", cause.first_jobs.join(", "))
}

/// Formats a range of probabilities in per cent. It never shows 0 % or 100 %.
fn probability_words((low, high): (f64, f64)) -> String {
    let percent = |probability: f64| ((100.0 * probability).round() as u32).clamp(1, 99);
    match (percent(low), percent(high)) {
        (low, high) if low == high => format!("{low} %"),
        (low, high) => format!("{low} to {high} %"),
    }
}

/// Returns the SHA-256 in base64, as in a content security policy.
fn digest_base64(text: &str) -> String {
    use base64::Engine as _;
    use sha2::Digest as _;

    base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `printf abc | openssl dgst -sha256 -binary | base64`.
    #[test]
    fn digest_matches_openssl() {
        assert_eq!(
            digest_base64("abc"),
            "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="
        );
    }

    #[test]
    fn outside_text_is_escaped() {
        let hostile = "</script><script>alert(1)</script>";
        let mut table = ReportTable::new(hostile, &[(hostile, 0)]);
        table.push([hostile.into()]);
        let report = Report {
            title: hostile.to_owned(),
            about: vec![hostile.to_owned()],
            reload_s: None,
            parts: vec![ReportPart {
                id: "part",
                title: "Part",
                blocks: vec![
                    ReportBlock::paragraph(hostile),
                    ReportBlock::Table(table),
                    ReportBlock::Lines {
                        title: hostile.to_owned(),
                        text: hostile.to_owned(),
                    },
                ],
            }],
        };
        let page = page(&report);
        assert_eq!(page.matches("<script>").count(), 1);
        assert_eq!(page.matches("</script>").count(), 1);
        assert!(!page.contains("alert(1)</script>"));
    }

    #[test]
    fn style_and_script_cannot_end_their_elements() {
        assert!(!STYLE.contains("</") && !SCRIPT.contains("</"));
    }
}
