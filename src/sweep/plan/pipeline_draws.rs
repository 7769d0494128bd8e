//! The draws of each trial of a pipeline from its search spaces: all draws of one space, then all
//! of the next, without duplicates.

use std::collections::{BTreeMap, HashSet};

use anyhow::{Context as _, Result, ensure};
use twox_hash::XxHash3_128;

use crate::config::{
    Config, MAX_TRIALS, Method, PipelineSpace, drawn_and_constants, drawn_under, read_init_points,
};
use crate::search::{Sampler, SearchPoint, SearchSpace, grid_point_count};
use poolcast_base::error::hinted;
use poolcast_base::parallel::map_items;
use poolcast_config::{Distribution, Goal, Parameter};
use poolcast_pipelines::{check_for_numbers, effective_hyper_parameters};
use poolcast_tables::NumberLoss;

/// The trials of one pipeline. They are the same on each split, so that splits can be compared.
#[derive(Debug)]
pub(crate) struct PipelineDraws {
    pub(crate) pipeline: String,
    seed: u64,
    spaces: Vec<PipelineSubspace>,
    /// The space of each trial (from 0), and its draw in this space (from 1).
    distinct: Vec<(u32, u32)>,
    /// Number of draws that repeat an earlier one, and are not trials.
    pub(crate) repeats: usize,
}

/// The parameters that a trial draws.
#[derive(Debug)]
pub(crate) struct PipelineDraw {
    /// Every hyper-parameter that the search space names and whose condition holds.
    pub(crate) parameters: SearchPoint,
    /// The sizes of the samples of logs.
    pub(crate) samples: SearchPoint,
}

/// One search space of a pipeline.
#[derive(Debug)]
struct PipelineSubspace {
    written: PipelineSpace,
    /// The prefix of its own hyper-parameters in `space`, such as `lasso.` in `lasso.C`.
    prefix: String,
    space: SearchSpace,
    /// Number of draws.
    count: u64,
}

impl PipelineDraws {
    /// Finds the draws of `pipeline` in `config`.
    ///
    /// # Errors
    /// Fails for hyper-parameters that the pipeline cannot have, and for a pipeline that cannot
    /// predict the target. Also fails for a grid that cannot be made.
    pub(crate) fn from_config(config: &Config, pipeline: &str) -> Result<PipelineDraws> {
        let spaces = config.pipelines[pipeline].all();
        if let Some(loss) = NumberLoss::from_task(&config.data) {
            let named = spaces.iter().flat_map(|space| space.parameters.keys());
            check_for_numbers(pipeline, named.map(String::as_str), loss)?;
        }
        let read = |(at, written)| {
            let of_list = || {
                if spaces.len() > 1 {
                    format!("space {} of ", at + 1)
                } else {
                    String::new()
                }
            };
            PipelineSubspace::from_config(config, pipeline, at, written)
                .with_context(|| format!("cannot use {}`pipelines.{pipeline}`", of_list()))
        };
        let spaces: Vec<PipelineSubspace> =
            spaces.iter().enumerate().map(read).collect::<Result<_>>()?;
        let all: u64 = spaces.iter().map(|space| space.count).sum();
        ensure!(all <= MAX_TRIALS, too_many_points_error(pipeline, all));
        let mut draws = PipelineDraws {
            pipeline: pipeline.to_owned(),
            seed: config.seed,
            spaces,
            distinct: Vec::new(),
            repeats: 0,
        };
        draws.distinct = draws
            .distinct()
            .with_context(|| format!("cannot use `pipelines.{pipeline}`"))?;
        draws.repeats = all as usize - draws.distinct.len();
        Ok(draws)
    }

    /// The number of trials.
    pub(crate) fn len(&self) -> usize {
        self.distinct.len()
    }

    /// The draw of the trial with the index `place`, from 0.
    pub(crate) fn get(&self, place: usize) -> Result<PipelineDraw> {
        let (space, number) = self.distinct[place];
        self.spaces[space as usize].draw(self.seed, number as usize)
    }

