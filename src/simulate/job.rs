//! Simulates one job of a cluster: its timed events, and the truth about its holds.

use std::sync::Arc;

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::hold_cause::HoldCause;
use super::hold_truth::{HoldTruth, SimulatedHold, whole_second};
use super::outages::draw_exponential;
use super::pool::SimulatedPool;
use super::pool_user::PoolUser;
use super::release_habit::{MAX_AUTOMATIC_RELEASES, ReleaseChoice, ReleaseDecider};
use super::run_chances::{DataOutages, JobCondition, PossibleRepair, RunOutcome, success_at_hold};
use super::submissions::JobCluster;
use super::traces::{JobTraces, PoolSlot, TimedEvent, TracedEvent};
use super::unmended::unmended_changes;

/// Mean wait for the first slot, in ms.
const FIRST_WAIT_MS: f64 = 40.0 * 60_000.0;
/// Mean wait of a released job for a slot, in ms. It is shorter because the job was matched before.
pub(super) const LATER_WAIT_MS: f64 = 6.0 * 60_000.0;
/// Probability that a released job is removed before it starts.
const IDLE_REMOVAL_PROBABILITY: f64 = 0.01;
/// Probability that the owner forgets a held job.
const FORGOTTEN_PROBABILITY: f64 = 0.04;
/// Probability of removal for a job in whose success its owner does not believe at all.
const MAX_GIVE_UP_PROBABILITY: f64 = 0.5;
/// Delay between the submission and the start of DAGMan itself, in ms. DAGMan runs past the end of
/// the log.
const DAGMAN_START_MS: i64 = 900;
/// Number of holds after which a job is removed.
const MAX_HOLDS: u32 = 12;

/// The end of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HoldEnd {
    Released,
    Removed,
    /// The job is still held at the end of the log.
    Forgotten,
}

/// A job during its simulation.
pub(super) struct SimulatedJob<'a> {
    pub(super) pool: &'a SimulatedPool,
    pub(super) user: &'a PoolUser,
    pub(super) cluster: &'a Arc<JobCluster>,
    pub(super) proc: u32,
    pub(super) rng: &'a mut ChaCha8Rng,
    pub(super) traces: &'a mut JobTraces,
    pub(super) now_ms: i64,
    pub(super) order: u32,
    pub(super) state: JobCondition,
    /// Time for which the outages in `state` were looked up, epoch ms.
    pub(super) checked_ms: i64,
    pub(super) request_memory_mb: u32,
    /// Value of `TransferInput` in the job's ad; `None` if the log does not have it.
    pub(super) transfer_input: Option<Arc<str>>,
    /// True if the URL of the input was wrong when the job was submitted.
    pub(super) has_wrong_url: bool,
    pub(super) runs: bool,
    /// Slot of the run that ended last.
    pub(super) last_slot: Option<PoolSlot>,
    pub(super) total_user_s: u32,
}

impl<'a> SimulatedJob<'a> {
    /// Simulates job `proc` of `cluster` from its submission to its end, or to the end of the log.
    pub(super) fn simulate(
        pool: &'a SimulatedPool,
        cluster: &'a Arc<JobCluster>,
        proc: u32,
        rng: &'a mut ChaCha8Rng,
        traces: &'a mut JobTraces,
    ) {
        let fault = cluster
            .fault
            .filter(|_| rng.random::<f64>() < cluster.faulty_share);
        let state = JobCondition {
            fault,
            supplied_ms: cluster
                .supply
                .as_ref()
                .and_then(|supply| supply.supplied_ms),
            memory: cluster.memory,
            reads_mount: cluster.reads_mount,
            down: DataOutages::default(),
            bad_share: 0.0,
            holds: 0,
        };

        let mut job = SimulatedJob {
            pool,
            user: &pool.users[cluster.user],
            cluster,
            proc,
            rng,
            traces,
            now_ms: cluster.submit_ms + i64::from(proc),
            order: 0,
            state,
            checked_ms: 0,
            request_memory_mb: cluster.request_memory_mb,
            transfer_input: transfer_input(pool, cluster, proc, fault),
            has_wrong_url: fault == Some(HoldCause::WrongUrl),
            runs: false,
            last_slot: None,
            total_user_s: 0,
        };

        job.push(TracedEvent::Submitted);
        job.traces.jobs += 1;
        if cluster.is_dagman {
            job.now_ms += DAGMAN_START_MS;
            job.runs = true;
            job.push(TracedEvent::DagmanStarted);
            return;
        }
        if let Some(cause) = job.simulate_until_first_hold() {
            job.traces.held_jobs += u64::from(job.now_ms < pool.end_ms);
            job.simulate_holds(cause);
        }
    }

