//! The numbered trials of a sweep, found from its configuration. The network's trials come first,
//! then the trials of each split and pipeline.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use rand::seq::SliceRandom as _;

use super::network_draws::{NetworkDraws, RepeatedDraw, draw_network_point};
use super::pipeline_draws::{PipelineDraw, PipelineDraws};
use super::trial_numbers::TrialNumbers;
use crate::config::{Config, MAX_TRIALS, Method, PipelineSpace, TrialOrder};
use crate::search::{ObservedTrial, SearchPoint};
use poolcast_base::error::hinted;
use poolcast_config::Parameter;
use poolcast_queue::{MAX_CHUNK_TRIALS, TrialChunk, WorkItem};

/// Minimum number of chunks for the trials of pipelines, if there are at least as many trials. As
/// many workers can then work at the same time.
const MIN_PIPELINE_CHUNKS: usize = 1000;

/// The trials of a sweep, numbered from 1.
#[derive(Debug)]
pub struct SweepTrials {
    config: Config,
    /// The configuration without network trials and pipelines; shared by all trials of pipelines.
    common: Config,
    networks: NetworkDraws,
    count: usize,
    /// The splits of tables. Samples of logs have one split without a name.
    splits: Vec<Option<String>>,
    pipelines: Vec<PipelineDraws>,
    /// The numbers of the trials, if the sweep was extended.
    numbers: TrialNumbers,
    /// The place of each trial in the order of the configuration, from 1. Empty if the numbers are in
    /// this order.
    places: Vec<usize>,
}

impl SweepTrials {
    /// Finds the trials of the sweep that `config` describes. Draws of a pipeline that differ only
    /// in hyper-parameters without effect are one trial.
    ///
    /// # Errors
    /// Fails for a grid that cannot be made, and for hyper-parameters that a pipeline cannot have.
    /// Also fails for a sweep without trials, or with too many.
    pub fn from_config(config: &Config) -> Result<SweepTrials> {
        let networks = NetworkDraws::from_config(config)?;
        let splits = match config.data.is_given() {
            true => config.data.chosen()?.into_iter().map(Some).collect(),
            false => vec![None],
        };
        let pipelines: Vec<PipelineDraws> = config
            .pipelines
            .keys()
            .map(|name| PipelineDraws::from_config(config, name))
            .collect::<Result<_>>()?;
        let draws: usize = pipelines.iter().map(PipelineDraws::len).sum();
        let count = (networks.count + splits.len() * draws)
            .min(config.wandb.sweep.run_cap.unwrap_or(usize::MAX));
        ensure!(
            count > 0,
            hinted(
                "the sweep has no trials",
                "name pipelines with `--pipeline-names`, or set `runs` for the network's trials"
            )
        );
        ensure!(
            count as u64 <= MAX_TRIALS,
            hinted(
                format!("the sweep has {count} trials, expected at most {MAX_TRIALS}"),
                "try fewer splits or pipelines, or draw fewer"
            )
        );
        let common = Config {
            runs: 0,
            pipelines: BTreeMap::new(),
            ..config.clone()
        };
        Ok(SweepTrials {
            config: config.clone(),
            common,
            networks,
            count,
            splits,
            pipelines,
            numbers: TrialNumbers::default(),
            places: Vec::new(),
        })
    }

    /// Gives the trials these `numbers`, which they have in a sweep that was extended.
    ///
    /// # Errors
    /// Fails for numbers of other trials.
    pub(crate) fn with_numbers(self, numbers: &TrialNumbers) -> Result<SweepTrials> {
        Ok(SweepTrials {
            places: numbers.places(self.count)?,
            numbers: numbers.clone(),
            ..self
        })
    }

    /// The configuration of the sweep.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The number of trials.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of pipeline draws, over all splits, that repeat other draws. They are not
    /// trials.
    pub fn repeats(&self) -> usize {
        self.splits.len()
            * self
                .pipelines
                .iter()
                .map(|draws| draws.repeats)
                .sum::<usize>()
    }

