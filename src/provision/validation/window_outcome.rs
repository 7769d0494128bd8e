//! Simulates one window: the outcome of each policy, and of the best choice in hindsight.

use std::cell::OnceCell;

use crate::forecast::WaitForecast;
use crate::replay::SlurmWorld;
use crate::submission::{QueriedTime, SubmissionChoice, SubmissionPolicy};
use crate::trace::TraceZone;
use crate::window::{OpenWindow, RunningWindow, SuccessorStart, WindowPlan};

/// Outcomes of a simulated window.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WindowOutcome {
    /// Begin of the window, in epoch seconds.
    pub begin_s: i64,
    /// Outcome of each policy.
    pub policies: Vec<SuccessorStart>,
    /// Outcome of the best probe in hindsight.
    pub best_probe: SuccessorStart,
    /// Outcome of the best decision time in hindsight. The predecessor's end is one of them.
    pub best_moment: SuccessorStart,
}

/// Inputs that all windows share.
pub(super) struct WindowSimulation<'a> {
    pub world: &'a SlurmWorld,
    pub plan: &'a WindowPlan,
    pub forecast: &'a WaitForecast,
    pub policies: &'a [Box<dyn SubmissionPolicy>],
    pub zone: &'a TraceZone,
    /// Number of models that the policies query.
    pub models: usize,
}

/// Submission time that a policy chose, and the gap it expects, in hours.
type ChosenSubmission = (i64, Option<f64>);

impl WindowSimulation<'_> {
    /// Simulates `window`. `ended` are the jobs whose end the window's opener has seen. Returns
    /// `None` if the predecessor or its successor never starts.
    pub(super) fn simulate(&self, window: OpenWindow<'_>, ended: &[u32]) -> Option<WindowOutcome> {
        let begin_s = window.begin_s;
        let mut running = RunningWindow::new(window, self.world, ended, self.plan)?;

        let mut choices: Vec<Option<ChosenSubmission>> = vec![None; self.policies.len()];
        let mut moments: Vec<SuccessorStart> = Vec::new();
        let mut now_s = running.start_s + 1;
        while now_s < running.end_s {
            running.advance(now_s);
            self.query_policies(&running, &mut choices);
            moments.push(running.submit_now()?);
            now_s += self.plan.step_s;
        }
        running.advance(running.end_s);
        moments.push(running.submit_now()?);

        let mut outcomes = Vec::with_capacity(choices.len());
        for choice in choices {
            let (submit_s, expected_h) = choice.unwrap_or((running.end_s, None));
            // Reuse the outcome if a submission at this time has already been simulated.
            let known = moments.iter().find(|known| known.submit_s == submit_s);
            let outcome = match known {
                Some(known) => *known,
                None => running.submit_at(submit_s)?,
            };
            outcomes.push(SuccessorStart {
                expected_h,
                ..outcome
            });
        }
        let probes = running.probe_times_s().into_iter();
        let probes: Option<Vec<SuccessorStart>> =
            probes.map(|moment_s| running.submit_at(moment_s)).collect();
        Some(WindowOutcome {
            begin_s,
            policies: outcomes,
            best_probe: best_start(&probes?)?,
            best_moment: best_start(&moments)?,
        })
    }

    /// Queries the policies that have not chosen a submission time yet.
    fn query_policies(
        &self,
        running: &RunningWindow<'_>,
        choices: &mut [Option<ChosenSubmission>],
    ) {
        let time = self.queried_time(running);
        let (now_s, end_s) = (running.now_s(), running.end_s);
        for (policy, choice) in self.policies.iter().zip(choices) {
            if choice.is_some() {
                continue;
            }
            *choice = match policy.choose(&time) {
                SubmissionChoice::NotYet => None,
                SubmissionChoice::Now { expected_s } => Some((now_s, Some(expected_s / 3600.0))),
                SubmissionChoice::At(moment_s) => Some((moment_s.clamp(now_s, end_s), None)),
            };
        }
    }

    /// Returns the input of the policies at the current time.
    fn queried_time<'b>(&'b self, running: &'b RunningWindow<'_>) -> QueriedTime<'b> {
        QueriedTime {
            predecessor_end_s: running.end_s,
            step_s: self.plan.step_s,
            queue: running.queue(),
            ended_runs: running.ended_runs(),
            record: running.record(),
            successor: running.successor(),
            forecast: self.forecast,
            highest_quantile: self.plan.quantiles().into_iter().fold(0.5, f64::max),
            forecast_waits_s: OnceCell::new(),
            wall_s: self.zone.wall_s(running.now_s()),
            snapshots: running.model_snapshots(),
            features: OnceCell::new(),
            model_answers: vec![OnceCell::new(); self.models],
        }
    }
}

