//! A chain, link by link.
//!
//! A link is submitted held, under a comment that no other has, after its state file says that it
//! will be; and is released once the file has its number. Whoever finds such a file after a kill
//! finds the job by the comment, for a held job stays in the queue. So a link may be submitted twice,
//! where an answer of the controller was lost; but it never runs twice.

use std::fs::File;
use std::time::Duration;

use anyhow::Result;

use super::chain_state::{ChainLink, ChainState, LinkEvent};
use poolcast_base::error::hinted;
use crate::live::{
    ListedJob, NodeListing, QueueListing, QueueState, SlurmFault, SubmissionAdvice,
    SubmissionAnswer, SubmissionAttempt, ask_ended_job, ask_nodes, ask_queue, cancel_job,
    release_job, submit_job,
};

/// What jobs know their predecessor's number by.
pub const PREDECESSOR_VARIABLE: &str = "POOLCAST_PREDECESSOR";
/// What jobs know their own number in the chain by.
pub const LINK_VARIABLE: &str = "POOLCAST_LINK";

/// A submission of which nobody knows what came is made again only after it was not found so often.
const MOST_ABSENCES: u32 = 3;

/// After so many refusals in a row the chain stops.
const MOST_REFUSALS: u32 = 30;

/// How long until something is looked at again that will have changed then.
const SOON: Duration = Duration::from_secs(1);

/// What is done, and how.
#[derive(Debug, Clone)]
pub struct ChainPlan {
    /// What `sbatch` submits: a script and its arguments.
    pub command: Vec<String>,
    /// How many links the chain is to have.
    pub links: u32,
    /// How often it is decided whether to submit.
    pub every: Duration,
}

