//! The records of TensorBoard's event files, and their framing.
//!
//! A record is its length (eight bytes), a checksum of the length, the bytes of an `Event`, and a
//! checksum of these bytes. A checksum is a CRC-32C, masked as in LevelDB. All numbers are
//! little-endian. The messages match TensorFlow's `event.proto`, `summary.proto` and
//! `tensor.proto`, with the same field numbers. They have only the fields that poolcast writes.

use std::collections::BTreeMap;

use prost::{Enumeration, Message, Oneof};

/// Content of the first event of a file.
pub(super) const FILE_VERSION: &str = "brain.Event:2";

/// TensorFlow's data type number of strings.
pub(super) const STRING_TYPE: i32 = 7;

/// The polynomial of CRC-32C, bits reversed.
const CASTAGNOLI: u32 = 0x82F6_3B78;

/// Constant added to a rotated checksum.
const MASK_DELTA: u32 = 0xA282_EAD8;

/// An event at a point in time.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Event {
    /// Seconds since 1970, in UTC.
    #[prost(double, tag = "1")]
    pub(super) wall_time: f64,
    /// The step of the training.
    #[prost(int64, tag = "2")]
    pub(super) step: i64,
    #[prost(oneof = "EventKind", tags = "3, 5")]
    pub(super) kind: Option<EventKind>,
}

/// Content of an event.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum EventKind {
    /// The start of a file of this version.
    #[prost(string, tag = "3")]
    FileVersion(String),
    /// Measured values.
    #[prost(message, tag = "5")]
    Summary(Summary),
}

/// Values measured at one time.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Summary {
    #[prost(message, repeated, tag = "1")]
    pub(super) value: Vec<SummaryValue>,
}

/// One name and its value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SummaryValue {
    #[prost(string, tag = "1")]
    pub(super) tag: String,
    #[prost(message, optional, tag = "9")]
    pub(super) metadata: Option<SummaryMetadata>,
    #[prost(oneof = "SummaryContent", tags = "2, 8")]
    pub(super) content: Option<SummaryContent>,
}

/// A value.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum SummaryContent {
    /// A number.
    #[prost(float, tag = "2")]
    SimpleValue(f32),
    /// Strings.
    #[prost(message, tag = "8")]
    Tensor(TensorProto),
}

/// The TensorBoard plugin that shows a value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SummaryMetadata {
    #[prost(message, optional, tag = "1")]
    pub(super) plugin_data: Option<PluginData>,
}

/// Name of a TensorBoard plugin, and what it is given.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PluginData {
    #[prost(string, tag = "1")]
    pub(super) plugin_name: String,
    /// A message of the plugin: for `hparams`, [`HyperParameterData`].
    #[prost(bytes = "vec", tag = "2")]
    pub(super) content: Vec<u8>,
}

/// What the plugin `hparams` is given, as in its `plugin_data.proto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HyperParameterData {
    #[prost(oneof = "SessionPart", tags = "3, 4")]
    pub(super) part: Option<SessionPart>,
}

/// The begin or the end of a run.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum SessionPart {
    #[prost(message, tag = "3")]
    Begin(SessionBegin),
    #[prost(message, tag = "4")]
    End(SessionEnd),
}

/// The begin of a run, with its hyper-parameters.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SessionBegin {
    #[prost(btree_map = "string, message", tag = "1")]
    pub(super) hparams: BTreeMap<String, HyperParameterRecord>,
    /// Seconds since 1970, in UTC.
    #[prost(double, tag = "5")]
    pub(super) start_time_secs: f64,
}

/// The value of a hyper-parameter, as in protobuf's `struct.proto`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HyperParameterRecord {
    #[prost(oneof = "HyperParameterValue", tags = "2, 3, 4")]
    pub(super) value: Option<HyperParameterValue>,
}

/// A value.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum HyperParameterValue {
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(string, tag = "3")]
    Text(String),
    #[prost(bool, tag = "4")]
    Flag(bool),
}

/// The end of a run.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct SessionEnd {
    #[prost(enumeration = "SessionStatus", tag = "1")]
    pub(super) status: i32,
    /// Seconds since 1970, in UTC.
    #[prost(double, tag = "2")]
    pub(super) end_time_secs: f64,
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum SessionStatus {
    Unknown = 0,
    Success = 1,
    Failure = 2,
    Running = 3,
}

/// A tensor of strings.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorProto {
    /// [`STRING_TYPE`].
    #[prost(int32, tag = "1")]
    pub(super) dtype: i32,
    /// A shape without dimensions, for a scalar.
    #[prost(message, optional, tag = "2")]
    pub(super) tensor_shape: Option<TensorShape>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub(super) string_val: Vec<Vec<u8>>,
}

/// The shape of a tensor without dimensions.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct TensorShape {}

/// Appends `event` to the bytes of a file.
pub(super) fn append_event(file: &mut Vec<u8>, event: &Event) {
    let data = event.encode_to_vec();
    let length = (data.len() as u64).to_le_bytes();

    file.extend(length);
    file.extend(masked_checksum(&length).to_le_bytes());
    file.extend(&data);
    file.extend(masked_checksum(&data).to_le_bytes());
}

/// Computes the CRC-32C of `bytes`, rotated and offset. The mask keeps checksums of data that
/// contains checksums reliable.
fn masked_checksum(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(MASK_DELTA)
}

/// Computes the CRC-32C of `bytes`, as in RFC 3720.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut remainder = !0;
    for &byte in bytes {
        let at = (remainder as u8 ^ byte) as usize;
        remainder = (remainder >> 8) ^ CHECKSUM_TABLE[at];
    }
    !remainder
}

/// The CRC remainder of each byte value.
const CHECKSUM_TABLE: [u32; 256] = checksum_table();

const fn checksum_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            let carry = if remainder & 1 == 1 { CASTAGNOLI } else { 0 };
            remainder = (remainder >> 1) ^ carry;
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
}

/// Reads the events of a file and checks both checksums of each; for tests.
#[cfg(test)]
pub(super) fn read_events(mut file: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    while !file.is_empty() {
        let (length_bytes, rest) = file.split_at(8);
        let (length_checksum, rest) = rest.split_at(4);
        assert_eq!(length_checksum, masked_checksum(length_bytes).to_le_bytes());

        let length = u64::from_le_bytes(length_bytes.try_into().expect("eight bytes")) as usize;
        let (data, rest) = rest.split_at(length);
        let (data_checksum, rest) = rest.split_at(4);
        assert_eq!(data_checksum, masked_checksum(data).to_le_bytes());

        events.push(Event::decode(data).expect("an event"));
        file = rest;
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 3720, B.4, and the usual check value.
    #[test]
    fn checksums_match_rfc_3720_examples() {
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(&[0xFF; 32]), 0x62A8_AB43);
        assert_eq!(crc32c(&ascending), 0x46DD_794E);
    }

    /// The beginning of a file that TensorBoard 2.21 reads, byte for byte.
    #[test]
    fn first_event_has_the_published_bytes() {
        let event = Event {
            wall_time: 0.0,
            step: 0,
            kind: Some(EventKind::FileVersion(FILE_VERSION.to_owned())),
        };
        let mut file = Vec::new();
        append_event(&mut file, &event);
        assert_eq!(file[..8], [15, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(file[12..27], *b"\x1a\x0dbrain.Event:2");
        assert_eq!(read_events(&file), [event]);
    }
}
