//! The checked plan of a DAG, made from a configuration: its parts, their shared inputs, and the
//! inputs of every job.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::layout::check_sweep_name;
use super::parts::{PlannedPart, TrialKind, TrialSeconds, divide_trials};
use super::shared::SharedDirectory;
use super::site;
use super::syntax::{check_node_name, check_plain};
use crate::config::{Config, Method, TrialSource};
use crate::{self as sweep, SweepTrials, TrialConfig, TrialModel};
use poolcast_base::error::hinted;
use poolcast_config::MetricName;

/// The source of a DAG's samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SampleSource {
    /// Events in the DAG's directory, parsed before the DAG begins.
    Events,
    /// Logs that a job parses, in the order in which they were written: absolute paths and
    /// `osdf:///` addresses.
    Logs(Vec<String>),
    /// Joined tables in the DAG's directory.
    Tables,
}

impl SampleSource {
    /// The directory of the data that the samples are made from.
    pub(super) fn dir(&self) -> &'static str {
        if *self == SampleSource::Tables {
            "table"
        } else {
            "events"
        }
    }
}

/// The plan of a DAG.
#[derive(Debug, Clone)]
pub struct DagPlan {
    /// The whole configuration.
    pub config: Config,
    /// The container image: an absolute path or an address.
    pub image: String,
    /// The source of the samples.
    pub source: SampleSource,
    /// Number of trials.
    pub trials: usize,
    /// The trials of each job.
    pub parts: Vec<PlannedPart>,
    /// The names of all tensors, with the first trial that needs them.
    pub tensors: BTreeMap<String, usize>,
    /// Durations of trials, in seconds, if they were measured.
    pub measured: TrialSeconds,
    /// Submit commands of the site.
    pub(super) site: String,
    /// The directory from which jobs fetch the inputs that many of them use; `None` if jobs get
    /// them from the access point.
    pub(super) shared: Option<SharedDirectory>,
}

impl DagPlan {
    /// Plans the sweep that `config` describes. `measured` has the durations of its trials.
    ///
    /// # Errors
    /// Rejects everything that is known to fail before a job is submitted. Examples are a missing
    /// log or image, a sweep whose trials learn from others, and words with a special meaning for
    /// HTCondor.
    pub fn new(config: &Config, measured: &TrialSeconds) -> Result<DagPlan> {
        check_method(config)?;
        ensure!(
            config.wandb.sweep.id.is_none(),
            hinted(
                "a DAG cannot take its points from W&B, because they are fixed when it is written",
                "use `poolcast sweep init`, `sweep manage` and `sweep work`, or remove `wandb.sweep.id`"
            )
        );
        check_names(config)?;
        let mut config = config.clone();
        let source = sample_source(&mut config)?;

        let drawn = SweepTrials::from_config(&config)?;
        let trials = drawn.count();
        let kinds = (1..=trials)
            .map(|trial| trial_kind(&drawn, trial))
            .collect::<Result<Vec<TrialKind>>>()?;
        let mut tensors = BTreeMap::new();
        for (kind, number) in kinds.iter().zip(1..) {
            if let Some(name) = &kind.tensors {
                tensors.entry(name.clone()).or_insert(number);
            }
        }

        Ok(DagPlan {
            image: image_name(config.dag.image.as_deref())?,
            site: config
                .dag
                .site
                .as_deref()
                .map_or(Ok(String::new()), site::read_site)?,
            shared: SharedDirectory::from_config(&config)?,
            source,
            trials,
            parts: divide_trials(&config.dag, &kinds, measured),
            tensors,
            measured: measured.clone(),
            config,
        })
    }

    /// The name and the first trial of each kind of trials with an unknown duration.
    pub fn unmeasured_kinds(&self) -> Vec<(String, usize)> {
        let mut first = BTreeMap::new();
        for part in &self.parts {
            let trial = part.trials.first().copied().unwrap_or(1);
            first
                .entry(part.fits.clone())
                .and_modify(|known: &mut usize| *known = (*known).min(trial))
                .or_insert(trial);
        }
        first
            .into_iter()
            .filter(|(fits, _)| !self.measured.contains_key(fits))
            .collect()
    }
}

/// Rejects names with a special meaning for DAGMan or in a submit file.
fn check_names(config: &Config) -> Result<()> {
    let out = config
        .out
        .to_str()
        .context("the name of the output directory is not UTF-8")?;
    check_plain(
        "the directory",
        &std::path::absolute(out)?.to_string_lossy(),
    )?;
    if let Some(ap) = &config.parse.ap {
        check_plain("`parse.ap`", ap)?;
    }
    check_sweep_name(&config.wandb.sweep.name).context("cannot use `wandb.sweep.name`")
}

/// The kind of `trial`. Fails for a trial that cannot run.
fn trial_kind(trials: &SweepTrials, trial: usize) -> Result<TrialKind> {
    let drawn = TrialConfig::new(trials.draw(trial)?)
        .with_context(|| format!("trial {trial} cannot run"))?;
    let fits = match drawn.model {
        TrialModel::Network(_) => "network".to_owned(),
        TrialModel::Pipeline(task) => task.pipeline,
        TrialModel::WaitModel(settings) => settings.model.name.to_string(),
        TrialModel::Command(command) => command.title().to_owned(),
    };
    let Some(settings) = drawn.tensors else {
        return Ok(TrialKind {
            tensors: None,
            fits,
        });
    };
    let dir = sweep::tensors_dir(Path::new(""), &settings);
    let name = dir
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    check_node_name(&name)?;
    Ok(TrialKind {
        tensors: Some(name),
        fits,
    })
}

