//! The identity of a file and its content, without reading it.

use std::os::unix::fs::MetadataExt as _;

use serde::{Deserialize, Serialize};

/// Device, inode, size and time of the last change of a file. A changed file has another identity:
/// unlike the time of the last write, no program can set this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    /// Size, in bytes.
    pub bytes: u64,
    /// Time of the last change of the content, the name or the mode, in epoch s.
    pub changed_s: i64,
    changed_ns: i64,
}

impl FileIdentity {
    /// Returns the identity of the file that `found` describes.
    pub fn new(found: &std::fs::Metadata) -> FileIdentity {
        FileIdentity {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.len(),
            changed_s: found.ctime(),
            changed_ns: found.ctime_nsec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_content_of_the_same_size_and_time_is_another_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a");
        let identity = || FileIdentity::new(&fs_err::metadata(&path).expect("there"));
        fs_err::write(&path, "one").expect("written");
        let first = identity();
        assert_eq!(identity(), first);

        let written = fs_err::metadata(&path).expect("there").modified();
        let beside = dir.path().join("b");
        fs_err::write(&beside, "two").expect("written");
        let file = fs_err::File::options()
            .write(true)
            .open(&beside)
            .expect("opened");
        file.file()
            .set_modified(written.expect("a time"))
            .expect("set");
        fs_err::rename(&beside, &path).expect("renamed");
        assert_ne!(identity(), first);
    }
}
