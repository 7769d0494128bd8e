//! What two holds can share. Only the equality of keys is used, never their values.

use twox_hash::XxHash3_64;

use crate::history::NO_KEY;
use htcondor_eventlog::{ExecutionHost, SubmissionNames};
use poolcast_events::StoredJob;

/// Something that two holds can share, closest first. The features of a token have the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SharedKind {
    Job,
    Cluster,
    /// The owner, and the name of the batch or of the kind of DAG node.
    Batch,
    Owner,
    /// The hold reason without the parts that vary from job to job.
    Reason,
    /// The origin, directory or licence that the reason names.
    Origin,
    /// The file or URL that the reason names.
    File,
    /// Code and subcode.
    Subcode,
    Code,
    /// The machine of the last run.
    Host,
    /// The slot of that machine.
    Slot,
}

impl SharedKind {
    /// All kinds.
    pub(crate) const ALL: [SharedKind; 11] = [
        SharedKind::Job,
        SharedKind::Cluster,
        SharedKind::Batch,
        SharedKind::Owner,
        SharedKind::Reason,
        SharedKind::Origin,
        SharedKind::File,
        SharedKind::Subcode,
        SharedKind::Code,
        SharedKind::Host,
        SharedKind::Slot,
    ];

    /// Number of kinds.
    pub(crate) const COUNT: usize = SharedKind::ALL.len();
}

/// The keys of a hold or of a first run, in the order of [`SharedKind::ALL`]; [`NO_KEY`] where the
/// log does not say.
pub(crate) type SharedKeys = [u64; SharedKind::COUNT];

/// Returns the keys of job number `index`, held by its event `hold`, or without a hold, and whose
/// last run was in `place`.
pub(crate) fn shared_keys(
    index: u32,
    job: &StoredJob<'_>,
    hold: Option<usize>,
    place: ExecutionHost,
) -> SharedKeys {
    let of_hold =
        |key: fn(&StoredJob<'_>, usize) -> u64| hold.map_or(NO_KEY, |hold| key(job, hold));
    SharedKind::ALL.map(|kind| match kind {
        SharedKind::Job => u64::from(index) + 1,
        SharedKind::Cluster => {
            1 << 63 | u64::from(job.ap) << 32 | u64::from(job.cluster.cast_unsigned())
        }
        SharedKind::Batch if job.owner == 0 || job.names == SubmissionNames::default() => NO_KEY,
        SharedKind::Batch => {
            hashed(&[job.owner, job.names.batch.into(), job.names.dag_node.into()])
        }
        SharedKind::Owner => job.owner,
        SharedKind::Reason => of_hold(|job, hold| job.reason_hash(hold).into()),
        SharedKind::Origin => of_hold(|job, hold| job.hold_facts(hold).origin.into()),
        SharedKind::File => of_hold(|job, hold| job.hold_facts(hold).file.into()),
        SharedKind::Subcode => of_hold(|job, hold| {
            let history = &job.history;
            let code = u64::from(history.hold_code[hold].cast_unsigned());
            hashed(&[code, history.hold_subcode[hold].cast_unsigned().into()])
        }),
        SharedKind::Code => {
            of_hold(|job, hold| u64::from(job.history.hold_code[hold].cast_unsigned()) + 1)
        }
        SharedKind::Host => place.host.into(),
        SharedKind::Slot if place.slot == 0 => NO_KEY,
        SharedKind::Slot => u64::from(place.host) << 32 | u64::from(place.slot),
    })
}

fn hashed(parts: &[u64]) -> u64 {
    XxHash3_64::oneshot(bytemuck::cast_slice(parts)).max(NO_KEY + 1)
}
