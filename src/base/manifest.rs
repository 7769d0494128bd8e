//! Manifests: the file that commits a directory of artefacts, written last, with what it was made
//! from.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};
use twox_hash::XxHash3_128;

use crate::error::hinted;
use crate::files;
use crate::shard::{ArtefactFormat, FileIdentity, Shard};

/// The manifest's file name in every directory of artefacts.
pub const FILE: &str = "manifest.json";

/// The largest JSON document that is read, and the longest line of several.
const MOST_BYTES: u64 = 1 << 30;

/// What every manifest begins with; `body` follows on the same level.
#[derive(Debug, Clone, Serialize)]
pub struct Manifest<T> {
    /// The kind of artefact, as in [`ArtefactFormat::name`].
    pub format: String,
    /// The version of that kind.
    pub format_version: u32,
    /// The digest of everything the artefact was made from: inputs and settings. Equal keys mean
    /// equal artefacts.
    pub key: String,
    /// What this kind of artefact has to say.
    #[serde(flatten)]
    pub body: T,
}

/// Writes the manifest of `dir`, which makes the directory's other files count.
pub fn write(dir: &Path, format: ArtefactFormat, key: &str, body: &impl Serialize) -> Result<()> {
    let manifest = Manifest {
        format: format.name.to_owned(),
        format_version: format.version,
        key: key.to_owned(),
        body,
    };
    write_json(&dir.join(FILE), &manifest)
}

/// Writes `value` to `path` as one JSON document.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    files::write_atomic(path, &text)
}

/// Reads a JSON document.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = files::read_regular(path, MOST_BYTES)?;
    serde_json::from_slice(&text).with_context(|| format!("cannot read `{}`", path.display()))
}

/// Writes `values` to `path` as one JSON document a line.
pub fn write_json_lines(path: &Path, values: &[impl Serialize]) -> Result<()> {
    let mut text = Vec::new();
    for value in values {
        serde_json::to_writer(&mut text, value)?;
        text.push(b'\n');
    }
    files::write_atomic(path, &text)
}

/// Reads one JSON document a line.
pub fn read_json_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let mut file = BufReader::new(files::open_regular(path, u64::MAX)?);
    let (mut values, mut line) = (Vec::new(), Vec::new());
    while file
        .by_ref()
        .take(MOST_BYTES)
        .read_until(b'\n', &mut line)?
        > 0
    {
        let place = || {
            format!(
                "cannot read `{}`, line {}",
                path.display(),
                values.len() + 1
            )
        };
        let value = serde_json::from_slice(&line).with_context(place)?;
        values.push(value);
        line.clear();
    }
    Ok(values)
}

/// Reads the manifest of `dir`.
///
/// # Errors
/// Fails when there is none, or when it is of another kind or version: the message names both
/// versions and the command that makes the artefact anew.
pub fn read<T: DeserializeOwned>(dir: &Path, format: ArtefactFormat) -> Result<Manifest<T>> {
    let path = dir.join(FILE);
    let make = || format!("make it with `{}`", format.rebuild);
    ensure!(
        path.is_file(),
        hinted(
            format!(
                "`{}` holds no {} (no manifest.json)",
                dir.display(),
                format.name
            ),
            make()
        )
    );
    let document: serde_json::Value = read_json(&path)?;
    let broken = || format!("cannot read `{}`", path.display());
    let found = ManifestHead::deserialize(&document).with_context(broken)?;
    ensure!(
        found.format == format.name,
        hinted(
            format!(
                "`{}` holds {}, not {}",
                dir.display(),
                found.format,
                format.name
            ),
            make()
        )
    );
    ensure!(
        found.format_version == format.version,
        hinted(
            format!(
                "`{}` has {} format version {}, and this program reads version {}",
                dir.display(),
                format.name,
                found.format_version,
                format.version
            ),
            make()
        )
    );
    // From the whole document: what serde flattens loses keys that are numbers.
    let body = T::deserialize(document).with_context(broken)?;
    Ok(Manifest {
        format: found.format,
        format_version: found.format_version,
        key: found.key,
        body,
    })
}

