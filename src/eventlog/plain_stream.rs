//! Decompresses a stream whose format, gzip, xz, zstd or none, is detected by content.

use std::io::{Cursor, ErrorKind, Read, Result};

/// Number of bytes to read at once. They still are in a core's own cache when the observer receives
/// them.
const READ_BYTES: usize = 1 << 17;

/// A decompressed stream.
pub struct PlainStream {
    /// Decompressed bytes.
    pub reader: Box<dyn Read + Send>,
    /// True if the original stream is compressed.
    pub is_compressed: bool,
}

impl std::fmt::Debug for PlainStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlainStream")
            .field("is_compressed", &self.is_compressed)
            .finish_non_exhaustive()
    }
}

/// Decompresses `stream` if it is compressed with gzip, xz or zstd. Passes the bytes of each read
/// from `stream` to `on_read`, in order. Returns `None` if `stream` is empty.
///
/// # Errors
/// Fails if `stream` fails. An error of the returned reader may also mean damaged data.
pub fn decompress(
    stream: impl Read + Send + 'static,
    on_read: impl FnMut(&[u8]) + Send + 'static,
) -> Result<Option<PlainStream>> {
    let mut stream = ObservedReader::new(stream, on_read);
    // The first bytes identify the format. Its decoder reads them again.
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

/// A reader that passes the bytes of each read to a callback.
pub(super) struct ObservedReader<R, F> {
    inner: R,
    on_read: F,
}

impl<R: Read, F: FnMut(&[u8])> ObservedReader<R, F> {
    /// Creates a reader of `inner`. Passes the bytes of each read to `on_read`.
    pub(super) fn new(inner: R, on_read: F) -> ObservedReader<R, F> {
        ObservedReader { inner, on_read }
    }
}

impl<R: Read, F: FnMut(&[u8])> Read for ObservedReader<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let most = buffer.len().min(READ_BYTES);
        let read = self.inner.read(&mut buffer[..most])?;
        (self.on_read)(&buffer[..read]);
        Ok(read)
    }
}

/// Reads until `buffer` is full or `reader` ends. Returns the number of bytes read.
pub(super) fn fill_buffer(reader: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
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
