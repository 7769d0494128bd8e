//! Makes untrusted text safe for a terminal: escapes control characters, invisible characters, and
//! characters that change the text direction.

use std::borrow::Cow;

/// Returns true if a terminal may interpret or hide `c` instead of showing it. These are control
/// characters, Unicode's format characters, and characters that Unicode lets a terminal ignore.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
            | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Escapes a value for one line: a hidden character becomes `\u{1b}`, a line break `\n`.
pub fn value(text: &str) -> Cow<'_, str> {
    shown(text, |_| false)
}

/// Escapes a path, like [`value`].
pub fn path(path: &std::path::Path) -> String {
    value(&path.to_string_lossy()).into_owned()
}

/// Escapes text of several lines: line breaks and tabs stay, other hidden characters are escaped.
pub fn lines(text: &str) -> Cow<'_, str> {
    shown(text, |c| c == '\n' || c == '\t')
}

/// Replaces each sequence of blanks, line ends and bars in `text` with one blank. In hold reasons,
/// a bar stands for a line end, but `||` between blanks is an operator of a policy.
pub fn one_line(text: &str) -> String {
    let pieces = text.split_whitespace().flat_map(|word| {
        let bar = if word == "||" { '\0' } else { '|' };
        word.split(bar)
    });
    let words: Vec<&str> = pieces.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

fn shown(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_shown = |c: char| is_hidden(c) && !stays(c);
    if !text.contains(is_shown) {
        return Cow::Borrowed(text);
    }
    let mut all = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' if is_shown(c) => all.extend(c.escape_default()),
            _ if is_shown(c) => all.extend(c.escape_unicode()),
            _ => all.push(c),
        }
    }
    Cow::Owned(all)
}

/// Returns true for ASCII that no terminal interprets, and for white space.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t')
}

/// Escapes hidden characters in the strings of a JSON document, in JSON's own form: `\u202e`.
pub fn json(text: &str) -> Cow<'_, str> {
    // Nearly all text is of this kind, and a look at its bytes is quick.
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    // Outside strings, JSON has no hidden characters except whitespace, which is left as it is.
    let is_shown = |c: char| is_hidden(c) && !matches!(c, '\n' | '\r' | '\t');
    if !text.contains(is_shown) {
        return Cow::Borrowed(text);
    }
    let mut all = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_shown(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                all.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            all.push(c);
        }
    }
    Cow::Owned(all)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOSTILE: &str = "a\u{1b}]0;x\u{7}\u{9b}31m\u{202e}\u{200b}\u{feff}\u{e0041}\r\nb\t\u{7f}";

    #[test]
    fn hidden_characters_are_escaped() {
        assert_eq!(
            value(HOSTILE),
            r"a\u{1b}]0;x\u{7}\u{9b}31m\u{202e}\u{200b}\u{feff}\u{e0041}\r\nb\t\u{7f}"
        );
        assert_eq!(lines("a\u{1b}\n\tb\r\n"), "a\\u{1b}\n\tb\\r\n");
        assert!(
            matches!(value("Grüße, 世界 🙂 ’"), Cow::Borrowed(_)),
            "what can be seen stays"
        );
    }

    #[test]
    fn bars_are_line_ends_and_double_bars_operators() {
        assert_eq!(one_line("a |Error: b|\n c)|| d"), "a Error: b c) d");
        assert_eq!(one_line("(A > 1) || (B)"), "(A > 1) || (B)");
    }

    #[test]
    fn escaped_json_parses_to_the_same_text() {
        let text = serde_json::to_string(HOSTILE).expect("JSON");
        let escaped = json(&text);
        assert!(!escaped.contains(is_hidden), "{escaped}");
        assert_eq!(
            serde_json::from_str::<String>(&escaped).expect("JSON"),
            HOSTILE
        );
    }

    proptest! {
        #[test]
        fn no_hidden_character_remains(text in any::<String>()) {
            prop_assert!(!value(&text).contains(is_hidden));
            prop_assert!(!lines(&text).contains(|c| is_hidden(c) && c != '\n' && c != '\t'));
            let written = serde_json::to_string(&text).expect("JSON");
            prop_assert_eq!(serde_json::from_str::<String>(&json(&written)).expect("JSON"), text);
        }
    }
}
