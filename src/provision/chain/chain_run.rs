//! Runs a chain of jobs, link by link.
//!
//! The chain first writes the coming submission to its state file. It then submits the job held,
//! with a unique comment, and releases it once the file has its job id. If the chain is killed in
//! between, the next run finds the job by its comment, because a held job stays in the queue. So a
//! link may be submitted twice, if an answer of the controller is lost, but it never runs twice.

use std::fs::File;
use std::time::Duration;

use anyhow::Result;

use super::chain_state::{ChainLink, ChainState, LinkEvent};
use crate::live::{
    ListedJob, NodeListing, QueueListing, QueueState, SlurmFault, SubmissionAdvice,
    SubmissionAnswer, SubmissionAttempt, cancel_job, query_ended_job, query_nodes, query_queue,
    release_job, submit_job,
};
use poolcast_base::error::hinted;

/// Name of the environment variable that holds the job id of the predecessor.
pub const PREDECESSOR_VARIABLE: &str = "POOLCAST_PREDECESSOR";
/// Name of the environment variable that holds the number of the link.
pub const LINK_VARIABLE: &str = "POOLCAST_LINK";

/// Number of searches without a result after which a submission with an unknown result is repeated.
const MAX_ABSENCES: u32 = 3;

/// Number of consecutive rejections after which the chain stops.
const MAX_REFUSALS: u32 = 30;

/// The pause before the next round if a change is expected soon.
const SHORT_PAUSE: Duration = Duration::from_secs(1);

/// The job of each link, and the length and pace of the chain.
#[derive(Debug, Clone)]
pub struct ChainPlan {
    /// The arguments of `sbatch`: a script and its arguments.
    pub command: Vec<String>,
    /// Number of links in the chain.
    pub links: u32,
    /// Interval between decisions whether to submit.
    pub every: Duration,
}

/// Progress messages of a running chain.
#[derive(Debug)]
pub enum ChainNote<'a> {
    /// Slurm does not answer, for this reason.
    Away(String),
    /// Slurm answers again.
    Back,
    /// A link was submitted. If it has a predecessor, the advice is attached.
    Submitted(&'a ChainLink, Option<&'a SubmissionAdvice>),
    /// Slurm rejected the link with this number, for this reason.
    Refused(u32, &'a str),
    /// The result of submitting the link with this number is unknown, for this reason.
    Unclear(u32, &'a str),
    /// The job of a link could not be released, for this reason.
    NotReleased(&'a ChainLink, &'a str),
    /// There is no advice on the successor of a link. It is submitted once the link has ended.
    NoAdvice(&'a ChainLink, &'a SubmissionAdvice),
    /// The job of a submission with an unknown result was found.
    Found(&'a ChainLink),
    /// A superfluous second job of a link was cancelled.
    StrayCancelled(u64),
    /// An event of a link, and the gap in seconds that it completes, if any.
    Link(&'a ChainLink, LinkEvent, Option<i64>),
}

/// The way in which a chain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainEnd {
    /// All links were submitted, and the last one has started or ended.
    Done,
    /// The caller stopped the chain.
    Stopped,
}

/// Advises on the successor of a job, given Slurm's listings.
pub type AdviseLink<'a> =
    dyn Fn(&QueueListing, &NodeListing, &ListedJob) -> Result<SubmissionAdvice> + 'a;

/// Callbacks of a chain.
pub struct ChainCaller<'a> {
    /// Advises whether to submit.
    pub advise: &'a AdviseLink<'a>,
    /// Reports a message.
    pub tell: &'a dyn Fn(ChainNote<'_>),
    /// Sleeps. Returns true if the chain must stop.
    pub pause: &'a dyn Fn(Duration) -> bool,
    /// Returns the lock file of the directory. Each `sbatch` keeps it open.
    pub lock: &'a dyn Fn() -> Option<File>,
    /// Returns the current time, in epoch seconds.
    pub now_s: &'a dyn Fn(&QueueListing) -> i64,
}

/// The state of the loop.
struct ChainRun<'a> {
    state: &'a mut ChainState,
    plan: &'a ChainPlan,
    caller: &'a ChainCaller<'a>,
    is_away: bool,
    absences: u32,
    refusals: u32,
    /// The last link without advice on its successor.
    unadvised: u32,
}

/// The result of a round.
enum Round {
    /// Continue after the usual pause.
    Wait,
    /// Continue after a short pause.
    Soon,
    Done,
}

