//! Texts of events that events do not keep: reasons of holds, messages of lost runs, and names of DAG nodes and of
//! sites.

use super::event::JobEvent;
use super::event_number::{
    DISCONNECTED, EVICTED, EXECUTE, RECONNECT_FAILED, REMOTE_ERROR, SHADOW_EXCEPTION, SUBMIT,
};
use super::record::{LogRecord, RecordContent, body_lines};
use super::run_messages::lost_run_message;
use super::submission_names::quoted_value;

/// Attributes of a machine that name its site, the most exact one first.
const SITE_ATTRIBUTES: [&str; 2] = ["GLIDEIN_ResourceName", "GLIDEIN_Site"];

/// A text in an event, as written in the log. It may contain anything that a log can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventText {
    /// Cluster of the job.
    pub cluster: i32,
    /// Proc of the job.
    pub proc: i32,
    /// What it is the text of.
    pub kind: EventTextKind,
    /// The text.
    pub text: String,
}

/// The meaning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventTextKind {
    /// The reason of a hold.
    HoldReason {
        /// Identifies the hold, as in [`JobEvent`].
        text_hash: u32,
    },
    /// The name of the job's node of a DAG, in event 000.
    DagNode,
    /// The message with which a run was lost, in event 004, 007, 021, 022 or 024; empty if there is none.
    LostRun,
    /// The site of a machine, in event 001.
    Site {
        /// The machine, as in [`super::ExecutionHost`].
        host: u32,
        /// The machine's attribute with this text.
        attribute: &'static str,
    },
}

/// Returns true if events `number` may have a text that [`parse_text`] reads.
pub(super) fn may_have_text(number: u16) -> bool {
    matches!(number, SUBMIT | EXECUTE) || is_lost_run(number)
}

/// Returns true if events `number` have the message of a lost run.
fn is_lost_run(number: u16) -> bool {
    matches!(
        number,
        EVICTED | SHADOW_EXCEPTION | REMOTE_ERROR | DISCONNECTED | RECONNECT_FAILED
    )
}

/// Parses the text in `event`, which `record` contains: the name of the node of a submission, or of the site of a
/// run, or the message of a lost run.
pub(super) fn parse_text(record: &LogRecord<'_>, event: &JobEvent) -> Option<EventText> {
    let (kind, text) = match event.number {
        SUBMIT => (EventTextKind::DagNode, dag_node(record)?),
        EXECUTE => {
            let host = event.facts.execution_place(EXECUTE).host;
            let (attribute, site) = site(record).filter(|_| host != 0)?;
            (EventTextKind::Site { host, attribute }, site)
        }
        number if is_lost_run(number) => {
            let message = lost_run_message(record).unwrap_or_default();
            (EventTextKind::LostRun, message)
        }
        _ => return None,
    };
    Some(EventText {
        cluster: event.cluster,
        proc: event.proc,
        kind,
        text,
    })
}

/// Returns the name after `DAG Node: ` in the notes of a submission, or in its structured notes.
fn dag_node(record: &LogRecord<'_>) -> Option<String> {
    match record.content {
        RecordContent::Text(text) => {
            let mut lines = body_lines(text).split(|byte| *byte == b'\n');
            lines.find_map(|line| {
                let line = line.trim_ascii();
                let in_notes = line.strip_prefix(b"DAG Node: ").map(<[u8]>::trim_ascii);
                let is_ad = line.starts_with(b"[");
                let name =
                    in_notes.or_else(|| quoted_value(line, b"DAGNodeName = \"").filter(|_| is_ad));
                shown(name?)
            })
        }
        RecordContent::Ad(format) => {
            let attributes = record.ad_attributes(format);
            let noted = || attributes.text("LogNotes")?.strip_prefix("DAG Node: ");
            let name = attributes.nested_text("StructuredNotes", "DAGNodeName");
            shown(name.or_else(noted)?.as_bytes())
        }
    }
}