/// Rejects methods that use the results of earlier trials, because the DAG is written before there
/// are results.
fn check_method(config: &Config) -> Result<()> {
    let sweep = &config.wandb.sweep;
    ensure!(
        config.trial_source() != TrialSource::Command,
        hinted(
            "a DAG cannot have trials of a program",
            "use `poolcast sweep init CONFIG -o DIR` on a directory that all machines share, then `poolcast sweep manage DIR`, and `poolcast sweep work DIR` in each job"
        )
    );
    ensure!(
        sweep.method != Method::Bayes && sweep.early_terminate.is_none(),
        hinted(
            "a DAG does not support `bayes` or `early_terminate`, because its trials cannot use each other's results",
            "use `poolcast run` or workers that share a folder, or `method: random`, `sobol` or `grid`"
        )
    );
    ensure!(
        !config.dag.per_epoch || config.pipelines.is_empty(),
        hinted(
            "pipelines have no epochs",
            "remove `dag.per_epoch` or `pipelines`"
        )
    );
    Ok(())
}

/// The source of the samples of `config`. Makes its logs absolute, and adds their rotated
/// generations.
fn sample_source(config: &mut Config) -> Result<SampleSource> {
    let data = &config.data;
    ensure!(
        config.trial_source() != TrialSource::WaitSamples,
        hinted(
            "a DAG cannot have trials over samples of waits",
            "use `poolcast sweep init CONFIG -o DIR`, then `poolcast sweep run DIR`; or `sweep manage`, and `sweep work` on each machine that shares the directory"
        )
    );
    ensure!(
        (config.wandb.sweep.metric.all()).all(|metric| metric.name != MetricName::AnswersLogLoss),
        hinted(
            format!(
                "the jobs of a DAG have no events, which the metric {} needs",
                MetricName::AnswersLogLoss
            ),
            "use `poolcast sweep run CONFIG`, or choose another metric"
        )
    );
    if data.is_given() {
        ensure!(
            config.logs.is_empty() && config.dag.events.is_none(),
            hinted(
                "the configuration names both tables and logs or events",
                "give either `logs` or tables of your own in `data`"
            )
        );
        return Ok(SampleSource::Tables);
    }
    if config.dag.events.is_some() {
        return Ok(SampleSource::Events);
    }
    ensure!(
        !config.logs.is_empty(),
        hinted(
            "the configuration names no logs",
            "add `logs: [PATH]` to it, or name parsed events with `--events DIR`"
        )
    );
    let (far, near): (Vec<PathBuf>, Vec<PathBuf>) = config
        .logs
        .iter()
        .cloned()
        .partition(|log| is_osdf_address(log));
    let near = poolcast_collect::find_generations(&readable_logs(&near)?)?;
    let in_job = config.dag.parse_in_job || !far.is_empty();
    config.logs = near.into_iter().chain(far).collect();
    if in_job {
        Ok(SampleSource::Logs(transferred_logs(&config.logs)?))
    } else {
        Ok(SampleSource::Events)
    }
}

/// Returns true if `log` is an OSDF address, from which jobs fetch it themselves.
fn is_osdf_address(log: &Path) -> bool {
    log.to_str().is_some_and(|log| log.starts_with("osdf:///"))
}

/// Makes `logs` absolute. Fails if one of them cannot be read.
fn readable_logs(logs: &[PathBuf]) -> Result<Vec<PathBuf>> {
    for log in logs {
        fs_err::File::open(log).context(hinted(
            format!("cannot read the log `{}`", log.display()),
            "give absolute paths, paths relative to the current directory, or `osdf:///` addresses",
        ))?;
    }
    logs.iter()
        .map(|log| Ok(std::path::absolute(log)?))
        .collect()
}

/// The logs as transferred to a job. They share one directory there, so no two may have the same
/// name.
fn transferred_logs(logs: &[PathBuf]) -> Result<Vec<String>> {
    let mut names = BTreeMap::new();
    for log in logs {
        check_plain("the log", &log.to_string_lossy())?;
        check_plain(
            "the log",
            &log.file_name().unwrap_or_default().to_string_lossy(),
        )?;
        if let Some(other) = names.insert(log.file_name(), log) {
            let message = format!(
                "`{}` and `{}` have the same name",
                other.display(),
                log.display()
            );
            let hint = "HTCondor puts a job's files into one directory: make a symbolic link to one of them with another name";
            return Err(hinted(message, hint).into());
        }
    }
    Ok(logs
        .iter()
        .map(|log| log.to_string_lossy().into_owned())
        .collect())
}

/// The image as named in submit files.
fn image_name(named: Option<&str>) -> Result<String> {
    let hint = "name a .sif file, or an osdf:///, docker:// or oras:// address, with `--image` or `dag.image`";
    let named = named.ok_or_else(|| hinted("no container image is named", hint))?;
    check_plain("the image", named)?;
    if ["osdf:///", "docker://", "oras://"]
        .iter()
        .any(|scheme| named.starts_with(scheme))
    {
        return Ok(named.to_owned());
    }
    let path = Path::new(named);
    let is_image = path.extension().is_some_and(|extension| extension == "sif") && path.is_file();
    ensure!(
        is_image,
        hinted(
            format!("`{named}` is neither a .sif file nor the address of an image"),
            hint
        )
    );
    let absolute = std::path::absolute(path)?.to_string_lossy().into_owned();
    check_plain("the image", &absolute)?;
    Ok(absolute)
}