/// What is said while a chain runs.
#[derive(Debug)]
pub enum ChainNote<'a> {
    /// Slurm does not answer.
    Away(String),
    /// It answers again.
    Back,
    /// A link was submitted; what was expected of it, if it has a predecessor.
    Submitted(&'a ChainLink, Option<&'a SubmissionAdvice>),
    /// Slurm has refused a link.
    Refused(u32, &'a str),
    /// A submission may be lost.
    Unclear(u32, &'a str),
    /// The job of a link is held still.
    NotReleased(&'a ChainLink, &'a str),
    /// There is no advice on the successor of a link, which is submitted once that has ended.
    NoAdvice(&'a ChainLink, &'a SubmissionAdvice),
    /// The job of a submission that seemed lost was found.
    Found(&'a ChainLink),
    /// A job was cancelled that was submitted though another one was.
    StrayCancelled(u64),
    /// Something has become of a link, whose gap may be known now.
    Link(&'a ChainLink, LinkEvent, Option<i64>),
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainEnd {
    /// All links have been submitted, and the last one has started.
    Done,
    /// It was told to stop.
    Stopped,
}

/// Says what to do with the successor of a job, by what Slurm lists.
pub type AdviseLink<'a> =
    dyn Fn(&QueueListing, &NodeListing, &ListedJob) -> Result<SubmissionAdvice> + 'a;

/// What a chain asks of whoever runs it.
pub struct ChainCaller<'a> {
    /// Whether to submit.
    pub advise: &'a AdviseLink<'a>,
    /// Says something.
    pub tell: &'a dyn Fn(ChainNote<'_>),
    /// Sleeps; returns whether to stop.
    pub pause: &'a dyn Fn(Duration) -> bool,
    /// Stays open in each `sbatch`: the lock of the directory.
    pub lock: &'a dyn Fn() -> Option<File>,
    /// The moment that it is, epoch seconds.
    pub now_s: &'a dyn Fn(&QueueListing) -> i64,
}

/// What the loop knows beside the state.
struct ChainRun<'a> {
    state: &'a mut ChainState,
    plan: &'a ChainPlan,
    caller: &'a ChainCaller<'a>,
    is_away: bool,
    absences: u32,
    refusals: u32,
    /// The last link for whose successor there was no advice.
    unadvised: u32,
}

/// What a round came to.
enum Round {
    /// Go on after the usual time.
    Wait,
    /// Go on soon.
    Soon,
    Done,
}

/// Runs the chain until it is done or told to stop.
///
/// # Errors
/// Fails where Slurm's programs are not, refuse for good, or answer in a way that is not known; and
/// where a link has failed or was cancelled: then the next call goes on with the next link.
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
            Round::Soon => SOON.min(plan.every),
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
        let Some(listing) = self.ask(ask_queue)? else {
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

    /// What `question` answers; `None` while Slurm does not answer, which is said once.
    fn ask(
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
            // Whatever fails here is tried again in the next round.
            if cancel_job(id).is_ok() {
                (self.caller.tell)(ChainNote::StrayCancelled(id));
            }
        }
    }

    /// Takes what has become of all links.
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
            // A gap is told once both of its moments are known.
            let place_of_gap = match event {
                LinkEvent::Started => place,
                _ => place + 1,
            };
            let gap_s = self.state.gap_s(place_of_gap);
            (self.caller.tell)(ChainNote::Link(&self.state.links[place], event, gap_s));
        }
        Ok(())
    }

    /// Asks the accounting how a link ended that Slurm lists no more. Without an answer it has ended
    /// now.
    fn recall(&mut self, place: usize) {
        let link = &mut self.state.links[place];
        let Some(ended) = link.job.and_then(|id| ask_ended_job(id).ok()).flatten() else {
            return;
        };
        link.start_s = ended.start_s;
        link.end_s = Some(ended.end_s);
        link.outcome = ended.outcome;
    }

    /// Decides whether the successor of `last` is submitted now.
    fn decide(&mut self, last: &ChainLink, listing: &QueueListing, now_s: i64) -> Result<Round> {
        let has_failed = last
            .outcome
            .is_some_and(|outcome| !outcome.is_worth_another());
        if has_failed && last.number > self.state.told_failure {
            self.state.told_failure = last.number;
            self.state.save()?;
            return Err(link_failed(last).into());
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
            // How it ends is known in a moment.
            QueueState::Completing | QueueState::Ended => return Ok(Round::Soon),
            QueueState::Running => {}
        }
        let Some(nodes) = self.ask(ask_nodes)? else {
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

    /// Submits the next link.
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
                self.take_job(id)?;
                let round = self.release()?;
                (self.caller.tell)(ChainNote::Submitted(self.last(), advice));
                Ok(round)
            }
            Ok(SubmissionAttempt::Refused(said)) => self.give_up_attempt(number, &said),
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

    fn take_job(&mut self, id: u64) -> Result<()> {
        if let Some(link) = self.state.links.last_mut() {
            link.job = Some(id);
        }
        self.refusals = 0;
        self.state.save()
    }

    /// Forgets a submission that Slurm has refused.
    fn give_up_attempt(&mut self, number: u32, said: &str) -> Result<Round> {
        self.state.links.pop();
        self.state.save()?;
        self.refusals += 1;
        // Nobody has seen a first link work.
        if number == 1 || self.refusals >= MOST_REFUSALS {
            let message = format!("Slurm refuses link {number}: {said}");
            let hint = "mend the script, then type the same command again";
            return Err(hinted(message, hint).into());
        }
        (self.caller.tell)(ChainNote::Refused(number, said));
        Ok(Round::Wait)
    }

    /// Looks for the job of a submission of which it is not known what came.
    fn find_job(&mut self, listing: &QueueListing) -> Result<Round> {
        let number = self.last().number;
        if let Some(job) = self.state.job_in(listing, number) {
            let id = job.id;
            self.take_job(id)?;
            (self.caller.tell)(ChainNote::Found(self.last()));
            return self.release();
        }
        self.absences += 1;
        if self.absences >= MOST_ABSENCES {
            self.state.links.pop();
            self.state.save()?;
        }
        Ok(Round::Soon)
    }

    /// Lets the last link into the queue.
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

fn link_failed(link: &ChainLink) -> poolcast_base::error::HintedError {
    let how = link
        .outcome
        .map_or("has ended", |outcome| outcome.describe());
    hinted(
        format!("link {}, job {}, {how}", link.number, link.job.unwrap_or(0)),
        "look at its output; the same command typed again goes on with the next link",
    )
}
