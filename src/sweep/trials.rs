//! A configuration → its trials by number: those of the network, then for each split and pipeline its own.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};

use super::fits::{Task, check};
use super::space::{Point, Space, set};
use super::suggest::{self, MOST, Observed, suggest};
use crate::config::{Config, Goal, Method, Parameter, Pipeline};
use crate::error::hinted;

/// A trial of a pipeline.
struct Drawn<'a> {
    /// The split, of tables.
    split: Option<String>,
    name: &'a str,
    pipeline: &'a Pipeline,
    /// Which of the pipeline's draws, from 1: the same on each split, so that splits can be compared.
    draw: usize,
}

/// How many trials the sweep of `config` makes.
///
/// # Errors
/// Fails for a grid that cannot be made, and for a sweep without trials.
pub fn count(config: &Config) -> Result<usize> {
    let networks = suggest::count(config)?;
    let draws = config.pipelines.iter().map(|(name, pipeline)| draws(config, name, pipeline));
    let pipelines: usize = draws.sum::<Result<usize>>()?;
    let trials = networks + splits(config)?.len() * pipelines;
    let trials = trials.min(config.wandb.sweep.run_cap.unwrap_or(usize::MAX));
    ensure!(
        trials > 0,
        hinted(
            "there is nothing to try",
            "name pipelines with `--pipeline-names`, or set `runs` for the network's trials"
        )
    );
    ensure!(
        trials <= MOST as usize,
        hinted(
            format!("{trials} trials are more than a sweep's {MOST}"),
            "try fewer splits or pipelines, or draw fewer"
        )
    );
    Ok(trials)
}

/// The configuration of trial `trial` of `config`, counted from 1, without any distribution; `history` is what is known of
/// the network's other trials.
pub fn draw(config: &Config, trial: usize, history: &[Observed]) -> Result<Config> {
    let networks = suggest::count(config)?;
    if trial <= networks {
        return Ok(Config { pipelines: BTreeMap::new(), ..suggest::draw(config, trial, history)? });
    }
    let drawn = nth(config, trial - networks - 1)?.with_context(|| format!("the sweep has no trial {trial}"))?;
    drawn.config(config).with_context(|| format!("cannot use `pipelines.{}`", drawn.name))
}

/// Fails for a trial whose hyper-parameters cannot be used.
pub fn check_pipeline(trial: &Config) -> Result<()> {
    Task::of(trial)?.map_or(Ok(()), |task| check(&task))
}

/// The splits of tables; of samples of logs there is one, without a name.
fn splits(config: &Config) -> Result<Vec<Option<String>>> {
    match config.data.is_given() {
        true => Ok(config.data.chosen()?.into_iter().map(Some).collect()),
        false => Ok(vec![None]),
    }
}

fn draws(config: &Config, name: &str, pipeline: &Pipeline) -> Result<usize> {
    if pipeline.method != Method::Grid {
        return Ok(pipeline.runs);
    }
    let points = space(config, name, pipeline).and_then(|space| suggest::grid_len(&space));
    let points = points.with_context(|| format!("cannot use `pipelines.{name}`"))?;
    ensure!(
        points <= MOST,
        hinted(
            format!("the grid of `pipelines.{name}` has {points} points, and a sweep at most {MOST} trials"),
            "draw fewer values, or try some of them with `method: random`"
        )
    );
    Ok(points as usize)
}

/// The trial of a pipeline at `place`, from 0.
fn nth(config: &Config, place: usize) -> Result<Option<Drawn<'_>>> {
    let mut rest = place;
    for split in splits(config)? {
        for (name, pipeline) in &config.pipelines {
            let draws = draws(config, name, pipeline)?;
            if rest < draws {
                return Ok(Some(Drawn { split, name, pipeline, draw: rest + 1 }));
            }
            rest -= draws;
        }
    }
    Ok(None)
}

/// What a pipeline's trials draw: its own parameters as `lasso.C`, and on samples of logs those of the samples.
fn space(config: &Config, name: &str, pipeline: &Pipeline) -> Result<Space> {
    let drawn = |(key, parameter): (&String, &Parameter<Value>)| match parameter {
        Parameter::Constant(_) => None,
        Parameter::Drawn(distribution) => Some((format!("{name}.{key}"), json!(distribution))),
    };
    let mut written: Map<String, Value> = pipeline.parameters.iter().filter_map(drawn).collect();
    if !config.data.is_given() {
        let of_samples = serde_json::to_value(&config.preprocessing.parameters)?;
        let of_samples = of_samples.as_object().into_iter().flatten().filter(|(_, value)| value.is_object());
        written.extend(of_samples.map(|(key, value)| (key.clone(), value.clone())));
    }
    Space::read(&written)
}

impl Drawn<'_> {
    fn config(&self, config: &Config) -> Result<Config> {
        let space = space(config, self.name, self.pipeline)?;
        let mut point = suggest(&space, self.pipeline.method, Goal::Minimize, config.seed, self.draw, &[])?;
        let own = self.pipeline.parameters.iter().map(|(key, parameter)| {
            let value = match parameter {
                Parameter::Constant(value) => value.clone(),
                Parameter::Drawn(_) => point.remove(&format!("{}.{key}", self.name)).unwrap_or_default(),
            };
            (key.clone(), Parameter::Constant(value))
        });
        let fixed = Pipeline { method: Method::Random, runs: 1, parameters: own.collect() };
        let mut trial = Config { runs: 0, pipelines: [(self.name.to_owned(), fixed)].into(), ..set(config, &point)? };
        trial.data.split_names = self.split.iter().cloned().collect();
        Ok(trial)
    }
}

