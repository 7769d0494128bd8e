//! Opens a log that is plain or compressed with gzip, xz or zstd, and returns its plain bytes. The
//! format is detected by content, not by name.

use std::io::{Cursor, Read, Seek as _, SeekFrom};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result, ensure};

use poolcast_base::error::hinted;
use poolcast_base::files::{self, PlainStream};
use poolcast_base::manifest::{Checksum, ChecksummedReader};

/// Advice on finding the log.
pub(super) const FIND_LOG_HINT: &str =
    "`condor_config_val EVENT_LOG` names the global event log of an access point";

/// Path that means standard input.
const STDIN: &str = "-";

/// Returns true if the log at `path` is standard input, a pipe or a device, which can be read only
/// once.
pub fn is_read_once(path: &Path) -> bool {
    let is_stream = |found: std::fs::Metadata| !found.is_file() && !found.is_dir();
    path == Path::new(STDIN) || fs_err::metadata(path).is_ok_and(is_stream)
}

/// Opens the file of the log at `path`; `-` is standard input.
///
/// # Errors
/// Fails if the file is missing, may not be read, or is a directory.
pub fn open(path: &Path) -> Result<fs_err::File> {
    if path == Path::new(STDIN) {
        let stdin = std::io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .context("cannot read standard input")?;
        return Ok(fs_err::File::from_parts(stdin.into(), "standard input"));
    }

    let file = fs_err::File::open(path).context(hinted(
        format!("cannot open the log `{}`", path.display()),
        FIND_LOG_HINT,
    ))?;
    ensure!(
        !file.metadata()?.is_dir(),
        hinted(
            format!("`{}` is a directory", path.display()),
            "name the event logs in it, for instance `DIR/EventLog*`"
        )
    );
    Ok(file)
}

/// An open log that returns decompressed bytes, and computes the checksum of the bytes that were
/// read from disk.
pub(super) struct LogSource {
    reader: Box<dyn Read + Send>,
    is_compressed: bool,
    checksum: Arc<Mutex<Checksum>>,
}

impl LogSource {
    /// Opens the log at `path`. Passes the size of every disk read, in bytes, to `progress`.
    ///
    /// # Errors
    /// Fails like [`open`], and if the log is empty, compressed or not.
    pub(super) fn open(path: &Path, progress: impl Fn(u64) + Send + 'static) -> Result<LogSource> {
        let checksum = Arc::new(Mutex::new(Checksum::default()));
        let file = ChecksummedReader::new(open(path)?, progress, checksum.clone());

        let empty = || hinted(format!("`{}` is empty", path.display()), FIND_LOG_HINT);
        let PlainStream {
            reader,
            is_compressed,
        } = files::decompress(file)?.ok_or_else(empty)?;
        let mut source = LogSource {
            reader,
            is_compressed,
            checksum,
        };
        if !is_compressed {
            return Ok(source);
        }

        // A compressed file of an empty log is an empty log, too. Only a read detects it.
        let mut first = [0];
        ensure!(source.fill(&mut first)? > 0, empty());
        Ok(LogSource {
            reader: Box::new(Cursor::new(first).chain(source.reader)),
            ..source
        })
    }

    /// Opens the log at `path`, which is not compressed, at the end of the part that `begun`
    /// covers.
    pub(super) fn open_after(
        path: &Path,
        begun: Checksum,
        progress: impl Fn(u64) + Send + 'static,
    ) -> Result<LogSource> {
        let mut file = open(path)?;
        file.seek(SeekFrom::Start(begun.bytes()))?;

        let checksum = Arc::new(Mutex::new(begun));
        let reader = Box::new(ChecksummedReader::new(file, progress, checksum.clone()));
        Ok(LogSource {
            reader,
            is_compressed: false,
            checksum,
        })
    }

    /// Returns the size of the part of the file that was read, in bytes, and its checksum.
    pub(super) fn checksum(&self) -> (u64, String) {
        self.checksum
            .lock()
            .expect("no thread panics with the lock")
            .finish()
    }

    /// Returns true if the file is compressed.
    pub(super) fn is_compressed(&self) -> bool {
        self.is_compressed
    }

    /// Reads until `buffer` is full or the log ends. Returns the number of bytes read.
    ///
    /// # Errors
    /// The error for a damaged archive is permanent; the one for a failing disk may be transient.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match files::fill_buffer(&mut self.reader, buffer) {
            Ok(filled) => Ok(filled),
            Err(error) if self.is_compressed && error.raw_os_error().is_none() => {
                let message = format!("the compressed data is damaged or cut short: {error}");
                Err(hinted(message, "copy the log anew, or compress it again").into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn read_back(bytes: &[u8]) -> Result<Vec<u8>> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("any-name.gz");
        fs_err::write(&path, bytes)?;
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
            assert_eq!(
                poolcast_base::error::exit_code(&error),
                poolcast_base::error::EXIT_NEVER
            );
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
