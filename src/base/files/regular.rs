//! Opens untrusted files safely: only regular files of bounded size, so that no link, pipe or
//! device can block or mislead the reader.

use std::io::{Error, ErrorKind, Read as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a file that another user may have created. It must be a regular file of at most
/// `max_bytes` bytes, not a link, a pipe, a device or a directory. Opening never blocks.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidData`] for anything else.
pub fn open_regular(path: &Path, max_bytes: u64) -> std::io::Result<fs_err::File> {
    open_checked(path, max_bytes, false)
}

/// Like [`open_regular`], but follows links, because users may keep artefacts elsewhere.
///
/// # Errors
/// Fails like [`open_regular`].
pub fn open_artefact(path: &Path, max_bytes: u64) -> std::io::Result<fs_err::File> {
    open_checked(path, max_bytes, true)
}

fn open_checked(path: &Path, max_bytes: u64, follows_links: bool) -> std::io::Result<fs_err::File> {
    use fs_err::os::unix::fs::OpenOptionsExt as _;
    let refused = |why: String| {
        Error::new(
            ErrorKind::InvalidData,
            format!("`{}` {why}", path.display()),
        )
    };
    let check = |found: std::fs::Metadata| match found.len() {
        _ if !found.is_file() => Err(refused("is not a regular file".to_owned())),
        bytes if bytes > max_bytes => Err(refused(format!(
            "has {bytes} bytes; the limit is {max_bytes}"
        ))),
        _ => Ok(()),
    };
    // Opening a device can have effects, so the type is checked first. A missing file is reported
    // by the call that opens it.
    let found = if follows_links {
        fs_err::metadata(path)
    } else {
        fs_err::symlink_metadata(path)
    };
    found.map_or(Ok(()), check)?;

    // The file may have been replaced since the check, so the opened file is checked again below.
    let links = if follows_links {
        OFlags::empty()
    } else {
        OFlags::NOFOLLOW
    };
    let flags = (links | OFlags::NONBLOCK | OFlags::NOCTTY)
        .bits()
        .cast_signed();
    let file = fs_err::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    check(file.metadata()?)?;
    Ok(file)
}

/// Reads a file that [`open_regular`] accepts.
///
/// # Errors
/// Fails like [`open_regular`], and if the file grows beyond `max_bytes` meanwhile.
pub fn read_regular(path: &Path, max_bytes: u64) -> std::io::Result<Vec<u8>> {
    read_bounded(path, open_regular(path, max_bytes)?, max_bytes)
}

/// Reads a file that [`open_artefact`] accepts.
///
/// # Errors
/// Fails like [`read_regular`].
pub fn read_artefact(path: &Path, max_bytes: u64) -> std::io::Result<Vec<u8>> {
    read_bounded(path, open_artefact(path, max_bytes)?, max_bytes)
}

fn read_bounded(path: &Path, file: fs_err::File, max_bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(max_bytes.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(Error::new(
            ErrorKind::InvalidData,
            format!(
                "`{}` grows beyond {max_bytes} bytes while it is read",
                path.display()
            ),
        ));
    }
    Ok(bytes)
}

/// Returns true if `path` is a regular file. Links are not followed: in a shared folder, another
/// user may have put one there.
pub fn is_regular(path: &Path) -> bool {
    fs_err::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// Opens a file for appending, and creates it if it is missing. Links are not followed, and opening
/// never blocks.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidData`] for a pipe or a device.
pub fn open_to_append(path: &Path) -> std::io::Result<fs_err::File> {
    use fs_err::os::unix::fs::OpenOptionsExt as _;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY)
        .bits()
        .cast_signed();
    let file = fs_err::OpenOptions::new()
        .append(true)
        .create(true)
        .custom_flags(flags)
        .open(path)?;
    if !file.metadata()?.is_file() {
        let message = format!("`{}` is not a regular file", path.display());
        return Err(Error::new(ErrorKind::InvalidData, message));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        fs_err::write(at("small"), "abc").expect("written");
        assert_eq!(read_regular(&at("small"), 3).expect("read"), b"abc");
        fs_err::File::create(at("huge"))
            .expect("made")
            .set_len(1 << 40)
            .expect("sparse");
        let made = std::process::Command::new("mkfifo")
            .arg(at("pipe"))
            .status()
            .expect("mkfifo runs");
        assert!(made.success());
        std::os::unix::fs::symlink("/dev/zero", at("device")).expect("linked");
        std::os::unix::fs::symlink(at("small"), at("link")).expect("linked");
        fs_err::create_dir(at("directory")).expect("made");
        for name in ["huge", "pipe", "device", "link", "directory"] {
            let error = read_regular(&at(name), 3).expect_err(name);
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{name}: {error}");
            assert!(error.to_string().contains(name), "{error}");
        }
        assert_eq!(
            read_regular(&at("missing"), 3).expect_err("missing").kind(),
            ErrorKind::NotFound
        );
    }

    #[test]
    fn non_regular_files_are_rejected_without_blocking() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        fs_err::write(at("file"), "abc").expect("written");
        std::os::unix::fs::symlink(at("file"), at("link")).expect("linked");
        assert_eq!(read_artefact(&at("link"), 3).expect("read"), b"abc");
        assert!(
            read_artefact(&at("file"), 2)
                .expect_err("too large")
                .to_string()
                .contains("the limit is 2")
        );
        assert!(
            std::process::Command::new("mkfifo")
                .arg(at("pipe"))
                .status()
                .expect("it runs")
                .success()
        );
        std::os::unix::fs::symlink("/dev/zero", at("zero")).expect("linked");
        for name in ["pipe", "zero", "."] {
            let error = open_artefact(&at(name), u64::MAX)
                .expect_err("refused")
                .to_string();
            assert!(error.contains("is not a regular file"), "{name}: {error}");
        }
        assert!(
            open_to_append(&at("link")).is_err(),
            "a link is not followed"
        );
        open_to_append(&at("file"))
            .expect("opened")
            .write_all(b"d")
            .expect("written");
        assert_eq!(fs_err::read(at("file")).expect("read"), b"abcd");

        let reader = fs_err::OpenOptions::new()
            .read(true)
            .write(true)
            .open(at("pipe"))
            .expect("opened");
        let error = open_to_append(&at("pipe")).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        drop(reader);
        let is_file = ["file", "link", "pipe", "zero", "."].map(|name| is_regular(&at(name)));
        assert_eq!(is_file, [true, false, false, false, false]);
    }
}
