//! The end of a job and its last hold, from the ad of a job that has left the queue or is held there.

use serde_json::Value;

use super::stated_run::{SUBMITTED_ON_HOLD, StatedHold, StatedRun, past_time_s, slot_name};
use crate::job_ads::{ListedAd, job_status};

/// Maximum difference between the times of one hold in the queue and in the ad of a run, in s.
const CLOCK_SLACK_S: u64 = 2;

/// End of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EndKind {
    /// The job returned this value.
    Returned(i32),
    /// This signal ended the job.
    Signalled(i32),
    /// The job was removed, for this reason.
    Removed(String),
    /// The job is in the queue, and is held.
    StillHeld,
}

/// A job that has left the queue, or that is held there.
#[derive(Debug, Clone)]
pub(super) struct StatedEnd {
    pub(super) ending: EndKind,
    /// Time of the end, or of the hold of a held job, epoch seconds.
    pub(super) end_s: i64,
    pub(super) last_hold: Option<StatedHold>,
    /// True if the job was released before it was removed, and did not run again.
    was_idle: bool,
    /// True if the job was held until it was removed, or is held.
    was_held: bool,
    submit_s: i64,
    first_start_s: Option<i64>,
    /// Start of the run before the last.
    earlier_start_s: Option<i64>,
    last_start_s: Option<i64>,
    /// Time of an end of a run. HTCondor does not update it at each end.
    vacated_s: Option<i64>,
    /// Number of runs.
    runs: i64,
    /// Number of holds. HTCondor counts some holds several times.
    holds: i64,
    /// Duration of all runs, in seconds.
    ran_s: i64,
    /// Duration of the last run, in seconds.
    last_ran_s: i64,
    slot: Option<String>,
}

impl StatedEnd {
    /// Reads the ad of a job that was submitted at `submit_s`. Returns `None` if the job has not
    /// ended and is not held.
    pub(super) fn of_ad(ad: &ListedAd, submit_s: i64) -> Option<StatedEnd> {
        let number = |name| ad.get(name).and_then(Value::as_i64);
        let seconds = |name| {
            let seconds = ad.get(name).and_then(Value::as_f64).unwrap_or(0.0);
            // The bound keeps sums of durations and times in range.
            seconds.clamp(0.0, 1e10) as i64
        };
        let time_s = |name| past_time_s(ad, name);
        let status = number("JobStatus")?;
        let ending = EndKind::of_ad(ad, status)?;
        let end_s = match status {
            job_status::COMPLETED => time_s("CompletionDate").or(time_s("EnteredCurrentStatus"))?,
            _ => time_s("EnteredCurrentStatus")?,
        };

        let released = StatedHold::of_ad(ad, "LastHold");
        let unreleased = StatedHold::of_ad(ad, "Hold");
        let last_status = number("LastJobStatus").filter(|_| status == job_status::REMOVED);
        Some(StatedEnd {
            ending,
            end_s,
            was_idle: last_status == Some(job_status::IDLE),
            was_held: last_status == Some(job_status::HELD)
                || status == job_status::HELD
                || (status == job_status::REMOVED && unreleased.is_some()),
            last_hold: unreleased.or(released),
            submit_s,
            first_start_s: time_s("JobStartDate"),
            earlier_start_s: time_s("JobLastStartDate"),
            last_start_s: time_s("JobCurrentStartDate"),
            vacated_s: time_s("LastVacateTime"),
            runs: ["NumShadowStarts", "JobRunCount", "NumJobStarts"]
                .into_iter()
                .find_map(number)
                .unwrap_or(0),
            holds: number("NumHolds").unwrap_or(1).max(1),
            ran_s: seconds("RemoteWallClockTime"),
            last_ran_s: seconds("LastRemoteWallClockTime"),
            slot: slot_name(ad),
        })
    }

    /// Adds to `runs`, which the history has of this job in order, the last run and the last hold if
    /// they are missing. Returns true if the time of a hold is an estimate.
    pub(super) fn complete(&self, runs: &mut Vec<StatedRun>) -> bool {
        if let Some(start_s) = self.last_start_s
            && runs.iter().all(|run| run.start_s != Some(start_s))
        {
            runs.push(StatedRun {
                start_s: Some(start_s),
                end_s: start_s.saturating_add(self.last_ran_s).min(self.end_s),
                hold: None,
                slot: self.slot.clone(),
            });
        }
        // The time is unknown at which a job without a known run was held and released.
        let is_placed = !runs.is_empty() || self.was_held || self.was_idle;
        let Some(hold) = self.last_hold.as_ref().filter(|_| is_placed) else {
            return false;
        };
        if self.ending == EndKind::StillHeld {
            self.end_with_hold(hold, runs);
            return false;
        }
        let shown = if self.was_held {
            runs.last().and_then(|run| run.hold.as_ref())
        } else {
            runs.iter().rev().find_map(|run| run.hold.as_ref())
        };
        if shown.is_some_and(|shown| shown.code == hold.code) {
            return false;
        }
        self.insert_hold(hold, runs);
        hold.code != SUBMITTED_ON_HOLD
    }

