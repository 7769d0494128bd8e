//! Simulates one run of a job with a given outcome, and records its events.

use std::sync::Arc;

use rand::Rng as _;

use super::bad_hosts::BAD_HOST_FAILURE_RATE;
use super::hold_cause::HoldCause;
use super::hold_reason::HoldContext;
use super::job::{LATER_WAIT_MS, SimulatedJob};
use super::outages::draw_exponential;
use super::run_chances::RunOutcome;
use super::traces::{PoolSlot, TracedEvent};
use htcondor_eventlog::{HoldCode, JobExit, ResourceUsage};

/// Times after the start at which memory usage is reported, s.
const MEMORY_REPORT_TIMES_S: [i64; 3] = [20, 600, 3600];

/// A planned run: its slot, and the durations of its phases.
pub(super) struct PlannedRun {
    pub(super) slot: PoolSlot,
    pub(super) input_ms: i64,
    pub(super) execute_ms: i64,
    output_ms: i64,
}

impl SimulatedJob<'_> {
    /// Plans the next run. If `may_evict`, an earlier run may be started and evicted first.
    pub(super) fn plan_run_with_eviction(&mut self, may_evict: bool) -> PlannedRun {
        let run = self.next_run(None);
        if !may_evict
            || self.rng.random::<f64>()
                >= self.pool.sites[usize::from(run.slot.site)].eviction_probability
        {
            return run;
        }
        let part = self.rng.random_range(0.05..0.9);
        self.run_until(&run, (run.execute_ms as f64 * part) as i64);
        let reason = Arc::from("startd draining: the machine is needed for other work");
        self.evict(
            (1014, 0),
            &reason,
            (run.execute_ms as f64 * part) as i64,
            &run,
        );
        self.now_ms += draw_exponential(self.rng, LATER_WAIT_MS) as i64 + 1000;
        self.next_run(None)
    }

    /// Draws the slot of the next run and the durations of its phases.
    pub(super) fn next_run(&mut self, outcome: Option<RunOutcome>) -> PlannedRun {
        let slot = self.draw_slot(outcome);
        let rng = &mut *self.rng;
        let spread = 2f64.powf(rng.random_range(-1.0..1.0));
        PlannedRun {
            slot,
            input_ms: rng.random_range(400..20_000),
            execute_ms: (self.cluster.run_s * spread * 1000.0) as i64 + 2000,
            output_ms: rng.random_range(200..8_000),
        }
    }

    /// Draws a slot on which a run can have this outcome.
    pub(super) fn draw_slot(&mut self, outcome: Option<RunOutcome>) -> PoolSlot {
        let (site, host) = match outcome {
            Some(RunOutcome::Held(HoldCause::BadHost)) => self.draw_bad_host(),
            Some(RunOutcome::Held(HoldCause::Site)) => {
                let site = self.pool.draw_faulty_site(self.rng);
                let hosts = self.pool.sites[site].hosts.len();
                (site, self.rng.random_range(0..hosts))
            }
            _ => self.draw_host(),
        };
        PoolSlot {
            site: site as u16,
            host: host as u16,
            number: self.rng.random_range(1..65),
        }
    }

    /// Draws a site and a host. Mostly avoids hosts that are faulty now, because runs there mostly
    /// fail.
    fn draw_host(&mut self) -> (usize, usize) {
        loop {
            let site = self.rng.random_range(0..self.pool.sites.len());
            let hosts = &self.pool.sites[site].hosts;
            let host = self.rng.random_range(0..hosts.len());
            let is_faulty = hosts[host].outages.is_down(self.checked_ms);
            if !is_faulty || self.rng.random::<f64>() >= BAD_HOST_FAILURE_RATE {
                return (site, host);
            }
        }
    }

    /// Draws a site and a host that is faulty now.
    fn draw_bad_host(&mut self) -> (usize, usize) {
        let bad = self.pool.bad_hosts_at(self.checked_ms);
        let parts: f64 = bad.iter().map(|(_, _, part)| part).sum();
        let mut left = self.rng.random::<f64>() * parts;
        for (site, host, part) in &bad {
            left -= part;
            if left < 0.0 {
                return (*site, *host);
            }
        }
        bad.last().map_or((0, 0), |(site, host, _)| (*site, *host))
    }

    /// Simulates a run to its end. Returns the cause if the job is held.
    pub(super) fn run(&mut self, run: &PlannedRun, outcome: RunOutcome) -> Option<HoldCause> {
        if !run.reaches_execution(outcome) {
            return self.fail_to_start(run, outcome);
        }
        let cause = match outcome {
            RunOutcome::Held(cause) => Some(cause),
            _ => None,
        };
        let stops_early = outcome == RunOutcome::RemovedByPolicy
            || matches!(
                cause,
                Some(HoldCause::Person | HoldCause::Memory | HoldCause::Duration)
            );
        let part = if stops_early {
            self.rng.random_range(0.05..0.95)
        } else {
            1.0
        };
        let execute_ms = (run.execute_ms as f64 * part) as i64;
        self.run_until(run, execute_ms);
        if stops_early {
            match cause {
                Some(cause) => self.hold(cause, run, execute_ms, cause == HoldCause::Memory),
                None => self.abort_job(Arc::from(
                    "The system macro SYSTEM_PERIODIC_REMOVE expression 'NumJobStarts > 30 || NumHolds > 2 && GivesUp' evaluated to TRUE",
                )),
            }
            return cause;
        }
        self.push(TracedEvent::OutputStarted);
        self.now_ms += run.output_ms;
        match cause {
            Some(cause) => self.hold(cause, run, execute_ms, cause != HoldCause::Policy),
            None => self.terminate(run, outcome),
        }
        cause
    }

    fn fail_to_start(&mut self, run: &PlannedRun, outcome: RunOutcome) -> Option<HoldCause> {
        let RunOutcome::Held(cause) = outcome else {
            return None;
        };
        self.runs = true;
        self.push(TracedEvent::InputStarted(run.slot));
        self.now_ms += run.input_ms;
        self.push(TracedEvent::InputFinished);
        self.hold(cause, run, 0, true);
        Some(cause)
    }

    /// Transfers the input, and executes for `execute_ms`.
    pub(super) fn run_until(&mut self, run: &PlannedRun, execute_ms: i64) {
        self.runs = true;
        self.push(TracedEvent::InputStarted(run.slot));
        self.now_ms += run.input_ms;
        self.push(TracedEvent::InputFinished);
        self.now_ms += 40;
        self.push(TracedEvent::Executing(run.slot));
        let begin_ms = self.now_ms;
        let peak_mb = self.peak_mb();
        for (report, after_s) in MEMORY_REPORT_TIMES_S
            .into_iter()
            .enumerate()
            .filter(|(_, after_s)| after_s * 1000 < execute_ms)
        {
            self.now_ms = begin_ms + after_s * 1000;
            self.push(TracedEvent::ImageSize(peak_mb * (report as u32 + 2) / 5));
        }
        self.now_ms = begin_ms + execute_ms.max(0);
    }

    fn peak_mb(&self) -> u32 {
        (f64::from(self.cluster.request_memory_mb) * self.cluster.memory) as u32
    }

    fn terminate(&mut self, run: &PlannedRun, outcome: RunOutcome) {
        self.push(TracedEvent::OutputFinished);
        self.now_ms += 30;
        let usage = Box::new(self.usage(run.execute_ms, run));
        let exit = match outcome {
            RunOutcome::Success => JobExit::Value(0),
            _ => match self.rng.random_range(0..20) {
                0 => JobExit::Signal(11),
                value => JobExit::Value([1, 1, 2, 127][value % 4]),
            },
        };
        self.runs = false;
        self.last_slot = Some(run.slot);
        self.push(TracedEvent::Terminated(usage, exit));
    }

    /// Puts the job on hold during a run. Writes event 021 if the starter met an error, and then
    /// events 004 and 012 with the same code.
    fn hold(
        &mut self,
        cause: HoldCause,
        run: &PlannedRun,
        execute_ms: i64,
        has_remote_error: bool,
    ) {
        let site = &self.pool.sites[usize::from(run.slot.site)];
        let host = &site.hosts[usize::from(run.slot.host)];
        let slot = format!("slot1_{}@{}", run.slot.number, host.name);
        let place = HoldContext {
            pool: self.pool,
            user: self.user,
            cluster: self.cluster,
            site,
            host,
            slot: &slot,
            proc: self.proc,
            request_memory_mb: self.request_memory_mb,
            has_wrong_url: self.has_wrong_url,
            variant: self.rng.random(),
        };
        let (code, reason): (HoldCode, Arc<str>) =
            (place.code(cause), Arc::from(place.reason(cause)));
        if has_remote_error {
            let details = reason
                .split_once("Details: ")
                .map(|(_, details)| format!("Failed to transfer files: {details}"));
            self.push(TracedEvent::RemoteError(
                run.slot,
                code,
                details.map_or(reason.clone(), Arc::from),
            ));
        }
        // Two daemons write these two events, within the same second.
        self.now_ms = if self.now_ms.rem_euclid(1000) > 950 {
            self.now_ms.div_euclid(1000) * 1000 + 1000
        } else {
            self.now_ms + 20
        };
        self.evict(code, &reason, execute_ms, run);
        self.now_ms += 10;
        self.state.holds += 1;
        self.push(TracedEvent::Held(code, reason));
        self.traces.last_code = code;
    }

    fn evict(&mut self, code: HoldCode, reason: &Arc<str>, execute_ms: i64, run: &PlannedRun) {
        let usage = Box::new(self.usage(execute_ms, run));
        self.last_slot = Some(run.slot);
        self.push(TracedEvent::Evicted(usage, code, reason.clone()));
        self.runs = false;
    }

    fn usage(&mut self, execute_ms: i64, run: &PlannedRun) -> ResourceUsage {
        let execute_s = (execute_ms / 1000).max(0) as u32;
        let user_s = (f64::from(execute_s) * self.rng.random_range(0.6..0.99)) as u32;
        self.total_user_s += user_s;
        ResourceUsage {
            user_s,
            system_s: execute_s / 50,
            total_user_s: self.total_user_s,
            sent_bytes: if execute_ms == run.execute_ms {
                2048 + execute_s * 13
            } else {
                0
            },
            received_bytes: (run.input_ms * 977) as u32,
            memory_mb: if execute_s > 0 { self.peak_mb() } else { 0 },
            disk_kb: 500 + (run.input_ms / 3) as u32,
            execute_s,
            busy_s: execute_s + ((run.input_ms + run.output_ms) / 1000) as u32,
        }
    }
}

impl PlannedRun {
    pub(super) fn reaches_execution(&self, outcome: RunOutcome) -> bool {
        use HoldCause::{
            BadHost, InputGlitch, InputOutage, MissingExecutable, MissingInput, MountOutage, Site,
            WrongUrl,
        };
        let early = [
            MissingInput,
            MountOutage,
            BadHost,
            WrongUrl,
            InputOutage,
            InputGlitch,
            MissingExecutable,
            Site,
        ];
        !matches!(outcome, RunOutcome::Held(cause) if early.contains(&cause))
    }
}
