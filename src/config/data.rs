//! `data` as it is written → tables of the user's own, and how trials on them are judged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::nearest;
use super::range::check_range;
use poolcast_base::error::hinted;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct DataConfig {
    pub features: Option<PathBuf>,
    pub metadata: Option<PathBuf>,
    pub index: Option<String>,
    pub target: Option<String>,
    #[serde(default)]
    pub task: PredictionTask,
    #[serde(default)]
    pub quantile: Option<f64>,
    pub group: Option<String>,
    pub time: Option<String>,
    pub splits: BTreeMap<String, String>,
    pub split_names: Vec<String>,
    pub cv: Option<usize>,
    pub folds: Folds,
    pub validate: bool,
}

/// What is predicted of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PredictionTask {
    /// The probability of each class.
    #[default]
    Classification,
    /// A number.
    Regression,
}

/// The one split of tables for which none is named: all rows.
pub const WHOLE: &str = "all";

/// What the name of a split begins with on which models are scored besides.
pub const EVALUATE: &str = "evaluate_";

/// How rows are divided for cross-validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Folds {
    /// The classes in equal shares; whole groups, where there are any.
    Stratified,
    /// Each group once.
    LeaveOneGroupOut,
    /// Learned from the past, tested on what followed.
    Time,
}

/// A cross-validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrossValidation {
    /// How many folds; one for each group where groups are left out.
    pub k: usize,
    /// Which rows go into each.
    pub folds: Folds,
}

impl DataConfig {
    /// Whether there are tables.
    pub fn is_given(&self) -> bool {
        self.features.is_some()
    }

    /// The cross-validation, if one is asked for.
    pub fn cross_validation(&self) -> Option<CrossValidation> {
        self.cv.map(|k| CrossValidation {
            k,
            folds: self.folds,
        })
    }

    fn check_task(&self) -> Result<()> {
        let is_regression = self.task == PredictionTask::Regression;
        ensure!(
            self.is_given() || !is_regression,
            hinted(
                "`data.task: regression` is for tables, and `data` names none",
                "of logs the outcomes of holds are predicted; leave it out"
            )
        );
        let Some(quantile) = self.quantile else {
            return Ok(());
        };
        ensure!(
            is_regression,
            hinted(
                "`data.quantile` is a quantile of numbers, and classes are predicted",
                "add `task: regression` to `data`"
            )
        );
        check_range("data.quantile", quantile, 0.001..=0.999)
    }

    pub(super) fn check(&self) -> Result<()> {
        self.check_task()?;
        if let Some(k) = self.cv {
            check_range("data.cv", k as f64, 2.0..=1000.0)?;
        }
        let wanted = [
            ("metadata", self.metadata.is_some()),
            ("index", self.index.is_some()),
            ("target", self.target.is_some()),
            // Without any, all rows are one split, which folds divide.
            (
                "splits",
                !self.splits.is_empty() || self.is_given() && self.cv.is_some() && !self.validate,
            ),
        ];
        if !self.is_given() {
            let alone = wanted.iter().find(|(_, is_given)| *is_given);
            ensure!(
                alone.is_none(),
                "`data.{}` is given, and no `data.features`",
                alone.map_or("", |(key, _)| key)
            );
            ensure!(
                self.cv.is_none() && !self.validate && self.split_names.is_empty(),
                hinted(
                    "`--cv`, `--validate` and `--split-names` are for tables, and `data` names none",
                    "samples of logs are divided by `preprocessing.split`, and trials judged on the validation side"
                )
            );
            return Ok(());
        }
        let missing = wanted.iter().find(|(_, is_given)| !is_given);
        ensure!(
            missing.is_none(),
            hinted(
                format!(
                    "`data.features` is given, and no `data.{}`",
                    missing.map_or("", |(key, _)| key)
                ),
                "`poolcast config` explains every key; without `splits`, judge by `--cv` alone"
            )
        );
        ensure!(
            self.cv.is_some() || self.validate,
            hinted(
                "trials have nothing to be judged by",
                "add `--cv`, `--validate` or both"
            )
        );
        self.chosen().map(drop)
    }

    /// The names of the splits that are tried. `A1` is a split of that name, or `train_A1` and
    /// `validate_A1` together.
    ///
    /// # Errors
    /// Fails for a name that is no split, or with `validate` not both, and names the nearest.
    pub fn chosen(&self) -> Result<Vec<String>> {
        let pair = |name: &str| [format!("train_{name}"), format!("validate_{name}")];
        let is_there = |name: &str| {
            let sides = pair(name).map(|side| self.splits.contains_key(&side));
            sides == [true, true] || !self.validate && (sides[0] || self.splits.contains_key(name))
        };
        if self.splits.is_empty()
            && !self.validate
            && self.split_names.iter().all(|name| name == WHOLE)
        {
            return Ok(vec![WHOLE.to_owned()]);
        }
        let known: Vec<String> = self
            .learned_from()
            .into_iter()
            .filter(|name| is_there(name))
            .collect();
        let need = if self.validate {
            "`train_NAME` and `validate_NAME` in `data.splits`"
        } else {
            "`data.splits`"
        };
        if self.split_names.is_empty() {
            ensure!(!known.is_empty(), "there is no pair of {need}");
            return Ok(known);
        }
        for name in &self.split_names {
            if !is_there(name) {
                let hint = match nearest(name, known.iter().map(String::as_str)) {
                    Some(nearest) => format!("did you mean `{nearest}`?"),
                    None => format!("name it in {need}"),
                };
                bail!(hinted(
                    format!("there is no split `{name}`: it needs {need}"),
                    hint
                ));
            }
        }
        Ok(self.split_names.clone())
    }

    /// The names of all splits that something can learn from, each once, by alphabet.
    fn learned_from(&self) -> Vec<String> {
        let names = self
            .splits
            .keys()
            .filter(|name| !name.starts_with("validate_") && !name.starts_with(EVALUATE));
        let names = names.map(|name| name.strip_prefix("train_").unwrap_or(name).to_owned());
        names.collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// The further splits that models of `split` are scored on: `NAME` for `evaluate_NAME`. One
    /// that is called after a split, as `evaluate_A1` or `evaluate_A1_Spain`, is that split's
    /// alone; any other is everyone's.
    pub fn evaluated(&self, split: &str) -> Vec<&str> {
        let is_of = |name: &str, split: &str| {
            name.strip_prefix(split)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        let learned_from = self.learned_from();
        let is_wanted = |name: &&str| {
            is_of(name, split) || !learned_from.iter().any(|other| is_of(name, other))
        };
        self.splits
            .keys()
            .filter_map(|key| key.strip_prefix(EVALUATE))
            .filter(is_wanted)
            .collect()
    }
}
