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

/// Ends the link of the caller's job, whose script exits with `code`. If `caller` says that the work is done, or the link
/// before has failed as well, the chain ends, and cancels the links after this one. Else the next link is submitted, if it
/// is not yet. The exit code 0 alone ends no chain here, because some shells report it for a signal that ends them: the
/// next link reads how Slurm says that this one has ended.
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
    if let Some(is_work_done) = caller.is_work_done {
        let is_done = is_work_done(&link)?;
        run.state.note_work(number, is_done)?;
        if is_done {
            run.cancel_after(number, &listing)?;
            return Ok(ChainEnd::WorkDone(number));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists jobs with these numbers, states and comments, which end at 1000 s.
    fn listing(jobs: &[(u64, &str, &str)]) -> QueueListing {
        let user_id = rustix::process::getuid().as_raw();
        let row = |(id, state, comment): &(u64, &str, &str)| {
            format!(
                r#"{{"job_id": {id}, "job_state": "{state}", "partition": "all", "node_count": 1, "time_limit": 10, "submit_time": 100,
                "start_time": 400, "end_time": 1000, "nodes": "n1", "user_id": {user_id}, "comment": "{comment}"}}"#
            )
        };
        let rows: Vec<String> = jobs.iter().map(row).collect();
        let text = format!("{{\"jobs\": [{}]}}", rows.join(","));
        QueueListing::parse(text.as_bytes()).expect("read")
    }

    /// Runs `act` for the job `id` with a chain of at most three links and an interval of 50 s.
    fn with_run<T>(state: &mut ChainState, id: u64, act: impl FnOnce(ChainRun<'_>) -> T) -> T {
        let plan = ChainPlan {
            command: Vec::new(),
            links: 3,
            every: Duration::from_secs(50),
            when: None,
            deadline_s: None,
            own: Some(OwnJob {
                id,
                submit_dir: ".".into(),
                is_ending: false,
            }),
        };
        let caller = ChainCaller {
            advise: &|_, _| bail!("nobody advises"),
            is_work_done: None,
            tell: &|_| {},
            pause: &|_| true,
            lock: &|| None,
            now_s: &|_| 500,
        };
        act(ChainRun::new(state, &plan, &caller))
    }

    /// The number of the link of the job `id`, which is adopted if it is not a link.
    fn entered(state: &mut ChainState, listing: &QueueListing, id: u64) -> Result<u32, String> {
        with_run(state, id, |mut run| {
            run.observe_links(listing, 500).expect("observed");
            let job = listing.jobs.iter().find(|job| job.id == id);
            let job = job.expect("listed");
            match link_of(run.state, job) {
                Some(number) => Ok(number),
                None => adopt(&mut run, listing, job).map_err(|error| error.to_string()),
            }
        })
    }

    #[test]
    fn jobs_find_their_link_or_become_the_next_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut state = ChainState::open(dir.path()).expect("begun");
        let first = [(4, "RUNNING", "")];
        assert_eq!(entered(&mut state, &listing(&first), 4), Ok(1));
        assert_eq!(entered(&mut state, &listing(&first), 4), Ok(1), "again");
        let second = [(4, "RUNNING", ""), (5, "RUNNING", "")];
        let refusal = entered(&mut state, &listing(&second), 5).expect_err("rejected");
        assert!(refusal.contains("its link 1 is job 4"), "{refusal}");

        // The submission of a link was cut off before its number was known.
        state.links.push(ChainLink::intended(2, 200));
        let comment = state.comment_of(2);
        let second = [(4, "TIMEOUT", ""), (5, "RUNNING", &comment[..])];
        assert_eq!(entered(&mut state, &listing(&second), 5), Ok(2));
        assert!(state.links[1].is_released);
        // A link that has ended does not run again.
        let again = [(4, "TIMEOUT", ""), (5, "FAILED", "")];
        state.links[0].end_s = Some(450);
        assert!(entered(&mut state, &listing(&again), 4).is_err());

        let third = [(5, "FAILED", ""), (6, "RUNNING", "")];
        assert_eq!(entered(&mut state, &listing(&third), 6), Ok(3));
        assert_eq!(
            state.told_failure, 2,
            "the failure was before a user's sbatch"
        );
        let more = [(6, "TIMEOUT", ""), (7, "RUNNING", "")];
        let refusal = entered(&mut state, &listing(&more), 7).expect_err("rejected");
        assert!(refusal.contains("has had its 3 links"), "{refusal}");
        state.links[2].outcome = Some(JobOutcome::Completed);
        state.links[2].end_s = Some(600);
        let before = state.chain.clone();
        assert_eq!(entered(&mut state, &listing(&more), 7), Ok(1));
        assert_ne!(state.chain, before, "it is another chain");
    }

    #[test]
    fn last_moment_is_two_intervals_before_the_limit() {
        let dir = tempfile::tempdir().expect("a directory");
        let state = ChainState::open(dir.path()).expect("begun");
        let listed = listing(&[(4, "RUNNING", "")]);
        let is_last = |now_s| {
            with_run(&mut state.clone(), 4, |run| {
                run.is_last_moment(&listed.jobs[0], now_s)
            })
        };
        assert_eq!([899, 900, 2000].map(is_last), [false, true, true]);
    }
}
