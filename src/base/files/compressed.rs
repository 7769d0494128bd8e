//! A stream of bytes as it was before it was compressed: with gzip, xz, zstd or not at all, told
//! apart by content and not by name.

use std::io::{Cursor, ErrorKind, Read, Result};

/// What a stream holds.
pub struct PlainStream {
    /// Its bytes as they were before they were compressed.
    pub reader: Box<dyn Read + Send>,
    /// Whether they were.
    pub is_compressed: bool,
}

/// Decompresses `stream`, if it is compressed; `None` where it is empty.
///
/// # Errors
/// Fails as reading from `stream` does.
pub fn decompress(mut stream: impl Read + Send + 'static) -> Result<Option<PlainStream>> {
    // The first bytes tell the format, and are read again by its decoder.
    let mut magic = [0; 6];
    let filled = fill_buffer(&mut stream, &mut magic)?;
    if filled == 0 {
        return Ok(None);
    }

    let whole = Cursor::new(magic).take(filled as u64).chain(stream);
    let reader: Box<dyn Read + Send> = match magic {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => {
            Box::new(liblzma::read::XzDecoder::new_multi_decoder(whole))
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::Decoder::new(whole)?),
        _ => {
            return Ok(Some(PlainStream {
                reader: Box::new(whole),
                is_compressed: false,
            }));
        }
    };
    Ok(Some(PlainStream {
        reader,
        is_compressed: true,
    }))
}

/// Reads until `buffer` is full or `reader` ends; returns the number of bytes read.
pub fn fill_buffer(reader: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
