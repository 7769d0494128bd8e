//! Loads the whole configuration: merges the defaults, a file, the environment and flags into one
//! checked [`Config`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::command::CommandConfig;
use super::conditions::{check_conditions, drawn_and_constants, drawn_under};
use super::dag::DagConfig;
use super::init_points::read_init_points;
use super::pipelines::{MAX_TRIALS, PipelineSpaces, TrialOrder};
use super::sweep::EarlyTerminate;
use super::tracker_sections::{MlflowConfig, WandbConfig};
use super::wandb_file::{is_wandb_file, read_wandb_file};
use poolcast_base::error::hinted;
use poolcast_config::layers::{self, Dict};
use poolcast_config::parameters::TIMEFRAME_LEN;
use poolcast_config::{
    DEFAULT, Distribution, FILE, Goal, Metric, MetricName, NetworkParameters, Parameter,
    PredictionTask, ResolvedConfig, SampleParameters, TrainingKeys, TrialParameters as _,
    check_range, nearest, yaml,
};
use poolcast_holds::config::{
    AdviceConfig, AnswerMember, EvaluationConfig, NetworkSettings, ParseConfig, TrainingConfig,
    TrainingSettings,
};
use poolcast_provision::config::ProvisionConfig;
use poolcast_provision::wait_model::WaitModelSettings;
use poolcast_tables::DataConfig;
use poolcast_tensors::{PreprocessingConfig, TensorSettings};

/// Search space without a configuration file: the one for the bundled log.
const QUICKSTART: &str = include_str!("../../../config/quickstart.yaml");

/// Keys of the quickstart that fit the bundled log only, with the values for other logs.
const QUICKSTART_OVERRIDES: &str = "{logs: [], out: out, wandb: {sweep: {name: poolcast}}, preprocessing: {parameters: {timeframe_len: auto}}}";

/// The hyper-parameter that names the architecture of a network.
const MODEL: &str = "model";

/// Search spaces of the pipelines, for configurations that only name a pipeline.
const PIPELINES: &str = include_str!("../../../config/pipelines.yaml");

/// The configuration in which every key has its default.
static DEFAULTS: LazyLock<Option<Config>> = LazyLock::new(|| yaml::read(DEFAULT).ok());

/// The whole configuration. `config/default.yaml` explains every key.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct Config {
    pub logs: Vec<PathBuf>,
    pub out: PathBuf,
    pub seed: u64,
    pub parse: ParseConfig,
    pub runs: usize,
    pub epochs: usize,
    pub earlystop_threshold: usize,
    pub earlystop_min_delta: f64,
    pub earlystop_metric: Metric,
    pub wandb: WandbConfig,
    #[serde(default)]
    pub mlflow: MlflowConfig,
    pub preprocessing: PreprocessingConfig,
    pub training: TrainingConfig,
    pub data: DataConfig,
    pub pipelines: BTreeMap<String, PipelineSpaces>,
    #[serde(default)]
    pub trial_order: TrialOrder,
    pub evaluation: EvaluationConfig,
    pub advice: AdviceConfig,
    pub dag: DagConfig,
    #[serde(default)]
    pub provision: ProvisionConfig,
    /// The program that each trial runs; `None` for trials of this program's own models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandConfig>,
}

/// Kind of data that the trials of a sweep learn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialSource {
    /// Event logs: `logs`.
    Logs,
    /// Tables of the user: `data`.
    Tables,
    /// Output of `provision samples`: `provision.samples`.
    WaitSamples,
    /// Whatever the program of the user reads: `command`.
    Command,
}

impl Config {
    /// Kind of data that the trials of the sweep learn from.
    pub fn trial_source(&self) -> TrialSource {
        if self.command.is_some() {
            TrialSource::Command
        } else if self.provision.samples.is_some() {
            TrialSource::WaitSamples
        } else if self.data.is_given() {
            TrialSource::Tables
        } else {
            TrialSource::Logs
        }
    }

