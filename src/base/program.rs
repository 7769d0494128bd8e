//! The commit of this program, and other programs, which are started without the keys of trackers: what HTCondor's programs find in
//! their environment may enter a job's ad, which all users of a pool can read.

use std::process::Command;
use std::sync::OnceLock;

static COMMIT: OnceLock<&str> = OnceLock::new();

/// Names the commit that this program was built from. Only the program itself knows it: a library that
/// did would be compiled again after each commit.
pub fn set_commit(commit: &'static str) {
    COMMIT.get_or_init(|| commit);
}

/// The commit that this program was built from; `unknown` before [`set_commit`].
pub fn commit() -> &'static str {
    COMMIT.get().copied().unwrap_or("unknown")
}

/// The environment variables that hold keys of trackers.
pub const TRACKER_KEYS: [&str; 3] = [
    "WANDB_API_KEY",
    "MLFLOW_TRACKING_PASSWORD",
    "MLFLOW_TRACKING_TOKEN",
];

/// A call of `program` without those.
pub fn command_without_keys(program: &str) -> Command {
    let mut command = Command::new(program);
    for name in TRACKER_KEYS {
        command.env_remove(name);
    }
    command
}

/// Endings of the names of configuration keys and environment variables that hold secrets.
pub const SECRET_WORDS: [&str; 9] = [
    "api_key",
    "apikey",
    "access_key",
    "private_key",
    "password",
    "passwd",
    "token",
    "secret",
    "credentials",
];
