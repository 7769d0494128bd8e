//! Parser of events that are written as ClassAds, in JSON or XML.
//!
//! HTCondor writes such events if `EVENT_LOG_FORMAT_OPTIONS` has `JSON` or `XML`. Each event is an
//! object or a `<c>` element that begins at the beginning of a line. There are neither commas nor
//! terminators between events.

use std::collections::BTreeMap;

use memchr::{memchr, memmem};
use serde_json::Value;

use super::record_header::RecordHeader;
use super::stamp::parse_stamp;

/// Format of a line that begins something other than a text record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AdFormat {
    /// A JSON object.
    Json,
    /// A `<c>` element.
    Xml,
    /// Lines around the elements of an XML log.
    Prolog,
}

impl AdFormat {
    /// Detects the format at the start of `text`, if any: a bracket, then an attribute.
    pub(super) fn at_start(text: &[u8]) -> Option<AdFormat> {
        const PROLOG: [&[u8]; 4] = [
            b"<?xml",
            b"<!DOCTYPE classads",
            b"<classads>",
            b"</classads>",
        ];
        let attribute_after = |begin: &[u8]| text.strip_prefix(begin).map(<[u8]>::trim_ascii_start);

        if attribute_after(b"{").is_some_and(|rest| rest.starts_with(b"\"")) {
            Some(AdFormat::Json)
        } else if attribute_after(b"<c>").is_some_and(|rest| rest.starts_with(b"<a n=")) {
            Some(AdFormat::Xml)
        } else if PROLOG.iter().any(|word| text.starts_with(word)) {
            Some(AdFormat::Prolog)
        } else {
            None
        }
    }

    /// Returns the length, in bytes, of the item at the start of `text`, including its last line
    /// feed. Returns `None` if the item does not end in `text`.
    pub(super) fn length(self, text: &[u8]) -> Option<usize> {
        let first_line = text[..memchr(b'\n', text).unwrap_or(text.len())].trim_ascii_end();
        let end = match self {
            AdFormat::Json if first_line.ends_with(b"}") => first_line.len(),
            AdFormat::Json => memmem::find(text, b"\n}")? + 2,
            AdFormat::Xml => memmem::find(text, b"</c>")? + 4,
            AdFormat::Prolog => 0,
        };

        match memchr(b'\n', &text[end..]) {
            Some(at) => Some(end + at + 1),
            None if self == AdFormat::Prolog => None,
            None => Some(text.len()),
        }
    }
}

/// Attributes of an event, by name.
#[derive(Debug, Clone, Default)]
pub(super) struct AdAttributes(BTreeMap<String, Value>);

impl AdAttributes {
    /// Parses one event. Returns `None` if it is damaged.
    pub(super) fn read(text: &[u8], format: AdFormat) -> Option<AdAttributes> {
        let text = String::from_utf8_lossy(text);
        match format {
            AdFormat::Json => serde_json::from_str(&text).ok().map(AdAttributes),
            AdFormat::Xml => Some(AdAttributes(xml_attributes(&text))),
            AdFormat::Prolog => None,
        }
    }

