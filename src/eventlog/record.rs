//! One record of a log, in place: its header and what follows it.

use memchr::memchr;

use super::classad::{AdAttributes, AdFormat};
use super::record_header::RecordHeader;

/// A record in place.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogRecord<'a> {
    /// Where it begins in its piece.
    pub(super) at: usize,
    pub(super) header: RecordHeader,
    /// All of it but the terminator.
    pub(super) whole: &'a [u8],
    pub(super) content: RecordContent<'a>,
}

/// What follows a header.
#[derive(Debug, Clone, Copy)]
pub(super) enum RecordContent<'a> {
    /// The rest of the header line, and the lines up to the terminator.
    Text(&'a [u8]),
    /// A ClassAd, which is the whole record.
    Ad(AdFormat),
}

impl LogRecord<'_> {
    /// The attributes of a record that is a ClassAd. They are read again wherever they are needed:
    /// such logs are rare, and records that own nothing make the reading of text fast.
    pub(super) fn ad_attributes(&self, format: AdFormat) -> AdAttributes {
        AdAttributes::read(self.whole, format).unwrap_or_default()
    }

    /// The text of the header line; in a ClassAd, that of the attribute `name`.
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

/// The rest of a header line: a record's text up to its first line feed.
pub(super) fn headline(content: &[u8]) -> &[u8] {
    content[..memchr(b'\n', content).unwrap_or(content.len())].trim_ascii()
}

/// The lines after the header line.
pub(super) fn body_lines(content: &[u8]) -> &[u8] {
    memchr(b'\n', content).map_or(&[][..], |at| &content[at + 1..])
}
