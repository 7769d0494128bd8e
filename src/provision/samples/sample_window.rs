//! Turns a simulated window into sample rows.

use super::wait_samples::{WaitSampleRow, WindowSamples};
use crate::forecast::WaitForecast;
use crate::model_inputs::{KnownTime, MAX_WAIT_BY_LIMITS_S, QUEUE_COLUMNS};
use crate::replay::SlurmWorld;
use crate::trace::TraceZone;
use crate::window::{OpenWindow, RunningWindow, WindowPlan};

/// Inputs that all windows share.
pub(super) struct WindowSampling<'a> {
    pub world: &'a SlurmWorld,
    pub plan: &'a WindowPlan,
    pub zone: &'a TraceZone,
    /// Used only for the wait by time limits, so without draws.
    pub forecast: WaitForecast,
}

impl WindowSampling<'_> {
    /// Returns one row per probe of the window `number`. `ended` are the jobs whose end the
    /// window's opener has seen. Returns `None` if the predecessor or a successor never starts.
    pub(super) fn sample(
        &self,
        number: u32,
        window: OpenWindow<'_>,
        ended: &[u32],
    ) -> Option<WindowSamples> {
        let mut running = RunningWindow::new(window, self.world, ended, self.plan)?;
        let mut rows = Vec::with_capacity(self.plan.probes);
        for moment_s in running.probe_times_s() {
            running.advance(moment_s);
            rows.push(WaitSampleRow {
                moment_s,
                left_s: running.end_s - moment_s,
                wait_s: running.submit_now()?.start_s - moment_s,
                features: self.features(&running),
                chain: running.chain(),
                last_snapshot: running.snapshots().len() / QUEUE_COLUMNS - 1,
            });
        }
        Some(WindowSamples {
            window: number,
            rows,
            snapshots: running.snapshots().to_vec(),
        })
    }

    /// Returns the features of the queue at the current time of `running`.
    fn features(&self, running: &RunningWindow<'_>) -> Vec<f32> {
        let (queue, successor) = (running.queue(), running.successor());
        let known = KnownTime {
            queue: &queue,
            record: running.record(),
            successor: &successor,
            wall_s: self.zone.wall_s(queue.now_s),
            wait_by_limits_s: self.forecast.wait_by_limits_s(
                &queue,
                &successor,
                MAX_WAIT_BY_LIMITS_S,
            ),
        };
        known.features()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model_inputs::{SNAPSHOT_COLUMNS, feature_names, join_snapshots};
    use crate::scheduler::CapacityStep;
    use crate::window::WindowOpener;
    use crate::window::busy_world::{HOUR_S, busy_plan, busy_world, with_another_future};

    fn plan(cold_start: bool) -> WindowPlan {
        WindowPlan {
            probes: 5,
            cold_start,
            ..busy_plan()
        }
    }

    fn sampling<'a>(
        world: &'a SlurmWorld,
        plan: &'a WindowPlan,
        zone: &'a TraceZone,
    ) -> WindowSampling<'a> {
        WindowSampling {
            world,
            plan,
            zone,
            forecast: WaitForecast {
                settings: world.settings.clone(),
                draws: 0,
                seed: 0,
            },
        }
    }

    /// Samples the window at the beginning of `world`.
    fn sampled(world: &SlurmWorld, plan: &WindowPlan) -> Option<WindowSamples> {
        let mut opener = WindowOpener::new(world, plan, true);
        let window = opener.open(0);
        sampling(world, plan, &TraceZone::utc()).sample(3, window, opener.ended())
    }

    /// Returns the bits of a model's input at `moment_s`, and the same world with another future.
    fn known_at(world: &SlurmWorld, plan: &WindowPlan, moment_s: i64) -> (Vec<u32>, SlurmWorld) {
        let zone = TraceZone::utc();
        let sampling = sampling(world, plan, &zone);
        let mut opener = WindowOpener::new(world, plan, true);
        let window = opener.open(0);
        let running = RunningWindow::new(window, world, opener.ended(), plan);
        let mut running = running.expect("it starts");
        running.advance(moment_s);
        let mut inputs = sampling.features(&running);
        inputs.extend(join_snapshots(running.snapshots(), &running.chain()));
        let bits = inputs.into_iter().map(f32::to_bits).collect();
        let started_at = |number| running.started_at(number);
        (bits, with_another_future(world, moment_s, started_at))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn inputs_do_not_depend_on_the_future(
            seed in 0u64..1000,
            probe in 0usize..5,
            cold_start: bool,
        ) {
            let (world, plan) = (busy_world(seed), plan(cold_start));
            if let Some(samples) = sampled(&world, &plan) {
                let moment_s = samples.rows[probe].moment_s;
                let (known, later) = known_at(&world, &plan, moment_s);
                let features = samples.rows[probe].features.iter();
                let features: Vec<u32> = features.map(|value| value.to_bits()).collect();
                prop_assert_eq!(&known[..features.len()], &features[..]);
                prop_assert_eq!(known, known_at(&later, &plan, moment_s).0);
            }
        }
    }

    #[test]
    fn rows_have_the_outcomes_of_the_probes() {
        let (world, plan) = (busy_world(3), plan(false));
        let samples = sampled(&world, &plan).expect("all jobs start");
        let submit_s = plan.warmup_s;
        assert_eq!((samples.window, samples.rows.len()), (3, 5));
        assert_eq!(samples.rows[0].moment_s, submit_s + 60);
        assert_eq!(samples.rows[4].left_s, 0, "at its end");
        let end_s = samples.rows[4].moment_s;

        let mut opener = WindowOpener::new(&world, &plan, false);
        let window = opener.open(0);
        let running = RunningWindow::new(window, &world, opener.ended(), &plan);
        let running = running.expect("it starts");
        for row in &samples.rows {
            let start = running.submit_at(row.moment_s).expect("it starts");
            assert_eq!(row.wait_s - row.left_s, start.gap_s);
            assert_eq!(row.moment_s + row.left_s, end_s);
            assert!(row.moment_s >= submit_s && row.wait_s >= 0);
            assert_eq!(row.features.len(), feature_names().len());
        }
    }

    #[test]
    fn snapshots_end_at_the_moment_of_decision() {
        let (world, plan) = (busy_world(3), plan(false));
        let samples = sampled(&world, &plan).expect("all jobs start");
        let per_row: Vec<usize> = samples.rows.iter().map(|row| row.last_snapshot).collect();
        for (row, pair) in samples.rows.iter().zip(samples.rows.windows(2)) {
            let steps = pair[1].moment_s.div_euclid(600) - row.moment_s.div_euclid(600);
            assert_eq!(
                pair[1].last_snapshot - pair[0].last_snapshot,
                steps as usize
            );
        }
        // The predecessor waits among the other jobs from its submission on. A snapshot at exactly
        // that time does not contain it yet.
        let queue = &samples.snapshots[(per_row[0] * QUEUE_COLUMNS)..][..QUEUE_COLUMNS];
        let mut cluster = world.cluster();
        cluster.run_until(plan.warmup_s - 1);
        assert_eq!(queue[0], cluster.waiting().count() as f32);
        let last = samples.rows[4].last_snapshot;
        let joined = join_snapshots(
            &samples.snapshots[..(last + 1) * QUEUE_COLUMNS],
            &samples.rows[4].chain,
        );
        let elapsed_s = joined[joined.len() - SNAPSHOT_COLUMNS + QUEUE_COLUMNS + 3];
        assert_eq!(elapsed_s, (10 * HOUR_S) as f32);
    }

    #[test]
    fn a_window_in_which_a_job_never_starts_has_no_rows() {
        let mut world = busy_world(3);
        world.settings.capacity.push(CapacityStep {
            from: plan(false).warmup_s,
            nodes: 1,
        });
        assert_eq!(sampled(&world, &plan(false)), None);
    }

    /// More jobs run than there are nodes for.
    #[test]
    fn free_nodes_are_negative_if_running_jobs_exceed_the_cluster() {
        let mut world = busy_world(3);
        world.settings.capacity.push(CapacityStep {
            from: plan(false).warmup_s + 30,
            nodes: 2,
        });
        let samples = sampled(&world, &plan(false)).expect("all jobs start");
        let names = feature_names();
        let free = names.iter().position(|name| name == "free_nodes");
        let free = free.expect("a feature");
        assert!(samples.rows[0].features[free] < 0.0);
    }
}
