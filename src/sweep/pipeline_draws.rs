//! The search spaces of a pipeline → what each of its trials draws: all of one space, then all of
//! the next, and nothing twice.

use std::collections::{BTreeMap, HashSet};

use anyhow::{Context as _, Result, ensure};
use rayon::prelude::*;
use twox_hash::XxHash3_128;

use poolcast_config::{Config, Goal, MOST_TRIALS, Method, Parameter, PipelineSpace, PredictionTask};
use poolcast_base::error::hinted;
use poolcast_pipelines::{check_for_numbers, effective_hyper_parameters};
use crate::search::{Sampler, SearchPoint, SearchSpace, grid_point_count};

/// The trials of one pipeline, the same on each split, so that splits can be compared.
#[derive(Debug)]
pub(super) struct PipelineDraws {
    pub(super) pipeline: String,
    seed: u64,
    spaces: Vec<PipelineSubspace>,
    /// The space of each trial, and which of its draws it is, from 1.
    distinct: Vec<(u32, u32)>,
    /// How many draws repeat an earlier one, and are no trials.
    pub(super) repeats: usize,
}

/// What a trial draws.
#[derive(Debug)]
pub(super) struct PipelineDraw {
    /// Every hyper-parameter that the search space names.
    pub(super) parameters: SearchPoint,
    /// The sizes of the samples of logs.
    pub(super) samples: SearchPoint,
}

/// One search space of a pipeline.
#[derive(Debug)]
struct PipelineSubspace {
    written: PipelineSpace,
    /// What the names of its own hyper-parameters begin with in `space`: `lasso.C`.
    prefix: String,
    space: SearchSpace,
    /// How many it draws.
    count: u64,
}

impl PipelineDraws {
    /// Those of `pipeline` in `config`.
    ///
    /// # Errors
    /// Fails for hyper-parameters that the pipeline cannot have, for one that cannot predict what is
    /// to be predicted, and for a grid that cannot be made.
    pub(super) fn from_config(config: &Config, pipeline: &str) -> Result<PipelineDraws> {
        if config.data.task == PredictionTask::Regression {
            check_for_numbers(pipeline)?;
        }
        let spaces = config.pipelines[pipeline].all();
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
        ensure!(all <= MOST_TRIALS, too_many(pipeline, all));
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

    /// How many trials there are.
    pub(super) fn len(&self) -> usize {
        self.distinct.len()
    }

    /// What the trial at `place` draws, from 0.
    pub(super) fn get(&self, place: usize) -> Result<PipelineDraw> {
        let (space, number) = self.distinct[place];
        self.spaces[space as usize].draw(self.seed, number as usize)
    }

    /// The draws that differ from all before them in what has an effect.
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
        let digests: Vec<Result<u128>> = all.par_iter().map(digest).collect();
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
    /// The space at place `at` of those of `pipeline`.
    fn from_config(
        config: &Config,
        pipeline: &str,
        at: usize,
        written: &PipelineSpace,
    ) -> Result<PipelineSubspace> {
        // Hyper-parameters of one name in two spaces are drawn apart.
        let prefix = if at == 0 {
            format!("{pipeline}.")
        } else {
            format!("{pipeline}.{at}.")
        };
        let space = pipeline_space(config, &prefix, written);
        let count = match written.method {
            Method::Grid => grid_point_count(&space)?,
            _ => written.runs as u64,
        };
        ensure!(count <= MOST_TRIALS, too_many(pipeline, count));
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
            // Trials of pipelines learn from no other trial, so that a goal changes nothing.
            goal: Goal::Minimize,
            seed,
        };
        let mut samples = sampler.suggest(number, &[])?;
        let own = self.written.parameters.iter().map(|(key, parameter)| {
            let value = match parameter {
                Parameter::Constant(value) => value.clone(),
                Parameter::Drawn(_) => samples
                    .remove(&format!("{}{key}", self.prefix))
                    .unwrap_or_default(),
            };
            (key.clone(), value)
        });
        Ok(PipelineDraw {
            parameters: own.collect(),
            samples,
        })
    }
}

/// What trials draw from: the hyper-parameters of the space `written`, and on samples of logs those
/// of the samples.
fn pipeline_space(config: &Config, prefix: &str, written: &PipelineSpace) -> SearchSpace {
    let mut drawn = BTreeMap::new();
    for (name, parameter) in &written.parameters {
        if let Parameter::Drawn(distribution) = parameter {
            drawn.insert(format!("{prefix}{name}"), distribution.clone());
        }
    }
    if !config.data.is_given() {
        for (name, distribution) in config.preprocessing.parameters.drawn() {
            drawn.insert(name.to_owned(), distribution.clone());
        }
    }
    SearchSpace::new(drawn)
}

fn too_many(pipeline: &str, points: u64) -> poolcast_base::error::HintedError {
    hinted(
        format!(
            "`pipelines.{pipeline}` has {points} points, and a sweep at most {MOST_TRIALS} trials"
        ),
        "give it a list of spaces, so that what one choice alone needs multiplies nothing else; or draw fewer values, or try \
         some of them with `method: random`",
    )
}
