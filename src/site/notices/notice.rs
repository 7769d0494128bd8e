//! A notice: the new causes, as text for a mail and as a document for a web address.

use serde::Serialize;

use poolcast_advice::CauseGroup;
use poolcast_base::{escape, output};
use poolcast_holds::decision::{AnswerFirmness, HoldAction};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Maximum number of causes that a text names.
const MAX_NAMED: usize = 50;

/// Maximum length of a cause in a text, in columns.
const MAX_COLUMNS: usize = 200;

/// The causes that are new since the last notice.
#[derive(Debug, PartialEq, Serialize)]
pub struct Notice {
    /// Prediction time of the last call without a failure, epoch ms; `None` for the first one.
    pub since_ms: Option<i64>,
    /// Prediction time, epoch ms.
    pub asked_ms: i64,
    /// The causes, the most urgent one first.
    pub causes: Vec<NoticeCause>,
}

/// A cause in a notice. It has no field for owners, but its words may have a path with a user's name.
#[derive(Debug, PartialEq, Serialize)]
pub struct NoticeCause {
    /// Name of the cause for `--cause`.
    pub cause: String,
    /// Access point of the jobs.
    pub access_point: String,
    /// True if the cause was known with another answer.
    pub is_other_answer: bool,
    /// The recommended action.
    pub action: HoldAction,
    /// Certainty of the action.
    pub firmness: Option<AnswerFirmness>,
    /// The hold code.
    pub hold_code: i32,
    /// The hold subcode.
    pub hold_subcode: i32,
    /// The cause in words. It may contain any text that a log can have, without control characters.
    pub words: String,
    /// Number of jobs.
    pub jobs: usize,
    /// Number of known owners.
    pub owners: usize,
    /// Start of the first hold, epoch ms.
    pub held_since_ms: i64,
}

/// Document that a web address gets. Chat servers show its `text`.
#[derive(Debug, Serialize)]
struct NoticeDocument<'a> {
    schema_version: u32,
    text: String,
    #[serde(flatten)]
    notice: &'a Notice,
}

impl NoticeCause {
    pub(super) fn new(group: &CauseGroup<'_>, is_other_answer: bool) -> NoticeCause {
        NoticeCause {
            cause: group.cause.clone(),
            access_point: escape::value(group.ap).into_owned(),
            is_other_answer,
            action: group.action,
            firmness: group.firmness,
            hold_code: group.hold_code,
            hold_subcode: group.hold_subcode,
            words: output::cut(&group.words, MAX_COLUMNS),
            jobs: group.jobs.len(),
            owners: group.owners.len(),
            held_since_ms: group.held_since_ms,
        }
    }

    fn line(&self) -> String {
        let mut counts = output::counted(self.jobs, "job");
        if self.owners > 0 {
            counts = format!("{counts}, {}", output::counted(self.owners, "owner"));
        }
        format!(
            "{}: {} ({}/{}), {counts}, cause {}",
            self.action.word().to_uppercase(),
            self.words,
            self.hold_code,
            self.hold_subcode,
            self.cause
        )
    }
}

impl Notice {
    /// The subject of a mail. It has numbers alone, and no text of a log.
    pub fn subject(&self) -> String {
        let new = self
            .causes
            .iter()
            .filter(|one| !one.is_other_answer)
            .count();
        let other = self.causes.len() - new;
        let mut parts = Vec::new();
        if new > 0 {
            let jobs = self.causes.iter().filter(|one| !one.is_other_answer);
            let jobs = jobs.map(|one| one.jobs).sum();
            parts.push(format!(
                "{} of {}",
                output::counted(new, "new cause"),
                output::counted(jobs, "held job")
            ));
        }
        if other > 0 {
            parts.push(output::counted(other, "new answer"));
        }
        format!("poolcast: {}", parts.join(", "))
    }

    /// The notice in lines of text, with at most `most` causes of each kind.
    pub(super) fn text(&self, most: usize) -> String {
        let mut text = String::new();
        let since = self.since_ms.map_or("held now".to_owned(), |ms| {
            format!("since {}", output::utc_time(ms))
        });
        for (title, is_other_answer) in [("new causes", false), ("new answers", true)] {
            let causes: Vec<&NoticeCause> = (self.causes.iter())
                .filter(|one| one.is_other_answer == is_other_answer)
                .collect();
            if causes.is_empty() {
                continue;
            }
            text.push_str(&format!("{title}, {since}:\n"));
            for cause in causes.iter().take(most) {
                text.push_str(&format!("  {}\n", cause.line()));
            }
            if causes.len() > most {
                text.push_str(&format!("  and {} more\n", causes.len() - most));
            }
        }
        text
    }

    /// The JSON document.
    pub fn document(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&NoticeDocument {
            schema_version: SCHEMA_VERSION,
            text: self.text(MAX_NAMED),
            notice: self,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use poolcast_advice::{FailedThing, JobId};

    pub(in super::super) fn group(cause: &str, words: &'static str) -> CauseGroup<'static> {
        CauseGroup {
            cause: cause.to_owned(),
            ap: "ap",
            action: HoldAction::Later,
            firmness: None,
            hold_code: 13,
            hold_subcode: 2,
            words: words.to_owned(),
            jobs: vec![JobId {
                cluster: 1,
                proc: 0,
            }],
            clusters: 1,
            owners: BTreeSet::from(["ada"]),
            odds: None,
            probes: Vec::new(),
            state: None,
            look: None,
            looked_files: 0,
            is_by_look: false,
            stated: None,
            memory_plans: Vec::new(),
            state_of: None,
            thing: words.to_owned(),
            failed: FailedThing::Other(words.to_owned()),
            members: Vec::new(),
            settled_by: Vec::new(),
            lacks_outcomes: false,
            is_known_from_elsewhere: false,
            held_since_ms: 500,
            held_last_ms: 500,
            raise: None,
            command: None,
            then: None,
            place: None,
            dag_nodes: std::collections::BTreeSet::new(),
            is_like_last: false,
            removal: None,
        }
    }

    #[test]
    fn notice_has_words_and_counts_and_no_owner() {
        let cause = |words, is_other| NoticeCause::new(&group("aaaaaa", words), is_other);
        let notice = Notice {
            since_ms: Some(1_795_225_787_000),
            asked_ms: 1_795_225_797_000,
            causes: vec![
                cause("fs1 is down", false),
                cause("a\r\nBcc: eve@example.org\u{1b}[31m", true),
            ],
        };
        assert_eq!(
            notice.subject(),
            "poolcast: 1 new cause of 1 held job, 1 new answer"
        );
        assert_eq!(
            notice.text(MAX_NAMED),
            "new causes, since 2026-11-21 01:49:47 UTC:\n  LATER: fs1 is down (13/2), 1 job, 1 owner, cause aaaaaa\n\
             new answers, since 2026-11-21 01:49:47 UTC:\n  LATER: a\\r\\nBcc: eve@example.org\\u{1b}[31m (13/2), 1 job, 1 owner, cause aaaaaa\n"
        );
        let document = notice.document().expect("JSON");
        let document: serde_json::Value = serde_json::from_slice(&document).expect("JSON");
        assert_eq!(document["causes"][0]["owners"], 1);
        assert!(!document.to_string().contains("ada"), "{document}");
    }
}
