//! A sweep as a run of its own, for trackers that show trials below one.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Map, json};

use super::source::TrackedSource;
use super::tracked_run::{TrackedEpoch, TrackedOutcome, TrackedRun};
use super::tracked_trial::trial_name;
use poolcast_base::moment::parse_time_ms;
use poolcast_sweep::{TrialOutcomes, best_outcome};

/// Name of the result that names the best trial.
const BEST_RUN: &str = "best_run";

impl TrackedSource {
    /// The sweep, as it is before its end; `None` for a single run, and for a DAG whose samples do not exist yet. It
    /// begins at `began_s`, in seconds since 1970 in UTC.
    pub(crate) fn sweep_run(&self, began_s: f64) -> Option<TrackedRun> {
        let run_id = self.sweep_id()?;
        let sweep = &self.config().wandb.sweep;
        let mut config = Map::new();
        config.insert("method".to_owned(), json!(sweep.method));
        config.insert("metric".to_owned(), json!(sweep.metric.title()));
        config.insert("goal".to_owned(), json!(sweep.metric.goal));
        self.add_data(&mut config);
        Some(TrackedRun {
            run_id,
            name: sweep.name.clone(),
            group: Some(sweep.name.clone()),
            tags: vec!["sweep".to_owned()],
            config,
            began_s,
            epochs: Vec::new(),
            summary: Map::new(),
            outcome: TrackedOutcome::Running,
        })
    }

    /// The sweep after its end, with the value and the name of its best trial. The value is at the number of trials, as
    /// the only step.
    ///
    /// # Errors
    /// Fails if the rows of the trials cannot be read.
    pub(crate) fn ended_sweep_run(&self) -> Result<Option<TrackedRun>> {
        let Some(run) = self.sweep_run(0.0) else {
            return Ok(None);
        };
        let mut outcomes = self.outcomes()?;
        let (began_s, ended_s) = time_range(&mut outcomes)?;
        let mut run = TrackedRun {
            began_s,
            outcome: TrackedOutcome::Finished,
            ..run
        };
        let metric = &self.config().wandb.sweep.metric;
        // The splits of tables have a best trial each.
        let is_one_search = outcomes
            .all()
            .iter()
            .all(|trial| trial.split == outcomes.all()[0].split);
        let best = best_outcome(metric, &outcomes).filter(|_| is_one_search);
        run.epochs.push(TrackedEpoch {
            step: outcomes.all().len() as u64,
            ended_s,
            values: BTreeMap::from_iter(best.iter().map(|best| (metric.title(), best.value))),
            system: BTreeMap::new(),
        });
        if let Some(best) = best {
            let name = trial_name(best.trial);
            run.summary.insert(BEST_RUN.to_owned(), json!(name));
        }
        Ok(Some(run))
    }
}

/// Returns when the first of the trials began and the last one ended, in seconds since 1970 in UTC; 0 without trials.
fn time_range(outcomes: &mut TrialOutcomes) -> Result<(f64, f64)> {
    let mut range: Option<(f64, f64)> = None;
    for at in 0..outcomes.all().len() {
        let trial = outcomes.ended_trial(at)?;
        if let Some(began_ms) = parse_time_ms(&trial.began) {
            let began_s = began_ms as f64 / 1e3;
            let (first, last) = range.unwrap_or((began_s, began_s));
            range = Some((first.min(began_s), last.max(began_s + trial.seconds)));
        }
    }
    Ok(range.unwrap_or_default())
}
