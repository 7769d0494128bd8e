//! Where what is known of a live Slurm comes from: its programs, or files that they have printed.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::slurm_keys::slurm_replay;
use poolcast_config::{Config, NodeCount, ProvisionConfig};
use poolcast_base::files;
use poolcast_base::output;
use poolcast_provision::live::{
    AdviceSettings, ClusterView, NodeListing, PastRuns, QueueListing, ask_accounting, ask_nodes,
};
use poolcast_provision::trace::{JobTrace, TraceZone, read_accounting};
use poolcast_base::salt::{self, OwnerSalt};

/// A file has no more bytes.
const MOST_FILE_BYTES: u64 = 1 << 30;

/// So many days of `sacct` are asked for.
const ACCOUNTING_DAYS: u32 = 30;

/// A clock may differ by so much before it is said, seconds.
const CLOCK_SLACK_S: i64 = 5;

/// What had been before, and what is not known of it.
pub(super) struct LivePast {
    pub(super) past: PastRuns,
    /// The zone that people read moments in.
    pub(super) zone: TraceZone,
    /// What is missing, in words.
    pub(super) missing: Vec<String>,
}

impl LivePast {
    /// What the trace in `dir` tells; without one what `sacct` does, if it may be asked.
    pub(super) fn find(dir: Option<&Path>, asks_slurm: bool, salt: &OwnerSalt) -> Result<LivePast> {
        if let Some(dir) = dir {
            return LivePast::of_trace(&JobTrace::open(dir)?, salt);
        }
        if !asks_slurm {
            let why = "no trace is given: jobs are taken to run to their limits, but for those like ones that the queue lists as ended";
            return Ok(LivePast::without(why.to_owned()));
        }
        match ask_accounting(ACCOUNTING_DAYS) {
            Ok(text) => {
                let trace = read_accounting(text, salt);
                LivePast::of_trace(&trace.context("cannot use what `sacct` says")?, salt)
            }
            Err(fault) => Ok(LivePast::without(format!(
                "no accounting ({fault}), and no trace is given: jobs are taken to run to their limits, but for those like ones that the queue lists as ended"
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

    fn of_trace(trace: &JobTrace, salt: &OwnerSalt) -> Result<LivePast> {
        let past = PastRuns::of_trace(trace);
        let mut missing = Vec::new();
        if past.count() == 0 {
            missing.push("the accounting has no run that has ended".to_owned());
        }
        if trace.summary.owner_salt_digest != salt::digest(salt.text()) {
            missing.push(
                "the trace names users by another salt: no run is known to be of the same user"
                    .to_owned(),
            );
        }
        Ok(LivePast {
            past,
            zone: trace.zone.clone(),
            missing,
        })
    }
}

/// What a file of `name` has, or standard input.
pub(super) fn read_file(name: &Path) -> Result<Vec<u8>> {
    if name.as_os_str() != "-" {
        return Ok(files::read_artefact(name, MOST_FILE_BYTES)?);
    }
    let mut text = Vec::new();
    let stdin = std::io::stdin().lock();
    stdin.take(MOST_FILE_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

/// The nodes that `sinfo` lists now; where it cannot be asked, that is added to `missing`.
pub(super) fn ask_node_listing(missing: &mut Vec<String>) -> Result<Option<NodeListing>> {
    match ask_nodes() {
        Ok(text) => Ok(Some(NodeListing::parse(&text)?)),
        Err(fault) => {
            missing.push(format!("which nodes can be used ({fault})"));
            Ok(None)
        }
    }
}

/// The moment that it is, by the clock of this machine or by what `listing` says has happened; if
/// `tells`, it is said where these differ.
pub(super) fn now_s(listing: &QueueListing, tells: bool) -> i64 {
    let clock_s = jiff::Timestamp::now().as_second();
    let last_s = listing.last_event_s();
    if tells && last_s > clock_s + CLOCK_SLACK_S {
        output::note(&format!(
            "the clock of this machine is {} behind Slurm's, which counts",
            output::time_span((last_s - clock_s) * 1000)
        ));
    }
    clock_s.max(last_s)
}

/// What is seen at `now_s` of `listing` and `nodes`.
pub(super) fn cluster_view<'a>(
    now_s: i64,
    listing: &'a QueueListing,
    nodes: Option<&'a NodeListing>,
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
        listing,
        nodes,
        node_count,
        past: &past.past,
        salt,
        history_runs: provision.run_history,
    }
}

/// How it is decided each `step_s` seconds, as the configuration has it.
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