    /// Loads the configuration from its layers: the defaults, then `file`, then the environment,
    /// then `flags` (paths of keys and their values). A later layer overrides an earlier one.
    ///
    /// # Errors
    /// Fails for an unknown key, and names the nearest known one. Also fails for a value of the
    /// wrong type or out of range, and for a key that would hold a secret.
    pub fn load(file: Option<&Path>, flags: &BTreeMap<&str, serde_json::Value>) -> Result<Config> {
        let Some(file) = file else {
            return Config::from_layers(&[], "the configuration", flags);
        };
        let place = format!("`{}`", file.display());
        let cannot = || format!("cannot use {place}");
        let text = layers::read_file(file)?;
        let keys = yaml::read_last::<Option<Dict>>(&text).with_context(cannot)?;
        if keys.is_some_and(|keys| is_wandb_file(&keys)) {
            let file = read_wandb_file(&text, file).with_context(cannot)?;
            let mut config = Config::from_layers(&[file.layer], &place, flags)?;
            if let Some(command) = &mut config.command {
                command.notes = file.notes;
            }
            return Ok(config);
        }
        let dict = layers::read_dict(&text).with_context(cannot)?;
        Config::from_layers(&[dict], &place, flags)
    }

    /// Like [`Config::load`], but with the search space of the quickstart in place of a file. The
    /// length of time frames is derived from the log.
    ///
    /// # Errors
    /// Fails like [`Config::load`].
    pub fn load_built_in(flags: &BTreeMap<&str, serde_json::Value>) -> Result<Config> {
        let layers = [
            layers::read_dict(QUICKSTART)?,
            layers::read_dict(QUICKSTART_OVERRIDES)?,
        ];
        Config::from_layers(&layers, "the built-in configuration", flags)
    }

    /// Merges the defaults, then `layers`, then the environment, then `flags`. `place` names the
    /// origin of the layers in messages.
    fn from_layers(
        layers: &[Dict],
        place: &str,
        flags: &BTreeMap<&str, serde_json::Value>,
    ) -> Result<Config> {
        let mut config: Config = layers::merge(layers, place, flags)?;
        config.preprocessing.outcomes |= config.training.takes_tokens();
        config
            .check()
            .with_context(|| format!("cannot use {place}"))?;
        Ok(config)
    }

    /// Keeps only the pipelines called `names`. A pipeline without a search space in this
    /// configuration gets the one in `config/pipelines.yaml`.
    ///
    /// # Errors
    /// Fails for an unknown pipeline, and names the nearest known one.
    pub fn choose_pipelines(&mut self, names: &[String]) -> Result<()> {
        #[derive(Deserialize)]
        struct Spaces {
            pipelines: BTreeMap<String, PipelineSpaces>,
        }
        let spaces = yaml::read::<Spaces>(PIPELINES)?.pipelines;
        let known = std::mem::take(&mut self.pipelines);
        for name in names {
            let Some(pipeline) = known.get(name).or_else(|| spaces.get(name)) else {
                let nearest = nearest(name, spaces.keys().map(String::as_str));
                let nearest = nearest.map_or(String::new(), |nearest| {
                    format!("did you mean `{nearest}`? ")
                });
                let all: Vec<String> = spaces.keys().map(|name| format!("`{name}`")).collect();
                let hint = format!(
                    "{nearest}`config/pipelines.yaml` has a search space for {}",
                    all.join(", ")
                );
                return Err(hinted(format!("there is no pipeline `{name}`"), hint).into());
            };
            self.pipelines.insert(name.clone(), pipeline.clone());
        }
        Ok(())
    }

    /// Returns the configuration of one trial. The values of `point` replace the distributions of
    /// samples and networks, of wait models, or of the parameters of a program. A parameter that the
    /// trial does not have, because its condition does not hold, has the default, or is left out.
    pub fn with_point(&self, point: &BTreeMap<String, serde_json::Value>) -> Config {
        let mut config = self.clone();
        config.wandb.sweep.init_points.clear();
        if let Some(command) = &self.command {
            config.command = Some(command.with_point(point));
            return config;
        }
        if self.trial_source() == TrialSource::WaitSamples {
            config.provision.model = config.provision.model.with_point(point);
        } else {
            config.preprocessing.parameters = config.preprocessing.parameters.with_point(point);
            config.training.parameters = config.training.parameters.with_point(point);
        }
        if let Some(defaults) = &*DEFAULTS {
            let parameters = config.preprocessing.parameters;
            let of_default = &defaults.preprocessing.parameters;
            config.preprocessing.parameters = parameters.without_conditional(of_default);
            let parameters = config.training.parameters;
            let of_default = &defaults.training.parameters;
            config.training.parameters = parameters.without_conditional(of_default);
            let model = config.provision.model;
            config.provision.model = model.without_conditional(&defaults.provision.model);
        }
        config
    }

