//! Writes pieces of text to a global event log on disk, with HTCondor's log rotation.

use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::pool::SCHEDD;
use super::traces::TextPiece;
use htcondor_eventlog::{LogBuffer, LogHeader};
use poolcast_base::files::{self, AtomicFile};
use poolcast_base::manifest::Checksum;

/// The line that ends every record, including the header of a file.
const RECORD_END: &[u8] = b"...\n";

/// A log that is being written. Its files get their names only in [`LogWriter::finish`].
pub(super) struct LogWriter {
    path: PathBuf,
    rotate_bytes: Option<u64>,
    current: AtomicFile,
    /// Rotated generations, oldest first.
    rotated: Vec<AtomicFile>,
    size_bytes: u64,
    offset_bytes: u64,
    /// Checksum of all events, without the file headers, because these are rewritten once their
    /// files are full.
    checksum: Checksum,
    /// Creation times of the log and of its current file, epoch ms; `None` before the first event.
    created_ms: Option<(i64, i64)>,
}

/// Returns the name of generation `number` of the log at `path`. Generation 1 is the latest.
pub(super) fn generation(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// Computes the checksum of the events in the log at `path` and in its `rotated` generations, like
/// [`LogWriter::xxh3`].
pub(super) fn events_xxh3(path: &Path, rotated: usize) -> Result<String> {
    let generations = (1..=rotated).rev().map(|number| generation(path, number));
    let mut checksum = Checksum::default();
    for file in generations.chain([path.to_owned()]) {
        let mut file = BufReader::new(files::open_regular(&file, u64::MAX)?);
        let mut line = Vec::new();
        while file.read_until(b'\n', &mut line)? > 0 && line != RECORD_END {
            line.clear();
        }
        checksum.read(file)?;
    }
    Ok(checksum.finish().1)
}

impl LogWriter {
    pub(super) fn new(path: &Path, rotate_bytes: Option<u64>) -> Result<LogWriter> {
        let current = AtomicFile::new(path)?;
        let path = path.to_owned();
        Ok(LogWriter {
            path,
            rotate_bytes,
            current,
            rotated: Vec::new(),
            size_bytes: 0,
            offset_bytes: 0,
            checksum: Checksum::default(),
            created_ms: None,
        })
    }

    /// Appends `pieces`. Starts a new file before an event if the current file has reached its
    /// maximum size.
    pub(super) fn write(&mut self, pieces: &[TextPiece]) -> Result<()> {
        pieces.iter().try_for_each(|piece| self.write_piece(piece))
    }

    fn write_piece(&mut self, piece: &TextPiece) -> Result<()> {
        let Some((_, first_ms)) = piece.ends.first() else {
            return Ok(());
        };
        if self.created_ms.is_none() {
            self.created_ms = Some((*first_ms, *first_ms));
            self.begin_file(*first_ms)?;
        }
        self.checksum.update(&piece.bytes);
        let mut written = 0;
        // Rotate between events only: an event must not be split over two files.
        if let Some(limit_bytes) = self.rotate_bytes {
            let mut before = 0;
            for &(end, time_ms) in &piece.ends {
                if self.size_bytes + (before - written) as u64 >= limit_bytes {
                    self.put(&piece.bytes[written..before])?;
                    self.rotate(time_ms)?;
                    written = before;
                }
                before = end;
            }
        }
        self.put(&piece.bytes[written..])
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.current.file().write_all(bytes)?;
        self.size_bytes += bytes.len() as u64;
        Ok(())
    }

    fn begin_file(&mut self, now_ms: i64) -> Result<()> {
        let header = self.header(now_ms, 0);
        self.put(&header)
    }

    fn header(&self, stamp_ms: i64, size_bytes: u64) -> Vec<u8> {
        let (began_ms, created_ms) = self.created_ms.unwrap_or((stamp_ms, stamp_ms));
        let header = LogHeader {
            creator: SCHEDD,
            began_s: began_ms.div_euclid(1000),
            created_s: created_ms.div_euclid(1000),
            sequence: self.rotated.len() as u64 + 1,
            size_bytes,
            offset_bytes: self.offset_bytes,
        };
        let mut text = LogBuffer::default();
        text.header(stamp_ms, &header);
        text.bytes
    }

    /// Rewrites the header of the full file with its final size and the rotation time, and starts
    /// the next file.
    fn rotate(&mut self, now_ms: i64) -> Result<()> {
        let header = self.header(now_ms, self.size_bytes);
        let file = self.current.file();
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&header)?;
        // The distinct target names give distinct temporary names.
        let next = AtomicFile::new(&generation(&self.path, self.rotated.len() + 1))?;
        self.rotated
            .push(std::mem::replace(&mut self.current, next));
        self.offset_bytes += self.size_bytes;
        self.size_bytes = 0;
        self.created_ms = self.created_ms.map(|(began_ms, _)| (began_ms, now_ms));
        self.begin_file(now_ms)
    }

    /// Size of all files so far, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.offset_bytes + self.size_bytes
    }

    /// Number of generations rotated so far.
    pub(super) fn rotated(&self) -> usize {
        self.rotated.len()
    }

    /// Checksum of all events so far.
    pub(super) fn xxh3(&self) -> String {
        self.checksum.finish().1
    }

    /// Gives all files their final names.
    pub(super) fn finish(self) -> Result<()> {
        let count = self.rotated.len();
        for (at, file) in self.rotated.into_iter().enumerate() {
            file.commit(&generation(&self.path, count - at))?;
        }
        self.current.commit(&self.path)
    }
}