fn best_start(starts: &[SuccessorStart]) -> Option<SuccessorStart> {
    starts.iter().min_by_key(|start| start.gap_s.abs()).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scheduler::CapacityStep;
    use crate::submission::{
        AverageAtStart, AverageNow, ForecastQuantile, HistoryQuantile, LimitPlan, Reactive,
    };
    use crate::window::WindowOpener;
    use crate::window::busy_world::{HOUR_S, busy_plan, busy_world, with_another_future};

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

    /// Simulates the windows that begin at `begins_s`.
    fn outcomes(world: &SlurmWorld, plan: &WindowPlan, begins_s: &[i64]) -> Vec<WindowOutcome> {
        let simulation = WindowSimulation {
            world,
            plan,
            forecast: &forecast(world),
            policies: &policies(),
            zone: &TraceZone::utc(),
            models: 0,
        };
        let mut opener = WindowOpener::new(world, plan, false);
        let windows: Vec<OpenWindow<'_>> = begins_s.iter().map(|at| opener.open(*at)).collect();
        let simulated = windows
            .into_iter()
            .map(|window| simulation.simulate(window, opener.ended()));
        simulated.flatten().collect()
    }

    /// Returns what policies know and choose `hours` hours after the predecessor's start, the time,
    /// and the same world with another future. `None` if the predecessor never starts.
    fn known_after(
        world: &SlurmWorld,
        plan: &WindowPlan,
        hours: i64,
    ) -> Option<(String, i64, SlurmWorld)> {
        let simulation = WindowSimulation {
            world,
            plan,
            forecast: &forecast(world),
            policies: &policies(),
            zone: &TraceZone::utc(),
            models: 0,
        };
        let mut opener = WindowOpener::new(world, plan, false);
        let window = opener.open(0);
        let mut running = RunningWindow::new(window, world, opener.ended(), plan)?;
        let now_s = running.start_s + hours * HOUR_S;
        running.advance(now_s);
        let time = simulation.queried_time(&running);
        let mut choices = Vec::new();
        for policy in simulation.policies {
            choices.push(policy.choose(&time));
        }
        let known = format!(
            "{:?} {:?} {:?} {choices:?} {:?}",
            time.queue, time.ended_runs, time.record, time.forecast_waits_s
        );
        let later = with_another_future(world, now_s, |number| running.started_at(number));
        Some((known, now_s, later))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn inputs_do_not_depend_on_the_future(
            seed in 0u64..1000,
            hours in 1i64..9,
            cold_start: bool,
        ) {
            let world = busy_world(seed);
            let plan = WindowPlan { cold_start, ..busy_plan() };
            if let Some((known, now_s, later)) = known_after(&world, &plan, hours) {
                let (again, again_s, _) = known_after(&later, &plan, hours).expect("it runs there, too");
                prop_assert_eq!(now_s, again_s);
                prop_assert_eq!(known, again);
            }
        }
    }

    #[test]
    fn a_window_has_an_outcome_for_each_policy() {
        let found = outcomes(&busy_world(3), &busy_plan(), &[0, 2 * HOUR_S]);
        assert_eq!(found.len(), 2, "all jobs start");
        for found in found {
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
    fn cold_windows_ignore_earlier_jobs() {
        let world = busy_world(3);
        let begin_s = 6 * HOUR_S;
        let cold = WindowPlan {
            cold_start: true,
            ..busy_plan()
        };
        let mut emptied = busy_world(3);
        for job in emptied.jobs.iter_mut().filter(|job| job.enter < begin_s) {
            (job.nodes, job.run, job.limit) = (1, 1, 1);
        }
        let found = outcomes(&world, &cold, &[0, begin_s]);
        assert_eq!(found[1..], outcomes(&emptied, &cold, &[begin_s]));
        assert_ne!(found[1..], outcomes(&world, &busy_plan(), &[begin_s]));
    }

    #[test]
    fn a_job_that_never_starts_leaves_no_outcome() {
        let mut world = busy_world(3);
        world.settings.capacity.push(CapacityStep {
            from: busy_plan().warmup_s,
            nodes: 1,
        });
        assert_eq!(outcomes(&world, &busy_plan(), &[0]), []);
    }
}
