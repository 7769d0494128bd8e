//! Runs a chain of jobs, link by link.
//!
//! The chain first writes the coming submission to its state file. It then submits the job held,
//! with a unique comment, and releases it once the file has its job id. If the chain is killed in
//! between, the next run finds the job by its comment, because a held job stays in the queue. So a
//! link may be submitted twice, if an answer of the controller is lost, but it never runs twice.
//!
//! The chain submits a successor ahead of the end of its predecessor only if the forecast agrees
//! with Slurm's own plan, or with a dependency on that end. It stops if the cluster has shown a forecast wrong.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;

use super::chain_state::{ChainLink, ChainState, LinkEvent};
use crate::live::{
    ClusterListing, ListedJob, NoAdviceReason, PlannedStart, QueueListing, QueueState,
    RecordedState, SlurmFault, SlurmSettings, SubmissionAdvice, SubmissionAnswer,
    SubmissionAttempt, cancel_job, plan_script, query_job_record, query_nodes, query_queue,
    query_settings, release_job, submit_job,
};
use poolcast_base::error::hinted;

/// Name of the environment variable that holds the job id of the predecessor.
pub const PREDECESSOR_VARIABLE: &str = "POOLCAST_PREDECESSOR";
/// Name of the environment variable that holds the number of the link.
pub const LINK_VARIABLE: &str = "POOLCAST_LINK";

/// Number of searches without a result after which a submission with an unknown result is repeated.
const MAX_ABSENCES: u32 = 3;

/// Number of consecutive rejections of a link without a running predecessor, or of consecutive
/// rounds without a usable answer of Slurm, after which the chain stops.
const MAX_REFUSALS: u32 = 30;

/// The pause before the next round if a change is expected soon.
const SHORT_PAUSE: Duration = Duration::from_secs(1);

/// When a chain submits the successor of a running link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ChainTiming {
    /// As a forecast of its wait says, so that it starts when the running link ends
    Forecast,
    /// At once, with a dependency on the end of the running link
    Dependency,
    /// Once the running link has ended
    Ended,
}

/// The job of each link, and the length and pace of the chain.
#[derive(Debug, Clone)]
pub struct ChainPlan {
    /// The arguments of `sbatch`: a script and its arguments.
    pub command: Vec<String>,
    /// Number of links in the chain.
    pub links: u32,
    /// Interval between decisions whether to submit.
    pub every: Duration,
    /// When successors are submitted; `None` for forecasts where they can be had, and else for dependencies.
    pub when: Option<ChainTiming>,
    /// Time after which no link is to start, in epoch seconds.
    pub deadline_s: Option<i64>,
    /// The job in which the caller runs, if that is a link of the chain. The call ends once the successor of that link is
    /// submitted.
    pub own: Option<OwnJob>,
}