    /// The draws of the network that repeat other draws. They are not trials.
    pub fn network_repeats(&self) -> &[RepeatedDraw] {
        &self.networks.repeats
    }

    /// The place of `trial` in the order of the configuration, from 1. The network's trials come
    /// first.
    pub(crate) fn place(&self, trial: usize) -> usize {
        let place = self.places.get(trial.wrapping_sub(1));
        place.copied().unwrap_or(trial)
    }

    /// Returns true if `trial` is one of the network, of wait models or of a program.
    pub fn is_network(&self, trial: usize) -> bool {
        (1..=self.networks.count).contains(&self.place(trial))
    }

    /// The trials of the network, of wait models or of a program, in order.
    pub(crate) fn network_trials(&self) -> impl Iterator<Item = usize> {
        (1..=self.count).filter(|trial| self.is_network(*trial))
    }

    /// The number of trials of the network, of wait models or of a program.
    pub(crate) fn network_count(&self) -> usize {
        self.networks.count
    }

    /// Draws the hyper-parameters of trial `trial` of the network. `history` has the known results
    /// of other trials.
    ///
    /// # Errors
    /// Fails beyond the last point of a grid.
    pub(crate) fn network_point(
        &self,
        trial: usize,
        history: &[ObservedTrial],
    ) -> Result<SearchPoint> {
        let draw = self.networks.draw_of(self.place(trial));
        draw_network_point(&self.config, draw, history)
    }

    /// The configuration of a trial of the network that tries `point`, as it is written.
    pub(crate) fn network_config(&self, point: &SearchPoint) -> Config {
        Config {
            pipelines: BTreeMap::new(),
            ..self.config.with_point(point)
        }
    }

    /// The configuration of trial `trial` as it is written, with a value for every parameter that
    /// the trial draws. For the method `bayes`, no result of another trial is known.
    ///
    /// # Errors
    /// Fails for a trial that does not exist.
    pub fn draw(&self, trial: usize) -> Result<Config> {
        if self.is_network(trial) {
            return Ok(self.network_config(&self.network_point(trial, &[])?));
        }

        let place = self
            .pipeline_trial(trial)
            .with_context(|| format!("the sweep has no trial {trial}"))?;
        let draws = &self.pipelines[place.pipeline];
        let split = self.splits[place.split].clone();
        let draw = draws.get(place.draw)?;
        Ok(fit_config(&self.common, &draws.pipeline, split, draw))
    }

    /// Finds the split, pipeline and draw of `trial`. Returns `None` for a trial of the network,
    /// and beyond the last trial.
    fn pipeline_trial(&self, trial: usize) -> Option<PipelineTrial> {
        if trial > self.count {
            return None;
        }
        let number = self.place(trial).checked_sub(self.networks.count + 1)?;

        let split = number / self.fits_per_split();
        let mut draw = number % self.fits_per_split();
        for (pipeline, draws) in self.pipelines.iter().enumerate() {
            if draw < draws.len() {
                return Some(PipelineTrial {
                    split,
                    pipeline,
                    draw,
                });
            }
            draw -= draws.len();
        }
        None
    }

    /// Divides the trials of pipelines that had not ended before into chunks. Each chunk has one
    /// pipeline on one split, so that a worker keeps the same rows.
    pub(crate) fn pipeline_chunks(&self) -> Vec<TrialChunk> {
        let size = (self.count.saturating_sub(self.networks.count) / MIN_PIPELINE_CHUNKS)
            .clamp(1, MAX_CHUNK_TRIALS);
        let mut chunks: Vec<TrialChunk> = Vec::new();
        let mut last_kind = None;
        for trial in self.open_trials() {
            let Some(found) = self.pipeline_trial(trial) else {
                continue;
            };
            let kind = Some((found.split, found.pipeline));
            match chunks.last_mut() {
                Some(chunk)
                    if kind == last_kind
                        && chunk.count < size
                        && chunk.first.trial + chunk.count == trial =>
                {
                    chunk.count += 1;
                }
                _ => chunks.push(WorkItem { trial, budget: 1 }.into()),
            }
            last_kind = kind;
        }
        chunks
    }

