//! The kinds of causes: what a hold shares with the holds that tell something about it.

use twox_hash::XxHash3_64;

use super::named_fault::{NamedFault, is_common_fact, stated_kind};
use htcondor_eventlog::ReasonKind;
use htcondor_holdreasons::{Speaker, Thing};
use poolcast_events::StoredJob;
use poolcast_tensors::{NO_KEY, execution_host_before};

/// A kind of cause. Holds of one kind with the same key are evidence for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CauseKind {
    /// All holds.
    Pool,
    /// Code and subcode.
    Code,
    /// The owner, code and subcode.
    OwnerCode,
    /// What the reason states without all names: a fact that has the same meaning under every code, or else
    /// the code with what it states. A reason that was not understood states only itself.
    Stated,
    /// The hold reason without the parts that vary from job to job.
    Reason,
    /// The origin or directory that the reason names. Files that an origin lacks or refuses are causes
    /// of their own, because its return does not help them.
    Origin,
    /// The owner and that origin or directory.
    OwnerOrigin,
    /// The file or URL that the reason names.
    File,
    /// The cluster and the reason.
    ClusterReason,
    /// The owner and the batch or the kind of DAG node.
    Batch,
    /// The machine of the last run.
    Host,
}

impl CauseKind {
    /// All kinds, each after its parent.
    pub(crate) const ALL: [CauseKind; 11] = [
        CauseKind::Pool,
        CauseKind::Code,
        CauseKind::OwnerCode,
        CauseKind::Stated,
        CauseKind::Reason,
        CauseKind::Origin,
        CauseKind::OwnerOrigin,
        CauseKind::File,
        CauseKind::ClusterReason,
        CauseKind::Batch,
        CauseKind::Host,
    ];

    /// The name of the kind in column names.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CauseKind::Pool => "pool",
            CauseKind::Code => "code",
            CauseKind::OwnerCode => "owner_code",
            CauseKind::Stated => "stated",
            CauseKind::Reason => "reason",
            CauseKind::Origin => "origin",
            CauseKind::OwnerOrigin => "owner_origin",
            CauseKind::File => "file",
            CauseKind::ClusterReason => "cluster_reason",
            CauseKind::Batch => "batch",
            CauseKind::Host => "host",
        }
    }

    /// The kind whose success rate is the prior for a small record of this kind.
    pub(crate) fn parent(self) -> Option<CauseKind> {
        match self {
            CauseKind::Pool => None,
            CauseKind::Code | CauseKind::Host => Some(CauseKind::Pool),
            CauseKind::OwnerCode | CauseKind::Stated | CauseKind::Origin => Some(CauseKind::Code),
            CauseKind::Reason => Some(CauseKind::Stated),
            CauseKind::OwnerOrigin | CauseKind::File => Some(CauseKind::Origin),
            CauseKind::ClusterReason => Some(CauseKind::Reason),
            CauseKind::Batch => Some(CauseKind::OwnerCode),
        }
    }
}

/// The keys of one hold, in the order of [`CauseKind::ALL`]; [`NO_KEY`] where the log does not say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CauseKeys([u64; CauseKind::ALL.len()]);

impl CauseKeys {
    /// Returns the keys of hold `hold` of `job`, whose reason names `fault`.
    pub(crate) fn new(job: &StoredJob<'_>, hold: usize, fault: NamedFault) -> CauseKeys {
        CauseKeys(CauseKind::ALL.map(|kind| key(kind, job, hold, fault)))
    }

    /// Returns the key of the file with the hash `file`.
    pub(super) fn of_file(file: u32) -> u64 {
        of_names(CauseKind::File, &[file])
    }

    /// Returns the key of the origin with the hash `origin`, as a fault of the server itself.
    pub(super) fn of_origin(origin: u32) -> u64 {
        origin_key(CauseKind::Origin, origin, NamedFault::Server)
    }

    /// Returns the key of the machine with the hash `host`.
    pub(super) fn of_machine(host: u32) -> u64 {
        of_names(CauseKind::Host, &[host])
    }

