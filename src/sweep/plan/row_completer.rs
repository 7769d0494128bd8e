//! The configuration of an ended trial, found from its row and from the configuration of its sweep.
//! Rows are stored without it, because it is four times as large as the rest.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::pipeline_draws::PipelineDraw;
use super::proposal::Proposal;
use super::trial_config::TrialConfig;
use super::trial_row::{EndedTrial, TrialRow};
use super::trials::fit_config;
use crate::config::Config;
use crate::search::SearchSpace;
use poolcast_holds::training::TrainingStatus;

/// Completes the stored rows of one sweep with their configurations.
#[derive(Debug)]
pub(crate) struct RowCompleter {
    sweep: Config,
    /// The keys of the sweep that all fits of pipelines share.
    common: Config,
    space: SearchSpace,
    /// The names of the hyper-parameters of samples; a row has them beside the ones of its pipeline.
    sample_names: BTreeSet<String>,
}

impl RowCompleter {
    /// Prepares for the rows of the sweep of `config`.
    pub(crate) fn new(config: &Config) -> RowCompleter {
        let samples = config.preprocessing.parameters.all();
        RowCompleter {
            sweep: config.clone(),
            common: Config {
                runs: 0,
                pipelines: BTreeMap::new(),
                ..config.clone()
            },
            space: SearchSpace::from_config(config),
            sample_names: samples.map(|(name, _)| name.into_owned()).collect(),
        }
    }

    /// Adds the configuration to the row of `trial`.
    ///
    /// # Errors
    /// Fails for the row of a wait model with parameters that no wait model has.
    pub(crate) fn row(&self, trial: EndedTrial) -> Result<TrialRow> {
        let is_fit = self.sweep.pipelines.contains_key(&trial.pipeline);
        let mut config = match is_fit {
            true => self.fit_config(&trial),
            false => self.network_config(&trial),
        };
        if trial.waits.is_some() {
            config = TrialConfig::new(config)?.written;
        }
        if let Some(metrics) = &trial.metrics
            && metrics.status == TrainingStatus::TerminatedEarly
        {
            // With this number of epochs, the trial can be made again.
            config.epochs = metrics.epochs;
        }
        Ok(TrialRow {
            result: trial,
            config,
        })
    }

    fn network_config(&self, trial: &EndedTrial) -> Config {
        if self.sweep.wandb.sweep.id.is_some() {
            let mut config = self.sweep.with_values(&trial.parameters);
            config.wandb.sweep.id = None;
            return config;
        }
        let point = Proposal::from_row(&self.space, trial).point;
        Config {
            pipelines: BTreeMap::new(),
            ..self.sweep.with_point(&point)
        }
    }