/// Runs the chain until it is done or the caller stops it.
///
/// # Errors
/// Fails if Slurm's commands cannot be started, return unknown output, or reject a link
/// permanently. Also fails if a link failed or was cancelled; the next call then continues with the
/// next link.
pub fn run_chain(
    state: &mut ChainState,
    plan: &ChainPlan,
    caller: &ChainCaller<'_>,
) -> Result<ChainEnd> {
    let mut run = ChainRun {
        state,
        plan,
        caller,
        is_away: false,
        absences: 0,
        refusals: 0,
        unadvised: 0,
    };
    loop {
        let pause = match run.round()? {
            Round::Done => return Ok(ChainEnd::Done),
            Round::Soon => SHORT_PAUSE.min(plan.every),
            Round::Wait => plan.every,
        };
        if (caller.pause)(pause) {
            return Ok(ChainEnd::Stopped);
        }
    }
}

impl ChainRun<'_> {
    fn round(&mut self) -> Result<Round> {
        if self.state.is_done(self.plan.links) {
            return Ok(Round::Done);
        }
        let Some(listing) = self.query(query_queue)? else {
            return Ok(Round::Wait);
        };
        let listing = QueueListing::parse(&listing)?;
        let now_s = (self.caller.now_s)(&listing);
        self.cancel_strays(&listing);
        self.observe_links(&listing, now_s)?;
        if self.state.is_done(self.plan.links) {
            return Ok(Round::Done);
        }

        let Some(last) = self.state.links.last().cloned() else {
            return self.submit(None, now_s);
        };
        if last.job.is_none() {
            return self.find_job(&listing);
        }
        if !last.is_released && last.end_s.is_none() {
            return self.release();
        }
        if last.number >= self.plan.links {
            return Ok(Round::Wait);
        }
        self.decide(&last, &listing, now_s)
    }

    /// Runs `question`. Returns `None` while Slurm does not answer, and reports that only once.
    fn query(
        &mut self,
        question: impl Fn() -> Result<Vec<u8>, SlurmFault>,
    ) -> Result<Option<Vec<u8>>> {
        match question() {
            Ok(answer) => {
                if std::mem::take(&mut self.is_away) {
                    (self.caller.tell)(ChainNote::Back);
                }
                Ok(Some(answer))
            }
            Err(fault @ (SlurmFault::Missing { .. } | SlurmFault::Unusable { .. })) => {
                Err(fault.into())
            }
            Err(fault) => {
                if !std::mem::replace(&mut self.is_away, true) {
                    (self.caller.tell)(ChainNote::Away(fault.to_string()));
                }
                Ok(None)
            }
        }
    }

    fn cancel_strays(&self, listing: &QueueListing) {
        for id in self.state.strays(listing) {
            // The next round retries a failed cancellation.
            if cancel_job(id).is_ok() {
                (self.caller.tell)(ChainNote::StrayCancelled(id));
            }
        }
    }

    /// Updates all links from the listing, and reports their events.
    fn observe_links(&mut self, listing: &QueueListing, now_s: i64) -> Result<()> {
        let before = self.state.clone();
        let mut events = Vec::new();
        for place in 0..self.state.links.len() {
            let Some(event) = self.state.observe(place, listing, now_s) else {
                continue;
            };
            if event == LinkEvent::Forgotten {
                self.recall(place);
            }
            events.push((place, event));
        }
        if *self.state != before {
            self.state.save()?;
        }
        for (place, event) in events {
            // Report each gap once, when both its start and its end are known.
            let place_of_gap = match event {
                LinkEvent::Started => place,
                _ => place + 1,
            };
            let gap_s = self.state.gap_s(place_of_gap);
            (self.caller.tell)(ChainNote::Link(&self.state.links[place], event, gap_s));
        }
        Ok(())
    }

    /// Asks the accounting for the end of a link that Slurm no longer lists. Without an answer, the
    /// current time remains the end.
    fn recall(&mut self, place: usize) {
        let link = &mut self.state.links[place];
        let Some(ended) = link.job.and_then(|id| query_ended_job(id).ok()).flatten() else {
            return;
        };
        link.start_s = ended.start_s;
        link.end_s = Some(ended.end_s);
        link.outcome = ended.outcome;
    }

    /// Decides whether to submit the successor of `last` now.
    fn decide(&mut self, last: &ChainLink, listing: &QueueListing, now_s: i64) -> Result<Round> {
        let has_failed = last
            .outcome
            .is_some_and(|outcome| !outcome.allows_successor());
        if has_failed && last.number > self.state.told_failure {
            self.state.told_failure = last.number;
            self.state.save()?;
            return Err(link_failure(last).into());
        }
        if last.end_s.is_some() {
            return self.submit(None, now_s);
        }
        let id = last.job.unwrap_or(0);
        let Some(job) = listing.jobs.iter().find(|job| job.id == id) else {
            return Ok(Round::Soon);
        };
        match job.state {
            QueueState::Pending => return Ok(Round::Wait),
            // The outcome will be known shortly.
            QueueState::Completing | QueueState::Ended => return Ok(Round::Soon),
            QueueState::Running => {}
        }
        let Some(nodes) = self.query(query_nodes)? else {
            return Ok(Round::Wait);
        };
        let nodes = NodeListing::parse(&nodes)?;
        let advice = (self.caller.advise)(listing, &nodes, job)?;
        match advice.answer {
            SubmissionAnswer::Now => self.submit(Some(&advice), now_s),
            SubmissionAnswer::Later { .. } => Ok(Round::Wait),
            SubmissionAnswer::None { .. } => {
                if std::mem::replace(&mut self.unadvised, last.number) != last.number {
                    (self.caller.tell)(ChainNote::NoAdvice(last, &advice));
                }
                Ok(Round::Wait)
            }
        }
    }

    /// Submits the next link, held, and then releases it.
    fn submit(&mut self, advice: Option<&SubmissionAdvice>, now_s: i64) -> Result<Round> {
        let number = self.state.links.len() as u32 + 1;
        let predecessor = self.state.links.last().and_then(|link| link.job);
        self.state.links.push(ChainLink {
            number,
            job: None,
            is_released: false,
            submit_s: now_s,
            start_s: None,
            end_s: None,
            outcome: None,
        });
        self.absences = 0;
        // Write the intent first: after a crash, the next run looks for the job.
        self.state.save()?;

        let comment = self.state.comment_of(number);
        let mut arguments = vec!["--hold".to_owned(), format!("--comment={comment}")];
        arguments.extend(self.plan.command.iter().cloned());
        let environment = [
            (
                PREDECESSOR_VARIABLE,
                predecessor.map_or(String::new(), |id| id.to_string()),
            ),
            (LINK_VARIABLE, number.to_string()),
        ];
        match submit_job(&arguments, &environment, (self.caller.lock)()) {
            Ok(SubmissionAttempt::Submitted(id)) => {
                self.record_job(id)?;
                let round = self.release()?;
                (self.caller.tell)(ChainNote::Submitted(self.last(), advice));
                Ok(round)
            }
            Ok(SubmissionAttempt::Refused(said)) => self.drop_rejected_link(number, &said),
            Ok(SubmissionAttempt::Unclear(said)) => {
                (self.caller.tell)(ChainNote::Unclear(number, &said));
                Ok(Round::Soon)
            }
            Err(fault) => {
                self.state.links.pop();
                self.state.save()?;
                Err(fault.into())
            }
        }
    }

    fn last(&self) -> &ChainLink {
        self.state.links.last().expect("a link was just submitted")
    }

    fn record_job(&mut self, id: u64) -> Result<()> {
        if let Some(link) = self.state.links.last_mut() {
            link.job = Some(id);
        }
        self.refusals = 0;
        self.state.save()
    }

    /// Removes a submission that Slurm rejected.
    fn drop_rejected_link(&mut self, number: u32, said: &str) -> Result<Round> {
        self.state.links.pop();
        self.state.save()?;
        self.refusals += 1;
        // A script that never worked is probably wrong, so do not retry the first link.
        if number == 1 || self.refusals >= MAX_REFUSALS {
            let message = format!("Slurm rejects link {number}: {said}");
            let hint = "correct the script, then run the same command again";
            return Err(hinted(message, hint).into());
        }
        (self.caller.tell)(ChainNote::Refused(number, said));
        Ok(Round::Wait)
    }

    /// Searches for the job of a submission with an unknown result.
    fn find_job(&mut self, listing: &QueueListing) -> Result<Round> {
        let number = self.last().number;
        if let Some(job) = self.state.link_job(listing, number) {
            let id = job.id;
            self.record_job(id)?;
            (self.caller.tell)(ChainNote::Found(self.last()));
            return self.release();
        }
        self.absences += 1;
        if self.absences >= MAX_ABSENCES {
            self.state.links.pop();
            self.state.save()?;
        }
        Ok(Round::Soon)
    }

    /// Releases the job of the last link.
    fn release(&mut self) -> Result<Round> {
        let id = self.last().job.unwrap_or(0);
        match release_job(id) {
            Ok(()) => {}
            Err(missing @ SlurmFault::Missing { .. }) => return Err(missing.into()),
            Err(fault) => {
                (self.caller.tell)(ChainNote::NotReleased(self.last(), &fault.to_string()));
                return Ok(Round::Wait);
            }
        }
        if let Some(link) = self.state.links.last_mut() {
            link.is_released = true;
        }
        self.state.save()?;
        Ok(Round::Soon)
    }
}

fn link_failure(link: &ChainLink) -> poolcast_base::error::HintedError {
    let how = link
        .outcome
        .map_or("has ended", |outcome| outcome.describe());
    hinted(
        format!("link {} (job {}) {how}", link.number, link.job.unwrap_or(0)),
        "check its output; run the same command again to continue with the next link",
    )
}
