//! Hints of errors about event logs.

/// Advice on finding the log.
pub(super) const FIND_LOG_HINT: &str =
    "`condor_config_val EVENT_LOG` names the global event log of an access point";
