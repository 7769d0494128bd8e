//! Reads lists of hold reasons, as people copy them from HTCondor's programs.

use std::borrow::Cow;

use htcondor_holdreasons::{Thing, read_reason};
use poolcast_collect::{CondorText, introduced_reason};
use poolcast_holds::job_ads::{ListedAd, for_each_ad};

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

/// Maximum number of numbers before a reason: the two of an id, and the codes.
const MAX_NUMBERS: usize = 4;

/// Words after the number with which reasons of older versions begin.
const COUNTED_FAILURES: &str = "total failures";

/// Reads the hold reasons in `text`: the ads of `condor_q` or `condor_history` with `-l` or `-json`, the table of
/// `condor_q -hold`, what `condor_q -analyze`, `pegasus-analyzer` or HTCondor's mails say, the holds of an event log or of DAGMan's own log, or the lines of
/// `condor_q -af HoldReasonCode HoldReasonSubCode HoldReason`, perhaps after the ids of jobs, or counted by
/// `sort | uniq -c`. Of any other text, such as a letter, the paragraphs count that are reasons, or else all of it is one.
///
/// # Errors
/// Fails if `text` is of one of HTCondor's programs, but has no hold reason. The error says what it is.
pub fn listed_reasons(text: &str) -> Result<Vec<ListedReason>, &'static str> {
    let text = &*unquoted(text);
    let Some(kind) = CondorText::of(text) else {
        let found = reasons_of_lines(text).or_else(|| reasons_of_paragraphs(text));
        return Ok(found.unwrap_or_else(|| vec![ListedReason::of_job(text.trim(), None)]));
    };
    let found = match kind {
        CondorText::Ads => reasons_of_ads(text),
        CondorText::HoldTable => reasons_of_table(text),
        CondorText::EventLog => reasons_of_events(text),
        CondorText::DagmanLog => reasons_of_dagman(text),
        CondorText::HoldNotice => reasons_of_notices(text),
        CondorText::XmlAds | CondorText::JobTable | CondorText::IdleAnalysis => Vec::new(),
    };
    if found.is_empty() {
        return Err(kind.words());
    }
    Ok(found)
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
        found.extend(ad.ok().and_then(|ad| reason_of_ad(&ad)));
    });
    // A list that is cut short has no job that could be trusted.
    if read.is_err() {
        found.clear();
    }
    found
}

/// Returns the reason of the present hold of a job, or else of its last one.
fn reason_of_ad(ad: &ListedAd) -> Option<ListedReason> {
    ["", "Last"].iter().find_map(|prefix| {
        let value = |name: &str| ad.get(&format!("{prefix}HoldReason{name}"));
        let number = |name| i32::try_from(value(name)?.as_i64()?).ok();
        let codes = number("Code").map(|code| (code, number("SubCode").unwrap_or(0)));
        Some(ListedReason::of_job(value("")?.as_str()?, codes))
    })
}

