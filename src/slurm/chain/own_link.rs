//! The begin and the end of a link whose own script runs the chain.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use super::chain_run::{
    ChainCaller, ChainEnd, ChainPlan, ChainRun, OwnJob, link_failure, run_chain,
};
use super::chain_state::{ChainLink, ChainState};
use crate::live::{JobOutcome, ListedJob, QueueListing, QueueState, query_queue};
use poolcast_base::error::hinted;

/// The pause between two looks at the queue.
const PAUSE: Duration = Duration::from_secs(1);

/// The link in which the caller runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnLink {
    /// The number of the link.
    pub number: u32,
    /// The job id of the link before, if there is one.
    pub predecessor: Option<u64>,
    /// True if the work was done before this link.
    pub is_needless: bool,
}

/// Finds the link of the caller's job, `plan.own`, in `state`. A job that the chain has not submitted becomes its next
/// link, if no other link is alive. If the work is done, cancels the links after this one.
///
/// # Errors
/// Fails if the job cannot be a link of this chain, or if Slurm does not answer until the caller stops.
pub fn enter_chain(
    state: &mut ChainState,
    plan: &ChainPlan,
    caller: &ChainCaller<'_>,
) -> Result<OwnLink> {
    let own = own_job(plan)?;
    let mut run = ChainRun::new(state, plan, caller);
    let listing = listing_with(&mut run, own)?;
    let now_s = (caller.now_s)(&listing);
    run.observe_links(&listing, now_s)?;

    let job = own_row(&run, &listing, own)?;
    let number = match link_of(run.state, job) {
        Some(number) => number,
        None => adopt(&mut run, &listing, job)?,
    };
    let ended = run.state.links.iter().rfind(|link| link.end_s.is_some());
    let ended = ended.cloned().unwrap_or(ChainLink::intended(0, now_s));
    let is_done = run.state.done_after.is_some() || run.is_work_done(&ended)?.unwrap_or(false);
    if is_done {
        run.state.note_work(number - 1, true)?;
        run.cancel_after(number, &listing)?;
    } else {
        run.state.asked_after = ended.number;
        run.state.save()?;
    }
    let links = &run.state.links;
    let before = links.iter().find(|link| link.number + 1 == number);
    Ok(OwnLink {
        number,
        predecessor: before.and_then(|link| link.job),
        is_needless: is_done,
    })
}

/// Ends the link of the caller's job, whose script exits with `code`. If the work is done, or the link before has failed as
/// well, the chain ends, and cancels the links after this one. Else the next link is submitted, if it is not yet.
///
/// # Errors
/// Fails if this link and the one before have failed, and if [`run_chain`] does.
pub fn leave_chain(
    state: &mut ChainState,
    plan: &ChainPlan,
    caller: &ChainCaller<'_>,
    code: i32,
) -> Result<ChainEnd> {
    let own = own_job(plan)?;
    let mut run = ChainRun::new(state, plan, caller);
    let listing = listing_with(&mut run, own)?;
    let now_s = (caller.now_s)(&listing);
    run.observe_links(&listing, now_s)?;

    let job = own_row(&run, &listing, own)?;
    // Slurm ends the job, at its limit or for a user, and a shell may report any code meanwhile.
    if job.state != QueueState::Running {
        return Ok(ChainEnd::Stopped);
    }
    let number = link_of(run.state, job).with_context(|| stranger(run.state, job, None))?;
    let mut link = run.state.links[number as usize - 1].clone();
    link.end_s = Some(now_s);
    link.outcome = Some(match code {
        0 => JobOutcome::Completed,
        _ => JobOutcome::Failed,
    });
    let is_done = run.is_work_done(&link)?.unwrap_or(false);
    run.state.note_work(number, is_done)?;
    if is_done {
        run.cancel_after(number, &listing)?;
        return Ok(ChainEnd::WorkDone(number));
    }
    let has_failed = code != 0 && !run.state.was_asked_to_end(&link);
    if has_failed && run.state.has_failed(number - 1) {
        run.state.told_failure = number;
        run.state.save()?;
        run.cancel_after(number, &listing)?;
        return Err(link_failure(&link, None).into());
    }
    run_chain(state, plan, caller)
}

