//! Queries a trained model about a successor that is submitted now into a live queue.

use anyhow::{Result, ensure};
use serde::Serialize;

use super::listed_job::ListedJob;
use super::live_queue::{ClusterView, LiveQueue};
use super::slurm_state::QueueState;
use poolcast_base::error::hinted;
use poolcast_provision::forecast::SeenWait;
use poolcast_provision::model_inputs::{KnownTime, MAX_WAIT_BY_LIMITS_S};
use poolcast_provision::submission::{StartedWait, WaitRecord, check_features, model_name};
use poolcast_provision::wait_model::{ModelAnswer, WaitModel};

/// A model to query.
pub struct QueriedModel<'a> {
    /// The model.
    pub model: &'a WaitModel,
    /// The wall-clock time of the cluster, in seconds as if it were UTC.
    pub wall_s: i64,
}

/// The output of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelAdvice {
    /// The name of the model.
    pub name: String,
    /// The wait of a successor that is submitted now, in seconds, at the quantile on which the
    /// decision is based. `None` for a model that only decides.
    pub wait_s: Option<i64>,
    /// True if the caller should submit now; `None` for a model that predicts waits.
    pub submits: Option<bool>,
}

impl QueriedModel<'_> {
    /// Checks that the model is for jobs like `job`, and that a queue listing is enough to query
    /// it.
    ///
    /// # Errors
    /// Fails if the model needs snapshots of the last day, uses other features, or was trained for
    /// other jobs or cost ratios.
    pub(super) fn check(&self, job: &ListedJob, cost_ratio: f64) -> Result<()> {
        let description = self.model.description();
        let name = model_name(self.model);
        ensure!(
            !description.takes_snapshots,
            hinted(
                format!(
                    "the model {name} needs the queue of the last day, which Slurm does not list"
                ),
                "train a model on the features at prediction time: xgb, rf, nn or dqn"
            )
        );
        check_features(self.model)?;
        let limit_min = description.limit_s / 60;
        ensure!(
            (description.job_nodes, Some(description.limit_s)) == (job.nodes, job.limit_s),
            hinted(
                format!(
                    "the model {name} is for jobs of {} nodes and {limit_min} minutes, but job {} differs",
                    description.job_nodes,
                    job.name()
                ),
                "omit `--model`, or train a model for such jobs"
            )
        );
        ensure!(
            description.cost_ratios.contains(&cost_ratio),
            hinted(
                format!("the model {name} was not trained for the cost ratio {cost_ratio}"),
                format!("give `--cost-ratio {}`", description.cost_ratios[0])
            )
        );
        Ok(())
    }

    /// Queries the model about `successor`, whose predecessor runs for another `left_s` seconds.
    /// `wait_by_limits_s` is its wait, in seconds, if all jobs ran to their limits.
    pub(super) fn query(
        &self,
        view: &ClusterView<'_>,
        queue: &LiveQueue,
        successor: &SeenWait,
        wait_by_limits_s: i64,
        left_s: i64,
        cost_ratio: f64,
    ) -> ModelAdvice {
        let record = wait_record(view, successor);
        let known = KnownTime {
            queue: &queue.listed,
            record: &record,
            successor,
            wall_s: self.wall_s,
            wait_by_limits_s: wait_by_limits_s.min(MAX_WAIT_BY_LIMITS_S),
        };
        let name = model_name(self.model);
        match self.model.answer(&known.features(), &[], left_s) {
            ModelAnswer::Waits { waits_s } => {
                let ratios = &self.model.description().cost_ratios;
                let number = ratios.iter().position(|ratio| *ratio == cost_ratio);
                ModelAdvice {
                    name,
                    wait_s: Some(waits_s[number.unwrap_or(0)].max(0.0) as i64),
                    submits: None,
                }
            }
            ModelAnswer::Decision { submit } => ModelAdvice {
                name,
                wait_s: None,
                submits: Some(submit),
            },
        }
    }
}

/// Returns the waits of the jobs that had started, in order of their starts: from the trace, and
/// later ones from Slurm's listing.
fn wait_record(view: &ClusterView<'_>, successor: &SeenWait) -> WaitRecord {
    let mut started: Vec<(i64, StartedWait)> = view.past.waits.clone();
    let known_until_s = started.last().map_or(i64::MIN, |(start_s, _)| *start_s);
    for job in &view.listing.jobs {
        let has_started = job.state != QueueState::Pending && !job.node_list.is_empty();
        let Some(start_s) = job.start_s.filter(|start_s| *start_s > known_until_s) else {
            continue;
        };
        if has_started {
            let since_s = job.eligible_s.unwrap_or(job.submit_s);
            let wait = StartedWait {
                nodes: job.nodes,
                limit_s: job.limit_s.unwrap_or(view.past.longest_s),
                wait_s: (start_s - since_s).max(0),
            };
            started.push((start_s, wait));
        }
    }
    started.sort_by_key(|(start_s, _)| *start_s);

    let mut record = WaitRecord::new(successor.nodes, successor.limit_s, &[]);
    for (start_s, wait) in started {
        if start_s <= view.now_s {
            record.observe(wait);
        }
    }
    record
}
