//! Events written as ClassAds, in JSON or XML → their attributes.
//!
//! HTCondor writes such events with `JSON` or `XML` in `EVENT_LOG_FORMAT_OPTIONS`: an object or a `<c>` element each, at
//! the beginning of a line, with neither commas nor terminators between them.

use std::collections::BTreeMap;

use memchr::memmem;
use serde_json::Value;

use super::record::Header;
use super::stamp;

/// What a line that does not begin a text record begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A JSON object.
    Json,
    /// A `<c>` element.
    Xml,
    /// What stands around the elements of an XML log.
    Prolog,
}

impl Form {
    /// The form that begins at the start of `text`, if any: a bracket, then an attribute.
    pub(super) fn begins(text: &[u8]) -> Option<Form> {
        const PROLOG: [&[u8]; 4] = [
            b"<?xml",
            b"<!DOCTYPE classads",
            b"<classads>",
            b"</classads>",
        ];
        let attribute = |begin: &[u8]| text.strip_prefix(begin).map(<[u8]>::trim_ascii_start);
        if attribute(b"{").is_some_and(|rest| rest.starts_with(b"\"")) {
            Some(Form::Json)
        } else if attribute(b"<c>").is_some_and(|rest| rest.starts_with(b"<a n=")) {
            Some(Form::Xml)
        } else {
            PROLOG
                .iter()
                .any(|word| text.starts_with(word))
                .then_some(Form::Prolog)
        }
    }

    /// How long what begins `text` is, its last line feed included; `None` if it does not end.
    pub(super) fn length(self, text: &[u8]) -> Option<usize> {
        let first_line = text[..memchr::memchr(b'\n', text).unwrap_or(text.len())].trim_ascii_end();
        let end = match self {
            Form::Json if first_line.ends_with(b"}") => first_line.len(),
            Form::Json => memmem::find(text, b"\n}")? + 2,
            Form::Xml => memmem::find(text, b"</c>")? + 4,
            Form::Prolog => 0,
        };
        let line = memchr::memchr(b'\n', &text[end..]);
        match (self, line) {
            (_, Some(at)) => Some(end + at + 1),
            (Form::Prolog, None) => None,
            (_, None) => Some(text.len()),
        }
    }
}

/// The attributes of an event, by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Attributes(BTreeMap<String, Value>);

impl Attributes {
    /// Reads one event; `None` if it is damaged.
    pub(super) fn read(text: &[u8], form: Form) -> Option<Attributes> {
        let text = String::from_utf8_lossy(text);
        match form {
            Form::Json => serde_json::from_str(&text).ok().map(Attributes),
            Form::Xml => Some(Attributes(elements(&text))),
            Form::Prolog => None,
        }
    }

    pub(super) fn int(&self, name: &str) -> Option<i64> {
        self.0.get(name)?.as_i64()
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    pub(super) fn bool(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool()
    }

    /// What a text record says in its first line.
    pub(super) fn header(&self) -> Option<Header> {
        let id = |name| self.int(name).unwrap_or(-1);
        let time = self.text("EventTime")?;
        let (stamp, taken) = stamp::parse(time.as_bytes())?;
        let number = u16::try_from(self.int("EventTypeNumber")?)
            .ok()
            .filter(|number| *number < 1000)?;
        (taken == time.len()).then(|| Header {
            number,
            cluster: id("Cluster"),
            proc: id("Proc"),
            subproc: id("Subproc"),
            stamp,
        })
    }
}

/// The `<a n="Name">value</a>` elements in `text`.
fn elements(text: &str) -> BTreeMap<String, Value> {
    let named = text.split("<a n=\"").skip(1);
    named
        .filter_map(|rest| {
            rest.split_once("\">")
                .and_then(|(name, rest)| Some((name.to_owned(), value(rest)?)))
        })
        .collect()
}

fn value(text: &str) -> Option<Value> {
    let text = text.trim_start();
    let inside = |open: &str, close: &str| {
        text.strip_prefix(open)?
            .split_once(close)
            .map(|(found, _)| found)
    };
    if let Some(string) = inside("<s>", "</s>") {
        return Some(Value::String(unescape(string)));
    }
    if let Some(number) = inside("<i>", "</i>") {
        return number.trim().parse::<i64>().ok().map(Value::from);
    }
    if let Some(number) = inside("<r>", "</r>") {
        return number.trim().parse::<f64>().ok().map(Value::from);
    }
    inside("<b v=\"", "\"").map(|truth| Value::Bool(truth == "t"))
}

fn unescape(text: &str) -> String {
    let named = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&amp;", "&"),
    ];
    named.iter().fold(text.to_owned(), |text, (name, sign)| {
        text.replace(name, sign)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let json = "{\n  \"Cluster\": 7,\n  \"EventTypeNumber\": 12,\n  \"EventTime\": \"2024-01-02T03:04:05\",\n  \"HoldReason\": \"a<b\"\n}\n";
        let xml = "<c>\n    <a n=\"Cluster\"><i>7</i></a>\n    <a n=\"EventTypeNumber\"><i>12</i></a>\n    <a n=\"EventTime\"><s>2024-01-02T03:04:05</s></a>\n    <a n=\"HoldReason\"><s>a&lt;b</s></a>\n</c>\n";
        for (text, form) in [(json, Form::Json), (xml, Form::Xml)] {
            assert_eq!(Form::begins(text.as_bytes()), Some(form));
            assert_eq!(form.length(text.as_bytes()), Some(text.len()));
            assert_eq!(form.length(&text.as_bytes()[..text.len() - 6]), None);
            let ad = Attributes::read(text.as_bytes(), form).expect("sound");
            let header = ad.header().expect("a header");
            assert_eq!((header.number, header.cluster, header.proc), (12, 7, -1));
            assert_eq!(ad.text("HoldReason"), Some("a<b"));
        }
        let line = b"{\"EventTypeNumber\": 1, \"EventTime\": \"2024-01-02T03:04:05\"}\n{";
        assert_eq!(
            (Form::begins(line), Form::Json.length(line)),
            (Some(Form::Json), Some(line.len() - 1)),
            "a line each"
        );
        let truth = Attributes::read(
            b"<c><a n=\"TerminatedNormally\"><b v=\"t\"/></a></c>",
            Form::Xml,
        )
        .expect("sound");
        assert_eq!(truth.bool("TerminatedNormally"), Some(true));
    }

    #[test]
    fn damaged_ads_are_refused() {
        assert!(Attributes::read(b"{\n  \"Cluster\": \n}", Form::Json).is_none());
        let no_time =
            Attributes::read(b"{\n \"EventTypeNumber\": 1\n}", Form::Json).expect("sound JSON");
        assert!(no_time.header().is_none());
        let far = Attributes::read(
            b"{ \"EventTypeNumber\": 70000, \"EventTime\": \"2024-01-02T03:04:05\" }",
            Form::Json,
        );
        assert!(far.expect("sound JSON").header().is_none());
    }
}
