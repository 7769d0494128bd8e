//! A job of a cluster → its life: timed events, and the truth about its holds.

use std::sync::Arc;

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::chances::{Cause, Outcome, State, mend_chance, success_at_hold};
use super::habits::{MOST_AUTOMATIC, Way};
use super::lives::{Lives, Slot, Timed, What};
use super::outages::exponential;
use super::pool::{Pool, User};
use super::reasons::Place;
use super::submissions::Cluster;
use super::truth::{Cycle, Truth};
use crate::eventlog::{Exit, HoldCode, Usage};

/// Jobs wait so long for a slot, on average.
const FIRST_WAIT_MS: f64 = 40.0 * 60_000.0;
/// Released jobs were matched before, and wait less.
const LATER_WAIT_MS: f64 = 6.0 * 60_000.0;
/// The chance that a released job is removed before it starts.
const REMOVED_IDLE: f64 = 0.01;
/// The chance that nobody cares for a held job any more.
const FORGOTTEN: f64 = 0.04;
/// After so many holds a job is removed.
const MOST_HOLDS: u32 = 12;
/// Memory is reported so long after the start, in seconds.
const REPORTS_S: [i64; 3] = [20, 600, 3600];

/// A job while it lives.
pub(super) struct Job<'a> {
    pool: &'a Pool,
    user: &'a User,
    cluster: &'a Arc<Cluster>,
    proc: u32,
    rng: &'a mut ChaCha8Rng,
    lives: &'a mut Lives,
    now_ms: i64,
    order: u32,
    state: State,
    request_memory_mb: u32,
    runs: bool,
    total_user_s: u32,
}

/// A run that is about to begin: where, and how long its parts take.
struct Run {
    site: usize,
    slot: Slot,
    input_ms: i64,
    execute_ms: i64,
    output_ms: i64,
}

impl<'a> Job<'a> {
    /// Lives the life of job `proc` of `cluster`.
    pub(super) fn live(
        pool: &'a Pool,
        cluster: &'a Arc<Cluster>,
        proc: u32,
        rng: &'a mut ChaCha8Rng,
        lives: &'a mut Lives,
    ) {
        let fault = cluster.fault.filter(|_| rng.random::<f64>() < cluster.faulty_share);
        let state = State { fault, memory: cluster.memory, down: (false, false), holds: 0 };
        let mut job = Job {
            pool,
            user: &pool.users[cluster.user],
            cluster,
            proc,
            rng,
            lives,
            now_ms: cluster.submit_ms + i64::from(proc),
            order: 0,
            state,
            request_memory_mb: cluster.request_memory_mb,
            runs: false,
            total_user_s: 0,
        };
        job.push(What::Submitted);
        job.lives.jobs += 1;
        if let Some(cause) = job.first() {
            job.lives.held_jobs += u64::from(job.now_ms < pool.end_ms);
            job.held(cause);
        }
    }

    /// From the submission to the first hold, if there is one.
    fn first(&mut self) -> Option<Cause> {
        self.now_ms += 2000 + exponential(self.rng, FIRST_WAIT_MS) as i64;
        if let Some(removed_ms) = self.cluster.removed_ms.filter(|removed_ms| *removed_ms < self.now_ms) {
            self.now_ms = removed_ms.max(self.cluster.submit_ms + 1000 + i64::from(self.proc));
            self.removed_by_person();
            return None;
        }
        let starts_well = self.state.fault.is_none() && !self.pool.is_down(self.user.input, self.now_ms);
        let run = self.evicted_once(starts_well);
        let back_ms = self.now_ms + run.input_ms + run.execute_ms;
        // Until its first release nothing is planted: a run meets what the origins really do.
        self.look_at_origins(self.now_ms, back_ms);
        let outcome = self.state.draw(self.pool, self.user, self.rng);
        match self.cluster.removed_ms.filter(|removed_ms| (self.now_ms..back_ms).contains(removed_ms)) {
            Some(removed_ms) if run.reaches_execution(outcome) => {
                self.run_until(&run, removed_ms - self.now_ms - run.input_ms);
                self.removed_by_person();
                None
            }
            _ => self.run(&run, outcome),
        }
    }

