//! The file from which a target reads its input, where the reader takes a path.

use std::io::{Seek as _, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

/// Creates the file, in memory if the system has `/dev/shm`.
///
/// # Panics
/// Panics if it cannot be created.
pub fn new_file() -> NamedTempFile {
    let memory = Path::new("/dev/shm");
    let file = if memory.is_dir() {
        NamedTempFile::new_in(memory)
    } else {
        NamedTempFile::new()
    };
    file.expect("a temporary file")
}

/// Replaces the content of `file` with `bytes`.
///
/// # Panics
/// Panics if it cannot be written.
pub fn write<'a>(file: &'a mut NamedTempFile, bytes: &[u8]) -> &'a Path {
    let handle = file.as_file_mut();
    handle
        .set_len(0)
        .and_then(|()| handle.rewind())
        .and_then(|()| handle.write_all(bytes))
        .expect("written");
    file.path()
}
