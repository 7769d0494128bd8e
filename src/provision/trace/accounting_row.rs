//! Converts one `sacct` row, from text or JSON, to a [`TraceJob`].

use super::local_time::{StampReadings, choose_readings};
use super::row_fault::RowFault;
use super::trace_job::{JobFate, JobNumber, OptionalSeconds, TraceJob};

/// The parsed values of one row. Times are in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccountingRow {
    pub(super) user: u64,
    pub(super) submit: StampReadings,
    pub(super) eligible: Option<StampReadings>,
    pub(super) start: Option<StampReadings>,
    pub(super) end: Option<StampReadings>,
    pub(super) run_s: Option<i64>,
    pub(super) limit_s: Option<i64>,
    pub(super) nodes: u32,
    pub(super) state: StatedState,
}

/// The job state that a row names, where the stamps alone do not show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatedState {
    /// The row has no state.
    Unknown,
    /// The job is pending; its start is an estimate.
    Pending,
    /// The job was cancelled, before or after its start.
    Cancelled,
    /// The job has ended, whatever stamps the row has.
    Ended,
    /// Any other state.
    Other,
}

impl StatedState {
    /// Parses the column `State`, such as `CANCELLED by 0`.
    pub(super) fn parse(text: &str) -> StatedState {
        // A table cuts a long state: `CANCELLED+`.
        let word = text.split_ascii_whitespace().next();
        match word.map(|word| word.trim_end_matches('+')) {
            None => StatedState::Unknown,
            Some("PENDING" | "PD") => StatedState::Pending,
            Some("CANCELLED" | "CA") => StatedState::Cancelled,
            Some(
                "BOOT_FAIL" | "BF" | "COMPLETED" | "CD" | "DEADLINE" | "DL" | "FAILED" | "F"
                | "LAUNCH_FAILED" | "NODE_FAIL" | "NF" | "OUT_OF_ME" | "OUT_OF_MEMORY" | "OOM"
                | "PREEMPTED" | "PR" | "REVOKED" | "RV" | "TIMEOUT" | "TO",
            ) => StatedState::Ended,
            Some(_) => StatedState::Other,
        }
    }
}

impl AccountingRow {
    /// Builds the job `id` from the row.
    pub(super) fn job(&self, id: JobNumber) -> Result<TraceJob, RowFault> {
        let start = self.start.filter(|_| self.state != StatedState::Pending);
        let mut job = TraceJob {
            id,
            user: self.user,
            submit_s: self.submit.not_before(i64::MIN),
            eligible_s: 0,
            start_s: OptionalSeconds::UNKNOWN,
            end_s: OptionalSeconds::UNKNOWN,
            run_s: OptionalSeconds::UNKNOWN,
            limit_s: self.limit_s.into(),
            nodes: self.nodes,
            fate: JobFate::Pending,
        };

        match (start, self.end.or_else(|| self.end_of_run(start?))) {
            (None, None) => {}
            (None, Some(end)) => {
                let end_s = end.not_before(job.submit_s);
                if end_s < job.submit_s {
                    return Err(RowFault::EndBeforeStart);
                }
                job.end_s = end_s.into();
                job.fate = JobFate::Cancelled;
            }
            (Some(start), None) => {
                let start_s = start.not_before(job.submit_s);
                if start_s < job.submit_s {
                    return Err(RowFault::StartBeforeSubmit);
                }
                job.start_s = start_s.into();
                job.fate = JobFate::Running;
            }
            (Some(start), Some(end)) => self.set_run(&mut job, start, end)?,
        }

        let eligible_s = self
            .eligible
            .map(|eligible| eligible.not_before(job.submit_s));
        let latest_s = job.start_s.get().unwrap_or(i64::MAX);
        job.eligible_s = eligible_s
            .unwrap_or(job.submit_s)
            .min(latest_s)
            .max(job.submit_s);
        Ok(job)
    }

    /// Returns the end of a job that has ended, and whose row has only its run time: a node that failed
    /// takes the end with it.
    fn end_of_run(&self, start: StampReadings) -> Option<StampReadings> {
        let run_s = self.run_s.filter(|_| self.state == StatedState::Ended)?;
        let start_s = start.not_before(self.submit.not_before(i64::MIN));
        Some(StampReadings::once(start_s.saturating_add(run_s)))
    }

    /// Sets the times and the fate of a job that has a start and an end.
    fn set_run(
        &self,
        job: &mut TraceJob,
        start: StampReadings,
        end: StampReadings,
    ) -> Result<(), RowFault> {
        let found = choose_readings(self.submit, start, end, self.run_s, self.limit_s);
        let Some(moments) = found else {
            let is_early = start.not_before(job.submit_s) < job.submit_s;
            return Err(if is_early {
                RowFault::StartBeforeSubmit
            } else {
                RowFault::EndBeforeStart
            });
        };

        job.submit_s = moments.submit_s;
        job.end_s = moments.end_s.into();
        // Slurm writes either the end or nothing as the start of a job that was cancelled while
        // pending.
        let may_be_cancelled = matches!(self.state, StatedState::Unknown | StatedState::Cancelled);
        if moments.start_s == moments.end_s && may_be_cancelled {
            job.fate = JobFate::Cancelled;
            return Ok(());
        }
        job.start_s = moments.start_s.into();
        job.run_s = (moments.end_s - moments.start_s).into();
        job.fate = JobFate::Ended;
        Ok(())
    }
}