    fn look_at_origins(&mut self, input_ms: i64, output_ms: i64) {
        let down = |origin, time_ms| self.pool.is_down(origin, time_ms);
        self.state.down = (down(self.user.input, input_ms), down(self.user.output, output_ms));
    }

    /// Prepares a run, perhaps after one that is evicted.
    fn evicted_once(&mut self, may_evict: bool) -> Run {
        let run = self.next_run(None);
        if !may_evict || self.rng.random::<f64>() >= self.pool.sites[run.site].evicts {
            return run;
        }
        let part = self.rng.random_range(0.05..0.9);
        self.run_until(&run, (run.execute_ms as f64 * part) as i64);
        let reason = Arc::from("startd draining: the machine is needed for other work");
        self.evict((1014, 0), &reason, (run.execute_ms as f64 * part) as i64, &run);
        self.now_ms += exponential(self.rng, LATER_WAIT_MS) as i64 + 1000;
        self.next_run(None)
    }

    /// Draws where the next run takes place, and how long its parts take.
    fn next_run(&mut self, outcome: Option<Outcome>) -> Run {
        let rng = &mut *self.rng;
        let site = self.pool.any_site(outcome == Some(Outcome::Held(Cause::Site)), rng);
        let host = rng.random_range(0..self.pool.sites[site].hosts.len());
        let slot = Slot { site: site as u16, host: host as u16, number: rng.random_range(1..65) };
        let spread = 2f64.powf(rng.random_range(-1.0..1.0));
        Run {
            site,
            slot,
            input_ms: rng.random_range(400..20_000),
            execute_ms: (self.cluster.run_s * spread * 1000.0) as i64 + 2000,
            output_ms: rng.random_range(200..8_000),
        }
    }

    /// Held for `cause`, released, run again, and so on.
    fn held(&mut self, first: Cause) {
        let mut cause = first;
        while self.now_ms < self.pool.end_ms {
            let Some(at) = self.release(cause) else { return };
            let outcome = self.state.draw(self.pool, self.user, self.rng);
            if self.rng.random::<f64>() < REMOVED_IDLE {
                self.now_ms += 1000 + exponential(self.rng, LATER_WAIT_MS) as i64;
                self.removed_by_person();
                return;
            }
            self.now_ms += 1000 + exponential(self.rng, LATER_WAIT_MS) as i64;
            let run = self.next_run(Some(outcome));
            let next = self.run(&run, outcome);
            let is_known = self.now_ms < self.pool.end_ms;
            self.lives.cycles[at].label = is_known.then_some(outcome == Outcome::Success);
            match next {
                Some(next) => cause = next,
                None => return,
            }
        }
    }

    /// What follows a hold until the release, with the truth about both; the cycle's place, if the job is released.
    fn release(&mut self, cause: Cause) -> Option<usize> {
        let hold_ms = self.now_ms;
        let code = self.lives.last_code;
        let way = self.user.release.way(self.state.holds, code.0);
        let grown = self.grown(cause);
        self.look_at_origins(hold_ms, hold_ms);
        let p_hold = success_at_hold(&grown, cause, way, hold_ms, self.pool, self.user);
        let second = |time_ms: i64| time_ms.div_euclid(1000) * 1000;
        let truth = Truth {
            cluster: self.cluster.id.cast_signed(),
            proc: self.proc.cast_signed(),
            earlier_holds: self.state.holds - 1,
            hold_time_ms: second(hold_ms),
            release_time_ms: -1,
            p_release: f64::NAN,
            p_hold,
            cause,
        };
        let at = self.lives.cycles.len();
        self.lives.cycles.push(Cycle { truth, code, label: None });
        let quantile = self.rng.random();
        self.now_ms += self.user.release.delay_ms(way, hold_ms, quantile);
        if !self.is_released(cause, way) || self.now_ms >= self.pool.end_ms {
            return None;
        }
        self.state = grown;
        if self.rng.random::<f64>() < mend_chance(self.user, way) {
            self.state = self.state.mended(cause);
        }
        let needed_mb = f64::from(self.cluster.request_memory_mb) * self.cluster.memory;
        self.request_memory_mb = (needed_mb / self.state.memory).round() as u32;
        self.look_at_origins(self.now_ms, self.now_ms);
        let truth = &mut self.lives.cycles[at].truth;
        truth.release_time_ms = second(self.now_ms);
        truth.p_release = self.state.success(self.pool, self.user);
        self.push(What::Released(self.release_reason(way)));
        Some(at)
    }

