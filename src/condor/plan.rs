//! A configuration → the plan of a DAG: its trials, what they share, and what every job needs, all of it checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::cleanup::check_name;
use super::words::{check_node, check_plain, site};
use crate::config::{Config, Method};
use crate::error::hinted;
use crate::sweep::{self, Trials};
use crate::{eventlog, tensors, training};

/// What a DAG does.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The whole configuration.
    pub config: Config,
    /// The container image: an absolute path or an address.
    pub image: String,
    /// The logs with their rotated generations, in the order they were written: absolute paths.
    pub logs: Vec<String>,
    /// The trials, the first at place 0.
    pub trials: Vec<Trial>,
    /// The names of all tensors, and the first trial that needs them.
    pub tensors: BTreeMap<String, usize>,
    /// Submit commands of the site.
    pub(super) site: String,
}

/// One trial.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Counted from 1.
    pub number: usize,
    /// Its configuration, in which no distribution is left.
    pub config: Config,
    /// The name of its tensors, which it may share.
    pub tensors: String,
}

impl Trial {
    /// The number as files and nodes have it.
    pub(super) fn padded(&self) -> String {
        format!("{:04}", self.number)
    }

    /// Where its configuration is in the DAG's directory.
    pub(super) fn config_file(&self) -> String {
        format!("trials/trial-{}.yaml", self.padded())
    }
}

impl Plan {
    /// The plan of the sweep that `config` describes.
    ///
    /// # Errors
    /// Refuses everything that can be known to fail before a job is submitted: a missing log or image, a sweep whose trials
    /// learn from others, words that HTCondor reads otherwise.
    pub fn of(config: &Config) -> Result<Plan> {
        check_method(config)?;
        let out = config.out.to_str().context("the output directory's name is no text")?;
        check_plain("the directory", &std::path::absolute(out)?.to_string_lossy())?;
        config.parse.ap.iter().try_for_each(|ap| check_plain("`parse.ap`", ap))?;
        check_name(&config.wandb.sweep.name).context("cannot use `wandb.sweep.name`")?;
        let mut trials = Vec::new();
        let mut tensors = BTreeMap::new();
        let drawn = Trials::of(config)?;
        for number in 1..=drawn.count() {
            let trial = Trial::draw(&drawn, number)?;
            check_node(&trial.tensors)?;
            tensors.entry(trial.tensors.clone()).or_insert(number);
            trials.push(trial);
        }
        let mut config = config.clone();
        config.logs = eventlog::generations(&logs(&config)?)?;
        let plan = Plan {
            image: image(config.dag.image.as_deref())?,
            logs: transferred(&config.logs)?,
            site: config.dag.site.as_deref().map_or(Ok(String::new()), site_text)?,
            trials,
            tensors,
            config,
        };
        Ok(plan)
    }
}

impl Trial {
    fn draw(trials: &Trials, number: usize) -> Result<Trial> {
        let drawn = trials.draw(number, &[])?;
        let checked = tensors::Settings::of(&drawn).and(training::Settings::of(&drawn));
        checked.with_context(|| format!("trial {number} cannot be"))?;
        let dir = sweep::tensors_dir(Path::new(""), &drawn)?;
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Trial { number, config: drawn, tensors: name })
    }
}

/// A DAG is written before anything is known of its trials.
fn check_method(config: &Config) -> Result<()> {
    let sweep = &config.wandb.sweep;
    ensure!(
        config.pipelines.is_empty() && !config.data.is_given(),
        hinted(
            "the trials of a DAG are networks, and the configuration has `pipelines` or `data`",
            "do it with `poolcast sweep init` and workers that share a folder: condor/work.sub"
        )
    );
    ensure!(
        sweep.method != Method::Bayes && sweep.early_terminate.is_none(),
        hinted(
            "the trials of a DAG do not learn from each other, as `bayes` and `early_terminate` do",
            "do it with `poolcast run` or with workers that share a folder, or use `method: random`, `sobol` or `grid`"
        )
    );
    Ok(())
}

/// The logs that `config` names; all of them are there.
fn logs(config: &Config) -> Result<Vec<PathBuf>> {
    ensure!(!config.logs.is_empty(), hinted("the configuration names no logs", "add `logs: [PATH]` to it"));
    for log in &config.logs {
        fs_err::File::open(log).context(hinted(
            format!("cannot read the log `{}`", log.display()),
            "`logs` are paths as seen from where poolcast is started",
        ))?;
    }
    config.logs.iter().map(|log| Ok(std::path::absolute(log)?)).collect()
}

/// The logs as a job gets them: side by side, so that no two may have one name.
fn transferred(logs: &[PathBuf]) -> Result<Vec<String>> {
    let mut names = BTreeMap::new();
    for log in logs {
        check_plain("the log", &log.to_string_lossy())?;
        check_plain("the log", &log.file_name().unwrap_or_default().to_string_lossy())?;
        if let Some(other) = names.insert(log.file_name(), log) {
            let message = format!("`{}` and `{}` have the same name", other.display(), log.display());
            let hint = "HTCondor puts a job's files side by side: link to one of them under another name";
            return Err(hinted(message, hint).into());
        }
    }
    Ok(logs.iter().map(|log| log.to_string_lossy().into_owned()).collect())
}

/// The image as submit files name it.
fn image(named: Option<&str>) -> Result<String> {
    let hint = "name a .sif file, or an osdf:///, docker:// or oras:// address, with `--image` or `dag.image`";
    let named = named.ok_or_else(|| hinted("no container image is named", hint))?;
    check_plain("the image", named)?;
    if ["osdf:///", "docker://", "oras://"].iter().any(|scheme| named.starts_with(scheme)) {
        return Ok(named.to_owned());
    }
    let path = Path::new(named);
    let is_image = path.extension().is_some_and(|extension| extension == "sif") && path.is_file();
    ensure!(is_image, hinted(format!("`{named}` is neither a .sif file nor the address of an image"), hint));
    let absolute = std::path::absolute(path)?.to_string_lossy().into_owned();
    check_plain("the image", &absolute)?;
    Ok(absolute)
}

fn site_text(path: &Path) -> Result<String> {
    let text = fs_err::read_to_string(path).context(hinted(
        format!("cannot read the site file `{}`", path.display()),
        "condor/ has examples of site files: submit commands that every job gets",
    ))?;
    site(&format!("`{}`", path.display()), &text)
}