/// The hyper-parameters of a pipeline's trial.
pub(super) fn parameters(pipeline: &Pipeline) -> Point {
    let value = |parameter: &Parameter<Value>| match parameter {
        Parameter::Constant(value) => value.clone(),
        Parameter::Drawn(distribution) => json!(distribution),
    };
    pipeline.parameters.iter().map(|(name, parameter)| (name.clone(), value(parameter))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(changes: &[(&'static str, Value)]) -> Result<Config> {
        let mut flags: BTreeMap<&str, Value> = changes.iter().cloned().collect();
        flags.insert(
            "pipelines.enet",
            json!({"runs": 3, "parameters": {"C": {"min": 0.1, "max": 1.0}, "scaler": "minmax"}}),
        );
        flags.insert("pipelines.lasso", json!({"method": "grid", "parameters": {"C": {"values": [1, 2]}}}));
        Config::load(None, &flags)
    }

    fn tables() -> Vec<(&'static str, Value)> {
        let splits = json!({"train_A": "a == 1", "validate_A": "a == 2", "B": "a == 3"});
        let words = [("features", "f.csv"), ("metadata", "m.csv"), ("index", "i"), ("target", "t")];
        let mut all: Vec<(&'static str, Value)> = vec![("data.splits", splits), ("data.cv", json!(3))];
        all.extend(words.map(|(key, word)| (Box::leak(format!("data.{key}").into_boxed_str()) as &str, json!(word))));
        all
    }

    /// The split, the pipeline and its first parameter, of each trial.
    fn all(config: &Config) -> Vec<(String, String, String)> {
        let name = |trial| {
            let drawn = draw(config, trial, &[]).expect("drawn");
            check_pipeline(&drawn).expect("usable");
            let task = Task::of(&drawn).expect("read").expect("a pipeline");
            (task.split.unwrap_or_default(), task.pipeline, task.parameters["C"].to_string())
        };
        (1..=count(config).expect("counted")).map(name).collect()
    }

    #[test]
    fn each_split_tries_each_pipeline() {
        let found = all(&config(&tables()).expect("a configuration"));
        let names: Vec<String> = found.iter().map(|(split, name, _)| format!("{split} {name}")).collect();
        let of = |split: &str| ["enet", "enet", "enet", "lasso", "lasso"].map(|name| format!("{split} {name}"));
        assert_eq!(names, [of("A"), of("B")].concat());
        assert_eq!((&found[3].2[..], &found[4].2[..]), ("1", "2"));
        for at in 0..5 {
            assert_eq!(found[at].2, found[at + 5].2, "the same draws on each split");
        }
        assert_ne!(found[0].2, found[1].2);
    }

    #[test]
    fn a_trial_alone_is_a_sweep_of_one() {
        let whole = config(&tables()).expect("a configuration");
        let trial = draw(&whole, 7, &[]).expect("drawn");
        assert_eq!(count(&trial).expect("counted"), 1);
        let again = draw(&trial, 1, &[]).expect("drawn");
        assert_eq!(serde_json::to_value(&again).expect("JSON"), serde_json::to_value(&trial).expect("JSON"));
    }

    #[test]
    fn pipelines_stand_beside_the_network_on_samples_of_logs() {
        let changes = [("runs", json!(2)), ("preprocessing.parameters.j", json!({"values": [5, 10]}))];
        let config = config(&changes).expect("a configuration");
        assert_eq!(count(&config).expect("counted"), 2 + 3 + 4, "and the grid has the samples' sizes, too");
        let network = draw(&config, 2, &[]).expect("drawn");
        assert!(network.pipelines.is_empty() && Task::of(&network).expect("read").is_none());
        let trial = draw(&config, 9, &[]).expect("drawn");
        assert_eq!((trial.runs, Space::of(&trial).expect("a space").parameters().len()), (0, 0));
        assert_eq!(count(&trial).expect("counted"), 1);
    }

    #[test]
    fn what_cannot_be_tried_is_refused() {
        let refusal = |changes: &[(&'static str, Value)]| {
            let mut all = tables();
            all.extend(changes.iter().cloned());
            let refused = config(&all).and_then(|config| {
                (1..=count(&config)?).try_for_each(|trial| check_pipeline(&draw(&config, trial, &[])?))
            });
            crate::error::render(&refused.expect_err("must be refused"))
        };
        insta::assert_snapshot!(
            [
                refusal(&[("data.split_names", json!(["A", "b"]))]),
                refusal(&[("data.split_names", json!(["B"])), ("data.validate", json!(true))]),
                refusal(&[("data.cv", Value::Null)]),
                refusal(&[("data.cv", json!(1))]),
                refusal(&[("data.target", Value::Null)]),
                refusal(&[("pipelines.rf", json!({"parameters": {"trees": 5}}))]),
                refusal(&[("pipelines.forest", json!({}))]),
                refusal(&[("pipelines.rf", json!({"method": "grid"}))]),
                refusal(&[("pipelines.rf", json!({"method": "bayes"}))]),
                refusal(&[(
                    "pipelines.rf",
                    json!({"method": "grid", "parameters": {"C": {"min": 1, "max": 1_000_000_000}}})
                )]),
                refusal(&[("pipelines.rf", json!({"parameters": {"C": {"min": 2, "max": 1}}}))]),
                refusal(&[(
                    "pipelines.rf",
                    json!({"method": "grid", "parameters": {"max_depth": {"min": 0.5, "max": 1.0}}})
                )]),
            ]
            .join("\n")
        );
    }
}