/// Reads lines such as `123.0  ada  11/29 09:10 REASON` after their head, or `13/2 REASON` in place of the reason.
fn reasons_of_table(text: &str) -> Vec<ListedReason> {
    let lines = text
        .lines()
        .skip_while(|line| !line.contains("HOLD_REASON"));
    let reason = |line: &str| {
        let (id, rest) = next_word(line)?;
        let rest = (0..3).try_fold(rest, |rest, _| Some(next_word(rest)?.1))?;
        let with_codes = next_word(rest).and_then(|(codes, rest)| Some((codes_in(codes)?, rest)));
        let (codes, rest) = with_codes.map_or((None, rest), |(codes, rest)| (Some(codes), rest));
        (is_job_id(id) && !rest.is_empty()).then(|| ListedReason::of_job(rest, codes))
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

/// Reads the lines of DAGMan's own log that have a hold reason.
fn reasons_of_dagman(text: &str) -> Vec<ListedReason> {
    let reason = |line: &str| {
        let (_, reason) = line.split_once(" Hold reason: ")?;
        Some(ListedReason::of_job(reason.trim(), None))
    };
    text.lines().filter_map(reason).collect()
}

/// Reads the reasons that lines introduce. A reason that was broken into lines ends before a blank line.
fn reasons_of_notices(text: &str) -> Vec<ListedReason> {
    let mut found = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some(first) = introduced_reason(line) else {
            continue;
        };
        let mut parts = vec![first];
        // A mail has a blank line before the reason, too.
        let rest = lines
            .by_ref()
            .skip_while(|line| first.is_empty() && line.is_empty());
        parts.extend(rest.take_while(|line| !line.is_empty()));
        found.push(parts.join(" "));
    }
    // `pegasus-analyzer` writes `-` for a reason that it does not know.
    let known = found.iter().map(|reason| reason.trim());
    known
        .filter(|reason| !matches!(*reason, "" | "-"))
        .map(|reason| ListedReason::of_job(reason, None))
        .collect()
}

/// Reads a list of reasons, one in each line: all after numbers, or all understood without. Returns `None` for
/// other lines.
fn reasons_of_lines(text: &str) -> Option<Vec<ListedReason>> {
    // `-af:h` prints the names of the attributes first, and a job that is not held has no reason.
    let is_reason = |line: &&str| {
        let end = line.trim_end();
        !end.is_empty() && !end.ends_with("HoldReason") && !end.ends_with("undefined")
    };
    let lines: Vec<&str> = text.lines().filter(is_reason).collect();
    let numbered: Option<Vec<ListedReason>> = lines.iter().copied().map(numbered_reason).collect();
    let found = numbered.or_else(|| lines.iter().copied().map(begun_reason).collect())?;
    (!found.is_empty()).then_some(found)
}

/// Reads the paragraphs that are reasons of their own, such as those in a letter; `None` if there are none, or if the
/// text has one paragraph.
fn reasons_of_paragraphs(text: &str) -> Option<Vec<ListedReason>> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let paragraphs = || {
        lines
            .split(|line| line.is_empty())
            .filter(|lines| !lines.is_empty())
    };
    let found = paragraphs().filter_map(|lines| begun_reason(&lines.join(" ")));
    let found: Vec<ListedReason> = found.collect();
    (paragraphs().count() > 1 && !found.is_empty()).then_some(found)
}

/// Removes the marks of a quotation, if each line has one.
fn unquoted(text: &str) -> Cow<'_, str> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    if !lines.all(|line| line.trim_start().starts_with('>')) {
        return Cow::Borrowed(text);
    }
    let lines = text.lines().map(|line| {
        let line = line.trim_start();
        line.strip_prefix('>').unwrap_or(line)
    });
    Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
}

/// Reads a line of `-af`: a count after blanks, the id of the job and the codes, if they are there, and the
/// reason. Returns `None` if there is neither an id nor a number, or one that may be a part of the reason.
fn numbered_reason(line: &str) -> Option<ListedReason> {
    let mut reason = line.trim();
    let mut numbers: Vec<i32> = Vec::new();
    let mut has_id = false;
    while let Some((word, rest)) = next_word(reason)
        && numbers.len() < MAX_NUMBERS
        && !rest.starts_with(COUNTED_FAILURES)
    {
        match word.parse() {
            Ok(number) => numbers.push(number),
            // `-af:j` prints the id as one word.
            Err(_) if numbers.is_empty() && !has_id && is_job_id(word) => has_id = true,
            Err(_) => break,
        }
        reason = rest;
    }
    let has_blanks = line.starts_with(' ');
    let (jobs, codes) = match numbers[..] {
        [count] if has_blanks => (count, None),
        [count, code, subcode] if has_blanks => (count, Some((code, subcode))),
        [code, subcode] | [code, subcode, _] | [_, _, code, subcode] => (1, Some((code, subcode))),
        [] if has_id => (1, None),
        _ => return None,
    };
    (!reason.is_empty()).then(|| ListedReason {
        reason: reason.to_owned(),
        codes,
        jobs: u64::try_from(jobs).unwrap_or(1),
    })
}

/// Reads a line that is a reason of its own, and not the rest of one that is broken into lines.
fn begun_reason(line: &str) -> Option<ListedReason> {
    let line = line.trim();
    let begins =
        line.starts_with(|c: char| c.is_uppercase() || c == '(') || line.starts_with("via ");
    let is_understood = || read_reason(line, None).kind.thing != Thing::Unknown;
    (begins && is_understood()).then(|| ListedReason::of_job(line, None))
}

