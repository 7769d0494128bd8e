//! The commit of this program, and other programs, which start without the API keys of trackers in their
//! environment. HTCondor's programs may copy their environment to a job's ad, which all users of a pool
//! can read.

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

/// Environment variables that hold API keys of trackers.
pub const TRACKER_KEYS: [&str; 3] = [
    "WANDB_API_KEY",
    "MLFLOW_TRACKING_PASSWORD",
    "MLFLOW_TRACKING_TOKEN",
];

/// Returns a command that runs `program` without [`TRACKER_KEYS`] in its environment.
pub fn command_without_keys(program: &str) -> Command {
    without_keys(Command::new(program))
}

/// Returns `command` without [`TRACKER_KEYS`] in its environment.
pub fn without_keys(mut command: Command) -> Command {
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
