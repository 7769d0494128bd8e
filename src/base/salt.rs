//! The salt for hashing owner names: a secret per user, in its own file. Without it, nobody who
//! gets a store can find the owners by hashing candidate names.

use std::ffi::OsString;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use crate::error::hinted;
use crate::files;
use crate::manifest;
use crate::temporary;
use crate::user_directories::configuration_directory;

/// Environment variable with the salt itself. It is a secret and is never printed.
pub const SALT_VARIABLE: &str = "POOLCAST_OWNER_SALT";

/// Environment variable with the path of the salt file. The default is in the user's configuration
/// directory.
pub const SALT_FILE_VARIABLE: &str = "POOLCAST_OWNER_SALT_FILE";

/// Random bytes in a new salt.
const SALT_BYTES: usize = 32;

/// Minimum length of a salt that a user gives, in bytes. Somebody who has a store could try all
/// shorter salts, and then all names.
const MIN_CHARACTERS: usize = 16;

/// Maximum size of a salt file, in bytes.
const MAX_FILE_BYTES: u64 = 4096;

/// The salt that owner names are hashed with.
#[derive(Clone)]
pub struct OwnerSalt {
    text: String,
    /// Note or warning about the origin of the salt, to print on stderr.
    pub note: Option<String>,
}

impl std::fmt::Debug for OwnerSalt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnerSalt")
    }
}

impl OwnerSalt {
    /// Returns the salt of this user: from [`SALT_VARIABLE`], else from the salt file. A missing
    /// file is created with a random salt. If no file can be kept in the configuration directory,
    /// the salt is random and valid for one store only.
    ///
    /// # Errors
    /// Fails if the variable or the file holds no valid salt, or if the file in
    /// [`SALT_FILE_VARIABLE`] can be neither read nor created.
    pub fn for_this_user() -> Result<OwnerSalt> {
        if let Some(text) = nonempty_variable(SALT_VARIABLE) {
            return OwnerSalt::from_variable(text.to_string_lossy().into_owned());
        }
        if let Some(path) = nonempty_variable(SALT_FILE_VARIABLE) {
            let kept = read_or_create_salt(Path::new(&path));
            return kept.with_context(|| {
                format!(
                    "cannot read or create the owner salt in `{}`",
                    path.to_string_lossy()
                )
            });
        }

        let Some(configuration) = configuration_directory() else {
            return OwnerSalt::for_single_store("no home directory is known");
        };
        match read_or_create_salt(&configuration.join("poolcast").join("owner-salt")) {
            // On machines that run jobs, the home directory is often not writable.
            Err(error) if error.chain().any(|cause| cause.is::<std::io::Error>()) => {
                OwnerSalt::for_single_store(&format!("{error:#}"))
            }
            kept => kept,
        }
    }

    /// Returns the salt `text`, the value of [`SALT_VARIABLE`]. The error does not repeat it.
    fn from_variable(text: String) -> Result<OwnerSalt> {
        ensure!(
            text.len() >= MIN_CHARACTERS,
            hinted(
                format!("the salt in `{SALT_VARIABLE}` has fewer than {MIN_CHARACTERS} characters"),
                "set it to random text, such as the output of `openssl rand -hex 32`; or unset it, and poolcast creates a salt once and keeps it in a file"
            )
        );
        Ok(OwnerSalt { text, note: None })
    }

    /// Creates a random salt that is not stored anywhere.
    pub fn random() -> Result<OwnerSalt> {
        Ok(OwnerSalt {
            text: random_text::<SALT_BYTES>()?,
            note: None,
        })
    }

    fn for_single_store(why: &str) -> Result<OwnerSalt> {
        let note = format!(
            "note: owners are hashed with a salt for this store only, as it cannot be saved ({why}): \
             a log that grows cannot be resumed; set `{SALT_FILE_VARIABLE}` to a writable file"
        );
        Ok(OwnerSalt {
            note: Some(note),
            ..OwnerSalt::random()?
        })
    }