    fn fit_config(&self, trial: &EndedTrial) -> Config {
        let all = trial.parameters.clone().into_iter();
        let (samples, parameters) = all.partition(|(name, _)| self.sample_names.contains(name));
        let draw = PipelineDraw {
            parameters,
            samples,
        };
        fit_config(&self.common, &trial.pipeline, trial.split.clone(), draw)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::plan::{SweepFolder, SweepPlan};
    use poolcast_queue::{ChunkEntry, WorkItem};

    fn as_json(config: &Config) -> Value {
        serde_json::to_value(config).expect("JSON")
    }

    /// Stores the row of `trial`, whose configuration is `drawn`, and reads it with its configuration.
    fn read_again(sweep: &Config, trial: usize, drawn: &Config) -> TrialRow {
        let entry = ChunkEntry::new(WorkItem { trial, budget: 1 });
        let row = TrialRow::begin(&entry, "worker", drawn).without_missing(sweep);
        let stored = serde_json::to_string(&row).expect("JSON");
        assert!(!stored.contains("config"), "{stored}");
        let stored = serde_json::from_str(&stored).expect("a row");
        RowCompleter::new(sweep).row(stored).expect("completed")
    }

    /// Checks every trial of the sweep of `flags`, and returns their number.
    fn check(flags: &[(&'static str, Value)]) -> usize {
        let config = Config::load(None, &flags.iter().cloned().collect()).expect("a configuration");
        let plan = SweepPlan {
            trials: 0,
            source_key: String::new(),
            numbers: None,
        };
        let sweep = SweepFolder::new(Path::new("sweep"), config, plan);
        let trials = sweep.trials().expect("trials");
        for trial in 1..=trials.count() {
            let drawn = trials.draw(trial).expect("drawn");
            let again = read_again(&sweep.config, trial, &drawn);
            assert_eq!(as_json(&again.config), as_json(&drawn), "trial {trial}");
        }
        trials.count()
    }

    #[test]
    fn configuration_follows_from_the_row_and_the_sweep() {
        let rate = json!({"min": 0.001, "max": 0.1});
        let layers = json!({"values": [1, 2], "when": {"model": "lstm"}});
        let networks = [
            ("runs", json!(6)),
            ("preprocessing.parameters.j", json!({"values": [5, 10]})),
            (
                "training.parameters.model",
                json!({"values": ["lstm", "outcomes"]}),
            ),
            ("training.parameters.learning_rate", rate.clone()),
            ("training.parameters.lstm_layers", layers),
        ];
        assert_eq!(check(&networks), 6);

        // Trees have a learning rate, too.
        let trees = json!({"runs": 4, "parameters": {"learning_rate": rate}});
        let kernel = json!({"values": ["rbf", "linear"]});
        let gamma = json!({"values": [0.1, 1.0], "when": {"kernel": "rbf"}});
        let vectors = json!({"method": "grid", "parameters": {"kernel": kernel, "gamma": gamma}});
        let pipelines = [("pipelines.xgb", trees), ("pipelines.svc", vectors)];
        assert_eq!(check(&[&networks[..], &pipelines].concat()), 6 + 4 + 6);

        let tables = [
            ("data.features", json!("f.csv")),
            ("data.metadata", json!("m.csv")),
            ("data.index", json!("i")),
            ("data.target", json!("t")),
            ("data.cv", json!(3)),
            ("data.splits", json!({"train_A": "a == 1", "B": "a == 2"})),
        ];
        assert_eq!(check(&[&tables[..], &pipelines].concat()), 2 * (4 + 3));
    }

    #[test]
    fn programs_have_the_arguments_of_their_rows() {
        let depth = json!({"values": [1, 2], "when": {"kind": "deep"}});
        let parameters = json!({
            "kind": {"values": ["deep", "flat"]},
            "model": {"parameters": {"rate": {"min": 0.0, "max": 1.0}, "name": {"value": "small"}}},
            "depth": depth,
        });
        let command =
            json!({"directory": "/", "program": "a", "words": ["a"], "parameters": parameters});
        let metric = json!({"name": "reported", "reported": "loss", "goal": "minimize"});
        let sweep = [
            ("command", command),
            ("runs", json!(6)),
            ("wandb.sweep.metric", metric),
        ];
        assert_eq!(check(&sweep), 6);
    }

    #[test]
    fn wait_models_that_draw_no_value_lack_the_parameter() {
        let epochs = json!({"values": [null, 8]});
        let metric = json!({"name": "held_back_pinball", "goal": "minimize"});
        let flags = [
            ("wandb.sweep.metric", metric),
            ("provision.samples", json!("samples")),
            ("runs", json!(6)),
            (
                "provision.model.name",
                json!({"values": ["lstm", "transformer"]}),
            ),
            ("provision.model.epochs", epochs),
        ];
        assert_eq!(check(&flags), 4);
    }

    #[test]
    fn points_from_a_tracker_are_in_the_configuration() {
        let flags = BTreeMap::from([("wandb.sweep.id", json!("team/pools/s1"))]);
        let sweep = Config::load(None, &flags).expect("a configuration");
        let values = BTreeMap::from([("hidden_size".to_owned(), json!(8))]);
        let mut drawn = sweep.with_values(&values);
        drawn.wandb.sweep.id = None;
        let again = read_again(&sweep, 1, &drawn);
        assert_eq!(as_json(&again.config), as_json(&drawn));
    }
}
