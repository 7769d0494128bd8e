//! The sources of the workspace, for the checks beside this file.

use std::path::{Path, PathBuf};

/// The top of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The Rust files below `dir`, sorted. Build directories are skipped.
pub fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in fs_err::read_dir(dir).expect("a readable directory") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() && !path.ends_with("target") {
            paths.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    paths.sort();
    paths
}

/// The paths of `files` relative to the repository, each with its text.
pub fn read_files(files: &[PathBuf]) -> Vec<(String, String)> {
    let top = repository();
    let relative = |path: &Path| {
        let inside = path.strip_prefix(&top).expect("a path in the repository");
        inside.to_string_lossy().into_owned()
    };
    files
        .iter()
        .map(|path| {
            let text = fs_err::read_to_string(path).expect("a readable file");
            (relative(path), text)
        })
        .collect()
}
