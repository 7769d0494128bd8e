//! Opens a log that is plain or compressed with gzip, xz or zstd, and returns its plain bytes. The
//! format is detected by content, not by name.

use std::io::{Cursor, Read, Seek as _, SeekFrom};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use super::plain_stream::{ObservedReader, PlainStream, decompress, fill_buffer};
use super::read_error::ReadError;

/// Path that means standard input.
const STDIN: &str = "-";

/// Returns true if the log at `path` is standard input, a pipe or a device, which can be read only
/// once.
pub fn is_read_once(path: &Path) -> bool {
    let is_stream = |found: std::fs::Metadata| !found.is_file() && !found.is_dir();
    path == Path::new(STDIN) || fs_err::metadata(path).is_ok_and(is_stream)
}

/// Opens the file of the log at `path`; `-` is standard input. The file is not decompressed.
///
/// # Errors
/// Fails if the file is missing, may not be read, or is a directory.
pub fn open(path: &Path) -> Result<fs_err::File, ReadError> {
    let cannot_open = |source| ReadError::Open {
        path: path.to_owned(),
        source,
    };
    if path == Path::new(STDIN) {
        let stdin = std::io::stdin();
        let stdin = stdin.as_fd().try_clone_to_owned().map_err(cannot_open)?;
        return Ok(fs_err::File::from_parts(stdin.into(), "standard input"));
    }

    let file = fs_err::File::open(path).map_err(cannot_open)?;
    if file.metadata().map_err(cannot_open)?.is_dir() {
        return Err(ReadError::Directory {
            path: path.to_owned(),
        });
    }
    Ok(file)
}

/// Returns the time of the last change of the file at `path`, epoch ms; `None` if it is not known.
pub(super) fn changed_ms(path: &Path) -> Option<i64> {
    // To open a pipe again would wait for another writer.
    let facts = if path == Path::new(STDIN) {
        open(path).ok()?.metadata()
    } else {
        fs_err::metadata(path)
    };
    let changed = facts.ok()?.modified().ok()?;
    let since_epoch = changed.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since_epoch.as_millis()).ok()
}

/// An open log that returns decompressed bytes, and counts the bytes that were read from disk.
pub(super) struct LogSource {
    path: PathBuf,
    reader: Box<dyn Read + Send>,
    is_compressed: bool,
    /// Size of the part of the file up to the last read, in bytes.
    file_bytes: Arc<AtomicU64>,
}

impl LogSource {
    /// Opens the log at `path`. Passes the bytes of every disk read to `on_read`.
    ///
    /// # Errors
    /// Fails like [`open`], and if the log is empty, compressed or not.
    pub(super) fn open(
        path: &Path,
        on_read: impl FnMut(&[u8]) + Send + 'static,
    ) -> Result<LogSource, ReadError> {
        let file_bytes = Arc::new(AtomicU64::new(0));
        let plain = decompress(open(path)?, count_bytes(&file_bytes, on_read));
        let plain = plain.map_err(|source| ReadError::Read {
            path: path.to_owned(),
            source,
        })?;

        let empty = || ReadError::Empty {
            path: path.to_owned(),
        };
        let PlainStream {
            reader,
            is_compressed,
        } = plain.ok_or_else(empty)?;
        let mut source = LogSource {
            path: path.to_owned(),
            reader,
            is_compressed,
            file_bytes,
        };
        if !is_compressed {
            return Ok(source);
        }

        // A compressed file of an empty log is an empty log, too. Only a read detects it.
        let mut first = [0];
        if source.fill(&mut first)? == 0 {
            return Err(empty());
        }
        Ok(LogSource {
            reader: Box::new(Cursor::new(first).chain(source.reader)),
            ..source
        })
    }

    /// Opens the log at `path`, which is not compressed, at `offset`.
    pub(super) fn open_at(
        path: &Path,
        offset: u64,
        on_read: impl FnMut(&[u8]) + Send + 'static,
    ) -> Result<LogSource, ReadError> {
        let mut file = open(path)?;
        file.seek(SeekFrom::Start(offset))
            .map_err(|source| ReadError::Read {
                path: path.to_owned(),
                source,
            })?;

        let file_bytes = Arc::new(AtomicU64::new(offset));
        let reader = ObservedReader::new(file, count_bytes(&file_bytes, on_read));
        Ok(LogSource {
            path: path.to_owned(),
            reader: Box::new(reader),
            is_compressed: false,
            file_bytes,
        })
    }

    /// Returns the size of the part of the file that was read, in bytes.
    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes.load(Ordering::Relaxed)
    }

    /// Returns true if the file is compressed.
    pub(super) fn is_compressed(&self) -> bool {
        self.is_compressed
    }

    /// Reads until `buffer` is full or the log ends. Returns the number of bytes read.
    ///
    /// # Errors
    /// The error for a damaged archive is permanent; the one for a failing disk may be transient.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        fill_buffer(&mut self.reader, buffer).map_err(|source| {
            let path = self.path.clone();
            if self.is_compressed && source.raw_os_error().is_none() {
                ReadError::DamagedArchive { path, source }
            } else {
                ReadError::Read { path, source }
            }
        })
    }
}

/// Returns a callback that adds the number of bytes of each read to `count`, and passes the bytes to
/// `on_read`.
fn count_bytes(
    count: &Arc<AtomicU64>,
    mut on_read: impl FnMut(&[u8]) + Send + 'static,
) -> impl FnMut(&[u8]) + Send + 'static {
    let count = Arc::clone(count);
    move |bytes| {
        count.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        on_read(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn read_back(bytes: &[u8]) -> Result<Vec<u8>, ReadError> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("any-name.gz");
        fs_err::write(&path, bytes).expect("written");
        let mut source = LogSource::open(&path, |_| {})?;
        let mut buffer = vec![0; 1 << 20];
        let n = source.fill(&mut buffer)?;
        buffer.truncate(n);
        Ok(buffer)
    }

    #[test]
    fn compression_is_detected_by_content() {
        let text = b"000 (1.0.0) 01/02 03:04:05 Job submitted\n...\n".repeat(100);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).expect("written");
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
        xz.write_all(&text).expect("written");
        let forms = [
            text.clone(),
            gzip.finish().expect("finished"),
            xz.finish().expect("finished"),
            zstd::encode_all(&text[..], 1).expect("encoded"),
        ];
        for form in &forms {
            assert_eq!(read_back(form).expect("read"), text);
        }
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"").expect("written");
        let xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
        let nothing = [
            gzip.finish().expect("finished"),
            xz.finish().expect("finished"),
            zstd::encode_all(&b""[..], 1).expect("encoded"),
        ];
        for form in &nothing {
            assert!(
                read_back(form)
                    .expect_err("empty")
                    .to_string()
                    .contains("is empty")
            );
        }
        for cut in &forms[1..] {
            let error = read_back(&cut[..cut.len() / 2]).expect_err("cut short");
            assert!(
                error.to_string().contains("damaged or cut short"),
                "{error}"
            );
            assert!(matches!(error, ReadError::DamagedArchive { .. }));
        }
    }

    #[test]
    fn empty_files_and_directories_are_rejected() {
        assert!(
            read_back(b"")
                .expect_err("empty")
                .to_string()
                .contains("is empty")
        );
        let dir = tempfile::tempdir().expect("a directory");
        assert!(LogSource::open(dir.path(), |_| {}).is_err());
    }
}
