//! One record of a log, borrowed from the text: its header and its content.

use memchr::memchr;

use super::classad::{AdAttributes, AdFormat};
use super::record_header::RecordHeader;

/// A record, borrowed from the text of a piece.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogRecord<'a> {
    /// Offset in the piece.
    pub(super) at: usize,
    pub(super) header: RecordHeader,
    /// Text of the record without the terminator.
    pub(super) whole: &'a [u8],
    pub(super) content: RecordContent<'a>,
}

/// Content of a record after its header.
#[derive(Debug, Clone, Copy)]
pub(super) enum RecordContent<'a> {
    /// Rest of the header line, and the lines up to the terminator.
    Text(&'a [u8]),
    /// A ClassAd, which makes up the whole record.
    Ad(AdFormat),
}

impl LogRecord<'_> {
    /// Parses the attributes of a record that is a ClassAd. They are parsed again for each use:
    /// such logs are rare, and records without owned data make the parsing of text fast.
    pub(super) fn ad_attributes(&self, format: AdFormat) -> AdAttributes {
        AdAttributes::read(self.whole, format).unwrap_or_default()
    }

    /// Returns the text of the header line; in a ClassAd, the string attribute `name`.
    pub(super) fn headline_or(&self, name: &str) -> Option<String> {
        match self.content {
            RecordContent::Text(text) => {
                std::str::from_utf8(headline(text)).ok().map(str::to_owned)
            }
            RecordContent::Ad(format) => {
                let attributes = self.ad_attributes(format);
                attributes.text(name).map(str::to_owned)
            }
        }
    }
}

/// Returns the rest of a header line: the text of a record up to its first line feed.
pub(super) fn headline(content: &[u8]) -> &[u8] {
    content[..memchr(b'\n', content).unwrap_or(content.len())].trim_ascii()
}

/// Returns the lines after the header line.
pub(super) fn body_lines(content: &[u8]) -> &[u8] {
    memchr(b'\n', content).map_or(&[][..], |at| &content[at + 1..])
}
