//! Recognises what HTCondor's programs print and write, so that a text that is given in place of another one
//! can be named.

/// A text of one of HTCondor's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CondorText {
    /// The ads of jobs, in lines or as JSON.
    Ads,
    /// The ads of jobs in XML.
    XmlAds,
    /// The table of `condor_q -hold`.
    HoldTable,
    /// A table of jobs that has no hold reasons.
    JobTable,
    /// An event log.
    EventLog,
    /// DAGMan's own log.
    DagmanLog,
    /// What `condor_q -analyze`, `pegasus-analyzer` and HTCondor's mails say about held jobs.
    HoldNotice,
    /// What `condor_q -analyze` says about jobs that are not held.
    IdleAnalysis,
}

/// Returns what `line`, without blanks around it, has of the hold reason that it introduces: `condor_q -analyze` and
/// `pegasus-analyzer` write it there, and a mail of HTCondor after a blank line. Returns `None` for any other line.
pub fn introduced_reason(line: &str) -> Option<&str> {
    let of_pegasus = || line.strip_prefix("reason ")?.trim_start().strip_prefix(':');
    let of_mail = || line.ends_with("is being put on hold.").then_some("");
    let reason = line.strip_prefix("Hold reason:");
    reason
        .or_else(of_pegasus)
        .or_else(of_mail)
        .map(str::trim_start)
}

impl CondorText {
    /// Recognises a text by its beginning, which blanks may indent; `None` for any other text.
    pub fn of(text: &str) -> Option<CondorText> {
        let lines = || text.lines().map(str::trim_start);
        let has_line = |begins: &[&str]| {
            lines().any(|line| begins.iter().any(|begin| line.starts_with(begin)))
        };
        let has = |word: &str| text.contains(word);
        let list = text.trim_start().strip_prefix('[');
        let is_json_list = list.is_some_and(|rest| rest.trim_start().starts_with(['{', ']']));
        let found = if has("(CONDOR_DAGMAN) STARTING UP") {
            CondorText::DagmanLog
        } else if has("\"EventTypeNumber\"") || lines().any(begins_event) {
            CondorText::EventLog
        } else if lines().any(|line| introduced_reason(line.trim_end()).is_some()) {
            CondorText::HoldNotice
        } else if has("Run analysis summary") || has("The Requirements expression for job ") {
            CondorText::IdleAnalysis
        } else if is_json_list || has_line(&["ClusterId =", "HoldReason =", "MyType ="]) {
            CondorText::Ads
        } else if has("HOLD_REASON") {
            CondorText::HoldTable
        } else if lines().any(|line| line.contains("OWNER") && line.contains("SUBMITTED")) {
            CondorText::JobTable
        } else if has_line(&["<classads>", "<c>"]) {
            CondorText::XmlAds
        } else {
            return None;
        };
        Some(found)
    }

    /// Names the text, and what reads it.
    pub fn words(self) -> &'static str {
        match self {
            CondorText::Ads => "it is a list of jobs: `poolcast advise --queue FILE` reads it",
            CondorText::XmlAds => {
                "it is a list of jobs in XML: print it with `-json` in place of `-xml`, for `poolcast advise --queue FILE`"
            }
            CondorText::HoldTable => {
                "it is a table of `condor_q -hold`: `poolcast explain` reads it on standard input"
            }
            CondorText::JobTable => {
                "it is a table of jobs without hold reasons: print it with `-json`, for `poolcast advise --queue FILE`"
            }
            CondorText::EventLog => "it is an event log: `poolcast advise FILE` reads it",
            CondorText::HoldNotice => {
                "it is what `condor_q -analyze`, `pegasus-analyzer` or a mail says about held jobs: `poolcast explain` reads it on standard input"
            }
            CondorText::IdleAnalysis => {
                "it is what `condor_q -analyze` says about jobs that are not held: `poolcast advise --idle` says why jobs do not start"
            }
            CondorText::DagmanLog => {
                "it is DAGMan's own log: the events of its jobs are in the file beside it whose name ends with `.nodes.log`"
            }
        }
    }
}

/// Returns true for the first line of a record of an event log, such as `012 (123.000.000) 11/21 ...`.
fn begins_event(line: &str) -> bool {
    let number = line.get(..3).unwrap_or_default();
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    is_number && line.get(3..5) == Some(" (") && line.contains(") ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are those that HTCondor 25.14.1 has printed.
    #[test]
    fn texts_of_each_program_are_recognised() {
        for (text, kind) in [
            (include_str!("../../tests/data/feeds/ads"), CondorText::Ads),
            (
                include_str!("../../tests/data/feeds/history"),
                CondorText::Ads,
            ),
            ("[\n{\n  \"Args\": \"\",\n", CondorText::Ads),
            (
                include_str!("../../tests/data/feeds/ads.xml"),
                CondorText::XmlAds,
            ),
            (
                include_str!("../../tests/data/feeds/hold-table"),
                CondorText::HoldTable,
            ),
            (
                include_str!("../../tests/data/feeds/table"),
                CondorText::JobTable,
            ),
            (
                include_str!("../../tests/data/feeds/history-table"),
                CondorText::JobTable,
            ),
            (
                include_str!("../../tests/data/feeds/xml.log"),
                CondorText::EventLog,
            ),
            (
                include_str!("../../tests/data/feeds/json.log"),
                CondorText::EventLog,
            ),
            (
                "  012 (1.000.000) 11/29 09:10:00 Job was held.\n",
                CondorText::EventLog,
            ),
            (
                include_str!("../../tests/data/feeds/dagman.out"),
                CondorText::DagmanLog,
            ),
            (
                "---\n372993.000:  Request is held.\n\nHold reason: via condor_hold (by user ada)\n\n",
                CondorText::HoldNotice,
            ),
            (
                "Condor job 12.0\n\t/home/ada/run.sh 7\nis being put on hold.\n\nvia condor_hold (by user ada)\n",
                CondorText::HoldNotice,
            ),
            (
                include_str!("../../tests/data/feeds/better-analyze"),
                CondorText::HoldNotice,
            ),
            (
                "001.000:  Run analysis summary ignoring user priority.  Of 1 slots on 0 machines,\n",
                CondorText::IdleAnalysis,
            ),
        ] {
            assert_eq!(CondorText::of(text), Some(kind), "{text:.60}");
        }
        for text in [
            include_str!("../../tests/data/feeds/numbered"),
            include_str!("../../tests/data/feeds/reasons"),
            "[Errno 2] No such file",
            "",
        ] {
            assert_eq!(CondorText::of(text), None, "{text:.60}");
        }
    }
}
