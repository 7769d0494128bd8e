//! A Parquet file whose pages have a limited size.
//!
//! The `parquet` crate reserves the memory that the header of a page claims before it decompresses the
//! page, so a damaged file of 500 bytes takes 2 GiB: <https://github.com/apache/arrow-rs/issues/10734>.

use std::fs::File;
use std::io::{BufReader, Read};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::FOOTER_SIZE;
use parquet::file::reader::{ChunkReader, Length};

/// Maximum size of a page without compression, in bytes. Writers begin a new page after about 1 MiB.
const MAX_PAGE_BYTES: i32 = 64 << 20;

/// Maximum length in bytes of the first two fields of a header, each with one byte for its type.
const PAGE_SIZE_END: u64 = 12;

/// First byte of a field in Thrift's compact protocol: its number is one more than that of the field
/// before it, and it is a 32-bit number.
const NEXT_FIELD_IS_I32: u8 = 0x15;

/// A Parquet file. The header of a page that claims more than [`MAX_PAGE_BYTES`] is an error.
pub(super) struct LimitedPages(pub(super) File);

impl Length for LimitedPages {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for LimitedPages {
    type T = BufReader<File>;

    /// Reads from `start` on. The crate calls it for headers of pages, and for the footer.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let is_footer = start.saturating_add(FOOTER_SIZE as u64) >= self.len();
        if !is_footer {
            check_page_size(self.0.get_read(start)?)?;
        }
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// Fails if `header` is no header of a page, or claims too large a page. Its first two fields are the
/// type of the page and its size without compression:
/// <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>
fn check_page_size(header: impl Read) -> Result<()> {
    let mut start = Vec::new();
    header.take(PAGE_SIZE_END).read_to_end(&mut start)?;

    let mut rest = start.as_slice();
    let fields = (next_i32(&mut rest), next_i32(&mut rest));
    let (Some(_), Some(bytes)) = fields else {
        return Err(ParquetError::General("a page has no header".to_owned()));
    };
    if (0..=MAX_PAGE_BYTES).contains(&bytes) {
        return Ok(());
    }
    Err(ParquetError::General(format!(
        "a page claims {bytes} bytes, more than {MAX_PAGE_BYTES}; write the table with smaller pages"
    )))
}

/// Returns the next field of a Thrift struct, if it is a 32-bit number with the next number of a
/// field, and removes it from the front of `bytes`.
fn next_i32(bytes: &mut &[u8]) -> Option<i32> {
    let (&NEXT_FIELD_IS_I32, rest) = bytes.split_first()? else {
        return None;
    };
    let length = 1 + rest.iter().take(5).position(|byte| byte < &0x80)?;
    let (number, rest) = rest.split_at(length);
    *bytes = rest;

    // Seven bits a byte, the lowest first. The lowest bit of the result is its sign.
    let groups = number.iter().rev().map(|byte| u32::from(byte & 0x7f));
    let zigzag = groups.fold(0, |value, group| value << 7 | group);
    Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a header of a data page of this size, as Thrift writes it.
    fn header(bytes: i32) -> Vec<u8> {
        let mut header = vec![NEXT_FIELD_IS_I32, 0, NEXT_FIELD_IS_I32];
        let mut zigzag = (bytes << 1 ^ bytes >> 31).cast_unsigned();
        while zigzag >= 0x80 {
            header.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        header.push(zigzag as u8);
        header
    }

    #[test]
    fn pages_up_to_the_limit_are_read() {
        for bytes in [0, 63, 64, 1 << 20, MAX_PAGE_BYTES] {
            check_page_size(header(bytes).as_slice()).expect("small enough");
        }
        for bytes in [MAX_PAGE_BYTES + 1, i32::MAX, -1, i32::MIN] {
            let error = check_page_size(header(bytes).as_slice()).expect_err("rejected");
            let text = error.to_string();
            assert!(
                text.contains(&format!("a page claims {bytes} bytes")),
                "{text}"
            );
        }
    }
}