    /// Returns the parameters that trials of networks, of wait models or of a program draw, by name.
    /// Those are left out that no trial has, because their condition never holds.
    pub(crate) fn drawn_parameters(&self) -> BTreeMap<String, Distribution> {
        let (drawn, constants) = self.searched_parameters();
        drawn_under(drawn, &constants)
    }

    /// Returns the distributions and the constants of networks and their samples, of wait models or of a
    /// program, by name.
    fn searched_parameters(
        &self,
    ) -> (
        BTreeMap<String, Distribution>,
        BTreeMap<String, serde_json::Value>,
    ) {
        if let Some(command) = &self.command {
            return command.drawn_and_constants();
        }
        let mut all: Vec<(Cow<'_, str>, &Parameter)> = Vec::new();
        if self.trial_source() == TrialSource::WaitSamples {
            all.extend(self.provision.model.all());
        } else {
            all.extend(self.preprocessing.parameters.all());
            all.extend(self.training.parameters.all());
        }
        drawn_and_constants(all.iter().map(|(name, parameter)| (&**name, *parameter)))
    }

    /// Returns the configuration with the given `values` of hyper-parameters of networks and their
    /// samples, by name.
    pub fn with_values(&self, values: &BTreeMap<String, serde_json::Value>) -> Config {
        let mut config = self.clone();
        config.preprocessing.parameters = config.preprocessing.parameters.with_values(values);
        config.training.parameters = config.training.parameters.with_values(values);
        config
    }

    /// Returns the network `name` as a member of the answers. What `values` do not name is as in this configuration.
    ///
    /// # Errors
    /// Fails for an unknown hyper-parameter, for a value out of range, and for a distribution.
    pub fn network_member(
        &self,
        name: &str,
        values: &BTreeMap<String, serde_json::Value>,
    ) -> Result<AnswerMember> {
        let mut values = values.clone();
        for key in values.keys() {
            ensure!(
                key != MODEL && Config::has_hyper_parameter(key),
                hinted(
                    format!("`{name}` has no hyper-parameter `{key}`"),
                    "it has those of `training.parameters` and `preprocessing.parameters`"
                )
            );
        }
        values.insert(MODEL.to_owned(), name.into());
        let config = self.with_values(&values);
        let cannot = || format!("cannot use the member `{name}`");
        let training = config.training_settings().with_context(cannot)?;
        let tensors = config.tensor_settings().with_context(cannot)?;
        let network = NetworkSettings::new(training, tensors)?;
        Ok(AnswerMember::Resolved(Box::new(network)))
    }

    /// Returns true if networks or their samples have a hyper-parameter `name`.
    pub fn has_hyper_parameter(name: &str) -> bool {
        SampleParameters::NAMES.contains(&name) || NetworkParameters::NAMES.contains(&name)
    }

    /// Returns true if the length of time frames is still to be derived from the log.
    pub fn has_open_frames(&self) -> bool {
        self.preprocessing.parameters.is_open(TIMEFRAME_LEN)
    }

    /// Returns the configuration with time frames of `timeframe_len_s` seconds, if the length is
    /// still to be derived from the log. Otherwise nothing changes.
    pub fn with_frames(&self, timeframe_len_s: u32) -> Config {
        let mut config = self.clone();
        let parameters = config.preprocessing.parameters;
        config.preprocessing.parameters =
            parameters.with_chosen(TIMEFRAME_LEN, &timeframe_len_s.into());
        config
    }

    /// Like [`Config::with_frames`], but with the length from `begun`, a configuration in which it
    /// is already known.
    pub fn with_frames_of(&self, begun: &Config) -> Config {
        let mut config = self.clone();
        for (name, parameter) in begun.preprocessing.parameters.all() {
            if let (TIMEFRAME_LEN, Parameter::Constant(value)) = (&*name, parameter) {
                let parameters = config.preprocessing.parameters;
                config.preprocessing.parameters = parameters.with_chosen(TIMEFRAME_LEN, value);
            }
        }
        config
    }

    /// Returns true if every key has its default.
    ///
    /// # Errors
    /// Fails if a configuration cannot be rendered.
    pub fn is_default(&self) -> Result<bool> {
        let default: Config = yaml::read(DEFAULT)?;
        Ok(serde_json::to_value(default)? == serde_json::to_value(self)?)
    }

    /// Reads the resolved configuration beside an artefact.
    pub fn read(dir: &Path) -> Result<Config> {
        let path = dir.join(FILE);
        let text = poolcast_base::files::read_regular(&path, yaml::MAX_BYTES)?;
        let config = std::str::from_utf8(&text)
            .map_err(Into::into)
            .and_then(yaml::read);
        config.with_context(|| format!("cannot read `{}`", path.display()))
    }

    /// Writes the configuration beside an artefact.
    pub fn write(&self, dir: &Path) -> Result<()> {
        self.resolved()?.write(dir)
    }

    /// Returns the text of the configuration, with every key.
    pub fn resolved(&self) -> Result<ResolvedConfig> {
        ResolvedConfig::new(self)
    }

    /// Returns the settings that determine the samples of a log.
    ///
    /// # Errors
    /// Fails like [`TensorSettings::new`].
    pub fn tensor_settings(&self) -> Result<TensorSettings> {
        TensorSettings::new(&self.preprocessing, self.seed)
    }

    /// Returns the settings of the training of a network over logs.
    ///
    /// # Errors
    /// Fails like [`TrainingSettings::new`].
    pub fn training_settings(&self) -> Result<TrainingSettings> {
        TrainingSettings::new(&self.training, self.training_keys())
    }

    /// Returns the settings of the training of a wait model.
    ///
    /// # Errors
    /// Fails like [`WaitModelSettings::new`].
    pub fn wait_model_settings(&self) -> Result<WaitModelSettings> {
        WaitModelSettings::new(&self.provision, &self.training_keys())
    }

    fn training_keys(&self) -> TrainingKeys {
        TrainingKeys {
            epochs: self.epochs,
            earlystop_threshold: self.earlystop_threshold,
            earlystop_min_delta: self.earlystop_min_delta,
            earlystop_metric: self.earlystop_metric.clone(),
            seed: self.seed,
        }
    }

    fn check(&self) -> Result<()> {
        self.check_lengths()?;
        if let Some(year) = self.parse.year {
            check_range("parse.year", f64::from(year), 1970.0..=2100.0)?;
        }
        self.training.check()?;
        self.wandb.sweep.check(self.epochs)?;
        self.check_tracker_addresses()?;
        self.check_given_sweep()?;
        self.data.check()?;
        self.check_wait_samples()?;
        self.check_command()?;
        let (drawn, constants) = self.searched_parameters();
        check_conditions(&drawn, &constants)?;
        self.check_init_points()?;
        let source = self.trial_source();
        if source != TrialSource::WaitSamples && source != TrialSource::Command {
            for metric in self.wandb.sweep.metric.all() {
                metric.check("wandb.sweep.metric", self.data.task)?;
            }
        }
        self.check_answers_metric()?;
        (self.earlystop_metric).check("earlystop_metric", PredictionTask::Classification)?;
        ensure!(
            self.earlystop_metric.target.is_none(),
            "`earlystop_metric.target` has no effect; the target of a sweep is `wandb.sweep.metric.target`"
        );
        ensure!(
            !self.data.is_given() || self.wandb.sweep.early_terminate.is_none(),
            "`wandb.sweep.early_terminate` is for networks, and `data` is only for pipelines"
        );
        for (name, pipeline) in &self.pipelines {
            pipeline.check(name)?;
        }

        self.preprocessing.check()?;
        self.advice.check()?;
        self.check_network_members()?;
        self.provision.check()?;
        self.dag.check()
    }

    /// Rejects networks among the members of the answers with settings that they cannot have. The length of time frames
    /// may be unknown yet.
    fn check_network_members(&self) -> Result<()> {
        let with_frames = self.with_frames(1);
        for member in &self.advice.members {
            if let AnswerMember::Network { name, parameters } = member {
                let member = with_frames.network_member(name, parameters);
                member.context("cannot use `advice.members`")?;
            }
        }
        Ok(())
    }

    /// Rejects points outside of the search space. Those of pipelines are checked with their spaces.
    fn check_init_points(&self) -> Result<()> {
        let points = &self.wandb.sweep.init_points;
        ensure!(
            points.is_empty() || !self.data.is_given(),
            hinted(
                "`wandb.sweep.init_points` is not for the pipelines of `data`",
                "write `init_points` beside `parameters` of a pipeline"
            )
        );
        let key = match self.command {
            Some(_) => "init_points",
            None => "wandb.sweep.init_points",
        };
        read_init_points(key, points, &self.drawn_parameters()).map(|_| ())
    }

    /// Rejects the loss of the answers where trials have none, or none before they end.
    fn check_answers_metric(&self) -> Result<()> {
        let name = MetricName::AnswersLogLoss;
        ensure!(
            self.earlystop_metric.name != name,
            hinted(
                format!("`earlystop_metric.name` is {name}, which only an ended trial has"),
                "keep `validation_roc_auc` for the epochs, and rank trials by the answers"
            )
        );
        let sweep = &self.wandb.sweep;
        let Some(metric) = sweep.metric.all().find(|metric| metric.name == name) else {
            return Ok(());
        };
        ensure!(
            self.trial_source() == TrialSource::Logs,
            hinted(
                format!("`wandb.sweep.metric.name` is {name}, which only models of held jobs have"),
                "name event logs in `logs`, or choose another metric"
            )
        );
        ensure!(
            metric.goal == Goal::Minimize,
            hinted(
                format!("`wandb.sweep.metric` would choose the worst {name}"),
                format!("write `wandb.sweep.metric: {{name: {name}, goal: minimize}}`")
            )
        );
        ensure!(
            sweep.early_terminate.is_none(),
            hinted(
                format!("`early_terminate` compares epochs, and only an ended trial has {name}"),
                "remove `early_terminate`, or choose another metric"
            )
        );
        Ok(())
    }

    /// Rejects keys that have no meaning together with `command`.
    fn check_command(&self) -> Result<()> {
        let Some(command) = &self.command else {
            return Ok(());
        };
        for (key, is_given) in [
            ("logs", !self.logs.is_empty()),
            ("data", self.data.is_given()),
            ("pipelines", !self.pipelines.is_empty()),
            ("provision.samples", self.provision.samples.is_some()),
            ("wandb.sweep.id", self.wandb.sweep.id.is_some()),
        ] {
            ensure!(
                !is_given,
                hinted(
                    format!("`{key}` cannot be combined with a program in `command`"),
                    "trials run the program, or train models of poolcast; remove one of the two keys"
                )
            );
        }
        ensure!(
            !matches!(
                self.wandb.sweep.early_terminate,
                Some(EarlyTerminate::Asha(_))
            ),
            hinted(
                "`early_terminate: {type: asha}` cannot pause a program and continue it",
                "write `early_terminate: {type: hyperband, min_iter: 3}`"
            )
        );
        ensure!(
            (self.wandb.sweep.metric.all()).all(|metric| metric.name == MetricName::Reported),
            "`wandb.sweep.metric.name` must be `reported` for trials of a program"
        );
        command.check()
    }

    /// Rejects keys that have no meaning together with `provision.samples`.
    fn check_wait_samples(&self) -> Result<()> {
        if self.provision.samples.is_none() {
            return Ok(());
        }
        for (key, is_given) in [
            ("logs", !self.logs.is_empty()),
            ("data", self.data.is_given()),
            ("pipelines", !self.pipelines.is_empty()),
            ("wandb.sweep.id", self.wandb.sweep.id.is_some()),
            (
                "wandb.sweep.early_terminate",
                self.wandb.sweep.early_terminate.is_some(),
            ),
        ] {
            ensure!(
                !is_given,
                hinted(
                    format!("`{key}` cannot be combined with `provision.samples`"),
                    "trials over samples of waits search the keys of `provision.model`; remove one of the two keys"
                )
            );
        }
        let samples = self.preprocessing.parameters.drawn().map(|(name, _)| name);
        let networks = self.training.parameters.drawn().map(|(name, _)| name);
        if let Some(name) = samples.chain(networks).next() {
            return Err(hinted(
                format!("`{name}` has a distribution, which only networks over logs use"),
                "over samples of waits, trials draw from the keys of `provision.model`",
            )
            .into());
        }
        let mut metrics = self.wandb.sweep.metric.all();
        metrics.try_for_each(|metric| self.provision.check_metric(metric))
    }

    /// Rejects a search space in this configuration if a sweep on W&B provides the points.
    fn check_given_sweep(&self) -> Result<()> {
        if self.wandb.sweep.id.is_none() {
            return Ok(());
        }
        let samples = self.preprocessing.parameters.drawn().map(|(name, _)| name);
        let networks = self.training.parameters.drawn().map(|(name, _)| name);
        if let Some(name) = samples.chain(networks).next() {
            return Err(hinted(
                format!("`{name}` has a distribution, but the points come from the sweep of `wandb.sweep.id`"),
                "write one value for a parameter that this sweep does not search, or remove `wandb.sweep.id`",
            )
            .into());
        }
        ensure!(
            self.pipelines.is_empty() && !self.data.is_given(),
            hinted(
                "`wandb.sweep.id` is for networks over logs",
                "remove `pipelines` and `data`, or `wandb.sweep.id`"
            )
        );
        ensure!(
            self.wandb.sweep_id.is_none(),
            hinted(
                "`wandb.sweep_id` is for a sweep whose points poolcast draws",
                "remove it, or remove `wandb.sweep.id`"
            )
        );
        Ok(())
    }

    /// Checks the number and length of trials, early stopping, and the number of bootstrap
    /// resamples.
    fn check_lengths(&self) -> Result<()> {
        // With pipelines, a sweep may have no trials of the network.
        let least = if self.pipelines.is_empty() { 1.0 } else { 0.0 };
        check_range("runs", self.runs as f64, least..=MAX_TRIALS as f64)?;
        check_range("epochs", self.epochs as f64, 1.0..=1_000_000.0)?;
        check_range(
            "earlystop_threshold",
            self.earlystop_threshold as f64,
            1.0..=1_000_000.0,
        )?;
        check_range("earlystop_min_delta", self.earlystop_min_delta, 0.0..=1e6)?;
        check_range(
            "evaluation.resamples",
            self.evaluation.resamples as f64,
            10.0..=1_000_000.0,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::tracker::Tracker;
    use super::*;
    use poolcast_config::{HyperParameter, WaitModelParameters};

    fn load(text: &str) -> Result<Config> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("c.yaml");
        fs_err::write(&path, text)?;
        Config::load(Some(&path), &BTreeMap::new())
    }

    fn refusal(text: &str) -> String {
        poolcast_base::error::render(&load(text).expect_err("must be refused"))
    }

    #[test]
    fn search_space_beside_a_wandb_sweep_is_rejected() {
        let given = "{wandb: {sweep: {id: team/held/abcd1234}}, pipelines: {}";
        let config = load(&format!("{given}}}")).expect("loads");
        assert_eq!(config.wandb.known_sweep(), Some("abcd1234"));
        assert_eq!(config.enabled_trackers(), [Tracker::Wandb]);

        let drawn = "training: {parameters: {hidden_size: {values: [4, 8]}}}";
        assert!(
            refusal(&format!("{given}, {drawn}}}")).contains("`hidden_size` has a distribution")
        );
        let pipelines = given.replace("pipelines: {}", "pipelines: {rf: {runs: 1}}");
        assert!(refusal(&format!("{pipelines}}}")).contains("is for networks over logs"));
        let both = given.replace("wandb: {", "wandb: {sweep_id: other, ");
        assert!(refusal(&format!("{both}}}")).contains("`wandb.sweep_id` is for a sweep"));
        let method = given.replace("id:", "method: bayes, id:");
        assert!(refusal(&format!("{method}}}")).contains("are set by the sweep on W&B"));
        for id in ["abcd", "a/b/c/d", "a//c", "../b/c", "'a/b/c\"'", "a/b/c?x"] {
            let other = given.replace("team/held/abcd1234", id);
            assert!(
                refusal(&format!("{other}}}")).contains("ENTITY/PROJECT/ID"),
                "{id}"
            );
        }
    }

    #[test]
    fn answers_rank_only_ended_trials_over_logs() {
        let metric = "wandb: {sweep: {metric: {name: answers_log_loss, goal: minimize}";
        load(&format!("{metric}}}}}")).expect("loads");
        let worst = metric.replace("minimize", "maximize");
        let tables = "data: {features: a.csv, metadata: b.csv, index: run, target: y, cv: 5}";
        for (text, reason) in [
            (format!("{worst}}}}}"), "would choose the worst"),
            (
                format!("{metric}, early_terminate: {{type: hyperband, min_iter: 3}}}}}}"),
                "only an ended trial has",
            ),
            (
                format!("{tables}\npipelines: {{ridge: {{}}}}\n{metric}}}}}"),
                "only models of held jobs have",
            ),
            (
                "earlystop_metric: {name: answers_log_loss, goal: minimize}".to_owned(),
                "only an ended trial has",
            ),
        ] {
            let refused = refusal(&text);
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn published_sweep_file_loads() {
        let text = include_str!("../../../config/sweep.yaml");
        let config = load(text).expect("loads");
        let mut drawn = config.training.parameters.drawn();
        let (_, batch_size) = drawn
            .find(|(name, _)| *name == "batch_size")
            .expect("it is drawn");
        assert_eq!(batch_size.draw(0.99), serde_json::json!(248));
        let dir = tempfile::tempdir().expect("a directory");
        config.write(dir.path()).expect("written");
        let again = Config::read(dir.path()).expect("read");
        assert_eq!(
            serde_json::to_string(&again).expect("json"),
            serde_json::to_string(&config).expect("json")
        );
        assert!(refusal(&text.replace("enable: false", "api_key: abc")).contains("WANDB_API_KEY"));
    }

    /// Each file must be rejected exactly if W&B's schema rejects it. Three of the vectors are not
    /// tested, because they differ here: nested parameters belong to a search space, a
    /// configuration always has parameters, and the method `custom` needs a program of W&B.
    #[test]
    fn sweep_files_are_rejected_as_by_wandb_schema() {
        use serde_json::{Value, json};
        let vectors: Value = serde_json::from_str(include_str!(
            "../../../tests/data/wandb/sweeps_vectors.json"
        ))
        .expect("JSON");
        let files = [
            (
                "min_ge_max",
                json!({"parameters": {"a": {"min": 2, "max": 1}}}),
            ),
            (
                "mixed_int_float",
                json!({"parameters": {"a": {"min": 1, "max": 2.5}}}),
            ),
            (
                "grid_uniform",
                json!({"method": "grid", "parameters": {"a": {"min": 0.0, "max": 1.0}}}),
            ),
            (
                "bayes_no_metric",
                json!({"method": "bayes", "parameters": {"a": {"min": 0.0, "max": 1.0}}}),
            ),
            (
                "cat_with_prob_named",
                json!({"parameters": {"a": {"distribution": "categorical", "values": [1, 2], "probabilities": [0.5, 0.5]}}}),
            ),
            (
                "prob_not_1",
                json!({"parameters": {"a": {"values": [1, 2], "probabilities": [0.5, 0.4]}}}),
            ),
            (
                "log_uniform_dep",
                json!({"parameters": {"a": {"distribution": "log_uniform", "min": -3, "max": 0}}}),
            ),
            (
                "unknown_key",
                json!({"foo": 1, "parameters": {"a": {"value": 1}}}),
            ),
            (
                "unknown_param_key",
                json!({"parameters": {"a": {"min": 1, "max": 2, "step": 1}}}),
            ),
            (
                "hyper_no_iter",
                json!({"early_terminate": {"type": "hyperband", "eta": 2}}),
            ),
            ("run_cap0", json!({"run_cap": 0})),
            (
                "str_number_1e-3",
                json!({"parameters": {"a": {"min": "1e-3", "max": 1.0}}}),
            ),
        ];
        for (name, mut file) in files {
            let is_refused = !vectors["schema"][name]
                .as_array()
                .expect("messages")
                .is_empty();
            let parameter = file
                .as_object_mut()
                .and_then(|file| file.remove("parameters"));
            let a = parameter.map_or(json!(1), |parameters| parameters["a"].clone());
            let text =
                json!({"wandb": {"sweep": file}, "training": {"parameters": {"pos_weight": a}}})
                    .to_string();
            assert_eq!(load(&text).is_err(), is_refused, "{name}");
        }
    }

    #[test]
    fn unknown_keys_suggest_the_nearest_key() {
        let text = refusal("preprocessing:\n  parameters:\n    timeframe_length: 5\n");
        assert!(
            text.contains("preprocessing.parameters.timeframe_length"),
            "{text}"
        );
        assert!(text.contains("did you mean `timeframe_len`?"), "{text}");
    }

    #[test]
    fn range_errors_repeat_the_given_value() {
        assert!(refusal("epochs: 0").contains("between 1 and 1000000, got 0"));
        assert!(refusal("epochs: many").contains("epochs"));
        assert!(refusal("preprocessing: {fractions: [0.5, 0.1, 0.1]}").contains("sum to 1"));
        assert!(
            refusal("training: {parameters: {batch_size: {distribution: zipf, min: 1}}}")
                .contains("batch_size")
        );
        let network = |text: &str| {
            poolcast_base::error::render(
                &load(&format!("training: {{parameters: {{{text}}}}}")).expect_err("refused"),
            )
        };
        assert!(
            network("hidden_size: 2.5").contains("`hidden_size` must be a whole number, got 2.5")
        );
        assert!(
            network("hidden_size: 0").contains("`hidden_size` must be between 1 and 4096, got 0")
        );
        assert!(network("pos_weight: 1e-7").contains("between 0.000001 and 1000000"));
        let drawn = load("training: {parameters: {batch_size: {values: [1, 2]}}}").expect("loads");
        let refused = drawn.training.parameters.trial().expect_err("drawn");
        assert!(refused.to_string().contains("distribution"));
    }

    fn sorted(names: &[&str]) -> Vec<String> {
        let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        names.sort();
        names
    }

    fn field_names(parameters: &impl Serialize) -> Vec<String> {
        let fields = serde_json::to_value(parameters).expect("JSON");
        fields
            .as_object()
            .expect("fields")
            .keys()
            .cloned()
            .collect()
    }

    /// Each hyper-parameter must have exactly one default and be a field of its name.
    #[test]
    fn each_hyper_parameter_has_a_default_and_a_field() {
        let config = Config::load(None, &BTreeMap::new()).expect("loads");
        let samples = config.preprocessing.parameters.trial().expect("samples");
        let network = config.training.parameters.trial().expect("a network");
        assert_eq!(field_names(&samples), sorted(SampleParameters::NAMES));
        assert_eq!(field_names(&network), sorted(NetworkParameters::NAMES));
        let wait_model = WaitModelParameters {
            epochs: Some(1),
            ..config.provision.model.trial().expect("a wait model")
        };
        assert_eq!(field_names(&wait_model), sorted(WaitModelParameters::NAMES));
        let tables = [
            SampleParameters::TABLE,
            NetworkParameters::TABLE,
            WaitModelParameters::TABLE,
        ];
        let stands_there = |one: &HyperParameter| one.default.is_some();
        assert!(!tables.concat().iter().any(stands_there));
    }

    #[test]
    fn flags_override_defaults() {
        let flags = BTreeMap::from([
            ("preprocessing.parameters.j", serde_json::json!(7)),
            ("seed", serde_json::json!(9)),
        ]);
        let config = Config::load(None, &flags).expect("loads");
        let samples = config.preprocessing.parameters.trial().expect("plain");
        assert_eq!((samples.j, config.seed), (7, 9));
    }
}
