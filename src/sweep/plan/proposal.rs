//! A trial as it was proposed during a search: its parameters, and the results that they depend on.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::trial_row::EndedTrial;
use crate::search::{SearchPoint, SearchSpace};
use poolcast_queue::{Queue, WorkItem};

/// A work item that was proposed during a search. The manager that adds the item writes this beside
/// it, and every worker reads it there. So a trial has the same parameters whoever runs it, and
/// however often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Proposal {
    /// The item.
    pub(crate) item: WorkItem,
    /// The earlier trials that had not ended when the trial was drawn. The draw knew the results of
    /// all other earlier trials. `None` if trials do not learn from others.
    pub(crate) unseen: Option<Vec<usize>>,
    /// The value of each drawn parameter that the trial has.
    pub(crate) point: SearchPoint,
}

impl Proposal {
    /// Returns true if the trial learns from the result of `trial`.
    pub(crate) fn learns_from(&self, trial: usize) -> bool {
        let unseen = self.unseen.as_ref();
        trial < self.item.trial && unseen.is_some_and(|unseen| !unseen.contains(&trial))
    }

    /// The proposal of the ended trial `row` in a sweep over `space`.
    pub(crate) fn from_row(space: &SearchSpace, row: &EndedTrial) -> Proposal {
        let missing = space.missing_parameters(&row.parameters);
        let names = space.parameters().iter().map(|(name, _)| name);
        let names = names.filter(|name| !missing.contains(&name.as_str()));
        let value = |name: &String| {
            // A wait model lacks a parameter that was drawn as null.
            let value = row.parameters.get(name).cloned().unwrap_or_default();
            (name.clone(), value)
        };
        Proposal {
            item: row.item(),
            unseen: row.unseen.clone(),
            point: names.map(value).collect(),
        }
    }

    /// Reads the proposal of `item` in `queue`.
    ///
    /// # Errors
    /// Fails if the item was not proposed.
    pub(crate) fn find(queue: &Queue, item: WorkItem) -> Result<Proposal> {
        let mut number = 0;
        while let Some(proposal) = queue.proposal::<Proposal>(number)? {
            if proposal.item == item {
                return Ok(proposal);
            }
            number += 1;
        }
        bail!("trial {} was not proposed", item.trial)
    }
}