    /// The state that the job will be released in if nobody mends anything: some memory requests grow by themselves.
    fn grown(&self, cause: Cause) -> State {
        let grows = self.user.grows && cause == Cause::Memory;
        State { memory: if grows { self.state.memory.min(1.0 / 1.3) } else { self.state.memory }, ..self.state }
    }

    fn release_reason(&self, way: Way) -> Arc<str> {
        match way {
            Way::Automatic => Arc::from(format!(
                "The job attribute PeriodicRelease expression '(NumHolds ?: 0) <= {MOST_AUTOMATIC} && HoldReasonCode != 46 && \
                 HoldReasonCode != 47 && ReqPeriodicRelease' evaluated to TRUE"
            )),
            Way::ByHand => Arc::from(format!("via condor_release (by user {})", self.user.name)),
        }
    }

    /// Whether the job is released when its time has come; if not, it may be removed.
    fn is_released(&mut self, cause: Cause, way: Way) -> bool {
        if way == Way::Automatic {
            return true;
        }
        let removes = match cause {
            _ if self.state.holds >= MOST_HOLDS => 1.0,
            Cause::Duration => 0.7,
            Cause::Person => 0.05,
            _ if self.state.holds > MOST_AUTOMATIC => 0.5,
            _ => self.user.removes_held,
        };
        match self.rng.random::<f64>() {
            chance if chance < removes => self.removed_by_person(),
            chance if chance < removes + FORGOTTEN => {}
            _ => return true,
        }
        false
    }

    /// Follows a run to its end; returns why the job is held, if it is.
    fn run(&mut self, run: &Run, outcome: Outcome) -> Option<Cause> {
        if !run.reaches_execution(outcome) {
            return self.fail_to_start(run, outcome);
        }
        let cause = match outcome {
            Outcome::Held(cause) => Some(cause),
            _ => None,
        };
        let stops_early = outcome == Outcome::RemovedByPolicy
            || matches!(cause, Some(Cause::Person | Cause::Memory | Cause::Duration));
        let part = if stops_early { self.rng.random_range(0.05..0.95) } else { 1.0 };
        let execute_ms = (run.execute_ms as f64 * part) as i64;
        self.run_until(run, execute_ms);
        if stops_early {
            match cause {
                Some(cause) => self.hold(cause, run, execute_ms, cause == Cause::Memory),
                None => self.aborted(Arc::from(
                    "The system macro SYSTEM_PERIODIC_REMOVE expression 'NumJobStarts > 30 || NumHolds > 2 && GivesUp' evaluated to TRUE",
                )),
            }
            return cause;
        }
        self.push(What::OutputStarted);
        self.now_ms += run.output_ms;
        match cause {
            Some(cause) => self.hold(cause, run, execute_ms, cause != Cause::Policy),
            None => self.terminate(run, outcome),
        }
        cause
    }

    fn fail_to_start(&mut self, run: &Run, outcome: Outcome) -> Option<Cause> {
        let Outcome::Held(cause) = outcome else { return None };
        self.runs = true;
        self.push(What::InputStarted(run.slot));
        self.now_ms += run.input_ms;
        self.push(What::InputFinished);
        self.hold(cause, run, 0, true);
        Some(cause)
    }

    /// Transfers the input and executes for so long.
    fn run_until(&mut self, run: &Run, execute_ms: i64) {
        self.runs = true;
        self.push(What::InputStarted(run.slot));
        self.now_ms += run.input_ms;
        self.push(What::InputFinished);
        self.now_ms += 40;
        self.push(What::Executing(run.slot));
        let begin_ms = self.now_ms;
        let peak_mb = self.peak_mb();
        for (report, after_s) in REPORTS_S.into_iter().enumerate().filter(|(_, after_s)| after_s * 1000 < execute_ms) {
            self.now_ms = begin_ms + after_s * 1000;
            self.push(What::ImageSize(peak_mb * (report as u32 + 2) / 5));
        }
        self.now_ms = begin_ms + execute_ms.max(0);
    }

    fn peak_mb(&self) -> u32 {
        (f64::from(self.cluster.request_memory_mb) * self.cluster.memory) as u32
    }