#[derive(Deserialize)]
struct ManifestHead {
    format: String,
    format_version: u32,
    key: String,
}

/// The path of a file that the manifest of `dir` lists.
///
/// # Errors
/// Fails for what is no plain name, or begins with two dots: manifests come from elsewhere, too,
/// and name no file outside.
pub fn listed_path(dir: &Path, file: &str) -> Result<PathBuf> {
    let inside =
        Path::new(file).file_name().is_some_and(|name| name == file) && !file.starts_with("..");
    ensure!(
        inside,
        "`{}` lists `{file}`, which is outside it",
        dir.display()
    );
    Ok(dir.join(file))
}

static SKIPS_DIGESTS: AtomicBool = AtomicBool::new(false);

/// From now on this process takes shards for what their manifests list without reading them.
pub fn skip_digests() {
    SKIPS_DIGESTS.store(true, Ordering::Relaxed);
}

/// Opens the shard `file` that the manifest of `dir` lists with the [`Checksum`] `xxh3`, and
/// compares them, at the speed of memory. A file that this process has compared before is not read
/// again, unless it was changed since.
///
/// # Errors
/// Fails as [`listed_path`] and [`Shard::open`] do, and where the file is not the one that the
/// manifest speaks of.
pub fn open_shard(dir: &Path, file: &str, xxh3: &str, format: ArtefactFormat) -> Result<Shard> {
    static COMPARED: Mutex<Option<HashSet<(FileIdentity, String)>>> = Mutex::new(None);
    let shard = Shard::open(&listed_path(dir, file)?, format)?;
    let known = || COMPARED.lock().unwrap_or_else(PoisonError::into_inner);
    let place = shard.identity.map(|identity| (identity, xxh3.to_owned()));
    let is_known = place
        .as_ref()
        .is_some_and(|place| known().as_ref().is_some_and(|known| known.contains(place)));
    if is_known || SKIPS_DIGESTS.load(Ordering::Relaxed) {
        return Ok(shard);
    }

    ensure!(
        Checksum::of(std::iter::once(shard.bytes())) == xxh3,
        hinted(
            format!(
                "`{}` is not the file that its manifest speaks of",
                shard.path().display()
            ),
            format!("copy it anew, or make it anew with `{}`", format.rebuild)
        )
    );
    known().get_or_insert_default().extend(place);
    Ok(shard)
}

/// The key of the artefact in `dir`, if a finished one of this kind and version is there.
pub fn finished_key(dir: &Path, format: ArtefactFormat) -> Option<String> {
    read::<serde_json::Value>(dir, format)
        .ok()
        .map(|manifest| manifest.key)
}

/// The format that the manifest in `dir` names, of whatever version; `None` where there is no
/// manifest.
///
/// # Errors
/// Fails when it cannot be read.
pub fn format_name(dir: &Path) -> Result<Option<String>> {
    let path = dir.join(FILE);
    if !path.is_file() {
        return Ok(None);
    }
    let found: serde_json::Value = read_json(&path)?;
    Ok(found["format"].as_str().map(str::to_owned))
}

/// The key over everything that an artefact is made from.
pub fn key(inputs: &impl Serialize) -> Result<String> {
    Ok(sha256(&serde_json::to_vec(inputs)?))
}

/// SHA-256 in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// The size of what it was given, and its XXH3 (128 bits): tells large files apart at the speed of
/// memory, but proves nothing against forgery.
#[derive(Clone, Default)]
pub struct Checksum {
    hasher: XxHash3_128,
    bytes: u64,
}

impl std::fmt::Debug for Checksum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Checksum of {}",
            crate::output::counted(self.bytes as usize, "byte")
        )
    }
}

