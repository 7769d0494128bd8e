//! Shards: immutable safetensors files with one metadata key, written atomically and memory-mapped.
//!
//! The header of a shard has the key `poolcast`: a JSON object with the shard's format, its version
//! and the writer's notes. There is only one key, because safetensors keeps metadata in a hash map.
//! With several keys, the bytes would differ from run to run.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use memmap2::Mmap;
use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensors, View};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::error::hinted;
use crate::files::{self, FileIdentity};

#[cfg(target_endian = "big")]
compile_error!("shards are little-endian and are read in place");

const KEY: &str = "poolcast";

/// The name and version of a kind of artefact, and the command that makes it.
#[derive(Debug, Clone, Copy)]
pub struct ArtefactFormat {
    /// Name in the header, for instance `events`.
    pub name: &'static str,
    /// Version that this program writes, and the only one that it reads.
    pub version: u32,
    /// Command that makes such an artefact again, for hints.
    pub rebuild: &'static str,
}

#[derive(Serialize, Deserialize)]
struct ShardHeader<T> {
    format: String,
    format_version: u32,
    notes: T,
}

/// An element type of the tensors in shards.
pub trait ShardElement: bytemuck::Pod {
    /// Type name in the header.
    const DTYPE: Dtype;
}

macro_rules! elements {
    ($($t:ty => $d:ident),*) => { $(impl ShardElement for $t { const DTYPE: Dtype = Dtype::$d; })* };
}
elements!(u8 => U8, u16 => U16, u32 => U32, i32 => I32, i64 => I64, u64 => U64, f32 => F32, f64 => F64, half::f16 => F16);

/// One tensor to write: borrowed elements and their shape.
#[derive(Debug, Clone)]
pub struct ShardColumn<'a> {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: &'a [u8],
}

impl<'a> ShardColumn<'a> {
    /// Creates a tensor of `shape` from `data` in row-major order.
    pub fn new<T: ShardElement>(data: &'a [T], shape: &[usize]) -> ShardColumn<'a> {
        assert_eq!(data.len(), shape.iter().product::<usize>());
        ShardColumn {
            dtype: T::DTYPE,
            shape: shape.to_vec(),
            bytes: bytemuck::cast_slice(data),
        }
    }

    /// Creates a one-dimensional tensor.
    pub fn vector<T: ShardElement>(data: &'a [T]) -> ShardColumn<'a> {
        ShardColumn::new(data, &[data.len()])
    }
}

impl View for ShardColumn<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.bytes)
    }
    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

/// A column that has a type and a shape but no elements, for serializing the header alone.
struct DescribedColumn<'a>(&'a ShardColumn<'a>);

impl View for DescribedColumn<'_> {
    fn dtype(&self) -> Dtype {
        self.0.dtype
    }
    fn shape(&self) -> &[usize] {
        &self.0.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&[])
    }
    fn data_len(&self) -> usize {
        self.0.bytes.len()
    }
}

/// A shard to write: its header, and its columns in file order. The elements of the columns are
/// borrowed, not copied.
#[derive(Debug)]
pub struct ShardLayout<'a> {
    header: Vec<u8>,
    columns: Vec<(String, ShardColumn<'a>)>,
}

impl<'a> ShardLayout<'a> {
    /// Lays out a shard. Equal input gives byte-identical shards.
    pub fn new(
        format: ArtefactFormat,
        notes: &impl Serialize,
        mut columns: Vec<(String, ShardColumn<'a>)>,
    ) -> Result<ShardLayout<'a>> {
        // The order in which safetensors writes tensors: by type, largest first, then by name.
        columns
            .sort_by(|(a, left), (b, right)| right.dtype.cmp(&left.dtype).then_with(|| a.cmp(b)));
        let header = ShardHeader {
            format: format.name.to_owned(),
            format_version: format.version,
            notes,
        };
        let metadata = HashMap::from([(KEY.to_owned(), serde_json::to_string(&header)?)]);
        let described = columns
            .iter()
            .map(|(name, column)| (name, DescribedColumn(column)));
        let header = safetensors::serialize(described, Some(metadata))?;
        Ok(ShardLayout { header, columns })
    }

    /// Returns the bytes of the shard as consecutive parts.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.header[..]).chain(self.columns.iter().map(|(_, column)| column.bytes))
    }

    /// Returns the bytes of the shard, copied into one buffer.
    pub fn bytes(&self) -> Vec<u8> {
        self.parts().collect::<Vec<_>>().concat()
    }

    /// Writes the shard to a temporary file, fsyncs it and renames it to `path`.
    pub fn write(&self, path: &Path) -> Result<()> {
        files::write_atomic_parts(path, self.parts())
    }
}

