//! Extends a sweep by the trials that only its new configuration has. Trials that have ended keep their
//! numbers and their rows.

use std::collections::{BTreeSet, HashMap, VecDeque};

use anyhow::{Result, bail, ensure};

use super::retry::{PRIORITY, ended_item};
use crate::config::{Config, Method, TrialSource};
use crate::outcomes::{TrialOutcomes, write_rows};
use crate::plan::{
    EndedTrial, ROWS_FILE, SWEEP, SweepFolder, SweepPlan, SweepTrials, TrialNumbers,
    first_difference, queue_dir, sweep_key, trial_key,
};
use crate::search::SearchSpace;
use poolcast_base::error::hinted;
use poolcast_base::parallel::map_items;
use poolcast_base::{escape, files, manifest};
use poolcast_config::Parameter;
use poolcast_queue::{Queue, QueueSettings};

/// The longest value in a message, in characters.
const MAX_SHOWN: usize = 60;

/// A sweep that is about to be extended.
#[derive(Debug)]
pub(super) struct SweepExtension {
    /// The sweep so far.
    pub(super) earlier: SweepFolder,
    outcomes: TrialOutcomes,
    plan: SweepPlan,
}

impl SweepExtension {
    /// Plans to extend the sweep `earlier` to the one of `config`. Nothing is written.
    ///
    /// # Errors
    /// Fails if a trial of the earlier sweep would have another result, or is no trial of the new
    /// one. Also fails if workers use the sweep.
    pub(super) fn plan(earlier: SweepFolder, config: &Config) -> Result<SweepExtension> {
        let config = &config.with_frames_of(&earlier.config);
        check_common_keys(&earlier, config)?;
        check_is_idle(&earlier)?;

        let trials = SweepTrials::from_config(config)?;
        let mut outcomes = TrialOutcomes::read(&earlier)?;
        let places = kept_places(&earlier, &mut outcomes, &trials)?;
        let ended: Vec<usize> = outcomes.all().iter().map(|one| one.trial).collect();
        let plan = SweepPlan {
            trials: trials.count(),
            source_key: earlier.plan.source_key.clone(),
            numbers: Some(TrialNumbers::new(&places, &ended)),
        };
        Ok(SweepExtension {
            earlier,
            outcomes,
            plan,
        })
    }

    /// The number of trials that have ended.
    pub(super) fn kept(&self) -> usize {
        self.outcomes.all().len()
    }

    /// The number of all trials.
    pub(super) fn trials(&self) -> usize {
        self.plan.trials
    }

    /// Rejects data other than those that the trials have learned from.
    pub(super) fn check_source(&self, source_key: &str) -> Result<()> {
        ensure!(
            source_key == self.earlier.plan.source_key,
            other_sweep(&self.earlier, "its trials have learned from other data",)
        );
        Ok(())
    }

    /// Extends the sweep to that of `config`, whose data have the digest `source_key`.
    ///
    /// # Errors
    /// Fails on a full disk, and if the data have changed meanwhile. The same call does it again.
    pub(super) fn write(mut self, config: &Config, source_key: String) -> Result<SweepFolder> {
        // Tables may have more splits than before.
        if config.trial_source() != TrialSource::Tables {
            self.check_source(&source_key)?;
        }
        let dir = self.earlier.dir.clone();
        self.plan.source_key = source_key;
        self.write_rows()?;
        self.write_queue()?;

        // The queue counts only once the file of all rows is gone.
        config.write(&dir)?;
        manifest::write(&dir, SWEEP, &sweep_key(config, &self.plan)?, &self.plan)?;
        files::remove_all([dir.join(ROWS_FILE)])?;
        SweepFolder::open(&dir)
    }

    /// Writes the rows of a sweep that has not finished to the file of a finished one, so that they
    /// outlast the queue.
    fn write_rows(&mut self) -> Result<()> {
        if self.earlier.is_finished() {
            return Ok(());
        }
        write_rows(&self.earlier.dir.join(ROWS_FILE), &mut self.outcomes)?;
        self.outcomes = TrialOutcomes::read(&self.earlier)?;
        Ok(())
    }

