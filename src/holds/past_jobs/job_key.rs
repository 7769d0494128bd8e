//! The identity of a job of the history.

use serde_json::Value;

use super::stated_run::past_time_s;
use crate::job_ads::ListedAd;

/// Identity of a job of an access point, in the order in which jobs are listed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PastJobKey {
    pub(super) schedd: String,
    pub(super) cluster: i32,
    pub(super) proc: i32,
    /// Submit time, epoch seconds.
    pub(super) submit_s: i64,
}

impl PastJobKey {
    /// Reads the identity of the job from its ad.
    pub(super) fn of_ad(ad: &ListedAd) -> Option<PastJobKey> {
        let number = |name| {
            let number = ad.get(name).and_then(Value::as_i64)?;
            i32::try_from(number).ok().filter(|number| *number >= 0)
        };
        // The form is `schedd#cluster.proc#submit_time`.
        let global_id = ad.get("GlobalJobId").and_then(Value::as_str);
        let schedd = global_id.and_then(|id| Some(id.split_once('#')?.0));
        Some(PastJobKey {
            schedd: schedd
                .filter(|name| is_schedd_name(name))
                .unwrap_or("unknown")
                .to_owned(),
            cluster: number("ClusterId")?,
            proc: number("ProcId")?,
            submit_s: past_time_s(ad, "QDate")?,
        })
    }
}

/// Returns true if `name` can stand in the header of a log.
fn is_schedd_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@._-".contains(c);
    !name.is_empty() && name.len() <= 256 && name.chars().all(is_plain)
}
