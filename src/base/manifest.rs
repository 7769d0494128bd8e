//! Manifests of artefact directories. A directory's manifest is written last, which commits the
//! directory. It records the inputs that the artefact was made from.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};
use twox_hash::XxHash3_128;

use crate::error::{hinted, unavailable};
use crate::files::{self, FileIdentity};
use crate::shard::{ArtefactFormat, Shard};

/// File name of the manifest in every artefact directory.
pub const FILE: &str = "manifest.json";

/// Maximum size of a JSON document, or of a line of JSON lines, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// A manifest: the keys that all manifests share. The keys of `body` are on the same level.
#[derive(Debug, Clone, Serialize)]
pub struct Manifest<T> {
    /// Kind of artefact, as in [`ArtefactFormat::name`].
    pub format: String,
    /// Version of the format of this kind.
    pub format_version: u32,
    /// Digest of everything that the artefact was made from: inputs and settings. Equal keys mean
    /// equal artefacts.
    pub key: String,
    /// Keys specific to this kind of artefact.
    #[serde(flatten)]
    pub body: T,
}

/// Writes the manifest of `dir`, which commits the other files of the directory.
pub fn write(
    dir: &Path,
    format: ArtefactFormat,
    key: &str,
    body: &dyn erased_serde::Serialize,
) -> Result<()> {
    let manifest = Manifest {
        format: format.name.to_owned(),
        format_version: format.version,
        key: key.to_owned(),
        body,
    };
    write_json(&dir.join(FILE), &manifest)
}

/// Writes `value` to `path` as one JSON document.
pub fn write_json(path: &Path, value: &dyn erased_serde::Serialize) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    files::write_atomic(path, &text)
}

/// Reads a JSON document.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = files::read_regular(path, MAX_BYTES)?;
    serde_json::from_slice(&text).with_context(|| format!("cannot read `{}`", path.display()))
}

/// Writes `values` to `path` as JSON lines: one document per line.
pub fn write_json_lines(path: &Path, values: &[impl Serialize]) -> Result<()> {
    let mut text = Vec::new();
    for value in values {
        push_line(&mut text, value)?;
    }
    files::write_atomic(path, &text)
}

/// Appends `value` to `text` as a line.
fn push_line(text: &mut Vec<u8>, value: &dyn erased_serde::Serialize) -> Result<()> {
    serde_json::to_writer(&mut *text, value)?;
    text.push(b'\n');
    Ok(())
}

