//! Safe file access: atomic writes of files and directories, locks, identities, and checked reads
//! of untrusted files.

mod atomic;
mod directory;
mod file_mode;
mod identity;
mod lock;
mod regular;
mod staging;

pub use atomic::create_new;
pub use atomic::{AtomicFile, write_atomic, write_atomic_parts, write_with_mode};
pub use directory::{check_space, link_or_copy, remove_all, sync_directory};
pub use file_mode::{MODE_VARIABLE, apply_file_mode};
pub use identity::FileIdentity;
pub use lock::{LockedDirectory, lock_directory};
pub use regular::{
    is_regular, open_artefact, open_regular, open_to_append, read_artefact, read_regular,
};
pub use staging::StagedDirectory;
