//! Collects the state of a live Slurm, from its programs or from files that contain their output.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::slurm_keys::slurm_replay;
use poolcast_base::files;
use poolcast_base::output;
use poolcast_base::salt::{self, OwnerSalt};
use poolcast_provision::config::{NodeCount, ProvisionConfig};
use poolcast_provision::trace::{JobTrace, TraceZone, read_accounting};
use poolcast_slurm::live::{
    AdviceSettings, ClusterListing, ClusterView, NodeListing, PastRuns, QueueListing,
    SlurmSettings, query_accounting, query_nodes, query_settings,
};
use poolcast_sweep::config::Config;

/// Maximum size of a file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Days of accounting that are requested from `sacct`.
const ACCOUNTING_DAYS: u32 = 30;

/// Clock difference that is tolerated without a note, in seconds.
const CLOCK_SLACK_S: i64 = 5;

/// The past runs of a cluster, and a list of missing information.
pub(super) struct LivePast {
    pub(super) past: PastRuns,
    /// The zone in which times are shown to people.
    pub(super) zone: TraceZone,
    /// Missing information, in words.
    pub(super) missing: Vec<String>,
}

impl LivePast {
    /// Reads the past runs from the trace in `dir`. Without a trace they come from `sacct`, if
    /// Slurm may be queried.
    pub(super) fn find(
        dir: Option<&Path>,
        queries_slurm: bool,
        salt: &OwnerSalt,
    ) -> Result<LivePast> {
        if let Some(dir) = dir {
            return LivePast::from_trace(&JobTrace::open(dir)?, salt);
        }
        if !queries_slurm {
            let why = "past run times (no trace is given): jobs are assumed to run to their limits, except those similar to ended jobs in the queue";
            return Ok(LivePast::without(why.to_owned()));
        }
        match query_accounting(ACCOUNTING_DAYS) {
            Ok(text) => {
                let trace = read_accounting(text, salt);
                LivePast::from_trace(&trace.context("cannot use the output of `sacct`")?, salt)
            }
            Err(fault) => Ok(LivePast::without(format!(
                "past run times (no accounting: {fault}; no trace is given): jobs are assumed to run to their limits, except those similar to ended jobs in the queue"
            ))),
        }
    }

    fn without(why: String) -> LivePast {
        LivePast {
            past: PastRuns::default(),
            zone: TraceZone::utc(),
            missing: vec![why],
        }
    }

    fn from_trace(trace: &JobTrace, salt: &OwnerSalt) -> Result<LivePast> {
        let past = PastRuns::from_trace(trace);
        let mut missing = Vec::new();
        if past.count() == 0 {
            missing.push("past run times (the accounting has no run that has ended)".to_owned());
        }
        if trace.summary.owner_salt_digest != salt::digest(salt.text()) {
            missing.push(
                "past runs of the same user (the trace hashes users with another salt)".to_owned(),
            );
        }
        Ok(LivePast {
            past,
            zone: trace.zone.clone(),
            missing,
        })
    }
}

/// Reads the file `name`, or standard input for `-`.
pub(super) fn read_file(name: &Path) -> Result<Vec<u8>> {
    if name.as_os_str() != "-" {
        return Ok(files::read_artefact(name, MAX_FILE_BYTES)?);
    }
    let mut text = Vec::new();
    let stdin = std::io::stdin().lock();
    stdin.take(MAX_FILE_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

/// The nodes that Slurm lists now. If it cannot be queried, `missing` gets an entry.
pub(super) fn query_node_listing(
    settings: Option<&SlurmSettings>,
    missing: &mut Vec<String>,
) -> Option<NodeListing> {
    match query_nodes(settings) {
        Ok(nodes) => Some(nodes),
        Err(fault) => {
            missing.push(format!("the usable nodes ({fault})"));
            None
        }
    }
}

/// The settings of the cluster. If they cannot be queried, `missing` gets an entry.
pub(super) fn query_cluster_settings(missing: &mut Vec<String>) -> Option<SlurmSettings> {
    match query_settings() {
        Ok(settings) => Some(settings),
        Err(fault) => {
            missing.push(format!(
                "whether jobs share nodes, and whether jobs are hidden ({fault})"
            ));
            None
        }
    }
}

/// The current time in epoch seconds: the later of this machine's clock and the last event in
/// `listing`. If `notes_lag` is true, a clock that is behind Slurm's causes a note.
pub(super) fn now_s(listing: &QueueListing, notes_lag: bool) -> i64 {
    let clock_s = jiff::Timestamp::now().as_second();
    let last_s = listing.last_event_s();
    if notes_lag && last_s > clock_s + CLOCK_SLACK_S {
        output::note(&format!(
            "the clock of this machine is {} behind Slurm's; Slurm's clock is used",
            output::time_span((last_s - clock_s) * 1000)
        ));
    }
    clock_s.max(last_s)
}

/// The view of `cluster` at `now_s`.
pub(super) fn cluster_view<'a>(
    now_s: i64,
    cluster: &ClusterListing<'a>,
    past: &'a LivePast,
    salt: &'a OwnerSalt,
    provision: &ProvisionConfig,
) -> ClusterView<'a> {
    let node_count = match &provision.nodes {
        None => None,
        Some(NodeCount::Number(nodes)) => Some(*nodes),
        Some(NodeCount::Dated(steps)) => {
            let mut count = None;
            for (date, nodes) in steps {
                if past
                    .zone
                    .moment_s(date)
                    .is_some_and(|from_s| from_s <= now_s)
                {
                    count = Some(*nodes);
                }
            }
            count
        }
    };
    ClusterView {
        now_s,
        listing: cluster.queue,
        nodes: cluster.nodes,
        settings: cluster.settings,
        node_count,
        past: &past.past,
        salt,
        history_runs: provision.run_history,
    }
}

/// The settings of the configuration, for decisions every `step_s` seconds.
pub(super) fn advice_settings(
    config: &Config,
    zone: &TraceZone,
    step_s: i64,
) -> Result<AdviceSettings> {
    let provision = &config.provision;
    let ratios = provision.cost_ratio.list();
    Ok(AdviceSettings {
        replay: slurm_replay(provision, zone)?,
        cost_ratio: ratios.first().copied().unwrap_or(1.0),
        draws: provision.draws as usize,
        seed: config.seed,
        length_s: provision.job_length.map(|minutes| i64::from(minutes) * 60),
        step_s,
    })
}