    /// Simulates the job up to its first hold. Returns the cause of that hold, or `None` if the job
    /// ends without one.
    fn simulate_until_first_hold(&mut self) -> Option<HoldCause> {
        self.now_ms += 2000 + draw_exponential(self.rng, FIRST_WAIT_MS) as i64;
        if let Some(removed_ms) = self
            .cluster
            .removed_ms
            .filter(|removed_ms| *removed_ms < self.now_ms)
        {
            self.now_ms = removed_ms.max(self.cluster.submit_ms + 1000 + i64::from(self.proc));
            self.remove_by_person();
            return None;
        }

        self.check_condition(self.now_ms, self.now_ms);
        let starts_well = self.state.fault.is_none() && !self.state.down.input;
        let mut run = self.plan_run_with_eviction(starts_well);
        let back_ms = self.now_ms + run.input_ms + run.execute_ms;
        // Before the first release no probability is recorded, so the run may meet the actual
        // outages.
        self.check_condition(self.now_ms, back_ms);

        let outcome = self.state.draw_outcome(self.pool, self.user, self.rng);
        if matches!(
            outcome,
            RunOutcome::Held(HoldCause::Site | HoldCause::BadHost)
        ) {
            run.slot = self.draw_slot(Some(outcome));
        }
        match self
            .cluster
            .removed_ms
            .filter(|removed_ms| (self.now_ms..back_ms).contains(removed_ms))
        {
            Some(removed_ms) if run.reaches_execution(outcome) => {
                self.run_until(&run, removed_ms - self.now_ms - run.input_ms);
                self.remove_by_person();
                None
            }
            _ => self.run(&run, outcome),
        }
    }

    /// Looks up the outages at the times when input is fetched and when output is sent.
    fn check_condition(&mut self, input_ms: i64, output_ms: i64) {
        self.state = self
            .state
            .with_resources_at(input_ms, output_ms, self.pool, self.user);
        self.checked_ms = input_ms;
    }

    /// Simulates all holds, releases and further runs of the job, from the first hold on.
    fn simulate_holds(&mut self, first: HoldCause) {
        let mut cause = first;
        while self.now_ms < self.pool.end_ms {
            let Some(at) = self.release(cause) else {
                return;
            };

            let outcome = self.state.draw_outcome(self.pool, self.user, self.rng);
            if self.rng.random::<f64>() < IDLE_REMOVAL_PROBABILITY {
                self.now_ms += 1000 + draw_exponential(self.rng, LATER_WAIT_MS) as i64;
                self.remove_by_person();
                return;
            }

            self.now_ms += 1000 + draw_exponential(self.rng, LATER_WAIT_MS) as i64;
            let run = self.next_run(Some(outcome));
            let next = self.run(&run, outcome);
            let is_known = self.now_ms < self.pool.end_ms;
            self.traces.cycles[at].label = is_known.then_some(outcome == RunOutcome::Success);

            match next {
                Some(next) => cause = next,
                None => return,
            }
        }
    }