    /// The trials that had not ended before the sweep was extended.
    fn open_trials(&self) -> impl Iterator<Item = usize> {
        (1..=self.count).filter(|trial| !self.numbers.has_ended(*trial))
    }

    /// Returns the number of pipeline trials on each split.
    pub(crate) fn fits_per_split(&self) -> usize {
        self.pipelines.iter().map(PipelineDraws::len).sum()
    }

    /// Returns the chunks of the trials that do not depend on results, in the order in which workers
    /// begin them. Trials of pipelines never do.
    pub(crate) fn known_chunks(&self) -> Vec<TrialChunk> {
        let mut chunks = Vec::new();
        if !self.config.wandb.sweep.proposes_trials() {
            let budget = self.config.epochs;
            let networks = self.open_trials().filter(|trial| self.is_network(*trial));
            chunks.extend(networks.map(|trial| TrialChunk::from(WorkItem { trial, budget })));
        }
        chunks.extend(self.pipeline_chunks());
        self.in_order(chunks)
    }

    /// Puts `chunks` in the order in which workers begin them.
    fn in_order(&self, mut chunks: Vec<TrialChunk>) -> Vec<TrialChunk> {
        match self.config.trial_order {
            TrialOrder::Shuffled => {
                // Any finished subset is then a sample of all trials.
                let mut generator =
                    poolcast_base::seed::generator(self.config.seed, "trial order", &[]);
                chunks.shuffle(&mut generator);
                chunks
            }
            TrialOrder::Interleaved => self.interleave_chunks(chunks),
        }
    }

    /// Orders chunks by split. Within a split the kinds alternate, and the chunks of each kind are
    /// shuffled.
    fn interleave_chunks(&self, chunks: Vec<TrialChunk>) -> Vec<TrialChunk> {
        let mut kinds: BTreeMap<ChunkKind, Vec<TrialChunk>> = BTreeMap::new();
        for chunk in chunks {
            let kind = match self.pipeline_trial(chunk.first.trial) {
                Some(place) => ChunkKind {
                    split: place.split,
                    pipeline: Some(place.pipeline),
                },
                None => ChunkKind {
                    split: 0,
                    pipeline: None,
                },
            };
            kinds.entry(kind).or_default().push(chunk);
        }

        // The key orders the chunks by split, then turn, then kind. So the kinds alternate in each
        // split.
        let mut turns = BTreeMap::new();
        for (kind, mut chunks) in kinds {
            let number = kind.pipeline.map_or(0, |pipeline| 1 + pipeline);
            let parts = [kind.split as i64, number as i64];
            let seed = self.config.seed;
            chunks.shuffle(&mut poolcast_base::seed::generator(
                seed,
                "interleaved order",
                &parts,
            ));
            for (turn, chunk) in chunks.into_iter().enumerate() {
                turns.insert((kind.split, turn, number), chunk);
            }
        }
        turns.into_values().collect()
    }
}

/// The configuration of one fit of `pipeline`, as it is written. `common` has the keys that all fits
/// share.
pub(super) fn fit_config(
    common: &Config,
    pipeline: &str,
    split: Option<String>,
    draw: PipelineDraw,
) -> Config {
    let constant = |(name, value)| (name, Parameter::Constant(value));
    let fixed = PipelineSpace {
        method: Method::Random,
        runs: 1,
        parameters: draw.parameters.into_iter().map(constant).collect(),
        init_points: Vec::new(),
    };
    let mut drawn = common.with_point(&draw.samples);
    drawn.pipelines = [(pipeline.to_owned(), fixed.into())].into();
    drawn.data.split_names = split.into_iter().collect();
    drawn
}

