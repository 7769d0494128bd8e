//! Other programs, which are started without the keys of trackers: what HTCondor's programs find in
//! their environment may enter a job's ad, which all users of a pool can read.

use std::process::Command;

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