    pub(super) fn int(&self, name: &str) -> Option<i64> {
        self.0.get(name)?.as_i64()
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// Returns a number, whole or not.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    /// Returns the string attribute `name` of the ad `outer` within this one. In XML the attributes
    /// of an inner ad are read as attributes of the outer one.
    pub(super) fn nested_text(&self, outer: &str, name: &str) -> Option<&str> {
        let inner = self.0.get(outer).and_then(|inner| inner.get(name));
        inner.or_else(|| self.0.get(name))?.as_str()
    }

    pub(super) fn bool(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool()
    }

    /// Returns the data that a text record has in its first line; `None` if an attribute is missing
    /// or invalid.
    pub(super) fn header(&self) -> Option<RecordHeader> {
        let time = self.text("EventTime")?;
        let (stamp, length) = parse_stamp(time.as_bytes())?;
        if length != time.len() {
            return None;
        }
        let number = u16::try_from(self.int("EventTypeNumber")?)
            .ok()
            .filter(|number| *number < 1000)?;

        Some(RecordHeader {
            number,
            cluster: self.int("Cluster").unwrap_or(-1),
            proc: self.int("Proc").unwrap_or(-1),
            subproc: self.int("Subproc").unwrap_or(-1),
            stamp,
        })
    }
}

/// Parses the `<a n="Name">value</a>` elements in `text`.
fn xml_attributes(text: &str) -> BTreeMap<String, Value> {
    let mut attributes = BTreeMap::new();
    for element in text.split("<a n=\"").skip(1) {
        let Some((name, rest)) = element.split_once("\">") else {
            continue;
        };
        if let Some(value) = xml_value(rest) {
            attributes.insert(name.to_owned(), value);
        }
    }
    attributes
}

/// Parses the string, integer, real or Boolean at the start of `text`.
fn xml_value(text: &str) -> Option<Value> {
    let text = text.trim_start();
    if let Some(string) = text_between(text, "<s>", "</s>") {
        return Some(Value::String(unescape_xml(string)));
    }
    if let Some(number) = text_between(text, "<i>", "</i>") {
        return number.trim().parse::<i64>().ok().map(Value::from);
    }
    if let Some(number) = text_between(text, "<r>", "</r>") {
        return number.trim().parse::<f64>().ok().map(Value::from);
    }
    text_between(text, "<b v=\"", "\"").map(|truth| Value::Bool(truth == "t"))
}

/// Returns the text between `open`, which `text` must begin with, and `close`.
fn text_between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let (found, _) = text.strip_prefix(open)?.split_once(close)?;
    Some(found)
}

/// Replaces the predefined XML entities in `text`.
fn unescape_xml(text: &str) -> String {
    // The ampersand is last, so that a replaced `&amp;` does not begin another entity.
    const ENTITIES: [(&str, &str); 5] = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&amp;", "&"),
    ];
    let mut text = text.to_owned();
    for (entity, sign) in ENTITIES {
        text = text.replace(entity, sign);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let json = "{\n  \"Cluster\": 7,\n  \"EventTypeNumber\": 12,\n  \"EventTime\": \"2024-01-02T03:04:05\",\n  \"HoldReason\": \"a<b\"\n}\n";
        let xml = "<c>\n    <a n=\"Cluster\"><i>7</i></a>\n    <a n=\"EventTypeNumber\"><i>12</i></a>\n    <a n=\"EventTime\"><s>2024-01-02T03:04:05</s></a>\n    <a n=\"HoldReason\"><s>a&lt;b</s></a>\n</c>\n";
        for (text, format) in [(json, AdFormat::Json), (xml, AdFormat::Xml)] {
            assert_eq!(AdFormat::at_start(text.as_bytes()), Some(format));
            assert_eq!(format.length(text.as_bytes()), Some(text.len()));
            assert_eq!(format.length(&text.as_bytes()[..text.len() - 6]), None);
            let ad = AdAttributes::read(text.as_bytes(), format).expect("sound");
            let header = ad.header().expect("a header");
            assert_eq!((header.number, header.cluster, header.proc), (12, 7, -1));
            assert_eq!(ad.text("HoldReason"), Some("a<b"));
        }
        let line = b"{\"EventTypeNumber\": 1, \"EventTime\": \"2024-01-02T03:04:05\"}\n{";
        assert_eq!(
            (AdFormat::at_start(line), AdFormat::Json.length(line)),
            (Some(AdFormat::Json), Some(line.len() - 1)),
            "a line each"
        );
        let truth = AdAttributes::read(
            b"<c><a n=\"TerminatedNormally\"><b v=\"t\"/></a></c>",
            AdFormat::Xml,
        )
        .expect("sound");
        assert_eq!(truth.bool("TerminatedNormally"), Some(true));
    }

    #[test]
    fn damaged_ads_are_rejected() {
        assert!(AdAttributes::read(b"{\n  \"Cluster\": \n}", AdFormat::Json).is_none());
        let no_time = AdAttributes::read(b"{\n \"EventTypeNumber\": 1\n}", AdFormat::Json)
            .expect("sound JSON");
        assert!(no_time.header().is_none());
        let far = AdAttributes::read(
            b"{ \"EventTypeNumber\": 70000, \"EventTime\": \"2024-01-02T03:04:05\" }",
            AdFormat::Json,
        );
        assert!(far.expect("sound JSON").header().is_none());
    }
}
