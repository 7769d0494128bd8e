//! Reader of numbered lines of bounded length.

use std::io::{BufRead, BufReader, Read};

use anyhow::{Result, ensure};

/// Maximum length of a line, in bytes.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// A line of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextLine<'a> {
    /// The text without trailing whitespace; `None` if it is not UTF-8.
    pub(super) text: Option<&'a str>,
    /// The line number, counted from 1.
    pub(super) number: u64,
    /// True if the file ends within the line, before a line feed.
    pub(super) is_cut: bool,
}

/// A reader of lines.
pub(super) struct TextLines {
    reader: BufReader<Box<dyn Read + Send>>,
    line: Vec<u8>,
    number: u64,
}

impl TextLines {
    pub(super) fn new(reader: Box<dyn Read + Send>) -> TextLines {
        TextLines {
            reader: BufReader::with_capacity(1 << 16, reader),
            line: Vec::new(),
            number: 0,
        }
    }

    /// Skips a byte order mark and whitespace, and returns the first byte after it without consuming
    /// that byte.
    pub(super) fn first_byte(&mut self) -> Result<Option<u8>> {
        if self.reader.fill_buf()?.starts_with("\u{feff}".as_bytes()) {
            self.reader.consume("\u{feff}".len());
        }
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let blanks = buffer.iter().take_while(|b| b.is_ascii_whitespace());
            let skipped = blanks.clone().count();
            self.number += blanks.filter(|byte| **byte == b'\n').count() as u64;
            let first = buffer.get(skipped).copied();
            self.reader.consume(skipped);
            if first.is_some() {
                return Ok(first);
            }
        }
    }

    /// Reads the next line. Returns `None` at the end of the file.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or if a line is longer than a mebibyte.
    pub(super) fn next(&mut self) -> Result<Option<TextLine<'_>>> {
        self.line.clear();
        let mut bounded = (&mut self.reader).take(MAX_LINE_BYTES);
        if bounded.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        ensure!(
            self.line.len() < MAX_LINE_BYTES as usize,
            "line {} is longer than 1 MiB, so this is not a trace",
            self.number
        );

        let is_cut = self.line.last() != Some(&b'\n');
        let text = self.line.trim_ascii_end();
        Ok(Some(TextLine {
            text: std::str::from_utf8(text).ok(),
            number: self.number,
            is_cut,
        }))
    }

    /// Returns the number of lines read.
    pub(super) fn count(&self) -> u64 {
        self.number
    }

    /// Returns a reader of the remaining bytes.
    pub(super) fn rest(&mut self) -> &mut impl BufRead {
        &mut self.reader
    }
}
