//! HTCondor's event numbers and their names.

/// Event 000: the job was submitted.
pub const SUBMIT: u16 = 0;
/// Event 001: the job started to execute.
pub const EXECUTE: u16 = 1;
/// Event 004: the job was evicted before it ended.
pub const EVICTED: u16 = 4;
/// Event 005: the job terminated.
pub const TERMINATED: u16 = 5;
/// Event 006: the image size of the job has changed.
pub const IMAGE_SIZE: u16 = 6;
/// Event 007: the run failed at the access point, and the job starts again.
pub const SHADOW_EXCEPTION: u16 = 7;
/// Event 008: free text. The header of a global event log is such an event.
pub const GENERIC: u16 = 8;
/// Event 009: the job was removed.
pub const ABORTED: u16 = 9;
/// Event 012: the job was held.
pub const HELD: u16 = 12;
/// Event 013: the job was released.
pub const RELEASED: u16 = 13;
/// Event 015: a node of a parallel job terminated. Its body is like the one of event 005.
pub(super) const NODE_TERMINATED: u16 = 15;
/// Event 021: a machine reports an error or a warning.
pub const REMOTE_ERROR: u16 = 21;
/// Event 022: the connection to the machine is lost.
pub const DISCONNECTED: u16 = 22;
/// Event 023: the connection to the machine is back.
pub const RECONNECTED: u16 = 23;
/// Event 024: the connection to the machine did not come back, and the job is idle again.
pub const RECONNECT_FAILED: u16 = 24;
/// Event 028: attributes of the job ad, written after the event that triggered it. It is an
/// annotation and does not change the state of the job.
pub const AD_INFORMATION: u16 = 28;
/// Event 033: an attribute of the job was changed.
pub const ATTRIBUTE_UPDATE: u16 = 33;

/// Event 040: input or output files of the job are transferred.
pub const FILE_TRANSFER: u16 = 40;

/// The events that this program uses, with the words that begin the text of each.
const FIRST_WORDS: [(u16, &[u8]); 13] = [
    (SUBMIT, b"Job submitted from host: "),
    (EXECUTE, b"Job executing on host: "),
    (EVICTED, b"Job was evicted."),
    (TERMINATED, b"Job terminated."),
    (IMAGE_SIZE, b"Image size of job updated: "),
    (SHADOW_EXCEPTION, b"Shadow exception!"),
    (ABORTED, b"Job was aborted"),
    (HELD, b"Job was held."),
    (RELEASED, b"Job was released."),
    (DISCONNECTED, b"Job disconnected, "),
    (RECONNECTED, b"Job reconnected to "),
    (RECONNECT_FAILED, b"Job reconnection failed"),
    (AD_INFORMATION, b"Job ad information event triggered."),
];

/// Returns true if `headline` belongs to another event than `number`, whose own words are known.
/// HTCondor's reader reports such a record as an error. Words of unknown form may be of another version.
#[inline]
pub(super) fn is_of_other_event(number: u16, headline: &[u8]) -> bool {
    let is_own = |(own, words): &(u16, &[u8])| *own == number && headline.starts_with(words);
    !FIRST_WORDS.iter().any(is_own) && is_of_another(number, headline)
}

#[cold]
fn is_of_another(number: u16, headline: &[u8]) -> bool {
    let is_known = FIRST_WORDS.iter().any(|(known, _)| *known == number);
    let begins = |(_, words): &(u16, &[u8])| headline.starts_with(words);
    is_known && FIRST_WORDS.iter().any(begins)
}

/// Returns HTCondor's name of an event, without `ULOG_`.
pub fn event_name(number: u16) -> &'static str {
    const NAMES: [&str; 48] = [
        "SUBMIT",
        "EXECUTE",
        "EXECUTABLE_ERROR",
        "CHECKPOINTED",
        "JOB_EVICTED",
        "JOB_TERMINATED",
        "IMAGE_SIZE",
        "SHADOW_EXCEPTION",
        "GENERIC",
        "JOB_ABORTED",
        "JOB_SUSPENDED",
        "JOB_UNSUSPENDED",
        "JOB_HELD",
        "JOB_RELEASED",
        "NODE_EXECUTE",
        "NODE_TERMINATED",
        "POST_SCRIPT_TERMINATED",
        "GLOBUS_SUBMIT",
        "GLOBUS_SUBMIT_FAILED",
        "GLOBUS_RESOURCE_UP",
        "GLOBUS_RESOURCE_DOWN",
        "REMOTE_ERROR",
        "JOB_DISCONNECTED",
        "JOB_RECONNECTED",
        "JOB_RECONNECT_FAILED",
        "GRID_RESOURCE_UP",
        "GRID_RESOURCE_DOWN",
        "GRID_SUBMIT",
        "JOB_AD_INFORMATION",
        "JOB_STATUS_UNKNOWN",
        "JOB_STATUS_KNOWN",
        "JOB_STAGE_IN",
        "JOB_STAGE_OUT",
        "ATTRIBUTE_UPDATE",
        "PRESKIP",
        "CLUSTER_SUBMIT",
        "CLUSTER_REMOVE",
        "FACTORY_PAUSED",
        "FACTORY_RESUMED",
        "NONE",
        "FILE_TRANSFER",
        "RESERVE_SPACE",
        "RELEASE_SPACE",
        "FILE_COMPLETE",
        "FILE_USED",
        "FILE_REMOVED",
        "DATAFLOW_JOB_SKIPPED",
        "COMMON_FILES",
    ];
    NAMES.get(usize::from(number)).copied().unwrap_or("unknown")
}
