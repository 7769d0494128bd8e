//! Windows: a predecessor that comes to a simulated queue, and the moments at which its successor
//! may be submitted. Moments are epoch seconds.

use std::cell::OnceCell;

use crate::provision::forecast::{EndedRun, QueueMoment, SeenWait, WaitForecast};
use crate::provision::replay::SlurmWorld;
use crate::provision::scheduler::{NEVER, QueueJob, SimulatedCluster};
use crate::provision::submission::{
    AskedMoment, StartedWait, SubmissionChoice, SubmissionPolicy, WaitRecord, cost_quantile,
};

/// How the windows of a trace are laid, and what the chained jobs in them are like. Spans are seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowPlan {
    /// How long after the window's beginning the predecessor is submitted.
    pub warmup_s: i64,
    /// For how long after the window's beginning jobs come to the queue.
    pub workload_s: i64,
    /// How many nodes the chained jobs need.
    pub nodes: u32,
    /// How long they may run.
    pub limit_s: i64,
    /// How long they do.
    pub length_s: i64,
    /// How often it is decided whether to submit.
    pub step_s: i64,
    /// At how many moments a successor is submitted as a probe, two at least: equally spaced from a
    /// minute after the predecessor's submission to its end.
    pub probes: usize,
    /// How many of the last runs run times are drawn from.
    pub history_runs: usize,
    /// What an hour of interruption costs in hours of overlap.
    pub cost_ratios: Vec<f64>,
}

impl WindowPlan {
    /// The quantiles of waits that policies ask for.
    fn quantiles(&self) -> Vec<f64> {
        let ratios = self.cost_ratios.iter();
        ratios.map(|ratio| cost_quantile(*ratio)).collect()
    }
}

/// What came of a successor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SuccessorStart {
    /// When it was submitted.
    pub submit_s: i64,
    /// By how much it was expected to start after its predecessor's end, hours; `None` where it was
    /// submitted without such an expectation.
    pub expected_h: Option<f64>,
    /// When it started.
    pub start_s: i64,
    /// Whether it passed another job.
    pub is_backfilled: bool,
    /// By how much it started after its predecessor's end, seconds; below 0 for an overlap.
    pub gap_s: i64,
}

/// A window, simulated.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WindowOutcome {
    /// Where the window begins.
    pub begin_s: i64,
    /// What came of each policy.
    pub policies: Vec<SuccessorStart>,
    /// What came of the probe that was best in hindsight.
    pub best_probe: SuccessorStart,
    /// What came of the moment of decision, or the predecessor's end, that was.
    pub best_moment: SuccessorStart,
}

/// A window before its predecessor is submitted, in the state of one continuous run.
pub(super) struct OpenWindow<'a> {
    begin_s: i64,
    cluster: SimulatedCluster<'a>,
    /// How many jobs of the world had ended.
    ended: usize,
    record: WaitRecord,
}

/// The windows that begin at `begins_s`, in order, and the jobs of `world` that have ended, in that order.
pub(super) fn open_windows<'a>(
    world: &'a SlurmWorld,
    plan: &WindowPlan,
    begins_s: &[i64],
) -> (Vec<OpenWindow<'a>>, Vec<u32>) {
    let mut cluster = world.cluster();
    let mut record = WaitRecord::new(plan.nodes, plan.limit_s, &plan.quantiles());
    let mut started = 0;
    let mut windows = Vec::with_capacity(begins_s.len());
    for begin_s in begins_s {
        cluster.run_until(begin_s + plan.warmup_s - 1);
        started = observe_starts(&mut record, world, &cluster, started);
        windows.push(OpenWindow {
            begin_s: *begin_s,
            cluster: cluster.branch(begin_s + plan.workload_s),
            ended: cluster.ended().len(),
            record: record.clone(),
        });
    }
    (windows, cluster.ended().to_vec())
}

/// Takes the jobs that have started in `cluster` since there were `known` of them. Returns how many
/// there are.
fn observe_starts(
    record: &mut WaitRecord,
    world: &SlurmWorld,
    cluster: &SimulatedCluster<'_>,
    known: usize,
) -> usize {
    for number in &cluster.started()[known..] {
        let job = &world.jobs[*number as usize];
        let start_s = cluster.run(*number).start.unwrap_or(job.since);
        record.observe(StartedWait {
            nodes: job.nodes,
            limit_s: job.limit,
            wait_s: start_s - job.since,
        });
    }
    cluster.started().len()
}

