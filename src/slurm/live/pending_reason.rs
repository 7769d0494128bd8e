//! The table of Slurm's reasons for a job to be pending.

/// The role of a pending job in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingRole {
    /// The job waits for its turn: it competes with other jobs for nodes.
    Turn,
    /// The job waits for another reason, and does not compete.
    Idle(IdleReason),
}

/// The reason why a pending job does not compete for nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleReason {
    /// The job depends on another job.
    Depends,
    /// The job is held.
    Held,
    /// The job must not begin yet.
    Later,
    /// A limit of its own keeps the job from starting, such as the number of jobs of its user.
    OwnLimit,
    /// The job cannot start until a person changes it or the cluster.
    Never,
}

impl IdleReason {
    /// The reason in words, such as `it is held`.
    pub fn words(self) -> &'static str {
        match self {
            IdleReason::Depends => "it depends on another job",
            IdleReason::Held => "it is held",
            IdleReason::Later => "it must not begin yet",
            IdleReason::OwnLimit => {
                "a limit of its own keeps it from starting, such as the number of jobs of its user"
            }
            IdleReason::Never => "it cannot start until somebody changes it or the cluster",
        }
    }
}

const TURN: PendingRole = PendingRole::Turn;
const DEPENDS: PendingRole = PendingRole::Idle(IdleReason::Depends);
const HELD: PendingRole = PendingRole::Idle(IdleReason::Held);
const LATER: PendingRole = PendingRole::Idle(IdleReason::Later);
const OWN_LIMIT: PendingRole = PendingRole::Idle(IdleReason::OwnLimit);
const NEVER: PendingRole = PendingRole::Idle(IdleReason::Never);

/// The names of reasons that `squeue` prints.
const ROLES: [(&str, PendingRole); 55] = [
    ("", TURN),
    ("None", TURN),
    ("Priority", TURN),
    ("Resources", TURN),
    ("Cleaning", TURN),
    ("NodeDown", TURN),
    ("Prolog", TURN),
    ("SchedDefer", TURN),
    // `squeue --format=%r` prints this sentence in place of `Resources`.
    ("Nodes required for job are DOWN", TURN),
    ("Dependency", DEPENDS),
    ("DependencyNeverSatisfied", DEPENDS),
    ("JobHeldUser", HELD),
    ("JobHeldAdmin", HELD),
    ("JobHoldMaxRequeue", HELD),
    ("launch failed requeued held", HELD),
    ("job requeued in held state", HELD),
    ("BeginTime", LATER),
    ("JobArrayTaskLimit", OWN_LIMIT),
    ("Licenses", OWN_LIMIT),
    ("Reservation", OWN_LIMIT),
    ("ReqNodeNotAvail", OWN_LIMIT),
    ("AssociationJobLimit", OWN_LIMIT),
    ("AssociationResourceLimit", OWN_LIMIT),
    ("AssociationTimeLimit", OWN_LIMIT),
    ("QOSJobLimit", OWN_LIMIT),
    ("QOSResourceLimit", OWN_LIMIT),
    ("QOSTimeLimit", OWN_LIMIT),
    ("QOSUsageThreshold", OWN_LIMIT),
    ("AccountingPolicy", OWN_LIMIT),
    ("BurstBufferResources", OWN_LIMIT),
    ("BurstBufferStageIn", OWN_LIMIT),
    ("MaxPoweredUpNodes", OWN_LIMIT),
    ("MPIPortsBusy", OWN_LIMIT),
    ("PowerNotAvail", OWN_LIMIT),
    ("PowerReserved", OWN_LIMIT),
    ("FedJobLock", OWN_LIMIT),
    ("FrontEndDown", OWN_LIMIT),
    ("BlockFreeAction", OWN_LIMIT),
    ("BlockMaxError", OWN_LIMIT),
    ("PartitionTimeLimit", NEVER),
    ("PartitionNodeLimit", NEVER),
    ("PartitionDown", NEVER),
    ("PartitionInactive", NEVER),
    ("PartitionConfig", NEVER),
    ("BadConstraints", NEVER),
    ("InvalidAccount", NEVER),
    ("InvalidQOS", NEVER),
    ("QOSNotAllowed", NEVER),
    ("AccountNotAllowed", NEVER),
    ("MaxMemPerLimit", NEVER),
    ("ReservationDeleted", NEVER),
    ("DeadLine", NEVER),
    ("BurstBufferOperation", NEVER),
    ("SystemFailure", NEVER),
    ("JobLaunchFailure", NEVER),
];

/// Beginnings of the names of limits, which have a name for each resource.
const LIMITS: [&str; 6] = [
    "QOSMax", "QOSGrp", "AssocMax", "AssocGrp", "QOSMin", "AssocMin",
];

/// Returns the role of a job that is pending for `reason`, or `None` if the reason is unknown.
pub(super) fn role_of(reason: &str) -> Option<PendingRole> {
    // `squeue --format=%r` appends details, such as `ReqNodeNotAvail, UnavailableNodes:n1`.
    let name = reason.split([',', '(', ':']).next()?.trim();
    if let Some((_, role)) = ROLES.iter().find(|(known, _)| *known == name) {
        return Some(*role);
    }
    if !LIMITS.iter().any(|begin| name.starts_with(begin)) {
        return None;
    }
    // A job that is itself too large will never be small enough.
    let is_minimum = name.starts_with("QOSMin") || name.starts_with("AssocMin");
    let is_too_large = name.contains("PerJob") || is_minimum;
    Some(if is_too_large { NEVER } else { OWN_LIMIT })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_jobs_that_wait_for_their_turn_compete() {
        for (role, reasons) in [
            (
                Some(TURN),
                "Priority;Resources;None;;Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
            ),
            (
                Some(OWN_LIMIT),
                "JobArrayTaskLimit;QOSMaxJobsPerUserLimit;AssocMaxJobsLimit;AssocGrpNodeLimit;QOSGrpCpuLimit;ReqNodeNotAvail;\
                 ReqNodeNotAvail, UnavailableNodes:n[1-2];ReqNodeNotAvail(Unavailable:n1);Licenses;Reservation;AssocGrpCPUMinutesLimit",
            ),
            (
                Some(NEVER),
                "PartitionTimeLimit;PartitionNodeLimit;QOSMaxWallDurationPerJobLimit;AssocMaxNodePerJobLimit;BadConstraints",
            ),
            (Some(HELD), "JobHeldUser;launch failed requeued held"),
            (Some(DEPENDS), "Dependency;DependencyNeverSatisfied"),
            (Some(LATER), "BeginTime"),
            (None, "MoonPhase;Prior;Resources2;QOS"),
        ] {
            for reason in reasons.split(';') {
                assert_eq!(role_of(reason), role, "{reason}");
            }
        }
    }
}