    /// Simulates a hold up to its release, and records the truth about both. Returns the index of
    /// the hold in `traces.cycles`; `None` if the job is not released.
    fn release(&mut self, cause: HoldCause) -> Option<usize> {
        let hold_ms = self.now_ms;
        let code = self.traces.last_code;
        let decider = self.user.release.release_decider(self.state.holds, code.0);
        self.check_condition(hold_ms, hold_ms);
        let grown = self.with_grown_request(cause);
        let repair = PossibleRepair::new(&grown, cause, decider, self.cluster, self.user);
        let p_hold = success_at_hold(&grown, &repair, hold_ms, self.pool, self.user);

        let at = self.record_hold(cause, p_hold, grown.is_permanent());

        let quantile = self.rng.random();
        let usual_ms = hold_ms + self.user.release.delay_ms(decider, hold_ms, quantile);
        self.now_ms = repair.due_ms(hold_ms).unwrap_or(usual_ms);
        let end = self.draw_hold_end(cause, decider, p_hold);
        let end_ms = if end == HoldEnd::Forgotten {
            self.pool.end_ms
        } else {
            self.now_ms
        };
        let until_ms = end_ms.min(self.pool.end_ms - 1);
        self.traces.cycles[at].truth.unmended =
            unmended_changes(&grown, hold_ms, until_ms, self.pool, self.user);
        if end != HoldEnd::Released || self.now_ms >= self.pool.end_ms {
            return None;
        }

        self.state = grown;
        self.draw_repair(&repair);
        self.check_condition(self.now_ms, self.now_ms);

        let repaired = repair.chance(hold_ms, self.now_ms);
        let after_repair = grown.after_repair(repair.cause);
        self.record_release(at, grown, after_repair, repaired);
        self.push(TracedEvent::Released(self.release_reason(decider)));
        Some(at)
    }

    /// Records the truth about a hold that begins now. Returns its index in `traces.cycles`.
    fn record_hold(&mut self, cause: HoldCause, p_hold: f64, is_permanent: bool) -> usize {
        let truth = HoldTruth {
            cluster: self.cluster.id.cast_signed(),
            proc: self.proc.cast_signed(),
            earlier_holds: self.state.holds - 1,
            hold_time_ms: whole_second(self.now_ms),
            release_time_ms: -1,
            is_released: false,
            p_release: None,
            p_release_unseen_repair: None,
            p_hold,
            cause: Some(cause),
            // A person's hold lasts only as long as that person wants.
            permanent: Some(cause != HoldCause::Person && is_permanent),
            unmended: Vec::new(),
        };

        self.traces.cycles.push(SimulatedHold {
            truth,
            code: self.traces.last_code,
            label: None,
        });
        self.traces.cycles.len() - 1
    }

    /// Draws whether the release comes with the repair of this one job. The log does not show the
    /// repair, except for a memory request that grows with it.
    fn draw_repair(&mut self, repair: &PossibleRepair<'_>) {
        if self.rng.random::<f64>() < repair.with_release {
            self.state = self.state.after_repair(repair.cause);
        }

        let needed_mb = f64::from(self.cluster.request_memory_mb) * self.cluster.memory;
        self.request_memory_mb = (needed_mb / self.state.memory).round() as u32;
    }

    /// Records the truth about a release that happens now, of the hold with index `at` in
    /// `traces.cycles`. With the probability `repaired`, the job is in the state `after_repair`, or else
    /// in the state `as_is`.
    fn record_release(
        &mut self,
        at: usize,
        as_is: JobCondition,
        after_repair: JobCondition,
        repaired: f64,
    ) {
        let as_is = self.success_now(as_is);
        let after_repair = self.success_now(after_repair);

        let truth = &mut self.traces.cycles[at].truth;
        truth.release_time_ms = whole_second(self.now_ms);
        truth.is_released = true;
        truth.p_release = Some(self.state.success_probability(self.pool, self.user));
        truth.p_release_unseen_repair = Some(repaired * after_repair + (1.0 - repaired) * as_is);
    }

