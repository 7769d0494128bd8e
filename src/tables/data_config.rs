//! The section `data`: tables of the user, and the splits and folds by which trials on them are
//! scored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};

use poolcast_base::error::hinted;
use poolcast_config::{PredictionTask, check_range, nearest};

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

/// Name of the only split of tables without named splits: all rows.
pub const WHOLE: &str = "all";

/// Name prefix of additional splits, on which models are scored after training.
pub const EVALUATE: &str = "evaluate_";

/// How rows are divided into folds for cross-validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Folds {
    /// Each fold has an equal share of each class. Groups, if there are any, stay whole.
    Stratified,
    /// Each group is one fold.
    LeaveOneGroupOut,
    /// Each fold is tested on rows that are later than its training rows.
    Time,
}

/// Settings of a cross-validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrossValidation {
    /// Number of folds. [`Folds::LeaveOneGroupOut`] has one fold per group instead.
    pub k: usize,
    /// Rule by which rows are assigned to folds.
    pub folds: Folds,
}

impl DataConfig {
    /// Returns true if the configuration names tables.
    pub fn is_given(&self) -> bool {
        self.features.is_some()
    }

    /// Returns the settings of the cross-validation; `None` if the user wants none.
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
                "`data.task: regression` needs tables, but `data` names none",
                "remove it: for logs, poolcast predicts the outcomes of holds"
            )
        );
        let Some(quantile) = self.quantile else {
            return Ok(());
        };
        ensure!(
            is_regression,
            hinted(
                "`data.quantile` needs numbers to predict, but the task is classification",
                "add `task: regression` to `data`"
            )
        );
        check_range("data.quantile", quantile, 0.001..=0.999)
    }

    /// Rejects keys that contradict each other, and values out of range.
    pub fn check(&self) -> Result<()> {
        self.check_task()?;
        if let Some(k) = self.cv {
            check_range("data.cv", k as f64, 2.0..=1000.0)?;
        }
        let wanted = [
            ("metadata", self.metadata.is_some()),
            ("index", self.index.is_some()),
            ("target", self.target.is_some()),
            // Without splits, all rows are one split, which cross-validation divides into folds.
            (
                "splits",
                !self.splits.is_empty() || self.is_given() && self.cv.is_some() && !self.validate,
            ),
        ];
        if !self.is_given() {
            let alone = wanted.iter().find(|(_, is_given)| *is_given);
            ensure!(
                alone.is_none(),
                "`data.{}` is given, but `data.features` is missing",
                alone.map_or("", |(key, _)| key)
            );
            ensure!(
                self.cv.is_none() && !self.validate && self.split_names.is_empty(),
                hinted(
                    "`--cv`, `--validate` and `--split-names` need tables, but `data` names none",
                    "for logs, `preprocessing.split` divides the samples, and the validation split scores the trials"
                )
            );
            return Ok(());
        }
        let missing = wanted.iter().find(|(_, is_given)| !is_given);
        ensure!(
            missing.is_none(),
            hinted(
                format!(
                    "`data.features` is given, but `data.{}` is missing",
                    missing.map_or("", |(key, _)| key)
                ),
                "`poolcast config` explains every key; without `splits`, use `--cv` alone"
            )
        );
        ensure!(
            self.cv.is_some() || self.validate,
            hinted(
                "trials cannot be scored without folds or validation rows",
                "add `--cv`, `--validate` or both"
            )
        );
        self.chosen().map(drop)
    }

    /// Returns the names of the splits to try. `A1` is a split of that name, or the pair `train_A1`
    /// and `validate_A1`.
    ///
    /// # Errors
    /// Fails for a name that is not a split, and names the nearest one. With `validate`, both
    /// splits of the pair must exist.
    pub fn chosen(&self) -> Result<Vec<String>> {
        let pair = |name: &str| [format!("train_{name}"), format!("validate_{name}")];
        let is_there = |name: &str| {
            let parts = pair(name).map(|part| self.splits.contains_key(&part));
            parts == [true, true] || !self.validate && (parts[0] || self.splits.contains_key(name))
        };
        if self.splits.is_empty()
            && !self.validate
            && self.split_names.iter().all(|name| name == WHOLE)
        {
            return Ok(vec![WHOLE.to_owned()]);
        }
        // Names that a user may choose: candidates for the hint, and the default if `split_names`
        // is empty.
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
            ensure!(!known.is_empty(), "there is no split: add {need}");
            return Ok(known);
        }
        for name in &self.split_names {
            if !is_there(name) {
                let hint = match nearest(name, known.iter().map(String::as_str)) {
                    Some(nearest) => format!("did you mean `{nearest}`?"),
                    None => format!("add {need}"),
                };
                bail!(hinted(
                    format!("there is no split `{name}`: it needs {need}"),
                    hint
                ));
            }
        }
        Ok(self.split_names.clone())
    }

    /// Returns the names of all splits that models can be trained on: each once, in alphabetical
    /// order.
    fn learned_from(&self) -> Vec<String> {
        let names = self
            .splits
            .keys()
            .filter(|name| !name.starts_with("validate_") && !name.starts_with(EVALUATE));
        let names = names.map(|name| name.strip_prefix("train_").unwrap_or(name).to_owned());
        names.collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// Returns the additional splits on which models of `split` are scored: `NAME` for
    /// `evaluate_NAME`. A split that is named after another, such as `evaluate_A1` or
    /// `evaluate_A1_Spain`, is used for models of `A1` only. All others are used for the models of
    /// every split.
    pub fn evaluated(&self, split: &str) -> Vec<&str> {
        // `A1_Spain` belongs to `A1`, but `A12` does not.
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
