//! The section `wandb.sweep`: how a sweep draws its trials, and which trials it stops early.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::init_points::{InitPoints, check_no_grid};
use poolcast_base::error::hinted;
use poolcast_config::{SweepMetrics, check_range};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct SweepConfig {
    pub name: String,
    #[serde(default)]
    pub id: Option<String>,
    pub method: Method,
    pub metric: SweepMetrics,
    pub run_cap: Option<usize>,
    pub early_terminate: Option<EarlyTerminate>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deterministic: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials_per_round: Option<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub init_points: InitPoints,
}

/// The method by which a sweep draws its trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Every combination of values; the last parameter by name varies fastest.
    Grid,
    /// Each trial is drawn independently, from the seed.
    Random,
    /// Scrambled Sobol points: random, but spread more evenly.
    Sobol,
    /// Bayesian optimization: points at which an improvement over previous trials is likely.
    Bayes,
}

/// The rule by which trials stop before their last epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum EarlyTerminate {
    /// Stops trials that are worse than others at a band of epochs, like W&B's hyperband.
    Hyperband(Hyperband),
    /// Pauses every trial at each rung, and continues only those that are promoted: the best of the
    /// rung.
    Asha(Asha),
}

/// Settings of W&B's hyperband: either `min_iter`, or `max_iter` with `s`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hyperband {
    /// First band, in epochs. Each further band is `eta` times the previous one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_iter: Option<usize>,
    /// Maximum epochs, from which the `s` bands are counted back: each band is `1 / eta` of the
    /// next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iter: Option<usize>,
    /// Number of bands below `max_iter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub s: Option<usize>,
    /// At each band, the best `1 / eta` of the trials continue.
    #[serde(default = "default_eta")]
    pub eta: f64,
    /// If true, a trial is judged by its value at the band, not by its best value so far.
    #[serde(default = "default_strict")]
    pub strict: bool,
}

/// Settings of asynchronous successive halving.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asha {
    /// Epochs of the first rung. Each further rung has `eta` times as many, and the last one has
    /// all.
    pub min_iter: usize,
    /// The best `1 / eta` of the trials of a rung are promoted.
    #[serde(default = "default_eta")]
    pub eta: f64,
}

fn default_eta() -> f64 {
    3.0
}

fn default_strict() -> bool {
    true
}

/// A sweep on W&B that provides the points of this sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenSweep<'a> {
    /// W&B's name of the user or team.
    pub entity: &'a str,
    /// W&B's name of the project.
    pub project: &'a str,
    /// W&B's id of the sweep.
    pub sweep: &'a str,
}

impl SweepConfig {
    /// Returns the sweep on W&B that provides the points; `None` if there is none, or its id is
    /// malformed.
    pub fn given(&self) -> Option<GivenSweep<'_>> {
        let mut parts = self.id.as_deref()?.split('/');
        let given = GivenSweep {
            entity: parts.next()?,
            project: parts.next()?,
            sweep: parts.next()?,
        };
        parts.next().is_none().then_some(given)
    }

    /// Returns true if the trials of a network or a program are proposed during the sweep. Otherwise
    /// all of them are known from the start.
    pub(crate) fn proposes_trials(&self) -> bool {
        self.learns_from_earlier() || self.asha().is_some()
    }

    /// Returns true if a trial's parameters or its end depend on other trials.
    pub(crate) fn learns_from_earlier(&self) -> bool {
        self.method == Method::Bayes || self.compares_trials()
    }

    /// Returns true if the end of a trial depends on other trials.
    pub(crate) fn compares_trials(&self) -> bool {
        matches!(self.early_terminate, Some(EarlyTerminate::Hyperband(_)))
    }

    /// The settings of `asha`, if trials may be promoted from rung to rung.
    pub(crate) fn asha(&self) -> Option<&Asha> {
        match &self.early_terminate {
            Some(EarlyTerminate::Asha(asha)) => Some(asha),
            _ => None,
        }
    }

    /// Checks that `id`, if it is set, can name a sweep on W&B, and that no conflicting key is set.
    fn check_id(&self) -> Result<()> {
        let Some(id) = &self.id else {
            return Ok(());
        };
        let is_name = |part: &str| {
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_. ".contains(letter);
            (1..=128).contains(&part.len()) && !part.starts_with('.') && part.chars().all(is_plain)
        };
        let given = self.given();
        let is_known = given.is_some_and(|given| {
            let parts = [given.entity, given.project, given.sweep];
            parts.into_iter().all(is_name)
        });
        ensure!(
            is_known,
            hinted(
                format!(
                    "`wandb.sweep.id` must be ENTITY/PROJECT/ID, got `{}`",
                    poolcast_base::escape::value(id)
                ),
                "copy them from the address of the sweep's page, such as team/held-jobs/abcd1234"
            )
        );
        ensure!(
            self.method == Method::Random
                && self.early_terminate.is_none()
                && self.init_points.is_empty(),
            hinted(
                "`wandb.sweep.method`, `early_terminate` and `init_points` are set by the sweep on W&B",
                "remove them, or remove `wandb.sweep.id`"
            )
        );
        Ok(())
    }

    /// Rejects several metrics for what needs one.
    fn check_metrics(&self) -> Result<()> {
        if self.metric.others().is_empty() {
            return Ok(());
        }
        for (key, is_given) in [
            ("method: bayes", self.method == Method::Bayes),
            ("early_terminate", self.early_terminate.is_some()),
            ("target", self.metric.all().any(|one| one.target.is_some())),
        ] {
            ensure!(
                !is_given,
                hinted(
                    format!("`{key}` needs one metric, and `metric` lists several"),
                    "keep one metric, or use `method: random` or `method: grid` without it"
                )
            );
        }
        let mut titles = BTreeSet::new();
        for metric in self.metric.all() {
            ensure!(
                titles.insert(metric.title()),
                "`metric` lists `{}` twice",
                poolcast_base::escape::value(&metric.title())
            );
        }
        Ok(())
    }

    /// Rejects what W&B's schema rejects. `epochs` is the maximum number of epochs of a trial.
    pub(super) fn check(&self, epochs: usize) -> Result<()> {
        self.check_id()?;
        check_no_grid(
            "wandb.sweep.init_points",
            &self.init_points,
            self.method == Method::Grid,
        )?;
        if let Some(run_cap) = self.run_cap {
            check_range("wandb.sweep.run_cap", run_cap as f64, 1.0..=1e9)?;
        }
        if let Some(trials) = self.trials_per_round {
            check_range("wandb.sweep.trials_per_round", trials as f64, 1.0..=1e9)?;
        }
        ensure!(
            self.deterministic || self.trials_per_round.is_none(),
            hinted(
                "`wandb.sweep.trials_per_round` has no effect on a sweep without rounds",
                "add `deterministic: true`, or remove `trials_per_round`"
            )
        );
        self.check_metrics()?;
        match &self.early_terminate {
            None => Ok(()),
            Some(EarlyTerminate::Hyperband(hyperband)) => hyperband.check(),
            Some(EarlyTerminate::Asha(Asha { min_iter, eta })) => {
                check_range(
                    "wandb.sweep.early_terminate.min_iter",
                    *min_iter as f64,
                    1.0..=epochs as f64,
                )?;
                check_eta(*eta)
            }
        }
    }
}

