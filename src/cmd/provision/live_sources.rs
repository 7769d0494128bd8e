//! Collects the state of a live Slurm, from its programs or from files that contain their output.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::slurm_keys::slurm_replay;
use crate::cmd::logs::user_salt;
use poolcast_base::error::hinted;
use poolcast_base::files;
use poolcast_base::output;
use poolcast_base::salt::{self, OwnerSalt};
use poolcast_cli::QueueArgs;
use poolcast_provision::config::{NodeCount, ProvisionConfig};
use poolcast_provision::trace::{JobTrace, TraceJob, TraceZone, read_accounting};
use poolcast_slurm::live::{
    AdviceSettings, ClusterListing, ClusterView, ListedJob, NodeListing, PastRuns, QueueListing,
    SlurmSettings, StartJournal, query_accounting, query_nodes, query_queue, query_settings,
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
    /// The jobs of the accounting that the journal has forecasts for.
    pub(super) jobs: Vec<TraceJob>,
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
        journal: &StartJournal,
    ) -> Result<LivePast> {
        if let Some(dir) = dir {
            return LivePast::from_trace(&JobTrace::open(dir)?, salt, journal);
        }
        if !queries_slurm {
            let why = "past run times (no trace is given): jobs are assumed to run to their limits, except those similar to ended jobs in the queue";
            return Ok(LivePast::without(why.to_owned()));
        }
        match query_accounting(ACCOUNTING_DAYS) {
            Ok(text) => {
                let trace = read_accounting(text, salt);
                let trace = trace.context("cannot use the output of `sacct`")?;
                LivePast::from_trace(&trace, salt, journal)
            }
            Err(fault) => Ok(LivePast::without(format!(
                "past run times (no accounting: {fault}; no trace is given): jobs are assumed to run to their limits, except those similar to ended jobs in the queue"
            ))),
        }
    }

    fn without(why: String) -> LivePast {
        LivePast {
            missing: vec![why],
            ..LivePast::unneeded()
        }
    }

    /// No past runs, for a caller without forecasts.
    pub(super) fn unneeded() -> LivePast {
        LivePast {
            past: PastRuns::default(),
            jobs: Vec::new(),
            zone: TraceZone::utc(),
            missing: Vec::new(),
        }
    }

    fn from_trace(trace: &JobTrace, salt: &OwnerSalt, journal: &StartJournal) -> Result<LivePast> {
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
            // A chain runs for weeks, and a trace may have millions of jobs.
            jobs: journal.jobs_among(&trace.jobs),
            zone: trace.zone.clone(),
            missing,
        })
    }

    /// Notes the missing information.
    pub(super) fn note_missing(&self) {
        for missing in &self.missing {
            output::note(&format!("missing: {missing}"));
        }
    }
}

/// A cluster at one time, with its past runs.
pub(super) struct LiveCluster {
    listing: QueueListing,
    nodes: Option<NodeListing>,
    settings: Option<SlurmSettings>,
    salt: OwnerSalt,
    /// The past runs.
    pub(super) past: LivePast,
    /// The prediction time, in epoch seconds.
    pub(super) now_s: i64,
}

impl LiveCluster {
    /// Reads the files of `args`, or queries Slurm, and reads the past runs from the trace in `dir`.
    pub(super) fn read(
        dir: Option<&Path>,
        args: &QueueArgs,
        journal: &StartJournal,
    ) -> Result<LiveCluster> {
        let salt = user_salt()?;
        let queries_slurm = args.queue.is_none();
        let mut past = LivePast::find(dir, queries_slurm, &salt, journal)?;
        let missing = &mut past.missing;
        let settings = match queries_slurm {
            true => query_cluster_settings(missing),
            false => None,
        };
        let (listing, nodes) = listings(args, settings.as_ref(), missing)?;
        if listing.left_out > 0 {
            let jobs = output::counted(listing.left_out, "job");
            missing.push(format!("{jobs} with invalid data"));
        }
        let now_s = match (args.at, queries_slurm) {
            (Some(at_ms), _) => at_ms.div_euclid(1000),
            (None, false) => listing.last_event_s(),
            (None, true) => now_s(&listing, true),
        };
        Ok(LiveCluster {
            listing,
            nodes,
            settings,
            salt,
            past,
            now_s,
        })
    }

    /// The view for forecasts.
    pub(super) fn view(&self, provision: &ProvisionConfig) -> ClusterView<'_> {
        let listing = ClusterListing {
            queue: &self.listing,
            nodes: self.nodes.as_ref(),
            settings: self.settings.as_ref(),
        };
        cluster_view(self.now_s, &listing, &self.past, &self.salt, provision)
    }

    /// Returns the job `name`.
    pub(super) fn job(&self, name: &str) -> Result<&ListedJob> {
        self.listing.find(name).with_context(|| {
            hinted(
                format!("`squeue` lists no job {name}"),
                "list your jobs with `squeue --me`; Slurm drops a job some minutes after it ends",
            )
        })
    }
}

/// The jobs, and the nodes if they are known.
fn listings(
    args: &QueueArgs,
    settings: Option<&SlurmSettings>,
    missing: &mut Vec<String>,
) -> Result<(QueueListing, Option<NodeListing>)> {
    let Some(file) = &args.queue else {
        let listing = query_queue().context(hinted(
            "cannot query Slurm's queue",
            "if this machine has no Slurm commands, save the output of `squeue --all --states=all --json` and give it as `--queue FILE`",
        ))?;
        return Ok((listing, query_node_listing(settings, missing)));
    };
    let listing = QueueListing::parse(&read_file(file)?)
        .with_context(|| format!("cannot use the queue `{}`", file.display()))?;
    let nodes = args.node_list.as_ref().map(|file| {
        NodeListing::parse(&read_file(file)?)
            .with_context(|| format!("cannot use the node list `{}`", file.display()))
    });
    Ok((listing, nodes.transpose()?))
}

/// Reads the file `name`, or standard input for `-`.
fn read_file(name: &Path) -> Result<Vec<u8>> {
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
