//! Reads the `.wandb` files that the `wandb` library writes offline, while they grow: the framing of
//! LevelDB's logs, and the history and the summary among W&B's records.

use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::Result;
use prost::Message as _;
use serde_json::{Map, Value};

use super::report_line::parse_value;
use super::wandb_record::{Record, RecordItem, RecordKind};
use poolcast_base::files;

/// Size of a block, in bytes. No chunk crosses the end of one.
const BLOCK_BYTES: usize = 32 * 1024;

/// Size of a chunk's header: a checksum of four bytes, a length of two, and a kind of one.
const CHUNK_HEADER_BYTES: usize = 7;

/// Size of the header of a file, before the first chunk.
const FILE_HEADER_BYTES: u64 = 7;

/// Maximum number of bytes that are read at once, and maximum size of a record.
const READ_BYTES: u64 = 1 << 20;
const MAX_RECORD_BYTES: usize = 16 << 20;

/// Values that a program gave to `wandb`.
pub(super) enum GivenValues {
    /// One call of `wandb.log`.
    Logged(Map<String, Value>),
    /// Values that it has set in the summary.
    Summary(Map<String, Value>),
}

/// The files of the runs below one directory.
pub(super) struct WandbFiles {
    dir: PathBuf,
    files: BTreeMap<PathBuf, RecordFile>,
}

impl WandbFiles {
    /// The files of the runs that write below `dir`, which `WANDB_DIR` names.
    pub(super) fn new(dir: &Path) -> WandbFiles {
        WandbFiles {
            dir: dir.join("wandb"),
            files: BTreeMap::new(),
        }
    }

    /// Calls `on_values` with the values of each record that was completed since the last call.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
    pub(super) fn read(&mut self, mut on_values: impl FnMut(GivenValues)) -> Result<()> {
        for path in run_files(&self.dir) {
            let file = self.files.entry(path.clone()).or_default();
            file.read(&path, |record| {
                if let Some(values) = values_of(record) {
                    on_values(values);
                }
            })?;
        }
        Ok(())
    }
}

/// Lists the `.wandb` files of the runs in `dir`, in order; none if there is no such directory.
fn run_files(dir: &Path) -> Vec<PathBuf> {
    let entries = |dir: &Path| fs_err::read_dir(dir).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for run in entries(dir) {
        let name = run.file_name();
        let name = name.to_string_lossy();
        // `latest-run` is a link to one of them.
        if !name.starts_with("offline-run-") && !name.starts_with("run-") {
            continue;
        }
        let files = entries(&run.path()).map(|file| file.path());
        found.extend(files.filter(|file| file.extension().is_some_and(|end| end == "wandb")));
    }
    found.sort();
    found
}

fn values_of(record: &[u8]) -> Option<GivenValues> {
    match Record::decode(record).ok()?.kind? {
        RecordKind::History(history) => Some(GivenValues::Logged(item_values(history.item))),
        RecordKind::Summary(summary) => Some(GivenValues::Summary(item_values(summary.update))),
        // The run itself, its configuration and its resource usage.
        _ => None,
    }
}

/// The values of `items` by name. Names that begin with an underscore are the library's own.
fn item_values(items: Vec<RecordItem>) -> Map<String, Value> {
    let mut values = Map::new();
    for item in items {
        let name = if item.nested_key.is_empty() {
            item.key
        } else {
            item.nested_key.join(".")
        };
        if !name.starts_with('_')
            && let Some(value) = parse_value(&item.value_json)
        {
            values.insert(name, value);
        }
    }
    values
}

/// A file whose records are read once they are complete.
#[derive(Default)]
struct RecordFile {
    /// Bytes of the file before `pending`.
    offset: u64,
    /// Bytes that were read and are not part of a complete chunk yet.
    pending: Vec<u8>,
    /// Beginning of a record whose end is not written yet.
    record: Vec<u8>,
}

impl RecordFile {
    fn read(&mut self, path: &Path, mut on_record: impl FnMut(&[u8])) -> Result<()> {
        if !files::is_regular(path) {
            return Ok(());
        }
        let mut file = files::open_regular(path, u64::MAX)?;
        loop {
            let begin = self.offset + self.pending.len() as u64;
            file.seek(SeekFrom::Start(begin))?;
            let read = file
                .by_ref()
                .take(READ_BYTES)
                .read_to_end(&mut self.pending)?;
            if self.offset == 0 && self.pending.len() as u64 >= FILE_HEADER_BYTES {
                self.skip(FILE_HEADER_BYTES as usize);
            }
            if self.offset > 0 {
                while self.take_chunk(&mut on_record) {}
            }
            if read == 0 {
                return Ok(());
            }
        }
    }

