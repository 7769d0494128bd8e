//! Decompresses streams of gzip, xz or zstd. The format is detected by content, not by name; other
//! streams are passed through.

use std::io::{Cursor, ErrorKind, Read, Result};

/// A stream after decompression.
pub struct PlainStream {
    /// Decompressed bytes.
    pub reader: Box<dyn Read + Send>,
    /// True if the stream was compressed.
    pub is_compressed: bool,
}

/// Decompresses `stream` if it is compressed; returns `None` if it is empty.
///
/// # Errors
/// Fails if reading from `stream` fails.
pub fn decompress(mut stream: impl Read + Send + 'static) -> Result<Option<PlainStream>> {
    // The first bytes identify the format. The decoder needs them too, so they are chained in
    // front.
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
