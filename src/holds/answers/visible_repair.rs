//! Repairs of a job that its log shows.

use htcondor_eventlog::ATTRIBUTE_UPDATE;
use poolcast_events::StoredJob;
use poolcast_tensors::HoldCycle;

/// Returns true if the log shows that `job` was changed between the hold of `cycle` and its
/// success: it has an attribute update, or the job was held for its use of memory or disk and then
/// used more than it had requested when it was submitted.
pub fn is_visibly_repaired(job: &StoredJob<'_>, cycle: &HoldCycle) -> bool {
    let history = &job.history;
    if history.number[cycle.hold..cycle.decided].contains(&ATTRIBUTE_UPDATE) {
        return true;
    }
    let used = job.run_usage(cycle.decided);
    let exceeds = |used: Option<u32>, requested: u32| {
        requested > 0 && used.is_some_and(|used| used > requested)
    };
    match (
        history.hold_code[cycle.hold],
        history.hold_subcode[cycle.hold],
    ) {
        (21 | 34, 102) => exceeds(used.memory_mb, job.request.memory_mb),
        (21 | 34, 104) => exceeds(
            used.disk_kib.map(|disk_kib| disk_kib / 1024),
            job.request.disk_mb,
        ),
        _ => false,
    }
}