    /// Finds the draws that differ from all earlier ones in parameters with an effect.
    fn distinct(&self) -> Result<Vec<(u32, u32)>> {
        let places = |(at, space): (usize, &PipelineSubspace)| {
            (1..=space.count as u32).map(move |number| (at as u32, number))
        };
        let all: Vec<(u32, u32)> = self.spaces.iter().enumerate().flat_map(places).collect();
        let digest = |(at, number): &(u32, u32)| -> Result<u128> {
            let drawn = self.spaces[*at as usize].draw(self.seed, *number as usize)?;
            let effective = effective_hyper_parameters(&self.pipeline, &drawn.parameters)?;
            Ok(XxHash3_128::oneshot(&serde_json::to_vec(&(
                effective,
                drawn.samples,
            ))?))
        };
        let digests: Vec<Result<u128>> = map_items(&all, digest);
        // The set of digests needs much less memory than a set of all draws.
        let mut known = HashSet::with_capacity(all.len());
        let mut distinct = Vec::new();
        for (place, digest) in all.into_iter().zip(digests) {
            if known.insert(digest?) {
                distinct.push(place);
            }
        }
        Ok(distinct)
    }
}

impl PipelineSubspace {
    /// Makes the space with the index `at` of `pipeline`.
    fn from_config(
        config: &Config,
        pipeline: &str,
        at: usize,
        written: &PipelineSpace,
    ) -> Result<PipelineSubspace> {
        // Hyper-parameters with the same name in two spaces are drawn independently.
        let prefix = if at == 0 {
            format!("{pipeline}.")
        } else {
            format!("{pipeline}.{at}.")
        };
        let space = pipeline_space(config, &prefix, written)?;
        let count = match written.method {
            Method::Grid => grid_point_count(&space)?,
            _ => written.runs as u64,
        };
        ensure!(count <= MAX_TRIALS, too_many_points_error(pipeline, count));
        Ok(PipelineSubspace {
            written: written.clone(),
            prefix,
            space,
            count,
        })
    }

    fn draw(&self, seed: u64, number: usize) -> Result<PipelineDraw> {
        let sampler = Sampler {
            space: &self.space,
            method: self.written.method,
            // Trials of pipelines do not learn from other trials, so the goal has no effect.
            goal: Goal::Minimize,
            seed,
        };
        let mut samples = sampler.suggest(number, &[])?;
        let own = self
            .written
            .parameters
            .iter()
            .filter_map(|(key, parameter)| {
                let value = match parameter {
                    Parameter::Constant(value) => value.clone(),
                    // A parameter whose condition does not hold has no value.
                    Parameter::Drawn(_) => samples.remove(&format!("{}{key}", self.prefix))?,
                };
                Some((key.clone(), value))
            });
        Ok(PipelineDraw {
            parameters: own.collect(),
            samples,
        })
    }
}

/// The distributions that trials draw from: the hyper-parameters of the space `written`, and on
/// samples of logs also the sizes of the samples.
///
/// # Errors
/// Fails for points to try first that are outside of the space.
fn pipeline_space(config: &Config, prefix: &str, written: &PipelineSpace) -> Result<SearchSpace> {
    let mut drawn = BTreeMap::new();
    let mut by_short_name = BTreeMap::new();
    let mut full_names = BTreeMap::new();
    let mut add = |name: &str, full_name: String, distribution: &Distribution| {
        drawn.insert(full_name.clone(), distribution.clone());
        by_short_name.insert(name.to_owned(), distribution.clone());
        full_names.insert(name.to_owned(), full_name);
    };
    if !config.data.is_given() {
        for (name, distribution) in config.preprocessing.parameters.drawn() {
            add(&name, name.to_string(), distribution);
        }
    }
    let named = written.parameters.iter();
    let named = named.map(|(name, parameter)| (name.as_str(), parameter));
    let (own, constants) = drawn_and_constants(named);
    for (name, distribution) in drawn_under(own, &constants) {
        add(&name, format!("{prefix}{name}"), &distribution);
    }

    let points = read_init_points("init_points", &written.init_points, &by_short_name)?;
    let points = points.into_iter().map(|point| {
        let values = point.into_iter();
        values
            .map(|(name, value)| (full_names[&name].clone(), value))
            .collect()
    });
    Ok(SearchSpace::with_prefix(drawn, prefix).with_first_points(points.collect()))
}

fn too_many_points_error(pipeline: &str, points: u64) -> poolcast_base::error::HintedError {
    hinted(
        format!("`pipelines.{pipeline}` has {points} points, expected at most {MAX_TRIALS}"),
        "give it a list of spaces, so that a parameter which only one choice uses does not multiply the points of the \
         others; or draw fewer values, or try some of them with `method: random`",
    )
}
