//! `poolcast dag`: a search space → a DAG of HTCondor jobs.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::flags::{flag, flags};
use super::preparation::{make_tensors, prepare_events, prepare_tables};
use crate::cli::DagArgs;
use crate::condor::{self, DAG_FILE, DagPlan, SampleSource, TrialSeconds};
use crate::config::Config;
use crate::error::EXIT_DONE;
use crate::events::{EVENTS_FORMAT, EventStore};
use crate::files::{self, LockedDirectory, StagedDirectory};
use crate::sweep::{self, SweepFolder, events_dir};
use crate::{escape, manifest, output, salt};

/// How long a trial may be measured.
const MEASURED_FOR: Duration = Duration::from_secs(3);

/// Where trials are measured, in a DAG's directory.
const SCRATCH: &str = ".measured";

/// Writes the DAG, prints it, or submits it.
pub fn run(args: &DagArgs) -> Result<u8> {
    let given = flags([
        ("out", flag(&args.out)),
        ("dag.image", flag(&args.image)),
        ("dag.site", flag(&args.site)),
        ("dag.events", flag(&args.events)),
        ("dag.trials_per_job", flag(&args.trials_per_job)),
    ]);
    let config = Config::load(Some(&args.config), &given)?;
    let plan_of = |measured: &TrialSeconds| {
        DagPlan::new(&config, measured)
            .with_context(|| format!("cannot use `{}`", args.config.display()))
    };
    let written = condor::read_trial_seconds(&config.out)?;
    let mut plan = plan_of(&written.clone().unwrap_or_default())?;
    if args.dry_run {
        output::print_file(&dag_preview(&plan)?)?;
        if config.dag.trials_per_job.is_none() && written.is_none() {
            output::note("note: how many trials a job does is measured when the DAG is written");
        }
        return Ok(EXIT_DONE);
    }
    condor::check_directory(&plan)?;
    let _lock = LockedDirectory::new(&config.out)?;
    if written.is_none() {
        let source_key = prepare_inputs(&plan)?;
        if let Some(source_key) =
            source_key.filter(|_| config.dag.trials_per_job.is_none() && !config.dag.per_epoch)
        {
            plan = plan_of(&measure_trials(&plan, source_key)?)?;
        }
    }
    condor::write_dag(&plan)?;
    let dir = escape::path(&config.out);
    output::print(&format!("{}: {dir}/{DAG_FILE}\n", plan_counts(&plan)))?;
    if matches!(plan.source, SampleSource::Logs(_))
        && std::env::var_os(salt::SALT_VARIABLE).is_some()
    {
        output::note(
            "note: secrets do not travel with jobs: owners are hashed there without `POOLCAST_OWNER_SALT`",
        );
    }
    if args.submit {
        if condor::pool_runs_images() == Some(false) {
            output::note("note: no slot has HasSIF now; until one has, the jobs stay idle");
        }
        condor::submit_dag(&config.out, &config.wandb.sweep.name)?
            .lines()
            .for_each(output::note);
    } else {
        output::note(&format!(
            "submit it with: cd {dir} && condor_submit_dag {DAG_FILE}"
        ));
    }
    Ok(EXIT_DONE)
}

/// How many trials there are, and jobs.
fn plan_counts(plan: &DagPlan) -> String {
    let tensors = match plan.source {
        SampleSource::Tables => String::new(),
        _ => format!(" on {} different tensors", plan.tensors.len()),
    };
    format!(
        "{}{tensors} in {}",
        output::counted(plan.trials, "trial"),
        output::counted(plan.parts.len(), "job")
    )
}

/// Makes what the jobs' samples are made from: events of the logs that are here, or joined tables.
/// Returns its digest; `None` where a job has to parse the logs.
fn prepare_inputs(plan: &DagPlan) -> Result<Option<String>> {
    let config = &plan.config;
    match (&plan.source, &config.dag.events) {
        (SampleSource::Logs(_), _) => Ok(None),
        (SampleSource::Tables, _) => prepare_tables(config).map(Some),
        (SampleSource::Events, None) => prepare_events(config, false).map(Some),
        (SampleSource::Events, Some(dir)) => taken_over(dir, &events_dir(&config.out)).map(Some),
    }
}

/// Takes the store of events in `from` over to `to`, as links where that can be: a store is never
/// changed in place. Returns its digest.
fn taken_over(from: &Path, to: &Path) -> Result<String> {
    EventStore::open(from).with_context(|| format!("cannot use `{}`", from.display()))?;
    let key = manifest::read::<serde_json::Value>(from, EVENTS_FORMAT)?.key;
    if manifest::finished_key(to, EVENTS_FORMAT).as_ref() == Some(&key) {
        return Ok(key);
    }
    let staging = StagedDirectory::new(to, true)?;
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        let (path, copy) = (entry.path(), staging.path().join(entry.file_name()));
        if entry.file_type()?.is_file() && fs_err::hard_link(&path, &copy).is_err() {
            fs_err::copy(&path, &copy)?;
        }
    }
    staging.commit()?;
    Ok(key)
}

/// Measures a trial of each kind: how long it takes decides how many a job does.
fn measure_trials(plan: &DagPlan, source_key: String) -> Result<TrialSeconds> {
    let out = &plan.config.out;
    let (scratch, mut measured) = (out.join(SCRATCH), TrialSeconds::new());
    files::remove_all([scratch.clone()])?;
    let is_of_tables = plan.source == SampleSource::Tables;
    let dir = if is_of_tables { out } else { &scratch };
    let sweep = SweepFolder::new(
        dir,
        plan.config.clone(),
        sweep::SweepPlan {
            trials: plan.trials,
            source_key,
        },
    );
    for (fits, trial) in plan.unmeasured_kinds() {
        if !is_of_tables {
            make_tensors(
                &sweep,
                &events_dir(out),
                &[sweep.trials()?.draw(trial, &[])?],
            )?;
        }
        let taken = sweep::measure_trial(&sweep, trial, MEASURED_FOR, &scratch.join("run"));
        match taken {
            Ok(seconds) => {
                output::note(&format!("trial {trial}, {fits}: about {seconds:.1} s here"));
                measured.insert(fits, seconds);
            }
            // It will say so as a job; the others need not wait for it.
            Err(error) => output::note(&format!(
                "trial {trial}, {fits}, cannot be measured: {error:#}"
            )),
        }
        files::remove_all([scratch.clone()])?;
    }
    Ok(measured)
}

/// The DAG and what it refers to, but for the configurations of its trials.
fn dag_preview(plan: &DagPlan) -> Result<String> {
    let files = plan.files_by_path()?;
    let shown = files
        .iter()
        .filter(|(name, _)| name.starts_with("condor/") || *name == DAG_FILE);
    let mut text: String = shown
        .map(|(name, text)| format!("==> {name} <==\n{text}\n"))
        .collect();
    text += &format!("{}\n", plan_counts(plan));
    Ok(text)
}