    /// Takes the next chunk, or the rest of a block that has none. Returns false if it is not
    /// complete yet.
    fn take_chunk(&mut self, on_record: &mut impl FnMut(&[u8])) -> bool {
        let left = BLOCK_BYTES - (self.offset % BLOCK_BYTES as u64) as usize;
        let known = self.pending.len();
        if left < CHUNK_HEADER_BYTES {
            return self.skip_if_known(left);
        }
        let Some((header, rest)) = self.pending.split_at_checked(CHUNK_HEADER_BYTES) else {
            return false;
        };
        let length = usize::from(u16::from_le_bytes([header[4], header[5]]));
        let end = CHUNK_HEADER_BYTES + length;
        if end <= left && known < end {
            return false;
        }
        let checksum = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let is_sound = end <= left && {
            let mut found = crc32fast::Hasher::new();
            found.update(&header[6..]);
            found.update(&rest[..length]);
            found.finalize() == checksum
        };
        if !is_sound {
            // A damaged chunk, or one that is not written yet. The next block is found again.
            return self.skip_if_known(left);
        }

        // 1: a whole record; 2 to 4: its beginning, a part in between, and its end.
        let kind = header[6];
        if matches!(kind, 1 | 2) {
            self.record.clear();
        }
        if self.record.len() + length <= MAX_RECORD_BYTES {
            self.record.extend_from_slice(&rest[..length]);
        }
        if matches!(kind, 1 | 4) {
            on_record(&self.record);
            self.record.clear();
        }
        self.skip(end);
        true
    }

    /// Skips `count` bytes if they have been read; returns true if so.
    fn skip_if_known(&mut self, count: usize) -> bool {
        let is_known = self.pending.len() >= count;
        if is_known {
            self.skip(count);
        }
        is_known
    }

    fn skip(&mut self, count: usize) {
        self.pending.drain(..count);
        self.offset += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::super::wandb_record::HistoryRecord;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn chunk(kind: u8, payload: &[u8]) -> Vec<u8> {
        let body = [&[kind], payload].concat();
        let mut bytes = crc32fast::hash(&body).to_le_bytes().to_vec();
        bytes.extend((payload.len() as u16).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    fn history(values: &[(&str, &str)]) -> Vec<u8> {
        let item = |(name, value): &(&str, &str)| RecordItem {
            key: String::new(),
            nested_key: name.split('.').map(str::to_owned).collect(),
            value_json: (*value).to_owned(),
        };
        let item = values.iter().map(item).collect();
        let kind = Some(RecordKind::History(HistoryRecord { item, step: None }));
        Record { num: 1, kind }.encode_to_vec()
    }

    /// Reads a file that grows by `step` bytes at a time.
    fn read_growing(bytes: &[u8], step: usize) -> Vec<Value> {
        let dir = tempfile::tempdir().expect("a directory");
        let run = dir.path().join("wandb/offline-run-1");
        fs_err::create_dir_all(&run).expect("made");
        let mut files = WandbFiles::new(dir.path());
        let mut found = Vec::new();
        for end in (step..bytes.len() + step).step_by(step) {
            let so_far = &bytes[..end.min(bytes.len())];
            fs_err::write(run.join("run-1.wandb"), so_far).expect("written");
            let read = files.read(|values| match values {
                GivenValues::Logged(values) => found.push(json!(values)),
                GivenValues::Summary(_) => {}
            });
            read.expect("read");
        }
        found
    }

    #[test]
    fn growing_files_are_read_record_by_record() {
        let mut bytes = vec![b':', b'W', b'&', b'B', 0xE1, 0xBE, 0];
        bytes.extend(chunk(
            1,
            &history(&[("loss", "1"), ("val.acc", "NaN"), ("_step", "0")]),
        ));
        // A record of two chunks.
        let record = history(&[("loss", "0.5")]);
        bytes.extend(chunk(2, &record[..3]));
        bytes.extend(chunk(4, &record[3..]));
        // A record that fills the block up to a rest that is too short for a header.
        let length = BLOCK_BYTES - bytes.len() - CHUNK_HEADER_BYTES - 3;
        bytes.extend(chunk(1, &vec![0xFF; length]));
        bytes.extend([0; 3]);
        bytes.extend(chunk(1, &history(&[("loss", "0.25")])));

        let wanted = [
            json!({"loss": 1, "val.acc": null}),
            json!({"loss": 0.5}),
            json!({"loss": 0.25}),
        ];
        for step in [1 << 20, 4096, 11] {
            assert_eq!(read_growing(&bytes, step), wanted, "{step}");
        }
    }

    #[test]
    fn damage_costs_the_rest_of_its_block() {
        let mut bytes = vec![0; FILE_HEADER_BYTES as usize];
        bytes.extend(chunk(1, &history(&[("loss", "1")])));
        let damaged = bytes.len();
        bytes.resize(BLOCK_BYTES, 0x7F);
        bytes.extend(chunk(1, &history(&[("loss", "2")])));
        assert_eq!(
            read_growing(&bytes, 1 << 20),
            [json!({"loss": 1}), json!({"loss": 2})]
        );
        assert_eq!(
            read_growing(&bytes[..damaged + 9], 1 << 20),
            [json!({"loss": 1})]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300), end in 0..4096usize) {
            let mut file = vec![0; FILE_HEADER_BYTES as usize];
            file.extend(chunk(2, &bytes));
            file.extend(&bytes);
            file.resize(file.len() + end, 0);
            read_growing(&file, 97);
        }
    }
}
