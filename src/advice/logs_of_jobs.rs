//! The logs that job ads name.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

use poolcast_holds::job_ads::for_each_ad;

/// The attributes of a job that name its log. Jobs of a DAG that name none are in the log of DAGMan.
pub const LOG_ATTRIBUTES: &str = "UserLog,DAGManNodesLog,Iwd";

/// Reads the output of `condor_q -json` or `condor_history -json` from `input`, and returns the logs
/// that the jobs name. Each log may be missing, or may be no log.
///
/// # Errors
/// Fails if `input` cannot be read, or if it is not a complete JSON list.
pub fn logs_of_jobs(input: impl BufRead) -> Result<BTreeSet<PathBuf>> {
    let mut logs = BTreeSet::new();
    for_each_ad(input, |ad| {
        let Ok(ad) = ad else { return };
        let text = |name| ad.get(name).and_then(Value::as_str);
        // A job with a log of its own has the same events in both.
        let log = text("UserLog").or_else(|| text("DAGManNodesLog"));
        let (Some(log), dir) = (log, text("Iwd")) else {
            return;
        };
        // An absolute path replaces the directory.
        let path = Path::new(dir.unwrap_or_default()).join(log);
        if path.is_absolute() {
            logs.insert(path);
        }
    })?;
    Ok(logs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_logs_are_in_the_directory_of_the_job() {
        let ads = br#"[{"UserLog": "a.log", "Iwd": "/home/ada"}, {"UserLog": "/tmp/b.log", "Iwd": "/home/ada"},
            {"UserLog": "a.log", "DAGManNodesLog": "/home/ada/d.log", "Iwd": "/home/ada"}, {"Iwd": "/home/ada"},
            {"DAGManNodesLog": "/home/ada/./e.log", "Iwd": "/home/ada"}, {"UserLog": "c.log"}, {"UserLog": 7}, 8]"#;
        let logs = logs_of_jobs(&ads[..]).expect("read");
        let expected = ["/home/ada/a.log", "/home/ada/./e.log", "/tmp/b.log"].map(PathBuf::from);
        assert_eq!(logs.into_iter().collect::<Vec<_>>(), expected);
        assert!(logs_of_jobs(&b"{}"[..]).is_err());
    }
}
