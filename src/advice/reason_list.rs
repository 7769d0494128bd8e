//! Reads lists of hold reasons, as people copy them from HTCondor's programs.

use poolcast_holds::job_ads::for_each_ad;

/// A hold reason in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedReason {
    /// The text.
    pub reason: String,
    /// The code and the subcode of the hold, if they are known.
    pub codes: Option<(i32, i32)>,
    /// Number of jobs that are held for it.
    pub jobs: u64,
}

/// Reads the hold reasons in `text`: the ads of `condor_q -l` or `-json`, the table of `condor_q -hold`, the holds of
/// an event log, or the lines of `condor_q -af HoldReasonCode HoldReasonSubCode HoldReason`, perhaps counted by
/// `sort | uniq -c`. Any other text is one reason.
pub fn listed_reasons(text: &str) -> Vec<ListedReason> {
    let has_line = |begin: &str| {
        text.lines()
            .any(|line| line.trim_start().starts_with(begin))
    };
    let found = if text.trim_start().starts_with('[') || has_line("HoldReason =") {
        reasons_of_ads(text)
    } else if text.contains("HOLD_REASON") {
        reasons_of_table(text)
    } else if text.contains("Job was held.") {
        reasons_of_events(text)
    } else {
        reasons_of_lines(text)
    };
    if found.is_empty() {
        return vec![ListedReason::of_job(text.trim(), None)];
    }
    found
}

impl ListedReason {
    fn of_job(reason: &str, codes: Option<(i32, i32)>) -> ListedReason {
        ListedReason {
            reason: reason.to_owned(),
            codes,
            jobs: 1,
        }
    }
}

fn reasons_of_ads(text: &str) -> Vec<ListedReason> {
    let mut found = Vec::new();
    let read = for_each_ad(text.as_bytes(), |ad| {
        let Ok(ad) = ad else { return };
        let number = |name| i32::try_from(ad.get(name)?.as_i64()?).ok();
        let code = number("HoldReasonCode");
        let codes = code.map(|code| (code, number("HoldReasonSubCode").unwrap_or(0)));
        if let Some(reason) = ad.get("HoldReason").and_then(serde_json::Value::as_str) {
            found.push(ListedReason::of_job(reason, codes));
        }
    });
    // A list that is cut short has no job that could be trusted.
    if read.is_err() {
        found.clear();
    }
    found
}

/// Reads lines such as `123.0  ada  11/29 09:10 REASON` after their head.
fn reasons_of_table(text: &str) -> Vec<ListedReason> {
    let lines = text
        .lines()
        .skip_while(|line| !line.contains("HOLD_REASON"));
    let reason = |line: &str| {
        let (id, rest) = next_word(line)?;
        let is_id =
            id.contains('.') && id.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let rest = (0..3).try_fold(rest, |rest, _| Some(next_word(rest)?.1))?;
        (is_id && !rest.is_empty()).then(|| ListedReason::of_job(rest, None))
    };
    lines.filter_map(reason).collect()
}

/// Reads the line after each `Job was held.`, and the codes in the line after it. Blanks before the lines do not count.
fn reasons_of_events(text: &str) -> Vec<ListedReason> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let holds = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.ends_with("Job was held."));
    let reason = |(at, _): (usize, &&str)| {
        let reason = lines.get(at + 1).filter(|line| **line != "...")?;
        let codes = lines.get(at + 2).and_then(|line| {
            let (code, subcode) = line.strip_prefix("Code ")?.split_once(" Subcode ")?;
            Some((code.parse().ok()?, subcode.parse().ok()?))
        });
        Some(ListedReason::of_job(reason, codes))
    };
    holds.filter_map(reason).collect()
}

/// Reads lines that all begin with numbers: the count, if blanks are before it, and the codes. None is found if
/// another line is there.
fn reasons_of_lines(text: &str) -> Vec<ListedReason> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let found: Option<Vec<ListedReason>> = lines.map(reason_of_line).collect();
    found.unwrap_or_default()
}

fn reason_of_line(line: &str) -> Option<ListedReason> {
    let mut rest = line;
    let mut numbers = Vec::new();
    while let Some((word, after)) = next_word(rest)
        && let Ok(number) = word.parse::<i32>()
        && numbers.len() < 3
    {
        numbers.push(number);
        rest = after;
    }
    let is_counted = line.starts_with(' ');
    let (count, codes) = numbers.split_at(usize::from(is_counted && !numbers.is_empty()));
    let codes = match codes {
        [code, subcode, ..] => Some((*code, *subcode)),
        [code] => Some((*code, 0)),
        [] => None,
    };
    // One number before a text may be a part of it.
    let is_listed = numbers.len() > 1 || is_counted && numbers.len() == 1;
    (is_listed && !rest.is_empty()).then(|| ListedReason {
        reason: rest.to_owned(),
        codes,
        jobs: count
            .first()
            .map_or(1, |count| u64::try_from(*count).unwrap_or(1)),
    })
}

/// Returns the first word of `text`, and the text after it; `None` if there is none.
fn next_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (!word.is_empty()).then(|| (word, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MEMORY: &str = "Error from slot1@e: Job has gone over memory limit of 64 megabytes.";

    /// Forms of HTCondor 25.
    #[test]
    fn lists_of_all_programs_are_read() {
        let table = format!(
            "\n\n-- Schedd: ap40 : <192.0.2.7:9618?...> @ 11/29/26 10:00:00\n ID     OWNER   HELD_SINCE  HOLD_REASON\n 123.0   ada    11/29 09:10 {MEMORY}\n\nTotal for query: 1 jobs; 0 completed, 1 held\n"
        );
        assert_eq!(listed_reasons(&table), [ListedReason::of_job(MEMORY, None)]);
        let ads = format!(
            "ClusterId = 1\nHoldReason = \"{MEMORY}\"\nHoldReasonCode = 34\nHoldReasonSubCode = 102\n\nClusterId = 2\nHoldReason = \"(by user ada)\"\nHoldReasonCode = 1\n"
        );
        let of_ads = [
            ListedReason::of_job(MEMORY, Some((34, 102))),
            ListedReason::of_job("(by user ada)", Some((1, 0))),
        ];
        assert_eq!(listed_reasons(&ads), of_ads);
        let counted = format!("     17 34 102 {MEMORY}\n      3 1 0 (by user ada)\n");
        let jobs: Vec<u64> = listed_reasons(&counted)
            .iter()
            .map(|one| one.jobs)
            .collect();
        assert_eq!(jobs, [17, 3]);
        assert_eq!(listed_reasons(&format!("34 102 {MEMORY}\n")), of_ads[..1]);
        let pasted = format!(
            "  012 (1.000.000) 11/29 09:10:00 Job was held.\n  \t{MEMORY}\n  \tCode 34 Subcode 102\n  ...\n"
        );
        assert_eq!(listed_reasons(&pasted), of_ads[..1]);
    }

    #[test]
    fn other_texts_are_one_reason() {
        for text in [
            MEMORY,
            "1 total failures: first failure: reading from file /a",
            "a\nb",
        ] {
            assert_eq!(listed_reasons(text), [ListedReason::of_job(text, None)]);
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_reason(text in "([ 0-9.\n]|HOLD_REASON|Job was held.|HoldReason = |[a-z]){0,40}") {
            prop_assert!(!listed_reasons(&text).is_empty());
        }
    }
}
