//! Parses the names of a submission, in event 000 or in a job's ad: its batch, and its node of a
//! DAG.

use memchr::{memchr, memmem};

use super::event_facts::{SubmissionNames, name_hash};
use super::reason_identity::mask_numbers;
use super::record::{LogRecord, RecordContent, body_lines, headline};

/// Parses the names of the submission in event 000, in a line such as `[ DAGNodeName = "a_1";
/// JobBatchName = "b" ]`.
pub(super) fn parse_submission_names(record: &LogRecord<'_>) -> SubmissionNames {
    match record.content {
        RecordContent::Text(text) => {
            let notes = headline(body_lines(text));
            if notes.first() != Some(&b'[') {
                return SubmissionNames::default();
            }
            submission_names(
                quoted_value(notes, b"JobBatchName = \""),
                quoted_value(notes, b"DAGNodeName = \""),
            )
        }
        RecordContent::Ad(format) => {
            let attributes = record.ad_attributes(format);
            let notes = |name| attributes.nested_text("StructuredNotes", name);
            submission_names(
                notes("JobBatchName").map(str::as_bytes),
                notes("DAGNodeName").map(str::as_bytes),
            )
        }
    }
}

/// Hashes the names. The numbers in the name of a DAG node are masked.
pub(super) fn submission_names(batch: Option<&[u8]>, dag_node: Option<&[u8]>) -> SubmissionNames {
    let hash_or_0 = |name: Option<&[u8]>| name.filter(|name| !name.is_empty()).map_or(0, name_hash);
    let node_kind = dag_node.map(|name| {
        let mut kind = Vec::with_capacity(name.len());
        mask_numbers(name, &mut kind);
        kind
    });
    SubmissionNames {
        batch: hash_or_0(batch),
        dag_node: hash_or_0(node_kind.as_deref()),
    }
}

/// Returns the text after `begin`, which must end with a quote, up to the next quote.
pub(super) fn quoted_value<'a>(text: &'a [u8], begin: &[u8]) -> Option<&'a [u8]> {
    let value = &text[memmem::find(text, begin)? + begin.len()..];
    Some(&value[..memchr(b'"', value)?])
}

#[cfg(test)]
mod tests {
    use super::super::record_scan::RecordScan;
    use super::*;

    fn names(text: &str) -> SubmissionNames {
        parse_submission_names(&RecordScan::new(text.as_bytes(), true).collect_records()[0])
    }

    #[test]
    fn submissions_report_batch_and_node() {
        let submit = |notes: &str| {
            names(&format!(
                "000 (1.0.0) 01/02 03:04:05 Job submitted from host: <1.2.3.4:9618?alias=ap1.x>\n{notes}...\n"
            ))
        };
        let dag = submit("    [ DAGNodeName = \"prep_04\"; JobBatchName = \"wf04.dag+1\" ]\n");
        assert_eq!(dag, submission_names(Some(b"wf04.dag+1"), Some(b"prep_17")));
        assert!(dag.batch != 0 && dag.dag_node != 0);
        assert_ne!(
            dag,
            submission_names(Some(b"wf04.dag+1"), Some(b"merge_04"))
        );
        assert_ne!(dag, submission_names(Some(b"wf04.dag+2"), Some(b"prep_04")));
        let batch = submit("    [ JobBatchName = \"env\" ]\n");
        assert_eq!(batch, submission_names(Some(b"env"), None));
        for notes in [
            "",
            "    DAG Node: A\n",
            "    user note\n",
            "    [ JobBatchName = \"x\n",
        ] {
            assert_eq!(submit(notes), SubmissionNames::default(), "{notes}");
        }
    }

    #[test]
    fn classads_give_the_same_names() {
        let ids = "\"Cluster\": 1, \"EventTypeNumber\": 0, \"EventTime\": \"2024-01-02T03:04:05\"";
        let notes = "{ \"DAGNodeName\": \"A\", \"JobBatchName\": \"b.dag+12\" }";
        let json = names(&format!("{{ {ids}, \"StructuredNotes\": {notes} }}\n"));
        assert_eq!(json, submission_names(Some(b"b.dag+12"), Some(b"A")));
    }
}
