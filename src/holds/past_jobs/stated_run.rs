//! A run of a job, or a hold between two runs.

use serde_json::Value;

use crate::job_ads::ListedAd;

/// HTCondor's codes from this one on are reasons to stop a run that put no job on hold.
const FIRST_CODE_WITHOUT_HOLD: i64 = 1000;

/// The code of a job that was submitted on hold.
pub(super) const SUBMITTED_ON_HOLD: i32 = 15;

/// A hold, as the ad of a job or of a run states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatedHold {
    pub(super) code: i32,
    pub(super) subcode: i32,
    pub(super) reason: String,
}

/// A run of a job, or a hold while the job did not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatedRun {
    /// Start of the run, epoch seconds; `None` if the job was held without a run.
    pub(super) start_s: Option<i64>,
    /// End of the run, or the time of the hold, epoch seconds.
    pub(super) end_s: i64,
    /// The hold that ended the run.
    pub(super) hold: Option<StatedHold>,
    /// Name of the slot.
    pub(super) slot: Option<String>,
}

impl StatedHold {
    /// Reads a hold from the attributes `PREFIXReasonCode`, `PREFIXReasonSubCode` and
    /// `PREFIXReason`.
    pub(super) fn of_ad(ad: &ListedAd, prefix: &str) -> Option<StatedHold> {
        let number = |name: &str| ad.get(&format!("{prefix}{name}")).and_then(Value::as_i64);
        let code =
            number("ReasonCode").filter(|code| (1..FIRST_CODE_WITHOUT_HOLD).contains(code))?;
        let reason = ad.get(&format!("{prefix}Reason")).and_then(Value::as_str);
        Some(StatedHold {
            code: i32::try_from(code).ok()?,
            subcode: number("ReasonSubCode")
                .and_then(|subcode| i32::try_from(subcode).ok())
                .unwrap_or(0),
            reason: reason.unwrap_or_default().to_owned(),
        })
    }
}

impl StatedRun {
    /// Reads the ad of a run, which its shadow has written at the end of the run.
    pub(super) fn of_ad(ad: &ListedAd) -> Option<StatedRun> {
        let time_s = |name| past_time_s(ad, name);
        Some(StatedRun {
            start_s: Some(time_s("JobCurrentStartDate")?),
            end_s: time_s("EpochWriteDate")?,
            hold: StatedHold::of_ad(ad, "Hold").or_else(|| StatedHold::of_ad(ad, "Vacate")),
            slot: slot_name(ad),
        })
    }
}

/// Returns the slot of the last run.
pub(super) fn slot_name(ad: &ListedAd) -> Option<String> {
    let name = ["RemoteHost", "LastRemoteHost"]
        .into_iter()
        .find_map(|name| ad.get(name).and_then(Value::as_str));
    name.map(str::to_owned)
}

/// Returns the time in the attribute `name`, in epoch seconds, if it is one of the years 1970 to 9999.
pub(super) fn past_time_s(ad: &ListedAd, name: &str) -> Option<i64> {
    let time_s = ad.get(name).and_then(Value::as_i64)?;
    (1..253_402_300_800).contains(&time_s).then_some(time_s)
}
