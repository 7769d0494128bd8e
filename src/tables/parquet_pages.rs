//! A Parquet file whose pages have a limited size.
//!
//! The `parquet` crate reserves the memory that the header of a page claims before it decompresses the
//! page, so a damaged file of 500 bytes takes 2 GiB: <https://github.com/apache/arrow-rs/issues/10734>.
//! It does the same with the number of values that a dictionary claims.

use std::fs::File;
use std::io::{BufRead as _, BufReader};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::FOOTER_SIZE;
use parquet::file::reader::{ChunkReader, Length};

/// Maximum size of a page without compression, in bytes. Writers begin a new page after about 1 MiB.
const MAX_PAGE_BYTES: i32 = 64 << 20;

/// First byte of a field in Thrift's compact protocol: its number is one more than that of the field
/// before it, and it is a 32-bit number.
const NEXT_FIELD_IS_I32: u8 = 0x15;

/// Type of a page that has the distinct values of a column.
const DICTIONARY_PAGE: i32 = 2;

/// A Parquet file. The header of a page that claims more than [`MAX_PAGE_BYTES`] is an error, and so
/// is a dictionary with more values than bytes.
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
        let mut reader = self.0.get_read(start)?;
        let is_footer = start.saturating_add(FOOTER_SIZE as u64) >= self.len();
        if !is_footer {
            // The buffer has far more bytes than the numbers of a header.
            check_page_size(reader.fill_buf()?)?;
        }
        Ok(reader)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// Fails if `header` does not begin with the header of a page, or if it claims too much.
fn check_page_size(header: &[u8]) -> Result<()> {
    let numbers = PageNumbers::parse(header);
    let numbers =
        numbers.ok_or_else(|| ParquetError::General("a page has no header".to_owned()))?;
    let PageNumbers { bytes, values, .. } = numbers;
    if !(0..=MAX_PAGE_BYTES).contains(&bytes) {
        return Err(ParquetError::General(format!(
            "a page claims {bytes} bytes, more than {MAX_PAGE_BYTES}; write the table with smaller pages"
        )));
    }
    if numbers.page_type == DICTIONARY_PAGE && !(0..=bytes).contains(&values) {
        let claim = format!("a dictionary claims {values} values in {bytes} bytes");
        return Err(ParquetError::General(claim));
    }
    Ok(())
}

/// Numbers from the header of a page, a struct of Thrift's compact protocol:
/// <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>
struct PageNumbers {
    page_type: i32,
    /// Size of the page without compression.
    bytes: i32,
    values: i32,
}

impl PageNumbers {
    /// Parses the start of a header. Returns `None` if it has not the fields that each header has.
    fn parse(mut header: &[u8]) -> Option<Self> {
        let page_type = next_i32(&mut header)?;
        let bytes = next_i32(&mut header)?;
        let _compressed_bytes = next_i32(&mut header)?;
        let _checksum = next_i32(&mut header);

        // A struct with the number of values follows, which is another field for each type of page.
        let (_field, mut page) = header.split_first()?;
        let values = next_i32(&mut page)?;
        Some(Self {
            page_type,
            bytes,
            values,
        })
    }
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

    /// Adds a number to a header, as Thrift writes it.
    fn push_i32(header: &mut Vec<u8>, number: i32) {
        header.push(NEXT_FIELD_IS_I32);
        let mut zigzag = (number << 1 ^ number >> 31).cast_unsigned();
        while zigzag >= 0x80 {
            header.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        header.push(zigzag as u8);
    }

    /// Returns a header of a page with `struct_field` as the first byte of its struct.
    fn header(page_type: i32, bytes: i32, struct_field: u8, values: i32) -> Vec<u8> {
        let mut header = Vec::new();
        for number in [page_type, bytes, 17] {
            push_i32(&mut header, number);
        }
        header.push(struct_field);
        push_i32(&mut header, values);
        header
    }

    #[test]
    fn pages_up_to_the_limit_are_read() {
        let check = |bytes| check_page_size(&header(0, bytes, 0x2c, 1 << 20));
        for bytes in [0, 63, 64, 1 << 20, MAX_PAGE_BYTES] {
            check(bytes).expect("small enough");
        }
        for bytes in [MAX_PAGE_BYTES + 1, i32::MAX, -1, i32::MIN] {
            let text = check(bytes).expect_err("rejected").to_string();
            assert!(
                text.contains(&format!("a page claims {bytes} bytes")),
                "{text}"
            );
        }
    }

    #[test]
    fn dictionaries_have_at_most_one_value_a_byte() {
        let check = |values| check_page_size(&header(DICTIONARY_PAGE, 8, 0x4c, values));
        for values in [0, 1, 8] {
            check(values).expect("few enough");
        }
        for values in [9, i32::MAX, -1] {
            let text = check(values).expect_err("rejected").to_string();
            assert!(
                text.contains(&format!("claims {values} values in 8 bytes")),
                "{text}"
            );
        }
    }
}
