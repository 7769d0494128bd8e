//! The page about the held jobs in a mail: as text, and as HTML without scripts, whose words are the same.

use maud::{DOCTYPE, html};

use super::notice::Notice;
use poolcast_base::{escape, output};

/// Maximum size of the HTML, in bytes. Mail programs cut longer ones.
const MAX_HTML_BYTES: usize = 60_000;

/// Maximum length of a cell, in characters.
const MAX_CELL_CHARACTERS: usize = 300;

/// Maximum numbers of causes in a mail. The first one is taken that the size allows.
const CAUSES_IN_MAIL: [usize; 3] = [50, 15, 0];

const CELL_STYLE: &str =
    "padding:2px 8px;border-bottom:1px solid #ccc;text-align:left;vertical-align:top";

/// The page about the held jobs, in the words that a terminal shows.
#[derive(Debug, Default)]
pub struct MailedPage {
    /// Sentences above the table.
    pub head: Vec<String>,
    /// The table: its names, and then a row for each thing.
    pub rows: Vec<Vec<String>>,
    /// Lines below the table.
    pub foot: Vec<String>,
}

impl MailedPage {
    /// Returns a mail of `notice` and this page as text and as HTML, with as many of the causes as the HTML has room for.
    pub(super) fn with_notice(&self, notice: &Notice) -> (String, String) {
        let page = self.escaped();
        let mut made = CAUSES_IN_MAIL.iter().map(|&most| {
            let news = notice.text(most);
            (page.text(&news), page.html(&notice.subject(), &news))
        });
        let last = made.next_back().unwrap_or_default();
        made.find(|(_, html)| html.len() <= MAX_HTML_BYTES)
            .unwrap_or(last)
    }

    /// The page without control characters, and with cells of limited length.
    fn escaped(&self) -> MailedPage {
        let shown = |text: &String| -> String {
            let shown = escape::value(text);
            shown.chars().take(MAX_CELL_CHARACTERS).collect()
        };
        let all = |texts: &Vec<String>| texts.iter().map(shown).collect();
        MailedPage {
            head: all(&self.head),
            rows: self.rows.iter().map(all).collect(),
            foot: all(&self.foot),
        }
    }

    fn text(&self, news: &str) -> String {
        let mut text = format!("{news}\n");
        for line in &self.head {
            text += &format!("{line}\n");
        }
        text += &format!("\n{}\n", output::unfolded_table(&self.rows));
        for line in &self.foot {
            text += &format!("{line}\n");
        }
        text
    }

    fn html(&self, title: &str, news: &str) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head { meta charset="utf-8"; title { (title) } }
                body style="font-family:sans-serif;font-size:14px" {
                    @for line in news.lines() {
                        @match line.strip_prefix("  ") {
                            Some(cause) => div style="margin-left:1em" { (cause) },
                            None => p { b { (line) } },
                        }
                    }
                    @for line in self.head.iter().filter(|line| !line.is_empty()) { p { (line) } }
                    table style="border-collapse:collapse" {
                        @for (at, row) in self.rows.iter().enumerate() {
                            tr {
                                @for cell in row {
                                    @if at == 0 { th style=(CELL_STYLE) { (cell) } }
                                    @else { td style=(CELL_STYLE) { (cell) } }
                                }
                            }
                        }
                    }
                    @for line in self.foot.iter().filter(|line| !line.is_empty()) { p { (line) } }
                }
            }
        };
        page.into_string()
    }
}

#[cfg(test)]
mod tests {
    use super::super::notice::NoticeCause;
    use super::super::notice::tests::group;
    use super::*;

    fn notice(words: &'static str, causes: usize) -> Notice {
        let cause = |_| NoticeCause::new(&group("aaaaaa", words), false);
        Notice {
            since_ms: None,
            asked_ms: 0,
            causes: (0..causes).map(cause).collect(),
        }
    }

    fn page(words: &str, rows: usize) -> MailedPage {
        let row = [
            "1",
            "579",
            "55%",
            "FIX 579",
            words,
            "noor11 499 +24",
            "25 h",
        ];
        MailedPage {
            head: vec!["579 held jobs: FIX 579".to_owned()],
            rows: vec![row.map(str::to_owned).to_vec(); rows],
            foot: vec!["poolcast advise --thing 1  why".to_owned()],
        }
    }

    /// The words between the tags of `html`.
    fn words_of(html: &str) -> Vec<String> {
        let body = html.split_once("<body").expect("a body").1;
        let mut text = String::new();
        for part in body.split('<') {
            text += part.split_once('>').map_or("", |(_, text)| text);
            text.push(' ');
        }
        let text = text.replace("&lt;", "<").replace("&gt;", ">");
        let text = text.replace("&quot;", "\"").replace("&amp;", "&");
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn html_has_the_words_of_the_text_and_nothing_raw() {
        let hostile = "<script>alert(\"1\")</script> & \u{1b}[31m \u{202e}x";
        let (text, html) = page(hostile, 3).with_notice(&notice(hostile_words(), 2));
        assert_eq!(words_of(&html), text.split_whitespace().collect::<Vec<_>>());
        assert!(
            !html.contains("<script") && !html.contains('\u{202e}'),
            "{html}"
        );
        assert!(!text.contains('\u{1b}') && text.contains("alert"), "{text}");
    }

    fn hostile_words() -> &'static str {
        "<img src=\"http://example.org\"> & \r\n\u{1b}"
    }

    #[test]
    fn html_is_small_whatever_the_log_has() {
        let long: &'static str = Box::leak("\"&".repeat(5000).into_boxed_str());
        let (text, html) = page(long, 11).with_notice(&notice(long, 60));
        assert!(html.len() <= MAX_HTML_BYTES, "{}", html.len());
        assert_eq!(words_of(&html), text.split_whitespace().collect::<Vec<_>>());
        let (text, _) = page("x", 11).with_notice(&notice("x", 60));
        assert!(text.contains("  and 10 more\n"), "{text}");
    }
}