/// Reads `13/2`.
fn codes_in(word: &str) -> Option<(i32, i32)> {
    let (code, subcode) = word.split_once('/')?;
    Some((code.parse().ok()?, subcode.parse().ok()?))
}

/// Returns true for `123.0`.
fn is_job_id(word: &str) -> bool {
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    word.split_once('.')
        .is_some_and(|(cluster, proc)| is_number(cluster) && is_number(proc))
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

    fn listed(text: &str) -> Vec<ListedReason> {
        listed_reasons(text).expect("reasons")
    }

    /// The codes, the thing that failed, and the number of jobs.
    type CountedKind = (Option<(i32, i32)>, Thing, u64);

    /// Counts the jobs of each kind of reason in `text`.
    fn kinds(text: &str) -> Vec<CountedKind> {
        let mut counts = std::collections::BTreeMap::new();
        for one in listed(text) {
            let thing = read_reason(&one.reason, one.codes).kind.thing;
            let key = (one.codes, format!("{thing:?}"));
            counts.entry(key).or_insert((one.codes, thing, 0)).2 += one.jobs;
        }
        counts.into_values().collect()
    }

    /// Ten jobs that HTCondor 25.14.1 held for four reasons, as its programs have printed them.
    #[test]
    fn lists_of_all_programs_are_read() {
        let person = (Some((1, 0)), Thing::Decision, 2);
        let own_rule = (Some((3, 0)), Thing::ProgramEnd, 2);
        let input = (Some((13, 2)), Thing::File, 5);
        let memory = (Some((21, 102)), Thing::Memory, 1);
        let all = [person, own_rule, input, memory];
        let table = include_str!("../../tests/data/feeds/hold-table");
        let (first, second): (Vec<&str>, Vec<&str>) = table
            .lines()
            .partition(|line| !line.starts_with("   2.") && !line.starts_with("   4."));
        let [begin, title] = [first[2], first[3]];
        let two_tables = [&first[..], &["", "", begin, title], &second]
            .concat()
            .join("\n");
        for text in [
            table,
            &table.replace('\n', "\r\n"),
            &table.replace('\n', "\n        "),
            // `-global` prints a table for each access point.
            &two_tables,
            include_str!("../../tests/data/feeds/numbered"),
            include_str!("../../tests/data/feeds/by-job"),
            include_str!("../../tests/data/feeds/counted-codes"),
        ] {
            assert_eq!(kinds(text), all, "{text}");
        }
        let without_codes = |(_, thing, jobs)| (None, thing, jobs);
        let reasons = kinds(include_str!("../../tests/data/feeds/reasons"));
        for one in all.map(without_codes) {
            assert!(reasons.contains(&one), "{one:?}");
        }
        let one_input = [(Some((13, 2)), Thing::File, 1)];
        assert_eq!(
            kinds(include_str!("../../tests/data/feeds/history")),
            one_input
        );
        let ads = [(Some((13, 2)), Thing::File, 1), memory];
        assert_eq!(kinds(include_str!("../../tests/data/feeds/ads")), ads);
        let node = [(None, Thing::File, 1)];
        assert_eq!(
            kinds(include_str!("../../tests/data/feeds/dagman.out")),
            node
        );
        let pasted = format!(
            "  012 (1.000.000) 11/29 09:10:00 Job was held.\n  \t{MEMORY}\n  \tCode 34 Subcode 102\n  ...\n"
        );
        assert_eq!(
            listed(&pasted),
            [ListedReason::of_job(MEMORY, Some((34, 102)))]
        );
        for text in [
            include_str!("../../tests/data/feeds/ads.xml"),
            include_str!("../../tests/data/feeds/table"),
            include_str!("../../tests/data/feeds/json.log"),
        ] {
            assert!(listed_reasons(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lines_have_counts_ids_and_codes_before_the_reason() {
        let of_codes = |codes, jobs| ListedReason {
            jobs,
            ..ListedReason::of_job(MEMORY, codes)
        };
        let memory = Some((34, 102));
        for (before, codes, jobs) in [
            ("34 102 ", memory, 1),
            ("  34 102 ", memory, 1),
            ("12 0 34 102 ", memory, 1),
            ("    1234567 0 34 102 ", memory, 1),
            ("12.0 34 102 ", memory, 1),
            ("12.0 ", None, 1),
            ("     17 34 102 ", memory, 17),
            ("     17 ", None, 17),
        ] {
            let line = format!("{before}{MEMORY}\n");
            assert_eq!(listed(&line), [of_codes(codes, jobs)], "{before}");
        }
        let text = format!(
            "HoldReasonCode HoldReasonSubCode HoldReason\n34 102 {MEMORY}\nundefined undefined undefined\n"
        );
        assert_eq!(listed(&text), [of_codes(memory, 1)]);
        let old = "1 total failures: first failure: reading from file /a";
        assert_eq!(
            listed(&format!("     17 {old}")),
            [ListedReason {
                jobs: 17,
                ..ListedReason::of_job(old, None)
            }]
        );
        assert_eq!(
            listed(&format!("13 2 {old}")),
            [ListedReason::of_job(old, Some((13, 2)))]
        );
    }

    #[test]
    fn analyses_and_mails_have_one_reason_for_each_job() {
        // It begins with what each job requires.
        let analysis = include_str!("../../tests/data/feeds/better-analyze");
        let both = [(None, Thing::File, 1), (None, Thing::ProgramEnd, 1)];
        assert_eq!(kinds(analysis), both);
        assert_eq!(kinds(&analysis.replace('\n', "\r\n")), both);

        // HTCondor's mails, by its sources (src/condor_utils/email_cpp.cpp), with a reason that the mail broke.
        let mail = format!(
            "Condor job 7.0\n\t/home/ada/run.sh 7\n\tsubmitted from directory /home/ada\nis being put on hold.\n\n{}\n\n\
             -=-=-=-\n\nQuestions about this message or HTCondor in general?\n",
            MEMORY.replace(" memory", "\r\nmemory")
        );
        assert_eq!(listed(&mail), [ListedReason::of_job(MEMORY, None)]);

        // As in the manual of Pegasus.
        let workflow = format!(
            "****Held jobs' details****\n\n====sleep_j2====\n\n       submit file            : sleep_j2.sub\n       \
             last_job_instance_id   : 7\n       reason                 :  {}\n\n****Failed jobs' details****\n",
            MEMORY.replace(" memory", "\n                                 memory")
        );
        assert_eq!(listed(&workflow), [ListedReason::of_job(MEMORY, None)]);
    }

    #[test]
    fn reasons_in_lines_of_their_own_are_several_and_a_broken_one_is_one() {
        let both = format!("{MEMORY}\nvia condor_hold (by user ada)\n");
        assert_eq!(listed(&both).len(), 2);
        let broken = MEMORY.replace(" memory", "\nmemory");
        assert_eq!(listed(&broken), [ListedReason::of_job(&broken, None)]);
    }

    #[test]
    fn letters_have_the_reasons_of_their_paragraphs() {
        let broken = MEMORY.replace(" memory", "\nmemory");
        let letter =
            format!("Dear all,\n\nwhat does this mean?\n\n{broken}\n\nBest wishes,\nAda\n");
        let expected = [ListedReason::of_job(MEMORY, None)];
        assert_eq!(listed(&letter), expected);
        let quoted: String = letter.lines().map(|line| format!("> {line}\n")).collect();
        assert_eq!(listed(&quoted), expected);
        assert_eq!(listed(&format!("> {MEMORY}\n")), expected);
    }

    #[test]
    fn other_texts_are_one_reason() {
        for text in [
            MEMORY,
            "1 total failures: first failure: reading from file /a",
            "a\nb",
            "a\n\nb",
        ] {
            assert_eq!(listed(text), [ListedReason::of_job(text, None)]);
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_reason(text in "([ 0-9.\n]|HOLD_REASON|Job was held.|HoldReason = |Hold reason: |reason  :|is being put on hold.|[a-z]){0,40}") {
            prop_assert!(listed_reasons(&text) != Ok(Vec::new()));
        }
    }
}