/// A window whose predecessor runs.
struct RunningWindow<'a> {
    world: &'a SlurmWorld,
    plan: &'a WindowPlan,
    forecast: &'a WaitForecast,
    /// Jobs that had ended before the window's predecessor was submitted.
    ended_before: &'a [u32],
    /// Just before the predecessor was submitted.
    before: SimulatedCluster<'a>,
    cluster: SimulatedCluster<'a>,
    record: WaitRecord,
    observed_starts: usize,
    submit_s: i64,
    start_s: i64,
    end_s: i64,
}

/// When a policy submits, and what it expects of that.
type ChosenMoment = (i64, Option<f64>);

/// Simulates `window`. `ended` are the jobs that end in the continuous run. `None` where the
/// predecessor, or its successor, never starts.
pub(super) fn simulate_window(
    window: OpenWindow<'_>,
    world: &SlurmWorld,
    ended: &[u32],
    plan: &WindowPlan,
    forecast: &WaitForecast,
    policies: &[Box<dyn SubmissionPolicy>],
) -> Option<WindowOutcome> {
    let begin_s = window.begin_s;
    let mut running = start_predecessor(window, world, ended, plan, forecast)?;

    let mut choices: Vec<Option<ChosenMoment>> = vec![None; policies.len()];
    let mut moments: Vec<SuccessorStart> = Vec::new();
    let mut now_s = running.start_s + 1;
    while now_s < running.end_s {
        running.advance(now_s);
        running.ask(now_s, policies, &mut choices);
        moments.push(running.submit(&running.cluster, now_s)?);
        now_s += plan.step_s;
    }
    moments.push(running.submit(&running.cluster, running.end_s)?);

    let mut outcomes = Vec::with_capacity(policies.len());
    for choice in choices {
        let (submit_s, expected_h) = choice.unwrap_or((running.end_s, None));
        let known = moments.iter().find(|known| known.submit_s == submit_s);
        let outcome = match known {
            Some(known) => *known,
            None => running.submit(&running.before, submit_s)?,
        };
        outcomes.push(SuccessorStart {
            expected_h,
            ..outcome
        });
    }
    Some(WindowOutcome {
        begin_s,
        policies: outcomes,
        best_probe: best_start(&running.probes()?)?,
        best_moment: best_start(&moments)?,
    })
}

fn best_start(starts: &[SuccessorStart]) -> Option<SuccessorStart> {
    starts.iter().min_by_key(|start| start.gap_s.abs()).copied()
}

/// Submits the predecessor and waits for its start.
fn start_predecessor<'a>(
    window: OpenWindow<'a>,
    world: &'a SlurmWorld,
    ended: &'a [u32],
    plan: &'a WindowPlan,
    forecast: &'a WaitForecast,
) -> Option<RunningWindow<'a>> {
    let mut before = window.cluster;
    let submit_s = window.begin_s + plan.warmup_s;
    let predecessor = before.submit(&chained_job(plan, world, submit_s));
    let mut cluster = before.clone();
    let start_s = cluster.run_until_start(predecessor, NEVER - 1)?;

    let mut record = window.record;
    let observed_starts = observe_starts(&mut record, world, &cluster, 0);
    record.observe(StartedWait {
        nodes: plan.nodes,
        limit_s: plan.limit_s,
        wait_s: start_s - submit_s,
    });
    Some(RunningWindow {
        world,
        plan,
        forecast,
        ended_before: &ended[..window.ended],
        before,
        cluster,
        record,
        observed_starts,
        submit_s,
        start_s,
        end_s: start_s + plan.length_s,
    })
}

fn chained_job(plan: &WindowPlan, world: &SlurmWorld, submit_s: i64) -> QueueJob {
    QueueJob {
        enter: submit_s,
        since: submit_s,
        cancel: NEVER,
        run: plan.length_s,
        limit: plan.limit_s,
        nodes: plan.nodes,
        user: world.users as u32,
    }
}

