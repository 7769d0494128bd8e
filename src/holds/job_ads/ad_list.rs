//! Splits the output of `condor_q -json` or `condor_history -json` into the ads of its jobs. Memory
//! is bounded, and a damaged ad does not affect the others.

use std::borrow::Cow;
use std::io::BufRead;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value};

/// The attributes of a job. Of an attribute that is listed twice, the last value counts.
pub type ListedAd = Map<String, Value>;

/// Maximum length of a string or a name in an ad, in bytes. Longer ones are cut.
pub const MAX_STRING_BYTES: usize = 64 << 10;

/// Maximum length of an ad, in bytes. Longer ads are skipped.
const MAX_AD_BYTES: usize = 1 << 20;

/// Replacement for an escape that stands for no character, as JSON escapes it.
const REPLACEMENT: &str = r"\ufffd";

/// Calls `take` with each ad in the JSON list that `input` contains, or with the reason why it cannot be
/// parsed. An empty input is an empty list.
///
/// # Errors
/// Fails if `input` cannot be read, or if it is not one complete list.
pub(super) fn for_each_ad_of_list(
    mut input: impl BufRead,
    mut take: impl FnMut(Result<ListedAd, &'static str>),
) -> Result<()> {
    let mut place = ListPlace::Before;
    let mut item = ItemText::default();
    loop {
        let bytes = input.fill_buf().context("cannot read the list of jobs")?;
        if bytes.is_empty() {
            break;
        }
        for &byte in bytes {
            place = match place {
                ListPlace::Inside => match item.push(byte) {
                    ItemState::Open => ListPlace::Inside,
                    ItemState::Ended => {
                        item.take(&mut take);
                        ListPlace::Inside
                    }
                    ItemState::ListEnded => {
                        item.take(&mut take);
                        ListPlace::After
                    }
                },
                outside if byte.is_ascii_whitespace() => outside,
                ListPlace::Before if byte == b'[' => ListPlace::Inside,
                _ => anyhow::bail!("expected a list of jobs"),
            };
        }
        let read = bytes.len();
        input.consume(read);
    }
    ensure!(
        place != ListPlace::Inside,
        "the list of jobs ends in the middle"
    );
    Ok(())
}

/// The position of a byte relative to the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListPlace {
    Before,
    Inside,
    After,
}

/// The state of an item after a byte.
enum ItemState {
    Open,
    Ended,
    ListEnded,
}

/// The text of one item of the list that has been read by now.
#[derive(Debug, Default)]
struct ItemText {
    kept: Vec<u8>,
    /// Brackets and braces that are open.
    depth: usize,
    is_in_string: bool,
    /// True after a backslash in a string.
    is_escaped: bool,
    /// Bytes of the string so far.
    string_bytes: usize,
    /// True if the rest of the string is dropped.
    is_cut: bool,
    is_too_long: bool,
}

impl ItemText {
    /// Adds the next byte.
    fn push(&mut self, byte: u8) -> ItemState {
        if self.is_in_string {
            self.push_in_string(byte);
            return ItemState::Open;
        }
        match byte {
            b',' if self.depth == 0 => return ItemState::Ended,
            b']' if self.depth == 0 => return ItemState::ListEnded,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b'"' => {
                self.is_in_string = true;
                self.string_bytes = 0;
                self.is_cut = false;
            }
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            self.keep(byte);
        } else if self.kept.last().is_some_and(|&last| last != b' ') {
            // Indentation is shortened to one blank.
            self.keep(b' ');
        }
        ItemState::Open
    }

    fn push_in_string(&mut self, byte: u8) {
        // A cut between a backslash and its letter would make the string end later.
        self.is_cut |= self.string_bytes >= MAX_STRING_BYTES && !self.is_escaped;
        self.string_bytes += 1;
        let was_escaped = self.is_escaped;
        self.is_escaped = byte == b'\\' && !was_escaped;
        if byte == b'"' && !was_escaped {
            self.is_in_string = false;
            self.keep(byte);
        } else if !self.is_cut {
            self.keep(byte);
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.kept.len() < MAX_AD_BYTES {
            self.kept.push(byte);
        } else {
            self.is_too_long = true;
        }
    }

    /// Hands the item to `take`, and begins the next one. Skips an item without text, which an
    /// empty list has.
    fn take(&mut self, take: &mut impl FnMut(Result<ListedAd, &'static str>)) {
        if !self.kept.is_empty() {
            take(self.ad());
        }
        let mut kept = std::mem::take(&mut self.kept);
        kept.clear();
        *self = ItemText {
            kept,
            ..ItemText::default()
        };
    }

    fn ad(&self) -> Result<ListedAd, &'static str> {
        if self.is_too_long {
            return Err("it is longer than 1 MiB");
        }
        let text = readable_text(&self.kept);
        serde_json::from_str(&text).map_err(|_| "it is not a JSON object")
    }
}

/// Decodes JSON, and replaces what is no text: bytes that are not UTF-8, control characters, and
/// escapes of half a character.
fn readable_text(bytes: &[u8]) -> Cow<'_, str> {
    let mut text = String::from_utf8_lossy(bytes);
    if text.contains(|c: char| c.is_ascii_control()) {
        text = Cow::Owned(text.replace(|c: char| c.is_ascii_control(), " "));
    }
    if text.contains("\\u") {
        text = Cow::Owned(with_valid_escapes(&text));
    }
    text
}