/// The job in which the caller runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnJob {
    /// The job id.
    pub id: u64,
    /// The directory from which the job was submitted.
    pub submit_dir: PathBuf,
    /// True if the script of the job is about to end, so that its successor is to be submitted now.
    pub is_ending: bool,
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
    /// Slurm rejected the link with this number, for this reason. It is submitted again.
    Refused(u32, &'a str),
    /// Slurm rejected the link with this number, for this reason, while its predecessor runs. It is
    /// submitted again once that has ended.
    RefusedBehind(u32, &'a str),
    /// The result of submitting the link with this number is unknown, for this reason.
    Unclear(u32, &'a str),
    /// The job of a link could not be released, for this reason.
    NotReleased(&'a ChainLink, &'a str),
    /// There is no advice on the successor of a link, for this reason. It is submitted once the link
    /// has ended.
    NoAdvice(&'a ChainLink, &'a NoAdviceReason),
    /// There are no forecasts, for this reason. From now on links depend on the end of the link before.
    WithoutForecast(&'a NoAdviceReason),
    /// A link started far earlier than forecast. From now on links depend on the end of the link before.
    EarlyStart(&'a ChainLink),
    /// A link was cancelled, because the work was done before it.
    Needless(&'a ChainLink),
    /// A link that is no longer needed could not be cancelled, for this reason.
    NotCancelled(&'a ChainLink, &'a str),
    /// Slurm no longer lists a link, which may still be alive.
    Absent(&'a ChainLink),
    /// The job of a submission with an unknown result was found.
    Found(&'a ChainLink),
    /// A superfluous second job of a link was cancelled.
    StrayCancelled(u64),
    /// An event of a link, and the gap in seconds that it completes, if any.
    Link(&'a ChainLink, LinkEvent, Option<i64>),
}

/// The way in which a chain ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainEnd {
    /// All links were submitted, and the last one has started or ended.
    Done,
    /// The caller stopped the chain.
    Stopped,
    /// The work was done after the link with this number.
    WorkDone(u32),
    /// The next link would start after the deadline.
    Deadline,
    /// The cluster cannot be forecast.
    NoAdvice(NoAdviceReason),
    /// This link started far earlier than forecast.
    EarlyStart(ChainLink),
    /// The successor of the caller's own job is submitted.
    Submitted,
}

/// Advises on the successor of a job, given Slurm's listings.
pub type AdviseLink<'a> = dyn Fn(&ClusterListing<'_>, &ListedJob) -> Result<SubmissionAdvice> + 'a;

/// Returns true if the work of a chain is done after a link.
pub type IsWorkDone<'a> = dyn Fn(&ChainLink) -> Result<bool> + 'a;

/// Callbacks of a chain.
pub struct ChainCaller<'a> {
    /// Advises whether to submit.
    pub advise: &'a AdviseLink<'a>,
    /// Returns true if the work is done after this link, which has ended; `None` if nobody knows before all links have
    /// run.
    pub is_work_done: Option<&'a IsWorkDone<'a>>,
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
pub(super) struct ChainRun<'a> {
    pub(super) state: &'a mut ChainState,
    pub(super) plan: &'a ChainPlan,
    pub(super) caller: &'a ChainCaller<'a>,
    timing: ChainTiming,
    /// The settings of the cluster, once this call has checked that it can be forecast.
    settings: Option<SlurmSettings>,
    is_away: bool,
    /// True if Slurm has not answered in this round.
    has_fault: bool,
    /// Rounds with an unusable answer since the last round with all answers.
    unusable_rounds: u32,
    absences: u32,
    refusals: u32,
    /// The last link without advice on its successor.
    unadvised: u32,
    /// The last link behind which Slurm rejected the next one.
    refused_behind: u32,
    /// The last link that was reported as absent.
    told_absent: u32,
}

/// The result of a round.
pub(super) enum Round {
    /// Continue after the usual pause.
    Wait,
    /// Continue after a short pause.
    Soon,
    /// The chain ends.
    End(ChainEnd),
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
    let mut run = ChainRun::new(state, plan, caller);
    loop {
        run.has_fault = false;
        let round = run.round()?;
        if !run.has_fault {
            run.note_answers();
        }
        let pause = match round {
            Round::End(end) => return Ok(end),
            Round::Soon => SHORT_PAUSE.min(plan.every),
            Round::Wait => plan.every,
        };
        if (caller.pause)(pause) {
            return Ok(ChainEnd::Stopped);
        }
    }
}

impl<'a> ChainRun<'a> {
    pub(super) fn new(
        state: &'a mut ChainState,
        plan: &'a ChainPlan,
        caller: &'a ChainCaller<'a>,
    ) -> ChainRun<'a> {
        // Nobody reads the error of a wrong forecast before the next link.
        let is_misled = plan.own.is_some() && state.told_early_start > 0;
        let timing = match is_misled {
            true => ChainTiming::Dependency,
            false => plan.when.unwrap_or(ChainTiming::Forecast),
        };
        ChainRun {
            state,
            plan,
            caller,
            timing,
            settings: None,
            is_away: false,
            has_fault: false,
            unusable_rounds: 0,
            absences: 0,
            refusals: 0,
            unadvised: 0,
            refused_behind: 0,
            told_absent: 0,
        }
    }

    fn round(&mut self) -> Result<Round> {
        if self.state.is_done(self.plan.links) {
            return Ok(Round::End(ChainEnd::Done));
        }
        // From here on the successor may write the state.
        if self.has_released_successor() {
            return Ok(Round::End(ChainEnd::Submitted));
        }
        let Some(listing) = self.query(query_queue)? else {
            return Ok(Round::Wait);
        };
        let now_s = (self.caller.now_s)(&listing);
        self.cancel_strays(&listing);
        self.observe_links(&listing, now_s)?;
        if let Some(round) = self.check_work(&listing)? {
            return Ok(round);
        }
        // A link that started far too early may also have failed for that reason.
        if let Some(end) = self.check_starts()? {
            return Ok(Round::End(end));
        }
        self.check_failures()?;
        if self.state.is_done(self.plan.links) {
            return Ok(Round::End(ChainEnd::Done));
        }
        if self.timing == ChainTiming::Forecast
            && self.settings.is_none()
            && let Some(round) = self.check_cluster(&listing, now_s)?
        {
            return Ok(round);
        }

        let Some(last) = self.state.links.last().cloned() else {
            return match self.is_late(now_s) {
                true => Ok(Round::End(ChainEnd::Deadline)),
                false => self.submit(None, now_s),
            };
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
        let has_started = last.start_s.or(last.end_s).is_some();
        if has_started && self.is_late(now_s) {
            return Ok(Round::End(ChainEnd::Deadline));
        }
        self.decide(&last, &listing, now_s)
    }

    /// Returns true if the caller runs in a link whose successor is released.
    fn has_released_successor(&self) -> bool {
        let (Some(own), Some(last)) = (&self.plan.own, self.state.links.last()) else {
            return false;
        };
        last.is_released && last.job != Some(own.id)
    }

    /// Returns true if the caller runs in `job`, and there is no later moment to submit its successor: a round may be
    /// late by an interval.
    pub(super) fn is_last_moment(&self, job: &ListedJob, now_s: i64) -> bool {
        let Some(own) = &self.plan.own else {
            return false;
        };
        let margin_s = 2 * self.plan.every.as_secs() as i64;
        own.is_ending || job.end_s.is_some_and(|end_s| end_s - now_s <= margin_s)
    }

    /// Returns true if `start_s` is after the deadline.
    fn is_late(&self, start_s: i64) -> bool {
        self.plan
            .deadline_s
            .is_some_and(|deadline_s| start_s > deadline_s)
    }

    /// Checks once in a call that the cluster can be forecast, before the call submits anything.
    /// Returns the result of the round if it cannot, or if Slurm does not answer.
    fn check_cluster(&mut self, listing: &QueueListing, now_s: i64) -> Result<Option<Round>> {
        let Some(settings) = self.query(query_settings)? else {
            return Ok(Some(Round::Wait));
        };
        let Some(nodes) = self.query(|| query_nodes(Some(&settings)))? else {
            return Ok(Some(Round::Wait));
        };
        let plan = match plan_script(&self.plan.command) {
            Err(fault) if fault.is_transient() => {
                self.tell_away(&fault);
                return Ok(Some(Round::Wait));
            }
            plan => plan.ok(),
        };
        let cluster = ClusterListing {
            queue: listing,
            nodes: Some(&nodes),
            settings: Some(&settings),
        };
        // If Slurm rejects the script now, its partition is checked before the second link.
        let partition = plan.and_then(|plan| plan.partition);
        let obstacle = match &partition {
            Some(partition) => cluster.find_obstacle(partition, now_s),
            None => None,
        };
        // A new controller will soon have heard of all nodes, and each link asks again.
        let obstacle = obstacle.filter(|why| !matches!(why, NoAdviceReason::UnheardNodes(_)));
        if let Some(obstacle) = obstacle {
            return Ok(self.go_without_forecast(&obstacle));
        }
        self.settings = Some(settings);
        Ok(None)
    }

    /// Goes on with dependencies, as the cluster cannot be forecast for this `reason`. Returns the end of the chain if
    /// its user wants forecasts.
    fn go_without_forecast(&mut self, reason: &NoAdviceReason) -> Option<Round> {
        if self.plan.when.is_some() {
            return Some(Round::End(ChainEnd::NoAdvice(reason.clone())));
        }
        self.timing = ChainTiming::Dependency;
        (self.caller.tell)(ChainNote::WithoutForecast(reason));
        None
    }

    /// Asks once after each link whether the work is done. If it is, the chain ends, and cancels the links after it. One of
    /// them may have started: Slurm starts a link that depends on the end of another one before anybody can ask.
    fn check_work(&mut self, listing: &QueueListing) -> Result<Option<Round>> {
        if self.state.done_after.is_none() {
            let Some(ended) = self.state.last_unasked().cloned() else {
                return Ok(None);
            };
            let Some(is_done) = self.is_work_done(&ended)? else {
                return Ok(None);
            };
            self.state.note_work(ended.number, is_done)?;
        }
        let Some(number) = self.state.done_after else {
            return Ok(None);
        };
        Ok(Some(match self.cancel_after(number, listing)? {
            true => Round::End(ChainEnd::WorkDone(number)),
            false => Round::Wait,
        }))
    }

    /// Returns true if the work is done after `link`; `None` if nobody knows. The links of a chain inside its jobs say so
    /// themselves, unless somebody else does: one that ends with exit code 0, and was not asked to end, has nothing left to do.
    pub(super) fn is_work_done(&self, link: &ChainLink) -> Result<Option<bool>> {
        match (self.caller.is_work_done, &self.plan.own) {
            (Some(is_work_done), _) => is_work_done(link).map(Some),
            (None, Some(_)) => Ok(Some(self.state.has_succeeded(link))),
            (None, None) => Ok(None),
        }
    }

    /// Cancels the links after `number` that are alive. Returns false if one of them could not be cancelled.
    pub(super) fn cancel_after(&self, number: u32, listing: &QueueListing) -> Result<bool> {
        let mut are_cancelled = true;
        for link in &self.state.links[number as usize..] {
            let job = link.job.and_then(|id| self.state.own_job(listing, id));
            let is_alive =
                |job: &&ListedJob| !matches!(job.state, QueueState::Completing | QueueState::Ended);
            let Some(job) = job.filter(is_alive) else {
                continue;
            };
            match cancel_job(job.id) {
                Ok(()) => (self.caller.tell)(ChainNote::Needless(link)),
                Err(missing @ SlurmFault::Missing { .. }) => return Err(missing.into()),
                Err(fault) => {
                    (self.caller.tell)(ChainNote::NotCancelled(link, &fault.to_string()));
                    are_cancelled = false;
                }
            }
        }
        Ok(are_cancelled)
    }

    /// Reports a link that failed without being asked to end.
    fn check_failures(&mut self) -> Result<()> {
        let Some(failed) = self.state.unreported_failure().cloned() else {
            return Ok(());
        };
        self.state.told_failure = failed.number;
        self.state.save()?;
        // A chain inside its jobs has nobody to ask, and takes one failure for an accident.
        if self.plan.own.is_some() && !self.state.has_failed(failed.number - 1) {
            return Ok(());
        }
        let next = self.state.links.get(failed.number as usize);
        Err(link_failure(&failed, next).into())
    }

    /// Reports a link that started far earlier than forecast.
    fn check_starts(&mut self) -> Result<Option<ChainEnd>> {
        let Some(early) = self.state.unreported_early_start().cloned() else {
            return Ok(None);
        };
        self.state.told_early_start = early.number;
        if early.end_s.is_some() {
            self.state.told_failure = self.state.told_failure.max(early.number);
        }
        self.state.save()?;
        if self.plan.own.is_some() {
            self.timing = ChainTiming::Dependency;
            (self.caller.tell)(ChainNote::EarlyStart(&early));
            return Ok(None);
        }
        Ok(Some(ChainEnd::EarlyStart(early)))
    }

    /// Runs `question`. Returns `None` while Slurm does not answer, and reports that only once.
    ///
    /// # Errors
    /// Fails if the program is missing, or its answers stay unusable.
    pub(super) fn query<T>(
        &mut self,
        question: impl Fn() -> Result<T, SlurmFault>,
    ) -> Result<Option<T>> {
        let fault = match question() {
            Ok(answer) => return Ok(Some(answer)),
            Err(fault @ SlurmFault::Missing { .. }) => return Err(fault.into()),
            Err(fault) => fault,
        };
        if !fault.is_transient() {
            self.unusable_rounds += 1;
            if self.unusable_rounds >= MAX_REFUSALS {
                return Err(fault.into());
            }
        }
        self.tell_away(&fault);
        Ok(None)
    }

    /// Notes that Slurm has answered all questions of a round.
    fn note_answers(&mut self) {
        self.unusable_rounds = 0;
        if std::mem::take(&mut self.is_away) {
            (self.caller.tell)(ChainNote::Back);
        }
    }

    fn tell_away(&mut self, fault: &SlurmFault) {
        self.has_fault = true;
        if !std::mem::replace(&mut self.is_away, true) {
            (self.caller.tell)(ChainNote::Away(fault.to_string()));
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
    pub(super) fn observe_links(&mut self, listing: &QueueListing, now_s: i64) -> Result<()> {
        let before = self.state.clone();
        let mut events = Vec::new();
        for place in 0..self.state.links.len() {
            let mut event = self.state.observe(place, listing, now_s);
            if self.state.links[place].is_absent() || event == Some(LinkEvent::Forgotten) {
                event = self.recall(place, event, now_s);
            }
            if let Some(event) = event {
                events.push((place, event));
            }
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

    /// Asks the accounting about a link that Slurm does not list, and returns its event. `event` is
    /// the event without an answer.
    fn recall(&mut self, place: usize, event: Option<LinkEvent>, now_s: i64) -> Option<LinkEvent> {
        let link = &mut self.state.links[place];
        match link.job.map(query_job_record) {
            Some(Ok(RecordedState::Ended(ended))) => {
                link.start_s = ended.start_s;
                link.end_s = Some(ended.end_s);
                link.outcome = ended.outcome;
                Some(LinkEvent::Forgotten)
            }
            // The accounting may never learn that a job has ended.
            Some(Ok(RecordedState::Alive)) if !link.has_outlived_limit(now_s) => {
                link.end_s = None;
                link.forget_absence();
                self.tell_absent(place);
                None
            }
            _ => {
                if event.is_none() {
                    self.tell_absent(place);
                }
                event
            }
        }
    }

    fn tell_absent(&mut self, place: usize) {
        let link = &self.state.links[place];
        if link.number > self.told_absent {
            self.told_absent = link.number;
            (self.caller.tell)(ChainNote::Absent(link));
        }
    }

    /// Decides whether to submit the successor of `last` now.
    fn decide(&mut self, last: &ChainLink, queue: &QueueListing, now_s: i64) -> Result<Round> {
        if last.end_s.is_some() {
            return match self.plan.own {
                // The caller has outlived its job, and Slurm is about to end it.
                Some(_) => Ok(Round::End(ChainEnd::Stopped)),
                None => self.submit(None, now_s),
            };
        }
        if self.timing == ChainTiming::Ended {
            return Ok(Round::Wait);
        }
        let Some(job) = self.state.own_job(queue, last.job.unwrap_or(0)) else {
            return Ok(Round::Wait);
        };
        match job.state {
            QueueState::Pending | QueueState::Unknown => return Ok(Round::Wait),
            // The outcome will be known shortly.
            QueueState::Completing | QueueState::Ended => return Ok(Round::Soon),
            QueueState::Running => {}
        }
        // The caller does not live to see the end of its own job, and tries again.
        if self.refused_behind == last.number && self.plan.own.is_none() {
            return Ok(Round::Wait);
        }
        if self.timing == ChainTiming::Dependency || self.is_last_moment(job, now_s) {
            // If the link ends before its limit, the next one may still start in time.
            let is_ending = self.plan.own.as_ref().is_some_and(|own| own.is_ending);
            let end_s = job.end_s.filter(|_| !is_ending).unwrap_or(now_s);
            return match self.is_late(end_s) {
                true => Ok(Round::Wait),
                false => self.submit(None, now_s),
            };
        }
        let settings = self.settings.clone();
        let Some(nodes) = self.query(|| query_nodes(settings.as_ref()))? else {
            return Ok(Round::Wait);
        };
        let cluster = ClusterListing {
            queue,
            nodes: Some(&nodes),
            settings: self.settings.as_ref(),
        };
        let advice = (self.caller.advise)(&cluster, job)?;
        let expected = advice.expected;
        let wait_s = expected.map_or(0, |expected| expected.wait_p50_s);
        match &advice.answer {
            SubmissionAnswer::Now if self.is_late(now_s + wait_s) => Ok(Round::Wait),
            SubmissionAnswer::Now => self.submit_ahead(last, advice, now_s),
            SubmissionAnswer::Later { .. } => Ok(Round::Wait),
            SubmissionAnswer::None { reason } => Ok(self.wait_for_end(last, reason)),
        }
    }

    /// Submits the successor of the running link `last`, as `advice` recommends, unless Slurm's own
    /// plan contradicts the advice.
    fn submit_ahead(
        &mut self,
        last: &ChainLink,
        advice: SubmissionAdvice,
        now_s: i64,
    ) -> Result<Round> {
        let PlannedStart { start_s, .. } = match plan_script(&self.plan.command) {
            Ok(plan) => plan,
            Err(fault) if fault.is_transient() => {
                self.tell_away(&fault);
                return Ok(Round::Wait);
            }
            Err(SlurmFault::Refused { said, .. }) => {
                return Ok(self.wait_behind(last.number, &said));
            }
            Err(SlurmFault::Unusable { .. }) => {
                return Ok(self.wait_for_end(last, &NoAdviceReason::NoPlan));
            }
            Err(fault) => return Err(fault.into()),
        };
        let advice = advice.checked_by_plan(start_s);
        match &advice.answer {
            SubmissionAnswer::None { reason } => Ok(self.wait_for_end(last, reason)),
            _ => self.submit(Some(&advice), now_s),
        }
    }

    /// Waits for the end of the running link `last`, because there is no advice for this `reason`.
    /// If there will be none later, either, the chain goes on with dependencies or ends.
    fn wait_for_end(&mut self, last: &ChainLink, reason: &NoAdviceReason) -> Round {
        if reason.is_permanent() {
            return self.go_without_forecast(reason).unwrap_or(Round::Soon);
        }
        if std::mem::replace(&mut self.unadvised, last.number) != last.number {
            (self.caller.tell)(ChainNote::NoAdvice(last, reason));
        }
        Round::Wait
    }

    /// Waits for the end of the running link `number`, because Slurm rejects the next one until
    /// then: its users may have a limit on the number of their jobs.
    fn wait_behind(&mut self, number: u32, said: &str) -> Round {
        let is_repeated = std::mem::replace(&mut self.refused_behind, number) == number;
        match self.plan.own {
            Some(_) if is_repeated => {}
            Some(_) => (self.caller.tell)(ChainNote::Refused(number + 1, said)),
            None => (self.caller.tell)(ChainNote::RefusedBehind(number + 1, said)),
        }
        Round::Wait
    }

    /// Submits the next link, held, and then releases it.
    fn submit(&mut self, advice: Option<&SubmissionAdvice>, now_s: i64) -> Result<Round> {
        let number = self.state.links.len() as u32 + 1;
        let before = self.state.links.last();
        let predecessor = before.and_then(|link| link.job);
        let is_alive = before.is_some_and(|link| link.end_s.is_none());
        let dependency = predecessor.filter(|_| is_alive && advice.is_none());
        let expected = advice.and_then(|advice| advice.expected);
        let mut link = ChainLink::intended(number, now_s);
        link.expected_wait_s = expected.map(|expected| expected.wait_p10_s);
        self.state.links.push(link);
        self.absences = 0;
        // Write the intent first: after a crash, the next run looks for the job.
        self.state.save()?;

        let comment = self.state.comment_of(number);
        let mut arguments = vec!["--hold".to_owned(), format!("--comment={comment}")];
        arguments.extend(dependency.map(|id| format!("--dependency=afterany:{id}")));
        arguments.extend(self.plan.command.iter().cloned());
        let environment = [
            (
                PREDECESSOR_VARIABLE,
                predecessor.map_or(String::new(), |id| id.to_string()),
            ),
            (LINK_VARIABLE, number.to_string()),
        ];
        let own = self.plan.own.as_ref();
        let dir = own.map(|own| own.submit_dir.as_path());
        match submit_job(&arguments, &environment, dir, (self.caller.lock)()) {
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
        let before = self.state.links.last();
        if before.is_some_and(|link| link.end_s.is_none()) {
            return Ok(self.wait_behind(number - 1, said));
        }
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

/// Returns the error that `link` failed. `next` is its successor, if that was submitted.
pub(super) fn link_failure(
    link: &ChainLink,
    next: Option<&ChainLink>,
) -> poolcast_base::error::HintedError {
    let how = link
        .outcome
        .map_or("has ended", |outcome| outcome.describe());
    let next = next.filter(|next| next.end_s.is_none());
    let next = next.and_then(|next| next.job);
    let next = next.map_or(String::new(), |id| {
        format!("; job {id} is still in the queue")
    });
    hinted(
        format!(
            "link {} (job {}) {how}{next}",
            link.number,
            link.job.unwrap_or(0)
        ),
        "check its output; run the same command again to continue with the next link",
    )
}
