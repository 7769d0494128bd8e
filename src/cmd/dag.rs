//! `poolcast dag`: turns a search space into a DAG of HTCondor jobs.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::flags::{flag, flags};
use super::preparation::{make_tensors, prepare_events, prepare_tables};
use super::progress::{Progress, Stage};
use poolcast_base::error::EXIT_DONE;
use poolcast_base::files::{self, LockedDirectory, StagedDirectory};
use poolcast_base::{escape, manifest, output, salt};
use poolcast_cli::DagArgs;
use poolcast_events::{EVENTS_FORMAT, EventStore};
use poolcast_sweep::condor::{self, DAG_FILE, DagPlan, SampleSource, TrialSeconds};
use poolcast_sweep::config::Config;
use poolcast_sweep::{self as sweep, SweepFolder, events_dir};
use poolcast_tracking::missing_under_dagman;

/// Maximum time to measure a trial.
const MAX_MEASURED_TIME: Duration = Duration::from_secs(3);

/// Directory for measured trials, within the directory of a DAG.
const MEASUREMENT_DIR: &str = ".measured";

/// Writes the DAG, prints it, or submits it.
pub fn run(args: &DagArgs) -> Result<u8> {
    let config = dag_config(args)?;
    let earlier = condor::read_trial_seconds(&config.out)?;
    let mut plan = new_plan(&config, &earlier.clone().unwrap_or_default(), args)?;
    if args.dry_run {
        output::print_file(&dag_preview(&plan)?)?;
        if config.dag.trials_per_job.is_none() && earlier.is_none() {
            output::note("note: the number of trials per job is measured when the DAG is written");
        }
        return Ok(EXIT_DONE);
    }

    condor::check_directory(&plan)?;
    let _lock = LockedDirectory::new(&config.out)?;
    if earlier.is_none() {
        let source_key = prepare_inputs(&plan)?;
        let is_measured = config.dag.trials_per_job.is_none() && !config.dag.per_epoch;
        if let Some(source_key) = source_key.filter(|_| is_measured) {
            plan = new_plan(&config, &measure_trials(&plan, source_key)?, args)?;
        }
    }

    condor::write_dag(&plan)?;
    let dir = escape::path(&config.out);
    output::print(&format!("{}: {dir}/{DAG_FILE}\n", plan_counts(&plan)))?;
    note_salt(&plan);
    note_tracking(&plan);

    if args.submit {
        submit_dag(&config)?;
    } else {
        output::note(&format!(
            "submit it with: cd {dir} && condor_submit_dag {DAG_FILE}"
        ));
    }
    Ok(EXIT_DONE)
}

/// Loads the configuration file, with the overrides of the flags.
fn dag_config(args: &DagArgs) -> Result<Config> {
    let given = flags([
        ("out", flag(&args.out)),
        ("dag.image", flag(&args.image)),
        ("dag.site", flag(&args.site)),
        ("dag.events", flag(&args.events)),
        ("dag.trials_per_job", flag(&args.trials_per_job)),
    ]);
    Config::load(Some(&args.config), &given)
}

fn new_plan(config: &Config, measured: &TrialSeconds, args: &DagArgs) -> Result<DagPlan> {
    DagPlan::new(config, measured)
        .with_context(|| format!("cannot use `{}`", args.config.display()))
}

/// Warns that jobs which parse logs do not have the user's salt.
fn note_salt(plan: &DagPlan) {
    let jobs_parse = matches!(plan.source, SampleSource::Logs(_));
    if jobs_parse && std::env::var_os(salt::SALT_VARIABLE).is_some() {
        output::note("note: jobs do not get `POOLCAST_OWNER_SALT`, so they hash owners without it");
    }
}

/// Warns about settings that the last script of the DAG lacks to send results to trackers.
fn note_tracking(plan: &DagPlan) {
    for missing in missing_under_dagman(&plan.config) {
        output::note(&format!(
            "note: the DAG's last script cannot send to {missing}; it has only `HOME` and `PATH`, so write the server into \
             the configuration and the key into ~/.netrc"
        ));
    }
}