    /// The salt itself, as input for [`hash_name`].
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Hashes `name`. Nobody can find the name from the hash without `salt`.
pub fn hash_name(salt: &str, name: &[u8]) -> u64 {
    let digest = Sha256::new()
        .chain_update(salt)
        .chain_update([0])
        .chain_update(name)
        .finalize();
    u64::from_le_bytes(digest[..8].try_into().expect("eight bytes"))
}

/// Returns `BYTES` random bytes as hexadecimal digits.
///
/// # Errors
/// Fails if the operating system provides no random numbers.
pub fn random_text<const BYTES: usize>() -> Result<String> {
    let mut bytes = [0; BYTES];
    let mut filled = 0;
    while filled < BYTES {
        filled +=
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())
                .map_err(std::io::Error::from)
                .context("cannot get random numbers from the operating system")?;
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Reads an environment variable; `None` if it is unset or empty.
fn nonempty_variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns a digest that distinguishes salts without revealing them.
pub fn digest(salt: &str) -> String {
    manifest::sha256(format!("salt of owners\0{salt}").as_bytes())
}

/// Returns the salt in the file `path`, which is created if it is missing.
fn read_or_create_salt(path: &Path) -> Result<OwnerSalt> {
    match read_file(path) {
        Err(error) if is_not_found(&error) => create_salt_file(path),
        found => found,
    }
}

fn is_not_found(error: &anyhow::Error) -> bool {
    let mut io = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.any(|io| io.kind() == ErrorKind::NotFound)
}

fn read_file(path: &Path) -> Result<OwnerSalt> {
    use std::os::unix::fs::PermissionsExt as _;

    let bytes = files::read_artefact(path, MAX_FILE_BYTES)?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    ensure!(
        text.len() >= MIN_CHARACTERS,
        hinted(
            format!(
                "`{}` is not a valid salt file: it has fewer than {MIN_CHARACTERS} characters",
                path.display()
            ),
            "restore it; or remove it, and the next call creates a new one, which cannot continue existing stores"
        )
    );

    let mode = fs_err::metadata(path)?.permissions().mode();
    let is_open = mode & 0o077 != 0;
    let note = format!(
        "warning: other users can read the owner salt: `chmod 600 {}`",
        path.display()
    );
    Ok(OwnerSalt {
        text,
        note: is_open.then_some(note),
    })
}

/// Creates the salt file atomically. If several calls create it at once, all of them get the salt
/// of the first.
fn create_salt_file(path: &Path) -> Result<OwnerSalt> {
    use fs_err::os::unix::fs::OpenOptionsExt as _;

    fs_err::create_dir_all(temporary::directory_of(path))?;
    let (beside, mut file) = temporary::make_beside(path, "tmp", |path| {
        fs_err::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
    })?;
    let written = OwnerSalt::random().and_then(|salt| {
        file.write_all(format!("{}\n", salt.text).as_bytes())?;
        Ok(file.sync_all()?)
    });

    // Unlike a rename, a hard link never replaces an existing file.
    let linked = written.and_then(|()| match fs_err::hard_link(&beside, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        linked => Ok(linked.map(|()| true)?),
    });

    let _ = fs_err::remove_file(&beside);
    let is_new = linked?;
    files::sync_directory(temporary::directory_of(path))?;
    let note = format!(
        "note: created `{}`, the secret salt that hashes owner names; keep it",
        path.display()
    );
    Ok(OwnerSalt {
        note: is_new.then_some(note),
        ..read_file(path)?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn concurrent_calls_agree_on_one_salt() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("poolcast").join("owner-salt");
        let salts: Vec<OwnerSalt> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| read_or_create_salt(&path).expect("kept")))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic"))
                .collect()
        });
        assert!(
            salts
                .iter()
                .all(|salt| salt.text == salts[0].text && salt.text.len() == 2 * SALT_BYTES)
        );
        assert_eq!(
            salts.iter().filter(|salt| salt.note.is_some()).count(),
            1,
            "one has made it"
        );
        assert_eq!(
            fs_err::metadata(&path).expect("there").permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            fs_err::read_dir(path.parent().expect("a parent"))
                .expect("listed")
                .count(),
            1,
            "no leftovers"
        );
        assert_ne!(OwnerSalt::random().expect("random").text, salts[0].text);
    }

    #[test]
    fn invalid_salt_file_is_reported_and_left_untouched() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("owner-salt");
        fs_err::write(&path, "short\n").expect("written");
        assert!(
            read_or_create_salt(&path)
                .expect_err("no salt")
                .to_string()
                .contains("is not a valid salt file")
        );
        assert_eq!(fs_err::read(&path).expect("read"), b"short\n");
        fs_err::write(&path, "a salt of somebody's own\n").expect("written");
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("set");
        let open = read_or_create_salt(&path).expect("kept");
        assert!(
            open.note
                .expect("a warning")
                .starts_with("warning: other users can read")
        );
        assert_eq!(open.text, "a salt of somebody's own");
        fs_err::remove_file(&path).expect("removed");
        fs_err::create_dir(&path).expect("made");
        assert!(read_or_create_salt(&path).is_err());
    }

    #[test]
    fn short_salt_in_the_variable_is_rejected_and_not_repeated() {
        let error = OwnerSalt::from_variable("Q".repeat(15)).expect_err("too short");
        let shown = crate::error::render(&error);
        assert!(
            shown.contains("16 characters") && !shown.contains('Q'),
            "{shown}"
        );
        assert!(OwnerSalt::from_variable("Q".repeat(16)).is_ok());
    }

    #[test]
    fn debug_and_digest_do_not_reveal_the_salt() {
        let salt = OwnerSalt {
            text: "s3cret-s3cret-s3cret".to_owned(),
            note: None,
        };
        assert_eq!(format!("{salt:?}"), "OwnerSalt");
        assert!(!digest(salt.text()).contains("s3cret"));
        assert_ne!(digest(salt.text()), digest("s3cret-s3cret-s3creT"));
    }
}