/// Returns the bytes of a shard. Equal input gives byte-identical shards.
pub fn encode(
    format: ArtefactFormat,
    notes: &impl Serialize,
    columns: Vec<(String, ShardColumn<'_>)>,
) -> Result<Vec<u8>> {
    Ok(ShardLayout::new(format, notes, columns)?.bytes())
}

/// Writes a shard to a temporary file, fsyncs it and renames it to `path`.
pub fn write(
    path: &Path,
    format: ArtefactFormat,
    notes: &impl Serialize,
    columns: Vec<(String, ShardColumn<'_>)>,
) -> Result<()> {
    ShardLayout::new(format, notes, columns)?.write(path)
}

/// A shard that is open for reading. Its tensors are slices of the mapped file.
#[derive(Debug)]
pub struct Shard {
    path: PathBuf,
    bytes: ShardBytes,
    /// Identity of the file when it was opened; `None` for a shard in memory.
    pub(crate) identity: Option<FileIdentity>,
    data_start: usize,
    tensors: BTreeMap<String, TensorInfo>,
    notes: serde_json::Value,
}

#[derive(Debug)]
enum ShardBytes {
    Mapped(Mmap),
    /// A shard that was never on disk, such as the events behind one piece of advice. The buffer
    /// consists of 8-byte words, so that all element types are aligned.
    Owned(Vec<u64>, usize),
}

impl ShardBytes {
    fn get(&self) -> &[u8] {
        match self {
            ShardBytes::Mapped(map) => map,
            ShardBytes::Owned(words, len) => &bytemuck::cast_slice(words)[..*len],
        }
    }
}

impl Shard {
    /// Maps the shard at `path` and checks its header, its version, and that its tensors fill the
    /// file exactly.
    ///
    /// # Errors
    /// Fails if the file is not a shard of this format, or has a version that this program does not
    /// read.
    pub fn open(path: &Path, format: ArtefactFormat) -> Result<Shard> {
        let checked = map(path).and_then(|(bytes, identity)| {
            Ok(Shard {
                identity: Some(identity),
                ..Shard::check(path, ShardBytes::Mapped(bytes), format)?
            })
        });
        checked.map_err(|cause| {
            let place = path.display();
            cause.context(hinted(
                format!("`{place}` is not a usable {} shard", format.name),
                format!("rebuild it with `{}`", format.rebuild),
            ))
        })
    }

    /// Opens a shard in memory, from the bytes that [`encode`] returned.
    pub fn from_bytes(bytes: &[u8], format: ArtefactFormat) -> Result<Shard> {
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Shard::check(
            Path::new("memory"),
            ShardBytes::Owned(words, bytes.len()),
            format,
        )
    }

    fn check(path: &Path, bytes: ShardBytes, format: ArtefactFormat) -> Result<Shard> {
        ensure!(!bytes.get().is_empty(), "the file is empty");
        let (header_len, metadata) =
            SafeTensors::read_metadata(bytes.get()).context("not a safetensors file")?;
        let header = metadata.metadata().as_ref().and_then(|map| map.get(KEY));
        let header = header.context("a safetensors file without poolcast's header")?;
        let header: ShardHeader<serde_json::Value> =
            serde_json::from_str(header).context("cannot read its header")?;
        ensure!(
            header.format == format.name,
            "it holds {}, not {}",
            header.format,
            format.name
        );
        ensure!(
            header.format_version == format.version,
            "it has format version {}, and this program reads version {}",
            header.format_version,
            format.version
        );
        let tensors = owned_tensors(&metadata);
        let (path, data_start) = (path.to_owned(), 8 + header_len);
        Ok(Shard {
            path,
            data_start,
            bytes,
            identity: None,
            tensors,
            notes: header.notes,
        })
    }

    /// Path of the file, or `memory`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the whole file.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get()
    }

    /// Reads the writer's notes from the header.
    pub fn notes<T: DeserializeOwned>(&self) -> Result<T> {
        let notes = T::deserialize(&self.notes);
        notes.with_context(|| {
            format!(
                "the header of `{}` lacks keys that this version needs",
                self.path.display()
            )
        })
    }

    /// Names of the tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Returns the shape of tensor `name`.
    pub fn shape(&self, name: &str) -> Result<&[usize]> {
        Ok(&self.info(name)?.shape)
    }

    /// Returns the elements of tensor `name` in row-major order, without copying them.
    pub fn column<T: ShardElement>(&self, name: &str) -> Result<&[T]> {
        let info = self.info(name)?;
        let place = || format!("tensor `{name}` of `{}`", self.path.display());
        ensure!(
            info.dtype == T::DTYPE,
            "{} has type {:?}, expected {:?}",
            place(),
            info.dtype,
            T::DTYPE
        );
        let (start, end) = info.data_offsets;
        let bytes = &self.bytes.get()[self.data_start + start..self.data_start + end];
        match bytemuck::try_cast_slice(bytes) {
            Ok(elements) => Ok(elements),
            Err(error) => bail!("{} is misaligned: {error}", place()),
        }
    }

    fn info(&self, name: &str) -> Result<&TensorInfo> {
        let info = self.tensors.get(name);
        info.with_context(|| format!("`{}` has no tensor `{name}`", self.path.display()))
    }
}

fn owned_tensors(metadata: &Metadata) -> BTreeMap<String, TensorInfo> {
    metadata
        .tensors()
        .into_iter()
        .map(|(name, info)| (name, info.clone()))
        .collect()
}

#[expect(unsafe_code, reason = "the one place where shards are mapped")]
fn map(path: &Path) -> Result<(Mmap, FileIdentity)> {
    let file = files::open_artefact(path, u64::MAX)?;
    let identity = FileIdentity::new(&file.metadata()?);
    // SAFETY: shards are immutable: they are written under another name, fsynced and renamed, and
    // never changed in place. If somebody truncates a file by hand while it is mapped, the next
    // read faults (SIGBUS), as with any mapped file.
    let mapped = unsafe { Mmap::map(file.file()) }
        .with_context(|| format!("cannot map `{}`", path.display()))?;
    Ok((mapped, identity))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: ArtefactFormat = ArtefactFormat {
        name: "test",
        version: 3,
        rebuild: "poolcast test",
    };

    fn sample() -> Vec<u8> {
        let (a, b) = ([1i64, -2], [1u8, 2, 3]);
        let columns = vec![
            ("a".to_owned(), ShardColumn::vector(&a)),
            ("b".to_owned(), ShardColumn::new(&b, &[3, 1])),
        ];
        encode(FORMAT, &serde_json::json!({"x": 1, "y": [2]}), columns).expect("encoded")
    }

    #[test]
    fn columns_round_trip_and_encoding_is_deterministic() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s.safetensors");
        files::write_atomic(&path, &sample()).expect("written");
        assert!((0..50).all(|_| sample() == fs_err::read(&path).expect("read")));
        let shard = Shard::open(&path, FORMAT).expect("opened");
        assert_eq!(shard.column::<i64>("a").expect("a"), [1, -2]);
        assert_eq!(shard.column::<u8>("b").expect("b"), [1, 2, 3]);
        assert_eq!(shard.shape("b").expect("b"), [3, 1]);
        assert!(shard.column::<u8>("a").is_err() && shard.column::<u8>("c").is_err());
    }

    #[test]
    fn layout_is_byte_identical_to_safetensors() {
        let (bytes, words, floats) = ([1u8, 2, 3], [4u64], [0.5f32, 7.0]);
        let columns = || {
            let column = |name: &str, column| (name.to_owned(), column);
            let byte = ShardColumn::vector(&bytes);
            vec![
                column("c", byte.clone()),
                column("b", ShardColumn::vector(&floats)),
                column("a", byte),
                column("d", ShardColumn::vector(&words)),
            ]
        };
        let layout = ShardLayout::new(FORMAT, &"notes", columns()).expect("laid out");
        let (_, read) = SafeTensors::read_metadata(&layout.bytes()).expect("sound");
        let whole = safetensors::serialize(columns(), read.metadata().clone()).expect("serialised");
        assert_eq!(layout.bytes(), whole);
    }

    #[test]
    fn foreign_truncated_and_old_files_are_rejected() {
        let refused = |bytes: &[u8], format| {
            let dir = tempfile::tempdir().expect("a directory");
            let path = dir.path().join("s.safetensors");
            fs_err::write(&path, bytes).expect("written");
            format!(
                "{:#}",
                Shard::open(&path, format).expect_err("must be refused")
            )
        };
        let whole = sample();
        assert!(
            refused(
                &whole,
                ArtefactFormat {
                    version: 4,
                    ..FORMAT
                }
            )
            .contains("version 3, and this program reads version 4")
        );
        assert!(
            refused(
                &whole,
                ArtefactFormat {
                    name: "model",
                    ..FORMAT
                }
            )
            .contains("holds test, not model")
        );
        for cut in 0..whole.len() {
            assert!(refused(&whole[..cut], FORMAT).contains("not a usable test shard"));
        }
        let other =
            safetensors::serialize([("a", ShardColumn::vector(&[1u8]))], None).expect("encoded");
        assert!(refused(&other, FORMAT).contains("without poolcast's header"));
    }
}