impl Checksum {
    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.write(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// Takes all that `file` holds, read in blocks.
    pub fn read(&mut self, mut file: impl Read) -> Result<()> {
        let mut block = vec![0; 1 << 20];
        loop {
            match file.read(&mut block)? {
                0 => return Ok(()),
                filled => self.update(&block[..filled]),
            }
        }
    }

    /// How many bytes it was given.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The [`Checksum`] of `parts`, one after another, in hexadecimal.
    pub fn of<'a>(parts: impl Iterator<Item = &'a [u8]>) -> String {
        let mut checksum = Checksum::default();
        parts.for_each(|part| checksum.update(part));
        checksum.finish().1
    }

    /// The size, and the checksum in hexadecimal.
    pub fn finish(&self) -> (u64, String) {
        (self.bytes, format!("{:032x}", self.hasher.finish_128()))
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How much is read at once. It still is in a core's own cache when the checksum takes it.
const READ_BYTES: usize = 1 << 17;

/// A file whose bytes are summed and counted as they are read.
pub struct ChecksummedReader<R, F> {
    inner: R,
    progress: F,
    checksum: Arc<Mutex<Checksum>>,
}

impl<R: Read, F: Fn(u64)> ChecksummedReader<R, F> {
    /// Reads from `inner`; `progress` hears of every read, in bytes, and `checksum` takes all that
    /// is read.
    pub fn new(inner: R, progress: F, checksum: Arc<Mutex<Checksum>>) -> ChecksummedReader<R, F> {
        ChecksummedReader {
            inner,
            progress,
            checksum,
        }
    }
}

impl<R: Read, F: Fn(u64)> Read for ChecksummedReader<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = buffer.len().min(READ_BYTES);
        let read = self.inner.read(&mut buffer[..most])?;

        (self.progress)(read as u64);
        self.checksum
            .lock()
            .expect("no thread panics with the lock")
            .update(&buffer[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: ArtefactFormat = ArtefactFormat {
        name: "things",
        version: 2,
        rebuild: "poolcast things",
    };

    #[test]
    fn manifests_are_read_back_and_old_ones_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(read::<serde_json::Value>(dir.path(), FORMAT).is_err());
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Body {
            counts: std::collections::BTreeMap<u16, u64>,
        }
        let body = Body {
            counts: [(12, 7)].into(),
        };
        write(dir.path(), FORMAT, "k", &body).expect("written");
        let manifest: Manifest<Body> = read(dir.path(), FORMAT).expect("read");
        assert_eq!((manifest.body, manifest.key.as_str()), (body, "k"));
        let newer = ArtefactFormat {
            version: 3,
            ..FORMAT
        };
        let error = read::<serde_json::Value>(dir.path(), newer)
            .expect_err("refused")
            .to_string();
        assert!(
            error.contains("version 2, and this program reads version 3"),
            "{error}"
        );
        assert_eq!(finished_key(dir.path(), newer), None);
    }

    #[test]
    fn a_shard_is_compared_once_and_again_when_it_changes() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a.safetensors");
        let bytes = crate::shard::encode(
            FORMAT,
            &0,
            vec![("a".to_owned(), crate::shard::ShardColumn::vector(&[1u8, 2]))],
        );
        let mut bytes = bytes.expect("encoded");
        let xxh3 = Checksum::of(std::iter::once(&bytes[..]));
        fs_err::write(&path, &bytes).expect("written");
        let open = || open_shard(dir.path(), "a.safetensors", &xxh3, FORMAT).map(drop);
        open().expect("as listed");
        open().expect("as before");
        *bytes.last_mut().expect("bytes") ^= 1;
        let beside = dir.path().join("b");
        fs_err::write(&beside, &bytes).expect("written");
        fs_err::rename(&beside, &path).expect("renamed");
        let error = open().expect_err("another file").to_string();
        assert!(
            error.contains("a.safetensors` is not the file that its manifest speaks of"),
            "{error}"
        );
    }
}
