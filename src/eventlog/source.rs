//! Opening a log: plain, gzip, xz or zstd, told apart by content and not by name → a stream of
//! plain bytes.

use std::io::{Cursor, Read, Seek as _, SeekFrom};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result, ensure};

use poolcast_base::error::hinted;
use poolcast_base::files::{self, PlainStream};
use poolcast_base::manifest::{Checksum, ChecksummedReader};

/// What to type to find out where the log is.
pub(super) const FIND_LOG_HINT: &str =
    "`condor_config_val EVENT_LOG` names the global event log of an access point";

/// The path that stands for standard input.
const STDIN: &str = "-";

/// Whether the log at `path` is standard input, a pipe or a device: what was read of it cannot be
/// read again.
pub fn is_read_once(path: &Path) -> bool {
    let is_stream = |found: std::fs::Metadata| !found.is_file() && !found.is_dir();
    path == Path::new(STDIN) || fs_err::metadata(path).is_ok_and(is_stream)
}

/// Opens the file of the log at `path`; `-` is standard input.
///
/// # Errors
/// Fails when the file is missing, may not be read, or is a directory.
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

/// A log being read: its decompressed bytes, and how far into the file on disk they reach.
pub(super) struct LogSource {
    reader: Box<dyn Read + Send>,
    is_compressed: bool,
    checksum: Arc<Mutex<Checksum>>,
}

impl LogSource {
    /// Opens the log at `path`; `progress` hears of every read from the disk, in bytes.
    ///
    /// # Errors
    /// Fails as [`open`] does, and when the log is empty, be it compressed or not.
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

        // An archive of nothing is an empty log, too. Only reading from it tells.
        let mut first = [0];
        ensure!(source.fill(&mut first)? > 0, empty());
        Ok(LogSource {
            reader: Box::new(Cursor::new(first).chain(source.reader)),
            ..source
        })
    }

    /// Opens the log at `path`, which is not compressed, where what `begun` was given ends.
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

    /// The size of the file as far as it was read, and its checksum.
    pub(super) fn checksum(&self) -> (u64, String) {
        self.checksum
            .lock()
            .expect("no thread panics with the lock")
            .finish()
    }

    /// Whether the file has to be decompressed.
    pub(super) fn is_compressed(&self) -> bool {
        self.is_compressed
    }

    /// Reads until `buffer` is full or the log ends; returns the number of bytes read.
    ///
    /// # Errors
    /// A damaged archive is an error that never passes; a failing disk is one that may.
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
    fn every_compression_is_known_by_content() {
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
            assert_eq!(poolcast_base::error::exit_code(&error), poolcast_base::error::EXIT_NEVER);
        }
    }

    #[test]
    fn empty_files_and_directories_are_refused() {
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