/// Returns the attribute that names the site of a run, and the name.
fn site(record: &LogRecord<'_>) -> Option<(&'static str, String)> {
    let value = |attribute: &str| match record.content {
        RecordContent::Text(text) => {
            let mut lines = body_lines(text).split(|byte| *byte == b'\n');
            lines.find_map(|line| {
                let rest = line.trim_ascii().strip_prefix(attribute.as_bytes())?;
                shown(quoted_value(rest, b" = \"")?)
            })
        }
        RecordContent::Ad(format) => {
            let attributes = record.ad_attributes(format);
            shown(
                attributes
                    .nested_text("ExecuteProps", attribute)?
                    .as_bytes(),
            )
        }
    };
    SITE_ATTRIBUTES
        .into_iter()
        .find_map(|attribute| Some((attribute, value(attribute)?)))
}

fn shown(name: &[u8]) -> Option<String> {
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::super::event::parse_event;
    use super::super::record_scan::RecordScan;
    use super::*;

    fn name(text: &str) -> Option<EventText> {
        let record = RecordScan::new(text.as_bytes(), true).collect_records()[0];
        parse_text(&record, &parse_event(&record))
    }

    fn node(body: &str) -> Option<String> {
        let submit = "000 (1.0.0) 01/02 03:04:05 Job submitted from host: <1.2.3.4:9618>";
        let text = name(&format!("{submit}\n{body}...\n"))?;
        assert_eq!(text.kind, EventTextKind::DagNode);
        Some(text.text)
    }

    #[test]
    fn submissions_name_their_node() {
        let is =
            |body, expected: Option<&str>| assert_eq!(node(body).as_deref(), expected, "{body}");
        is("    DAG Node: prep_04\n", Some("prep_04"));
        is("    note\n    DAG Node: a b\r\n", Some("a b"));
        is(
            "    [ DAGNodeName = \"prep_04\"; JobBatchName = \"x\" ]\n",
            Some("prep_04"),
        );
        is("    [ JobBatchName = \"x\" ]\n", None);
        is("    DAG Node: \n", None);
        is("", None);
        let ids = "\"Cluster\": 1, \"EventTypeNumber\": 0, \"EventTime\": \"2024-01-02T03:04:05\"";
        for notes in [
            "\"LogNotes\": \"DAG Node: A\"",
            "\"StructuredNotes\": { \"DAGNodeName\": \"A\" }",
        ] {
            let json = name(&format!("{{ {ids}, {notes} }}\n"));
            assert_eq!(json.expect("a node").text, "A");
        }
    }

    #[test]
    fn runs_name_the_site_of_their_machine() {
        let site = |slot: &str, body: &str| {
            let text = name(&format!(
                "001 (1.0.0) 01/02 03:04:05 Job executing on host: <10.0.0.1:9618>\n\tSlotName: {slot}\n{body}...\n"
            ))?;
            match text.kind {
                EventTextKind::Site { host, attribute } => Some((host, attribute, text.text)),
                _ => None,
            }
        };
        let glidein = site(
            "slot1_5@e4033",
            "\tCpus = 1\n\tGLIDEIN_ResourceName = \"GLOW\"\n\tGPUs = 0\n",
        );
        let (host, attribute, glow) = glidein.expect("a site");
        assert_eq!((attribute, glow.as_str()), ("GLIDEIN_ResourceName", "GLOW"));
        let other = site("slot1_7@e4033", "\tGLIDEIN_Site = \"Wisc\"\n").expect("a site");
        assert_eq!(other, (host, "GLIDEIN_Site", "Wisc".to_owned()));
        assert_eq!(site("slot1_5@e4033", "\tGLIDEIN_Site = undefined\n"), None);
        let json = name(
            "{ \"Cluster\": 1, \"EventTypeNumber\": 1, \"EventTime\": \"2024-01-02T03:04:05\", \"SlotName\": \"slot1@a\", \"ExecuteProps\": { \"GLIDEIN_Site\": \"X\" } }\n",
        );
        assert_eq!(json.expect("a site").text, "X");
    }
}
