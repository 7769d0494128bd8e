//! Writes the records of a `.wandb` file: the framing of LevelDB's logs, with W&B's header.
//!
//! A file consists of blocks of 32 KiB, counted from its first byte, so that a reader can skip
//! damage. A record is split into chunks that do not cross a block boundary. A chunk has a checksum
//! of four bytes, a length of two, a kind of one, and the payload. The checksum is the plain CRC-32
//! of IEEE over the kind and the payload, where LevelDB has a masked CRC-32C. All numbers are
//! little-endian.

/// Size of a block, in bytes.
const BLOCK_BYTES: usize = 32 * 1024;

/// Size of a chunk's header before its payload, in bytes.
const CHUNK_HEADER_BYTES: usize = 7;

/// `:W&B`, the number 0xBEE1, and version 0.
const FILE_HEADER: [u8; 7] = [b':', b'W', b'&', b'B', 0xE1, 0xBE, 0];

/// The part of its record that a chunk holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum FragmentKind {
    /// The whole record.
    Full = 1,
    /// The beginning of the record.
    First = 2,
    /// Neither the beginning nor the end.
    Middle = 3,
    /// The end of the record.
    Last = 4,
}

impl FragmentKind {
    fn of(is_first: bool, is_last: bool) -> FragmentKind {
        match (is_first, is_last) {
            (true, true) => FragmentKind::Full,
            (true, false) => FragmentKind::First,
            (false, false) => FragmentKind::Middle,
            (false, true) => FragmentKind::Last,
        }
    }
}

/// A log file in memory, to which records are appended.
#[derive(Debug)]
pub(super) struct LevelDbLog {
    bytes: Vec<u8>,
}

impl LevelDbLog {
    /// A file without records.
    pub(super) fn new() -> LevelDbLog {
        LevelDbLog {
            bytes: FILE_HEADER.to_vec(),
        }
    }

    /// Appends a record of any length.
    pub(super) fn append(&mut self, record: &[u8]) {
        self.pad_short_block_end();

        let mut rest = record;
        let mut is_first = true;
        loop {
            let most = self.bytes_left_in_block() - CHUNK_HEADER_BYTES;
            let (payload, later) = rest.split_at(rest.len().min(most));
            self.append_chunk(FragmentKind::of(is_first, later.is_empty()), payload);

            if later.is_empty() {
                return;
            }
            rest = later;
            is_first = false;
        }
    }

    /// The bytes of the file.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn bytes_left_in_block(&self) -> usize {
        BLOCK_BYTES - self.bytes.len() % BLOCK_BYTES
    }

    /// Fills the rest of a block with zeros if it is too short for a chunk's header.
    fn pad_short_block_end(&mut self) {
        let rest = self.bytes_left_in_block();
        if rest < CHUNK_HEADER_BYTES {
            self.bytes.resize(self.bytes.len() + rest, 0);
        }
    }

    fn append_chunk(&mut self, kind: FragmentKind, payload: &[u8]) {
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&[kind as u8]);
        checksum.update(payload);
        // A payload is shorter than a block, so its length fits in two bytes.
        let length = payload.len() as u16;

        self.bytes.extend(checksum.finalize().to_le_bytes());
        self.bytes.extend(length.to_le_bytes());
        self.bytes.push(kind as u8);
        self.bytes.extend(payload);
    }
}

/// Reads the records of a file like W&B's own reader; for tests.
#[cfg(test)]
pub(super) fn read_records(bytes: &[u8]) -> Vec<Vec<u8>> {
    assert_eq!(bytes[..7], FILE_HEADER, "the header of the file");
    let mut records = Vec::new();
    let mut begun: Option<Vec<u8>> = None;
    let mut at = 7;
    while at < bytes.len() {
        let rest = BLOCK_BYTES - at % BLOCK_BYTES;
        if rest < CHUNK_HEADER_BYTES {
            let filling = &bytes[at..at + rest];
            assert!(filling.iter().all(|&byte| byte == 0), "zeros at {at}");
            at += rest;
            continue;
        }

        let checksum = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let length = u16::from_le_bytes(bytes[at + 4..at + 6].try_into().expect("two bytes"));
        let end = at + CHUNK_HEADER_BYTES + usize::from(length);
        assert!(end <= at + rest, "the chunk at {at} crosses an edge");
        assert_eq!(checksum, crc32fast::hash(&bytes[at + 6..end]), "at {at}");

        let kind = bytes[at + 6];
        let payload = &bytes[at + CHUNK_HEADER_BYTES..end];
        assert_eq!(
            begun.is_some(),
            matches!(kind, 3 | 4),
            "kind {kind} at {at}"
        );
        begun.get_or_insert_default().extend(payload);
        if matches!(kind, 1 | 4) {
            records.extend(begun.take());
        }
        at = end;
    }
    assert!(begun.is_none(), "the last record has no end");
    records
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn log_of(lengths: &[usize]) -> (Vec<Vec<u8>>, Vec<u8>) {
        let mut log = LevelDbLog::new();
        let mut records = Vec::new();
        for (at, &length) in lengths.iter().enumerate() {
            let record: Vec<u8> = (0..length).map(|byte| (at + byte) as u8).collect();
            log.append(&record);
            records.push(record);
        }
        (records, log.into_bytes())
    }

    /// Returns the length of a first record that leaves `rest` bytes of the first block.
    fn record_length_leaving(rest: usize) -> usize {
        BLOCK_BYTES - FILE_HEADER.len() - CHUNK_HEADER_BYTES - rest
    }

    #[test]
    fn records_survive_every_rest_at_a_block_boundary() {
        for rest in 0..20 {
            let (records, bytes) = log_of(&[record_length_leaving(rest), 5, 0, 40_000]);
            assert_eq!(read_records(&bytes), records, "{rest} bytes are left");
        }
    }

    #[test]
    fn empty_chunk_fills_the_last_seven_bytes_of_a_block() {
        let (_, bytes) = log_of(&[record_length_leaving(7), 5]);
        let kind_at_edge = bytes[BLOCK_BYTES - 1];
        assert_eq!(kind_at_edge, FragmentKind::First as u8);
        assert_eq!(bytes.len(), BLOCK_BYTES + CHUNK_HEADER_BYTES + 5);
    }

    #[test]
    fn short_record_is_one_chunk_with_an_ieee_checksum() {
        let (_, bytes) = log_of(&[2]);
        // zlib.crc32(b"\x01\x00\x01")
        let expected = crc32fast::hash(&[1, 0, 1]).to_le_bytes();
        assert_eq!(bytes[7..11], expected);
        assert_eq!(bytes[11..], [2, 0, 1, 0, 1]);
    }

    /// Lengths of short records, and of records of about one or two blocks.
    fn record_lengths() -> impl Strategy<Value = usize> {
        prop_oneof![0..20usize, 32_740..32_790usize, 65_500..65_560usize]
    }

    proptest! {
        #[test]
        fn records_of_any_length_round_trip(
            rest in 0usize..64,
            later in prop::collection::vec(record_lengths(), 0..6),
        ) {
            let mut lengths = vec![record_length_leaving(rest)];
            lengths.extend(later);
            let (records, bytes) = log_of(&lengths);
            prop_assert_eq!(read_records(&bytes), records);
        }
    }
}