/// A trial of a pipeline: its split, its pipeline, and its index among the pipeline's draws. All
/// count from 0.
struct PipelineTrial {
    split: usize,
    pipeline: usize,
    draw: usize,
}

/// Chunks that alternate with other kinds of their split. The network, which has no pipeline, is
/// one more kind, before the others.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ChunkKind {
    split: usize,
    pipeline: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempts::PipelineTask;
    use crate::plan::hyper_parameters;
    use crate::search::SearchSpace;
    use serde_json::{Value, json};

    fn config(changes: &[(&'static str, Value)]) -> Result<Config> {
        let mut flags: BTreeMap<&str, Value> = changes.iter().cloned().collect();
        flags.insert(
            "pipelines.enet",
            json!({"runs": 3, "parameters": {"C": {"min": 0.1, "max": 1.0}, "scaler": "minmax"}}),
        );
        flags.insert(
            "pipelines.lasso",
            json!({"method": "grid", "parameters": {"C": {"values": [1, 2]}}}),
        );
        Config::load(None, &flags)
    }

    fn tables() -> Vec<(&'static str, Value)> {
        let splits = json!({"train_A": "a == 1", "validate_A": "a == 2", "B": "a == 3"});
        let words = [
            ("features", "f.csv"),
            ("metadata", "m.csv"),
            ("index", "i"),
            ("target", "t"),
        ];
        let mut all: Vec<(&'static str, Value)> =
            vec![("data.splits", splits), ("data.cv", json!(3))];
        all.extend(words.map(|(key, word)| {
            (
                Box::leak(format!("data.{key}").into_boxed_str()) as &str,
                json!(word),
            )
        }));
        all
    }

    /// The split, the pipeline and its parameter `C`, for each trial.
    fn all(config: &Config) -> Vec<(String, String, String)> {
        let trials = SweepTrials::from_config(config).expect("counted");
        let name = |trial| {
            let drawn = trials.draw(trial).expect("drawn");
            let task = PipelineTask::from_config(&drawn)
                .expect("read")
                .expect("a pipeline");
            (
                task.split.unwrap_or_default(),
                task.pipeline,
                hyper_parameters(&drawn)["C"].to_string(),
            )
        };
        (1..=trials.count()).map(name).collect()
    }

    #[test]
    fn each_split_tries_each_pipeline() {
        let found = all(&config(&tables()).expect("a configuration"));
        let names: Vec<String> = found
            .iter()
            .map(|(split, name, _)| format!("{split} {name}"))
            .collect();
        let of = |split: &str| {
            ["enet", "enet", "enet", "lasso", "lasso"].map(|name| format!("{split} {name}"))
        };
        assert_eq!(names, [of("A"), of("B")].concat());
        assert_eq!((&found[3].2[..], &found[4].2[..]), ("1", "2"));
        for at in 0..5 {
            assert_eq!(found[at].2, found[at + 5].2, "the same draws on each split");
        }
        assert_ne!(found[0].2, found[1].2);
    }

    #[test]
    fn drawn_trial_is_a_sweep_of_one_trial() {
        let whole = config(&tables()).expect("a configuration");
        let trial = SweepTrials::from_config(&whole)
            .expect("counted")
            .draw(7)
            .expect("drawn");
        let alone = SweepTrials::from_config(&trial).expect("counted");
        assert_eq!(alone.count(), 1);
        let again = alone.draw(1).expect("drawn");
        assert_eq!(
            serde_json::to_value(&again).expect("JSON"),
            serde_json::to_value(&trial).expect("JSON")
        );
    }

    #[test]
    fn sweeps_over_logs_have_network_and_pipeline_trials() {
        let changes = [
            ("runs", json!(2)),
            ("preprocessing.parameters.j", json!({"values": [5, 10]})),
        ];
        let config = config(&changes).expect("a configuration");
        let trials = SweepTrials::from_config(&config).expect("counted");
        assert_eq!(
            trials.count(),
            2 + 3 + 4,
            "and the grid has the samples' sizes, too"
        );
        let network = trials.draw(2).expect("drawn");
        assert!(
            network.pipelines.is_empty()
                && PipelineTask::from_config(&network).expect("read").is_none()
        );
        let trial = trials.draw(9).expect("drawn");
        assert_eq!(
            (
                trial.runs,
                SearchSpace::from_config(&trial).parameters().len()
            ),
            (0, 0)
        );
        assert_eq!(
            SweepTrials::from_config(&trial).expect("counted").count(),
            1
        );
        assert!(trials.draw(10).is_err());
    }

    #[test]
    fn numbers_of_an_extended_sweep_map_to_its_trials() {
        let rate = json!({"min": 0.0, "max": 1.0});
        let changes = [
            ("runs", json!(3)),
            ("training.parameters.learning_rate", rate),
        ];
        let config = config(&changes).expect("a configuration");
        let usual = SweepTrials::from_config(&config).expect("counted");
        assert_eq!(usual.count(), 3 + 3 + 2);
        let places = [1, 2, 4, 5, 7, 3, 6, 8];
        let numbers = TrialNumbers::new(&places, &[1, 2, 3, 4, 5]);
        let numbered = SweepTrials::from_config(&config).expect("counted");
        let numbered = numbered.with_numbers(&numbers).expect("numbered");
        for (place, trial) in places.into_iter().zip(1..) {
            let drawn = |trials: &SweepTrials, trial| {
                serde_json::to_value(trials.draw(trial).expect("drawn")).expect("JSON")
            };
            assert_eq!(drawn(&numbered, trial), drawn(&usual, place), "{trial}");
        }
        assert_eq!(numbered.network_trials().collect::<Vec<_>>(), [1, 2, 6]);
        let chunks = numbered.known_chunks();
        let mut open: Vec<usize> = chunks.iter().map(|chunk| chunk.first.trial).collect();
        open.sort_unstable();
        assert_eq!(open, [6, 7, 8]);
    }

    /// A configuration of tables with one split and only the pipelines `pipelines`.
    fn config_of_pipelines(pipelines: Value) -> Config {
        let mut flags: BTreeMap<&str, Value> = tables().into_iter().collect();
        flags.insert("data.split_names", json!(["A"]));
        flags.insert("pipelines", pipelines);
        Config::load(None, &flags).expect("a configuration")
    }

    fn drawn(trials: &SweepTrials) -> Vec<SearchPoint> {
        (1..=trials.count())
            .map(|trial| hyper_parameters(&trials.draw(trial).expect("drawn")))
            .collect()
    }

    #[test]
    fn listed_spaces_are_drawn_one_after_another() {
        let linear = json!({"method": "grid", "parameters": {"kernel": "linear", "C": {"values": [1, 2, 3]}}});
        let rbf = json!({
            "method": "grid",
            "parameters": {"kernel": "rbf", "C": {"values": [1, 2]}, "gamma": {"values": [0.1, 0.2]}},
        });
        let drawn_rbf = json!({"runs": 2, "parameters": {"C": {"min": 1.0, "max": 2.0}}});
        let trials = SweepTrials::from_config(&config_of_pipelines(
            json!({"svc": [linear, rbf, drawn_rbf]}),
        ))
        .expect("counted");
        let points = drawn(&trials);
        let of = |kernel: &str, c: i32| json!({"kernel": kernel, "C": c});
        assert_eq!(
            json!(points[..3]),
            json!([of("linear", 1), of("linear", 2), of("linear", 3)])
        );
        let gammas: Vec<(&Value, &Value)> = points[3..7]
            .iter()
            .map(|point| (&point["C"], &point["gamma"]))
            .collect();
        assert_eq!(
            json!(gammas),
            json!([[1, 0.1], [1, 0.2], [2, 0.1], [2, 0.2]]),
            "the last by name varies fastest"
        );
        assert_eq!((points.len(), trials.repeats()), (9, 0));
        // A later space in the list does not change the draws of earlier ones.
        let longer = json!({"svc": [linear, rbf, drawn_rbf, drawn_rbf]});
        let longer =
            drawn(&SweepTrials::from_config(&config_of_pipelines(longer)).expect("counted"));
        assert_eq!(longer[..9], points[..]);
        assert_ne!(
            longer[9]["C"], points[7]["C"],
            "equal spaces are drawn apart"
        );
    }

    #[test]
    fn lists_of_spaces_round_trip() {
        let space = json!({"method": "grid", "runs": 1, "parameters": {"C": {"values": [1, 2]}}});
        for written in [json!({"lasso": space}), json!({"lasso": [space, space]})] {
            assert_eq!(
                serde_json::to_value(config_of_pipelines(written.clone()).pipelines).expect("JSON"),
                written
            );
        }
    }

    #[test]
    fn equal_points_are_one_trial() {
        let product = json!({"svc": {
            "method": "grid",
            "parameters": {"kernel": {"values": ["linear", "rbf"]}, "gamma": {"values": [0.1, 0.2, 0.3]}, "C": 1},
        }});
        let sum = json!({"svc": [
            {"method": "grid", "parameters": {"kernel": {"values": ["linear"]}}},
            {"method": "grid", "parameters": {"gamma": {"values": [0.1, 0.2, 0.3]}}},
            {"method": "grid", "parameters": {"kernel": {"values": ["linear", "rbf"]}, "gamma": 0.2}},
        ]});
        let (product, sum) = [product, sum]
            .map(|space| SweepTrials::from_config(&config_of_pipelines(space)).expect("counted"))
            .into();
        assert_eq!(
            (product.count(), product.repeats()),
            (4, 2),
            "a linear kernel has no gamma"
        );
        assert_eq!((sum.count(), sum.repeats()), (4, 2));
        let gammas: Vec<Value> = drawn(&product)
            .iter()
            .map(|point| point["gamma"].clone())
            .collect();
        assert_eq!(
            json!(gammas),
            json!([0.1, 0.1, 0.2, 0.3]),
            "the first of equals stays"
        );
    }

    #[test]
    fn chunks_have_one_pipeline_and_split_and_are_numerous() {
        let mut flags: BTreeMap<&str, Value> = tables().into_iter().collect();
        let values = |count: usize| json!({"values": (1..=count).map(|at| at as f64 / 8.0).collect::<Vec<_>>()});
        let grid = |count| json!({"method": "grid", "parameters": {"C": values(count)}});
        flags.insert("pipelines", json!({"lasso": grid(1500), "enet": grid(700)}));
        for (cap, size) in [(json!(null), 4), (json!(999), 1), (json!(2100), 2)] {
            flags.insert("wandb.sweep.run_cap", cap);
            let trials =
                SweepTrials::from_config(&Config::load(None, &flags).expect("a configuration"))
                    .expect("counted");
            let chunks = trials.pipeline_chunks();
            let all: Vec<usize> = chunks
                .iter()
                .flat_map(|chunk| chunk.items())
                .map(|item| item.trial)
                .collect();
            assert_eq!(all, (1..=trials.count()).collect::<Vec<usize>>());
            assert!(chunks.len() >= 999 && chunks.iter().all(|chunk| chunk.count <= size));
            for chunk in chunks {
                let place = |item: WorkItem| {
                    trials
                        .pipeline_trial(item.trial)
                        .map(|place| (place.split, place.pipeline))
                };
                assert!(chunk.items().all(|item| place(item) == place(chunk.first)));
            }
        }
    }

    #[test]
    fn interleaved_order_alternates_pipelines_within_each_split() {
        let mut flags: BTreeMap<&str, Value> = tables().into_iter().collect();
        let grid =
            |values: Value| json!({"method": "grid", "parameters": {"C": {"values": values}}});
        flags.insert(
            "pipelines",
            json!({"lasso": grid(json!([1, 2, 3, 4, 5])), "enet": grid(json!([1, 2]))}),
        );
        let begun = |order: &str| {
            flags.insert("trial_order", json!(order));
            let trials =
                SweepTrials::from_config(&Config::load(None, &flags).expect("a configuration"))
                    .expect("counted");
            let task = |chunk: &TrialChunk| {
                PipelineTask::from_config(&trials.draw(chunk.first.trial).expect("drawn"))
            };
            let arranged = trials.in_order(trials.pipeline_chunks());
            let tasks = arranged
                .iter()
                .map(|chunk| task(chunk).expect("read").expect("a pipeline"));
            let names: Vec<String> = tasks
                .map(|task| format!("{} {}", task.split.unwrap_or_default(), task.pipeline))
                .collect();
            (
                arranged
                    .into_iter()
                    .map(|chunk| chunk.first.trial)
                    .collect::<Vec<usize>>(),
                names,
            )
        };
        let mut begun = begun;
        let (trials, names) = begun("interleaved");
        let of = |split: &str| {
            ["enet", "lasso", "enet", "lasso", "lasso", "lasso", "lasso"]
                .map(|name| format!("{split} {name}"))
        };
        assert_eq!(names, [of("A"), of("B")].concat());
        let sorted = |trials: &[usize]| {
            trials
                .iter()
                .copied()
                .collect::<std::collections::BTreeSet<usize>>()
        };
        assert_eq!(sorted(&trials), (1..=14).collect());
        assert_ne!(
            trials
                .iter()
                .filter(|trial| (3..8).contains(*trial))
                .collect::<Vec<_>>(),
            [&3, &4, &5, &6, &7]
        );
        let (shuffled, _) = begun("shuffled");
        assert!(sorted(&shuffled) == sorted(&trials) && shuffled != trials);
    }

    #[test]
    fn what_cannot_be_tried_is_refused() {
        let refusal = |changes: &[(&'static str, Value)]| {
            let mut all = tables();
            all.extend(changes.iter().cloned());
            let refused = config(&all).and_then(|config| SweepTrials::from_config(&config));
            poolcast_base::error::render(&refused.expect_err("must be refused"))
        };
        insta::assert_snapshot!(
            [
                refusal(&[("data.split_names", json!(["A", "b"]))]),
                refusal(&[
                    ("data.split_names", json!(["B"])),
                    ("data.validate", json!(true))
                ]),
                refusal(&[("data.cv", Value::Null)]),
                refusal(&[("data.cv", json!(1))]),
                refusal(&[("data.target", Value::Null)]),
                refusal(&[("pipelines.rf", json!({"parameters": {"trees": 5}}))]),
                refusal(&[("pipelines.forest", json!({}))]),
                refusal(&[("pipelines.rf", json!({"method": "bayes"}))]),
                refusal(&[(
                    "pipelines.rf",
                    json!({"method": "grid", "parameters": {"C": {"min": 1, "max": 1_000_000_000}}})
                )]),
                refusal(&[(
                    "pipelines.rf",
                    json!({"parameters": {"C": {"min": 2, "max": 1}}})
                )]),
                refusal(&[(
                    "pipelines.rf",
                    json!({"method": "grid", "parameters": {"max_depth": {"min": 0.5, "max": 1.0}}})
                )]),
                refusal(&[("pipelines.rf", json!([]))]),
                refusal(&[("pipelines.rf", json!(5))]),
                refusal(&[("pipelines.rf", json!([{}, {"parametrs": {}}]))]),
                refusal(&[(
                    "pipelines.rf",
                    json!([{}, {"parameters": {"max_depth": 0.5}}])
                )]),
            ]
            .join("\n")
        );
    }
}
