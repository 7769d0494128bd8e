//! Splits lines of the form `Name = value` into the ads of jobs: the output of `condor_q -l` and of
//! `condor_history -l`, the schedd's history file, and the files of `PER_JOB_HISTORY_DIR`.

use std::io::{BufRead, Read as _};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::ad_list::{ListedAd, for_each_ad_of_list};

/// Maximum length of a line, in bytes. The rest of a longer line is skipped.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// Maximum number of attributes of an ad. Further ones are skipped.
const MAX_ATTRIBUTES: usize = 10_000;

/// Calls `take` with each ad in `input`, which is a JSON list or has lines of the form `Name = value`, or
/// with the reason why it cannot be parsed. An empty input has no ads.
///
/// # Errors
/// Fails if `input` cannot be read, if it is a list that is not complete, or if it is of another form.
pub fn for_each_ad(
    mut input: impl BufRead,
    mut take: impl FnMut(Result<ListedAd, &'static str>),
) -> Result<()> {
    match first_byte(&mut input)? {
        None => Ok(()),
        Some(b'[') => for_each_ad_of_list(input, take),
        Some(_) => for_each_ad_of_lines(input, |ad| take(Ok(ad))),
    }
}

/// Skips blanks; returns the byte after them without consuming it.
fn first_byte(input: &mut impl BufRead) -> Result<Option<u8>> {
    loop {
        let bytes = input.fill_buf().context("cannot read the list of jobs")?;
        let blanks = (bytes.iter())
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        let first = bytes.get(blanks).copied();
        let is_at_end = bytes.is_empty();
        input.consume(blanks);
        if first.is_some() || is_at_end {
            return Ok(first);
        }
    }
}

fn for_each_ad_of_lines(mut input: impl BufRead, mut take: impl FnMut(ListedAd)) -> Result<()> {
    let mut ad = ListedAd::new();
    let mut is_ad = false;
    let mut line = Vec::new();
    while read_line(&mut input, &mut line)? {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        // The schedd's history file ends each ad with a line of asterisks.
        if text.is_empty() || text.starts_with("***") {
            if !ad.is_empty() {
                take(std::mem::take(&mut ad));
            }
        } else if let Some((name, value)) = attribute(text) {
            is_ad = true;
            if let Some(value) = value.filter(|_| ad.len() < MAX_ATTRIBUTES) {
                ad.insert(name.to_owned(), value);
            }
        }
    }
    if !ad.is_empty() {
        take(ad);
    }
    ensure!(
        is_ad,
        "expected a JSON list of jobs, or lines such as `ClusterId = 7`"
    );
    Ok(())
}

/// Reads the next line into `line`, up to its maximum length. Returns false at the end.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool> {
    line.clear();
    let read = (&mut *input).take(MAX_LINE_BYTES).read_until(b'\n', line);
    read.context("cannot read the list of jobs")?;
    if line.len() as u64 == MAX_LINE_BYTES && line.last() != Some(&b'\n') {
        input
            .skip_until(b'\n')
            .context("cannot read the list of jobs")?;
    }
    Ok(!line.is_empty())
}

/// Parses `Name = value`. The value is `None` if it is a string that does not end.
fn attribute(line: &str) -> Option<(&str, Option<Value>)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let is_name = (name.bytes()).all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte));
    (is_name && !name.is_empty()).then(|| (name, scalar(value.trim())))
}

fn scalar(text: &str) -> Option<Value> {
    if let Some(inner) = text.strip_prefix('"') {
        return Some(Value::from(unescaped(inner.strip_suffix('"')?)));
    }
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return Some(Value::from(text.eq_ignore_ascii_case("true")));
    }
    match text.parse::<i64>() {
        Ok(number) => Some(Value::from(number)),
        Err(_) => {
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
            // An expression has the form that HTCondor gives it in JSON.
            Some(number.map_or_else(|| format!("/Expr({text})/").into(), Value::from))
        }
    }
}

/// Returns the text of a ClassAd string without its escapes.
fn unescaped(inner: &str) -> String {
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => match chars.next() {
                Some('n' | 'r' | 't') => ' ',
                Some(other) => other,
                None => break,
            },
            other => other,
        };
        text.push(if c.is_control() { ' ' } else { c });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ads(text: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        // A buffer of a few bytes splits names and values.
        let input = std::io::BufReader::with_capacity(3, text);
        for_each_ad(input, |ad| {
            found.extend(ad.map(|ad| Value::Object(ad).to_string()));
        })
        .expect("ads");
        found
    }

    #[test]
    fn ads_end_with_a_blank_line_or_asterisks() {
        let text = b"\nClusterId = 5\nOwner = \"ada\"\nLastHoldReason = \"no \\\"x\\\\y\\\"\\n= 7\"\nExitBySignal = false\n\
            RemoteWallClockTime = 12.5\nMemoryUsage = ((ResidentSetSize + 1023) / 1024)\nNumHoldsByReason = [ JobPolicy = 9 ]\n\
            *** Offset = 0 ClusterId = 5\nClusterId = -1\n\n\nClusterId = 3";
        let first = r#"{"ClusterId":5,"Owner":"ada","LastHoldReason":"no \"x\\y\" = 7","ExitBySignal":false,"RemoteWallClockTime":12.5,"MemoryUsage":"/Expr(((ResidentSetSize + 1023) / 1024))/","NumHoldsByReason":"/Expr([ JobPolicy = 9 ])/"}"#;
        let sorted = |ad: &str| -> Value { serde_json::from_str(ad).expect("JSON") };
        let found = ads(text);
        assert_eq!(sorted(&found[0]), sorted(first));
        assert_eq!(found[1..], [r#"{"ClusterId":-1}"#, r#"{"ClusterId":3}"#]);
    }

    #[test]
    fn lists_and_hostile_lines_are_read() {
        assert_eq!(ads(b" \n[{\"a\": 1}, 7]"), [r#"{"a":1}"#]);
        assert_eq!(ads(b""), [""; 0]);
        let long = format!(
            "A = \"{}\"\nB = 1\nC = \"open\n= 4\n Dä = 3",
            "x".repeat(200_000)
        );
        assert_eq!(ads(long.as_bytes()), [r#"{"B":1}"#]);
        for text in ["hello", "{}", "<xml>"] {
            assert!(for_each_ad(text.as_bytes(), |_| {}).is_err(), "{text}");
        }
    }
}