impl RunningWindow<'_> {
    /// Simulates all that happens before `now_s`.
    fn advance(&mut self, now_s: i64) {
        self.cluster.run_until(now_s - 1);
        self.observed_starts = observe_starts(
            &mut self.record,
            self.world,
            &self.cluster,
            self.observed_starts,
        );
    }

    /// Asks the policies that have not chosen a moment yet.
    fn ask(
        &self,
        now_s: i64,
        policies: &[Box<dyn SubmissionPolicy>],
        choices: &mut [Option<ChosenMoment>],
    ) {
        let asked = self.asked(now_s);
        for (policy, choice) in policies.iter().zip(choices) {
            if choice.is_some() {
                continue;
            }
            *choice = match policy.choose(&asked) {
                SubmissionChoice::NotYet => None,
                SubmissionChoice::Now { expected_s } => Some((now_s, Some(expected_s / 3600.0))),
                SubmissionChoice::At(moment_s) => Some((moment_s.clamp(now_s, self.end_s), None)),
            };
        }
    }

    /// What policies may know at `now_s`.
    fn asked(&self, now_s: i64) -> AskedMoment<'_> {
        let mut queue = QueueMoment::of_cluster(&self.cluster, now_s);
        for run in &mut queue.running {
            if run.user == self.world.users as u32 {
                run.end_s = Some(self.end_s);
            }
        }
        AskedMoment {
            predecessor_end_s: self.end_s,
            step_s: self.plan.step_s,
            queue,
            ended_runs: self.ended_runs(),
            record: &self.record,
            successor: SeenWait {
                since_s: now_s,
                limit_s: self.plan.limit_s,
                nodes: self.plan.nodes,
                user: self.world.users as u32,
            },
            forecast: self.forecast,
            highest_quantile: self.plan.quantiles().into_iter().fold(0.5, f64::max),
            forecast_waits_s: OnceCell::new(),
        }
    }

    /// The last runs that have ended, the oldest first.
    fn ended_runs(&self) -> Vec<EndedRun> {
        let since = self.cluster.ended();
        let before = self.plan.history_runs.saturating_sub(since.len());
        let before = &self.ended_before[self.ended_before.len().saturating_sub(before)..];
        let since = &since[since.len().saturating_sub(self.plan.history_runs)..];
        let ended_run = |number: &u32| {
            let job = &self.world.jobs[*number as usize];
            EndedRun {
                user: job.user,
                limit_s: job.limit,
                run_s: job.run,
            }
        };
        before.iter().chain(since).map(ended_run).collect()
    }

    /// What comes of the probes.
    fn probes(&self) -> Option<Vec<SuccessorStart>> {
        let first_s = self.submit_s + 60;
        let gaps = self.plan.probes.max(2) as i64 - 1;
        let mut starts = Vec::with_capacity(self.plan.probes);
        for probe in 0..=gaps {
            let moment_s = first_s + (self.end_s - first_s) * probe / gaps;
            starts.push(self.submit(&self.before, moment_s)?);
        }
        Some(starts)
    }

    /// What comes of a successor that is submitted at `submit_s` to `cluster`, which was simulated
    /// up to some moment before.
    fn submit(&self, cluster: &SimulatedCluster<'_>, submit_s: i64) -> Option<SuccessorStart> {
        let mut cluster = cluster.branch(NEVER);
        cluster.run_until(submit_s - 1);
        let successor = cluster.submit(&chained_job(self.plan, self.world, submit_s));
        let start_s = cluster.run_until_start(successor, NEVER - 1)?;
        Some(SuccessorStart {
            submit_s,
            expected_h: None,
            start_s,
            is_backfilled: cluster.added_run(successor).is_backfilled,
            gap_s: start_s - self.end_s,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::Rng as _;

    use super::*;
    use crate::provision::scheduler::{CapacityStep, SchedulerSettings};
    use crate::provision::submission::{
        AverageAtStart, AverageNow, ForecastQuantile, HistoryQuantile, LimitPlan, Reactive,
    };

    const HOUR_S: i64 = 3600;

    fn plan() -> WindowPlan {
        WindowPlan {
            warmup_s: 12 * HOUR_S,
            workload_s: 40 * HOUR_S,
            nodes: 2,
            limit_s: 10 * HOUR_S,
            length_s: 10 * HOUR_S,
            step_s: HOUR_S,
            probes: 3,
            history_runs: 40,
            cost_ratios: vec![1.0, 3.0],
        }
    }

    /// Two days of a busy cluster.
    fn world(seed: u64) -> SlurmWorld {
        let mut random = crate::seed::generator(seed, "worlds", &[]);
        let mut jobs = Vec::new();
        for _ in 0..160 {
            let enter = random.random_range(0..48 * HOUR_S);
            let limit = HOUR_S * random.random_range(1..12);
            let cancels = random.random_range(0..8) == 0;
            jobs.push(QueueJob {
                enter,
                since: enter,
                cancel: if cancels { enter + 2 * HOUR_S } else { NEVER },
                run: random.random_range(1..=limit),
                limit,
                nodes: random.random_range(1..5),
                user: random.random_range(0..4),
            });
        }
        jobs.sort_by_key(|job| job.enter);
        let settings = SchedulerSettings {
            begin: 0,
            capacity: vec![CapacityStep { from: 0, nodes: 6 }],
            max_jobs_per_user: Some(4),
            backfill_interval: 60,
            slot: 600,
            slots: 288,
            max_job_test: 100,
            age_weight: 7000,
            max_age: 7 * 86_400,
            size_weight: 100,
        };
        SlurmWorld {
            settings,
            places: (0..jobs.len()).collect(),
            jobs,
            running: Vec::new(),
            users: 4,
            nodes: Vec::new(),
            too_large: 0,
        }
    }

    fn policies() -> Vec<Box<dyn SubmissionPolicy>> {
        vec![
            Box::new(Reactive),
            Box::new(AverageAtStart),
            Box::new(AverageNow),
            Box::new(LimitPlan),
            Box::new(HistoryQuantile {
                cost_ratio: 1.0,
                number: 0,
            }),
            Box::new(ForecastQuantile { cost_ratio: 1.0 }),
            Box::new(ForecastQuantile { cost_ratio: 3.0 }),
        ]
    }

    fn forecast(world: &SlurmWorld) -> WaitForecast {
        WaitForecast {
            settings: world.settings.clone(),
            draws: 12,
            seed: 1,
        }
    }

    /// What policies know and choose so many hours after the predecessor's start, and the jobs that
    /// have left or run by then. `None` where it has ended.
    fn known_after(world: &SlurmWorld, hours: i64) -> Option<(String, i64, SlurmWorld)> {
        let (plan, forecast) = (plan(), forecast(world));
        let (mut windows, ended) = open_windows(world, &plan, &[0]);
        let window = windows.pop()?;
        let mut running = start_predecessor(window, world, &ended, &plan, &forecast)?;
        let now_s = running.start_s + hours * HOUR_S;
        running.advance(now_s);
        let asked = running.asked(now_s);
        let choices: Vec<SubmissionChoice> = policies()
            .iter()
            .map(|policy| policy.choose(&asked))
            .collect();
        let known = format!(
            "{:?} {:?} {:?} {choices:?} {:?}",
            asked.queue, asked.ended_runs, asked.record, asked.forecast_waits_s
        );

        // The same world up to now, and another one afterwards.
        let mut later = SlurmWorld {
            settings: world.settings.clone(),
            jobs: world.jobs.clone(),
            places: world.places.clone(),
            running: Vec::new(),
            users: world.users,
            nodes: Vec::new(),
            too_large: 0,
        };
        later.settings.capacity.push(CapacityStep {
            from: now_s,
            nodes: 1,
        });
        for (number, job) in later.jobs.iter_mut().enumerate() {
            let started_s = running.cluster.started_at(number as u32);
            if job.enter >= now_s {
                (job.nodes, job.run, job.limit, job.user) = (1, 5, 77, 0);
            } else if let Some(start_s) = started_s.filter(|start_s| start_s + job.run >= now_s) {
                job.run = now_s - start_s + 40 * HOUR_S;
            }
            if job.cancel >= now_s {
                job.cancel = if job.cancel == NEVER { now_s } else { NEVER };
            }
        }
        Some((known, now_s, later))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn nothing_after_the_moment_of_decision_enters(seed in 0u64..1000, hours in 1i64..9) {
            let world = world(seed);
            if let Some((known, now_s, later)) = known_after(&world, hours) {
                let (again, again_s, _) = known_after(&later, hours).expect("it runs there, too");
                prop_assert_eq!(now_s, again_s);
                prop_assert_eq!(known, again);
            }
        }
    }

    #[test]
    fn a_window_has_an_outcome_for_each_policy() {
        let world = world(3);
        let (plan, forecast) = (plan(), forecast(&world));
        let (windows, ended) = open_windows(&world, &plan, &[0, 2 * HOUR_S]);
        assert_eq!(windows.len(), 2);
        for window in windows {
            let found = simulate_window(window, &world, &ended, &plan, &forecast, &policies());
            let found = found.expect("both jobs start");
            let reactive = found.policies[0];
            assert!(reactive.gap_s >= 0 && reactive.expected_h.is_none());
            let best_s = found.best_moment.gap_s.abs();
            for policy in [2, 3, 5, 6] {
                let start = found.policies[policy];
                assert_eq!(start.start_s - start.gap_s, reactive.submit_s, "its end");
                assert!(
                    start.gap_s.abs() >= best_s,
                    "{start:?} is better than the best"
                );
            }
        }
    }

    #[test]
    fn a_job_that_never_starts_leaves_no_outcome() {
        let mut world = world(3);
        world.settings.capacity.push(CapacityStep {
            from: plan().warmup_s,
            nodes: 1,
        });
        let (plan, forecast) = (plan(), forecast(&world));
        let (mut windows, ended) = open_windows(&world, &plan, &[0]);
        let window = windows.pop().expect("a window");
        let found = simulate_window(window, &world, &ended, &plan, &forecast, &policies());
        assert_eq!(found, None);
    }
}