    /// Returns the probability of success in `state`, with the present outages.
    fn success_now(&self, state: JobCondition) -> f64 {
        let state = JobCondition {
            down: self.state.down,
            bad_share: self.state.bad_share,
            ..state
        };
        state.success_probability(self.pool, self.user)
    }

    /// Returns the condition in which the job is released without a repair. For some users, the
    /// memory request grows automatically.
    fn with_grown_request(&self, cause: HoldCause) -> JobCondition {
        let grows = self.user.grows && cause == HoldCause::Memory;
        JobCondition {
            memory: if grows {
                self.state.memory.min(1.0 / 1.3)
            } else {
                self.state.memory
            },
            ..self.state
        }
    }

    fn release_reason(&self, decider: ReleaseDecider) -> Arc<str> {
        match decider {
            ReleaseDecider::Automatic => Arc::from(format!(
                "The job attribute PeriodicRelease expression '(NumHolds ?: 0) <= {MAX_AUTOMATIC_RELEASES} && HoldReasonCode != 46 && \
                 HoldReasonCode != 47 && ReqPeriodicRelease' evaluated to TRUE"
            )),
            ReleaseDecider::ByHand => {
                Arc::from(format!("via condor_release (by user {})", self.user.name))
            }
        }
    }

    /// Draws the end of the hold at its due time, and removes the job if that is the end.
    fn draw_hold_end(&mut self, cause: HoldCause, decider: ReleaseDecider, p_hold: f64) -> HoldEnd {
        if decider == ReleaseDecider::Automatic {
            return HoldEnd::Released;
        }
        let belief = self.user.release.belief(p_hold, cause == HoldCause::Person);
        let removes = match cause {
            _ if self.state.holds >= MAX_HOLDS => 1.0,
            HoldCause::Duration => 0.7,
            HoldCause::Person => 0.05,
            _ if self.state.holds > MAX_AUTOMATIC_RELEASES => 0.5,
            // A user who releases by belief does not remove jobs that are worth a release.
            _ if matches!(self.user.release.choice, ReleaseChoice::Believed(_)) => {
                MAX_GIVE_UP_PROBABILITY * (1.0 - belief)
            }
            _ => self.user.removes_held,
        };
        if self.rng.random::<f64>() < removes {
            self.remove_by_person();
            return HoldEnd::Removed;
        }
        if self.rng.random::<f64>() < belief * (1.0 - FORGOTTEN_PROBABILITY) {
            HoldEnd::Released
        } else {
            HoldEnd::Forgotten
        }
    }

    fn remove_by_person(&mut self) {
        self.abort_job(Arc::from(format!(
            "via condor_rm (by user {})",
            self.user.name
        )));
    }

    pub(super) fn abort_job(&mut self, reason: Arc<str>) {
        self.runs = false;
        self.traces.removed_jobs += u64::from(self.now_ms < self.pool.end_ms);
        self.push(TracedEvent::Aborted(reason));
    }

    pub(super) fn push(&mut self, what: TracedEvent) {
        self.order += 1;
        self.traces.push(TimedEvent {
            time_ms: self.now_ms,
            cluster: self.cluster.clone(),
            proc: self.proc,
            order: self.order,
            request_memory_mb: self.request_memory_mb,
            transfer_input: self.transfer_input.clone(),
            holds: self.state.holds,
            runs: self.runs,
            last_slot: self.last_slot,
            what,
        });
    }
}

/// Returns the input files that the ad of a job with the permanent fault `fault` lists; `None` for DAGMan's own
/// job, and if the access point does not log them.
fn transfer_input(
    pool: &SimulatedPool,
    cluster: &JobCluster,
    proc: u32,
    fault: Option<HoldCause>,
) -> Option<Arc<str>> {
    let is_listed = pool.lists_inputs && !cluster.is_dagman;
    let user = &pool.users[cluster.user];
    is_listed.then(|| Arc::from(cluster.transfer_input(pool, user, proc, fault)))
}
