//! The commands of the parts of a service, and what each part may use, for systemd and for the schedd.

/// What a part of the service may use.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartLimits {
    /// Memory, in MiB.
    pub(super) memory_mib: u32,
    /// Number of threads. Each may use one core.
    pub(super) threads: u32,
}

/// Limits of the part that collects.
pub(super) const COLLECT_LIMITS: PartLimits = PartLimits {
    memory_mib: 512,
    threads: 1,
};

/// Limits of the part that learns.
pub(super) const LEARN_LIMITS: PartLimits = PartLimits {
    memory_mib: 4096,
    threads: 2,
};

/// Limits of the part that advises.
pub(super) const ADVISE_LIMITS: PartLimits = PartLimits {
    memory_mib: 2048,
    threads: 1,
};

/// The arguments with which the service collects `log`.
pub(super) fn collect_arguments(log: &str) -> String {
    let threads = COLLECT_LIMITS.threads;
    format!("--threads {threads} collect {log} -o archive")
}

/// The commands with which the service learns from the archive and publishes the model. Until there is
/// one, an archive that cannot teach yet is replaced by HTCondor's history. They have no apostrophes.
pub(super) fn learn_commands(program: &str) -> String {
    let learn = format!("{program} -q --threads {} learn", LEARN_LIMITS.threads);
    let publish = format!("{program} publish");
    format!(
        "{learn} --log archive && {publish} out -o model || \
         {{ [ ! -e model/manifest.json ] && {learn} --history now -o history && {publish} history -o model; }}"
    )
}

/// The arguments with which the service advises. It uses the published model, as users do, because
/// `out` has no model while the nightly part learns.
pub(super) fn advise_arguments(log: &str) -> String {
    let threads = ADVISE_LIMITS.threads;
    format!(
        "--threads {threads} advise model --log {log} --queue now --prometheus metrics/poolcast.prom --pages pages"
    )
}