    /// Makes a queue with the rows of the ended trials.
    fn write_queue(&mut self) -> Result<()> {
        let dir = queue_dir(&self.earlier.dir);
        files::remove_all([dir.clone()])?;
        let queue = Queue::create(&dir, QueueSettings::default())?;
        let space = SearchSpace::from_config(&self.earlier.config);
        let (earlier, outcomes) = (&self.earlier, &mut self.outcomes);
        let ended = (0..outcomes.all().len()).map(|at| {
            let row = outcomes.ended_trial(at)?;
            ended_item(
                row,
                earlier
                    .is_proposed(outcomes.all()[at].trial)?
                    .then_some(&space),
            )
        });
        // The manager adds the other trials in batch 0.
        queue.add_ended(1, PRIORITY, ended)
    }
}

/// Rejects a configuration with another value of a key that all trials depend on.
fn check_common_keys(earlier: &SweepFolder, config: &Config) -> Result<()> {
    ensure!(
        earlier.config.wandb.sweep.id.is_none() && config.wandb.sweep.id.is_none(),
        other_sweep(
            earlier,
            "a sweep whose points are from W&B cannot be extended"
        )
    );
    if let Some(found) = first_difference(&earlier.config, config)? {
        let values = [found.earlier, found.new].map(|value| value.to_string());
        let what = match values.iter().any(|value| value.chars().count() > MAX_SHOWN) {
            true => format!("`{}` has changed", found.key),
            false => {
                let [earlier, new] = values.map(|value| escape::value(&value).into_owned());
                format!("`{}` was `{earlier}`, and is now `{new}`", found.key)
            }
        };
        bail!(other_sweep(earlier, &what));
    }
    ensure!(
        config.wandb.sweep.asha().is_none(),
        other_sweep(earlier, "a sweep with `asha` cannot be extended")
    );
    Ok(())
}

fn check_is_idle(earlier: &SweepFolder) -> Result<()> {
    let workers = earlier.queue()?.map_or(0, |queue| queue.workers_at_work());
    ensure!(
        workers == 0,
        hinted(
            format!(
                "`{}` contains another sweep, which {} on",
                earlier.dir.display(),
                match workers {
                    1 => "a worker works".to_owned(),
                    _ => format!("{workers} workers work"),
                }
            ),
            "wait until it has finished, or stop its workers; a killed one counts for two minutes"
        )
    );
    Ok(())
}

/// Returns the place of each trial of `trials`, in the order of their numbers. The trials of
/// `outcomes` keep their numbers, and all others have the numbers that are left.
fn kept_places(
    earlier: &SweepFolder,
    outcomes: &mut TrialOutcomes,
    trials: &SweepTrials,
) -> Result<Vec<usize>> {
    let all: Vec<usize> = (1..=trials.count()).collect();
    let keys = map_items(&all, |trial| trial_key(&trials.draw(*trial)?));
    let mut left: BTreeSet<usize> = all.iter().copied().collect();
    let mut by_key: HashMap<u128, VecDeque<usize>> = HashMap::new();
    for (place, key) in all.iter().zip(keys) {
        by_key.entry(key?).or_default().push_back(*place);
    }

    let is_bayes = trials.config().wandb.sweep.method == Method::Bayes;
    let mut numbered = vec![None; trials.count()];
    for at in 0..outcomes.all().len() {
        let row = outcomes.row(at)?;
        let place = match is_bayes && earlier.is_proposed(row.trial)? {
            true => {
                Some(earlier.trials()?.place(row.trial)).filter(|place| trials.is_network(*place))
            }
            false => {
                let same = by_key.get_mut(&trial_key(&row.config)?);
                same.and_then(VecDeque::pop_front)
            }
        };
        let slot = numbered.get_mut(row.trial.wrapping_sub(1));
        let (Some(place), Some(slot)) = (place, slot) else {
            bail!(lost_trial(earlier, &row.result));
        };
        *slot = Some(place);
        left.remove(&place);
    }
    let mut left = left.into_iter();
    Ok(numbered
        .into_iter()
        .filter_map(|place| place.or_else(|| left.next()))
        .collect())
}