    /// Adds to `runs` the hold that the job is in. The queue knows the time of this hold.
    fn end_with_hold(&self, hold: &StatedHold, runs: &mut Vec<StatedRun>) {
        let is_it = |run: &StatedRun| match &run.hold {
            None => true,
            Some(shown) => {
                let apart_s = run.end_s.abs_diff(self.end_s);
                shown.code == hold.code && apart_s <= CLOCK_SLACK_S
            }
        };
        match runs.last_mut().filter(|run| is_it(run)) {
            Some(run) => {
                run.hold = Some(hold.clone());
                run.end_s = self.end_s;
            }
            None => runs.push(between_runs(self.end_s, hold)),
        }
    }

    /// Returns true if the job was released after its last hold.
    pub(super) fn was_released(&self) -> bool {
        match self.ending {
            EndKind::Returned(_) | EndKind::Signalled(_) => true,
            EndKind::Removed(_) => self.was_idle,
            EndKind::StillHeld => false,
        }
    }

    /// Number of holds that the job had, if it ran after each of them or was held at its end. HTCondor
    /// counts some holds several times, but a run ends with one hold at most.
    pub(super) fn stated_holds(&self) -> usize {
        if self.last_hold.is_none() {
            return 0;
        }
        usize::try_from(self.holds.min(self.runs.max(1))).unwrap_or(0)
    }

    /// Inserts the last hold into `runs` at the best estimate of its time. An estimate uses only
    /// facts from before the release.
    fn insert_hold(&self, hold: &StatedHold, runs: &mut Vec<StatedRun>) {
        if hold.code == SUBMITTED_ON_HOLD {
            runs.insert(0, between_runs(self.submit_s, hold));
            return;
        }
        if self.was_held || self.was_idle {
            match runs.last_mut() {
                Some(last) if last.hold.is_none() => last.hold = Some(hold.clone()),
                Some(last) => {
                    let held_s = last.end_s;
                    runs.push(between_runs(held_s, hold));
                }
                None => runs.push(between_runs(self.submit_s, hold)),
            }
            return;
        }

        // The job ran after the hold, so the hold precedes the last run.
        let at = runs.len().saturating_sub(1);
        let earlier = match at.checked_sub(1).map(|earlier| runs[earlier].end_s) {
            // The earlier run is known to have ended without this hold.
            Some(end_s) => between_runs(end_s, hold),
            None => self
                .earlier_run(hold)
                .unwrap_or_else(|| between_runs(self.submit_s, hold)),
        };
        runs.insert(at, earlier);
    }

    /// Estimates the run before the last, which `hold` has ended. Returns `None` if there was only one
    /// run.
    fn earlier_run(&self, hold: &StatedHold) -> Option<StatedRun> {
        let earlier_runs = self.runs.checked_sub(1).filter(|runs| *runs > 0)?;
        let last_start_s = self.last_start_s?;
        // After more runs than holds, the run before the last may have begun after the release.
        let start_s = if earlier_runs <= self.holds {
            self.earlier_start_s.or(self.first_start_s)
        } else {
            self.first_start_s
        }
        .filter(|start_s| *start_s < last_start_s)?;

        let mean_s = (self.ran_s - self.last_ran_s).max(0) / earlier_runs;
        let vacated_s = self
            .vacated_s
            .filter(|vacated_s| (start_s..last_start_s).contains(vacated_s));
        Some(StatedRun {
            start_s: Some(start_s),
            end_s: vacated_s.unwrap_or((start_s + mean_s).min(last_start_s)),
            hold: Some(hold.clone()),
            slot: None,
        })
    }
}

impl EndKind {
    fn of_ad(ad: &ListedAd, status: i64) -> Option<EndKind> {
        let number = |name| {
            let number = ad.get(name).and_then(Value::as_i64);
            number.and_then(|number| i32::try_from(number).ok())
        };
        match status {
            job_status::COMPLETED
                if ad.get("ExitBySignal").and_then(Value::as_bool) == Some(true) =>
            {
                Some(EndKind::Signalled(number("ExitSignal").unwrap_or(0)))
            }
            job_status::COMPLETED => Some(EndKind::Returned(number("ExitCode")?)),
            job_status::REMOVED => {
                let reason = ad.get("RemoveReason").and_then(Value::as_str);
                Some(EndKind::Removed(reason.unwrap_or_default().to_owned()))
            }
            job_status::HELD => Some(EndKind::StillHeld),
            _ => None,
        }
    }
}

/// A hold at `held_s` while the job did not run.
fn between_runs(held_s: i64, hold: &StatedHold) -> StatedRun {
    StatedRun {
        start_s: None,
        end_s: held_s,
        hold: Some(hold.clone()),
        slot: None,
    }
}
