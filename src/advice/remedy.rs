//! The commands for the remedies of held jobs. Commands set plain numbers: an expression may refer to
//! itself, or lower the request.

use super::held_ids::HeldId;
use super::job_command::{CommandTask, JobCommand, RaisedRequest, RequestAttribute};
use poolcast_events::StoredJob;
use poolcast_holds::decision::{HoldAction, Remedy};

/// Returns the commands for `action` on `job`: the one to type now, and the one to type later.
pub(super) fn action_commands(
    action: HoldAction,
    job: &HeldId,
) -> (Option<JobCommand>, Option<JobCommand>) {
    let release = || JobCommand::new(CommandTask::Release, job);
    match action {
        HoldAction::Release | HoldAction::Probe => (release(), None),
        HoldAction::Fix => (remedy_command(Remedy::Look, job, None), release()),
        HoldAction::Remove => (JobCommand::new(CommandTask::Remove, job), None),
        HoldAction::Later => (None, release()),
        HoldAction::Leave | HoldAction::None => (None, None),
    }
}

/// Peak resource usage of a job over all its runs; 0 if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct PeakUsage {
    memory_mb: u32,
    disk_kib: u32,
}

impl PeakUsage {
    fn of_job(job: &StoredJob<'_>) -> PeakUsage {
        let mut peak = PeakUsage::default();
        for at in 0..job.history.number.len() {
            let usage = job.run_usage(at);
            let memory_mb = usage.memory_mb.max(job.image_memory_mb(at));
            peak.memory_mb = peak.memory_mb.max(memory_mb.unwrap_or(0));
            peak.disk_kib = peak.disk_kib.max(usage.disk_kib.unwrap_or(0));
        }
        peak
    }
}

/// Returns the largest memory usage of `job` in the log, MB; 0 if it is unknown.
pub(super) fn used_memory_mb(job: &StoredJob<'_>) -> u64 {
    PeakUsage::of_job(job).memory_mb.into()
}

/// Returns the request that `job` should have by a remedy. Returns `None` if the remedy is not a higher
/// request, or if the present request is unknown.
pub(super) fn raised_request(remedy: Remedy, job: &StoredJob<'_>) -> Option<RaisedRequest> {
    let request = job.request;
    let raised = match remedy {
        Remedy::Nothing | Remedy::Look => None,
        Remedy::RaiseMemory => {
            return raised_memory(request.memory_mb.into(), used_memory_mb(job));
        }
        Remedy::RaiseDisk => {
            let requested_kib = 1024 * u64::from(request.disk_mb);
            let used_kib = PeakUsage::of_job(job).disk_kib;
            raise_by_half(requested_kib, used_kib.into())
                .map(|kib| (RequestAttribute::RequestDisk, kib.next_multiple_of(1024)))
        }
        Remedy::RaiseCpus => {
            let is_known = (1..u8::MAX).contains(&request.cpus);
            is_known.then(|| (RequestAttribute::RequestCpus, 2 * u64::from(request.cpus)))
        }
    };
    raised.map(|(attribute, number)| RaisedRequest { attribute, number })
}

/// Builds the command for a job, which should have the request `raised`; `None` if there is
/// nothing to do.
pub(super) fn remedy_command(
    remedy: Remedy,
    job: &HeldId,
    raised: Option<RaisedRequest>,
) -> Option<JobCommand> {
    if remedy == Remedy::Nothing {
        return None;
    }
    let edit = raised.and_then(|raised| JobCommand::new(CommandTask::Raise(raised), job));
    edit.or_else(|| JobCommand::new(CommandTask::Look, job))
}

/// Returns the memory request for a job that requested `requested_mb` and used `used_mb`; `None` if
/// either is unknown (0). Without its usage, the job might be held again with a higher request.
pub(super) fn raised_memory(requested_mb: u64, used_mb: u64) -> Option<RaisedRequest> {
    let raised_mb = raise_by_half(requested_mb, used_mb).filter(|_| used_mb > 0);
    raised_mb.map(|mb| RaisedRequest {
        attribute: RequestAttribute::RequestMemory,
        number: mb.next_multiple_of(128),
    })
}

/// Returns the disk request for a job that was allowed `limit_mib` and used `used_mib`; `None` if the
/// limit is unknown (0).
pub(super) fn raised_disk(limit_mib: u64, used_mib: u64) -> Option<RaisedRequest> {
    raise_by_half(limit_mib, used_mib).map(|mib| RaisedRequest {
        attribute: RequestAttribute::RequestDisk,
        number: mib.saturating_mul(1024),
    })
}

/// Returns 1.5 times the larger of `requested` and `used`. Returns `None` if the request is unknown
/// (0), because the result might be lower than the request.
fn raise_by_half(requested: u64, used: u64) -> Option<u64> {
    (requested > 0).then(|| requested.max(used).saturating_mul(3) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_eventlog::{IMAGE_SIZE, JobEvent, ResourceRequest};
    use test_stores::store_of;

    fn command(remedy: Remedy, request: ResourceRequest) -> Option<String> {
        let submission = JobEvent {
            cluster: 7,
            ..JobEvent::default()
        };
        let image = JobEvent {
            number: IMAGE_SIZE,
            time_ms: 1000,
            value: 900,
            ..submission
        };
        let store = store_of(&[submission, image]);
        let jobs = store.jobs();
        let mut job = jobs.get(0);
        job.request = request;
        let held = HeldId {
            cluster: 7,
            proc: 0,
            since_s: 100,
            owner: None,
            schedd: None,
        };
        let command = remedy_command(remedy, &held, raised_request(remedy, &job));
        command.map(|command| command.to_string())
    }

    #[test]
    fn commands_raise_requests_by_numbers() {
        let request = ResourceRequest {
            cpus: 4,
            memory_mb: 1000,
            disk_mb: 10,
            ..ResourceRequest::default()
        };
        let said = |remedy| command(remedy, request).unwrap_or_default();
        let edit = "condor_qedit -constraint 'JobStatus==5 && EnteredCurrentStatus<=102 && ClusterId==7 && ProcId==0'";
        assert_eq!(
            said(Remedy::RaiseMemory),
            format!("{edit} RequestMemory 1536")
        );
        assert_eq!(said(Remedy::RaiseDisk), format!("{edit} RequestDisk 15360"));
        assert_eq!(said(Remedy::RaiseCpus), format!("{edit} RequestCpus 8"));
        assert_eq!(said(Remedy::Look), "condor_q -hold 7.0");
        assert_eq!(command(Remedy::Nothing, request), None);
    }

    #[test]
    fn unknown_requests_are_not_changed() {
        let unknown = ResourceRequest {
            cpus: u8::MAX,
            ..ResourceRequest::default()
        };
        for remedy in [Remedy::RaiseMemory, Remedy::RaiseDisk, Remedy::RaiseCpus] {
            let said = command(remedy, unknown);
            assert_eq!(said.as_deref(), Some("condor_q -hold 7.0"), "{remedy:?}");
        }
    }

    #[test]
    fn memory_request_is_at_least_the_usage_and_unchanged_without_one() {
        let number = |requested_mb, used_mb| {
            raised_memory(requested_mb, used_mb).map(|raised| raised.number)
        };
        assert_eq!(number(64, 220), Some(384));
        assert_eq!(number(64, 0), None);
        assert_eq!(number(0, 220), None);
    }

    #[test]
    fn requests_are_raised_from_the_larger_of_request_and_usage() {
        assert_eq!(raise_by_half(1000, 4000), Some(6000));
        assert_eq!(raise_by_half(1000, 10), Some(1500));
        assert_eq!(raise_by_half(0, 4000), None);
    }
}