fn submit_dag(config: &Config) -> Result<()> {
    if condor::pool_runs_images() == Some(false) {
        output::note("note: no slot has HasSIF now; the jobs stay idle until one has it");
    }
    let answer = condor::submit_dag(&config.out, &config.wandb.sweep.name)?;
    answer.lines().for_each(output::note);
    Ok(())
}

/// The number of trials, tensor sets and jobs.
fn plan_counts(plan: &DagPlan) -> String {
    let tensors = match plan.source {
        SampleSource::Tables => String::new(),
        _ => {
            let sets = output::counted(plan.tensors.len(), "set");
            format!(" on {sets} of tensors")
        }
    };

    format!(
        "{}{tensors} in {}",
        output::counted(plan.trials, "trial"),
        output::counted(plan.parts.len(), "job")
    )
}

/// Makes the data behind the samples of the jobs: events of the logs that are here, or joined
/// tables. Returns its digest; `None` if a job must parse the logs.
fn prepare_inputs(plan: &DagPlan) -> Result<Option<String>> {
    let config = &plan.config;
    match (&plan.source, &config.dag.events) {
        (SampleSource::Logs(_), _) => Ok(None),
        (SampleSource::Tables, _) => prepare_tables(config).map(Some),
        (SampleSource::Events, None) => prepare_events(config, false).map(Some),
        (SampleSource::Events, Some(dir)) => link_events(dir, &events_dir(&config.out)).map(Some),
    }
}

/// Copies the event store in `from` to `to`; returns its digest. Hard links are used where the file
/// system allows them, because a store is never changed in place.
fn link_events(from: &Path, to: &Path) -> Result<String> {
    EventStore::open(from).with_context(|| format!("cannot use `{}`", from.display()))?;
    let key = manifest::read::<serde_json::Value>(from, EVENTS_FORMAT)?.key;
    if manifest::finished_key(to, EVENTS_FORMAT).as_ref() == Some(&key) {
        return Ok(key);
    }

    let staging = StagedDirectory::new(to, true)?;
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        let path = entry.path();
        let copy = staging.path().join(entry.file_name());
        if entry.file_type()?.is_file() {
            files::link_or_copy(&path, &copy)?;
        }
    }
    staging.commit()?;
    Ok(key)
}

/// Measures one trial of each kind. Its duration determines the number of trials per job.
fn measure_trials(plan: &DagPlan, source_key: String) -> Result<TrialSeconds> {
    let out = &plan.config.out;
    let scratch = out.join(MEASUREMENT_DIR);
    files::remove_all([scratch.clone()])?;

    let has_tables = plan.source == SampleSource::Tables;
    let dir = if has_tables { out } else { &scratch };
    let sweep_plan = sweep::SweepPlan {
        trials: plan.trials,
        source_key,
        numbers: None,
    };
    let sweep = SweepFolder::new(dir, plan.config.clone(), sweep_plan);

    let mut measured = TrialSeconds::new();
    for (fits, trial) in plan.unmeasured_kinds() {
        if !has_tables {
            let written = sweep.trials()?.draw(trial)?;
            let samples = written.tensor_settings()?;
            let progress = Progress::new(&[Stage::Tensors]);
            progress.show(|| make_tensors(&sweep, &events_dir(out), &[samples], &progress))?;
        }
        match sweep::measure_trial(&sweep, trial, MAX_MEASURED_TIME, &scratch.join("run")) {
            Ok(seconds) => {
                output::note(&format!("trial {trial}, {fits}: about {seconds:.1} s here"));
                measured.insert(fits, seconds);
            }
            // The trial fails as a job, too, and reports the error there. It must not stop the
            // others.
            Err(error) => output::note(&format!(
                "trial {trial}, {fits}, cannot be measured: {error:#}"
            )),
        }
        files::remove_all([scratch.clone()])?;
    }
    Ok(measured)
}

/// The DAG and its files, except for the configurations of its trials.
fn dag_preview(plan: &DagPlan) -> Result<String> {
    let files = plan.files_by_path()?;
    let mut preview = String::new();
    for (name, text) in &files {
        if name.starts_with("condor/") || *name == DAG_FILE {
            preview += &format!("==> {name} <==\n{text}\n");
        }
    }
    preview += &format!("{}\n", plan_counts(plan));
    Ok(preview)
}
