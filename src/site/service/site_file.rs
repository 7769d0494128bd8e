//! A file of the service, as it is to be written below a root.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;

use poolcast_base::files;
use poolcast_base::temporary::directory_of;

/// Maximum size of a file that is compared, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Mode of the directories that are created.
const DIRECTORY_MODE: u32 = 0o755;

/// A file of the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SiteFile {
    /// Absolute path on the access point.
    pub path: &'static str,
    /// Access mode.
    pub mode: u32,
    /// Content.
    pub text: String,
}

/// State of a file below a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileState {
    /// It does not exist.
    New,
    /// It has this content.
    Same,
    /// It exists, and has another content.
    Other,
}

impl SiteFile {
    pub(super) fn new(path: &'static str, text: String) -> SiteFile {
        SiteFile {
            path,
            mode: 0o644,
            text,
        }
    }

    /// The path of the file below `root`.
    pub fn below(&self, root: &Path) -> PathBuf {
        root.join(self.path.trim_start_matches('/'))
    }

    /// Returns the state of the file below `root`. A link or a directory has another content.
    pub fn state(&self, root: &Path) -> FileState {
        let path = self.below(root);
        if fs_err::symlink_metadata(&path).is_err() {
            return FileState::New;
        }
        match files::read_regular(&path, MAX_BYTES) {
            Ok(bytes) if bytes == self.text.as_bytes() => FileState::Same,
            _ => FileState::Other,
        }
    }

    /// Writes the file below `root`, in one step.
    pub fn write(&self, root: &Path) -> Result<()> {
        let path = self.below(root);
        let is_missing = |parent: &&Path| !parent.as_os_str().is_empty() && !parent.exists();
        let missing: Vec<PathBuf> = (path.ancestors().skip(1).take_while(is_missing))
            .map(Path::to_owned)
            .collect();
        fs_err::create_dir_all(directory_of(&path))?;
        for parent in missing {
            fs_err::set_permissions(parent, Permissions::from_mode(DIRECTORY_MODE))?;
        }
        files::write_with_mode(&path, self.text.as_bytes(), self.mode)
    }
}