/// The error for an ended trial that the new configuration does not have.
fn lost_trial(earlier: &SweepFolder, row: &EndedTrial) -> anyhow::Error {
    let searched = SearchSpace::from_config(&earlier.config);
    let mut names: BTreeSet<&str> = searched
        .parameters()
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    for space in earlier
        .config
        .pipelines
        .get(&row.pipeline)
        .iter()
        .flat_map(|spaces| spaces.all())
    {
        let is_drawn = |parameter: &Parameter| matches!(parameter, Parameter::Drawn(_));
        let drawn = space
            .parameters
            .iter()
            .filter(|(_, parameter)| is_drawn(parameter));
        names.extend(drawn.map(|(name, _)| name.as_str()));
    }
    let drawn = row
        .parameters
        .iter()
        .filter(|(name, _)| names.contains(name.as_str()));
    let mut what: Vec<String> = vec![row.pipeline.clone()];
    what.extend(row.split.iter().map(|split| format!("split {split}")));
    what.extend(drawn.map(|(name, value)| format!("{name} {value}")));
    let text = escape::value(&what.join(", ")).into_owned();
    other_sweep(
        earlier,
        &format!(
            "its trial {} ({text}) is not one of the new trials",
            row.trial
        ),
    )
    .into()
}

fn other_sweep(earlier: &SweepFolder, what: &str) -> poolcast_base::error::HintedError {
    hinted(
        format!("`{}` contains another sweep: {what}", earlier.dir.display()),
        "name another directory with `-o DIR`",
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::plan::TrialRow;
    use poolcast_queue::{ChunkEntry, WorkItem};

    /// A sweep of `runs` networks, and of an `enet` for each of these values.
    fn sweep(runs: usize, method: &str, values: &[usize]) -> SweepFolder {
        let flags = BTreeMap::from([
            ("runs", json!(runs)),
            ("wandb.sweep.method", json!(method)),
            (
                "training.parameters.learning_rate",
                json!({"min": 0.0, "max": 1.0}),
            ),
            (
                "pipelines.enet",
                json!({"method": "grid", "parameters": {"C": {"values": values}}}),
            ),
        ]);
        let config = Config::load(None, &flags).expect("a configuration");
        let plan = SweepPlan {
            trials: runs + values.len(),
            source_key: String::new(),
            numbers: None,
        };
        SweepFolder::new(Path::new("sweep"), config, plan)
    }

    fn row(sweep: &SweepFolder, trial: usize) -> TrialRow {
        let config = sweep.trials().expect("trials").draw(trial).expect("drawn");
        let entry = ChunkEntry::new(WorkItem { trial, budget: 1 });
        TrialRow::begin(&entry, "worker", &config)
    }

    #[test]
    fn ended_trials_keep_their_numbers() {
        for method in ["random", "sobol", "bayes"] {
            let earlier = sweep(2, method, &[2, 4]);
            let longer = sweep(3, method, &[1, 2, 4]);
            let trials = longer.trials().expect("trials");
            let places = |ended: &[usize]| {
                let rows = ended.iter().map(|trial| row(&earlier, *trial));
                let mut outcomes = TrialOutcomes::from_rows(rows.collect());
                kept_places(&earlier, &mut outcomes, trials).expect("places")
            };
            assert_eq!(places(&[1, 2, 3, 4]), [1, 2, 5, 6, 3, 4], "{method}");
            assert_eq!(places(&[2, 4]), [1, 2, 3, 6, 4, 5], "{method}");
        }
    }

    #[test]
    fn lost_trial_is_named() {
        let earlier = sweep(1, "random", &[2, 4]);
        let other = sweep(1, "random", &[2, 8, 16]);
        let mut outcomes = TrialOutcomes::from_rows(vec![row(&earlier, 2), row(&earlier, 3)]);
        let lost = kept_places(&earlier, &mut outcomes, other.trials().expect("trials"));
        insta::assert_snapshot!(lost.expect_err("refused"), @"`sweep` contains another sweep: its trial 3 (enet, C 4) is not one of the new trials");
    }
}