fn own_job(plan: &ChainPlan) -> Result<&OwnJob> {
    plan.own.as_ref().context("this is not a job of Slurm")
}

/// Queries Slurm until it lists the caller's own job, and no link is just ending, because its outcome says what follows.
fn listing_with(run: &mut ChainRun<'_>, own: &OwnJob) -> Result<QueueListing> {
    loop {
        let listing = run.query(query_queue)?;
        let is_settled = |listing: &QueueListing| {
            let is_completing = |link: &ChainLink| {
                let job = link.job.filter(|id| *id != own.id);
                let job = job.and_then(|id| run.state.own_job(listing, id));
                job.is_some_and(|job| job.state == QueueState::Completing)
            };
            run.state.own_job(listing, own.id).is_some()
                && !run.state.links.iter().any(is_completing)
        };
        if let Some(listing) = listing.filter(is_settled) {
            return Ok(listing);
        }
        if (run.caller.pause)(PAUSE) {
            bail!(
                "`squeue` does not list job {}, or a link that is just ending",
                own.id
            );
        }
    }
}

fn own_row<'a>(
    run: &ChainRun<'_>,
    listing: &'a QueueListing,
    own: &OwnJob,
) -> Result<&'a ListedJob> {
    let job = run.state.own_job(listing, own.id);
    job.with_context(|| format!("`squeue` does not list job {}", own.id))
}

/// Returns the number of the link whose job is `job`, unless that link has ended.
fn link_of(state: &mut ChainState, job: &ListedJob) -> Option<u32> {
    let comments: Vec<String> = state
        .links
        .iter()
        .map(|link| state.comment_of(link.number))
        .collect();
    let links = state.links.iter_mut().zip(comments);
    for (link, comment) in links {
        let is_own = match link.job {
            Some(id) => id == job.id,
            None => comment == job.comment,
        };
        if is_own && link.end_s.is_none() {
            link.job = Some(job.id);
            link.is_released = true;
            return Some(link.number);
        }
    }
    None
}

/// Makes `job` the next link, and returns its number.
fn adopt(run: &mut ChainRun<'_>, listing: &QueueListing, job: &ListedJob) -> Result<u32> {
    let state = &mut *run.state;
    // The submission of such a link was cut off before it had a job.
    let last = state.links.last().filter(|link| link.job.is_none());
    if last.is_some_and(|link| state.link_job(listing, link.number).is_none()) {
        state.links.pop();
    }
    let is_alive = |link: &&ChainLink| link.end_s.is_none() && !link.is_absent();
    let is_known = |link: &ChainLink| link.job == Some(job.id);
    let living = state.links.iter().find(is_alive).cloned();
    if living.is_some() || state.links.iter().any(is_known) {
        return Err(stranger(state, job, living.as_ref()).into());
    }
    let ended = run.state.links.last().cloned();
    let is_over = run.state.done_after.is_some()
        || run.caller.is_work_done.is_none()
            && ended.is_some_and(|it| run.state.has_succeeded(&it));
    if is_over {
        run.state.begin_again()?;
    }
    let number = run.state.links.len() as u32 + 1;
    let dir = run.state.dir().display();
    ensure!(
        number <= run.plan.links,
        hinted(
            format!("the chain in `{dir}` has had its {} links", run.plan.links),
            "continue it with a larger `--links N`, or begin another one with `--state DIR`"
        )
    );
    run.state.adopt(job);
    run.state.save()?;
    Ok(number)
}

/// Returns the error that `job` is not a link that runs now. `living` is another link, which is alive.
fn stranger(
    state: &ChainState,
    job: &ListedJob,
    living: Option<&ChainLink>,
) -> poolcast_base::error::HintedError {
    let other = living.map_or(String::new(), |link| match link.job {
        Some(id) => format!(": its link {} is job {id}", link.number),
        None => format!(": its link {} is being submitted", link.number),
    });
    hinted(
        format!(
            "job {} is not the running link of the chain in `{}`{other}",
            job.id,
            state.dir().display()
        ),
        "a second chain of the same script needs a directory of its own: `--state DIR`",
    )
}