    fn terminate(&mut self, run: &Run, outcome: Outcome) {
        self.push(What::OutputFinished);
        self.now_ms += 30;
        let usage = Box::new(self.usage(run.execute_ms, run));
        let exit = match outcome {
            Outcome::Success => Exit::Value(0),
            _ => match self.rng.random_range(0..20) {
                0 => Exit::Signal(11),
                value => Exit::Value([1, 1, 2, 127][value % 4]),
            },
        };
        self.runs = false;
        self.push(What::Terminated(usage, exit));
    }

    /// Goes on hold, out of a run: 021 where the starter met an error, 004 and 012 with the same code.
    fn hold(&mut self, cause: Cause, run: &Run, execute_ms: i64, starter_says: bool) {
        let site = &self.pool.sites[run.site];
        let slot = format!("slot1_{}@{}", run.slot.number, site.hosts[usize::from(run.slot.host)].name);
        let place = Place {
            pool: self.pool,
            user: self.user,
            slot: &slot,
            batch: &self.cluster.batch,
            proc: self.proc,
            request_memory_mb: self.request_memory_mb,
            is_pilot: site.is_pilot,
            variant: self.rng.random(),
        };
        let (code, reason): (HoldCode, Arc<str>) = (place.code(cause), Arc::from(place.reason(cause)));
        if starter_says {
            let details =
                reason.split_once("Details: ").map(|(_, details)| format!("Failed to transfer files: {details}"));
            self.push(What::RemoteError(run.slot, code, details.map_or(reason.clone(), Arc::from)));
        }
        // Both are written within the second, by two daemons.
        self.now_ms = if self.now_ms.rem_euclid(1000) > 950 {
            self.now_ms.div_euclid(1000) * 1000 + 1000
        } else {
            self.now_ms + 20
        };
        self.evict(code, &reason, execute_ms, run);
        self.now_ms += 10;
        self.state.holds += 1;
        self.push(What::Held(code, reason));
        self.lives.last_code = code;
    }

    fn evict(&mut self, code: HoldCode, reason: &Arc<str>, execute_ms: i64, run: &Run) {
        let usage = Box::new(self.usage(execute_ms, run));
        self.push(What::Evicted(usage, code, reason.clone()));
        self.runs = false;
    }

    fn removed_by_person(&mut self) {
        self.aborted(Arc::from(format!("via condor_rm (by user {})", self.user.name)));
    }

    fn aborted(&mut self, reason: Arc<str>) {
        self.runs = false;
        self.lives.removed_jobs += u64::from(self.now_ms < self.pool.end_ms);
        self.push(What::Aborted(reason));
    }

    fn usage(&mut self, execute_ms: i64, run: &Run) -> Usage {
        let execute_s = (execute_ms / 1000).max(0) as u32;
        let user_s = (f64::from(execute_s) * self.rng.random_range(0.6..0.99)) as u32;
        self.total_user_s += user_s;
        Usage {
            user_s,
            system_s: execute_s / 50,
            total_user_s: self.total_user_s,
            sent_bytes: if execute_ms == run.execute_ms { 2048 + execute_s * 13 } else { 0 },
            received_bytes: (run.input_ms * 977) as u32,
            memory_mb: if execute_s > 0 { self.peak_mb() } else { 0 },
            disk_kb: 500 + (run.input_ms / 3) as u32,
            execute_s,
            busy_s: execute_s + ((run.input_ms + run.output_ms) / 1000) as u32,
        }
    }

    fn push(&mut self, what: What) {
        self.order += 1;
        self.lives.push(Timed {
            time_ms: self.now_ms,
            cluster: self.cluster.clone(),
            proc: self.proc,
            order: self.order,
            request_memory_mb: self.request_memory_mb,
            holds: self.state.holds,
            runs: self.runs,
            what,
        });
    }
}

impl Run {
    fn reaches_execution(&self, outcome: Outcome) -> bool {
        use Cause::{InputGlitch, InputOutage, MissingExecutable, MissingInput, Site, WrongUrl};
        let early = [MissingInput, WrongUrl, InputOutage, InputGlitch, MissingExecutable, Site];
        !matches!(outcome, Outcome::Held(cause) if early.contains(&cause))
    }
}