/// Replaces each `\u` escape in `text` that stands for no character.
fn with_valid_escapes(text: &str) -> String {
    let mut valid = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        valid.push_str(&rest[..at]);
        rest = &rest[at..];
        let (escape, len) = match escaped_unit(rest) {
            Some(0xD800..=0xDBFF) => match escaped_unit(&rest[6..]) {
                Some(0xDC00..=0xDFFF) => (&rest[..12], 12),
                _ => (REPLACEMENT, 6),
            },
            Some(0xDC00..=0xDFFF) => (REPLACEMENT, 6),
            Some(_) => (&rest[..6], 6),
            None if rest.starts_with("\\u") => (REPLACEMENT, 2),
            None => {
                let letter = rest[1..].chars().next().map_or(0, char::len_utf8);
                (&rest[..1 + letter], 1 + letter)
            }
        };
        valid.push_str(escape);
        rest = &rest[len..];
    }
    valid.push_str(rest);
    valid
}

/// Returns the UTF-16 unit that `text` begins with, as `\u` and four hexadecimal digits.
fn escaped_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the value of `a` in each item, or the reason why there is none.
    fn values(text: &[u8]) -> Vec<Result<String, &'static str>> {
        let mut found = Vec::new();
        let take = |ad: Result<ListedAd, &'static str>| {
            found.push(ad.map(|ad| ad["a"].as_str().unwrap_or("?").to_owned()));
        };
        // A buffer of a few bytes splits strings and escapes.
        let input = std::io::BufReader::with_capacity(3, text);
        for_each_ad_of_list(input, take).expect("a list");
        found
    }

    #[test]
    fn damaged_text_affects_one_value() {
        let text = b"[{\"a\": \"M\xfcller\"}, {\"a\": \"\\ud800x\"}, {\"a\": \"\\udc00\\ud800\"}, {\"a\": \"\\ud83d\\ude00\"},\n\
            {\"a\": \"1\", \"a\": \"2\"}, {\"a\": \"\\\\ud800 \\u12\"}, {\"a\": \"x\ny\\\"z\"}]";
        let expected = [
            "M\u{fffd}ller",
            "\u{fffd}x",
            "\u{fffd}\u{fffd}",
            "\u{1f600}",
            "2",
            "\\ud800 \u{fffd}12",
            "x y\"z",
        ];
        assert_eq!(values(text), expected.map(|value| Ok(value.to_owned())));
    }

    #[test]
    fn ads_that_cannot_be_parsed_are_named_and_the_next_one_is_read() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let text =
            format!("[1, {{\"a\": x}}, {deep}, {{\"a\": {deep}}}, \"]\", {{\"a\": \"yes\"}}]");
        let no = || Err("it is not a JSON object");
        assert_eq!(
            values(text.as_bytes()),
            [no(), no(), no(), no(), no(), Ok("yes".to_owned())]
        );
        let long = format!(
            "[{{\"a\": [{}1]}}, {{\"a\": \"yes\"}}]",
            "1,".repeat(MAX_AD_BYTES)
        );
        assert_eq!(
            values(long.as_bytes()),
            [Err("it is longer than 1 MiB"), Ok("yes".to_owned())]
        );
    }

    #[test]
    fn long_values_are_cut() {
        for unit in ["x", "\\n", "\\u00e4", "\\\"", "\\\\"] {
            let long = unit.repeat(2 * MAX_STRING_BYTES);
            let text = format!("[{{\"b\": \"{long}\", \"a\": \"yes\"}}, {{\"a\": \"{long}\"}}]");
            let found = values(text.as_bytes());
            assert_eq!(found[0].as_deref(), Ok("yes"), "{unit}");
            let cut = found[1].as_deref().expect("a value");
            assert!(cut.len() <= MAX_STRING_BYTES, "{unit}: {}", cut.len());
        }
    }

    #[test]
    fn input_is_one_complete_list() {
        for text in ["", " \n", "[]", "[ ]\n"] {
            assert_eq!(values(text.as_bytes()), [], "{text}");
        }
        for text in ["{}", "[", "[{}", "[{\"a\": \"", "[] x", "x", "[]]", "[][]"] {
            let found = for_each_ad_of_list(text.as_bytes(), |_| {});
            assert!(found.is_err(), "{text}");
        }
    }
}
