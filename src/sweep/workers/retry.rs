//! Begins a finished sweep again, with the trials that have failed.

use anyhow::{Result, ensure};

use crate::outcomes::TrialOutcomes;
use crate::plan::{EndedTrial, Proposal, ROWS_FILE, SweepFolder, TrialEnd, queue_dir};
use crate::search::SearchSpace;
use poolcast_base::error::hinted;
use poolcast_base::files;
use poolcast_base::files::LockedDirectory;
use poolcast_queue::{EndedItem, Queue, QueueSettings};

/// The priority of all trials.
pub(super) const PRIORITY: u8 = 100;

/// Begins the finished `sweep` again with a queue of the trials that have failed or were quarantined.
/// All other trials keep their results. Returns the number of trials to run again; nothing changes if
/// there is none.
///
/// # Errors
/// Fails for a sweep that has not finished, and for one whose points a tracker gives.
pub fn retry_failed(sweep: &SweepFolder) -> Result<usize> {
    let _lock = LockedDirectory::with_holder(&sweep.dir)?;
    check_may_retry(sweep)?;
    let mut outcomes = TrialOutcomes::read(sweep)?;
    let count = outcomes.all().len();
    let (done, failed): (Vec<usize>, Vec<usize>) =
        (0..count).partition(|at| outcomes.all()[*at].ended == TrialEnd::Done);
    if failed.is_empty() {
        return Ok(0);
    }

    // As long as the file of all rows exists, the sweep is finished, and nobody opens this queue.
    let dir = queue_dir(&sweep.dir);
    files::remove_all([dir.clone()])?;
    let queue = Queue::create(&dir, QueueSettings::default())?;
    let kept = done
        .into_iter()
        .map(|at| ended_item(outcomes.ended_trial(at)?, None));
    queue.add_ended(0, PRIORITY, kept)?;
    add_failed(sweep, &queue, &mut outcomes, &failed)?;
    queue.seal(count)?;
    files::remove_all([sweep.dir.join(ROWS_FILE)])?;
    Ok(failed.len())
}

/// The item of `row`, whose trial has ended. If it was proposed in a search, `space` is its search space.
pub(super) fn ended_item(
    row: EndedTrial,
    space: Option<&SearchSpace>,
) -> Result<EndedItem<EndedTrial>> {
    let proposal = space.map(|space| serde_json::to_value(Proposal::from_row(space, &row)));
    Ok(EndedItem {
        item: row.item(),
        proposal: proposal.transpose()?,
        result: row,
    })
}

fn check_may_retry(sweep: &SweepFolder) -> Result<()> {
    ensure!(
        sweep.is_finished(),
        hinted(
            format!("the sweep in `{}` has not finished", sweep.dir.display()),
            "finish it with `poolcast sweep run DIR`"
        )
    );
    ensure!(
        sweep.config.wandb.sweep.id.is_none(),
        hinted(
            format!("the points of `{}` are from W&B", sweep.dir.display()),
            "start the runs again on the page of the sweep on W&B"
        )
    );
    Ok(())
}

/// Adds the failed trials again, with the same parameters.
fn add_failed(
    sweep: &SweepFolder,
    queue: &Queue,
    outcomes: &mut TrialOutcomes,
    failed: &[usize],
) -> Result<()> {
    let space = SearchSpace::from_config(&sweep.config);
    let mut known = Vec::new();
    let mut proposals = 0;
    for at in failed {
        let row = outcomes.ended_trial(*at)?;
        if sweep.is_proposed(row.trial)? {
            queue.propose(proposals, row.item(), &Proposal::from_row(&space, &row))?;
            proposals += 1;
        } else {
            known.push(row.item().into());
        }
    }
    queue.add_chunks(1, PRIORITY, &known)
}