impl Hyperband {
    fn check(&self) -> Result<()> {
        check_eta(self.eta)?;
        let is_known = self.min_iter.is_some() || self.max_iter.is_some() && self.s.is_some();
        ensure!(
            is_known && !self.bands().is_empty(),
            hinted(
                "`wandb.sweep.early_terminate` has no epoch at which it stops trials",
                "give `min_iter: 3`, or `max_iter: 27` and `s: 2`"
            )
        );
        Ok(())
    }

    /// Returns the epochs after which trials are judged, ascending; at most 101.
    pub fn bands(&self) -> Vec<usize> {
        let eta = self.eta;
        let mut bands: Vec<f64> = match (self.max_iter.zip(self.s), self.min_iter) {
            (Some((max_iter, s)), _) => rung_steps(max_iter, |last| last / eta)
                .skip(1)
                .take(s.min(100))
                .collect(),
            (None, Some(min_iter)) => rung_steps(min_iter, |last| last * eta).collect(),
            (None, None) => Vec::new(),
        };
        // Counting back from `max_iter` can give less than one epoch.
        bands.retain(|band| *band >= 1.0);
        bands.sort_by(f64::total_cmp);
        bands.into_iter().map(|band| band as usize).collect()
    }
}

impl Asha {
    /// Returns the epochs of each rung, ascending; the last rung has all `epochs`.
    pub fn rungs(&self, epochs: usize) -> Vec<usize> {
        let mut rungs: Vec<usize> = rung_steps(self.min_iter, |last| last * self.eta)
            .map(|rung| rung as usize)
            .take_while(|rung| *rung < epochs)
            .collect();
        // Rounded down to whole epochs, neighbouring steps may be equal.
        rungs.push(epochs);
        rungs.dedup();
        rungs
    }
}

/// Yields `first` and 100 further values; `next` computes each from the previous one.
fn rung_steps(first: usize, next: impl Fn(f64) -> f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(first as f64), move |last| Some(next(*last))).take(101)
}

fn check_eta(eta: f64) -> Result<()> {
    ensure!(
        eta > 1.0 && eta.is_finite(),
        "`wandb.sweep.early_terminate.eta` must be above 1, got {eta}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_end_with_all_epochs() {
        let rungs = |min_iter, eta, epochs| Asha { min_iter, eta }.rungs(epochs);
        assert_eq!(rungs(1, 3.0, 20), [1, 3, 9, 20]);
        assert_eq!(
            (rungs(2, 2.0, 8), rungs(5, 3.0, 5)),
            (vec![2, 4, 8], vec![5])
        );
        assert_eq!(rungs(1, 1.3, 4), [1, 2, 3, 4], "no rung twice");
    }
}