    /// Returns the key of one kind.
    pub(crate) fn get(&self, kind: CauseKind) -> u64 {
        self.0[kind as usize]
    }

    /// Returns the narrowest kind whose holds have the same fault: the named file, or else the
    /// cluster and the reason.
    pub(crate) fn narrowest_kind(&self) -> CauseKind {
        if self.names_file() {
            CauseKind::File
        } else {
            CauseKind::ClusterReason
        }
    }

    /// Returns true if the hold reason names a file or a URL.
    pub(crate) fn names_file(&self) -> bool {
        self.get(CauseKind::File) != NO_KEY
    }
}

/// Returns the key of `kind`, or [`NO_KEY`].
fn key(kind: CauseKind, job: &StoredJob<'_>, hold: usize, fault: NamedFault) -> u64 {
    let code = job.history.hold_code[hold].cast_unsigned();
    let subcode = job.history.hold_subcode[hold].cast_unsigned();
    let facts = job.hold_facts(hold);
    let cluster = u64::from(job.ap) << 32 | u64::from(job.cluster.cast_unsigned());
    let owned = |key: u64| match (job.owner, key) {
        (0, _) | (_, NO_KEY) => NO_KEY,
        (owner, key) => hashed(kind, [owner, key]),
    };

    let code_key = hashed(kind, [u64::from(code) << 32 | u64::from(subcode)]);
    match kind {
        CauseKind::Pool => code_key.min(1),
        CauseKind::Code => code_key,
        CauseKind::OwnerCode => owned(code_key),
        CauseKind::Stated => stated_key(job, hold, code_key),
        CauseKind::Reason => hashed(kind, [code_key, facts.reason.into()]),
        CauseKind::Origin => origin_key(kind, facts.origin, fault),
        CauseKind::OwnerOrigin => owned(origin_key(kind, facts.origin, fault)),
        CauseKind::File => of_names(kind, &[facts.file]),
        CauseKind::ClusterReason => hashed(kind, [cluster, code_key, facts.reason.into()]),
        CauseKind::Batch => owned(of_names(kind, &[job.names.batch, job.names.dag_node])),
        CauseKind::Host => of_names(kind, &[execution_host_before(job, hold).host]),
    }
}

/// Returns the key of what hold `hold` of `job`, whose code has the key `code_key`, states.
fn stated_key(job: &StoredJob<'_>, hold: usize, code_key: u64) -> u64 {
    let stated = stated_kind(job, hold);
    if is_common_fact(stated) {
        let fact = ReasonKind {
            speaker: Speaker::Unknown,
            ..stated
        };
        return hashed(CauseKind::Stated, [fact.packed_fault().into()]);
    }
    let reason = match stated.thing {
        Thing::Unknown => job.hold_facts(hold).reason,
        _ => 0,
    };
    let parts = [code_key, stated.packed_fault().into(), reason.into()];
    hashed(CauseKind::Stated, parts)
}

/// Returns the key of an origin with a fault, or [`NO_KEY`] without an origin.
fn origin_key(kind: CauseKind, origin: u32, fault: NamedFault) -> u64 {
    match origin {
        0 => NO_KEY,
        _ => hashed(kind, [origin, fault.of_file()].map(u64::from)),
    }
}

/// Hashes `names` to a key, or to [`NO_KEY`] if none is known.
fn of_names(kind: CauseKind, names: &[u32]) -> u64 {
    if names.iter().all(|&name| name == 0) {
        return NO_KEY;
    }
    hashed(kind, names.iter().map(|&name| u64::from(name)))
}

/// Hashes `parts` to a key other than [`NO_KEY`].
fn hashed(kind: CauseKind, parts: impl IntoIterator<Item = u64>) -> u64 {
    let mut bytes = vec![kind as u8];
    for part in parts {
        bytes.extend(part.to_le_bytes());
    }
    XxHash3_64::oneshot(&bytes).max(NO_KEY + 1)
}