/// Reads JSON lines: one document per line.
pub fn read_json_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let mut file = BufReader::new(files::open_regular(path, u64::MAX)?);
    let (mut values, mut line) = (Vec::new(), Vec::new());
    while file.by_ref().take(MAX_BYTES).read_until(b'\n', &mut line)? > 0 {
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
/// Fails if it is missing, or of another kind or version. Then the message names both kinds or both
/// versions, and the command that makes the artefact again.
pub fn read<T: DeserializeOwned>(dir: &Path, format: ArtefactFormat) -> Result<Manifest<T>> {
    let path = dir.join(FILE);
    let make = || format!("make it with `{}`", format.rebuild);
    ensure!(
        path.is_file(),
        unavailable(
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
        unavailable(
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
        unavailable(
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
    // From the whole document, because serde's `flatten` loses keys that are numbers.
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

/// Returns the path of a file that the manifest of `dir` lists.
///
/// # Errors
/// Fails if `file` is not a plain file name, or begins with two dots. Manifests may come from
/// elsewhere, so they must not name files outside the directory.
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

static SKIP_VERIFICATION: AtomicBool = AtomicBool::new(false);

/// Disables checksum verification in this process: from now on [`open_shard`] trusts the manifests.
pub fn skip_digests() {
    SKIP_VERIFICATION.store(true, Ordering::Relaxed);
}

/// Opens the shard `file` that the manifest of `dir` lists, and verifies that its [`Checksum`] is
/// `xxh3`. This runs at the speed of memory. A file that this process has verified before is not
/// read again, unless it was changed since.
///
/// # Errors
/// Fails like [`listed_path`] and [`Shard::open`], and if the checksum differs from the manifest's.
pub fn open_shard(dir: &Path, file: &str, xxh3: &str, format: ArtefactFormat) -> Result<Shard> {
    static VERIFIED: Mutex<Option<HashSet<(FileIdentity, String)>>> = Mutex::new(None);
    let shard = Shard::open(&listed_path(dir, file)?, format)?;
    // A poisoned lock is harmless here: the set is valid after each insertion.
    let known = || VERIFIED.lock().unwrap_or_else(PoisonError::into_inner);
    let place = shard.identity.map(|identity| (identity, xxh3.to_owned()));
    let is_known = place
        .as_ref()
        .is_some_and(|place| known().as_ref().is_some_and(|known| known.contains(place)));
    if is_known || SKIP_VERIFICATION.load(Ordering::Relaxed) {
        return Ok(shard);
    }

    ensure!(
        Checksum::of(std::iter::once(shard.bytes())) == xxh3,
        hinted(
            format!(
                "`{}` does not match the checksum in its manifest",
                shard.path().display()
            ),
            format!("copy it again, or rebuild it with `{}`", format.rebuild)
        )
    );
    known().get_or_insert_default().extend(place);
    Ok(shard)
}

/// Returns the key of the artefact in `dir`; `None` unless a finished artefact of this kind and
/// version is there.
pub fn finished_key(dir: &Path, format: ArtefactFormat) -> Option<String> {
    read::<serde_json::Value>(dir, format)
        .ok()
        .map(|manifest| manifest.key)
}

/// Returns the format that the manifest in `dir` names, in any version; `None` if there is no
/// manifest.
///
/// # Errors
/// Fails if the manifest cannot be read.
pub fn format_name(dir: &Path) -> Result<Option<String>> {
    let path = dir.join(FILE);
    if !path.is_file() {
        return Ok(None);
    }
    let found: serde_json::Value = read_json(&path)?;
    Ok(found["format"].as_str().map(str::to_owned))
}

/// Returns the key of an artefact: a digest of everything that it is made from.
pub fn key(inputs: &dyn erased_serde::Serialize) -> Result<String> {
    Ok(sha256(&serde_json::to_vec(inputs)?))
}

/// Returns the SHA-256 of `bytes`, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// A running size and XXH3 (128 bits) of a stream of bytes. It distinguishes large files at the
/// speed of memory, but does not protect against forgery.
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
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.write(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// Adds the whole content of `file`, read in blocks.
    pub fn read(&mut self, mut file: impl Read) -> Result<()> {
        let mut block = vec![0; 1 << 20];
        loop {
            match file.read(&mut block)? {
                0 => return Ok(()),
                filled => self.update(&block[..filled]),
            }
        }
    }

    /// Bytes added so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the [`Checksum`] of the concatenation of `parts`, in hexadecimal.
    pub fn of<'a>(parts: impl Iterator<Item = &'a [u8]>) -> String {
        let mut checksum = Checksum::default();
        parts.for_each(|part| checksum.update(part));
        checksum.finish().1
    }

    /// Returns the size in bytes, and the checksum in hexadecimal.
    pub fn finish(&self) -> (u64, String) {
        (self.bytes, format!("{:032x}", self.hasher.finish_128()))
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A [`Checksum`] that the reader of a file on another thread extends. Copies share it.
#[derive(Debug, Clone, Default)]
pub struct SharedChecksum(Arc<Mutex<Checksum>>);

impl SharedChecksum {
    /// Continues `begun`.
    pub fn new(begun: Checksum) -> SharedChecksum {
        SharedChecksum(Arc::new(Mutex::new(begun)))
    }

    /// Adds the next bytes.
    pub fn update(&self, bytes: &[u8]) {
        self.lock().update(bytes);
    }

    /// Returns the size of everything so far, and the checksum in hexadecimal.
    pub fn finish(&self) -> (u64, String) {
        self.lock().finish()
    }

    fn lock(&self) -> MutexGuard<'_, Checksum> {
        self.0.lock().expect("no thread panics with the lock")
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
    fn manifests_round_trip_and_other_versions_are_rejected() {
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
    fn shards_are_verified_once_and_again_after_a_change() {
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
            error.contains("a.safetensors` does not match the checksum in its manifest"),
            "{error}"
        );
    }
}
